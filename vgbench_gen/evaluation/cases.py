"""Single cases from a JSONL file, for anyone who wants to check the reader: a line in, a line out."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from vgbench_gen.evaluation.scoring import (
    MAX_RESPONSE_CHARS,
    MAX_TRUTH_CHARS,
    Case,
    CaseError,
    Scored,
    question_type,
    score,
)

MAX_LINE_BYTES = 16 * 1024 * 1024
_MAX_EXTRACTED_CHARS = 1000
_MAX_NAME_CHARS, _MAX_OPTIONS, _MAX_OPTION_CHARS, _MAX_QUESTION_CHARS = 1000, 26, 20_000, 200_000
_FIELDS = {"id", "benchmark", "question_type", "response", "ground_truth", "options", "question"}


@dataclass(slots=True)
class Tally:
    """What became of a file: lines that could not be scored, and outcomes and scores of the others."""

    bad: list[str] = field(default_factory=list)
    outcomes: Counter[str] = field(default_factory=Counter)
    statuses: Counter[str] = field(default_factory=Counter)
    sane: list[float] = field(default_factory=list)
    official: list[float] = field(default_factory=list)


def score_file(path: Path, tally: Tally) -> Iterator[dict[str, Any]]:
    """Score a file line by line.

    Yields `{"id", "sane": {"extracted", "outcome", "score"}, "official": {"extracted", "score"}}` for every line that
    makes sense, in order. A line that does not is named in `tally.bad` and the others go on. Empty lines are skipped.
    Memory holds one line at a time.

    Raises:
        OSError: the file cannot be read.
    """
    with path.open("rb") as file:
        for number, line in _lines(file):
            try:
                if line is None:
                    raise CaseError(f"found more than {MAX_LINE_BYTES} bytes; expected a shorter line")
                name, case, response = _case(line)
                scored = score(case, response)
            except CaseError as error:
                tally.bad.append(f"{path}, line {number}: {error}")
                continue
            tally.outcomes[scored.outcome] += 1
            tally.statuses[scored.reading.status] += 1
            tally.sane.append(scored.score)
            tally.official.append(scored.official.score)
            yield line_out(name, scored)


def line_out(name: str | int, scored: Scored) -> dict[str, Any]:
    """One scored case as it is written."""
    return {
        "id": name,
        "sane": {
            "extracted": _plain(scored.reading.value),
            "outcome": scored.outcome,
            "score": scored.score,
        },
        "official": {"extracted": _plain(scored.official.extracted), "score": scored.official.score},
    }


def _lines(file: BinaryIO) -> Iterator[tuple[int, bytes | None]]:
    """(number from 1, line) without the empty ones; None for a line that is too long, which is skipped over."""
    number = 0
    while line := file.readline(MAX_LINE_BYTES + 1):
        number += 1
        if len(line) > MAX_LINE_BYTES and not line.endswith(b"\n"):
            while (rest := file.readline(MAX_LINE_BYTES)) and not rest.endswith(b"\n"):
                pass
            yield number, None
        elif line.strip():
            yield number, line


def _case(line: bytes) -> tuple[str | int, Case, str | None]:
    try:
        row = json.loads(line.decode("utf-8-sig"))
    except (UnicodeDecodeError, ValueError, RecursionError) as error:
        raise CaseError(f"found no JSON in UTF-8 ({str(error)[:100]}); expected one object per line") from error
    if not isinstance(row, dict):
        raise CaseError(f"found a {type(row).__name__}; expected an object")
    missing = sorted(_FIELDS - {"options", "question"} - row.keys())
    if missing:
        raise CaseError(f"found no {', '.join(missing)}; expected {', '.join(sorted(_FIELDS))}")
    name = row["id"]
    if isinstance(name, bool) or not isinstance(name, str | int) or len(str(name)) > _MAX_NAME_CHARS:
        raise CaseError(f"id: found {_shown(name)}; expected a text or a whole number")
    response = row["response"]
    if response is not None:
        response = _text(row, "response", MAX_RESPONSE_CHARS)
    case = Case(
        benchmark=_text(row, "benchmark", _MAX_NAME_CHARS),
        question_type=question_type(_text(row, "question_type", _MAX_NAME_CHARS)),
        truth=_truth(row["ground_truth"]),
        options=_options(row.get("options")),
        question=_text(row, "question", _MAX_QUESTION_CHARS) if row.get("question") is not None else "",
    )
    return name, case, response


def _text(row: dict[str, Any], key: str, longest: int) -> str:
    value = row[key]
    if not isinstance(value, str):
        raise CaseError(f"{key}: found {_shown(value)}; expected a text")
    if len(value) > longest:
        raise CaseError(f"{key}: found {len(value)} characters; expected at most {longest}")
    return value


def _truth(value: object) -> str:
    if isinstance(value, bool):
        return "Yes" if value else "No"
    if isinstance(value, int | float) and math.isfinite(value) and abs(value) < 1e15:
        return repr(value)
    if not isinstance(value, str) or len(value) > MAX_TRUTH_CHARS:
        raise CaseError(f"ground_truth: found {_shown(value)}; expected a text or a number")
    return value


def _options(value: object) -> dict[str, str]:
    if value is None:
        return {}
    if not isinstance(value, dict) or len(value) > _MAX_OPTIONS:
        raise CaseError(f"options: found {_shown(value)}; expected an object of at most {_MAX_OPTIONS} letters")
    found: dict[str, str] = {}
    for key, text in value.items():
        letter = str(key).strip().strip("().").upper()
        if len(letter) != 1 or not ("A" <= letter <= "Z") or letter in found:
            raise CaseError(f"options: found the key {_shown(key)}; expected one letter each from A to Z")
        if isinstance(text, bool) or not isinstance(text, str | int | float) or len(str(text)) > _MAX_OPTION_CHARS:
            raise CaseError(f"options: found {_shown(text)} for {letter}; expected a text")
        found[letter] = str(text)
    return found


def _plain(value: str | float | None) -> str | float | None:
    """Numbers without rounding debris, whole ones without a point; what JSON cannot hold as a text."""
    if isinstance(value, str):
        # A broken pair of surrogates cannot be written as UTF-8. Scripts that find nothing return the whole reply.
        return value[:_MAX_EXTRACTED_CHARS].encode("utf-8", "replace").decode("utf-8")
    if value is None:
        return None
    if not math.isfinite(value):
        return str(value)
    rounded = round(value, 9)
    return int(rounded) if rounded.is_integer() and abs(rounded) < 1e15 else rounded


def _shown(value: object) -> str:
    return repr(value)[:60]
