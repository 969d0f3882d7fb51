"""A loader from another package goes through every verb, and no room needs an edit for it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import vgbench_gen
from tests.contracts.conftest import Outside
from tests.contracts.tum_sequence import NAME
from vgbench_gen.scenes.base import loaders

pytestmark = pytest.mark.timeout(600)  # whole builds, on machines that may be busy


def test_every_verb_takes_scenes_of_a_loader_from_outside(outside: Outside, tmp_path: Path) -> None:
    scenes, build = outside.scenes, outside.build
    assert "tum_rgbd" not in loaders  # of this process: the packages are installed for others only
    assert outside.built.status == 0, outside.built.errors
    items = list(vgbench_gen.load(build))
    assert {(item.source, item.scene_id, item.licence) for item in items} == {("tum_rgbd", NAME, "cc-by-4.0")}
    assert {item.task for item in items} == {"relative_depth", "metric_depth", "homography_to_matrix", "point_distance"}

    listed, doctor, verified, audited, browsed, explained, published = outside.run(
        ["scenes", scenes, "--json"],
        ["doctor", "--scenes", scenes, "--out", tmp_path / "later"],
        ["verify", build, "--scenes", scenes, "--workers", "1"],
        ["audit", build, "--workers", "1", "--out", tmp_path / "audit"],
        ["browse", build, "--out", tmp_path / "gallery"],
        ["explain", build, items[0].id, "--out", tmp_path / "why.png"],
        ["publish", build, "--repo", "lab/tum", "--dry-run", "--out", tmp_path / "published"],
    )
    [scene] = listed.json()
    assert (scene["dataset"], scene["frames_usable"], scene["frames_total"], scene["verdict"]) == (
        "tum_rgbd", 13, 14, "ok",
    )  # fmt: skip
    assert scene["issues"] == {"pose_missing": 1}
    assert "1 tum_rgbd; about 13 keyframes" in doctor.out
    assert f"{len(items)} of {len(items)} items agree" in verified.out
    assert f"by evidence and raw scenes ({len(items)} items)" in verified.out
    assert (audited.status, browsed.status, explained.status) == (0, 0, 0), audited.errors
    assert (tmp_path / "why.png").stat().st_size > 10_000
    assert f"tum_rgbd: {len(items)} questions with images (Creative Commons Attribution 4.0)" in published.out
    card = (tmp_path / "published" / "README.md").read_text("utf-8")
    assert f"| TUM RGB-D | 1 | {len(items)} | 100 % |" in card
    assert "TUM RGB-D, Computer Vision Group" in card


def test_the_noise_that_the_loader_states_is_what_questions_must_bear(outside: Outside) -> None:
    recipe = json.loads((outside.build / "manifest.json").read_text("utf-8"))["recipe"]
    assert recipe["gates"]["noise"]["tum_rgbd"]["shift_m"] == 0.01
    assert recipe["gates"]["noise"]["wildrgbd"]["shift_m"] == 0.03


def test_what_the_loader_refuses_is_said_and_costs_that_scene_alone(outside: Outside, tmp_path: Path) -> None:
    other, cut = tmp_path / "rgbd_dataset_freiburg1_desk", tmp_path / "rgbd_dataset_freiburg3_cut"
    for folder in (other, cut):
        (folder / "rgb").mkdir(parents=True)
        (folder / "groundtruth.txt").write_text("1.0 0 0 0 0 0 0\n")
    (cut / "associations.txt").write_text("1.0 rgb/1.0.png 1.0 ../../../secret.png\n")
    [listed] = outside.run(["scenes", tmp_path, "--json"])
    verdicts = {scene["id"]: scene["verdict"] for scene in listed.json()}
    assert listed.status == 1
    assert "expected one of the camera freiburg3" in verdicts[other.name]
    assert "found a row of 7 words; expected rows of 8 words" in verdicts[cut.name]
    (cut / "groundtruth.txt").write_text("1.0 0 0 0 0 0 0 1\n")
    [listed] = outside.run(["scenes", tmp_path, "--json"])
    assert "a link or path to" in {scene["id"]: scene["verdict"] for scene in listed.json()}[cut.name]
