"""Rewards of replies as models in training write them: some 1,000 characters of reasoning, then one line."""

# ruff: noqa: RUF001 (characters that models write)

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle, islice

import numpy as np

from bench.session import Session
from bench.table import Row, seconds
from vgbench_gen.core.rng import rng_for
from vgbench_gen.core.types import Item
from vgbench_gen.rewards.grading import grade_reply
from vgbench_gen.rewards.quick import read_quickly
from vgbench_gen.rewards.solution import read_solution, write_solution
from vgbench_gen.store.dataset import load

QUESTIONS, GROUP, CHARS = 250, 8, 1_000
_SENTENCES = (
    "First, I look at the marked region in the first image, which lies on the front of the cabinet.",
    "The camera has turned to the right by about 20° between the two views, so things move to the left.",
    "The question asks for the distance between the two objects, measured from center to center.",
    "In the second image the chair is nearer to the left border, and the lamp that stood behind it is gone.",
    "A standard door is about 2.0 m high; here it spans 410 pixels, while the focal length is 580 pixels.",
    "So its depth is 2.0 × 580 / 410 ≈ 2.83 m, and the table stands a little in front of it.",
    "**Depth:** the floor tiles are roughly 0.3 m wide, and I count seven of them up to the wall.",
    "Option A would put the box behind the wall, which is impossible because the wall is visible there.",
    "The blue point is on the edge of the table – it's clearly closer than the red one on the sofa.",
    "However, the size of the object labeled “cabinet” suggests that it is at least 1.2 meters deep.",
    "Comparing the options, the second one is too near and the last one too far.",
    "The rotation matrix is close to the identity, so the camera has mostly moved and not turned.",
    "Both images show the same corner of the room, with the window on the left and the shelf on the right.",
    "Wait, the shelf is on the left in the second image, so the camera must have moved around it.",
    "Let me check this again: the point (412, 233) lies on the rim of the cup, 12 pixels above the table.",
    "Therefore the statement seems to agree with what the images show, within the stated tolerance.",
    "The height of the camera is about 1.5 m, since the horizon cuts the door just below its handle.",
    "Nothing else in the image has this color, so there is no doubt about which object is meant.",
)
_STEPS = ("{n}. {sentence}", "- {sentence}", "Step {n}: {sentence}", "{sentence}", "{sentence}")
_ENDS = (
    "{thoughts}\n\nAnswer: {answer}",
    "<think>\n{thoughts}\n</think>\n\n<answer>{answer}</answer>",
    "{thoughts}\n\n**Answer: {answer}**",
    "<think>{thoughts}</think>\nAnswer: {answer}",
    "{thoughts}\nSo the answer is {answer}.\n\nAnswer: {answer}",
    "{thoughts}\n<answer>{answer}</answer>",
)


def rows(session: Session) -> list[Row]:
    """One row: replies of groups to the questions of a build, each group one after the other."""
    rng = rng_for(0, "bench", "rewards")
    items = list(islice(cycle(load(session.built(2).out)), QUESTIONS))
    asked = [(_write(item, rng), write_solution(item)) for item in items for _ in range(GROUP)]
    read = sum(read_quickly(read_solution(solution), reply) is None for reply, solution in asked)

    def ours() -> None:
        for reply, solution in asked:
            grade_reply(reply, solution)

    per_s = len(asked) / min(seconds(ours) for _ in range(3))
    length = round(np.mean([len(reply) for reply, _ in asked]))
    beside = f"{len(asked):,} replies of {length:,} characters, {read / len(asked):.1%} of them read in full"
    return [Row("rewards on one core", per_s, "/s", beside, at_least=15_000)]


def _write(item: Item, rng: np.random.Generator) -> str:
    """A reply with the right answer or another one."""
    thoughts: list[str] = []
    step = _STEPS[rng.integers(len(_STEPS))]
    while sum(map(len, thoughts)) < CHARS:
        thoughts.append(step.format(n=len(thoughts) + 1, sentence=_draw(_SENTENCES, rng)))
    said = ("A", "B", "C", "D") if item.question_type == "multi-choice" else ("Yes", "No")
    answer = _draw((item.answer, *said), rng) if item.question_type != "open-ended" else item.answer
    joint = " " if step == "{sentence}" else "\n"
    return _draw(_ENDS, rng).format(thoughts=joint.join(thoughts), answer=answer)


def _draw(some: Sequence[str], rng: np.random.Generator) -> str:
    return some[int(rng.integers(len(some)))]
