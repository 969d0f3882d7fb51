"""The hosted backends against a real server: LiteLLM's proxy, whose models answer, or fail, by themselves."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest

from tests.backends.real_servers import PROXY_KEY, SAID, litellm_proxy
from vgbench_gen.backends.base import Backend, BackendError, ImagePart, Message, Reply, Request, Settings, TextPart
from vgbench_gen.backends.batch import ask_all
from vgbench_gen.backends.spec import BackendOptions, open_backend

pytestmark = pytest.mark.timeout(900)  # the proxy comes up first


@pytest.fixture(scope="module")
def proxy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with litellm_proxy(tmp_path_factory.mktemp("proxy")) as url:
        yield url


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "AZURE_OPENAI_API_KEY"):
        monkeypatch.setenv(name, PROXY_KEY)
    monkeypatch.setenv("OPENAI_API_VERSION", "2025-04-01-preview")


def prompt(text: str = "Which one?", **settings: Any) -> Request:
    picture = cv2.imencode(".jpg", np.full((60, 80, 3), 128, np.uint8))[1].tobytes()
    parts = (ImagePart(picture), TextPart(text))
    return Request((Message("user", parts),), Settings(max_tokens=50, **settings))


def opened(spec: str, proxy: str, **options: Any) -> Backend:
    root = proxy if spec.startswith("azure:") else f"{proxy}/v1"
    return open_backend(spec, BackendOptions(base_url=root, **options))


@pytest.mark.parametrize("spec", ["openai:fine", "azure:fine"])
def test_text_and_image_end_to_end(spec: str, proxy: str, tmp_path: Path) -> None:
    backend = opened(spec, proxy, cache=tmp_path / "replies.sqlite")
    asked = [prompt(), prompt(seed=3, stop=("x",), reasoning_effort="low"), prompt()]
    first, other, twin = (reply for reply in ask_all(backend, asked) if isinstance(reply, Reply))
    assert first.text == other.text == SAID
    assert (first.finish_reason, first.model, first.image_sizes_px) == ("stop", "fine", ((80, 60),))
    assert first.usage is not None
    assert first.usage.prompt_tokens > 0
    assert first.usage.completion_tokens > 0
    assert [first.cached, other.cached, twin.cached].count(True) == 1
    assert backend.tally.requests == 2


def test_too_many_requests_and_a_broken_server(proxy: str) -> None:
    busy = opened("openai:busy", proxy, retries=0)
    (refused,) = ask_all(busy, [prompt()])
    assert isinstance(refused, BackendError)
    assert refused.kind == "api_error"
    assert "too many requests (429): litellm.RateLimitError" in refused.message

    broken = opened("openai:broken", proxy, retries=1)
    (failed,) = ask_all(broken, [prompt()])
    assert isinstance(failed, BackendError)
    assert failed.kind == "api_error"
    assert "the server failed (500): litellm.InternalServerError" in failed.message
    assert (broken.tally.requests, broken.tally.retried, broken.tally.slowed) == (2, 1, 0)


@pytest.mark.parametrize("spec", ["openai:small", "azure:small"])
def test_a_prompt_too_long_is_asked_once(spec: str, proxy: str) -> None:
    backend = opened(spec, proxy, retries=3)
    (refused,) = ask_all(backend, [prompt()])
    assert isinstance(refused, BackendError)
    assert refused.kind == "wrong_request"
    assert "the request was refused (400): litellm.ContextWindowExceededError" in refused.message
    assert backend.tally.requests == 1


def test_a_model_that_is_not_there_and_a_wrong_key(proxy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    (unknown,) = ask_all(opened("openai:nobody", proxy), [prompt()])
    assert isinstance(unknown, BackendError)
    assert "nobody" in unknown.message
    wrong = "sk-not-the-one-0123456789"
    monkeypatch.setenv("OPENAI_API_KEY", wrong)
    (refused,) = ask_all(opened("openai:fine", proxy, retries=0), [prompt()])
    assert isinstance(refused, BackendError)
    assert wrong not in refused.message


def test_many_at_once_are_all_answered(proxy: str) -> None:
    backend = opened("openai:fine", proxy, concurrency=16)
    outcomes = ask_all(backend, [prompt(f"Which one of {number}?") for number in range(100)])
    assert [outcome.text for outcome in outcomes if isinstance(outcome, Reply)] == [SAID] * 100


def test_the_key_stays_out_of_logs_and_files(
    proxy: str, tmp_path: Path, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG)
    for spec in ("openai:fine", "azure:fine", "openai:busy", "openai:small"):
        backend = opened(spec, proxy, cache=tmp_path / "replies.sqlite", retries=0)
        for outcome in ask_all(backend, [prompt(f"My key is {PROXY_KEY}, and yours?")]):
            assert PROXY_KEY not in repr(outcome)
        assert PROXY_KEY not in repr(vars(backend))
    (echoed,) = ask_all(opened(f"openai:{PROXY_KEY}", proxy, retries=0), [prompt()])  # put where a name belongs
    assert isinstance(echoed, BackendError)
    assert "[key]" in echoed.message
    assert PROXY_KEY not in repr(echoed)
    assert "chat/completions" in caplog.text, "the client logs nothing, so this proves nothing"
    assert PROXY_KEY not in caplog.text
    assert PROXY_KEY not in "".join(capfd.readouterr())
    kept = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert json.dumps(SAID).encode() in kept
    assert PROXY_KEY.encode() not in kept
