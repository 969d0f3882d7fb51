"""Procedural rooms: the same bytes, true depth, true boxes, nothing inside of anything else, enough to match."""

from __future__ import annotations

from typing import Any

import cv2
import numpy as np
import open3d
import pytest

from tests.samples.capture_scene import CaptureScene
from tests.samples.made_rooms import TURNTABLE_SPEC, plan_kind, turntable
from vgbench_gen.core.gates import Gates
from vgbench_gen.core.rng import rng_for
from vgbench_gen.core.types import Camera, FloatArray
from vgbench_gen.distractors.base import strategies
from vgbench_gen.geometry import boxes
from vgbench_gen.geometry.cameras import resize_camera
from vgbench_gen.pipeline.measure import measure_task
from vgbench_gen.samples.arrange import Placed
from vgbench_gen.samples.base import SampleSpec
from vgbench_gen.samples.captures import TURNTABLE, make_capture
from vgbench_gen.samples.programs import PROGRAMS
from vgbench_gen.samples.rooms import RoomPlan, plan_room
from vgbench_gen.scenes.view import SceneView
from vgbench_gen.tasks.base import tasks

o3d: Any = open3d  # its stubs know no arrays
SPECS = {
    "ca1m": SampleSpec("ca1m", "90000000", 3, 0),
    "scannet": SampleSpec("scannet", "scene9000_00", 3, 0),
    "iphone": SampleSpec("scannetpp", "0123456789/iphone", 3, 0, camera_kind="iphone"),
    "dslr": SampleSpec("scannetpp", "abcdef0123/dslr", 3, 1, camera_kind="dslr"),
    "wildrgbd": SampleSpec("wildrgbd", "kettle/scenes_005", 4, 5),
}
# These hang, or are held by something else than what is below them.
HANGING = {"picture", "clock", "wall shelf", "whiteboard", "kitchen cabinet", "curtain", "blinds", "ceiling lamp"}
DEEP_M = 0.01


def plans() -> list[RoomPlan]:
    return [plan_kind(kind) for kind in list(PROGRAMS)[:6]]


def solids(thing: Placed) -> tuple[FloatArray, np.ndarray]:
    """Vertices and faces of a thing in the room."""
    vertices, faces, count = [], [], 0
    for part in thing.parts():
        vertices.append(part.vertices_m)
        faces.append(part.faces + count)
        count += len(part.vertices_m)
    return np.concatenate(vertices), np.concatenate(faces)


def ray_scene(thing: Placed) -> tuple[Any, FloatArray]:
    vertices, faces = solids(thing)
    scene = o3d.t.geometry.RaycastingScene(nthreads=1)
    scene.add_triangles(o3d.core.Tensor(vertices.astype(np.float32)), o3d.core.Tensor(faces.astype(np.uint32)))
    corners = vertices[faces]
    return scene, np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])


def depth_inside_m(points: FloatArray, thing: Placed) -> float:
    """How deep the deepest of the points lies in the closed solids of a thing: signed crossings, along three directions
    because a ray through an edge may count twice and one through two sides that touch once."""
    scene, normals = ray_scene(thing)
    inside = np.ones(len(points), dtype=bool)
    for direction in np.array([[0.31, 0.17, 0.93], [-0.57, 0.61, 0.41], [0.43, -0.76, -0.29]]):
        rays = np.concatenate([points, np.broadcast_to(direction, points.shape)], axis=1).astype(np.float32)
        found = scene.list_intersections(o3d.core.Tensor(rays), nthreads=1)
        sign = np.sign(normals[found["primitive_ids"].numpy().astype(int)] @ direction)
        winding = np.zeros(len(points))
        np.add.at(winding, found["ray_ids"].numpy().astype(int), sign)
        inside &= winding > 0.5
    if not inside.any():
        return 0.0
    distance = scene.compute_distance(o3d.core.Tensor(points[inside].astype(np.float32)), nthreads=1)
    return float(distance.numpy().max())


def samples_on(thing: Placed) -> FloatArray:
    vertices, faces = solids(thing)
    return np.concatenate([vertices, vertices[faces].mean(axis=1)])


def near_pairs(plan: RoomPlan) -> list[tuple[Placed, Placed]]:
    things = [thing for thing in plan.placed if not thing.structural and thing.model.label != "rug"]
    bounds = [(p.min(axis=0), p.max(axis=0)) for p in (boxes.corners(thing.box()) for thing in things)]
    return [
        (things[i], things[j])
        for i in range(len(things))
        for j in range(len(things))
        if i != j and (bounds[i][0] < bounds[j][1] - 0.002).all() and (bounds[j][0] < bounds[i][1] - 0.002).all()
    ]


def test_the_same_spec_gives_the_same_take() -> None:
    again = make_capture(TURNTABLE_SPEC)
    assert np.array_equal(again.world_from_camera, turntable().world_from_camera)
    assert again.camera.K.tolist() == turntable().camera.K.tolist()
    a, b = (each.world.look(each.camera, each.world_from_camera[3]) for each in (turntable(), again))
    assert a.color.tobytes() == b.color.tobytes()
    assert a.depth_m.tobytes() == b.depth_m.tobytes()
    assert a.instance.tobytes() == b.instance.tobytes()


