"""The same tools for programs that speak the Model Context Protocol (`docs/agent.md#the-same-tools-over-mcp`).

Such a program holds no numbered images, so an argument `image` takes the images themselves: base64, or paths below
folders that the user opened to it.
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mcp import types
from mcp.server.lowlevel import Server

from vgbench_gen import __version__
from vgbench_gen.agent.announced import MAX_REQUEST_BYTES, AnnouncedTool, trim_schema
from vgbench_gen.agent.sent_images import find_kind, take_images
from vgbench_gen.agent.tool import ToolError
from vgbench_gen.agent.tool_server import ServedTools
from vgbench_gen.core.errors import DatasetError

if TYPE_CHECKING:
    from starlette.applications import Starlette


def make_mcp_server(served: ServedTools, folders: Sequence[Path] = ()) -> Server[Any]:
    """A server of the protocol.

    Args:
        served: what is offered.
        folders: below which images may be named by path; none: base64 alone.
    """
    roots = [Path(os.path.realpath(folder)) for folder in folders]

    async def list_tools(context: Any, params: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[_describe(told, bool(roots)) for told in served.announced.values()])

    async def call_tool(context: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        told = served.announced.get(params.name)
        try:
            if told is None:
                raise ToolError(f"there is no tool {params.name[:60]!a}; expected one of {', '.join(served.announced)}")
            arguments, images = await asyncio.to_thread(take_images, params.arguments or {}, roots)
            seen = await served.call(told.name, arguments, images)
        except (ToolError, DatasetError) as error:
            return types.CallToolResult(content=[types.TextContent(text=str(error))], is_error=True)
        if seen.failure:
            return types.CallToolResult(content=[types.TextContent(text=seen.message)], is_error=True)
        content: list[Any] = [types.TextContent(text=json.dumps(dict(seen.values)))]
        for data in seen.images:
            content.append(types.ImageContent(data=base64.b64encode(data).decode(), mime_type=find_kind(data)))
        return types.CallToolResult(content=content, structured_content=dict(seen.values))

    return Server("vgbench", version=__version__, on_list_tools=list_tools, on_call_tool=call_tool)


async def serve_stdio(server: Server[Any]) -> None:
    """Answer what comes on standard input until it ends."""
    from mcp.server.stdio import stdio_server

    async with stdio_server() as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())


def make_mcp_app(server: Server[Any]) -> Starlette:
    """An ASGI application that answers at `/mcp`; who may call it is its guard's business (`tool_server.ToolGuard`)."""
    from mcp.server.transport_security import TransportSecuritySettings

    app: Starlette = server.streamable_http_app(
        json_response=True,
        stateless_http=True,
        max_request_body_size=MAX_REQUEST_BYTES,
        transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),
    )
    return app


def _describe(told: AnnouncedTool, takes_paths: bool) -> types.Tool:
    arguments = dict(told.arguments)
    if "image" in arguments:
        how = "JPEG or PNG in base64" + (", or the path of one" if takes_paths else "")
        arguments["image"] = trim_schema(arguments["image"]) | {"description": f"the image itself: {how}"}
    returns = "\n".join(f"{key}: {what}" for key, what in told.returns.items())
    return types.Tool(
        name=told.name,
        description=f"{told.does}\nReturns:\n{returns}",
        input_schema={
            "type": "object",
            "properties": arguments,
            "required": list(told.required),
            "additionalProperties": False,
        },
        annotations=types.ToolAnnotations(read_only_hint=True, idempotent_hint=True, open_world_hint=False),
    )
