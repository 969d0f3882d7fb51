"""The work of the solvers cut into independent jobs, and what each job brings back."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import groupby, pairwise
from typing import Literal

import cv2
import numpy as np
from threadpoolctl import threadpool_limits

from vgbench_gen.core.rng import hash_stably
from vgbench_gen.core.types import FloatArray
from vgbench_gen.quality.questions import Question
from vgbench_gen.store.dataset import Dataset, load
from vgbench_gen.tasks.base import tasks
from vgbench_gen.tasks.solving import Image, ImageRule, NoSolver, Score, Solver, Unread, VisibleQuestion

Kind = Literal["solver", "wrong image", "trivial"]

PER_CELL, RULES_PER_CELL = 100, 200
_JOB_SIZE = 25  # enough scenes for the control, few enough images to hold in memory
_PARTNERS = 4  # other questions' images per question; features are there already, so they cost little


def find_solvers(task: str) -> tuple[Solver, ...]:
    """The solvers that a task declares; none for a task that declares a reason instead, or that is not installed."""
    declared = tasks[task].solvers if task in tasks.names() else ()
    return () if isinstance(declared, NoSolver) else declared


def find_rules(task: str, ask: str) -> tuple[ImageRule, ...]:
    """The image rules of one kind of question; none for a task that is not installed."""
    return tasks[task].rules_for(ask) if task in tasks.names() else ()


def look(question: Question, images: Sequence[Image]) -> VisibleQuestion:
    """The question without its key, beside these images: its own, or another's in the wrong-image control."""
    text = (question.question, question.context, question.options)
    return VisibleQuestion(question.task, question.form, question.ask, *text, tuple(images), question.marks)


@dataclass(frozen=True, slots=True)
class SolverJob:
    """Questions of one task and form that are answered together."""

    folder: str
    """The dataset, as `load` takes it."""
    kind: Literal["solve", "rules"]
    """Whether solvers or rules that understand nothing answer them."""
    questions: tuple[Question, ...]


@dataclass(frozen=True, slots=True)
class SolverOutcome:
    """One answer of a solver or a rule."""

    kind: Kind
    """Whether it was a solver, a solver with wrong images, or a trivial rule."""
    name: str
    task: str
    form: str
    id: str
    scene: str
    credit: float
    """1 where it is right, 0 where it is wrong, shared among ties."""
    chance: float
    """The credit that a guess gets."""
    read: bool = True
    """False where the text held no numbers in a known wording; the credit is then that of a guess."""
    allowed_because: str = ""
    """Of an image rule that may answer: why; see `ImageRule`."""
    shown: str = ""
    """Of a wrong image: the scene that it shows."""


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
    for (task, _), members in sorted(cells.items()):
        if find_solvers(task):
            jobs += _cut(folder, "solve", _sample(members, per_cell))
        if any(find_rules(task, question.ask) for question in members):
            jobs += _cut(folder, "rules", _sample(members, rules_per_cell))
    return jobs


def _sample(questions: Sequence[Question], count: int) -> list[Question]:
    if not count or len(questions) <= count:
        return list(questions)
    order = sorted(range(len(questions)), key=lambda k: (hash_stably("solvers", questions[k].group), k))
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
            shown = _open_images(job)
            return list(_run_solvers(job, shown) if job.kind == "solve" else _apply_rules(job, shown))
    finally:
        cv2.setNumThreads(threads)


@lru_cache(maxsize=1)
def _load_dataset(folder: str) -> Dataset:
    return load(folder)


def _open_images(job: SolverJob) -> list[tuple[Image, ...]]:
    """The images of each question; questions that show the same image share it, and what is computed from it."""
    dataset, kept = _load_dataset(job.folder), dict[str, Image]()
    return [
        tuple(
            kept[name] if name in kept else kept.setdefault(name, Image(dataset.image_bytes(question.id, k), name))
            for k, name in enumerate(question.images)
        )
        for question in job.questions
    ]


def _run_solvers(job: SolverJob, shown: Sequence[tuple[Image, ...]]) -> Iterator[SolverOutcome]:
    for solver in find_solvers(job.questions[0].task):
        for question, images in zip(job.questions, shown, strict=True):
            yield _make_outcome("solver", solver.name, solver.score, question, images)
        for k, question in enumerate(job.questions):
            for other in _choose_other_questions(job.questions, shown, k):
                outcome = _make_outcome("wrong image", solver.name, solver.score, question, shown[other])
                yield replace(outcome, shown=job.questions[other].scene)


def _choose_other_questions(questions: Sequence[Question], shown: Sequence[tuple[Image, ...]], k: int) -> list[int]:
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


def _apply_rules(job: SolverJob, shown: Sequence[tuple[Image, ...]]) -> Iterator[SolverOutcome]:
    for question, images in zip(job.questions, shown, strict=True):
        for rule in find_rules(question.task, question.ask):
            yield _make_outcome("trivial", rule.name, rule.score, question, images, rule.allowed_because)


def _make_outcome(
    kind: Kind, name: str, score: Score, question: Question, images: Sequence[Image], allowed_because: str = ""
) -> SolverOutcome:
    read = True
    try:
        credit = share_credit(score(look(question, images)), question.truth)
    except Unread:
        credit, read = question.chance, False
    return SolverOutcome(
        kind=kind,
        name=name,
        task=question.task,
        form=question.form,
        id=question.id,
        scene=question.scene,
        credit=credit,
        chance=question.chance,
        read=read,
        allowed_because=allowed_because,
    )


def share_credit(scores: FloatArray, truth: int) -> float:
    """1 / ties where the truth is among the highest scores (NaN counts as lowest), else 0."""
    known = np.nan_to_num(scores, nan=-np.inf)
    best = known == known.max()
    return float(best[truth] / best.sum())
