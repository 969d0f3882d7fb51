"""Single cases from a JSONL file, for anyone who wants to check the reader: a line in, a line out."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from vgbench_gen.evaluation.answers.outcomes import plain
from vgbench_gen.evaluation.benchmarks.rover import cases as judge_cases
from vgbench_gen.evaluation.benchmarks.salbench import labels
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
_MAX_NAME_CHARS, _MAX_OPTIONS, _MAX_OPTION_CHARS, _MAX_QUESTION_CHARS = 1000, 26, 20_000, 200_000
_FIELDS = {"id", "benchmark", "question_type", "response", "ground_truth", "options", "question"}


@dataclass(slots=True)
class Tally:
    """What became of a file: lines that could not be scored, and outcomes and scores of the others.

    sane, official: where there is a score. differ: on how many the two are not the same.
    """

    bad: list[str] = field(default_factory=list)
    outcomes: Counter[str] = field(default_factory=Counter)
    statuses: Counter[str] = field(default_factory=Counter)
    sane: list[float] = field(default_factory=list)
    official: list[float] = field(default_factory=list)
    differ: int = 0


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
                row = _row(line)
                if str(row.get("benchmark")).casefold() == judge_cases.BENCHMARK:
                    found = judge_cases.line_out(*_of_judge(row))
                    _count(tally, found)
                    yield found
                    continue
                name, case, response = _case(row)
                scored = score(case, response)
            except CaseError as error:
                tally.bad.append(f"{path}, line {number}: {error}")
                continue
            tally.outcomes[scored.outcome] += 1
            tally.statuses[scored.reading.status] += 1
            tally.sane.append(scored.score)
            tally.official.append(scored.official.score)
            tally.differ += scored.score != scored.official.score
            yield line_out(name, scored)


def line_out(name: str | int, scored: Scored) -> dict[str, Any]:
    """One scored case as it is written; of a set of labels the list, and the scores by name."""
    if scored.official_measures:
        return {
            "id": name,
            "sane": {
                "extracted": _listed(scored.reading.value),
                "outcome": scored.outcome,
                "score": {key: scored.measures[key] for key in labels.MEASURES},
            },
            "official": {
                "extracted": _listed(scored.official.extracted),
                "score": dict(scored.official_measures),
            },
        }
    return {
        "id": name,
        "sane": {
            "extracted": plain(scored.reading.value),
            "outcome": scored.outcome,
            "score": scored.score,
        },
        "official": {"extracted": plain(scored.official.extracted), "score": scored.official.score},
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


def _row(line: bytes) -> dict[str, Any]:
    try:
        row = json.loads(line.decode("utf-8-sig"))
    except (UnicodeDecodeError, ValueError, RecursionError) as error:
        raise CaseError(f"found no JSON in UTF-8 ({str(error)[:100]}); expected one object per line") from error
    if not isinstance(row, dict):
        raise CaseError(f"found a {type(row).__name__}; expected an object")
    return row


def _needed(row: dict[str, Any], wanted: set[str]) -> str | int:
    """The id of a row that has all these fields."""
    missing = sorted(wanted - row.keys())
    if missing:
        raise CaseError(f"found no {', '.join(missing)}; expected {', '.join(sorted(wanted))}")
    name = row["id"]
    if isinstance(name, bool) or not isinstance(name, str | int) or len(str(name)) > _MAX_NAME_CHARS:
        raise CaseError(f"id: found {_shown(name)}; expected a text or a whole number")
    return name


def _of_judge(row: dict[str, Any]) -> tuple[str | int, str, str | None, str]:
    """(id, question type, reply, reasoning) of a case of a judge."""
    name = _needed(row, _FIELDS - {"options", "question", "ground_truth"})
    response = None if row["response"] is None else _text(row, "response", MAX_RESPONSE_CHARS)
    think_output = _text(row, "think_output", MAX_RESPONSE_CHARS) if row.get("think_output") is not None else ""
    return name, _text(row, "question_type", _MAX_NAME_CHARS), response, think_output


def _count(tally: Tally, found: dict[str, Any]) -> None:
    tally.outcomes[found["sane"]["outcome"]] += 1
    tally.differ += found["sane"]["score"] != found["official"]["score"]
    for scores, mode in ((tally.sane, "sane"), (tally.official, "official")):
        if isinstance(value := found[mode]["score"], int | float):
            scores.append(float(value))


def _case(row: dict[str, Any]) -> tuple[str | int, Case, str | None]:
    name = _needed(row, _FIELDS - {"options", "question"})
    response = row["response"]
    if response is not None:
        response = _text(row, "response", MAX_RESPONSE_CHARS)
    benchmark = _text(row, "benchmark", _MAX_NAME_CHARS)
    if row.get("split") is not None and benchmark.casefold() == "salbench":
        benchmark = f"{benchmark}-{_text(row, 'split', _MAX_NAME_CHARS)}"
    case = Case(
        benchmark=benchmark,
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
    if isinstance(value, list) and all(isinstance(part, str) for part in value):
        value = ", ".join(value)
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


def _listed(value: str | float | None) -> list[str] | None:
    return None if value is None else sorted(labels.as_set(value))


def _shown(value: object) -> str:
    return repr(value)[:60]
