"""Folders that the program writes, as artefacts: tables as rows, JSON without the moment, the rest as text."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tests.golden.digests import Artefacts, digest, parquet_rows, rows_text
from tests.golden.runs import Run

# What is said of the moment, the machine and the code, and digests of files that hold such words.
_MOMENT = {
    "code", "pixels", "seconds", "source_digest", "task_seconds", "time", "latency_s", "cpu_seconds", "packages",
    "sha256", "contentSize", "created", "made", "wall_seconds", "inputs",
}  # fmt: skip
_IMAGES = {".png", ".jpg", ".jpeg", ".webp"}
_DIGEST = re.compile(r"\b[0-9a-f]{64}\b")


def lasting(value: Any) -> Any:
    """A JSON value without what it says of the moment, the machine and the code."""
    if isinstance(value, Mapping):
        return {
            name: lasting(one) for name, one in value.items() if name not in _MOMENT and not _hides_moment(name, one)
        }
    return [lasting(one) for one in value] if isinstance(value, list) else value


def _hides_moment(name: str, value: Any) -> bool:
    """Whether this is a digest of a log of replies, which tells when each came, or of all that a shard rests on."""
    return name in ("replies", "key") and isinstance(value, str) and re.fullmatch("[0-9a-f]{32}", value) is not None


def json_text(run: Run, text: str) -> str:
    """JSON, lasting, with its keys in the order in which they stand."""
    return run.plain(json.dumps(lasting(json.loads(text)), indent=1, ensure_ascii=False))


def tree(run: Run, folder: Path, wanted: Callable[[str], bool] = lambda name: True) -> Artefacts:
    """Every file below a folder.

    Parquet files of one folder are one table, and so are files of JSON lines or comma-separated values, with the file
    in a column of its own. Images are listed with digests.

    Args:
        wanted: says by its path below `folder` whether a file counts.
    """
    found: Artefacts = {}
    tables: dict[str, list[dict[str, Any]]] = {}
    images = []
    names = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    for name in filter(wanted, names):
        path = folder / name
        if path.suffix in _IMAGES:
            images.append(f"{name} {digest(path.read_bytes())}\n")
        elif path.suffix == ".parquet":
            rows = parquet_rows([path])
            tables.setdefault("parquet", []).extend({"file": name} | row for row in rows)
        elif path.suffix in (".jsonl", ".csv"):
            stem = path.parent.relative_to(folder).as_posix()
            kind = path.suffix[1:] if stem == "." else f"{stem} {path.suffix[1:]}"
            tables.setdefault(kind, []).extend({"file": name} | row for row in _lines(run, path))
        elif path.suffix == ".json":
            found[name] = json_text(run, path.read_text())
        else:
            found[name] = _DIGEST.sub("<digest>", run.plain(path.read_text(errors="replace")))
    found |= {f"{kind}.rows": rows_text(rows) for kind, rows in tables.items()}
    return found | ({"images": "".join(images)} if images else {}) | {"files": "\n".join(filter(wanted, names))}


def _lines(run: Run, path: Path) -> list[dict[str, Any]]:
    text = run.plain(path.read_text())
    if path.suffix == ".csv":
        return [dict(row) for row in csv.DictReader(io.StringIO(text))]
    lines = [lasting(json.loads(line)) for line in text.split("\n") if line]
    return [line if isinstance(line, dict) else {"values": line} for line in lines]  # files of scores hold lists


def named(name: str, artefacts: Artefacts) -> Artefacts:
    """The artefacts with a name before theirs."""
    return {f"{name}: {one}": text for one, text in artefacts.items()}
