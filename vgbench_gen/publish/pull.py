"""Downloads a published set as a build folder and checks every file, row and image."""

from __future__ import annotations

import fnmatch
import glob
import shutil
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vgbench_gen.core.errors import ConfigError
from vgbench_gen.core.paths import choose_snapshot, inside
from vgbench_gen.core.rng import digest_bytes
from vgbench_gen.publish import hub
from vgbench_gen.publish.licences import import_name, is_from_scans
from vgbench_gen.publish.package import FORMAT, SECTION, TRAIN_MANIFEST, compute_sha256
from vgbench_gen.publish.release import ALL, HARD, REPO, TRAIN
from vgbench_gen.store import shards
from vgbench_gen.store.dataset import Dataset, load
from vgbench_gen.store.files import dataset_error, fill_folder, link_file, sync_all_to_disk
from vgbench_gen.store.provenance import MANIFEST, dataset_fingerprint, read_manifest, write_manifest
from vgbench_gen.store.schema import SCHEMA_VERSION

_AUDIT = "audit/*"
_BATCH_ROWS = 16  # rows whose images are in memory at a time


@dataclass(frozen=True, slots=True)
class Pulled:
    """A published set as a build folder."""

    folder: Path
    rows: int
    """Number of questions."""
    bare: int
    """Number of questions without images."""
    imports: Mapping[str, int]
    """NAME of `vgbench import NAME` -> questions without images that it imports; "" counts those without an import."""
    fingerprint: str
    commit: str
    """Commit on the Hub; "" if the set came from a folder."""
    fresh: bool
    """Whether this call wrote the folder; False if it held the set already."""


def pull(name: str, out: Path, revision: str = "main", part: str = ALL) -> Pulled:
    """Download a published set and write it as a build folder: `items/`, `manifest.json`, `audit/`.

    An interrupted call is resumed. `out` appears complete or not at all. If it holds the same set already, nothing is
    downloaded, and replies and scores in it stay.

    Args:
        name: OWNER/NAME on the Hub, or a folder that `vgbench publish` wrote.
        part: "vgbench", "hard" or "train".

    Raises:
        ConfigError: neither a folder nor a Hub name, or no such part.
        DatasetError: not a set of this program, another schema, damaged files, or `out` holds other files.
        HubError: the Hub refuses or cannot be reached.
    """
    source, commit, staging = Path(name), "", out.parent / f".{out.name}.pull"
    if source.is_dir():
        source = choose_snapshot(source, dataset_error)
    elif not REPO.fullmatch(name):
        raise ConfigError(f"{name}: found neither a folder nor a Hub name; expected OWNER/NAME, such as lab/vgbench.")
    else:
        source, commit = staging, hub.fetch(name, revision, staging, [MANIFEST])
    manifest, record = _read_part(source, part)
    existing = _find_existing(out, record)
    if existing is None and commit:
        names = [MANIFEST, *record["files"], *([TRAIN_MANIFEST] if part == TRAIN else [])]
        hub.fetch(name, commit, staging, [*map(glob.escape, names), _AUDIT])
    dataset = _write_build(source, out, commit, part, manifest, record) if existing is None else existing
    if commit:
        shutil.rmtree(staging)
    counts = _count_rows_without_images(dataset.paths)
    return Pulled(out, len(dataset), *counts, str(record["fingerprint"]), commit, fresh=existing is None)


def _write_build(
    source: Path, out: Path, commit: str, part: str, manifest: Mapping[str, Any], record: Mapping[str, Any]
) -> Dataset:
    """Check the files of a published set and write them to `out` as a build."""
    files: Mapping[str, Any] = manifest[SECTION]["files"]
    audit = [name for name in files if fnmatch.fnmatch(name, _AUDIT) and part == ALL]
    with fill_folder(out) as folder:
        names = list(record["files"])
        targets = {name: f"items/items-{k:05d}-of-{len(names):05d}.parquet" for k, name in enumerate(names)}
        for name, target in (targets | {name: name for name in audit}).items():
            path, copy = inside(source, name, dataset_error), inside(folder, target, dataset_error)
            _check_file(path, files.get(name), name)
            copy.parent.mkdir(parents=True, exist_ok=True)
            link_file(path, copy)
        own = read_manifest(source, TRAIN_MANIFEST if part == TRAIN else MANIFEST)
        if part == HARD and "hard" in manifest[SECTION]:
            own["hard"] = manifest[SECTION]["hard"]
        stated = {"fingerprint": str(record["fingerprint"]), "said_fingerprint": record["said_fingerprint"]}
        pulled = {"part": part, "repo": manifest[SECTION]["repo"], "commit": commit}
        counts = {**own.get("counts", {}), "items": record["rows"]}
        write_manifest(folder, {**own, **stated, "counts": counts, "pulled": pulled})
        dataset = load(folder)
        found = dataset_fingerprint(dataset)
        if (len(dataset), found) != (record["rows"], record["fingerprint"]):
            expected = f"{record['rows']} and {record['fingerprint']}"
            found = f"{len(dataset)} questions with fingerprint {found}"
            raise dataset_error(folder, found, expected, "The published set is damaged.")
        _check_images(dataset.paths)
        sync_all_to_disk([path for path in sorted(folder.rglob("*")) if path.is_file()])
    return load(out)


