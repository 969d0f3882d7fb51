"""The report of a vote as text for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from vgbench_gen.core.columns import WIDTH, format_columns
from vgbench_gen.quality.voting.rule import COUNTED_WRONG

_PAIRS = 3  # most alike, and least
_REFUSED = 0.25  # of all questions; above it a line says what becomes of them


def format_votes(report: Mapping[str, Any], width: int = WIDTH) -> list[str]:
    """Models, agreement, rates and truths of a report of `evaluation.hard`, in lines of `width` characters."""
    return [line.rstrip() for line in _list_lines(report, width)]


def _list_lines(report: Mapping[str, Any], width: int) -> Iterator[str]:
    rule = report["rule"]
    yield (
        f"hard: at least {rule['wrong']} of {rule['models']} models wrong, {rule['large']} of them with "
        f"{rule['large_from_billions']:g}B or more; policy {rule['policy']}"
    )
    undecided = f"{report['undecided']:,} undecided for want of votes"
    yield f"{report['questions']:,} questions: {report['hard']:,} hard, {undecided}"
    review = report["review"]
    yield f"of the hard ones people accepted {review['accepted']:,} and refused {review['refused']:,}"
    yield ""
    states = ("unreadable", "refused", "failed", "missing")
    models = [
        (one["model"], "?" if one["billions"] is None else f"{one['billions']:g}B", _format_percent(one["right_share"]),
         *(one[state] for state in states))
        for one in report["models"]
    ]  # fmt: skip
    yield from _align(("model", "size", "right", *states), models, width)
    for one in report["models"]:
        if one["refused"] > _REFUSED * report["questions"]:
            part = f"{one['refused']:,} of {report['questions']:,} questions"
            told = "count as wrong" if "refused" in COUNTED_WRONG[rule["policy"]] else "are no votes"
            yield f"{one['model']} refused or did not attempt {part}, which {told} (policy {rule['policy']})"
    yield ""
    yield from _list_agreement(report["agreement"])
    yield ""
    yield from _list_rates("category", report["categories"], width)
    if report["over"] == "task" or len(report["categories"]) < 2:
        yield ""
        yield from _list_rates("task", report["tasks"], width)
    yield ""
    over = {"category": "balanced over categories", "task": "balanced over tasks"}[report["over"]]
    parts = report["parts"]
    figures = ("wanted", "candidates", "even", "chosen")
    sums = {"name": "sum"} | {key: sum(part[key] for part in parts) for key in figures}
    counts = [(part["name"], *(part[key] for key in figures)) for part in [*parts, sums]]
    yield from _align((over, "wanted", "hard", "even", "chosen"), counts, width)
    if sums["wanted"] > report["questions"]:
        yield f"the rule wants more questions than the dataset has ({report['questions']:,}); --target N asks for fewer"
    yield ""
    yield from _list_truths(report["truths"], width)
    for note in report["notes"]:
        yield f"note: {note}"


def _list_agreement(found: Mapping[str, Any]) -> Iterator[str]:
    if not found["n"]:
        yield "agreement of models: none to tell, because no question has votes of two models"
        return
    yield (
        f"agreement of models on {found['n']:,} questions: raw {_format_percent(found['raw'])}, "
        f"AC1 {_format_decimals(found['ac1'])}, Krippendorff's alpha {_format_decimals(found['alpha'])}"
    )
    pairs = found["pairs"]
    for told, some in (("most alike", pairs[:_PAIRS]), ("least", pairs[_PAIRS:][-_PAIRS:])):
        for pair in some:
            a, b = (_shorten(name, 40) for name in pair["models"])
            yield f"  {told}: {a} and {b}, kappa {pair['kappa']:.2f}"


def _align(heads: Sequence[str], rows: Sequence[Sequence[object]], width: int) -> list[str]:
    """A name and numbers in columns."""
    return format_columns(rows, heads=heads, right=heads[1:], text=False, width=width)


def _list_rates(name: str, rows: Sequence[Mapping[str, Any]], width: int) -> list[str]:
    cells = [
        (row["name"], row["n"], row["hard"], _format_percent(row["hard"] / row["n"]), row["undecided"],
         _format_percent(row["wrong_share"]))
        for row in rows
    ]  # fmt: skip
    return _align((name, "questions", "hard", "share", "undecided", "wrong votes"), cells, width)


def _list_truths(found: Mapping[str, Mapping[str, Any]], width: int) -> list[str]:
    sets = ("dataset", "hard", "chosen")
    rows: list[tuple[str, ...]] = []
    for kind, told in (("letters", "letters of {} options"), ("ranks", "by size among {}")):
        for options in sorted({key for name in sets for key in found[name][kind]}, key=int):
            cells = (_format_shares(found[name][kind].get(options, ())) for name in sets)
            rows.append((told.format(options), *cells))
    if any(map(sum, (found[name]["yes_no"] for name in sets))):
        rows.append(("yes and no", *(_format_shares(found[name]["yes_no"]) for name in sets)))
    for kind, told in (("letter", "best constant letter (chance)"), ("yes_no", "best constant yes or no (chance)")):
        if not any(found[name]["constant"].get(kind) for name in sets):
            continue  # the dataset has no such questions
        cells = (_describe_constant(found[name]["constant"].get(kind)) for name in sets)
        rows.append((told, *cells))
    return _align(("where the truth stands, %", *sets), rows, width)


def _describe_constant(one: Mapping[str, float] | None) -> str:
    return "-" if one is None else f"{_format_percent(one['best'])} ({_format_percent(one['chance'])})"


def _format_shares(counts: Sequence[int]) -> str:
    total = sum(counts)
    return " ".join(f"{100 * n / total:.0f}" for n in counts) if total else "-"


def _format_percent(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.1f}"


def _format_decimals(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def _shorten(text: str, most: int) -> str:
    return text if len(text) <= most else "…" + text[-(most - 1) :]
