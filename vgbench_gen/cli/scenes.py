"""`vgbench scenes`: what is under a folder, and how healthy it is."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vgbench_gen.cli._screen import print_columns, print_json, progress_bar
from vgbench_gen.cli._verbs import add_verb
from vgbench_gen.core.errors import ConfigError, VGBenchError
from vgbench_gen.core.lines import make_one_line

if TYPE_CHECKING:
    from vgbench_gen.scenes.base import SceneRef

Row = dict[str, Any]

_HEADINGS = ("dataset", "scene", "frames", "poses", "depth", "objects", "agree", "verdict")
_RIGHT = _HEADINGS[2:-1]
_EXPLAINED = """frames: those that can be used; poses: valid ones of all; depth: share of pixels
with a known depth; agree: share of points that another view, by the poses,
shows at the same depth. The sensor's noise keeps it under 100 %; below {:.0%}
poses drift or depth has another scale."""


def register(app: typer.Typer) -> None:
    """Add the verb."""
    add_verb(app, "scenes", scenes, "Build", "vgbench scenes raw_scenes --json")


def scenes(
    root: Annotated[Path, typer.Argument(metavar="ROOT", help="Folder with raw scenes, in any depth.")],
    as_json: bool = False,
) -> None:
    """List the scenes below ROOT with their health.

    One line each: frames that can be used, frames with a valid pose, share of known depth, objects, share of depth
    that agrees between views, verdict. Exits 1 if one of them is bad, 2 if there is none.
    """
    if not root.is_dir():
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
        for row in _measure_health(refs):
            rows.append(row)
            progress(len(rows), len(refs))
            if not as_json:
                print_columns([_format_cells(row)], heads=_HEADINGS, show_heads=False, right=_RIGHT, least=widths)
    if as_json:
        print_json(rows)
    elif rows:
        from vgbench_gen.scenes.health import MIN_AGREE

        print(_EXPLAINED.format(MIN_AGREE))
    if not rows:
        raise ConfigError(describe_unplaced(root))
    if any(row["verdict"].startswith("bad") for row in rows):
        raise typer.Exit(1)


def _measure_health(refs: Sequence[SceneRef]) -> Iterator[Row]:
    """Health of each scene; one that cannot be opened has nulls and says why in its verdict."""
    from vgbench_gen.scenes.health import SceneHealth, summarise_health
    from vgbench_gen.scenes.opening import lay_to_scene, open_scene

    for ref in refs:
        try:
            with lay_to_scene(ref), open_scene(ref) as scene:
                yield summarise_health(scene, ref.variant).to_json()
        except VGBenchError as exc:
            known = {"dataset": ref.dataset, "id": ref.scene_id, "split": ref.split, "variant": ref.variant}
            unknown = dict.fromkeys(field.name for field in dataclasses.fields(SceneHealth))
            yield {**unknown, **known, "fits": [], "issues": {}, "verdict": f"bad: {exc}"}


def _format_cells(row: Row) -> tuple[str, ...]:
    def share(name: str) -> str:
        return "-" if row[name] is None else f"{row[name]:.0%}"

    def count(name: str) -> str:
        return "-" if row[name] is None else str(row[name])

    return (
        row["dataset"],
        make_one_line(row["id"]),
        count("frames_usable"),
        count("poses_valid") + ("" if row["frames_total"] is None else f"/{row['frames_total']}"),
        share("depth_coverage"),
        count("objects"),
        share("pose_depth_agree"),
        make_one_line(row["verdict"]),
    )
