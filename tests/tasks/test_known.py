"""What readers can learn from a build's facts: options that tell them no more, no truth that tells on itself."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest

from tests.tasks.object_scenes import cuboid
from vgbench_gen.core.gates import Gates
from vgbench_gen.core.types import FloatArray
from vgbench_gen.geometry import boxes, mirror
from vgbench_gen.tasks import _known
from vgbench_gen.tasks._box_clue import box_clue
from vgbench_gen.tasks._distance_clue import distance_clue
from vgbench_gen.tasks._known import Clue, Curve, Known, learn, spread_of
from vgbench_gen.tasks._ladder import Density, Prior, draw_rungs

ENDS = (float(np.log(0.4)), float(np.log(5.0)))
USUAL = Prior(0.3, 0.45, *ENDS)  # true of all answers together
STEPS = (float(np.log(1.2)), float(np.log(1.3)))


@dataclass(frozen=True, slots=True)
class Hinted(Clue):
    """A text that says which of two kinds of object it is."""

    hint: float

    def features(self, x: FloatArray) -> FloatArray:
        return np.column_stack([x / 0.1, np.full(len(x), self.hint / 0.3)])

    def stretch(self, x: FloatArray) -> FloatArray:
        return np.ones(len(x))


def middle(hint: float) -> float:
    return 0.3 + 0.35 * hint


def world(rng: np.random.Generator, scenes: int, each: int) -> list[Hinted]:
    """Near objects of the one kind and far ones of the other."""
    made: list[Hinted] = []
    while len(made) < scenes * each:
        hint = float(rng.choice([-1.0, 1.0]))
        answer = float(rng.normal(middle(hint), 0.25))
        if ENDS[0] < answer < ENDS[1]:
            made.append(Hinted(f"s/{len(made) % scenes}", str(len(made)), answer, USUAL, hint))
    return made


def guessed(clues: list[Hinted], known: Known | None, rng: np.random.Generator) -> tuple[float, float]:
    """(share that a reader gets right who knows where each kind of object stands, share of the facts asked)."""
    right = []
    for clue in clues:
        drawn = draw_rungs(float(np.exp(clue.answer)), spread_of(known, clue), STEPS, 4, rng)
        if drawn is not None:
            members = clue.answer + drawn.step * (np.arange(4) - drawn.rank)
            right.append(np.abs(members - middle(clue.hint)).argmin() == drawn.rank)
    return float(np.mean(right)), len(right) / len(clues)


def test_members_of_a_set_are_equally_likely_for_whoever_read_the_other_scenes() -> None:
    rng = np.random.default_rng(2)
    known = learn(world(rng, 12, 50))
    assert known is not None
    fresh = [replace(clue, scene="s/new") for clue in world(rng, 1, 1800)]
    informed, asked = guessed(fresh, known, rng)
    assert informed < 0.25 + 0.04
    assert asked > 0.6
    assert guessed(fresh, None, rng)[0] > 0.38  # the constants do not know of the two kinds


def test_a_fact_is_judged_without_any_fact_of_its_scene() -> None:
    clues = world(np.random.default_rng(3), 10, 12)
    known = learn(clues)
    assert known is not None
    mine = np.array([scene == "s/3" for scene in known.scenes])
    assert mine.sum() == 12
    moved = replace(known, points=known.points + mine[:, None] * np.array([5.0, 0.0]))
    x = np.linspace(*ENDS, 64)
    for clue in clues:
        same = bool(np.array_equal(known.learnt(clue, x), moved.learnt(clue, x)))
        assert same == (clue.scene == "s/3")


def test_few_facts_or_scenes_teach_nothing_and_the_constants_stand() -> None:
    rng = np.random.default_rng(4)
    facts, scenes = _known.FEWEST_FACTS, _known.FEWEST_SCENES
    assert learn(world(rng, scenes, 100)[: facts - 1]) is None
    assert learn(world(rng, scenes - 1, 20)) is None
    assert learn(world(rng, scenes, -(-facts // scenes))) is not None
    clue = world(rng, 1, 1)[0]
    assert spread_of(None, clue) is USUAL


def test_kernels_are_chosen_as_wide_as_they_are_used() -> None:
    clues = world(np.random.default_rng(8), 10, 12)
    known, x = learn(clues), np.linspace(*ENDS, 64)
    assert known is not None
    widest = replace(known, wider=_known._WIDER[0])
    for clue in clues[:5]:
        tried = _known._by_width(widest, clue, x)
        for wider, shares in zip(_known._WIDER, tried, strict=True):
            assert np.allclose(replace(known, wider=wider).learnt(clue, x), shares, rtol=1e-9)


def test_a_fact_like_no_other_falls_back_on_the_constants() -> None:
    clues = world(np.random.default_rng(5), 10, 12)
    known = learn(clues)
    assert known is not None
    x = np.linspace(*ENDS, 64)
    usual = USUAL.density(x)
    assert np.allclose(known.learnt(replace(clues[0], hint=50.0), x), usual / usual.sum())


def test_what_is_learnt_does_not_depend_on_the_order_of_facts() -> None:
    clues = world(np.random.default_rng(6), 9, 10)
    first, second = learn(clues), learn(clues[::-1])
    assert first is not None
    assert second is not None
    assert np.array_equal(first.points, second.points)
    assert (first.scenes, first.wider, first.doubt) == (second.scenes, second.wider, second.doubt)
    assert first.of(clues[0]) == second.of(clues[0])


def test_constants_that_know_as_much_are_kept() -> None:
    """Facts that say nothing beyond the constants leave most of the density to them."""
    rng = np.random.default_rng(7)
    alike = [replace(clue, answer=float(np.clip(rng.normal(0.3, 0.45), *ENDS))) for clue in world(rng, 8, 7)]
    known = learn(alike)
    assert known is not None
    assert known.doubt >= 0.3


def test_a_box_scaled_about_the_camera_is_the_box_that_stands_there() -> None:
    exact = boxes.corners(cuboid([0.4, 0.5, 2.0], [0.5, 0.9, 0.3], "camera"))
    clue, gates = box_clue(exact, Gates()), Gates()
    assert clue.answer == pytest.approx(np.log(2.0))
    for ratio in (0.7, 1.0, 1.6):
        other = box_clue(exact * ratio, gates)
        x = np.array([other.answer])
        assert np.allclose(clue.features(x), other.features(x))
    assert np.allclose(np.sort(clue.sides), np.array([0.3, 0.5, 0.9]) / 2)
    assert clue.sides[0] == pytest.approx(0.45)  # the upright one
    assert clue.drop == pytest.approx((0.5 + 0.45) / 2)
    turned = box_clue(mirror.mirror_corners(exact), gates)
    x = np.linspace(*ENDS, 5)
    assert np.allclose(clue.features(x), turned.features(x))
    assert np.array_equal(clue.usual.density(x), turned.usual.density(x))


def test_the_stretch_of_a_box_is_how_drops_part_along_one_ray() -> None:
    """Two boxes that differ by a little of drop over depth: metres between them grow as the depth does."""
    clue = box_clue(boxes.corners(cuboid([0.4, 0.5, 2.0], [0.5, 0.9, 0.3], "camera")), Gates())
    x = np.linspace(*ENDS, 9)
    apart = np.linalg.norm(replace(clue, drop=clue.drop + 1e-3).features(x) - clue.features(x), axis=1)
    assert np.allclose(apart / apart[0], clue.stretch(x) / clue.stretch(x[:1]))


def test_a_distance_is_the_same_from_either_object_and_in_any_resolution() -> None:
    a, b, camera = [100, 50, 180, 210], [400, 120, 520, 300], {"K": [500.0, 0, 320, 0, 500, 240, 0, 0, 1]}
    clue, x = distance_clue(1.5, [a, b], camera, Gates()), np.linspace(*ENDS, 5)
    assert np.allclose(clue.features(x), distance_clue(1.5, [b, a], camera, Gates()).features(x))
    doubled = {"K": [1000.0, 0, 640.5, 0, 1000, 480.5, 0, 0, 1]}
    larger = [[2 * v + (k > 1) for k, v in enumerate(rect)] for rect in (a, b)]
    assert np.abs(clue.features(x) - distance_clue(1.5, larger, doubled, Gates()).features(x)).max() < 0.02


def test_a_tabled_density_reads_as_its_table() -> None:
    curve: Density = Curve(0.0, 1.0, (0.0, -2.0, 1.0))
    assert np.allclose(np.log(curve.density(np.array([0.0, 0.25, 0.5, 1.0]))), [0.0, -1.0, -2.0, 1.0])
    assert hash(curve) == hash(Curve(0.0, 1.0, (0.0, -2.0, 1.0)))
