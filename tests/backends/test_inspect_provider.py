"""`inspect:PROVIDER/MODEL`, with the real package where it is installed (`tools/inspect.sh` installs it)."""

from __future__ import annotations

import gc
import importlib.util
from pathlib import Path

import pytest

from tests.backends.fixtures import picture, request
from tests.backends.server import Play, Seen, Server, refusal, reply, serving
from vgbench_gen.backends.base import Backend, BackendError, ImagePart, Message, Reply, Request, Settings, TextPart
from vgbench_gen.backends.batch import ask_all
from vgbench_gen.backends.spec import BackendOptions, open_backend, providers
from vgbench_gen.core.errors import ConfigError

KEY = "sk-loopback-31c0ffee5eed"
real = pytest.mark.skipif(
    importlib.util.find_spec("inspect_ai") is None, reason="no inspect_ai here; `bash tools/inspect.sh` installs it"
)


def opened(server: Server, monkeypatch: pytest.MonkeyPatch, **options: object) -> Backend:
    monkeypatch.setenv("LOOP_API_KEY", KEY)
    return open_backend(
        "inspect:openai-api/loop/m", BackendOptions.model_validate({"base_url": server.url, "retries": 1, **options})
    )


def test_without_the_package_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ConfigError, match=r"needs inspect_ai.*vgbench-gen\[inspect\]"):
        open_backend("inspect:anthropic/NAME")


@pytest.mark.parametrize("model", ["gpt-4o", "/gpt-4o", "openai/"])
def test_a_model_without_its_provider_is_refused(model: str) -> None:
    with pytest.raises(ConfigError, match="expected inspect:PROVIDER/MODEL"):
        open_backend(f"inspect:{model}")


def test_it_is_listed_with_its_extra() -> None:
    needs = providers["inspect"].needs("inspect")
    assert (needs.example, needs.extra, needs.packages) == ("inspect:PROVIDER/MODEL", "inspect", ("inspect_ai",))


@real
def test_what_is_sent_is_what_our_own_client_sends(monkeypatch: pytest.MonkeyPatch) -> None:
    parts = (TextPart("Image-1: "), ImagePart(picture()), ImagePart(picture(30, 20, "PNG")), TextPart("Which?"))
    settings = Settings(system="Answer briefly.", max_tokens=77, seed=5, stop=("\n",), extra_body={"top_k": 3})
    asked = [Request((Message("user", parts),), settings), request("words alone", temperature=None)]
    with serving() as server:
        for backend in (opened(server, monkeypatch), open_backend(f"vllm:{server.url}#m")):
            outcomes = ask_all(backend, asked)
            assert [getattr(one, "text", one) for one in outcomes] == ["B", "B"]
        theirs, ours = ([seen.json for seen in server.seen[k : k + 2]] for k in (0, 2))
    for mine in ours:
        for message in mine["messages"]:
            if isinstance(message["content"], list):
                for part in message["content"]:
                    if part["type"] == "image_url":
                        part["image_url"]["detail"] = "auto"  # OpenAI's default, which inspect_ai spells out
    by_words = [sorted(bodies, key=lambda body: str(body)) for bodies in (theirs, ours)]
    assert by_words[0] == by_words[1]


@real
def test_a_reply_with_what_it_used(monkeypatch: pytest.MonkeyPatch) -> None:
    told = {
        "prompt_tokens": 90,
        "completion_tokens": 8,
        "total_tokens": 98,
        "prompt_tokens_details": {"cached_tokens": 40},
    }
    with serving(lambda seen: reply("C", finish_reason="length", usage=told)) as server:
        (answer,) = ask_all(opened(server, monkeypatch), [request("x", ImagePart(picture(64, 48)))])
    assert isinstance(answer, Reply)
    assert (answer.text, answer.finish_reason, answer.model) == ("C", "length", "played")
    assert answer.usage is not None
    assert (answer.usage.prompt_tokens, answer.usage.completion_tokens, answer.usage.cached_tokens) == (90, 8, 40)
    assert answer.image_sizes_px == ((64, 48),)
    assert answer.cost_usd is None


@real
@pytest.mark.parametrize(
    ("status", "kind", "requests"), [(500, "api_error", 2), (400, "wrong_request", 1), (401, "refused_key", 1)]
)
def test_an_attempt_is_one_request_and_no_message_holds_the_key(
    status: int, kind: str, requests: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving(lambda seen: refusal(status, f"not with {KEY}")) as server:
        (error,) = ask_all(opened(server, monkeypatch), [request("x")])
    assert isinstance(error, BackendError)
    assert (error.kind, server.requests) == (kind, requests)
    assert f"({status})" in str(error)
    assert KEY not in str(error)


@real
def test_too_many_requests_slow_down_and_the_reply_still_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    def behave(seen: Seen) -> Play:
        return refusal(429) if seen.number == 0 else reply("A")

    with serving(behave) as server:
        backend = opened(server, monkeypatch)
        (answer,) = ask_all(backend, [request("x")])
        tally = backend.tally
    assert isinstance(answer, Reply)
    assert (answer.text, answer.attempts, tally.slowed) == ("A", 2, 1)


@real
def test_kept_replies_need_neither_server_nor_key(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with serving() as server:
        first = ask_all(opened(server, monkeypatch, cache=tmp_path / "kept.sqlite"), [request("x")])
        url = server.url
    monkeypatch.delenv("LOOP_API_KEY")
    options = BackendOptions(base_url=url, cache=tmp_path / "kept.sqlite")
    (again,) = ask_all(open_backend("inspect:openai-api/loop/m", options), [request("x")])
    assert isinstance(first[0], Reply)
    assert isinstance(again, Reply)
    assert again.cached
    assert again.text == first[0].text


@real
def test_a_key_that_is_missing_is_told_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LOOP_API_KEY", raising=False)
    backend = open_backend("inspect:openai-api/loop/m", BackendOptions(base_url="http://127.0.0.1:9/v1"))
    with pytest.raises(ConfigError, match="LOOP_API_KEY"):
        ask_all(backend, [request("x")])
    with pytest.raises(ConfigError, match="nonsense"):
        ask_all(open_backend("inspect:nonsense/x"), [request("x")])


@real
def test_images_of_requests_that_are_over_are_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    from inspect_ai.event import ModelEvent

    most = 0

    def behave(seen: Seen) -> Play:
        nonlocal most
        gc.collect()
        events = [one for one in gc.get_objects() if type(one) is ModelEvent]
        most = max(most, sum(bool(one.input) or one.call is not None for one in events))
        return reply()

    with serving(behave) as server:
        backend = opened(server, monkeypatch, concurrency=1)
        ask_all(backend, [request(f"question {k}", ImagePart(picture(shade=k))) for k in range(12)])
    assert 0 < most <= 3
