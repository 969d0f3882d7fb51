"""Which of four objects is nearest to another one, by the smallest distance between their boxes. Each of a set of four
is nearest to some object of the scene and not to others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Any, ClassVar

import numpy as np
from scipy.spatial import cKDTree

from vgbench_gen.core.errors import GeometryError
from vgbench_gen.core.noise import SensorNoise
from vgbench_gen.core.types import Fact, FloatArray, Rejected
from vgbench_gen.geometry import boxes
from vgbench_gen.scenes.view import SceneView
from vgbench_gen.tasks._sightings import get_sightings
from vgbench_gen.tasks.base import reject, tasks
from vgbench_gen.tasks.evidence import ArrayShape
from vgbench_gen.tasks.explaining import Explainer
from vgbench_gen.tasks.kind import Measured, check_kind
from vgbench_gen.tasks.label import NamedEvidence, NamedTask
from vgbench_gen.tasks.seen import LabelledScene

DRAWS, SETS = 60, 20  # of frames, and of answers


class NearestEvidence(NamedEvidence):
    """What is kept of an object and of those of which one is nearest to it."""

    gaps_m: Annotated[FloatArray, ArrayShape(-1)]
    """(L,) from the object to each, meters."""
    instance_ids: list[str]
    """The object in its scan, and the L others."""


@tasks.register("nearest_object")
class NearestObject(LabelledScene, NamedTask):
    """See the module."""

    name = "nearest_object"
    category, subcategory = "Distance", "Relative"
    asked = "which of four objects is nearest to another one"
    convention: ClassVar = {"distance": "smallest between two 3D bounding boxes"}
    candidate_evidence: ClassVar[type[NearestEvidence]] = NearestEvidence
    checks = (check_kind,)
    margins: ClassVar = {"gap_min": 0.15, "nearer": 1.2}
    per_frame = 4  # one for each answer

    def propose(self, view: SceneView, rng: np.random.Generator) -> Iterator[Measured | Rejected]:
        """Sets of four of which each is nearest to something."""
        found = get_sightings(view)
        gaps_m, complete = self._measure_gaps_m(view), False
        for rows in self.draw_frames(view, rng, DRAWS, linked=True):
            unique = sorted(self.list_unique(view, rows), key=lambda k: found.labels[k])
            if len(unique) < 2 * self.options:
                continue
            for _ in range(SETS):
                chosen = np.sort(rng.choice(len(unique), self.options, replace=False))
                four, others = [unique[k] for k in chosen], [k for n, k in enumerate(unique) if n not in chosen]
                table = gaps_m[np.ix_(others, four)]
                low, next_low = np.sort(table, axis=1)[:, :2].T
                clear = (next_low - low >= self.limits.gap_min) & (next_low >= self.limits.nearer * low)
                nearest = np.where(clear, table.argmin(axis=1), -1)
                if set(range(self.options)) <= set(nearest.tolist()):
                    complete = True
                    for answer in range(self.options):
                        about = int(rng.choice(np.flatnonzero(nearest == answer)))
                        yield self._measure(view, rows, others[about], four, table[about])
        if not complete:
            yield reject(self, view, view.id, "decided", 0, 1, "no four of which each is clearly nearest to one")

    def look_alike(self, one: Measured, other: Measured) -> bool:
        """Whether two places ask about the same object."""
        return bool(one.evidence.about == other.evidence.about)

    def _measure_gaps_m(self, view: SceneView) -> FloatArray:
        corners = np.array([boxes.corners(item.box) for item in view.objects]).reshape(-1, 8, 3)
        return boxes.measure_gap_m(corners[:, None], corners[None])

    def _measure(
        self, view: SceneView, rows: Sequence[int], about: int, four: Sequence[int], gaps_m: FloatArray
    ) -> Measured:
        found = get_sightings(view)
        labels, ids = [found.labels[k] for k in four], [view.objects[k].instance_id for k in (about, *four)]
        low, next_low = np.sort(gaps_m)[:2]
        spots = found.list_spots(rows, [found.labels[about], *labels])
        seen = NearestEvidence(labels=labels, about=found.labels[about], gaps_m=gaps_m, instance_ids=ids, spots=spots)
        ratios = {"nearer": min(float(next_low / max(low, 1e-3)) / self.limits.nearer, 1e3)}
        group = "+".join(labels)
        frames, key = tuple(view.frames[row] for row in rows), f"objects:{'+'.join(ids)}"
        return Measured(frames, seen, {}, ratios, group, key=key, group=group)

    def value(self, seen: NearestEvidence) -> FloatArray:
        """Minus the distances, meters."""
        return np.asarray(-seen.gaps_m)

    def explain(self, fact: Fact, pen: Explainer) -> dict[str, str]:
        """The distance to each object."""
        seen = NearestEvidence.of(fact.truth_candidate)
        names = [pen.word("list.the", name=name) for name in seen.labels]
        return pen.tell_each("m", list(zip(names, seen.gaps_m.tolist(), strict=True))) | {"about": seen.about}

    def second(self, view: SceneView, measured: Measured) -> FloatArray:
        """Minus the smallest distances between what the frames measured on the objects, meters.

        Raises:
            GeometryError: hardly a pixel lies on one of them.
        """
        found, rows = get_sightings(view), self.find_places(view, measured.frames)
        ids = [one.instance_id for one in view.objects]
        clouds = [found.list_points_m(rows, ids.index(one)) for one in measured.evidence.instance_ids if one in ids]
        if len(clouds) <= self.options or min(map(len, clouds)) < 4:
            raise GeometryError(f"{measured.frames[0].id}: hardly a pixel lies on one of the objects")
        tree = cKDTree(clouds[0])
        return np.array([-float(np.min(tree.query(cloud)[0])) for cloud in clouds[1:]])

    def count_hops(self, fact: Fact) -> int:
        """All objects that the question names."""
        return len(self.candidate_evidence.of(fact.truth_candidate).instance_ids)

    def disturb(self, seen: Any, noise: SensorNoise, rng: np.random.Generator, n: int) -> Any:
        """The gaps as (n, L): the faces of both boxes are off."""
        errors = rng.normal(0.0, noise.box_m * np.sqrt(2), (n, len(seen.gaps_m)))
        return seen.model_copy(update={"gaps_m": seen.gaps_m + errors})