def test_views_do_not_depend_on_earlier_views() -> None:
    camera, poses, world = turntable().camera, turntable().world_from_camera, turntable().world
    first = world.look(camera, poses[0]).color
    other = world.look(camera, poses[9]).color
    assert world.look(camera, poses[9]).color.tobytes() == other.tobytes()
    assert world.look(camera, poses[0]).color.tobytes() == first.tobytes()
    assert first.tobytes() != other.tobytes()


def test_depth_is_where_the_triangles_are() -> None:
    plan = plan_room(
        TURNTABLE_SPEC.seed, f"wildrgbd/{TURNTABLE_SPEC.scene_id}", list_of_kinds()[1], TURNTABLE["kettle"]
    )
    corners = np.concatenate([v[f] for v, f in (solids(thing) for thing in plan.placed)])
    owner = np.concatenate([np.full(len(solids(thing)[1]), k) for k, thing in enumerate(plan.placed, start=1)])
    camera, pose = turntable().camera, turntable().world_from_camera[5]
    look = turntable().world.look(camera, pose)
    rng = np.random.default_rng(0)
    worst, agree = 0.0, 0
    for u, v in zip(rng.integers(0, camera.width, 40), rng.integers(0, camera.height, 40), strict=True):
        direction = pose[:3, :3] @ [(u - camera.cx) / camera.fx, (v - camera.cy) / camera.fy, 1.0]
        z, face = first_hit(corners, pose[:3, 3], direction)
        worst = max(worst, abs(z - float(look.depth_m[v, u])))
        agree += int(owner[face] == look.instance[v, u]) if np.isfinite(z) and face >= 0 else 1
    assert worst < 1e-3
    assert agree >= 39  # where two things touch, float32 may choose the other one
    depth, instance, cosine = turntable().world.render_depth(camera, pose)
    assert np.abs(depth - look.depth_m).max() < 1e-5
    assert np.array_equal(instance, look.instance)
    assert ((cosine >= 0) & (cosine <= 1 + 1e-6)).all()
    assert (cosine[depth == 0] == 0).all()


def list_of_kinds() -> list[str]:
    return [kind for kind in PROGRAMS if kind not in ("dining room", "kitchen")]


def first_hit(corners: FloatArray, origin: FloatArray, direction: FloatArray) -> tuple[float, int]:
    """Nearest crossing of a ray with triangles (M, 3, 3), in multiples of the direction (Moeller and Trumbore 1997)."""
    a, b = corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]
    p = np.cross(direction, b)
    with np.errstate(divide="ignore", invalid="ignore"):
        scale = 1 / np.einsum("mi,mi->m", a, p)
        s = origin - corners[:, 0]
        u = np.einsum("mi,mi->m", s, p) * scale
        q = np.cross(s, a)
        v = q @ direction * scale
        t = np.einsum("mi,mi->m", b, q) * scale
    t = np.where((u >= 0) & (v >= 0) & (u + v <= 1) & (t > 1e-6), t, np.inf)
    face = int(np.nanargmin(t))
    return (float(t[face]), face) if np.isfinite(t[face]) else (0.0, -1)


def test_boxes_are_upright_and_tight() -> None:
    for plan in plans()[:4]:
        for thing, item in zip(plan.placed, plan.objects(), strict=True):
            local = (solids(thing)[0] - item.box.center_m) @ item.box.rotation
            np.testing.assert_allclose(local.min(axis=0), -item.box.size_m / 2, atol=1e-9)
            np.testing.assert_allclose(local.max(axis=0), item.box.size_m / 2, atol=1e-9)
            np.testing.assert_allclose(item.box.rotation[:, 2], [0, 0, 1], atol=1e-12)
            assert (item.box.size_m > 0).all()


def test_nothing_is_inside_of_anything_else() -> None:
    for plan in plans():
        for a, b in near_pairs(plan):
            deep = depth_inside_m(samples_on(a), b)
            assert deep < DEEP_M, f"{plan.kind}: {a.model.label} reaches {deep:.3f} m into {b.model.label}"


def test_things_stand_on_something() -> None:
    for plan in plans():
        for thing in plan.placed:
            low = thing.z + float(thing.low_m[2])
            if thing.structural or thing.model.label in HANGING:
                continue
            assert low > -0.006, f"{thing.model.label} is {low:.3f} m in the floor"
            if low < 0.02:
                continue
            points = samples_on(thing)
            feet = points[points[:, 2] < low + 0.01]
            rays = np.concatenate([feet + [0, 0, 0.004], np.broadcast_to([0.0, 0, -1], feet.shape)], axis=1)
            gaps = [
                float(
                    ray_scene(other)[0]
                    .cast_rays(o3d.core.Tensor(rays.astype(np.float32)), nthreads=1)["t_hit"]
                    .numpy()
                    .min()
                )
                for other in plan.placed
                if other is not thing
                and other.z + other.high_m[2] > low - 0.02
                and other.z + other.low_m[2] < low
                and np.linalg.norm(other.box().center_m[:2] - thing.box().center_m[:2]) < 3
            ]
            assert min(gaps) < 0.02, f"{plan.kind}: {thing.model.label} floats {min(gaps):.3f} m"


