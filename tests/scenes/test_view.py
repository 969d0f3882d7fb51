from __future__ import annotations

import io
import itertools

import cv2
import numpy as np
import pytest
from PIL import Image

from tests.scene_factory import RoomScene, render, room_scene
from tests.small_room import as_jpeg, other_world, small_room, small_view, stored
from vgbench_gen.core.errors import FrameError
from vgbench_gen.core.gates import FrameGates, Gates, PairGates
from vgbench_gen.core.rng import digest_bytes
from vgbench_gen.core.types import ColorArray, FloatArray
from vgbench_gen.geometry.poses import make_pose
from vgbench_gen.geometry.visibility import VISIBLE, classify
from vgbench_gen.scenes import view as view_module
from vgbench_gen.scenes.view import SceneView, choose_keyframes, make_delivered_camera


def decode(data: bytes) -> ColorArray:
    """By Pillow, not by the library that encoded it."""
    return np.asarray(Image.open(io.BytesIO(data)).convert("RGB"), dtype=np.uint8)


def loose() -> Gates:
    """Every frame is a keyframe."""
    return Gates(frame=FrameGates(keyframe_turn_deg=1e-3, keyframe_shift_m=1e-3))


def turned_about_z(angle_deg: float, center: FloatArray) -> FloatArray:
    c, s = np.cos(np.radians(angle_deg)), np.sin(np.radians(angle_deg))
    return make_pose(np.array([[c, -s, 0], [s, c, 0], [0, 0, 1.0]]), center)


def scene_with_poses(poses: list[FloatArray]) -> RoomScene:
    scene = small_room(frames=1)
    frame = scene.frames[0]
    frames = []
    for i, pose in enumerate(poses):
        copy = object.__new__(type(frame))
        copy.__dict__.update(frame.__dict__ | {"id": str(i), "world_from_camera": pose})
        frames.append(copy)
    scene.frames = frames
    return scene


def separations(poses: list[FloatArray], turn_deg: float, shift_m: float) -> FloatArray:
    """(n, n) turn or shift over its limit, by the trace formula."""
    table = np.zeros((len(poses), len(poses)))
    for i, a in enumerate(poses):
        for j, b in enumerate(poses):
            cosine = np.clip((np.trace(a[:3, :3].T @ b[:3, :3]) - 1) / 2, -1, 1)
            shift = np.linalg.norm(a[:3, 3] - b[:3, 3]) / shift_m
            table[i, j] = max(np.degrees(np.arccos(cosine)) / turn_deg, shift)
    return table


def walk(count: int, seed: int = 0) -> list[FloatArray]:
    """A camera that wanders, and comes back to where it was."""
    rng = np.random.default_rng(seed)
    out = [turned_about_z(3.0 * i, np.array([0.05 * i, 0, 0])) for i in range(count)]
    return out + [p @ turned_about_z(0.2, rng.normal(0, 0.003, 3)) for p in out[::-1]]


def test_keyframes_are_apart_and_leave_no_gap() -> None:
    gates = FrameGates()
    poses = walk(60)
    kept = choose_keyframes(scene_with_poses(poses).frames, gates)
    table = separations(poses, gates.keyframe_turn_deg, gates.keyframe_shift_m)
    assert table[kept[:-1], kept[1:]].min() >= 1 - 1e-9
    for i in range(len(poses)):  # whatever was dropped is near the last kept one
        assert i in kept or table[i, kept[kept < i].max()] < 1
    assert 20 < len(kept) < 60


