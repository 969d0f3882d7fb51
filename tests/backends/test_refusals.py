"""What is learned of a server's errors, and what of their words is shown, whatever their shape."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.backends.fixtures import request
from tests.backends.server import Play, Seen, Server, refusal, reply, serving
from vgbench_gen.backends import served
from vgbench_gen.backends._chat import Demands, Refusal, find_error_message
from vgbench_gen.backends.base import BackendError, Reply
from vgbench_gen.backends.batch import ask_all
from vgbench_gen.backends.spec import BackendOptions, open_backend

SENT = {"max_tokens": 64, "temperature": 0.0, "seed": 1, "stop": ("END",), "reasoning_effort": "low", "top_k": 1}


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setattr(served, "_FIRST_WAIT_S", 0.01)
    with serving() as running:
        yield running


def body(tree: object, status: int = 400) -> Play:
    return Play(status, json.dumps(tree).encode())


def error(message: str, **more: Any) -> dict[str, Any]:
    return {"error": {"message": message, **more}}


# Words as servers, gateways and validators put them, with what they are about.
REFUSALS: list[tuple[str, object]] = [
    ("temperature", error("temperature: only 1 is taken", param="temperature", code="unsupported_value")),
    ("temperature", error("Unsupported value: 'temperature'", param=None, code="400")),
    ("temperature", error("`temperature` is deprecated for this model")),
    ("temperature", error("invalid temperature: only 1 is allowed for this model")),
    ("temperature", error("o9 models do not support temperature=0.0. Only temperature=1 is supported.")),
    ("temperature", error("`temperature` may only be set to 1 when thinking is enabled.")),
    ("temperature", error("temperature must be 1")),
    ("temperature", error("`temperature` and `top_p` cannot both be specified for this model.")),
    ("temperature", error("Input validation error: `temperature` must be strictly positive")),
    ("temperature", {"detail": [{"type": "greater_than", "loc": ["body", "temperature"], "msg": "greater than 0"}]}),
    ("temperature", error("Invalid value", param="temperature")),
    ("seed", error("Unknown parameter: 'seed'.", param="seed", code="unknown_parameter")),
    ("seed", error("Unrecognized request argument supplied: seed")),
    ("seed", error('Invalid JSON payload received. Unknown name "seed": Cannot find field.', code=400)),
    (
        "seed",
        {"detail": [{"type": "extra_forbidden", "loc": ["body", "seed"], "msg": "Extra inputs are not permitted"}]},
    ),
    ("seed", {"message": {"detail": [{"loc": ["body", "seed"], "msg": "Extra inputs are not permitted"}]}}),
    ("seed", {"detail": "unknown field `seed`, expected one of `messages`, `model`, `temperature`, `max_tokens`"}),
    ("seed", {"message": "Additional properties are not allowed ('seed' was unexpected)"}),
    ("seed", error("litellm.UnsupportedParamsError: m does not support parameters: ['seed'], for model=m.")),
    (
        "seed",
        {"error": "[{'type': 'extra_forbidden', 'loc': ('body', 'seed'), 'msg': 'Extra inputs are not permitted'}]"},
    ),
    ("seed", {"errors": [{"message": "property 'seed' is unsupported"}]}),
    ("reasoning_effort", error("Extra inputs are not permitted: reasoning_effort")),
    (
        "reasoning_effort",
        error("1 validation error for Request\nreasoning_effort\n  Extra inputs are not permitted [x=1]"),
    ),
    ("reasoning_effort", error("Argument not supported on this model: reasoning_effort")),
    (
        "reasoning_effort",
        error("provider error", metadata={"raw": '{"message": "`reasoning_effort` isn\'t supported"}'}),
    ),
    ("stop", error("Model m does not support parameter stop.")),
    ("max_tokens", error("max_tokens is not supported, use max_completion_tokens instead")),
    ("max_tokens", error("Unsupported parameter: 'max_tokens'; 'max_completion_tokens' is taken")),
    ("seed", error('"seed" is not allowed')),
    ("seed", error("seed is not a supported parameter of this model")),
    ("seed", error("请求参数错误: 不支持seed参数")),
    ("temperature", error("Parameter temperature is invalid for this model")),
    # About a value, or about no parameter that may be left out.
    ("", error("'max_tokens' or 'max_completion_tokens' is too large: 64. The maximum context length is 32 tokens.")),
    ("", error("max_tokens: 64 > 32, which is the maximum allowed number of output tokens")),
    ("", error("max_tokens is above the maximum of 32; longer replies are not supported")),
    ("", error("not accepted" + " x" * 50 + " stop" + " y" * 60 + " maximum")),
    ("", error("decimal above maximum value: at most 2", param="temperature", code="decimal_above_max_value")),
    ("", error("Input should be 'low' or 'high'", param="reasoning_effort")),
    ("", error("The model `seedling` does not exist", param="model", code="model_not_found")),
    ("", error("unsupported content in messages", param="messages", code="unsupported_value")),
    ("", error("`top_k` is not supported")),
    ("", error("this was not accepted" + " and so on" * 20 + " stop")),
    ("", error("no")),
    ("", "Bad Request"),
]


@pytest.mark.parametrize(("name", "told"), REFUSALS, ids=[f"{name}-{k}" for k, (name, _) in enumerate(REFUSALS)])
def test_which_parameter_a_refusal_is_about(name: str, told: object) -> None:
    assert Demands().find_refused(Refusal(400, told, {}), SENT) == name
    assert not Demands().find_refused(Refusal(400, told, {}), {"top_k": 1})  # nothing of it was sent


@pytest.mark.parametrize("status", [200, 400, 422])
@pytest.mark.parametrize(("name", "told"), REFUSALS[:28:4])
def test_requests_under_way_are_sent_again_with_what_one_learned(
    server: Server, name: str, told: object, status: int
) -> None:
    server.behave = lambda seen: body(told, status) if name in seen.json else Play(body=reply().body, delay_s=0.01)
    sent = {"seed": 1, "stop": ("END",), "reasoning_effort": "low"}
    backend = open_backend(f"vllm:{server.url}#m", BackendOptions(retries=0, concurrency=16))
    outcomes = ask_all(backend, [request(str(k), **sent) for k in range(32)])
    assert [type(outcome) for outcome in outcomes] == [Reply] * 32
    assert name not in server.seen[-1].json
    assert ("max_completion_tokens" in server.seen[-1].json) == (name == "max_tokens")
    assert server.requests <= 32 + 16


def test_a_server_that_takes_nothing_is_asked_for_each_parameter_once(server: Server) -> None:
    def behave(seen: Seen) -> Play:
        left = [name for name in (*SENT, "max_completion_tokens") if name in seen.json and name != "top_k"]
        return refusal(400, f"Unknown parameter: {left[0]!r}") if left else refusal(400, "Unknown parameter: 'model'")

    server.behave = behave
    settings = {name: SENT[name] for name in ("max_tokens", "temperature", "seed", "stop", "reasoning_effort")}
    (outcome,) = ask_all(open_backend(f"vllm:{server.url}#m", BackendOptions(retries=5)), [request("x", **settings)])
    assert isinstance(outcome, BackendError)
    assert "'model'" in outcome.message
    assert server.requests == 7  # with every parameter less, and with the other name of the limit
    assert {"model", "messages"} == set(server.seen[-1].json)


def test_one_that_always_says_the_same_is_asked_with_less_and_less(server: Server) -> None:
    said = "temperature and seed are unsupported, and so is stop"
    server.behave = lambda seen: refusal(400, said) if {"temperature", "seed", "stop"} & set(seen.json) else reply()
    backend = open_backend(f"vllm:{server.url}#m", BackendOptions(retries=0))
    (outcome,) = ask_all(backend, [request("x", seed=1, stop=("END",))])
    assert isinstance(outcome, Reply)
    assert server.requests == 4


def test_a_parameter_that_was_not_at_fault_is_sent_again(server: Server) -> None:
    server.behave = lambda seen: refusal(400, "unknown image; temperature 0") if "bad" in seen.text else reply()
    backend = open_backend(f"vllm:{server.url}#m", BackendOptions(retries=0))
    outcomes = ask_all(backend, [request("bad")]) + ask_all(backend, [request("good")])
    assert [type(outcome) for outcome in outcomes] == [BackendError, Reply]
    assert server.requests == 3
    assert "temperature" in server.seen[-1].json


PAGE = (
    b"<!DOCTYPE html>\n<html><head><title>Sign in &amp;\n wait</title></head><body>" + b"x" * 5000 + b"</body></html>"
)
# Where the words of an error stand, and what of them is shown.
SHAPES: list[tuple[object, str]] = [
    ({"error": "the words"}, "the words"),
    ({"error": {"message": "the words", "code": 400}}, "the words"),
    ({"object": "error", "message": "the words", "type": "BadRequest"}, "the words"),
    ({"detail": "the words"}, "the words"),
    (
        {"detail": [{"loc": ["body", "messages", 0], "msg": "the words", "type": "missing"}]},
        "body.messages.0: the words",
    ),
    ({"errors": [{"message": "the"}, {"message": "words"}]}, "the: words"),
    ({"errors": {"title": "the words"}}, "the words"),
    (error("provider error", metadata={"raw": '{"message": "the words"}'}), "provider error: the words"),
    (error("provider error", metadata={"raw": '{"error": {"message": "the words"}}'}), "provider error: the words"),
    (error("provider error", metadata={"raw": "the words"}), "provider error: the words"),
    ({"choices": [{"error": {"message": "the words"}, "finish_reason": "error"}]}, "the words"),
    ({"choices": [], "message": "the words"}, "the words"),
    ({"base_resp": {"status_code": 1004, "status_msg": "the words"}}, "the words"),
    ({"error": {"code": 17}}, "{'code': 17}"),
    ({"error": "a\x1b[2J\nb\u202e"}, "a [2J b"),
    ("the words", "the words"),
    ({"error": '{"error": {"message": "the words"}}'}, "the words"),
]


@pytest.mark.parametrize("status", [200, 400, 502])
@pytest.mark.parametrize(("told", "shown"), SHAPES, ids=[str(k) for k in range(len(SHAPES))])
def test_the_words_of_an_error_are_shown_in_whatever_shape_it_comes(
    server: Server, told: object, shown: str, status: int
) -> None:
    server.behave = lambda seen: body(told, status)
    (outcome,) = ask_all(open_backend(f"vllm:{server.url}#m", BackendOptions(retries=0)), [request("x")])
    assert isinstance(outcome, BackendError)
    assert shown in outcome.message or (isinstance(told, str) and status == 200)  # JSON that is no object
    assert outcome.message.isprintable()
    assert len(outcome.message) < 500


@pytest.mark.parametrize("status", [200, 404, 502])
@pytest.mark.parametrize(
    ("data", "kind", "shown"),
    [
        (PAGE, "text/html; charset=utf-8", "a web page answered, entitled 'Sign in & wait'"),
        (b"<html>nothing</html>", "text/html", "a web page answered"),
        (b"upstream gone", "text/plain", "upstream gone"),
        (b'{"error": "the words"}', "text/plain", "the words"),
        (b"", "text/plain", "an empty body"),
        (b"", "", "an empty body"),
    ],
)
def test_pages_texts_and_nothing_are_told_apart(
    server: Server, data: bytes, kind: str, shown: str, status: int
) -> None:
    server.behave = lambda seen: Play(status, data, {"content-type": kind})
    (outcome,) = ask_all(open_backend(f"vllm:{server.url}#m", BackendOptions(retries=0)), [request("x")])
    assert isinstance(outcome, BackendError)
    assert shown in outcome.message


def test_an_error_in_a_replys_clothes_means_what_its_own_status_says(server: Server) -> None:
    server.behave = lambda seen: body(error("the key is no good", code=401), 200)
    (outcome,) = ask_all(open_backend(f"vllm:{server.url}#m", BackendOptions(retries=2)), [request("x")])
    assert isinstance(outcome, BackendError)
    assert (outcome.kind, server.requests) == ("refused_key", 1)


def test_words_are_found_in_what_is_deep_long_or_odd() -> None:
    deep: Any = "x"
    for _ in range(5000):
        deep = {"error": [deep]}
    odds: list[Any] = [
        deep,
        {"message": None},
        {"error": [None, 1, {}]},
        [[]],
        {},
        None,
        3,
        "<title>" * 100_000,
        "\x00",
    ]
    for odd in odds:
        assert isinstance(find_error_message(odd), str)
