"""Lines of logs of replies and traces: JSON objects of one schema, read one by one or at their place."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from vgbench_gen.store.files import dataset_error, open_data
from vgbench_gen.store.line_writer import MAX_LINE_BYTES

SCHEMA = 2
REMEDY = "Move the file away to ask anew."
_MARK = b'{"schema":%d,' % SCHEMA


def encode_line(record: BaseModel | Mapping[str, Any]) -> bytes:
    """One line of a file."""
    if isinstance(record, BaseModel):
        record = record.model_dump(mode="json")
    text = json.dumps({"schema": SCHEMA, **record}, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    # Half of a surrogate pair, which a reply may hold and UTF-8 cannot, becomes "?".
    return text.encode("utf-8", "replace") + b"\n"


def read_lines(path: Path, skip_damaged: bool = False) -> Iterator[tuple[int, int, bytes]]:
    """Read a log line by line; a last line without its end is as if never written.

    Args:
        path: of the log.
        skip_damaged: pass over lines of another schema; a line that is too long ends what can be read.

    Yields:
        The number of a line from 1, the byte at which it begins, and the JSON object without its schema.

    Raises:
        DatasetError: no readable file, one whose name cannot be printed, or a line that is too long or of another
            schema.
    """
    if not path.name.isprintable():  # it becomes the name of scores and traces, which tables and verbs show in a line
        raise dataset_error(path, "a name that cannot be printed", "<model>.jsonl", "Rename the file.")
    with open_data(path, "replies", "Run `vgbench eval`.") as file:
        number = at = 0
        while raw := file.readline(MAX_LINE_BYTES + 2):
            number += 1
            if not raw.endswith(b"\n"):
                if len(raw) <= MAX_LINE_BYTES or skip_damaged:
                    return  # torn: its writer died
                raise dataset_error(f"{path}, line {number}", f"more than {MAX_LINE_BYTES} bytes", "less", REMEDY)
            if raw.startswith(_MARK):
                yield number, at, drop_schema(raw)
            elif not skip_damaged:
                found = f"no object of schema {SCHEMA}"
                raise dataset_error(f"{path}, line {number}", found, "a line that `vgbench eval` wrote", REMEDY)
            at += len(raw)


def read_line_at(path: Path, at: int) -> bytes:
    """The JSON object, without its schema, whose line begins at this byte; whatever stands there where none does."""
    with path.open("rb") as file:
        file.seek(at)
        return drop_schema(file.readline(MAX_LINE_BYTES + 2))


def drop_schema(line: bytes) -> bytes:
    """A line of a file without its schema."""
    return b"{" + line[len(_MARK) :] if line.startswith(_MARK) else line
