from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.scenes import wildrgbd_writer as w
from vgbench_gen.core.errors import FrameError, SceneError
from vgbench_gen.scenes.base import SceneRef
from vgbench_gen.scenes.wildrgbd import WildRGBD, WildRGBDScene


def opened(scene: Path) -> WildRGBDScene:
    return WildRGBD().open(SceneRef("wildrgbd", "", scene))


def reasons(scene: WildRGBDScene) -> dict[str, int]:
    return dict(Counter(issue.reason for issue in scene.issues))


def test_pixels_camera_and_poses(tmp_path: Path) -> None:
    scene = opened(w.write_scene(tmp_path))
    assert (scene.id, scene.licence, scene.depth_kind) == ("box/scenes_000", "mit", "sensor")
    assert (scene.up_world, scene.objects, scene.issues, scene.total_frames) == (None, (), [], 4)
    assert scene.split == "unknown"
    assert [frame.id for frame in scene.frames] == ["0", "1", "2", "3"]
    for number, frame in enumerate(scene.frames):
        np.testing.assert_array_equal(frame.camera.K, w.K)
        assert frame.camera.size == frame.depth_camera.size == w.SIZE
        np.testing.assert_allclose(frame.world_from_camera, w.pose(number), atol=1e-8)
        np.testing.assert_array_equal(frame.color(), w.rgb(number))
        depth = frame.depth_m()
        assert depth.dtype == np.float32
        assert depth[4, 6] == pytest.approx(1.234 + number / 1000, abs=1e-6)
        assert (depth[0, 0], depth[1, 1], depth[1, 2]) == (0, 0, 5)  # unknown, beyond 5 m, at 5 m
        mask = frame.object_mask()
        assert mask is not None
        assert mask.sum() == 10 * 18 + 1
        assert (mask[0, 0], mask[0, 1]) == (False, True)
        assert frame.encoded_color() == w.png(w.rgb(number))


@pytest.mark.parametrize("stored", [w.K.T.ravel().tolist(), w.K.ravel().tolist(), w.K.T.tolist()])
def test_k_lies_either_way(tmp_path: Path, stored: list[Any]) -> None:
    scene = opened(w.write_scene(tmp_path, metadata={"K": stored}))
    np.testing.assert_array_equal(scene.frames[0].camera.K, w.K)


@pytest.mark.parametrize(
    ("metadata", "match"),
    [
        ({"K": [1.0] * 9}, r"\(0, 0, 1\)"),
        ({"K": [1.0] * 8}, "8 numbers"),
        ({"K": {"fx": 1}}, "dict"),
        ({"K": ["a"] * 9}, "string to float: .a.; expected 3x3 numbers"),
        ({"K": [float("nan")] * 6 + [0, 0, 1]}, "finite"),
        ({"w": "wide"}, "w, h"),
        ({"w": 40.5}, "w, h"),
        ({"h": -3}, "w, h"),
        ({"w": 1e300}, "w, h"),
        ({"w": 160, "h": 30}, "none usable"),
        ({"w": 80, "h": 60}, "none usable"),  # K stays in the corner of such a picture
    ],
)
def test_bad_metadata_costs_the_scene(tmp_path: Path, metadata: dict[str, Any], match: str) -> None:
    with pytest.raises(SceneError, match=match):
        opened(w.write_scene(tmp_path, metadata=metadata))


@pytest.mark.parametrize("text", ["", "[1, 2]", "{", "[" * 50_000, '"x"'])
def test_metadata_that_is_no_object(tmp_path: Path, text: str) -> None:
    scene = w.write_scene(tmp_path)
    (scene / "metadata").write_text(text)
    with pytest.raises(SceneError, match="metadata"):
        opened(scene)