def test_rooms_hold_many_kinds_of_things() -> None:
    labels = {item.label for plan in plans() for item in plan.objects() if not item.structural}
    assert len(labels) >= 40
    for plan in plans():
        assert len({item.label for item in plan.objects() if not item.structural}) >= 12
    parts = {item.label for plan in plans() for item in plan.objects() if item.structural}
    assert parts == {"wall", "floor", "ceiling", "door", "window", "baseboard"}


def test_typical_views_have_hundreds_of_features_and_match() -> None:
    camera = resize_camera(turntable().camera, 480, 640)
    sift, matcher = cv2.SIFT.create(nfeatures=1500), cv2.BFMatcher()
    found = []
    for pose in turntable().world_from_camera[:3]:
        grey = cv2.cvtColor(turntable().world.look(camera, pose).color, cv2.COLOR_RGB2GRAY)
        found.append(sift.detectAndCompute(grey, None))
    assert all(len(points) >= 225 for points, _ in found)
    pairs = matcher.knnMatch(found[0][1], found[1][1], k=2)
    good = [m for m, n in pairs if m.distance < 0.75 * n.distance]
    depth = turntable().world.render_depth(camera, turntable().world_from_camera[0])[0]
    second_from_first = np.linalg.inv(turntable().world_from_camera[1]) @ turntable().world_from_camera[0]
    close = 0
    for match in good:
        u, v = found[0][0][match.queryIdx].pt
        z = float(depth[round(v), round(u)])
        point = second_from_first[:3, :3] @ (z * (np.linalg.inv(camera.K) @ [u, v, 1])) + second_from_first[:3, 3]
        seen = camera.K @ point
        close += bool(np.linalg.norm(seen[:2] / seen[2] - found[1][0][match.trainIdx].pt) < 2)
    assert close >= 40
    assert close >= 0.6 * len(good)  # wallpaper and tiles repeat themselves


def test_the_turntable_thing_stands_on_the_highest_board_of_its_table() -> None:
    plan = plan_room(7, "turntable 18", "study", "kettle")
    focus = plan.focus
    assert focus is not None
    (table,) = (t for t in plan.placed if (t.x, t.y) == (focus.x, focus.y) and t.model.shelves and t.z == 0)
    heights_m = [float(shelf.center_m[2]) for shelf in table.model.shelves]
    assert len(heights_m) == 2, "choose a room whose table has a board below"
    assert focus.z == pytest.approx(max(heights_m), abs=1e-3)


def test_the_focus_is_seen_from_all_around() -> None:
    item = next(item for item in turntable().world.objects if item.instance_id == turntable().focus)
    assert item.label == "kettle"
    center = item.box.center_m
    angles = np.degrees(np.unwrap(np.arctan2(*(turntable().world_from_camera[:, k, 3] - center[k] for k in (1, 0)))))
    assert np.ptp(angles) >= 180
    small = resize_camera(turntable().camera, 120, 160)
    take = turntable()
    shares = [(take.world.render_depth(small, pose)[1] == take.focus).mean() for pose in take.world_from_camera]
    assert min(shares) > 0.01


def test_surface_is_fine_and_named() -> None:
    surface = turntable().world.make_surface(0.25)
    corners = surface.vertices_m[surface.faces]
    longest = np.linalg.norm(corners - np.roll(corners, 1, axis=1), axis=2).max()
    assert longest <= 0.2500001
    assert set(surface.instance.tolist()) == {item.instance_id for item in turntable().world.objects}
    assert surface.color.shape == surface.vertices_m.shape
    assert surface.color.std() > 20


def yields(name: str, scale: float) -> dict[str, int]:
    spec = SPECS[name]
    scene = CaptureScene(make_capture(spec), spec.dataset, scale)
    view = SceneView(scene, Gates())
    counts = {}
    for task_name in ("relative_pose", "view_after_motion"):
        task = tasks[task_name]
        facts, _ = measure_task(task, view, 0, 30)
        sets = [strategies["set_first"].options(fact, task, rng_for(0, fact.key), 4) for fact in facts]
        counts[task_name] = len([found for found in sets if len(found.options) == 4])
    view.close()
    return counts


def test_a_turntable_path_yields_pose_and_view_questions() -> None:
    assert min(yields("wildrgbd", 0.7).values()) >= 20


@pytest.mark.slow
@pytest.mark.parametrize("name", ["ca1m", "scannet", "iphone", "dslr"])
def test_every_path_yields_pose_and_view_questions(name: str) -> None:
    assert min(yields(name, 1.0 if name == "ca1m" else 0.7).values()) >= 20


def test_unknown_cameras_are_refused() -> None:
    with pytest.raises(ValueError, match="known: scannet"):
        make_capture(SampleSpec("matterport", "x", 0, 0))


def test_cameras_stand_upright_within_the_room() -> None:
    camera: Camera = turntable().camera
    assert camera.height > camera.width
    up = turntable().world_from_camera[:, :3, 1]
    assert (up[:, 2] < -0.5).all()
