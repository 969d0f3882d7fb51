"""Chooses the tools of an agent, describes them to models, and runs calls.

Calls run in separate processes, so a tool that crashes or hangs loses its own observation only. Results are kept by
tool, version, arguments and digests of the images (`results.ResultCache`).
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

MAX_CALL_BYTES = 96 << 20  # total size of the images of a call; a process holds them twice while it receives them


def choose_tools(
    tiers: Sequence[str],
    mode: Mode = "sane",
    setups: Mapping[str, ToolOptions] | None = None,
    remote: Sequence[Tool] = (),
) -> list[Tool]:
    """The tools of these tiers and of the tier `utility`, sorted by name.

    If several tiers have a tool of one name, the tier named first wins; a server never replaces a utility tool. A tool
    with required options is included only if it is set up.

    Args:
        tiers: some of `TIERS`.
        mode: of the agent.
        setups: options of tools by the tools' registered keys.
        remote: tools of servers; if several have one name, the first wins.

    Raises:
        ConfigError: an unknown tier, or a tool's packages are not installed.
    """
    if unknown := sorted(set(tiers) - set(TIERS)):
        raise ConfigError(f"tools: found {', '.join(unknown)}; expected some of {', '.join(TIERS)}")
    order = list(dict.fromkeys([*tiers, "utility"]))
    utilities = {tool.name.casefold() for tool in tools.values() if tool.tier == "utility"}
    remote = [tool for tool in remote[::-1] if tool.name.casefold() not in utilities]
    usable = [tool for tool in (*remote, *tools.values()) if tool.tier in order and mode in tool.modes]
    required = {tool.key for tool in usable if any(field.is_required() for field in tool.Options.model_fields.values())}
    usable = [tool for tool in usable if tool.key in (setups or {}) or tool.key not in required]
    chosen = {tool.name.casefold(): tool for tool in sorted(usable, key=lambda tool: -order.index(tool.tier))}
    for tool in chosen.values():
        check_packages(f"tools={tool.tier}: {tool.name}", tool.packages, tool.extra)
    return sorted(chosen.values(), key=lambda tool: tool.name)


def describe_tool(tool: Tool) -> str:
    """The description of a tool for models; arguments without a description are left out."""
    arguments = []
    for name, field in tool.Arguments.model_fields.items():
        if field.description:
            default = "" if field.is_required() else f" (default {json.dumps(field.default)})"
            arguments.append(f"    {name}: {field.description}{default}")
    lines = [f"{tool.name}: {tool.does}", "  Arguments:", *(arguments or ["    none"])]
    lines += ["  Returns:", *(f"    {name}: {meaning}" for name, meaning in tool.returns.items())]
    if tool.example:
        lines.append(f"  Example: {json.dumps({'name': tool.name, 'arguments': dict(tool.example)})}")
    return "\n".join(lines)


class Toolbox:
    """Tools that are called by the names models write.

    Args:
        chosen: the tools.
        workers: the number of calls at once.
        cache: results of earlier calls; None keeps none.
        setups: options of tools by the tools' registered keys; other tools use their defaults.
    """

    def __init__(
        self,
        chosen: Sequence[Tool],
        workers: int = 1,
        cache: ResultCache | None = None,
        setups: Mapping[str, ToolOptions] | None = None,
    ) -> None:
        self.tools = {tool.name: tool for tool in chosen}
        # An alias never hides a name, nor the alias of a utility tool.
        self._by_name: dict[str, Tool] = {}
        for tool in sorted(chosen, key=lambda tool: tool.tier == "utility"):
            self._by_name |= {alias.casefold(): tool for alias in tool.aliases}
        self._by_name |= {tool.name.casefold(): tool for tool in chosen}
        self._cache = cache
        self._options = {tool.name: (setups or {}).get(tool.key) or tool.Options() for tool in chosen}
        self._workers = Workers(workers)
        self._settling = threading.Lock()
        self.calls = 0

    def describe(self) -> str:
        """The descriptions of all tools, for a prompt."""
        return "\n\n".join(describe_tool(tool) for tool in self.tools.values())

    def describe_state(self) -> Mapping[str, str]:
        """Key of each tool -> its version, and a digest of everything else that its results depend on."""
        return {
            tool.key: f"{tool.version}/{hash_stably(tool.describe_state(self._options[tool.name]), size=4)}"
            for tool in self.tools.values()
        }

    def read(self, call: ToolCall, book: ImageBook) -> tuple[Tool, Config] | Observation:
        """The tool with its checked arguments, or an observation that says what is wrong with the call."""
        tool = self._by_name.get(call.name.casefold())
        values = dict(call.arguments)
        if tool is None:
            message = f"there is no tool {call.name[:60]!r}; expected one of {', '.join(self.tools)}"
            return Observation(call.name[:SHOWN], values, failure="unknown_tool", message=message)
        values = {_rename_argument(tool, name): value for name, value in values.items()}
        try:
            arguments = tool.Arguments.model_validate_json(json.dumps(values, allow_nan=False))
            for name in list_image_names(arguments):
                book.find(name)
        except (ValidationError, ValueError, TypeError, RecursionError, KeyError) as error:
            return Observation(tool.name, values, failure="wrong_arguments", message=_explain_error(tool, error))
        return tool, arguments

    async def call(
        self, tool: Tool, arguments: Config, book: ImageBook, evidence: Mapping[str, Any] | None = None
    ) -> Observation:
        """The observation of a checked call, kept or new.

        Args:
            tool: of this toolbox.
            arguments: from `read`.
            book: the images of the run.
            evidence: of the row, for oracle tools.

        Raises:
            ConfigError: a model of the tool's options cannot be found or loaded.
        """
        images = [book.find(name) for name in list_image_names(arguments)]
        values = arguments.model_dump(mode="json")
        if tool.runs == "device":  # this fetches and reads files
            options, state = await asyncio.to_thread(self._settle, tool, arguments)
        else:
            options, state = self._settle(tool, arguments)
        evidence = dict(evidence or {}) if tool.tier == "oracle" else {}
        dependencies = [tool.key, tool.version, state, values, evidence, [image.digest for image in images]]
        key = hash_stably(format_canonical_json(dependencies), size=16)
        if self._cache is not None and (observation := self._cache.get(key)) is not None:
            return observation
        self.calls += 1
        data = [image.data for image in images]
        if (size := sum(map(len, data))) > MAX_CALL_BYTES:
            message = f"found images of {size} bytes; expected at most {MAX_CALL_BYTES} in a call"
            return Observation(tool.name, values, failure="tool_error", message=message)
        observation = await self._workers.call(tool, options, values, data, evidence)
        if self._cache is not None and observation.failure in ("", "tool_error") and not observation.is_passing:
            self._cache.put(key, observation)
        return observation

    def _settle(self, tool: Tool, arguments: Config) -> tuple[ToolOptions, str]:
        """(options for one call, what results depend on)."""
        with self._settling:  # two calls at once must not fetch the same weights twice
            options = self._options[tool.name].settle(tool.name, arguments)
            return options, tool.describe_state(options)

    def close(self) -> None:
        """End the processes."""
        self._workers.close()


def _rename_argument(tool: Tool, name: str) -> str:
    aliases = {"images": "image", **tool.argument_aliases}  # published examples write `images`
    return name if name in tool.Arguments.model_fields else aliases.get(name, name)


def _explain_error(tool: Tool, error: Exception) -> str:
    if isinstance(error, ValidationError):
        problem = "; ".join(describe_problem(tool.Arguments, each) for each in error.errors(include_url=False)[:4])
    else:
        problem = str(error.args[0]) if error.args else type(error).__name__
    return f"{tool.name}: {problem}"[:SHOWN]
