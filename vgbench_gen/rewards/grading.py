"""The reward of one reply: a pure function of the reply and the solution that its row carries."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass

from vgbench_gen.evaluation.answers.clean import clean_reply
from vgbench_gen.evaluation.answers.outcomes import ParsedAnswer
from vgbench_gen.evaluation.metrics import HEADLINE_DELTA, is_within_factor
from vgbench_gen.evaluation.scoring import AnswerKey
from vgbench_gen.rewards.hacks import LONG, MAX_REPLY_CHARS, find_hack
from vgbench_gen.rewards.quick import QuickReading, read_quickly
from vgbench_gen.rewards.solution import Solution, read_solution

_TAGGED_LINE = re.compile(r"<answer>([^<>\n]{1,300})</answer>\s*\Z")


@dataclass(frozen=True, slots=True)
class Reward:
    """What one reply earns."""

    score: float
    """The reward, 0 to 1; 0 for a hack."""
    accuracy: float
    """1 if the scorer calls the reply right, a number within the tolerance, else 0; also for a hack."""
    format: float
    """1 if the last line is the answer in the form asked for, or in `<answer>` tags, and nothing else; else 0."""
    parts: Mapping[str, float]
    """`credit`, the score before hacks; and the name of a hack, with 1."""


def grade_reply(reply: str | None, solution: str) -> Reward:
    """Grade one reply.

    Letters, yes and no, counts and texts earn 1 or 0. A measure or another number earns 1 within `HEADLINE_DELTA`, and
    then less in proportion to |log(value / truth)|, down to 0 at the square of the tolerance.

    Args:
        reply: all that the model wrote; None for nothing.
        solution: what `write_solution` made of the row.

    Raises:
        CaseError: the solution is something else.
    """
    known, reply = read_solution(solution), reply or ""
    quick = read_quickly(known, reply)
    hack = _detect_hack(known, reply, quick)
    accuracy, credit = _judge(known.key, quick.answer if quick else known.key.read(reply))
    match = _TAGGED_LINE.search(reply, max(0, len(reply) - 400))
    form = float(known.key.read_final_line(match[1] if match else reply).found)
    return Reward(0.0 if hack else credit, accuracy, form, {"credit": credit} | ({hack: 1.0} if hack else {}))


def _detect_hack(known: Solution, reply: str, quick: QuickReading | None) -> str:
    """Name of what is wrong with a reply, or ""; the same without `quick`, which saves work."""
    if len(reply) > MAX_REPLY_CHARS:
        return LONG
    if quick is None:
        return find_hack(known, "\n".join(clean_reply(reply).texts))
    return find_hack(known, quick.clean(), quick.containers) if quick.more else ""


def _judge(key: AnswerKey, answer: ParsedAnswer) -> tuple[float, float]:
    """(accuracy, credit)."""
    value, truth = answer.value, key.truth
    if key.rule == "exact" or not isinstance(value, float) or not isinstance(truth, float):
        right = float(key.points(answer) >= 1)
        return right, right
    right = float(is_within_factor(value, truth, HEADLINE_DELTA, inclusive=key.kind in ("count", "number")))
    if right or not 0 < value < math.inf or truth <= 0:
        return right, right
    return right, min(1.0, max(0.0, 2 - abs(math.log(value / truth)) / math.log(HEADLINE_DELTA)))
