"""`vgbench agent serve` as a program."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys

import httpx
import pytest

pytest.importorskip("mcp", reason="needs the extra mcp")

from tests.agent.servers import call_by_hand
from vgbench_gen.cli.main import main

TOKEN = "never-to-be-seen-token"


def test_it_says_where_it_is_and_ends_orderly() -> None:
    command = [sys.executable, "-m", "vgbench_gen.cli", "agent", "serve", "--port", "0", "--token-env", "LAB_TOKEN"]
    with subprocess.Popen(
        [*command, "--workers", "1"],
        env=os.environ | {"LAB_TOKEN": TOKEN},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as program:
        assert program.stdout is not None
        said = ""
        while "Stop with" not in said and (line := program.stdout.readline()):
            said += line
        url = re.findall(r'url = "(http://127\.0\.0\.1:\d+/mcp)"', said)[0]
        assert 'token_env = "LAB_TOKEN"' in said
        sent, headers = call_by_hand("Calculate", {"expression": "6 * 7"})
        found = httpx.post(url, content=sent, headers=headers | {"authorization": f"Bearer {TOKEN}"})
        assert found.json()["result"]["structuredContent"] == {"result": 42}
        program.send_signal(signal.SIGTERM)
        said += program.stdout.read()
        assert program.wait(10) == 0
    assert TOKEN not in said
    assert "Traceback" not in said


def test_what_cannot_be_served_is_said_in_a_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAB_TOKEN", "short")
    monkeypatch.delenv("NO_TOKEN", raising=False)
    for arguments, said in (
        (["--host", "0.0.0.0"], "--token-env"),
        (["--host", "0.0.0.0", "--token-env", "NO_TOKEN"], "NO_TOKEN"),
        (["--token-env", "LAB_TOKEN"], "16"),
        (["--tools", "classical,oracle"], "oracle"),
        (["--tools", "remote"], "remote"),
        (["--images", "."], "--stdio"),
        (["--stdio", "--images", "nowhere"], "nowhere"),
    ):
        assert main(["agent", "serve", *arguments]) == 2
        complaint = capsys.readouterr().err
        assert said in complaint
        assert "short" not in complaint.replace(said, "")
