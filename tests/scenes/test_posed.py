"""Recordings of pictures and tables of poses: the rendered room in each layout, and in folders of one's own."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import cv2
import numpy as np
import numpy.typing as npt
import pytest
from PIL import Image
from scipy.spatial.transform import Rotation

from tests.scene_factory import RoomScene
from tests.scenes import wildrgbd_writer
from tests.scenes.posed_writer import make_room, stored_poses, to_quaternion_row, write_own, write_pictures
from vgbench_gen.cli.main import main
from vgbench_gen.core.errors import SceneError
from vgbench_gen.core.types import FloatArray
from vgbench_gen.geometry.cameras import resize_camera
from vgbench_gen.publish.licences import OWN, make_gate
from vgbench_gen.scenes import discover
from vgbench_gen.scenes.base import Scene, loaders
from vgbench_gen.scenes.health import summarise_health
from vgbench_gen.scenes.opening import open_scene
from vgbench_gen.scenes.posed.guess import guess_layout
from vgbench_gen.scenes.posed.layout import list_layouts
from vgbench_gen.scenes.readings import Reading, measure_ray_lengths


@pytest.fixture(scope="module")
def room() -> RoomScene:
    return make_room()


def open_one(root: Path) -> Scene:
    (ref,) = [ref for ref in discover(root) if ref.dataset == "posed"]
    return open_scene(ref)


def check(scene: Scene, room: RoomScene, turned: FloatArray | None = None, step_m: float = 0.001) -> None:
    """See that a scene has the poses, K, depth and color of the room; turned: world of the scene from the room's."""
    with scene:
        assert len(scene.frames) == len(room.frames)
        for frame, truth in zip(scene.frames, room.frames, strict=True):
            world_from_camera = truth.world_from_camera if turned is None else turned @ truth.world_from_camera
            np.testing.assert_allclose(frame.world_from_camera, world_from_camera, atol=2e-5)
            np.testing.assert_allclose(frame.camera.K, truth.camera.K, atol=1e-4)
            np.testing.assert_allclose(frame.depth_camera.K, truth.depth_camera.K, atol=1e-4)
            np.testing.assert_allclose(frame.depth_m(), truth.depth_m(), atol=step_m)
        assert np.abs(scene.frames[3].color().astype(int) - room.frames[3].color()).mean() < 2


def write_rows(path: Path, poses: FloatArray, front: Callable[[int], str] = str) -> None:
    path.write_text("# a comment\n" + "".join(
        f"{front(i)} {' '.join(map(repr, to_quaternion_row(pose)))}\n" for i, pose in enumerate(poses)))  # fmt: skip


def read_steps(path: Path) -> npt.NDArray[np.uint16]:
    return np.asarray(cv2.imread(str(path), cv2.IMREAD_UNCHANGED), np.uint16)


def numbers(room: RoomScene) -> list[float]:
    camera = room.frames[0].camera
    return [camera.fx, camera.fy, camera.cx, camera.cy]


def write_tum(root: Path, room: RoomScene) -> None:
    """Depth 7 ms after color; poses at 100 Hz between which those of the frames lie; a camera of the owner's own."""
    folder = root / "my_desk"
    write_pictures(folder, room, "rgb/{}.png", "depth/{}.png", 5000)
    for kind, late in (("rgb", 0.0), ("depth", 0.007)):
        for number in range(len(room.frames)):
            (folder / kind / f"{number}.png").rename(folder / kind / f"{1700000000.1 + number / 3 + late:.6f}.png")
        (folder / f"{kind}.txt").write_text("# color\n")
    rows = []
    for number, pose in enumerate(stored_poses(room)):
        rows += [(1700000000.1 + number / 3 + late, np.eye(4) if late else pose) for late in (-0.01, 0.0009, 0.01)]
        rows[-2] = (rows[-2][0], pose)
    lines = (f"{time:.6f} {' '.join(map(repr, to_quaternion_row(pose)))}" for time, pose in rows)
    (folder / "groundtruth.txt").write_text("# timestamp tx ty tz qx qy qz qw\n" + "\n".join(lines))
    (folder / "posed.toml").write_text(f'layout = "tum"\ncamera = {numbers(room)}\n')