def test_distinct_frames_hold_no_near_duplicates_even_where_the_camera_returns() -> None:
    scene = scene_with_poses(walk(12))
    gates = Gates(frame=FrameGates(keyframe_turn_deg=1e-3, keyframe_shift_m=1e-3))
    view = SceneView(scene, gates)
    assert len(view.frames) == 24
    for seed in range(3):
        picked = view.distinct_frames(np.random.default_rng(seed))
        poses = [frame.world_from_camera for frame in picked]
        table = separations(poses, gates.pair.distinct_turn_deg, gates.pair.distinct_shift_m)
        assert (table + 10 * np.eye(len(picked))).min() > 1
        rest = [f.world_from_camera for f in view.frames if f not in picked]
        both = separations(poses + rest, gates.pair.distinct_turn_deg, gates.pair.distinct_shift_m)
        assert (both[len(poses) :, : len(poses)].min(axis=1) <= 1).all()
        assert 3 < len(picked) < 13
    orders = {tuple(f.id for f in view.distinct_frames(np.random.default_rng(seed))) for seed in (0, 0, 1)}
    assert len(orders) == 2


def test_either_a_turn_or_a_shift_is_enough() -> None:
    gates = FrameGates()
    for pose, count in (
        (turned_about_z(9.9, np.zeros(3)), 1),
        (turned_about_z(10.1, np.zeros(3)), 2),
        (turned_about_z(0, np.array([0, 0.19, 0])), 1),
        (turned_about_z(0, np.array([0, 0.21, 0])), 2),
    ):
        assert len(choose_keyframes(scene_with_poses([np.eye(4), pose]).frames, gates)) == count


def test_too_many_keyframes_are_thinned_by_farthest_point() -> None:
    gates = FrameGates(max_keyframes=5)
    poses = [turned_about_z(0, np.array([x, 0, 0])) for x in (0, 0.25, 0.5, 0.75, 1.0, 4.0, 8.0, 12.0)]
    kept = choose_keyframes(scene_with_poses(poses).frames, gates).tolist()
    assert len(kept) == 5
    assert {0, 5, 6, 7} <= set(kept)


@pytest.mark.parametrize("most", [200, 7])
def test_keyframes_do_not_depend_on_the_world_frame(most: int) -> None:
    gates = FrameGates(max_keyframes=most)
    rng = np.random.default_rng(1)
    poses = [turned_about_z(float(rng.uniform(0, 90)), rng.uniform(-1, 1, 3)) for _ in range(40)]
    moved = [other_world() @ pose for pose in poses]
    expected = choose_keyframes(scene_with_poses(poses).frames, gates).tolist()
    assert choose_keyframes(scene_with_poses(moved).frames, gates).tolist() == expected
    assert len(expected) > 5


def test_no_frames_no_keyframes() -> None:
    assert len(choose_keyframes([], FrameGates())) == 0


def test_delivered_size_keeps_the_rays() -> None:
    scene = small_room()
    camera = scene.frames[0].camera
    assert make_delivered_camera(camera, 320) is camera
    assert make_delivered_camera(camera, 1024) is camera  # never enlarged
    small = make_delivered_camera(camera, 160)
    assert small.size == (160, 120)
    # The ray through the image's left edge stays the ray through the left edge.
    assert (-0.5 - small.cx) / small.fx == pytest.approx((-0.5 - camera.cx) / camera.fx)
    assert (119.5 - small.cy) / small.fy == pytest.approx((239.5 - camera.cy) / camera.fy)


@pytest.mark.parametrize("depth_scale", [0.5, 1.0])
@pytest.mark.parametrize("long_side", [320, 160])
def test_depth_and_points_against_the_analytic_room(depth_scale: float, long_side: int) -> None:
    scene = small_room(frames=2, depth_scale=depth_scale)
    view = SceneView(scene, Gates(frame=FrameGates(long_side_px=long_side)), [f.id for f in scene.frames])
    frame = view.frames[0]
    assert max(frame.camera.size) == long_side
    source = scene.frames[0].camera
    shrunk = long_side / 320
    assert frame.camera.fx == pytest.approx(source.fx * shrunk)
    assert frame.camera.cy == pytest.approx((source.cy + 0.5) * shrunk - 0.5)
    exact, _ = render(frame.camera, frame.world_from_camera, scene.solids, shade=False)
    v, u = np.mgrid[5 : frame.camera.height - 5 : 7, 5 : frame.camera.width - 5 : 7]
    uv = np.stack([u.ravel(), v.ravel()], axis=-1).astype(np.float64)
    truth = exact[v.ravel(), u.ravel()]
    error = np.abs(frame.depth_at(uv) - truth) / truth
    assert np.median(error) < 0.006  # half a depth pixel of slope
    assert np.quantile(error, 0.9) < 0.03
    points = frame.points_at(uv)
    rays = np.stack([(uv[:, 0] - frame.camera.cx) / frame.camera.fx, (uv[:, 1] - frame.camera.cy) / frame.camera.fy])
    in_camera = np.concatenate([rays, np.ones((1, len(uv)))]).T * truth[:, None]
    world = in_camera @ frame.world_from_camera[:3, :3].T + frame.world_from_camera[:3, 3]
    assert np.median(np.linalg.norm(points - world, axis=1)) < 0.02
    view.close()


