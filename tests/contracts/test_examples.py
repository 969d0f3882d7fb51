"""The package in `examples/kinds`, installed by its entry points: its kinds go through every verb without an edit."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import pytest

import vgbench_gen
from tests.contracts.outside import Told, install, started
from tests.example_kinds import EXAMPLES
from vgbench_gen.core.types import Item

pytestmark = pytest.mark.timeout(600)  # whole builds, on machines that may be busy

RECIPE = """\
seed = 5
facts_per_scene = 8
tasks = ["camera_turn", "point_distance", "wider_object"]

[gates.point_distance]
min = 0.5
"""


@dataclass(frozen=True, slots=True)
class Built:
    """A build of all examples and what every verb told of it."""

    folder: Path
    told: dict[str, Told]
    refused: Told
    """What was told of a recipe with a gate that the kind lacks."""

    def list_items(self, name: str, folder: str = "build") -> list[Item]:
        return [item for item in vgbench_gen.load(self.folder / folder) if item.task == name]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory, raw_room: Path) -> Built:
    home = tmp_path_factory.mktemp("examples")
    install("kinds", home / "site")
    (home / "recipe.toml").write_text(RECIPE)
    (home / "wrong.toml").write_text(RECIPE.replace("min =", "least ="))
    out, room, one = home / "build", raw_room / "ca1m", ["--workers", "1"]
    calls: list[list[str | Path]] = [
        ["build", home / "recipe.toml", "--scenes", room, "--out", out, *one],
        ["build", home / "wrong.toml", "--scenes", room, "--out", home / "wrong", *one],
        ["verify", out, "--scenes", room, *one],
        ["audit", out, *one, "--json"],
        ["distractors", out, "--seed", "9", "--out", home / "again", *one],
        ["verify", home / "again", *one],
        ["browse", out],
        ["publish", out, "--repo", "lab/kinds", "--dry-run"],
        ["export", out, "--to", "spatialscore-json", "--out", home / "export"],
        ["eval", out, "--model", "baseline:truth", "--model", "baseline:solvers"],
        ["compare", out, "--json"],
    ]
    with started(home / "site") as vgbench:
        told = vgbench(*calls)
        assert told[0].status == 0, told[0].errors
        firsts = {items[0].task: items[0].id for items in map(Built(home, {}, told[1]).list_items, EXAMPLES)}
        shows: list[list[str | Path]] = [
            ["show", id_, out, "--out", home / f"{name}.png"] for name, id_ in firsts.items()
        ]
        dry, *shown = vgbench(["paraphrase", "--task", "camera_turn", "--dry-run"], *shows)
    by_verb = {"build": told[0], "paraphrase": dry} | {
        one.arguments[0]: one for one in told[2:] if one.arguments[0] != "verify"
    }
    return Built(
        home, by_verb | {"verify": told[2], "verify again": told[5]} | dict(zip(firsts, shown, strict=True)), told[1]
    )


def test_every_verb_takes_them(built: Built) -> None:
    for verb, told in built.told.items():
        assert told.status in ((0, 1) if verb == "audit" else (0,)), f"{verb}: {told.out}{told.errors}"
    count = sum(len(built.list_items(name)) for name in EXAMPLES)
    assert (
        f"{count} of {count} items verified (100%), from the stored evidence and from the raw scenes"
        in built.told["verify"].out
    )
    assert f"{count} of {count} items verified (100%)" in built.told["verify again"].out
    assert "did the camera turn" in built.told["paraphrase"].out.lower()
    (truth,) = [one for one in built.told["compare"].json()["models"] if one["spec"] == "baseline:truth"]
    assert truth["outcomes"]["right"] == truth["scored"] == count


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_kind_from_outside_is_asked_shown_and_passed_on(name: str, built: Built) -> None:
    items, again = built.list_items(name), built.list_items(name, "again")
    forms = {"judgment", "multi-choice"} | ({"open-ended"} if name == "point_distance" else set())
    assert {item.question_type for item in items} == forms
    # All labels are options of a question about labels, whatever is drawn.
    kept = [item.id for item in items if not item.options or name != "point_distance"]
    assert [item.id for item in again if not item.options or name != "point_distance"] == kept
    for item in items:
        if item.options and name != "point_distance":
            assert len(item.options) == 2
            assert item.options["AB".index(item.answer)] in {"to the left", "to the right"} | set(item.options)
        assert all(item.context and "{" not in text for text in (item.question, item.context))
    assert (built.folder / f"{name}.png").stat().st_size > 10_000
    told = {line["task"] for line in built.told["audit"].json()["findings"]}
    assert name in told
    exported = "".join(path.read_text("utf-8") for path in (built.folder / "export").rglob("*.json"))
    assert f"{name}_vqa" in exported
    card = (built.folder / "build" / "publish" / "README.md").read_text("utf-8")
    assert f"| `{name}` | " in card
    gallery = (built.folder / "build" / "gallery").rglob("*.js*")
    assert any(name in path.read_text("utf-8") for path in gallery)


def test_gates_are_the_class_data_over_which_a_recipe_may_write(built: Built) -> None:
    recipe = json.loads((built.folder / "build" / "manifest.json").read_text("utf-8"))["recipe"]
    assert recipe["gates"]["point_distance"]["min"] == 0.5
    assert min(item.answer_value[0] for item in built.list_items("point_distance")) >= 0.5
    assert built.refused.status == 2
    assert "gates.point_distance.least: found an unknown key" in built.refused.errors
    assert "Known keys: gap_min, max, min, ratio_max, ratio_min" in built.refused.errors


def test_the_solver_of_a_kind_from_outside_is_asked(built: Built) -> None:
    found = [line for line in built.told["audit"].json()["findings"] if line["name"] == "pixels move to the other side"]
    assert found
    assert {line["task"] for line in found} == {"camera_turn"}


def test_claims_state_their_number_and_their_tolerance(built: Built) -> None:
    for item in built.list_items("point_distance"):
        places = [tuple(place) for place in item.evidence["truth"]["show"].values()]
        assert all(f"({u}, {v})" in item.question for u, v in places)
        if item.question_type == "judgment":
            claimed = item.evidence["claim"]["value"][0]
            assert f"{claimed:.2f} meters" in item.question
            assert "10 percent" in item.question
            assert item.answer == ("Yes" if abs(claimed / item.answer_value[0] - 1) < 0.1 else "No")
        elif item.question_type == "open-ended":
            assert item.answer == f"{item.answer_value[0]:.2f} meters"
            assert "two decimals" in item.question