def write_icl(root: Path, room: RoomScene) -> None:
    write_pictures(root / "living", room, "rgb/{}.png", "depth/{}.png", 5000)
    write_rows(root / "living" / "livingRoom0.gt.freiburg", stored_poses(room, Reading(axes="mirrored")))
    fx, fy, cx, cy = numbers(room)
    (root / "living" / "posed.toml").write_text(
        f'layout = "icl-nuim"\ncamera = [{fx}, {-fy}, {cx}, {cy}]\nup = [0, 0, 1]\n'
    )


def write_seven(root: Path, room: RoomScene) -> None:
    folder = root / "office" / "seq-03"
    write_pictures(folder, room, "frame-{:06d}.color.png", "frame-{:06d}.depth.png")
    for number, pose in enumerate(stored_poses(room)):
        rows = "\n".join("\t".join(f"{value:.7e}" for value in row) for row in pose)
        (folder / f"frame-{number:06d}.pose.txt").write_text(rows)
    fx, fy, cx, cy = numbers(room)
    (root / "office" / "camera-intrinsics.txt").write_text(f"{fx} 0 {cx}\n0 {fy} {cy}\n0 0 1\n")


def write_replica(root: Path, room: RoomScene) -> None:
    """Every second frame was copied, with the whole file of poses."""
    folder = root / "office9"
    write_pictures(folder, room, "results/frame{:06d}.png", "results/depth{:06d}.png", 6553.5)
    for kind in ("frame", "depth"):
        for number in reversed(range(len(room.frames))):
            (folder / f"results/{kind}{number:06d}.png").rename(folder / f"results/{kind}{2 * number:06d}.png")
    poses = stored_poses(room)
    between = np.tile(np.eye(4), (len(poses), 1, 1))
    rows = np.stack([poses, between], axis=1).reshape(-1, 16)
    np.savetxt(folder / "traj.txt", rows)
    fx, fy, cx, cy = numbers(room)
    camera = {"w": 160, "h": 120, "fx": fx, "fy": fy, "cx": cx, "cy": cy, "scale": 6553.5}
    (root / "cam_params.json").write_text(json.dumps({"camera": camera}))


def write_open3d(root: Path, room: RoomScene) -> None:
    folder = root / "fragment"
    write_pictures(folder, room, "image/{:05d}.png", "depth/{:05d}.png")
    blocks = []
    for i, pose in enumerate(stored_poses(room)):
        blocks += [f"{i} {i} {i + 1}", *(" ".join(map(repr, row.tolist())) for row in pose)]
    (folder / "scene").mkdir()
    (folder / "scene" / "trajectory.log").write_text("\n".join(blocks) + "\n")
    fx, fy, cx, cy = numbers(room)
    matrix = [fx, 0, 0, 0, fy, 0, cx, cy, 1]
    (folder / "camera_intrinsic.json").write_text(json.dumps({"width": 160, "height": 120, "intrinsic_matrix": matrix}))


def write_rtabmap(root: Path, room: RoomScene) -> None:
    folder = root / "house"
    write_pictures(folder, room, "m_rgb/{}.png", "m_depth/{}.png")
    fx, fy, cx, cy = numbers(room)
    (folder / "m_calib").mkdir()
    rows = []
    for number, pose in enumerate(stored_poses(room)):
        rows.append(f"{100 + number}.5 {' '.join(map(repr, to_quaternion_row(pose)))} {number}")
        matrix = f"camera_matrix:\n   rows: 3\n   cols: 3\n   data: [ {fx}, 0., {cx}, 0., {fy}, {cy}, 0., 0., 1. ]\n"
        distortion = "distortion_coefficients:\n   rows: 1\n   cols: 5\n   data: [ 0., 0., 0., 0., 0. ]\n"
        text = f"%YAML:1.0\n---\nimage_width: 160\nimage_height: 120\n{matrix}{distortion}"
        (folder / "m_calib" / f"{number}.yaml").write_text(text)
    (folder / "m_camera_poses.txt").write_text("#timestamp x y z qx qy qz qw id\n" + "\n".join(rows[::-1]))


