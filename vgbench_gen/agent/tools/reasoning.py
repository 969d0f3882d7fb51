"""`Calculate`, arithmetic that is never run as Python; `SelfThinking` and `Terminate`, handled by the agent's loop."""

from __future__ import annotations

import ast
import math
from typing import Annotated, Any

from pydantic import Field
from simpleeval import DEFAULT_OPERATORS, InvalidExpression, SimpleEval  # type: ignore[import-untyped]

from vgbench_gen.agent.tool import OneImage, ToolError, Values, tool

MAX_CHARACTERS = 300
_BITS_MAX = 4096  # the most bits of an integer in a computation; floats stop at 1,024
_VALUES = (ast.Expr, ast.Constant, ast.Name, ast.UnaryOp, ast.BinOp, ast.Compare, ast.BoolOp, ast.IfExp, ast.Call)


def _power(base: float, exponent: float) -> Any:
    if isinstance(base, int) and isinstance(exponent, int) and base.bit_length() * exponent > _BITS_MAX:
        raise OverflowError("the power is too large")
    return base**exponent


def _round(number: float, ndigits: int | None = None) -> float:
    if ndigits is not None and abs(ndigits) > _BITS_MAX:
        raise OverflowError("too many places to round to")
    return round(number, ndigits)


_FUNCTIONS = {
    name: getattr(math, name)
    for name in ("sqrt", "sin", "cos", "tan", "asin", "acos", "atan", "atan2", "degrees", "radians", "hypot", "log")
} | {"abs": abs, "min": min, "max": max, "round": _round}


class _Arithmetic(SimpleEval):  # type: ignore[misc]
    """Every intermediate value is a number of bounded size; texts, lists and functions are refused."""

    nodes: dict[type, Any]

    def __init__(self) -> None:
        super().__init__(DEFAULT_OPERATORS | {ast.Pow: _power}, _FUNCTIONS, {"pi": math.pi, "e": math.e})
        self.nodes = {kind: self.nodes[kind] for kind in (*_VALUES, ast.keyword)}

    def _eval(self, node: ast.AST) -> Any:
        value = super()._eval(node)
        if isinstance(node, ast.keyword):  # (name, a number that was checked)
            return value
        if not isinstance(value, int | float) or (isinstance(value, int) and value.bit_length() > _BITS_MAX):
            raise InvalidExpression(f"expected numbers of at most {_BITS_MAX} bits, and nothing else")
        return value


@tool(
    "Calculate",
    tier="utility",
    timeout_s=5.0,
    returns={"result": "the number"},
    example={"expression": "sqrt(1.2**2 + 0.5**2)"},
)
def calculate(
    expression: Annotated[
        str,
        Field(max_length=MAX_CHARACTERS),
        "arithmetic with + - * / ** and sqrt, sin, cos, tan, asin, acos, atan, atan2, degrees, radians, "
        "hypot, log, abs, min, max, round, pi; angles in radians",
    ],
) -> Values:
    """Computes an arithmetic expression."""
    text = expression.replace("^", "**").strip()
    if ";" in text or "\n" in text:
        raise ToolError(f"found {text!r:.80}; expected one expression")
    try:
        result = _Arithmetic().eval(text)
        finite = math.isfinite(result)
    except (InvalidExpression, ArithmeticError, ValueError, TypeError, SyntaxError, RecursionError, MemoryError) as e:
        raise ToolError(f"cannot compute {text!r:.80}: {e!s:.120}") from None
    if isinstance(result, bool) or not finite:
        raise ToolError(f"{text!r:.80} gives {type(result).__name__}; expected a finite number")
    return {"result": result}


@tool(
    "SelfThinking",
    tier="utility",
    aliases=("SelfReasoning",),
    by_core=True,
    returns={"response": "what the model says"},
    example={"image": "image-0", "query": "Is the lamp in front of the window?"},
)
def self_thinking(
    image: OneImage, query: Annotated[str, Field(max_length=4000), "what to find out from the image"]
) -> Values:
    """Asks the model itself a question about one image, apart from everything else."""
    raise ToolError("SelfThinking is answered by the loop")


@tool(
    "Terminate",
    tier="utility",
    by_core=True,
    returns={"answer": "the final answer"},
    example={"answer": "<answer>(B)</answer>"},
)
def terminate(answer: Annotated[str, Field(min_length=1, max_length=20_000), "the final answer"]) -> Values:
    """Ends the task with the final answer."""
    raise ToolError("Terminate is answered by the loop")
