"""Tools over HTTP: the same results as here, and what hostile callers and hostile servers can do."""

from __future__ import annotations

import asyncio
import base64
import json
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

from tests.agent.cores import END, Core, make_agent, step
from tests.agent.servers import Misbehaving, announce, make_response, run_server
from vgbench_gen.agent.announced import (
    MAX_ANNOUNCEMENT_BYTES,
    MAX_REQUEST_BYTES,
    MAX_VALUES,
    AnnouncedTool,
    announce_tool,
    make_arguments,
)
from vgbench_gen.agent.calls import ToolCall
from vgbench_gen.agent.images import ImageBook
from vgbench_gen.agent.remote import connect
from vgbench_gen.agent.results import ResultCache
from vgbench_gen.agent.setup import RemoteServer
from vgbench_gen.agent.tool import Tool
from vgbench_gen.agent.tool import tools as registry
from vgbench_gen.agent.tool_server import ServedTools, ToolGuard, ToolServer, choose_served
from vgbench_gen.agent.toolbox import Observation, Toolbox, choose_tools
from vgbench_gen.backends.base import ImagePart, Message, Settings, TextPart
from vgbench_gen.core.errors import ConfigError
from vgbench_gen.report.trace_page import make_trace_page
from vgbench_gen.store.pictures import encode_jpeg

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
    box, book = Toolbox(chosen, kept=kept), make_book()

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
        told = AnnouncedTool.model_validate_json(announce_tool(tool, "state").model_dump_json())
        arguments = make_arguments(told)
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


