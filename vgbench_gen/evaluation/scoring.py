"""One reply against one truth, as we read it and as published scripts do; a pure function of reply and question."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Literal

from vgbench_gen.core.errors import VGBenchError
from vgbench_gen.core.types import ALPHABET, Item
from vgbench_gen.evaluation import metrics
from vgbench_gen.evaluation.answers import official as released
from vgbench_gen.evaluation.answers import official_others, units
from vgbench_gen.evaluation.answers.final_line import final_line
from vgbench_gen.evaluation.answers.letters import DEFAULT_LETTERS, LetterReader
from vgbench_gen.evaluation.answers.numerals import CountReader, MeasureReader
from vgbench_gen.evaluation.answers.official import Official
from vgbench_gen.evaluation.answers.option_texts import OptionTexts, bare, parse
from vgbench_gen.evaluation.answers.outcomes import NOTHING, Outcome, Reader, Reading, outcome_of
from vgbench_gen.evaluation.answers.places import read
from vgbench_gen.evaluation.answers.quantities import prepared, quantities
from vgbench_gen.evaluation.answers.texts import TextReader
from vgbench_gen.evaluation.answers.units import Kind, Unit
from vgbench_gen.evaluation.answers.yes_no import NO, YES, YesNoReader
from vgbench_gen.evaluation.benchmarks.salbench import labels

# Saved scores carry it; scores of another version are made anew from the saved replies.
SCORER_VERSION = 4

Rule = Literal["exact", "delta", "delta_inclusive", "mra"]
QUESTION_TYPES = (
    "multi-choice",
    "judgment",
    "open-ended",
    "open-ended-count",
    "open-ended-length",
    "numerical-answer",
    "multi-label",
)
MAX_RESPONSE_CHARS = 2_000_000
MAX_TRUTH_CHARS = 10_000
_TYPE_NAMES = {
    "multiple-choice": "multi-choice",
    "mcq": "multi-choice",
    "judgement": "judgment",
    "yes-no": "judgment",
    "open": "open-ended",
} | dict.fromkeys(QUESTION_TYPES)
_VSI = "VSI-Bench"
_Q_SPATIAL = ("qspatial", "q-spatial")  # QSpatialBench, -Plus, -ScanNet, and the name on the Hub


class CaseError(VGBenchError):
    """A case cannot be scored: a field is missing or its truth cannot be read."""


@dataclass(frozen=True, slots=True)
class Case:
    """What scoring needs to know of one question, besides the reply.

    benchmark: "SpatialScore", "SpatialScore/<source>", "VGBench", "VSI-Bench", ... question_type: one of
    `QUESTION_TYPES`. options: letter to text. question: its text; says the unit and, without `options`, the options.
    """

    benchmark: str
    question_type: str
    truth: str
    options: Mapping[str, str] = field(default_factory=dict)
    question: str = ""


@dataclass(frozen=True, slots=True)
class Scored:
    """Both scores of one reply.

    reading: what we read. score: by the benchmark's metric. measures: other metrics of a number, by name (`delta_2`,
    `delta_1.25`, `mra`, `relative_error`) or of a set of labels (`labels.MEASURES`, `n_out_of_vocabulary`), empty for
    letters and words. official: the published script's verdict. official_measures: its metrics of a set of labels.
    followed: whether the last line is the answer in the form asked for, nothing else (`answers.final_line`).
    strict: the score of a reader that looks at that line alone.
    """

    reading: Reading
    outcome: Outcome
    score: float
    official: Official
    measures: Mapping[str, float]
    followed: bool
    strict: float
    official_measures: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Judge:
    """How one case is read and compared. kind: "letter", "yes_no", "count", "number", "text", "labels", or what is
    measured. letters: the valid ones, or the labels that there are with commas between."""

    kind: str
    reader: Reader
    truth: str | float
    unit: Unit | None = None
    letters: str = ""


@dataclass(frozen=True, slots=True)
class Grading:
    """How replies to a case are graded, for baselines that answer without a reply.

    kind: "letter", "yes_no", "count", "number", "text", "labels", or what is measured ("length", "angle", ...). truth:
    a letter, "Yes" or "No", a text, labels ("color, size"), a number, or a measure in metres (degrees). rule: "exact",
    "delta" (strict factor of 2), "delta_inclusive" or "mra". letters: the valid ones.
    """

    kind: str
    truth: str | float
    rule: Rule
    letters: str = ""


def grading(case: Case) -> Grading:
    """How replies to a case are graded.

    Raises:
        CaseError: the case itself makes no sense.
    """
    judge = _judge(case)
    family, source = _family(case.benchmark)
    rule: Rule = "exact"
    if not isinstance(judge.truth, str):
        if family == _VSI:
            rule = "mra"
        elif judge.kind == "number" or (judge.kind == "count" and source == _VSI):
            rule = "delta_inclusive"
        elif judge.kind != "count":
            rule = "delta"
    return Grading(judge.kind, judge.truth, rule, judge.letters)


def case_of(item: Item) -> Case:
    """What scoring needs to know of a row of a built dataset."""
    return Case(
        benchmark=item.benchmark,
        question_type=item.question_type,
        truth=item.answer,
        options=dict(zip(ALPHABET, item.options, strict=False)),
        question=f"{item.question}\n{item.context}",
    )


def score(case: Case, response: str | None) -> Scored:
    """Read and score one reply; never raises on a reply.

    Raises:
        CaseError: the case itself makes no sense.
    """
    judge = _judge(case)
    of_labels = judge.kind == "labels"
    reading = read(
        response,
        judge.reader,
        none_is_a_value=judge.kind in ("count", "number", "labels"),
        empty=labels.EMPTY if of_labels else NOTHING,
    )
    points = _points(case, judge, reading)
    line = final_line(response or "", judge.kind, judge.letters, judge.unit)
    published = official(case, response)
    return Scored(
        reading=reading,
        outcome=outcome_of(reading, points),
        score=points,
        official=published,
        measures=_label_measures(judge, reading.value, response or "") if of_labels else _measures(judge, reading),
        followed=line.found,
        strict=_points(case, judge, line),
        official_measures=_label_measures(judge, published.extracted) if of_labels else {},
    )


def official(case: Case, response: str | None) -> Official:
    """The verdict of the script published with the benchmark; SpatialScore's where none is known."""
    family, source = _family(case.benchmark)
    if family == _VSI:
        return official_others.vsi_bench(response, case.truth, case.question_type)
    if family == "MMSI-Bench" and case.question_type == "multi-choice":
        return official_others.mmsi_bench(response, case.truth)
    if family.casefold() == "blink" and case.question_type == "multi-choice":
        return official_others.blink(response, case.truth, len(case.options or _parsed(case.question)) or 5)
    if family.casefold().startswith(_Q_SPATIAL):
        return official_others.q_spatial(response, case.truth)
    if case.question_type == "multi-label":
        known = vocabulary(case.benchmark)
        return labels.released(response, labels.truth(case.truth, known) or "", known)
    # The script grades a number by MRA where the source is VSI-Bench; a case may say so by its type instead.
    graded = source == _VSI or case.question_type == "numerical-answer"
    return released.spatialscore(response, case.truth, case.question_type, released.VSI_SOURCE if graded else source)


