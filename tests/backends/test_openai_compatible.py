"""Chat completions against a server on loopback that fails in every way it can."""

from __future__ import annotations

import asyncio
import base64
import email.utils
import json
import os
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.backends.fixtures import picture, request
from tests.backends.server import Play, Server, refusal, reply, serving
from vgbench_gen.backends import _http, _keys, served
from vgbench_gen.backends.base import BackendError, ImagePart, Message, Reply, Settings, TextPart, Usage
from vgbench_gen.backends.batch import ask_all
from vgbench_gen.backends.openai_compatible import OpenAICompatible
from vgbench_gen.backends.served import Served
from vgbench_gen.backends.spec import BackendOptions, open_backend
from vgbench_gen.core.errors import ConfigError, UnknownNameError

HTML = Play(body=b"<html>Sign in</html>", headers={"content-type": "text/html"})


@pytest.fixture
def server() -> Iterator[Server]:
    with serving() as running:
        yield running


@pytest.fixture(autouse=True)
def quick_and_bare(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(served, "_FIRST_WAIT_S", 0.01)
    for name in list(os.environ):
        if name.startswith(("OPENAI_", "AZURE_", "TRAPI_", "DEEPSEEK_", "VLLM_", "OLLAMA_")) or "proxy" in name.lower():
            monkeypatch.delenv(name)


def opened(server: Server, spec: str = "", **options: Any) -> Served:
    defaults: dict[str, Any] = {"retries": 2, "timeout_s": 20.0}
    backend = open_backend(spec or f"vllm:{server.url}#name", BackendOptions.model_validate(defaults | options))
    assert isinstance(backend, Served)
    return backend


def play(server: Server, *plays: Play) -> None:
    """These in turn, then proper replies."""
    start = server.requests

    def behave(seen: Any) -> Play:
        number = seen.number - start
        return plays[number] if number < len(plays) else reply()

    server.behave = behave


def ask(backend: Served, *requests: Any) -> Any:
    return ask_all(backend, requests or [request("Which?")])[0]


def test_a_prompt_goes_out_as_it_was_given_and_the_answer_comes_back_whole(server: Server, tmp_path: Path) -> None:
    jpeg, png = picture(), picture(800, 400, "PNG")
    (tmp_path / "a.jpg").write_bytes(jpeg)
    play(server, reply("Ω B", usage={"prompt_tokens": 9, "completion_tokens": 4, "prompt_cache_hit_tokens": 3}))
    message = Message("user", (TextPart("1: “a”"), ImagePart(tmp_path / "a.jpg"), TextPart("2:"), ImagePart(png, 200)))
    settings = Settings(system="Be\nshort.", seed=3, stop=("END",), max_tokens=7, extra_body={"top_k": 1})

    found = asyncio.run(opened(server).ask([message], settings))

    sent = server.seen[0]
    assert sent.path == "/v1/chat/completions"
    assert {k: v for k, v in sent.json.items() if k != "messages"} == {
        "model": "name", "max_tokens": 7, "temperature": 0.0, "seed": 3, "stop": ["END"], "top_k": 1,
    }  # fmt: skip
    system, user = sent.json["messages"]
    assert system == {"role": "system", "content": "Be\nshort."}
    kinds = [part["type"] for part in user["content"]]
    assert kinds == ["text", "image_url", "text", "image_url"]
    first, second = (part["image_url"]["url"] for part in user["content"] if part["type"] == "image_url")
    assert first == "data:image/jpeg;base64," + base64.b64encode(jpeg).decode()
    assert second.startswith("data:image/png;base64,")
    assert user["content"][0]["text"] == "1: “a”"
    assert found.image_sizes_px == ((64, 48), (200, 100))
    assert (found.text, found.model, found.finish_reason) == ("Ω B", "played", "stop")
    assert found.usage is not None
    assert (found.usage.prompt_tokens, found.usage.completion_tokens, found.usage.cached_tokens) == (9, 4, 3)
    assert found.parameters["top_k"] == 1
    assert found.raw["choices"][0]["message"]["content"] == "Ω B"


def test_words_alone_go_out_as_a_string(server: Server) -> None:
    ask(opened(server))
    assert server.seen[0].json["messages"] == [{"role": "user", "content": "Which?"}]


@pytest.mark.parametrize(
    "bad",
    [
        refusal(500),
        refusal(503, headers={"retry-after": "0"}),
        refusal(429, headers={"retry-after": "0.01"}),
        refusal(429, headers={"retry-after-ms": "10"}),
        refusal(408),
        HTML,
        Play(body=b'{"choices": [{"mess'),
        Play(body=b"[" * 200_000),
        Play(body=b"[1]"),
        reply(choices=[]),
        reply(choices=[{"index": 0}]),
        reply(choices="B"),
        reply(error={"message": "overloaded"}),
        Play(cut="before"),
        Play(body=reply().body, cut="middle"),
        Play(body=b"\x1f\x8b", headers={"content-encoding": "gzip"}),
    ],
)
def test_a_stumble_is_tried_again(server: Server, bad: Play) -> None:
    play(server, bad)
    found = ask(opened(server))
    assert isinstance(found, Reply), found
    assert (found.text, found.attempts, server.requests) == ("B", 2, 2)


@pytest.mark.parametrize(
    ("bad", "kind", "said"),
    [
        (refusal(400, "no such field"), "wrong_request", "no such field"),
        (refusal(404, "no such model"), "wrong_request", "no such model"),
        (refusal(401, "bad key"), "refused_key", "Check the key"),
        (refusal(403, "not yours"), "refused_key", "not yours"),
        (refusal(402, "Insufficient Balance"), "api_error", "nothing is left"),
        (refusal(429, "quota", code="insufficient_quota"), "api_error", "nothing is left"),
        (refusal(429, headers={"retry-after": "4000"}), "api_error", "4000 s"),
        (Play(307, headers={"location": "http://127.0.0.1:9/other"}), "wrong_request", "--base-url"),
        (Play(body=b"x" * 1000, headers={"content-length": str(1 << 40)}), "bad_reply", "larger than"),
    ],
)
def test_what_another_try_would_not_mend_is_said_at_once(server: Server, bad: Play, kind: str, said: str) -> None:
    play(server, bad)
    found = ask(opened(server))
    assert isinstance(found, BackendError)
    assert found.kind == kind
    assert said in found.message
    assert server.requests == 1


def test_a_reply_without_end_is_cut_off(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_http, "MAX_REPLY_BYTES", 10_000)
    # Longer than it says: the bound must hold for what comes, not for what was promised.
    body = b"1388\r\n" + b" " * 5000 + b"\r\n"
    play(server, Play(body=body * 4 + b"0\r\n\r\n", headers={"transfer-encoding": "chunked", "content-length": ""}))
    found = ask(opened(server))
    assert isinstance(found, BackendError)
    assert (found.kind, server.requests) == ("bad_reply", 1)


def test_a_slow_server_is_not_waited_for(server: Server) -> None:
    server.behave = lambda seen: Play(body=reply().body, delay_s=30)
    backend = opened(server, timeout_s=0.2, retries=1)
    found = ask(backend)
    assert isinstance(found, BackendError)
    # Counted here: on a busy machine a request may be given up before the server has seen it.
    assert (found.kind, backend.tally.requests) == ("timeout", 2)


def test_nobody_home_is_one_line() -> None:
    backend = open_backend("vllm:http://127.0.0.1:9/v1#name", BackendOptions(retries=0, budget_tokens=10_000))
    found = ask_all(backend, [request("x")])[0]
    assert isinstance(found, BackendError)
    assert "connect" in found.message.lower()
    assert backend.tally.tokens == 0  # nothing was sent, so nothing was charged


def test_a_reply_without_usage_is_a_reply(server: Server) -> None:
    play(server, reply(usage=None, model=None), reply(usage={"prompt_tokens": "many", "completion_tokens": -1}))
    found, other = ask_all(opened(server, concurrency=1), [request("a"), request("b")])
    assert isinstance(found, Reply)
    assert isinstance(other, Reply)
    assert (found.usage, other.usage, found.model) == (None, None, "name")


@pytest.mark.parametrize(
    "bad",
    [
        reply("", finish_reason="content_filter"),
        reply("half", finish_reason="content_filter"),
        reply(""),
        reply("  \n"),
        refusal(400, "filtered", code="content_filter"),
        refusal(403, "flagged", metadata={"reasons": ["violence"]}),
    ],
)
def test_filtered_and_empty_replies_are_given_but_not_kept(server: Server, tmp_path: Path, bad: Play) -> None:
    play(server, bad, reply("now"))
    backend = opened(server, cache=tmp_path / "cache.sqlite")
    first = ask(backend)
    assert isinstance(first, Reply), first
    assert not first.text.strip() or first.finish_reason == "content_filter"
    assert [ask(backend).text, ask(backend).text, server.requests] == ["now", "now", 2]


def test_what_a_model_demands_is_learned_once(server: Server) -> None:
    def behave(seen: Any) -> Play:
        if "max_tokens" in seen.json:
            return refusal(400, "use max_completion_tokens", param="max_tokens", code="unsupported_parameter")
        if "temperature" in seen.json:
            return refusal(400, "only the default", param="temperature", code="unsupported_value")
        return reply()

    server.behave = behave
    backend = opened(server)
    found = ask(backend)
    assert found.parameters == {"max_completion_tokens": 1024}
    assert (found.attempts, server.requests) == (1, 3)
    ask(backend, request("another"))
    assert server.requests == 4


def test_the_table_knows_reasoning_models(server: Server) -> None:
    ask(opened(server, "openai:gpt-5-mini", base_url=server.url), request("x", reasoning_effort="low"))
    sent = server.seen[0].json
    assert {k: v for k, v in sent.items() if k != "messages"} == {
        "model": "gpt-5-mini", "max_completion_tokens": 1024, "reasoning_effort": "low",
    }  # fmt: skip


def test_a_model_that_reasons_by_default_does_so_when_asked(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEEPSEEK_API_KEY", "sk-deepseek-1")
    backend = opened(server, "deepseek:deepseek-flash", base_url=server.url)
    off = {"type": "disabled"}
    on = {"type": "enabled"}
    asked: list[tuple[dict[str, Any], Any]] = [
        ({}, off),
        ({"reasoning_effort": "low"}, None),
        ({"extra_body": {"thinking": on}}, on),
    ]
    for settings, thinking in asked:
        ask(backend, request(f"with {settings}", **settings))
        assert server.seen[-1].json.get("thinking") == thinking


def test_images_are_changed_by_the_endpoint_made_for_it(
    server: Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-openai-12")
    first, second, changed = picture(), picture(9, 8, "PNG"), picture(8, 8, "PNG")
    tree = {
        "data": [{"b64_json": base64.b64encode(changed).decode()}],
        "usage": {"input_tokens": 7, "output_tokens": 5},
    }
    play(server, Play(body=json.dumps(tree).encode()), Play(body=b'{"data": [{"url": "http://elsewhere/a.png"}]}'))
    backend = opened(server, "openai:gpt-image-1", base_url=server.url, cache=tmp_path / "cache.sqlite", retries=0)
    parts = [ImagePart(first), ImagePart(second)]

    def edit(prompt: str) -> Any:
        async def run() -> Any:
            return await backend.edit(parts, prompt, Settings())

        return asyncio.run(run())

    found = edit("Draw arrows.")
    sent = server.seen[0]
    assert sent.path == "/v1/images/edits"
    assert sent.headers["content-type"].startswith("multipart/form-data")
    assert first in sent.body
    assert sent.body.index(first) < sent.body.index(second)
    assert b"Draw arrows." in sent.body
    assert b"gpt-image-1" in sent.body
    assert (found.images, found.usage) == ((changed,), Usage(7, 5))
    assert "base64" not in json.dumps(found.raw)
    assert edit("Draw arrows.").cached
    with pytest.raises(BackendError, match="b64_json"):
        edit("Draw circles.")
    assert server.requests == 2  # nothing is fetched from the address that it gave


def test_a_chat_changes_images_where_there_is_no_such_endpoint(server: Server) -> None:
    backend = opened(server)

    async def run() -> Any:
        return await backend.edit([ImagePart(picture())], "Draw arrows.", Settings())

    assert asyncio.run(run()).images == ()
    assert server.seen[0].path == "/v1/chat/completions"
    assert [part["type"] for part in server.seen[0].json["messages"][0]["content"]] == ["image_url", "text"]
    assert opened(server, image_edits="endpoint").edits


def test_the_shared_instance_is_read_as_its_users_set_it(monkeypatch: pytest.MonkeyPatch) -> None:
    identity = pytest.importorskip("azure.identity")
    scopes: list[str] = []

    def provider(credential: object, scope: str) -> Callable[[], str]:
        scopes.append(scope)
        return lambda: "token"

    monkeypatch.setattr(identity, "get_bearer_token_provider", provider)
    monkeypatch.setenv("AZURE_OPENAI_API_KEY", "key-of-another-resource")
    backend = open_backend("trapi:gpt-4o_2024-11-20")
    assert isinstance(backend, OpenAICompatible)
    assert backend.endpoint == "https://trapi.research.microsoft.com/gcr/shared?api-version=2024-10-21"
    monkeypatch.setenv("TRAPI_INSTANCE", "my/instance")
    monkeypatch.setenv("TRAPI_API_VERSION", "2025-01-01")
    monkeypatch.setenv("TRAPI_SCOPE", "api://mine/.default")
    other = open_backend("trapi:d")
    assert isinstance(other, OpenAICompatible)
    assert other.endpoint == "https://trapi.research.microsoft.com/my/instance?api-version=2025-01-01"
    assert scopes == ["api://trapi/.default", "api://mine/.default"]


def test_pictures_and_thoughts_of_a_model_come_back(server: Server, tmp_path: Path) -> None:
    png = picture(8, 8, "PNG")
    url = "data:image/png;base64," + base64.b64encode(png).decode()
    message = {
        "role": "assistant",
        "content": None,
        "reasoning_content": "Hm.",
        "images": [{"image_url": {"url": url}}],
    }
    play(server, reply(choices=[{"message": message, "finish_reason": "stop"}]))
    backend = opened(server, cache=tmp_path / "cache.sqlite")
    for found in (ask(backend), ask(backend)):
        assert found.images == (png,)
        assert found.raw["choices"][0]["message"]["reasoning_content"] == "Hm."
        assert "base64" not in json.dumps(found.raw)
    assert server.requests == 1


def test_hostile_text_survives_the_cache(server: Server, tmp_path: Path) -> None:
    body = reply("X").body.replace(b'"X"', b'"a\\ud800b\\u0000c\\u202e</script>"').replace(b"}}", b'}, "odd": NaN}', 1)
    play(server, Play(body=body))
    backend = opened(server, cache=tmp_path / "cache.sqlite")
    first, second = ask(backend), ask(backend)
    assert first.text == second.text == "a?b\x00c\u202e</script>"
    assert second.cached


def test_only_openai_hears_of_organizations_and_nobody_of_admin_keys(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("OPENAI_ORG_ID", "OPENAI_PROJECT_ID", "OPENAI_ADMIN_KEY"):
        monkeypatch.setenv(name, "sentinel-1234")
    monkeypatch.setenv("DEEPSEEK_API_KEY", "sk-deepseek-1")
    ask(opened(server, "deepseek:deepseek-flash", base_url=server.url))
    assert server.seen[0].headers["authorization"] == "Bearer sk-deepseek-1"
    assert "sentinel" not in str(server.seen[0])


def test_azure_by_key(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AZURE_OPENAI_ENDPOINT", server.url.removesuffix("/v1"))
    monkeypatch.setenv("OPENAI_API_VERSION", "2025-01-01")
    monkeypatch.setenv("AZURE_OPENAI_API_KEY", "azure-key-1")
    assert isinstance(ask(opened(server, "azure:my-deployment")), Reply)
    sent = server.seen[0]
    assert sent.path == "/openai/deployments/my-deployment/chat/completions?api-version=2025-01-01"
    assert sent.headers["api-key"] == "azure-key-1"


def test_azure_by_token(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    identity = pytest.importorskip("azure.identity")
    scopes: list[str] = []
    monkeypatch.setattr(identity, "DefaultAzureCredential", lambda: "credential")

    def provider(credential: object, scope: str) -> Callable[[], str]:
        scopes.append(scope)
        return lambda: "token-1234"

    monkeypatch.setattr(identity, "get_bearer_token_provider", provider)
    monkeypatch.setenv("TRAPI_ENDPOINT", server.url.removesuffix("/v1"))
    monkeypatch.setenv("TRAPI_API_VERSION", "2025-01-01")
    monkeypatch.setenv("TRAPI_SCOPE", "api://trapi/.default")
    assert isinstance(ask(opened(server, "azure:my-deployment")), Reply)
    assert server.seen[0].headers["authorization"] == "Bearer token-1234"
    assert "api-key" not in server.seen[0].headers
    assert scopes == ["api://trapi/.default"]
    assert _keys.redact("token-1234") == "[key]"


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("deepseek:deepseek-flash", "DEEPSEEK_API_KEY"),
        ("openai:gpt-4o", "OPENAI_API_KEY"),
        ("azure:mine", "AZURE_OPENAI_ENDPOINT"),
        ("openai", "found no model"),
        ("openai: ", "found no model"),
        ("vllm:http://127.0.0.1:1/v1", "without a model"),
        ("vllm:http://127.0.0.1:port/v1#m", "expected an address"),
    ],
)
def test_what_is_missing_is_named(spec: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said) as caught:
        open_backend(spec)
    assert "\n" not in str(caught.value)


def test_specs_name_provider_and_model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENROUTER_API_KEY", "sk-or-1234")
    found = [
        (backend.provider, backend.model, backend.endpoint)
        for spec in ("ollama:llava:7b", "openrouter:a/b:free", "vllm:http://user:pass-word@h:1/v1/#x")
        if isinstance(backend := open_backend(spec), Served)
    ]
    assert found == [
        ("ollama", "llava:7b", "http://127.0.0.1:11434/v1"),
        ("openrouter", "a/b:free", "https://openrouter.ai/api/v1"),
        ("vllm", "x", "http://h:1/v1"),
    ]
    with pytest.raises(UnknownNameError, match="Did you mean openai"):
        open_backend("opnai:gpt-4o")


def test_waits_are_read_in_every_spelling() -> None:
    soon = email.utils.format_datetime(datetime.now(UTC) + timedelta(seconds=90), usegmt=True)
    assert _http.retry_after_s({"retry-after": "2.5"}) == 2.5
    assert _http.retry_after_s({"retry-after": "9", "retry-after-ms": "250"}) == 0.25
    assert 80 < (_http.retry_after_s({"retry-after": soon}) or 0) <= 90
    assert _http.retry_after_s({"retry-after": "Fri, 01 Jan 1999 00:00:00 GMT"}) == 0
    assert [_http.retry_after_s({"retry-after": bad}) for bad in ("", "soon", "nan", "inf")] == [None] * 4


def test_extra_fields_cannot_replace_the_prompt(server: Server) -> None:
    found = ask(opened(server), request("x", extra_body={"stream": True}))
    assert isinstance(found, BackendError)
    assert found.kind == "wrong_request"
    assert server.requests == 0
