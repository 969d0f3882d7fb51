"""Replies in a table: of one's own script, and of VLMEvalKit (`<model>_<dataset>.xlsx`, `vlmeval/smp/file.py`).

Rows of a task that `vgbench export` wrote carry a record of the question and are checked against it. Any other row
names its question by id, by the beginning of one or by `index`; that it is a reply to that question is believed.
"""

from __future__ import annotations

import zipfile
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Any, ClassVar

from vgbench_gen.core.errors import ConfigError
from vgbench_gen.core.json_text import parse_json
from vgbench_gen.core.text_files import decode_text
from vgbench_gen.evaluation.imported import Log, LoggedReply, LogReader, logs
from vgbench_gen.evaluation.records import ReplyKey, ReplyLine
from vgbench_gen.importers._files import table_rows
from vgbench_gen.store.files import dataset_error

IDS = ("id", "question_id", "item_id", "index")
TEXTS = ("response", "prediction", "reply", "output", "completion", "text", "answer")
_LOOKED_AT = 100  # rows, to see whose table it is
_MAX_UNPACKED_BYTES = 100_000_000  # of an Excel file
_RECORD = "vgbench"  # column of exported rows
_FAILED = "Failed to obtain answer"  # `INFER_FAIL_MSG` of VLMEvalKit
_REMEDY = f"Give a table with one of the columns {', '.join(IDS)} and one of {', '.join(TEXTS)}."


@logs.register("table")
class TableLog(LogReader):
    """A table of ids and replies."""

    exported = False
    suffixes: ClassVar[tuple[str, ...]] = (".csv", ".tsv", ".jsonl", ".json", ".parquet", ".xlsx")

    def fits(self, path: Path) -> bool:
        if path.suffix not in TableLog.suffixes or not path.is_file():
            return False
        try:
            rows = list(islice(_read_rows(path), _LOOKED_AT))
        except ConfigError:  # an Excel file, without the library that opens it
            return self.exported
        except Exception:
            return False
        return bool(_find_columns(rows)) and any(_RECORD in row for row in rows) == self.exported

    def read(self, path: Path) -> Log:
        rows = list(_read_rows(path))
        columns = _find_columns(rows)
        if not columns:
            found = ", ".join(dict.fromkeys(chain.from_iterable(rows)))
            raise dataset_error(path, f"the columns {found[:80] or 'none'}", "ids and replies", _REMEDY)
        if self.exported:
            dataset = next((str(task) for row in rows if (task := _parse_record(row).get("name"))), "")
            model = path.stem.removesuffix(f"_{dataset}") if dataset else path.stem
            return Log(model, [_read_exported(row, *columns) for row in rows])
        models = {str(row["model"] or "") for row in rows if "model" in row}
        lines = [
            ReplyLine(
                key=ReplyKey(_write_out(row.get(columns[0]))), benchmark="", model="", response=said, request_digest=""
            )
            for row in rows
            for said in _list_replies(row.get(columns[1]))
        ]
        return Log(models.pop() if len(models) == 1 else "", list(map(LoggedReply, lines)), by_id=True)


@logs.register("vlmevalkit")
class VLMEvalKitLog(TableLog):
    """One file of predictions for an exported task."""

    exported = True
    suffixes = ()


def _read_rows(path: Path) -> Iterator[Mapping[str, Any]]:
    """Rows with the names of their columns in small letters; what is no object has none."""
    if path.suffix not in TableLog.suffixes:
        remedy = f"{_REMEDY} A pickle may run any program, so it is never opened."
        raise dataset_error(path, f"the suffix {path.suffix!r}", f"one of {', '.join(TableLog.suffixes)}", remedy)
    rows = _read_excel(path) if path.suffix == ".xlsx" else table_rows(path)
    first = list(islice(rows, 2))
    # {id: reply, …}; an object that holds objects is the log of a program.
    plain = len(first) == 1 and not any(isinstance(cell, Mapping) for cell in first[0].values())
    if path.suffix == ".json" and plain and not _find_columns(first):
        first = [dict(zip((IDS[0], TEXTS[0]), pair, strict=True)) for pair in first[0].items()]
    for row in chain(first, rows):
        yield {str(name).strip().casefold(): cell for name, cell in row.items()}


def _find_columns(rows: Sequence[Mapping[str, Any]]) -> tuple[str, str] | tuple[()]:
    """The columns of ids and of replies; none where one is missing."""
    names = {str(name).strip().casefold() for row in rows for name in row}
    found = [next((one for one in known if one in names), None) for known in (IDS, TEXTS)]
    return (found[0], found[1]) if found[0] and found[1] else ()


def _list_replies(cell: object) -> list[str | None]:
    """The reply of a cell, or several to one question; None where there is none."""
    return [None if one is None else str(one) for one in (cell if isinstance(cell, list) else [cell])]


def _write_out(cell: object) -> str:
    return "" if cell is None else str(int(cell) if isinstance(cell, float) and cell.is_integer() else cell).strip()


def _read_excel(path: Path) -> Iterator[Mapping[str, Any]]:
    try:
        from openpyxl import load_workbook
    except ImportError:
        raise ConfigError(f"{path}: reading Excel files needs openpyxl: pip install 'vgbench-gen[excel]'.") from None
    with zipfile.ZipFile(path) as archive:
        size = sum(member.file_size for member in archive.infolist())
        if size > _MAX_UNPACKED_BYTES:
            raise ValueError(f"{size} bytes when unpacked; at most {_MAX_UNPACKED_BYTES} are read")
        for name in archive.namelist():  # what it declares could be put in for itself a billion times
            if name.endswith((".xml", ".rels")) and "<!DOCTYPE" in decode_text(archive.read(name)):
                raise ValueError(f"{name} with a document type, which no workbook has")
    book = load_workbook(path, read_only=True, data_only=False)
    try:
        rows = book.worksheets[0].iter_rows(values_only=True)
        names = [str(name) for name in next(rows, ())]
        yield from (dict(zip(names, row, strict=False)) for row in rows)
    finally:
        book.close()


def _parse_record(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """What an exported row says of itself."""
    try:
        found = parse_json(row[_RECORD], "none")
    except (KeyError, TypeError, ValueError):
        return {}
    return found if isinstance(found, Mapping) else {}


def _read_exported(row: Mapping[str, Any], name: str, text: str) -> LoggedReply:
    told = _parse_record(row).get("record", {})
    # An empty cell is an empty reply; VLMEvalKit writes its failures out in words.
    words = "" if row.get(text) is None else str(row[text])
    failed = words.startswith(_FAILED)
    question = row.get("question")
    return LoggedReply(
        ReplyLine(
            key=ReplyKey(str(told.get("id", row.get(name))), prompt_set=str(told.get("prompt_set", "paper"))),
            benchmark="",
            model="",
            response=None if failed else words,
            request_digest=str(told.get("request_digest", "")),
            error=f"api_error: {words}"[:300] if failed else "",
        ),
        question if isinstance(question, str) and not told else None,
    )
