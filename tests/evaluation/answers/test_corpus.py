"""Replies in the styles of published models, each with the reading that was decided before it was read.

`replies.jsonl` has replies of one style after the other, `replies_by_kind.jsonl` those that look for the ways in which
a reader errs: invented turns, answers that open or end a reply, forms of quantities, verdicts per option, courtesy.
Both have the kind of question, the style, what the question has (options, unit, vocabulary, truth), the
reply, and `want`: a value, or an outcome where nothing may be read. Replies of part "held out" were split off by a hash
of their pattern, and those of part "later" written, before the reader was mended by them. A new mistake of the reader
adds its reply.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

from vgbench_gen.evaluation.benchmarks.rover import judge_replies
from vgbench_gen.evaluation.scoring import Case, score

CORPUS = Path(__file__).with_name("replies.jsonl")
BY_KIND = Path(__file__).with_name("replies_by_kind.jsonl")
FEWEST = 1000
# The share of `replies_by_kind.jsonl` that the reader gets wrong; most of it restates or argues without a verdict.
MOST_MISREAD = 0.038
SPELLED = {"m": "in meters", "cm": "in centimeters", "m2": "in square meters"}
# What the reader still gets wrong; it grows only with a reason.
MISREAD = {
    "<B>",  # taken for bold
    "B? No. C? No. D.",
    "Answer: B\nEdit: C",
    "Yes... hmm, no. The box is behind.",
    "I first thought yes, but no.",
    "There isn't enough context to decide.",
    "No, there are none.",
    '{"reasoning_visual_score": 4 "reasoning": "missing comma"}',
}


def case_of(row: dict[str, Any]) -> Case:
    options = dict(zip("ABCDEF", row.get("options", ()), strict=False))
    if "question" in row:
        question_type = {"letter": "multi-choice", "yes_no": "judgment", "length": "open-ended"}[row["kind"]]
        truth = row.get("truth", {"letter": "A", "yes_no": "Yes", "length": "2.3 meters"}[row["kind"]])
        return Case(row.get("benchmark", "VGBench"), question_type, truth, options, row["question"])
    unit = SPELLED.get(row.get("unit", ""), "")
    benchmark, question_type, truth, question = {
        "letter": ("VGBench", "multi-choice", "A", "Which one?"),
        "yes_no": ("VGBench", "judgment", row.get("truth", "Yes"), "Is the statement true? Answer yes or no."),
        "count": ("SpatialScore/cvbench", "open-ended-count", "1", "How many chairs are there?"),
        "number": ("VSI-Bench", "numerical-answer", "1.5", f"How large is it {unit}?"),
        "length": ("VGBench", "open-ended-length", "1.5 meters", f"How far is the lamp from the table {unit}?"),
        "labels": (f"SalBench-{row.get('labels')}", "multi-label", "color", "Which features?"),
        "text": ("SpatialScore/RealWorldQA", "open-ended", row.get("truth", ""), "What?"),
    }[row["kind"]]
    return Case(benchmark, question_type, truth, options, question)


def read(row: dict[str, Any]) -> object:
    """The value of a reply, or the outcome that it comes to."""
    if row["kind"] == "judge":
        return judge_replies.read(row["reply"], "reasoning_visual_score").score or "none"
    found = score(case_of(row), row["reply"])
    if not found.reading.found:
        return found.outcome
    return "empty" if found.reading.value == "" else found.reading.value


def is_wanted(found: object, want: object) -> bool:
    if isinstance(found, int | float) and isinstance(want, int | float):
        return math.isclose(found, want, rel_tol=2e-3, abs_tol=1e-9)
    return found == want


def test_a_reply_that_is_neither_yes_nor_no_is_wrong_whatever_the_truth() -> None:
    for row in map(json.loads, CORPUS.read_text("utf-8").splitlines()):
        if row["kind"] == "yes_no" and row["want"] in ("refused", "unreadable") and row["reply"] not in MISREAD:
            found = [score(case_of(row | {"truth": truth}), row["reply"]) for truth in ("Yes", "No")]
            assert [(one.outcome, one.score) for one in found] == [(row["want"], 0.0)] * 2, row["reply"]


def test_replies_are_read_as_was_decided_before() -> None:
    rows = [json.loads(line) for line in CORPUS.read_text("utf-8").splitlines()]
    assert len(rows) >= FEWEST
    misread = {row["reply"]: (row["want"], found) for row in rows if not is_wanted(found := read(row), row["want"])}
    assert set(misread) == MISREAD, {reply: misread.get(reply) for reply in set(misread) ^ MISREAD}


def test_replies_that_mislead_a_reader_are_read_as_was_decided_before() -> None:
    rows = [json.loads(line) for line in BY_KIND.read_text("utf-8").splitlines()]
    assert len(rows) >= FEWEST
    misread = []
    for row in rows:
        found, wants = read(row), row["want"] if isinstance(row["want"], list) else [row["want"]]
        unread = found in ("unreadable", "refused") and "none" in wants
        if not unread and not any(is_wanted(found, want) for want in wants):
            misread.append((row["style"], row["reply"], row["want"], found))
    assert len(misread) <= MOST_MISREAD * len(rows), misread
