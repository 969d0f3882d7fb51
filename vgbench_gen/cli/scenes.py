"""`vgbench scenes`: what is under a folder, and how healthy it is."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vgbench_gen.cli._screen import print_columns, print_json, progress_bar
from vgbench_gen.cli._verbs import verb
from vgbench_gen.core.config import Flag
from vgbench_gen.core.errors import ConfigError, VGBenchError
from vgbench_gen.core.lines import make_one_line

if TYPE_CHECKING:
    from vgbench_gen.scenes.base import SceneRef

Row = dict[str, Any]

_HEADINGS = ("dataset", "scene", "frames", "poses", "depth", "objects", "agree", "verdict")
_RIGHT = _HEADINGS[2:-1]
_EXPLAINED = """frames: those that can be used; poses: valid ones of all; depth: share of pixels
with a known depth; agree: share of points that another view, by the poses,
shows at the same depth. next and still: that share under the second-best
pose convention, and if the camera did not move; a convention is chosen if it
leads both by {:.0%}."""


@verb("scenes", "Build", "vgbench scenes raw_scenes --json")
def scenes(
    root: Annotated[Path, typer.Argument(metavar="ROOT", help="Folder with raw scenes at any depth, or one file.")],
    pictures: Annotated[Path | None, Flag("Write an image per scene: depth edges drawn on colors.", "FOLDER")] = None,
    as_json: bool = False,
) -> None:
    """List the scenes in a folder and check their poses and depth.

    Prints two lines per scene: usable frames, frames with a valid pose, share of pixels with depth, objects, share of
    depth that agrees between views, and a verdict; then the pose convention, depth unit and gravity direction that were
    used. For a folder that contains a recording in an unknown layout, prints the posed.toml that it would need. Exits 1
    if a scene is unusable, 2 if there are no scenes.
    """
    if not root.exists():
        raise ConfigError(f"{root}: no such folder. Name the folder that holds the scans.")
    from vgbench_gen.scenes import describe_unplaced, discover

    refs = discover(root)
    widths = (
        max([7, *(len(ref.dataset) for ref in refs)]),
        max([5, *(len(make_one_line(ref.scene_id)) for ref in refs)]),
        *(7 if name == "poses" else len(name) for name in _RIGHT),
    )
    rows: list[Row] = []
    if refs and not as_json:
        print_columns([], heads=_HEADINGS, right=_RIGHT, least=widths)
    with progress_bar("health", "scene") as progress:
        progress(0, len(refs))
        for row in _measure_health(refs, pictures):
            rows.append(row)
            progress(len(rows), len(refs))
            if not as_json:
                print_columns([_format_cells(row)], heads=_HEADINGS, show_heads=False, right=_RIGHT, least=widths)
                if row["reading"]:
                    print(f"  {describe_reading(row)}")
    if as_json:
        print_json(rows)
    elif rows:
        from vgbench_gen.scenes.readings import MIN_LEAD

        print(_EXPLAINED.format(MIN_LEAD))
    if not as_json:
        _print_guesses(root, refs)
    if not rows:
        raise ConfigError(describe_unplaced(root))
    if any(row["verdict"].startswith("bad") for row in rows):
        raise typer.Exit(1)


def _measure_health(refs: Sequence[SceneRef], pictures: Path | None) -> Iterator[Row]:
    """Health of each scene; one that cannot be opened has nulls and says why in its verdict."""
    from vgbench_gen.scenes.health import SceneHealth, summarise_health
    from vgbench_gen.scenes.opening import lay_to_scene, open_scene
    from vgbench_gen.store.files import name_scene_file, write_bytes

    for ref in refs:
        try:
            with lay_to_scene(ref), open_scene(ref) as scene:
                row = summarise_health(scene, ref.variant).to_json()
                if pictures is not None:
                    from vgbench_gen.scenes.health import draw_depth_edges

                    write_bytes(pictures / ref.dataset / f"{name_scene_file(scene.id)}.png", draw_depth_edges(scene))
                yield {**row, "kinds": count_kinds(row)}
        except VGBenchError as exc:
            known = {"dataset": ref.dataset, "id": ref.scene_id, "split": ref.split, "variant": ref.variant}
            unknown = dict.fromkeys(field.name for field in dataclasses.fields(SceneHealth))
            yield {**unknown, **known, "issues": {}, "verdict": f"bad: {exc}", "kinds": None}


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.0%}"


def count_kinds(row: Row) -> int:
    """How many kinds of question a scene can carry by what it has: boxes, gravity, meters."""
    from vgbench_gen.tasks.base import tasks

    lacks = not row["objects"], row["up_world"] is None, not row["metric"]
    needs = ((task.needs_objects, task.needs_gravity, task.needs_meters) for task in tasks.values())
    return sum(not any(need and lack for need, lack in zip(each, lacks, strict=True)) for each in needs)


def describe_reading(row: Row) -> str:
    """How a scene was read, in one line: layout, reading with shares, unit, pairing, gravity, boxes, kinds."""

    def vector(values: Sequence[float]) -> str:
        axes = ["-" * (value < 0) + axis for axis, value in zip("xyz", values, strict=False) if abs(value) > 0.9999]
        return axes[0] if axes else "(" + ", ".join(f"{value:.3g}" for value in values[:3]) + ")"

    planes, agree = row["up_from_planes"], _share(row["agree"])
    up = f"up: {vector(row['up_world'])}, stated" if row["up_world"] else "up: unknown"
    if planes:
        up += f", by planes {vector(planes[:3])} within {planes[3]:.1f} degrees"
    parts = [
        f"read as {row['variant'] or row['dataset']}",
        f"{row['reading']}: {agree} (next {_share(row['agree_next'])}, still {_share(row['agree_still'])})",
        f"unit of depth: {row['unit']}" if row["metric"] else "not metric",
        row["pairing"],
        up,
        f"boxes: {row['objects'] or 'none'}",
    ]
    return f"{'; '.join(filter(None, parts))} -> {row['kinds']} kinds of question"


def _print_guesses(root: Path, refs: Sequence[SceneRef]) -> None:
    """Print the `posed.toml` that folders below a place would need which look like recordings and are none."""
    from vgbench_gen.scenes.posed.guess import find_candidates, guess_layout

    for folder in find_candidates(root, refs):
        print(f"\n{folder}: unknown layout. Complete this posed.toml and put it in the folder to have it read:\n")
        print(guess_layout(folder))


def _format_cells(row: Row) -> tuple[str, ...]:
    def count(name: str) -> str:
        return "-" if row[name] is None else str(row[name])

    return (
        row["dataset"],
        make_one_line(row["id"]),
        count("frames_usable"),
        count("poses_valid") + ("" if row["frames_total"] is None else f"/{row['frames_total']}"),
        _share(row["depth_coverage"]),
        count("objects"),
        _share(row["agree"]),
        make_one_line(row["verdict"]),
    )
