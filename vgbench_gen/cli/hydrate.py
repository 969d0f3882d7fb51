"""`vgbench hydrate`: the images of a published set from one's own scans."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vgbench_gen.cli._options import DatasetFolder, ScenesFolders, Workers, count_workers
from vgbench_gen.cli._screen import print_json, progress_bar
from vgbench_gen.cli._verbs import add_verb

if TYPE_CHECKING:
    from collections.abc import Sequence

    from vgbench_gen.publish.hydrate import HydrateReport

_LISTED = 20  # lines per kind of problem; all of them stand in hydrate.json
_SAID = {
    "embedded": "came along",
    "exact": "made, the published bytes",
    "same_pixels": "made, the published pixels in other bytes",
    "close": "made, the same picture to within the codec",
    "unchecked": "made, other bytes; nothing was published to compare them by",
    "different": "another picture than the published: not used",
    "missing": "not made",
}


def register(app: typer.Typer) -> None:
    """Add the verb."""
    add_verb(app, "hydrate", hydrate, "Share", "vgbench hydrate build/pulled --scenes raw_scenes")


def hydrate(
    dataset: DatasetFolder,
    scenes: ScenesFolders,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FOLDER", help="Write here instead of into DATASET.")
    ] = None,
    workers: Workers = 0,
    exact: Annotated[bool, typer.Option("--exact", help="Exit 1 unless every image has the published bytes.")] = False,
    as_json: bool = False,
) -> None:
    """Make the images of a set that was published without pixels, from your own copy of its scans.

    Every image is compared with its published checksum; what has other bytes, is missing or looks different is told.
    Rerunning goes on where it stopped. Exits 1 while a row is without its images.
    """
    report = make_images(dataset, scenes, out, workers)
    if as_json:
        print_json(report.to_json())
    else:
        print_hydrated(report)
    if report.short or (exact and not report.exact):
        raise typer.Exit(1)


def make_images(dataset: Path, scenes: Sequence[Path], out: Path | None, workers: int) -> HydrateReport:
    """Make the images of a set, with a bar of progress.

    Raises:
        DatasetError, ConfigError: as `publish.hydrate.hydrate`.
    """
    from vgbench_gen.publish import hydrate as room

    with progress_bar("images", "image") as progress:
        return room.hydrate(dataset, scenes, out, count_workers(workers), progress)


def print_hydrated(report: HydrateReport) -> None:
    """Print what came of it."""
    for outcome, said in _SAID.items():
        if report.images[outcome]:
            print(f"{report.images[outcome]:>8} images {said}")
    _print_list("scans that are not there", [f"{scan}: {rows} rows" for scan, rows in report.missing_scenes.items()])
    for title, found in (("frames without image", report.missing_frames), ("images not used", report.different)):
        _print_list(title, [f"{scan} {name}: {why}" for scan, names in found.items() for name, why in names.items()])
    _print_list(
        "rows that no scan gives the images of",
        [
            f"{benchmark}: {rows} rows, {_describe_import(benchmark)}"
            for benchmark, rows in report.not_from_scans.items()
        ],
    )
    for name, (published, here) in report.other_versions.items():
        print(f"{name}: published with {published}, here {here}")
    if report.bases["other"]:
        decoded = report.bases["equal"] + report.bases["other"]
        print(f"{report.bases['other']} of {decoded} frames decode to other pixels than the published ones did")
    print(f"{report.complete} of {report.rows} rows have their images")
    as_published = "as published" if report.said == report.expected_said else "NOT as published"
    print(f"row fingerprint {report.said}: {as_published}")
    print(f"full fingerprint {report.fingerprint}: {_describe_fingerprint(report)}")


def _describe_import(benchmark: str) -> str:
    from vgbench_gen.publish.licences import import_name

    name = import_name(benchmark)
    return f"import it again (vgbench import {name} --out FOLDER)" if name else "their authors alone have them"


def _describe_fingerprint(report: HydrateReport) -> str:
    if report.short:
        return "not proved, images are missing"
    if report.exact:
        return "as published, every image bit for bit"
    return f"published was {report.expected}; images have other bytes here"


def _print_list(title: str, lines: list[str]) -> None:
    if lines:
        print(f"{title} ({len(lines)}):")
        for line in lines[:_LISTED]:
            print(f"  {line}")
        if len(lines) > _LISTED:
            print(f"  … and {len(lines) - _LISTED} more (all of them in hydrate.json)")
