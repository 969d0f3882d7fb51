"""Kinds whose options are drawings: plans of the same few things in the same colors, of which one is right.

Values are outlines (things, 8, 2) in pixels of a drawing, as `geometry.plans` has them. The wrong drawings are the
right one with one change, with another one, and with both, so that each change stands in two of four options and no
drawing is the middle one (`docs/validity.md#drawings`).
"""

from __future__ import annotations

import abc
from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import ClassVar

import cv2
import numpy as np

from vgbench_gen.core.errors import GeometryError
from vgbench_gen.core.noise import SensorNoise
from vgbench_gen.core.types import Candidate, ColorArray, Fact, FloatArray, IntArray, QuestionType
from vgbench_gen.distractors.base import OptionSet, leave_out
from vgbench_gen.geometry import plans
from vgbench_gen.scenes.view import SceneView
from vgbench_gen.store.drawing import COLORS
from vgbench_gen.store.pictures import Picture
from vgbench_gen.tasks.kind import MARK_COLORS, Measured, QuestionKind
from vgbench_gen.tasks.presentation import Mark, Presentation, make_number_slots
from vgbench_gen.tasks.row_evidence import RowEvidence
from vgbench_gen.text.numbers import format_point
from vgbench_gen.text.render import fill_word

THINGS_MAX = len(COLORS)
SIDE_PX = 400
BORDER_PX = 16  # of a drawing, that stays free
CROWDED_MAX = 0.05  # of an outline may lie below another one
NARROWEST_PX = 10.0  # outline that can be told from its neighbours
MIRROR = np.diag([-1.0, 1.0])


class DrawingTask(QuestionKind):
    """See the module. A kind gives `find_class` and `list_changes`, and in `margins` by how much drawings must differ
    (`gap_min`, of 1, and `shift_min`, of their radius) and how much of each outline both routes must share
    (`shared_min`)."""

    formats: ClassVar[tuple[QuestionType, ...]] = ("multi-choice",)
    input_modality = "multi-images"
    unit = "px"
    options_max = 4
    classes: ClassVar[int]
    """How many classes of places are asked about equally often."""

    @abc.abstractmethod
    def list_changes(self, fact: Fact, rng: np.random.Generator) -> Iterator[tuple[FloatArray, ...]]:
        """Sets of three wrong plans (things, 8, 2), pixels from the middle of a drawing, best first."""

    @abc.abstractmethod
    def find_class(self, one: Measured, answer: FloatArray) -> int:
        """Of which of the `classes` a place is."""

    def settle(self, answer: FloatArray) -> tuple[FloatArray, dict[str, float]]:
        """Whole pixels; by how much the drawing differs from its mirror image, is not crowded, and is wide enough."""
        kept = {
            "decided": self.compare(answer, answer @ MIRROR),
            "apart": min(CROWDED_MAX / max(plans.measure_crowding(answer), 1e-9), 1e3),
            "wide": min(map(plans.measure_width, answer)) / NARROWEST_PX,
        }
        return self.rounded(answer), kept

    def compare(self, a: FloatArray, b: FloatArray) -> float:
        """By how much two plans differ, over how much they must: their outlines, and where the things stand."""
        gap = 1 - plans.compare_plans(a, b)
        return min(gap / float(self.limits.gap_min), plans.measure_shift(a, b) / float(self.limits.shift_min))

    def list_pool(self, truth: Candidate, others: Sequence[Candidate]) -> tuple[Candidate, ...]:
        """The right drawing alone; the others are made from it."""
        return (truth,)

    def ladder(self, fact: Fact, count: int, rng: np.random.Generator) -> tuple[list[Candidate], int] | None:
        """The right drawing and three that differ from it and from each other, in which nothing lies on another."""
        middle = SIDE_PX / 2
        for wrong in self.list_changes(fact, rng):
            keys = ("wrong:first", "wrong:second", "wrong:both")
            made = [Candidate(key, self.rounded(plan + middle)) for key, plan in zip(keys, wrong, strict=True)]
            members = [fact.truth_candidate, *made]
            crowded = any(plans.measure_crowding(one.value) > CROWDED_MAX + 0.01 for one in made)  # by whole pixels
            if not crowded and self.pair_margins(members, fact)[0][np.triu_indices(4, 1)].min() >= 1:
                return leave_out(members, 0, count, rng)
        return [fact.truth_candidate], 0

    def compare_routes(self, a: FloatArray, b: FloatArray) -> float:
        """The share of an outline that two plans do not share where they differ most, over what is allowed."""
        if a.shape != b.shape:
            return float("inf")
        shared = min(plans.measure_overlap(one, other)[0] for one, other in zip(a, b, strict=True))
        return (1 - shared) / (1 - float(self.limits.shared_min))

    def choose(
        self, view: SceneView, found: Sequence[Measured], answers: Sequence[FloatArray], order: list[int], limit: int
    ) -> list[int]:
        """Places of every class equally often."""

        def agrees(k: int) -> bool:
            try:
                return self.compare_routes(self.settle(answers[k])[0], self.second(view, found[k])) <= 1
            except GeometryError:
                return False

        classes = [self.find_class(one, answer) for one, answer in zip(found, answers, strict=True)]
        return self.choose_evenly(view, found, classes, self.classes, order, limit, agrees)

    def find_answer_mark(self, truth: Candidate) -> str:
        """The frame of the right drawing, which `overlay` adds."""
        return "drawing"

    def overlay(self, fact: Fact, row: RowEvidence) -> list[list[Mark]]:
        """As for all kinds, and a frame around the right drawing."""
        drawn = super().overlay(fact, row)
        drawn[len(self.pictures(fact)) + fact.truth].append(Mark("rect", ((2.0, 2.0), (SIDE_PX - 3.0, SIDE_PX - 3.0))))
        return drawn

    def order(self, found: Sequence[Measured], answers: Sequence[FloatArray], rng: np.random.Generator) -> IntArray:
        """As for all kinds, but more things before fewer."""
        order = super().order(found, answers, rng)
        return order[np.argsort([-len(answers[k]) for k in order], kind="stable")]

    def agreement(self, second: FloatArray, fact: Fact) -> float:
        """See `compare_routes`."""
        return self.compare_routes(fact.truth_candidate.value, second)

    def recompute(self, fact: Fact) -> FloatArray:
        """The drawing of the stored evidence."""
        return self.settle(self.value(self.candidate_evidence.of(fact.truth_candidate)))[0]

    def metric(self, a: FloatArray, b: FloatArray, fact: Fact) -> float:
        """1 less how alike the plans are, as `plans.compare_plans` says."""
        return 1 - plans.compare_plans(a, b) if a.shape == b.shape else 1.0

    def pair_margins(self, candidates: Sequence[Candidate], fact: Fact) -> tuple[FloatArray, FloatArray]:
        """How much the drawings differ over how much they must."""
        gaps = np.zeros((len(candidates), len(candidates)))
        for i, j in combinations(range(len(candidates)), 2):
            gaps[i, j] = gaps[j, i] = self.compare(candidates[i].value, candidates[j].value)
        return gaps, np.zeros_like(gaps)

    def rounded(self, value: FloatArray) -> FloatArray:
        """Whole pixels."""
        return np.rint(value) + 0.0  # no -0

    def printed(self, value: FloatArray) -> str:
        """The centres of the outlines."""
        return fill_word("list.separator").join(format_point(np.rint(one.mean(axis=0)).astype(int)) for one in value)

    def printed_numbers(self, value: FloatArray) -> FloatArray:
        """None, as options are images."""
        return np.zeros(0)

    def list_numbers(self, options: Sequence[Candidate]) -> FloatArray:
        """None, as options are images."""
        return np.zeros((len(options), 0))

    def valid(self, candidate: Candidate, fact: Fact) -> bool:
        """Outlines of at most as many things as there are colors, inside the drawing."""
        value = candidate.value
        fits = value.ndim == 3 and 2 <= len(value) <= THINGS_MAX and value.shape[1:] == (8, 2)
        return fits and bool(((value >= 0) & (value < SIDE_PX)).all())

    def could_be_true(self, fact: Fact, options: Sequence[Candidate], truth: int) -> list[int]:
        """The first image fixes which drawing is right."""
        return [truth]

    def noisy_values(
        self, fact: Fact, about: Candidate, noise: SensorNoise, rng: np.random.Generator, n: int
    ) -> FloatArray:
        """(n, things, 8, 2) plans, pixels."""
        return np.asarray(self.value(self.disturb(self.candidate_evidence.of(about), noise, rng, n)))

    def gaps(self, values: FloatArray, options: Sequence[Candidate], about: Candidate, fact: Fact) -> FloatArray:
        """Mean distance of the centres of the outlines, pixels."""
        told = np.stack([option.value.mean(axis=1) for option in options])
        return np.asarray(np.linalg.norm(values.mean(axis=2) - told[:, None], axis=-1).mean(axis=-1))

    def choice(self, fact: Fact, options: OptionSet, rng: np.random.Generator) -> Presentation:
        """What is asked about, then the drawings."""
        drawn = tuple(make_drawing(fact.pictures[fact.frame_ids[0]], option.value) for option in options.options)
        texts = tuple(fill_word("option.image", n=str(place + 2)) for place in range(len(drawn)))
        *before, last = (fill_word(f"color.{color}") for color in MARK_COLORS[: len(fact.truth_candidate.value)])
        slots = {"colors": fill_word("list.and", before=fill_word("list.separator").join(before), last=last)}
        return Presentation(
            (*self.pictures(fact), *drawn), self.slots(fact) | make_number_slots(len(texts)) | slots, texts
        )


