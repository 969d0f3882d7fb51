"""Sample scenes into a folder: which ones, by whom, and what is there already.

Below the folder each dataset gets its own, `samples-<dataset>/`, in the official layout and with `SAMPLES.json`, which
says how its scenes were made. Scans of other origin are never in it: a folder of that name without the file is left
alone.

Every byte of a scene follows from its `SampleSpec`, which follows from (seed, frames, dataset, running number): the
same scene comes out whatever else is asked for and however many processes work. A scene is written under a hidden name
and renamed when it is whole, so what has its name is finished, and an interrupted run goes on where it stopped.
"""

from __future__ import annotations

import importlib
import json
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, cast

from vgbench_gen.core.errors import ConfigError
from vgbench_gen.core.json_text import read_json
from vgbench_gen.core.rng import hash_stably
from vgbench_gen.core.types import Camera, FloatArray
from vgbench_gen.executors import Engine, count_step, run
from vgbench_gen.executors.base import give_back_memory
from vgbench_gen.samples import FRAMES
from vgbench_gen.samples.base import FIRST_TOUR, Capture, RenderedView, SampleSpec, World
from vgbench_gen.samples.layout import Layout
from vgbench_gen.scenes.licence import SAMPLES_FILE, digest_sample
from vgbench_gen.store.files import (
    clean_temporary,
    make_temporary_name,
    replace_file,
    sync_all_to_disk,
    sync_to_disk,
    write_bytes,
)
from vgbench_gen.store.provenance import BuildLock

SAMPLES_VERSION = 10
"""Raised whenever the same spec gives other bytes than before; folders of another version are not added to."""
LICENCE = "cc0-1.0"
WALK_FRAMES = 12  # of a walk, at least: with 8, steps are too long in four of five rooms, with 12 in none of 48
FULL = {"ca1m": 36, "scannet": 14, "scannetpp": 10, "wildrgbd": 8}
"""Scenes per dataset of the whole set: object questions come from CA-1M alone, hence the many."""
TOUR = "tour"
"""Counted like a dataset: rooms in the layout of ScanNet in which the camera looks all around from several places, for
kinds of question about what is where. None is in the whole set."""
SMALL = {"ca1m": 2, "scannet": 1, "scannetpp": 1, "wildrgbd": 1}
CATEGORIES = ("backpack", "microwave", "bucket", "kettle", "box", "vase", "laptop", "helmet")

# Space and rescan of seven scans in a row; then further spaces.
_SCANNET_SCANS = ((0, 0), (0, 1), (1, 0), (2, 0), (2, 1), (3, 0), (4, 0))
_SCANNET_FIRST_SPACE = 9000  # the release ends at scene0806
_CA1M_FIRST_ID = 90_000_000  # those of the release start with 4
_DSLR_OF_TEN = (1, 5, 8)
# Seconds of one scene against the shortest, by kind of camera or dataset: the longest are started first.
_COST = {"dslr": 5, "iphone": 4, "scannet": 3, "ca1m": 2, "wildrgbd": 1}
_BOOKKEEPING = {SAMPLES_FILE, ".build.lock"}

_LAYOUTS = {
    "ca1m": "write_ca1m:CA1MLayout",
    "scannet": "write_scannet:ScanNetLayout",
    "scannetpp": "write_scannetpp:ScanNetPPLayout",
    "wildrgbd": "write_wildrgbd:WildRGBDLayout",
}


@dataclass(frozen=True, slots=True)
class MadeScene:
    """One finished scene. seconds: of the process that made it, 0 where it was there before. digest: of its files."""

    spec: SampleSpec
    path: Path
    size_bytes: int
    seconds: float
    digest: str


OnScene = Callable[[MadeScene, int, int], None]
OnFrame = Callable[[int, int], None]
Film = Callable[[SampleSpec], Capture]


