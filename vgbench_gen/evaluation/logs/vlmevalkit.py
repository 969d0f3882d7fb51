"""Predictions that VLMEvalKit writes: `<model>_<dataset>.xlsx`, `.tsv` or `.json` (`vlmeval/smp/file.py`)."""

from __future__ import annotations

import csv
import sys
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from vgbench_gen.core.errors import ConfigError
from vgbench_gen.core.json_text import parse_json, read_json
from vgbench_gen.evaluation.imported import Log, LoggedReply, LogReader, logs
from vgbench_gen.evaluation.reply_lines import ReplyLine
from vgbench_gen.store.files import dataset_error

_MAX_UNPACKED_BYTES = 100_000_000  # of an Excel file
_NEEDED = {"index", "prediction"}
_FAILED = "Failed to obtain answer"  # `INFER_FAIL_MSG`
_REMEDY = "Give the file of predictions that VLMEvalKit wrote (PRED_FORMAT=tsv writes one that needs no openpyxl)."


@logs.register("vlmevalkit")
class VLMEvalKitLog(LogReader):
    """One file of predictions."""

    def fits(self, path: Path) -> bool:
        """As `LogReader.fits`."""
        if path.suffix not in _READERS or not path.is_file():
            return False
        if path.suffix == ".xlsx":
            return True
        try:
            return next(iter(_read_rows(path)), None) is not None
        except Exception:
            return False

    def read(self, path: Path) -> Log:
        """As `LogReader.read`."""
        name = path.stem
        rows = list(_read_rows(path))
        dataset = next((str(task) for row in rows if (task := _parse_exported_row(row).get("name"))), "")
        model = name.removesuffix(f"_{dataset}") if dataset else name
        return Log(model, [_reply(path, number, row) for number, row in enumerate(rows, start=1)])


def _read_rows(path: Path) -> Iterator[Mapping[str, Any]]:
    reader = _READERS.get(path.suffix)
    if reader is None:
        remedy = f"{_REMEDY} A pickle may run any program, so it is never opened."
        raise dataset_error(path, f"the suffix {path.suffix!r}", f"one of {', '.join(_READERS)}", remedy)
    try:
        yield from (_check_row(path, row) for row in reader(path))
    except OSError as error:
        raise dataset_error(path, f"no readable file ({error.strerror})", "predictions", _REMEDY) from error
    except (ValueError, csv.Error) as error:
        raise dataset_error(path, f"no table ({str(error)[:80]})", "predictions", _REMEDY) from error


def _check_row(path: Path, row: Any) -> Mapping[str, Any]:
    if not isinstance(row, Mapping) or not row.keys() >= _NEEDED:
        found = f"the columns {', '.join(map(str, row))[:80]}" if isinstance(row, Mapping) else "no table"
        raise dataset_error(path, found, f"{', '.join(sorted(_NEEDED))} among them", _REMEDY)
    return row


def _read_table(path: Path) -> Iterator[Mapping[str, Any]]:
    csv.field_size_limit(min(sys.maxsize, 2**31 - 1))
    with path.open(encoding="utf-8", newline="") as file:
        yield from csv.DictReader(file, delimiter="\t" if path.suffix == ".tsv" else ",")


def _read_excel(path: Path) -> Iterator[Mapping[str, Any]]:
    try:
        from openpyxl import load_workbook
    except ImportError:
        raise ConfigError(f"{path}: reading Excel files needs openpyxl: pip install 'vgbench-gen[excel]'.") from None
    with zipfile.ZipFile(path) as archive:
        size = sum(member.file_size for member in archive.infolist())
    if size > _MAX_UNPACKED_BYTES:
        raise ValueError(f"{size} bytes when unpacked; at most {_MAX_UNPACKED_BYTES} are read")
    book = load_workbook(path, read_only=True, data_only=False)
    try:
        rows = book.worksheets[0].iter_rows(values_only=True)
        names = [str(name) for name in next(rows, ())]
        yield from (dict(zip(names, row, strict=False)) for row in rows)
    finally:
        book.close()


def _read_json(path: Path) -> Iterator[Mapping[str, Any]]:
    found = read_json(path, "none")
    if not isinstance(found, list):
        raise ValueError(f"a JSON {type(found).__name__}")
    yield from found


_READERS = {".xlsx": _read_excel, ".tsv": _read_table, ".csv": _read_table, ".json": _read_json}


def _parse_exported_row(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """What the exported row says of itself."""
    try:
        found = parse_json(row["vgbench"], "none")
    except (KeyError, TypeError, ValueError):
        return {}
    return found if isinstance(found, Mapping) else {}


def _reply(path: Path, number: int, row: Mapping[str, Any]) -> LoggedReply:
    told = _parse_exported_row(row).get("record", {})
    said = row["prediction"]
    # An empty cell is an empty reply; VLMEvalKit writes its failures out in words.
    words = "" if said is None else said if isinstance(said, str) else str(said)
    failed = words.startswith(_FAILED)
    question = row.get("question")
    return LoggedReply(
        ReplyLine(
            id=str(told.get("id", row["index"])),
            benchmark="",
            model="",
            response=None if failed else words,
            request_digest=str(told.get("request_digest", "")),
            prompt_set=str(told.get("prompt_set", "paper")),
            error=f"api_error: {words}"[:300] if failed else "",
        ),
        question if isinstance(question, str) and not told else None,
    )
