"""`vgbench vote`: the hard subset, voted by many models from the replies that are there."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vgbench_gen.cli._options import MAX_SEED, BenchmarkName, DatasetFolder, ModelNames, Workers
from vgbench_gen.cli._screen import find_width, print_json, progress_bars, shorten_start
from vgbench_gen.cli._verbs import add_verb
from vgbench_gen.cli.audit import audit_into
from vgbench_gen.core.errors import ConfigError
from vgbench_gen.core.lines import format_command

if TYPE_CHECKING:
    from vgbench_gen.evaluation.base import Source
    from vgbench_gen.pipeline.audit import AuditReport
    from vgbench_gen.quality.voting.rule import Rule

# A hard subset is a choice of questions whose images the audit of the whole set has looked at.
_AUDITED = ("text", "rule", "answers", "repeats", "wording", "scene share", "evidence", "control")


def register(app: typer.Typer) -> None:
    """Add the verb."""
    add_verb(app, "vote", vote, "Score", "vgbench vote build/vgbench --out build/vgbench-hard --workers 2")


def vote(
    dataset: DatasetFolder,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="FOLDER", help="Of the hard subset; DATASET-hard by default. Made again whole."),
    ] = None,
    rule: Annotated[
        str, typer.Option("--rule", metavar="NAME", help="paper, demo (scripted models), or a .toml file.")
    ] = "paper",
    model: ModelNames = None,
    benchmark: BenchmarkName = "vgbench",
    wrong: Annotated[
        int | None, typer.Option("--wrong", metavar="N", min=1, help="Models that must be wrong; with --large.")
    ] = None,
    large: Annotated[
        int | None, typer.Option("--large", metavar="N", min=0, help="Large models among them; with --wrong.")
    ] = None,
    policy: Annotated[
        str,
        typer.Option(
            "--policy",
            metavar="NAME",
            help="paper: unreadable and refused count as wrong, failed is no vote. robust: none of the three votes.",
        ),
    ] = "",
    size: Annotated[
        list[str] | None,
        typer.Option("--size", metavar="MODEL=B", help="Billions of parameters where the name does not say; repeat."),
    ] = None,
    prompt_set: Annotated[str, typer.Option("--prompt-set", metavar="NAME", help="Whose replies count.")] = "paper",
    target: Annotated[int | None, typer.Option("--target", metavar="N", min=1, help="Questions to choose.")] = None,
    seed: Annotated[
        int, typer.Option("--seed", metavar="N", min=0, max=MAX_SEED, help="Of the draw among hard questions.")
    ] = 0,
    reviewed: Annotated[
        bool, typer.Option("--reviewed", help="Choose only what people accepted in `vgbench review`.")
    ] = False,
    ask: Annotated[
        bool, typer.Option("--ask", help="Let baselines of the rule's panel answer first; no other model is asked.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Count and report; write no subset and no list of candidates.")
    ] = False,
    audit: Annotated[bool, typer.Option("--audit/--no-audit", help="Audit the subset's text and rows again.")] = True,
    workers: Workers = 0,
    as_json: bool = False,
) -> None:
    """Find the questions that many models fail, and choose a balanced subset among them.

    Every model that replied votes; one whose requests all failed does not, and baselines do only where --model or the
    rule names them. Candidates with all votes are written to DATASET/votes; only new replies are scored.
    Questions that people refused are left out: see what was chosen with
    `vgbench review DATASET --ids DATASET/votes/chosen.txt`, then vote again. Exits 1 if a constant answer stands out on
    the subset.
    """
    from vgbench_gen.evaluation import hard
    from vgbench_gen.evaluation.base import benchmarks
    from vgbench_gen.evaluation.votes import FOLDER
    from vgbench_gen.report.vote_lines import format_votes

    chosen_rule = _load_rule(rule, policy, target)
    kind = benchmarks[benchmark]
    if out is not None and not kind.builds_datasets:
        raise ConfigError(
            f"--out: found it with --benchmark {benchmark}, whose questions are chosen by their ids alone."
        )
    source = kind.open(dataset)
    folder = out or source.folder.resolve().with_name(f"{source.folder.resolve().name}-hard")
    if not dry_run and kind.builds_datasets:
        hard.check_out(folder)
    if ask:
        _ask(source, tuple(model or chosen_rule.panel))
    with progress_bars("reply") as progress:
        result = hard.count_votes(
            source,
            chosen_rule,
            model or (),
            wrong=wrong,
            large=large,
            sizes=_parse_sizes(size or []),
            prompt_set=prompt_set,
            progress=progress,
        )
    choice = hard.choose_hard(result, seed, reviewed)
    report = hard.make_report(result, choice, seed)
    votes = source.folder / FOLDER
    lines = format_votes(report, find_width())
    if not dry_run:
        hard.write_votes(source.folder, result, choice, report)
        if kind.builds_datasets:
            other = " and ".join(hard.write_hard(dataset, folder, result, choice, seed))
            lines.append(
                f"{report['chosen']} questions in {folder}"
                + (f", which replace those of another {other}" if other else "")
            )
        else:
            lines.append(
                f"{report['chosen']} questions named in {votes / hard.CHOSEN}; a subset is written of a build alone"
            )
            if parted := hard.count_parted(result, choice):
                lines.append(
                    f"{parted} pairs are chosen by half: the other is not hard, or one answer would be too frequent"
                )
        if audit and kind.builds_datasets:
            found = audit_into(folder / "audit", folder, only=_AUDITED, workers=workers)
            report = report | {"audit": _describe_fallen(found)}
            lines += _audit_lines(found, folder)
    scored, voters = len(result.fresh), len(result.panel)
    lines.append(
        f"Votes in {votes}: {voters} models counted, with replies of {scored} scored now and "
        f"saved scores of {voters - scored}."
    )
    if not dry_run and kind.builds_datasets and any(result.status.get(name) != "accepted" for name in choice.ids):
        review = format_command("vgbench", "review", dataset, "--ids", votes / hard.CHOSEN)
        lines.append(f"Not yet reviewed: {review}, then vote again.")
    if as_json:
        print_json(report)
    else:
        print("\n".join(lines))
    if not all(one["holds"] for one in report["truths"]["chosen"]["constant"].values()):
        raise typer.Exit(1)


def _load_rule(name: str, policy: str, target: int | None) -> Rule:
    from vgbench_gen.quality.voting.choice import scale_balance
    from vgbench_gen.quality.voting.rule import COUNTED_WRONG, load_rule

    found = load_rule(name)
    if policy:
        if policy not in COUNTED_WRONG:
            raise ConfigError(f"--policy: found {policy!r}; expected {' or '.join(COUNTED_WRONG)}.")
        found = found.model_copy(update={"policy": policy})
    if target is not None:
        found = found.model_copy(update={"balance": scale_balance(found.balance, target)})
    return found


def _parse_sizes(given: list[str]) -> dict[str, float]:
    found = {}
    for text in given:
        name, _, number = text.rpartition("=")
        try:
            found[name] = float(number.rstrip("bB"))
        except ValueError:
            found[name] = 0.0
        if not name or not 0 < found[name] < float("inf"):
            raise ConfigError(f"--size: found {text!r}; expected a model and its billions, such as my-model=32.")
    return found


def _ask(source: Source, panel: tuple[str, ...]) -> None:
    """Let baselines answer what they have not answered yet."""
    from vgbench_gen.evaluation.baselines import PREFIX
    from vgbench_gen.evaluation.runner import evaluate_all

    mine = [name for name in panel if name.startswith(PREFIX)]
    if not mine:
        raise ConfigError("--ask: found no baseline in the panel; expected some, as with --rule demo. Leave it out.")
    with progress_bars("reply") as progress:
        for run in evaluate_all(
            source, mine, progress=lambda run: progress(shorten_start(run.spec), run.done, run.total)
        ):
            if not run.complete:
                raise ConfigError(f"{run.spec}: {sum(run.failed.values())} questions could not be answered.")


def _describe_fallen(found: AuditReport) -> dict[str, Any]:
    from vgbench_gen.report.audit_table import as_record, count_verdicts

    return {"verdicts": count_verdicts(found.findings), "fell": [as_record(figure) for figure in found.fell]}


def _audit_lines(found: AuditReport, folder: Path) -> list[str]:
    from vgbench_gen.report.audit_table import describe, name_cell, sort_findings, summarise_figures

    fell = [f"  {name_cell(figure)}: {describe(figure)}" for figure in sort_findings(found.fell)]
    return [f"audited again: {summarise_figures(found.findings)}; {folder}/audit/index.html", *fell]
