"""Kinds about what several frames of a scene show: objects are called by their labels, no mark is drawn, and every
answer is that of the frames shown, never of the whole scan."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, ClassVar

import numpy as np
from pydantic import Strict

from vgbench_gen.core.gates import Gates
from vgbench_gen.core.noise import SensorNoise
from vgbench_gen.core.types import BoolArray, Fact, FloatArray, Rejected
from vgbench_gen.scenes.view import SceneView, ViewFrame
from vgbench_gen.tasks._sightings import (
    AREA_MIN,
    AREA_NONE,
    LABELLED_MIN,
    SEEN_MIN,
    Sightings,
    find_links,
    get_sightings,
)
from vgbench_gen.tasks.base import Problems, reject, tasks
from vgbench_gen.tasks.evidence import ArrayShape
from vgbench_gen.tasks.kind import Measured, QuestionKind, check_kind
from vgbench_gen.tasks.label import NamedEvidence, NamedTask
from vgbench_gen.tasks.presentation import Mark
from vgbench_gen.tasks.row_evidence import RowEvidence
from vgbench_gen.tasks.solving import NoSolver

BUDGETS = (2, 4, 8, 16, 32)  # frames of one question
_TURN_DEG, _SHIFT_M = 60.0, 3.0  # by which what a frame shows changes wholly


class FramesEvidence(NamedEvidence):
    """What is kept of N frames shown."""

    shares: Annotated[FloatArray, ArrayShape(-1, -1)]
    """(N, objects) share of each object that each frame shows, from 0 to 1; the columns are those of the task."""
    deciding: Annotated[tuple[int, ...], Strict(False)] = ()
    """The frames, counted from 0, without any of which the answer is another one or none."""


def check_frames(fact: Fact, gates: Gates) -> Problems:
    """Without the frames that are said to decide, and without no other, the answer changes."""
    task, seen = tasks[fact.task].with_gates(gates), FramesEvidence.of(fact.truth_candidate)
    assert isinstance(task, FramesTask)
    found = task.find_deciding(seen)
    return [] if found == seen.deciding else [("deciding", f"{fact.key}: {found} decide, not {seen.deciding}")]


class LabelledScene(QuestionKind):
    """Scenes whose objects are called by their labels: which frames may be shown, and what is unmistakable in them."""

    input_modality = "multi-images"
    needs_objects, by_default = True, False
    candidate_draws = 1  # no mark is drawn that could tell an answer
    solvers = NoSolver("Classical vision knows no names of objects.")

    def drafts(self, view: SceneView, rng: np.random.Generator, limit: int) -> Iterator[Fact | Rejected]:
        """As for all kinds, in scenes that have what such a kind needs."""
        if self.needs_gravity and view.up_world is None:
            yield reject(self, view, view.id, "no_gravity", float("nan"), float("nan"))
        elif self.list_rows(view):
            yield from super().drafts(view, rng, limit)
        else:
            best = get_sightings(view).labelled.max(initial=0.0)
            yield reject(self, view, view.id, "surface_unlabelled", best, LABELLED_MIN)

    def list_rows(self, view: SceneView) -> list[int]:
        """Places of frames nearly all of whose surface bears a label: what has none could be what is asked about."""
        return np.flatnonzero(get_sightings(view).labelled >= LABELLED_MIN).tolist()

    def draw_frames(
        self, view: SceneView, rng: np.random.Generator, count: int, linked: bool = False
    ) -> list[list[int]]:
        """`count` draws of a budget of frames, in the order in which they were taken.

        linked: whether the frames must hang together (`find_links`), as where a question is about places.
        """
        rows, drawn = self.list_rows(view), []
        sizes = [size for size in BUDGETS if size <= len(rows)]
        links = find_links(view)[np.ix_(rows, rows)] if linked else np.ones((len(rows), len(rows)), dtype=bool)
        places = np.eye(len(rows), dtype=bool)
        for _ in range(count if sizes else 0):
            size, chosen = int(rng.choice(sizes)), [int(rng.integers(len(rows)))]
            while len(chosen) < size and (free := links[chosen].any(axis=0) & ~places[:, chosen].any(axis=1)).any():
                chosen.append(int(rng.choice(np.flatnonzero(free))))
            if len(chosen) == size:
                drawn.append(sorted(rows[k] for k in chosen))
        return drawn

    def list_unique(self, view: SceneView, rows: Sequence[int]) -> list[int]:
        """The objects that some of the frames show, and no other object in any of them that could be called so."""
        found = get_sightings(view)
        hidden: BoolArray = np.asarray(found.hidden[rows].all(axis=0))
        shown = found.shown[rows].any(axis=0)
        named = [k for k in np.flatnonzero(shown).tolist() if found.labels[k] in found.names]
        return [k for k in named if hidden[[other for other in found.list_alike(found.labels[k]) if other != k]].all()]

    def find_places(self, view: SceneView, frames: Sequence[ViewFrame]) -> list[int]:
        """Of frames among those of the scene."""
        places = {frame.id: row for row, frame in enumerate(view.frames)}
        return [places[frame.id] for frame in frames]


class FramesTask(LabelledScene, NamedTask):
    """Frames in an order of their own, and the labels of the scene that they show beyond doubt or not at all.

    A kind proposes by `measure`, gives `value` by the shares that the frames show, and the same from the areas of the
    second route.
    """

    candidate_evidence = FramesEvidence
    checks = (check_kind, check_frames)
    margins: ClassVar[Mapping[str, float]] = {"gap_min": 0.24}

    def look_alike(self, one: Measured, other: Measured) -> bool:
        """Whether two places show the same frames: of one set of answers, others tell something else."""
        return {frame.id for frame in one.frames} == {frame.id for frame in other.frames}

    def measure(
        self, view: SceneView, rows: Sequence[int], labels: Sequence[str], shares: FloatArray, about: str = ""
    ) -> Measured:
        """A place of these frames; shares: (N, objects) as `FramesEvidence` keeps them."""
        names = {name for label in (about, *labels) for name in label.split(", ")}
        spots = get_sightings(view).list_spots(rows, sorted(names))
        seen = FramesEvidence(labels=list(labels), shares=np.floor(1e4 * shares) / 1e4, about=about, spots=spots)
        seen = seen.with_fields(deciding=self.find_deciding(seen))
        frames = tuple(view.frames[row] for row in rows)
        group = "+".join([about, *labels]) if about else "+".join(labels)
        return Measured(frames, seen, target=group, group=group, key=f"labels:{group}".replace(" ", "_"))

    def find_deciding(self, seen: FramesEvidence) -> tuple[int, ...]:
        """The frames without any of which the answer is another one or is not decided."""
        answer, found = int(np.argmax(self.value(seen))), []
        for k in range(len(seen.shares)):
            value, kept = self.settle(self.value(seen.with_fields(shares=np.delete(seen.shares, k, axis=0))))
            if value[0] != answer or kept["decided"] < 1:
                found.append(k)
        return tuple(found)

    def overlay(self, fact: Fact, row: RowEvidence) -> list[list[Mark]]:
        """The answer at the foot of the first image, and in the middle of the foot which images decide it."""
        drawn = super().overlay(fact, row)
        for k in FramesEvidence.of(fact.truth_candidate).deciding:
            camera = fact.cameras[fact.frame_ids[k]]
            drawn[k].append(Mark("line", ((camera["width"] / 2, camera["height"] - 4.0),), "decides"))
        return drawn

    def count_hops(self, fact: Fact) -> int:
        """The images without any of which the answer changes."""
        return max(1, len(FramesEvidence.of(fact.truth_candidate).deciding))

    def find_images(self, fact: Fact, names: Sequence[str]) -> dict[str, list[int]]:
        """Name -> the numbers of the images that show it beyond doubt; names: of the columns of the evidence."""
        seen = FramesEvidence.of(fact.truth_candidate)
        spots = [{label for label, _, _ in shown} for shown in seen.spots]
        return {
            name: [n for n, x in enumerate(zip(shares, spots, strict=True), 1) if x[0] >= SEEN_MIN and name in x[1]]
            for name, shares in zip(names, seen.shares.T.tolist(), strict=True)
        }

    def find_areas(self, view: SceneView, frames: Sequence[ViewFrame], indices: Sequence[int]) -> FloatArray:
        """(N, indices) shares as `shares` by the second route: 1 where depth pixels enough lie on an object, 0 where
        hardly one does, between both in between."""
        areas = get_sightings(view).areas[np.ix_(self.find_places(view, frames), indices)]
        return np.asarray(np.clip((areas - AREA_NONE) / (AREA_MIN - AREA_NONE), 0.0, 1.0))

    def merge_names(self, found: Sightings, table: FloatArray, names: Sequence[str]) -> FloatArray:
        """(N, names) the best share in a table (N, O) of an object of each name."""
        return np.stack([table[:, found.list_instances(name)].max(axis=1, initial=0.0) for name in names], axis=1)

    def disturb(self, seen: Any, noise: SensorNoise, rng: np.random.Generator, n: int) -> Any:
        """`shares` as (n, N, objects): an error of the pose moves what a frame shows at its border."""
        moved = noise.turn_deg / _TURN_DEG + noise.shift_m / _SHIFT_M
        errors = rng.normal(0.0, moved, (n, *seen.shares.shape))
        return seen.model_copy(update={"shares": np.clip(seen.shares + errors, 0.0, 1.0)})
