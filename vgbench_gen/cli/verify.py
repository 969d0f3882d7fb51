"""`vgbench verify`: every answer computed again."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vgbench_gen.cli._options import DatasetFolder, Workers, count_workers
from vgbench_gen.cli._screen import print_json, progress_bar
from vgbench_gen.cli._verbs import verb
from vgbench_gen.core.config import Flag

if TYPE_CHECKING:
    from vgbench_gen.core.gates import Gates
    from vgbench_gen.quality.verify import Problem, RowsJob, VerifyJob

_LISTED = 40  # problems printed in full; all of them are counted, and all stand in --json


@verb("verify", "Build", "vgbench verify build/vgbench --scenes raw_scenes")
def verify(
    dataset: DatasetFolder,
    scenes: Annotated[list[Path] | None, Flag("Folder with the raw scenes; repeatable.", "FOLDER")] = None,
    workers: Workers = 0,
    rationales: Annotated[bool, Flag("Also write and check both rationales of every question.")] = False,
    as_json: bool = False,
) -> None:
    """Recompute every answer from its evidence.

    With --scenes, also from the raw data. Lists every disagreement and exits 1 if there is one.
    """
    report = verify_dataset(dataset, scenes or [], workers, rationales)
    if as_json:
        counts = {"items": report.items, "from_scenes": report.from_scenes or 0}
        counts |= {} if report.rationales is None else {"rationales": report.rationales}
        print_json({**counts, "problems": [asdict(problem) for problem in report.problems]})
    else:
        print("\n".join(report.format_lines()))
    if report.problems or not report.items:
        raise typer.Exit(1)


@dataclass(frozen=True, slots=True)
class VerifyReport:
    """What verifying a dataset found."""

    items: int
    """The questions of the dataset."""
    from_scenes: int | None
    """Those of them whose answers were reached again from raw scenes; None where no scenes were given."""
    problems: list[Problem]
    """Every disagreement."""
    rationales: int | None = None
    """The rationales that hold; None where they were not asked for."""

    def format_lines(self) -> list[str]:
        """A line per disagreement, at most `_LISTED`, and how many questions agree."""
        lines = [str(problem) for problem in self.problems[:_LISTED]]
        if len(self.problems) > _LISTED:
            lines.append(f"… and {len(self.problems) - _LISTED} more (all of them with `vgbench verify --json`)")
        if self.rationales is not None:
            lines.append(f"{self.rationales} of {2 * self.items} rationales hold, short and long ones")
        agreeing = self.items - len({problem.item_id for problem in self.problems})
        share = 100 * agreeing / self.items if self.items else 0.0
        how = "" if self.from_scenes is None else " and from the raw scenes"
        return [*lines, f"{agreeing} of {self.items} items verified ({share:.4g}%), from the stored evidence{how}"]


def verify_dataset(dataset: Path, scenes: list[Path], workers: int, rationales: bool = False) -> VerifyReport:
    """Verify every row by its own evidence and, where folders with raw scenes are given, from these; on demand, the
    rationales as well.

    Raises:
        DatasetError: the dataset cannot be read.
        ConfigError: no scenes stand there.
    """
    from vgbench_gen.executors import Engine, run
    from vgbench_gen.pipeline.build import find_scenes
    from vgbench_gen.pipeline.subset import is_choice
    from vgbench_gen.quality.verify import group_by_scene, plan_rows, verify_job, verify_set
    from vgbench_gen.store.dataset import load
    from vgbench_gen.store.provenance import read_manifest
    from vgbench_gen.training.rationales import check_rationales

    items, gates, folder = load(dataset), _read_gates(dataset), _find_manifest(dataset)
    rows = list(items) if scenes else items  # the jobs hold all of them; to read them twice takes seconds
    problems = verify_set(rows, folder is not None and is_choice(read_manifest(folder)))
    by_rows = plan_rows(str(dataset), items.group_starts, gates)
    by_scene, missing = group_by_scene(rows, find_scenes(scenes), gates) if scenes else ([], [])
    # A scene takes longest, so no worker should begin one when the others are done.
    jobs: list[VerifyJob | RowsJob] = [*by_scene, *by_rows]
    results = {}
    with progress_bar("verify", "step") as progress:
        progress(0, len(jobs))
        for index, found in run(verify_job, jobs, Engine("local", count_workers(workers))):
            results[index] = found
            progress(len(results), len(jobs))
    order = [*range(len(by_scene), len(jobs)), *range(len(by_scene))]  # told by row first, as they stand in the dataset
    listed = [problem for index in order for problem in results[index]]
    from_rows = sum(len(results[index]) for index in order[: len(by_rows)])
    problems += [*listed[:from_rows], *missing, *listed[from_rows:]]
    held: int | None = None
    if rationales:
        told = dict(run(check_rationales, by_rows, Engine("local", count_workers(workers))))
        held = sum(count for count, _ in told.values())
        problems += [problem for _, (_, found) in sorted(told.items()) for problem in found]
    return VerifyReport(len(items), sum(len(job.items) for job in by_scene) if scenes else None, problems, held)


def _read_gates(dataset: Path) -> Gates:
    """The gates the dataset was built with, or the shipped ones where no manifest stands beside it."""
    from vgbench_gen.core.gates import Gates
    from vgbench_gen.store.provenance import read_manifest, read_recipe
    from vgbench_gen.tasks.base import read_gates

    folder = _find_manifest(dataset)
    if folder is None:
        return Gates()
    return read_gates(read_recipe(read_manifest(folder), folder)["gates"], str(folder / "manifest.json"))


def _find_manifest(dataset: Path) -> Path | None:
    """The folder of the dataset's manifest; None where there is none."""
    return next((f for f in (dataset, dataset.parent) if (f / "manifest.json").is_file()), None)
