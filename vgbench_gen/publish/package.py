"""The folder that is uploaded, whole or not at all: data files, card, metadata, audit, recipe, manifest."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from vgbench_gen.core.rng import format_canonical_json, hash_stably
from vgbench_gen.publish.card import format_scores, write_card
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
# A folder of this machine in a text such as a scene's error; what follows the last slash says enough.
_LOCAL = re.compile(r"(?<![\w.:/~-])~?/(?:[^\s/:,;'\"]+/)+")


@dataclass(frozen=True, slots=True)
class Package:
    """A folder that is ready to be uploaded."""

    folder: Path
    files: Mapping[str, Mapping[str, Any]]
    """Size and SHA-256 of every file but the manifest, by its path below `folder`."""
    rows: Mapping[str, int]
    """How many rows every configuration has that is no single task."""
    decisions: tuple[Decision, ...]
    """What the licence gate decided."""
    warnings: tuple[str, ...]
    """What the validator of metadata says, and what is missing."""
    fresh: bool
    """Whether it was made now, and not found as an earlier run left it."""

    @property
    def size_bytes(self) -> int:
        """Of all files but the manifest."""
        return sum(int(entry["bytes"]) for entry in self.files.values())


def write_package(
    dataset: Path, out: Path, options: Options, progress: Callable[[int, int], None] = lambda done, total: None
) -> Package:
    """Write everything that is to be uploaded into the folder `out`, which is replaced whole.

    A folder that an earlier run made from the same inputs stays as it is, so that an upload can be taken up again.

    Args:
        dataset: a build.
        progress: called with (rows written, rows in all).

    Raises:
        DatasetError: no build, a damaged one, or `out` holds something else.
        ConfigError: options that do not fit the build, an unknown licence flag, no library for the metadata.
    """
    release = read_release(dataset, options)
    doors = make_gate(options.with_pixels)
    # The hard questions are some of the benchmark's.
    asked = (item for rows in release.sets if rows.name != HARD for item in rows.items())
    decisions = tuple(doors.decisions(asked))
    inputs = _compute_inputs_digest(release, decisions)
    kept = _read_kept(out, inputs)
    warnings = () if release.audit is not None else (f"{dataset}: no audit; the card says so (`vgbench audit`)",)
    rows = {each.name: len(each) for each in release.sets}
    if kept is not None:
        return Package(out, kept, rows, decisions, warnings, fresh=False)
    import_library()  # before minutes of writing
    with fill_folder(out) as filling:
        noticed = _fill(filling, release, doors, decisions, progress)
        found = _list_files(filling)
        sync_all_to_disk([filling / name for name in found])
        _finish(filling, release, inputs, found)
    return Package(out, found, rows, decisions, (*warnings, *noticed), fresh=True)


def _fill(
    folder: Path,
    release: Release,
    doors: Gate,
    decisions: Sequence[Decision],
    progress: Callable[[int, int], None],
) -> list[str]:
    """Write all but the manifest; returns what the metadata's validator warns of."""
    parts = write_parts(folder, release, doors, progress)
    examples = write_examples(folder, release.main, doors)
    missing = count_rows_without_images(release.main.items(), doors)
    write_bytes(folder / CARD, write_card(release, parts, decisions, missing, examples).encode(), durable=False)
    metadata, warnings = make_croissant(release, parts, decisions)
    write_bytes(folder / CROISSANT, metadata, durable=False)
    for name in AUDIT:
        if release.audit is not None and (release.folder / "audit" / name).is_file():
            (folder / "audit").mkdir(exist_ok=True)
            # Neither the gallery nor the scores travel, so no link to them does.
            write_bytes(
                folder / "audit" / name, cut_links((release.folder / "audit" / name).read_bytes()), durable=False
            )
    recipe = drop_local_paths(release.manifest.get("recipe"))
    if isinstance(recipe, dict):
        write_bytes(folder / RECIPE, format_toml(recipe).encode(), durable=False)
    for rows in release.sets:
        if rows.name == TRAIN:
            text = json.dumps(drop_local_paths(read_manifest(rows.home)), sort_keys=True, indent=2) + "\n"
            write_bytes(folder / TRAIN_MANIFEST, text.encode(), durable=False)
    return warnings


