"""Images of a published set that came without them, made again from one's own copy of the scans."""

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
    SceneResult,
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
    """What making a set's images again gave."""

    rows: int = 0
    """Number of rows of the set."""
    complete: int = 0
    """Number of them that have all their images."""
    images: Counter[str] = field(default_factory=Counter)
    """Outcome (see `HydratedImage`) -> number of images, with "embedded" for those that came with the set. An image
    counts once however many rows show it."""
    bases: Counter[str] = field(default_factory=Counter)
    """Number of decoded frames whose pixels are the published ones, under "equal", and of those whose pixels are not,
    under "other"."""
    missing_scenes: dict[str, int] = field(default_factory=dict)
    """Scan that is not there, as "dataset/scene" -> number of rows that lack its images."""
    missing_frames: dict[str, dict[str, str]] = field(default_factory=dict)
    """Scan -> frame id -> why no image could be made of it."""
    different: dict[str, dict[str, str]] = field(default_factory=dict)
    """Scan -> published name of an image -> why what was made is another picture."""
    not_from_scans: dict[str, int] = field(default_factory=dict)
    """Benchmark -> number of rows whose images no scan gives."""
    published: dict[str, str] = field(default_factory=dict)
    """Name of a program or library -> version with which the published images were made; empty where the manifest does
    not say."""
    here: dict[str, str] = field(default_factory=dict)
    """Name of a program or library -> version with which the images are made here."""
    fingerprint: str = ""
    """Digest of all rows of the result with the names of their images, which hold checksums."""
    expected: str = ""
    """The same digest of the set as it was published."""
    said: str = ""
    """Digest of what the rows of the result say, without the names of their images."""
    expected_said: str = ""
    """The same digest of the set as it was published."""

    @property
    def short(self) -> bool:
        """Whether a row is without its images, or says anything else than was published."""
        return self.complete < self.rows or self.said != self.expected_said

    @property
    def exact(self) -> bool:
        """Whether every image has the published bytes."""
        return not self.short and self.fingerprint == self.expected

    @property
    def other_versions(self) -> dict[str, tuple[str, str]]:
        """Name of a program or library -> (published version, version here), for those that differ."""
        return {k: (v, self.here[k]) for k, v in self.published.items() if self.here.get(k, v) != v}

    def to_json(self) -> dict[str, Any]:
        """The report as it stands in `hydrate.json`."""
        fields = {name: getattr(self, name) for name in self.__slots__}
        return fields | {"short": self.short, "exact": self.exact, "other_versions": self.other_versions}