def test_k_follows_the_size_of_the_pictures(tmp_path: Path) -> None:
    double = np.diag([2.0, 2.0, 1.0]) @ w.K
    double[:2, 2] += 0.5  # edge-aligned: (c + 0.5) * 2 - 0.5
    scene = opened(w.write_scene(tmp_path / "a", metadata={"w": 80, "h": 60, "K": double.T.ravel().tolist()}))
    np.testing.assert_allclose(scene.frames[0].camera.K, w.K)
    assert reasons(scene) == {"k_rescaled": 4}


def test_swapped_size_with_k_of_the_picture_and_with_k_of_the_entry(tmp_path: Path) -> None:
    scene = opened(w.write_scene(tmp_path / "a", metadata={"w": 30, "h": 40}))
    np.testing.assert_array_equal(scene.frames[0].camera.K, w.K)
    assert reasons(scene) == {"size_swapped": 4}
    tall = np.array([[90.0, 0, 9.75], [0, 95.0, 40.25], [0, 0, 1]])
    stored = {"w": 20, "h": 80, "K": tall.T.ravel().tolist()}
    scene = opened(w.write_scene(tmp_path / "b", metadata=stored, size=(80, 20)))
    expected = np.array([[95.0, 0, 40.25], [0, 90.0, 20 - 1 - 9.75], [0, 0, 1]])
    np.testing.assert_allclose(scene.frames[0].camera.K, expected)
    assert reasons(scene) == {"k_turned": 4}


def test_frames_are_paired_by_number_over_rgb_depth_and_poses(tmp_path: Path) -> None:
    scene_dir = w.write_scene(tmp_path, count=7)
    (scene_dir / "rgb" / "00001.png").unlink()
    (scene_dir / "depth" / "00002.png").unlink()
    (scene_dir / "masks" / "00003.png").unlink()
    (scene_dir / "masks" / "00005.png").rename(scene_dir / "masks" / "5.png")
    (scene_dir / "rgb" / "notes.png").write_bytes(b"")
    (scene_dir / "rgb" / "00004.txt").write_text("")
    lines = [f"{float(n)} " + w.pose_line("", w.pose(n)).strip() for n in (5, 4, 3, 2, 1, 0)]  # float ids, any order
    (scene_dir / "cam_poses.txt").write_text("\n\n".join(lines))
    scene = opened(scene_dir)
    assert [frame.id for frame in scene.frames] == ["0", "3", "4", "5"]
    assert scene.total_frames == 7
    assert reasons(scene) == {"incomplete": 2, "pose_missing": 1, "part_missing": 1, "empty_file": 2}
    assert [frame.object_mask() is None for frame in scene.frames] == [False, True, False, False]
    for frame in scene.frames:
        np.testing.assert_allclose(frame.world_from_camera, w.pose(int(frame.id)), atol=1e-8)
        assert frame.color()[5, 7, 2] == int(frame.id)
        assert frame.depth_m()[4, 6] == pytest.approx(1.234 + int(frame.id) / 1000, abs=1e-6)


def test_a_scene_without_masks(tmp_path: Path) -> None:
    scene_dir = w.write_scene(tmp_path)
    for path in (scene_dir / "masks").iterdir():
        path.unlink()
    (scene_dir / "masks").rmdir()
    scene = opened(scene_dir)
    assert len(scene.frames) == 4
    assert scene.frames[0].object_mask() is None
    assert reasons(scene) == {"file_missing": 1}


def test_one_line_pose_files(tmp_path: Path) -> None:
    scene_dir = w.write_scene(tmp_path)
    (scene_dir / "cam_poses.txt").write_text(w.pose_line(2, w.pose(2)))
    assert [frame.id for frame in opened(scene_dir).frames] == ["2"]
    (scene_dir / "cam_poses.txt").write_text(" ".join(w.pose_line(n, w.pose(n)) for n in range(3)))
    scene = opened(scene_dir)
    assert [frame.id for frame in scene.frames] == ["0", "1", "2"]
    np.testing.assert_allclose(scene.frames[2].world_from_camera, w.pose(2), atol=1e-8)