def _read_part(source: Path, part: str) -> tuple[dict[str, Any], Mapping[str, Any]]:
    """(manifest, its record of one part of the set)."""
    manifest = read_manifest(source)
    section = manifest.get(SECTION)
    where = source / MANIFEST
    remedy = "Name a set that `vgbench publish` made."
    if not isinstance(section, dict) or section.get("format") != FORMAT:
        found = f"format {section.get('format')}" if isinstance(section, dict) else "no published set"
        raise dataset_error(where, found, f"a published set of format {FORMAT}", remedy)
    if section.get("schema_version") != SCHEMA_VERSION:
        found = f"schema version {section.get('schema_version')}"
        raise dataset_error(where, found, f"{SCHEMA_VERSION}", "Use the release of vgbench-gen that made the set.")
    sets = section["sets"]
    if part not in sets:
        raise ConfigError(f"--part {part}: found no such part in the set; expected one of {', '.join(sets)}.")
    # All paths that are read come from these two lists.
    for name in (*sets[part]["files"], *section["files"]):
        inside(source, name, dataset_error)
    if not all(name.startswith("data/") for name in sets[part]["files"]):
        raise dataset_error(where, f"the files {sets[part]['files']!r:.200}", "names below data/", remedy)
    return manifest, sets[part]


def _find_existing(out: Path, record: Mapping[str, Any]) -> Dataset | None:
    """The dataset in `out` if it is this set; None if `out` is empty. Raises DatasetError for other files."""
    if not out.exists() or (out.is_dir() and not any(out.iterdir())):
        return None
    fingerprint = read_manifest(out).get("fingerprint") if (out / MANIFEST).is_file() else "none"
    if fingerprint == record["fingerprint"]:
        dataset = load(out)
        if dataset_fingerprint(dataset) == fingerprint:
            return dataset
    raise dataset_error(out, "other files", "no folder, or this very set", "Give another folder with --out.")


def _check_file(path: Path, stated: Mapping[str, Any] | None, name: str) -> None:
    remedy = "Delete it and pull again; if that does not help, the published set is damaged."
    if stated is None or not path.is_file():
        raise dataset_error(path, "no such file", f"{name}, which the manifest lists", remedy)
    size, digest = path.stat().st_size, compute_sha256(path)
    if (size, digest) != (stated["bytes"], stated["sha256"]):
        found = f"{size} bytes, SHA-256 {digest[:16]}…"
        raise dataset_error(path, found, f"{stated['bytes']} bytes, SHA-256 {stated['sha256'][:16]}…", remedy)


def _check_images(paths: Sequence[Path]) -> None:
    """Check that the name of every image is the digest of its bytes."""
    for row in shards.iterate_rows(paths, ["id", "images"], _BATCH_ROWS):
        for image in row["images"]:
            if digest_bytes(image["bytes"]) != str(image["path"]).partition(".")[0]:
                found = f"an image with other bytes than its name {image['path']} says"
                raise dataset_error(f"item {row['id']}", found, "its digest", "The published set is damaged.")


def _count_rows_without_images(paths: Sequence[Path]) -> tuple[int, dict[str, int]]:
    """(questions without images, NAME of `vgbench import` -> those of them whose images do not come from scans)."""
    columns = ["benchmark", "images.list.element.path", "image_files.list.element.frame_id"]
    bare, benchmarks = 0, Counter[str]()
    for row in shards.iterate_rows(paths, columns, 4096):
        if not row["images"] and row["image_files"]:
            bare += 1
            has_frames = all(file["frame_id"] for file in row["image_files"])
            if not (has_frames or is_from_scans(row["benchmark"], {})):
                benchmarks[row["benchmark"]] += 1
    imports: Counter[str] = Counter()
    for benchmark, rows in benchmarks.items():
        imports[import_name(benchmark)] += rows
    return bare, dict(sorted(imports.items()))
