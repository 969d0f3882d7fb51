from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest

from tests.scenes import ca1m_writer as w
from vgbench_gen.core.errors import FrameError, SceneError
from vgbench_gen.geometry.boxes import corners, transform_box
from vgbench_gen.geometry.poses import invert
from vgbench_gen.scenes.base import SceneRef
from vgbench_gen.scenes.ca1m import CA1M, CA1MFrame, CA1MScene


def opened(path: Path) -> CA1MScene:
    return CA1M().open(SceneRef("ca1m", w.VIDEO, path, split="val"))


def scene_of(tmp_path: Path, shots: list[w.Shot], world: Any = ()) -> CA1MScene:
    return opened(w.write_tar(tmp_path / f"ca1m-val-{w.VIDEO}.tar", w.members(shots, world)))


def frame_of(scene: CA1MScene, index: int = 0) -> CA1MFrame:
    frame = scene.frames[index]
    assert isinstance(frame, CA1MFrame)
    return frame


def reasons(scene: CA1MScene) -> dict[str, int]:
    return dict(Counter(issue.reason for issue in scene.issues))


def changed(number: int, name: str, data: Any, size: tuple[int, int] = w.LANDSCAPE) -> w.Shot:
    """A frame with one member replaced, or removed where `data` is None."""
    shot = w.shot(number, size)
    shot.members.pop(name, None)
    if data is not None:
        shot.members[name] = data if isinstance(data, bytes) else json.dumps(data).encode()
    return shot


