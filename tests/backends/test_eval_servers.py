"""A whole evaluation of a real model with images: over HTTP against transformers' own server, and in this process."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.backends.real_servers import transformers_server
from tests.backends.tiny_vlm import IMAGE_TOKENS, make_tiny_vlm
from tests.store.examples import make_item, textured
from vgbench_gen.backends.spec import BackendOptions, LocalOptions
from vgbench_gen.evaluation.answers.outcomes import OUTCOMES
from vgbench_gen.evaluation.base import benchmarks
from vgbench_gen.evaluation.replies import read_replies
from vgbench_gen.evaluation.runner import Run, evaluate
from vgbench_gen.evaluation.saved import score_source
from vgbench_gen.store.media import MediaStore
from vgbench_gen.store.pictures import encode_jpeg
from vgbench_gen.store.shards import write_items

pytestmark = [pytest.mark.servers, pytest.mark.timeout(900)]
ASKED = 10


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("torch", reason="no torch here; `make servers` makes the environment for these tests")
    return make_tiny_vlm(tmp_path_factory.mktemp("models") / "tiny", context_tokens=8192)


@pytest.fixture(scope="module")
def server(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with transformers_server(model, tmp_path_factory.mktemp("server")) as url:
        yield url


@pytest.fixture
def dataset(tmp_path: Path) -> Path:
    """Ten rows, each with its own words and images: one image, two, and every type of question."""
    media = MediaStore(tmp_path / "media")
    images = [media.put(encode_jpeg(textured(64 + 8 * k, 48, k)), "jpg") for k in range(ASKED + 1)]
    depth: dict[str, Any] = {"question_type": "open-ended", "options": (), "answer": "2.40 meters"}
    claim: dict[str, Any] = {"question_type": "judgment", "options": (), "answer": "Yes"}
    forms: list[dict[str, Any]] = [{}, claim, depth | {"question": "What is the depth in meters of region 4?"}]
    items = [make_item(k, images[k : k + 1 + k % 2], **forms[k % 3]) for k in range(ASKED)]
    write_items(tmp_path / "items", items, media)
    return tmp_path


def asked(dataset: Path, spec: str) -> Run:
    options = BackendOptions(concurrency=4, retries=0, timeout_s=100, local=LocalOptions(device="cpu", batch_size=4))
    return evaluate(dataset, spec, backend=options, max_tokens=12)


@pytest.mark.parametrize("over", ["http", "hf"])
def test_every_reply_is_kept_scored_and_never_asked_again(
    over: str, dataset: Path, request: pytest.FixtureRequest
) -> None:
    model = request.getfixturevalue("model")
    spec = f"vllm:{request.getfixturevalue('server')}/v1#{model}" if over == "http" else f"hf:{model}"
    first = asked(dataset, spec)
    assert (first.total, first.kept, first.asked, dict(first.failed)) == (ASKED, 0, ASKED, {})
    assert first.complete
    assert first.tokens > ASKED * IMAGE_TOKENS

    source = benchmarks["vgbench"].open(dataset)
    items = {row.id: source.item(row.row) for row in source.rows()}
    header, lines, _ = read_replies(first.path)
    assert header.dataset == source.fingerprint
    assert {key.id for key in lines} == set(items)
    for line in lines.values():
        assert not line.failed
        assert line.finish_reason in ("stop", "length")
        assert [image["name"] for image in line.images] == list(items[line.key.id].images)
        assert line.images[0]["size_px"] == [64 + 8 * items[line.key.id].index, 48], "not the image as it was sent"
        said = line.usage["prompt_tokens"]
        assert said > IMAGE_TOKENS * len(line.images)
    # The model says something else where it is shown something else.
    assert len({line.response for line in lines.values()}) > ASKED // 2

    before = first.path.read_bytes()
    again = asked(dataset, spec)
    assert (again.kept, again.asked, again.complete) == (ASKED, 0, True)
    assert first.path.read_bytes() == before

    (scores,) = score_source(source)
    outcomes = Counter(row.outcome for row in scores.rows)
    assert outcomes.total() == ASKED
    assert set(outcomes) <= set(OUTCOMES) - {"failed"}
    assert outcomes["unreadable"] + outcomes["wrong"] > ASKED // 2, "random weights answered like a model"


def test_the_server_and_this_process_say_the_same(server: str, model: Path, dataset: Path) -> None:
    said = []
    for spec in (f"vllm:{server}/v1#{model}", f"hf:{model}"):
        lines = read_replies(asked(dataset, spec).path).lines
        said.append({key: line.response for key, line in lines.items()})
    assert said[0] == said[1]