@pytest.mark.parametrize(
    ("path", "sent", "headers", "status"),
    [
        ("/tools/Crop", b"{" + b" " * MAX_REQUEST_BYTES + b"}", {}, 413),
        ("/tools/Crop", b"[1]", {}, 400),
        ("/tools/Crop", b"[" * 100_000, {}, 400),
        ("/tools/Crop", b'{"arguments": 3}', {}, 400),
        ("/tools/Crop", b'{"arguments": {"bbox": [' + b'{"a":1},' * (MAX_VALUES // 2) + b"1]}}", {}, 400),
        ("/tools/Crop", b'{"arguments": {"bbox": [' + b"{}," * (MAX_VALUES // 3) + b"1]}}", {}, 200),
        ("/tools/Crop", b'{"arguments": {}, "images": ["../../etc/passwd"]}', {}, 400),
        ("/tools/Crop", b'{"arguments": {}, "images": ["' + base64.b64encode(b"no image") + b'"]}', {}, 400),
        ("/tools/Crop", json.dumps({"arguments": {}, "images": [PICTURE] * 9}).encode(), {}, 400),
        ("/tools/Terminate", b"{}", {}, 404),
        ("/tools/..%2f..%2fetc%2fpasswd", b"{}", {}, 404),
        ("/tools/Crop", b"{}", {"content-type": "text/plain"}, 415),
        ("/tools/Crop", b"{}", {"host": "evil.example"}, 421),
        ("/tools/Crop", b"{}", {"origin": "http://evil.example"}, 403),
        ("/tools/Crop", b"{}", {"authorization": ""}, 401),
        ("/tools/Crop", b"{}", {"authorization": f"Bearer {TOKEN}x"}, 401),
        ("/tools/Crop", b"{}", {"authorization": f"Basic {TOKEN}"}, 401),
    ],
)
def test_hostile_callers_are_turned_away(
    guarded: str, path: str, sent: bytes, headers: dict[str, str], status: int
) -> None:
    given = {"content-type": "application/json", "authorization": f"Bearer {TOKEN}"} | headers
    found = httpx.post(f"{guarded}{path}", content=sent, headers=given)
    assert (found.status_code, TOKEN in found.text) == (status, False)
    assert status != 200 or found.json()["failure"] == "wrong_arguments"


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
        ToolGuard(ToolServer(ServedTools(Toolbox([]), 1)), any_host=True)


def test_connections_that_never_ask_hold_no_place(guarded: str) -> None:
    """More half-open ones than the server takes: they are closed, and others are answered again."""
    host, _, port = guarded.removeprefix("http://").partition(":")
    idle = [socket.create_connection((host, int(port))) for _ in range(64)]
    for connection in idle:
        connection.sendall(b"POST /tools/Crop HTTP/1.1\r\nHost: 127")
    headers = {"authorization": f"Bearer {TOKEN}"}
    deadline_s = time.monotonic() + 10
    while httpx.get(f"{guarded}/tools", headers=headers).status_code != 200:
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


GOOD = {"values": {"length": 2.5}, "version": "1", "checksum": "abc"}


@pytest.mark.parametrize(
    ("response", "failure", "said"),
    [
        (make_response(GOOD), "", ""),
        (make_response(b'"' + b"x" * (33 << 20) + b'"'), "tool_error", "more than"),
        (make_response(b"<html>"), "tool_error", "no JSON"),
        (make_response(b"[" * 90_000), "tool_error", "no JSON"),
        (make_response(b'{"values":{"v":[' + b'{"a":1},' * MAX_VALUES + b"1]}}"), "tool_error", "values; at most"),
        (make_response(b'{"values":{"v":[' + b"[]," * MAX_VALUES + b"1]}}"), "tool_error", "values; at most"),
        (make_response(b'{"values":{' + b'"a":1,' * MAX_VALUES + b'"b":1}}'), "tool_error", "values; at most"),
        (make_response(b'{"values":{"v":NaN},"version":"1","checksum":"abc"}'), "tool_error", "NaN"),
        (
            make_response(b'{"values":{"v":' + b"9" * 5000 + b'},"version":"1","checksum":"abc"}'),
            "tool_error",
            "no JSON",
        ),
        (make_response(GOOD | {"values": {f"k{k}": 1 for k in range(1001)}}), "tool_error", "another form"),
        (make_response(GOOD | {"images": [make_png(8000, 8001)]}), "tool_error", "no JPEG"),
        (make_response([GOOD]), "tool_error", "another form"),
        (make_response(GOOD | {"values": 3}), "tool_error", "another form"),
        (make_response(GOOD | {"extra": 3}), "tool_error", "another form"),
        (make_response(GOOD | {"values": {"text": "x" * (2 << 20)}}), "tool_error", "larger than"),
        (make_response(b'{"values": {"n": 1e999}, "version": "1", "checksum": "abc"}'), "tool_error", ""),
        (make_response(GOOD | {"images": ["/etc/passwd"]}), "tool_error", "no JPEG"),
        (make_response(GOOD | {"images": [base64.b64encode(b"GIF89a").decode()]}), "tool_error", "no JPEG"),
        (make_response(GOOD | {"checksum": "abd"}), "tool_error", "changed"),
        (make_response(GOOD | {"failure": "tool_error", "message": "\x1b[2Jno"}), "tool_error", "[2Jno"),
        (make_response(GOOD | {"failure": "timeout", "message": "slow"}), "timeout", "slow"),
        (make_response(GOOD, "302 Found", "location: http://127.0.0.1:9/"), "tool_error", "302"),
        (make_response(GOOD, "500 Oops"), "tool_error", "500"),
        (make_response(b"\x1f\x8b", "200 OK", "content-encoding: gzip"), "tool_error", "packs"),
        (make_response(GOOD)[:-9], "tool_error", "broke off"),  # as where it is killed during a call
        (b"", "tool_error", "broke off"),
    ],
)
def test_what_a_server_replies_costs_no_more_than_the_observation(response: bytes, failure: str, said: str) -> None:
    server = Misbehaving(lambda line: make_response(announce()) if line.startswith("GET") else response)
    with server.run() as url:
        tools = connect({"lab": RemoteServer(url=url)})
        (seen,), _ = ask(tools, [ToolCall("Measure", {"image": "image-1"})])
    assert seen.failure == failure, seen.message
    assert said in seen.message
    assert "\x1b" not in seen.message
    assert dict(seen.values) == ({} if failure else {"length": 2.5})
    # A refusal of the tool itself is kept, and a result that is too large; all else may pass.
    assert seen.is_passing == (failure == "tool_error" and said not in ("[2Jno", "larger than"))


def test_a_slow_server_and_one_that_is_gone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("vgbench_gen.agent.remote._MARGIN_S", 0.1)
    monkeypatch.setattr("vgbench_gen.agent.remote._WAITS_S", (0.01,))

    def answer(line: str) -> bytes:
        if line.startswith("POST"):
            time.sleep(1.0)
        return make_response(announce() if line.startswith("GET") else GOOD)

    call, kept = ToolCall("Measure", {"image": "image-1"}), ResultCache(tmp_path / "tools")
    server = Misbehaving(answer)
    with server.run() as url:
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
    elsewhere = Misbehaving(lambda line: make_response(announce()))
    with elsewhere.run() as other:
        here = Misbehaving(lambda line: make_response(b"", "307 Away", f"location: {other}/tools"))
        with here.run() as url, pytest.raises(ConfigError, match="307"):
            connect({"lab": RemoteServer(url=url, token_env="LAB_TOKEN")})
    assert f"authorization: Bearer {TOKEN}" in here.seen[0].replace("Authorization", "authorization")
    assert elsewhere.seen == []


@pytest.mark.parametrize(
    "changes",
    [
        {"name": "Mea\x1b[2Jsure"},
        {"name": "../Measure"},
        {"does": "a\x1b]0;title\x07b"},
        {"does": "x" * 3000},
        {"aliases": ["a b"]},
        {"checksum": ""},
        {"required": ["image", "other"]},
        {"arguments": {"json": {"type": "string", "description": "shadows ours"}}, "required": []},
        {"arguments": {"image": {"type": "file"}}},
        {"arguments": {"image": {"type": "string", "description": "a\nb"}}},
        {"arguments": {"image": {"$ref": "http://127.0.0.1/x"}}},
        {"arguments": {"image": {"type": "string"}, "n": {"type": "integer", "default": "five"}}},
        {"arguments": {"image": {"type": "array", "items": {"type": "array", "items": {"enum": 3}}}}},
        {"arguments": {"image": json.loads('{"type":"array","items":' * 50 + '{"type":"number"}' + "}" * 50)}},
        {"arguments": {"image": {"type": "string", "$ref": "#"}, "n": {"$ref": "file:///etc/passwd"}}},
        {"arguments": {"image": {"enum": ["a"] * MAX_VALUES}}},
        {"arguments": {"image": {"enum": ["a"] * 5000}}},
        {"arguments": {"image": {"anyOf": [{"type": "number"}] * 5000}}},
        {"arguments": {"image": {"anyOf": 3}}},
        {"arguments": {"image": {"type": "string"}} | {f"a{k}": {"type": "number"} for k in range(40)}},
        {"arguments": {"image": {"type": "string"}, "n": {"type": "number", "minimum": "a"}}},
        {"arguments": {"image": {"type": "string"}, "n": {"type": "integer", "default": 10**3000}}},
        {"arguments": {"image": {"type": "string"}, "model_config": {"type": "string"}}},
        {"arguments": {"image": {"type": "string"}, "__init__": {"type": "string"}}},
        {"example": {"image": "x" * 3000}},
        {"timeout_s": 1e9},
        {"extra": 1},
        b'{"protocol": 1, "tools": [' + b"{}," * 20_000 + b"{}]}",
        b'{"protocol": 1, "tools": [' + b"{}," * MAX_VALUES + b"{}]}",
        b'{"protocol": ' + b"9" * 5000 + b"}",
        b'{"protocol": 1, "tools": NaN}',
        b" " * (MAX_ANNOUNCEMENT_BYTES + 1),
        b"<!DOCTYPE html><html>",
        json.dumps({"protocol": 1, "tools": announce()["tools"] * 2}).encode(),
        json.dumps({"protocol": 1, "tools": [announce()["tools"][0] | {"name": f"T{k}"} for k in range(101)]}).encode(),
        json.dumps(announce() | {"workers": 10**9}).encode(),
        json.dumps(announce() | {"protocol": 2}).encode(),
    ],
)
def test_an_announcement_that_cannot_be_used_is_refused_in_a_line(changes: dict[str, Any] | bytes) -> None:
    told = changes if isinstance(changes, bytes) else announce(**changes)
    with Misbehaving(lambda line: make_response(told)).run() as url, pytest.raises(ConfigError) as caught:
        connect({"lab": RemoteServer(url=url)})
    assert str(caught.value).isprintable()
    assert "[remote.lab]" in str(caught.value)
    assert len(str(caught.value)) < 500


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
    told = {"arguments": {"n": schema | {"description": "d"}}, "required": [] if "default" in schema else ["n"]}
    arguments = make_arguments(AnnouncedTool.model_validate_json(json.dumps(announce(**told)["tools"][0])))
    for value in right:
        assert arguments.model_validate_json(json.dumps({"n": value})).model_dump(mode="json") == {"n": value}
    for value in wrong:
        with pytest.raises(ValueError, match="n"):
            arguments.model_validate_json(json.dumps({"n": value}))
    if "default" in schema:
        assert arguments.model_validate_json("{}").model_dump() == {"n": schema["default"]}


@pytest.mark.parametrize("place", ["message", "values", "keys", "base64", "wrapped", "description", "image"])
def test_a_token_that_a_server_repeats_is_covered(place: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("LAB_TOKEN", TOKEN)
    said = {
        "message": GOOD | {"values": {}, "failure": "tool_error", "message": f"your Bearer {TOKEN}"},
        "keys": GOOD | {"values": {TOKEN: {TOKEN: 1}}},
        "base64": GOOD | {"values": {"v": base64.b64encode(f"x:{TOKEN}!".encode()).decode()}},
        "wrapped": GOOD | {"values": {"v": f"{TOKEN[:8]}\n{TOKEN[8:]}"}},
        "image": GOOD | {"values": {"image": TOKEN}, "images": [PICTURE]},
    }.get(place, GOOD | {"values": {"v": [f"Authorization: Bearer {TOKEN}", {"of": TOKEN}]}})
    told = announce(does=f"Measures for {TOKEN}.") if place == "description" else announce()
    setup, core = tmp_path / "setup.toml", Core([step("Measure", image="image-0"), END])
    with Misbehaving(lambda line: make_response(told if line.startswith("GET") else said)).run() as url:
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
    tools = [announce()["tools"][0] | {"name": name, "aliases": aliases} for name, aliases in (
        ("Measure", ["crop", "SelfReasoning"]), ("calculate", []), ("MatchImagesSIFT", []),
    )]  # fmt: skip
    with Misbehaving(lambda line: make_response({"protocol": 1, "tools": tools})).run() as url:
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
    with subprocess.Popen([sys.executable, expert], stdout=subprocess.PIPE, text=True) as program:
        assert program.stdout is not None
        try:
            tools = connect({"mine": RemoteServer(url=program.stdout.readline().strip())})
            (seen,), _ = ask(tools, [ToolCall("MeasureSize", {"image": "image-1", "factor": 2.0})])
        finally:
            program.terminate()
    assert seen.values == {"size": 2.0 * len(make_book().find("image-1").data)}


def test_no_more_is_held_at_once_than_there_is_room_for(local: list[Tool], monkeypatch: pytest.MonkeyPatch) -> None:
    """A request or an answer for which there is none finds a busy server, and its place is given back."""
    sent = json.dumps({"arguments": {"image": "image-0", "bbox": [0, 0, 1, 1]}, "images": [PICTURE]}).encode()
    headers = {"content-type": "application/json"}
    with run_server([tool for tool in local if tool.name == "Crop"]) as url:
        for room, statuses in ((len(sent) - 1, {503}), (len(sent), {503}), (1 << 20, {200})):
            monkeypatch.setattr("vgbench_gen.agent.tool_server.MAX_HELD_BYTES", room)
            found = [httpx.post(f"{url}/tools/Crop", content=sent, headers=headers) for _ in range(3)]
            assert {one.status_code for one in found} == statuses
            assert {one.headers["connection"] for one in found} == {"close"}
        assert (
            httpx.post(f"{url}/tools/Crop", content=iter([sent]), headers=headers).status_code == 503
        )  # of any length
