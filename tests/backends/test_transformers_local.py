"""A model in this process: real weights, real processor, nonsense replies. Those marked `servers` need torch."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import shutil
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest

from tests.backends.server import wait_until
from tests.backends.tiny_vlm import CONTEXT_TOKENS, IMAGE_TOKENS, make_tiny_vlm
from vgbench_gen.backends.base import BackendError, ImagePart, Message, Reply, Request, Settings, TextPart
from vgbench_gen.backends.batch import ask_all
from vgbench_gen.backends.spec import BackendOptions, LocalOptions, open_backend
from vgbench_gen.core.errors import ConfigError

pytestmark = pytest.mark.timeout(900)  # torch is imported first
servers = pytest.mark.servers
RED, BLUE = (0, 0, 255), (255, 0, 0)  # as OpenCV orders them
GREEDY = Settings(max_tokens=12)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("torch", reason="no torch here; `make servers` makes the environment for these tests")
    return make_tiny_vlm(tmp_path_factory.mktemp("models") / "tiny")


@pytest.fixture
def batches(model: Path, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Sizes of the batches that reach the model, as they come."""
    from vgbench_gen.backends._hf_model import LocalModel

    sizes: list[int] = []
    reply = LocalModel.reply

    def counted(self: LocalModel, chats: Any, extra: Any) -> Any:
        sizes.append(len(chats))
        return reply(self, chats, extra)

    monkeypatch.setattr(LocalModel, "reply", counted)
    return sizes


def picture(colour: tuple[int, int, int], size_px: tuple[int, int] = (80, 60)) -> ImagePart:
    pixels = np.full((size_px[1], size_px[0], 3), colour, np.uint8)
    return ImagePart(cv2.imencode(".png", pixels)[1].tobytes())


def prompt(*parts: str | ImagePart, **settings: Any) -> Request:
    message = Message("user", tuple(TextPart(part) if isinstance(part, str) else part for part in parts))
    return Request((message,), GREEDY.model_copy(update=settings))


def ask(model: Path, *requests: Request, **options: Any) -> list[Reply | BackendError]:
    local = LocalOptions(
        device="cpu",
        batch_size=options.pop("batch_size", 8),
        trust_remote_code=options.pop("trust_remote_code", False),
    )
    backend = open_backend(f"hf:{model}", BackendOptions(local=local, **options))
    try:
        return ask_all(backend, requests)
    finally:
        asyncio.run(backend.close())


def texts(outcomes: Sequence[Reply | BackendError]) -> list[str]:
    assert all(isinstance(outcome, Reply) for outcome in outcomes), outcomes
    return [outcome.text for outcome in outcomes if isinstance(outcome, Reply)]


def refusal(outcome: Reply | BackendError) -> str:
    assert isinstance(outcome, BackendError), outcome
    assert outcome.kind == "wrong_request"
    return outcome.message


