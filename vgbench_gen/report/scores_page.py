"""Scores of several models as files: tables as CSV, Markdown, LaTeX and JSON, and one page that opens from disk."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import compress
from os import PathLike
from pathlib import Path
from typing import Any

from vgbench_gen.core.columns import WIDTH
from vgbench_gen.core.errors import ConfigError
from vgbench_gen.evaluation import reference_scores
from vgbench_gen.evaluation.base import Source, benchmarks
from vgbench_gen.evaluation.board import BASELINE, Board
from vgbench_gen.evaluation.compare import load_board
from vgbench_gen.evaluation.loaded import LoadedDataset
from vgbench_gen.evaluation.options import BLIND
from vgbench_gen.evaluation.results import get_path
from vgbench_gen.evaluation.tables import UNREADABLE, ColumnHead, Comparison, Table, compare_models, split_runs
from vgbench_gen.report import scores_plots
from vgbench_gen.report.header import SCORES, PageHeader, refresh_headers
from vgbench_gen.report.scores_files import (
    MARKED,
    PAIR_HEADS,
    PAIRS_TOLD,
    as_json,
    explain_columns,
    format_csv,
    format_denominators,
    format_interval,
    format_json,
    format_latex,
    format_markdown,
    format_text_lines,
    format_value,
    group_rows,
    list_numbers,
    list_pair_texts,
)
from vgbench_gen.report.scores_wrong import write_wrong
from vgbench_gen.report.site import make_environment, make_inline_style
from vgbench_gen.store.files import write_bytes

UNREADABLE_LIMIT = 0.02  # docs/validity.md#unreadable-replies; a model's numbers then say as much of its form
_CONFUSED = 8  # models with tables of what they answered for what
_CHARTED = ("task", "source")  # tables that the chart shows; of questions of one task it shows the summary


@dataclass(frozen=True, eq=False)
class ComparedModels:
    """The tables of several models, as `vgbench compare` prints them."""

    title: str
    board: Board
    """The questions and what every run scored on them."""
    comparison: Comparison
    """The tables made from the board."""
    folder: Path
    """The folder of the page and of the tables as CSV, Markdown, LaTeX and JSON."""
    sources: Mapping[str, Source] = field(default_factory=dict)
    """The questions by data set."""

    @property
    def page(self) -> Path:
        """The page with plots and wrong answers."""
        return self.folder / "index.html"

    @property
    def homes(self) -> dict[str, Path]:
        """The folder of each data set by its name, where the gallery stands."""
        return {name: source.folder for name, source in self.sources.items()}

    @property
    def tables(self) -> tuple[Table, ...]:
        """All tables, the summary first."""
        return self.comparison.tables

    def to_records(self) -> list[dict[str, Any]]:
        """A record per number: table, name of the run, column, value, the ends of its interval and so on. Shares are
        from 0 to 1."""
        return list_numbers(self.comparison)

    def to_pandas(self, table: str = "") -> Any:
        """A `pandas.DataFrame`: the records, or a row per run with the numbers of the table of this key."""
        import pandas as pd

        frame = pd.DataFrame(self.to_records())
        if not table:
            return frame
        if table not in (keys := [one.key for one in self.tables]):
            raise ConfigError(f"to_pandas: found table {table!r}; expected one of {', '.join(keys)}.")
        mine = frame[frame["table"] == table]
        wide = mine.pivot(index="name", columns="column", values="value")
        return wide.reindex(index=mine["name"].unique(), columns=mine["column"].unique())

    def lines(self, width: int = WIDTH) -> list[str]:
        """The summary, what tools are worth where agents were asked, the paper's table, and warnings."""
        found = self.comparison
        told: list[str] = []
        for table in (found.summary, *found.agents[:1], *found.papers[:1]):
            told += [*format_text_lines(table, width), ""]
        told += [f"{name}: {how}." for name, how in describe_attempts(self.board).items()]
        return [*told, *list_warnings(self)]

    def __repr__(self) -> str:
        return "\n".join(self.lines())


