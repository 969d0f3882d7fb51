"""`Terminate`: ends a run with its answer."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from vgbench_gen.agent.tool import Tier, Tool, ToolError, ToolInput, ToolOutput, tools
from vgbench_gen.core.config import Config


class _Arguments(Config):
    answer: str = Field(min_length=1, max_length=20_000, description="the final answer")


@tools.register("Terminate")
class Terminate(Tool[_Arguments]):
    name = "Terminate"
    tier: ClassVar[Tier] = "utility"
    does = "Ends the task with the final answer."
    returns: ClassVar = {"answer": "the final answer"}
    example: ClassVar = {"answer": "<answer>(B)</answer>"}
    by_core = True

    def run(self, given: ToolInput[_Arguments]) -> ToolOutput:
        raise ToolError("Terminate is answered by the loop")
