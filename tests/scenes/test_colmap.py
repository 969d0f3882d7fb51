"""COLMAP text models against pycolmap, and against files that are not what they should be."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from tests.scenes import scannetpp_writer as writer
from vgbench_gen.core.errors import SceneError
from vgbench_gen.scenes._lens import distort, make_lens
from vgbench_gen.scenes._scannetpp_poses import read_model

pycolmap = pytest.importorskip("pycolmap", reason="pycolmap has wheels for x86_64 alone")
POSES = {
    f"DSC{i:05d}.JPG": writer.look_at((1.0 + i, 0.5, 1.5), (3, 3, 0.3 * i), roll_deg=17.0 * i) for i in range(7, 12)
}
KEYS = [name[:8] for name in POSES]
OPENCV = writer.camera_line("OPENCV", writer.SIZE, writer.PHONE_K, writer.PHONE_DISTORTION)

MODELS: dict[str, list[float]] = {
    "SIMPLE_PINHOLE": [300, 161, 119],
    "PINHOLE": [300, 310, 161, 119],
    "SIMPLE_RADIAL": [300, 161, 119, 0.05],
    "RADIAL": [300, 161, 119, 0.05, -0.02],
    "OPENCV": [300, 310, 161, 119, 0.05, -0.02, 0.003, -0.004],
    "FULL_OPENCV": [300, 310, 161, 119, 0.05, -0.02, 0.003, -0.004, 0.01, 0.02, -0.03, 0.005],
    "OPENCV_FISHEYE": [300, 310, 161, 119, 0.05, -0.02, 0.003, -0.004],
    "SIMPLE_RADIAL_FISHEYE": [300, 161, 119, 0.05],
    "RADIAL_FISHEYE": [300, 161, 119, 0.05, -0.02],
}


@pytest.mark.parametrize("model", MODELS)
def test_lens_is_pycolmaps_camera_half_a_pixel_away(model: str) -> None:
    lens = make_lens(model, 320, 240, MODELS[model], "here")
    theirs = pycolmap.Camera(model=model, width=320, height=240, params=MODELS[model])
    rays = np.random.default_rng(0).uniform(-0.4, 0.4, (50, 2))
    expected = theirs.img_from_cam(np.concatenate([rays, np.ones((50, 1))], 1))
    np.testing.assert_allclose(distort(lens, rays), expected - 0.5, atol=1e-9)


@pytest.mark.parametrize("points", ["", "10.5 20.5 -1 30.25 40.5 7 1 2 3 4 5 6"])
def test_poses_equal_pycolmaps(tmp_path: Path, points: str) -> None:
    writer.write_colmap(tmp_path, OPENCV, POSES)
    theirs = pycolmap.Reconstruction(str(tmp_path))
    writer.write_colmap(tmp_path, OPENCV, POSES, points)
    model = read_model(tmp_path, "here")
    assert model.problems == []
    assert list(model.poses) == KEYS
    for image in theirs.images.values():
        expected = np.eye(4)
        expected[:3] = image.cam_from_world().inverse().matrix()
        np.testing.assert_allclose(model.poses[image.name[:8]].world_from_camera, expected, atol=1e-12)
    for key, pose in zip(KEYS, POSES.values(), strict=True):
        np.testing.assert_allclose(model.poses[key].world_from_camera, pose, atol=1e-12)
    np.testing.assert_allclose(model.lenses[1].K, writer.PHONE_K, atol=1e-12)


def test_names_lose_their_folder_and_long_lines_are_passed_over(tmp_path: Path) -> None:
    poses = {f"video/{name}": pose for name, pose in POSES.items()}
    # Longer than the reader's piece, and of a length at which a piece would begin like a header line.
    writer.write_colmap(tmp_path, OPENCV, poses, "1.5 2.5 -1 " * 40_000)
    model = read_model(tmp_path, "here")
    assert (list(model.poses), model.problems) == (KEYS, [])


def test_lost_blank_lines_and_windows_line_ends_are_understood(tmp_path: Path) -> None:
    writer.write_colmap(tmp_path, OPENCV, POSES)
    lines = (tmp_path / "images.txt").read_text().splitlines()
    (tmp_path / "images.txt").write_text("\r\n".join(line for line in lines if line))
    assert list(read_model(tmp_path, "here").poses) == KEYS


def test_a_bad_image_costs_that_image(tmp_path: Path) -> None:
    writer.write_colmap(tmp_path, OPENCV, POSES, promised=9)
    lines = (tmp_path / "images.txt").read_text().splitlines()
    a, b, c, d = range(4, 12, 2)  # below four lines of comment
    lines[a] = lines[a].replace(" 1 DSC", " 4 DSC")
    fields = lines[b].split()
    lines[b] = " ".join([fields[0], "0.9", "0.9", "0.9", "0.9", *fields[5:]])
    lines[c] = lines[c].replace(lines[c].split()[5], "nan")
    lines += [lines[d], ""]
    (tmp_path / "images.txt").write_text("\n".join(lines))
    model = read_model(tmp_path, "here")
    assert list(model.poses) == KEYS[4:]
    assert [issue.reason for issue in model.problems] == [*["pose_invalid"] * 4, "colmap_count"]
    reasons = {issue.frame_id: issue.detail for issue in model.problems}
    assert "camera 4" in reasons[KEYS[0]]
    assert "length" in reasons[KEYS[1]]
    assert KEYS[2] in reasons
    assert "more than once" in reasons[KEYS[3]]
    assert "header says 9" in reasons[""]


@pytest.mark.parametrize(
    "line",
    [
        "1 THIN_PRISM_MAGIC 320 240 1 2 3",
        "1 OPENCV 320 240 300 300 160 120",
        "1 PINHOLE 320 240 300 nan 160 120",
        "1 PINHOLE 320 240 -300 300 160 120",
        "1 PINHOLE 999999999 240 300 300 160 120",
        "1 PINHOLE 320",
        "one PINHOLE 320 240 300 300 160 120",
        "# nothing",
    ],
)
def test_unusable_cameras_cost_the_model(tmp_path: Path, line: str) -> None:
    writer.write_colmap(tmp_path, line, POSES)
    with pytest.raises(SceneError, match=r"cameras\.txt"):
        read_model(tmp_path, "here")


def test_missing_files_and_pipes_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SceneError, match=r"cameras\.txt"):
        read_model(tmp_path, "here")
    writer.write_colmap(tmp_path, OPENCV, POSES)
    (tmp_path / "images.txt").unlink()
    os.mkfifo(tmp_path / "images.txt")
    with pytest.raises(SceneError, match="regular file"):
        read_model(tmp_path, "here")