def compare(
    datasets: str | PathLike[str] | LoadedDataset | Sequence[str | PathLike[str] | LoadedDataset],
    models: Sequence[str] = (),
    *,
    benchmark: str | Sequence[str] = "vgbench",
    out: str | PathLike[str] | None = None,
    replies: str | PathLike[str] | None = None,
    seed: int = 0,
    progress: Callable[[str, int, int], None] = lambda name, done, total: None,
) -> ComparedModels:
    """Compare models on the replies they gave, scoring what is not scored yet, and write tables and a page.

    Args:
        datasets: as `vgbench_gen.load` takes them or what it gives; several are pooled, as SpatialScore is.
        models: names or specs; all where empty.
        benchmark: what kind of data they are; one name for all, or one for each.
        out: folder to write to; `scores/report` of the dataset by default.
        replies: folder of the replies; `replies` of the dataset by default.
        seed: of the bootstrap.
        progress: called with (file, replies scored, replies in all).

    Raises:
        ConfigError: several datasets of one name, or without `out` or with `replies`, or another number of benchmarks.
        DatasetError: no replies, or none that belong to the datasets.
    """
    from vgbench_gen.evaluation.agent_tables import make_agent_tables

    if isinstance(datasets, str | PathLike | LoadedDataset):
        datasets = [datasets]
    named = [get_path(one) for one in datasets]
    paths = {path.resolve().name: path for path in named}
    if len(paths) < len(named):
        raise ConfigError("DATASET: found two folders of one name; expected each once, under names of their own.")
    kinds = [benchmark] if isinstance(benchmark, str) else list(benchmark)
    if len(kinds) not in (1, len(named)):
        raise ConfigError(
            f"--benchmark: found {len(kinds)} names with {len(named)} datasets; expected one for all, or one for each."
        )
    kinds *= len(named) // len(kinds)
    sources = {name: benchmarks[kind].open(path) for (name, path), kind in zip(paths.items(), kinds, strict=True)}
    logs = None if replies is None else Path(replies)
    if logs is not None and len(sources) > 1:
        raise ConfigError(f"--replies {logs}: found several datasets; expected one.")
    if out is None and len(sources) > 1:
        raise ConfigError("--out: found none with several datasets; expected a folder to write to.")
    home = next(iter(sources.values())).folder
    if logs is not None:
        home = logs if logs.is_dir() else logs.parent
    board = load_board(sources, [models] if isinstance(models, str) else models, progress, logs)
    tables = replace(compare_models(board, seed), agents=make_agent_tables(board, sources, seed))
    folder = home / "scores" / "report" if out is None else Path(out)
    found = ComparedModels(", ".join(sources), board, tables, folder, sources)
    write_scores_report(found)
    return found


def write_scores_report(report: ComparedModels) -> Path:
    """Write tables and page into the folder, which is made; returns the page.

    Raises:
        DatasetError: something that is no file stands in the place of one, or replies cannot be read.
    """
    folder = report.folder
    found = as_json(report.comparison) | {"title": report.title, "notes": list_warnings(report)}
    write_bytes(folder / "tables.json", format_json(found).encode())
    write_bytes(folder / "tables.csv", format_csv(report.comparison).encode())
    write_bytes(folder / "tables.md", format_markdown(report.comparison, f"Scores on {report.title}").encode())
    write_bytes(folder / "tables.tex", format_latex(report.comparison).encode())
    runs = [run for part in split_runs(report.board) for run in part]
    for benchmark in benchmarks.values():
        for name, text in benchmark.files(report.board, runs).items():
            write_bytes(folder / name, text.encode())
    models, _ = split_runs(report.board)
    # A baseline gives no reasons that somebody could read.
    wrong = write_wrong(report, [run for run in models if not run.model.startswith(BASELINE)])
    write_bytes(report.page, render_page(report, wrong).encode())
    for home in report.homes.values():
        refresh_headers(home)
    return report.page


def list_warnings(report: ComparedModels) -> list[str]:
    """What makes a number doubtful, one line each."""
    found = list(report.board.notes)
    summary = report.comparison.summary
    places = {head.name: k for k, head in enumerate(summary.columns)}
    for line in summary.rows:
        if line.note:
            found.append(f"{line.name}: {line.note}.")
        if line.kind == "floor":
            continue
        first, unread = line.cells[0], line.cells[places[UNREADABLE]]
        if unread.value > UNREADABLE_LIMIT:
            found.append(f"{line.name}: {100 * unread.value:.1f} % of replies could not be read (limit 2 %).")
        answered = report.board.answers_of(line.name)["answered"].to_numpy()
        if first.n:
            asked = list(compress(report.board.questions, answered))
            constant = float(reference_scores.score_constant(asked).mean())
            if not first.low > constant:
                own = "" if answered.all() else f" on the {first.n:,} question{'s' * (first.n > 1)} that it answered"
                told = f"not significantly above the best constant{own} ({100 * constant:.1f} %)"
                found.append(f"{line.name}: {told}.")
    return found


