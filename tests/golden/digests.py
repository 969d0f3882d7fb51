"""Digests of what the program writes, and words for how two of them differ.

An artefact is text: the rows of a table as one JSON line each, a report, a list of files. Its name says which: a name
that ends in `.rows` also gets a digest for each column, so that a difference names the columns it is in.
"""

from __future__ import annotations

import difflib
import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

ROWS = ".rows"
Artefacts = dict[str, str]  # name -> text
Digests = dict[str, Any]  # name -> digest, or for a table {"count": int, "columns": {column: digest}}

_TIME = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:?\d\d)?")
_CODE = re.compile(r"source digest `[0-9a-f]{32}`")  # of the package, on a card
_SHOWN = 300  # characters of a value in a message


def digest(data: bytes | str) -> str:
    """Sixteen hexadecimal digits."""
    return hashlib.blake2b(data.encode() if isinstance(data, str) else data, digest_size=8).hexdigest()


def plain(value: Any) -> Any:
    """A value as JSON has it; bytes by their digest."""
    if isinstance(value, bytes):
        return f"bytes {digest(value)}"
    if isinstance(value, dict):
        return {str(name): plain(one) for name, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(one) for one in value]
    return value if value is None or isinstance(value, (bool, int, float, str)) else str(value)


def rows_text(rows: Iterable[Mapping[str, Any]]) -> str:
    """One JSON line per row. Floats are written so that they read back as the same number."""
    return "".join(json.dumps(plain(row), ensure_ascii=False) + "\n" for row in rows)


def parquet_rows(paths: Iterable[Path]) -> Iterator[dict[str, Any]]:
    """All rows of some parquet files, the bytes of their images by digest."""
    for path in paths:
        with pq.ParquetFile(path) as file:
            for batch in file.iter_batches(64, use_threads=False):
                yield from batch.to_pylist()


def parquet_schema(paths: Iterable[Path]) -> str:
    """Columns and types of some parquet files, which are usually the same for all."""
    found: dict[str, None] = {}
    for path in paths:
        with pq.ParquetFile(path) as file:
            found["".join(f"{field.name}: {field.type}\n" for field in file.schema_arrow)] = None
    return "\n".join(found)


def file_digests(folder: Path, paths: Iterable[Path]) -> str:
    """A line with name and digest for each file, of its bytes as they are."""
    return "".join(f"{path.relative_to(folder).as_posix()} {digest(path.read_bytes())}\n" for path in sorted(paths))


def normalise(text: str, places: Mapping[str, str]) -> str:
    """The text without times, the digest of the code and the folders of this machine (place -> name to put there)."""
    for place in sorted(places, key=len, reverse=True):
        text = text.replace(place, f"<{places[place]}>")
    return _TIME.sub("<time>", _CODE.sub("source digest <code>", text))


def digests(artefacts: Artefacts) -> Digests:
    """What is kept of the artefacts of a part."""
    return {name: _table(text) if name.endswith(ROWS) else digest(text) for name, text in sorted(artefacts.items())}


def _table(text: str) -> dict[str, Any]:
    rows = [json.loads(line) for line in text.splitlines()]
    names = dict.fromkeys(name for row in rows for name in row)
    missing = object()
    columns = {
        name: digest("\n".join("-" if row.get(name, missing) is missing else json.dumps(row[name]) for row in rows))
        for name in names
    }
    return {"count": len(rows), "columns": columns}


def differences(before: Digests, after: Digests, old: Artefacts, new: Artefacts) -> list[str]:
    """A line or more for each artefact that is not what it was.

    Args:
        old: texts of before, as far as they are still there; they tell which row and which line.
        new: texts of now.
    """
    lines = []
    for name in sorted({*before, *after}):
        if name not in after:
            lines.append(f"{name}: gone")
        elif name not in before:
            lines.append(f"{name}: new")
        elif before[name] != after[name]:
            lines.append(f"{name}: {_how(before[name], after[name])}")
            if name in old and name in new:
                lines += [f"    {line}" for line in _where(name, old[name], new[name])]
    return lines


def _how(before: Any, after: Any) -> str:
    if not isinstance(before, dict) or not isinstance(after, dict):
        return f"was {before}, is {after}"
    told = [] if before["count"] == after["count"] else [f"{before['count']} rows became {after['count']}"]
    was, now = before["columns"], after["columns"]
    told += [
        f"{verb} {', '.join(names)}"
        for verb, names in (
            ("columns changed:", [name for name in was if name in now and was[name] != now[name]]),
            ("columns gone:", [name for name in was if name not in now]),
            ("columns new:", [name for name in now if name not in was]),
        )
        if names
    ]
    return "; ".join(told)


def _where(name: str, old: str, new: str) -> list[str]:
    if not name.endswith(ROWS):
        found = difflib.unified_diff(old.splitlines(), new.splitlines(), "before", "now", n=0, lineterm="")
        return [line[:_SHOWN] for _, line in zip(range(12), found, strict=False)]
    for k, (was, now) in enumerate(zip(old.splitlines(), new.splitlines(), strict=False)):
        if was != now:
            row, other = json.loads(was), json.loads(now)
            at = [key for key in {**row, **other} if row.get(key) != other.get(key)]
            head = f"first in row {k} ({row.get('id') or row.get('key') or ''}):"
            return [head, *(f"{key}: {str(row.get(key))[:_SHOWN]} -> {str(other.get(key))[:_SHOWN]}" for key in at[:4])]
    return []
