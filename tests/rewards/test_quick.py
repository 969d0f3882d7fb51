"""What is read quickly is what the full reader reads, and what counts as a hack is the same either way."""

# ruff: noqa: RUF001 (characters of replies that look like others)

from __future__ import annotations

import random

import pytest

from tests.rewards.cases import AREA, CHOICE, CLAIM, COUNT, DEPTH, read_corpora, write
from vgbench_gen.evaluation.scoring import Case
from vgbench_gen.rewards.grading import _detect_hack
from vgbench_gen.rewards.quick import read_quickly
from vgbench_gen.rewards.solution import read_solution

ANSWERS = (
    (CHOICE, ("B", "C", "(B)", "b", "D.")),
    (CLAIM, ("Yes", "No", "no", "YES.")),
    (DEPTH, ("2.35 meters", "2 m", "230 cm", "3.5", "7.5 feet.")),
    (COUNT, ("2", "3 chairs", "4.")),
    (AREA, ("12 m2", "13.5", "14 square")),
)
ENDS = (
    "{said}\nAnswer: {answer}",
    "{said}.\n\n**Answer: {answer}**",
    "{said}\n\n**Answer:** {answer}",
    "<think>{said}</think>\n<answer>{answer}</answer>",
    "{said}.\n<answer>{answer}</answer>",
    "{said}</think>\nFinal Answer: {answer}",
    "<think>x</think>{said}.\nAnswer: {answer}",
    "{said} {answer}.\nAnswer: {answer}",
)
PIECES = (
    *("**", "`", "*", "_", "$", "~~", "\n", " ", "\\text{", "}", "\\left", '"', ":", "<", "answer", "Answer: ", "no"),
    *("wait, ", "is", "I don't think the answer ", "'", "{", "\n- ", "# ", "A", "B", "&lt;", "\\", "[", "]", "“", "”"),
    *("’", "–", "°", "…", "•", "：", "\u200b", "Question", "user: ", "boxed{", "calar", "\r", "\x0b", "\x85", "²", "−"),
    *("?", "◁think▷"),
)  # fmt: skip


def compare(case: Case, reply: str) -> bool:
    """Whether a reply was read quickly; fails where the full reader differs."""
    known = read_solution(write(case))
    quick = read_quickly(known, reply)
    if quick is not None:
        assert known.key is not None
        assert quick.answer == known.key.read(reply), reply
        assert _detect_hack(known, reply, quick) == _detect_hack(known, reply, None), reply
    return quick is not None


def test_replies_of_the_corpora_are_read_alike() -> None:
    for case, reply in read_corpora():
        compare(case, reply)


def test_whatever_stands_before_the_last_line_is_read_alike() -> None:
    rng = random.Random(0)
    read = []
    for _, reply in read_corpora():
        asked, answers = rng.choice(ANSWERS)
        for end in rng.sample(ENDS, 2):
            read.append(compare(asked, end.format(said=reply, answer=rng.choice(answers))))
    assert sum(read) > 0.5 * len(read)


def test_replies_that_are_mutilated_are_read_alike() -> None:
    rng = random.Random(1)
    replies = [reply for _, reply in read_corpora() if len(reply) < 1500]
    read = []
    for _ in range(25_000):
        case, answers = rng.choice(ANSWERS)
        reply = rng.choice(ENDS).format(said=rng.choice(replies), answer=rng.choice(answers))
        for _ in range(rng.randint(1, 3)):
            place = rng.randrange(len(reply) + 1)
            reply = reply[:place] + rng.choice(PIECES) + reply[place:]
        read.append(compare(case, reply))
    assert sum(read) > 2000


BARRED = (  # each for one reason, and each read otherwise by its last line alone
    (CHOICE, "API Error: the request failed</think>\nAnswer: B"),
    (CHOICE, "<think>never closed\nAnswer: B"),
    (CHOICE, "[THINK] Never closed.\nAnswer: B"),
    (CHOICE, "C. USER: And now?\nAnswer: B"),
    (CHOICE, 'C\n{"question": "And now?"}\n<answer>B</answer>'),
    (CHOICE, "C\n### Question 2\nAnswer: B"),
    (CHOICE, "C [INST] again [/INST]\nAnswer: B"),
    (CHOICE, "The answer is C\nWhich object is the nearest one?\n(A) lamp 1\nAnswer: B"),
    (CHOICE, "C. I don't think the answer is\nAnswer: B"),
    (CHOICE, "C. I don't think the answer **is**\nAnswer: B"),
    (CHOICE, "I don't think the answer is\n<answer>B</answer>"),
    (CHOICE, r"It is \boxed{C}." + "\nAnswer: B"),
    (CHOICE, '{"answer": "C"}\nAnswer: B'),
    (CHOICE, '"answer"**: "C".\nAnswer: B'),
    (CHOICE, '"answer"~~, I think~~: "C".\nAnswer: B'),
    (CHOICE, 'Choice: "C".\nAnswer: B'),
    (CHOICE, "<choice>C</choice>.\nAnswer: B"),
    (CHOICE, "&lt;answer&gt;C&lt;/answer&gt;.\nAnswer: B"),
    (CLAIM, "No, I can't help with that.\n<answer>Yes</answer>"),
    (CLAIM, '"verdict": "no".\nAnswer: Yes'),
    (DEPTH, "\\scalar{5} \\distance_unit{m}\n<answer>2 m</answer>"),
    (DEPTH, "sc**alar 5 m**.\n<answer>2 m</answer>"),
)


@pytest.mark.parametrize(("case", "reply"), BARRED, ids=lambda one: repr(one)[-40:])
def test_what_takes_precedence_over_the_last_line_is_left_to_the_full_reader(case: Case, reply: str) -> None:
    assert not compare(case, reply)
    known = read_solution(write(case))
    assert known.key is not None
    assert known.key.read(reply) != known.read_segment(reply.rpartition("\n")[2]), "the last line says as much"


def test_plain_replies_are_read_quickly() -> None:
    said = (
        "The chair’s height is 0.9 m – seen under 20°. **Depth:** 0.9 × 580 / 220 ≈ 2.4 m.\n1. Question 2?\n- “Near”."
    )
    for end in ENDS:
        assert compare(CHOICE, end.format(said=said, answer="B")), end
    assert compare(CHOICE, "Answer: B")
    assert not compare(CHOICE, said)
