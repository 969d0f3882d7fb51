"""Tools over the Model Context Protocol, and images that callers send along."""

from __future__ import annotations

import asyncio
import base64
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.agent.test_servers import make_book
from vgbench_gen.agent.sent_images import take_images
from vgbench_gen.agent.tool import ToolError
from vgbench_gen.agent.tool_server import ServedTools, ToolGuard, choose_served
from vgbench_gen.agent.toolbox import Toolbox, choose_tools
from vgbench_gen.core.local_server import listen, make_address, make_server

JPEG = make_book().find("image-1").data
TEXT = base64.b64encode(JPEG).decode()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with an image, and others that lead out of it."""
    root = tmp_path / "open"
    (root / "below").mkdir(parents=True)
    (root / "below" / "a.jpg").write_bytes(JPEG)
    (root / "notes.txt").write_text("no image")
    (tmp_path / "secret.jpg").write_bytes(JPEG)
    (root / "out.jpg").symlink_to(tmp_path / "secret.jpg")
    (root / "up").symlink_to(tmp_path)
    (tmp_path / "open-too").mkdir()
    (tmp_path / "open-too" / "b.jpg").write_bytes(JPEG)
    os.mkfifo(root / "pipe.jpg")
    return root


@pytest.mark.parametrize("text", [TEXT, f"data:image/jpeg;base64,{TEXT}", "below/a.jpg", "{root}/below/../below/a.jpg"])
def test_images_come_as_bytes_or_from_open_folders(folder: Path, text: str) -> None:
    given, images = take_images({"image": [text.format(root=folder)], "other": 1}, [folder])
    assert (given, images) == ({"image": ["image-0"], "other": 1}, [JPEG])


@pytest.mark.parametrize(
    "text",
    [
        "../secret.jpg",
        "{root}/../secret.jpg",
        "{root}/out.jpg",
        "up/secret.jpg",
        "{root}/../open-too/b.jpg",
        "pipe.jpg",
        "below",
        "notes.txt",
        "none.jpg",
        "/etc/passwd",
        "a\0b",
        "x" * 5000,
        base64.b64encode(b"GIF89a").decode(),
    ],
)
def test_nothing_else_is_read(folder: Path, text: str) -> None:
    with pytest.raises(ToolError, match="neither") as caught:
        take_images({"image": text.format(root=folder)}, [folder])
    assert str(folder) not in str(caught.value)
    with pytest.raises(ToolError, match="base64"):
        take_images({"image": "below/a.jpg"}, [])
    for wrong in ([TEXT] * 9, [3], {"a": 1}):
        with pytest.raises(ToolError, match="at most"):
            take_images({"image": wrong}, [folder])


def test_a_client_of_the_protocol_has_the_same_tools(folder: Path) -> None:
    mcp = pytest.importorskip("mcp", reason="needs the extra mcp")
    from vgbench_gen.agent.mcp_server import make_mcp_server

    box = Toolbox(choose_served(choose_tools(["classical"])))

    async def use() -> list[Any]:
        async with mcp.Client(make_mcp_server(ServedTools(box, 1), [folder])) as client:
            listed = {tool.name: tool for tool in (await client.list_tools()).tools}
            assert set(listed) == set(box.tools)
            schema = listed["EstimateOpticalFlow"].input_schema
            assert (schema["required"], "pattern" in str(schema)) == (["image"], False)
            assert "path" in schema["properties"]["image"]["description"]
            bbox = [0.1, 0.1, 0.5, 0.5]
            return [
                await client.call_tool("Crop", {"image": "below/a.jpg", "bbox": bbox}),
                await client.call_tool("Crop", {"image": TEXT, "bbox": bbox}),
                await client.call_tool("EstimateOpticalFlow", {"image": [TEXT, "below/a.jpg"]}),
                await client.call_tool("Crop", {"image": "../secret.jpg", "bbox": bbox}),
                await client.call_tool("Crop", {"image": TEXT, "bbox": [0, 0, 1, 9]}),
                await client.call_tool("SelfThinking", {"image": TEXT, "query": "?"}),
            ]

    try:
        by_path, by_bytes, flow, *wrong = asyncio.run(use())
    finally:
        box.close()
    assert by_path.content == by_bytes.content
    assert by_path.structured_content == {"rect_px": [32, 24, 159, 119]}
    assert by_path.content[1].mime_type == "image/jpeg"
    assert flow.structured_content["mean_flow_x"] == 0
    assert all(one.is_error for one in wrong)


def test_it_speaks_over_standard_input_and_http() -> None:
    mcp = pytest.importorskip("mcp", reason="needs the extra mcp")
    from vgbench_gen.agent.mcp_server import make_mcp_app, make_mcp_server

    command = ["-m", "vgbench_gen.cli", "serve-tools", "--mcp", "--workers", "1"]
    program = mcp.StdioServerParameters(command=sys.executable, args=command, env=dict(os.environ))

    async def compute(server: Any) -> Any:
        async with mcp.Client(server) as client:
            return (await client.call_tool("Calculate", {"expression": "6 * 7"})).structured_content

    async def compute_over_http() -> Any:
        box = Toolbox(choose_served(choose_tools([])))
        app = make_mcp_app(make_mcp_server(ServedTools(box, 1)))
        sock = listen("127.0.0.1", 0)
        server = make_server(ToolGuard(app), 30.0, lifespan=True)
        task = asyncio.create_task(server.serve(sockets=[sock]))
        try:
            return await compute(f"{make_address(sock, '127.0.0.1')}/mcp")
        finally:
            server.should_exit = True
            await task
            box.close()

    assert asyncio.run(compute(program)) == {"result": 42}
    assert asyncio.run(compute_over_http()) == {"result": 42}
