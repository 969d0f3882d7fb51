"""`vgbench agent`: one question, the list of tools, and single calls."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.agent.cores import END, IMAGE, step, without_processes
from vgbench_gen.cli.main import main

__all__ = ["without_processes"]


@pytest.fixture
def image(tmp_path: Path) -> str:
    (tmp_path / "a.jpg").write_bytes(IMAGE)
    return str(tmp_path / "a.jpg")


@pytest.fixture
def core(tmp_path: Path) -> str:
    crop = step("Crop", image="image-0", bbox=[0, 0, 0.5, 1])
    lines = [{"match": 'rect_px": [', "reply": END}, {"match": "", "reply": crop}]
    (tmp_path / "core.jsonl").write_text("\n".join(map(json.dumps, lines)))
    return f"scripted:{tmp_path / 'core.jsonl'}"


@pytest.mark.usefixtures("without_processes")
def test_a_question_is_answered_with_its_trace(
    image: str, core: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "page.html"
    asked = ["agent", "ask", "Which \x1b[2J?", "--image", image, "--model", core, "--tools", "none"]
    assert main([*asked, "--out", str(page)]) == 0
    told = capsys.readouterr().out
    assert "answer   (B)" in told
    assert told.index("react") < told.index("Crop\n") < told.index("answer")
    assert "\x1b" not in told
    assert "image-1" in page.read_text()
    assert main([*asked, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["answer"] == "(B)"


def test_what_cannot_be_asked_is_said_in_a_line(
    image: str, core: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    for more, expected in (
        (["--model", "openai:gpt-4o"], "no key"),
        (["--model", core, "--image", "/none.jpg"], "/none.jpg"),
        (["--model", core, "--kind", "tree"], "react, plan-execute"),
        (["--model", core, "--tools", "magic"], "magic"),
        (["--model", core, "--mode", "odd"], "mode"),
        (["--model", core, "--out", "/"], "folder"),
    ):
        assert main(["agent", "ask", "Which?", *more]) == 2
        line = capsys.readouterr().err
        assert expected in line
        assert line.count("\n") == 1


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("pipe", "no regular file"),
        ("folder", "a folder"),
        ("nothing", "found no file"),
        ("link to nothing", "found no file"),
        ("empty", "an empty file"),
        ("pointer", "a Git LFS pointer"),
        ("page", "a web page"),
        ("text", "no image"),
    ],
)
@pytest.mark.usefixtures("without_processes")
def test_what_is_no_image_is_said_in_a_line_with_its_path(
    kind: str, said: str, core: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "p.png"
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    elif kind == "link to nothing":
        path.symlink_to("nowhere")
    elif kind != "nothing":
        pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:aa\nsize 12\n"
        path.write_text({"pointer": pointer, "page": "<!DOCTYPE html><html>", "text": "just words"}.get(kind, ""))
    for asked in (["call", "Crop", "--arguments", '{"bbox": [0, 0, 1, 1]}'], ["ask", "Which?", "--model", core]):
        assert main(["agent", *asked, "--image", str(path)]) == 2
        line = capsys.readouterr().err
        assert said in line
        assert str(path) in line
        assert line.count("\n") == 1


def test_setups_and_options_that_cannot_be_read_are_said_in_a_line(
    core: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    os.mkfifo(tmp_path / "pipe.toml")
    (tmp_path / "folder.toml").mkdir()
    (tmp_path / "url.toml").write_text('[remote.lab]\nurl = "http://127.0.0.1:1/\\nX: y"\n')
    for options, said in (
        ("setup={}/pipe.toml", "no regular file"),
        ("setup={}/folder.toml", "a folder"),
        ("setup={}/url.toml", "[remote.lab] url"),
        ("turns=" + "9" * 5000, "expected a valid integer"),
        ("turns=999999999", "less than or equal to 100"),
    ):
        spec = f"agent:react+{core}?tools=remote&{options.format(tmp_path)}"
        assert main(["agent", "ask", "Which?", "--model", spec]) == 2
        line = capsys.readouterr().err
        assert said in line
        assert line.count("\n") == 1
        assert len(line) < 800


def test_tools_are_listed_by_tier_and_described(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["agent", "tools"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines.index("utility") < lines.index("classical") < lines.index("oracle")
    assert any(line.startswith("  MatchImagesSIFT ") for line in lines)
    assert main(["agent", "tools", "selfreasoning"]) == 0
    assert "SelfThinking: Asks the model itself" in capsys.readouterr().out
    assert main(["agent", "tools", "--json"]) == 0
    assert {"Crop", "Calculate"} <= {row["name"] for row in json.loads(capsys.readouterr().out)}
    assert main(["agent", "tools", "Fly"]) == 2


@pytest.mark.usefixtures("without_processes")
def test_one_tool_is_run(image: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["agent", "call", "calculate", "--arguments", '{"expression": "6*7"}']) == 0
    assert json.loads(capsys.readouterr().out) == {"result": 42}
    crop = ["agent", "call", "Crop", "--image", image, "--arguments"]
    assert main([*crop, '{"bbox": [0, 0, 0.5, 1]}', "--out", str(tmp_path / "made")]) == 0
    assert json.loads(capsys.readouterr().out)["images"] == [str(tmp_path / "made" / "image-1.jpg")]
    assert (tmp_path / "made" / "image-1.jpg").is_file()
    for arguments in ('{"bbox": [0, 0, 0, 0]}', '{"image": "/etc/passwd", "bbox": [0, 0, 1, 1]}'):
        assert main([*crop, arguments]) == 1
        assert "expected" in json.loads(capsys.readouterr().out)["error"]
    for wrong in (["Crop", "--arguments", "{"], ["Crop", "--arguments", "[]"], ["Fly"], ["Terminate"]):
        assert main(["agent", "call", *wrong]) == 2
        assert capsys.readouterr().err.count("\n") == 1
