"""`vgbench difficulty`: how hard each question is, from its row and from the saved replies of models."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

from vgbench_gen.cli._options import DatasetFolder, ModelNames
from vgbench_gen.cli._screen import print_columns, print_json, progress_bars
from vgbench_gen.cli._verbs import verb
from vgbench_gen.core.config import Flag

_LISTED = 5  # rows of each table on the screen


@verb("difficulty", "Score", "vgbench difficulty build/vgbench")
def difficulty(
    dataset: DatasetFolder,
    model: ModelNames = None,
    out: Annotated[Path | None, Flag("File to write; default: DATASET/difficulty.jsonl.", "FILE")] = None,
    as_json: bool = False,
) -> None:
    """Measure how hard each question is, also from saved replies.

    Sends no requests. Writes a line of JSON per question: margin, lead under noise, overlap of views, hops, images,
    whether a classical solver is right, the share of models that are, and the difficulty in logits with its standard
    error. The latter is that of a one-parameter item-response model, in which a guess is right by chance (1 / options),
    fitted to replies to plain questions. All models with replies count; baselines only if --model names them.

    Prints abilities of models, difficulties by task, and questions that stronger models miss and weaker ones get right:
    check their keys.
    """
    from vgbench_gen.evaluation.base import benchmarks
    from vgbench_gen.training.difficulty import FILE, measure_difficulty, write_difficulty

    source = benchmarks["vgbench"].open(dataset)
    with progress_bars("reply") as progress:
        report = measure_difficulty(source, model or (), progress)
    path = out or source.folder / FILE
    write_difficulty(path, report.rows)
    tables = {"models": report.models.reset_index(), "tasks": report.tasks.reset_index()}
    if as_json:
        record = {"path": str(path), "spread": report.spread, "notes": report.notes}
        record |= {name: table.to_dict("records") for name, table in tables.items()}
        print_json(record | {"suspects": [*map(asdict, report.suspects)]})
        return
    asked = sum(row.models > 0 for row in report.rows)
    print(f"{asked:,} of {len(report.rows):,} questions answered by some of {len(report.models)} models")
    for table in tables.values():
        rows = [
            [f"{cell:.2f}" if isinstance(cell, float) else cell for cell in row] for row in table.to_numpy().tolist()
        ]
        print_columns(rows[:_LISTED], heads=[*table], right=[*table][1:], text=False)
    for row in report.suspects[:3]:
        found = f"{row.pass_rate:.0%} of {row.models} models right, correlation with ability {row.point_biserial:.2f}"
        print(f"Check the key of {row.id} ({row.task}): {found}")
    print("\n".join([*report.notes[:2], f"Written: {path}; --json lists all models, tasks and keys to check"]))