def hydrate(
    dataset: str | PathLike[str],
    scenes: str | PathLike[str] | Sequence[str | PathLike[str]],
    out: str | PathLike[str] | None = None,
    workers: int | Engine = 1,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> HydrateReport:
    """Make the missing images of a dataset and write it whole: `items/`, `media/`, `manifest.json`, `hydrate.json`.

    The manifest gets the fingerprint of what is there now and keeps the published one beside it. `hydrated/` remembers
    which images have other bytes here.

    Images that are in `media/` already are not made again, so a second run goes on where the first was stopped, and
    with more scans adds what these show. A row of which an image is missing stays as it was published.

    Args:
        dataset: what `vgbench pull` wrote, or whatever `load` takes.
        scenes: folders with raw scans.
        out: folder of the result; by default the dataset's own.
        workers: processes.
        progress: called with (images done, images wanted).

    Raises:
        ConfigError: no scan is found, or `out` is needed and not given.
        DatasetError: the dataset cannot be read, or is damaged.
        BuildLocked: another process writes to `out`.
    """
    source = Path(dataset)
    home = source.parent if source.name == "items" or source.is_file() else source
    if out is None and source.is_file():
        raise ConfigError(f"{source}: found a file; expected --out, the folder to write to. Give one.")
    target = Path(out) if out is not None else home
    report = HydrateReport(here=list_codec_versions())
    items = load(source)
    manifest = read_manifest(home) if (home / MANIFEST).is_file() else None
    if manifest is not None and isinstance(manifest.get("pixels"), dict):
        report.published = {k: v for k, v in manifest["pixels"].items() if isinstance(v, str)}
    with BuildLock(target):
        clean_temporary(target)
        media = MediaStore(target / "media")
        wanted = _Wanted(media)
        with media.batch():
            report.expected = rows_fingerprint(wanted.gathered(iterate_rows(items.paths)))
        report.expected_said = text_fingerprint(items)
        made = _make_images(wanted, _list_roots(scenes), target, workers, progress, report)
        rows = _fill_rows(iterate_rows(items.paths, list_light_columns), made, wanted, media, report)
        write_embedded_rows(target / "items", rows, _make_table(items.paths), "items")
        result = load(target)
        report.fingerprint, report.said = dataset_fingerprint(result), text_fingerprint(result)
        if manifest is not None:
            how = {"published_fingerprint": report.expected, "pixels": report.here, "images": dict(report.images)}
            write_manifest(target, {**manifest, "fingerprint": report.fingerprint, "hydrated": how})
        write_bytes(target / REPORT, (json.dumps(report.to_json(), indent=2, ensure_ascii=False) + "\n").encode())
    return report


class _Wanted:
    """What a dataset's rows need; filled while they are read once.

    scans: (dataset, scene) -> published name -> how to make it. embedded: names of images that came along.
    """

    def __init__(self, media: MediaStore) -> None:
        self.scans: dict[tuple[str, str], dict[str, Want]] = defaultdict(dict)
        self.embedded: set[str] = set()
        self._media = media

    def gathered(self, rows: Iterator[Row]) -> Iterator[Row]:
        """The item rows as published, one by one.

        Raises:
            DatasetError: a row is damaged, or an image's bytes do not give its name.
        """
        for row in rows:
            if self._complete(row):
                self._keep(row)
            else:
                self._want(row)
            names = [file["name"] for file in row.get("image_files") or ()] or list_images(row)
            yield {c.name: row[c.name] for c in ITEM_COLUMNS} | {"images": [{"path": name} for name in names]}

    @staticmethod
    def _complete(row: Row) -> bool:
        return len(row["images"]) == len(find_image_files(row)) and all(image["bytes"] for image in row["images"])

    def _keep(self, row: Row) -> None:
        for image in row["images"]:
            name = image["path"]
            if name in self.embedded:
                continue
            digest, _, suffix = name.partition(".") if NAME.fullmatch(name) else ("", "", "jpg")
            found = digest_bytes(image["bytes"])
            if found != digest:
                raise dataset_error(f"item {row['id']}", f"an image with digest {found}", f"{name[:80]!r}", _REMEDY)
            self.embedded.add(self._media.put(image["bytes"], suffix))

    def _want(self, row: Row) -> None:
        images = self.scans[row["source"], row["scene_id"]]
        try:
            for file in find_image_files(row):
                if file["frame_id"] and file["name"] not in images:
                    images[file["name"]] = Want.of(file)
        except (KeyError, TypeError, ValueError) as error:
            found = f"damaged image_files ({error})"
            raise dataset_error(f"item {row['id']}", found, "how to make its images", _REMEDY) from error


def find_image_files(row: Row) -> list[dict[str, Any]]:
    """The `image_files` of a row, or what its evidence tells of them where it has none: no checksums but the names."""
    files: list[dict[str, Any]] = list(row.get("image_files") or ()) or list_image_files(row, None, FileFacts())
    return files


def _make_images(
    wanted: _Wanted,
    roots: Sequence[Path],
    target: Path,
    workers: int | Engine,
    progress: Callable[[int, int], None],
    report: HydrateReport,
) -> dict[str, HydratedImage]:
    """published name -> what became of it, for all that is wanted of scans that are there."""
    scans = {scan: images for scan, images in wanted.scans.items() if images}
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
        _tell(result, jobs[index], report)
        done += len(jobs[index].wants)
        progress(done, total)
    report.images["embedded"] = len(wanted.embedded)
    report.images = +report.images
    for name in ("missing_frames", "different"):  # in an order that knows no workers
        setattr(
            report, name, {scan: dict(sorted(found.items())) for scan, found in sorted(getattr(report, name).items())}
        )
    return made


def _tell(result: SceneResult, job: SceneJob, report: HydrateReport) -> None:
    scan = f"{job.ref.dataset}/{job.ref.scene_id}"
    report.images.update(made.outcome for made in result.made.values())
    report.bases.update("equal" if equal else "other" for equal in result.bases.values())
    for want in job.wants:
        made = result.made[want.name]
        if made.outcome == "missing":
            report.missing_frames.setdefault(scan, {})[want.frame_id] = made.why
        elif made.outcome == "different":
            report.different.setdefault(scan, {})[want.name] = made.why


def _fill_rows(
    rows: Iterator[Row], made: dict[str, HydratedImage], wanted: _Wanted, media: MediaStore, report: HydrateReport
) -> Iterator[Row]:
    """Rows with their images; one that lacks an image has none, and keeps saying how to make them."""
    missing: Counter[str] = Counter()
    elsewhere: Counter[str] = Counter()
    for row in rows:
        report.rows += 1
        files = find_image_files(row)
        names = list_images(row)
        if not (names and all(name in wanted.embedded for name in names)):
            found = [made.get(file["name"]) for file in files]
            names = [one.name for one in found if one is not None and one.outcome in USABLE]
            if len(names) < len(files):
                if not all(file["frame_id"] for file in files):
                    elsewhere[row["benchmark"]] += 1
                elif None in found:
                    missing[f"{row['source']}/{row['scene_id']}"] += 1
                yield {**row, "images": [], "image_files": files}
                continue
        report.complete += 1
        yield {
            **row,
            "images": [{"bytes": media.get(name), "path": name} for name in names],
            "image_files": files,
        }
    report.missing_scenes, report.not_from_scans = dict(sorted(missing.items())), dict(sorted(elsewhere.items()))


def _make_table(paths: Sequence[Path]) -> RecordSchema[Any]:
    """Published items, with what other text columns the files have."""
    with open_parquet(paths[0]) as file:
        schema = file.schema_arrow
    known = {column.name for column in PUBLISHED_COLUMNS}
    names = [name for name in schema.names if name not in known and not name.startswith("__index_level_")]  # of pandas
    more = [Column(name, "string", "as published", "publish") for name in names]
    odd = [c.name for c in more if str(schema.field(c.name).type) not in {"string", "large_string"}]
    if odd:
        raise dataset_error(paths[0], f"columns {', '.join(odd)}", "columns of published items, or text", _REMEDY)
    return RecordSchema(PUBLISHED.kind, (*PUBLISHED_COLUMNS, *more), PUBLISHED.to_row, PUBLISHED.read_row)


def _list_roots(scenes: str | PathLike[str] | Sequence[str | PathLike[str]]) -> list[Path]:
    return [Path(scenes)] if isinstance(scenes, str | PathLike) else [Path(root) for root in scenes]
