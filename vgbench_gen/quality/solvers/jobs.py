"""The work of the solvers cut into independent jobs, and what each job brings back."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby, pairwise
from typing import Literal

import cv2
import numpy as np
from threadpoolctl import threadpool_limits

from vgbench_gen.core.rng import stable_hash
from vgbench_gen.core.types import FloatArray
from vgbench_gen.quality.questions import Question
from vgbench_gen.quality.solvers import homographies, motions, tracks, trivial
from vgbench_gen.quality.solvers.pixels import Image
from vgbench_gen.quality.solvers.seen import Unread, VisibleQuestion, look
from vgbench_gen.store.dataset import Dataset, load

Kind = Literal["solver", "wrong image", "trivial"]

PER_CELL = 100
RULES_PER_CELL = 400
_JOB_SIZE = 25  # enough scenes for the control, few enough images to hold in memory
_PARTNERS = 4  # other questions' images per question; features are there already, so they cost little


@dataclass(frozen=True, slots=True)
class Solver:
    """A way to answer. goal: per cent of its task that a solvable set lets it answer, NaN where none is set."""

    name: str
    answer: Callable[[VisibleQuestion], FloatArray]
    goal: float = float("nan")


FEATURES = "features and a robust fit"
SOLVERS: dict[str, tuple[Solver, ...]] = {
    "homography_to_image": (
        Solver(FEATURES, homographies.by_matches, 95.0),
        Solver("warp and compare", homographies.by_warping),
    ),
    "homography_to_matrix": (
        Solver(FEATURES, homographies.by_matches, 95.0),
        Solver("warp and compare", homographies.by_warping),
    ),
    "relative_pose": (Solver("matches under the stated motion", motions.pose, 75.0),),
    "view_after_motion": (Solver("matches under the stated motion", motions.view, 75.0),),
    "point_tracking": (Solver("epipolar line, local transfer, patch", tracks.transfer, 85.0),),
}


@dataclass(frozen=True, slots=True)
class SolverJob:
    """Questions of one task and form to be answered together. folder: the dataset, as `load` takes it."""

    folder: str
    kind: Literal["solve", "rules"]
    questions: tuple[Question, ...]


@dataclass(frozen=True, slots=True)
class SolverOutcome:
    """One answer. credit: 1 right, 0 wrong, shared among ties. read: False where the text held no known numbers."""

    kind: Kind
    name: str
    task: str
    form: str
    id: str
    scene: str
    credit: float
    chance: float
    read: bool = True


def plan(
    questions: Iterable[Question], folder: str, per_cell: int = PER_CELL, rules_per_cell: int = RULES_PER_CELL
) -> list[SolverJob]:
    """Jobs for a fixed sample of every task and form that has a solver or a trivial rule.

    per_cell: at most about so many questions are solved per task and form, 0 for all; twins stay together.
    rules_per_cell: the same for trivial rules, which cost less. The sample depends on ids alone.
    """
    cells: dict[tuple[str, str], list[Question]] = {}
    for question in questions:
        if question.truth >= 0:
            cells.setdefault((question.task, question.form), []).append(question)
    jobs: list[SolverJob] = []
    ruled = trivial.named_tasks()
    for (task, _), members in sorted(cells.items()):
        if task in SOLVERS:
            jobs += _cut(folder, "solve", _sample(members, per_cell))
        if task in ruled:
            jobs += _cut(folder, "rules", _sample(members, rules_per_cell))
    return jobs


def _sample(questions: Sequence[Question], count: int) -> list[Question]:
    if not count or len(questions) <= count:
        return list(questions)
    order = sorted(range(len(questions)), key=lambda k: (stable_hash("solvers", questions[k].group), k))
    chosen: list[int] = []
    for _, same in groupby(order, key=lambda k: questions[k].group):
        if len(chosen) >= count:
            break
        chosen += same
    # In the order of the files: neighbours share a row group, which is read whole.
    return [questions[k] for k in sorted(chosen)]


def _cut(folder: str, kind: Literal["solve", "rules"], questions: Sequence[Question]) -> Iterator[SolverJob]:
    pieces = max(round(len(questions) / _JOB_SIZE), 1)
    edges = [round(k * len(questions) / pieces) for k in range(pieces + 1)]
    return (SolverJob(folder, kind, tuple(questions[a:b])) for a, b in pairwise(edges) if b > a)


def run(job: SolverJob) -> list[SolverOutcome]:
    """The outcomes of a job, the same in any process; uses one thread.

    Raises:
        DatasetError: the dataset or an image is missing or damaged.
    """
    threads = cv2.getNumThreads()
    cv2.setNumThreads(1)
    try:
        with threadpool_limits(1):
            shown = _opened(job)
            return list(_solved(job, shown) if job.kind == "solve" else _ruled(job, shown))
    finally:
        cv2.setNumThreads(threads)


@lru_cache(maxsize=1)
def _dataset(folder: str) -> Dataset:
    return load(folder)


def _opened(job: SolverJob) -> list[tuple[Image, ...]]:
    """The images of each question; questions that show the same image share it, and what is computed from it."""
    dataset, kept = _dataset(job.folder), dict[str, Image]()
    return [
        tuple(
            kept[name] if name in kept else kept.setdefault(name, Image(dataset.image_bytes(question.id, k), name))
            for k, name in enumerate(question.images)
        )
        for question in job.questions
    ]


def _solved(job: SolverJob, shown: Sequence[tuple[Image, ...]]) -> Iterator[SolverOutcome]:
    for solver in SOLVERS[job.questions[0].task]:
        for question, images in zip(job.questions, shown, strict=True):
            yield _outcome("solver", solver.name, solver.answer, question, images)
        for k, question in enumerate(job.questions):
            for other in _others(job.questions, shown, k):
                yield _outcome("wrong image", solver.name, solver.answer, question, shown[other])


def _others(questions: Sequence[Question], shown: Sequence[tuple[Image, ...]], k: int) -> list[int]:
    """Questions of other scenes, no two of one group, whose images have the sizes of question k's."""
    sizes = [image.size for image in shown[k]]
    found: dict[str, int] = {}
    for step in range(1, len(questions)):
        other = (k + step) % len(questions)
        group, scene = questions[other].group, questions[other].scene
        if scene != questions[k].scene and group not in found and [i.size for i in shown[other]] == sizes:
            found[group] = other
        if len(found) == _PARTNERS:
            break
    return list(found.values())


def _ruled(job: SolverJob, shown: Sequence[tuple[Image, ...]]) -> Iterator[SolverOutcome]:
    for question, images in zip(job.questions, shown, strict=True):
        for name, rule in trivial.rules_of(question.task, question.ask).items():
            yield _outcome("trivial", name, rule, question, images)


def _outcome(
    kind: Kind, name: str, answer: Callable[[VisibleQuestion], FloatArray], question: Question, images: Sequence[Image]
) -> SolverOutcome:
    read = True
    try:
        credit = shared_credit(answer(look(question, images)), question.truth)
    except Unread:
        credit, read = question.chance, False
    return SolverOutcome(
        kind, name, question.task, question.form, question.id, question.scene, credit, question.chance, read
    )


def shared_credit(scores: FloatArray, truth: int) -> float:
    """1 / ties where the truth is among the highest scores (NaN counts as lowest), else 0."""
    known = np.nan_to_num(scores, nan=-np.inf)
    best = known == known.max()
    return float(best[truth] / best.sum())