def _finish(folder: Path, release: Release, inputs: str, files: Mapping[str, Any]) -> None:
    options = release.options
    sets = {rows.name: _set_record(rows, files) for rows in release.sets}
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
    made = {key: value for key, value in release.manifest.items() if key != "pulled"}
    manifest = drop_local_paths(made) | {
        "fingerprint": release.main.fingerprint,
        "said_fingerprint": sets[release.main.name]["said_fingerprint"],
        SECTION: section,
    }
    write_manifest(folder, manifest)


def _set_record(rows: RowSet, files: Mapping[str, Any]) -> dict[str, Any]:
    folders = [f"data/{rows.name}/{name}/" for name in rows.configurations.values()]
    place = {folder: k for k, folder in enumerate(folders)}
    mine = [name for name in files if name.startswith(f"data/{rows.name}/")]
    return {
        "split": rows.split,
        "rows": len(rows),
        "fingerprint": rows.fingerprint,
        "said_fingerprint": text_fingerprint(rows.published()),
        "files": sorted(mine, key=lambda name: (place.get(name.rpartition("/")[0] + "/", 0), name)),
    }


def _compute_inputs_digest(release: Release, decisions: Sequence[Decision]) -> str:
    """Digest of all that the files are made from; the code counts, because it decides how."""
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
    """The files of a folder that an earlier run made from the same inputs, None where there is none.

    Raises:
        DatasetError: the folder holds something else, which is not ours to replace.
    """
    if not out.exists() or (out.is_dir() and not any(out.iterdir())):
        return None
    section: Any = None
    if (out / MANIFEST).is_file():
        section = read_manifest(out).get(SECTION)
    if not isinstance(section, dict):
        remedy = "Give another folder with --out."
        raise dataset_error(out, "files that are no published set", "an empty folder, or one of an earlier run", remedy)
    if section.get("inputs") != inputs:
        return None
    files = dict(section["files"])
    same = {name: (out / name).is_file() and (out / name).stat().st_size == files[name]["bytes"] for name in files}
    return files if all(same.values()) else None


def _list_files(folder: Path) -> dict[str, dict[str, Any]]:
    names = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    return {name: {"bytes": (folder / name).stat().st_size, "sha256": compute_sha256(folder / name)} for name in names}


def compute_sha256(path: Path) -> str:
    """Hexadecimal SHA-256 of a file's bytes: the name under which the Hub stores large files."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def drop_local_paths(value: Any) -> Any:
    """JSON-ready values in which no text names a folder of this machine."""
    if isinstance(value, str):
        return _LOCAL.sub("", value)
    if isinstance(value, Mapping):
        return {key: drop_local_paths(member) for key, member in value.items()}
    if isinstance(value, list | tuple):
        return [drop_local_paths(member) for member in value]
    return value


def format_toml(table: Mapping[str, Any], path: tuple[str, ...] = ()) -> str:
    """A recipe as TOML that `load_recipe` reads: tables of plain values and lists; None is left out."""
    plain = {key: value for key, value in table.items() if value is not None and not isinstance(value, Mapping)}
    inner = {key: value for key, value in table.items() if isinstance(value, Mapping)}
    # JSON's strings, numbers, booleans and lists of them are TOML's as well.
    lines = [f"{json.dumps(key)} = {json.dumps(value, ensure_ascii=False)}" for key, value in plain.items()]
    if path and (lines or not inner):
        lines.insert(0, "[" + ".".join(json.dumps(part) for part in path) + "]")
    blocks = ["\n".join(lines)] if lines else []
    return "\n\n".join([*blocks, *(format_toml(value, (*path, key)).strip() for key, value in inner.items())]) + "\n"
