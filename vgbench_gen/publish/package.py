"""Writes the folder that is uploaded: data files, card, metadata, audit, recipe and manifest."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from vgbench_gen.core.rng import format_canonical_json, hash_stably
from vgbench_gen.publish.baselines import format_scores
from vgbench_gen.publish.card import write_card
from vgbench_gen.publish.croissant import FILE as CROISSANT
from vgbench_gen.publish.croissant import import_library, make_croissant
from vgbench_gen.publish.data_files import write_examples, write_parts
from vgbench_gen.publish.licences import Decision, Gate, count_rows_without_images, make_gate
from vgbench_gen.publish.release import HARD, TRAIN, Options, Release, RowSet, read_release
from vgbench_gen.report.header import cut_links
from vgbench_gen.store.files import dataset_error, fill_folder, sync_all_to_disk, write_bytes
from vgbench_gen.store.provenance import MANIFEST, code_version, read_manifest, text_fingerprint, write_manifest
from vgbench_gen.store.schema import SCHEMA_VERSION

FORMAT = 1
CARD = "README.md"
RECIPE = "recipe.toml"
TRAIN_MANIFEST = "train-manifest.json"
AUDIT = ("audit.json", "index.html")
SECTION = "published"
# The folders of an absolute path, as in the error of a scene; only the file name is published.
_LOCAL = re.compile(r"(?<![\w.:/~-])~?/(?:[^\s/:,;'\"]+/)+")


@dataclass(frozen=True, slots=True)
class Package:
    """A folder that is ready to be uploaded."""

    folder: Path
    files: Mapping[str, Mapping[str, Any]]
    """Path below `folder` -> size and SHA-256, of every file but the manifest."""
    rows: Mapping[str, int]
    """Configuration -> number of rows, without the configurations of single tasks."""
    decisions: tuple[Decision, ...]
    """Decisions of the license gate."""
    warnings: tuple[str, ...]
    """Warnings of the metadata's validator, and about a missing audit."""
    fresh: bool
    """Whether this run wrote the folder; False if an earlier run did."""

    @property
    def size_bytes(self) -> int:
        """Total size of all files but the manifest."""
        return sum(int(entry["bytes"]) for entry in self.files.values())


def write_package(
    dataset: Path, out: Path, options: Options, progress: Callable[[int, int], None] = lambda done, total: None
) -> Package:
    """Write everything that is uploaded into the folder `out`, replacing it as a whole.

    A folder that an earlier run made from the same inputs is kept, so that an interrupted upload can be resumed.

    Args:
        dataset: folder of a build.
        progress: called with (rows written, rows in all).

    Raises:
        DatasetError: no build, a damaged one, or `out` holds other files.
        ConfigError: options that do not match the build, an unknown license flag, or a missing library.
    """
    release = read_release(dataset, options)
    gate = make_gate(options.with_pixels)
    # The hard questions are a subset of the benchmark.
    items = (item for rows in release.sets if rows.name != HARD for item in rows.items())
    decisions = tuple(gate.decisions(items))
    inputs = _compute_inputs_digest(release, decisions)
    kept = _read_kept(out, inputs)
    warnings = () if release.audit is not None else (f"{dataset}: no audit; the card says so (`vgbench audit`)",)
    rows = {each.name: len(each) for each in release.sets}
    if kept is not None:
        return Package(out, kept, rows, decisions, warnings, fresh=False)
    import_library()  # fails before minutes of writing
    with fill_folder(out) as folder:
        more_warnings = _write_files(folder, release, gate, decisions, progress)
        files = _list_files(folder)
        sync_all_to_disk([folder / name for name in files])
        _write_manifest(folder, release, inputs, files)
    return Package(out, files, rows, decisions, (*warnings, *more_warnings), fresh=True)


def _write_files(
    folder: Path,
    release: Release,
    gate: Gate,
    decisions: Sequence[Decision],
    progress: Callable[[int, int], None],
) -> list[str]:
    """Write all files but the manifest; returns the warnings of the metadata's validator."""
    parts = write_parts(folder, release, gate, progress)
    examples = write_examples(folder, release.main, gate)
    missing = count_rows_without_images(release.main.items(), gate)
    write_bytes(folder / CARD, write_card(release, parts, decisions, missing, examples).encode(), durable=False)
    metadata, warnings = make_croissant(release, parts, decisions)
    write_bytes(folder / CROISSANT, metadata, durable=False)
    for name in AUDIT:
        source = release.folder / "audit" / name
        if release.audit is not None and source.is_file():
            (folder / "audit").mkdir(exist_ok=True)
            # The gallery and the scores are not published, so links to them are removed.
            write_bytes(folder / "audit" / name, cut_links(source.read_bytes()), durable=False)
    recipe = drop_local_paths(release.manifest.get("recipe"))
    if isinstance(recipe, dict):
        write_bytes(folder / RECIPE, format_toml(recipe).encode(), durable=False)
    for rows in release.sets:
        if rows.name == TRAIN:
            text = json.dumps(drop_local_paths(read_manifest(rows.home)), sort_keys=True, indent=2) + "\n"
            write_bytes(folder / TRAIN_MANIFEST, text.encode(), durable=False)
    return warnings


