"""A dataset as the files that another program asks and scores it from.

A target is a plug-in in `exports/`. It gets a `Job`, which yields every question exactly as `vgbench eval` would ask it
and lays its images down beside; what the target makes of them is its own. A folder appears whole or not at all.
"""

from __future__ import annotations

import abc
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vgbench_gen import __version__
from vgbench_gen.core.errors import ConfigError
from vgbench_gen.core.registry import Registry
from vgbench_gen.evaluation.base import Keeps, Source
from vgbench_gen.evaluation.options import AskOptions
from vgbench_gen.evaluation.scoring import SCORER_VERSION
from vgbench_gen.publish.export_job import Job
from vgbench_gen.store.files import dataset_error, fill_folder, sync_all_to_disk

SCHEMA = 1
MANIFEST = "export.json"  # says that a folder is an export, which may be replaced by the next one


class Export(abc.ABC):
    """A target of exports: a plug-in without state."""

    takes_answers: bool = False
    """Whether `Job.answers` means something to it."""
    takes_oracle: bool = False
    """Whether `Job.oracle` means something to it."""

    @abc.abstractmethod
    def write(self, job: Job) -> str:
        """Fill `job.folder`; returns what to run there, for the terminal."""


exports: Registry[Export] = Registry("export", "vgbench_gen.publish.exports")


@dataclass(frozen=True, slots=True)
class Exported:
    """What an export wrote."""

    to: str
    """The target's name."""
    path: Path
    questions: int
    images: int
    run: str
    """What to run with it."""


def export(
    source: Source,
    to: str,
    out: Path,
    options: AskOptions,
    *,
    answers: bool = False,
    oracle: bool = False,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Exported:
    """Write a dataset for another program.

    Args:
        source: the questions.
        to: name of a target.
        out: folder; one that an export made before is replaced.
        options: which questions, and the words they are asked in; controls and orders of options are not exported.
        answers: the right answers as replies, for training, where the target takes them.
        oracle: with traces of agents with oracle tools, where the target takes traces.
        progress: called with (questions done, in all).

    Raises:
        UnknownNameError: no such target.
        ConfigError: options that the target cannot keep.
        DatasetError: `out` holds something that is no export, or the dataset cannot be read.
    """
    target = exports[to]
    _check(source, to, out, options, answers, oracle)
    with fill_folder(out) as folder:
        job = Job(source, options, folder, answers, progress, oracle)
        job.check_images()
        run = target.write(job)
        job.text(MANIFEST, json.dumps(_describe(job, to), indent=2) + "\n")
        sync_all_to_disk(sorted(path for path in folder.rglob("*") if path.is_file()))
    return Exported(to, out, job.total, job.images, run)


def _check(source: Source, to: str, out: Path, options: AskOptions, answers: bool, oracle: bool) -> None:
    """Refuse what a target cannot keep, and a folder that holds something else. Raises as `export`."""
    for flag, wanted, taken in (("answers", answers, "takes_answers"), ("oracle", oracle, "takes_oracle")):
        if wanted and not getattr(exports[to], taken):
            fit = ", ".join(name for name in exports if getattr(exports[name], taken))
            raise ConfigError(f"--{flag}: found it with --to {to}; expected one of {fit}. Leave it out.")
    if options.circular or options.epochs > 1 or options.wrong_images or options.shots or options.long_side_px:
        raise ConfigError(
            "export: found repeats, rotations, examples, wrong images or resizing; expected each question once."
        )
    if isinstance(source, Keeps):
        raise ConfigError(f"export: found {source.benchmark}, whose replies are images; expected answers in words.")
    if out.exists() and not (out.is_dir() and (not any(out.iterdir()) or (out / MANIFEST).is_file())):
        raise dataset_error(out, "files that no export wrote", "a new folder or an older export", "Give another --out.")


def _describe(job: Job, to: str) -> dict[str, Any]:
    """The manifest of a finished export."""
    return {
        "schema": SCHEMA,
        "to": to,
        "benchmark": job.source.benchmark,
        "dataset": job.source.fingerprint,
        "questions": job.total,
        "images": job.images,
        "prompt_set": job.options.prompt_set,
        "settings": job.settings.model_dump(mode="json"),
        "scorer_version": SCORER_VERSION,
        "code": __version__,
    }