def test_bad_poses_cost_their_frames(tmp_path: Path) -> None:
    scene_dir = w.write_scene(tmp_path, count=8)
    skewed = w.pose(1) @ np.diag([1.0, 1.3, 1.0, 1.0])
    lines = [
        w.pose_line(0, w.pose(0)),
        w.pose_line(1, skewed),
        w.pose_line(2, np.full((4, 4), -np.inf)),
        "3 1 2 3",
        w.pose_line(4, w.pose(4)),
        w.pose_line(4, w.pose(5)),  # which one is right?
        w.pose_line("5.5", w.pose(5)),
        w.pose_line("nan", w.pose(5)),
        w.pose_line("x", w.pose(5)),
        w.pose_line(6, w.pose(6)).replace("1.000000000", "1.#QNAN", 1),
        w.pose_line(7, w.pose(7) + 1e-4),  # rounding: repaired
    ]
    (scene_dir / "cam_poses.txt").write_text("\n".join(lines))
    scene = opened(scene_dir)
    assert [frame.id for frame in scene.frames] == ["0", "7"]
    assert reasons(scene) == {"bad_pose": 3, "pose_line_unusable": 5, "pose_missing": 2}
    R = scene.frames[1].world_from_camera[:3, :3]
    np.testing.assert_allclose(R @ R.T, np.eye(3), atol=1e-12)
    assert scene.frames[1].pose_deviation > 1e-5


@pytest.mark.parametrize("content", ["", "\0" * 1000, "not poses at all"])
def test_a_scene_without_poses_is_refused(tmp_path: Path, content: str) -> None:
    scene_dir = w.write_scene(tmp_path)
    (scene_dir / "cam_poses.txt").write_text(content)
    with pytest.raises(SceneError, match=r"none usable|cam_poses\.txt: found (zeros|an empty file)"):
        opened(scene_dir)
    (scene_dir / "cam_poses.txt").unlink()
    with pytest.raises(SceneError, match=r"cam_poses\.txt"):
        opened(scene_dir)


def test_bad_pictures_cost_their_frames(tmp_path: Path) -> None:
    scene_dir = w.write_scene(tmp_path, count=6)
    (scene_dir / "depth" / "00000.png").write_bytes(w.png(np.full(w.SIZE[::-1], 25, np.uint8)))  # 8 bits
    (scene_dir / "rgb" / "00001.png").write_bytes(w.png(w.rgb(1))[:-20])  # torn
    (scene_dir / "rgb" / "00002.png").write_bytes(w.png(w.rgb(2, (40, 20))))  # another shape than K
    (scene_dir / "depth" / "00003.png").write_bytes(w.png(w.depth(3, (40, 20))))
    (scene_dir / "depth" / "00004.png").write_bytes(w.png(w.depth(4, (20, 15))))  # smaller, same shape: fine
    (scene_dir / "masks" / "00005.png").write_bytes(w.png(w.mask((20, 15))))
    scene = opened(scene_dir)
    assert [frame.id for frame in scene.frames] == ["4", "5"]
    assert reasons(scene) == {"unusable_file": 4}
    assert scene.frames[0].depth_camera.size == (20, 15)
    assert scene.frames[0].depth_camera.fx == pytest.approx(19)
    assert scene.frames[0].depth_m().shape == (15, 20)
    with pytest.raises(FrameError, match="masks"):
        scene.frames[1].object_mask()


def test_links_out_of_the_category_are_refused(tmp_path: Path) -> None:
    scene_dir = w.write_scene(tmp_path)
    (tmp_path / "elsewhere.png").write_bytes(w.png(w.rgb(1)))
    for name in ("rgb/00001.png", "depth/00002.png"):
        (scene_dir / name).unlink()
        (scene_dir / name).symlink_to(tmp_path / "elsewhere.png")
    scene = opened(scene_dir)
    assert [frame.id for frame in scene.frames] == ["0", "3"]
    assert reasons(scene) == {"link_outside": 2, "incomplete": 2}
    (scene_dir / "metadata").rename(tmp_path / "metadata")
    (scene_dir / "metadata").symlink_to(tmp_path / "metadata")
    with pytest.raises(SceneError, match="link"):
        opened(scene_dir)