def write_transforms(root: Path, room: RoomScene) -> None:
    folder = root / "nerf"
    write_pictures(folder, room, "images/frame_{:05d}.png", "depths/frame_{:05d}.png")
    fx, fy, cx, cy = numbers(room)
    poses = stored_poses(room, Reading(axes="OpenGL"))
    frames = [
        {"file_path": f"images/frame_{i:05d}.png", "depth_file_path": f"depths/frame_{i:05d}.png",
         "transform_matrix": pose.tolist(), **({"fl_x": fx} if i % 2 else {})}
        for i, pose in enumerate(poses)
    ]  # fmt: skip
    shared = {"fl_x": fx, "fl_y": fy, "cx": cx + 0.5, "cy": cy + 0.5, "w": 160, "h": 120}
    (folder / "transforms.json").write_text(json.dumps(shared | {"frames": frames}))


def write_nerfcapture(root: Path, room: RoomScene) -> None:
    folder = root / "capture2"
    write_pictures(folder, room, "images/{}.png", "images/{}.depth.png", 65535 / 10)
    fx, fy, cx, cy = numbers(room)
    poses = stored_poses(room, Reading(axes="OpenGL"))
    frames = [
        {"file_path": f"images/{i}", "depth_path": f"images/{i}.depth.png", "transform_matrix": pose.tolist()}
        | {"fl_x": fx, "fl_y": fy, "cx": cx, "cy": cy, "w": 160, "h": 120}
        for i, pose in enumerate(poses)
    ]
    text = json.dumps({"integer_depth_scale": 10 / 65535, "frames": frames})
    (folder / "transforms.json").write_text(text)


def write_polycam(root: Path, room: RoomScene) -> None:
    """Corrected cameras of all keyframes; those of the device stand elsewhere."""
    folder = root / "poly" / "keyframes"
    write_pictures(folder, room, "corrected_images/{}.png", "depth/{}.png")
    write_pictures(folder, room, "images/{}.png", "confidence/{}.png")
    fx, fy, cx, cy = numbers(room)
    for number, pose in enumerate(stored_poses(room, Reading(axes="OpenGL"))):
        for kind, shift in (("cameras", 0.3), ("corrected_cameras", 0.0)):
            values = {
                f"t_{row}{column}": pose[row, column] + shift * (column == 3) for row in range(3) for column in range(4)
            }
            values |= {"fx": fx, "fy": fy, "cx": cx, "cy": cy, "width": 160, "height": 120}
            (folder / kind).mkdir(exist_ok=True)
            (folder / kind / f"{number}.json").write_text(json.dumps(values))
        cv2.imwrite(str(folder / f"confidence/{number}.png"), np.full((60, 80), 255, np.uint8))
    (root / "poly" / "mesh_info.json").write_text("{}")


WRITERS = {
    "tum": write_tum,
    "icl-nuim": write_icl,
    "3dmatch": write_seven,
    "replica": write_replica,
    "open3d": write_open3d,
    "rtabmap-export": write_rtabmap,
    "nerfstudio": write_transforms,
    "nerfcapture": write_nerfcapture,
    "polycam": write_polycam,
}


@pytest.mark.parametrize("layout", WRITERS)
def test_each_layout_has_the_truth_of_the_room(tmp_path: Path, room: RoomScene, layout: str) -> None:
    WRITERS[layout](tmp_path, room)
    scene = open_one(tmp_path)
    health = summarise_health(scene)
    assert health.verdict in ("ok", "warn: up lies along the view on average; gravity or pose axes may be wrong")
    frames = scene.frames
    if layout in ("nerfcapture", "polycam"):  # a phone's world has y up, the room z: its pictures are turned back
        scene.frames = [getattr(frame, "_frame", frame) for frame in frames]
    check(scene, room)


