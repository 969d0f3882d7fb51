"""The numbers of a review beside the bars of `docs/validity.md#review-by-people`, as data and as a table."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from vgbench_gen.core.columns import WIDTH, format_columns
from vgbench_gen.core.types import ALPHABET
from vgbench_gen.quality.intervals import wilson_interval
from vgbench_gen.quality.review.agreement import Agreement, Level, krippendorff_alpha, measure_agreement, rate_bound
from vgbench_gen.quality.review.lines import CANNOT_TELL
from vgbench_gen.quality.review.queue import ReviewItem, parse_number
from vgbench_gen.quality.review.status import ItemVerdict, ReviewRecord, ReviewStatus, find_status

RAW_MIN, AC1_MIN, ALPHA_MIN = 0.95, 0.90, 0.80
HUMAN_MIN = 0.90  # below: instrument-grade
WRONG_MAX, AMBIGUOUS_MAX = 0.01, 0.03
FEW = 30  # items with two reviewers from which the agreement on a task is judged
FEW_RATE = 100  # settled items from which a rate of 1 % is judged; a confirmed wrong answer stops its cell before
_UNCLEAR = frozenset({"second_answer", "unclear", "occluded"})

Verdict = Literal["green", "red", "few"]


@dataclass(frozen=True, slots=True)
class TaskRow:
    """The numbers of one task. All shares are 0 to 1, and NaN where they are undefined."""

    task: str
    n: int
    """The items with two verdicts or more; agreement is that of the first two."""
    raw: float
    """The share of items on which both reviewers say "valid" or both say something else."""
    ac1: float
    """Gwet's AC1 of "valid" against everything else."""
    alpha: float
    """Krippendorff's alpha of "valid" against everything else."""
    answer_raw: float
    """The agreement of the blind answers, averaged over question types weighted by items."""
    answer_alpha: float
    """Krippendorff's alpha of the blind answers, averaged in the same way: nominal for letters and yes or no, ratio for
    numbers."""
    human: float
    """The share of right blind answers per item, so that two answers to one item do not count as two items. Items that
    were found invalid are left out."""
    low: float
    """The lower end of Wilson's 95 % interval of `human`, and `high` its upper one."""
    high: float
    grade: Literal["human", "instrument", ""]
    """"human", or "instrument" where nothing may be claimed about people, or "" where there are too few items."""
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class CellRow:
    """The numbers of one task and source."""

    task: str
    source: str
    n: int
    """The settled items."""
    accepted: int
    wrong: int
    """The items that two reviewers call wrong; one stops the cell."""
    ambiguous: int
    """The other rejected items, which two reviewers call unclear."""
    bound: float
    """The upper 95 % end of the rate of wrong answers, 0 to 1."""
    stopped: bool


@dataclass(frozen=True, slots=True)
class ReviewReport:
    """All numbers of a review."""

    items: int
    """The items that were to be reviewed."""
    states: Mapping[str, int]
    """How many items stand in each state."""
    stale: int
    """The verdicts on items that the dataset no longer has in this form."""
    reviewers: Mapping[str, Mapping[str, int]]
    """For each reviewer, counts of verdicts and of planted items."""
    tasks: tuple[TaskRow, ...]
    cells: tuple[CellRow, ...]
    """One row for each task and source."""
    wrong: Mapping[str, float]
    """Confirmed wrong answers: "count", "n", their rate "value", and its upper 95 % end "bound"."""
    ambiguous: Mapping[str, float]
    """Ambiguous items, in the same form."""

    @property
    def failed(self) -> bool:
        """Whether a limit is not met."""
        rates = "red" in (_judge_rate(self.wrong, WRONG_MAX), _judge_rate(self.ambiguous, AMBIGUOUS_MAX))
        return rates or any(t.verdict == "red" for t in self.tasks) or any(c.stopped for c in self.cells)

    def to_json(self) -> dict[str, Any]:
        """JSON-ready; undefined numbers are null."""
        plain: dict[str, Any] = _replace_nan({**asdict(self), "failed": self.failed})
        return plain


