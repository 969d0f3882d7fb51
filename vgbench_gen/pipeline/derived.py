"""Datasets that are made from another one: where the first one's build is, and how the new one takes its place.

A derived dataset is filled in a folder beside its target, which nobody else may write meanwhile, and appears under its
name only when all of it is there. A run that was killed is taken up again by the next one of the same target.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from vgbench_gen.core.errors import ConfigError
from vgbench_gen.pipeline.question_plan import QUESTIONS
from vgbench_gen.store.files import check_name, clean_temporary, dataset_error, link_files, replace_folder
from vgbench_gen.store.provenance import MANIFEST, BuildLock, read_manifest

_LINKED = ("facts", "rejects", "media")


def find_build(dataset: Path, *, with_media: bool = False) -> Path:
    """The folder of the build that a dataset's files belong to: the given one, or the one around it.

    Raises:
        DatasetError: there is none, or none with images where these are wanted.
    """
    for folder in (dataset, dataset.parent):
        if (folder / MANIFEST).is_file() and (not with_media or (folder / "media").is_dir()):
            return folder
    lacking = f"no {MANIFEST} with media/" if with_media else f"no {MANIFEST}"
    raise dataset_error(dataset, lacking, "a folder that `vgbench build` made", "Name its folder.")


def check_target(target: Path, note: str, parent: str) -> None:
    """Refuse a target that holds something else than an earlier run on the same dataset, whose fingerprint the part
    `note` of its manifest names.

    Raises:
        ConfigError: something else stands there.
        DatasetError: as `check_name`.
    """
    check_name(target)
    if not target.exists() or (target.is_dir() and not any(target.iterdir())):
        return
    if (target / MANIFEST).is_file() and read_manifest(target).get(note, {}).get("from") == parent:
        return
    raise ConfigError(
        f"--out {target}: found something else there; expected no folder, or one that this command made from this "
        "dataset. Give another name."
    )


@contextmanager
def fill_beside(target: Path) -> Iterator[Path]:
    """Yield the folder to fill; when the block ends well and a manifest is there, it takes the place of the target.

    Raises:
        BuildLocked: another process fills it.
    """
    work = target.with_name(f".{target.name}.partial")
    with BuildLock(work):
        clean_temporary(work)
        (work / MANIFEST).unlink(missing_ok=True)
        yield work
    if (work / MANIFEST).is_file():
        replace_folder(work, target)


def link_build(origin: Path, work: Path) -> None:
    """Show the facts, the rejects, the images and the table of questions of a build in another folder as well, in place
    of what another build left there."""
    for name in ("facts", "rejects"):
        shutil.rmtree(work / name, ignore_errors=True)
    if (origin / QUESTIONS).is_file():
        shutil.copyfile(origin / QUESTIONS, work / QUESTIONS)
    for name in _LINKED:
        if (origin / name).is_dir():
            link_files(origin / name, work / name)