def make_drawing(base: str, plan: FloatArray) -> Picture:
    """The drawing of a plan (things, 8, 2) in whole pixels. base: name of the image whose licence it has."""
    colors = list(MARK_COLORS[: len(plan)])
    return Picture(
        base, ({"op": "plan", "size": [SIDE_PX, SIDE_PX], "polygons": plan.astype(int).tolist(), "colors": colors},)
    )


def read_drawing(image: ColorArray, count: int) -> FloatArray:
    """(count, 8, 2) outlines of the colors in the pixels (H, W, 3) of a drawing.

    Raises:
        GeometryError: a color is not there.
    """
    found = []
    for color in MARK_COLORS[:count]:
        filled = cv2.inRange(image, np.array(COLORS[color]), np.array(COLORS[color]))
        points = cv2.findNonZero(cv2.dilate(filled, np.ones((5, 5), dtype=np.uint8)))  # with the dark outline
        if points is None:
            raise GeometryError(f"the drawing has nothing in {color}")
        found.append(plans.find_outline(cv2.convexHull(points)[:, 0].astype(np.float64)))
    return np.stack(found)


def find_scale(plan: FloatArray) -> float:
    """Pixels to one unit of a plan (things, 8, 2) around its centres' mean, by which it fits into a drawing also when
    it is turned and when things stand in each other's places."""
    centers = plan.mean(axis=1)
    own = np.abs(plan - centers[:, None]).max()
    return float((SIDE_PX / 2 - BORDER_PX) / (np.abs(centers - centers.mean(axis=0)).max() + own))


def turn_clockwise(quarters: int) -> FloatArray:
    """(2, 2) by which rows of points are multiplied to turn them on the screen, where y goes down."""
    return np.linalg.matrix_power(np.array([[0.0, 1.0], [-1.0, 0.0]]), quarters % 4)
