"""`vgbench import`: other people's questions as a dataset of ours, one source or all of SpatialScore."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vgbench_gen.cli._screen import find_width, print_json, progress_bars
from vgbench_gen.cli._verbs import add_verb
from vgbench_gen.core.columns import format_columns

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from vgbench_gen.importers._dataset import Imported
    from vgbench_gen.importers._reading import ImportReport

_ALL = "spatialscore"
_SHOWN = 5  # differences and bad rows of a source; all of them stand in --json and the manifest


def register(app: typer.Typer) -> None:
    """Add the verb."""
    add_verb(app, "import", import_, "Score", "vgbench import cvbench --from downloads/CV-Bench --out build/cvbench")


def import_(
    source: Annotated[
        str,
        typer.Argument(
            metavar="SOURCE",
            help="mmvp, realworldqa, spatialsense, spatialbench, qspatialbench, cvbench, vsr, vsr-random, 3dsrbench, "
            "vsi-bench, blink, mmiu; or spatialscore for all of them with VGBench.",
        ),
    ],
    out: Annotated[Path, typer.Option("--out", metavar="FOLDER", help="Dataset folder to write.")],
    folder: Annotated[
        Path | None,
        typer.Option(
            "--from",
            metavar="FOLDER",
            help="A local copy, for spatialscore a folder with one per source; else the Hugging Face Hub.",
        ),
    ] = None,
    images: Annotated[
        Path | None, typer.Option("--images", metavar="FOLDER", help="Images, where they lie apart (COCO, ScanNet).")
    ] = None,
    vgbench: Annotated[
        Path | None, typer.Option("--vgbench", metavar="DATASET", help="Our build, for spatialscore.")
    ] = None,
    train_scenes: Annotated[
        Path | None,
        typer.Option(
            "--train-scenes",
            metavar="FILE",
            help="Scenes trained on, one per line, or a dataset: questions on them and their rescans are left out.",
        ),
    ] = None,
    visits: Annotated[
        Path | None,
        typer.Option("--visits", metavar="FILE", help="metadata.csv of ARKitScenes: which videos are of one visit."),
    ] = None,
    keep_leaked: Annotated[
        bool, typer.Option("--keep-leaked", help="Only say which questions are on training scenes.")
    ] = False,
    as_json: bool = False,
) -> None:
    """Write other people's questions as a dataset that every other verb takes, images inside.

    Rows that make no sense are counted with reasons, and sizes are compared with the known ones. For spatialscore:
    totals beside the published 28,093, questions asked twice (also about images that look alike), contradictions, and
    questions on scenes that were trained on. Running again takes images from FOLDER/media.
    """
    from vgbench_gen.importers._dataset import assemble, find_place, find_places, import_source
    from vgbench_gen.importers._report import read_training_scenes
    from vgbench_gen.importers.base import importers

    with progress_bars("row") as progress:
        if source != _ALL:
            if vgbench or train_scenes or visits or keep_leaked:
                names = "--vgbench, --train-scenes, --visits and --keep-leaked"
                raise typer.BadParameter(f"{names} belong to `vgbench import {_ALL}`")
            found = import_source(source, find_place(importers[source], folder, images), out, progress)
        else:
            training = None if train_scenes is None else read_training_scenes(train_scenes, visits)
            found = assemble(
                find_places(folder, images),
                out,
                vgbench=vgbench,
                training=training,
                keep_leaked=keep_leaked,
                progress=progress,
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
