"""Numbers of framed objects by their boxes, before a base that proposes them (`OneObject`, `TwoObjects`)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from vgbench_gen.core.noise import SensorNoise
from vgbench_gen.core.types import Candidate, Fact, FloatArray, IntArray, QuestionType, Rejected
from vgbench_gen.scenes.view import SceneView
from vgbench_gen.tasks._object_evidence import ObjectEvidence
from vgbench_gen.tasks.kind import Measured
from vgbench_gen.tasks.scalar import ScalarTask


class BoxScalar(ScalarTask):
    """Options are a ladder, drawn often, of which balanced selection takes one that rectangles and numbers do not tell
    (`docs/validity.md#balanced-selection`). `margins` holds `seen`, the least visible share of the objects."""

    by_default, unit = False, "m"
    formats: ClassVar[tuple[QuestionType, ...]] = ("multi-choice", "open-ended")
    candidate_draws = 24
    options_max = 4  # five steps of a ladder do not fit between the gates `ratio_min` and `ratio_max`

    def propose(self, view: SceneView, rng: np.random.Generator) -> Iterator[Measured | Rejected]:
        """Objects that are seen nearly whole."""
        for one in super().propose(view, rng):
            if isinstance(one, Measured):
                seen = min(stored.visible for _, stored in one.evidence if isinstance(stored, ObjectEvidence))
                one = replace(one, ratios={**one.ratios, "seen": seen / self.limits.seen})
            yield one

    def order(self, found: Sequence[Measured], answers: Sequence[Any], rng: np.random.Generator) -> IntArray:
        """As for all scalars; equal boxes are so in every frame of reference."""
        return super().order(found, [round(float(answer), 6) for answer in answers], rng)

    def sigma(self, value: float, fact: Fact, noise: SensorNoise) -> float:
        """That of the truth: boxes are off by as much, however large they are."""
        return super().sigma(0.0, fact, noise)

    def read_text_cues(self, fact: Fact, options: Sequence[Candidate]) -> FloatArray:
        """(n, 8) the value, by itself and over how far rectangles reach, and what the text says of them: how far they
        reach, their sizes and lower edges, as angles and whatever their order."""
        K, places = fact.cameras[fact.frame_ids[0]]["K"], list(fact.truth_candidate.show.values())
        rects = np.array([places[0], places[-1]], dtype=np.float64).reshape(2, 2, 2)
        sizes = np.sort(np.log(np.sqrt((rects[:, 1] - rects[:, 0] + 1).prod(axis=1)) / K[0]))
        lower = np.sort((rects[:, 1, 1] - K[5]) / K[0])
        ends = rects.mean(axis=1) if len(places) > 1 else rects[0]
        reach = np.log(max(float(np.linalg.norm(ends[1] - ends[0])), 1.0) / K[0])
        logs = np.log([float(option.value[0]) for option in options])
        rest = np.broadcast_to([reach, *sizes, *lower], (len(logs), 5))
        return np.column_stack([logs, logs - reach, logs - reach + sizes.mean(), rest])
