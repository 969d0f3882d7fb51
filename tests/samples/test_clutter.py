"""Small things lie where they may, and the furniture does not mind them."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from tests.samples.made_rooms import plan_kind
from vgbench_gen.core.rng import rng_for
from vgbench_gen.samples import clutter
from vgbench_gen.samples.arrange import Placed
from vgbench_gen.samples.captures import list_targets
from vgbench_gen.samples.furniture import MAKERS, make
from vgbench_gen.samples.furniture.style import make_style
from vgbench_gen.samples.programs import PROGRAMS
from vgbench_gen.samples.rooms import RoomPlan, plan_room


def plans() -> list[RoomPlan]:
    return [plan_kind(kind) for kind in ("kitchen", "office", "bedroom", "workshop")]


def split(plan: RoomPlan) -> tuple[list[Placed], list[Placed]]:
    """(what lies about, everything else)."""
    return [t for t in plan.placed if t.clutter], [t for t in plan.placed if not t.clutter]


def test_all_that_lies_about_can_be_made_and_lies_on_something_that_is_made() -> None:
    chosen = {**clutter._ON, **{k: v for kind in clutter._IN.values() for k, v in kind.items()}, **clutter._FLOOR}
    assert {name for names in (*chosen.values(), clutter._ANY_FLOOR) for name in names} <= set(MAKERS)
    assert set(clutter._IN) | set(clutter._FLOOR) <= set(PROGRAMS)
    style = make_style(rng_for(0, "style"))
    labels = {make(kind, rng_for(0, "maker"), style, rng_for(0, "size")).label for kind in MAKERS}
    assert set(clutter._ON) | {name for kind in clutter._IN.values() for name in kind} <= labels | {"window"}


def test_rooms_are_cluttered_on_their_surfaces_and_floors() -> None:
    for plan in plans():
        small, others = split(plan)
        assert len(small) >= 8, plan.kind
        on_floor = [thing for thing in small if thing.z == 0]
        assert 1 <= len(on_floor) <= 4, plan.kind
        for thing in small:
            if thing.z == 0:
                continue
            # It stands on a shelf of the furniture, within its rim up to a handle's width.
            heights = []
            for other in others:
                for shelf in other.model.shelves:
                    at = (np.array([thing.x, thing.y, thing.z]) - other.at_m) @ other.rotation - shelf.center_m
                    if (np.abs(at[:2]) <= shelf.half_m + 0.012).all():
                        heights.append(abs(at[2]))
            assert min(heights) < 0.002, f"{plan.kind}: {thing.model.label}"
    assert any(thing.z > 0.8 for plan in plans() for thing in split(plan)[0])


def test_most_of_it_can_be_told_by_name() -> None:
    for plan in plans():
        small, others = split(plan)
        often = {label for label, count in Counter(t.model.label for t in small).items() if count > 1}
        assert often <= {"books"}
        assert {t.model.label for t in small} & {t.model.label for t in others} <= {"books"}


def test_furniture_and_camera_targets_are_those_of_the_tidy_room(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = plans()[0]
    monkeypatch.setattr("vgbench_gen.samples.rooms.scatter_clutter", lambda *_: None)
    tidy = plan_room(5, f"room {plan.kind}", plan.kind)
    assert not split(tidy)[0]
    for one, other in zip(split(plan)[1], tidy.placed, strict=True):
        assert one.model.label == other.model.label
        assert (one.at_m == other.at_m).all()
        assert one.yaw_deg == other.yaw_deg
    assert [target.size_m for target in list_targets(plan)] == [target.size_m for target in list_targets(tidy)]
    assert plan.rng.random() == tidy.rng.random()  # the light of the room is the same
