"""`vgbench score`: replies that are already there, scored; nothing is asked and nothing is fetched."""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vgbench_gen.cli._options import BenchmarkName, ModelNames, choose_dataset
from vgbench_gen.cli._screen import print_json
from vgbench_gen.cli._verbs import add_verb

if TYPE_CHECKING:
    from vgbench_gen.evaluation.cases import CaseTally

_MORE = {"other_settings": "; `vgbench eval` with those settings puts them in force, and asks nothing twice"}
_NAMED = 20  # bad lines named in full; all of them are counted


def register(app: typer.Typer) -> None:
    """Add the verb."""
    add_verb(app, "score", score, "Score", "vgbench score build/vgbench")


def score(
    dataset: Annotated[
        Path | None,
        typer.Argument(
            metavar="DATASET", help="A folder that `vgbench build` made (by default the last one), with replies."
        ),
    ] = None,
    model: ModelNames = None,
    benchmark: BenchmarkName = "vgbench",
    replies: Annotated[
        Path | None,
        typer.Option(
            "--replies",
            metavar="PATH",
            help="Folder or file of `vgbench eval --replies`, instead of DATASET/replies; or the log of another "
            "program, or a table of ids and replies, which are kept in DATASET/replies and scored.",
        ),
    ] = None,
    program: Annotated[
        str,
        typer.Option(
            "--from",
            metavar="NAME",
            help="Who wrote it: lmms-eval, vlmevalkit, table, …; told by its looks if left out.",
        ),
    ] = "",
    spec: Annotated[
        str,
        typer.Option(
            "--as", metavar="SPEC", help="Keep them under this name, which tables print, instead of PROGRAM:MODEL."
        ),
    ] = "",
    again: Annotated[bool, typer.Option("--again", help="Even where saved scores still hold.")] = False,
    cases: Annotated[
        Path | None,
        typer.Option(
            "--cases",
            metavar="FILE",
            help="Instead of a dataset: one case per line with id, benchmark, question_type, response, ground_truth, "
            "options, question.",
        ),
    ] = None,
    as_json: bool = False,
) -> None:
    """Score saved replies as we read them (sane) and as the published scripts do (official), side by side.

    Writes one line per reply to DATASET/scores/MODEL.jsonl; scores that rest on the same replies, dataset and scorer
    are kept. A reply that was given to other words, options or images than the dataset has now is counted, not scored.
    --replies takes those that lmms-eval, VLMEvalKit and others got for a task that `vgbench export` wrote, and tables
    (CSV, TSV, JSON, JSON lines, parquet, Excel) with a column `id` (or `index`) and a column `response` (or
    `prediction`, `output`, `text`, `answer`).
    With --cases, lengths are extracted in meters, --json prints a line per case, a line that cannot be scored is named
    on standard error and the others go on; then the exit status is 1.
    """
    if dataset is not None and cases is not None:
        raise typer.BadParameter("give either DATASET or --cases FILE")
    if (program or spec) and replies is None:
        raise typer.BadParameter("--from and --as say more about --replies FILE; give that too")
    if replies is not None and cases is not None:
        raise typer.BadParameter("--replies are scored against a dataset, not against --cases")
    if cases is not None:
        _score_cases(cases, as_json)
        return
    dataset = choose_dataset(dataset, benchmark)
    from vgbench_gen.cli._screen import progress_bars
    from vgbench_gen.evaluation.base import benchmarks
    from vgbench_gen.evaluation.imported import take_replies
    from vgbench_gen.evaluation.results import ModelScores
    from vgbench_gen.evaluation.saved import score_source

    source = benchmarks[benchmark].open(dataset)
    imported = None if replies is None else take_replies(source, replies, program, spec)
    if imported is not None:
        model, replies = [*(model or ()), imported.spec], None
    with progress_bars("reply") as progress:
        notes: list[str] = []
        found = score_source(source, model or (), again=again, progress=progress, replies=replies, notes=notes)
    for note in notes:
        print(f"vgbench: note: {note}", file=sys.stderr)
    rows = [ModelScores(one).figures for one in found]
    if as_json:
        told = {"imported": asdict(imported) | {"path": str(imported.path)}} if imported else {}
        print_json(told | {"models": rows})
        return
    if imported is not None:
        print(f"{imported.taken} replies of {imported.spec} taken ({imported.failed} failed, {imported.known} known)")
        for reason, count in imported.ignored.items():
            print(f"  not taken: {count} ({reason.replace('_', ' ')}, such as {imported.first[reason]})")
    for row in rows:
        outcomes = ", ".join(f"{outcome} {count}" for outcome, count in row["outcomes"].items())
        print(f"{row['model']}: {row['scored']} replies, {outcomes}")
        if row["failure"]:
            print(f"  all requests failed, the first with {row['failure']}")
        if row["averaged"]:
            means = f"sane {row['sane']:.4f}, official {row['official']:.4f}"
            print(f"  mean score of {row['averaged']} as built: {means}; they differ on {row['differ']}")
        if row["distinct"]:
            once = f"sane {row['sane_distinct']:.4f}, official {row['official_distinct']:.4f}"
            print(f"  copies of a question counted once, {row['distinct']}: {once}")
        for reason, count in row["ignored"].items():
            print(f"  not scored: {count} ({reason.replace('_', ' ')}){_MORE.get(reason, '')}")
        print(f"  {'written' if row['fresh'] else 'kept'}: {row['path']}")
    print("`vgbench compare` prints tables with intervals.")


def _score_cases(cases: Path, as_json: bool) -> None:
    from vgbench_gen.evaluation.cases import CaseTally, score_file

    tally = CaseTally()
    for row in score_file(cases, tally):
        if as_json:
            print_json(row, indent=None)
    if not as_json:
        for line in _format_summary(tally):
            print(line)
    for problem in tally.bad[:_NAMED]:
        print(f"vgbench: warning: {problem}", file=sys.stderr)
    if tally.bad:
        total = len(tally.bad) + tally.outcomes.total()
        print(f"vgbench: warning: {len(tally.bad)} of {total} lines could not be scored", file=sys.stderr)
        raise typer.Exit(1)


def _format_summary(tally: CaseTally) -> list[str]:
    from vgbench_gen.evaluation.answers.outcomes import OUTCOMES
    from vgbench_gen.evaluation.metrics import average_micro

    n = tally.outcomes.total()
    if not n:
        return ["0 cases scored"]
    sane, official = (f"{average_micro(scores):.4f}" if scores else "none" for scores in (tally.sane, tally.official))
    lines = [f"{n} cases scored", f"mean score: sane {sane}, official {official}"]
    lines += [f"{outcome:<11}{tally.outcomes[outcome]:>7} {tally.outcomes[outcome] / n:>7.1%}" for outcome in OUTCOMES]
    unread = ", ".join(f"{status} {tally.statuses[status]}" for status in ("no_answer", "ambiguous", "truncated"))
    return [*lines, f"unreadable: {unread}", f"sane and official differ on {tally.differ}"]
