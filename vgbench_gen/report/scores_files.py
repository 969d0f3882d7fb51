"""Tables of scores as text: CSV, Markdown, LaTeX and JSON; and how one number is written in all of them."""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from typing import Any

from vgbench_gen.core.columns import WIDTH, format_columns
from vgbench_gen.core.lines import guard_formula
from vgbench_gen.evaluation.cells import Cell
from vgbench_gen.evaluation.tables import ColumnHead, Comparison, Row, Table
from vgbench_gen.report.site import replace_non_finite

_ANY = ColumnHead("")
NONE = "\N{EN DASH}"  # where there is no number
FAILED = "failed"  # where there is none because no request got a reply
BESIDE = "baselines and controls"  # heading of what stands below groups of models
MARKED = (
    "Best and second best are marked only where the paired difference to every model below is significant "
    "(bootstrap over scenes and McNemar, the larger p; Holm over the column; below 0.05). Intervals: 95 %, over "
    "scenes. Where replies failed, both denominators are shown: without them, and of all with failed ones as wrong."
)
_COLUMNS = {
    "delta = 2": "accuracy; a length is right within a factor of 2",
    "delta = 1.25": "accuracy; a length is right within a factor of 1.25",
    "Score": "accuracy over all questions",
    "Macro": "mean of the accuracies of the tasks",
    "Copies once": "accuracy where questions with the same words, options, images and answer count once",
    "Skill": "0 at the best constant answer, 100 where everything is right",
    "Twins": "a true and a false claim about one fact, both judged right",
    "Pairs": "one fact asked from two sides, both right",
    "Circular": "right in every order of the options",
    "Unreadable": "replies without an answer; these and refusals count as wrong, failed requests are left out",
    "As we read them": "accuracy by our reader",
    "Official script": "accuracy by the reader that the benchmark published",
    "Final line": "accuracy by a reader that sees the last line alone",
    "Follows form": "replies whose last line is the answer and nothing else",
    "Refused": "replies that refuse to answer; they count as wrong",
    "Failed": "requests without a reply; they are left out",
    "Cost, USD": "of all replies whose price is known",
    "MRA": "mean relative accuracy, as in VSI-Bench",
    "median error": "median of the relative error; lower is better",
}
"""What columns mean; other columns are accuracies on the questions that they name."""
_LATEX = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}", ">": r"\textgreater{}", NONE: "--",
    "[": "{[}",
}  # fmt: skip


def format_value(cell: Cell, head: ColumnHead) -> str:
    """The number alone, shares in per cent; or that every request failed."""
    return FAILED if cell.failed else _number(cell.value, head)


def format_interval(cell: Cell, head: ColumnHead) -> str:
    """Its interval, or nothing."""
    if math.isnan(cell.low) or math.isnan(cell.high):
        return ""
    return f"[{_number(cell.low, head)}, {_number(cell.high, head)}]"


def format_denominators(cell: Cell, head: ColumnHead) -> str:
    """Both denominators where they differ, or how many of the questions were asked; else nothing."""
    if head.unit == "usd" or not cell.asked:
        return ""
    told = []
    if cell.n < cell.asked:
        told.append(f"{cell.n} of {cell.asked}")
        if cell.n and not math.isnan(cell.value_all):
            told.append(f"{_number(cell.value_all, head)} of all")
    if head.total and cell.asked < head.total:
        told.append(f"n {cell.asked}")
    return "; ".join(told)


def _number(value: float, head: ColumnHead) -> str:
    if math.isnan(value):
        return NONE
    if math.isinf(value):
        return "∞"
    if head.unit == "usd":
        return f"{value:.2f}" if value >= 0.1 or value == 0 else f"{value:.4f}"
    if head.unit == "count":
        places = 0 if value >= 100 or value % 1 == 0 else 1 if value >= 10 else 2
        return f"{value:,.{places}f}"
    if head.unit == "points":
        return f"{100 * value:+.1f}"
    return f"{value:.3f}" if head.unit == "error" else f"{100 * value:.1f}"


def group_rows(lines: Sequence[Row]) -> Iterator[tuple[Row, str]]:
    """Each line with the heading that stands above it: its group where that begins, else ""."""
    before = ""
    for line in lines:
        yield line, (line.group or BESIDE) if line.group != before else ""
        before = line.group


def explain_columns(table: Table) -> dict[str, str]:
    """Columns of a table and what they mean; a column that only names its questions is left out."""
    found = {}
    for head in table.columns:
        name = head.name.rpartition(": ")[2]  # without the task
        if name in _COLUMNS:
            found[name] = _COLUMNS[name]
    return found


def format_heading(head: ColumnHead) -> str:
    """The column's head with the number of its questions."""
    return f"{head.name} (n = {head.total:,})" if head.total else head.name