def question_type(name: str) -> str:
    """The question type that a name stands for ("Multi_Choice", "judgement").

    Raises:
        CaseError: it stands for none.
    """
    plain = name.strip().casefold().replace("_", "-").replace(" ", "-")
    if plain not in _TYPE_NAMES:
        raise CaseError(f"question_type: found {name[:60]!r}; expected one of {', '.join(QUESTION_TYPES)}")
    return _TYPE_NAMES[plain] or plain


def _family(benchmark: str) -> tuple[str, str]:
    """(family, source): "SpatialScore/VSI-Bench_8" is ("SpatialScore", "VSI-Bench"), "VSI-Bench" ("VSI-Bench", "")."""
    head, _, tail = benchmark.strip().partition("/")
    names = {"spatialscore": "SpatialScore", "spatialscore-hard": "SpatialScore"}
    family = names.get(head.casefold(), _source(head))
    return family, _source(tail) if family == "SpatialScore" else "" if family == _VSI else family


def _source(name: str) -> str:
    known = {
        "vsi-bench": _VSI,
        "vsi-bench-8": _VSI,
        "vsibench": _VSI,
        "realworldqa": "RealWorldQA",
        "mmsi-bench": "MMSI-Bench",
    }
    return known.get(name.strip().casefold().replace("_", "-"), name.strip())