def list_default_specs(counts: Mapping[str, int], seed: int = 0, frames: int = FRAMES) -> list[SampleSpec]:
    """The first scenes of each dataset; of more scenes, fewer are a part.

    Raises:
        ConfigError: an unknown dataset, or a count or a number of frames that makes no sense.
    """
    unknown = sorted(set(counts) - {*FULL, TOUR})
    if unknown:
        raise ConfigError(f"no samples of {', '.join(unknown)}; there are {', '.join((*FULL, TOUR))}.")
    if not 4 <= frames <= 1000:
        raise ConfigError(f"{frames} frames per scene; give 4 to 1000.")
    if any(not 0 <= count <= 400 for count in counts.values()):
        raise ConfigError(f"{max(counts.values())} scenes of one dataset; give 0 to 400.")
    return [_make_spec(name, number, seed, frames) for name in sorted(counts) for number in range(counts[name])]


def _make_spec(dataset: str, number: int, seed: int, frames: int) -> SampleSpec:
    if dataset == TOUR:
        split, number = "val" if number % 4 == 1 else "train", number + FIRST_TOUR
        return SampleSpec("scannet", f"scene{_SCANNET_FIRST_SPACE + number}_00", seed, number, frames, split=split)
    if dataset == "scannet":
        space, rescan = _SCANNET_SCANS[number % 7]
        space += 5 * (number // 7)
        split = {3: "val", 6: "test", 8: "val"}.get(space % 10, "train")
        name = f"scene{_SCANNET_FIRST_SPACE + space:04d}_{rescan:02d}"
        return SampleSpec(dataset, name, seed, number, frames, split=split)
    if dataset == "scannetpp":
        device = "dslr" if number % 10 in _DSLR_OF_TEN else "iphone"
        name = hash_stably("samples", "scannetpp", str(number), size=5)
        return SampleSpec(
            dataset, f"{name}/{device}", seed, number, frames, device, "val" if number % 5 == 3 else "train"
        )
    split = "val" if number % 4 == 1 else "train"
    if dataset == "ca1m":
        return SampleSpec(dataset, f"{_CA1M_FIRST_ID + 17 * number:08d}", seed, number, frames, split=split)
    name = f"{CATEGORIES[number % len(CATEGORIES)]}/scenes_{900 + number // len(CATEGORIES):03d}"
    return SampleSpec(dataset, name, seed, number, frames, split=split)


def make_samples(
    specs: Sequence[SampleSpec],
    out: Path,
    workers: int = 1,
    on_scene: OnScene = lambda made, done, total: None,
    film: Film | None = None,
    on_frame: OnFrame = lambda done, total: None,
) -> list[MadeScene]:
    """Make the scenes that are not there yet; returns all of them, in the order asked.

    Args:
        specs: of one seed and one number of frames.
        workers: processes.
        on_scene: called with each scene, how many are finished, how many in all.
        film: makes the worlds and paths, here or in another process; default: `samples.captures.make_capture`.
        on_frame: called each second at least with the frames that this run has rendered, and is to render.

    Raises:
        ConfigError: too few frames, a dataset's folder is not ours or was made otherwise, or videos cannot be written.
        BuildLocked: another process makes samples there.
        VGBenchError: a scene's worker died twice, or workers cannot be started.
    """
    of_dataset: dict[str, list[SampleSpec]] = {}
    for spec in specs:
        walks = film is None and spec.dataset != "wildrgbd" and spec.number < FIRST_TOUR
        if walks and spec.frames < WALK_FRAMES:
            raise ConfigError(f"--frames {spec.frames}: too few for {spec.dataset}; expected {WALK_FRAMES} or more.")
        of_dataset.setdefault(spec.dataset, []).append(spec)
    done: dict[SampleSpec, MadeScene] = {}
    with ExitStack() as locks:
        for dataset, wanted in sorted(of_dataset.items()):
            folder = get_dataset_folder(out, dataset)
            clean_temporary(folder)  # a run that was killed at its first write left nothing else
            _check_origin(folder)
            locks.enter_context(BuildLock(folder, for_tables=False))
            known = _write_marker_and_lists(folder, dataset, wanted)
            for spec in wanted:
                path, digest = get_scene_path(out, spec), known[spec.scene_id].get("digest", "")
                if path.exists() and digest:
                    done[spec] = MadeScene(spec, path, _measure_size_bytes(path), 0.0, digest)
        missing = sorted(
            (s for s in specs if s not in done), key=lambda s: (-_COST[s.camera_kind or s.dataset], s.number)
        )
        if any(spec.dataset == "scannetpp" and spec.camera_kind == "iphone" for spec in missing):
            from vgbench_gen.samples.video import check_encoder

            check_encoder()
        for made in list(done.values()):
            on_scene(made, len(specs) - len(missing), len(specs))
        frames = sum(spec.frames for spec in missing)
        if missing:
            on_frame(0, frames)
        make = partial(make_scene, out=out, film=film)
        for _, made in run(make, missing, Engine(workers=workers), on_steps=lambda done: on_frame(done, frames)):
            done[made.spec] = made
            _note_digest(get_dataset_folder(out, made.spec.dataset), made)
            on_scene(made, len(done), len(specs))
    return [done[spec] for spec in specs]


def get_dataset_folder(out: Path, dataset: str) -> Path:
    """Where the samples of a dataset go."""
    return out / f"samples-{dataset}"


def get_scene_path(out: Path, spec: SampleSpec) -> Path:
    """The file or folder of one scene."""
    return get_dataset_folder(out, spec.dataset) / _get_layout(spec.dataset).path(spec)


def make_scene(spec: SampleSpec, out: Path, film: Film | None = None) -> MadeScene:
    """Make one scene, whole or not at all. Args: see `make_samples`.

    Raises:
        ConfigError: another scene has its place. The same one, of a run that was cut short, stays.
    """
    started = time.perf_counter()
    path = get_scene_path(out, spec)
    temporary = make_temporary_name(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        capture = (film or _render_capture)(spec)
        give_back_memory()  # a room takes twice as much while it is made
        world = _CountedWorld(capture.world)
        capture = replace(capture, world=cast(World, world))
        _get_layout(spec.dataset).write(capture, spec, temporary)
        world.count_rest(spec.frames)
        digest = digest_sample(temporary)
        if path.exists():
            if digest_sample(path) != digest:
                raise ConfigError(
                    f"{path}: found other files than `vgbench samples` makes there; expected an empty place. Move them "
                    "away, or give another --out."
                )
            _remove(temporary)
        else:
            sync_all_to_disk(_list_files(temporary))
            temporary.rename(path)
            sync_to_disk(path.parent)
    except BaseException:
        _remove(temporary)
        raise
    return MadeScene(spec, path, _measure_size_bytes(path), time.perf_counter() - started, digest)


class _CountedWorld:
    """A world that counts the pictures taken of it as steps of the job."""

    def __init__(self, world: World) -> None:
        self._world, self._looks = world, 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._world, name)

    def look(self, camera: Camera, world_from_camera: FloatArray) -> RenderedView:
        """As `World.look`."""
        view = self._world.look(camera, world_from_camera)
        self._looks += 1
        count_step()
        return view

    def count_rest(self, frames: int) -> None:
        """Count the frames of a finished scene that nobody looked at: those whose pose is lost may be left out."""
        for _ in range(self._looks, frames):
            count_step()


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    path.unlink(missing_ok=True)


def _render_capture(spec: SampleSpec) -> Capture:
    from vgbench_gen.samples.captures import make_capture

    return make_capture(spec)


def _get_layout(dataset: str) -> Layout:
    module, name = _LAYOUTS[dataset].split(":")
    layout: Layout = getattr(importlib.import_module(f"vgbench_gen.samples.{module}"), name)()
    return layout


# -- what is there ----------------------------------------------------------------------------------------------------


def _check_origin(folder: Path) -> None:
    """Refuse a folder that this module did not make."""
    if not folder.exists() or (folder / SAMPLES_FILE).is_file():
        return
    if not folder.is_dir() or any(entry.name not in _BOOKKEEPING for entry in folder.iterdir()):
        raise ConfigError(
            f"{folder}: found files but no {SAMPLES_FILE}, so `vgbench samples` did not make them; expected an empty "
            "place. Give another --out, or move them."
        )


def _write_marker_and_lists(folder: Path, dataset: str, wanted: Sequence[SampleSpec]) -> dict[str, Any]:
    """Write `SAMPLES.json` and the lists, which name all scenes asked for so far, before the first scene.

    Returns what the file says of each scene. Digests are added when scenes are made.
    """
    settings = {"version": SAMPLES_VERSION, "seed": wanted[0].seed, "frames": wanted[0].frames}
    known: dict[str, Any] = {}
    found = _read_marker(folder) if (folder / SAMPLES_FILE).is_file() else None
    # A run that ended before its first scene left nothing that settings could differ from.
    if found is not None and any((folder / one["path"]).exists() for one in found["scenes"].values()):
        differing = [
            f"{key} {found['settings'].get(key)}" for key in settings if found["settings"].get(key) != settings[key]
        ]
        if differing:
            asked = ", ".join(f"{key} {value}" for key, value in settings.items())
            raise ConfigError(
                f"{folder}: found samples made with {', '.join(differing)}; expected {asked}. "
                f"Give another --out, ask for the same, or delete {folder} to make them anew."
            )
        known = found["scenes"]
    for spec in wanted:
        path = folder / _get_layout(dataset).path(spec)
        if spec.scene_id not in known and path.exists():
            raise ConfigError(
                f"{path}: found a scene that {SAMPLES_FILE} does not name; expected an empty place. Move it away, or "
                "give another --out."
            )
    scenes: dict[str, Any] = {
        spec.scene_id: {
            "number": spec.number, "split": spec.split, "path": _get_layout(dataset).path(spec).as_posix(),
        }
        for spec in wanted
    }  # fmt: skip
    scenes = known | {scene_id: known.get(scene_id, {}) | entry for scene_id, entry in scenes.items()}
    specs = [
        replace(wanted[0], scene_id=scene_id, number=entry["number"], split=entry["split"])
        for scene_id, entry in scenes.items()
    ]
    scenes = dict(sorted(scenes.items()))
    content = {"made_by": "vgbench samples", "licence": LICENCE, "settings": settings, "scenes": scenes}
    _write_marker(folder, content)
    for name, data in _get_layout(dataset).make_lists(specs).items():
        with replace_file(folder / name) as temporary:
            temporary.write_bytes(data)
    return scenes


def _note_digest(folder: Path, made: MadeScene) -> None:
    """Have `SAMPLES.json` say what the scene is: only that stands under the licence of samples."""
    content = _read_marker(folder)
    content["scenes"][made.spec.scene_id]["digest"] = made.digest
    _write_marker(folder, content)


def _write_marker(folder: Path, content: Mapping[str, Any]) -> None:
    write_bytes(folder / SAMPLES_FILE, (json.dumps(content, indent=1) + "\n").encode())


def _read_marker(folder: Path) -> dict[str, Any]:
    try:
        found = read_json(folder / SAMPLES_FILE)
        paths = [one["path"] for one in dict(found["scenes"]).values()]
        if isinstance(found["settings"], dict) and all(isinstance(path, str) for path in paths):
            return dict(found)
    except (ValueError, KeyError, TypeError):
        pass
    raise ConfigError(
        f"{folder / SAMPLES_FILE}: found damaged text; expected JSON with settings and scenes. Delete {folder}."
    )


def _list_files(path: Path) -> list[Path]:
    """The file itself, or those in a folder."""
    return sorted(file for file in (path, *path.rglob("*")) if file.is_file())


def _measure_size_bytes(path: Path) -> int:
    return sum(file.stat().st_size for file in _list_files(path))
