"""Rooms that several modules look at, made once per test process; never to be changed."""

from __future__ import annotations

from functools import cache

from vgbench_gen.samples.base import Capture, SampleSpec
from vgbench_gen.samples.captures import make_capture
from vgbench_gen.samples.rooms import RoomPlan, plan_room

TURNTABLE_SPEC = SampleSpec("wildrgbd", "kettle/scenes_001", 4, 1)


@cache
def plan_kind(kind: str) -> RoomPlan:
    """A study with a kettle to walk around, or another kind of room without one."""
    return plan_room(5, f"room {kind}", kind, "kettle" if kind == "study" else "")


@cache
def turntable() -> Capture:
    return make_capture(TURNTABLE_SPEC)
