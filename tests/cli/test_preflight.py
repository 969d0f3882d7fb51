"""`vgbench build --dry-run`: what could stop a build, and what to do."""

from __future__ import annotations

import json
import os
import re
import shutil
from importlib import metadata
from pathlib import Path
from types import SimpleNamespace

import pytest

from vgbench_gen.cli.main import main
from vgbench_gen.pipeline import preflight
from vgbench_gen.pipeline.preflight import estimate, estimate_scene_s
from vgbench_gen.pipeline.recipe import load_recipe
from vgbench_gen.scenes import discover
from vgbench_gen.scenes.base import SceneRef
from vgbench_gen.store.provenance import BuildLock


def test_a_healthy_machine(raw_room: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "not" / "there"
    status = main(["build", "--dry-run", "--scenes", str(raw_room), "--out", str(out), "--workers", "1", "--json"])
    checks = {check["name"]: check for check in json.loads(capsys.readouterr().out)}
    assert status == 0, checks
    assert {"packages", "storage", "scenes", "disk", "temporary files", "memory"} <= set(checks)
    assert "1 ca1m, 1 wildrgbd; about 24 keyframes" in checks["scenes"]["found"]
    assert all(check["remedy"] for check in checks.values() if check["verdict"] != "OK")
    assert not list(tmp_path.iterdir())


def test_what_stops_a_build_is_told_with_its_remedy(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["build", "--dry-run", "--scenes", str(tmp_path / "nowhere"), "--out", "/proc/build"]) == 1
    out = capsys.readouterr().out
    assert max(map(len, out.splitlines())) <= 100
    # A check is a line, folded under itself where it is long.
    lines = {text.split()[1]: " ".join(text.split()) for text in re.split(r"\n(?! )", out.rstrip())}
    assert lines["storage"].startswith("FAIL storage /proc: ")
    assert lines["storage"].endswith("(--out).")
    assert "found no such folder" in lines["scenes"]
    assert lines["scenes"].startswith("FAIL")


def test_packages_out_of_range(monkeypatch: pytest.MonkeyPatch) -> None:
    real = metadata.version

    def version(name: str) -> str:
        if name == "isal":
            raise metadata.PackageNotFoundError(name)
        return "1.26.4" if name == "numpy" else real(name)

    monkeypatch.setattr(metadata, "version", version)
    check = preflight.check_packages()
    assert (check.verdict, check.found) == ("FAIL", "numpy 1.26.4, wanted <3,>=2.1")


@pytest.mark.parametrize(
    ("free", "verdict", "remedy"),
    [(8e9, "OK", ""), (3.5e9, "WARN", "Use --workers 3."), (5e8, "FAIL", "Use a machine with more memory")],
)
def test_memory_for_the_workers(monkeypatch: pytest.MonkeyPatch, free: float, verdict: str, remedy: str) -> None:
    monkeypatch.setattr(preflight, "read_available_bytes", lambda: int(free))
    check = preflight.check_memory(10**9, 4)
    assert check.verdict == verdict
    assert check.remedy.startswith(remedy)


@pytest.mark.parametrize(("free", "verdict"), [(5e9, "OK"), (1.5e9, "WARN"), (3e8, "FAIL")])
def test_room_on_the_disks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, free: float, verdict: str) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: SimpleNamespace(free=int(free)))
    assert preflight.check_room("disk", tmp_path, 10**9, "--out").verdict == verdict


def test_storage_that_cannot_rename_folders_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As object stores that are mounted as folders."""

    def refuse(*_: object) -> None:
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(os, "rename", refuse)
    monkeypatch.setattr(os, "replace", refuse)
    check = preflight.check_storage(tmp_path)
    assert (check.verdict, check.found) == ("FAIL", f"{tmp_path}: Operation not supported")
    assert not list(tmp_path.iterdir())


def test_a_build_that_runs_there_is_seen(tmp_path: Path) -> None:
    assert preflight.check_storage(tmp_path).verdict == "OK"
    with BuildLock(tmp_path):
        check = preflight.check_storage(tmp_path)
    assert check.verdict == "FAIL"
    assert "is building here" in check.found


def test_estimates_scale_from_the_scenes_that_open(raw_room: Path) -> None:
    recipe = load_recipe("default")
    refs = discover(raw_room)
    one = estimate(refs, recipe)
    many = estimate(refs * 40, recipe)
    assert many.keyframes == 40 * one.keyframes > 0
    assert many.cpu_s == pytest.approx(40 * one.cpu_s)
    assert many.worker_bytes == one.worker_bytes
    assert many.disk_bytes > one.disk_bytes
    gone = [SceneRef(refs[0].dataset, "gone", raw_room / "gone.tar"), *refs]
    assert estimate(gone, recipe).spool_bytes == one.spool_bytes > 0
    assert estimate_scene_s(200) > 4 * estimate_scene_s(10)
