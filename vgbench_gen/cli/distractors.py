"""`vgbench distractors`: other wrong options for the questions of a dataset, or fewer questions."""

from __future__ import annotations

import sys
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from pydantic import Field

from vgbench_gen.backends.spec import BackendOptions
from vgbench_gen.cli._flags import split_names
from vgbench_gen.cli._options import DEFAULT_MODEL, DatasetFolder, DrawSeed, Workers, count_workers
from vgbench_gen.cli._screen import print_json, progress_bar, progress_bars
from vgbench_gen.cli._verbs import verb
from vgbench_gen.core.config import Flag
from vgbench_gen.core.errors import ConfigError

if TYPE_CHECKING:
    from vgbench_gen.backends.base import Backend
    from vgbench_gen.pipeline.redraw import RedrawReport

_PRUNING = (
    "Pruning hides a faulty strategy: it removes the evidence of the fault, and the questions that remain were made "
    "the same way. If `vgbench audit` fails, change the strategy; prune only a dataset that passes."
)


@verb("distractors", "Vary", "vgbench distractors build/vgbench --seed 7 --out build/vgbench-7")
def distractors(
    dataset: DatasetFolder,
    strategy: Annotated[
        str, Flag("default (each task's own), set-first, factorial, sampled, perturbed, published or llm.", "NAME")
    ] = "default",
    seed: DrawSeed = 1,
    task: Annotated[list[str] | None, Flag("Change only these tasks.", "A,B")] = None,
    mix: Annotated[str, Flag("Several strategies with shares, such as set-first=0.7,llm=0.3.", "SHARES")] = "",
    out: Annotated[Path | None, Flag("New dataset; default: DATASET-STRATEGY-SEED.", "FOLDER")] = None,
    build: Annotated[Path | None, Flag("Folder with facts/ and media/, if DATASET has none.", "FOLDER")] = None,
    margins: Annotated[
        Literal["", "enforced", "recorded"], Flag("enforced, or recorded (may be violated; labeled stress).", "NAME")
    ] = "",
    refused: Annotated[Literal["keep", "drop"], Flag("keep or drop questions without new options.", "NAME")] = "keep",
    allow_unchanged: Annotated[bool, Flag("Exit 0 even if most questions keep their options.")] = False,
    prune: Annotated[float | None, Flag("Remove up to this share of questions; replace no options.", "SHARE")] = None,
    rounds: Annotated[int, Flag("With --prune: how often questions are rescored.", "N"), Field(ge=1)] = 5,
    dry_run: Annotated[bool, Flag("With --prune: print the result and write nothing.")] = False,
    model: Annotated[
        list[str] | None,
        Flag(
            "Model that proposes wrong values (strategy llm). If repeated, questions are divided among them.",
            "SPEC",
            "Model",
        ),
    ] = None,
    *,
    sent: BackendOptions,
    workers: Workers = 0,
    as_json: bool = False,
) -> None:
    """Replace the wrong options of a dataset (writes a new dataset).

    Needs no raw scenes. The wrong options, the letters and images of options, and the ids of multiple-choice questions
    change. Correct answers, other images, groups, wordings, judgments and open-ended questions do not. A question for
    which the strategy finds no options keeps its own; their number and the main reason are printed per task. Exits 1 if
    no question got new options (nothing is written then), or if most did not and --allow-unchanged is not given.

    With --prune, removes the questions that a text-only classifier answers best (iterative bias pruning), with their
    groups, twins and pairs. Pruning hides a faulty sampler: if the audit fails, fix the sampler instead.
    """
    if prune is not None:
        _prune(dataset, out, prune, rounds, workers, dry_run, as_json)
        return
    if dry_run:
        raise ConfigError("--dry-run: found it without --prune; expected both. Leave it out.")
    from vgbench_gen.pipeline.redraw import RedrawSettings, redraw

    shares = _read_shares(mix, strategy)
    settings = RedrawSettings(shares, seed, split_names(task), margins, refused)
    open_models = partial(_open_backends, model or [DEFAULT_MODEL], sent) if "llm" in shares else None
    with progress_bars("question") as progress:
        how: dict[str, Any] = {"workers": count_workers(workers), "progress": progress, "open_models": open_models}
        report = redraw(dataset, settings, out, build=build, **how)
    _print_report(report, refused == "drop", as_json)
    done, lost = sum(report.new.values()), sum(report.kept.values())
    if not done:
        problem = "no question got new options, so nothing is written."
        if shares.keys() & {"perturbed", "published"} and margins != "recorded":
            problem += " Its options lie closer together than the margins allow: add --margins recorded."
    elif lost > done and refused == "keep" and not allow_unchanged:
        problem = "most questions keep their options. --allow-unchanged accepts that, --refused drop leaves them out."
    else:
        return
    print(f"vgbench: {problem}", file=sys.stderr)
    raise typer.Exit(1)


def _prune(
    dataset: Path, out: Path | None, share: float, rounds: int, workers: int, dry_run: bool, as_json: bool
) -> None:
    from vgbench_gen.pipeline import prune as pipeline

    if out is None and not dry_run:
        raise ConfigError("--out: found none; expected a new folder for the pruned dataset, or --dry-run.")
    print(f"vgbench: warning: {_PRUNING}", file=sys.stderr)
    with progress_bar("scoring", "cell") as progress:
        report = pipeline.prune(
            dataset, None if dry_run else out, share, rounds=rounds, workers=count_workers(workers), progress=progress
        )
    if as_json:
        print_json({"kept": report.kept, "removed": [*map(asdict, report.removed)], "mean_bias": report.means})
        return
    for (task, form), count in sorted(Counter((p.task, p.form) for p in report.removed).items()):
        print(f"{task} {form}: {count}")
    means = ", ".join(f"{mean:.3f}" for mean in report.means)
    print(f"mean share of the correct answer before each round: {means}")
    verb = "would go" if dry_run else "left out"
    print(f"{len(report.removed)} questions {verb}, {report.kept} stay{'' if dry_run else f' in {out}'}")


def _read_shares(mix: str, strategy: str) -> dict[str, float]:
    """Strategy -> share.

    Raises:
        ConfigError: not NAME=SHARE,NAME=SHARE.
    """
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


def _print_report(report: RedrawReport, dropped: bool, as_json: bool) -> None:
    if as_json:
        names = ("fingerprint", "total", "passed", "new", "kept", "headline", "words")
        print_json({"out": report.out and str(report.out)} | {name: getattr(report, name) for name in names})
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
