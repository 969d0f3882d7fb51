from __future__ import annotations

import json
from pathlib import Path

import cv2
import pytest

from tests.samples.box_world import box_take
from vgbench_gen.cli.main import main


@pytest.fixture(autouse=True)
def boxes_instead_of_rooms(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vgbench_gen.samples.make._render_capture", box_take)
    monkeypatch.setattr("vgbench_gen.samples.make.WALK_FRAMES", 4)


def run(out: Path, *options: str) -> int:
    return main(["samples", "--out", str(out), "--workers", "1", "--frames", "4", *options])


def test_scenes_are_made_once_and_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(tmp_path, "--count", "ca1m=1", "--count", "wildrgbd=2") == 0
    lines = capsys.readouterr().out.splitlines()
    first, *lines = lines
    assert first == f"the first scene: {tmp_path}/samples-ca1m/first.png"
    sheet = cv2.imread(str(tmp_path / "samples-ca1m" / "first.png"))
    assert sheet is not None
    assert sheet.shape[0] == 600
    assert sheet[:300].std() > 10
    assert sheet[300:].std() > 10
    assert [line.split()[:3] for line in lines[:3]] == [
        ["dataset", "scenes", "new"],
        ["ca1m", "1", "1"],
        ["wildrgbd", "2", "2"],
    ]
    assert lines[3].startswith("3 scenes, ")
    assert str(tmp_path) in lines[3]
    assert run(tmp_path, "--count", "wildrgbd=2") == 0
    assert capsys.readouterr().out.splitlines()[1].split()[:3] == ["wildrgbd", "2", "0"]
    assert run(tmp_path, "--count", "wildrgbd=2", "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert [(one["dataset"], one["seconds"]) for one in told] == [("wildrgbd", 0.0)] * 2
    assert main(["scenes", str(tmp_path)]) == 0
    assert "bad" not in capsys.readouterr().out


def test_small_is_a_few_of_each(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(tmp_path, "--small") == 0
    assert {line.split()[0] for line in capsys.readouterr().out.splitlines()[2:6]} == {
        "ca1m",
        "scannet",
        "scannetpp",
        "wildrgbd",
    }
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "samples-ca1m",
        "samples-scannet",
        "samples-scannetpp",
        "samples-wildrgbd",
    ]


@pytest.mark.parametrize(
    ("options", "word"),
    [
        (["--count", "ca1m"], "DATASET=N"),
        (["--count", "ca1m=1", "--count", "ca1m=2"], "once"),
        (["--count", "kitti=1"], "kitti"),
        (["--count", "ca1m=0"], "no scenes"),
        (["--small", "--count", "ca1m=1"], "found both"),
        (["--seed", "-1"], "seed"),
    ],
)
def test_senseless_wishes_end_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], options: list[str], word: str
) -> None:
    assert run(tmp_path, *options) == 2
    told = capsys.readouterr().err
    assert word in told
    assert told.count("\n") == 1
    assert not list(tmp_path.iterdir())