def make_report(entries: Sequence[ReviewItem], record: ReviewRecord) -> ReviewReport:
    """Count, compare and judge what the reviewers said about these items."""
    standings = {e.id: find_status(record.verdicts.get(e.id, ())) for e in entries}
    settled = [e for e in entries if standings[e.id].state in ("accepted", "rejected")]
    wrong = {
        e.id for e in settled if _is_rejected_for(record.verdicts[e.id], standings[e.id], frozenset({"wrong_answer"}))
    }
    unclear = {e.id for e in settled if _is_rejected_for(record.verdicts[e.id], standings[e.id], _UNCLEAR)} - wrong
    verdicts = Counter(j.reviewer for given in record.verdicts.values() for j in given)
    reviewers = {name: {"verdicts": verdicts[name]} | asdict(checks) for name, checks in record.checks.items()}
    cells = []
    for cell in sorted({(e.task, e.source) for e in settled}):
        ids = {e.id for e in settled if (e.task, e.source) == cell}
        accepted, bad = sum(standings[i].state == "accepted" for i in ids), len(ids & wrong)
        cells.append(CellRow(*cell, len(ids), accepted, bad, len(ids & unclear), rate_bound(bad, len(ids)), bad > 0))
    return ReviewReport(
        items=len(entries),
        states=dict(Counter(s.state for s in standings.values())),
        stale=record.stale,
        reviewers=reviewers,
        tasks=tuple(
            _make_task_row(task, [e for e in entries if e.task == task], record, standings)
            for task in sorted({e.task for e in entries if len(record.verdicts.get(e.id, ())) > 1})
        ),
        cells=tuple(cells),
        wrong=_rate(len(wrong), len(settled)),
        ambiguous=_rate(len(unclear), len(settled)),
    )


def _make_task_row(
    task: str, entries: Sequence[ReviewItem], record: ReviewRecord, standings: Mapping[str, ReviewStatus]
) -> TaskRow:
    # The third reviewer comes only where the first two differ: counted in, agreement would depend on that choice.
    pairs = {e.id: record.verdicts[e.id][:2] for e in entries if len(record.verdicts.get(e.id, ())) > 1}
    said = measure_agreement(
        [["valid" if j.verdict == "valid" else "not" for j in p] for p in pairs.values()], ("valid", "not")
    )
    shown = [e for e in entries if e.id in pairs]
    answer_raw, answer_alpha = _measure_answer_agreement(shown, pairs)
    counted = [e for e in shown if standings[e.id].state != "rejected"]
    right = sum(sum(e.is_right(j.answer) for j in pairs[e.id]) / 2 for e in counted)
    low, high = wilson_interval(right, len(counted))
    human = right / len(counted) if counted else math.nan
    return TaskRow(
        task=task,
        n=said.n,
        raw=said.raw,
        ac1=said.ac1,
        alpha=said.alpha,
        answer_raw=answer_raw,
        answer_alpha=answer_alpha,
        human=human,
        low=low,
        high=high,
        grade="" if len(counted) < FEW else "human" if human >= HUMAN_MIN else "instrument",
        verdict=_judge_agreement(said, answer_alpha),
    )


def _judge_agreement(said: Agreement, answer_alpha: float) -> Verdict:
    if said.n < FEW:
        return "few"
    # Alpha has no value where all gave the same answer; that is not disagreement.
    answers_hold = math.isnan(answer_alpha) or answer_alpha >= ALPHA_MIN
    return "green" if said.raw >= RAW_MIN and said.ac1 >= AC1_MIN and answers_hold else "red"


def _measure_answer_agreement(
    shown: Sequence[ReviewItem], pairs: Mapping[str, Sequence[ItemVerdict]]
) -> tuple[float, float]:
    raws: list[tuple[int, float]] = []
    alphas: list[tuple[int, float]] = []
    for form in sorted({e.form for e in shown}):
        units = [[j.answer for j in pairs[e.id]] for e in shown if e.form == form]
        found = measure_agreement(units, (*ALPHABET[:6], CANNOT_TELL))
        level: Level = "ratio" if form == "open-ended" else "nominal"
        value = (
            found.alpha if level == "nominal" else krippendorff_alpha([_read_numbers(unit) for unit in units], level)
        )
        if level == "nominal":
            raws.append((found.n, found.raw))
        if not math.isnan(value):
            alphas.append((found.n, value))
    return _average(raws), _average(alphas)