def render_page(report: ComparedModels, wrong: Mapping[str, tuple[str, int]] | None = None) -> str:
    """The page, whole: no script, styles inside, every text of the data escaped.

    wrong: by name of the run, the address of its wrong answers and how many they are.
    """
    style, csp = make_inline_style()
    found, board = report.comparison, report.board
    models, _ = split_runs(board)
    styles, undrawn = scores_plots.choose_bars(found.summary)
    chart = scores_plots.plot_panels(
        next((table for table in found.parts if table.key in _CHARTED), replace(found.summary, columns=_first(found))),
        styles,
        scores_plots.read_human_scores(report.homes.values()),
        next((run.name for run in board.runs.values() if run.stage == BLIND), f"{BASELINE}blind"),
    )
    tried = describe_attempts(board)
    summary, *sections = [_make_table(table, tried) for table in found.tables]
    return (
        make_environment()
        .get_template("scores.html.j2")
        .render(
            csp=csp,
            style=style,
            header=PageHeader(SCORES, report.folder, report.homes).render("index.html"),
            title=report.title,
            board=f"{_count(len(models), 'model')} on {_count(len(board.questions), 'question')} of "
            f"{_count(len(set(board.scenes)), 'scene')}.",
            marked=MARKED,
            constant=reference_scores.CONSTANT,
            chance=reference_scores.CHANCE,
            warnings=list_warnings(report),
            summary=summary,
            sections=sections,
            chart=chart | {"styles": styles, "undrawn": undrawn},
            cost=scores_plots.plot_costs(list(board.runs.values()), found.summary),
            confusions=scores_plots.plot_confusions(board, models[:_CONFUSED]),
            confused=(min(len(models), _CONFUSED), len(models)),
            pairs=_make_pairs(found),
            pairs_told=PAIRS_TOLD,
            wrong=wrong or {},
        )
    )


def _first(found: Comparison) -> tuple[ColumnHead, ...]:
    """The first column of the summary, under a name that says what it is over."""
    return (replace(found.summary.columns[0], name="all questions"),)


def _count(n: int, what: str) -> str:
    return f"{n:,} {what}{'s' * (n != 1)}"


def describe_attempts(board: Board) -> dict[str, str]:
    """By name of the baseline, how many questions it tried, where it declined some, or what it may know."""
    found = {}
    for run in board.runs.values():
        if run.name == f"{BASELINE}constant":
            told = "best constant per task and type, with numbers chosen for the factor 1.25"
            found[run.name] = f"{told}, so it differs from the {reference_scores.CONSTANT}"
        answers = board.answers_of(run.name)
        declined = int((answers["refused"] > 0).sum())
        if run.baseline and declined:
            asked = int(answers["asked"].sum())
            found[run.name] = f"attempted {asked - declined:,} of {asked:,}; the others count as wrong"
    return found


def _make_table(table: Table, tried: Mapping[str, str]) -> dict[str, Any]:
    """A table of texts; `legend` says what its columns are, and its caption is left out where that says it all."""
    legend = explain_columns(table)
    return {
        "key": table.key,
        "title": table.title,
        "told": "" if len(legend) == len(table.columns) else table.caption,
        "legend": legend,
        "first": "model",
        "heads": [{"name": head.name, "total": head.total} for head in table.columns],
        "lines": [
            {
                "name": line.name,
                "kind": line.kind,
                "group": group,
                "note": "; ".join(filter(None, (line.note, tried.get(line.name, "")))),
                "cells": [
                    {
                        "value": format_value(cell, head),
                        "interval": format_interval(cell, head),
                        "partial": format_denominators(cell, head),
                        "mark": cell.mark,
                        "high": head.name == UNREADABLE and cell.value > UNREADABLE_LIMIT and line.kind == "model",
                    }
                    for head, cell in zip(table.columns, line.cells, strict=True)
                ],
            }
            for line, group in group_rows(table.rows)
        ],
    }


def _make_pairs(found: Comparison) -> dict[str, Any]:
    lines = [(first, [{"value": text} for text in texts]) for first, *texts in list_pair_texts(found)]
    return {
        "key": "pairs",
        "first": PAIR_HEADS[0],
        "heads": [{"name": name} for name in PAIR_HEADS[1:]],
        "lines": [{"name": name, "kind": "model", "cells": cells} for name, cells in lines],
    }
