"""Boards and boxes have their edges cut off, and stay closed, of their size and right side out."""

from __future__ import annotations

import numpy as np
import pytest
import trimesh
from scipy.spatial import ConvexHull

from vgbench_gen.core.types import FloatArray
from vgbench_gen.samples.parts import Model
from vgbench_gen.samples.textures import Texture

PLAIN = Texture(np.full((4, 4, 3), 90, np.uint8), (0.5, 0.5))


def join(model: Model) -> trimesh.Trimesh:
    """All parts as one mesh, corners that coincide joined."""
    vertices, faces, count = [], [], 0
    for part in model.parts:
        vertices.append(part.vertices_m)
        faces.append(part.faces + count)
        count += len(part.vertices_m)
    mesh = trimesh.Trimesh(np.concatenate(vertices), np.concatenate(faces), process=False)
    mesh.merge_vertices(digits_vertex=9)
    return mesh


def cut_volume_m3(size: FloatArray, cut_m: float) -> float:
    """Of what cutting its edges leaves of a cuboid: the convex hull of the sides that are left."""
    places = []
    for axis in range(3):
        reach = size / 2 - cut_m * (np.arange(3) != axis)
        places += [reach * signs for signs in np.array(np.meshgrid(*[[-1, 1]] * 3)).reshape(3, -1).T]
    return float(ConvexHull(np.array(places)).volume)


@pytest.mark.parametrize(
    ("size", "cut_m"), [((1.2, 0.7, 0.03), 0.003), ((0.02, 0.3, 0.4), 0.002), ((0.5, 0.5, 0.5), 0.003)]
)
def test_bevelled_boxes_are_closed_and_of_their_size(size: tuple[float, float, float], cut_m: float) -> None:
    mesh = join(Model("box").add_box(size, (0.1, 0.2, 0.3), PLAIN))
    assert mesh.is_watertight
    assert mesh.is_winding_consistent
    np.testing.assert_allclose(np.ptp(mesh.vertices, axis=0), size, atol=1e-9)
    np.testing.assert_allclose(mesh.bounds.mean(axis=0), [0.1, 0.2, 0.3 + size[2] / 2], atol=1e-9)
    assert mesh.volume == pytest.approx(cut_volume_m3(np.array(size), cut_m), rel=1e-6)
    assert mesh.volume < np.prod(size)


def test_bevels_look_outwards_between_their_sides() -> None:
    turned = Model("box").add_box((0.6, 0.4, 0.2), (0, 0, 0), PLAIN, turn_deg=(20, 10, 40))
    sides, bevel = turned.parts
    middle = sides.vertices_m.mean(axis=0)
    flat = np.unique(sides.normals.round(9), axis=0)
    assert (sides.normals.shape, flat.shape) == ((24, 3), (6, 3))
    for point, normal in zip(bevel.vertices_m, bevel.normals, strict=True):
        assert normal @ (point - middle) > 0
        cosines = np.sort([normal @ side for side in flat])
        np.testing.assert_allclose(cosines[-2:], np.sqrt(0.5), atol=1e-9)
    corners = bevel.vertices_m[bevel.faces]
    across = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    assert ((across * (corners.mean(axis=1) - middle)).sum(axis=1) > 0).all()


@pytest.mark.parametrize("size", [(0.1, 0.1, 0.1), (0.21, 0.29, 0.003)])
def test_small_and_thin_boxes_stay_sharp(size: tuple[float, float, float]) -> None:
    for model in (
        Model("thing").add_box(size, (0, 0, 0), PLAIN),
        Model("thing").add_box((1, 1, 1), (0, 0, 0), PLAIN, bevel=False),
    ):
        assert sum(len(part.faces) for part in model.parts) == 12
        assert len(join(model).vertices) == 8


def test_sides_of_other_textures_are_parts_of_their_own() -> None:
    other = Texture(np.full((4, 4, 3), 200, np.uint8), (0.5, 0.5))
    model = Model("box").add_box((0.6, 0.4, 0.2), (0, 0, 0), PLAIN, sides={"+x": other, "-z": other}, coarse=("-y",))
    found = {
        (part.texture is other, part.coarse): {tuple(normal) for normal in part.normals.tolist()}
        for part in model.parts[:-1]
    }
    assert found == {
        (False, False): {(-1, 0, 0), (0, 1, 0), (0, 0, 1)},
        (False, True): {(0, -1, 0)},
        (True, False): {(1, 0, 0), (0, 0, -1)},
    }
    assert join(model).is_watertight
