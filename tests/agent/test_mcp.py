"""Tools over the Model Context Protocol: the same results as here, and what hostile callers and servers can do."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import socket
import struct
import subprocess
import sys
import time
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import cv2
import httpx
import numpy as np
import pytest

mcp = pytest.importorskip("mcp", reason="needs the extra mcp")

from tests.agent.cores import END, Core, make_agent, step  # noqa: E402
from tests.agent.servers import (  # noqa: E402
    SCHEMA,
    Misbehaving,
    announce,
    call_by_hand,
    fail,
    give,
    make_response,
    result_of,
    run_server,
)
from vgbench_gen.agent.calls import ToolCall  # noqa: E402
from vgbench_gen.agent.guard import ToolGuard  # noqa: E402
from vgbench_gen.agent.images import ImageBook  # noqa: E402
from vgbench_gen.agent.mcp_client import connect  # noqa: E402
from vgbench_gen.agent.mcp_server import choose_served, make_mcp_app, make_mcp_server, take_images  # noqa: E402
from vgbench_gen.agent.results import ResultCache  # noqa: E402
from vgbench_gen.agent.schemas import MAX_REPLY_BYTES, MAX_REQUEST_BYTES, MAX_VALUES, make_arguments, write_schema  # noqa: E402
from vgbench_gen.agent.setup import RemoteServer  # noqa: E402
from vgbench_gen.agent.tool import Tool, ToolError  # noqa: E402
from vgbench_gen.agent.tool import tools as registry  # noqa: E402
from vgbench_gen.agent.toolbox import Toolbox, choose_tools  # noqa: E402
from vgbench_gen.agent.workers import Observation  # noqa: E402
from vgbench_gen.backends.base import ImagePart, Message, Settings, TextPart  # noqa: E402
from vgbench_gen.core.errors import ConfigError  # noqa: E402
from vgbench_gen.report.trace_page import make_trace_page  # noqa: E402
from vgbench_gen.store.pictures import encode_jpeg  # noqa: E402

TOKEN = "a-token-of-this-test"
CALLS = [
    ToolCall("MatchImagesSIFT", {"image": ["image-2", "image-1"]}),
    ToolCall("EstimateHomographyMatrix", {"images": ["image-1", "image-2"], "ransac_reproj_threshold": 3.0}),
    ToolCall("EstimateOpticalFlow", {"image": ["image-1", "image-2"]}),
    ToolCall(
        "EstimateRelativePose",
        {"image": ["image-1", "image-2"], "cameras": [{"fx": 300.0, "fy": 300.0, "cx": 159.5, "cy": 119.5}]},
    ),
    ToolCall("EstimateRelativePose", {"image": ["image-0", "image-1"]}),
    ToolCall("Crop", {"image": "image-1", "bbox": [0.1, 0.1, 0.5, 0.5]}),
]


def make_book() -> ImageBook:
    """An empty image, a textured one, and that one shifted."""
    noise = np.random.Generator(np.random.PCG64(4)).integers(0, 255, (60, 80, 3), dtype=np.uint8)
    texture = np.asarray(cv2.resize(noise, (320, 240), interpolation=cv2.INTER_CUBIC))
    shown = [np.zeros((240, 320, 3), np.uint8), texture, np.roll(texture, (4, 7), (0, 1))]
    return ImageBook([encode_jpeg(np.ascontiguousarray(image)) for image in shown])


@pytest.fixture(scope="module")
def local() -> list[Tool]:
    return choose_served(choose_tools(["classical"]))


@pytest.fixture(scope="module")
def address(local: list[Tool]) -> Iterator[str]:
    with run_server(local) as found:
        yield found


def ask(chosen: list[Tool], calls: list[ToolCall], kept: ResultCache | None = None) -> tuple[list[Observation], int]:
    """(what calls give, how many were made)."""
    box, book = Toolbox(chosen, cache=kept), make_book()

    async def go() -> list[Observation]:
        found = []
        for call in calls:
            read = box.read(call, book)
            found.append(read if isinstance(read, Observation) else await box.call(*read, book))
        return found

    try:
        return asyncio.run(go()), box.calls
    finally:
        box.close()


def test_results_are_those_of_the_local_tools_and_are_asked_for_once(
    local: list[Tool], address: str, tmp_path: Path
) -> None:
    remote = connect({"lab": RemoteServer(url=address)})
    assert [tool.name for tool in remote] == [tool.name for tool in local]
    kept = ResultCache(tmp_path / "tools")
    here, there = ask(local, CALLS)[0], ask(remote, CALLS, kept)[0]
    assert not any(one.failure for one in here)
    # What a model reads and what a trace holds, byte for byte.
    assert [json.dumps([one.name, one.arguments, one.values]) for one in here] == [
        json.dumps([one.name, one.arguments, one.values]) for one in there
    ]
    assert [one.images for one in here] == [one.images for one in there]
    assert len(there[-1].images) == 1
    again, made = ask(remote, CALLS, kept)
    assert (again, made) == (there, 0)


def test_a_model_reads_the_same_of_a_tool_and_its_mistakes(local: list[Tool], address: str) -> None:
    remote = connect({"lab": RemoteServer(url=address)})
    assert Toolbox(remote).describe() == Toolbox(local).describe()
    wrong = [
        ToolCall("EstimateOpticalFlow", {"image": ["image-1"]}),
        ToolCall("EstimateOpticalFlow", {"image": ["image-1", "/etc/passwd"]}),
        ToolCall("EstimateOpticalFlow", {"image": ["image-1", "image-7"]}),
        ToolCall("Crop", {"image": "image-1", "bbox": [0, 0, 1, 5]}),
        ToolCall("Crop", {"image": "image-1", "bbox": [0, 0, 1, 1], "path": "/"}),
    ]
    told, made = ask(remote, wrong)
    assert ({one.failure for one in told}, made) == ({"wrong_arguments"}, 0)
    # Refused by the tool itself, on the server.
    assert ask(remote, [ToolCall("Calculate", {"expression": "9**9**9"})])[0][0].failure == "tool_error"


def test_every_tool_can_be_announced() -> None:
    """Also those that are not served: an installed package may bring any of these forms of arguments."""
    for tool in registry.values():
        arguments = make_arguments(tool.name, json.loads(json.dumps(write_schema(tool))))
        read = arguments.model_validate_json(json.dumps(tool.example)).model_dump(mode="json")
        whole = tool.Arguments.model_validate_json(json.dumps(tool.example)).model_dump(mode="json")
        assert read == {name: value for name, value in whole.items() if name in read}, tool.name


def test_an_agent_with_a_server(address: str, tmp_path: Path) -> None:
    setup = tmp_path / "setup.toml"
    setup.write_text(f'[remote.lab]\nurl = "{address}"\n')
    core = Core([step("EstimateOpticalFlow", image=["image-0", "image-1"]), END])
    agent = make_agent("react", core, tools=("remote",), setup=setup)
    images = [ImagePart(image.data) for image in [*make_book()][1:]]
    reply = asyncio.run(agent.ask([Message("user", (*images, TextPart("Where to?")))], Settings()))
    seen = next(step for step in reply.raw["trace"]["steps"] if step["step"] == "tool")
    assert seen["values"]["mean_flow_x"] == pytest.approx(7, abs=1)
    asyncio.run(agent.close())
    with pytest.raises(ConfigError, match=r"expected setup=FILE.toml with a table \[remote.NAME\]"):
        make_agent("react", core, tools=("remote",))


PICTURE = base64.b64encode(make_book().find("image-0").data).decode()


CROP = {"image": PICTURE, "bbox": [0, 0, 1, 1]}


@pytest.mark.parametrize(
    ("arguments", "headers", "status"),
    [
        (CROP, {}, 200),
        (CROP | {"path": "x" * MAX_REQUEST_BYTES}, {}, 413),
        (CROP | {"bbox": [{"a": 1}] * (MAX_VALUES // 2)}, {}, 400),
        (CROP, {"content-type": "text/plain"}, 400),
        (CROP, {"host": "evil.example"}, 421),
        (CROP, {"origin": "http://evil.example"}, 403),
        (CROP, {"sec-fetch-site": "cross-site"}, 403),
        (CROP, {"authorization": ""}, 401),
        (CROP, {"authorization": f"Bearer {TOKEN}x"}, 401),
        (CROP, {"authorization": f"Basic {TOKEN}"}, 401),
    ],
)
def test_hostile_callers_are_turned_away(guarded: str, arguments: Any, headers: dict[str, str], status: int) -> None:
    sent, own = call_by_hand("Crop", arguments)
    found = httpx.post(guarded, content=sent, headers=own | {"authorization": f"Bearer {TOKEN}"} | headers)
    assert (found.status_code, TOKEN in found.text) == (status, False), found.text
    assert status != 200 or found.json()["result"]["structuredContent"] == {"rect_px": [0, 0, 319, 239]}


@pytest.mark.parametrize("sent", [b"[1]", b"[" * 100_000, b'{"jsonrpc": 3}', b"", b"{"])
def test_what_is_no_message_is_refused(guarded: str, sent: bytes) -> None:
    _, own = call_by_hand("Crop", {})
    found = httpx.post(guarded, content=sent, headers=own | {"authorization": f"Bearer {TOKEN}"})
    assert 400 <= found.status_code < 500


@pytest.mark.parametrize(
    ("name", "arguments", "said"),
    [
        ("Crop", {"image": "../../etc/passwd", "bbox": [0, 0, 1, 1]}, "base64"),
        ("Crop", {"image": base64.b64encode(b"no image").decode(), "bbox": [0, 0, 1, 1]}, "base64"),
        ("Crop", {"image": [PICTURE] * 9, "bbox": [0, 0, 1, 1]}, "at most"),
        ("Crop", {"bbox": [{}] * (MAX_VALUES // 3)}, "image"),
        ("Terminate", {"answer": "A"}, "there is no tool"),
        ("../../etc/passwd", {}, "there is no tool"),
    ],
)
def test_a_call_that_cannot_be_made_says_why(guarded: str, name: str, arguments: Any, said: str) -> None:
    sent, own = call_by_hand(name, arguments)
    found = httpx.post(guarded, content=sent, headers=own | {"authorization": f"Bearer {TOKEN}"}).json()["result"]
    assert found["isError"]
    assert said in found["content"][0]["text"]


@pytest.fixture(scope="module")
def guarded(local: list[Tool]) -> Iterator[str]:
    with run_server([tool for tool in local if tool.name == "Crop"], TOKEN, limit_s=0.3) as found:
        yield found


def test_the_list_of_tools_needs_the_token_too(guarded: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAB_TOKEN", "another-token-altogether")
    with pytest.raises(ConfigError, match="refuses the token") as caught:
        connect({"lab": RemoteServer(url=guarded, token_env="LAB_TOKEN")})
    assert "another-token" not in str(caught.value)
    monkeypatch.setenv("LAB_TOKEN", TOKEN)
    assert len(connect({"lab": RemoteServer(url=guarded, token_env="LAB_TOKEN")})) == 1
    monkeypatch.delenv("LAB_TOKEN")
    with pytest.raises(ConfigError, match="found no token in the variable LAB_TOKEN"):
        connect({"lab": RemoteServer(url=guarded, token_env="LAB_TOKEN")})


def test_a_server_that_others_reach_needs_a_token() -> None:
    with pytest.raises(ConfigError, match="--token-env"):
        ToolGuard(make_mcp_app(make_mcp_server(Toolbox([]), 1)), any_host=True)


def test_connections_that_never_ask_hold_no_place(guarded: str) -> None:
    """More half-open ones than the server takes: they are closed, and others are answered again."""
    host, _, port = guarded.removeprefix("http://").removesuffix("/mcp").partition(":")
    idle = [socket.create_connection((host, int(port))) for _ in range(64)]
    for connection in idle:
        connection.sendall(b"POST /mcp HTTP/1.1\r\nHost: 127")
    sent, own = call_by_hand("Crop", CROP)
    deadline_s = time.monotonic() + 10
    while httpx.post(guarded, content=sent, headers=own | {"authorization": f"Bearer {TOKEN}"}).status_code != 200:
        assert time.monotonic() < deadline_s
        time.sleep(0.05)
    assert all(connection.recv(10) == b"" for connection in idle)
    for connection in idle:
        connection.close()


def make_png(width: int, height: int) -> str:
    """Base64 of a PNG of these sides, with no pixels."""
    header = b"IHDR" + struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    parts = b"\x89PNG\r\n\x1a\n" + struct.pack(">I", 13) + header + struct.pack(">I", zlib.crc32(header))
    return base64.b64encode(parts).decode()


def image(data: str) -> dict[str, str]:
    return {"type": "image", "data": data, "mimeType": "image/png"}


@pytest.mark.parametrize(
    ("reply", "failure", "said"),
    [
        (give(), "", ""),
        (give() | {"extra": 3}, "", ""),
        (b'"' + b"x" * (MAX_REPLY_BYTES + 1) + b'"', "tool_error", "more than"),
        (b"<html>", "tool_error", "cannot be read"),
        (b"[" * 90_000, "tool_error", "cannot be read"),
        (result_of(b'{"v":[' + b'{"a":1},' * MAX_VALUES + b"1]}"), "tool_error", "values"),
        (result_of(b'{"v":[' + b"[]," * MAX_VALUES + b"1]}"), "tool_error", "values"),
        (result_of(b"{" + b'"a":1,' * MAX_VALUES + b'"b":1}'), "tool_error", "values"),
        (result_of(b'{"v":NaN}'), "tool_error", ""),
        (result_of(b'{"v":' + b"9" * 5000 + b"}"), "tool_error", "cannot be read"),
        (result_of(b'{"v":1e999}'), "tool_error", ""),
        (give({"text": "x" * (2 << 20)}), "tool_error", "larger than"),
        (give(content=[image(make_png(8000, 8001))]), "tool_error", "no JPEG"),
        (give(content=[image("/etc/passwd")]), "tool_error", "no JPEG"),
        (give(content=[image(base64.b64encode(b"GIF89a").decode())]), "tool_error", "no JPEG"),
        (give(content=[image(PICTURE)] * 9), "tool_error", "9 images"),
        ([give()], "tool_error", "cannot be read"),
        (give(content=3), "tool_error", "cannot be read"),
        (give(_meta={}), "tool_error", "changed"),
        (give(_meta={"vgbench": {"state": "1/abd"}}), "tool_error", "changed"),
        (fail("tool_error", "\x1b[2Jno"), "tool_error", "[2Jno"),
        (fail("crash", "gone"), "tool_error", "gone"),
        (fail("timeout", "slow"), "timeout", "slow"),
        (
            lambda message: make_response(give(), message, "302 Found", "location: http://127.0.0.1:9/"),
            "tool_error",
            "302",
        ),
        (lambda message: make_response(give(), message, "500 Oops"), "tool_error", "500"),
        (
            lambda message: make_response(b"\x1f\x8b", message, "200 OK", "content-encoding: gzip"),
            "tool_error",
            "compresses",
        ),
        # As where it is killed during a call.
        (lambda message: make_response(give(), message)[:-9], "tool_error", "broke off"),
        (lambda message: b"", "tool_error", "broke off"),
    ],
)
def test_what_a_server_replies_costs_no_more_than_the_observation(
    reply: Any, failure: str, said: str, capfd: pytest.CaptureFixture[str]
) -> None:
    raw = reply if not isinstance(reply, bytes) else lambda message: make_response(reply, message)
    with Misbehaving([announce()], raw).run() as url:
        tools = connect({"lab": RemoteServer(url=url)})
        (seen,), _ = ask(tools, [ToolCall("Measure", {"image": "image-1"})])
    assert seen.failure == failure, seen.message
    assert said in seen.message
    assert "\x1b" not in seen.message
    assert dict(seen.values) == ({} if failure else {"length": 2.5})
    # A refusal of the tool itself is kept, and a result that is too large or no JSON; all else may pass.
    assert seen.is_passing == (failure == "tool_error" and said not in ("[2Jno", "larger than", ""))
    assert capfd.readouterr().err == ""  # the library logs what a server sends


def words(text: str, *more: dict[str, str]) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": text}, *more], "resultType": "complete"}


def test_a_server_that_says_nothing_of_ours_is_used_as_it_is() -> None:
    """Results in structure, in JSON as text, or in words; an error may pass."""
    plain = {"name": "look-at.it", "description": "Looks\n  at it.", "inputSchema": SCHEMA}
    replies = iter(
        [
            give({"n": 1}, _meta={}),
            words('{"n": 2}', image(PICTURE)),
            words("a lamp"),
            words("no lamp") | {"isError": True},
        ]
    )
    with Misbehaving([plain], lambda message: make_response(next(replies), message)).run() as url:
        (tool,) = connect({"lab": RemoteServer(url=url)})
        seen, _ = ask([tool], [ToolCall("Look-At.It", {"image": "image-1"})] * 4)
    assert (tool.does, dict(tool.returns)) == ("Looks at it.", {"text": "what it says"})
    assert "image: name of the image" in Toolbox([tool]).describe()
    assert [dict(one.values) for one in seen] == [{"n": 1}, {"n": 2}, {"text": "a lamp"}, {}]
    assert [len(one.images) for one in seen] == [0, 1, 0, 0]
    assert (seen[3].failure, seen[3].is_passing, seen[3].message) == ("tool_error", True, "no lamp")


def test_a_slow_server_and_one_that_is_gone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("vgbench_gen.agent.mcp_client._MARGIN_S", 0.1)
    monkeypatch.setattr("vgbench_gen.agent.mcp_client._WAITS_S", (0.01,))

    def reply(message: Any) -> bytes:
        time.sleep(1.0)
        return make_response(give(), message)

    call, kept = ToolCall("Measure", {"image": "image-1"}), ResultCache(tmp_path / "tools")
    with Misbehaving([announce()], reply).run() as url:
        tools = connect({"lab": RemoteServer(url=url)})
        (slow,), _ = ask(tools, [call], kept)
    (gone,), made = ask(tools, [call], kept)
    assert (slow.failure, gone.failure, made) == ("timeout", "tool_error", 1)
    assert "cannot be reached" in gone.message
    with pytest.raises(ConfigError, match="cannot be reached"):
        connect({"lab": RemoteServer(url=url)})
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")  # nobody listens there
    with pytest.raises(
        ConfigError, match="cannot be reached, asked directly and not through the http proxy of HTTP_PROXY"
    ):
        connect({"lab": RemoteServer(url=url)})
    with pytest.raises(ConfigError, match="cannot be reached, through the http proxy of HTTP_PROXY"):
        connect({"lab": RemoteServer(url="http://lab.invalid:8000")})


def test_a_token_goes_nowhere_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAB_TOKEN", TOKEN)
    elsewhere = Misbehaving([announce()])
    with elsewhere.run() as other:
        here = Misbehaving([])
        here.answer = lambda message: make_response(b"", message, "307 Away", f"location: {other}")  # type: ignore[method-assign]
        with here.run() as url, pytest.raises(ConfigError, match="307"):
            connect({"lab": RemoteServer(url=url, token_env="LAB_TOKEN")})
    assert f"authorization: Bearer {TOKEN}" in here.seen[0].replace("Authorization", "authorization")
    assert elsewhere.seen == []


def takes(**arguments: Any) -> dict[str, Any]:
    return {"schema": SCHEMA | {"properties": arguments, "required": []}}


@pytest.mark.parametrize(
    "changes",
    [
        {"name": "Mea\x1b[2Jsure"},
        {"name": "../Measure"},
        {"does": "a\x1b]0;title\x07b"},
        {"does": "x" * 3000},
        {"aliases": ["a b"]},
        {"state": ""},
        {"schema": SCHEMA | {"required": ["image", "other"]}},
        {"schema": SCHEMA | {"properties": 3}},
        takes(json={"type": "string", "description": "shadows ours"}),
        takes(image={"type": "file"}),
        takes(image={"type": "string"}, n={"type": "number", "description": "a\x07b"}),
        takes(image={"$ref": "http://127.0.0.1/x"}),
        takes(n={"type": "integer", "default": "five"}),
        takes(image={"type": "array", "items": {"type": "array", "items": {"enum": 3}}}),
        takes(image=json.loads('{"type":"array","items":' * 50 + '{"type":"number"}' + "}" * 50)),
        takes(image={"type": "string", "$ref": "#"}, n={"$ref": "file:///etc/passwd"}),
        takes(image={"enum": ["a"] * MAX_VALUES}),
        takes(image={"enum": ["a"] * 5000}),
        takes(image={"anyOf": [{"type": "number"}] * 5000}),
        takes(image={"anyOf": 3}),
        takes(**{f"a{k}": {"type": "number"} for k in range(41)}),
        takes(n={"type": "number", "minimum": "a"}),
        takes(n={"type": "integer", "default": 10**3000}),
        takes(model_config={"type": "string"}),
        takes(__init__={"type": "string"}),
        {"schema": takes(n={"$ref": "#/$defs/n"})["schema"] | {"$defs": {"n": {"$ref": "#/$defs/n"}}}},
        {
            "schema": takes(n={"$ref": "#/$defs/a"})["schema"]
            | {"$defs": {"a": {"anyOf": [{"$ref": "#/$defs/b"}] * 90}, "b": {"anyOf": [{"type": "null"}] * 90}}}
        },
        {"timeout_s": 1e9},
        {"workers": 10**9},
        {"extra": 1},
        b'{"jsonrpc":"2.0","id":ID,"result":{"tools":[' + b"{}," * 20_000 + b"{}]}}",
        b'{"jsonrpc":"2.0","id":ID,"result":{"tools":[' + b"{}," * MAX_VALUES + b"{}]}}",
        b'{"jsonrpc":"2.0","id":ID,"result":{"tools":NaN}}',
        b" " * (MAX_REPLY_BYTES + 1),
        b"<!DOCTYPE html><html>",
        [announce(), announce()],
        [announce(name=f"T{k}") for k in range(101)],
        [announce() | {"_meta": {"vgbench": 3}}],
    ],
)
def test_an_announcement_that_cannot_be_used_is_refused_in_a_line(
    changes: Any, capfd: pytest.CaptureFixture[str]
) -> None:
    told = [announce(**changes)] if isinstance(changes, dict) else changes
    server = Misbehaving(told)
    if isinstance(changes, bytes):
        server.tools = b""
        answer = server.answer
        server.answer = lambda message: (  # type: ignore[method-assign]
            make_response(changes, message) if message["method"] == "tools/list" else answer(message)
        )
    with server.run() as url, pytest.raises(ConfigError) as caught:
        connect({"lab": RemoteServer(url=url)})
    assert str(caught.value).isprintable()
    assert "[remote.lab]" in str(caught.value)
    assert len(str(caught.value)) < 500
    assert capfd.readouterr().err == ""


def test_references_within_a_schema_are_followed() -> None:
    """As servers of pydantic models write them."""
    schema = {
        "properties": {"box": {"$ref": "#/$defs/Box"}, "more": {"anyOf": [{"$ref": "#/$defs/Box"}, {"type": "null"}]}},
        "required": ["box"],
        "$defs": {"Box": {"type": "object", "properties": {"x": {"type": "number"}}, "required": ["x"]}},
    }
    arguments = make_arguments("Draw", schema)
    assert arguments.model_validate_json('{"box": {"x": 1}}').model_dump(mode="json") == {"box": {"x": 1}, "more": None}
    for wrong in ('{"box": {"y": 1}}', '{"box": 1}', '{"box": {"x": 1}, "more": 3}'):
        with pytest.raises(ValueError, match="at"):
            arguments.model_validate_json(wrong)


SLOW_PATTERN = {"type": "string", "pattern": "(a+)+$", "description": "d"}


@pytest.mark.parametrize(
    ("schema", "right", "wrong"),
    [
        (SLOW_PATTERN, ["a" * 200 + "!"], [3]),  # patterns are the server's business
        ({"type": "number", "exclusiveMinimum": 0, "maximum": 10**400}, [1, 2.5, 10**300], [0, "1", True, [1]]),
        ({"type": ["integer", "null"], "default": 10**400}, [None, 3], [2.5, "x"]),
        ({"enum": ["m", "cm"]}, ["m"], ["km", None, 3]),
        ({"anyOf": [{"type": "string", "maxLength": 3}, {"type": "boolean"}]}, ["abc", True], ["abcd", 1]),
        (
            {"type": "array", "items": {"type": "number"}, "minItems": 1, "maxItems": 2},
            [[1]],
            [[], [1, 2, 3], ["1"], 1],
        ),
        (
            {"type": "array", "prefixItems": [{"type": "number"}, {"type": "string"}], "minItems": 2, "maxItems": 2},
            [[1, "a"]],
            [["a", 1], [1]],
        ),
        (
            {"type": "object", "properties": {"a": {"type": "number"}, "b": {"const": "x"}}, "required": ["a"]},
            [{"a": 1}, {"a": 1, "b": "x"}],
            [{}, {"a": "1"}, {"a": 1, "b": "y"}, {"a": 1, "c": 2}],
        ),
        ({"type": "string", "format": "x", "patternProperties": {"(a+)+$": {}}, "$defs": {"a": 1}}, ["x"], [1]),
    ],
)
def test_arguments_are_those_that_a_schema_describes(
    schema: dict[str, Any], right: list[Any], wrong: list[Any]
) -> None:
    told = {"properties": {"n": schema | {"description": "d"}}, "required": [] if "default" in schema else ["n"]}
    arguments = make_arguments("Measure", json.loads(json.dumps(told)))
    for value in right:
        assert arguments.model_validate_json(json.dumps({"n": value})).model_dump(mode="json") == {"n": value}
    for value in wrong:
        with pytest.raises(ValueError, match="n"):
            arguments.model_validate_json(json.dumps({"n": value}))
    if "default" in schema:
        assert arguments.model_validate_json("{}").model_dump() == {"n": schema["default"]}


@pytest.mark.parametrize("place", ["message", "values", "keys", "base64", "wrapped", "description", "image", "text"])
def test_a_token_that_a_server_repeats_is_covered(place: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("LAB_TOKEN", TOKEN)
    said = {
        "message": fail("tool_error", f"your Bearer {TOKEN}"),
        "keys": give({TOKEN: {TOKEN: 1}}),
        "base64": give({"v": base64.b64encode(f"x:{TOKEN}!".encode()).decode()}),
        "wrapped": give({"v": f"{TOKEN[:8]}\n{TOKEN[8:]}"}),
        "image": give({"image": TOKEN}, content=[image(PICTURE)]),
        "text": give(_meta={}, structuredContent=None, content=[{"type": "text", "text": TOKEN}]),
    }.get(place, give({"v": [f"Authorization: Bearer {TOKEN}", {"of": TOKEN}]}))
    told = announce(does=f"Measures for {TOKEN}.") if place == "description" else announce()
    if place == "text":
        told["_meta"] = {}
    setup, core = tmp_path / "setup.toml", Core([step("Measure", image="image-0"), END])
    with Misbehaving([told], said).run() as url:
        setup.write_text(f'[remote.lab]\nurl = "{url}"\ntoken_env = "LAB_TOKEN"\n')
        agent = make_agent("react", core, tools=("remote",), setup=setup)
        reply = asyncio.run(
            agent.ask([Message("user", (ImagePart(base64.b64decode(PICTURE)), TextPart("?")))], Settings())
        )
        asyncio.run(agent.close())
    page = make_trace_page(reply.raw["trace"], {})
    for seen in (json.dumps(reply.raw), page, *core.prompts):
        for form in (TOKEN, TOKEN[8:], base64.b64encode(TOKEN[1:-2].encode()).decode()):
            assert form not in seen
    seen_step = next(step for step in reply.raw["trace"]["steps"] if step["step"] == "tool")
    if place == "image":  # no tool names its own images
        assert seen_step["values"]["image"] == "image-1"
    else:
        assert "[key]" in json.dumps([seen_step, core.prompts])


@pytest.mark.parametrize(
    "url",
    ["http://user:secret@host", "http://host/?key=1", "http://", "http://host:99999", "http://h/\nX: y", "http://[::1"],
)
def test_an_address_holds_no_secret_and_no_line_break(url: str) -> None:
    with pytest.raises(ConfigError, match=r"\[remote.lab\] url") as caught:
        connect({"lab": RemoteServer(url=url)})
    assert "secret" not in str(caught.value)
    assert str(caught.value).isprintable()


def test_the_tier_named_first_gives_the_tool_and_no_server_replaces_what_needs_nothing() -> None:
    named: tuple[tuple[str, list[str]], ...] = (
        ("Measure", ["crop", "SelfReasoning"]),
        ("calculate", []),
        ("MatchImagesSIFT", []),
    )
    with Misbehaving([announce(name=name, aliases=aliases) for name, aliases in named]).run() as url:
        remote = connect({"lab": RemoteServer(url=url)})
    for tiers, tier in ((("remote", "classical"), "remote"), (("classical", "remote"), "classical")):
        box = Toolbox(choose_tools(tiers, remote=remote))
        assert {name: box.tools[name].tier for name in ("Measure", "Calculate", "MatchImagesSIFT")} == {
            "Measure": "remote",
            "Calculate": "utility",
            "MatchImagesSIFT": tier,
        }
        assert "calculate" not in box.tools
        for name, arguments in (("crop", {"image": "image-0"}), ("SelfReasoning", {"image": "image-0"})):
            read = box.read(ToolCall(name, arguments), make_book())
            assert (read.name if isinstance(read, Observation) else read[0].name) in ("Crop", "SelfThinking")
    assert not any(tool.tier == "remote" for tool in choose_tools(("classical",), remote=remote))


def test_the_server_of_the_examples_works() -> None:
    expert = Path(__file__).parents[2] / "examples" / "tool_server" / "expert.py"
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with subprocess.Popen([sys.executable, expert, str(port)], stderr=subprocess.PIPE, text=True) as program:
        assert program.stderr is not None
        try:
            while "running on" not in program.stderr.readline():
                assert program.poll() is None
            tools = connect({"mine": RemoteServer(url=f"http://127.0.0.1:{port}/mcp")})
            (seen,), _ = ask(tools, [ToolCall("MeasureSize", {"image": "image-1", "factor": 2.0})])
        finally:
            program.terminate()
    assert seen.values == {"size": 2.0 * len(make_book().find("image-1").data)}


def test_no_more_is_held_at_once_than_there_is_room_for(local: list[Tool], monkeypatch: pytest.MonkeyPatch) -> None:
    """A request or an answer for which there is none finds a busy server, and its place is given back."""
    sent, headers = call_by_hand("Crop", CROP)
    with run_server([tool for tool in local if tool.name == "Crop"]) as url:
        for room, statuses in ((len(sent) - 1, {503}), (len(sent), {503}), (1 << 20, {200})):
            monkeypatch.setattr("vgbench_gen.agent.guard.MAX_HELD_BYTES", room)
            found = [httpx.post(url, content=sent, headers=headers) for _ in range(3)]
            assert {one.status_code for one in found} == statuses
            assert {one.headers["connection"] for one in found} == {"close"}
        assert httpx.post(url, content=iter([sent]), headers=headers).status_code == 503  # of any length


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
    box = Toolbox(choose_served(choose_tools(["classical"])))

    async def use() -> list[Any]:
        async with mcp.Client(make_mcp_server(box, 1, [folder])) as client:
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


def test_it_speaks_over_standard_input() -> None:
    command = ["-m", "vgbench_gen.cli", "agent", "serve", "--stdio", "--workers", "1"]
    program = mcp.StdioServerParameters(command=sys.executable, args=command, env=dict(os.environ))

    async def compute() -> Any:
        async with mcp.Client(program) as client:
            return (await client.call_tool("Calculate", {"expression": "6 * 7"})).structured_content

    assert asyncio.run(compute()) == {"result": 42}
