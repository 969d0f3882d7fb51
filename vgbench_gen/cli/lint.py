"""`vgbench lint`: what is wrong with a training file, and which rows its trainer keeps."""

from __future__ import annotations

from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vgbench_gen.cli._screen import print_json, progress_bar
from vgbench_gen.cli._verbs import verb
from vgbench_gen.core.config import Flag
from vgbench_gen.core.errors import ConfigError, DatasetError

if TYPE_CHECKING:
    from vgbench_gen.training.lint import LintReport
    from vgbench_gen.training.options import TrainOptions
    from vgbench_gen.training.trainers import Trainer


@verb("lint", "Share", "vgbench lint build/train-llama-factory")
def lint(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Training file, or folder of `vgbench export`.")],
    trainer: Annotated[str, Flag("Trainer that reads it; default: the export's own.", "NAME")] = "",
    family: Annotated[str, Flag("Model family whose tokens are counted; default: the export's.", "NAME")] = "",
    max_tokens: Annotated[int, Flag("Longest row that you set; 0 = the trainer's default.", "N")] = 0,
    max_pixels: Annotated[int, Flag("Limit of an image's area that you set; 0 = the family's.", "N")] = 0,
    tokenizer: Annotated[
        Path | None, Flag("The model's tokenizer.json; without it, tokens are estimated.", "FILE")
    ] = None,
    guard: Annotated[
        list[Path] | None,
        Flag("Rooms, one per line, or a dataset whose rooms and pictures must not occur; repeatable.", "PATH"),
    ] = None,
    fix: Annotated[Path | None, Flag("Write a mended copy.", "FILE")] = None,
    canary: Annotated[Path | None, Flag("Replies to a canary, which FILE is then; see `--to canary`.", "FILE")] = None,
    as_json: bool = False,
) -> None:
    """Check a training file before a trainer drops its rows in silence.

    Looks at the types of columns, marks and pictures of each row, paths, pictures, tokens, answers, rooms and pictures
    of test sets; says which rows the trainer keeps, changes, drops or stops at. Each defect is printed with a remedy,
    and --fix writes a copy without what can be mended. Exits 1 if there is a defect.

    With --canary, says instead which pictures of the rows reached a model (`vgbench export --to canary`).
    """
    if canary is not None:
        _judge(file, canary, as_json)
        return
    from vgbench_gen.training.families import find_family
    from vgbench_gen.training.guards import read_guard
    from vgbench_gen.training.lint import lint, load_tokenizer
    from vgbench_gen.training.mend import write_mended
    from vgbench_gen.training.trainers import ANY_LENGTH, TRAINERS, find_trainer

    made_for, settings = _read_export(file)
    reader = find_trainer(trainer or (made_for if made_for in TRAINERS else "chat-jsonl"))
    seen_by = find_family(family or settings.family or "qwen2.5-vl", max_pixels or settings.max_pixels)
    limit = max_tokens or (reader.exported_tokens if made_for == reader.name else 0)
    with progress_bar("lint", "row") as progress:
        report = lint(
            file,
            reader,
            seen_by,
            most_tokens=limit,
            count_text=load_tokenizer(tokenizer) if tokenizer else None,
            guard=read_guard(guard or ()),
            keep_all=fix is not None,
            progress=progress,
        )
    if not report.rows:
        raise DatasetError(f"{file}: found no rows; expected one at least. Give the file that the trainer reads.")
    mended = write_mended(file, fix, report) if fix is not None else None
    if as_json:
        print_json(_describe(report, reader.name, seen_by.name) | ({"fix": list(mended)} if mended else {}))
    else:
        _print_report(report, reader, seen_by.name, estimated=tokenizer is None, is_open=limit == ANY_LENGTH)
        if mended:
            print(f"{fix}: {mended[0]} rows, {mended[1]} left out. Lint it again.")
    if not report.clean:
        raise typer.Exit(1)


def _read_export(file: Path) -> tuple[str, TrainOptions]:
    """(target, how its rows are written) of the export that a file or folder is part of; ("", as built) for others."""
    from vgbench_gen.core.config import parse_config
    from vgbench_gen.core.json_text import read_json
    from vgbench_gen.publish.export import MANIFEST
    from vgbench_gen.training.options import AS_BUILT, TrainOptions

    for folder in (file, *file.resolve().parents[:2]):
        try:
            found = read_json(folder / MANIFEST)
            return str(found["to"]), parse_config(found["train"], TrainOptions, str(folder / MANIFEST))
        except (OSError, ValueError, LookupError, TypeError, ConfigError):
            continue
    return "", AS_BUILT


def _describe(report: LintReport, trainer: str, family: str) -> dict[str, Any]:
    return {
        "trainer": trainer,
        "family": family,
        "rows": report.rows,
        "fates": dict(report.fates),
        "defects": dict(report.defects),
        "examples": [asdict(row) for row in report.damaged],
        "mixed_types": report.mixed,
        "pictures": report.pictures,
        "pictures_alike": report.alike,
        "longest_row_tokens": report.most_tokens,
        "constant_answer": report.constant_answer,
    }


def _print_report(report: LintReport, trainer: Trainer, family: str, estimated: bool, is_open: bool) -> None:
    """Print a report; is_open: whether the limit of tokens is still to be set."""
    from vgbench_gen.training.lint import EXAMPLES, REMEDIES

    fates = ", ".join(f"{count} {fate}" for fate, count in sorted(report.fates.items()))
    print(f"{report.rows} rows, by {trainer.name}: {fates}")
    is_asked = trainer.setting and (is_open or "too_long" in report.defects)
    told = f"; set {trainer.setting} to that at least" if is_asked else ""
    about = " (text estimated)" if estimated else ""
    print(f"longest row: {report.most_tokens} tokens by {family}{about}{told}")
    print(f"{report.pictures} pictures, of which {report.alike} look like another one")
    for column, kinds in report.mixed.items():
        print(f"column {column}: {' and '.join(kinds)}. Write one type (--fix), or loaders refuse or guess.")
    if report.constant_answer:
        print(f"every answer is {report.constant_answer[:60]!r}: nothing can be learned from it.")
    for defect, count in report.defects.most_common():
        print(f"{defect}: {count} rows. {REMEDIES[defect]}")
        for row in islice((row for row in report.damaged if defect in row.defects), EXAMPLES):
            print(f"  {row.place}: {row.defects[defect]}; {row.fate}")
    if report.clean:
        print("nothing to mend")


def _judge(folder: Path, replies: Path, as_json: bool) -> None:
    """Print what replies to a canary say; exit 1 where something is wrong.

    Raises:
        ConfigError: the folder is no canary. DatasetError: no readable replies to it.
    """
    from vgbench_gen.evaluation.base import benchmarks
    from vgbench_gen.training.canary import CONTROL, judge_canary, score_canary

    right = score_canary(benchmarks["vgbench"].open(folder), replies)
    if CONTROL not in right:
        raise ConfigError(f"{folder}: found no canary; expected the folder of `vgbench export --to canary`. Give that.")
    shares, findings = judge_canary(right)
    if as_json:
        print_json({"shares": shares, "findings": findings, "passed": not findings})
    else:
        print(", ".join(f"{probe} {100 * share:.0f} %" for probe, share in shares.items()) + " right")
        print("\n".join(findings) or "Every picture reaches the model, whole, in order and in color.")
    if findings:
        raise typer.Exit(1)