def _write_manifest(folder: Path, release: Release, inputs: str, files: Mapping[str, Any]) -> None:
    options = release.options
    sets = {rows.name: _describe_rows(rows, files) for rows in release.sets}
    section = {
        "format": FORMAT,
        "schema_version": SCHEMA_VERSION,
        "repo": options.repo,
        "title": options.name,
        "version": options.version,
        "canary": release.canary,
        "code": code_version(),
        "inputs": inputs,
        "sets": sets,
        "files": files,
        **({"date": release.date} if release.date else {}),
        **({"hard": release.vote.record()} if release.vote is not None else {}),
    }
    build = {key: value for key, value in release.manifest.items() if key != "pulled"}
    manifest = drop_local_paths(build) | {
        "fingerprint": release.main.fingerprint,
        "said_fingerprint": sets[release.main.name]["said_fingerprint"],
        SECTION: section,
    }
    write_manifest(folder, manifest)


def _describe_rows(rows: RowSet, files: Mapping[str, Any]) -> dict[str, Any]:
    """A row set in the manifest; its files are in the order of the published rows."""
    place = {f"data/{rows.name}/{name}": k for k, name in enumerate(rows.configurations.values())}
    names = [name for name in files if name.startswith(f"data/{rows.name}/")]
    return {
        "split": rows.split,
        "rows": len(rows),
        "fingerprint": rows.fingerprint,
        "said_fingerprint": text_fingerprint(rows.published()),
        "files": sorted(names, key=lambda name: (place.get(name.rpartition("/")[0], 0), name)),
    }


def _compute_inputs_digest(release: Release, decisions: Sequence[Decision]) -> str:
    """Digest of everything that determines the files, the version of this program included."""
    audit = release.folder / "audit" / AUDIT[0]
    parts = [
        *(rows.fingerprint for rows in release.sets),
        format_canonical_json(release.manifest),
        repr(release.vote),
        compute_sha256(audit) if release.audit is not None else "",
        repr(replace(release.options, hard=None, train=None)),
        format_scores(release),
        repr(decisions),
        format_canonical_json(code_version()),
        str(FORMAT),
    ]
    return hash_stably(*parts, size=16)


def _read_kept(out: Path, inputs: str) -> dict[str, Any] | None:
    """The files of a folder that an earlier run made from the same inputs; None if they must be made.

    Raises:
        DatasetError: the folder holds other files, which must not be replaced.
    """
    if not out.exists() or (out.is_dir() and not any(out.iterdir())):
        return None
    section: Any = read_manifest(out).get(SECTION) if (out / MANIFEST).is_file() else None
    if not isinstance(section, dict):
        remedy = "Give another folder with --out."
        raise dataset_error(out, "files that are no published set", "an empty folder, or one of an earlier run", remedy)
    if section.get("inputs") != inputs:
        return None
    files = dict(section["files"])
    same = ((out / name).is_file() and (out / name).stat().st_size == files[name]["bytes"] for name in files)
    return files if all(same) else None


def _list_files(folder: Path) -> dict[str, dict[str, Any]]:
    names = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    return {name: {"bytes": (folder / name).stat().st_size, "sha256": compute_sha256(folder / name)} for name in names}


def compute_sha256(path: Path) -> str:
    """Hexadecimal SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def drop_local_paths(value: Any) -> Any:
    """JSON-ready values, with the folders of absolute paths removed from their texts."""
    if isinstance(value, str):
        return _LOCAL.sub("", value)
    if isinstance(value, Mapping):
        return {key: drop_local_paths(member) for key, member in value.items()}
    if isinstance(value, list | tuple):
        return [drop_local_paths(member) for member in value]
    return value


def format_toml(table: Mapping[str, Any], path: tuple[str, ...] = ()) -> str:
    """A recipe as TOML for `load_recipe`: tables of plain values and lists, without values that are None."""
    plain = {key: value for key, value in table.items() if value is not None and not isinstance(value, Mapping)}
    inner = {key: value for key, value in table.items() if isinstance(value, Mapping)}
    # Strings, numbers, booleans and lists of them are written the same in JSON and TOML.
    lines = [f"{json.dumps(key)} = {json.dumps(value, ensure_ascii=False)}" for key, value in plain.items()]
    if path and (lines or not inner):
        lines.insert(0, "[" + ".".join(json.dumps(part) for part in path) + "]")
    blocks = ["\n".join(lines)] if lines else []
    return "\n\n".join([*blocks, *(format_toml(value, (*path, key)).strip() for key, value in inner.items())]) + "\n"
