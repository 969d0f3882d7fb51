"""Single cases from a JSONL file, for anyone who wants to check the reader: a line in, a line out."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from vgbench_gen.core.json_text import parse_json
from vgbench_gen.core.text_files import check_text, iterate_lines, open_text
from vgbench_gen.evaluation.answers.outcomes import convert_to_json_value
from vgbench_gen.evaluation.base import find_benchmark
from vgbench_gen.evaluation.scoring import (
    MAX_RESPONSE_CHARS,
    MAX_TRUTH_CHARS,
    Case,
    CaseError,
    Scored,
    find_rules,
    score,
)

MAX_LINE_CHARS = 16 * 1024 * 1024
_MAX_NAME_CHARS, _MAX_OPTIONS, _MAX_OPTION_CHARS, _MAX_QUESTION_CHARS = 1000, 26, 20_000, 200_000
_FIELDS = {"id", "benchmark", "question_type", "response", "ground_truth", "options", "question"}


class ScoredCase(NamedTuple):
    """One scored case."""

    line: Mapping[str, Any]
    """`{"id", "sane": {"extracted", "outcome", "score"}, "official": {"extracted", "score"}}`, as it is written."""
    scored: Scored | None = None
    """Where a reply was read by rules; None for what a judge said."""


@dataclass(slots=True)
class CaseTally:
    """What became of a file of cases."""

    bad: list[str] = field(default_factory=list)
    """The lines that could not be scored, each with its place and the reason."""
    outcomes: Counter[str] = field(default_factory=Counter)
    """How many of the others had each outcome."""
    statuses: Counter[str] = field(default_factory=Counter)
    """How many answers were found in each way, or not found for each reason."""
    sane: list[float] = field(default_factory=list)
    """The scores as we read the replies, where there is one."""
    official: list[float] = field(default_factory=list)
    """The scores of the published script, where there is one."""
    differ: int = 0
    """On how many lines the two are not the same."""

    def add(self, found: ScoredCase) -> None:
        """Count one scored case; scores that are no single number are not averaged."""
        scored, line = found.scored, found.line
        self.outcomes[line["sane"]["outcome"]] += 1
        if scored is not None:
            self.statuses[scored.reading.status] += 1
        ours, published = (
            (line[mode]["score"] for mode in ("sane", "official"))
            if scored is None
            else (scored.score, scored.official.score)
        )
        self.differ += ours != published
        for scores, value in ((self.sane, ours), (self.official, published)):
            if isinstance(value, int | float):
                scores.append(float(value))


def score_file(path: Path, tally: CaseTally) -> Iterator[dict[str, Any]]:
    """Score a file line by line.

    Yields `{"id", "sane": {"extracted", "outcome", "score"}, "official": {"extracted", "score"}}` for every line that
    makes sense, in order. A line that does not is named in `CaseTally.bad`, the others go on. Empty lines are skipped.
    Memory holds one line at a time.

    Raises:
        OSError: the file cannot be read.
    """
    with open_text(path) as file:
        for number, line in iterate_lines(file, MAX_LINE_CHARS):
            try:
                if line is None:
                    raise CaseError(f"found more than {MAX_LINE_CHARS} characters; expected a shorter line")
                row = _parse_row(line, number)
                benchmark = find_benchmark(str(row.get("benchmark")))
                found = score_case(row) if benchmark is None else benchmark.score_case(row)
            except CaseError as error:
                tally.bad.append(f"{path}, line {number}: {error}")
                continue
            tally.add(found)
            yield dict(found.line)


def score_case(row: Mapping[str, Any]) -> ScoredCase:
    """Score one case by the rules of its benchmark.

    Raises:
        CaseError: the case makes no sense.
    """
    name, case, response = read_case(row)
    scored = score(case, response)
    return ScoredCase(format_case(name, scored), scored)


def format_case(name: str | int, scored: Scored) -> dict[str, Any]:
    """Return one scored case as it is written."""
    return {
        "id": name,
        "sane": {
            "extracted": convert_to_json_value(scored.reading.value),
            "outcome": scored.outcome,
            "score": scored.score,
        },
        "official": {"extracted": convert_to_json_value(scored.official.extracted), "score": scored.official.score},
    }


def _parse_row(line: str, number: int) -> dict[str, Any]:
    try:
        row = parse_json(check_text(line, number), "keep")
    except ValueError as error:
        raise CaseError(f"found no JSON ({str(error)[:100]}); expected one object per line") from error
    if not isinstance(row, dict):
        raise CaseError(f"found a {type(row).__name__}; expected an object")
    return row


def get_name(row: Mapping[str, Any], wanted: Collection[str]) -> str | int:
    """Return the id of a row that has all these fields.

    Raises:
        CaseError: a field is missing, or the id is none.
    """
    missing = sorted(set(wanted) - row.keys())
    if missing:
        raise CaseError(f"found no {', '.join(missing)}; expected {', '.join(sorted(wanted))}")
    name = row["id"]
    if isinstance(name, bool) or not isinstance(name, str | int) or len(str(name)) > _MAX_NAME_CHARS:
        raise CaseError(f"id: found {_show_value(name)}; expected a text or a whole number")
    return name


def read_case(row: Mapping[str, Any]) -> tuple[str | int, Case, str | None]:
    """Return id, question and reply of a row.

    Raises:
        CaseError: a field is missing or holds something else.
    """
    name = get_name(row, _FIELDS - {"options", "question"})
    response = row["response"]
    if response is not None:
        response = get_text(row, "response", MAX_RESPONSE_CHARS)
    benchmark = get_text(row, "benchmark")
    case = Case(
        benchmark=benchmark,
        question_type=find_rules(benchmark).question_type(get_text(row, "question_type")),
        truth=_parse_truth(row["ground_truth"]),
        options=_parse_options(row.get("options")),
        question=get_text(row, "question", _MAX_QUESTION_CHARS) if row.get("question") is not None else "",
    )
    return name, case, response


def get_text(row: Mapping[str, Any], key: str, longest: int = _MAX_NAME_CHARS) -> str:
    """Return the text of a field.

    Raises:
        CaseError: it holds something else, or more than `longest` characters.
    """
    value = row[key]
    if not isinstance(value, str):
        raise CaseError(f"{key}: found {_show_value(value)}; expected a text")
    if len(value) > longest:
        raise CaseError(f"{key}: found {len(value)} characters; expected at most {longest}")
    return value


def _parse_truth(value: object) -> str:
    if isinstance(value, bool):
        return "Yes" if value else "No"
    if isinstance(value, int | float) and math.isfinite(value) and abs(value) < 1e15:
        return repr(value)
    if isinstance(value, list) and all(isinstance(part, str) for part in value):
        value = ", ".join(value)
    if not isinstance(value, str) or len(value) > MAX_TRUTH_CHARS:
        raise CaseError(f"ground_truth: found {_show_value(value)}; expected a text or a number")
    return value


def _parse_options(value: object) -> dict[str, str]:
    if value is None:
        return {}
    if not isinstance(value, dict) or len(value) > _MAX_OPTIONS:
        raise CaseError(f"options: found {_show_value(value)}; expected an object of at most {_MAX_OPTIONS} letters")
    found: dict[str, str] = {}
    for key, text in value.items():
        letter = str(key).strip().strip("().").upper()
        if len(letter) != 1 or not ("A" <= letter <= "Z") or letter in found:
            raise CaseError(f"options: found the key {_show_value(key)}; expected one letter each from A to Z")
        if isinstance(text, bool) or not isinstance(text, str | int | float) or len(str(text)) > _MAX_OPTION_CHARS:
            raise CaseError(f"options: found {_show_value(text)} for {letter}; expected a text")
        found[letter] = str(text)
    return found


def _show_value(value: object) -> str:
    return repr(value)[:60]
