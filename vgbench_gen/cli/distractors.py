"""`vgbench distractors`: other wrong options for the questions of a dataset."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from vgbench_gen.backends.spec import BackendOptions
from vgbench_gen.cli._options import DEFAULT_MODEL, MAX_SEED, DatasetFolder, Workers, count_workers
from vgbench_gen.cli._screen import print_json, progress_bars
from vgbench_gen.cli._verbs import add_verb
from vgbench_gen.core.lines import format_command

if TYPE_CHECKING:
    from vgbench_gen.backends.base import Backend
    from vgbench_gen.pipeline.redraw import RedrawReport


def register(app: typer.Typer) -> None:
    """Add the verb."""
    add_verb(
        app,
        "distractors",
        distractors,
        "Vary",
        "vgbench distractors build/vgbench --seed 7 --out build/vgbench-7",
    )


def distractors(
    dataset: DatasetFolder,
    strategy: Annotated[
        str,
        typer.Option(
            "--strategy",
            metavar="NAME",
            help="default (each task's own), set-first, factorial, sampled, perturbed, published, llm.",
        ),
    ] = "default",
    seed: Annotated[
        int, typer.Option("--seed", metavar="N", min=0, max=MAX_SEED, help="Of the draws; the build's own is 0.")
    ] = 1,
    task: Annotated[
        list[str] | None, typer.Option("--task", metavar="TASK", help="Only this task; may be repeated.")
    ] = None,
    mix: Annotated[
        str, typer.Option("--mix", metavar="SHARES", help="Several strategies, such as set-first=0.7,llm=0.3.")
    ] = "",
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="FOLDER", help="Of the new dataset; DATASET-STRATEGY-SEED if not given."),
    ] = None,
    build: Annotated[
        Path | None,
        typer.Option("--build", metavar="FOLDER", help="With facts/ and media/, where DATASET has none."),
    ] = None,
    margins: Annotated[
        Literal["", "enforced", "recorded"],
        typer.Option("--margins", metavar="NAME", help="enforced, or recorded for a labelled stress set."),
    ] = "",
    refused: Annotated[
        Literal["keep", "drop"],
        typer.Option("--refused", metavar="NAME", help="keep or drop questions that the strategy cannot ask."),
    ] = "keep",
    allow_unchanged: Annotated[
        bool, typer.Option("--allow-unchanged", help="Status 0 also where most questions keep their options.")
    ] = False,
    model: Annotated[
        list[str] | None,
        typer.Option("--model", metavar="SPEC", help="For llm: who names values; several share the questions."),
    ] = None,
    *,
    sent: BackendOptions,
    workers: Workers = 0,
    as_json: bool = False,
) -> None:
    """Choose wrong options anew and write a new dataset beside the old one; no raw scene is opened.

    Options, letters and what shows them change, and with them the ids of multi-choice questions. Truths, groups, words,
    judgments and open-ended questions stay. A question that the strategy cannot ask keeps its options and its strategy;
    how many those are is said by task, with the first reason. Exits 1 where they are most of the questions, unless
    --allow-unchanged is given, and where no question got new options, for which nothing is written.
    """
    from vgbench_gen.pipeline.redraw import RedrawSettings, redraw

    shares = _read_shares(mix, strategy)
    settings = RedrawSettings(shares, seed, tuple(task or ()), margins, refused)
    specs = model or [DEFAULT_MODEL]
    open_models = partial(_open_backends, specs, sent) if "llm" in shares else None
    with progress_bars("question") as progress:
        report = redraw(
            dataset,
            settings,
            out,
            build=build,
            workers=count_workers(workers),
            progress=progress,
            open_models=open_models,
        )
    _print_report(report, dataset, refused == "drop", as_json)
    done, lost = sum(report.new.values()), sum(report.kept.values())
    if not done:
        told = "no question got new options, so nothing is written."
        if shares.keys() & {"perturbed", "published"} and margins != "recorded":
            told += " Its options lie closer together than the margins allow: add --margins recorded."
    elif lost > done and refused == "keep" and not allow_unchanged:
        told = "most questions keep their options. --allow-unchanged accepts that, --refused drop leaves them out."
    else:
        return
    print(f"vgbench: {told}", file=sys.stderr)
    raise typer.Exit(1)


def _read_shares(mix: str, strategy: str) -> dict[str, float]:
    """Strategy -> share.

    Raises:
        ConfigError: not NAME=SHARE,NAME=SHARE.
    """
    from vgbench_gen.core.errors import ConfigError

    if not mix:
        return {strategy.replace("-", "_"): 1.0}
    shares: dict[str, float] = {}
    for part in mix.split(","):
        name, _, share = part.partition("=")
        try:
            shares[name.strip().replace("-", "_")] = value = float(share)
            if not 0 <= value < float("inf"):
                raise ValueError
        except ValueError:
            raise ConfigError(
                f"--mix {mix}: found {part!r}; expected NAME=SHARE, as in set-first=0.7,llm=0.3."
            ) from None
    if len(shares) < len(mix.split(",")):
        raise ConfigError(f"--mix {mix}: found a strategy twice; expected each once.")
    return shares


def _open_backends(specs: Sequence[str], options: BackendOptions, replies: Path) -> list[Backend]:
    from vgbench_gen.backends.spec import open_backend

    kept = options if options.cache else options.model_copy(update={"cache": replies})
    return [open_backend(spec, kept) for spec in specs]


def _print_report(report: RedrawReport, dataset: Path, dropped: bool, as_json: bool) -> None:
    from collections import Counter, defaultdict

    if as_json:
        told = {name: getattr(report, name) for name in ("fingerprint", "total", "passed", "new", "kept", "headline")}
        print_json({"out": report.out and str(report.out), **told, "words": report.words})
        return
    asked, new = Counter[str](), defaultdict[str, list[str]](list)
    kept = defaultdict[str, Counter[str]](Counter)
    for name, count in report.new.items():
        task, _, strategy = name.partition("/")
        asked[task] += count
        new[task].append(f"{count} by {strategy}")
    for name, count in report.kept.items():
        task, _, reason = name.split("/", 2)
        asked[task] += count
        kept[task][reason] += count
    done, lost = sum(report.new.values()), sum(report.kept.values())
    what = "left out" if dropped else "unchanged"
    for task, total in sorted(asked.items()):
        line = f"{task}: {total} questions, new options for {', '.join(new[task]) or 'none'}"
        if kept[task]:
            reason, count = kept[task].most_common(1)[0]
            line += f"; {kept[task].total()} {what} ({reason} {count})"
        print(line)
    if report.words:
        words = report.words
        print(f"named by {', '.join(words['models'])}: {words['survived']} of {words['questions']} questions survived")
        for reason, count in words["refused"].items():
            print(f"  {reason}: {count}")
    why = " (what the reasons mean: docs/howto/reasons.md)" if lost else ""
    print(f"{done} of {done + lost} questions have new options, {lost} {what}{why}; {report.passed} others passed over")
    if report.out is None:
        return
    print(
        f"{report.total} items in {report.out}, fingerprint {report.fingerprint}"
        + ("" if report.headline else "; not for a headline")
    )
    if report.replaced:
        print(f"replaces the one with {', '.join(f'{name} {value}' for name, value in report.replaced.items())}")
    print(f"next: {format_command('vgbench', 'diff', dataset, report.out)}")
