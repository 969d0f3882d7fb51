"""A kind of question that says what it measures; how facts are proposed, shown and explained is the same for all.

Such a kind gives `propose`, `value` and `second`, and `disturb` for the noise test. `value` is a pure function of the
evidence: the first route, the recomputation from a row and the noise test all call it.
"""

from __future__ import annotations

import abc
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from types import new_class
from typing import Any, ClassVar

import numpy as np

from vgbench_gen.core.errors import PluginError
from vgbench_gen.core.gates import Gates, TaskGates
from vgbench_gen.core.noise import SensorNoise
from vgbench_gen.core.rng import rng_for
from vgbench_gen.core.types import Candidate, Fact, FloatArray, IntArray, Rejected
from vgbench_gen.geometry.poses import transform
from vgbench_gen.scenes.view import SceneView, ViewFrame
from vgbench_gen.store.drawing import COLORS, StrokeSizes
from vgbench_gen.store.pictures import Picture
from vgbench_gen.tasks import _overlays
from vgbench_gen.tasks._object_evidence import ObjectEvidence, compare_with_rect, reveal_object
from vgbench_gen.tasks._objects import TARGETS_APART_M
from vgbench_gen.tasks.base import Check, OwnGates, Problems, Task, add_margins, reject, tasks
from vgbench_gen.tasks.evidence import Evidence, FactEvidence
from vgbench_gen.tasks.presentation import Mark, WorldBox
from vgbench_gen.tasks.records import make_camera_slots, read_camera_record
from vgbench_gen.tasks.revealed import Revealed
from vgbench_gen.tasks.row_evidence import RowEvidence
from vgbench_gen.text.numbers import format_point
from vgbench_gen.text.render import list_question_types

MARK_COLORS = ("orange", "blue", *(color for color in COLORS if color not in ("orange", "blue")))
LOOKS_APART_BITS = 12  # of 64: frames whose perceptual hashes differ in fewer look alike from wherever they are taken
_NO_NOISE = SensorNoise(depth_m=0, depth_per_m=0, turn_deg=0, shift_m=0, focal=0, box_m=0)
_POOL_FACTOR = 8  # measured places per wanted fact, for strata to choose from
_REJECTS_FACTOR = 5
_PROPOSALS_FACTOR = 400


@dataclass(frozen=True, slots=True, eq=False)
class Measured:
    """What was measured at one place of a scene."""

    frames: tuple[ViewFrame, ...]
    """Frames that are shown, in this order."""
    evidence: Any
    """The numbers from which `QuestionKind.value` computes."""
    marks: Mapping[str, Sequence[int]] = field(default_factory=dict)
    """Slot of the question -> point [u, v] or region [x1, y1, x2, y2] that is drawn on the first image, whole pixels.
    The first by name is orange, the second blue; kinds put them in random order, or the color tells. An object of the
    evidence has the mark of its field's name, or that name behind `rect_`."""
    ratios: Mapping[str, float] = field(default_factory=dict)
    """Name of a gate -> measured value over its limit; a place with a ratio below 1 is rejected for it."""
    target: str = ""
    """What is asked about, where other frames may show it too; "" where it is of this place alone."""
    point_m: FloatArray | None = None
    """(3,) where it is in the world, meters; places of one frame that are near each other are not both asked."""
    key: str = ""
    """A name of the place among those of its frames; from its marks where it is ""."""
    guess: str = ""
    """The label that a reader of the question without its images would name; see `LabelTask`."""
    group: str = ""
    """What the question says besides its images, such as the names of its options; see `LabelTask`."""


