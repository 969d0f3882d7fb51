"""Our tools for other programs and agents, by the Model Context Protocol (`docs/agent.md#servers`).

A caller holds no numbered images, so an argument `image` takes the images themselves: base64, or paths below folders
that the user opened to it.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import json
import os
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mcp import types
from mcp.server.lowlevel import Server

from vgbench_gen import __version__
from vgbench_gen.agent.calls import ToolCall
from vgbench_gen.agent.images import ImageBook
from vgbench_gen.agent.schemas import MAX_IMAGES, MAX_REQUEST_BYTES, META, ServedFacts, trim_schema, write_schema
from vgbench_gen.agent.tool import Tool, ToolError
from vgbench_gen.agent.toolbox import Toolbox
from vgbench_gen.agent.workers import Observation
from vgbench_gen.core.errors import DatasetError, VGBenchError

if TYPE_CHECKING:
    from starlette.applications import Starlette

SERVED_TIERS = ("utility", "classical", "weights")
_MAGIC = {b"\xff\xd8\xff": "image/jpeg", b"\x89PNG\r\n\x1a\n": "image/png"}


def choose_served(chosen: Sequence[Tool]) -> list[Tool]:
    """Those that need neither an agent's own model nor its evidence nor a further server."""
    return [tool for tool in chosen if tool.tier in SERVED_TIERS and not tool.by_core and not tool.core_query]


def make_mcp_server(toolbox: Toolbox, workers: int, folders: Sequence[Path] = ()) -> Server[Any]:
    """A server of the protocol.

    Args:
        toolbox: of tools that `choose_served` lets through.
        workers: how many calls it runs at once.
        folders: below which images may be named by path; none: base64 alone.
    """
    roots = [Path(os.path.realpath(folder)) for folder in folders]
    states = toolbox.describe_state()
    facts = {tool.name: _tell_facts(tool, states[tool.key], workers) for tool in toolbox.tools.values()}
    listed = [_describe(tool, facts[tool.name], bool(roots)) for tool in toolbox.tools.values()]

    async def list_tools(context: Any, params: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=listed)

    async def call_tool(context: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        name = params.name
        try:
            if name not in facts:
                raise ToolError(f"there is no tool {name[:60]!a}; expected one of {', '.join(facts)}")
            arguments, images = await asyncio.to_thread(take_images, params.arguments or {}, roots)
            seen = await _call(toolbox, name, arguments, images)
        except (ToolError, DatasetError) as error:
            seen = Observation(name, {}, failure="wrong_arguments", message=str(error))
        meta: Any = {META: {"state": facts[name].state, "failure": seen.failure}} if name in facts else None
        if seen.failure:
            content: list[Any] = [types.TextContent(text=seen.message)]
            return types.CallToolResult(content=content, is_error=True, _meta=meta)
        content = [types.TextContent(text=json.dumps(dict(seen.values)))]
        for data in seen.images:
            content.append(types.ImageContent(data=base64.b64encode(data).decode(), mime_type=find_kind(data)))
        return types.CallToolResult(content=content, structured_content=dict(seen.values), _meta=meta)

    return Server("vgbench", version=__version__, on_list_tools=list_tools, on_call_tool=call_tool)


async def _call(toolbox: Toolbox, name: str, arguments: dict[str, Any], images: Sequence[bytes]) -> Observation:
    book = await asyncio.to_thread(ImageBook, images)
    read = toolbox.read(ToolCall(name, arguments), book)
    if isinstance(read, Observation):
        return read
    try:
        return await toolbox.call(*read, book)
    except VGBenchError as error:  # its weights cannot be loaded
        return Observation(name, arguments, failure="crash", message=str(error))


def _tell_facts(tool: Tool, state: str, workers: int) -> ServedFacts:
    image = tool.Arguments.model_fields.get("image")
    return ServedFacts(
        does=tool.does,
        returns=dict(tool.returns),
        state=state,
        image=(image and image.description) or "",
        aliases=tool.aliases,
        argument_aliases=dict(tool.argument_aliases),
        example=json.loads(json.dumps(tool.example)),
        timeout_s=600.0 if tool.runs == "device" else tool.timeout_s,  # the first call loads weights
        workers=workers,
    )


def _describe(tool: Tool, facts: ServedFacts, takes_paths: bool) -> types.Tool:
    schema = write_schema(tool)
    if "image" in schema["properties"]:
        how = "JPEG or PNG in base64" + (", or the path of one" if takes_paths else "")
        told = schema["properties"]["image"]
        default = {"default": told["default"]} if "default" in told else {}
        schema["properties"]["image"] = trim_schema(told, {}) | default | {"description": f"the image itself: {how}"}
    returns = "\n".join(f"{key}: {what}" for key, what in facts.returns.items())
    return types.Tool(
        name=tool.name,
        description=f"{facts.does}\nReturns:\n{returns}",
        input_schema=schema,
        annotations=types.ToolAnnotations(read_only_hint=True, idempotent_hint=True, open_world_hint=False),
        _meta={META: facts.model_dump(mode="json")},
    )


async def serve_stdio(server: Server[Any]) -> None:
    """Answer what comes on standard input until it ends."""
    from mcp.server.stdio import stdio_server

    async with stdio_server() as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())


