"""Tools in processes: a crash, a hang and a flood cost their observation; what was kept is not called again."""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.contracts.outside import install_files
from vgbench_gen.agent.calls import ToolCall
from vgbench_gen.agent.images import ImageBook
from vgbench_gen.agent.results import ResultCache
from vgbench_gen.agent.tool import tools
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


@pytest.fixture
def odd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    install_files(dict(FILES), tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
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
