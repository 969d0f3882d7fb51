"""A mended copy of a training file: what can be written right is, and rows that no trainer can use are left out."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from vgbench_gen.core.stand_ins import config_error
from vgbench_gen.store.files import replace_file
from vgbench_gen.training.lint import FATAL, LintReport
from vgbench_gen.training.training_files import MARK, list_files, parse_sample, read_samples


def write_mended(path: Path, out: Path, report: LintReport) -> tuple[int, int]:
    """Write the rows of one file, mended, as JSON lines; returns how many were written and how many left out.

    Args:
        path: the file that was linted.
        out: a new file, in the same folder if its pictures are files.
        report: of the lint.

    Raises:
        ConfigError: several files, pictures inside the file, or an `out` that exists.
    """
    files = list_files(path)
    if len(files) > 1 or files[0].suffix not in (".json", ".jsonl"):
        found = f"{len(files)} files" if len(files) > 1 else f"a file {files[0].suffix}"
        raise config_error("--fix", found, "one file of JSON or JSON lines", "Export such rows anew.")
    if out.exists() or out.suffix != ".jsonl":
        raise config_error("--fix", f"{out}", "the name of a new .jsonl file", "Give another name.")
    kept = 0
    with replace_file(out) as temporary, temporary.open("w", encoding="utf-8") as file:
        for record in _mend_rows(files[0], report):
            file.write(json.dumps(record, ensure_ascii=False, allow_nan=False) + "\n")
            kept += 1
    return kept, report.rows - kept


def _mend_rows(path: Path, report: LintReport) -> Iterator[dict[str, Any]]:
    defects_of = {row.place: row.defects for row in report.damaged}
    for sample in read_samples(path):
        defects = defects_of.get(sample.place, {})
        if FATAL.intersection(defects) or ("marks_under" in defects and sample.marks):
            continue
        record = dict(sample.record)
        for column in ("images", "image"):
            if "no_list" in defects and record.get(column) is not None:
                record[column] = [record[column]]
        if "absolute_path" in defects:
            record = _make_relative(record, path.parent.resolve())
        if "marks_under" in defects:
            record = _add_marks(record, len(sample.pictures))
            if parse_sample(record, "").marks != len(sample.pictures):
                continue  # of a layout in which no text takes marks
        yield _unify(record, report.mixed)


def _make_relative(value: Any, folder: Path) -> Any:
    """A row with the paths of pictures in the file's folder written from there."""
    if isinstance(value, Mapping):
        return {key: _make_relative(inner, folder) for key, inner in value.items()}
    if isinstance(value, list):
        return [_make_relative(inner, folder) for inner in value]
    if isinstance(value, str) and value.startswith("/") and Path(value).is_relative_to(folder):
        return Path(value).relative_to(folder).as_posix()
    return value


def _add_marks(record: dict[str, Any], count: int) -> dict[str, Any]:
    """A row without marks, with those of all its pictures before the first turn of the user."""
    for column, role, content in (("messages", "role", "content"), ("conversations", "from", "value")):
        turns = [dict(turn) for turn in record.get(column) or () if isinstance(turn, Mapping)]
        for turn in turns:
            if turn.get(role) in ("user", "human") and isinstance(turn.get(content), str):
                turn[content] = MARK * count + turn[content]
                return record | {column: turns}
    return record


def _unify(record: dict[str, Any], mixed: Mapping[str, list[str]]) -> dict[str, Any]:
    """A row whose columns of numbers and texts are texts, and whose contents of texts and parts are parts."""
    for column, types in mixed.items():
        if set(types) <= {"text", "a number", "true or false"} and record.get(column) is not None:
            record[column] = str(record[column])
    if {"a list", "text"} <= set(mixed.get("messages[].content", ())):
        record["messages"] = [
            turn | {"content": [{"type": "text", "text": turn["content"]}]}
            if isinstance(turn.get("content"), str)
            else turn
            for turn in record.get("messages") or ()
        ]
    return record
