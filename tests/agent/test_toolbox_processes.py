"""Tools in processes: a crash, a hang and a flood cost their observation; what was kept is not called again."""

from __future__ import annotations

import asyncio
import importlib
import json
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.agent.servers import run_server
from tests.contracts.outside import install_files
from vgbench_gen.agent.calls import ToolCall
from vgbench_gen.agent.images import ImageBook
from vgbench_gen.agent.results import ResultCache
from vgbench_gen.agent.tool import tools
from vgbench_gen.agent.tool_server import ServedTools, ToolServer
from vgbench_gen.agent.toolbox import Observation, Toolbox

FILES = {
    "pyproject.toml": '[project]\nname = "odd-tool"\nversion = "1"\n'
    '[project.entry-points."vgbench_gen.tools"]\nOdd = "odd_tool"\n',
    "odd_tool.py": """
import os, time
from pathlib import Path
from vgbench_gen.agent.tool import Tool, ToolError, ToolOutput, tools
from vgbench_gen.core.config import Config


class Arguments(Config):
    how: str
    log: str


@tools.register("Odd")
class Odd(Tool):
    name, tier, does, Arguments, timeout_s = "Odd", "classical", "Whatever it is told.", Arguments, 2.0
    returns = {"said": "text"}

    def run(self, given):
        with Path(given.arguments.log).open("a") as file:
            file.write(given.arguments.how + "\\\\n")
        match given.arguments.how:
            case "exits":
                os._exit(7)
            case "hangs":
                time.sleep(600)
            case "floods":
                return ToolOutput({"said": "x" * (2 << 20)})
            case "breaks":
                raise KeyError("inside")
            case "refuses":
                raise ToolError("no such thing")
        return ToolOutput({"said": "well"})
""".replace("\\\\n", "\\n"),
}


@pytest.fixture(scope="module")
def odd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    folder = tmp_path_factory.mktemp("odd")
    install_files(dict(FILES), folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(folder)
        importlib.import_module("odd_tool")
        yield
    tools._entries.pop("Odd")


@pytest.mark.usefixtures("odd")
def test_what_goes_wrong_in_a_process_costs_its_observation(tmp_path: Path) -> None:
    log = tmp_path / "log"
    box = Toolbox([tools["Odd"]], 2, ResultCache(tmp_path / "kept"))

    async def call(how: str) -> Observation:
        read = box.read(ToolCall("odd", {"how": how, "log": str(log)}), ImageBook())
        assert not isinstance(read, Observation)
        return await box.call(*read, ImageBook())

    async def call_all(*hows: str) -> list[Observation]:
        return await asyncio.gather(*map(call, hows))

    try:
        asyncio.run(call("well"))  # starting the processes is not part of any limit
        found = asyncio.run(call_all("exits", "hangs", "floods", "breaks", "refuses", "well"))
        assert [one.failure for one in found] == ["crash", "timeout", *["tool_error"] * 3, ""]
        assert "7" in found[0].message
        assert "2 seconds" in found[1].message
        assert "larger than" in found[2].message
        assert "KeyError" in found[3].message
        assert found[4].message == "no such thing"
        before = log.read_text().split()
        assert asyncio.run(call_all("refuses", "well", "floods")) == [found[4], found[5], found[2]]
        assert log.read_text().split() == before
        asyncio.run(call("exits"))  # what may have been the machine's fault is tried again
        assert log.read_text().split().count("exits") == 2
    finally:
        box.close()


def make_mcp(served: ServedTools) -> Any:
    from vgbench_gen.agent.mcp_server import make_mcp_app, make_mcp_server

    return make_mcp_app(make_mcp_server(served))


@pytest.mark.parametrize(("path", "make_app"), [("/tools/Odd", ToolServer), ("/mcp", make_mcp)])
@pytest.mark.usefixtures("odd")
def test_work_ends_with_its_caller(path: str, make_app: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The only process is free again when a caller hangs up, long before the limit of its call."""
    if path == "/mcp":
        pytest.importorskip("mcp", reason="needs the extra mcp")
    monkeypatch.setattr(type(tools["Odd"]), "timeout_s", 600.0)
    log = tmp_path / "log"

    def ask(how: str) -> dict[str, Any]:
        asked = {"arguments": {"how": how, "log": str(log)}}
        call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "Odd", **asked}}
        return call if path == "/mcp" else asked

    headers = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
    with run_server([tools["Odd"]], make_app=make_app) as url:
        host, _, port = url.removeprefix("http://").partition(":")
        with socket.create_connection((host, int(port))) as gone:
            body = json.dumps(ask("hangs")).encode()
            lines = [f"{name}: {value}" for name, value in {**headers, "content-length": len(body)}.items()]
            gone.sendall("\r\n".join([f"POST {path} HTTP/1.1", "host: 127.0.0.1", *lines, "", ""]).encode() + body)
            while not log.exists():
                time.sleep(0.01)
        found = httpx.post(f"{url}{path}", json=ask("well"), headers=headers, timeout=120)
    assert found.status_code == 200, found.text
    assert '"said":"well"' in found.text.replace(" ", "").replace("\\", "")