def test_a_folder_of_ones_own(tmp_path: Path, room: RoomScene) -> None:
    """Renamed pictures, depth as TIFF of meters, wxyz quaternions in a table, and a reading that nobody states."""
    true = Reading("world to camera", "ROS body")
    folder = tmp_path / "kitchen"
    write_pictures(folder, room, "cam/left_{:03d}_a.png", "cam/z_{:03d}_a.png")
    for number, frame in enumerate(room.frames):
        Image.fromarray(frame.depth_m()).save(folder / f"cam/z_{number:03d}_a.tiff")
        (folder / f"cam/z_{number:03d}_a.png").unlink()
    rows = []
    for number, pose in enumerate(stored_poses(room, true)):
        x, y, z, w = Rotation.from_matrix(pose[:3, :3]).as_quat()
        rows.append(",".join(map(str, [f"left_{number:03d}_a.png", *pose[:3, 3], w, x, y, z])))
    header = "image,pos_x [m],pos_y [m],pos_z [m],quat_w,quat_x,quat_y,quat_z"
    (folder / "camera_path.csv").write_text("\n".join([header, *rows[::-1]]))
    (folder / "posed.toml").write_text(
        'color = "cam/left_*"\ndepth = "cam/z_*"\ndepth_per_meter = 1\nposes = "camera_path.csv"\n'
        f'axes = "find"\ncamera = {numbers(room)}\n'
    )
    text = (folder / "posed.toml").read_text()
    for columns in ("", 'pose_columns = "name x y z qx qy qz qw"\n'):  # of which the second is wrong, and found out
        (folder / "posed.toml").write_text(text + columns)
        scene = open_one(tmp_path)
        assert scene.reading == true
        assert scene.quaternions == "wxyz"
        assert scene.pairing == f"{len(room.frames)} poses by name, quaternions wxyz"
        assert summarise_health(scene).verdict == "ok"
        check(scene, room, step_m=1e-5)
    stated = text.replace('"find"', f'"{true.axes}"') + f'direction = "{true.direction}"\n' + columns
    (folder / "posed.toml").write_text(stated)
    verdict = summarise_health(open_one(tmp_path)).verdict
    assert "quaternion in the other order" in verdict
    assert verdict.endswith("; state qw first, or last, among their columns")