def test_pixels_cameras_and_poses_of_landscape_and_portrait_frames(tmp_path: Path) -> None:
    shots = [w.shot(0), w.shot(1, w.PORTRAIT)]
    scene = scene_of(tmp_path, shots)
    with scene:
        assert (scene.id, scene.split, scene.licence, scene.depth_kind) == (w.VIDEO, "val", "cc-by-nc-nd-4.0", "laser")
        assert scene.up_world is not None
        assert scene.up_world.tolist() == [0, 0, 1]
        assert (scene.total_frames, scene.issues) == (2, [])
        for number, (shot, size) in enumerate(zip(shots, (w.LANDSCAPE, w.PORTRAIT), strict=True)):
            frame = frame_of(scene, number)
            assert frame.camera.size == size
            assert frame.depth_camera.size == (size[0] // 2, size[1] // 2)
            np.testing.assert_array_equal(frame.camera.K, w.K_for(size))
            np.testing.assert_array_equal(frame.depth_camera.K, w.K_for(size, 0.5))
            np.testing.assert_allclose(frame.world_from_camera, shot.RT, atol=1e-12)
            np.testing.assert_array_equal(frame.color(), shot.rgb)
            assert frame.color()[5, 7].tolist() == [200, 100, number]
            depth = frame.depth_m()
            assert depth.dtype == np.float32
            assert depth[4, 6] == pytest.approx(1.234 + 0.001 * number, abs=1e-6)
            assert (depth[0, 0], depth[1, 1], depth[1, 2]) == (0, 0, 10)  # unknown, beyond 10 m, at 10 m
            assert frame.encoded_color() == shot.members["wide/image.png"]


def test_an_extracted_capture_is_the_same_scene(tmp_path: Path) -> None:
    content = w.members([w.shot(0), w.shot(1)], [w.instance("a", "Chair ", [1, 2, 3], [1, 1, 1], np.eye(3))])
    tar = opened(w.write_tar(tmp_path / "t" / f"ca1m-val-{w.VIDEO}.tar", content))
    w.write_folder(tmp_path / "f" / f"ca1m-val-{w.VIDEO}", content)
    refs = list(CA1M().discover(tmp_path / "f"))
    assert [(ref.scene_id, ref.split) for ref in refs] == [(w.VIDEO, "val")]
    folder = CA1M().open(refs[0])
    assert folder.source_digest == tar.source_digest
    assert [frame.id for frame in folder.frames] == [frame.id for frame in tar.frames]
    np.testing.assert_array_equal(folder.frames[1].color(), tar.frames[1].color())
    assert [thing.label for thing in folder.objects] == ["chair"]


def test_timestamps_sort_as_numbers_and_are_kept_as_written(tmp_path: Path) -> None:
    stamps = ["1000000000", "999999999", "21880464401418", "0999"]
    scene = scene_of(tmp_path, [w.shot(n, timestamp=stamp) for n, stamp in enumerate(stamps)])
    assert [frame.id for frame in scene.frames] == ["0999", "999999999", "1000000000", "21880464401418"]
    assert scene.frames[2].timestamp_s == 1.0
    assert scene.frames[1].color()[5, 7, 2] == 1  # the picture came along with its timestamp


@pytest.mark.parametrize(
    ("name", "data", "reason"),
    [
        ("wide/image.png", None, "incomplete"),
        ("gt/RT.json", None, "incomplete"),
        ("gt/depth.png", None, "incomplete"),
        ("wide/image/K.json", None, "incomplete"),
        ("gt/RT.json", np.full((4, 4), -np.inf).tolist(), "bad_pose"),
        ("gt/RT.json", np.diag([1.0, 1.0, 1.2, 1.0]).tolist(), "bad_pose"),
        ("gt/RT.json", np.diag([1.0, 1.0, -1.0, 1.0]).tolist(), "bad_pose"),
        ("gt/RT.json", {"RT": 1}, "unusable_file"),
        ("gt/RT.json", [[1, 2], [3]], "unusable_file"),
        ("gt/RT.json", [10**400] * 16, "unusable_file"),
        ("gt/RT.json", b"[[[[" * 5000, "unusable_file"),
        ("gt/RT.json", b" " * 100_000, "unusable_file"),
        ("gt/depth.png", w.png(np.full((24, 32), 25, np.uint8)), "unusable_file"),
        ("gt/depth.png", w.png(np.full((24, 32, 3), 25, np.uint8)), "unusable_file"),
        ("wide/image.png", w.png(w.shot(0).rgb)[:-30], "unusable_file"),
        ("wide/image.png", b"", "unusable_file"),
        ("wide/image.png", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\1\0\0\0\1\0\0\10\2\0\0\0aaaaIEND", "unusable_file"),
        ("wide/image/K.json", w.K_for((128, 96)), "unusable_file"),  # K of another size
        ("wide/image/K.json", w.K_for((64, 48), 2.0), "unusable_file"),
        ("wide/image/K.json", [[60.0, 5.0, 32.0], [0.0, 60.0, 24.0], [0.0, 0.0, 1.0]], "unusable_file"),
        ("_wide/image/size", [64, 40], "unusable_file"),  # another shape than the picture
    ],
)
def test_a_bad_member_costs_its_frame_only(tmp_path: Path, name: str, data: Any, reason: str) -> None:
    scene = scene_of(tmp_path, [changed(0, name, data), w.shot(1)])
    assert [frame.color()[5, 7, 2] for frame in scene.frames] == [1]
    assert scene.total_frames == 2
    assert reasons(scene) == {reason: 1}
    assert scene.issues[0].frame_id == w.shot(0).timestamp


def test_k_is_rescaled_with_the_picture(tmp_path: Path) -> None:
    """The size entry says what K was made for; the picture came at half that size."""
    shot = changed(0, "wide/image/K.json", w.K_for(w.LANDSCAPE, 2.0))
    shot.members["_wide/image/size"] = b"[128, 96]"
    shot.members["wide/instances.json"] = json.dumps(
        [w.instance("a", "x", [0, 0, 2], [1, 1, 1], np.eye(3), box_2d_rend=[9.5, 19.5, 29.5, 39.5])]
    ).encode()
    scene = scene_of(tmp_path, [shot])
    np.testing.assert_allclose(scene.frames[0].camera.K, w.K_for(w.LANDSCAPE))
    assert reasons(scene) == {"k_rescaled": 1}
    assert scene.frames[0].objects()[0].rendered_px == pytest.approx((4.5, 9.5, 14.5, 19.5))


def test_a_transposed_size_entry_does_not_turn_k(tmp_path: Path) -> None:
    scene = scene_of(tmp_path, [changed(0, "_wide/image/size", [48, 64])])
    np.testing.assert_array_equal(scene.frames[0].camera.K, w.K_for(w.LANDSCAPE))
    assert reasons(scene) == {"size_swapped": 1}


def test_depth_without_its_own_k_takes_that_of_the_image(tmp_path: Path) -> None:
    shot = changed(0, "gt/depth/K.json", None)
    del shot.members["_gt/depth/size"]
    frame = frame_of(scene_of(tmp_path, [shot]))
    np.testing.assert_allclose(frame.depth_camera.K, w.K_for(w.LANDSCAPE, 0.5))


def test_flat_matrices_extensions_and_unknown_members_are_accepted(tmp_path: Path) -> None:
    shot = changed(0, "gt/RT.json", w.shot(0).RT.ravel().tolist())
    shot.members["_wide/image/size.json"] = shot.members.pop("_wide/image/size")
    shot.members["wide/Image/NEW.thing"] = b"?"
    T = np.eye(4)
    T[:3, :3] = w.gravity(shot.RT, 15.0)
    shot.members["wide/T_gravity.json"] = json.dumps(T.tolist()).encode()
    scene = scene_of(tmp_path, [shot])
    np.testing.assert_allclose(scene.frames[0].world_from_camera, shot.RT, atol=1e-12)
    assert scene.issues == []


@pytest.mark.parametrize(("pitch", "expected"), [(15.0, {}), (11.0, {}), (21.0, {"gravity_disagrees": 1})])
def test_gravity_is_compared_with_the_pose(tmp_path: Path, pitch: float, expected: dict[str, int]) -> None:
    T = w.gravity(w.shot(0).RT, pitch)
    scene = scene_of(tmp_path, [changed(0, "wide/T_gravity.json", T.tolist())])
    assert reasons(scene) == expected
    assert len(scene.frames) == 1


def test_world_boxes(tmp_path: Path) -> None:
    lying = w.yaw(30) @ np.array([[0.0, 0.0, 1.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])  # second axis is the vertical one
    tilt = cv2.Rodrigues(np.array([np.radians(20.0), 0, 0]))[0]
    world = [
        w.instance("a", " Office  Chair", [1, 2, 3], [1, 2, 3], w.yaw(30)),
        w.instance("b", "lying", [1, 2, 3], [1, 2, 3], lying),
        w.instance("c", "mirrored", [0, 0, 0], [1, 2, 3], w.yaw(30) * [1, -1, 1]),
        w.instance("d", "nearly", [0, 0, 0], [1, 2, 3], w.yaw(30) * 1.02),
        w.instance("a", "again", [0, 0, 0], [1, 2, 3], np.eye(3)),
        w.instance("e", "tilted", [0, 0, 0], [1, 2, 3], tilt),
        w.instance("f", "sheared", [0, 0, 0], [1, 2, 3], np.eye(3) * [1, 1, 2]),
        w.instance("g", "flat", [0, 0, 0], [1, 0, 3], np.eye(3)),
        w.instance("h", "nan", [0, float("nan"), 0], [1, 2, 3], np.eye(3)),
        {"id": "i", "category": "no box"},
        "no object",
        {k: v for k, v in w.instance("", "nameless", [0, 0, 0], [1, 2, 3], np.eye(3)).items() if k != "id"},
        w.instance("k", "upended", [5, 0, 0], [1, 2, 3], w.yaw(30) @ np.diag([1.0, -1.0, -1.0])),
    ]
    scene = scene_of(tmp_path, [w.shot(0)], world)
    found = {thing.instance_id: thing for thing in scene.objects}
    assert list(found) == ["a", "b", "c", "d", "unnamed-10", "k"]
    assert found["a"].label == "office chair"
    assert found["a"].box.size_m.tolist() == [1, 2, 3]
    np.testing.assert_allclose(found["a"].box.rotation, w.yaw(30), atol=1e-12)
    for name, R in [("b", lying), ("c", w.yaw(30)), ("d", w.yaw(30)), ("k", w.yaw(30))]:
        box = found[name].box
        np.testing.assert_allclose(box.rotation[2], [0, 0, 1], atol=1e-12)
        np.testing.assert_allclose(box.rotation @ box.rotation.T, np.eye(3), atol=1e-12)
        assert np.linalg.det(box.rotation) > 0
        half = np.array(np.meshgrid(*[(-s / 2, s / 2) for s in (1, 2, 3)])).reshape(3, -1)
        expected = (R @ half).T + box.center_m
        apart = np.linalg.norm(corners(box)[:, None] - expected[None], axis=2)
        assert apart.min(axis=1).max() < 1e-9  # the same eight corners in some order
    assert reasons(scene) == {"box_unusable": 4, "box_tilted": 1, "object_repeated": 1}


@pytest.mark.parametrize(
    ("world", "expected"),
    [([], {}), (None, {"file_missing": 1}), ({"a": 1}, {"file_unusable": 1}), (3, {"file_unusable": 1})],
)
def test_empty_missing_and_misshapen_world_lists(tmp_path: Path, world: Any, expected: dict[str, int]) -> None:
    content = w.members([w.shot(0)], None)
    if world is not None:
        content[f"{w.VIDEO}/world.gt/instances.json"] = json.dumps(world).encode()
    scene = opened(w.write_tar(tmp_path / f"ca1m-val-{w.VIDEO}.tar", content))
    assert scene.objects == ()
    assert reasons(scene) == expected


def test_frame_lists(tmp_path: Path) -> None:
    R = w.gravity(np.eye(4), 15.0)
    listed = [
        w.instance("a", "Mug", [0.1, 0.2, 2], [0.1, 0.2, 0.3], R, box_2d_rend=[1, 2, 3, 4], box_2d_proj=[-5, 2, 9, 4]),
        w.instance("b", "mug", [0.1, 0.2, 2], [0.1, 0.2, 0.3], R, bbox=[10, 20, 5, 6]),
        w.instance("c", "mug", [0.1, 0.2, 2], [0.1, 0.2, 0.3], R),
        w.instance("d", "mug", [0.1, 0.2, 2], [0.1, 0.2, 0.3], np.zeros((3, 3))),
    ]
    shot = changed(0, "wide/instances.json", listed)
    scene = scene_of(tmp_path, [shot, changed(1, "wide/instances.json", None), changed(2, "wide/instances.json", {})])
    a, b, c = scene.frames[0].objects()
    assert (a.instance_id, a.label, a.box.frame) == ("a", "mug", "camera")
    assert (a.rendered_px, a.projected_px) == ((1, 2, 3, 4), (-5, 2, 9, 4))
    assert b.rendered_px == (10, 20, 15, 26)
    np.testing.assert_allclose(a.box.rotation, R, atol=1e-12)
    K = np.array(w.K_for(w.LANDSCAPE))
    half = np.array(np.meshgrid([-0.05, 0.05], [-0.1, 0.1], [-0.15, 0.15])).reshape(3, -1)
    seen = cv2.projectPoints((R @ half).T + np.array([0.1, 0.2, 2]), np.zeros(3), np.zeros(3), K, np.zeros(4))[0][:, 0]
    for item in (b, c):
        assert item.projected_px == pytest.approx((*seen.min(axis=0), *seen.max(axis=0)))
    assert c.rendered_px is None
    assert list(scene.frames[1].objects()) == []
    with pytest.raises(FrameError, match="list"):
        scene.frames[2].objects()


def test_links_in_a_tar_and_a_truncated_tar_keep_complete_frames(tmp_path: Path) -> None:
    shots = [w.shot(0), w.shot(1)]
    path = w.write_tar(tmp_path / f"ca1m-val-{w.VIDEO}.tar", w.members(shots), [w.link(f"{w.VIDEO}/x", "/etc/passwd")])
    data = path.read_bytes()
    path.write_bytes(data[: data.rindex(b".gt/depth.png") + 700])
    scene = opened(path)
    assert [frame.id for frame in scene.frames] == [shots[0].timestamp]
    assert reasons(scene) == {"tar_member_refused": 1, "tar_truncated": 1, "incomplete": 1, "file_missing": 1}
    np.testing.assert_array_equal(scene.frames[0].color(), shots[0].rgb)


def test_links_out_of_an_extracted_capture_are_refused(tmp_path: Path) -> None:
    w.write_folder(tmp_path / "outer", w.members([w.shot(0), w.shot(1)]))
    outside = tmp_path / "elsewhere.png"
    stolen = tmp_path / "outer" / w.VIDEO / f"{w.shot(0).timestamp}.wide" / "image.png"
    stolen.rename(outside)
    stolen.symlink_to(outside)
    scene = opened(tmp_path / "outer" / w.VIDEO)
    assert [frame.id for frame in scene.frames] == [w.shot(1).timestamp]
    assert reasons(scene) == {"link_outside": 1, "incomplete": 1}


def test_captures_without_a_usable_frame_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SceneError, match="none usable"):
        scene_of(tmp_path, [changed(0, "gt/RT.json", None)])
    with pytest.raises(SceneError, match="no members"):
        opened(w.write_tar(tmp_path / "ca1m-val-1.tar", {}, [w.link("1/x", "y")]))
    (tmp_path / w.VIDEO).mkdir()
    with pytest.raises(SceneError):
        opened(tmp_path / w.VIDEO)
    with pytest.raises(SceneError, match="members of 1, 2; expected"):
        opened(w.write_tar(tmp_path / "ca1m-val-3.tar", {"1/5.wide/image.png": b"", "2/5.wide/image.png": b""}))
    with pytest.raises(SceneError, match=f"members of {w.VIDEO}; expected .* Rename it to ca1m-val-{w.VIDEO}.tar"):
        opened(w.write_tar(tmp_path / "ca1m-val-3.tar", w.members([w.shot(0)])))


def test_damaged_pixels_raise_when_asked_for(tmp_path: Path) -> None:
    shot = w.shot(0)
    for name in ("wide/image.png", "gt/depth.png"):
        data = bytearray(shot.members[name])
        data[60:-20] = bytes(len(data) - 80)
        shot.members[name] = bytes(data)
    frame = scene_of(tmp_path, [shot]).frames[0]
    with pytest.raises(FrameError, match=r"image\.png"):
        frame.color()
    with pytest.raises(FrameError, match=r"depth\.png"):
        frame.depth_m()


def test_discover(tmp_path: Path) -> None:
    content = w.members([w.shot(0)])
    w.write_tar(tmp_path / "data" / "train" / "ca1m-train-41000000.tar", content)
    w.write_tar(tmp_path / "data" / f"{w.VIDEO}.tar", content)
    w.write_tar(tmp_path / "data" / "12345678.tar", {"photos/1.jpg": b""})  # someone's holiday
    w.write_folder(tmp_path / "data" / f"ca1m-val-{w.VIDEO}", content)
    w.write_folder(tmp_path / "data", {name.replace(w.VIDEO, "47000000"): data for name, data in content.items()})
    (tmp_path / "outside").mkdir()
    w.write_tar(tmp_path / "outside" / "ca1m-val-48000000.tar", content)
    (tmp_path / "data" / "link").symlink_to(tmp_path / "outside")
    (tmp_path / "data" / "ca1m-val-48000000.tar").symlink_to(tmp_path / "outside" / "ca1m-val-48000000.tar")
    found = [(ref.scene_id, ref.split, ref.path.name) for ref in CA1M().discover(tmp_path / "data")]
    assert found == [
        ("41000000", "train", "ca1m-train-41000000.tar"),
        (w.VIDEO, "unknown", f"{w.VIDEO}.tar"),
        ("47000000", "unknown", "47000000"),
    ]
    one = tmp_path / "data" / "train" / "ca1m-train-41000000.tar"
    assert [ref.path for ref in CA1M().discover(one)] == [one]


def test_the_real_capture(captures: Path) -> None:
    refs = list(CA1M().discover(captures))
    assert [(ref.scene_id, ref.split) for ref in refs] == [("90010001", "val")]
    scene = CA1M().open(refs[0])
    with scene:
        assert (len(scene.frames), scene.total_frames, scene.issues) == (15, 15, [])
        world = {thing.instance_id: thing for thing in scene.objects}
        assert len(world) == 8
        compared = 0
        for frame in scene.frames:
            for item in frame.objects():
                expected = transform_box(world[item.instance_id].box, invert(frame.world_from_camera), "camera")
                np.testing.assert_allclose(corners(item.box), corners(expected), atol=2e-4)
                assert item.label == world[item.instance_id].label
                compared += 1
        assert compared > 60
        frame = frame_of(scene)
        assert frame.color().shape == (768, 1024, 3)
