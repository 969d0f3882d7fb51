"""`vgbench compare`: saved replies scored, and tables of several models with intervals, floors and paired tests."""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vgbench_gen.cli._options import DrawSeed, ModelNames, choose_dataset
from vgbench_gen.cli._screen import find_width, print_json, progress_bars
from vgbench_gen.cli._verbs import verb
from vgbench_gen.core.config import Flag
from vgbench_gen.core.lines import format_command

if TYPE_CHECKING:
    from vgbench_gen.evaluation.cases import CaseTally
    from vgbench_gen.evaluation.imported import ImportedLog

_NAMED = 20  # bad lines named in full; all of them are counted


@verb("compare", "Score", "vgbench compare build/vgbench")
def compare(
    datasets: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="DATASET",
            help="Folders with replies; default: the most recent build. Several are pooled, as SpatialScore's sources.",
        ),
    ] = None,
    model: ModelNames = None,
    benchmark: Annotated[list[str] | None, Flag("Benchmark of DATASET, or one per DATASET.", "NAME")] = None,
    out: Annotated[Path | None, Flag("Folder to write to; default: DATASET/scores/report.", "FOLDER")] = None,
    replies: Annotated[
        Path | None,
        Flag(
            "Folder or file of `vgbench eval --replies`, instead of DATASET/replies; or another program's log, or a "
            "table of ids and replies, which is copied to DATASET/replies.",
            "PATH",
        ),
    ] = None,
    program: Annotated[str, Flag("Format of --replies: lmms-eval, vlmevalkit, …", "NAME", names="--from")] = "",
    spec: Annotated[str, Flag("Name of imported replies; default: PROGRAM:MODEL.", "SPEC", names="--as")] = "",
    cases: Annotated[
        Path | None,
        Flag(
            "Score individual replies from this JSON-lines file instead, with the fields id, benchmark, question_type, "
            "response, ground_truth, options and question.",
            "FILE",
        ),
    ] = None,
    seed: DrawSeed = 0,
    as_json: bool = False,
) -> None:
    """Score saved replies and compare models in tables.

    Sends no requests. Replies are scored with our parser ("sane") and with the published script ("official"); one line
    per reply goes to DATASET/scores/MODEL.jsonl, and scores that are still valid are kept. A reply to a question whose
    wording, options or images have changed since is reported as stale and not scored.

    Prints a summary, the gain from tools if there are agents, and a table in the layout of the paper. Writes
    index.html with plots and pages of wrong answers, and the tables as JSON, CSV, Markdown and LaTeX. Every number has
    a 95% confidence interval over scenes; best and second best are marked if the paired difference is significant.

    Exits 1 if some replies of a model failed, so that its numbers are incomplete; if all replies of a model named by
    --model failed; or if a line of --cases could not be scored. With --cases, lengths are in meters, and --json prints
    one line per reply.
    """
    if (program or spec) and replies is None:
        raise typer.BadParameter("--from and --as describe --replies FILE; give that too")
    if cases is not None:
        if datasets or replies is not None:
            raise typer.BadParameter("give either --cases FILE, or DATASET and --replies")
        _score_cases(cases, as_json)
        return
    from vgbench_gen.evaluation.base import DEFAULT_BENCHMARK, benchmarks
    from vgbench_gen.evaluation.imported import take_replies
    from vgbench_gen.evaluation.results import ModelScores
    from vgbench_gen.report import scores_page
    from vgbench_gen.report.scores_files import as_json as in_json

    kinds = benchmark or [DEFAULT_BENCHMARK]
    datasets = datasets or [choose_dataset(None, kinds[0])]
    imported = None
    if replies is not None and len(datasets) == 1:
        imported = take_replies(benchmarks[kinds[0]].open(datasets[0]), replies, program, spec)
    if imported is not None:
        model, replies = [*model, imported.spec] if model else None, None
    with progress_bars("reply") as progress:
        found = scores_page.compare(
            datasets, model or (), benchmark=kinds, out=out, replies=replies, seed=seed, progress=progress
        )
    saved = found.board.saved.items()
    scored = [ModelScores(one).figures | {"dataset": name} for name, files in saved for one in files]
    if as_json:
        record: dict[str, Any] = {"title": found.title, "notes": scores_page.list_warnings(found), "models": scored}
        if imported is not None:
            record["imported"] = asdict(imported) | {"path": str(imported.path)}
        print_json(in_json(found.comparison) | record)
    else:
        _print_imported(imported)
        print("\n".join(found.lines(find_width())))
        print(f"Written: {found.page}, which explains every column, tables.json, tables.csv, tables.md, tables.tex")
        bare = [home for home in found.homes.values() if not (home / "gallery" / "index.html").is_file()]
        if bare and all(benchmarks[kind].builds_datasets for kind in kinds):
            browse = " and ".join(f"`{format_command('vgbench', 'browse', home)}`" for home in bare)
            print(f"Ids on the pages become links after {browse} and another compare.")
    notes = [line.note for line in found.comparison.summary.rows if "incomplete" in line.note]
    if any(model or "incomplete: all" not in note for note in notes):
        raise typer.Exit(1)


def _print_imported(imported: ImportedLog | None) -> None:
    if imported is None:
        return
    print(f"{imported.taken} replies of {imported.spec} imported ({imported.failed} failed, {imported.known} known)")
    for reason, count in imported.ignored.items():
        print(f"  not imported: {count} ({reason.replace('_', ' ')}, such as {imported.first[reason]})")


def _score_cases(cases: Path, as_json: bool) -> None:
    from vgbench_gen.evaluation.cases import CaseTally, score_file

    tally = CaseTally()
    for row in score_file(cases, tally):
        if as_json:
            print_json(row, indent=None)
    if not as_json:
        print("\n".join(_summarize_cases(tally)))
    for problem in tally.bad[:_NAMED]:
        print(f"vgbench: warning: {problem}", file=sys.stderr)
    if tally.bad:
        total = len(tally.bad) + tally.outcomes.total()
        print(f"vgbench: warning: {len(tally.bad)} of {total} lines could not be scored", file=sys.stderr)
        raise typer.Exit(1)


def _summarize_cases(tally: CaseTally) -> list[str]:
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