def test_depth_patch_takes_the_pixels_whose_centres_lie_inside() -> None:
    frame = small_view().frames[0]
    # Depth is half as large: delivered pixels 2k and 2k + 1 belong to depth pixel k.
    assert np.array_equal(frame.depth_patch([20, 10, 39, 29]), frame.depth_m[5:15, 10:20])
    # A depth pixel's centre lies on the border between two delivered pixels, and borders count.
    assert np.array_equal(frame.depth_patch([21, 11, 38, 28]), frame.depth_m[5:15, 10:20])
    assert np.array_equal(frame.depth_patch([22, 12, 37, 27]), frame.depth_m[6:14, 11:19])
    assert np.array_equal(frame.depth_patch([-30, -30, 9, 9]), frame.depth_m[0:5, 0:5])
    assert frame.depth_patch([-30, -30, -10, -10]).size == 0
    assert frame.depth_patch([900, 900, 910, 910]).size == 0


def test_unknown_depth_has_no_point() -> None:
    scene = small_room(frames=1)
    depth = stored(scene)[0].stored_depth_m.copy()
    depth[:10] = 0
    stored(scene)[0].stored_depth_m = depth
    frame = SceneView(scene, Gates()).frames[0]
    uv = np.array([[100.0, 6.0], [100.0, 100.0], [-5.0, 10.0]])
    assert frame.depth_at(uv)[[0, 2]].tolist() == [0, 0]
    assert np.isnan(frame.points_at(uv)).all(axis=1).tolist() == [True, False, True]
    assert frame.depth_valid == pytest.approx(1 - 10 / 120)


