"""Makes images that a published set lacks from the user's own copy of the scans."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any

from vgbench_gen.core.errors import ConfigError
from vgbench_gen.core.rng import digest_bytes
from vgbench_gen.executors import Engine, run
from vgbench_gen.pipeline.build import find_scenes
from vgbench_gen.publish._scene_pixels import (
    USABLE,
    HydratedImage,
    SceneJob,
    Want,
    make_lost_scene,
    make_scene,
)
from vgbench_gen.publish.redact_pixels import FileFacts, list_image_files
from vgbench_gen.store.columns import ITEM_COLUMNS, PUBLISHED_COLUMNS, Column
from vgbench_gen.store.dataset import load
from vgbench_gen.store.files import clean_temporary, dataset_error, name_scene_file, write_bytes
from vgbench_gen.store.media import NAME, MediaStore
from vgbench_gen.store.pictures import list_codec_versions
from vgbench_gen.store.provenance import (
    MANIFEST,
    BuildLock,
    dataset_fingerprint,
    read_manifest,
    rows_fingerprint,
    text_fingerprint,
    write_manifest,
)
from vgbench_gen.store.schema import PUBLISHED, RecordSchema, Row
from vgbench_gen.store.shards import iterate_rows, list_images, list_light_columns, open_parquet, write_embedded_rows

REPORT = "hydrate.json"
_RECORDS = "hydrated"
_REMEDY = "Pull the dataset again (`vgbench pull`)."


@dataclass(slots=True)
class HydrateReport:
    """Counts and problems of a run of `hydrate`."""

    rows: int = 0
    complete: int = 0
    """Number of rows that have all their images."""
    images: Counter[str] = field(default_factory=Counter)
    """Outcome (see `HydratedImage`) -> number of distinct images; "embedded" counts those that came with the set."""
    bases: Counter[str] = field(default_factory=Counter)
    """Number of decoded frames whose pixels have the published checksum ("equal") or another one ("other")."""
    missing_scenes: dict[str, int] = field(default_factory=dict)
    """Missing scan, as "dataset/scene" -> number of rows that lack its images."""
    missing_frames: dict[str, dict[str, str]] = field(default_factory=dict)
    """Scan -> frame id -> why no image could be made from it."""
    different: dict[str, dict[str, str]] = field(default_factory=dict)
    """Scan -> published name of an image -> how the new image differs."""
    not_from_scans: dict[str, int] = field(default_factory=dict)
    """Benchmark -> number of rows whose images do not come from scans."""
    published: dict[str, str] = field(default_factory=dict)
    """Program or library -> version that made the published images; empty if the manifest does not say."""
    here: dict[str, str] = field(default_factory=dict)
    """Program or library -> version on this machine."""
    fingerprint: str = ""
    """Digest of all rows of the result with the names of their images, which hold checksums."""
    expected: str = ""
    """The same digest of the published set."""
    said: str = ""
    """Digest of the texts of all rows of the result, without the names of their images."""
    expected_said: str = ""
    """The same digest of the published set."""

    @property
    def short(self) -> bool:
        """Whether a row lacks images, or its text differs from the published one."""
        return self.complete < self.rows or self.said != self.expected_said

    @property
    def exact(self) -> bool:
        """Whether every image has the published bytes."""
        return not self.short and self.fingerprint == self.expected

    @property
    def other_versions(self) -> dict[str, tuple[str, str]]:
        """Program or library -> (published version, version on this machine), if they differ."""
        return {k: (v, self.here[k]) for k, v in self.published.items() if self.here.get(k, v) != v}

    def to_json(self) -> dict[str, Any]:
        """The content of `hydrate.json`."""
        fields = {name: getattr(self, name) for name in self.__slots__}
        return fields | {"short": self.short, "exact": self.exact, "other_versions": self.other_versions}


def hydrate(
    dataset: str | PathLike[str],
    scenes: str | PathLike[str] | Sequence[str | PathLike[str]],
    out: str | PathLike[str] | None = None,
    workers: int | Engine = 1,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> HydrateReport:
    """Make the missing images of a dataset and write `items/`, `media/`, `manifest.json` and `hydrate.json`.

    The manifest gets the fingerprint of the result and keeps the published one. `hydrated/` lists the images whose
    bytes differ from the published ones. Images in `media/` are not made again, so a second run resumes an interrupted
    one and adds the images of further scans. A row that lacks an image stays as published.

    Args:
        dataset: a folder written by `vgbench pull`, or any path that `load` takes.
        scenes: folders with raw scans.
        out: folder of the result; by default the dataset's own.
        workers: number of processes.
        progress: called with (images done, images in all).

    Raises:
        ConfigError: no scan is found, or `out` is missing and the dataset is a file.
        DatasetError: the dataset cannot be read, or is damaged.
        BuildLocked: another process writes to `out`.
    """
    source = Path(dataset)
    home = source.parent if source.name == "items" or source.is_file() else source
    if out is None and source.is_file():
        raise ConfigError(f"{source}: found a file and no --out; expected the folder to write to. Give --out.")
    target = Path(out) if out is not None else home
    roots = [Path(scenes)] if isinstance(scenes, str | PathLike) else [Path(root) for root in scenes]
    report = HydrateReport(here=list_codec_versions())
    items = load(source)
    manifest = read_manifest(home) if (home / MANIFEST).is_file() else None
    if manifest is not None and isinstance(manifest.get("pixels"), dict):
        report.published = {k: v for k, v in manifest["pixels"].items() if isinstance(v, str)}
    with BuildLock(target):
        clean_temporary(target)
        media = MediaStore(target / "media")
        needed = _NeededImages(media)
        with media.batch():
            report.expected = rows_fingerprint(needed.collect(iterate_rows(items.paths)))
        report.expected_said = text_fingerprint(items)
        made = _make_images(needed, roots, target, workers, progress, report)
        rows = _fill_rows(iterate_rows(items.paths, list_light_columns), made, needed, media, report)
        write_embedded_rows(target / "items", rows, _make_table(items.paths), "items")
        result = load(target)
        report.fingerprint, report.said = dataset_fingerprint(result), text_fingerprint(result)
        if manifest is not None:
            how = {"published_fingerprint": report.expected, "pixels": report.here, "images": dict(report.images)}
            write_manifest(target, {**manifest, "fingerprint": report.fingerprint, "hydrated": how})
        write_bytes(target / REPORT, (json.dumps(report.to_json(), indent=2, ensure_ascii=False) + "\n").encode())
    return report


class _NeededImages:
    """The images of a dataset's rows, collected in one pass.

    scans: (dataset, scene) -> published name -> the image to make. embedded: names of images that came with the set.
    """

    def __init__(self, media: MediaStore) -> None:
        self.scans: dict[tuple[str, str], dict[str, Want]] = defaultdict(dict)
        self.embedded: set[str] = set()
        self._media = media

    def collect(self, rows: Iterator[Row]) -> Iterator[Row]:
        """Collect the images of all rows; yields the rows as they were published.

        Raises:
            DatasetError: a row is damaged, or the name of an image is not the digest of its bytes.
        """
        for row in rows:
            if len(row["images"]) == len(find_image_files(row)) and all(image["bytes"] for image in row["images"]):
                self._store_embedded(row)
            else:
                self._add_missing(row)
            names = [file["name"] for file in row.get("image_files") or ()] or list_images(row)
            yield {c.name: row[c.name] for c in ITEM_COLUMNS} | {"images": [{"path": name} for name in names]}

    def _store_embedded(self, row: Row) -> None:
        for image in row["images"]:
            name = image["path"]
            if name in self.embedded:
                continue
            digest, _, suffix = name.partition(".") if NAME.fullmatch(name) else ("", "", "jpg")
            found = digest_bytes(image["bytes"])
            if found != digest:
                raise dataset_error(f"item {row['id']}", f"an image with digest {found}", f"{name[:80]!r}", _REMEDY)
            self.embedded.add(self._media.put(image["bytes"], suffix))

    def _add_missing(self, row: Row) -> None:
        images = self.scans[row["source"], row["scene_id"]]
        try:
            for file in find_image_files(row):
                if file["frame_id"] and file["name"] not in images:
                    images[file["name"]] = Want.of(file)
        except (KeyError, TypeError, ValueError) as error:
            found = f"damaged image_files ({error})"
            raise dataset_error(f"item {row['id']}", found, "how to make its images", _REMEDY) from error


def find_image_files(row: Row) -> list[dict[str, Any]]:
    """The `image_files` of a row; without that column they come from its evidence and have no checksums."""
    files: list[dict[str, Any]] = list(row.get("image_files") or ()) or list_image_files(row, None, FileFacts())
    return files


def _make_images(
    needed: _NeededImages,
    roots: Sequence[Path],
    target: Path,
    workers: int | Engine,
    progress: Callable[[int, int], None],
    report: HydrateReport,
) -> dict[str, HydratedImage]:
    """Published name -> result, for all missing images of the scans that are found."""
    scans = {scan: images for scan, images in needed.scans.items() if images}
    refs = {(ref.dataset, ref.scene_id): ref for ref in find_scenes(roots)} if scans else {}
    jobs = []
    for (dataset, scene_id), images in sorted(scans.items(), key=lambda scan: (-len(scan[1]), scan[0])):
        ref = refs.get((dataset, scene_id))
        if ref is not None:
            record = target / _RECORDS / dataset / f"{name_scene_file(scene_id)}.json"
            jobs.append(SceneJob(ref, tuple(images.values()), target / "media", record))
        else:
            report.images["missing"] += len(images)
    made: dict[str, HydratedImage] = {}
    done, total = 0, sum(len(job.wants) for job in jobs)
    engine = workers if isinstance(workers, Engine) else Engine(workers=workers)
    for index, result in run(make_scene, jobs, engine, [target, *roots], make_lost_scene):
        made |= result.made
        report.images.update(image.outcome for image in result.made.values())
        report.bases.update("equal" if equal else "other" for equal in result.bases.values())
        done += len(jobs[index].wants)
        progress(done, total)
    report.images["embedded"] = len(needed.embedded)
    report.images = +report.images
    # Sorted, so that the report does not depend on the order in which workers finish.
    for scan, job in sorted((f"{job.ref.dataset}/{job.ref.scene_id}", job) for job in jobs):
        missing = {want.frame_id: made[want.name].why for want in job.wants if made[want.name].outcome == "missing"}
        different = {want.name: made[want.name].why for want in job.wants if made[want.name].outcome == "different"}
        report.missing_frames |= {scan: dict(sorted(missing.items()))} if missing else {}
        report.different |= {scan: dict(sorted(different.items()))} if different else {}
    return made


def _fill_rows(
    rows: Iterator[Row],
    made: dict[str, HydratedImage],
    needed: _NeededImages,
    media: MediaStore,
    report: HydrateReport,
) -> Iterator[Row]:
    """Embed the images of complete rows; a row that lacks an image gets none and keeps its `image_files`."""
    missing: Counter[str] = Counter()
    elsewhere: Counter[str] = Counter()
    for row in rows:
        report.rows += 1
        files = find_image_files(row)
        names = list_images(row)
        if not (names and all(name in needed.embedded for name in names)):
            found = [made.get(file["name"]) for file in files]
            names = [image.name for image in found if image is not None and image.outcome in USABLE]
            if len(names) < len(files):
                if not all(file["frame_id"] for file in files):
                    elsewhere[row["benchmark"]] += 1
                elif None in found:
                    missing[f"{row['source']}/{row['scene_id']}"] += 1
                yield {**row, "images": [], "image_files": files}
                continue
        report.complete += 1
        images = [{"bytes": media.get(name), "path": name} for name in names]
        yield {**row, "images": images, "image_files": files}
    report.missing_scenes, report.not_from_scans = dict(sorted(missing.items())), dict(sorted(elsewhere.items()))


def _make_table(paths: Sequence[Path]) -> RecordSchema[Any]:
    """The columns of published items and any further text columns of the files."""
    with open_parquet(paths[0]) as file:
        schema = file.schema_arrow
    known = {column.name for column in PUBLISHED_COLUMNS}
    # pandas adds columns whose names begin with "__index_level_".
    names = [name for name in schema.names if name not in known and not name.startswith("__index_level_")]
    more = [Column(name, "string", "as published", "publish") for name in names]
    odd = [c.name for c in more if str(schema.field(c.name).type) not in {"string", "large_string"}]
    if odd:
        raise dataset_error(paths[0], f"columns {', '.join(odd)}", "columns of published items, or text", _REMEDY)
    return RecordSchema(PUBLISHED.kind, (*PUBLISHED_COLUMNS, *more), PUBLISHED.to_row, PUBLISHED.read_row)
