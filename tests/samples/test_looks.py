"""What pictures of rooms look like: nothing burnt out, nothing shifted against the depth, polish that mirrors."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from tests.samples.made_rooms import TURNTABLE_SPEC, turntable
from vgbench_gen.core.types import BoolArray, Camera, FloatArray
from vgbench_gen.geometry.cameras import resize_camera
from vgbench_gen.geometry.poses import make_pose
from vgbench_gen.samples.atlas import Atlas
from vgbench_gen.samples.base import Capture, SampleSpec
from vgbench_gen.samples.captures import make_capture
from vgbench_gen.samples.layout import expose_frame
from vgbench_gen.samples.mesh import Mesh
from vgbench_gen.samples.render import RoomWorld
from vgbench_gen.samples.sensors import add_grain
from vgbench_gen.samples.textures import Texture

SENSORS = {
    "ca1m": SampleSpec("ca1m", "90000000", 3, 0),
    "scannet": SampleSpec("scannet", "scene9000_00", 3, 0),
    "iphone": SampleSpec("scannetpp", "0123456789/iphone", 3, 0, camera_kind="iphone"),
    "dslr": SampleSpec("scannetpp", "abcdef0123/dslr", 3, 1, camera_kind="dslr"),
    "wildrgbd": TURNTABLE_SPEC,
}
CAMERA = Camera(np.array([[300.0, 0, 160.2], [0, 301.0, 118.7], [0, 0, 1]]), 320, 240)
DARK, BRIGHT = 30, 220
# A square that nothing in the picture is parallel to, one meter and a half before the camera; the wall is at 3 m.
SQUARE = np.array([[-0.3, -0.2, 1.5], [0.25, -0.26, 1.5], [0.31, 0.22, 1.5], [-0.22, 0.27, 1.5]])
WALL = np.array([[-6.0, -6, 3], [6, -6, 3], [6, 6, 3], [-6, 6, 3]])


@cache
def make_square_world(gloss: float = 0.0, light: float = 1.0) -> RoomWorld:
    """The bright square before the dark wall, evenly lit, seen along z."""
    vertices = np.concatenate([WALL, SQUARE])
    textures = [Texture(np.full((64, 64, 3), level, np.uint8), (1.0, 1.0), gloss=gloss) for level in (DARK, BRIGHT)]
    number = np.repeat([0, 1], 4)
    faces = np.array([[0, 1, 2], [0, 2, 3], [4, 5, 6], [4, 6, 7]])
    normals = np.tile([0.0, 0, -1], (8, 1))
    mesh = Mesh(vertices, normals, vertices[:, :2], number + 1, number, np.ones(8), faces, textures)
    even = np.full((8, 3), light, np.float32)
    return RoomWorld(mesh, even, Atlas(textures), [], np.full((8, 16, 3), 120, np.uint8), 1.0, np.ones(3))


def make_take(world: RoomWorld, frames: int = 6) -> Capture:
    return Capture(world, CAMERA, np.tile(np.eye(4), (frames, 1, 1)), np.arange(frames, dtype=np.float64))


def cover_by_square() -> tuple[FloatArray, FloatArray, float]:
    """Per pixel the share that the projected square covers, from eight by eight places in it; centre and area."""
    corners = SQUARE[:, :2] / SQUARE[:, 2:] * [CAMERA.fx, CAMERA.fy] + [CAMERA.cx, CAMERA.cy]
    fine = (np.arange(8) + 0.5) / 8 - 0.5
    x = (np.arange(CAMERA.width)[:, None] + fine).ravel()[None]
    y = (np.arange(CAMERA.height)[:, None] + fine).ravel()[:, None]
    inside: BoolArray = np.ones((y.size, x.size), bool)
    for (ax, ay), (bx, by) in zip(corners, np.roll(corners, -1, axis=0), strict=True):
        inside &= (bx - ax) * (y - ay) - (by - ay) * (x - ax) >= 0
    share: FloatArray = inside.reshape(CAMERA.height, 8, CAMERA.width, 8).mean(axis=(1, 3), dtype=np.float64)
    return share, find_center(share), float(share.sum())


def find_center(weight: FloatArray) -> FloatArray:
    """(x, y) mean of the pixels by weight (H, W)."""
    y, x = np.mgrid[: weight.shape[0], : weight.shape[1]]
    total = float(weight.sum())
    return np.array([float((weight * x).sum()) / total, float((weight * y).sum()) / total])


def read_square(color: np.ndarray) -> FloatArray:
    """(H, W) how far each pixel is from the wall's grey to the square's; the wall's far parts count as wall."""
    grey = color[..., 1].astype(np.float64)
    wall, square = np.median(grey[:20]), np.median(grey[105:130, 150:170])
    share = (grey - wall) / (square - wall)
    share[:60], share[185:], share[:, :85], share[:, 235:] = 0, 0, 0, 0
    return np.asarray(share)