@lru_cache(maxsize=4096)
def _parsed(question: str) -> dict[str, str]:
    return parse(question)


def _judge(case: Case) -> _Judge:
    truth = case.truth.strip()
    kind = case.question_type
    if not truth or len(truth) > MAX_TRUTH_CHARS:
        raise CaseError(f"ground_truth: found {len(truth)} characters; expected 1 to {MAX_TRUTH_CHARS}")
    if kind == "multi-choice":
        return _letter_judge(case, truth)
    if kind == "judgment":
        return _yes_no_judge(truth)
    if kind == "open-ended-length":
        return _measure_judge(case, truth, "length")
    if kind == "open-ended-count":
        return _Judge("count", CountReader(), _number(truth, kind))
    if kind == "numerical-answer":
        return _number_judge(case, truth)
    if kind == "multi-label":
        return _labels_judge(case, truth)
    return _open_judge(case, truth)


def _open_judge(case: Case, truth: str) -> _Judge:
    """An open question is what its truth is: a length, a number, yes or no, a letter, a text."""
    found = quantities(prepared(truth))
    rest = re.sub(r"[\s.]", "", truth[: found[0].start] + truth[found[0].end :]) if len(found) == 1 else "?"
    if not rest:
        unit = found[0].unit
        if unit is not None and unit.kind in units.MEASURES and unit.kind != "area":
            return _measure_judge(case, truth, unit.kind)
        if _family(case.benchmark)[1] == _VSI or _family(case.benchmark)[0] == _VSI or "." in truth or unit is not None:
            return _number_judge(case, truth)
        return _Judge("count", CountReader(), found[0].signed)
    if YesNoReader().leading(truth).found and len(truth) < 6:
        return _yes_no_judge(truth)
    if re.fullmatch(r"\(?[A-Za-z]\)?\.?", truth) and (case.options or _parsed(case.question)):
        return _letter_judge(case, truth)
    return _Judge("text", TextReader(), bare(truth))


def _letter_judge(case: Case, truth: str) -> _Judge:
    options = dict(case.options) or _parsed(case.question)
    letters = "".join(sorted(options)) or DEFAULT_LETTERS
    match = re.match(r"[\s(\[]*([A-Za-z])(?![A-Za-z])", truth)
    letter = match.group(1).upper() if match else OptionTexts(options).equal_to(truth)
    if not letter or letter not in letters:
        raise CaseError(f"ground_truth: found {truth[:60]!r}; expected one of the letters {letters}")
    return _Judge("letter", LetterReader(letters, options), letter, letters=letters)


def _yes_no_judge(truth: str) -> _Judge:
    found = YesNoReader().leading(truth)
    if not found.found or found.value not in (YES, NO):
        raise CaseError(f"ground_truth: found {truth[:60]!r}; expected Yes or No")
    return _Judge("yes_no", YesNoReader(), found.value)


