"""Numbers of framed objects whose options are values of one scene, of which each is asked about."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Annotated, Any, ClassVar

import numpy as np

from vgbench_gen.core.errors import FrameError, GeometryError
from vgbench_gen.core.noise import SensorNoise
from vgbench_gen.core.types import Candidate, Fact, FloatArray, IntArray, Rejected
from vgbench_gen.scenes.view import SceneView
from vgbench_gen.tasks._object_evidence import ObjectEvidence
from vgbench_gen.tasks.base import SECOND_ROUTE_SHARE
from vgbench_gen.tasks.evidence import ArrayShape, Evidence
from vgbench_gen.tasks.kind import Measured
from vgbench_gen.tasks.scalar import ScalarTask

VALUES = 4  # of a set
SETS, TRIES = 16, 60  # of a scene
NEAR = (
    0.05  # by how much, as a share, wrong options differ from the values of the set, so that no two questions share any
)
VIEWS = 5  # of one object, or pair, in a set, of which one is asked


class SetEvidence(Evidence):
    """What is kept of a place besides what was measured there."""

    values: Annotated[FloatArray, ArrayShape(VALUES)]
    """The options as printed, increasing: its own value, and some near those of three other places of the scene, which
    are asked about as well."""


class SetTask(ScalarTask):
    """A scalar of framed objects, before a base that proposes them.

    Rooms hold many small values and few large ones, which would tell a rung of a ladder. Here options are, nearly, four
    values of the scene, and of each set all four are asked about. Where several frames show a place, large values look
    small and small ones large; what rectangles still tell is left out (`docs/validity.md#balanced-selection`).

    `margins` holds `seen`, the least visible share of the objects.
    """

    formats = ("multi-choice", "open-ended")
    candidate_evidence: ClassVar[type[Evidence]]
    candidate_draws = 2  # of one set each: choosing leaves out facts whose marks tell the value

    def count_options(self, wanted: int) -> int:
        """As many as a set has."""
        return VALUES

    def propose(self, view: SceneView, rng: np.random.Generator) -> Iterator[Measured | Rejected]:
        """Places that a gate refuses; then one set after the other."""
        places: dict[str, list[Measured]] = defaultdict(list)
        values: dict[str, float] = {}
        for one in super().propose(view, rng):
            if isinstance(one, Measured):
                seen = min(stored.visible for _, stored in one.evidence if isinstance(stored, ObjectEvidence))
                one = replace(one, ratios={**one.ratios, "seen": seen / self.limits.seen})
                value, kept = self.settle(self.value(one.evidence))
                if min({**one.ratios, **kept}.values()) >= 1:
                    places[one.target].append(one)
                    values[one.target] = float(value[0])
                    continue
            yield one
        for number, chosen in enumerate(self._draw_sets(values, rng)):
            for one in (one for target in chosen for one in places[target][:VIEWS]):
                others = [values[target] for target in chosen if target != one.target]
                options = self._vary([values[one.target], *others], rng)
                if options is not None:
                    kept_of = self.candidate_evidence.model_validate(dict(one.evidence) | {"values": options})
                    yield replace(one, evidence=kept_of, key=f"{one.key}/set:{number}", group=f"{number:03d}")

    def _draw_sets(self, values: Mapping[str, float], rng: np.random.Generator) -> Iterator[list[str]]:
        """Targets whose values keep the margins, those of fewer sets first."""
        uses, made = Counter[str](), set[frozenset[str]]()
        for _ in range(TRIES if len(values) >= VALUES else 0):
            chosen: list[str] = []
            for target in sorted(np.array(list(values))[rng.permutation(len(values))].tolist(), key=uses.__getitem__):
                if len(chosen) < VALUES and all(self._are_apart(values[target], values[other]) for other in chosen):
                    chosen.append(target)
            if len(chosen) == VALUES and frozenset(chosen) not in made and len(made) < SETS:
                made.add(frozenset(chosen))
                uses.update(chosen)
                yield chosen

    def _vary(self, values: Sequence[float], rng: np.random.Generator) -> FloatArray | None:
        """The first value and others near the rest, increasing; None where none were drawn that keep the margins."""
        for _ in range(TRIES):
            moved = values * np.exp(np.append(0.0, rng.uniform(-NEAR, NEAR, len(values) - 1)))
            options = np.array([self.rounded(np.array([value]))[0] for value in np.sort(moved)])
            low, high = self.ends
            if low <= options[0] and options[-1] <= high and all(self._are_apart(*pair) for pair in pairwise(options)):
                return options
        return None

    def _are_apart(self, a: float, b: float) -> bool:
        ratio, gates = max(a, b) / min(a, b), self.limits
        return bool(gates.ratio_min <= ratio <= gates.ratio_max and abs(a - b) >= getattr(gates, "gap_min", 0.0))

    def sigma(self, value: float, fact: Fact, noise: SensorNoise) -> float:
        """That of the truth: boxes are off by as much, however large they are."""
        return super().sigma(0.0, fact, noise)

    def order(self, found: Sequence[Measured], answers: Sequence[Any], rng: np.random.Generator) -> IntArray:
        """Of the larger values of a set those that look small first, of the smaller ones those that look large."""
        chance = rng.permutation(len(found))
        large = np.array([float(a) > one.evidence.values[1:3].mean() for one, a in zip(found, answers, strict=True)])
        looks = np.array([_measure_look(one.marks.values(), one.frames[0].camera.fx) for one in found])
        return chance[np.argsort(np.where(large, looks, -looks)[chance], kind="stable")]

    def choose(
        self, view: SceneView, found: Sequence[Measured], answers: Sequence[Any], order: list[int], limit: int
    ) -> list[int]:
        """Whole sets."""
        ranks = [int(np.argmin(np.abs(one.evidence.values - a))) for one, a in zip(found, answers, strict=True)]

        def agrees(k: int) -> bool:
            try:
                off = np.log(np.ravel(self.second(view, found[k])) / float(answers[k]))
            except (GeometryError, FrameError):
                return False
            return bool(np.abs(off).max() <= SECOND_ROUTE_SHARE * np.log(self.limits.ratio_min))

        return self.choose_evenly(view, found, ranks, VALUES, order, limit, agrees)

    def list_pool(self, truth: Candidate, others: Sequence[Candidate]) -> tuple[Candidate, ...]:
        """The values of the set."""
        values = SetEvidence.model_validate({"values": truth.evidence["values"]}).values
        pool = [Candidate(f"value:{value:g}", np.array([value])) for value in values]
        pool[int(np.argmin(np.abs(values - truth.value[0])))] = truth
        return tuple(pool)

    def ladder(self, fact: Fact, count: int, rng: np.random.Generator) -> tuple[list[Candidate], int] | None:
        """The whole set."""
        return list(fact.candidates), fact.truth

    def read_text_cues(self, fact: Fact, options: Sequence[Candidate]) -> FloatArray:
        """(n, 4) the value, by itself and over how far rectangles reach, and what the text says of them: how far they
        reach, and the lowest edge; as angles."""
        K, rects = fact.cameras[fact.frame_ids[0]]["K"], list(fact.truth_candidate.show.values())
        look, lowest = _measure_look(rects, K[0]), (max(rect[3] for rect in rects) - K[5]) / K[0]
        logs = np.log([float(option.value[0]) for option in options])
        return np.column_stack([logs, logs - look, np.full(len(logs), look), np.full(len(logs), lowest)])


def _measure_look(rects: Any, fx: float) -> float:
    """Logarithm of the diagonal around all rectangles, over the focal length."""
    ends = np.reshape(list(rects), (-1, 2, 2))
    return float(np.log(np.linalg.norm(ends[:, 1].max(axis=0) - ends[:, 0].min(axis=0) + 1) / fx))