def test_edges_lie_where_their_corners_are_projected() -> None:
    cover, center, area = cover_by_square()
    look = make_square_world().look(CAMERA, np.eye(4))
    assert np.abs(find_center((look.depth_m < 2).astype(np.float64)) - center).max() < 0.05
    shown = read_square(look.color)
    # Levels are not linear in light, so an edge pixel is brighter than its share; the centre does not mind.
    assert np.abs(find_center(shown) - center).max() < 0.05
    assert abs(np.sqrt(shown.sum()) - np.sqrt(area)) < 0.8  # a line of half a pixel all round would be 1.0
    # Edges are smooth: pixels that the square covers in part lie between the two.
    edge = shown[(cover > 0.2) & (cover < 0.8)]
    assert ((edge > 0.1) & (edge < 0.97)).mean() > 0.9


@pytest.mark.parametrize("name", list(SENSORS))
def test_no_sensor_moves_the_picture_against_the_depth(name: str) -> None:
    _, center, _ = cover_by_square()
    take = make_take(make_square_world())
    color = take.world.look(CAMERA, np.eye(4)).color
    frames = [expose_frame(color, CAMERA, take, SENSORS[name], number) for number in range(6)]
    for frame in frames:
        assert np.abs(find_center(read_square(frame)) - center).max() < 0.12
    assert len({frame.tobytes() for frame in frames}) == 6
    assert expose_frame(color, CAMERA, take, SENSORS[name], 3).tobytes() == frames[3].tobytes()


def test_grain_is_as_strong_as_said_and_weaker_in_the_light() -> None:
    rng = np.random.default_rng(0)
    seen = [add_grain(np.full((200, 200, 3), level, np.uint8), 2.0, rng).astype(float) for level in (40, 128, 220)]
    spread = [float(picture[..., 0].std()) for picture in seen]
    assert spread[1] == pytest.approx(2.0, rel=0.25)
    assert spread[0] > 1.2 * spread[1] > 1.2 * 1.2 * spread[2]
    assert all(abs(picture.mean() - level) < 0.1 for picture, level in zip(seen, (40, 128, 220), strict=True))


@pytest.mark.parametrize("name", ["ca1m", "wildrgbd"])
def test_rooms_are_not_burnt_out(name: str) -> None:
    take = turntable() if name == "wildrgbd" else make_capture(SENSORS[name])
    camera = resize_camera(take.camera, take.camera.width // 4, take.camera.height // 4)
    shown = np.stack([take.world.look(camera, pose).color for pose in take.world_from_camera])
    assert (shown.max(axis=-1) >= 248).mean() <= 0.01
    assert 70 < np.median(shown) < 180
    assert np.percentile(shown, 2) < 60  # nor washed out


def test_bright_light_keeps_its_steps() -> None:
    """A sunlit surface, ten times as bright as others, and one half as bright again are told apart."""
    levels = [
        int(np.median(make_square_world(light=light).look(CAMERA, np.eye(4)).color[110:125, 150:170, 1]))
        for light in (0.2, 1.0, 3.0, 6.0, 12.0)
    ]
    assert levels == sorted(levels)
    assert min(np.diff(levels)) >= 2
    assert levels[-1] <= 250


def test_polish_mirrors_and_more_so_at_a_slant() -> None:
    def brightness(gloss: float, turn_deg: float) -> float:
        """Of the wall, from a camera that goes round it at two meters."""
        a = np.radians(turn_deg)
        turn = np.array([[np.cos(a), 0, -np.sin(a)], [0, 1, 0], [np.sin(a), 0, np.cos(a)]])
        pose = make_pose(turn, np.array([2.5, 2.5, 3.0]) - 2 * turn[:, 2])
        return float(make_square_world(gloss).look(CAMERA, pose).color[115:125, 155:165].mean())

    dull = [brightness(0.0, turn) for turn in (0.0, 70.0)]
    wood = [brightness(0.3, turn) for turn in (0.0, 70.0)]
    metal = [brightness(0.8, turn) for turn in (0.0, 70.0)]
    assert metal[0] > wood[0] > dull[0]
    # Grey levels rise more slowly in the light, and the mirrored light still does more at a slant.
    assert metal[1] - dull[1] > 3 + metal[0] - dull[0]
    assert wood[1] - dull[1] > 3 + wood[0] - dull[0]
