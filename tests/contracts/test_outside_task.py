"""A task from a package outside the repository goes through every verb; nothing here is edited for it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import vgbench_gen
from tests.contracts.outside import Told, install_files, vgbench

PACKAGE = Path(__file__).with_name("outside_task")
RECIPE = """\
seed = 5
facts_per_scene = 4
tasks = ["camera_height"]

[gates.camera_height]
min_m = 0.6
"""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the installed package in `site`."""
    folder = tmp_path_factory.mktemp("heights")
    install_files({path.name: path.read_text("utf-8") for path in PACKAGE.glob("*.*")}, folder / "site")
    return folder


@pytest.fixture(scope="module")
def builds(home: Path, raw_room: Path) -> list[Told]:
    """What was told of the build in `build`, and of one by a recipe with a gate that the task lacks."""
    calls: list[list[str | Path]] = []
    for name, recipe in (("build", RECIPE), ("other", RECIPE.replace("min_m", "lowest_m"))):
        (home / f"{name}.toml").write_text(recipe)
        options: list[str | Path] = ["--scenes", raw_room / "ca1m", "--out", home / name, "--workers", "1"]
        calls.append(["build", home / f"{name}.toml", *options])
    return vgbench(home / "site", *calls)


def test_a_task_from_outside_goes_through_every_verb(
    home: Path, builds: list[Told], raw_room: Path, tmp_path: Path
) -> None:
    out, room = home / "build", raw_room / "ca1m"
    assert builds[0].status == 0, builds[0].errors
    items = list(vgbench_gen.load(out))
    assert {item.question_type for item in items} == {"judgment", "multi-choice", "open-ended"}
    assert {item.task for item in items} == {"camera_height"}
    assert json.loads((out / "manifest.json").read_text())["recipe"]["gates"]["camera_height"]["min_m"] == 0.6
    verified, audited, _, explained, drawn, redrawn, published, _, scored = results = vgbench(
        home / "site",
        ["verify", out, "--scenes", room, "--workers", "1"],
        ["audit", out, "--workers", "1", "--json"],
        ["browse", out, "--out", tmp_path / "pages"],
        ["explain", out, items[0].id, "--out", tmp_path / "why.png"],
        ["distractors", out, "--strategy", "sampled", "--out", tmp_path / "sampled", "--workers", "1"],
        ["verify", tmp_path / "sampled", "--workers", "1"],
        ["publish", out, "--repo", "lab/heights", "--dry-run"],
        ["eval", out, "--model", "baseline:truth", "--model", "baseline:solvers"],
        ["score", out],
    )
    for told in results:
        if told.arguments[0] != "audit":
            assert told.status == 0, f"{told.arguments[0]}: {told.out}{told.errors}"
    assert f"{len(items)} of {len(items)} items agree (100.00 %), by evidence and raw scenes" in verified.out
    assert audited.status in (0, 1), audited.errors  # so few questions may look unfair by chance
    names = {line["name"] for line in audited.json()["findings"]}
    assert {"likes the second option", "likes the second option, too"} <= names
    assert "camera_height" in explained.out
    choices = sum(item.question_type == "multi-choice" for item in items)
    assert f"{choices} of {choices} questions have new options, 0 unchanged" in drawn.out
    assert f"{len(items)} of {len(items)} items agree" in redrawn.out
    assert f"{len(items)} questions" in published.out
    assert f"baseline:truth: {len(items)} replies, right {len(items)}," in scored.out


def test_a_gate_that_an_outside_task_lacks_is_named(builds: list[Told]) -> None:
    refused = builds[1]
    assert refused.status == 2
    assert "gates.camera_height.lowest_m: found an unknown key" in refused.errors
    assert "Known keys: min_m, ratio_max, ratio_min" in refused.errors
