"""What a run says at its end: what was answered, what was not and why, and with which status."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.backends.server import Play, Seen, Server, refusal, reply, serving
from tests.store.examples import make_item, textured
from vgbench_gen.backends import served
from vgbench_gen.cli.main import main
from vgbench_gen.store.media import MediaStore
from vgbench_gen.store.pictures import encode_jpeg
from vgbench_gen.store.shards import write_items

ASKED = 6
USED = {"prompt_tokens": 9, "completion_tokens": 64, "completion_tokens_details": {"reasoning_tokens": 60}}
THOUGHT = reply("", finish_reason="length", usage=USED)
CUT = reply("The answer", finish_reason="length")
FILTERED = reply("", finish_reason="content_filter")
BUSY = refusal(429, "slow down")


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("set")
    media = MediaStore(folder / "media")
    images = [media.put(encode_jpeg(textured(64 + 8 * k, 48, k)), "jpg") for k in range(ASKED)]
    write_items(folder / "items", [make_item(k, images[k : k + 1]) for k in range(ASKED)], media)
    return folder


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setattr(served, "_FIRST_WAIT_S", 0.001)
    with serving() as running:
        yield running


def run(server: Server, dataset: Path, out: Path, *plays: Play, retries: int = 0, more: tuple[str, ...] = ()) -> int:
    """The status of asking all questions, one at a time; the plays in turn, the last one for all that follow."""
    server.behave = lambda seen: plays[min(seen.number, len(plays) - 1)]
    asked = ["eval", str(dataset), "--model", f"vllm:{server.url}#m", "--replies", str(out), "--concurrency", "1"]
    return main([*asked, "--retries", str(retries), *more])


@pytest.mark.parametrize(
    ("plays", "status", "said"),
    [
        ([reply()], 0, []),
        ([THOUGHT], 1, ["none of 6 answered; empty 6", "limit of 64 tokens (60 of them to reason)", "--max-tokens"]),
        ([reply(" ")], 1, ["none of 6 answered; empty 6", "the first empty: the reply holds no words"]),
        ([FILTERED], 1, ["none of 6 answered; refused 6", "the first refused: by a content filter"]),
        ([CUT], 0, ["6 of 6 answered; cut 6", "the first cut: the reply was cut", "--max-tokens"]),
        ([THOUGHT, CUT, FILTERED, refusal(400, "too odd"), reply()], 1,
         ["3 of 6 answered; cut 1, empty 1, refused 1, wrong_request 1", "the first wrong_request: vllm:", "too odd"]),
        ([refusal(400, "too odd")], 1, ["none of 2 answered; wrong_request 2", "too odd", "stopped with 4 not asked"]),
    ],
    ids=["good", "thought", "empty", "filtered", "cut", "mixed", "refused"],
)  # fmt: skip
def test_a_run_says_what_it_got_and_why_not_more(
    server: Server, dataset: Path, tmp_path: Path, plays: list[Play], status: int, said: list[str],
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    assert run(server, dataset, tmp_path / "r", *plays) == status
    out = capsys.readouterr().out
    assert not [one for one in said if one not in out]
    answered = not said or not any(one.startswith("none of") for one in said)
    assert ("next: vgbench compare" in out) == answered
    assert ("nothing was answered" in out) == (not answered)


def test_json_has_the_same_counts(
    server: Server, dataset: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plays = [THOUGHT, CUT, refusal(400, "too odd"), reply()]
    assert run(server, dataset, tmp_path / "r", *plays, more=("--json",)) == 1
    (record,) = json.loads(capsys.readouterr().out)
    assert (record["answered"], record["asked"]) == (4, 6)
    assert (record["short"], record["failed"]) == ({"empty": 1, "cut": 1}, {"wrong_request": 1})
    assert set(record["reasons"]) == {"empty", "cut", "wrong_request"}


def test_replies_from_before_are_no_silence(server: Server, dataset: Path, tmp_path: Path) -> None:
    assert run(server, dataset, tmp_path / "r", reply()) == 0
    assert run(server, dataset, tmp_path / "r", refusal(500)) == 0  # nothing is asked


@pytest.mark.parametrize("retries", [0, 2])
def test_waiting_names_its_reason_and_ends_after_as_many_tries_as_asked_for(
    server: Server, dataset: Path, tmp_path: Path, retries: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(server, dataset, tmp_path / "r", BUSY, retries=retries) == 1
    said = capsys.readouterr()
    # Once nobody was answered in so many pauses, the others find it out by one request each, until it is all alike.
    assert server.requests == 2 + retries
    assert ("vgbench: waiting: vllm:" in said.err) == bool(retries)
    if retries:
        assert "too many requests (429): slow down; next try in" in said.err
    assert "none of 2 answered; api_error 2" in said.out


def test_quiet_says_nothing_of_waiting(
    server: Server, dataset: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(server, dataset, tmp_path / "r", BUSY, reply(), retries=2, more=("--quiet",)) == 0
    assert capsys.readouterr() == ("", "")
    assert logging.getLogger("vgbench_gen").level == logging.NOTSET


def ask_otherwise(server: Server, dataset: Path, folder: Path, verb: str) -> int:
    model = ("--model", f"vllm:{server.url}#m", "--retries", "0")
    lines: dict[str, list[str]] = {
        "paraphrase": ["--bank", str(folder / "bank.toml"), "--task", "metric_depth", "--type", "open-ended"],
        "agent": ["ask", "Which?", "--tools", "none"],
        "eval": ["--benchmark", "rover", "--samples", str(folder / "samples.jsonl"), "--judge", model[1]],
    }
    image = folder / "a.jpg"
    image.write_bytes(encode_jpeg(textured(64, 48, 1)))
    sample: dict[str, Any] = {"original_image": str(image), "generated_image": str(image), "prompt": "p"}
    rows = [sample | {"sample_id": str(k), "think_output": "x", "dimension": "nature"} for k in range(2)]
    (folder / "samples.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return main([verb, *lines[verb], *model[2 * (verb == "eval") :]])


@pytest.mark.parametrize("verb", ["paraphrase", "agent", "eval"])
@pytest.mark.parametrize(("play", "said"), [(THOUGHT, "limit of 64 tokens"), (refusal(400, "too odd"), "too odd")])
def test_other_verbs_that_ask_say_the_same(
    server: Server, dataset: Path, tmp_path: Path, verb: str, play: Play, said: str,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    def behave(seen: Seen) -> Play:
        return replace(play)

    server.behave = behave
    assert ask_otherwise(server, dataset, tmp_path, verb) in (1, 2)
    assert said in capsys.readouterr().err
