"""What is fed with damaged bytes: how a small sound input is written, which part of it is hurt, and how it is used."""

from __future__ import annotations

import contextlib
import logging
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import vgbench_gen
from tests.fuzz.answered import MORE_TARGETS
from tests.fuzz.inspect_logs import INSPECT_TARGETS
from tests.fuzz.verbs import COUNTED, FINE, REFUSED, BrokenPromiseError, Target, run_verb
from tests.importers import source_files
from tests.publish.published import publish, write_build
from tests.scenes import ca1m_writer, scannet_writer, scannetpp_writer, wildrgbd_writer
from vgbench_gen.core.errors import VGBenchError
from vgbench_gen.core.lines import make_one_line
from vgbench_gen.pipeline.recipe import load_recipe
from vgbench_gen.quality.voting.rule import load_rule
from vgbench_gen.scenes import discover
from vgbench_gen.scenes.base import SceneRef
from vgbench_gen.scenes.health import summarise_health
from vgbench_gen.scenes.opening import decode_depth, lay_to_scene, open_scene
from vgbench_gen.store.dataset import load


def use_scenes(case: Path) -> str:
    """Find and read every scene; the sound one must be whole, and whatever lies beside it must be named."""
    told: list[tuple[SceneRef, VGBenchError]] = []
    with _listening() as said:
        refs = discover(case / "data", on_error=lambda ref, error: told.append((ref, error)))
    whole, counted = [], bool(told)
    for ref in refs:
        try:
            with lay_to_scene(ref), open_scene(ref) as scene:
                health = summarise_health(scene)
                counted |= bool(health.issues)
                for frame in scene.frames:
                    with contextlib.suppress(VGBenchError):
                        decode_depth(frame, scene.depth_kind)
                        frame.color(), frame.valid_mask(), frame.object_mask(), frame.objects()
                        continue
                    counted = True
                whole.append(ref)
        except VGBenchError as error:
            told.append((ref, error))
    named = [ref.path for ref in whole] + [ref.path for ref, _ in told if ref.scene_id]
    lost = [place for place in list_scenes(case / "data") if not any(_meet(place, path) for path in named)]
    said += [str(error) for _, error in told]
    lost = [place for place in lost if not any(make_one_line(str(place)) in make_one_line(text) for text in said)]
    if lost:
        raise BrokenPromiseError(f"lost without a word: {[ascii(str(p.relative_to(case))) for p in lost]}")
    if not any(_meet(case / "data" / SOUND, ref.path) for ref in whole):
        raise BrokenPromiseError(f"the sound scene is lost: {[str(error) for _, error in told]}")
    return REFUSED if len(whole) < 2 else COUNTED if counted else FINE


SOUND, HURT = "sound", "hurt"


@contextlib.contextmanager
def _listening() -> Iterator[list[str]]:
    """What is said about scenes in the log, which a user sees."""
    said: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: said.append(record.getMessage())  # type: ignore[method-assign]
    log = logging.getLogger("vgbench_gen.scenes")
    log.addHandler(handler)
    try:
        yield said
    finally:
        log.removeHandler(handler)


def list_scenes(data: Path) -> list[Path]:
    """The folders directly below, each of which holds one scene; those in which no file or link is left hold none."""
    with os.scandir(data) as entries:
        folders = [Path(entry.path) for entry in entries if entry.is_dir()]
    return [folder for folder in folders if any(map(_may_hold, folder.rglob("*")))]


def _may_hold(path: Path) -> bool:
    return path.is_file() or (path.is_symlink() and not path.exists())


def _meet(place: Path, path: Path) -> bool:
    return place in (path, *path.parents) or path in place.parents or place.resolve() in (path, *path.parents)


def write_both(write: Callable[[Path, int], object]) -> Callable[[Path], None]:
    """Two scenes of different ids, one to stay sound."""

    def write_pair(data: Path) -> None:
        for number, name in enumerate((SOUND, HURT)):
            (data / name).mkdir(parents=True)
            write(data / name, number)

    return write_pair


def write_exported(root: Path, number: int) -> None:
    folder = scannet_writer.scan_folder(root, f"scene000{number}_00")
    scannet_writer.write_python_export(folder, scannet_writer.pictures(3))
    scannet_writer.write_annotation(folder, [("table", scannet_writer.block((1, 1, 1), (1, 1, 1), 0.2))])


def write_sens(root: Path, number: int) -> None:
    scannet_writer.write_sens(root, scannet_writer.Sens(scannet_writer.pictures(3)), f"scene000{number}_00")


POSES = [scannetpp_writer.look_at((1 + 0.2 * k, 1, 1.5), (4, 4, 0.5)) for k in range(2)]


def write_phone(root: Path, number: int) -> None:
    scene = scannetpp_writer.Phone(POSES).write(root)
    scene.rename(scene.with_name(f"{number}a1b2c3d4e"))


def write_dslr(root: Path, number: int) -> None:
    poses = {f"DSC{k}.JPG": pose for k, pose in enumerate(POSES)}
    scene = scannetpp_writer.write_dslr(root, poses, scannetpp_writer.room())
    scene.rename(scene.with_name(f"{number}a1b2c3d4e"))


