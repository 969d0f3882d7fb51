"""`Calculate`: arithmetic, by a parser that knows numbers, operators and a few functions."""

from __future__ import annotations

import math
from typing import ClassVar

from pydantic import Field

from vgbench_gen.agent.tool import Tier, Tool, ToolError, ToolInput, ToolOutput, tools
from vgbench_gen.core.config import Config

MAX_CHARACTERS = 300
_FUNCTIONS = {
    name: getattr(math, name)
    for name in ("sqrt", "sin", "cos", "tan", "asin", "acos", "atan", "atan2", "degrees", "radians", "hypot", "log")
} | {"abs": abs, "min": min, "max": max, "round": round}


class _Arguments(Config):
    expression: str = Field(
        max_length=MAX_CHARACTERS,
        description="arithmetic with + - * / ** and sqrt, sin, cos, tan, asin, acos, atan, atan2, degrees, radians, "
        "hypot, log, abs, min, max, round, pi; angles in radians",
    )


@tools.register("Calculate")
class Calculate(Tool[_Arguments]):
    name = "Calculate"
    tier: ClassVar[Tier] = "utility"
    does = "Computes an arithmetic expression."
    Arguments = _Arguments
    returns: ClassVar = {"result": "the number"}
    example: ClassVar = {"expression": "sqrt(1.2**2 + 0.5**2)"}
    timeout_s = 5.0

    def run(self, given: ToolInput[_Arguments]) -> ToolOutput:
        """See `Tool.run`. Refuses what is no finite real number, and expressions that would grow without bound."""
        from simpleeval import InvalidExpression, SimpleEval  # type: ignore[import-untyped]

        text = given.arguments.expression.replace("^", "**").strip()
        if ";" in text or "\n" in text:
            raise ToolError(f"found {text!r:.80}; expected one expression")
        try:
            result = SimpleEval(functions=_FUNCTIONS, names={"pi": math.pi, "e": math.e}).eval(text)
        except (
            InvalidExpression,
            ArithmeticError,
            ValueError,
            TypeError,
            SyntaxError,
            RecursionError,
            MemoryError,
        ) as e:
            raise ToolError(f"cannot compute {text!r:.80}: {e!s:.120}") from None
        if isinstance(result, bool) or not isinstance(result, int | float) or not _is_finite(result):
            raise ToolError(f"{text!r:.80} gives {type(result).__name__}; expected a finite number")
        return ToolOutput({"result": result})


def _is_finite(number: float) -> bool:
    try:
        return math.isfinite(number)
    except OverflowError:  # an integer beyond every float
        return False
