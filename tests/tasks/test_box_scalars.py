"""Sizes of objects and gaps between them: what released generators get wrong."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from tests.lenient import without_lines
from tests.quality.invariance_room import get_view
from vgbench_gen.core.gates import Gates
from vgbench_gen.core.types import FloatArray
from vgbench_gen.geometry import boxes
from vgbench_gen.tasks._object_evidence import ObjectEvidence, PairEvidence
from vgbench_gen.tasks.base import tasks
from vgbench_gen.tasks.kind import Measured
from vgbench_gen.tasks.places import SingleEvidence

NAMES = ("object_size", "object_gap")


def get_task(name: str) -> Any:
    return tasks[name].with_gates(without_lines(Gates()))


def place(center_m: list[float], sides_m: list[float], R: FloatArray | None = None) -> ObjectEvidence:
    corners_m = (boxes.CORNER_SIGNS * np.array(sides_m) / 2) @ (np.eye(3) if R is None else R).T + center_m
    return ObjectEvidence(instance_id="x", label="x", corners_m=corners_m, visible=1.0)


def gap(a: ObjectEvidence, b: ObjectEvidence) -> float:
    seen = PairEvidence(a=a, b=b)
    return float(get_task("object_gap").value(seen))


@pytest.mark.parametrize("sides_m", list(permutations((0.5, 0.8, 1.3))))
def test_the_longest_side_is_the_size_whichever_is_listed_third(sides_m: tuple[float, ...]) -> None:
    """OpenSpatial takes the third side of a box for its height."""
    for turn in ([0, 0, 0], [0.3, 1.0, -0.4], [np.pi / 2, 0, 0]):
        R = Rotation.from_rotvec(turn).as_matrix()
        seen = SingleEvidence(a=place([0.2, 0.1, 3.0], list(sides_m), R))
        assert float(get_task("object_size").value(seen)) == pytest.approx(1.3)


def test_space_is_between_whole_objects_not_between_what_is_seen_of_them() -> None:
    """OpenSpatial measures between the visible shells: of one object behind another, between both front sides."""
    front, back = place([0, 0, 2], [0.4, 0.4, 0.8]), place([0, 0, 4.5], [0.4, 0.4, 0.8])
    assert gap(front, back) == pytest.approx(4.5 - 2 - 0.8)
    turned = place([0, 0, 4.5], [1.0, 0.4, 1.0], Rotation.from_euler("y", 45, degrees=True).as_matrix())
    assert gap(front, turned) == pytest.approx(4.5 - 2 - 0.4 - np.sqrt(0.5), abs=1e-5)
    assert gap(place([0, 0, 2], [1, 1, 1]), place([2, 2, 4], [1, 1, 1])) == pytest.approx(np.sqrt(3), abs=1e-5)


@pytest.mark.parametrize("name", NAMES)
def test_an_object_behind_another_one_or_partly_hidden_is_measured_whole(name: str) -> None:
    """What the frame measured of an object reaches less far, and of two objects lies further apart."""
    task, view, compared = get_task(name), get_view(name), 0
    for one in task.propose(view, np.random.default_rng(0)):
        if isinstance(one, Measured):
            ids = [stored.instance_id for _, stored in one.evidence if isinstance(stored, ObjectEvidence)]
            whole = [next(boxes.corners(item.box) for item in view.objects if item.instance_id == i) for i in ids]
            sides_m = np.linalg.norm(np.diff(whole[0][boxes.EDGES], axis=1), axis=-1)
            truth = sides_m.max() if name == "object_size" else boxes.measure_gap_m(whole[0], whole[1])
            assert float(task.value(one.evidence)) == pytest.approx(float(truth), abs=1e-6)
            assert float(task.second(view, one)) == pytest.approx(float(truth), rel=0.06, abs=0.03)
            compared += 1
    assert compared >= 8
