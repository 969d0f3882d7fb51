"""The tools of one agent: which, what a model reads of them, and what a call gives.

Calls run in processes of their own, so that a tool that crashes or hangs costs its observation and nothing else.
Results are kept by tool, version, arguments and digests of the images (`results.ResultCache`).
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from concurrent.futures import TimeoutError as TookTooLong
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from vgbench_gen.agent.calls import ToolCall
from vgbench_gen.agent.images import ImageBook
from vgbench_gen.agent.results import ResultCache
from vgbench_gen.agent.tool import (
    TIERS,
    Mode,
    PassingToolError,
    Tool,
    ToolError,
    ToolInput,
    find_key,
    list_image_names,
    tools,
)
from vgbench_gen.core.config import Config, describe_problem
from vgbench_gen.core.errors import ConfigError, VGBenchError
from vgbench_gen.core.rng import format_canonical_json, hash_stably

if TYPE_CHECKING:
    from vgbench_gen.tasks.solving import Image

MAX_OUTPUT_BYTES = 1 << 20  # of the values of one call
_SHOWN = 400  # characters of a name or problem that is told back


@dataclass(frozen=True, slots=True)
class Observation:
    """What a call gave."""

    name: str
    """The tool, by its own name; as the model wrote it where there is none such."""
    arguments: Mapping[str, Any]
    """As the model wrote them, aliases put right."""
    values: Mapping[str, Any] = field(default_factory=dict)
    """What the tool says."""
    images: tuple[bytes, ...] = ()
    """What it made."""
    failure: str = ""
    """unknown_tool, wrong_arguments, tool_error, timeout or crash; "" where it succeeded."""
    message: str = ""
    """What a model is told of the failure."""
    is_passing: bool = False
    """Whether the same call may give something else another time; it is not kept then."""


def choose_tools(tiers: Sequence[str], mode: Mode = "sane") -> list[Tool]:
    """The tools of these tiers and those that need nothing, by their names.

    Raises:
        ConfigError: no such tier.
    """
    if unknown := sorted(set(tiers) - set(TIERS)):
        raise ConfigError(f"tools: found {', '.join(unknown)}; expected some of {', '.join(TIERS)}")
    chosen = [tool for tool in tools.values() if tool.tier in {"utility", *tiers} and mode in tool.modes]
    return sorted(chosen, key=lambda tool: tool.name)


def describe_tool(tool: Tool) -> str:
    """What a model reads of a tool, generated from its fields."""
    lines = [f"{tool.name}: {tool.does}", "  Arguments:"]
    for name, about in tool.Arguments.model_fields.items():
        default = "" if about.is_required() else f" (default {json.dumps(about.default)})"
        lines.append(f"    {name}: {about.description}{default}")
    if not tool.Arguments.model_fields:
        lines.append("    none")
    lines += ["  Returns:", *(f"    {name}: {what}" for name, what in tool.returns.items())]
    if tool.example:
        lines.append(f"  Example: {json.dumps({'name': tool.name, 'arguments': dict(tool.example)})}")
    return "\n".join(lines)


class Toolbox:
    """Tools that are called by the names models write.

    Args:
        chosen: the tools.
        workers: how many calls run at once.
        kept: results of earlier calls; None keeps none.
        setups: options of tools by their names; the defaults of the others.
    """

    def __init__(
        self,
        chosen: Sequence[Tool],
        workers: int = 1,
        kept: ResultCache | None = None,
        setups: Mapping[str, Config] | None = None,
    ) -> None:
        self.tools = {tool.name: tool for tool in chosen}
        self._called = {alias.casefold(): tool for tool in chosen for alias in (tool.name, *tool.aliases)}
        self._workers, self._kept, self._pool = workers, kept, None
        self._options = {tool.name: (setups or {}).get(tool.name, tool.Options()) for tool in chosen}
        self.calls = 0

    def describe(self) -> str:
        """All tools, for a prompt."""
        return "\n\n".join(describe_tool(tool) for tool in self.tools.values())

    def read(self, call: ToolCall, book: ImageBook) -> tuple[Tool, Config] | Observation:
        """The tool with its checked arguments, or what is wrong with the call."""
        tool = self._called.get(call.name.casefold())
        given = dict(call.arguments)
        if tool is None:
            message = f"there is no tool {call.name[:60]!r}; expected one of {', '.join(self.tools)}"
            return Observation(call.name[:_SHOWN], given, failure="unknown_tool", message=message)
        given = {_name_argument(tool, name): value for name, value in given.items()}
        try:
            arguments = tool.Arguments.model_validate_json(json.dumps(given, allow_nan=False))
            for name in list_image_names(arguments):
                book.find(name)
        except (ValidationError, ValueError, TypeError, RecursionError, KeyError) as error:
            return Observation(tool.name, given, failure="wrong_arguments", message=_say_problem(tool, error))
        return tool, arguments

    async def call(
        self, tool: Tool, arguments: Config, book: ImageBook, evidence: Mapping[str, Any] | None = None
    ) -> Observation:
        """What a checked call gives.

        Args:
            tool: of this toolbox.
            arguments: as `read` gives them.
            book: the images of the run.
            evidence: of the row, for oracle tools.
        """
        images = [book.find(name) for name in list_image_names(arguments)]
        told, options = arguments.model_dump(mode="json"), self._options[tool.name]
        known = dict(evidence or {}) if tool.tier == "oracle" else {}
        hangs_on = [find_key(tool), tool.version, tool.describe_state(options), told, known]
        key = hash_stably(format_canonical_json([*hangs_on, [image.digest for image in images]]), size=16)
        if self._kept is not None and (kept := self._kept.get(key)) is not None:
            return Observation(tool.name, told, *kept)
        self.calls += 1
        found = await self._run(tool, told, options, known, [image.data for image in images])
        if self._kept is not None and found.failure in ("", "tool_error") and not found.is_passing:
            self._kept.put(key, found.values, found.images, found.failure, found.message)
        return found

    async def _run(
        self,
        tool: Tool,
        told: Mapping[str, Any],
        options: Config,
        evidence: Mapping[str, Any],
        images: Sequence[bytes],
    ) -> Observation:
        if tool.runs == "here":
            given = ToolInput(tool.Arguments.model_validate_json(json.dumps(told)), _open_images(images), options)
            return await _run_here(tool, told, given)
        from pebble import ProcessExpired

        asked = (find_key(tool), json.dumps(told), options.model_dump_json(), dict(evidence), tuple(images))
        try:
            values, made, problem = await asyncio.wrap_future(
                self._open().schedule(run_tool, args=asked, timeout=tool.timeout_s)
            )
        except TookTooLong:
            message = f"{tool.name} gave nothing in {tool.timeout_s:g} seconds"
            return Observation(tool.name, told, failure="timeout", message=message)
        except ProcessExpired as error:
            message = f"{tool.name} crashed (status {error.exitcode})"
            return Observation(tool.name, told, failure="crash", message=message)
        if problem:
            return Observation(tool.name, told, failure="tool_error", message=problem)
        return Observation(tool.name, told, values, made)

    def _open(self) -> Any:
        if self._pool is None:
            import multiprocessing

            from pebble import ProcessPool

            # Forked from a clean process: threads of the event loop hold locks.
            self._pool = ProcessPool(self._workers, context=multiprocessing.get_context("forkserver"))
        return self._pool

    def close(self) -> None:
        """End the processes."""
        if self._pool is not None:
            self._pool.stop()
            self._pool.join()
            self._pool = None


def run_tool(
    name: str, arguments: str, options: str, evidence: Mapping[str, Any], images: Sequence[bytes]
) -> tuple[dict[str, Any], tuple[bytes, ...], str]:
    """(values, images, problem) of one call; runs in a worker."""
    tool = tools[name]
    given = ToolInput(
        tool.Arguments.model_validate_json(arguments),
        _open_images(images),
        tool.Options.model_validate_json(options),
        evidence,
    )
    try:
        made = tool.run(given)
        return _check_values(made.values), made.images, ""
    except VGBenchError as error:
        return {}, (), str(error)[:_SHOWN]
    except Exception as error:
        # A tool of somebody else may raise anything, and it costs no more than its observation.
        return {}, (), f"{name} failed ({type(error).__name__}: {error})"[:_SHOWN]


async def _run_here(tool: Tool, told: Mapping[str, Any], given: ToolInput) -> Observation:
    try:
        async with asyncio.timeout(tool.timeout_s):
            made = await tool.run_here(given)
        return Observation(tool.name, told, _check_values(made.values), made.images)
    except TimeoutError as error:
        message = str(error) or f"{tool.name} gave nothing in {tool.timeout_s:g} seconds"
        return Observation(tool.name, told, failure="timeout", message=message[:_SHOWN])
    except VGBenchError as error:
        passing = isinstance(error, PassingToolError)
        return Observation(tool.name, told, failure="tool_error", message=str(error)[:_SHOWN], is_passing=passing)
    except Exception as error:
        message = f"{tool.name} failed ({type(error).__name__}: {error})"[:_SHOWN]
        return Observation(tool.name, told, failure="tool_error", message=message, is_passing=True)


def _open_images(images: Sequence[bytes]) -> list[Image]:
    from vgbench_gen.tasks.solving import Image

    return [Image(data, f"image {k} of the call") for k, data in enumerate(images, 1)]


def _check_values(values: Mapping[str, Any]) -> dict[str, Any]:
    """The values as they come out of JSON.

    Raises:
        ToolError: they are too large.
        ValueError: they are no JSON.
    """
    text = json.dumps(values, allow_nan=False)
    if len(text) > MAX_OUTPUT_BYTES:
        raise ToolError(f"the result is larger than {MAX_OUTPUT_BYTES} bytes")
    checked: dict[str, Any] = json.loads(text)
    return checked


def _name_argument(tool: Tool, name: str) -> str:
    return name if name in tool.Arguments.model_fields else tool.argument_aliases.get(name, name)


def _say_problem(tool: Tool, error: Exception) -> str:
    if isinstance(error, ValidationError):
        said = "; ".join(describe_problem(tool.Arguments, each) for each in error.errors(include_url=False)[:4])
    else:
        said = str(error.args[0]) if error.args else type(error).__name__
    return f"{tool.name}: {said}"[:_SHOWN]
