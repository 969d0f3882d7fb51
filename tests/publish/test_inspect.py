"""What passes between us and inspect_ai; with the real package where it is installed (`bash tools/inspect.sh`)."""

from __future__ import annotations

import importlib.util
import json
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.store.examples import make_item, textured
from vgbench_gen.core.errors import ConfigError, DatasetError
from vgbench_gen.evaluation.base import Source, benchmarks
from vgbench_gen.evaluation.imported import import_log, logs
from vgbench_gen.evaluation.options import AskOptions
from vgbench_gen.evaluation.questions import Questions
from vgbench_gen.evaluation.records import Header, ReplyKey, ReplyLine
from vgbench_gen.evaluation.replies import ReplyWriter, name_replies_file, read_replies
from vgbench_gen.evaluation.saved import score_source
from vgbench_gen.publish.export import export
from vgbench_gen.store.media import MediaStore
from vgbench_gen.store.pictures import encode_jpeg
from vgbench_gen.store.shards import write_items

real = pytest.mark.skipif(
    importlib.util.find_spec("inspect_ai") is None, reason="no inspect_ai here; `bash tools/inspect.sh` installs it"
)
# In the order of the rows below; the last one is right by our reader alone.
SAID = ["The answer is (A).", "No", "Region 4 is on the wall.", "Between 2 and 3, I would say 2.5"]
OUTCOMES = ["right", "wrong", "unreadable", "right"]


@pytest.fixture
def source(tmp_path: Path) -> Source:
    """A choice, a judgment and two lengths in two scenes; the first shows two images."""
    media = MediaStore(tmp_path / "data" / "media")
    images = [media.put(encode_jpeg(textured(64, 48, k)), "jpg") for k in range(5)]
    depth: dict[str, Any] = {"question_type": "open-ended", "options": (), "answer": "2.40 meters"}
    items = [
        make_item(0, images[:2], answer="A"),
        make_item(1, images[2:3], question_type="judgment", options=(), answer="Yes"),
        make_item(2, images[3:4], question="What is the depth in meters of region 4?", **depth),
        make_item(3, images[4:], question="What is the depth in meters of region 5?", scene_id="scene0009", **depth),
    ]
    write_items(tmp_path / "data" / "items", items, media)
    return benchmarks["vgbench"].open(tmp_path / "data")


def requests(source: Source) -> Iterator[tuple[str, str, str]]:
    """(id, digest, words) of every question as `vgbench eval` asks it."""
    options = AskOptions()
    for item, asked in Questions(source, options).walk(options.settings("")):
        yield item.id, asked.digest, asked.text


def saved(source: Source, spec: str = "scripted:m") -> Path:
    """Our own replies to it: `SAID`, and a failed request in a second epoch."""
    path = name_replies_file(source.folder / "replies", spec)
    with ReplyWriter(
        path, Header(dataset=source.fingerprint, benchmark=source.benchmark, spec=spec, model="m")
    ) as writer:
        for (item_id, digest, _), said in zip(requests(source), SAID, strict=True):
            images = tuple({"name": name} for name in source.item(0).images) if item_id == source.item(0).id else ()
            usage = {"prompt_tokens": 9, "completion_tokens": 2}
            stated: dict[str, Any] = {"benchmark": "VGBench", "model": "m", "request_digest": digest, "time": 1.5e9}
            writer.append(
                ReplyLine(key=ReplyKey(item_id), response=said, images=images, usage=usage, latency_s=0.5, **stated)
            )
        writer.append(
            ReplyLine(key=ReplyKey(item_id, epoch=1), response=None, error="timeout: no answer in 1 s.", **stated)
        )
    return path


