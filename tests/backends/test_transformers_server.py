"""The hosted backends against transformers' own server, with the tiny model; its oracle is the same model in here."""

from __future__ import annotations

import asyncio
import json
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import cv2
import numpy as np
import pytest

from tests.backends.real_servers import transformers_server
from tests.backends.tiny_vlm import IMAGE_TOKENS, make_tiny_vlm
from vgbench_gen.backends.base import BackendError, ImagePart, Message, Reply, Request, Settings, TextPart
from vgbench_gen.backends.batch import ask_all
from vgbench_gen.backends.spec import BackendOptions, LocalOptions, open_backend
from vgbench_gen.distractors.llm import UnreadableReply, read_values
from vgbench_gen.text.paraphrase.checks import Original, Text
from vgbench_gen.text.paraphrase.prompts import read_rewordings, read_verdict
from vgbench_gen.text.paraphrase.rounds import Asker, RewordCounts, reword
from vgbench_gen.text.render import load_phrasings

pytestmark = [pytest.mark.servers, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("torch", reason="no torch here; `make servers` makes the environment for these tests")
    return make_tiny_vlm(tmp_path_factory.mktemp("models") / "tiny", context_tokens=8192)


@pytest.fixture(scope="module")
def server(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with transformers_server(model, tmp_path_factory.mktemp("server")) as url:
        yield url


def prompts() -> list[Request]:
    settings = Settings(max_tokens=16)
    requests = []
    for colour in (None, (0, 0, 255), (255, 0, 0)):
        pixels = np.full((60, 80, 3), colour or 0, np.uint8)
        picture = [ImagePart(cv2.imencode(".png", pixels)[1].tobytes())] if colour else []
        for text in ("How far is the red mug?", "Which of the four images shows the room?"):
            message = Message("user", (*picture, TextPart(text)))
            requests.append(Request((message,), settings))
    return requests


def test_the_server_and_the_model_in_this_process_say_the_same(server: str, model: Path) -> None:
    remote = open_backend(f"vllm:{server}/v1#{model}", BackendOptions(retries=0, concurrency=2))
    served = [reply for reply in ask_all(remote, prompts()) if isinstance(reply, Reply)]
    assert len(served) == 6
    assert len({reply.text for reply in served}) == 6, "what is asked and shown does not reach the model"
    assert {reply.finish_reason for reply in served} == {"length"}
    assert served[2].image_sizes_px == ((80, 60),)
    assert served[0].usage is not None
    assert served[2].usage is not None
    assert served[2].usage.prompt_tokens - served[0].usage.prompt_tokens == IMAGE_TOKENS

    local = open_backend(f"hf:{model}", BackendOptions(local=LocalOptions(device="cpu")))
    here = [reply for reply in ask_all(local, prompts()) if isinstance(reply, Reply)]
    asyncio.run(local.close())
    assert [reply.text for reply in here] == [reply.text for reply in served]
    assert [reply.usage for reply in here] == [reply.usage for reply in served]


def test_its_nonsense_is_refused_and_the_original_stands(server: str, model: Path) -> None:
    template = load_phrasings("object_distance", "open-ended")[0]
    original = Original(Text(template.question, template.context), template.states)
    backend, counts = open_backend(f"vllm:{server}/v1#{model}", BackendOptions(retries=0)), RewordCounts()
    settings = Settings(temperature=0.8, seed=1, extra_body={"max_tokens": 24})  # more is more of the same

    async def reworded() -> list[Text]:
        async with backend:
            return await reword(original, 2, Asker(backend, backend, n=1, settings=settings), counts)

    assert asyncio.run(reworded()) == []
    assert (counts.rounds, counts.judged, counts.accepted) == (4, 0, 0)
    assert set(counts.refused) <= {"json", "shape"}
    assert counts.refused.total() == 4
    assert not counts.failed
    assert 0 < counts.completion_tokens <= 4 * 24
    for reply in ask_all(backend, prompts()):
        assert isinstance(reply, Reply)
        assert read_rewordings(reply.text, 8)[0] == []
        assert not read_verdict(reply.text)[0]
        with pytest.raises(UnreadableReply):
            read_values(reply.text, 1)


def test_a_model_that_is_not_there(server: str) -> None:
    (unknown,) = ask_all(open_backend(f"vllm:{server}/v1#/no/model", BackendOptions(retries=0)), prompts()[:1])
    assert isinstance(unknown, BackendError)


def test_its_list_of_models(server: str) -> None:
    with urllib.request.urlopen(f"{server}/v1/models", timeout=30) as answer:
        assert json.load(answer)["object"] == "list"
