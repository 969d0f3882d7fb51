"""`vgbench samples`: scenes that belong to nobody."""

from __future__ import annotations

import time
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from vgbench_gen.cli._options import DrawSeed, Workers, count_workers
from vgbench_gen.cli._screen import print_columns, print_json, progress_bars
from vgbench_gen.cli._verbs import verb
from vgbench_gen.core.config import Flag
from vgbench_gen.core.errors import ConfigError
from vgbench_gen.core.lines import format_command
from vgbench_gen.samples import FRAMES

if TYPE_CHECKING:
    from vgbench_gen.samples.make import MadeScene


@verb("samples", "Build", "vgbench samples --out raw_scenes --count ca1m=4 --count scannet=2")
def samples(
    out: Annotated[Path, Flag("Output folder; a second run adds what is missing.", "FOLDER")] = Path("raw_scenes"),
    small: Annotated[bool, Flag("Render only one or two scenes in each layout, for a quick test.")] = False,
    count: Annotated[list[str] | None, Flag("Number of scenes, such as ca1m=4; repeatable.", "DATASET=N")] = None,
    frames: Annotated[int, Flag("Frames per scene, 12 to 1000 (wildrgbd, tour: 4 to 1000).", "N")] = FRAMES,
    seed: DrawSeed = 0,
    workers: Workers = 0,
    as_json: bool = False,
) -> None:
    """Render synthetic rooms as sample scenes.

    They are written in the layouts of ScanNet, ScanNet++, CA-1M and WildRGB-D to folders `samples-DATASET` and are in
    the public domain (CC0). Default: 36 scenes of CA-1M, 14 of ScanNet, 10 of ScanNet++ and 8 of WildRGB-D.
    `--count tour=N` renders rooms in ScanNet's layout in which the camera turns full circle at three places, for
    question kinds about labeled objects. An interrupted run resumes where it stopped.
    """
    from vgbench_gen.samples import make as makers

    if small and count:
        raise ConfigError("--small and --count: found both; expected at most one of them.")
    counts = _read_counts(count) if count else makers.SMALL if small else makers.FULL
    specs = makers.list_default_specs(counts, seed, frames)
    if not specs:
        raise ConfigError("no scenes asked for; give --count DATASET=N with N of 1 or more.")
    started = time.perf_counter()
    with progress_bars("frame") as progress:
        there = f"0 of {len(specs)} scenes"

        def on_scene(made: MadeScene, done: int, total: int) -> None:
            nonlocal there
            first = there.startswith("0 ") and made.seconds > 0
            there = f"{done} of {total} scenes"
            if first and not as_json:
                print(f"the first scene: {_draw_first(made, out)}", flush=True)

        def on_frame(done: int, total: int) -> None:
            progress("rendering", done, total, note=there)

        found = makers.make_samples(specs, out, count_workers(workers), on_scene, on_frame=on_frame)
    if as_json:
        names = ("dataset", "scene", "bytes", "seconds")
        rows = ((one.spec.dataset, one.spec.scene_id, one.size_bytes, one.seconds) for one in found)
        print_json([dict(zip(names, row, strict=True)) for row in rows])
    else:
        _print_table(found, out, time.perf_counter() - started)


def _draw_first(made: MadeScene, out: Path) -> Path:
    """Draw frames and depth of a scene, to look at while the others are made."""
    from vgbench_gen.quality.explain import encode_png
    from vgbench_gen.report.scene_sheet import draw_scene_sheet
    from vgbench_gen.samples.make import get_dataset_folder
    from vgbench_gen.scenes import discover
    from vgbench_gen.scenes.opening import open_scene
    from vgbench_gen.store.files import write_bytes

    folder = get_dataset_folder(out, made.spec.dataset)
    (ref,) = (ref for ref in discover(folder) if ref.scene_id == made.spec.scene_id)
    with open_scene(ref) as scene:
        path = folder / "first.png"
        write_bytes(path, encode_png(draw_scene_sheet(scene)))
    return path


def _read_counts(texts: list[str]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for text in texts:
        name, _, number = text.partition("=")
        if not (name and number.isascii() and number.isdecimal()) or name in counts:
            raise ConfigError(f"--count {text}: expected DATASET=N, each dataset once, for example ca1m=4.")
        counts[name] = int(number)
    return counts


def _print_table(found: list[MadeScene], out: Path, seconds: float) -> None:
    groups: defaultdict[str, list[MadeScene]] = defaultdict(list)
    for made in found:
        groups[made.spec.dataset].append(made)
    heads, rows = ("dataset", "scenes", "new", "MB", "s/scene"), []
    for name, members in sorted(groups.items()):
        new = [made for made in members if made.seconds]
        mean = f"{sum(made.seconds for made in new) / len(new):.1f}" if new else "-"
        size = sum(made.size_bytes for made in members) / 1e6
        rows.append((name, len(members), len(new), f"{size:.1f}", mean))
    print_columns(rows, heads=heads, right=heads[1:])
    total = sum(made.size_bytes for made in found) / 1e6
    look = format_command("vgbench", "scenes", out)
    print(f"{len(found)} scenes, {total:.0f} MB, in {out} after {seconds:.0f} s; look at them with `{look}`")
