"""The report of a vote as text for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

_PAIRS = 3  # most alike, and least


def format_votes(report: Mapping[str, Any]) -> list[str]:
    """Models, agreement, rates and truths of a report of `evaluation.hard`, at most 110 characters wide."""
    return [line.rstrip() for line in _list_lines(report)]


def _list_lines(report: Mapping[str, Any]) -> Iterator[str]:
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
    yield f"{'model':<50}{'size':>7}{'right':>8}{'unread':>8}{'refused':>9}{'failed':>8}{'missing':>9}"
    for one in report["models"]:
        size = "?" if one["billions"] is None else f"{one['billions']:g}B"
        states = f"{one['unreadable']:>8}{one['refused']:>9}{one['failed']:>8}{one['missing']:>9}"
        yield f"{_shorten(one['model'], 48):<50}{size:>7}{_format_percent(one['right_share']):>8}{states}"
    yield ""
    yield from _list_agreement(report["agreement"])
    yield ""
    yield from _list_rates("category", report["categories"])
    if report["over"] == "task" or len(report["categories"]) < 2:
        yield ""
        yield from _list_rates("task", report["tasks"])
    yield ""
    over = {"category": "balanced over categories", "task": "balanced over tasks"}[report["over"]]
    yield f"{over:<36}{'wanted':>8}{'hard':>8}{'even':>8}{'chosen':>8}"
    parts = report["parts"]
    figures = ("wanted", "candidates", "even", "chosen")
    sums = {"name": "sum"} | {key: sum(part[key] for part in parts) for key in figures}
    for part in [*parts, sums]:
        yield f"{_shorten(part['name'], 34):<36}" + "".join(f"{part[key]:>8}" for key in figures)
    if sums["wanted"] > report["questions"]:
        yield f"the rule wants more questions than the dataset has ({report['questions']:,}); --target N asks for fewer"
    yield ""
    yield from _list_truths(report["truths"])
    for note in report["notes"]:
        yield f"note: {note}"


def _list_agreement(found: Mapping[str, Any]) -> Iterator[str]:
    if not found["n"]:
        yield "agreement of models: none to tell, because no question has votes of two models"
        return
    alpha = "not computed" if "missing" in found else _format_decimals(found["alpha"])
    yield (
        f"agreement of models on {found['n']:,} questions: raw {_format_percent(found['raw'])}, "
        f"AC1 {_format_decimals(found['ac1'])}, Krippendorff's alpha {alpha}"
    )
    if "missing" in found:
        yield f"  {found['missing']}"
    pairs = found["pairs"]
    for told, some in (("most alike", pairs[:_PAIRS]), ("least", pairs[_PAIRS:][-_PAIRS:])):
        for pair in some:
            a, b = (_shorten(name, 40) for name in pair["models"])
            yield f"  {told}: {a} and {b}, kappa {pair['kappa']:.2f}"


def _list_rates(name: str, rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    yield f"{name:<36}{'questions':>10}{'hard':>8}{'':>8}{'undecided':>11}{'wrong votes':>13}"
    for row in rows:
        share = _format_percent(row["hard"] / row["n"])
        figures = (
            f"{row['n']:>10}{row['hard']:>8}{share:>8}{row['undecided']:>11}{_format_percent(row['wrong_share']):>13}"
        )
        yield f"{_shorten(row['name'], 34):<36}{figures}"


def _list_truths(found: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    sets = ("dataset", "hard", "chosen")
    yield f"{'where the truth stands, %':<36}" + "".join(f"{name:>24}" for name in sets)
    for kind, told in (("letters", "letters of {} options"), ("ranks", "by size among {}")):
        for options in sorted({key for name in sets for key in found[name][kind]}, key=int):
            cells = (_format_shares(found[name][kind].get(options, ())) for name in sets)
            yield f"{told.format(options):<36}" + "".join(f"{cell:>24}" for cell in cells)
    if any(map(sum, (found[name]["yes_no"] for name in sets))):
        yield f"{'yes and no':<36}" + "".join(f"{_format_shares(found[name]['yes_no']):>24}" for name in sets)
    for kind, told in (("letter", "best constant letter (chance)"), ("yes_no", "best constant yes or no (chance)")):
        if not any(found[name]["constant"].get(kind) for name in sets):
            continue  # the dataset has no such questions
        cells = (_describe_constant(found[name]["constant"].get(kind)) for name in sets)
        yield f"{told:<36}" + "".join(f"{cell:>24}" for cell in cells)


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
