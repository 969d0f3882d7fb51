from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from vgbench_gen.cli.main import main
from vgbench_gen.core.errors import SceneError
from vgbench_gen.core.registry import Registry
from vgbench_gen.scenes import base, health, opening


class Empty:
    """Stands for an open scene; its health is made up by `fake_summary`."""

    dataset = "scannet"

    def __init__(self, name: str) -> None:
        self.id = name

    def __enter__(self) -> Empty:
        return self

    def __exit__(self, *exc: object) -> None:
        pass


class Shelf:
    """A loader whose scenes are the files `<id>.<what happens>` of the folder."""

    info = SimpleNamespace(title="ScanNet")

    def discover(self, root: Path) -> Iterator[base.SceneRef]:
        for path in sorted(root.iterdir()):
            yield base.SceneRef("scannet", path.stem, path, variant=path.suffix[1:])

    def open(self, ref: base.SceneRef) -> Empty:
        if ref.variant == "broken":
            raise SceneError(ref.path.name, "magic 7", "version 4", "Copy it again.")
        return Empty(ref.scene_id)


def fake_summary(scene: Any, variant: str = "") -> health.SceneHealth:
    verdict = "bad: nothing fits" if variant == "bad" else "warn: dark" if variant == "dim" else "ok"
    agree = float("nan") if variant == "dim" else 0.934
    return health.SceneHealth(
        "scannet", scene.id, "val", variant, 40, 38, 39, 0.761, 1.9, 11, 0.01, agree, (), "upright", verdict, {}
    )


@pytest.fixture
def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    loaders: Registry[Any] = Registry("dataset", "vgbench_gen.core")  # a folder without loaders
    loaders.register("scannet")(Shelf)
    monkeypatch.setattr(base, "loaders", loaders)
    monkeypatch.setattr(health, "summarise_health", fake_summary)
    for check in ("check_scene", "_leave_out_implausible"):
        monkeypatch.setattr(opening, check, lambda *things: None)
    folder = tmp_path / "shelf"
    folder.mkdir()
    return folder


def test_one_aligned_line_per_scene(shelf: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (shelf / "scene0000_00.ok").touch()
    (shelf / "s1.dim").touch()
    assert main(["scenes", str(shelf)]) == 0
    *rows, told, _, _, last = capsys.readouterr().out.splitlines()
    assert rows == [
        "dataset  scene         frames    poses  depth  objects  agree  verdict",
        "scannet  s1                38    39/40    76%       11      -  warn: dark",
        "scannet  scene0000_00      38    39/40    76%       11    93%  ok",
    ]
    assert told.startswith("frames: ")
    assert last.startswith("poses drift")


@pytest.mark.parametrize("kind", ["bad", "broken"])
def test_a_bad_scene_is_listed_and_the_status_is_1(shelf: Path, capsys: pytest.CaptureFixture[str], kind: str) -> None:
    (shelf / f"a.{kind}").touch()
    (shelf / "b.ok").touch()
    assert main(["scenes", str(shelf)]) == 1
    lines = capsys.readouterr().out.splitlines()
    end = next(k for k, line in enumerate(lines) if line.endswith("  ok"))
    told = " ".join(" ".join(lines[1:end]).split())
    assert told.endswith(
        {"bad": "bad: nothing fits", "broken": "bad: a.broken: found magic 7; expected version 4. Copy it again."}[kind]
    )


def test_json_has_the_same_keys_for_bad_scenes(shelf: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (shelf / "a.broken").touch()
    (shelf / "b.ok").touch()
    (shelf / "c.dim").touch()
    assert main(["scenes", str(shelf), "--json"]) == 1
    broken, good, dim = json.loads(capsys.readouterr().out)
    assert broken.keys() == good.keys()
    assert (broken["id"], broken["frames_usable"]) == ("a", None)
    assert broken["verdict"] == "bad: a.broken: found magic 7; expected version 4. Copy it again."
    assert (good["id"], good["frames_usable"], good["pose_depth_agree"], good["variant"]) == ("b", 38, 0.934, "ok")
    assert dim["pose_depth_agree"] is None


def test_nothing_found(shelf: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["scenes", str(shelf)]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "no scan of ScanNet below" in captured.err
    assert main(["scenes", str(shelf), "--json"]) == 2
    assert json.loads(capsys.readouterr().out) == []
    assert main(["scenes", str(tmp_path / "absent")]) == 2
    assert "absent: no such folder. Name the folder that holds the scans." in capsys.readouterr().err


def test_the_captures_of_all_four_datasets_are_usable(captures: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["scenes", str(captures), "--json"]) == 0
    rows = {row["id"]: row for row in json.loads(capsys.readouterr().out)}
    assert {row["dataset"] for row in rows.values()} == {"scannet", "scannetpp", "ca1m", "wildrgbd"}
    # Frames 7 and 23 of the first scan, frame 5 of the second, have the pose of a lost tracker.
    assert (rows["scene9001_00"]["frames_total"], rows["scene9001_00"]["frames_usable"]) == (40, 38)
    assert (rows["scene9001_01"]["frames_total"], rows["scene9001_01"]["frames_usable"]) == (13, 12)
    assert rows["box/scenes_000"]["objects"] == 0
    assert rows["90010001"]["objects"] > 0
