"""Files of replies: what was appended is read back, whatever became of the writer."""

from __future__ import annotations

from pathlib import Path

import pytest

from vgbench_gen.core.errors import DatasetError
from vgbench_gen.evaluation import json_lines, replies
from vgbench_gen.evaluation.json_lines import encode_line
from vgbench_gen.evaluation.records import Header, ReplyKey, ReplyLine
from vgbench_gen.evaluation.replies import (
    ReplyWriter,
    name_replies_file,
    read_answered,
    read_excerpts,
    read_replies,
    read_reply_at,
)

HEADER = Header(
    dataset="f1",
    benchmark="VGBench",
    spec="openai:gpt-4o",
    model="gpt-4o",
    settings={"prompt_set": "paper"},
    code="0.1.0",
)


def key(name: str, rotation: int = 0, epoch: int = 0, stage: str = "", prompt_set: str = "paper") -> ReplyKey:
    return ReplyKey(name, rotation, epoch, stage, prompt_set, HEADER.digest)


def line(name: str, response: str | None = "B", **more: object) -> ReplyLine:
    place = {field: more.pop(field) for field in ReplyKey._fields if field in more}
    given = {"benchmark": "VGBench", "model": "gpt-4o", "request_digest": f"d-{name}"} | more
    return ReplyLine(key=ReplyKey(name, **place), response=response, **given)  # type: ignore[arg-type]


def written(path: Path, *lines: ReplyLine, header: Header = HEADER) -> Path:
    with ReplyWriter(path, header) as writer:
        for one in lines:
            writer.append(one)
    return path


def test_what_is_written_is_read(tmp_path: Path) -> None:
    full = line(
        "a", "日本 \ud800 \u2028\n", rotation=2, epoch=1, stage="blind", prompt_set="final_line", finish_reason="stop",
        images=({"name": "x.jpg", "size_px": [640, 480]},), usage={"prompt_tokens": 7}, cost_usd=0.01, time=12.5,
    )  # fmt: skip
    path = written(tmp_path / "deep" / "r.jsonl", full, line("b", None, error="timeout: no answer"))
    written(path, line("c"))
    full = full.model_copy(update={"key": key("a", 2, 1, "blind", "final_line")})
    header, found, _ = read_replies(path)
    assert header == HEADER
    # Half of a pair of surrogates cannot be written as UTF-8.
    assert found[full.key] == full.model_copy(update={"response": "日本 ? \u2028\n"})
    assert list(found) == [full.key, key("b"), key("c")]
    assert found[key("b")].failed
    assert read_answered(path).last == {full.key: "d-a", key("c"): "d-c"}


def test_the_name_of_a_model_is_one_line(tmp_path: Path) -> None:
    """Tables and messages show it: a line break made a second line that said whatever it liked."""
    path = written(
        tmp_path / "r.jsonl",
        header=Header(dataset="", benchmark="", spec="a\nb", model="gpt\nvgbench: error: \x1b[31mno"),
    )
    header, _, _ = read_replies(path)
    assert (header.spec, header.model) == ("a b", "gpt vgbench: error: [31mno")


def test_the_last_line_and_the_last_header_count(tmp_path: Path) -> None:
    path = written(tmp_path / "r.jsonl", line("a", None, error="timeout"), line("b"))
    later = HEADER.model_copy(update={"dataset": "f2"})
    written(path, line("a", "C"), header=later)
    written(path, header=later)
    header, found, _ = read_replies(path)
    assert header == later
    assert [(one.key.id, one.response) for one in found.values()] == [("a", "C"), ("b", "B")]
    assert path.read_bytes().count(b'"dataset"') == 2


@pytest.mark.parametrize("torn", [b'{"schema":2,"id":"b', b'{"schema":2}', b"\xff\xfe", b"0" * 70_000])
def test_a_torn_last_line_is_as_if_never_written(tmp_path: Path, torn: bytes) -> None:
    path = written(tmp_path / "r.jsonl", line("a"))
    whole = path.read_bytes()
    path.write_bytes(whole + torn)
    assert list(read_replies(path)[1]) == [key("a")]
    written(path, line("c"))
    assert path.read_bytes().startswith(whole)
    assert list(read_replies(path)[1]) == [key("a"), key("c")]


