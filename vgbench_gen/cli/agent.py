"""Ask a model that can call geometry tools; list, run and serve the tools."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from vgbench_gen.backends.spec import BackendOptions
from vgbench_gen.cli._flags import Only
from vgbench_gen.cli._options import ModelSpec
from vgbench_gen.cli._screen import print_columns, print_json
from vgbench_gen.cli._serve import serve_tools
from vgbench_gen.cli._verbs import verb
from vgbench_gen.core.config import Flag
from vgbench_gen.core.errors import ConfigError
from vgbench_gen.core.json_text import parse_json

if TYPE_CHECKING:
    from vgbench_gen.agent.images import ImageBook
    from vgbench_gen.agent.toolbox import Toolbox
    from vgbench_gen.agent.workers import Observation

_SHOWN = 600  # characters of a step on the terminal
_SENT = BackendOptions(concurrency=1)

ImageFiles = Annotated[list[Path] | None, Flag("JPEG/PNG; repeatable; the first is image-0.", "FILE", names="--image")]
ModeName = Annotated[Literal["sane", "official"], Flag("sane (corrected) or official (as published).", "MODE")]
SetupFile = Annotated[Path | None, Flag("TOML file with a table of options per tool.", "FILE")]


@verb(
    "agent ask", "Score", 'vgbench agent ask --image a.jpg "How far is the door?" --model openai:gpt-4o --out page.html'
)
def ask(
    question: Annotated[str, typer.Argument(metavar="QUESTION", help="The question, with its options if any.")],
    model: ModelSpec,
    image: ImageFiles = None,
    kind: Annotated[str, Flag("Loop of the agent: react or plan-execute.", "KIND")] = "react",
    tools: Annotated[str, Flag("Tool groups: classical, weights, remote, or none.", "A,B")] = "classical",
    mode: ModeName = "sane",
    setup: SetupFile = None,
    out: Annotated[Path | None, Flag("Write the trace as an HTML page.", "FILE")] = None,
    sent: Annotated[BackendOptions, Only("key_file", "base_url", "timeout_s", "retries", "cache", "prices")] = _SENT,
    as_json: bool = False,
) -> None:
    """Ask an agent one question and watch it work.

    Prints each thought, tool call and result as it happens, then the answer. --model is the core model, or a full agent
    spec (agent:…), which has options of its own. Exits 1 if there is no answer, 2 if the model cannot be reached.
    """
    import asyncio
    from urllib.parse import urlencode

    from vgbench_gen.agent.backend import AgentBackend, read_trace
    from vgbench_gen.backends.base import ImagePart, Message, Part, Settings, TextPart
    from vgbench_gen.backends.spec import open_backend

    if out is not None and out.is_dir():
        raise ConfigError(f"{out}: found a folder; expected the name of a page, such as {out / 'trace.html'}.")
    options = {"tools": tools, "mode": mode} | ({"setup": str(setup)} if setup else {})
    agent = open_backend(model if model.startswith("agent:") else f"agent:{kind}+{model}?{urlencode(options)}", sent)
    assert isinstance(agent, AgentBackend)
    if not as_json:
        agent.watch = _print_step

    async def run() -> Any:
        parts: list[Part] = [ImagePart(path) for path in image or ()]
        async with agent:
            return await agent.ask([Message("user", (*parts, TextPart(question)))], Settings())

    reply = asyncio.run(run())
    trace = read_trace(reply) or {}
    if as_json:
        print_json(trace)
    else:
        spent = "" if reply.usage is None else f", {reply.usage.prompt_tokens} + {reply.usage.completion_tokens} tokens"
        typer.secho(f"answer   {reply.text or '(none)'}", bold=True)
        print(f"took     {reply.latency_s:.2f} s{spent}")
    if out is not None:
        from vgbench_gen.agent.images import read_source
        from vgbench_gen.report.trace_page import make_trace_page
        from vgbench_gen.store.files import write_bytes

        names = [str(entry["name"]) for entry in trace.get("images", ())]
        shown = [*map(read_source, image or ()), *reply.images]
        page = make_trace_page(trace, dict(zip(names, shown, strict=True)))
        write_bytes(out, page.encode("utf-8"))
        if not as_json:
            print(f"page     {out}")
    if not reply.text:
        raise typer.Exit(1)


@verb("agent tools", "Score", "vgbench agent tools MatchImagesSIFT    (without NAME: all of them)")
def list_tools(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name or alias of a tool.")] = "",
    mode: ModeName = "sane",
    as_json: bool = False,
) -> None:
    """List the tools by group (tier), or print the description that a model sees for one tool."""
    from vgbench_gen.agent.tool import TIERS
    from vgbench_gen.agent.tool import tools as known
    from vgbench_gen.agent.toolbox import describe_tool

    found = [tool for tool in known.values() if mode in tool.modes]
    if name:
        found = [tool for tool in found if name.casefold() in map(str.casefold, (tool.name, *tool.aliases))]
        if not found:
            raise ConfigError(f"{name}: found no such tool; `vgbench agent tools` lists them.")
    if as_json:
        rows = [
            {"name": tool.name, "tier": tool.tier, "aliases": list(tool.aliases), "does": tool.does}
            | {"arguments": tool.Arguments.model_json_schema(), "returns": dict(tool.returns)}
            for tool in found
        ]
        print_json(rows)
    elif name:
        print("\n\n".join(f"tier {tool.tier}\n{describe_tool(tool)}" for tool in found))
    else:
        width = max(len(tool.name) for tool in found)
        for tier in TIERS:
            of_tier = sorted((tool for tool in found if tool.tier == tier), key=lambda tool: tool.name)
            if of_tier:
                typer.secho(tier, bold=True)
                lines = [(f"  {tool.name}", tool.does) for tool in of_tier]
                print_columns(lines, heads=("tool", "does"), show_heads=False, least=(width + 2,))


@verb("agent call", "Score", """vgbench agent call Calculate --arguments '{"expression": "6*7"}'""")
def call(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name or alias of the tool.")],
    image: ImageFiles = None,
    arguments: Annotated[str, Flag("Arguments of the tool, a JSON object.", "JSON")] = "{}",
    mode: ModeName = "sane",
    setup: SetupFile = None,
    out: Annotated[Path | None, Flag("Folder for images that the tool creates: image-N.jpg.", "FOLDER")] = None,
    as_json: bool = False,
) -> None:
    """Run one tool and print its result as JSON.

    --json prints it over several lines. If --arguments has no `image`, the tool receives the images given with --image.
    Exits 1 if the tool fails.
    """
    import asyncio

    from vgbench_gen.agent.images import ImageBook
    from vgbench_gen.agent.setup import load_setup
    from vgbench_gen.agent.tool import tools as known
    from vgbench_gen.agent.toolbox import Toolbox

    indent = 2 if as_json else None
    try:
        given = parse_json(arguments, "keep")
    except ValueError as error:
        raise ConfigError(f"--arguments: found no JSON ({error}); expected an object.") from None
    if not isinstance(given, dict):
        raise ConfigError('--arguments: found no object; expected one such as {"expression": "6*7"}.')
    setups = load_setup(setup) if setup is not None else {}
    called = name.casefold()
    chosen = [
        tool
        for tool in known.values()
        if mode in tool.modes and not tool.by_core and called in map(str.casefold, (tool.name, *tool.aliases))
    ]
    if not chosen:
        raise ConfigError(f"{name}: found no tool that runs by itself; `vgbench agent tools` lists them.")
    # One name may stand for tools of several tiers: the first in the order of tiers that needs no row and no setup.
    chosen.sort(key=lambda tool: ("classical", "utility", "weights", "remote", "oracle").index(tool.tier))
    book = ImageBook(image or ())
    names = [each.name for each in book]
    if names and "image" in chosen[0].Arguments.model_fields and "image" not in given:
        given["image"] = names[0] if len(names) == 1 else names
    toolbox = Toolbox(chosen[:1], setups=setups)
    try:
        seen = asyncio.run(_call(toolbox, name, given, book))
    finally:
        toolbox.close()
    if seen.failure:
        print_json({"failure": seen.failure, "error": seen.message}, indent)
        raise typer.Exit(1)
    made = []
    if seen.images and out is not None:
        from vgbench_gen.store.files import write_bytes

        for data in seen.images:
            path = out / f"{book.add(data, seen.name).name}.jpg"
            write_bytes(path, data)
            made.append(str(path))
    print_json({**seen.values, **({"images": made} if made else {})}, indent)


verb("agent serve", "Score", "vgbench agent serve --tools classical --port 8400")(serve_tools)


async def _call(toolbox: Toolbox, name: str, given: Mapping[str, Any], book: ImageBook) -> Observation:
    from vgbench_gen.agent.calls import ToolCall
    from vgbench_gen.agent.workers import Observation

    read = toolbox.read(ToolCall(name, given), book)
    return read if isinstance(read, Observation) else await toolbox.call(*read, book)


def _print_step(step: Mapping[str, Any]) -> None:
    """One step of a trace, plain where there is no terminal."""
    if step["step"] == "core":
        _print_lines(str(step["role"]), str(step["text"]), typer.colors.BLUE)
    elif step.get("failure"):
        _print_lines(str(step["name"]), f"{step['failure']}: {step['message']}", typer.colors.RED)
    else:
        _print_lines(str(step["name"]), json.dumps(step["values"], ensure_ascii=False), typer.colors.GREEN)


def _print_lines(who: str, text: str, color: str) -> None:
    cut = text if len(text) <= _SHOWN else f"{text[:_SHOWN]} … ({len(text) - _SHOWN} characters more)"
    typer.secho(who, fg=color, bold=True)
    print("\n".join(f"  {line}" for line in cut.strip().splitlines()) or "  (nothing)", flush=True)
