"""Reads MMSI-Bench's questions from its parquet files and finds the options in their texts."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from vgbench_gen.core.types import Item
from vgbench_gen.evaluation.benchmarks import _parquet as parquet
from vgbench_gen.evaluation.benchmarks._parquet import ImagePlace, ParquetSource
from vgbench_gen.evaluation.item_source import make_item
from vgbench_gen.importers._files import RawRow, RowError, Text, table_rows
from vgbench_gen.importers._words import find_options
from vgbench_gen.importers.base import ASKED
from vgbench_gen.store.files import dataset_error

REPOSITORY = "RunsenXu/MMSI-Bench"
NAME = "MMSI-Bench"
ROWS = 1000
LETTERS = "ABCDEFGHIJ"
# Task -> question type in newer copies.
TYPES = {
    "positional_cam_cam": "Positional Relationship (Cam.–Cam.)",  # noqa: RUF001
    "positional_obj_obj": "Positional Relationship (Obj.–Obj.)",  # noqa: RUF001
    "positional_reg_reg": "Positional Relationship (Reg.–Reg.)",  # noqa: RUF001
    "positional_cam_obj": "Positional Relationship (Cam.–Obj.)",  # noqa: RUF001
    "positional_obj_reg": "Positional Relationship (Obj.–Reg.)",  # noqa: RUF001
    "positional_cam_reg": "Positional Relationship (Cam.–Reg.)",  # noqa: RUF001
    "attribute_meas": "Attribute (Meas.)",
    "attribute_appr": "Attribute (Appr.)",
    "motion_cam": "Motion (Cam.)",
    "motion_obj": "Motion (Obj.)",
    "msr": "MSR",
}
_HEAD = re.compile(r"options\s*[:：]", re.IGNORECASE)  # noqa: RUF001
# The letter before an option follows the start or a separator; if too few are found, any space.
_MARK = r"[(（]?([A-J])[)）]?\s*(?:[.)）．、]\s+|[:：]\s*)"  # noqa: RUF001
_AFTER_SEPARATOR = re.compile(rf"(?:(?<=[,;\n:，；：])|(?<=[,;\n:] )){_MARK}")  # noqa: RUF001
_AFTER_SPACE = re.compile(rf"(?<=[\s,;:，；：]){_MARK}")  # noqa: RUF001


class _Row(RawRow):
    id: Text = ""
    images: Any
    question_type: Text
    question: Text
    answer: Text


def normalize_category(question_type: str) -> str:
    """A question type in the spelling of newer copies, which use another dash."""
    plain = _normalize_name(question_type)
    return next((known for known in TYPES.values() if _normalize_name(known) == plain), question_type.strip())


def _normalize_name(name: str) -> str:
    return re.sub(r"[^a-z]", "", name.casefold())


def task_of(question_type: str) -> str:
    """The task of a question type; for an unknown type a name made from it."""
    known = normalize_category(question_type)
    named = re.sub(r"[^a-z0-9]+", "_", known.casefold()).strip("_")
    return next((task for task, name in TYPES.items() if name == known), named)


def open_questions(path: Path) -> ParquetSource:
    """Open the questions under a folder, in a file, or on the Hub; see `Benchmark.open`."""
    place = parquet.place_of(path, REPOSITORY, ["*.parquet", "**/*.parquet"])
    files = [path] if path.is_file() else place.find("*.parquet", "data/*.parquet", "**/*.parquet")
    items: list[Item] = []
    pictures: dict[str, ImagePlace] = {}
    notes = parquet.SkippedRows()
    unparsed = 0
    for file in files:
        for number, fields in enumerate(table_rows(file, _Row.list_columns())):
            try:
                item = _make_item(file, number, len(items), fields, pictures)
            except RowError as problem:
                notes.add(file, number, problem)
                continue
            items.append(item)
            unparsed += not item.options
    if not items:
        raise dataset_error(path, "no question", f"{ROWS} of them", f"Download {REPOSITORY} and name its folder.")
    counts = [f"{len(items)} questions, {ROWS} published"] if len(items) != ROWS else []
    if unparsed:
        counts.append(f"{unparsed} questions whose options cannot be told apart are asked in one order only")
    return ParquetSource(NAME, place.folder, items, pictures, (*counts, *notes.bad))


def _make_item(file: Path, number: int, index: int, fields: Mapping[str, Any], pictures: dict[str, ImagePlace]) -> Item:
    row = _Row.read(fields)
    question, answer = row.question.strip(), row.answer.strip().upper()
    names = parquet.list_image_names(row.images)
    if not names:
        raise RowError("images", "none", "image_missing")
    options, at = split_options_off(question)
    if options and answer in tuple("ABCD"[len(options) :]):
        options, at = (), ()  # some options were not found
    letters = LETTERS[: len(options)] if options else "ABCD"
    if answer not in tuple(letters):
        raise RowError("answer", f"{answer[:20]!r}; expected one of {letters}")
    kind = normalize_category(row.question_type)
    name = f"mmsi-{row.id or index}"
    for k, one in enumerate(names):
        pictures[one] = ImagePlace(file, number, "images", k)
    return make_item(
        name,
        benchmark=NAME,
        task=task_of(kind),
        question_type="multi-choice",
        question=question,
        answer=answer,
        images=names,
        source=NAME,
        scene_id=name,
        options=options,
        category=kind,
        index=index,
        evidence={ASKED: {"text": question, "options_at": [list(span) for span in at]}},
    )


def split_options_off(question: str) -> tuple[tuple[str, ...], tuple[tuple[int, int], ...]]:
    """(texts, [start, end) in the question) of the options; empty if they cannot be separated.

    In the published rows they follow "Options:", on one line or several, separated by commas.
    """
    heads = list(_HEAD.finditer(question))
    if not heads:
        words = find_options(question)
        return words.options, words.options_at
    start = heads[-1].end()
    found = (_select_marks_in_order(pattern.finditer(question, start)) for pattern in (_AFTER_SEPARATOR, _AFTER_SPACE))
    ordered = max(found, key=len)  # the first pattern if both find as many
    if len(ordered) < 2:
        return (), ()
    spans = []
    for mark, after in zip(ordered, [*ordered[1:], None], strict=True):
        end = len(question) if after is None else after.start()
        text = question[mark.end() : end]
        left = len(text) - len(text.lstrip())
        kept = text.strip().rstrip(",;，；").rstrip()  # noqa: RUF001
        spans.append((mark.end() + left, mark.end() + left + len(kept)))
    if any(first >= last for first, last in spans):
        return (), ()
    return tuple(question[first:last] for first, last in spans), tuple(spans)


def _select_marks_in_order(marks: Iterable[re.Match[str]]) -> list[re.Match[str]]:
    """The marks A, B, C, … in order; a letter out of order belongs to an option's text."""
    found: list[re.Match[str]] = []
    for mark in marks:
        if mark.group(1) == LETTERS[len(found) : len(found) + 1]:
            found.append(mark)
    return found