def test_an_export_holds_what_we_ask(source: Source, tmp_path: Path) -> None:
    done = export(source, "inspect", tmp_path / "out", AskOptions())
    assert "inspect eval vgbench_data.py" in done.run
    assert '@task(name="vgbench_data")' in (tmp_path / "out" / "vgbench_data.py").read_text("utf-8")
    rows = [json.loads(line) for line in (tmp_path / "out" / "samples.jsonl").read_text("utf-8").splitlines()]
    for row, (item_id, digest, words) in zip(rows, requests(source), strict=True):
        assert row["id"] == item_id
        assert digest.startswith(row["request_digest"])
        assert row["parts"][-1] == {"type": "text", "text": words}
        shown = [(tmp_path / "out" / part["path"]).read_bytes() for part in row["parts"] if part["type"] == "image"]
        item = next(source.item(one.row) for one in source.rows() if one.id == item_id)
        assert [encoded(source, item, k) for k in range(len(item.images))] == shown


def encoded(source: Source, item: Any, k: int) -> bytes:
    found = source.image(item, k)
    return found.read_bytes() if isinstance(found, Path) else found


def test_a_log_is_known_by_its_first_bytes(tmp_path: Path) -> None:
    (tmp_path / "a.eval").write_bytes(b"PK\x03\x04rest")
    (tmp_path / "b.eval").write_bytes(b"no zip")
    (tmp_path / "c.json").write_text('{"version": 2, "status": "success", "eval": {}}')
    (tmp_path / "d.json").write_text('{"results": []}')
    reader = logs["inspect"]
    assert [reader.fits(tmp_path / name) for name in ("a.eval", "b.eval", "c.json", "d.json", "e.eval")] == [
        True, False, True, False, False,
    ]  # fmt: skip


def test_without_the_package_the_extra_is_named(
    source: Source, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.eval").write_bytes(b"PK\x03\x04rest")
    find_spec = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *more: None if name == "inspect_ai" else find_spec(name, *more)
    )
    with pytest.raises(ConfigError, match=r"vgbench-gen\[inspect\]"):
        import_log(source, tmp_path / "a.eval")
    with pytest.raises(ConfigError, match=r"vgbench-gen\[inspect\]"):
        export(source, "inspect-log", tmp_path / "logs", AskOptions())
    assert not (tmp_path / "logs").exists()


@real
@pytest.mark.timeout(900)
def test_a_run_there_gives_our_numbers_and_its_log_comes_back(source: Source, tmp_path: Path) -> None:
    from inspect_ai import eval as run
    from inspect_ai.model import ModelOutput, ModelUsage, get_model

    export(source, "inspect", tmp_path / "out", AskOptions())
    said = {words: reply for (_, _, words), reply in zip(requests(source), SAID, strict=True)}
    seen: list[Any] = []

    def answer(messages: Any, tools: Any, choice: Any, config: Any) -> Any:
        seen.append((messages, config))
        output = ModelOutput.from_content("mockllm/model", said[messages[-1].content[-1].text])
        output.usage = ModelUsage(input_tokens=90, output_tokens=8, total_tokens=98)
        return output

    (log,) = run(
        f"{tmp_path / 'out' / 'vgbench_data.py'}@vgbench_data",
        model=get_model("mockllm/model", custom_outputs=answer),
        log_dir=str(tmp_path / "logs"),
        display="none",
    )
    assert log.status == "success", log.error
    shown = [part.type for messages, _ in seen for part in messages[-1].content]
    assert shown.count("image") == 5
    assert {(config.temperature, config.max_tokens) for _, config in seen} == {(0.0, 512)}

    saved(source)
    taken = import_log(source, tmp_path / "logs")
    assert (taken.spec, taken.taken, taken.failed, dict(taken.ignored)) == ("inspect:mockllm/model", 4, 0, {})
    scores = {one.header.spec: one for one in score_source(source)}
    ours = [row for row in scores["scripted:m"].rows if row.outcome != "failed"]
    theirs = scores["inspect:mockllm/model"].rows
    assert [(r.id, r.score, r.official, r.outcome) for r in theirs] == [
        (r.id, r.score, r.official, r.outcome) for r in ours
    ]
    assert {row.id: row.outcome for row in ours} == dict(
        zip([row[0] for row in requests(source)], OUTCOMES, strict=True)
    )
    assert log.results is not None
    told = {score.name: score.metrics["mean"].value for score in log.results.scores}
    for name in ("score", "official", "strict"):
        assert told[name] == pytest.approx(sum(getattr(row, name) for row in ours) / len(ours))
    lines = read_replies(taken.path).lines
    assert {line.usage["prompt_tokens"] for line in lines.values()} == {90}
    again = import_log(source, tmp_path / "logs")
    assert (again.taken, again.known) == (4, 4)


