"""`vgbench import`: other people's questions as a dataset of ours, one source or all of SpatialScore."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vgbench_gen.cli._screen import find_width, print_json, progress_bars
from vgbench_gen.cli._verbs import verb
from vgbench_gen.core.columns import format_columns
from vgbench_gen.core.config import Flag

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from vgbench_gen.importers._dataset import Imported
    from vgbench_gen.importers._reading import ImportReport

_ALL = "spatialscore"
_SHOWN = 5  # differences and bad rows of a source; all of them stand in --json and the manifest


@verb("import", "Build", "vgbench import cvbench --from downloads/CV-Bench --out build/cvbench")
def import_(
    source: Annotated[
        str,
        typer.Argument(
            metavar="SOURCE",
            help="mmvp, realworldqa, spatialsense, spatialbench, qspatialbench, cvbench, vsr, vsr-random, 3dsrbench, "
            "vsi-bench, blink or mmiu; or spatialscore: all except vsr-random, together with a VGBench build.",
        ),
    ],
    out: Annotated[Path, Flag("Dataset folder to write.", "FOLDER")],
    folder: Annotated[
        Path | None,
        Flag("Local copy (spatialscore: a subfolder per source); default: the Hub.", "FOLDER", names="--from"),
    ] = None,
    images: Annotated[Path | None, Flag("Images that are distributed separately (COCO, ScanNet).", "FOLDER")] = None,
    vgbench: Annotated[Path | None, Flag("For spatialscore: the VGBench build to include.", "DATASET")] = None,
    train_scenes: Annotated[
        Path | None, Flag("For spatialscore: training scenes, one per line, or a dataset; see above.", "FILE")
    ] = None,
    visits: Annotated[Path | None, Flag("ARKitScenes metadata.csv; a visit counts as one scene.", "FILE")] = None,
    keep_leaked: Annotated[bool, Flag("Report questions about training scenes, but keep them.")] = False,
    as_json: bool = False,
) -> None:
    """Convert another benchmark into a dataset.

    The result works with every other command; images are embedded. Invalid rows are counted with reasons, and sizes
    are compared with the published ones. For spatialscore, also prints totals next to the published 28,093, duplicates
    (also of images that look alike) and contradictions. With --train-scenes, questions about training scenes are
    reported and left out; --keep-leaked keeps them. A second run reuses the images in FOLDER/media.
    """
    from vgbench_gen.importers._dataset import assemble, find_place, find_places, import_source
    from vgbench_gen.importers.base import importers
    from vgbench_gen.importers.places import read_training_scenes

    with progress_bars("row") as progress:
        if source != _ALL:
            if vgbench or train_scenes or visits or keep_leaked:
                names = "--vgbench, --train-scenes, --visits and --keep-leaked"
                raise typer.BadParameter(f"{names} belong to `vgbench import {_ALL}`")
            found = import_source(source, find_place(importers[source], folder, images), out, progress)
        else:
            training = None if train_scenes is None else read_training_scenes(train_scenes, visits)
            places = find_places(folder, images)
            found = assemble(
                places, out, vgbench=vgbench, training=training, keep_leaked=keep_leaked, progress=progress
            )
    if as_json:
        print_json(found.as_json())
    else:
        print("\n".join(_list_imported(found)))


def _list_imported(found: Imported) -> Iterator[str]:
    for report in found.reports:
        yield from _list_report(report)
    yield from (f"{name}: absent ({reason})" for name, reason in found.absent.items())
    for kind, groups in found.notes["duplicates"].items():
        if groups["groups"]:
            first = "; ".join(" = ".join(group[:4]) for group in groups["first"][:2])
            kind = kind.replace("_", " ")
            yield f"{kind}: {groups['questions']} questions in {groups['groups']} groups, such as {first}"
    for names, count in found.notes.get("shared_images", {}).items():
        yield f"images of {names} that look alike: {count}"
    if "leaked" in found.notes:
        leaked = found.notes["leaked"]
        of = ", ".join(f"{name} {count}" for name, count in leaked["benchmarks"].items())
        done = "kept" if leaked["kept"] else "left out"
        yield f"on training scenes: {leaked['questions']} questions{f' ({of})' if of else ''}, {done}"
    yield from _list_totals(found.notes)
    yield f"Written: {found.folder}, {found.items} questions, fingerprint {found.fingerprint}"


def _list_report(report: ImportReport) -> Iterator[str]:
    as_json = report.as_json()
    reasons = ", ".join(f"{reason} {count}" for reason, count in as_json["bad"].items())
    left = f", {report.left_out} not in SpatialScore" if report.left_out else ""
    bad = f", {len(report.bad)} not taken ({reasons})" if report.bad else ""
    yield f"{report.source}: {report.rows} rows, {report.items} questions{left}{bad}"
    lines = [str(row) for row in report.bad[:_SHOWN]] + report.differences
    yield from (f"  {line}" for line in lines + [f"{note}: {count}" for note, count in as_json["notes"].items()])


def _list_totals(notes: Mapping[str, Any]) -> Iterator[str]:
    if "totals" not in notes:
        return
    keys = ("here", "published", "difference")
    rows = [
        (row["table"], row["name"], *("-" if row[key] is None else row[key] for key in keys)) for row in notes["totals"]
    ]
    numbers = ("here", "published", "differs")
    yield from format_columns(rows, heads=("", "", *numbers), right=numbers, text=False, width=find_width())
    yield notes["totals_note"]
