"""How to turn on a route between four objects that several frames show: at the second and at the third of them. The
route starts at the first object and faces the second one, and its ways are straight and free."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import ClassVar

import numpy as np

from vgbench_gen.core.types import BoolArray, Fact, FloatArray, Rejected
from vgbench_gen.scenes.view import SceneView
from vgbench_gen.tasks.base import reject, tasks
from vgbench_gen.tasks.directions import FAR_M, NEAR_M, DirectionEvidence, DirectionTask, find_middle, measure_free_m
from vgbench_gen.tasks.explaining import Explainer
from vgbench_gen.tasks.kind import Measured

DRAWS, ROUTES = 90, 12  # of frames, and of objects in each
FREE_M = 0.25  # between the way and anything that stands there
REACH_M = 0.6  # from the middle of an object; whoever is so near is there, whatever else stands around it
BODY_M = (0.47, 1.75)  # heights above the floor between which a walker needs room: knees and head
STOPS = 4
SIDES = np.array([[-1.0, -1.0], [-1.0, 1.0], [1.0, -1.0], [1.0, 1.0]])  # of the labels; to the right is positive


@tasks.register("route_turns")
class RouteTurns(DirectionTask):
    """See the module."""

    name = "route_turns"
    category, subcategory = "Direction", "Route"
    asked = "how to turn at two objects of a route, for someone who starts facing the first of them"
    convention: ClassVar = {"turn": "from the way there to the way on, on the floor, between centres of 3D boxes"}
    labels = ("left_left", "left_right", "right_left", "right_right")
    per_frame = 1  # routes over the same frames differ by a few names alone
    margins: ClassVar = {"gap_min": 1.73}  # sines: both turns are by 60 to 120 degrees

    def propose(self, view: SceneView, rng: np.random.Generator) -> Iterator[Measured | Rejected]:
        """Routes over free ways between objects that some frames show."""
        free = self._find_free(view)
        for rows in self.draw_frames(view, rng, DRAWS, linked=True):
            unique = self.list_unique(view, rows)
            routes = {tuple(self._draw_route(free, unique, rng)): None for _ in range(ROUTES if unique else 0)}
            whole = [list(route) for route in routes if len(route) == STOPS]
            if not whole:
                yield reject(self, view, "+".join(map(str, rows)), "no_free_way", 0, 1, f"{len(unique)} names")
            for route in whole:
                found = self.measure(view, rows, route)
                if found is not None:
                    yield found

    def _draw_route(self, free: BoolArray, unique: list[int], rng: np.random.Generator) -> list[int]:
        """Different objects with free ways from each to the next, up to four."""
        route = [int(rng.choice(unique))]
        while len(route) < STOPS and (onward := [k for k in unique if free[route[-1], k] and k not in route]):
            route.append(int(rng.choice(onward)))
        return route

    def _find_free(self, view: SceneView) -> BoolArray:
        """(O, O) whether the straight way from one object's middle to another's is neither short nor long, and nothing
        that was scanned stands there but the two."""
        up, count = np.asarray(view.up_world), len(view.objects)
        labelled = [*view.objects, *view.building]
        clouds = [np.zeros((0, 3)) if one.points_m is None else one.points_m[::8] for one in labelled]
        points_m, owners = np.concatenate(clouds), np.repeat(np.arange(len(clouds)), [len(cloud) for cloud in clouds])
        heights_m = points_m @ up
        floor_m = np.quantile(heights_m, 0.01)
        high = (heights_m - floor_m > min(BODY_M)) & (heights_m - floor_m < max(BODY_M))
        points_m, owners = points_m[high], owners[high]
        middles_m = np.array([one.box.center_m - up * (one.box.center_m @ up - floor_m) for one in view.objects])
        free = np.zeros((count, count), dtype=bool)
        for i, j in zip(*np.triu_indices(count, 1), strict=True):
            long_m = float(np.linalg.norm(way_m := middles_m[j] - middles_m[i]))
            if NEAR_M <= long_m <= FAR_M:
                start_m, ahead = middles_m[i] + way_m / long_m * REACH_M, way_m / long_m
                free_m = measure_free_m(points_m[(owners != i) & (owners != j)], start_m, ahead, up, FREE_M, BODY_M)
                free[i, j] = free[j, i] = free_m >= long_m - 2 * REACH_M
        return free

    def aim(self, seen: DirectionEvidence) -> tuple[FloatArray, FloatArray]:
        """The last two ways."""
        _, there, on = self._list_ways(seen)
        return there, on

    def _list_ways(self, seen: DirectionEvidence) -> list[FloatArray]:
        stops = [find_middle(one) for one in (seen.a, seen.b, seen.c, seen.d)]
        ways = [second - first for first, second in pairwise(stops)]
        return [way - seen.up * (way @ seen.up)[..., None] for way in ways]

    def explain(self, fact: Fact, pen: Explainer) -> dict[str, str]:
        """By how much the route turns at both stops."""
        seen, told = self.restore(fact, pen), self.slots(fact)
        for stop, (there, on) in zip("bc", pairwise(self._list_ways(seen)), strict=True):
            told["turn_" + stop] = pen.tell_sides(*pen.face(there, seen.up, on))["bearing"]
        return told

    def value(self, seen: DirectionEvidence) -> FloatArray:
        """Of each two turns the smaller of their sines, where a turn to the other side counts as negative."""
        ways = [way / np.linalg.norm(way, axis=-1, keepdims=True) for way in self._list_ways(seen)]
        sines = [(np.cross(there, seen.up) * on).sum(axis=-1) for there, on in pairwise(ways)]
        return np.asarray((np.stack(np.broadcast_arrays(*sines), axis=-1)[..., None, :] * SIDES).min(axis=-1))
