"""PLY reading against Open3D and trimesh, and hostile headers."""

from __future__ import annotations

import importlib
import os
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.scenes.scannet_writer import write_mesh
from vgbench_gen.core.errors import SceneError
from vgbench_gen.scenes._mesh import read_ply

VERTICES = np.random.default_rng(1).normal(size=(40, 3)).astype(np.float32).astype(np.float64)
FACES = np.random.default_rng(2).permuted(np.tile(np.arange(40), (25, 1)), axis=1)[:, :3]


@pytest.mark.parametrize("form", ["<", ">", ""])
def test_every_form_against_trimesh(tmp_path: Path, form: str) -> None:
    trimesh: Any = importlib.import_module("trimesh")
    path = tmp_path / "mesh.ply"
    write_mesh(path, VERTICES, FACES, form)
    vertices, faces = read_ply(path)
    oracle = trimesh.load(path, process=False)
    assert (str(vertices.dtype), str(faces.dtype)) == ("float64", "int64")
    np.testing.assert_array_equal(vertices, VERTICES)
    np.testing.assert_array_equal(vertices, oracle.vertices)
    np.testing.assert_array_equal(faces, oracle.faces)
    assert read_ply(path, want_faces=False)[1].shape == (0, 3)


def test_real_meshes_against_open3d(captures: Path) -> None:
    open3d: Any = importlib.import_module("open3d")
    paths = sorted(captures.rglob("*.ply"))
    assert len(paths) >= 4
    for path in paths:
        vertices, faces = read_ply(path)
        oracle = open3d.io.read_triangle_mesh(str(path))
        np.testing.assert_array_equal(vertices, np.asarray(oracle.vertices))
        np.testing.assert_array_equal(faces, np.asarray(oracle.triangles))


def test_double_vertices_other_elements_and_face_flags(tmp_path: Path) -> None:
    head = b"""ply\nformat binary_little_endian 1.0\nelement camera 2\nproperty short a\nproperty double b
element vertex 4\nproperty uchar red\nproperty double z\nproperty double x\nproperty double y
element face 2\nproperty list uchar uint vertex_index\nproperty int flags\nend_header\n"""
    points = np.zeros(4, [("r", "u1"), ("z", "<f8"), ("x", "<f8"), ("y", "<f8")])
    points["x"], points["y"], points["z"] = np.arange(12).reshape(3, 4) / 7
    triangles = np.zeros(2, [("n", "u1"), ("i", "<u4", 3), ("flags", "<i4")])
    triangles["n"], triangles["i"], triangles["flags"] = 3, [[0, 1, 2], [1, 2, 3]], -1
    path = tmp_path / "mesh.ply"
    path.write_bytes(head + bytes(20) + points.tobytes() + triangles.tobytes())
    vertices, faces = read_ply(path)
    np.testing.assert_array_equal(vertices, np.arange(12).reshape(3, 4).T / 7)
    assert faces.tolist() == [[0, 1, 2], [1, 2, 3]]


def _head(vertices: str = "3", faces: str = "1", form: str = "binary_little_endian") -> bytes:
    return (
        f"ply\nformat {form} 1.0\nelement vertex {vertices}\nproperty float x\nproperty float y\nproperty float z\n"
        f"element face {faces}\nproperty list uchar int vertex_indices\nend_header\n"
    ).encode()


TRIANGLE = np.eye(3, dtype="<f4").tobytes()


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"solid stl",
        b"ply\nformat ascii 1.0\n" + b"comment x\n" * 20_000,
        b"ply\n" + b"x" * 200_000,
        _head("99999999999999999999"),
        _head("-3"),
        _head("24000000"),
        _head("many"),
        _head(form="binary_middle_endian"),
        _head() + TRIANGLE,
        _head() + TRIANGLE[:-1],
        _head() + TRIANGLE + b"\4" + bytes(16),
        _head() + TRIANGLE + b"\3" + np.array([0, 1, 3], "<i4").tobytes(),
        _head() + TRIANGLE + b"\3" + np.array([0, 1, -1], "<i4").tobytes(),
        _head() + np.full(9, np.nan, "<f4").tobytes() + b"\3" + bytes(12),
        _head(form="ascii") + b"0 0 0\n0 1 0\n1 0\n3 0 1 2\n",
        _head(form="ascii") + b"0 0 0\n0 1 0\n1 0 zero\n3 0 1 2\n",
        _head("24000000", form="ascii") + b"0 0 0\n",
        _head().replace(b"property float y\n", b""),
        _head(faces="1").replace(b"list uchar int", b"list uchar float") + TRIANGLE + b"\3" + bytes(12),
        b"ply\nformat ascii 1.0\nelement strip 1\nproperty list uchar int at\nelement vertex 1\nproperty float x\n"
        b"property float y\nproperty float z\nend_header\n1 2\n0 0 0\n",
    ],
)
def test_hostile_files(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "mesh.ply"
    path.write_bytes(data)
    tracemalloc.start()
    with pytest.raises(SceneError, match=r"mesh\.ply"):
        read_ply(path)
    assert tracemalloc.get_traced_memory()[1] < 5_000_000
    tracemalloc.stop()


def test_size_limit_and_no_file(tmp_path: Path) -> None:
    path = tmp_path / "mesh.ply"
    write_mesh(path, VERTICES, FACES)
    with pytest.raises(SceneError, match="at most 100"):
        read_ply(path, max_bytes=100)
    os.mkfifo(tmp_path / "pipe.ply")
    for absent in (tmp_path / "absent.ply", tmp_path, tmp_path / "pipe.ply"):
        with pytest.raises(SceneError):
            read_ply(absent)


def test_a_line_of_megabytes_is_refused_before_it_is_held(tmp_path: Path) -> None:
    path = tmp_path / "mesh.ply"
    with path.open("wb") as file:
        file.write(_head(form="ascii"))
        file.write(b"0 0 0 " * 8_000_000)
    tracemalloc.start()
    try:
        with pytest.raises(SceneError, match="a line of more than 10000 bytes"):
            read_ply(path)
        assert tracemalloc.get_traced_memory()[1] < 10 << 20
    finally:
        tracemalloc.stop()


def test_many_triangles_in_one_place_are_refused_whatever_their_vertices(tmp_path: Path) -> None:
    """Each ray meets them one by one: a million takes minutes a frame."""
    rng = np.random.default_rng(0)
    corners = np.tile([[0.0, 0, 2], [1, 0, 2], [0, 1, 2]], (2000, 1)) + rng.uniform(0, 1e-5, (6000, 3)) + 0.0001
    write_mesh(tmp_path / "same.ply", corners[:3], np.tile([[0, 1, 2]], (2000, 1)), "<")
    write_mesh(tmp_path / "near.ply", corners, np.arange(6000).reshape(-1, 3), "<")
    for name in ("same.ply", "near.ply"):
        with pytest.raises(SceneError, match="triangles within a millimeter; expected at most 1000"):
            read_ply(tmp_path / name)
    apart = corners + np.repeat(rng.uniform(-3, 3, (2000, 3)), 3, axis=0)
    write_mesh(tmp_path / "apart.ply", apart, np.arange(6000).reshape(-1, 3), "<")
    assert len(read_ply(tmp_path / "apart.ply")[1]) == 2000