def check_kind(fact: Fact, gates: Gates) -> Problems:
    """The answer by the evidence keeps the limits, and stored objects are cuboids on their drawn rectangles."""
    task, truth = tasks[fact.task].with_gates(gates), fact.truth_candidate
    assert isinstance(task, QuestionKind)
    seen = task.candidate_evidence.of(truth)
    camera = read_camera_record(fact.cameras[fact.frame_ids[0]])
    found: Problems = [
        ("limits", f"{truth.key}: {name} is {ratio:.3f} of what is needed")
        for name, ratio in task.settle(task.value(seen))[1].items()
        if ratio < 1
    ]
    for stored, rect in list_objects(truth, seen):
        found += compare_with_rect(f"{truth.key} {stored.instance_id}", stored.corners_m, rect, camera)
    return found


class EvidenceTask(Task):
    """A task whose answer is computed by `value` from what it keeps, and whose margins are class data."""

    margins: ClassVar[Mapping[str, float]] = {}
    """Gates and margins by name, which `[gates.<name of the task>]` of a recipe overrides."""
    fact_evidence: ClassVar[type[FactEvidence]] = FactEvidence
    limits: ClassVar[Any]
    gates_base: ClassVar[type[TaskGates]] = TaskGates
    """What the gates hold besides `margins`."""
    own_gates: ClassVar[type[TaskGates]]

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if cls.margins and hasattr(cls, "name") and not {"margins", "name"}.isdisjoint(vars(cls)):
            fields = {
                "section": cls.name,
                "__module__": cls.__module__,
                "__qualname__": f"{cls.__qualname__}.own_gates",  # where pickle finds it
                "__annotations__": dict.fromkeys(cls.margins, float),
            }
            given = fields | dict(cls.margins)
            kind = new_class(f"{cls.__name__}Gates", (cls.gates_base,), {}, lambda space: space.update(given))
            cls.own_gates, cls.limits = kind, OwnGates(kind)
        if hasattr(cls, "name") and not hasattr(cls, "category_origin"):
            cls.category_origin = dict.fromkeys(cls.formats, f"{cls.name}_vqa")

    def value(self, seen: Any) -> Any:
        """The answer by the evidence alone, unrounded: a number, or scores of the labels (L,).

        seen: of the type `candidate_evidence`; from `disturb`, every disturbed field has a first axis of n draws, and
            so has the answer.
        """
        raise TypeError(f"{self.name} has no answer by its evidence: give `value`")

    def second(self, view: SceneView, measured: Measured) -> Any:
        """As `value`, by a second route that shares nothing with the first beyond `geometry/`.

        Raises:
            GeometryError, FrameError: there is no second route here; the draft is rejected.
        """
        raise TypeError(f"{self.name} has no second route: give `second`")

    def disturb(self, seen: Any, noise: SensorNoise, rng: np.random.Generator, n: int) -> Any:
        """The evidence under n errors, by `model_copy(update=...)`; None where a task says its noise in another way."""
        return None

    def _check_draws(self, seen: Any) -> None:
        """One draw without an error must give what the evidence gives, or the noise test would judge other numbers."""
        drawn = self.disturb(seen, _NO_NOISE, rng_for(0, "draws", self.name), 1)
        if drawn is None:
            return
        plain, once = (np.asarray(self.value(one), dtype=np.float64) for one in (seen, drawn))
        if once.shape != (1, *plain.shape):
            found, expected = f"shape {once.shape} of `value` for one draw", f"{(1, *plain.shape)}, draws first"
        elif not np.allclose(once[0], plain, rtol=1e-6, atol=1e-6):
            found, expected = f"{once[0].tolist()} by `value` for one draw without noise", f"{plain.tolist()}"
        else:
            return
        remedy = "Count axes from the end in `value` (axis=-1), and give `disturb` a first axis of draws."
        raise PluginError(f"task {self.name!r}: found {found}; expected {expected}. {remedy}")


