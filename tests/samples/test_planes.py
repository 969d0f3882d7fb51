"""What pixels show is the same whether every one has a ray of its own or most follow from the planes around them."""

from __future__ import annotations

import numpy as np
import pytest
import trimesh
from scipy.spatial.transform import Rotation

from tests.samples.made_rooms import turntable
from vgbench_gen.core.types import Camera, FloatArray
from vgbench_gen.geometry.cameras import resize_camera
from vgbench_gen.geometry.poses import make_pose
from vgbench_gen.samples.light import Tracer
from vgbench_gen.samples.planes import SurfaceViewer, make_rays, spread_cells
from vgbench_gen.samples.render import RoomWorld

CAMERA = Camera(np.array([[410.0, 0, 250.3], [0, 411.0, 176.1], [0, 0, 1]]), 502, 355)  # no multiples of the stride


def make_cluttered_wall(seed: int) -> trimesh.Trimesh:
    """A wall of small triangles with things before it that are thinner and smaller than the gaps between rays."""
    rng = np.random.default_rng(seed)
    wall = trimesh.creation.box(extents=(6, 4, 0.1)).subdivide().subdivide().subdivide()
    wall.apply_translation((0, 0, 3.05))
    things = [wall]
    for _ in range(12):
        a, b = rng.uniform((-1.5, -1, 1.2), (1.5, 1, 2.8), (2, 3))
        things.append(trimesh.creation.cylinder(radius=rng.uniform(5e-4, 4e-3), segment=np.stack([a, b]), sections=5))
    for _ in range(60):
        dot = trimesh.creation.box(extents=rng.uniform(2e-3, 1.5e-2, 3))
        dot.apply_translation(rng.uniform((-1.5, -1, 1.2), (1.5, 1, 3.0)))
        things.append(dot)
    # Boxes that stick out of the wall by a little: no line of theirs is where they meet it.
    for _ in range(20):
        box = trimesh.creation.box(
            extents=(0.1, 0.1, 0.1), transform=make_pose(Rotation.random(rng=rng).as_matrix(), np.zeros(3))
        )
        box.apply_translation(
            (*rng.uniform((-1.2, -0.8), (1.2, 0.8)), 3.0 - box.vertices[:, 2].min() - rng.uniform(1e-3, 2e-2))
        )
        things.append(box)
    # Something that reaches from before the camera to behind it.
    things.append(trimesh.creation.cylinder(radius=0.01, segment=[(0.3, 0.2, -1.0), (0.2, 0.1, 2.5)], sections=6))
    joined: trimesh.Trimesh = trimesh.util.concatenate(things)
    return joined


def compare(
    viewer: SurfaceViewer, tracer: Tracer, camera: Camera, pose: FloatArray, part: np.ndarray, uv: FloatArray
) -> None:
    """Require the same part and depth of every pixel, at any size, and the same places on the textures."""
    cells = viewer.divide(camera, pose)
    other = resize_camera(camera, camera.width // 2, camera.height // 2 + 5)
    for each, seen in ((camera, viewer.see(camera, pose)), (other, viewer.see(other, pose, cells))):
        u, v = np.arange(each.width)[None], np.arange(each.height)[:, None]
        t, face, weights = tracer.cast(make_rays(each, pose, u, v))
        hit = face >= 0
        assert np.array_equal(seen.face >= 0, hit)
        assert np.array_equal(part[seen.face[hit]], part[face[hit]])
        assert np.allclose(seen.depth_m[hit], t[hit], rtol=1e-5)
        if each is camera:
            whole = spread_cells(cells.whole)[: each.height, : each.width]
            assert 0.3 < whole.mean() < 0.97
            x, y = ((u - each.cx) / each.fx).astype(np.float32), ((v - each.cy) / each.fy).astype(np.float32)
            shares = np.stack([1 - weights.sum(axis=-1), *np.moveaxis(weights, -1, 0)], axis=-1)
            place = np.einsum("ni,nik->kn", shares[whole], uv[face[whole]])
            forms = np.moveaxis(cells.forms[cells.form], -1, 0).reshape(3, 3, *cells.whole.shape)
            for expected, form in zip(place, forms[1:], strict=True):
                a, b, c = (spread_cells(factor)[: each.height, : each.width] for factor in form)
                found = (a * x + b * y + c)[whole] * t[whole]
                assert np.abs(found - expected).max() < 1e-3


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_small_and_thin_things_are_not_missed(seed: int) -> None:
    mesh = make_cluttered_wall(seed)
    # A sheet whose two triangles lie in one plane, and on which the texture is another in each.
    sheet = np.array([[0.2, -0.9, 2.9], [1.1, -0.9, 2.9], [1.1, -0.2, 2.9], [0.2, -0.2, 2.9]])
    vertices = np.concatenate([np.asarray(mesh.vertices), sheet])
    corners = len(mesh.vertices) + np.array([[0, 1, 2], [0, 2, 3]])
    faces = np.concatenate([np.asarray(mesh.faces, np.int64), corners])
    uv = vertices @ np.array([[1.0, 0.2], [0.1, 0.9], [0.5, 0.7]])
    uv[-1] += 0.8
    tracer = Tracer(vertices, faces)
    viewer = SurfaceViewer(tracer, vertices, faces, uv)
    joined = trimesh.Trimesh(vertices, faces, process=False)
    sides = np.rint(np.asarray(joined.face_normals) * 50).astype(np.int64)
    part = trimesh.graph.connected_component_labels(joined.face_adjacency, node_count=len(faces)) * 1_000_000
    part += sides @ [10_000, 100, 1]
    for yaw in (0.0, 25.0):
        pose = make_pose(Rotation.from_euler("YX", (yaw, 7.0), degrees=True).as_matrix(), np.array([0.05, 0.02, 0.0]))
        compare(viewer, tracer, CAMERA, pose, part, uv[faces])


def test_a_room_looks_as_with_a_ray_for_every_pixel(monkeypatch: pytest.MonkeyPatch) -> None:
    capture = turntable()
    world = capture.world
    assert isinstance(world, RoomWorld)
    surface = world.make_surface(1e3)  # its triangles as they are
    tracer = Tracer(surface.vertices_m, surface.faces)
    uv = surface.vertices_m[:, :2] + surface.vertices_m[:, 2:]
    viewer = SurfaceViewer(tracer, surface.vertices_m, surface.faces, uv)
    for pose in capture.world_from_camera[::10]:
        compare(viewer, tracer, capture.camera, pose, surface.instance, uv[surface.faces])
    pose = capture.world_from_camera[4]
    shown = world.look(capture.camera, pose)
    monkeypatch.setattr("vgbench_gen.samples.planes._SMALL_PX", 10**9)
    cast = world.look(capture.camera, pose)
    assert np.array_equal(shown.instance, cast.instance)
    assert np.allclose(shown.depth_m, cast.depth_m, rtol=1e-5)
    off = np.abs(shown.color.astype(int) - cast.color).max(axis=-1)
    assert off.mean() < 0.5
    assert (off > 6).mean() < 0.015  # rims of sunlight, which cells mix from their corners