@real
@pytest.mark.timeout(900)
def test_our_replies_as_a_log_and_back(source: Source, tmp_path: Path) -> None:
    from inspect_ai.log import read_eval_log

    path = saved(source)
    export(source, "inspect-log", tmp_path / "logs", AskOptions())
    (file,) = (tmp_path / "logs").glob("*.eval")
    log = read_eval_log(str(file), resolve_attachments=True)
    assert (log.eval.model, log.eval.task, log.status) == ("m", "vgbench_data", "success")
    assert log.samples is not None
    assert log.results is not None
    (scored,) = score_source(source)
    rows = {(row.id, row.epoch): row for row in scored.rows}
    for sample in log.samples:
        row = rows[str(sample.id), sample.epoch - 1]
        if row.outcome == "failed":
            assert sample.error is not None
            assert "no answer in 1 s" in sample.error.message
            continue
        assert sample.scores is not None
        assert (sample.scores["sane"].value, sample.scores["official"].value) == (row.score, row.official)
    answered = [row for row in rows.values() if row.outcome != "failed"]
    assert len(log.samples) == len(answered) + 1
    told = {score.name: score.metrics["mean"].value for score in log.results.scores}
    assert told["sane"] == pytest.approx(sum(row.score for row in answered) / len(answered))
    pictures = [part for part in log.samples[0].input[0].content if part.type == "image"]
    assert len(pictures) == 2
    assert all(part.image.startswith("data:image/jpeg;base64,") for part in pictures)

    back = import_log(source, file, spec="scripted:back")
    ours, theirs = (read_replies(one)[1] for one in (path, back.path))
    assert list(ours) == list(theirs)
    for key, line in ours.items():
        other = theirs[key]
        assert (other.response, other.request_digest, other.failed) == (line.response, line.request_digest, line.failed)
        assert other.usage == line.usage
        assert other.time == line.time


@real
def test_a_damaged_log_is_told(source: Source, tmp_path: Path) -> None:
    (tmp_path / "a.eval").write_bytes(b"PK\x03\x04rest")
    with pytest.raises(DatasetError, match="no log that can be read"):
        import_log(source, tmp_path / "a.eval")


@real
@pytest.mark.parametrize("suffix", ["eval", "json"])
@pytest.mark.parametrize(
    ("swollen", "told"),
    [
        (b'{"store": ' + b"[" * 2000 + b"]" * 2000 + b",", "too many lists or objects in each other"),
        (b'{"store": [' + b"0," * 50_000 + b"0],", "a list of 50001 numbers"),
        (b" " * 2_000_000 + b"{", "at most 1000000 are read"),
    ],
)
def test_a_log_that_takes_gigabytes_to_read_is_refused(
    source: Source, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str, swollen: bytes, told: str
) -> None:
    """Lists in lists took inspect_ai 4 GB or ended the process, and 100,000 numbers for messages 1.2 GB."""
    from inspect_ai.log import read_eval_log, write_eval_log

    monkeypatch.setattr("vgbench_gen.evaluation.logs.inspect_log.MAX_BYTES", 1_000_000)
    saved(source)
    export(source, "inspect-log", tmp_path / "logs", AskOptions())
    (file,) = (tmp_path / "logs").glob("*.eval")
    damaged = tmp_path / f"damaged.{suffix}"
    if suffix == "json":
        write_eval_log(read_eval_log(str(file)), str(damaged))
        head, _, tail = damaged.read_bytes().partition(b'"samples": [')
        damaged.write_bytes(head + b'"samples": [' + tail.replace(b"{", swollen, 1))
    else:
        with zipfile.ZipFile(file) as found, zipfile.ZipFile(damaged, "w") as out:
            for name in found.namelist():
                text = found.read(name)
                out.writestr(name, text.replace(b"{", swollen, 1) if name.startswith("samples/") else text)
    with pytest.raises(DatasetError, match=told):
        import_log(source, damaged)
