"""Saved replies scored through the whole path: only what belongs, again when the scorer changed."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.evaluation.score_rows import depth, entry, row
from tests.store.examples import make_item, textured
from vgbench_gen.cli.main import main
from vgbench_gen.core.errors import DatasetError
from vgbench_gen.core.types import Item
from vgbench_gen.evaluation import saved
from vgbench_gen.evaluation.base import Source, benchmarks
from vgbench_gen.evaluation.baselines import DECLINED
from vgbench_gen.evaluation.board import make_entry
from vgbench_gen.evaluation.compare import load_board
from vgbench_gen.evaluation.prompting import digest_question, rotate_options
from vgbench_gen.evaluation.records import Header, ReplyKey, ReplyLine
from vgbench_gen.evaluation.replies import ReplyWriter, name_replies_file
from vgbench_gen.evaluation.saved import SavedScores, ScoreHeader, read_scores, score_source, write_scores
from vgbench_gen.evaluation.scoring import SCORER_VERSION
from vgbench_gen.store.media import MediaStore
from vgbench_gen.store.pictures import encode_jpeg
from vgbench_gen.store.shards import write_items

Capture = pytest.CaptureFixture[str]
SPEC = "scripted:m"


def built(folder: Path) -> Source:
    """Six rows: a choice, its copy elsewhere, two judgments that are twins, two open lengths."""
    media = MediaStore(folder / "media")
    images = [media.put(encode_jpeg(textured(64, 48, 1)), "jpg")]
    depth: dict[str, Any] = {"question_type": "open-ended", "options": (), "answer": "2.40 meters"}
    claim: dict[str, Any] = {"question_type": "judgment", "options": (), "twin_id": "t"}
    origin = {"category_origin": "metric_depth_vqa", "category": "Depth and Distance"}
    items = [
        make_item(0, images, **origin),
        make_item(1, images, scene_id="scene0001_00", **origin),
        make_item(2, images, answer="Yes", **claim, **origin),
        make_item(3, images, answer="No", **claim, **origin),
        make_item(4, images, question="What is the depth in meters of region 4?", **depth, **origin),
        make_item(5, images, question="What is the depth in meters of region 5?", **depth, **origin),
    ]
    write_items(folder / "items", items, media)
    return benchmarks["vgbench"].open(folder)


def items_of(source: Source) -> list[Item]:
    return [source.item(one.row) for one in source.rows()]


def reply(item: Item, response: str | None, rotation: int = 0, **more: Any) -> ReplyLine:
    rotated = item if rotation >= len(item.options) else rotate_options(item, rotation)
    digest = digest_question(rotated) + "0123456789abcdef"
    place = {field: more.pop(field) for field in ReplyKey._fields if field in more}
    key = ReplyKey(item.id, rotation)._replace(**place)
    given: dict[str, Any] = {"benchmark": item.benchmark, "model": "m", "request_digest": digest} | more
    return ReplyLine(key=key, response=response, **given)


def write(source: Source, *lines: ReplyLine, spec: str = SPEC, fingerprint: str = "") -> Path:
    path = name_replies_file(source.folder / "replies", spec)
    fingerprint = fingerprint or source.fingerprint
    header = Header(dataset=fingerprint, benchmark="VGBench", spec=spec, model=spec.partition(":")[2])
    with ReplyWriter(path, header) as writer:
        for line in lines:
            writer.append(line)
    return path


def test_outcomes_metrics_and_both_modes(tmp_path: Path) -> None:
    source = built(tmp_path)
    items = items_of(source)
    write(
        source,
        reply(items[0], "The answer is (B)."),
        reply(items[1], "Either A or B", finish_reason="stop", cost_usd=0.5, usage={"prompt_tokens": 7}),
        reply(items[2], "I cannot determine that."),
        reply(items[3], None, error="timeout: no answer"),
        reply(items[4], "3.0 m"),
        reply(items[5], "2.5 m"),
        reply(items[5], "\\scalar{4.9} \\distance_unit{m}"),  # a later line of the same key wins
    )
    (found,) = score_source(source)
    by_id = {one.id: one for one in found.rows}
    assert [by_id[item.id].outcome for item in items] == [
        "right", "unreadable", "refused", "failed", "right", "wrong"
    ]  # fmt: skip
    third, fifth = by_id[items[1].id], by_id[items[5].id]
    assert (third.status, third.cost_usd, third.tokens) == ("ambiguous", 0.5, 7.0)
    assert (by_id[items[4].id].delta_2, by_id[items[4].id].delta_125) == (1.0, 0.0)  # 1.25 is not below 1.25
    assert (fifth.extracted, fifth.delta_2) == (4.9, 0.0)
    assert fifth.relative_error == pytest.approx(2.5 / 2.4)
    assert by_id[items[0].id].official == 1.0


def test_no_answer_at_the_end_of_the_room_is_cut_off(tmp_path: Path) -> None:
    source = built(tmp_path)
    items = items_of(source)
    write(
        source,
        reply(items[0], "Let us think about it", finish_reason="length"),
        reply(items[1], "", finish_reason="content_filter"),
    )
    (found,) = score_source(source)
    assert [(one.outcome, one.status) for one in found.rows] == [("unreadable", "truncated"), ("refused", "refusal")]


def test_every_order_of_the_options_is_scored_by_its_own_letters(tmp_path: Path) -> None:
    source = built(tmp_path)
    item = items_of(source)[0]
    write(source, *(reply(item, rotate_options(item, k).answer, k) for k in range(4)), reply(item, "B", 0, epoch=1))
    (found,) = score_source(source)
    assert [(one.rotation, one.score) for one in found.rows] == [(0, 1.0), (1, 1.0), (2, 1.0), (3, 1.0), (0, 1.0)]
    assert [one.extracted for one in found.rows] == ["B", "A", "D", "C", "B"]


def test_replies_that_do_not_belong_are_counted_and_not_scored(tmp_path: Path) -> None:
    source = built(tmp_path)
    items = items_of(source)
    other = replace(items[1], question="Another question?")
    write(
        source,
        reply(items[0], "B"),
        reply(replace(items[0], id="gone"), "B"),
        reply(other, "B"),
        reply(items[2], "Yes", request_digest=""),
        reply(items[3], "No", stage="plan"),
        reply(items[0], "B", rotation=9),
    )
    (found,) = score_source(source)
    assert [one.id for one in found.rows] == [items[0].id, items[2].id]
    assert found.header.ignored == {"bad_rotation": 1, "other_request": 1, "other_stage": 1, "unknown_id": 1}
    # Without a digest only the very same dataset will do.
    write(source, reply(items[2], "Yes", request_digest=""), spec="scripted:other", fingerprint="f0")
    (found,) = score_source(source, ["scripted:other"])
    assert (found.rows, found.header.ignored) == ((), {"other_request": 1})


def test_scores_are_kept_until_replies_or_scorer_change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = built(tmp_path)
    items = items_of(source)
    path = write(source, reply(items[0], "B"))
    first = score_source(source)[0]
    again = score_source(source)[0]
    assert (first.fresh, again.fresh, again.rows) == (True, False, first.rows)
    with path.open("ab") as file:
        file.write(b'{"schema": 1, "id": "torn')
    write(source, reply(items[1], "A"))
    more = score_source(source)[0]
    assert (more.fresh, len(more.rows)) == (True, 2)
    monkeypatch.setattr(saved, "SCORER_VERSION", SCORER_VERSION + 1)
    newer = score_source(source)[0]
    assert (newer.fresh, newer.header.scorer_version) == (True, more.header.scorer_version + 1)
    newer.path.write_bytes(newer.path.read_bytes()[:-9])
    assert score_source(source)[0].fresh
    assert score_source(source, again=True)[0].fresh


def test_scores_are_read_as_they_were_written(tmp_path: Path) -> None:
    rows = (
        row("a \u2028 ü", 0.4, relative_error=math.inf, extracted=2.5, stage="blind", prompt_set="ü"),
        row("b", outcome="unreadable", extracted=None, cost_usd=0.1),
    )
    asked = (entry(rows[0].id, error_parts=("", "depth")), depth("b", 2.4000000000000004, twin="ü"))
    header = ScoreHeader(1, "f", "r", "s", "m", {"unknown_id": 2})
    made = SavedScores(tmp_path / "s.jsonl", header, rows, {one.id: one for one in asked}, replies=tmp_path / "m.jsonl")
    write_scores(made)
    found = read_scores(made.path, made.replies)
    assert repr(found.rows) == repr(rows)
    assert (found.header, found.questions) == (made.header, made.questions)
    lines = made.path.read_bytes().splitlines(keepends=True)
    for damage in (
        lines[:1] + lines[2:],
        [*lines[:2], lines[2].replace(b'"rotation":0', b'"rotation":"x"')],
        [*lines[:2], lines[2].replace(b'"id":"a', b'"id":"c')],
        [lines[0], lines[1].replace(b'"rule":"delta"', b'"rule":"mercy"')],
        lines[:1],
    ):
        made.path.write_bytes(b"".join(damage))
        with pytest.raises(DatasetError, match="no scores"):
            read_scores(made.path, made.replies)


def test_tables_need_no_question_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    media = MediaStore(tmp_path / "media")
    images = [media.put(encode_jpeg(textured(64, 48, 1)), "jpg")]
    mirrored = {"benchmark": "SpatialScore/3DSRBench", "evidence": {"origin": {"index": "AB-flip"}}}
    items = [make_item(k, images, **mirrored if k else {}) for k in range(2)]
    write_items(tmp_path / "items", items, media)
    source = benchmarks["vgbench"].open(tmp_path)
    write(source, *(reply(item, "B") for item in items))
    found = score_source(source)[0].questions
    assert {one.id: one for one in map(make_entry, items)} == found
    assert found[items[1].id].origin_id == "AB-flip"
    assert [entry.dataset for entry in load_board({"x": source}).questions] == ["x", "x"]

    def refuse(*given: object) -> None:
        raise AssertionError("a question was opened, or its key made")

    for place in (f"{saved.__name__}.make_entry", f"{saved.__name__}.read_questions"):
        monkeypatch.setattr(place, refuse)
    monkeypatch.setattr(type(source), "item", refuse)
    again = load_board({"x": source})
    assert {replace(entry, dataset=""): "x" for entry in again.questions} == dict.fromkeys(found.values(), "x")


def test_score_and_compare_from_the_command_line(tmp_path: Path, capsys: Capture) -> None:
    source = built(tmp_path / "set")
    items = items_of(source)
    assert main(["compare", str(tmp_path / "set")]) == 2
    assert "no replies" in capsys.readouterr().err
    truths = ["B", "B", "Yes", "No", "2.4 m", "2.4 m"]
    write(source, *(reply(item, truth) for item, truth in zip(items, truths, strict=True)))
    write(source, *(reply(item, "B") for item in items[:2]), reply(items[2], None, error="x"), spec="scripted:weak")
    assert main(["compare", str(tmp_path / "set"), "--model", "m", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)["models"]
    assert [(one["model"], one["sane"], one["official"], one["scored"]) for one in told] == [("m", 1.0, 1.0, 6)]
    assert main(["compare", str(tmp_path / "set"), "--json"]) == 1  # a reply of "weak" failed
    found = json.loads(capsys.readouterr().out)
    summary = {line["name"]: line for line in found["tables"][0]["lines"]}
    assert summary["m"]["cells"]["delta = 2"]["value"] == 1.0
    assert summary["weak"]["note"] == "incomplete: 1 of 3 failed; asked 3 of 6"
    assert (summary["weak"]["cells"]["delta = 2"]["n"], summary["weak"]["cells"]["delta = 2"]["value_all"]) == (
        2, pytest.approx(2 / 3)
    )  # fmt: skip
    report = tmp_path / "set" / "scores" / "report"
    assert {path.name for path in report.iterdir()} == {
        "index.html", "tables.csv", "tables.json", "tables.md", "tables.tex"
    }  # fmt: skip
    assert main(["compare", str(tmp_path / "set"), "--model", "m", "--model", "nobody"]) == 2
    assert "no replies of nobody" in capsys.readouterr().err


def test_a_model_all_of_whose_requests_failed_stands_as_that(tmp_path: Path, capsys: Capture) -> None:
    source = built(tmp_path / "set")
    items = items_of(source)
    write(source, *(reply(item, "B") for item in items))
    blind = (reply(item, None, stage="blind", error="wrong_request: no such model") for item in items)
    lost = (reply(item, None, error=f"api_error: the server {item.id[:2]} failed.") for item in items)
    write(source, *blind, *lost, spec="scripted:dead")
    first = f"the first with api_error: the server {items[0].id[:2]} failed"
    for again in range(2):  # as they are scored and as they are kept
        assert main(["compare", str(tmp_path / "set"), "--json"]) == 0, again
        found = json.loads(capsys.readouterr().out)
        summary = {line["name"]: line for line in found["tables"][0]["lines"]}
        assert summary["dead"]["note"] == f"incomplete: all 6 requests failed, {first}"
        assert summary["dead (blind)"]["note"].endswith("the first with wrong_request: no such model")
        assert summary["dead"]["cells"]["delta = 2"]["value"] is None
        assert f"dead: incomplete: all 6 requests failed, {first}." in found["notes"]
        (file,) = (path for path in (tmp_path / "set" / "replies").iterdir() if "dead" in path.name)
        assert f"dead: delete {file} to drop its row, or run its `vgbench eval` again." in found["notes"]
    assert main(["compare", str(tmp_path / "set"), "--model", "dead"]) == 1
    capsys.readouterr()
    assert main(["compare", str(tmp_path / "set")]) == 0
    lines = capsys.readouterr().out.splitlines()
    cells = next(line for line in lines if line.startswith("dead (all failed)")).split()
    assert cells[3] == "failed"
    assert "0.0" not in cells
    assert any("failed means that no request got a reply" in line for line in lines)
    page = (tmp_path / "set" / "scores" / "report" / "index.html").read_text()
    assert "dead* (all requests failed)" in page  # in the legend of the chart
    assert "not attempted" not in page


def test_compare_tells_what_a_baseline_attempted_and_what_makes_ids_links(tmp_path: Path, capsys: Capture) -> None:
    source = built(tmp_path / "set")
    said = [DECLINED if k % 2 else item.answer for k, item in enumerate(items_of(source))]
    for spec in ("scripted:baseline:solvers", SPEC):  # whoever is no baseline has tried and refused
        write(source, *(reply(item, one) for item, one in zip(items_of(source), said, strict=True)), spec=spec)
    assert main(["compare", str(tmp_path / "set")]) == 0
    lines = capsys.readouterr().out.splitlines()
    told = [line for line in lines if "attempted 3" in line]
    assert told == ["baseline:solvers: attempted 3 of 6; the others count as wrong."]
    # Without a gallery ids are no links, and the last line says what makes them.
    assert lines[-1] == f"Ids on the pages become links after `vgbench browse {source.folder}` and another compare."
    (source.folder / "gallery").mkdir()
    (source.folder / "gallery" / "index.html").write_text("")
    assert main(["compare", str(tmp_path / "set")]) == 0
    assert "become links" not in capsys.readouterr().out


def test_a_file_that_cannot_be_read_holds_up_no_other(tmp_path: Path, capsys: Capture) -> None:
    source = built(tmp_path / "set")
    items = items_of(source)
    path = write(source, reply(items[0], "B"))
    path.with_name("empty.jsonl").touch()
    damaged = write(source, reply(items[0], "B"), reply(items[1], "B"), spec="scripted:other")
    damaged.write_bytes(damaged.read_bytes().replace(b'"response":"B"', b'"response":7', 1))
    assert main(["compare", str(tmp_path / "set")]) == 0
    told = capsys.readouterr()
    assert "m" in told.out
    for name in ("empty.jsonl", damaged.name):
        assert name in told.out + told.err
    path.unlink()
    damaged.unlink()
    assert main(["compare", str(tmp_path / "set")]) == 2
    assert "empty.jsonl" in capsys.readouterr().err


@pytest.mark.parametrize("named", [(), ("--model", "m")])
def test_a_line_break_in_a_file_name_makes_no_line_of_its_own(
    tmp_path: Path, capsys: Capture, named: tuple[str, ...]
) -> None:
    source = built(tmp_path / "set")
    path = write(source, reply(items_of(source)[0], "B"))
    for k, data in enumerate((path.read_bytes(), b"", b"no JSON\n")):
        path.with_name(f"x{k}\nvgbench: built\x1b[2J and verified.jsonl").write_bytes(data)
    assert main(["compare", str(tmp_path / "set"), *named]) == 0
    told = capsys.readouterr()
    assert "\nvgbench: built" not in told.out + told.err
    assert all(f"x{k} vgbench: built [2J and verified.jsonl" in told.out + told.err for k in range(3))
    path.unlink()
    assert main(["export", str(tmp_path / "set"), "--to", "trajectories", "--out", str(tmp_path / "out")]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_replies_elsewhere_and_at_other_settings(tmp_path: Path, capsys: Capture) -> None:
    source = built(tmp_path / "set")
    script = tmp_path / "ok.jsonl"
    script.write_text('{"reply": "B", "times": 0}\n')
    place, common = tmp_path / "r", ["eval", str(tmp_path / "set"), "--model", f"scripted:{script}"]
    assert main([*common, "--replies", str(place)]) == 0
    assert main([*common, "--replies", str(place), "--limit=2", "--temperature=1"]) == 0
    assert f"--replies {place}" in capsys.readouterr().out
    told = []
    for one in (place, next(place.glob("*.jsonl"))):
        assert main(["compare", str(source.folder), "--replies", str(one), "--json"]) == 0
        told.append(json.loads(capsys.readouterr().out)["models"])
    assert told[0][0]["ignored"] == {"other_settings": 4}
    assert told[0][0]["scored"] == 2
    assert (
        [one["path"] for one in told[0]]
        == [one["path"] for one in told[1]]
        == [str(next(place.glob("scores/*.jsonl")))]
    )
    assert main([*common, "--replies", str(place)]) == 0
    assert "6 answered before, 0 now" in capsys.readouterr().out
    assert main(["compare", str(source.folder), "--replies", str(place)]) == 0
    assert "not scored" not in capsys.readouterr().out
    assert (place / "scores" / "report" / "index.html").is_file()
    assert not (source.folder / "replies").exists()
