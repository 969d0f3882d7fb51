"""A task from a package outside the repository goes through every verb; nothing here is edited for it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import vgbench_gen

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = Path(__file__).with_name("outside_task")
RECIPE = """\
seed = 5
facts_per_scene = 4
tasks = ["camera_height"]

[gates.camera_height]
min_m = 0.6
"""
# One process for many verbs: what takes long is importing.
DRIVER = """
import contextlib, io, json, sys
from vgbench_gen.cli.main import main
results = []
for arguments in json.load(sys.stdin):
    out, errors = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
        status = main(arguments)
    results.append([status, out.getvalue(), errors.getvalue()])
print(json.dumps(results))
"""
VERBS = ("verify", "audit", "browse", "explain", "distractors", "verify", "publish", "eval", "score")
Run = Callable[..., list[tuple[int, str, str]]]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Call the program where the package is installed; one (status, output, errors) per call."""
    site = tmp_path_factory.mktemp("site")
    for path in PACKAGE.glob("*.*"):
        shutil.copy(path, site)
    about = site / "vgbench_camera_height-0.1.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: vgbench-camera-height\nVersion: 0.1\n")
    (about / "entry_points.txt").write_text("[vgbench_gen.tasks]\ncamera_height = vgbench_camera_height\n")
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{site}"}

    def call(*calls: list[Any]) -> list[tuple[int, str, str]]:
        given = json.dumps([[str(argument) for argument in arguments] for arguments in calls])
        done = subprocess.run([sys.executable, "-c", DRIVER], input=given, capture_output=True, text=True,
                              check=False, env=environment)  # fmt: skip
        assert done.returncode == 0, done.stderr
        return [tuple(result) for result in json.loads(done.stdout.splitlines()[-1])]

    return call


def test_a_task_from_outside_goes_through_every_verb(run: Run, raw_room: Path, tmp_path: Path) -> None:
    recipe, out = tmp_path / "recipe.toml", tmp_path / "build"
    recipe.write_text(RECIPE)
    room = raw_room / "ca1m"
    [built] = run(["build", recipe, "--scenes", room, "--out", out, "--workers", "1"])
    assert built[0] == 0, built[2]
    items = list(vgbench_gen.load(out))
    assert {item.question_type for item in items} == {"judgment", "multi-choice", "open-ended"}
    assert {item.task for item in items} == {"camera_height"}
    assert json.loads((out / "manifest.json").read_text())["recipe"]["gates"]["camera_height"]["min_m"] == 0.6
    verified, audited, _, explained, drawn, redrawn, published, _, scored = results = run(
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
    for (status, said, errors), verb in zip(results, VERBS, strict=True):
        if verb != "audit":
            assert status == 0, f"{verb}: {said}{errors}"
    assert f"{len(items)} of {len(items)} items agree (100.00 %), by evidence and raw scenes" in verified[1]
    assert audited[0] in (0, 1), audited[2]  # so few questions may look unfair by chance
    names = {line["name"] for line in json.loads(audited[1])["findings"]}
    assert {"likes the second option", "likes the second option, too"} <= names
    assert "camera_height" in explained[1]
    choices = sum(item.question_type == "multi-choice" for item in items)
    assert f"camera_height/sampled: {choices} with new options" in drawn[1]
    assert f"{len(items)} of {len(items)} items agree" in redrawn[1]
    assert f"{len(items)} questions" in published[1]
    assert f"baseline:truth: {len(items)} replies, right {len(items)}," in scored[1]


def test_a_gate_that_an_outside_task_lacks_is_named(run: Run, raw_room: Path, tmp_path: Path) -> None:
    recipe = tmp_path / "recipe.toml"
    recipe.write_text(RECIPE.replace("min_m", "lowest_m"))
    [(status, _, errors)] = run(["build", recipe, "--scenes", raw_room / "ca1m", "--out", tmp_path / "build"])
    assert status == 2
    assert "gates.camera_height.lowest_m: found an unknown key" in errors
    assert "Known keys: min_m, ratio_max, ratio_min" in errors
