"""Writes imported questions as a dataset folder: `items/`, `media/`, `manifest.json`.

Images are written to the media store first, where a second run finds them; `items/` and the manifest appear complete or
not at all. The same sources give the same files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from vgbench_gen.core.errors import DatasetError
from vgbench_gen.core.paths import choose_snapshot
from vgbench_gen.core.types import Item
from vgbench_gen.importers._files import Place
from vgbench_gen.importers._reading import FAMILY, ImportReport, read_source
from vgbench_gen.importers._report import DISAGREEING, compare_totals, describe_leaked, describe_set
from vgbench_gen.importers.base import Importer, importers
from vgbench_gen.importers.hub import download
from vgbench_gen.importers.places import TrainingScenes
from vgbench_gen.store.dataset import load
from vgbench_gen.store.files import clean_temporary, dataset_error
from vgbench_gen.store.media import MediaStore
from vgbench_gen.store.provenance import (
    MANIFEST,
    BuildLock,
    code_version,
    dataset_fingerprint,
    read_manifest,
    write_manifest,
)
from vgbench_gen.store.shards import write_items

Progress = Callable[[str, int, int], None]
_SECTION = "imported"  # key of the manifest


@dataclass(slots=True)
class Imported:
    """The result of an import."""

    folder: Path
    items: int = 0
    fingerprint: str = ""
    reports: list[ImportReport] = field(default_factory=list)
    absent: dict[str, str] = field(default_factory=dict)
    """Title of a missing source -> why it is missing."""
    notes: dict[str, Any] = field(default_factory=dict)
    """Facts about the whole set, for the manifest and `--json`."""

    def as_json(self) -> dict[str, Any]:
        """The result for `--json`."""
        return {
            "folder": str(self.folder),
            "items": self.items,
            "fingerprint": self.fingerprint,
            "sources": {report.source: report.as_json() for report in self.reports},
            "absent": self.absent,
            **self.notes,
        }


def find_place(importer: Importer[Any], folder: Path | None, images: Path | None = None) -> Place:
    """The local copy of a source, or a download from the Hub.

    Args:
        importer: of the source.
        folder: a local copy; None to download.
        images: separate folder of images.

    Raises:
        DatasetError: no such folder, one with several revisions, no repository, or the download fails.
    """
    if folder is not None:
        if not folder.is_dir():
            raise dataset_error(folder, "no folder", f"a copy of {importer.title}", "Give the folder with --from.")
        return Place(choose_snapshot(folder, dataset_error), images)
    return Place(download(importer.title, importer.repository, importer.patterns), images)


def find_places(folder: Path | None, images: Path | None = None) -> dict[str, Place | DatasetError]:
    """Registered name -> place of the source, or why it is missing; sources without a folder are left out.

    Args:
        folder: has one folder per source, named after its registered name, title, benchmark or repository (case and
            punctuation are ignored); None to download.
        images: as in `find_place`.

    Raises:
        DatasetError: no such folder.
    """
    if folder is not None and not folder.is_dir():
        raise dataset_error(folder, "no folder", "one with a folder per source", "Give it with --from.")
    folders = sorted(path for path in folder.iterdir() if path.is_dir()) if folder else []
    # Folders in the Hub's cache are named "datasets--OWNER--NAME".
    by_name = {_normalize_name(path.name.rpartition("--")[2]): path for path in folders}
    found: dict[str, Place | DatasetError] = {}
    for name in importers.names():
        importer = importers[name]
        names = (name, importer.title, importer.benchmark, importer.own, importer.repository.rpartition("/")[2])
        copy = next((by_name[key] for key in map(_normalize_name, names) if key in by_name), None)
        if folder is None or copy is not None:
            try:
                found[name] = find_place(importer, copy, images)
            except DatasetError as problem:
                found[name] = problem
    return found


def _normalize_name(name: str) -> str:
    return "".join(sign for sign in name.casefold() if sign.isalnum())


def _check_out(out: Path, source: str) -> None:
    """Raise DatasetError unless the folder is empty or holds an earlier, perhaps interrupted, import of the source."""
    expected, remedy = f"nothing, or an earlier import of {source}", "Give a new folder with --out."
    if not out.exists():
        return
    if not out.is_dir():
        raise dataset_error(out, "a file", "a folder", remedy)
    if (out / MANIFEST).is_file():
        section = read_manifest(out).get(_SECTION)
        earlier = str(section.get("source")) if isinstance(section, dict) else ""
        if earlier != source:
            found = f"an import of {earlier}" if earlier else "a dataset that was not imported"
            raise dataset_error(out, found, expected, remedy)
        return
    names = sorted(path.name for path in out.iterdir() if path.name != "media" and not path.name.startswith("."))
    if names:
        some = ", ".join(names[:3]) + (" and more" if len(names) > 3 else "")
        raise dataset_error(out, f"other files ({some})", expected, remedy)


def import_source(name: str, place: Place, out: Path, progress: Progress = lambda name, done, total: None) -> Imported:
    """Import all of one source, to be scored by its own rules.

    Raises:
        DatasetError: files or columns are missing, no row can be imported, or `out` holds other files.
        UnknownNameError: no such source.
    """
    importer = importers[name]
    with _open_out(out, importer.title) as media:
        result = Imported(out)
        items = _read(importer, place, media, result, False, 0, progress)
        if not items:
            (report,) = result.reports
            first = f"the first one: {report.bad[0]}" if report.bad else "no row"
            found = f"{report.rows} rows of which none can be imported ({first})"
            remedy = "Give the folder that the source was downloaded to."
            raise dataset_error(place.folder, found, report.source, remedy)
        result.notes = describe_set(items)
        return _write(items, result, {"source": importer.title, "repository": importer.repository})


def assemble(
    places: Mapping[str, Place | DatasetError],
    out: Path,
    *,
    vgbench: Path | None = None,
    training: TrainingScenes | None = None,
    keep_leaked: bool = False,
    progress: Progress = lambda name, done, total: None,
) -> Imported:
    """Assemble SpatialScore from its sources.

    Args:
        places: from `find_places`.
        out: dataset folder.
        vgbench: a build of ours, the twelfth source.
        training: scenes whose questions are left out.
        keep_leaked: whether to keep these questions and only list them.
        progress: called with (name of the source or step, done, total).

    Raises:
        DatasetError: no source can be imported, `vgbench` is no dataset, or `out` holds other files.
    """
    with _open_out(out, FAMILY) as media:
        result = Imported(out)
        items: list[Item] = []
        for name in filter(lambda name: importers[name].published, importers.names()):
            place = places.get(name, "no folder")
            try:
                if not isinstance(place, Place):
                    raise DatasetError(str(place))
                items += _read(importers[name], place, media, result, True, len(items), progress)
            except DatasetError as problem:
                result.absent[importers[name].title] = str(problem)
        if vgbench is None:
            result.absent["VGBench"] = "no build given"
        else:
            items += _read_build(vgbench, media, result, len(items), progress)
        if not items:
            found = "; ".join(f"{name}: {reason}" for name, reason in result.absent.items())
            remedy = "Give their folder (--from)."
            raise dataset_error(out, f"no source ({found[:500]})", "at least one of them", remedy)
        result.notes = describe_set(items, media, progress)
        if training is not None:
            result.notes["leaked"] = describe_leaked(items, training, keep_leaked)
            if not keep_leaked:
                kept = [item for item in items if not training.has(item)]
                items = [replace(item, index=k) for k, item in enumerate(kept)]
        result.notes |= {"totals": compare_totals(items), "totals_note": DISAGREEING}
        return _write(items, result, {"source": FAMILY})


@contextmanager
def _open_out(out: Path, source: str) -> Iterator[MediaStore]:
    """Check and lock a dataset folder; yields its media store."""
    _check_out(out, source)
    with BuildLock(out):
        clean_temporary(out)
        yield MediaStore(out / "media")


def _read(
    importer: Importer[Any],
    place: Place,
    media: MediaStore,
    result: Imported,
    published: bool,
    start: int,
    progress: Progress,
) -> list[Item]:
    report, items = ImportReport(importer.title), []
    total = importer.published if published else sum(part.expected or 0 for part in importer.parts.values())
    with media.batch():
        for item in read_source(importer, place, media, report, published, start):
            items.append(item)
            progress(importer.title, len(items), total)
    result.reports.append(report)
    return items


def _read_build(path: Path, media: MediaStore, result: Imported, start: int, progress: Progress) -> list[Item]:
    """The questions of a build of ours, as SpatialScore's source VGBench."""
    dataset = load(path)
    report = ImportReport("VGBench", rows=len(dataset), items=len(dataset))
    items: list[Item] = []
    with media.batch():
        for item in dataset:
            for k, name in enumerate(item.images):
                if not media.has(name):
                    media.put(dataset.image_bytes(item, k), name.rpartition(".")[2])
            source = item.benchmark.rpartition("/")[2]
            items.append(replace(item, benchmark=f"{FAMILY}/{source}", index=start + len(items)))
            report.parts[item.category_origin] += 1
            progress("VGBench", len(items), len(dataset))
    result.reports.append(report)
    return items


def _write(items: list[Item], result: Imported, manifest: Mapping[str, Any]) -> Imported:
    result.items, result.fingerprint = len(items), dataset_fingerprint(items)
    # While the items are written the manifest has no fingerprint, because it would be wrong after an interruption; it
    # only says which source is imported.
    write_manifest(result.folder, {_SECTION: dict(manifest)})
    write_items(result.folder / "items", items, MediaStore(result.folder / "media"))
    facts = {name: value for name, value in result.as_json().items() if name not in ("folder", "items", "fingerprint")}
    whole = {"code": code_version(), "counts": {"items": len(items)}, "fingerprint": result.fingerprint}
    write_manifest(result.folder, {**whole, _SECTION: {**facts, **manifest}})
    return result
