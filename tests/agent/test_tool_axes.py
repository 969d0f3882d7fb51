"""Every tool's axes: shift, turn, mirror, exchange and scale what it is given, and its result changes as it must."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import cv2
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from tests.agent.plane_world import CAMERA, HEIGHT, SHIFT, TURN, WIDTH, K, View, call, mirror, move, render
from vgbench_gen.agent.tool import tools
from vgbench_gen.core.errors import VGBenchError
from vgbench_gen.geometry import poses
from vgbench_gen.geometry.homography import apply, image_corners
from vgbench_gen.store.pictures import decode, encode_jpeg
from vgbench_gen.tasks.solving import Image

POSE = {"rotation": TURN.tolist(), "translation": SHIFT.tolist()}
MIRROR = np.diag([-1.0, 1, 1])
CHECKS: dict[str, Callable[[], None]] = {}
H = np.array([[0.95, 0.06, 14.0], [-0.05, 1.02, -9.0], [1e-4, -5e-5, 1]])


def checks(*names: str) -> Callable[[Callable[[], None]], Callable[[], None]]:
    def keep(check: Callable[[], None]) -> Callable[[], None]:
        CHECKS.update(dict.fromkeys(names, check))
        return check

    return keep


def second() -> View:
    return render(TURN, SHIFT)


def view(image: Any) -> View:
    return View(image, np.zeros(image.shape[:2]))


def shift(image: Any, right: int, up: int) -> View:
    """An image whose content moved; what comes in is what was there."""
    matrix = np.array([[1.0, 0, right], [0, 1.0, -up]])
    return view(cv2.warpAffine(image, matrix, image.shape[1::-1], borderMode=cv2.BORDER_REFLECT))


def angle(a: Any, b: Any) -> float:
    return float(poses.angle_between_deg(np.array(a), np.array(b)))


def turned(a: Any, b: Any) -> float:
    return float(poses.rotation_angle_deg(np.array(a) @ np.array(b).T))


@checks("MatchImagesSIFT")
def check_matches() -> None:
    found = call("MatchImagesSIFT", [render(), shift(render().image, 6, 4)]).values["matches"]
    assert np.median([np.subtract(b, a) for a, b in found], axis=0) == pytest.approx([6, -4], abs=0.2)
    found = call("MatchImagesSIFT", [shift(render().image, 6, 4), render()]).values["matches"]
    assert np.median([np.subtract(b, a) for a, b in found], axis=0) == pytest.approx([-6, 4], abs=0.2)


@checks("EstimateOpticalFlow", "EstimateOpticalFlowOfficial")
def check_flow() -> None:
    first, later = render(), shift(render().image, 6, 4)
    told = call("EstimateOpticalFlow", [first, later]).values
    assert (told["mean_flow_x"], told["mean_flow_y"]) == pytest.approx((6, -4), abs=0.7)
    assert told["median_flow"] == pytest.approx([6, -4], abs=0.2)
    told = call("EstimateOpticalFlow", [later, first]).values
    assert told["median_flow"] == pytest.approx([-6, 4], abs=0.2)
    told = call("EstimateOpticalFlowOfficial", [first, later]).values  # positive: to the left, upwards
    assert (told["mean_flow_x"], told["mean_flow_y"]) == pytest.approx((-6, 4), abs=0.7)
    told = call("EstimateOpticalFlow", [view(mirror(first.image)), view(mirror(later.image))]).values
    assert told["median_flow"] == pytest.approx([-6, -4], abs=0.2)


@checks("EstimateHomographyMatrix")
def check_homography_estimate() -> None:
    first = render()
    warped = view(cv2.warpPerspective(first.image, H, (WIDTH, HEIGHT)))
    corners = image_corners(WIDTH, HEIGHT)
    there = np.array(call("EstimateHomographyMatrix", [first, warped]).values["homography_matrix"])
    assert np.abs(apply(there, corners) - apply(H, corners)).max() < 0.7
    back = np.array(call("EstimateHomographyMatrix", [warped, first]).values["homography_matrix"])
    assert np.abs(apply(back, apply(H, corners)) - corners).max() < 0.7
    flip = np.array([[-1.0, 0, WIDTH - 1], [0, 1, 0], [0, 0, 1]])
    flipped = [view(mirror(each.image)) for each in (first, warped)]
    mirrored = np.array(call("EstimateHomographyMatrix", flipped).values["homography_matrix"])
    assert np.abs(apply(mirrored, corners) - apply(flip @ H @ flip, corners)).max() < 0.7


@checks("EstimateRelativePose")
def check_relative_pose() -> None:
    there = call("EstimateRelativePose", [render(), second()], cameras=[CAMERA]).values
    back = call("EstimateRelativePose", [second(), render()], cameras=[CAMERA]).values
    assert turned(there["rotation"], TURN) < 0.3
    assert angle(there["translation_direction"], SHIFT) < 3
    assert angle(there["camera_moved"], -TURN.T @ SHIFT) < 3
    assert turned(back["rotation"], TURN.T) < 0.3
    assert angle(back["translation_direction"], -TURN.T @ SHIFT) < 3
    flipped = [view(mirror(each.image)) for each in (render(), second())]
    mirrored = call("EstimateRelativePose", flipped, cameras=[CAMERA]).values
    assert turned(mirrored["rotation"], MIRROR @ TURN @ MIRROR) < 0.3
    assert angle(mirrored["translation_direction"], MIRROR @ SHIFT) < 3
    large = [view(cv2.resize(each.image, (2 * WIDTH, 2 * HEIGHT))) for each in (render(), second())]
    camera = {"fx": 840.0, "fy": 840.0, "cx": 479.5, "cy": 359.5}
    assert turned(call("EstimateRelativePose", large, cameras=[camera]).values["rotation"], TURN) < 0.4


@checks("EstimateRotation")
def check_rotation() -> None:
    still = render(TURN, np.zeros(3))
    there = call("EstimateRotation", [render(), still], cameras=[CAMERA]).values
    back = call("EstimateRotation", [still, render()], cameras=[CAMERA]).values
    assert turned(there["rotation"], TURN) < 0.1
    assert turned(back["rotation"], TURN.T) < 0.1
    right = render(Rotation.from_euler("y", -6, degrees=True).as_matrix(), np.zeros(3))  # the camera turns to the right
    assert call("EstimateRotation", [render(), right], cameras=[CAMERA]).values["yaw_deg"] == pytest.approx(6, abs=0.1)
    up = render(Rotation.from_euler("x", -5, degrees=True).as_matrix(), np.zeros(3))  # and looks up
    assert call("EstimateRotation", [render(), up], cameras=[CAMERA]).values["pitch_deg"] == pytest.approx(5, abs=0.1)
    moved = call("EstimateRotation", [render(), render(np.eye(3), np.array([0, 0, -0.9]))], cameras=[CAMERA]).values
    assert moved["rotation"] is None
    assert "moved" in moved["cannot_tell"]


@checks("TrackPoint")
def check_track() -> None:
    queries = np.array([[100.0, 150], [300, 200], [400, 60], [140, 280]])
    truth = move(queries, render(), TURN, SHIFT)
    off = []
    for point, at in zip(queries, truth, strict=True):
        told = call("TrackPoint", [render(), second()], point=point.tolist()).values["tracks"][0]
        off += [np.linalg.norm(np.subtract(told["point"], at))] if told["point"] else []
    assert len(off) >= 3
    assert max(off) < 1.5
    shifted = call("TrackPoint", [render(), shift(render().image, 9, 5)], point=[240, 150]).values["tracks"][0]
    assert shifted["point"] == pytest.approx([249, 145], abs=0.3)
    places = [[u, v] for u, v in (truth[1], truth[1] + 40, truth[1] - [50, 0], truth[1] - [0, 60])]
    told_ = call("TrackPoint", [render(), second()], point=[300, 200], candidates=places[::-1]).values
    assert told_["best_candidate"] == 3
    flipped = [view(mirror(each.image)) for each in (render(), second())]
    told_ = call("TrackPoint", flipped, point=[WIDTH - 1 - 300, 200]).values["tracks"][0]
    assert told_["point"] == pytest.approx([WIDTH - 1 - truth[1][0], truth[1][1]], abs=1.5)


@checks("EpipolarLine")
def check_epipolar_line() -> None:
    queries = np.array([[100.0, 150], [300, 200], [400, 60]])
    truth = move(queries, render(), TURN, SHIFT)
    for point, at in zip(queries, truth, strict=True):
        places = [at.tolist(), (at + [0, 30]).tolist()]
        asked = {"point": point.tolist(), "candidates": places}
        by_pose = call("EpipolarLine", [render(), second()], pose=POSE, cameras=[CAMERA], **asked).values
        by_match = call("EpipolarLine", [render(), second()], **asked).values
        assert by_pose["distances_px"][0] < 0.05
        assert by_match["distances_px"][0] < 2
        assert min(by_pose["distances_px"][1], by_match["distances_px"][1]) > 15
        line = np.array(by_pose["line"])
        assert np.abs(np.array(by_pose["segment"]) @ line[:2] + line[2]).max() < 0.05
    swapped = call(
        "EpipolarLine",
        [second(), render()],
        pose={"rotation": TURN.T.tolist(), "translation": (-TURN.T @ SHIFT).tolist()},
        cameras=[CAMERA],
        point=truth[0].tolist(),
        candidates=[queries[0].tolist()],
    ).values
    assert swapped["distances_px"][0] < 0.05


@checks("TriangulatePoints")
def check_triangulation() -> None:
    queries = np.array([[100.0, 150], [300, 200], [400, 60]])
    truth = move(queries, render(), TURN, SHIFT)
    z = np.array([render().depth[int(v), int(u)] for u, v in queries])
    pixels = {"pixels_first": queries.tolist(), "pixels_second": truth.tolist()}
    metric = call("TriangulatePoints", cameras=[CAMERA], pose=POSE, **pixels).values
    assert np.array(metric["points"])[:, 2] == pytest.approx(z, rel=1e-4)
    doubled = {"rotation": TURN.tolist(), "translation": (2 * SHIFT).tolist()}
    twice = call("TriangulatePoints", cameras=[CAMERA], pose=doubled, **pixels).values
    assert np.array(twice["points"]) == pytest.approx(2 * np.array(metric["points"]), rel=1e-4)
    behind = {"rotation": TURN.tolist(), "translation": (-SHIFT).tolist()}
    told = call("TriangulatePoints", cameras=[CAMERA], pose=behind, **pixels).values
    assert told["points"] == [None] * 3
    assert "behind" in told["cannot_tell"]
    seen = call("TriangulatePoints", [render(), second()], cameras=[CAMERA], **pixels).values
    assert np.array(seen["points"])[:, 2] * np.linalg.norm(SHIFT) == pytest.approx(z, rel=0.05)
    assert "unknown" in seen["unit"]


@checks("CheckMotion")
def check_motions() -> None:
    off = Rotation.from_euler("y", 10, degrees=True).as_matrix()
    wrong = [
        {"rotation": TURN.tolist(), "translation": (-SHIFT).tolist()},
        {"rotation": (off @ TURN).tolist(), "translation": SHIFT.tolist()},
        {"rotation": TURN.T.tolist(), "translation": (-TURN.T @ SHIFT).tolist()},
    ]
    assert call("CheckMotion", [render(), second()], motions=[*wrong, POSE], cameras=[CAMERA]).values["best"] == 3
    assert call("CheckMotion", [second(), render()], motions=[*wrong, POSE], cameras=[CAMERA]).values["best"] == 2


@checks("CheckHomography", "WarpImage")
def check_warp() -> None:
    first = render()
    warped = view(cv2.warpPerspective(first.image, H, (WIDTH, HEIGHT)))
    others = [np.linalg.inv(H), np.diag([1.0, 1, 1]), H @ np.array([[1, 0, -28], [0, 1, 18], [0, 0, 1.0]])]
    matrices = [each.tolist() for each in (*others, H)]
    told = call("CheckHomography", [first, warped], matrices=matrices).values
    assert told["best"] == 3
    assert told["corner_errors_px"][3] < 1 < min(told["corner_errors_px"][:3])
    assert told["correlations"][3] > 0.97 > 0.8 > max(told["correlations"][:3])
    assert call("CheckHomography", [warped, first], matrices=matrices).values["best"] == 0
    made = call("WarpImage", [first, warped], matrix=H.tolist())
    assert made.values["correlation"] > 0.97
    shown = decode(made.images[0]).astype(float)
    covered = cv2.erode((warped.image.sum(axis=2) > 0).astype(np.uint8), np.ones((9, 9), np.uint8)) > 0
    assert np.abs(shown - warped.image)[covered].mean() < 10
    moved = call("WarpImage", [first], matrix=[[1, 0, 20], [0, 1, 10], [0, 0, 1]]).images[0]
    assert np.abs(decode(moved)[10:, 20:].astype(float) - first.image[:-10, :-20]).mean() < 10


@checks("FindCrop")
def check_crop_place() -> None:
    whole = render().image
    part = view(cv2.resize(whole[80:200, 250:410], (320, 240)))
    told = call("FindCrop", [view(whole), part]).values
    assert told["bbox"] == pytest.approx([250, 80, 409, 199], abs=told["sigma_px"])
    told = call("FindCrop", [view(mirror(whole)), view(mirror(part.image))]).values
    assert told["bbox"] == pytest.approx([WIDTH - 410, 80, WIDTH - 251, 199], abs=told["sigma_px"])


def draw_room(pitch_deg: float, roll_deg: float, focal: float = 520.0) -> Image:
    """Lines along the three directions of a room, seen by a camera that looks up and is turned clockwise."""
    size = (640, 480)
    canvas = np.full((size[1], size[0], 3), 128, np.uint8)
    rng = np.random.default_rng(3)
    level = Rotation.from_euler("y", 32, degrees=True).as_matrix()
    camera_from_room = (
        Rotation.from_euler("z", -roll_deg, degrees=True).as_matrix()
        @ Rotation.from_euler("x", -pitch_deg, degrees=True).as_matrix()
        @ level
    )
    for place in range(150):
        axis = np.eye(3)[place % 3]
        ends = rng.uniform([-2.5, -2, -2.5], [2.5, 2, 2.5]) + np.outer([0, 1.2], axis)
        seen = ends @ camera_from_room.T + [0, 0, 6.0]
        uv = np.round(8 * (seen[:, :2] / seen[:, 2:] * focal + [319.5, 239.5])).astype(int)
        cv2.line(canvas, uv[0].tolist(), uv[1].tolist(), rng.integers(0, 255, 3).tolist(), 2, cv2.LINE_AA, 3)
    return Image(encode_jpeg(canvas))


@checks("EstimateVanishingPoints")
def check_vanishing_points() -> None:
    camera = {"fx": 520.0, "fy": 520.0, "cx": 319.5, "cy": 239.5}
    for pitch, roll in ((12.0, 0.0), (-9.0, 7.0), (5.0, -8.0)):
        told = call("EstimateVanishingPoints", [draw_room(pitch, roll)], camera=camera).values
        assert told["pitch_deg"] == pytest.approx(pitch, abs=0.7)
        assert told["roll_deg"] == pytest.approx(roll, abs=0.7)
        axes = np.array([each["direction"] for each in told["directions"]])
        assert axes @ axes.T == pytest.approx(np.eye(3), abs=1e-3)
        for each in told["directions"]:
            if each["vanishing_point"] is not None:
                ray = np.array([*(np.array(each["vanishing_point"]) - (319.5, 239.5)) / 520, 1])
                assert min(angle(ray, each["direction"]), angle(-ray, each["direction"])) < 0.3
    flipped = view(mirror(draw_room(-9, 7).read_whole()))
    told = call("EstimateVanishingPoints", [flipped], camera=camera).values
    assert (told["pitch_deg"], told["roll_deg"]) == pytest.approx((-9, -7), abs=0.7)


@checks("EstimateCameraFromVanishingPoints")
def check_camera() -> None:
    for focal in (450.0, 700.0):
        told = call("EstimateCameraFromVanishingPoints", [draw_room(10, 3, focal)]).values
        assert told["focal_px"] == pytest.approx(focal, rel=0.03)
        assert told["hfov_deg"] == pytest.approx(2 * np.degrees(np.arctan(320 / focal)), rel=0.03)
    half = view(cv2.resize(draw_room(10, 3, 700).read_whole(), (320, 240), interpolation=cv2.INTER_AREA))
    told = call("EstimateCameraFromVanishingPoints", [half]).values
    assert told["focal_px"] == pytest.approx(350, rel=0.04)
    cut = view(np.ascontiguousarray(draw_room(10, 3, 520).read_whole()[:, 60:]))
    given = {"focal_px": 520.0, "centre_is_middle": False}
    told = call("EstimateCameraFromVanishingPoints", [cut], **given).values
    assert told["principal_point"] == pytest.approx([259.5, 239.5], abs=15)


@checks("ComposePoses")
def check_poses() -> None:
    told = call("ComposePoses", poses=[POSE, POSE], invert=[False, True]).values
    assert told["rotation_deg"] < 1e-3
    assert told["distance"] == pytest.approx(0, abs=1e-5)
    there, back = (call("ComposePoses", poses=[POSE], invert=[invert]).values for invert in (False, True))
    assert back["translation"] == pytest.approx((-TURN.T @ SHIFT).tolist(), abs=1e-5)
    assert there["second_camera_in_first"] == pytest.approx(back["translation"], abs=1e-5)
    for axis, name in (("y", "yaw_deg"), ("x", "pitch_deg"), ("z", "roll_deg")):
        # X2 = R X1: the camera turns to the right, up and clockwise where the world turns the other way.
        R = Rotation.from_euler(axis, -20, degrees=True).as_matrix()
        told = call("ComposePoses", poses=[{"rotation": R.tolist()}]).values
        assert told[name] == pytest.approx(20, abs=1e-3)
    first = {"translation": [1.0, 0, 0]}
    then = {"rotation": Rotation.from_euler("z", 90, degrees=True).as_matrix().round(6).tolist()}
    told = call("ComposePoses", poses=[first, then]).values
    assert told["translation"] == pytest.approx([0, 1, 0], abs=1e-5)


@checks("TransformPoints", "BackProjectPixels", "Measure3DDistance")
def check_points() -> None:
    pixels, depths = np.array([[100.0, 150], [300, 200], [400, 60]]), [3.0, 2.0, 4.0]
    asked = {"pixels": pixels.tolist(), "depths": depths, "camera": CAMERA}
    points = np.array(call("BackProjectPixels", **asked).values["points"])
    rays = np.column_stack([(pixels - K[:2, 2]) / 420, np.ones(3)])
    assert points == pytest.approx(rays * np.array(depths)[:, None], abs=1e-5)
    told = call("TransformPoints", points=points.tolist(), camera=CAMERA).values
    assert np.array(told["pixels"]) == pytest.approx(pixels, abs=0.01)
    moved = call("TransformPoints", points=points.tolist(), pose=POSE).values
    assert np.array(moved["points"]) == pytest.approx(points @ TURN.T + SHIFT, abs=1e-5)
    assert np.array(moved["distances"]) == pytest.approx(np.array(told["distances"]), abs=1e-4)
    home = call("TransformPoints", points=moved["points"], pose=POSE, inverse=True).values
    assert np.array(home["points"]) == pytest.approx(points, abs=1e-5)
    between = call("Measure3DDistance", pixels=pixels[:2].tolist(), depths=depths[:2], camera=CAMERA).values
    assert between["distance"] == pytest.approx(np.linalg.norm(points[1] - points[0]), abs=1e-5)
    assert between["vector"] == pytest.approx((points[1] - points[0]).tolist(), abs=1e-5)
    twice = {"fx": 840.0, "fy": 840.0, "cx": 479.5, "cy": 359.5}  # the same camera, the image twice as large
    large = call("Measure3DDistance", pixels=(2 * pixels[:2] + 0.5).tolist(), depths=depths[:2], camera=twice).values
    assert large["distance"] == pytest.approx(between["distance"])
    right = call("TransformPoints", points=[[0, 0, 2], [1, 0, 0], [0, 0, -1]], camera=CAMERA).values
    assert right["angles_deg"][0] == pytest.approx([0, 90, 180])
    assert right["pixels"] == [[239.5, 179.5], None, None]


@checks("MakeBox")
def check_box() -> None:
    told = call("MakeBox", center=[0.5, 0.2, 4], size=[1, 2, 3], camera=CAMERA).values
    corners = np.array(told["corners"])
    assert corners[0] == pytest.approx([0, -0.8, 2.5])
    assert corners[6] == pytest.approx([1, 1.2, 5.5])
    assert told["rect_px"] == pytest.approx([239.5, 179.5 - 0.8 * 168, 239.5 + 168, 179.5 + 1.2 * 168], abs=0.01)
    turned_ = np.array(call("MakeBox", center=[0.5, 0.2, 4], size=[1, 2, 3], yaw_deg=90).values["corners"])
    assert turned_[4] - turned_[0] == pytest.approx([3, 0, 0], abs=1e-5)  # z goes to x
    mirrored = np.array(call("MakeBox", center=[-0.5, 0.2, 4], size=[1, 2, 3], yaw_deg=-30).values["corners"])
    plain = np.array(call("MakeBox", center=[0.5, 0.2, 4], size=[1, 2, 3], yaw_deg=30).values["corners"])
    assert sorted((mirrored * [-1, 1, 1]).round(4).tolist()) == pytest.approx(np.array(sorted(plain.round(4).tolist())))


@checks("FitPlane")
def check_plane() -> None:
    u, v = np.meshgrid(np.arange(40, 440, 40), np.arange(20, 100, 20))
    normal = np.array([0.3, -0.2, -0.93])
    normal /= np.linalg.norm(normal)
    rays = np.column_stack([(u.ravel() - 239.5) / 420, (v.ravel() - 179.5) / 420, np.ones(u.size)])
    z = -2.0 / (rays @ normal)
    pixels = np.column_stack([u.ravel(), v.ravel()]).astype(float)
    z[3] *= 2  # one wrong depth
    asked: dict[str, Any] = {"pixels": pixels.tolist(), "depths": z.tolist(), "camera": CAMERA}
    told = call("FitPlane", **asked).values
    assert angle(told["normal"], normal) < 0.5
    assert told["distance"] == pytest.approx(2, rel=0.01)
    assert told["inliers_count"] == len(z) - 1
    flipped = np.column_stack([WIDTH - 1 - pixels[:, 0], pixels[:, 1]]).tolist()
    assert angle(call("FitPlane", **(asked | {"pixels": flipped})).values["normal"], normal * [-1, 1, 1]) < 0.5
    assert call("FitPlane", **(asked | {"depths": (3 * z).tolist()})).values["distance"] == pytest.approx(6, rel=0.01)


def mark(image: Any) -> tuple[float, float]:
    """(u, v) of the middle of the bright square."""
    v, u = np.nonzero(image[..., 0] > 150)
    return float(u.mean()), float(v.mean())


@checks("Crop", "Zoom", "Draw")
def check_pictures() -> None:
    image = np.zeros((120, 200, 3), np.uint8)
    image[30:35, 150:157] = 255
    cut = call("Crop", [view(image)], bbox=[0.5, 0.0, 1.0, 0.5])
    left, top = cut.values["rect_px"][:2]
    u, v = mark(decode(cut.images[0]))
    assert (u + left, v + top) == pytest.approx((153, 32), abs=0.5)
    zoomed = call("Zoom", [view(image)], bbox=[140, 20, 179, 49], factor=4)
    left, top = zoomed.values["rect_px"][:2]
    along, down = zoomed.values["factor"]
    u, v = mark(decode(zoomed.images[0]))
    assert (left - 0.5 + (u + 0.5) / along, top - 0.5 + (v + 0.5) / down) == pytest.approx((153, 32), abs=0.3)
    blank = view(np.zeros((120, 200, 3), np.uint8))
    for drawn in ({"boxes": [[140, 20, 160, 40]]}, {"lines": [[[140, 20], [160, 40]]]}):
        shown = decode(call("Draw", [blank], **drawn).images[0])
        v_, u_ = np.nonzero(shown[..., 0] > 90)
        assert (u_.max(), v_.max()) == pytest.approx((160, 40), abs=2)
    ringed = decode(call("Draw", [blank], points=[[60, 90]]).images[0])
    assert ringed[88:93, 52:60, 0].max() > 90
    assert ringed[:40].max() < 60


@checks("Calculate")
def check_arithmetic() -> None:
    assert call("Calculate", expression="degrees(atan2(1, -1))").values["result"] == pytest.approx(135)
    assert call("Calculate", expression="-2**2 + 7 % 3").values["result"] == -3


@pytest.mark.parametrize("name", sorted(CHECKS))
def test_tool_follows_its_axes(name: str) -> None:
    CHECKS[name]()


def test_every_tool_that_runs_here_has_axis_checks() -> None:
    here = {name for name in tools.names() if tools[name].tier in ("utility", "classical") and not tools[name].by_core}
    assert here == set(CHECKS)


HOSTILE: dict[str, list[dict[str, Any]]] = {
    "Calculate": [{"expression": "9**9**9"}, {"expression": "().__class__"}, {"expression": "1/0"}],
    "Crop": [{"bbox": [0.5, 0.5, 0.5, 0.5]}, {"bbox": [1, 1, 0, 0]}, {"bbox": [0, 0, 1, 1]}],
    "Zoom": [{"bbox": [-1e6, -1e6, 1e6, 1e6], "factor": 16}, {"bbox": [5, 5, -5, -5]}],
    "Draw": [{}, {"points": [[1e6, -1e6]], "boxes": [[-1e6, -1e6, 1e6, 1e6]], "lines": [[[-1e6, 0], [1e6, 1e6]]]}],
    "WarpImage": [{"matrix": m} for m in ([[0] * 3] * 3, [[1e300] * 3] * 3, [[0, 0, 1], [0, 1, 0], [1, 0, 0]])],
    "CheckHomography": [{"matrices": [[[x, 0, y], [0, x, 0], [0, 0, 1]]]} for x, y in ((1e-9, 0), (1, 1e9))],
    "CheckMotion": [{"motions": [{}]}, {"motions": [{"rotation": [[0] * 3] * 3}]}],
    "EpipolarLine": [{"point": [1e6, -1e6]}, {"point": [0, 0], "pose": {}}, {"point": [0, 0], "pose": POSE}],
    "TriangulatePoints": [
        {"pixels_first": [[0, 0]], "pixels_second": [[0, 0]]},
        {"pixels_first": [[0, 0]], "pixels_second": [[1e6, 1e6]], "pose": POSE, "cameras": [CAMERA]},
        {"pixels_first": [[0, 0]], "pixels_second": [[0, 0], [1, 1]], "pose": POSE, "cameras": [CAMERA]},
    ],
    "TrackPoint": [{"point": [0, 0]}, {"point": [1e6, 0]}, {"point": [0, 0], "candidates": [[1e6, 1e6], [-1e6, 0]]}],
    "EstimateVanishingPoints": [{}, {"camera": {"fx": 1e-9, "fy": 1e6, "cx": 1e6, "cy": -1e6}}],
    "EstimateCameraFromVanishingPoints": [{}, {"focal_px": 1e-9, "centre_is_middle": False}],
    "ComposePoses": [{"poses": [{}], "invert": [True, True]}, {"poses": [{"rotation": [[1, 1, 1]] * 3}]}],
    "TransformPoints": [{"points": [[0, 0, 0]]}, {"points": [[1e6, 1e6, -1e6]], "camera": CAMERA}],
    "BackProjectPixels": [{"pixels": [[1e6, 1e6]], "depths": [1e6, 1], "camera": CAMERA}],
    "Measure3DDistance": [{"pixels": [[0, 0], [0, 0]], "depths": [1, 1], "camera": CAMERA}],
    "MakeBox": [{"center": [0, 0, 0], "size": [1e6, 1, 1], "up": up} for up in ([0, 0, 0], [0, 0, 1])],
    "FitPlane": [{"pixels": [[0, 0]] * 3, "depths": [1, 1, 1], "camera": CAMERA}],
    "EstimateOpticalFlow": [{}],
    "EstimateOpticalFlowOfficial": [{}],
    "EstimateRelativePose": [{}, {"cameras": [{"fx": 1e-6, "fy": 1e6, "cx": 1e6, "cy": 0}]}],
    "EstimateRotation": [{}, {"cameras": [{"fx": 1e-6, "fy": 1e6, "cx": 1e6, "cy": 0}]}],
    "EstimateHomographyMatrix": [{"num_keypoints": 10, "ratio_th": 1.0}],
    "MatchImagesSIFT": [{"num_keypoints": 20000, "ratio_th": 1.0}],
    "FindCrop": [{}],
}
PICTURES = {
    "one pixel": np.zeros((1, 1, 3), np.uint8),
    "a line": np.zeros((2, 300, 3), np.uint8),
    "flat": np.full((90, 120, 3), 128, np.uint8),
    "noise": np.random.default_rng(2).integers(0, 255, (90, 120, 3), dtype=np.uint8),
}


@pytest.mark.parametrize("picture", sorted(PICTURES))
@pytest.mark.parametrize("name", sorted(CHECKS))
def test_hostile_calls_end_in_a_line(name: str, picture: str) -> None:
    images = 0
    if "image" in tools[name].Arguments.model_fields:
        images = 1 if tools[name].Arguments.model_fields["image"].annotation is str else 2
    for arguments in HOSTILE[name]:
        try:
            made = call(name, [view(PICTURES[picture])] * images, **arguments)
        except VGBenchError:
            continue
        assert len(json.dumps(made.values)) < 20_000


@pytest.mark.parametrize("name", sorted(CHECKS))
def test_arguments_are_bounded(name: str) -> None:
    example = dict(tools[name].example)
    tools[name].Arguments.model_validate_json(json.dumps(example))
    for field, value in example.items():
        wrong: list[Any] = (
            [value * 20_000] if isinstance(value, list | str) and field not in ("image", "invert") else []
        )
        if isinstance(value, int | float) and not isinstance(value, bool):
            wrong = [float("nan"), float("inf"), 1e300]
        for each in wrong:
            with pytest.raises(ValueError, match=field):
                tools[name].Arguments.model_validate_json(json.dumps(example | {field: each}))
