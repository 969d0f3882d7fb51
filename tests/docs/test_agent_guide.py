"""What docs/agent.md tells to do works: the scripted core, the tool of `examples/tool` in a process of its own."""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
from pathlib import Path

from tests.agent.cores import IMAGE, without_processes
from tests.contracts.outside import install
from vgbench_gen.backends.base import ImagePart, Message, Settings, TextPart
from vgbench_gen.backends.spec import open_backend
from vgbench_gen.cli.main import main

__all__ = ["without_processes"]
ROOT = Path(__file__).resolve().parents[2]
BLOCKS = dict(
    re.findall(
        r"^```\w+ title=\"([^\"]+)\"\n(.*?)^```$", (ROOT / "docs/agent.md").read_text("utf-8"), re.MULTILINE | re.DOTALL
    )
)


def test_the_scripted_core_of_the_guide_answers(tmp_path: Path, without_processes: None, capsys) -> None:  # type: ignore[no-untyped-def]
    (tmp_path / "core.jsonl").write_text(BLOCKS["core.jsonl"])
    (tmp_path / "photo.jpg").write_bytes(IMAGE)
    asked = ["agent", "ask", "--image", str(tmp_path / "photo.jpg"), "What? (A) a lamp (B) a chair"]
    asked += ["--model", f"scripted:{tmp_path / 'core.jsonl'}", "--out", str(tmp_path / "page.html")]
    assert main(asked) == 0
    assert "answer   (A)" in capsys.readouterr().out
    assert (tmp_path / "page.html").read_text().count('class="step tool') == 1


def test_the_scripted_core_of_the_guide_answers_every_question(tmp_path: Path, without_processes: None) -> None:
    """`vgbench eval` asks one core many questions: no line of the script may be used up by the first."""
    (tmp_path / "core.jsonl").write_text(BLOCKS["core.jsonl"])

    async def ask_thrice() -> list[str]:
        async with open_backend(f"agent:react+scripted:{tmp_path / 'core.jsonl'}") as agent:
            message = Message("user", (ImagePart(IMAGE), TextPart("What? (A) a lamp (B) a chair")))
            return [(await agent.ask((message,), Settings())).text for _ in range(3)]

    assert asyncio.run(ask_thrice()) == ["(A)"] * 3


def test_the_tool_of_the_examples_is_one_file(tmp_path: Path) -> None:
    install("tool", tmp_path)
    (tmp_path / "photo.jpg").write_bytes(IMAGE)
    code = (
        "from vgbench_gen.cli.main import main\n"
        "print(main(['agent', 'tools', 'MeasureBrightness']))\n"
        f"call = ['agent', 'call', 'MeasureBrightness', '--image', {str(tmp_path / 'photo.jpg')!r}, '--arguments']\n"
        "print(main([*call, '{\"bbox\": [0, 0, 9, 9]}']))\n"
        "print(main([*call, '{\"bbox\": [900, 0, 909, 9]}']))\n"
    )
    env = os.environ | {"PYTHONPATH": f"{ROOT}{os.pathsep}{tmp_path}"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env, timeout=120)
    lines = done.stdout.splitlines()
    assert done.returncode == 0, done.stderr
    assert "    mean: mean grey value, 0 black to 255 white" in lines
    assert json.loads(lines[-4]) == {"mean": 200.0, "spread": 0.0}
    assert "outside the image" in json.loads(lines[-2])["error"]
    assert [lines[k] for k in (-3, -1)] == ["0", "1"]
