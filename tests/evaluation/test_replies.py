"""Files of replies: what was appended is read back, whatever became of the writer."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from vgbench_gen.core.errors import DatasetError
from vgbench_gen.evaluation import replies, reply_lines
from vgbench_gen.evaluation.replies import (
    Header,
    ReplyKey,
    ReplyLine,
    ReplyWriter,
    name_replies_file,
    read_answered,
    read_excerpts,
    read_line_at,
    read_replies,
)

HEADER = Header("f1", "VGBench", "openai:gpt-4o", "gpt-4o", {"prompt_set": "paper"}, "0.1.0")


def line(name: str, response: str | None = "B", **more: object) -> ReplyLine:
    given = {"request_digest": f"d-{name}"} | more
    return ReplyLine(name, "VGBench", "gpt-4o", response=response, **given)  # type: ignore[arg-type]


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
    with ReplyWriter(path, read_replies(path).header) as writer:
        writer.append(line("c"))
    header, found, _ = read_replies(path)
    assert header == HEADER
    # Half of a pair of surrogates cannot be written as UTF-8.
    assert found[ReplyKey("a", 2, 1, "blind", "final_line")] == replace(full, response="日本 ? \u2028\n")
    assert list(found) == [full.key, ReplyKey("b"), ReplyKey("c")]
    assert found[ReplyKey("b")].failed
    assert read_answered(path).active == {full.key: "d-a", ReplyKey("c"): "d-c"}


def test_the_name_of_a_model_is_one_line(tmp_path: Path) -> None:
    """Tables and messages show it: a line break made a second line that said whatever it liked."""
    path = written(tmp_path / "r.jsonl", header=replace(HEADER, spec="a\nb", model="gpt\nvgbench: error: \x1b[31mno"))
    header, _, _ = read_replies(path)
    assert (header.spec, header.model) == ("a b", "gpt vgbench: error: [31mno")


def test_the_last_line_and_the_last_header_count(tmp_path: Path) -> None:
    path = written(tmp_path / "r.jsonl", line("a", None, error="timeout"), line("b"))
    later = Header("f2", "VGBench", "openai:gpt-4o", "gpt-4o", {"prompt_set": "final_line"})
    written(path, line("a", "C"), header=later)
    written(path, header=later)
    header, found, _ = read_replies(path)
    assert header == later
    assert [(one.id, one.response) for one in found.values()] == [("a", "C"), ("b", "B")]
    assert path.read_bytes().count(b'"dataset"') == 2


@pytest.mark.parametrize("torn", [b'{"schema":1,"id":"b', b'{"schema":1}', b"\xff\xfe", b"0" * 70_000])
def test_a_torn_last_line_is_as_if_never_written(tmp_path: Path, torn: bytes) -> None:
    path = written(tmp_path / "r.jsonl", line("a"))
    whole = path.read_bytes()
    path.write_bytes(whole + torn)
    assert list(read_replies(path)[1]) == [ReplyKey("a")]
    written(path, line("c"))
    assert path.read_bytes().startswith(whole)
    assert list(read_replies(path)[1]) == [ReplyKey("a"), ReplyKey("c")]


def test_a_torn_header_is_written_again(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    path.write_bytes(b'{"schema":1,"dataset":"f')
    assert not read_answered(path).at
    written(path, line("a"))
    assert read_replies(path)[0] == HEADER


def _raw(**more: object) -> bytes:
    told = {"schema": 1, "id": "a", "benchmark": "", "model": "", "request_digest": "", "response": ""}
    return json.dumps(told | more).encode() + b"\n"


@pytest.mark.parametrize(
    ("bad", "told"),
    [
        (b"no json\n", "line 2: found no JSON"),
        (b'{"schema":9,"id":"a"}\n', "line 2: found no object of schema 1"),
        (b'{"schema":1,"id":"a"}\n', "line 2: found no reply"),
        (b'{"schema":1,"id":7,"benchmark":"","model":"","request_digest":"","response":""}\n', "id = '7'"),
        (b"[" * 100_000 + b"\n", "line 2: found no JSON"),
        (_raw(usage={"prompt_tokens": "x"}), r"line 2: found usage\.prompt_tokens = 'x'"),
        (_raw(usage={"prompt_tokens": 10**400}), r"line 2: found usage\.prompt_tokens"),
        (_raw(cost_usd=10**400), "line 2: found cost_usd"),
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
    for module in (replies, reply_lines):
        monkeypatch.setattr(module, "MAX_LINE_BYTES", 1000)
    path = written(tmp_path / "r.jsonl", line("long", "x" * 2000), line("short"))
    found = read_replies(path)[1]
    assert (found[ReplyKey("long")].response, found[ReplyKey("short")].response) == (None, "B")
    assert "longer than 1000 bytes" in found[ReplyKey("long")].error
    path.write_bytes(path.read_bytes() + json.dumps({"schema": 1, "id": "x" * 2000}).encode() + b"\n")
    with pytest.raises(DatasetError, match="more than 1000 bytes"):
        read_replies(path)


def test_a_file_has_one_writer_and_one_model(tmp_path: Path) -> None:
    path = written(tmp_path / "r.jsonl", line("a"))
    with ReplyWriter(path, HEADER), pytest.raises(DatasetError, match="another process"):
        ReplyWriter(path, HEADER)
    with pytest.raises(DatasetError, match="replies of openai:gpt-4o"):
        ReplyWriter(path, Header("f1", "VGBench", "openai:other", "other"))
    assert list(read_replies(path)[1]) == [ReplyKey("a")]


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
    return Header("f1", "VGBench", "openai:gpt-4o", "gpt-4o", {"prompt_set": "paper", "settings": sent} | more)


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
    answered = read_answered(path, warm)
    assert answered.active[ReplyKey("a")] == "w-a"
    assert set(answered.at[ReplyKey("a")]) == {"d-a", "w-a"}
    assert read_line_at(path, answered.at[ReplyKey("a")]["d-a"]).response == "cold"
    assert read_excerpts(path, {ReplyKey("a")}, 2)[ReplyKey("a")].text == "co"


def test_a_failure_never_takes_the_place_of_an_answer(tmp_path: Path) -> None:
    path = written(tmp_path / "r.jsonl", line("a"), line("a", None, error="too_many_images: 3"))
    assert read_replies(path)[1][ReplyKey("a")].response == "B"
    assert read_answered(path).active == {ReplyKey("a"): "d-a"}


def test_a_file_is_never_without_its_header(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*given: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(replies, "sync_to_disk", full)
    with pytest.raises(OSError, match="No space"):
        ReplyWriter(tmp_path / "r.jsonl", HEADER)
    assert not list(tmp_path.iterdir())
