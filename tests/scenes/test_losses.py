"""Nothing of a scan vanishes silently: what damage to its files takes away is named by file or frame."""

from __future__ import annotations

import hashlib
import re
import shutil
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.scenes import ca1m_writer, scannet_writer, scannetpp_writer, wildrgbd_writer
from vgbench_gen.cli.main import main
from vgbench_gen.core.errors import FrameError, SceneError
from vgbench_gen.scenes import discover
from vgbench_gen.scenes.health import summarise_health
from vgbench_gen.scenes.opening import decode_depth, open_scene

PARTS = [("table", scannet_writer.block((1, 1, 1), (1, 1, 1), 0.2))]
POSES = [scannetpp_writer.look_at((1 + 0.2 * k, 1, 1.5), (4, 4, 0.5)) for k in range(4)]
SAMPLED = 24  # of the cases of one layout; the slow test tries them all


def write_sens(root: Path) -> None:
    folder = scannet_writer.write_sens(root, scannet_writer.Sens(scannet_writer.pictures(4)))
    scannet_writer.write_annotation(folder, PARTS)


def write_exported(root: Path) -> None:
    folder = scannet_writer.scan_folder(root)
    scannet_writer.write_python_export(folder, scannet_writer.pictures(4))
    scannet_writer.write_annotation(folder, PARTS)


def write_flat_export(root: Path) -> None:
    folder = scannet_writer.scan_folder(root)
    scannet_writer.write_cpp_export(folder, scannet_writer.pictures(4))
    scannet_writer.write_annotation(folder, PARTS)


def write_phone(root: Path) -> None:
    phone = scannetpp_writer.Phone(POSES).write(root) / "iphone"
    scannetpp_writer.write_video(phone / "rgb_mask.mkv", [np.repeat(mask(k)[..., None], 3, 2) for k in range(4)])


def write_extracted_phone(root: Path) -> None:
    capture = scannetpp_writer.Phone(POSES)
    phone = capture.write(root, video=False) / "iphone"
    (phone / "depth.bin").unlink()
    for k, depth in enumerate(capture.depths):
        scannetpp_writer.write_picture(phone / f"depth/frame_{k:06d}.png", (depth * 1000).astype(np.uint16))
        scannetpp_writer.write_picture(phone / f"rgb_masks/frame_{k:06d}.png", mask(k))


def write_dslr(root: Path) -> None:
    poses = {f"DSC{k}.JPG": pose for k, pose in enumerate(POSES)}
    dslr = scannetpp_writer.write_dslr(root, poses, scannetpp_writer.room()) / "dslr"
    for k in range(4):
        scannetpp_writer.write_picture(dslr / f"resized_anon_masks/DSC{k}.png", mask(k, scannetpp_writer.DSLR_SIZE))


def mask(number: int, size: tuple[int, int] = scannetpp_writer.SIZE) -> Any:
    """A mask that hides all of the third frame."""
    return np.full(size[::-1], 0 if number == 2 else 255, np.uint8)


def make_capture() -> dict[str, bytes]:
    box = ca1m_writer.instance("a", "table", [0.0, 0.0, 2.0], [1.0, 1.0, 1.0], ca1m_writer.yaw(10))
    shots = [ca1m_writer.shot(k) for k in (1, 2)]
    for shot in shots:
        shot.members["wide/instances.json"] = b'[{"id": "a", "position": [0, 0, 2], "scale": [1, 1, 1], ' + (
            b'"R": [[1, 0, 0], [0, 1, 0], [0, 0, 1]]}]'
        )
    return ca1m_writer.members(shots, world=[box])


def write_tar(root: Path) -> None:
    ca1m_writer.write_tar(root / f"ca1m-val-{ca1m_writer.VIDEO}.tar", make_capture())


def write_members(root: Path) -> None:
    ca1m_writer.write_folder(root, make_capture())


def write_objects(root: Path) -> None:
    wildrgbd_writer.write_scene(root)


WRITERS = (write_sens, write_exported, write_flat_export, write_phone, write_extracted_phone, write_dslr, write_tar,
           write_members, write_objects)  # fmt: skip


def blank(path: Path) -> None:
    path.write_bytes(bytes(path.stat().st_size))