@servers
def test_text_and_images_end_to_end(model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    requests = [prompt("How far?"), prompt(picture(RED), "How far?"), prompt(picture(BLUE, (200, 60)), "How far?")]
    replies = ask(model, *requests, cache=tmp_path / "replies.sqlite")
    assert len({*texts(replies)}) == 3, "what is in the picture does not reach the model"
    plain, red, blue = (reply for reply in replies if isinstance(reply, Reply))
    assert (red.image_sizes_px, blue.image_sizes_px) == (((80, 60),), ((200, 60),))
    assert plain.usage is not None
    assert red.usage is not None
    assert red.usage.prompt_tokens - plain.usage.prompt_tokens == IMAGE_TOKENS
    assert (red.usage.completion_tokens, red.finish_reason, red.cost_usd) == (12, "length", 0.0)
    assert red.model.startswith("tiny@")
    assert (red.parameters["dtype"], red.parameters["device"]) == ("float32", "cpu")

    monkeypatch.setattr("vgbench_gen.backends._hf_model.LocalModel.__init__", lambda *_, **__: pytest.fail("loaded"))
    again = ask(model, *requests, cache=tmp_path / "replies.sqlite")
    assert texts(again) == texts(replies)
    assert all(isinstance(reply, Reply) and reply.cached for reply in again)


@servers
def test_a_shared_forward_pass_changes_no_reply(model: Path, batches: list[int]) -> None:
    words = ["a", "How far is the red mug?", "Which of the four images shows the room after the turn? " * 3]
    requests = [prompt(word) for word in words] + [prompt(picture(RED), word) for word in words]
    requests += [
        prompt("a", epoch=1, max_tokens=3),
        prompt("How far is the red mug?", epoch=1, temperature=1.0, seed=5),
        prompt("How far is the red mug?", epoch=1, temperature=1.0, seed=6),
    ]
    together = ask(model, *requests)
    assert batches == [6, 3], "prompts with equally many images share one pass, whatever their settings"
    del batches[:]
    alone = ask(model, *requests, batch_size=1)
    assert batches == [1] * 9
    assert texts(together) == texts(alone)
    assert [r.usage for r in together if isinstance(r, Reply)] == [r.usage for r in alone if isinstance(r, Reply)]
    assert len({*texts(alone)[:6]}) == 6, "replies that are all alike prove nothing"


@servers
def test_drawn_replies_follow_seed_and_epoch(model: Path) -> None:
    def drawn(**settings: Any) -> Request:
        return prompt("How far?", **{"temperature": 1.5} | settings)

    requests = [drawn(), drawn(epoch=1), drawn(seed=1), drawn(seed=2), drawn(temperature=0.0)]
    first = texts(ask(model, *requests))
    assert first == texts(ask(model, *requests))
    assert len({*first}) == 5
    assert first[2] == texts(ask(model, drawn(seed=1, epoch=1)))[0], "a seed says all there is to say"
    narrow = ask(model, drawn(extra_body={"top_k": 1}), drawn(extra_body={"top_p": 1e-6}), drawn(temperature=0.0))
    assert len({*texts(narrow)}) == 1, "one token to draw from is the greedy one"


@servers
def test_where_a_reply_ends(model: Path) -> None:
    whole, short = texts(ask(model, prompt("How far?", max_tokens=30), prompt("How far?", max_tokens=5)))
    assert whole.startswith(short)
    assert len(short) < len(whole)
    word = whole[6:9]
    stopped, *_ = ask(model, prompt("How far?", max_tokens=30, stop=("never there", word)), prompt("a", max_tokens=30))
    assert isinstance(stopped, Reply)
    assert (stopped.text, stopped.finish_reason) == (whole[: whole.index(word)], "stop")
    assert stopped.usage is not None
    assert stopped.usage.completion_tokens < 30, "what pads the row beside a longer one is not counted"


@servers
def test_the_chat_template_is_the_prompt(model: Path, tmp_path: Path) -> None:
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(model)
    plain, with_system, marker = ask(
        model, prompt("How far?"), prompt("How far?", system="Be brief."), prompt("<image> How far? </s>")
    )
    for outcome, expected in (
        (plain, "user: How far?</s>assistant: "),
        (with_system, "system: Be brief.</s>user: How far?</s>assistant: "),
    ):
        assert isinstance(outcome, Reply)
        assert outcome.usage is not None
        assert outcome.usage.prompt_tokens == len(tokenizer(expected, add_special_tokens=False).input_ids)
    assert texts([marker]), "words that look like markers stay words"

    bare = shutil.copytree(model, tmp_path / "bare")
    (bare / "chat_template.jinja").unlink()
    with pytest.raises(ConfigError, match="found no chat template"):
        ask(bare, prompt("How far?"))


@servers
def test_a_prompt_that_does_not_fit_is_refused_alone(model: Path, batches: list[int]) -> None:
    images = [picture((number, 0, 0)) for number in range(CONTEXT_TOKENS // IMAGE_TOKENS + 1)]
    fits, long, many, near = ask(
        model,
        prompt("How far?"),
        prompt("the mug " * CONTEXT_TOKENS),
        prompt(*images, "How far?"),
        prompt("7" * (CONTEXT_TOKENS - 20), max_tokens=None),
    )
    assert texts([fits]) == texts(ask(model, prompt("How far?")))
    assert f"the model holds {CONTEXT_TOKENS}, reply included" in refusal(long)
    assert f"the model holds {CONTEXT_TOKENS}" in refusal(many)
    assert isinstance(near, Reply)
    assert near.usage is not None
    assert near.usage.prompt_tokens + near.usage.completion_tokens <= CONTEXT_TOKENS
    assert near.finish_reason == "length"

    short = prompt("How far?", max_tokens=60)
    beside, _ = ask(model, short, prompt("7" * (CONTEXT_TOKENS - 30)))
    assert texts([beside]) == texts(ask(model, short)), "a neighbour's length takes nothing from a short prompt's reply"


@servers
def test_what_a_local_model_cannot_do_is_said(model: Path) -> None:
    whole = picture(RED, (300, 300)).source
    assert isinstance(whole, bytes)
    broken = ImagePart(whole[:120])
    damaged, effort, unknown, assistant_first = ask(
        model,
        prompt(broken, "How far?"),
        prompt("How far?", reasoning_effort="high"),
        prompt("How far?", extra_body={"frequency_penalty": 1}),
        prompt("How far?", extra_body={"chat_template_kwargs": {"messages": 1}}),
    )
    assert "300 x 300 pixels is damaged" in refusal(damaged)
    assert "no reasoning effort" in refusal(effort)
    assert "extra_body has frequency_penalty; a local model knows chat_template_kwargs" in refusal(unknown)
    assert "refuses the prompt" in refusal(assistant_first)


@servers
def test_too_little_memory_halves_batches(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    from vgbench_gen.backends._hf_model import LocalModel

    sizes: list[int] = []
    reply: Callable[..., Any] = LocalModel.reply

    def small(self: LocalModel, chats: Any, extra: Any) -> Any:
        sizes.append(len(chats))
        if len(chats) > 2:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return reply(self, chats, extra)

    monkeypatch.setattr(LocalModel, "reply", small)
    requests = [prompt(f"How far is mug {number}?") for number in range(12)]
    replies = texts(ask(model, *requests, batch_size=8))
    assert sizes == [8, 4, 2, 2, 4, 2, 2, 2, 2], "what did not fit is not tried again"
    assert replies == texts(ask(model, *requests, batch_size=1))


@servers
def test_weights_that_can_run_code_are_not_read(model: Path, tmp_path: Path) -> None:
    import torch

    pickled = shutil.copytree(model, tmp_path / "pickled", ignore=shutil.ignore_patterns("*.safetensors"))
    torch.save({"weight": torch.zeros(1)}, pickled / "pytorch_model.bin")
    with pytest.raises(ConfigError, match=r"found no weights as safetensors"):
        ask(pickled, prompt("How far?"))


@servers
def test_code_of_a_model_runs_only_when_allowed(model: Path, tmp_path: Path) -> None:
    foreign = shutil.copytree(model, tmp_path / "foreign")
    config = json.loads((foreign / "config.json").read_text())
    config |= {"model_type": "never_heard_of", "auto_map": {"AutoConfig": "code.Theirs"}}
    (foreign / "config.json").write_text(json.dumps(config))
    (foreign / "code.py").write_text(
        f"from pathlib import Path\nPath({str(tmp_path / 'ran')!r}).touch()\n"
        "from transformers import LlavaConfig\nclass Theirs(LlavaConfig): model_type = 'never_heard_of'\n"
    )
    with pytest.raises(ConfigError, match=r"brings Python code of its own.*--trust-remote-code"):
        ask(foreign, prompt("How far?"))
    assert not (tmp_path / "ran").exists()
    with pytest.raises(ConfigError, match="cannot be loaded"):  # the configuration runs; no model class goes with it
        ask(foreign, prompt("How far?"), trust_remote_code=True)
    assert (tmp_path / "ran").exists()


@servers
def test_the_name_changes_with_the_model(model: Path, tmp_path: Path) -> None:
    def name(folder: Path) -> str:
        return open_backend(f"hf:{folder}").model

    same = shutil.copytree(model, tmp_path / "tiny")
    assert name(same) == name(model)
    (same / "chat_template.jinja").write_text("{{ messages }}")
    assert name(same).startswith("tiny@")
    assert name(same) != name(model)
    assert name(make_tiny_vlm(tmp_path / "other" / "tiny", seed=1)) != name(model)


@servers
def test_cancelling_ends_the_batch_at_work(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from vgbench_gen.backends._hf_model import LocalModel, _Rows

    tokens: list[int] = []
    reached = threading.Event()
    reply, grow = LocalModel.reply, _Rows.__call__

    def counted(self: LocalModel, chats: Any, extra: Any) -> Any:
        replies = reply(self, chats, extra)
        tokens.append(replies[0].completion_tokens)
        return replies

    def fifth(self: _Rows, ids: Any, scores: Any, **more: Any) -> Any:
        if ids.shape[1] - self._start == 5 and not reached.is_set():
            reached.set()
            wait_until(lambda: self._model.halt)
        return grow(self, ids, scores, **more)

    monkeypatch.setattr(LocalModel, "reply", counted)
    monkeypatch.setattr(_Rows, "__call__", fifth)
    backend = open_backend(f"hf:{model}", BackendOptions(local=LocalOptions(device="cpu")))

    async def cut() -> None:
        asked = asyncio.ensure_future(backend.ask(*parts(prompt("How far?", max_tokens=900))))
        await asyncio.to_thread(reached.wait, 60)
        asked.cancel()
        await asyncio.gather(asked, return_exceptions=True)
        await backend.rest()

    asyncio.run(cut())
    (after,) = ask_all(backend, [prompt("How far?")])  # in another event loop
    assert tokens == [5, 12]
    assert texts([after]) == texts(ask(model, prompt("How far?")))
    asyncio.run(backend.close())


def parts(request: Request) -> tuple[Sequence[Message], Settings]:
    return request.messages, request.settings


@servers
def test_a_name_of_the_hub_is_fetched(model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fetched: list[tuple[str, list[str], str | None]] = []

    def fetch(name: str, *, revision: str | None, allow_patterns: list[str]) -> str:
        fetched.append((name, allow_patterns, revision))
        if name == "someone/gone":
            raise OSError("404 Client Error\nmore")
        return str(shutil.copytree(model, tmp_path / "0123456789abcdef", dirs_exist_ok=True))

    monkeypatch.setattr("huggingface_hub.snapshot_download", fetch)
    assert open_backend("hf:someone/tiny").model == "someone/tiny@0123456789ab"
    assert not {"*.py", "*.bin"} & {*fetched[0][1]}
    assert open_backend("hf:someone/tiny@v1.0").model == "someone/tiny@0123456789ab"
    assert [revision for *_, revision in fetched] == [None, "v1.0"]
    with pytest.raises(ConfigError, match=r"hf:someone/gone: no such folder, and the Hub .* \(404 Client Error\)"):
        open_backend("hf:someone/gone")
    with pytest.raises(ConfigError, match=r"no such folder\. Name"):
        open_backend(f"hf:{tmp_path}/not/there")
    with pytest.raises(ConfigError, match=r"found no config\.json"):
        open_backend(f"hf:{tmp_path}")
    assert len(fetched) == 3


def test_without_torch_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    find = importlib.util.find_spec

    def without(name: str, *rest: Any) -> Any:
        return None if name in ("torch", "accelerate") else find(name, *rest)

    monkeypatch.setattr("importlib.util.find_spec", without)
    with pytest.raises(ConfigError, match=r"needs torch and .*pip install 'vgbench-gen\[transformers\]'"):
        open_backend(f"hf:{tmp_path}")
