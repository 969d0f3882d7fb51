"""`vgbench pull`: a published dataset brought back, and its missing images made from one's own scans."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vgbench_gen.cli._options import Workers, count_workers
from vgbench_gen.cli._screen import print_json, progress_bar
from vgbench_gen.cli._verbs import verb
from vgbench_gen.core.config import Flag
from vgbench_gen.core.errors import ConfigError
from vgbench_gen.core.lines import format_command

if TYPE_CHECKING:
    from vgbench_gen.publish.hydrate import HydrateReport

_LISTED = 20  # lines per kind of problem; all of them stand in hydrate.json
_OUTCOMES = {
    "embedded": "came along",
    "exact": "made, the published bytes",
    "same_pixels": "made, the published pixels in other bytes",
    "close": "made, the same picture to within the codec",
    "unchecked": "made, other bytes; nothing was published to compare them by",
    "different": "another picture than the published: not used",
    "missing": "not made",
}


@verb("pull", "Share", "vgbench pull lab/vgbench --out build/pulled && vgbench eval build/pulled --model …")
def pull(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME",
            help="OWNER/NAME on the Hub, a folder from `vgbench publish`, or (with --scenes) a dataset without images.",
        ),
    ],
    out: Annotated[
        Path | None, Flag("New or empty folder, or an earlier copy; optional for a local dataset.", "FOLDER")
    ] = None,
    revision: Annotated[str, Flag("Branch, tag or commit.", "REF")] = "main",
    part: Annotated[str, Flag("Part of the dataset: vgbench, hard or train.", "NAME")] = "vgbench",
    scenes: Annotated[list[Path] | None, Flag("Your scans, to re-create missing images; repeatable.", "FOLDER")] = None,
    exact: Annotated[bool, Flag("With --scenes: exit 1 unless every image has the published bytes.")] = False,
    workers: Workers = 0,
    as_json: bool = False,
) -> None:
    """Download a published dataset as a build folder.

    Every file is checked against its checksum, every image against the checksum in its file name, and the questions
    against the fingerprint and the schema. A second run resumes. With --scenes, missing images are re-created and
    compared with their published checksums; differences are listed, and it exits 1 if a question still lacks images.
    """
    from vgbench_gen.publish.pull import pull as fetch

    local = Path(name)
    if scenes and local.exists() and not _is_published(local):
        done, folder, target = None, local, out
    elif out is None:
        raise ConfigError("--out: found none; expected a folder to write to.")
    else:
        done = fetch(name, out, revision, part)
        folder, target = done.folder, None
    made = _make_images(folder, scenes, target, workers) if scenes else None
    if as_json:
        pulled = {} if done is None else {**asdict(done), "folder": str(done.folder)}
        print_json(pulled | ({"hydrated": made.to_json()} if made else {}))
    elif done is not None:
        there = "" if done.fresh else ", there already"
        print(f"{done.rows:,} questions in {done.folder}, fingerprint {done.fingerprint}{there}")
    if made is not None:
        if not as_json:
            _print_images(made)
        raise typer.Exit(int(made.short or (exact and not made.exact)))
    if as_json or done is None:
        return
    if scans := done.bare - sum(done.imports.values()):
        again = format_command("vgbench", "pull", done.folder, "--scenes", "YOUR_SCANS")
        print(f"{scans:,} come without images: {again}")
    for again, rows in done.imports.items():
        how = f"import it again: vgbench import {again} --out FOLDER" if again else "only their authors have them"
        print(f"{rows:,} come without images, which no scan gives: {how}")


def _is_published(folder: Path) -> bool:
    """Whether `vgbench publish` wrote a folder, and not `vgbench pull`."""
    from vgbench_gen.publish.package import SECTION
    from vgbench_gen.store.provenance import MANIFEST, read_manifest

    return (folder / MANIFEST).is_file() and {SECTION, "pulled"} & {*read_manifest(folder)} == {SECTION}


def _make_images(dataset: Path, scenes: list[Path], out: Path | None, workers: int) -> HydrateReport:
    from vgbench_gen.publish.hydrate import hydrate

    with progress_bar("images", "image") as progress:
        return hydrate(dataset, scenes, out, count_workers(workers), progress)


def _print_images(report: HydrateReport) -> None:
    for outcome, meaning in _OUTCOMES.items():
        if report.images[outcome]:
            print(f"{report.images[outcome]:>8} images {meaning}")
    _print_list("scans that are not there", [f"{scan}: {rows} rows" for scan, rows in report.missing_scenes.items()])
    for title, found in (("frames without image", report.missing_frames), ("images not used", report.different)):
        _print_list(title, [f"{scan} {name}: {why}" for scan, names in found.items() for name, why in names.items()])
    rows = (f"{one}: {rows} rows, {_describe_import(one)}" for one, rows in report.not_from_scans.items())
    _print_list("rows that no scan gives the images of", list(rows))
    for name, (published, here) in report.other_versions.items():
        print(f"{name}: published with {published}, here {here}")
    if report.bases["other"]:
        decoded = report.bases["equal"] + report.bases["other"]
        print(f"{report.bases['other']} of {decoded} frames decode to other pixels than the published ones did")
    print(f"{report.complete} of {report.rows} rows have their images")
    as_published = "as published" if report.said == report.expected_said else "NOT as published"
    print(f"row fingerprint {report.said}: {as_published}")
    full = f"published was {report.expected}; images have other bytes here"
    if report.short:
        full = "not proved, images are missing"
    elif report.exact:
        full = "as published, every image bit for bit"
    print(f"full fingerprint {report.fingerprint}: {full}")


def _describe_import(benchmark: str) -> str:
    from vgbench_gen.publish.licences import import_name

    name = import_name(benchmark)
    return f"import it again (vgbench import {name} --out FOLDER)" if name else "only their authors have them"


def _print_list(title: str, lines: list[str]) -> None:
    if lines:
        print(f"{title} ({len(lines)}):")
        for line in lines[:_LISTED]:
            print(f"  {line}")
        if len(lines) > _LISTED:
            print(f"  … and {len(lines) - _LISTED} more (all of them in hydrate.json)")