def _read_numbers(answers: Sequence[str]) -> list[float]:
    found = [parse_number(answer) for answer in answers]
    return [number for number in found if number is not None and number > 0]


def _is_rejected_for(given: Sequence[ItemVerdict], where: ReviewStatus, flags: frozenset[str]) -> bool:
    return where.state == "rejected" and sum(bool(flags & set(j.flags)) for j in given) >= 2


def _judge_rate(rate: Mapping[str, float], bar: float) -> Verdict:
    return "few" if rate["n"] < FEW_RATE else "red" if rate["value"] > bar else "green"


def _rate(count: int, n: int) -> dict[str, float]:
    return {"count": count, "n": n, "value": count / n if n else 0.0, "bound": rate_bound(count, n)}


def _average(weighted: Sequence[tuple[int, float]]) -> float:
    total = sum(n for n, _ in weighted)
    return sum(n * value for n, value in weighted) / total if total else math.nan


def _replace_nan(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {k: _replace_nan(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_replace_nan(v) for v in value]
    return None if isinstance(value, float) and math.isnan(value) else value


def format_report(found: ReviewReport, width: int = WIDTH) -> str:
    """The report as text for a screen of `width` characters."""
    states = ", ".join(f"{found.states.get(s, 0)} {s}" for s in ("accepted", "rejected", "disputed", "open"))
    lines = [f"{found.items} items: {states}"]
    if found.stale:
        lines.append(f"{found.stale} verdicts are about items that have changed or are gone; they do not count")
    heads: tuple[str, ...]
    rows: list[tuple[object, ...]]
    if found.reviewers:
        heads = ("reviewer", "verdicts", "planted", "missed", "counted")
        rows = [
            (name, r["verdicts"], r["shown"], r["missed"], "yes" if r["counted"] else "no")
            for name, r in found.reviewers.items()
        ]
        lines += ["", *format_columns(rows, heads=heads, right=heads[1:], text=False, width=width)]
    if found.tasks:
        heads = ("task", "n", "valid: % alike", "valid: AC1", "valid: alpha", "answers: % alike", "answers: alpha",
                 "people right, %", "95 %", "grade", "verdict")  # fmt: skip
        rows = [
            (t.task, t.n, _format_percent(t.raw), _format_decimals(t.ac1), _format_decimals(t.alpha),
             _format_percent(t.answer_raw), _format_decimals(t.answer_alpha), _format_percent(t.human),
             "-" if math.isnan(t.human) else f"{100 * t.low:.0f} to {100 * t.high:.0f}", t.grade or "-", t.verdict)
            for t in found.tasks
        ]  # fmt: skip
        lines += ["", *format_columns(rows, heads=heads, right=heads[1:8], width=width)]
        lines.append(
            f"bars: raw >= {100 * RAW_MIN:.0f} %, AC1 >= {AC1_MIN:.2f}, alpha of answers >= {ALPHA_MIN:.2f}; "
            f"few: under {FEW} items"
        )
    if found.cells:
        heads = ("task", "source", "settled", "accepted", "wrong", "unclear", "wrong at most")
        rows = [
            (c.task, c.source, c.n, c.accepted, c.wrong, c.ambiguous,
             f"{100 * c.bound:.1f} %" + ("  STOP: mend the generator, build again" if c.stopped else ""))
            for c in found.cells
        ]  # fmt: skip
        lines += ["", *format_columns(rows, heads=heads, right=heads[2:-1], width=width)]
        for name, rate, bar in (("wrong", found.wrong, WRONG_MAX), ("ambiguous", found.ambiguous, AMBIGUOUS_MAX)):
            share = f"{100 * rate['value']:.1f} % (bar {100 * bar:.0f} %)"
            lines.append(f"confirmed {name}: {rate['count']:.0f} of {rate['n']:.0f}, {share}: {_judge_rate(rate, bar)}")
    return "\n".join(line.rstrip() for line in lines)


def _format_percent(value: float) -> str:
    return "-" if math.isnan(value) else f"{100 * value:.1f}"


def _format_decimals(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:.2f}"
