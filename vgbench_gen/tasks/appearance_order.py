"""In which order objects are first shown in a sequence of frames. The answers are the four orders that start one object
later each: every object stands in every place once, and by other frames each of the orders is right."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import numpy as np

from vgbench_gen.core.types import Fact, FloatArray, IntArray, Rejected
from vgbench_gen.scenes.view import SceneView
from vgbench_gen.tasks._sightings import SEEN_MIN, Sightings, get_sightings
from vgbench_gen.tasks.base import reject, tasks
from vgbench_gen.tasks.explaining import Explainer
from vgbench_gen.tasks.kind import Measured
from vgbench_gen.tasks.seen import FramesEvidence, FramesTask

SETS, WALKS = 120, 12  # of names, and of sequences for each
APART = 2  # frames between first sightings


@tasks.register("appearance_order")
class AppearanceOrder(FramesTask):
    """See the module."""

    name = "appearance_order"
    category, subcategory = "Temporal", "Appearance Order"
    asked = "in which order four objects first appear in a sequence of images"
    convention: ClassVar = {"appears": "first image that shows a quarter of its surface"}
    margins: ClassVar = {"gap_min": 1.0}

    def propose(self, view: SceneView, rng: np.random.Generator) -> Iterator[Measured | Rejected]:
        """Sequences in which every object is hidden until it is shown."""
        found, rows = get_sightings(view), self.list_rows(view)
        states = self._find_states(found, rows)
        ever = np.flatnonzero((states > 0).sum(axis=0) * (states == 0).sum(axis=0))
        if len(ever) < self.options:
            yield reject(self, view, view.id, "names_too_few", len(ever), self.options)
            return
        for _ in range(SETS):
            names = rng.choice(ever, self.options, replace=False)
            labels = sorted(found.names[k] for k in names)
            columns = [found.names.index(label) for label in labels]
            ring = rng.permutation(self.options)
            orders = [np.roll(ring, -k) for k in range(self.options)]
            walks = [self._draw_walk(states[:, columns], order, rng) for order in orders]
            if all(len(walk) for walk in walks):
                answers = sorted(", ".join(labels[k] for k in order) for order in orders)
                for walk in walks:
                    chosen = [rows[k] for k in walk]
                    shares = self.merge_names(found, np.where(found.shown, found.shares, 0.0)[chosen], labels)
                    yield self.measure(view, chosen, answers, shares)

    def _find_states(self, found: Sightings, rows: list[int]) -> FloatArray:
        """(rows, names) 1 shown, 0 hidden, nan neither."""
        states = np.array([np.sign(found.measure_shown([row], found.names)) for row in rows])
        return states.reshape(len(rows), len(found.names))

    def _draw_walk(self, states: FloatArray, order: IntArray, rng: np.random.Generator) -> list[int]:
        """Frames, by their place, that show the columns of `states` first in this order, `APART` or more apart; none
        where no such sequence was found."""
        hidden = [(states[:, order[place + 1 :]] == 0).all(axis=1) for place in range(len(order))]
        for _ in range(WALKS):
            walk: list[int] = []
            for place, column in enumerate(order):
                free = np.flatnonzero(hidden[place] > np.bincount(walk, minlength=len(states)))
                first = free[states[free, column] > 0]
                if not len(first):
                    break
                walk.append(int(rng.choice(first)))
                free = free[free != walk[-1]]
                more = int(rng.integers(APART - 1, APART + 1))
                if len(free) < more:
                    break
                walk += rng.choice(free, more, replace=False).tolist()
            else:
                return walk
        return []

    def value(self, seen: FramesEvidence) -> FloatArray:
        """1 for the order of the first sightings, 0 for every other one."""
        labels = sorted(seen.labels[0].split(", "))
        shown = seen.shares >= SEEN_MIN
        first = np.where(shown.any(axis=-2), shown.argmax(axis=-2), shown.shape[-2])
        place = (first[..., None] > first[..., None, :]).sum(axis=-1)  # of each column
        wanted = np.array([[one.split(", ").index(label) for label in labels] for one in seen.labels])
        return np.asarray((place[..., None, :] == wanted).all(axis=-1), dtype=np.float64)

    def explain(self, fact: Fact, pen: Explainer) -> dict[str, str]:
        """In which image each object is seen first."""
        names = sorted(FramesEvidence.of(fact.truth_candidate).labels[0].split(", "))
        first = {name: images[0] for name, images in self.find_images(fact, names).items()}
        said = [pen.word("list.in", name=name, image=pen.word("option.image", n=str(n))) for name, n in first.items()]
        ordered = [pen.word("list.the", name=name) for name in sorted(names, key=lambda name: first[name])]
        return {"first": pen.join(said), "ordered": pen.join(ordered)}

    def second(self, view: SceneView, measured: Measured) -> FloatArray:
        """By the depth pixels that lie on each."""
        found, labels = get_sightings(view), sorted(measured.evidence.labels[0].split(", "))
        areas = self.merge_names(found, self.find_areas(view, measured.frames, range(len(found.labels))), labels)
        return self.value(measured.evidence.with_fields(shares=areas))
