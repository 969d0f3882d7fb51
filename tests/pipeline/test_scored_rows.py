"""Every built row scores as intended, from its columns to both scores."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from vgbench_gen.core.types import LETTERS, Item
from vgbench_gen.evaluation.answers.option_texts import split_options
from vgbench_gen.evaluation.scoring import Scored, make_case, score
from vgbench_gen.store.dataset import load
from vgbench_gen.tasks.base import tasks
from vgbench_gen.text.render import list_question_types, load_phrasings

# Spellings of a unit and how many of the truth's unit each is.
SPELLINGS = {
    "m": {"m": 1.0, "meters": 1.0, "metres": 1.0, "cm": 0.01, "centimetres": 0.01, "mm": 0.001, "ft": 0.3048},
    "px": {"px": 1.0, "pixels": 1.0},
    "deg": {"degrees": 1.0, "°": 1.0, "deg": 1.0, "rad": 180 / math.pi},
}
RELEASED = {
    "m",
    "meters",
    "metres",
    "cm",
    "ft",
    "mm",
}  # the released script converts these and knows no angles or pixels


@pytest.fixture(scope="module")
def built_rows(reference: tuple[Path, dict[str, str]]) -> list[Item]:
    return list(load(reference[0]))


def outcome(item: Item, reply: str) -> tuple[str, float]:
    found = score(make_case(item), reply)
    return found.outcome, found.score


def phrased(item: Item) -> Iterator[Item]:
    """The row in every reviewed wording of its task and type; slots stay unfilled."""
    yield item
    for phrasing in load_phrasings(item.task, item.question_type):
        named = {"{{ unit }}": item.answer.split()[-1], "{{ quantity }}": "value"}
        question, context = phrasing.question, phrasing.context
        for slot, text in named.items():
            question, context = question.replace(slot, text), context.replace(slot, text)
        yield replace(item, question=question, context=context)


def said_right(found: Scored) -> bool:
    return (found.outcome, found.score, found.official.score) == ("right", 1.0, 1.0)


def test_every_task_and_type_is_here(built_rows: list[Item]) -> None:
    assert {(item.task, item.question_type) for item in built_rows} == {
        (task.name, form) for task in tasks.values() if task.by_default for form in list_question_types(task.name)
    }


def test_the_truth_is_always_right(built_rows: list[Item]) -> None:
    for item in built_rows:
        for asked in phrased(item):
            found = score(make_case(asked), item.answer)
            assert said_right(found), (item.id, found)
            assert (found.followed, found.strict) == (True, 1.0)


def test_letters(built_rows: list[Item]) -> None:
    rows = [item for item in built_rows if item.question_type == "multi-choice"]
    for item in rows:
        for asked in phrased(item):
            for letter, text in zip(LETTERS, item.options, strict=True):
                expected = ("right", 1.0) if letter == item.answer else ("wrong", 0.0)
                replies = (
                    letter,
                    f"({letter})",
                    f"The answer is {letter}.",
                    f"<think>or B?</think>\n**{letter}. {text}**",
                )
                for reply in (*replies, text, f"It is {text}"):
                    assert outcome(asked, reply) == expected, (item.id, reply)
                assert score(make_case(asked), letter).official.score == expected[1]
        listed = "\n".join(f"{letter}. {text}" for letter, text in zip(LETTERS, item.options, strict=True))
        assert outcome(item, listed) == ("unreadable", 0.0)
        assert outcome(item, f"{listed}\n{item.answer}") == ("right", 1.0)
        for form in (
            listed,
            f"Options: {listed}",
            listed.replace(". ", ": "),
            f"{listed}\nPlease answer with a letter.",
        ):
            if form == listed.replace(". ", ": ") and ". " in "".join(item.options):
                continue
            assert split_options(f"{item.question}\n{item.context}\n{form}") == dict(
                zip(LETTERS, item.options, strict=True)
            )


def test_judgments(built_rows: list[Item]) -> None:
    for item in (row for row in built_rows if row.question_type == "judgment"):
        for asked in phrased(item):
            for said in ("Yes", "No"):
                expected = ("right", 1.0) if said == item.answer else ("wrong", 0.0)
                other = "right" if said == "No" else "wrong"
                for reply in (
                    said,
                    said.lower(),
                    f"**{said}**",
                    f"{said}, the {other} one is far away.",
                    f"Answer: {said}",
                ):
                    assert outcome(asked, reply) == expected, (item.id, reply)
                assert score(make_case(asked), said).official.score == expected[1]


@pytest.mark.parametrize("factor", [2.0, 1.25])
def test_numbers_just_inside_and_outside_each_tolerance(built_rows: list[Item], factor: float) -> None:
    rows = [row for row in built_rows if row.question_type == "open-ended"]
    assert {row.unit for row in rows} == set(SPELLINGS)
    ratios = [
        (1.0, factor * 0.9999),
        (1.0, 1 / (factor * 0.9999)),
        (0.0, factor * 1.0001),
        (0.0, 1 / (factor * 1.0001)),
    ]
    for item in rows:
        truth = item.answer_value[0]
        for asked in phrased(item):
            for unit, scale in SPELLINGS[item.unit].items():
                for inside, ratio in ratios:
                    reply = f"{truth * ratio / scale:.9f} {unit}"
                    found = score(make_case(asked), reply)
                    assert found.measures[f"delta_{factor:g}"] == inside, (item.id, reply)
                    if factor == 2.0:
                        assert (found.score, found.outcome) == (inside, "right" if inside else "wrong")
                        assert found.official.score == inside or unit not in RELEASED


def test_numbers_without_a_unit_are_in_the_unit_asked_for(built_rows: list[Item]) -> None:
    for item in (row for row in built_rows if row.question_type == "open-ended"):
        truth = item.answer_value[0]
        for asked in phrased(item):
            assert outcome(asked, f"{truth:.2f}") == ("right", 1.0), asked.question
            assert outcome(asked, f"The answer is {truth * 2.01:.4f}") == ("wrong", 0.0)
            assert outcome(asked, f"\\scalar{{{truth:.2f}}} \\distance_unit{{m}}") == ("right", 1.0)
        unasked = replace(item, question="How far is it?", context="")
        assert outcome(unasked, f"{truth:.2f}") == ("unreadable", 0.0)


def test_the_tolerance_itself_is_outside(built_rows: list[Item]) -> None:
    item = next(row for row in built_rows if (row.question_type, row.unit) == ("open-ended", "m"))
    for truth in ("0.15 meters", "0.29 meters", "1.10 meters", "3.30 meters"):
        row = replace(item, answer=truth)
        double = 2 * float(truth.split()[0])
        for reply in (f"{double:.2f} m", f"{double * 100:.0f} cm", f"{double * 1000:.0f} mm"):
            assert outcome(row, reply) == ("wrong", 0.0), reply


def test_replies_that_say_nothing_score_nothing(built_rows: list[Item]) -> None:
    expected = {
        None: "unreadable", "": "unreadable", "<think>A, yes, 1 m": "unreadable", "I cannot determine this.": "refused",
        "Failed to obtain answer via API.": "failed",
    }  # fmt: skip
    for item in built_rows:
        for reply, kind in expected.items():
            found = score(make_case(item), reply)
            assert (found.outcome, found.score, found.followed) == (kind, 0.0, False), (item.id, reply)
