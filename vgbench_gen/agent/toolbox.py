"""The tools of one agent: which, what a model reads of them, and what a call gives.

Calls run in processes of their own, so that a tool that crashes or hangs costs its observation and nothing else.
Results are kept by tool, version, arguments and digests of the images (`results.ResultCache`).
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from vgbench_gen.agent.calls import ToolCall
from vgbench_gen.agent.images import ImageBook
from vgbench_gen.agent.results import ResultCache
from vgbench_gen.agent.tool import TIERS, Mode, Tool, ToolOptions, list_image_names, tools
from vgbench_gen.agent.workers import SHOWN, Observation, Workers
from vgbench_gen.backends.model_files import check_packages
from vgbench_gen.core.config import Config, describe_problem
from vgbench_gen.core.errors import ConfigError
from vgbench_gen.core.rng import format_canonical_json, hash_stably

MAX_CALL_BYTES = 96 << 20  # of the images of a call, which a process holds twice while it takes them in


def choose_tools(
    tiers: Sequence[str],
    mode: Mode = "sane",
    setups: Mapping[str, ToolOptions] | None = None,
    remote: Sequence[Tool] = (),
) -> list[Tool]:
    """The tools of these tiers and those that need nothing, by their names.

    Where several tiers have a tool of one name, that of the tier named first is taken; no server's takes the place of
    one that needs nothing. A tool with options that must be set up is there only where it is.

    Args:
        tiers: of `TIERS`.
        mode: of the agent.
        setups: options of tools by the names under which they are registered.
        remote: tools of servers, for the tier of that name; of several with one name the first is taken.

    Raises:
        ConfigError: no such tier, or packages that it needs are not installed.
    """
    if unknown := sorted(set(tiers) - set(TIERS)):
        raise ConfigError(f"tools: found {', '.join(unknown)}; expected some of {', '.join(TIERS)}")
    order = list(dict.fromkeys([*tiers, "utility"]))
    plain = {tool.name.casefold() for tool in tools.values() if tool.tier == "utility"}
    remote = [tool for tool in remote[::-1] if tool.name.casefold() not in plain]
    found = [tool for tool in (*remote, *tools.values()) if tool.tier in order and mode in tool.modes]
    found = [tool for tool in found if not _must_be_set_up(tool) or tool.key in (setups or {})]
    chosen = {tool.name.casefold(): tool for tool in sorted(found, key=lambda tool: -order.index(tool.tier))}
    for tool in chosen.values():
        check_packages(f"tools={tool.tier}: {tool.name}", tool.packages, tool.extra)
    return sorted(chosen.values(), key=lambda tool: tool.name)


def _must_be_set_up(tool: Tool) -> bool:
    return any(option.is_required() for option in tool.Options.model_fields.values())


def describe_tool(tool: Tool) -> str:
    """What a model reads of a tool, generated from its fields; those without a description are not for models."""
    lines = [f"{tool.name}: {tool.does}", "  Arguments:"]
    told = {name: about for name, about in tool.Arguments.model_fields.items() if about.description}
    for name, about in told.items():
        default = "" if about.is_required() else f" (default {json.dumps(about.default)})"
        lines.append(f"    {name}: {about.description}{default}")
    if not told:
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
        setups: options of tools by the names under which they are registered; the defaults of the others.
    """

    def __init__(
        self,
        chosen: Sequence[Tool],
        workers: int = 1,
        kept: ResultCache | None = None,
        setups: Mapping[str, ToolOptions] | None = None,
    ) -> None:
        self.tools = {tool.name: tool for tool in chosen}
        # An alias never hides a name, nor the alias of a tool that needs nothing.
        self._called: dict[str, Tool] = {}
        for tool in sorted(chosen, key=lambda tool: tool.tier == "utility"):
            self._called |= {alias.casefold(): tool for alias in tool.aliases}
        self._called |= {tool.name.casefold(): tool for tool in chosen}
        self._kept = kept
        self._options = {tool.name: (setups or {}).get(tool.key) or tool.Options() for tool in chosen}
        self._workers = Workers(workers)
        self._settling = threading.Lock()
        self.calls = 0

    def describe(self) -> str:
        """All tools, for a prompt."""
        return "\n\n".join(describe_tool(tool) for tool in self.tools.values())

    def describe_state(self) -> Mapping[str, str]:
        """Key of each tool -> its version, and all else that its results hang on."""
        found = {}
        for tool in self.tools.values():
            state = hash_stably(tool.describe_state(self._options[tool.name]), size=4)
            found[tool.key] = f"{tool.version}/{state}"
        return found

    def read(self, call: ToolCall, book: ImageBook) -> tuple[Tool, Config] | Observation:
        """The tool with its checked arguments, or what is wrong with the call."""
        tool = self._called.get(call.name.casefold())
        given = dict(call.arguments)
        if tool is None:
            message = f"there is no tool {call.name[:60]!r}; expected one of {', '.join(self.tools)}"
            return Observation(call.name[:SHOWN], given, failure="unknown_tool", message=message)
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

        Raises:
            ConfigError: what the tool was set up with is not there, or cannot be loaded.
        """
        images = [book.find(name) for name in list_image_names(arguments)]
        told = arguments.model_dump(mode="json")
        if tool.runs == "device":  # files are fetched and read
            options, state = await asyncio.to_thread(self._settle, tool, arguments)
        else:
            options, state = self._settle(tool, arguments)
        known = dict(evidence or {}) if tool.tier == "oracle" else {}
        hangs_on = [tool.key, tool.version, state, told, known]
        key = hash_stably(format_canonical_json([*hangs_on, [image.digest for image in images]]), size=16)
        if self._kept is not None and (kept := self._kept.get(key)) is not None:
            return Observation(tool.name, told, *kept)
        self.calls += 1
        data = [image.data for image in images]
        if (size := sum(map(len, data))) > MAX_CALL_BYTES:
            message = f"found images of {size} bytes; expected at most {MAX_CALL_BYTES} in a call"
            return Observation(tool.name, told, failure="tool_error", message=message)
        found = await self._workers.call(tool, options, told, data, known)
        if self._kept is not None and found.failure in ("", "tool_error") and not found.is_passing:
            self._kept.put(key, found.values, found.images, found.failure, found.message)
        return found

    def _settle(self, tool: Tool, arguments: Config) -> tuple[ToolOptions, str]:
        """(options as a call uses them, what results hang on)."""
        with self._settling:  # so that two calls do not fetch the same weights
            options = self._options[tool.name].settle(tool.name, arguments)
            return options, tool.describe_state(options)

    def close(self) -> None:
        """End the processes."""
        self._workers.close()


def _name_argument(tool: Tool, name: str) -> str:
    known = {"images": "image", **tool.argument_aliases}  # published demonstrations say `images`
    return name if name in tool.Arguments.model_fields else known.get(name, name)


def _say_problem(tool: Tool, error: Exception) -> str:
    if isinstance(error, ValidationError):
        said = "; ".join(describe_problem(tool.Arguments, each) for each in error.errors(include_url=False)[:4])
    else:
        said = str(error.args[0]) if error.args else type(error).__name__
    return f"{tool.name}: {said}"[:SHOWN]
