from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from vgbench_gen.cli.main import main
from vgbench_gen.cli.scenes import count_kinds, describe_reading
from vgbench_gen.core.errors import SceneError
from vgbench_gen.core.registry import Registry
from vgbench_gen.scenes import base, health, opening
from vgbench_gen.tasks.base import tasks


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

    info, is_general = SimpleNamespace(title="ScanNet"), False

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
    counts = {"frames_total": 40, "frames_usable": 38, "poses_valid": 39, "objects": 11}
    shares = {"depth_coverage": 0.761, "median_depth_m": 1.9, "agree": agree, "agree_next": 0.21, "agree_still": 0.3}
    read = {"reading": "camera to world, OpenCV", "unit": "confirmed", "fits": "", "pairing": "", "metric": True}
    gravity = {"up_world": (0.0, 0.0, 1.0), "up_from_planes": None, "up": "upright"}
    names = {"dataset": "scannet", "id": scene.id, "split": "val", "variant": variant}
    return health.SceneHealth(**names, **counts, **shares, **read, **gravity, verdict=verdict, issues={})  # type: ignore[arg-type]


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
    *rows, told, _, _, _, last = capsys.readouterr().out.splitlines()
    assert rows == [
        "dataset  scene         frames    poses  depth  objects  agree  verdict",
        "scannet  s1                38    39/40    76%       11      -  warn: dark",
        "  read as dim; camera to world, OpenCV: - (next 21%, still 30%); unit of depth: confirmed; up: z, stated; "
        f"boxes: 11 -> {len(tasks.names())} kinds of question",
        "scannet  scene0000_00      38    39/40    76%       11    93%  ok",
        "  read as ok; camera to world, OpenCV: 93% (next 21%, still 30%); unit of depth: confirmed; up: z, stated; "
        f"boxes: 11 -> {len(tasks.names())} kinds of question",
    ]
    assert told.startswith("frames: ")
    assert last == "leads both by 20%."


def test_a_scene_without_boxes_gravity_and_meters_carries_fewer_kinds() -> None:
    everything = {"objects": 3, "up_world": (0, 0, 1), "metric": True}
    assert count_kinds(everything) == len(tasks.names())
    alone = {
        name: count_kinds(everything | {name: lacks})
        for name, lacks in (("objects", 0), ("up_world", None), ("metric", False))
    }
    assert alone == {"objects": 12, "up_world": 20, "metric": 8}
    assert count_kinds({"objects": 0, "up_world": None, "metric": False}) == 8
    text = describe_reading(
        {**everything, "objects": 0, "metric": False, "up_world": None, "up_from_planes": (0.1, -0.99, 0.1, 1.23)}
        | {
            "variant": "COLMAP",
            "dataset": "posed",
            "reading": "world to camera, OpenCV",
            "unit": "not testable",
            "kinds": 8,
        }
        | {"agree": 0.7, "agree_next": 0.1, "agree_still": None, "pairing": "8 poses by name"}
    )
    assert text == (
        "read as COLMAP; world to camera, OpenCV: 70% (next 10%, still -); not metric; 8 poses by name; "
        "up: unknown, by planes (0.1, -0.99, 0.1) within 1.2 degrees; boxes: none -> 8 kinds of question"
    )


@pytest.mark.parametrize("kind", ["bad", "broken"])
def test_a_bad_scene_is_listed_and_the_status_is_1(shelf: Path, capsys: pytest.CaptureFixture[str], kind: str) -> None:
    (shelf / f"a.{kind}").touch()
    (shelf / "b.ok").touch()
    assert main(["scenes", str(shelf)]) == 1
    lines = capsys.readouterr().out.splitlines()
    end = next(k for k, line in enumerate(lines) if line.endswith("  ok"))
    told = " ".join(" ".join(lines[1:end]).split())
    assert told.partition(" read as ")[0].endswith(
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
    assert (good["id"], good["frames_usable"], good["agree"], good["variant"]) == ("b", 38, 0.934, "ok")
    assert dim["agree"] is None


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