@pytest.mark.parametrize(
    ("nvs", "evaluation", "split"),
    [
        ({"train": ["scenes/scenes_007"], "val": ["scenes/scenes_008"]}, None, "train"),
        ({"train": ["scenes_008"], "val": ["scenes_007"]}, None, "val"),
        (None, {"train": ["box/scenes/scenes_007/"], "val": []}, "train"),
        ({"train": ["scenes_007"]}, {"val": ["scenes_007"]}, "val"),  # held out by one of two lists
        ({"train": ["scenes_070"], "val": [7]}, [1], "unknown"),
        ({"train": "scenes_007"}, None, "unknown"),
    ],
)
def test_splits(tmp_path: Path, nvs: Any, evaluation: Any, split: str) -> None:
    scene_dir = w.write_scene(tmp_path, name="scenes_007", count=1)
    for name, value in (("nvs_list.json", nvs), ("camera_eval_list.json", evaluation)):
        if value is not None:
            (tmp_path / "box" / name).write_text(json.dumps(value))
    assert opened(scene_dir).split == split
    assert [ref.split for ref in WildRGBD().discover(tmp_path)] == [split]


def test_broken_lists_do_not_cost_the_scene(tmp_path: Path) -> None:
    scene_dir = w.write_scene(tmp_path, count=1)
    (tmp_path / "box" / "nvs_list.json").write_text("{")
    assert reasons(opened(scene_dir)) == {"file_unusable": 1}


def test_discover(tmp_path: Path) -> None:
    w.write_scene(tmp_path / "data", "box", "scenes_000", 1)
    w.write_scene(tmp_path / "data", "TV", "scene_12", 1)
    (w.write_scene(tmp_path / "data", "TV", "scene_13", 1) / "cam_poses.txt").unlink()  # partly joined archive
    (tmp_path / "data" / "TV" / "scenes" / "empty").mkdir()
    w.write_scene(tmp_path / "outside", "car", "scenes_001", 1)
    (tmp_path / "data" / "car").symlink_to(tmp_path / "outside" / "car")
    (tmp_path / "data" / "TV" / "loop").symlink_to(tmp_path / "data")
    refs = list(WildRGBD().discover(tmp_path / "data"))
    assert [ref.scene_id for ref in refs] == ["TV/scene_12", "TV/scene_13", "box/scenes_000"]
    assert [len(opened(ref.path).frames) for ref in (refs[0], refs[2])] == [1, 1]
    assert refs[0].size_bytes > 0
    inner = tmp_path / "data" / "TV" / "scenes" / "scene_12"
    assert [ref.scene_id for ref in WildRGBD().discover(inner)] == ["TV/scene_12"]


def test_the_digest_follows_poses_and_sizes(tmp_path: Path) -> None:
    scene_dir = w.write_scene(tmp_path)
    first = opened(scene_dir).source_digest
    assert opened(scene_dir).source_digest == first
    text = (scene_dir / "cam_poses.txt").read_text()
    (scene_dir / "cam_poses.txt").write_text(text.replace("0.1", "0.2", 1))
    assert opened(scene_dir).source_digest != first


def test_the_real_capture(captures: Path) -> None:
    refs = list(WildRGBD().discover(captures))
    assert [(ref.scene_id, ref.split) for ref in refs] == [("box/scenes_000", "train")]
    scene = WildRGBD().open(refs[0])
    assert (len(scene.frames), scene.issues) == (22, [])
    frame = scene.frames[21]
    assert (frame.id, frame.camera.size) == ("21", (560, 420))
    assert frame.camera.cx == pytest.approx(281.261417)
    assert frame.color().shape == (420, 560, 3)
    mask = frame.object_mask()
    assert mask is not None
    assert 0.01 < mask.mean() < 0.2
    assert frame.encoded_color() == (captures / "wildrgbd/box/scenes/scenes_000/rgb/00021.png").read_bytes()
