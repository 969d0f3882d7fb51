"""`vgbench vote`: a hard subset, chosen by the saved replies of many models."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from pydantic import Field

from vgbench_gen.cli._options import BenchmarkName, DatasetFolder, DrawSeed, ModelNames, Workers
from vgbench_gen.cli._screen import find_width, print_json, progress_bars, shorten_start
from vgbench_gen.cli._verbs import verb
from vgbench_gen.cli.audit import audit_into
from vgbench_gen.core.config import Flag
from vgbench_gen.core.errors import ConfigError
from vgbench_gen.core.lines import format_command

if TYPE_CHECKING:
    from vgbench_gen.evaluation.base import Source
    from vgbench_gen.quality.voting.rule import Rule

# A hard subset is a choice of questions whose images the audit of the whole set has looked at.
_AUDITED = ("text", "rule", "answers", "repeats", "wording", "scene share", "evidence", "control")


@verb("vote", "Score", "vgbench vote build/vgbench --out build/vgbench-hard --workers 2")
def vote(
    dataset: DatasetFolder,
    out: Annotated[Path | None, Flag("Folder of the subset, overwritten; default: DATASET-hard.", "FOLDER")] = None,
    rule: Annotated[str, Flag("Voting rule: paper, demo (scripted models) or a .toml file.", "NAME")] = "paper",
    model: ModelNames = None,
    benchmark: BenchmarkName = "vgbench",
    wrong: Annotated[int | None, Flag("Number of models that must be wrong; needs --large.", "N"), Field(ge=1)] = None,
    large: Annotated[int | None, Flag("How many of them must be large; needs --wrong.", "N"), Field(ge=0)] = None,
    policy: Annotated[
        str,
        Flag(
            "paper: unreadable replies and refusals count as wrong. robust: they do not count, as failed requests "
            "never do. Default: the rule's.",
            "NAME",
        ),
    ] = "",
    size: Annotated[
        list[str] | None, Flag("Billions of parameters (large: 32 or more), if not in the name; repeatable.", "MODEL=B")
    ] = None,
    prompt_set: Annotated[str, Flag("Prompt set whose replies count.", "NAME")] = "paper",
    target: Annotated[int | None, Flag("Number of questions to choose.", "N"), Field(ge=1)] = None,
    seed: DrawSeed = 0,
    reviewed: Annotated[bool, Flag("Choose only questions accepted in `vgbench review`.")] = False,
    ask: Annotated[bool, Flag("First run the baselines of the voting rule (no other model).")] = False,
    dry_run: Annotated[bool, Flag("Count and report, but write no subset and no candidates.")] = False,
    audit: Annotated[bool, Flag("Audit the text of the subset.", names="--audit/--no-audit")] = True,
    workers: Workers = 0,
    as_json: bool = False,
) -> None:
    """Choose a balanced hard subset that many models fail.

    Every model with replies votes, unless all its requests failed; baselines vote only if --model or the rule names
    them. All candidates, with each model's vote, are written to DATASET/votes; only new replies are scored. Questions
    that reviewers rejected are excluded. To use this, run `vgbench review DATASET --ids DATASET/votes/chosen.txt`, then
    vote again. Exits 1 if a constant answer scores more than 3 points above chance on the subset.
    """
    from vgbench_gen.evaluation import hard
    from vgbench_gen.evaluation.base import benchmarks
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
        limits: dict[str, Any] = {
            "wrong": wrong,
            "large": large,
            "sizes": _parse_sizes(size or []),
            "prompt_set": prompt_set,
        }
        result = hard.count_votes(source, chosen_rule, model or (), **limits, progress=progress)
    choice = hard.choose_hard(result, seed, reviewed)
    report = hard.make_report(result, choice, seed)
    votes = source.folder / hard.FOLDER
    lines = format_votes(report, find_width())
    if not dry_run:
        hard.write_votes(source.folder, result, choice, report)
        if kind.builds_datasets:
            other = " and ".join(hard.write_hard(dataset, folder, result, choice, seed))
            replaced = f", which replace those of another {other}" if other else ""
            lines.append(f"{report['chosen']} questions in {folder}{replaced}")
        else:
            lines.append(f"{report['chosen']} questions named in {votes / hard.CHOSEN}; only builds get a subset")
            if parted := hard.count_parted(result, choice):
                why = "the other half is not hard, or one answer would be too frequent"
                lines.append(f"{parted} pairs are only half chosen: {why}")
        if audit and kind.builds_datasets:
            record, audited = _audit(folder, workers)
            report, lines = report | {"audit": record}, lines + audited
    scored, voters = len(result.fresh), len(result.panel)
    counted = f"{voters} models counted, {scored} scored now, {voters - scored} with saved scores"
    lines.append(f"Votes in {votes}: {counted}.")
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
        runs = evaluate_all(source, mine, progress=lambda run: progress(shorten_start(run.spec), run.done, run.total))
        for run in runs:
            if not run.complete:
                raise ConfigError(f"{run.spec}: {sum(run.failed.values())} questions could not be answered.")


def _audit(folder: Path, workers: int) -> tuple[dict[str, Any], list[str]]:
    """The audit of a subset, as JSON and in lines."""
    from vgbench_gen.report import audit_table as table

    found = audit_into(folder / "audit", folder, only=_AUDITED, workers=workers)
    record = {"verdicts": table.count_verdicts(found.findings), "failed": [*map(table.as_record, found.failed)]}
    failed = [f"  {table.name_cell(one)}: {table.describe(one)}" for one in table.sort_findings(found.failed)]
    return record, [f"audited again: {table.summarise_figures(found.findings)}; {folder}/audit/index.html", *failed]
