"""A room whose objects bear labels and surface points, filmed by a camera that looks all around from three places."""

from __future__ import annotations

from functools import cache

import numpy as np

from tests.scene_factory import ROOM_M, RenderedFrame, RoomScene, Solid, looking_at, make_box, make_texture, move_box
from tests.small_room import StoredFrame
from vgbench_gen.core.gates import Gates
from vgbench_gen.core.types import Camera, ColorArray, DepthArray, FloatArray
from vgbench_gen.geometry.boxes import CORNER_SIGNS
from vgbench_gen.geometry.cameras import resize_camera
from vgbench_gen.geometry.poses import transform
from vgbench_gen.scenes.base import SceneObject
from vgbench_gen.scenes.view import SceneView

WIDTH, HEIGHT = 320, 240
TURNS = 9  # of each place
PLACES = ((1.6, 1.5), (4.5, 1.6), (3.1, 3.4))
GRID_M = 0.05  # between surface points
# label, centre on the floor, sides, turn
FURNITURE = (
    ("sofa", (0.6, 2.5), (0.8, 1.7, 0.75), 0.0),
    ("wardrobe", (5.6, 4.4), (0.6, 0.9, 1.9), 0.0),
    ("desk", (3.0, 0.4), (1.4, 0.6, 0.74), 0.0),
    ("fridge", (0.45, 4.5), (0.6, 0.6, 1.7), 0.0),
    ("washing machine", (5.6, 0.5), (0.6, 0.6, 0.85), 0.0),
    ("suitcase", (2.3, 2.3), (0.5, 0.3, 0.7), 0.5),
    ("bench", (3.2, 4.6), (1.2, 0.45, 0.5), 0.0),
    ("basket", (4.4, 3.0), (0.5, 0.4, 0.4), -0.4),
    ("ladder", (0.35, 0.6), (0.3, 0.5, 1.4), 0.0),
    ("easel", (3.3, 2.6), (0.5, 0.35, 1.5), 0.2),
    ("drum", (1.0, 1.5), (0.4, 0.4, 0.45), 0.0),
    ("trolley", (2.0, 3.4), (0.55, 0.4, 0.9), 0.3),
    ("globe", (4.0, 1.1), (0.35, 0.35, 1.1), 0.1),
    ("cooler", (3.9, 3.7), (0.45, 0.4, 0.4), 0.7),
    ("barrel", (1.7, 2.5), (0.4, 0.4, 0.63), 0.0),
    ("pedestal", (0.9, 0.9), (0.3, 0.3, 0.8), 0.4),
    ("hamper", (5.3, 2.0), (0.4, 0.4, 0.63), 0.2),
    ("anvil", (4.6, 0.7), (0.5, 0.3, 0.5), 0.0),
    ("tripod", (3.7, 2.0), (0.35, 0.35, 1.0), 0.6),
    ("locker", (2.4, 4.5), (0.45, 0.4, 1.3), 0.0),
    ("stool", (1.5, 4.2), (0.4, 0.4, 0.5), 0.3),
    ("stool", (4.9, 2.4), (0.4, 0.4, 0.5), -0.2),
    ("stool", (2.9, 1.6), (0.4, 0.4, 0.5), 0.8),
    ("stool", (4.3, 4.5), (0.4, 0.4, 0.5), 0.1),
)


def labelled_room(world_from_room: FloatArray | None = None) -> RoomScene:
    """The room in a world of its own; pixels are rendered once."""
    world = np.eye(4) if world_from_room is None else world_from_room
    scene = RoomScene(_list_frames(), [], "laser", "scannet")
    for frame, (color, depth_m) in zip(scene.frames, _render(), strict=True):
        frame.__class__ = StoredFrame
        assert isinstance(frame, StoredFrame)
        frame.stored_color, frame.stored_depth_m = color, depth_m
        frame.world_from_camera = world @ frame.world_from_camera
    for index, solid in enumerate(_list_solids()):
        parts = {solid.label: _list_surface_points(solid)}
        if solid.inward:
            points = parts.pop(solid.label)
            level = np.round(points[:, 2] / ROOM_M[2], 6)
            parts = {"wall": points[level % 1 > 0], "floor": points[level == 0], "ceiling": points[level == 1]}
        for label, points in parts.items():
            name = f"{index}{label}" if solid.inward and label != "wall" else str(index)
            thing = SceneObject(name, label, move_box(solid.box, world), transform(world, points))
            scene.objects = [*scene.objects, thing]
    scene.up_world = world[:3, 2]
    return scene


@cache
def labelled_view() -> SceneView:
    """The room as tasks see it; shared, never to be changed."""
    return SceneView(labelled_room(), Gates())


@cache
def _list_solids() -> list[Solid]:
    rng = np.random.default_rng(5)
    solids = [Solid(make_box(ROOM_M / 2, ROOM_M, 0.0), "room", make_texture(rng, (150, 150, 140)), True)]
    for label, (x, y), sides, yaw in FURNITURE:
        color = tuple(int(c) for c in rng.integers(60, 220, 3))
        box = make_box(np.array([x, y, sides[2] / 2]), np.array(sides), yaw)
        solids.append(Solid(box, label, make_texture(rng, color)))
    return solids


def _list_frames() -> list[RenderedFrame]:
    K = np.array([[0.8 * WIDTH, 0, WIDTH / 2 + 2], [0, 0.8 * WIDTH, HEIGHT / 2 - 2], [0, 0, 1.0]])
    camera = Camera(K, WIDTH, HEIGHT)
    frames: list[RenderedFrame] = []
    for x, y in PLACES:
        for turn in range(TURNS):
            eye, angle = np.array([x, y, 1.5]), 2 * np.pi * turn / TURNS + x + 0.0137
            pose = looking_at(eye, eye + [np.cos(angle), np.sin(angle), -0.27])
            frames.append(
                RenderedFrame(str(10 * len(frames)), camera, resize_camera(camera, 160, 120), pose, _list_solids(), 0.0)
            )
    return frames


@cache
def _render() -> list[tuple[ColorArray, DepthArray]]:
    return [(frame.color(), frame.depth_m()) for frame in _list_frames()]


def _list_surface_points(solid: Solid) -> FloatArray:
    """(N, 3) a grid on the faces of a box, in the room."""
    faces = []
    for axis in range(3):
        a, b = (k for k in range(3) if k != axis)
        u, v = (np.arange(GRID_M / 2, solid.box.size_m[k], GRID_M) - solid.box.size_m[k] / 2 for k in (a, b))
        grid = np.zeros((len(u), len(v), 3))
        grid[..., a], grid[..., b] = u[:, None], v[None]
        for side in CORNER_SIGNS[[0, 6], axis]:
            face = grid.reshape(-1, 3).copy()
            face[:, axis] = side * solid.box.size_m[axis] / 2
            faces.append(face)
    return solid.box.center_m + np.concatenate(faces) @ solid.box.rotation.T
