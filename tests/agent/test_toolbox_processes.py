"""Tools in processes: a crash, a hang and a flood cost their observation; what was kept is not called again."""

from __future__ import annotations

import asyncio
import importlib
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.contracts.outside import install_files
from vgbench_gen.agent.calls import ToolCall
from vgbench_gen.agent.images import ImageBook
from vgbench_gen.agent.results import ResultCache
from vgbench_gen.agent.tool import tools
from vgbench_gen.agent.toolbox import Toolbox
from vgbench_gen.agent.workers import Observation

FILES = {
    "pyproject.toml": '[project]\nname = "odd-tool"\nversion = "1"\n'
    '[project.entry-points."vgbench_gen.tools"]\nOdd = "odd_tool"\n',
    "odd_tool.py": '''
import os, time
from pathlib import Path
from vgbench_gen.agent.tool import ToolError, tool


@tool("Odd", tier="classical", timeout_s=2.0, returns={"said": "text"})
def behave(how: str, log: str):
    """Whatever it is told."""
    with Path(log).open("a") as file:
        file.write(how + "\\\\n")
    match how:
        case "exits":
            os._exit(7)
        case "hangs":
            time.sleep(600)
        case "floods":
            return {"said": "x" * (2 << 20)}
        case "breaks":
            raise KeyError("inside")
        case "refuses":
            raise ToolError("no such thing")
    return {"said": "well"}
'''.replace("\\\\n", "\\n"),
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


@pytest.mark.usefixtures("odd")
def test_work_ends_with_its_caller(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The only process is free again when a caller hangs up, long before the limit of its call."""
    pytest.importorskip("mcp", reason="needs the extra mcp")
    from tests.agent.servers import call_by_hand, run_server

    monkeypatch.setattr(type(tools["Odd"]), "timeout_s", 600.0)
    log = tmp_path / "log"
    with run_server([tools["Odd"]]) as url:
        host, _, port = url.removeprefix("http://").removesuffix("/mcp").partition(":")
        with socket.create_connection((host, int(port))) as gone:
            body, headers = call_by_hand("Odd", {"how": "hangs", "log": str(log)})
            lines = [f"{name}: {value}" for name, value in {**headers, "content-length": len(body)}.items()]
            gone.sendall("\r\n".join(["POST /mcp HTTP/1.1", "host: 127.0.0.1", *lines, "", ""]).encode() + body)
            while not log.exists():
                time.sleep(0.01)
        body, headers = call_by_hand("Odd", {"how": "well", "log": str(log)})
        found = httpx.post(url, content=body, headers=headers, timeout=120)
    assert found.status_code == 200, found.text
    assert found.json()["result"]["structuredContent"] == {"said": "well"}
