"""`SelfThinking`: a question to the core model itself about one image."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from vgbench_gen.agent.tool import ImageName, Tier, Tool, ToolError, ToolInput, ToolOutput, tools
from vgbench_gen.core.config import Config


class _Arguments(Config):
    image: ImageName = Field(description="name of the image")
    query: str = Field(max_length=4000, description="what to find out from the image")


@tools.register("SelfThinking")
class SelfThinking(Tool[_Arguments]):
    name = "SelfThinking"
    aliases = ("SelfReasoning",)
    tier: ClassVar[Tier] = "utility"
    does = "Asks the model itself a question about one image, apart from everything else."
    returns: ClassVar = {"response": "what the model says"}
    example: ClassVar = {"image": "image-0", "query": "Is the lamp in front of the window?"}
    by_core = True

    def run(self, given: ToolInput[_Arguments]) -> ToolOutput:
        raise ToolError("SelfThinking is answered by the loop")
