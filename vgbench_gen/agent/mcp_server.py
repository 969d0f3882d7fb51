"""Our tools for other programs and agents, by the Model Context Protocol (`docs/agent.md#servers`).

A caller has no numbered images, so an argument `image` takes base64 data, or paths below the folders that the user
allowed.
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
    """The tools that need no core model, no evidence and no other server."""
    return [tool for tool in chosen if tool.tier in SERVED_TIERS and not tool.by_core and not tool.core_query]


def make_mcp_server(toolbox: Toolbox, workers: int, folders: Sequence[Path] = ()) -> Server[Any]:
    """A server of the protocol.

    Args:
        toolbox: with the tools of `choose_served`.
        workers: the number of calls at once, which is announced.
        folders: images may be named by a path below one of these; base64 alone if there are none.
    """
    roots = [Path(os.path.realpath(folder)) for folder in folders]
    states = toolbox.describe_state()
    facts = {tool.name: _make_facts(tool, states[tool.key], workers) for tool in toolbox.tools.values()}
    listed = [_describe(tool, facts[tool.name], bool(roots)) for tool in toolbox.tools.values()]

    async def list_tools(context: Any, params: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=listed)

    async def call_tool(context: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        name = params.name
        try:
            if name not in facts:
                raise ToolError(f"there is no tool {name[:60]!a}; expected one of {', '.join(facts)}")
            arguments, images = await asyncio.to_thread(take_images, params.arguments or {}, roots)
            observation = await _call(toolbox, name, arguments, images)
        except (ToolError, DatasetError) as error:
            observation = Observation(name, {}, failure="wrong_arguments", message=str(error))
        meta: Any = {META: {"state": facts[name].state, "failure": observation.failure}} if name in facts else None
        if observation.failure:
            content: list[Any] = [types.TextContent(text=observation.message)]
            return types.CallToolResult(content=content, is_error=True, _meta=meta)
        values = dict(observation.values)
        content = [types.TextContent(text=json.dumps(values))]
        for data in observation.images:
            content.append(types.ImageContent(data=base64.b64encode(data).decode(), mime_type=find_media_type(data)))
        return types.CallToolResult(content=content, structured_content=values, _meta=meta)

    return Server("vgbench", version=__version__, on_list_tools=list_tools, on_call_tool=call_tool)


async def _call(toolbox: Toolbox, name: str, arguments: dict[str, Any], images: Sequence[bytes]) -> Observation:
    book = await asyncio.to_thread(ImageBook, images)
    checked = toolbox.read(ToolCall(name, arguments), book)
    if isinstance(checked, Observation):
        return checked
    try:
        return await toolbox.call(*checked, book)
    except VGBenchError as error:  # its weights cannot be loaded
        return Observation(name, arguments, failure="crash", message=str(error))


def _make_facts(tool: Tool, state: str, workers: int) -> ServedFacts:
    image = tool.Arguments.model_fields.get("image")
    return ServedFacts(
        does=tool.does,
        returns=dict(tool.returns),
        state=state,
        image=(image and image.description) or "",
        aliases=tool.aliases,
        argument_aliases=dict(tool.argument_aliases),
        example=json.loads(json.dumps(tool.example)),
        timeout_s=600.0 if tool.runs == "device" else tool.timeout_s,  # the first call loads the weights
        workers=workers,
    )


def _describe(tool: Tool, facts: ServedFacts, takes_paths: bool) -> types.Tool:
    schema = write_schema(tool)
    if "image" in schema["properties"]:
        how = "JPEG or PNG in base64" + (", or the path of one" if takes_paths else "")
        image = schema["properties"]["image"]
        default = {"default": image["default"]} if "default" in image else {}
        schema["properties"]["image"] = trim_schema(image, {}) | default | {"description": f"the image itself: {how}"}
    returns = "\n".join(f"{key}: {meaning}" for key, meaning in facts.returns.items())
    return types.Tool(
        name=tool.name,
        description=f"{facts.does}\nReturns:\n{returns}",
        input_schema=schema,
        annotations=types.ToolAnnotations(read_only_hint=True, idempotent_hint=True, open_world_hint=False),
        _meta={META: facts.model_dump(mode="json")},
    )


async def serve_stdio(server: Server[Any]) -> None:
    """Answer requests on standard input until it ends."""
    from mcp.server.stdio import stdio_server

    async with stdio_server() as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())


def make_mcp_app(server: Server[Any]) -> Starlette:
    """An ASGI application that answers at `/mcp`; put a `guard.ToolGuard` before it."""
    from mcp.server.transport_security import TransportSecuritySettings

    app: Starlette = server.streamable_http_app(
        json_response=True,
        stateless_http=True,
        max_request_body_size=MAX_REQUEST_BYTES,
        transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),
    )
    return app


def take_images(arguments: dict[str, Any], roots: Sequence[Path]) -> tuple[dict[str, Any], list[bytes]]:
    """(the arguments with names in place of images, the images).

    Args:
        arguments: with base64 or paths as `image`.
        roots: folders with links resolved; base64 alone if there are none.

    Raises:
        ToolError: an image is neither valid base64 nor a path of an image below the folders.
    """
    value = arguments.get("image")
    if value is None:
        return arguments, []
    texts = value if isinstance(value, list) else [value]
    if len(texts) > MAX_IMAGES or not all(isinstance(text, str) for text in texts):
        raise ToolError(f"image: expected at most {MAX_IMAGES} texts")
    images = [_read_image(text, roots) for text in texts]
    names = [f"image-{k}" for k in range(len(images))]
    return arguments | {"image": names if isinstance(value, list) else names[0]}, images


def _read_image(text: str, roots: Sequence[Path]) -> bytes:
    encoded = text.partition("base64,")[2] if text.startswith("data:") else text
    try:
        data = base64.b64decode(encoded, validate=True)
    except (binascii.Error, ValueError):
        data = b""
    if find_media_type(data):
        return data
    if not roots:
        raise ToolError("image: found no JPEG or PNG in base64; paths are read where the server has --images FOLDER")
    for root in roots:
        if (image := _read_below(root, text)) is not None:
            return image
    # The same message for a path outside and for a missing file, so that callers cannot probe for files.
    raise ToolError("image: found neither a JPEG or PNG in base64 nor a path to one below the folders of --images")


def _read_below(root: Path, text: str) -> bytes | None:
    """The image at a path, if the path with all links resolved is below the folder."""
    try:
        path = Path(os.path.realpath(root / text))
        if not path.is_relative_to(root):
            return None
        # If the file is replaced by a link or a pipe in between, this neither follows nor blocks.
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError):
        return None
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        return None
    with os.fdopen(handle, "rb") as file:
        data = file.read(MAX_REQUEST_BYTES + 1)
    return data if len(data) <= MAX_REQUEST_BYTES and find_media_type(data) else None


def find_media_type(data: bytes) -> str:
    """The media type of an encoded image; "" if it is neither JPEG nor PNG."""
    return next((media_type for magic, media_type in _MAGIC.items() if data.startswith(magic)), "")
