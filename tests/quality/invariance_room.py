"""Facts of the small room in every task, and the same room moved and delivered smaller."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from tests.facts_at_hand import group_id
from tests.labelled_room import labelled_room
from tests.lenient import without_lines
from tests.small_room import other_world, small_room
from vgbench_gen.core.errors import TooFewOptionsError
from vgbench_gen.core.gates import Gates
from vgbench_gen.core.rng import rng_for
from vgbench_gen.core.types import ColorArray, Fact, QuestionType
from vgbench_gen.distractors.base import OptionSet, strategies
from vgbench_gen.pipeline.measure import measure_task, store_pictures
from vgbench_gen.pipeline.question import (
    MadeQuestion,
    QuestionRejectedError,
    make_question,
    require_other_side,
)
from vgbench_gen.pipeline.question_plan import QuestionPlan
from vgbench_gen.pipeline.recipe import Recipe
from vgbench_gen.scenes.view import SceneView
from vgbench_gen.store import pictures
from vgbench_gen.store.media import MediaStore
from vgbench_gen.store.pictures import Picture
from vgbench_gen.tasks.base import tasks
from vgbench_gen.tasks.seen import LabelledScene

NAMES = sorted(tasks)
PER_TASK = {
    "metric_depth": 8,
    "relative_depth": 2,
    "camera_parameters": 12,
    "object_location": 8,
    "homography_to_matrix": 12,
    "point_tracking": 12,
    "point_distance": 12,
    "wider_object": 12,
}
# Kinds that call objects by their labels.
LABELLED = frozenset(name for name in NAMES if isinstance(tasks[name], LabelledScene)) | {"object_size"}  # of any size
PER_TASK |= dict.fromkeys(LABELLED, 8)
# Kinds of which every answer must be right equally often, for which the other room has no places.
GRID = frozenset(
    {
        "box_match",
        "camera_from_camera",
        "camera_motion_words",
        "camera_turn_angle",
        "height_comparison",
        "object_gap",
        "orthographic_view",
        "rotated_arrangement",
        "size_comparison",
    }
)
SCALE = 0.75
SETTINGS = Recipe(seed=0, strategy="set_first")


@dataclass(frozen=True)
class Room:
    facts: dict[str, list[Fact]]
    media: MediaStore

    def image(self, picture: Picture) -> ColorArray:
        return pictures.apply(picture, pictures.decode(self.media.get(picture.base)))


def measured(folder: Path, names: Sequence[str] = tuple(NAMES)) -> Room:
    """Facts of every task that can be asked, on the small room, with their base images below a folder."""
    media = MediaStore(folder)
    found = {}
    for name in names:
        task = tasks[name].with_gates(without_lines(Gates()))
        view = get_view(name)
        facts, _ = measure_task(task, view, 0, PER_TASK.get(name, 4))
        found[name] = [fact for fact in store_pictures(facts, view, media) if _may_be_asked(fact)]
        assert len(found[name]) >= 2, name
    assert {fact.ask for fact in found["camera_parameters"]} == set(tasks["camera_parameters"].asks)
    return Room(found, media)


def get_view(name: str) -> SceneView:
    """Of the room in which a kind is tested."""
    return _open_view(_name_room(name))


def moved_view(name: str) -> SceneView:
    """The same captures in another world frame."""
    return _open_view(_name_room(name), moved=True)


def smaller_view(name: str) -> SceneView:
    """The same captures, delivered at three quarters of the size."""
    return _open_view(_name_room(name), smaller=True)


def _name_room(name: str) -> str:
    return "labelled" if name in LABELLED else "grid" if name in GRID else "small"


@cache
def _open_view(room: str, moved: bool = False, smaller: bool = False) -> SceneView:
    world = other_world() if moved else None
    scene = labelled_room(world) if room == "labelled" else small_room(world, grid=room == "grid")
    gates = Gates()
    if smaller:
        frame = gates.frame.model_copy(update={"long_side_px": round(320 * SCALE)})
        gates = gates.model_copy(update={"frame": frame})
    return SceneView(scene, gates)


def pairs(room: Room, name: str) -> Iterator[tuple[Fact, Fact]]:
    """Facts that have another side, with it."""
    both = [(fact, tasks[name].counterpart(fact)) for fact in room.facts[name]]
    found = [(fact, other) for fact, other in both if other is not None]
    assert len(found) >= 2, f"{name}: {len(found)} of {len(both)} facts have another side"
    yield from found


def _may_be_asked(fact: Fact) -> bool:
    try:
        make_question(fact, options_of(fact), plan_of(fact), tasks[fact.task], SETTINGS)
    except (QuestionRejectedError, TooFewOptionsError):
        return False
    return True


def options_of(fact: Fact) -> OptionSet:
    task = tasks[fact.task]
    return strategies["set_first"].options(fact, task, rng_for(0, "options", fact.key), task.count_options(4))


def plan_of(fact: Fact, form: QuestionType = "multi-choice", side: str = "") -> QuestionPlan:
    return QuestionPlan(
        fact.task, fact.dataset, fact.split, fact.scene_id, group_id(fact), form, side=side, difficulty="hard",
        paired=True,
    )  # fmt: skip


def other_side(fact: Fact, form: QuestionType, options: OptionSet | None = None) -> MadeQuestion:
    """The question from the other side.

    Raises:
        QuestionRejectedError: it may not be asked.
    """
    task = tasks[fact.task]
    there, turned = require_other_side(fact, options, plan_of(fact, form), task, SETTINGS)
    return make_question(there, turned, plan_of(fact, form, task.counterpart_kind), task, SETTINGS)


def both_sides(fact: Fact) -> tuple[MadeQuestion, MadeQuestion | None]:
    """The fact as a multi-choice question, and its partner, where it keeps all margins."""
    options = options_of(fact)
    here = make_question(fact, options, plan_of(fact), tasks[fact.task], SETTINGS)
    try:
        return here, other_side(fact, "multi-choice", options)
    except QuestionRejectedError:
        return here, None


def as_asked(fact: Fact) -> Fact:
    """The fact as a row gives it back: with its options, or the truth alone; the relative tasks compare theirs."""
    if fact.task != "relative_depth":
        return replace(fact, candidates=(fact.truth_candidate,), truth=0)
    options = options_of(fact)
    return replace(fact, candidates=options.options, truth=options.truth)
