"""Imported questions as a dataset folder of our layout: `items/`, `media/`, `manifest.json`.

Images go to the media store first, where a second run finds them again; `items/` and the manifest appear whole. The
same sources give the same files.
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
from vgbench_gen.importers._report import DISAGREEING, TrainingScenes, compare_totals, describe_leaked, describe_set
from vgbench_gen.importers.base import Importer, importers
from vgbench_gen.importers.hub import download
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
_SECTION = "imported"  # of the manifest


@dataclass(slots=True)
class Imported:
    """What an import wrote."""

    folder: Path
    items: int = 0
    fingerprint: str = ""
    reports: list[ImportReport] = field(default_factory=list)
    absent: dict[str, str] = field(default_factory=dict)
    """Why a source is not among them, by its title."""
    notes: dict[str, Any] = field(default_factory=dict)
    """What is to be known of the set as a whole. It goes into the manifest and into `--json`."""

    def as_json(self) -> dict[str, Any]:
        """For `--json`."""
        return {
            "folder": str(self.folder),
            "items": self.items,
            "fingerprint": self.fingerprint,
            "sources": {report.source: report.as_json() for report in self.reports},
            "absent": self.absent,
            **self.notes,
        }


def find_place(importer: Importer[Any], folder: Path | None, images: Path | None = None) -> Place:
    """Where a source lies.

    Args:
        importer: of the source.
        folder: a local copy; None for the Hub.
        images: folder of images that lie apart.

    Raises:
        DatasetError: no such folder; one of several revisions; no repository; the Hub does not give it.
    """
    if folder is not None:
        if not folder.is_dir():
            raise dataset_error(folder, "no folder", f"a copy of {importer.title}", "Give the folder with --from.")
        return Place(choose_snapshot(folder, dataset_error), images)
    return Place(download(importer.title, importer.repository, importer.patterns), images)


def find_places(folder: Path | None, images: Path | None = None) -> dict[str, Place | DatasetError]:
    """Where every source lies, by registered name, or why it is not there.

    Args:
        folder: holds one folder per source, called by its registered name, title, benchmark or repository (case and
            punctuation do not count); None for the Hub.
        images: as in `find_place`.

    Raises:
        DatasetError: no such folder.
    """
    if folder is not None and not folder.is_dir():
        raise dataset_error(folder, "no folder", "one with a folder per source", "Give it with --from.")
    folders = sorted(path for path in folder.iterdir() if path.is_dir()) if folder else []
    there = {_make_plain(path.name.rpartition("--")[2]): path for path in folders}  # the Hub's cache has the owner too
    found: dict[str, Place | DatasetError] = {}
    for name in importers.names():
        importer = importers[name]
        called = (name, importer.title, importer.benchmark, importer.own, importer.repository.rpartition("/")[2])
        here = next((there[_make_plain(one)] for one in called if _make_plain(one) in there), None)
        if folder is None or here is not None:
            try:
                found[name] = find_place(importer, here, images)
            except DatasetError as problem:
                found[name] = problem
    return found


def _make_plain(name: str) -> str:
    return "".join(sign for sign in name.casefold() if sign.isalnum())


def check_out(out: Path, source: str) -> None:
    """Refuse a folder that holds anything but an earlier import of the same source, or the images of one cut short.

    Raises:
        DatasetError: it does.
    """
    remedy = "Give a new folder with --out."
    if not out.exists():
        return
    if not out.is_dir():
        raise dataset_error(out, "a file", "a folder", remedy)
    if (out / MANIFEST).is_file():
        imported = read_manifest(out).get(_SECTION)
        held = str(imported.get("source")) if isinstance(imported, dict) else ""
        if held != source:
            found = f"an import of {held}" if held else "a dataset that was not imported"
            raise dataset_error(out, found, f"nothing, or an earlier import of {source}", remedy)
        return
    strange = sorted(path.name for path in out.iterdir() if path.name != "media" and not path.name.startswith("."))
    if strange:
        some = ", ".join(strange[:3]) + (" and more" if len(strange) > 3 else "")
        raise dataset_error(out, f"other files ({some})", f"nothing, or an earlier import of {source}", remedy)


def import_source(name: str, place: Place, out: Path, progress: Progress = lambda name, done, total: None) -> Imported:
    """One source, all of it, scored by its own rules.

    Raises:
        DatasetError: files or columns are missing, no row can be taken over, or `out` holds something else.
        UnknownNameError: no such source.
    """
    importer = importers[name]
    with _open_out(out, importer.title) as media:
        result = Imported(out)
        items = _read(importer, place, media, result, False, 0, progress)
        if not items:
            (report,) = result.reports
            first = f"the first one: {report.bad[0]}" if report.bad else "no row"
            found = f"{report.rows} rows of which none can be taken over ({first})"
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
    """SpatialScore from its sources.

    Args:
        places: where each source lies, by registered name, or why it is not there.
        out: dataset folder.
        vgbench: our build, the twelfth source.
        training: scenes whose questions are left out.
        keep_leaked: keep them, and only say which they are.
        progress: called with (what, done, total).

    Raises:
        DatasetError: nothing of any source can be taken over, `vgbench` is no dataset, or `out` holds something else.
    """
    with _open_out(out, FAMILY) as media:
        result = Imported(out)
        items: list[Item] = []
        for name in (one for one in importers.names() if importers[one].published):
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
                items = [replace(item, index=k) for k, item in enumerate(one for one in items if not training.has(one))]
        result.notes |= {"totals": compare_totals(items), "totals_note": DISAGREEING}
        return _write(items, result, {"source": FAMILY})


@contextmanager
def _open_out(out: Path, source: str) -> Iterator[MediaStore]:
    """The images of a dataset folder that may be written."""
    check_out(out, source)
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
    """Questions of our build, to be counted as SpatialScore's VGBench."""
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
    # A reader takes the manifest's fingerprint for that of the items beside it, so it has none while these change; what
    # it still says is whose items they are, for an import that is cut short here.
    write_manifest(result.folder, {_SECTION: dict(manifest)})
    write_items(result.folder / "items", items, MediaStore(result.folder / "media"))
    told = {name: value for name, value in result.as_json().items() if name not in ("folder", "items", "fingerprint")}
    write_manifest(
        result.folder,
        {
            "code": code_version(),
            "counts": {"items": len(items)},
            "fingerprint": result.fingerprint,
            _SECTION: {**told, **manifest},
        },
    )
    return result