def as_json(found: Comparison) -> dict[str, Any]:
    """Everything, JSON-ready; shares from 0 to 1, null where there is no number."""
    tables = [
        {
            "key": table.key,
            "title": table.title,
            "told": table.caption,
            "columns": [asdict(head) for head in table.columns],
            "lines": [
                {name: getattr(line, name) for name in ("name", "kind", "note", "group")}
                | {"cells": {head.name: asdict(cell) for head, cell in zip(table.columns, line.cells, strict=True)}}
                for line in table.rows
            ],
        }
        for table in found.tables
    ]
    pairs = found.pairs.to_dict("records")
    plain: dict[str, Any] = replace_non_finite({"schema": 1, "tables": tables, "pairs": pairs})
    return plain


def format_json(value: Any) -> str:
    """One text per content."""
    return json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def list_numbers(found: Comparison) -> list[dict[str, Any]]:
    """One record per number of all tables; shares from 0 to 1, NaN where there is no number."""
    return [
        {
            "table": table.key, "name": line.name, "kind": line.kind, "column": head.name, "unit": head.unit,
            "value": cell.value, "low": cell.low, "high": cell.high, "n": cell.n, "asked": cell.asked,
            "value_all": cell.value_all, "total": head.total, "mark": cell.mark, "note": line.note, "group": line.group,
        }
        for table in found.tables
        for line in table.rows
        for head, cell in zip(table.columns, line.cells, strict=True)
        if not math.isnan(cell.value) or cell.asked
    ]  # fmt: skip


def format_csv(found: Comparison) -> str:
    """One line per number; shares from 0 to 1."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    numbers = list_numbers(found)
    writer.writerow(numbers[0])
    for number in numbers:
        values = (_format_number(value) if isinstance(value, float) else value for value in number.values())
        writer.writerow(map(guard_formula, values))
    return out.getvalue()


def _format_number(value: float) -> str:
    return "" if math.isnan(value) else f"{value:.6g}"


def format_markdown(found: Comparison, title: str) -> str:
    """All tables as Markdown."""
    parts = [f"# {_escape_markdown(title)}", MARKED]
    parts += [_format_markdown_table(table) for table in found.tables]
    if len(found.pairs):
        rows = [[_escape_markdown(text) for text in texts] for texts in list_pair_texts(found)]
        parts.append(_lay_out_markdown("Pairs of models", PAIRS_TOLD, [list(PAIR_HEADS), *rows]))
    return "\n\n".join(parts) + "\n"


def _format_markdown_table(table: Table) -> str:
    rows = [["", *(_escape_markdown(format_heading(head)) for head in table.columns), "note"]]
    for line, group in group_rows(table.rows):
        if group:
            rows.append([f"*{_escape_markdown(group)}*", *[""] * (len(table.columns) + 1)])
        cells = map(_format_markdown_cell, line.cells, table.columns)
        rows.append([_escape_markdown(line.name), *cells, _escape_markdown(line.note)])
    return _lay_out_markdown(table.title, _escape_markdown(table.caption), rows)


def _lay_out_markdown(title: str, told: str, rows: list[list[str]]) -> str:
    """A section with a table; the first row holds the heads."""
    body = "\n".join(f"| {' | '.join(row)} |" for row in (rows[0], ["---"] * len(rows[0]), *rows[1:]))
    return "\n\n".join(part for part in (f"## {_escape_markdown(title)}", told, body) if part)


def _format_markdown_cell(cell: Cell, head: ColumnHead) -> str:
    sign = {"best": "**", "second": "*", "": ""}[cell.mark]
    partial = format_denominators(cell, head)
    parts = (f"{sign}{format_value(cell, head)}{sign}", format_interval(cell, head), f"({partial})" if partial else "")
    return " ".join(filter(None, parts))


PAIR_HEADS = ("first", "second", "n", "difference", "p (scenes)", "only first", "only second", "p (McNemar)", "needed")
PAIRS_TOLD = (
    "Differences in points, first less second, on the questions that both answered; p values by Holm over all pairs; "
    "needed: questions that would show this difference with a probability of 80 %."
)


def list_pair_texts(found: Comparison) -> Iterator[tuple[str, ...]]:
    """Pairs of models as they are printed, under `PAIR_HEADS`."""
    pairs: Iterable[Any] = found.pairs.itertuples()
    for pair in pairs:
        interval = "" if math.isnan(pair.low) else f" [{100 * pair.low:+.1f}, {100 * pair.high:+.1f}]"
        yield (
            pair.first,
            pair.second,
            f"{pair.n:,}",
            f"{100 * pair.value:+.1f}{interval}",
            _format_p(pair.p),
            str(pair.only_a),
            str(pair.only_b),
            _format_p(pair.p_mcnemar),
            NONE if math.isinf(pair.needed) else f"{pair.needed:,.0f}",
        )


def _format_p(value: float) -> str:
    return "< 0.001" if value < 0.001 else f"{value:.3f}"


def _escape_markdown(text: str) -> str:
    return re.sub(r"([\\`*_{}\[\]<>|#&])", r"\\\1", " ".join(text.split()))


def format_latex(found: Comparison) -> str:
    """All tables as LaTeX (packages: booktabs); best bold, second underlined."""
    return "\n".join(_format_latex_table(table) for table in found.tables)


def _format_latex_table(table: Table) -> str:
    lines = [
        f"% {escape_latex(table.key)}",
        r"\begin{table}",
        rf"\caption{{{escape_latex(table.title)}. {escape_latex(table.caption)}}}",
        rf"\begin{{tabular}}{{l{'r' * len(table.columns)}}}",
        r"\toprule",
        " & ".join(["", *(escape_latex(head.name) for head in table.columns)]) + r" \\",
    ]
    if any(head.total for head in table.columns):
        lines.append(" & ".join(["$n$", *(str(head.total or "") for head in table.columns)]) + r" \\")
    lines.append(r"\midrule")
    kind = "model"
    for line, group in group_rows(table.rows):
        if line.kind != kind:
            lines.append(r"\midrule")
            kind = line.kind
        if group:
            lines.append(rf"\multicolumn{{{len(table.columns) + 1}}}{{l}}{{\emph{{{escape_latex(group)}}}}} \\")
        name = escape_latex(line.name) + (rf"\,\textsuperscript{{{escape_latex(line.note)}}}" if line.note else "")
        cells = [_format_latex_cell(cell, head) for head, cell in zip(table.columns, line.cells, strict=True)]
        lines.append(" & ".join([name, *cells]) + r" \\")
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", r"\end{table}", ""])


def _format_latex_cell(cell: Cell, head: ColumnHead) -> str:
    value = escape_latex(format_value(cell, head)).replace("∞", r"$\infty$")
    value = rf"\textbf{{{value}}}" if cell.mark == "best" else rf"\underline{{{value}}}" if cell.mark else value
    if head.unit == "usd" or math.isnan(cell.low) or math.isinf(cell.low) or math.isinf(cell.high):
        return value
    return rf"{value}\,{{\scriptsize {format_interval(cell, head)}}}"


def escape_latex(text: str) -> str:
    """Text that LaTeX prints as it is."""
    return "".join(_LATEX.get(character, character) for character in " ".join(text.split()))


def _format_own_count(cell: Cell, head: ColumnHead) -> str:
    """What a number is over, where its column's head says something else."""
    return f" (n {cell.n:,})" if head.total and cell.n and cell.n != head.total else ""