def make_mcp_app(server: Server[Any]) -> Starlette:
    """An ASGI application that answers at `/mcp`; who may call it is its guard's business (`guard.ToolGuard`)."""
    from mcp.server.transport_security import TransportSecuritySettings

    app: Starlette = server.streamable_http_app(
        json_response=True,
        stateless_http=True,
        max_request_body_size=MAX_REQUEST_BYTES,
        transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),
    )
    return app


def take_images(arguments: dict[str, Any], roots: Sequence[Path]) -> tuple[dict[str, Any], list[bytes]]:
    """(the arguments with images by name, the images).

    Args:
        arguments: with the images themselves as `image`.
        roots: folders without links in their paths; none: base64 alone.

    Raises:
        ToolError: one is neither an image in base64 nor a path to one below the folders.
    """
    given = arguments.get("image")
    if given is None:
        return arguments, []
    texts = given if isinstance(given, list) else [given]
    if len(texts) > MAX_IMAGES or not all(isinstance(text, str) for text in texts):
        raise ToolError(f"image: expected at most {MAX_IMAGES} texts")
    images = [_read_image(text, roots) for text in texts]
    names = [f"image-{k}" for k in range(len(images))]
    return arguments | {"image": names if isinstance(given, list) else names[0]}, images


def _read_image(text: str, roots: Sequence[Path]) -> bytes:
    encoded = text.partition("base64,")[2] if text.startswith("data:") else text
    try:
        data = base64.b64decode(encoded, validate=True)
    except (binascii.Error, ValueError):
        data = b""
    if find_kind(data):
        return data
    if not roots:
        raise ToolError("image: found no JPEG or PNG in base64; paths are read where the server has --images FOLDER")
    for root in roots:
        if (found := _read_below(root, text)) is not None:
            return found
    # The same words whether it lies elsewhere or nowhere.
    raise ToolError("image: found neither a JPEG or PNG in base64 nor a path to one below the folders of --images")


def _read_below(root: Path, text: str) -> bytes | None:
    """The image at a path, if that lies below a folder once all links are followed."""
    try:
        path = Path(os.path.realpath(root / text))
        if not path.is_relative_to(root):
            return None
        # What is swapped for a link or a pipe meanwhile is not followed and does not block.
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError):
        return None
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        return None
    with os.fdopen(handle, "rb") as file:
        data = file.read(MAX_REQUEST_BYTES + 1)
    return data if len(data) <= MAX_REQUEST_BYTES and find_kind(data) else None


def find_kind(data: bytes) -> str:
    """The media type of an encoded image; "" where it is neither JPEG nor PNG."""
    return next((kind for magic, kind in _MAGIC.items() if data.startswith(magic)), "")
