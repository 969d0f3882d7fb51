"""Which object some frames show: one of the answers is seen in at least one of them, the others stand elsewhere in the
scene. Each of a set of answers is right for some frames and wrong for others, so no label is the likelier one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import numpy as np

from vgbench_gen.core.types import Fact, FloatArray, QuestionType, Rejected
from vgbench_gen.scenes.view import SceneView
from vgbench_gen.tasks._sightings import get_sightings
from vgbench_gen.tasks.base import reject, tasks
from vgbench_gen.tasks.explaining import Explainer
from vgbench_gen.tasks.kind import Measured
from vgbench_gen.tasks.seen import FramesEvidence, FramesTask

DRAWS, SETS = 200, 4000  # of frames, and of answers


@tasks.register("object_existence")
class ObjectExistence(FramesTask):
    """See the module."""

    name = "object_existence"
    category, subcategory = "Object Localization", "Existence"
    asked = "which object at least one of the images shows"
    convention: ClassVar = {"shown": "a quarter of its surface, in one image at least"}
    formats: ClassVar[tuple[QuestionType, ...]] = ("judgment", "multi-choice")

    def propose(self, view: SceneView, rng: np.random.Generator) -> Iterator[Measured | Rejected]:
        """Sets of names each of which some frames show alone."""
        found, drawn = get_sightings(view), self.draw_frames(view, rng, DRAWS)
        shown = np.array([found.measure_shown(rows, found.names) for rows in drawn]).reshape(
            len(drawn), len(found.names)
        )
        ever = np.flatnonzero((shown > 0).any(axis=0) & (shown == 0).any(axis=0))
        if len(ever) < self.options:
            yield reject(self, view, view.id, "names_too_few", len(ever), self.options)
            return
        sets = np.sort(rng.permuted(np.tile(ever, (SETS, 1)), axis=1)[:, : self.options], axis=1)
        of_sets = shown[:, sets]  # (draws, sets, answers)
        one = ((of_sets > 0).sum(axis=2) == 1) & ~np.isnan(of_sets).any(axis=2)
        alone = one[:, :, None] & (of_sets > 0)
        for k in np.flatnonzero(alone.any(axis=0).all(axis=1)):
            labels = [found.names[name] for name in sets[k]]
            for which in range(self.options):
                rows = drawn[int(rng.choice(np.flatnonzero(alone[:, k, which])))]
                yield self.measure(view, rows, labels, self.merge_names(found, found.shares[rows], labels))

    def value(self, seen: FramesEvidence) -> FloatArray:
        """The best share of each in any frame."""
        return np.asarray(seen.shares.max(axis=-2, initial=0.0))

    def second(self, view: SceneView, measured: Measured) -> FloatArray:
        """By the depth pixels that lie on each."""
        found, labels = get_sightings(view), measured.evidence.labels
        areas = self.find_areas(view, measured.frames, range(len(found.labels)))
        return np.asarray(self.merge_names(found, areas, labels).max(axis=0))

    def explain(self, fact: Fact, pen: Explainer) -> dict[str, str]:
        """The images that show the object."""
        seen, told = FramesEvidence.of(fact.truth_candidate), super().explain(fact, pen)
        name = told.get("claimed", seen.labels[int(self.recompute(fact)[0])])
        images = self.find_images(fact, seen.labels)[name]
        told |= {"label": name, "count": str(len(seen.shares)), "case": "any" if images else "hidden"}
        return told | {"images": pen.join([pen.word("option.image", n=str(n)) for n in images or [1]])}
