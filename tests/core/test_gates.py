"""Gates of tasks stand where the tasks are, and in a recipe beside those that all share."""

from __future__ import annotations

import pickle

import pytest

from tests.lenient import replace_section
from vgbench_gen.core.config import parse_config
from vgbench_gen.core.errors import ConfigError
from vgbench_gen.core.gates import Gates, TaskGates
from vgbench_gen.tasks.base import read_gates
from vgbench_gen.tasks.gates import BoxMargins, TrackGates


def test_a_table_of_a_task_is_read_and_the_rest_is_as_shipped() -> None:
    gates = read_gates({"track": {"gap_min_d": 7.5}, "box": {"iou_max": 0.2}}, "recipe")
    assert gates.section(TrackGates) == TrackGates(gap_min_d=7.5)
    assert gates.section(BoxMargins).iou_max == 0.2
    assert Gates().section(TrackGates) == TrackGates()
    assert replace_section(Gates(), TrackGates(gap_min_d=7.5)).section(TrackGates).gap_min_d == 7.5


def test_gates_come_back_as_they_were_written() -> None:
    given = read_gates({"metric_depth": {"ratio_min": 1.3}, "region": {"valid_min": 0.8}}, "recipe")
    gates = replace_section(given, TrackGates(gap_min_d=7.5))
    written = gates.model_dump(mode="json")
    assert written["track"]["gap_min_d"] == 7.5
    assert written["track"]["gap_min_m"] == TrackGates().gap_min_m
    assert written["metric_depth"] == {"ratio_min": 1.3, "ratio_max": 3.0, "gap_min": 0.15}
    assert written["camera_parameters"]["zoom_max"] == 3.0
    assert read_gates(written, "manifest") == gates == pickle.loads(pickle.dumps(gates))
    assert read_gates(Gates().model_dump(mode="json"), "manifest") == Gates()


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (
            {"trak": {}},
            "trak: found an unknown key 'trak'. Did you mean track? Known keys: appearance_order, ",
        ),
        ({"track": {"gap": 1.0}}, "track.gap: found an unknown key 'gap'."),
        ({"track": {"gap_min_d": "much"}}, 'track.gap_min_d: found "much"; expected a valid number'),
        ({"track": 3}, "track: found 3; expected "),
    ],
)
def test_a_wrong_table_is_named_with_its_place(data: dict[str, object], said: str) -> None:
    with pytest.raises(ConfigError, match=r"^recipe: ") as refused:
        read_gates(data, "recipe")
    assert said in str(refused.value)


def test_two_tasks_cannot_have_one_table() -> None:
    with pytest.raises(TypeError, match=r"gates\.track exists"):
        type("Other", (TaskGates,), {"section": "track", "__module__": "elsewhere"})
    with pytest.raises(TypeError, match=r"gates\.frame exists"):
        type("Frames", (TaskGates,), {"section": "frame", "__module__": "elsewhere"})
    assert parse_config({"track": {}}, Gates, "recipe") == Gates()
