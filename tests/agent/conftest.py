"""Tools of no great weight run in the test's own process; one test of processes is enough."""

from __future__ import annotations

import pytest

from vgbench_gen.agent.tool import Tool, ToolInput, ToolOutput
from vgbench_gen.agent.tools.calculate import Calculate
from vgbench_gen.agent.tools.crop import CropImage


@pytest.fixture
def without_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    """`Calculate` and `Crop` are called at once."""

    async def run_here(self: Tool, given: ToolInput) -> ToolOutput:
        return self.run(given)

    for tool in (Calculate, CropImage):
        monkeypatch.setattr(tool, "runs", "here")
        monkeypatch.setattr(tool, "run_here", run_here)
