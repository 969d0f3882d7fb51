"""Single cases scored as a user scores them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.evaluation.score_rows import entry, row
from vgbench_gen.cli.main import main
from vgbench_gen.evaluation import cases, scoring
from vgbench_gen.evaluation.board import ScoreRow
from vgbench_gen.evaluation.results import ModelScores
from vgbench_gen.evaluation.saved import SavedScores, ScoreHeader

Capture = pytest.CaptureFixture[str]


def case(name: object, response: object, truth: object, kind: str = "multi-choice", **more: Any) -> dict[str, Any]:
    fields = {"id": name, "benchmark": "SpatialScore", "question_type": kind, "response": response}
    return {**fields, "ground_truth": truth, **more}


def written(folder: Path, rows: list[Any]) -> Path:
    path = folder / "cases.jsonl"
    lines = [row if isinstance(row, bytes) else json.dumps(row, ensure_ascii=False).encode() for row in rows]
    path.write_bytes(b"\n".join(lines) + b"\n")
    return path


def scored(path: Path, capsys: Capture) -> tuple[int, list[dict[str, Any]], str]:
    status = main(["compare", "--cases", str(path), "--json"])
    out, err = capsys.readouterr()
    return status, [json.loads(line) for line in out.splitlines()], err


def test_a_line_in_is_a_line_out(tmp_path: Path, capsys: Capture) -> None:
    path = written(
        tmp_path,
        [
            case("mc", "The answer is (B).", "B", options={"A": "left", "B": "right"}),
            case(7, "No, the box is not correct", "No", "judgment"),
            case("len", "5 ft 4 in", "1.50 meters", "open-ended-length", question="How tall is it?"),
            case("mute", None, "B"),
            case("vsi", "There are 4", 5, "numerical-answer", benchmark="VSI-Bench"),
            case("inside", "10", "5", "open-ended", benchmark="SpatialScore/VSI-Bench_8"),
            case("metres", "1.9", 1, "open-ended-length"),
            case("words", "(b)", "right", options={"A": "left", "B": "right"}),
            case("none", "None", "0", "open-ended-count", benchmark="SpatialScore/spatialbench"),
        ],
    )
    status, rows, err = scored(path, capsys)
    assert (status, err) == (0, "")
    assert rows == [
        {"id": "mc", "sane": _sane("B", "right", 1.0), "official": {"extracted": "B", "score": 1.0}},
        {"id": 7, "sane": _sane("No", "right", 1.0), "official": {"extracted": "Yes", "score": 0.0}},
        {"id": "len", "sane": _sane(1.6256, "right", 1.0), "official": {"extracted": "5 ft", "score": 1.0}},
        {"id": "mute", "sane": _sane(None, "unreadable", 0.0), "official": {"extracted": None, "score": 0.0}},
        {"id": "vsi", "sane": _sane(4, "wrong", 0.6), "official": {"extracted": None, "score": 0.0}},
        {"id": "inside", "sane": _sane(10, "right", 1.0), "official": {"extracted": 10, "score": 0.0}},
        {"id": "metres", "sane": _sane(1.9, "right", 1.0), "official": {"extracted": 1.9, "score": 0.0}},
        {"id": "words", "sane": _sane("B", "right", 1.0), "official": {"extracted": "B", "score": 0.0}},
        {"id": "none", "sane": _sane(0, "right", 1.0), "official": {"extracted": 0, "score": 1.0}},
    ]


@pytest.mark.parametrize(
    ("family", "sane", "official"),
    [
        ("SpatialScore/VSI-Bench", 1.0, 0.1),
        ("SpatialScore/VSI-Bench_8", 1.0, 0.1),
        ("SpatialScore", 1.0, 0.1),
        ("VSI-Bench", 0.1, 0.1),
        ("VSI-Bench_8", 0.1, 0.1),
        ("vsi_bench", 0.1, 0.1),
    ],
)
def test_the_benchmark_decides_how_numbers_are_graded(
    tmp_path: Path, capsys: Capture, family: str, sane: float, official: float
) -> None:
    row = case(1, "1.5", "1.0", "numerical-answer", benchmark=family)
    _, rows, _ = scored(written(tmp_path, [row]), capsys)
    assert (rows[0]["sane"]["score"], rows[0]["official"]["score"]) == (sane, official)


def test_lines_that_make_no_sense_are_named_and_the_others_go_on(tmp_path: Path, capsys: Capture) -> None:
    bad: list[tuple[Any, str]] = [
        (b"{not json", "no JSON"),
        (b"\xff\xfe{}", "no JSON"),
        (b"[" * 100_000, "no JSON"),
        (b"[1, 2]", "expected an object"),
        ({"id": 1}, "benchmark, ground_truth, question_type, response"),
        (case([], "B", "B"), "id"),
        (case(1, 3, "B"), "response"),
        (case(1, "B", "B", "guess"), "question_type"),
        (case(1, "B", None), "ground_truth"),
        (case(1, "B", ""), "ground_truth"),
        (case(1, "B", "Z"), "ABCDEF"),
        (case(1, "B", "A", options=["left"]), "options"),
        (case(1, "B", "A", options={"AB": "left"}), "options"),
        (case(1, "B", "A", options={"A": {}}), "options"),
        (case(1, "B", "C", options={"A": "x", "B": "y"}), "letters AB"),
        (case(1, "yes", "maybe", "judgment"), "Yes or No"),
        (case(1, "2 m", "far", "open-ended-length"), "length"),
        (case(1, "2", "2 or 3 or 4", "numerical-answer"), "one number"),
        (case(1, "x" * (scoring.MAX_RESPONSE_CHARS + 1), "B"), "response"),
        (b'{"id": "' + b"x" * cases.MAX_LINE_CHARS + b'"}', "characters"),
    ]
    rows: list[Any] = []
    for problem, _ in bad:
        rows += [problem, b"", case("good", "B", "B")]
    status, found, err = scored(written(tmp_path, rows), capsys)
    assert status == 1
    assert [row["id"] for row in found] == ["good"] * len(bad)
    named = [line for line in err.splitlines() if ", line " in line]
    assert len(named) == len(bad)
    for number, (line, (_, words)) in enumerate(zip(named, bad, strict=True)):
        assert f"line {3 * number + 1}:" in line
        assert words in line
        assert len(line) < 400
    assert f"{len(bad)} of {2 * len(bad)} lines" in err


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-le", "cp1252"])
def test_cases_in_other_encodings(tmp_path: Path, capsys: Capture, encoding: str) -> None:
    lines = [json.dumps(case(name, "B", "B"), ensure_ascii=False) for name in ("a", "\xe9\u2028", "c")]
    (tmp_path / "cases.jsonl").write_bytes("\r\n".join(lines).replace("\u2028", "\xb5").encode(encoding))
    status, found, err = scored(tmp_path / "cases.jsonl", capsys)
    assert [row["id"] for row in found] == (["a", "c"] if status else ["a", "\xe9\xb5", "c"])
    assert status == (encoding == "cp1252")
    assert not status or "line 2: found no JSON (byte 0xE9 in line 2, which is not UTF-8: save it as UTF-8)" in err


def test_hostile_replies_are_scored_like_any_other(tmp_path: Path, capsys: Capture) -> None:
    long = 40_000
    replies = [
        "1" * long, "1," * long, "1 " * long, "**" * long, "**" + "1" * long + "m", "(" * long, "\\boxed{" * 20000,
        "<think>" * 20000, "<answer>" * 20000, "A and " * 20000, "not A, " * 20000, "the answer is " * 10000,
        "A. x " * 20000, "no " * long, "5 ft " * 20000, "{" * long, "\\frac{1}{" * 10000, "about " * 20000,
        "\u200b" * long, "½" * long, "=" * long, "9e99 " * 10000, "-" * long, "一" * long, "five " * 20000,
        "1/" * long, "\ud800", "1\n" * long, "_a_ " * 20000, "`" * long, "(1+" * 20000, "9**9**9",
        "__import__('os')", " " * long + "B", "A" * long, "I cannot determine " * 5000, "<conclusion>(A)" * 10000,
        "1.1" * 30000, "'" * long, "~~" * long,
    ]  # fmt: skip
    rows: list[Any] = []
    for number, reply in enumerate(replies):
        for kind, truth in (
            ("multi-choice", "B"),
            ("judgment", "No"),
            ("open-ended-length", "2 m"),
            ("open-ended-count", "3"),
        ):
            rows.append(json.dumps(case(f"{number} {kind}", reply, truth, kind)).encode())
    status, found, err = scored(written(tmp_path, rows), capsys)
    assert (status, err) == (0, "")
    assert len(found) == len(rows)


def test_a_summary_without_json(tmp_path: Path, capsys: Capture) -> None:
    path = written(
        tmp_path, [case(1, "B", "B"), case(2, "I cannot tell", "B"), case(3, "<think>", "B"), case(4, "A", "B")]
    )
    assert main(["compare", "--cases", str(path)]) == 0
    out = capsys.readouterr().out
    assert "4 cases scored" in out
    assert "mean score: sane 0.2500, official 0.2500" in out
    assert "truncated 1" in out
    assert main(["compare", "--cases", str(tmp_path / "absent.jsonl")]) == 2


def _sane(extracted: object, outcome: str, score: float) -> dict[str, object]:
    return {"extracted": extracted, "outcome": outcome, "score": score}


def test_copies_of_a_question_count_once() -> None:
    def average(rows: list[ScoreRow], **contents: str) -> list[Any]:
        questions = {name: entry(name, content=content) for name, content in contents.items()}
        saved = SavedScores(
            Path("m.jsonl"), ScoreHeader(1, "", "", "m", "m"), tuple(rows), questions, replies=Path("m.jsonl")
        )
        figures = ModelScores(saved).figures
        return [figures[name] for name in ("distinct", "sane_distinct", "official_distinct")]

    copies = [row("a"), row("b", 0.0, official=1.0), row("c", 0.0)]
    assert average(copies, a="x", b="x", c="y") == [2, 0.25, 0.5]
    # Repeats of one question are no copies, nor are questions whose content is not known.
    nothing = [0, None, None]
    assert average([row("a"), row("a", 0.0, epoch=1), row("c")], a="x", c="y") == nothing
    assert average([row("a"), row("b")], a="", b="") == average([]) == nothing