class QuestionKind(EvidenceTask):
    """See the module."""

    per_frame: ClassVar[int] = 2
    """The most facts of the same frames."""
    uses_max: ClassVar[int] = 3
    """The most facts of one target in a scene."""
    checks: ClassVar[tuple[Check, ...]] = (check_kind,)

    def propose(self, view: SceneView, rng: np.random.Generator) -> Iterator[Measured | Rejected]:
        """Places in random order; those that fail a gate as a `Rejected` or with a ratio below 1."""
        raise TypeError(f"{self.name} proposes nothing: give `propose`")

    def check_class_data(self) -> None:
        """Beside what every task has: wordings of each form."""
        super().check_class_data()
        written = list_question_types(self.name)
        if missing := [form for form in self.formats if form not in written]:
            remedy = "Write its wordings there, or name the forms that there are in `formats`"
            raise TypeError(f"found no {missing[0]!r} in the templates; expected one of {', '.join(written)}. {remedy}")

    # --- measuring -------------------------------------------------------------------------------------------------

    @abc.abstractmethod
    def settle(self, answer: Any) -> tuple[FloatArray, Mapping[str, float]]:
        """(the value as printed, name of a limit -> by how much it is kept, at least 1) of what `value` gives."""

    def list_pool(self, truth: Candidate, others: Sequence[Candidate]) -> tuple[Candidate, ...]:
        """The candidates of a fact; others: of the same frames, in random order."""
        return (truth, *others[: self.pool_size - 1])

    def order(self, found: Sequence[Measured], answers: Sequence[Any], rng: np.random.Generator) -> IntArray:
        """Places of `found` in the order in which they are to be asked, answers as `value` gives them: at random, new
        targets before repeated ones."""
        uses: Counter[str] = Counter()
        chance, turn = rng.permutation(len(found)), np.zeros(len(found))
        for k in chance:
            turn[k] = uses[found[k].target]
            uses[found[k].target] += bool(found[k].target)
        return chance[np.argsort(turn[chance], kind="stable")]

    def choose(
        self, view: SceneView, found: Sequence[Measured], answers: Sequence[Any], order: list[int], limit: int
    ) -> list[int]:
        """At most `limit` places of `found`, none too much like an earlier one, in that order."""
        chosen: list[int] = []
        for k in order:
            if len(chosen) < limit and not self.is_taken(view, found[k], [found[n] for n in chosen]):
                chosen.append(k)
        return chosen

    def choose_evenly(
        self,
        view: SceneView,
        found: Sequence[Measured],
        labels: Sequence[int],
        count: int,
        order: list[int],
        limit: int,
        agrees: Callable[[int], bool],
        partly: bool = False,
    ) -> list[int]:
        """In rounds: of each guess and group in turn one place of every label, as long as there is one of each.

        Unless the first round is too long, there are whole rounds only. A place counts where both routes agree, or
        those that they refuse would tip the balance; the others come last.

        Args:
            view, found, order, limit: as for `choose`.
            labels, count: what should be met equally often, for each place from 0 to below `count`.
            agrees: whether both routes agree at a place.
            partly: whether a round without one of each counts as well.
        """
        chosen: list[int] = []
        refused: list[int] = []
        guesses = sorted({(one.group, one.guess) for one in found})
        while guesses and len(chosen) < limit:
            if chosen and len(chosen) + count > limit and not partly:
                break  # part of a round holds the commonest labels
            for guess in list(guesses):
                turn: dict[int, int] = {}
                alike = (k for k in order if (found[k].group, found[k].guess) == guess)
                for k in (k for k in alike if labels[k] not in turn):
                    made = [found[n] for n in (*chosen, *turn.values())]
                    if k in (*chosen, *refused) or self.is_taken(view, found[k], made):
                        continue
                    if agrees(k):
                        turn[labels[k]] = k
                    else:
                        refused.append(k)
                complete = len(turn) == count
                fits = not chosen or len(chosen) + len(turn) <= limit
                if partly or (complete and fits):
                    chosen += turn.values()
                if not complete:
                    guesses.remove(guess)
        return [*chosen[:limit], *refused]

    def drafts(self, view: SceneView, rng: np.random.Generator, limit: int) -> Iterator[Fact | Rejected]:
        """What `propose` gives, in the order of `order`, without what is too much alike."""
        found: list[Measured] = []
        answers: list[Any] = []
        spare = _REJECTS_FACTOR * limit
        for one in islice(self.propose(view, rng), _PROPOSALS_FACTOR * limit):
            new = isinstance(one, Rejected) or not found or one.frames != found[-1].frames
            if new and len(found) >= _POOL_FACTOR * limit:
                break
            if isinstance(one, Measured):
                answer = self.value(one.evidence)
                ratios = {**one.ratios, **self.settle(answer)[1], **measure_border(one)}
                name = min(ratios, key=lambda gate: ratios[gate], default="")
                if not name or ratios[name] >= 1:
                    found.append(one)
                    answers.append(answer)
                    continue
                one = reject(self, view, name_place(one), name, ratios[name], 1.0)
            if spare > 0:
                spare -= 1
                yield one
        order = self.order(found, answers, rng).tolist()
        for k in self.choose(view, found, answers, order, limit):
            beside = [n for n in range(len(found)) if found[n].frames == found[k].frames]
            others = [beside[i] for i in rng.permutation(len(beside)) if beside[i] != k]
            yield self._make_fact(view, found[k], [self._make_candidate(found[n], answers[n]) for n in (k, *others)])

    def is_taken(self, view: SceneView, one: Measured, made: Sequence[Measured]) -> bool:
        """Whether a place is too much like those that are asked about already."""
        beside = [other for other in made if other.frames == one.frames]
        points = [other.point_m for other in beside if other.point_m is not None]
        near = one.point_m is not None and any(np.linalg.norm(one.point_m - p) < TARGETS_APART_M for p in points)
        same = [other for other in made if one.target and other.target == one.target]
        return (
            near
            or len(beside) >= self.per_frame
            or len(same) >= self.uses_max
            or any(self.look_alike(one, other) for other in same)
        )

    def look_alike(self, one: Measured, other: Measured) -> bool:
        """Whether two places show the same target in frames that look alike."""
        return (one.frames[0].look ^ other.frames[0].look).bit_count() < LOOKS_APART_BITS

    def _make_candidate(self, one: Measured, answer: Any) -> Candidate:
        return Candidate(
            name_candidate(one), self.settle(answer)[0], show=dict(one.marks), evidence=one.evidence.write()
        )

    def _make_fact(self, view: SceneView, one: Measured, candidates: Sequence[Candidate]) -> Fact:
        pool = self.list_pool(candidates[0], candidates[1:])
        poses = {frame.id: frame.world_from_camera for frame in one.frames}
        self._check_draws(one.evidence)
        fact = self.new_fact(view, pool, frame_ids=tuple(poses), evidence=self.fact_evidence(world_from_camera=poses))
        truth = next(k for k, candidate in enumerate(pool) if candidate is candidates[0])
        fact = replace(fact, truth=truth, second_value=candidates[0].value)
        return add_margins(fact, name_place(one), {**one.ratios, **self.settle(self.value(one.evidence))[1]})

    def recheck(self, fact: Fact, view: SceneView) -> FloatArray:
        """What `second` gives."""
        truth, frames = fact.truth_candidate, tuple(view.frame(frame_id) for frame_id in fact.frame_ids)
        seen = Measured(frames, self.candidate_evidence.of(truth), truth.show)
        return np.atleast_1d(np.asarray(self.second(view, seen), dtype=np.float64))

    # --- asking ----------------------------------------------------------------------------------------------------

    def pictures(self, fact: Fact) -> tuple[Picture, ...]:
        """What every format of the question shows: the frames, with the marks on the first."""
        ops = []
        for (_, place), color in zip(sorted(fact.truth_candidate.show.items()), MARK_COLORS, strict=False):
            point = {"op": "point", "uv": list(place), "color": color, "shape": "circle"}
            ops.append(point if len(place) == 2 else {"op": "region", "rect": list(place), "color": color})
        first, *others = (fact.pictures[frame_id] for frame_id in fact.frame_ids)
        return (Picture(first, tuple(ops)), *map(Picture, others))

    def slots(self, fact: Fact) -> dict[str, str]:
        """Slots that every format of the question shares: marked points and cameras. Regions are only drawn."""
        named = {name: format_point(place) for name, place in fact.truth_candidate.show.items() if len(place) == 2}
        return named | make_camera_slots(*(fact.cameras[frame_id] for frame_id in fact.frame_ids[:2]))

    def reveal(self, fact: Fact, row: RowEvidence) -> Revealed:
        """The cameras and the objects that the question marks."""
        truth, allowed = fact.truth_candidate, getattr(self.limits, "ratio_min", 1.2) ** 0.5
        found = list_objects(truth, self.candidate_evidence.of(truth))
        return super().reveal(fact, row).with_fields(objects=[reveal_object(one, rect, allowed) for one, rect in found])

    def overlay(self, fact: Fact, row: RowEvidence) -> list[list[Mark]]:
        """The marks, the boxes of objects, and the answer: at the mark it is about, else at the foot of the image."""
        truth, camera = fact.truth_candidate, fact.cameras[fact.frame_ids[0]]
        answer, about, drawn = self.print_option(truth, fact), self.find_answer_mark(truth), []
        for name, place in truth.show.items():
            ends = tuple((float(u), float(v)) for u, v in np.reshape(place, (-1, 2)))
            drawn.append(Mark("point" if len(ends) == 1 else "rect", ends, answer if name == about else ""))
        if not about:
            drawn.append(Mark("line", ((4.0, camera["height"] - 4.0),), answer))
        for seen, _ in list_objects(truth, self.candidate_evidence.of(truth)):
            drawn += _overlays.draw_wireframe(seen.corners_m, camera, seen.label)
        return [drawn, *([] for _ in row.pictures[1:])]

    def find_answer_mark(self, truth: Candidate) -> str:
        """The name of the mark that the answer is about: the only one; "" where there are several or none."""
        return next(iter(truth.show)) if len(truth.show) == 1 else ""

    def world_boxes(self, fact: Fact) -> tuple[WorldBox, ...]:
        """The objects that the question marks."""
        pose, truth = self.stored_poses(fact)[fact.frame_ids[0]], fact.truth_candidate
        seen = list_objects(truth, self.candidate_evidence.of(truth))
        return tuple(WorldBox(o.instance_id, o.label, transform(pose, o.corners_m)) for o, _ in seen)


def measure_border(one: Measured) -> dict[str, float]:
    """How far points are from the border of the image, over how far their marks reach."""
    camera = one.frames[0].camera
    points = [place for place in one.marks.values() if len(place) == 2]
    if not points:
        return {}
    inside = min(min(u, v, camera.width - 1 - u, camera.height - 1 - v) for u, v in points)
    return {"border": min(inside / StrokeSizes.of(*camera.size).reach, 1e3)}


def name_place(one: Measured) -> str:
    """Name of a place in its scene, which is the key of its fact."""
    return f"{'+'.join(frame.id for frame in one.frames)}/{name_candidate(one)}"


def name_candidate(one: Measured) -> str:
    """Name of a place among those of its frames."""
    marks = "+".join(",".join(map(str, place)) for place in one.marks.values())
    return one.key or (f"marks:{marks}" if marks else "frames")


def list_objects(about: Candidate, seen: Evidence) -> list[tuple[ObjectEvidence, Sequence[int]]]:
    """The objects among the fields of a candidate's evidence that are marked, each with its rectangle."""
    places = {name.removeprefix("rect_"): place for name, place in about.show.items()}
    return [(value, places[name]) for name, value in seen if isinstance(value, ObjectEvidence) and name in places]