def test_a_torn_header_is_written_again(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    path.write_bytes(b'{"schema":2,"dataset":"f')
    assert not read_answered(path).at
    written(path, line("a"))
    assert read_replies(path)[0] == HEADER


def _raw(**more: object) -> bytes:
    given = {"key": {"id": "a"}, "benchmark": "", "model": "", "request_digest": "", "response": ""}
    return encode_line(given | more)


@pytest.mark.parametrize(
    ("bad", "told"),
    [
        (b"no json\n", "line 2: found no object of schema 2"),
        (b'{"schema":9,"id":"a"}\n', "line 2: found no object of schema 2"),
        (encode_line({"key": {"id": "a"}}), "line 2: found no ReplyLine .benchmark: found nothing"),
        (_raw(key={"id": 7}), "key.id: found 7"),
        (b'{"schema":2,' + b"[" * 100_000 + b"\n", "line 2: found no ReplyLine"),
        (_raw(usage={"prompt_tokens": "x"}), r'line 2: found no ReplyLine .usage\.prompt_tokens: found "x"'),
        (_raw(usage={"prompt_tokens": -1}), r"line 2: found no ReplyLine .usage\.prompt_tokens: found -1"),
        (_raw(usage={"prompt_tokens": 10**400}), r"line 2: found no ReplyLine .usage\.prompt_tokens"),
        (_raw(cost_usd=10**400), "line 2: found no ReplyLine .cost_usd"),
    ],
)
def test_a_damaged_line_is_named(tmp_path: Path, bad: bytes, told: str) -> None:
    path = written(tmp_path / "r.jsonl", line("a"))
    head, body = path.read_bytes().split(b"\n", 1)
    path.write_bytes(head + b"\n" + bad + body)
    with pytest.raises(DatasetError, match=told):
        read_replies(path)
    with pytest.raises(DatasetError, match=told):
        ReplyWriter(path, HEADER)


def test_lines_have_a_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (replies, json_lines):
        monkeypatch.setattr(module, "MAX_LINE_BYTES", 1000)
    path = written(tmp_path / "r.jsonl", line("long", "x" * 2000), line("short"))
    found = read_replies(path)[1]
    assert (found[key("long")].response, found[key("short")].response) == (None, "B")
    assert "longer than 1000 bytes" in found[key("long")].error
    path.write_bytes(path.read_bytes() + encode_line({"id": "x" * 2000}))
    with pytest.raises(DatasetError, match="more than 1000 bytes"):
        read_replies(path)


def test_a_file_has_one_writer_and_one_model(tmp_path: Path) -> None:
    path = written(tmp_path / "r.jsonl", line("a"))
    with ReplyWriter(path, HEADER), pytest.raises(DatasetError, match="another process"):
        ReplyWriter(path, HEADER)
    with pytest.raises(DatasetError, match="replies of openai:gpt-4o"):
        ReplyWriter(path, HEADER.model_copy(update={"spec": "openai:other"}))
    assert list(read_replies(path)[1]) == [key("a")]


def test_file_names_tell_models_apart(tmp_path: Path) -> None:
    specs = [
        "openai:gpt-4o",
        "openai:gpt_4o",
        "a:b_c",
        "a_b:c",
        "vllm:http://a:1/v1#x",
        "vllm:http://a:1/v1_x",
        "hf:../../etc",
        "a:" + "b" * 300,
    ]
    names = [name_replies_file(tmp_path, spec).name for spec in specs]
    assert names[0] == "openai_gpt-4o.jsonl"
    assert len({name.casefold() for name in names}) == len(specs)
    assert all(
        name_replies_file(tmp_path, spec).parent == tmp_path and len(name) < 100
        for spec, name in zip(specs, names, strict=True)
    )


def settings(temperature: float, stage: str = "", **more: object) -> Header:
    sent = {"temperature": temperature, "max_tokens": 512, "system": "", "stage": stage}
    return HEADER.model_copy(update={"settings": {"prompt_set": "paper", "settings": sent} | more})


def test_replies_at_several_settings_lie_side_by_side(tmp_path: Path) -> None:
    path, cold, warm = tmp_path / "r.jsonl", settings(0.0), settings(1.0)
    written(path, line("a", "cold"), line("b", "cold"), header=cold)
    written(path, line("a", "warm", request_digest="w-a"), header=warm)
    stored = read_replies(path)
    assert ([one.response for one in stored.lines.values()], stored.others) == (["warm"], 1)
    written(path, header=cold)  # a run that found all of it answered
    stored = read_replies(path)
    assert ([one.response for one in stored.lines.values()], stored.others) == (["cold", "cold"], 0)
    # Which questions a run asked, and how often, is no setting of a request; nor are controls the same question.
    written(path, header=settings(0.0, epochs=3, sources=["scannet"], max_images=2))
    written(path, line("a", "none", stage="blind"), header=settings(1.0, "blind"))
    found = read_replies(path)
    assert [one.response for one in found.lines.values()] == ["cold", "cold", "none"]
    # A run that got no answer puts nothing in force.
    written(path, line("b", None, error="timeout: no answer"), header=settings(2.0))
    assert read_replies(path).lines == found.lines
    answered = read_answered(path)
    assert answered.last[ReplyKey("a", settings=warm.digest)] == "w-a"
    assert {digest for asked, digest in answered.at if asked == ReplyKey("a")} == {"d-a", "w-a"}
    at = answered.find(ReplyKey("a", settings="whatever"), "d-a")
    assert at is not None
    assert read_reply_at(path, at).response == "cold"
    asked = ReplyKey("a", settings=cold.digest)
    assert read_excerpts(path, {asked}, 2)[asked].text == "co"


def test_a_failure_never_takes_the_place_of_an_answer(tmp_path: Path) -> None:
    path = written(tmp_path / "r.jsonl", line("a"), line("a", None, error="too_many_images: 3"))
    assert read_replies(path)[1][key("a")].response == "B"
    assert read_answered(path).last == {key("a"): "d-a"}


def test_a_file_is_never_without_its_header(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*given: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(replies, "sync_to_disk", full)
    with pytest.raises(OSError, match="No space"):
        ReplyWriter(tmp_path / "r.jsonl", HEADER)
    assert not list(tmp_path.iterdir())