def _make_members(video: str) -> dict[str, bytes]:
    box = ca1m_writer.instance("a", "table", [0.0, 0.0, 2.0], [1.0, 1.0, 1.0], ca1m_writer.yaw(10))
    return ca1m_writer.members([ca1m_writer.shot(k) for k in (1, 2)], world=[box], video=video)


def write_tar(root: Path, number: int) -> None:
    ca1m_writer.write_tar(root / f"ca1m-val-4289857{number}.tar", _make_members(f"4289857{number}"))


def write_extracted(root: Path, number: int) -> None:
    ca1m_writer.write_folder(root, _make_members(f"4289857{number}"))


def write_objects(root: Path, number: int) -> None:
    wildrgbd_writer.write_scene(root, name=f"scenes_00{number}", count=3)


def use_dataset(case: Path) -> str:
    """Read everything, compare with itself, verify the rows, and write pages."""
    data = str(case / "data")
    items = load(data)
    read = list(items)
    if len(read) != len(items) or len(list(items.without_evidence())) != len(items):
        raise BrokenPromiseError(f"{len(read)} of {len(items)} rows came")
    for item in read:
        for k in range(len(item.images)):
            with contextlib.suppress(VGBenchError):
                items.image_bytes(item, k)
    verbs = (["show", data], ["verify", data, "--workers", "1"], ["browse", data])
    return max((run_verb(*verb) for verb in verbs), key=(FINE, COUNTED, REFUSED).index)


def write_answered(data: Path) -> None:
    """A dataset with the replies of two models."""
    write_build(data)
    for model in ("baseline:random", "baseline:truth"):
        run_verb("eval", str(data), "--model", model)


def use_replies(case: Path) -> str:
    data = str(case / "data")
    verbs = (["compare", data, "--json"], ["compare", data])
    return max((run_verb(*verb) for verb in verbs), key=(FINE, COUNTED, REFUSED).index)


CASES = [
    '{"id": 1, "benchmark": "VGBench", "question_type": "multi-choice", "response": "B", "ground_truth": "B", '
    '"options": {"A": "1 m", "B": "2 m"}, "question": "How far?"}',
    '{"id": "b", "benchmark": "SpatialScore", "question_type": "open-ended", "response": "about 2.5 meters", '
    '"ground_truth": "2 m", "question": "How far?"}',
    '{"id": 3, "benchmark": "SpatialScore", "question_type": "judgment", "response": "Yes.", "ground_truth": "yes"}',
]


def write_cases(data: Path) -> None:
    data.mkdir()
    (data / "cases.jsonl").write_text("\n".join(CASES) + "\n")


def write_settings(data: Path) -> None:
    """Shipped recipes and a shipped rule of votes."""
    data.mkdir()
    package = Path(vgbench_gen.__file__).parent
    for name in ("recipes/default", "recipes/vgbench", "quality/voting/paper"):
        shutil.copyfile(package / f"{name}.toml", data / f"{Path(name).name}.toml")


def use_settings(case: Path) -> str:
    outcome = FINE
    for path in sorted((case / "data").iterdir()):
        try:
            load_rule(str(path)) if path.stem == "paper" else load_recipe(path)
        except VGBenchError as error:
            outcome = REFUSED
            if not make_one_line(str(error)):
                raise BrokenPromiseError("a refusal that says nothing") from error
    return outcome


def write_published(data: Path) -> None:
    write_build(data.parent / "build")
    publish(data.parent / "build", data)
    shutil.rmtree(data.parent / "build")


def use_published(case: Path) -> str:
    return run_verb("pull", str(case / "data"), "--out", str(case / "out"))


def make_import(name: str, write: Callable[[Path], object]) -> Target:
    def use(case: Path) -> str:
        return run_verb("import", name, "--from", str(case / "data"), "--out", str(case / "out"))

    return Target(f"import {name}", write, use, "")


SCENES = {"scannet export": write_exported, "scannet sens": write_sens, "scannetpp phone": write_phone,
          "scannetpp dslr": write_dslr, "ca1m tar": write_tar, "ca1m folder": write_extracted,
          "wildrgbd": write_objects}  # fmt: skip
SOURCES = {"cvbench": source_files.cvbench, "mmvp": source_files.mmvp_original, "realworldqa": source_files.realworldqa,
           "spatialsense": source_files.spatialsense, "spatialbench": source_files.spatialbench,
           "qspatialbench": source_files.qspatialbench}  # fmt: skip
TARGETS: Sequence[Target] = (
    *(Target(name, write_both(write), use_scenes, HURT) for name, write in SCENES.items()),
    Target("dataset", write_build, use_dataset, ""),
    Target("replies", write_answered, use_replies, "replies"),
    Target(
        "cases",
        write_cases,
        lambda case: run_verb("compare", "--cases", str(case / "data/cases.jsonl")),
        "",
        stays=True,
    ),
    Target("recipes and rules", write_settings, use_settings, "", stays=True),
    Target("pull", write_published, use_published, ""),
    *(make_import(name, write) for name, write in SOURCES.items()),
    *MORE_TARGETS,
    *INSPECT_TARGETS,
)