def test_what_a_folder_would_need_is_printed(
    tmp_path: Path, room: RoomScene, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = write_own(tmp_path / "mine", room)
    (folder / "posed.toml").unlink()
    assert main(["scenes", str(tmp_path)]) == 2
    captured = capsys.readouterr()
    text = captured.out.partition("put it in the folder to have it read:\n\n")[2]
    fx, fy, cx, cy = numbers(room)
    assert "camera = [0, 0, 0, 0]" in text
    (folder / "posed.toml").write_text(text.replace("[0, 0, 0, 0]", f"[{fx}, {fy}, {cx}, {cy}]"))
    assert main(["scenes", str(tmp_path), "--pictures", str(tmp_path / "see")]) == 0
    told = capsys.readouterr().out
    assert "ok\n  read as a folder with posed.toml; camera to world, OpenCV: " in told
    assert "-> 12 kinds of question" in told
    assert (tmp_path / "see" / "posed" / "mine.png").stat().st_size > 1000
    check(open_one(tmp_path), room)


@pytest.mark.parametrize(("suffix", "kind", "per_meter"), [
    (".tiff", np.float32, 1), (".tiff", np.uint16, 1000), (".npy", np.float64, 1), (".npy", np.uint16, 1000),
])  # fmt: skip
def test_the_unit_that_is_guessed_is_that_of_the_numbers(
    tmp_path: Path, room: RoomScene, suffix: str, kind: type[np.generic], per_meter: int
) -> None:
    folder = write_own(tmp_path / "mine", room)
    for number, frame in enumerate(room.frames):
        stored = np.asarray(frame.depth_m() * per_meter).astype(kind)
        path = folder / f"depth/{number:06d}{suffix}"
        np.save(path, stored) if suffix == ".npy" else Image.fromarray(stored).save(path)
        path.with_suffix(".png").unlink()
    assert f"depth_per_meter = {per_meter} " in guess_layout(folder)


@pytest.mark.parametrize(
    "true",
    [Reading(axes="OpenGL"), Reading("world to camera"), Reading(axes="turned left"), Reading(axes="ROS body")],
    ids=str,
)
def test_a_stated_reading_that_is_wrong_is_refused(tmp_path: Path, room: RoomScene, true: Reading) -> None:
    for columns in ({}, {"up": "[0, 0, 1]"}):  # by which pictures are turned, as if the poses were right
        write_own(tmp_path / "mine", room, true, **columns)
        with open_one(tmp_path) as scene:
            health = summarise_health(scene)
        assert health.verdict.startswith(f"bad: the poses are {true} (")
    lines = {"direction": f'"{true.direction}"', "axes": f'"{true.axes}"'}
    write_own(tmp_path / "mine", room, true, **lines)
    check(open_one(tmp_path), room)


def test_three_frames_that_hardly_move_are_refused(tmp_path: Path, room: RoomScene) -> None:
    few = make_room()
    few.frames = [few.frames[2]] * 3
    write_own(tmp_path / "mine", few)
    with open_one(tmp_path) as scene:
        assert "bad: No two frames turn by 3 to 30 degrees" in summarise_health(scene).verdict
    write_own(tmp_path / "mine", few, axes='"find"')
    with pytest.raises(SceneError, match="no reading is clearly right"):
        open_one(tmp_path)


@pytest.mark.parametrize(
    ("columns", "found"),
    [
        ({"camera": "[100, 100, 8, 8]"}, "a principal point near the middle"),
        ({"camera": "[100, 100]"}, "found 2 numbers; expected fx, fy, cx, cy"),
        ({"camera": ""}, "no intrinsics of the camera"),
        ({"poses": '"absent.csv"'}, "no file absent.csv; expected the poses of the camera"),
        ({"poses": '""'}, "A recording without poses needs a SLAM or COLMAP run first"),
        ({"poses": '"../../etc/passwd"'}, "a place below the folder, or one level above"),
        ({"color": '"/etc/*"'}, "a place below the folder, or one level above"),
        ({"color": '"nothing/*"'}, "no picture nothing/*; expected pictures of color"),
        ({"colour": '"rgb/*"'}, "found an unknown key 'colour'. Did you mean color?"),
        ({"axes": '"opencv"'}, "expected 'OpenCV', 'OpenGL'"),
        ({"layout": '"tumm"'}, "found 'tumm'; expected one of tum"),
        ({"reader": '"os"'}, "reader 'os'; expected one of"),
        ({"depth_per_meter": "0"}, "expected greater than 0"),
    ],
)
def test_what_a_posed_toml_says_wrongly_is_named(
    tmp_path: Path, room: RoomScene, columns: dict[str, str], found: str
) -> None:
    write_own(tmp_path / "mine", room, **columns)
    with pytest.raises(SceneError) as raised:
        open_one(tmp_path)
    assert found in str(raised.value)


def test_a_bad_frame_costs_itself_alone(tmp_path: Path, room: RoomScene) -> None:
    folder = write_own(tmp_path / "mine", room)
    (folder / "depth" / "000002.png").unlink()
    lines = (folder / "poses.csv").read_text().splitlines()
    lines[5] = lines[5].replace(",", ",nan,", 1)
    lines[6] = "5,1,2,3,9,9,9,9"
    lines[7] = "6,1"
    (folder / "poses.csv").write_text("\n".join(lines))
    with open_one(tmp_path) as scene:
        assert len(scene.frames) == len(room.frames) - 4
        reasons = [issue.reason for issue in scene.issues]
    assert sorted(reasons) == ["bad_pose"] * 2 + ["incomplete"] + ["pose_line_unusable"] + ["pose_missing"] * 3


def test_unknown_and_unsure_depth_is_zero(tmp_path: Path, room: RoomScene) -> None:
    folder = write_own(tmp_path / "mine", room, confidence='"conf/*"', confidence_min="2")
    (folder / "conf").mkdir()
    for number in range(len(room.frames)):
        picture = read_steps(folder / f"depth/{number:06d}.png")
        picture[:5], picture[5:10] = 0, 65535
        cv2.imwrite(str(folder / f"depth/{number:06d}.png"), picture)
        sure = np.full(picture.shape, 2, np.uint8)
        sure[10:15] = 1
        cv2.imwrite(str(folder / f"conf/{number:06d}.png"), sure)
    with open_one(tmp_path) as scene:
        depth = scene.frames[1].depth_m()
    assert not depth[:15].any()
    assert (depth[15:] > 0).all()


@pytest.mark.parametrize("whose", ["color", "depth"])
def test_depth_is_rendered_into_the_camera_of_color(tmp_path: Path, room: RoomScene, whose: str) -> None:
    """A depth camera beside the color camera: what it measures is carried over."""
    color_from_depth = np.eye(4)
    color_from_depth[:3, 3] = 0.05, 0, 0
    poses = [frame.world_from_camera for frame in room.frames]
    aside = make_room()
    for frame in aside.frames:
        frame.world_from_camera = frame.world_from_camera @ color_from_depth  # world_from_depth
    folder = write_own(tmp_path / "mine", room)
    write_pictures(tmp_path / "aside", aside)
    for number in range(len(room.frames)):
        (tmp_path / "aside" / f"depth/{number:06d}.png").replace(folder / f"depth/{number:06d}.png")
    text = (folder / "posed.toml").read_text() + f"color_from_depth = {color_from_depth[:3].ravel().tolist()}\n"
    (folder / "posed.toml").write_text(text)
    if whose == "depth":
        write_rows(folder / "poses.txt", stored_poses(aside), lambda i: f"{i}")
        text = text.replace("poses.csv", "poses.txt") + 'poses_of = "depth"\npose_columns = "id x y z qx qy qz qw"\n'
        (folder / "posed.toml").write_text(text)
    with open_one(tmp_path) as scene:
        assert np.allclose(scene.frames[4].world_from_camera, poses[4])
        depth, truth = scene.frames[4].depth_m(), room.frames[4].depth_m()
    known = depth > 0
    assert known.mean() > 0.8
    assert np.median(np.abs(depth - truth)[known]) < 0.005


def test_depth_along_the_ray_becomes_z(tmp_path: Path, room: RoomScene) -> None:
    folder = write_own(tmp_path / "mine", room, depth_along='"ray"')
    for number, frame in enumerate(room.frames):
        along = frame.depth_m() * measure_ray_lengths(frame.depth_camera)
        cv2.imwrite(str(folder / f"depth/{number:06d}.png"), np.rint(along * 1000).astype(np.uint16))
    check(open_one(tmp_path), room)


def test_black_borders_of_corrected_pictures_are_hidden(tmp_path: Path, room: RoomScene) -> None:
    write_polycam(tmp_path, room)
    path = tmp_path / "poly" / "keyframes" / "corrected_images" / "4.png"
    picture = np.asarray(cv2.imread(str(path)))
    picture[:, :9] = 0
    picture[50:60, 50:60] = 0  # what is black inside the picture is shown
    cv2.imwrite(str(path), picture)
    with open_one(tmp_path) as scene:
        frames = [getattr(frame, "_frame", frame) for frame in scene.frames]
        mask = frames[4].valid_mask()
        assert mask is not None
        assert not mask[:, :9].any()
        assert mask[:, 9:].mean() > 0.99


def test_depth_of_another_shape_is_refused(tmp_path: Path, room: RoomScene) -> None:
    folder = write_own(tmp_path / "mine", room)
    for path in (folder / "depth").iterdir():
        cv2.imwrite(str(path), np.full((60, 60), 1500, np.uint16))
    with pytest.raises(SceneError, match="60x60 pixels; expected the shape of 160x120"):
        open_one(tmp_path)


def test_a_portrait_phone_is_turned_upright(tmp_path: Path, room: RoomScene) -> None:
    """Pictures that lie on their side: color, depth, K and pose are turned together."""
    from vgbench_gen.geometry.cameras import rotate_camera_by_quarters, rotate_pose_by_quarters

    folder = tmp_path / "mine"
    side = make_room()
    for frame in side.frames:
        frame.world_from_camera = rotate_pose_by_quarters(frame.world_from_camera, 1)
    write_own(folder, side, up="[0, 0, 1]")
    write_pictures(folder, room, turn=lambda picture: np.rot90(picture))
    camera = rotate_camera_by_quarters(room.frames[0].camera, 1)
    text = (
        (folder / "posed.toml")
        .read_text()
        .replace(str(numbers(room)), str([camera.fx, camera.fy, camera.cx, camera.cy]))
    )
    (folder / "posed.toml").write_text(text)
    scene = open_one(tmp_path)
    assert summarise_health(scene).verdict == "ok"
    check(scene, room)


def test_times_are_paired_within_the_gap_and_once(tmp_path: Path, room: RoomScene) -> None:
    from vgbench_gen.scenes.posed.pairing import number_files, pair_files

    colors = {Path(f"{time}.png"): time for time in (1.0, 2.0, 2.01, 3.0)}
    depths = {Path(f"d{time}.png"): time for time in (1.015, 2.006, 3.05)}
    paired = {a.name: b.name for a, b in pair_files(colors, depths, 0.02).items()}
    assert paired == {"1.0.png": "d1.015.png", "2.01.png": "d2.006.png"}
    names = [Path(name) for name in ("a_1700000000123456789_v2.jpg", "a_1700000001123456789_v2.jpg")]
    assert list(number_files(names).values()) == pytest.approx([1700000000.1234567, 1700000001.1234567], abs=1e-6)
    assert list(number_files([Path("b.png"), Path("a.png")])) == [Path("a.png"), Path("b.png")]
    assert list(number_files([Path(f"frame-{n:06d}.color.png") for n in (10, 9)]).values()) == [9, 10]


def test_what_another_loader_takes_is_left_to_it(tmp_path: Path) -> None:
    """Files of a known layout within scans of a dataset are theirs, and nothing is said about them."""
    for number in (0, 1):
        wildrgbd_writer.write_scene(tmp_path, "box", f"scenes_00{number}", 1)
        inner = tmp_path / "box" / "scenes" / f"scenes_00{number}" / "nerfstudio"
        inner.mkdir()
        for path in (inner / "transforms.json", inner.parent / "posed.toml"):
            path.write_text("{}")
    said: list[object] = []
    refs = discover(tmp_path, on_error=lambda *found: said.append(found))
    assert {ref.dataset for ref in refs} == {"wildrgbd"}
    assert len(refs) == 2
    assert not said


def test_layouts_name_what_they_need() -> None:
    for name, layout in list_layouts().items():
        assert layout.title, name
        assert layout.signs or layout.file, name
        if layout.reader == "table":
            assert layout.color, name
            assert layout.depth, name
            assert layout.poses, name
            assert layout.camera or layout.cameras, name


def test_a_matrix_may_stand_column_by_column(tmp_path: Path, room: RoomScene) -> None:
    folder = write_own(tmp_path / "mine", room, poses='"poses.txt"')
    np.savetxt(folder / "poses.txt", np.swapaxes(stored_poses(room), 1, 2).reshape(-1, 16))
    scene = open_one(folder)
    assert scene.pairing.endswith("by order")
    check(scene, room)


def test_a_row_without_a_pose_shifts_no_other(tmp_path: Path, room: RoomScene) -> None:
    folder = write_own(tmp_path / "mine", room, poses='"poses.txt"')
    rows = stored_poses(room).reshape(-1, 16)
    rows[3] = np.nan
    np.savetxt(folder / "poses.txt", rows)
    with open_one(tmp_path) as scene:
        assert [frame.id for frame in scene.frames] == [
            f"{number:06d}" for number in range(len(room.frames)) if number != 3
        ]
        for frame in scene.frames:
            np.testing.assert_allclose(frame.world_from_camera, room.frames[int(frame.id)].world_from_camera, atol=1e-6)


def test_small_depth_has_the_camera_of_color_at_its_size(tmp_path: Path, room: RoomScene) -> None:
    folder = write_own(tmp_path / "mine", room)
    for number in range(len(room.frames)):
        path = folder / f"depth/{number:06d}.png"
        picture = read_steps(path)
        cv2.imwrite(str(path), cv2.resize(picture, (40, 30), interpolation=cv2.INTER_NEAREST))
    with open_one(tmp_path) as scene:
        frame = scene.frames[0]
        np.testing.assert_allclose(frame.depth_camera.K, resize_camera(room.frames[0].camera, 40, 30).K)
        assert frame.depth_m().shape == (30, 40)


def test_the_terms_are_those_of_the_owner(tmp_path: Path, room: RoomScene) -> None:
    write_own(tmp_path / "mine", room)
    with open_one(tmp_path) as scene:
        assert scene.licence == "of-its-owner"
    write_own(tmp_path / "mine", room, licence='"cc-by-4.0"')
    with open_one(tmp_path) as scene:
        assert scene.licence == "cc-by-4.0"
    assert not loaders["posed"].info.may_publish_pixels
    gate = make_gate()
    row = {"benchmark": OWN, "licence": "cc0-1.0"}
    assert not gate.travels(row | {"source": "posed"})  # only whoever publishes it says so
    assert gate.travels(row | {"source": "scannet"})
    assert make_gate(["posed=CC-BY-4.0"]).travels(row | {"source": "posed"})


def test_real_and_written_recordings_of_the_table(recordings: Path) -> None:
    """What the owners of the samples say is right is read and decided."""
    found = {}
    for ref in discover(recordings, datasets=["posed"], on_error=lambda *found: None):
        if list_layouts()[ref.variant].reader in ("table", "transforms", "polycam"):
            with open_scene(ref) as scene:
                found[ref.scene_id] = summarise_health(scene)
    assert {name: str(health.reading) for name, health in found.items()} == {
        "3dmatch/seq-01": "camera to world, OpenCV",
        "nerfcapture": "camera to world, OpenGL",
        "nerfstudio": "camera to world, OpenGL",
        "open3d-testdata": "camera to world, OpenCV",
        "open3d_reconstruction": "camera to world, OpenCV",
        "polycam/capture": "camera to world, OpenGL",
        "rtabmap": "camera to world, OpenCV",
        "tum-fr3-cabinet": "camera to world, OpenCV",
    }
    assert all(health.verdict == "ok" for health in found.values()), found


@pytest.mark.parametrize("name", ["seq-03/frame-000002.pose.txt", "camera-intrinsics.txt"])
def test_other_poses_or_intrinsics_are_another_source(tmp_path: Path, room: RoomScene, name: str) -> None:
    """What was measured of a recording is measured again when a file of one pose, or of intrinsics, changes."""
    write_seven(tmp_path, room)
    path, digests = tmp_path / "office" / name, []
    rows = np.loadtxt(path)
    for change in (0.0, 0.0, 0.5):
        rows[0, -1] += change
        np.savetxt(path, rows)
        with open_one(tmp_path) as scene:
            digests.append(scene.source_digest)
    assert digests[0] == digests[1] != digests[2]