def test_masked_colour_loses_its_depth(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = small_room(frames=1)
    mask = np.ones((240, 320), dtype=bool)
    mask[:, :160] = False
    monkeypatch.setattr(scene.frames[0], "valid_mask", lambda: mask, raising=False)
    frame = SceneView(scene, Gates(), [scene.frames[0].id]).frames[0]
    assert not frame.depth_m[:, :80].any()
    assert frame.depth_m[:, 80:].all()


def test_jpeg_bytes_pass_through_untouched() -> None:
    scene = as_jpeg(small_room(frames=2))
    view = SceneView(scene, Gates())
    for frame, source in zip(view.frames, stored(scene), strict=True):
        data, suffix = frame.base_image()
        assert suffix == "jpg"
        assert source.jpeg is not None
        assert digest_bytes(data) == digest_bytes(source.jpeg)


def test_resized_jpeg_is_kept_without_loss() -> None:
    scene = as_jpeg(small_room(frames=1))
    view = SceneView(scene, Gates(frame=FrameGates(long_side_px=200)))
    data, suffix = view.frames[0].base_image()
    expected = cv2.resize(stored(scene)[0].stored_color, (200, 150), interpolation=cv2.INTER_AREA)
    assert suffix == "png"
    assert np.array_equal(decode(data), expected)


@pytest.mark.parametrize("wide_side", [200, 280, 1600])
def test_crops_are_cut_from_a_wider_image(wide_side: int) -> None:
    """Shrunk no further than to the wide side, never enlarged, and the original bytes where nothing is shrunk."""
    scene = as_jpeg(small_room(frames=2))
    gates = Gates(frame=FrameGates(long_side_px=200, wide_side_px=wide_side))
    view = SceneView(scene, gates)
    for frame, source in zip(view.frames, stored(scene), strict=True):
        data, suffix = frame.base_image(wide=True)
        width = min(wide_side, 320)
        assert frame.wide_camera.size == frame.base_camera(wide=True).size == (width, width * 3 // 4)
        assert frame.camera.size == frame.base_camera().size == (200, 150)
        assert suffix == ("jpg" if width == 320 else "png")
        size = (width, width * 3 // 4)
        expected = cv2.resize(source.stored_color, size, interpolation=cv2.INTER_AREA) if width < 320 else None
        np.testing.assert_array_equal(decode(data), source.stored_color if expected is None else expected)
        np.testing.assert_allclose(frame.wide_camera.K[0, 0] / frame.camera.K[0, 0], width / 200)
    without = SceneView(scene, gates, wide=False).frames[0]
    assert without.wide_camera.size == (200, 150)
    assert without.base_image(wide=True) == without.base_image()


def test_corners_lie_where_the_delivered_image_has_them() -> None:
    frame = SceneView(small_room(frames=1), Gates(frame=FrameGates(long_side_px=160))).frames[0]
    corners = frame.corners_uv
    assert len(corners) > 20
    found = cv2.FastFeatureDetector.create(threshold=12).detect(
        cv2.cvtColor(decode(frame.base_image()[0]), cv2.COLOR_RGB2GRAY)
    )
    assert sorted(map(tuple, corners.round(6).tolist())) == sorted(
        (float(point.pt[0]), float(point.pt[1])) for point in found
    )


def test_frames_without_original_bytes_are_kept_without_loss() -> None:
    scene = small_room(frames=3)
    view = SceneView(scene, loose())
    assert len(view.frames) == 3
    for frame, source in reversed(list(zip(view.frames, stored(scene), strict=True))):
        data, suffix = frame.base_image()
        assert suffix == "png"
        assert np.array_equal(decode(data), source.stored_color)


def test_blurred_and_depth_poor_frames_are_rejected_with_value_and_limit() -> None:
    scene = small_room(frames=5)
    frames = stored(scene)
    sharp = [float(cv2.Laplacian(cv2.cvtColor(f.stored_color, cv2.COLOR_RGB2GRAY), cv2.CV_64F).var()) for f in frames]
    blurred = np.asarray(cv2.GaussianBlur(frames[1].stored_color, (0, 0), 4), dtype=np.uint8)
    frames[1].stored_color = blurred
    poor = frames[3].stored_depth_m.copy()
    poor[:60] = 0
    frames[3].stored_depth_m = poor
    view = SceneView(scene, loose())
    assert [f.id for f in view.frames] == [frames[i].id for i in (0, 2, 4)]
    by_id = {r.key: r for r in view.rejected}
    soft = float(cv2.Laplacian(cv2.cvtColor(blurred, cv2.COLOR_RGB2GRAY), cv2.CV_64F).var())
    median = float(np.median([sharp[0], soft, sharp[2], sharp[3], sharp[4]]))
    first, second = by_id[frames[1].id], by_id[frames[3].id]
    assert (first.reason, second.reason) == ("blurred", "depth_coverage")
    assert first.value == pytest.approx(soft)
    assert first.limit == pytest.approx(max(15.0, 0.4 * median))
    assert (second.value, second.limit) == pytest.approx((0.5, 0.6))
    with pytest.raises(FrameError, match=frames[1].id):
        view.frame(frames[1].id)


def test_asked_frames_are_loaded_ungated() -> None:
    scene = small_room(frames=4)
    flat = stored(scene)[2]
    flat.stored_color = np.full_like(flat.stored_color, 120)
    view = SceneView(scene, Gates(), [flat.id])
    assert [f.id for f in view.frames] == [flat.id]


def test_an_unreadable_frame_costs_itself_only(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = small_room(frames=3)

    def damaged() -> None:
        raise FrameError("frame", "noise", "a JPEG", "Copy it again.")

    monkeypatch.setattr(scene.frames[1], "color", damaged)
    view = SceneView(scene, loose())
    assert len(view.frames) == 2
    assert [(r.key, r.reason) for r in view.rejected] == [(scene.frames[1].id, "unreadable")]


def test_overlap_against_every_pixel() -> None:
    view = small_view()
    table = view.overlap
    assert not np.diag(table).any()
    worst = 0.0
    for i, a in enumerate(view.frames):
        v, u = np.mgrid[: a.depth_m.shape[0], : a.depth_m.shape[1]]
        z = a.depth_m.astype(np.float64)
        K = a.depth_camera.K
        points = np.stack([(u - K[0, 2]) / K[0, 0] * z, (v - K[1, 2]) / K[1, 1] * z, z], axis=-1).reshape(-1, 3)
        world = points @ a.world_from_camera[:3, :3].T + a.world_from_camera[:3, 3]
        for j, b in enumerate(view.frames):
            if i == j:
                continue
            there = (world - b.world_from_camera[:3, 3]) @ b.world_from_camera[:3, :3]
            uv = there[:, :2] / there[:, 2:] * [b.depth_camera.fx, b.depth_camera.fy]
            uv = uv + [b.depth_camera.cx, b.depth_camera.cy]
            uv[there[:, 2] <= 0] = np.nan
            state = classify(b.depth_camera, b.depth_m, uv, there[:, 2], view.tolerance)
            worst = max(worst, abs((state == VISIBLE).sum() / (state != 0).sum() - table[i, j]))
    assert worst < 0.06
    assert np.array_equal(view.mutual_overlap, np.minimum(table, table.T))
    assert table.max() > 0.5
    assert table.min() < 0.35


def test_overlap_of_large_depth_images_is_measured_on_every_other_pixel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(view_module, "_TABLE_DEPTH_WIDTH", 80)
    coarse = SceneView(small_room(), Gates())
    assert np.abs(coarse.overlap - small_view().overlap).max() < 0.08
    assert not np.array_equal(coarse.overlap, small_view().overlap)


def test_overlap_does_not_depend_on_how_many_frames_are_copied_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    at_once = SceneView(small_room(), Gates()).overlap
    monkeypatch.setattr(view_module, "_TABLE_FRAMES", 2)
    assert len(at_once) > 4
    np.testing.assert_array_equal(SceneView(small_room(), Gates()).overlap, at_once)


def test_depths_of_many_frames_are_those_of_each() -> None:
    view = small_view()
    rng = np.random.default_rng(0)
    uv = np.concatenate([rng.uniform(-20, 340, (3, 200, 2)), np.full((3, 1, 2), np.nan)], axis=1)
    uv[:, 0], uv[:, 1] = (-0.5, -0.5), np.nextafter((319.5, 239.5), 0)
    for indices in ([0, 2, 3], [3, 0, 0]):
        found = view.depths_at(indices, uv)
        np.testing.assert_array_equal(found, [view.frames[i].depth_at(uv[k]) for k, i in enumerate(indices)])
    assert (found[:, -1] == 0).all()
    assert (found > 0).mean() > 0.3


def test_relative_maps_the_first_camera_to_the_second() -> None:
    view = small_view()
    point = np.array([0.3, -0.2, 2.0, 1.0])
    first, second = view.frames[1], view.frames[4]
    expected = np.linalg.inv(second.world_from_camera) @ first.world_from_camera @ point
    assert np.allclose(view.relative[1, 4] @ point, expected)


def test_projecting_to_all_frames_is_projecting_to_each() -> None:
    view = small_view()
    points = np.concatenate([view.frames[0].samples[1][:40], [[3.0, -50.0, 1.0]]])
    uv, z, inside = view.project_to_all(points)
    for j, frame in enumerate(view.frames):
        there = (np.linalg.inv(frame.world_from_camera) @ np.c_[points, np.ones(len(points))].T)[:3]
        pixels = (frame.camera.K @ there)[:2] / there[2]
        seen = (there[2] > 0) & (pixels[0] >= -0.5) & (pixels[0] < 319.5) & (pixels[1] >= -0.5) & (pixels[1] < 239.5)
        assert np.array_equal(inside[j], seen)
        assert np.allclose(uv[j][seen], pixels.T[seen])
        assert np.allclose(z[j], there[2])


def changed_poses(change: str) -> RoomScene:
    scene = small_room(noise_m=0.004)
    rng = np.random.default_rng(5)
    for frame in scene.frames:
        pose = frame.world_from_camera.copy()
        if change == "inverted":
            pose = np.asarray(np.linalg.inv(pose), dtype=np.float64)
        elif change == "shifted":
            direction = rng.normal(size=3)
            pose[:3, 3] += 0.10 * direction / np.linalg.norm(direction)
        elif change == "turned":
            pose = pose @ make_pose(cv2.Rodrigues(rng.normal(size=3) * 0.03)[0], np.zeros(3))
        frame.world_from_camera = pose
    return scene


def test_true_poses_agree_with_depth() -> None:
    view = SceneView(changed_poses(""), Gates())
    cycle_px, share, pairs = view.pose_agreement()
    gates = view.gates.scene
    assert pairs == 20
    assert cycle_px < 0.5 * gates.cycle_median_px_at_640
    assert share > 0.9
    assert view.pose_agreement() == (cycle_px, share, pairs)


@pytest.mark.parametrize("change", ["inverted", "shifted", "turned"])
def test_wrong_poses_do_not_agree_with_depth(change: str) -> None:
    view = SceneView(changed_poses(change), Gates())
    cycle_px, share, pairs = view.pose_agreement()
    gates = view.gates.scene
    assert pairs == 0 or share < gates.agree_share_min or cycle_px > gates.cycle_median_px_at_640


def test_a_shifted_frame_is_noticed_not_only_missed() -> None:
    _, share, pairs = SceneView(changed_poses("shifted"), Gates()).pose_agreement()
    assert pairs > 5
    assert share < 0.70


def test_poses_are_judged_by_pairs_that_could_be_asked() -> None:
    wide = SceneView(changed_poses(""), Gates())
    turns_deg = [
        np.degrees(np.linalg.norm(cv2.Rodrigues(wide.relative[i, j, :3, :3])[0]))
        for i, j in itertools.combinations(range(len(wide.frames)), 2)
        if wide.mutual_overlap[i, j] >= 0.2
    ]
    limit = float(np.sort(turns_deg)[2]) + 1e-6
    narrow = SceneView(changed_poses(""), Gates(pair=PairGates(rotation_max_deg=limit)))
    assert narrow.pose_agreement()[2] == 3


def test_the_small_image_is_the_same_whether_it_was_kept_or_is_made_when_it_is_asked_for() -> None:
    scene = room_scene(frames=1, width=1280, height=960)
    gates = Gates(frame=FrameGates(long_side_px=1280, keyframe_turn_deg=1e-3, keyframe_shift_m=1e-3))
    kept, made = SceneView(scene, gates), SceneView(scene, gates, [frame.id for frame in scene.frames])
    for first, second in zip(kept.frames, made.frames, strict=True):
        assert first.small_color().shape == (480, 640, 3)
        assert np.array_equal(first.small_color(), second.small_color())
        quarters = decode(first.base_image()[0]).reshape(480, 2, 640, 2, 3).mean(axis=(1, 3))
        assert np.abs(first.small_color() - quarters).max() <= 0.5
    kept.close()
    made.close()


def test_wide_images_are_kept_of_the_frames_that_are_named() -> None:
    scene = room_scene(frames=2, width=320, height=240)
    first, second = (frame.id for frame in scene.frames)
    gates = Gates(frame=FrameGates(long_side_px=256, wide_side_px=400))
    view = SceneView(scene, gates, [first, second], wide={second})
    assert [frame.wide_camera.size for frame in view.frames] == [(256, 192), (320, 240)]
    assert [decode(frame.base_image(wide=True)[0]).shape for frame in view.frames] == [(192, 256, 3), (240, 320, 3)]
    view.close()