def format_text_lines(table: Table, width: int = WIDTH) -> list[str]:
    """A table for a terminal: numbers without intervals, `*` at the best, `+` at the second best, and what a number is
    over where that is not what the column's head says; a last line says what the signs mean."""
    heads = ["", *(head.name for head in table.columns)]
    rows: list[list[str]] = []
    marks = {"best": "*", "second": "+", "": ""}
    notes = [max((len(_format_own_count(line.cells[k], head)) for line in table.rows), default=0)
             for k, head in enumerate(table.columns)]  # fmt: skip
    for line, group in group_rows(table.rows):
        if group:
            rows.append([f"({group})", *[""] * len(table.columns)])
        cells = [
            format_value(cell, head) + marks[cell.mark] + _format_own_count(cell, head).ljust(longest)
            for head, cell, longest in zip(table.columns, line.cells, notes, strict=True)
        ]
        failed = " (all failed)" if "incomplete: all " in line.note else " (incomplete)"
        rows.append([line.name + (failed if "incomplete" in line.note else ""), *cells])
    if any(head.total for head in table.columns):
        rows.insert(0, ["n", *(str(head.total or "") for head in table.columns)])
    lines = format_columns(rows, heads=heads, right=heads[1:], text=False, width=width)
    return [table.title, *lines, *_explain_signs(table)]


def _explain_signs(table: Table) -> list[str]:
    """One line on the signs that stand in a table; none where there are none."""
    cells = [cell for line in table.rows for cell in line.cells]
    told = [
        f"{sign} {meaning}"
        for sign, meaning, used in (
            ("*", "the best, significantly ahead of all others", any(cell.mark == "best" for cell in cells)),
            ("+", "the second best, likewise", any(cell.mark == "second" for cell in cells)),
            (
                NONE,
                "no number, or not attempted",
                any(format_value(cell, _ANY) == NONE for cell in cells if cell.asked),
            ),
            (FAILED, "means that no request got a reply", any(cell.failed for cell in cells)),
        )
        if used
    ]
    return ["; ".join(told) + "."] if told else []