def vocabulary(benchmark: str) -> tuple[str, ...]:
    """The labels of a split of SalBench: "SalBench-P3", "SalBench-O3".

    Raises:
        CaseError: it is none.
    """
    name = benchmark.strip().casefold().replace("_", "-").partition("/")[0]
    for ending, split in (("p3", "synthetic"), ("synthetic", "synthetic"), ("o3", "natural"), ("natural", "natural")):
        if name == f"salbench-{ending}":
            return tuple(labels.SPLITS[split])
    raise CaseError(f"benchmark: found {benchmark[:60]!r} with labels; expected SalBench-P3 or SalBench-O3")


def _labels_judge(case: Case, truth: str) -> _Judge:
    known = vocabulary(case.benchmark)
    value = labels.truth(truth, known)
    if value is None:
        raise CaseError(f"ground_truth: found {truth[:60]!r}; expected labels among {', '.join(known)}")
    return _Judge("labels", labels.LabelReader(known), value, letters=",".join(known))


def _measure_judge(case: Case, truth: str, kind: Kind) -> _Judge:
    found = quantities(prepared(truth))
    asked = units.asked_unit(case.question, (kind,)) if case.question else None
    if kind == "length" and asked is None and len(found) == 1 and found[0].unit is None:
        asked = units.METRE  # neither truth nor question says; then a bare number of a reply means the same
    measured = MeasureReader(asked, kind).value(found[0]) if len(found) == 1 else None
    if measured is None or not isinstance(measured.value, float):
        raise CaseError(f"ground_truth: found {truth[:60]!r}; expected a {kind} with its unit, e.g. 1.51 meters")
    return _Judge(kind, MeasureReader(asked, kind), measured.value, unit=asked)


def _number_judge(case: Case, truth: str) -> _Judge:
    unit = units.asked_unit(case.question) if case.question else None
    return _Judge("number", CountReader(real=True, unit=unit), _number(truth, case.question_type), unit=unit)


def _number(truth: str, kind: str) -> float:
    found = quantities(prepared(truth))
    if len(found) != 1 or not math.isfinite(found[0].signed):
        raise CaseError(f"ground_truth: found {truth[:60]!r}; expected one number for {kind}")
    return found[0].signed


def _points(case: Case, judge: _Judge, reading: Reading) -> float:
    if not reading.found or reading.value is None:
        return 0.0
    value, truth = reading.value, judge.truth
    if isinstance(value, str) or isinstance(truth, str):
        return float(value == truth)
    family, source = _family(case.benchmark)
    if family == _VSI:
        return metrics.mean_relative_accuracy(value, truth)
    if judge.kind == "count" and source != _VSI:
        return float(value == truth)
    return float(metrics.within_factor(value, truth, inclusive=judge.kind in ("count", "number")))


def _label_measures(judge: _Judge, value: str | float | None, response: str | None = None) -> dict[str, float]:
    """Of a set that was read, None for none; with a reply, how many labels of the other split it names as well."""
    found = dict.fromkeys(labels.MEASURES, 0.0)
    if value is not None:
        found = labels.measures(labels.as_set(value), labels.as_set(judge.truth))
    if response is not None:
        found["n_out_of_vocabulary"] = float(labels.out_of_vocabulary(response, judge.letters.split(",")))
    return found


def _measures(judge: _Judge, reading: Reading) -> dict[str, float]:
    """Every metric of a number, so that tables can choose without reading replies again; misses count as 0."""
    if isinstance(judge.truth, str):
        return {}
    if not isinstance(reading.value, float):
        return {"delta_2": 0.0, "delta_1.25": 0.0, "mra": 0.0, "relative_error": math.inf}
    value, truth = reading.value, judge.truth
    inclusive = judge.kind in ("count", "number")
    return {
        "delta_2": float(metrics.within_factor(value, truth, metrics.DELTA, inclusive)),
        "delta_1.25": float(metrics.within_factor(value, truth, metrics.HEADLINE_DELTA, inclusive)),
        "mra": metrics.mean_relative_accuracy(value, truth),
        "relative_error": metrics.relative_error(value, truth),
    }