def halve(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def make_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"6" * 64 + b"\nsize 146946961\n"
PAGE = b"<!DOCTYPE html><html><head><title>Sign in</title></head></html>\n"
STAND_INS = {"pointer": "git lfs pull", "page": "a web page (Sign in)", "empty": "empty file", "zeros": "zeros"}
DAMAGES: dict[str, Callable[[Path], Any]] = {
    "gone": Path.unlink, "empty": lambda path: path.write_bytes(b""), "halved": halve, "zeros": blank,
    "a folder": make_folder, "pointer": lambda path: path.write_bytes(POINTER),
    "page": lambda path: path.write_bytes(PAGE),
}  # fmt: skip


def look(root: Path) -> tuple[dict[str, Any], list[str]]:
    """What the one scene below a folder gives, and what is told of it."""
    refs = discover(root)
    try:
        scene = open_scene(refs[0])
    except SceneError as error:
        return {}, [str(error)]
    with scene:
        told = [f"{issue.frame_id}: {issue.detail}" for issue in scene.issues]
        boxes = [(thing.instance_id, thing.label, thing.box.size_m.round(6).tolist()) for thing in scene.objects]
        gives: dict[str, Any] = {"kind": scene.depth_kind, "objects": boxes}
        for frame in scene.frames:
            pose, K = frame.world_from_camera.round(6).tolist(), frame.camera.K.round(6).tolist()
            gives[f"{frame.id} camera"] = pose, K, frame.camera.size
            calls: tuple[Callable[[], Any], ...] = (
                frame.color, partial(decode_depth, frame), frame.valid_mask, frame.object_mask, frame.objects,
            )  # fmt: skip
            for number, call in enumerate(calls):
                try:
                    found = call()
                except FrameError as error:
                    told.append(f"{frame.id}: {error}")
                    continue
                pixels = np.array(len(found)) if isinstance(found, list | tuple) else found
                digest = None if pixels is None else hashlib.sha256(pixels.tobytes()).hexdigest()
                gives[f"{frame.id} {number}"] = digest
        return gives, told


def list_cases(root: Path) -> Iterator[tuple[str, list[Path]]]:
    """Each damage to each file, to each folder, and to the files of one suffix in a folder; never to a whole scan.

    Of three and more files that differ by a number, as those of frames, the third stands for all: a mask hides it.
    """
    scan = discover(root)[0].path.resolve().relative_to(root.resolve())
    files = sorted(path.relative_to(root) for path in root.rglob("*") if path.is_file())
    alike: dict[tuple[Path, str], list[Path]] = {}
    for path in files:
        alike.setdefault((path.parent, re.sub(r"\d+", "", path.name)), []).append(path)
    groups = [[path] for paths in alike.values() for path in (paths[2:3] or paths)]
    for folder in sorted({parent for path in files for parent in path.parents}):
        inside = [path for path in files if path.is_relative_to(folder)]
        groups += [inside, *([p for p in inside if p.suffix == suffix] for suffix in {path.suffix for path in inside})]
    whole = {path for path in files if path.is_relative_to(scan)}
    for group in groups:
        if not whole <= set(group):
            yield from ((how, group) for how in DAMAGES)
        elif scan in files:
            yield from ((how, group) for how in DAMAGES if how not in ("gone", "a folder"))


def check_case(base: Path, case: Path, how: str, group: list[Path], before: tuple[dict[str, Any], list[str]]) -> None:
    shutil.copytree(base, case)
    for path in group:
        DAMAGES[how](case / path)
    gives, told = look(case)
    lost = [name for name, value in before[0].items() if gives.get(name) != value]
    new = [text for text in told if text not in before[1]]
    words = {word for path in group for word in (path.name, path.stem)}
    words |= {f"{path.parent.name}/" for path in group if len(group) > 1}
    words |= {f"/{path.parent.name}: " for path in group if len(group) > 1}
    numbers = tuple(f"{int(number)}: " for path in group for number in re.findall(r"\d+", str(path)))
    named = any(text.startswith(numbers) or any(word in text for word in words) for text in new)
    assert named or not lost, (how, group, lost, new)
    if lost and how in STAND_INS and len(group) == 1:
        assert any(STAND_INS[how] in text for text in new), (how, group, lost, new)
    shutil.rmtree(case)


def check_cases(base: Path, most: int | None) -> None:
    """Every case of a scan, or a few that are drawn from a fixed seed."""
    cases, before = list(list_cases(base)), look(base)
    assert before[0]
    chosen = np.random.default_rng(1).permutation(len(cases))[:most]
    for number in chosen.tolist():
        how, group = cases[number]
        check_case(base, base.with_name("case"), how, group, before)


@pytest.mark.parametrize("write", WRITERS)
def test_what_damage_takes_away_is_named(tmp_path: Path, write: Callable[[Path], None]) -> None:
    write(tmp_path / "base")
    check_cases(tmp_path / "base", SAMPLED)


@pytest.mark.slow
@pytest.mark.parametrize("write", WRITERS)
def test_what_any_damage_takes_away_is_named(tmp_path: Path, write: Callable[[Path], None]) -> None:
    write(tmp_path / "base")
    check_cases(tmp_path / "base", None)


@pytest.mark.parametrize("name", ["scannet/scene9001_00", "scannetpp/e41d5f9b03", "wildrgbd"])
def test_what_damage_to_captures_takes_away_is_named(tmp_path: Path, captures: Path, name: str) -> None:
    shutil.copytree(captures / name, tmp_path / "base" / Path(name).name, copy_function=shutil.copyfile)
    check_cases(tmp_path / "base", 6)


def test_a_lost_file_is_shown_and_costs_nothing_else(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_sens(tmp_path)
    (tmp_path / "scene0001_00/scene0001_00.txt").write_text("")
    (tmp_path / "scene0001_00/scene0001_00_vh_clean_2.ply").unlink()
    with open_scene(discover(tmp_path)[0]) as scene:
        health = summarise_health(scene)
    assert health.frames_usable == 4
    assert health.issues["file_missing"] == health.issues["file_unusable"] == 1
    main(["scenes", str(tmp_path)])
    told = "".join(capsys.readouterr().out.split())
    for name in ("scene0001_00.txt", "scene0001_00_vh_clean_2.ply"):
        assert f"{name}:" in told
