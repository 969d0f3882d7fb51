"""A loader from another package goes through every verb, and no room needs an edit for it."""

from __future__ import annotations

import json

import pytest

from tests.contracts.conftest import Outside
from tests.contracts.tum_sequence import NAME
from vgbench_gen.scenes.base import loaders

pytestmark = pytest.mark.timeout(600)  # whole builds, on machines that may be busy


def test_every_verb_takes_scenes_of_a_loader_from_outside(outside: Outside) -> None:
    assert "tum_rgbd" not in loaders  # of this process: the packages are installed for others only
    assert {verb: told.errors for verb, told in outside.told.items() if told.status} == {}
    items = outside.far
    assert {(item.source, item.scene_id, item.licence) for item in items} == {("tum_rgbd", NAME, "cc-by-4.0")}
    [scene] = outside.told["scenes"].json()
    found = [scene[name] for name in ("dataset", "frames_usable", "frames_total", "verdict", "issues")]
    assert found == ["tum_rgbd", 13, 14, "ok", {"pose_missing": 1}]
    assert "1 tum_rgbd; about 13 keyframes" in outside.told["build --dry-run"].out
    assert f"{len(items)} of {len(items)} items verified" in outside.told["verify"].out
    assert "from the stored evidence and from the raw scenes" in outside.told["verify"].out
    assert (outside.home / "why.png").stat().st_size > 10_000


def test_what_the_loader_says_of_its_dataset_is_published(outside: Outside) -> None:
    count = len(outside.far)
    told = outside.told["publish"].out
    assert f"tum_rgbd: {count} questions with images (Creative Commons Attribution 4.0)" in told
    doubt = (
        "tum_rgbd: images go out under its terms (Creative Commons Attribution 4.0), as the scans lie in its folders"
    )
    assert doubt in outside.told["publish"].errors
    card = (outside.home / "far" / "publish" / "README.md").read_text("utf-8")
    assert f"| TUM RGB-D | 1 | {count} | 100 % |" in card
    assert "TUM RGB-D, Computer Vision Group" in card


def test_the_noise_that_the_loader_states_is_what_questions_must_bear(outside: Outside) -> None:
    recipe = json.loads((outside.home / "build" / "manifest.json").read_text("utf-8"))["recipe"]
    assert recipe["gates"]["noise"]["tum_rgbd"]["shift_m"] == 0.01
    assert recipe["gates"]["noise"]["wildrgbd"]["shift_m"] == 0.03


def test_what_the_loader_refuses_is_said_and_costs_that_scene_alone(outside: Outside) -> None:
    listed = outside.refused["scenes"]
    verdicts = {scene["id"].rpartition("_")[2]: scene["verdict"] for scene in listed.json()}
    assert listed.status == 1
    assert "expected one of the camera freiburg3" in verdicts["desk"]
    assert "found a row of 7 words; expected rows of 8 words" in verdicts["cut"]
    assert "a link or path to" in verdicts["away"]
