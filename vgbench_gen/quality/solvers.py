"""The audit's questions to the solvers and image rules that tasks declare, cut into independent jobs; and the figures
that their answers give (`docs/validity.md#solvers`)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import groupby, pairwise
from typing import Literal

import cv2
import numpy as np

from vgbench_gen.core.errors import DatasetError
from vgbench_gen.core.rng import hash_stably, rng_for
from vgbench_gen.core.types import ColorArray, FloatArray
from vgbench_gen.quality.findings import MAX_ITEMS, Finding, measure_accuracy
from vgbench_gen.quality.intervals import Clusters
from vgbench_gen.quality.questions import Question, group_by_cell
from vgbench_gen.quality.rules import PIXELS, credit_pixels, judge_best
from vgbench_gen.store.dataset import Dataset, load
from vgbench_gen.tasks.base import tasks
from vgbench_gen.tasks.solving import Image, ImageRule, NoSolver, Solver, Unread, VisibleQuestion

Kind = Literal["solver", "wrong image", "image rule"]

PER_CELL, RULES_PER_CELL = 100, 200
_JOB_SIZE = 25  # enough scenes for the control, few enough images to hold in memory
_PARTNERS = 4  # other questions' images per question; features are there already, so they cost little
WRONG_IMAGE_POINTS, IMAGE_RULE_POINTS = 3.0, 5.0  # off chance, and over chance, that are allowed
_SIDE_PX = 256  # of the long side at which cheap pixels are described, in some 3 ms
_FEWEST = 50  # questions below which nothing is judged


def find_solvers(task: str) -> tuple[Solver, ...]:
    """The solvers that a task declares; none for a task that declares a reason instead, or that is not installed."""
    declared = tasks[task].solvers if task in tasks.names() else ()
    return () if isinstance(declared, NoSolver) else declared


def _choose_solver(task: str) -> Solver | None:
    """The first solver with a goal, else the first; None where there is none."""
    return next(iter(sorted(find_solvers(task), key=lambda solver: np.isnan(solver.goal))), None)


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
    name: str
    question: Question
    credit: float
    """1 where it is right, 0 where it is wrong, shared among ties."""
    read: bool = True
    """False where the text held no numbers in a known wording; the credit is then that of a guess."""
    shown: str = ""
    """The scene of the images."""
    pixels: FloatArray | None = None
    """(images, `rules.PIXELS`) of the images shown, by which cheap rules answer; such an outcome has no name."""


def plan_solvers(
    questions: Iterable[Question], folder: str, per_cell: int = PER_CELL, rules_per_cell: int = RULES_PER_CELL
) -> list[SolverJob]:
    """Jobs for a fixed sample of every task and form that has options and images; it depends on ids alone.

    per_cell: at most about so many questions are solved per task and form, 0 for all; twins stay together.
    rules_per_cell: the same for rules that understand nothing, which cost less.
    """
    jobs: list[SolverJob] = []
    for (task, _), members in group_by_cell([q for q in questions if q.truth >= 0]).items():
        if find_solvers(task):
            jobs += _cut(folder, "solve", _sample(members, per_cell))
        if any(question.images for question in members):
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


def run_solvers(job: SolverJob) -> list[SolverOutcome]:
    """The outcomes of a job, the same in any process.

    Raises:
        DatasetError: the dataset or an image is missing or damaged.
    """
    shown = _open_images(job)
    return list(_apply_solvers(job, shown) if job.kind == "solve" else _apply_rules(job, shown))


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


def _apply_solvers(job: SolverJob, shown: Sequence[tuple[Image, ...]]) -> Iterator[SolverOutcome]:
    solver = _choose_solver(job.questions[0].task)
    if solver is None:
        return
    for k, question in enumerate(job.questions):
        yield _answer("solver", solver, question, question, shown[k])
        for other in _choose_other_questions(job.questions, shown, k):
            yield _answer("wrong image", solver, question, job.questions[other], shown[other])


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
        with suppress(DatasetError):  # a damaged picture is a problem that `verify_item` names
            pixels = _describe_images(images) if images else None
            yield SolverOutcome("image rule", "", question, np.nan, pixels=pixels)
        for rule in find_rules(question.task, question.ask):
            yield _answer("image rule", rule, question, question, images)


def describe_spectrum(gray: ColorArray, bands: int) -> FloatArray:
    """(2 + bands,) logarithms: variance of the Laplacian, variance, and energy from low to high over the lowest."""
    smooth = gray.astype(np.float64)
    window = np.outer(*(np.hanning(side + 2)[1:-1] for side in gray.shape))
    power = np.abs(np.fft.rfft2((smooth - smooth.mean()) * window)) ** 2
    frequency = np.hypot(np.fft.fftfreq(gray.shape[0])[:, None], np.fft.rfftfreq(gray.shape[1]))
    ring = np.searchsorted(np.geomspace(0.5 / 64, 0.5, bands), frequency.ravel())
    energy = np.log(np.bincount(ring, power.ravel(), bands + 1)[:bands] + 1e-9)
    laplacian = cv2.Laplacian(smooth, cv2.CV_64F).var()
    return np.array([np.log(laplacian + 1e-3), np.log(smooth.var() + 1), *energy - energy[0]])


def _describe_images(images: Sequence[Image]) -> FloatArray:
    """(images, `PIXELS`) logarithms of the shares of energy that the Laplacian and four bands of frequencies have."""
    found = np.array([describe_spectrum(image.shrink(_SIDE_PX), len(PIXELS)) for image in images])
    bands = found[:, 2:] - np.logaddexp.reduce(found[:, 2:], axis=1, keepdims=True)
    return np.column_stack([found[:, 0] - found[:, 1], bands[:, 1:]])


def _answer(
    kind: Kind, by: Solver | ImageRule, question: Question, shown: Question, images: Sequence[Image]
) -> SolverOutcome:
    """What it makes of a question with the images of the one that is `shown`."""
    read = True
    try:
        credit = share_credit(by.score(look(question, images)), question.truth)
    except Unread:
        credit, read = question.chance, False
    return SolverOutcome(kind, by.name, question, credit, read, shown.scene)


def share_credit(scores: FloatArray, truth: int) -> float:
    """1 / ties where the truth is among the highest scores (NaN counts as lowest), else 0."""
    known = np.nan_to_num(scores, nan=-np.inf)
    best = known == known.max()
    return float(best[truth] / best.sum())


def make_findings(outcomes: Iterable[SolverOutcome], seed: int = 0) -> list[Finding]:
    """Per task and form: a solver, the same with the images of other questions, and the best image rule."""
    cells: dict[tuple[str, str, Kind], list[SolverOutcome]] = {}
    for o in sorted(outcomes, key=lambda o: (*o.question.cell, o.question.id, o.name, o.credit)):
        cells.setdefault((*o.question.cell, o.kind), []).append(o)
    judges = {"solver": _judge_solver, "wrong image": _judge_wrong_images, "image rule": _judge_image_rules}
    order = sorted(cells, key=lambda cell: (cell[:2], [*judges].index(cell[2])))
    return [judges[cell[2]](cells[cell], seed) for cell in order]


def _measure(outcomes: Sequence[SolverOutcome], seed: int) -> tuple[Finding, Clusters, FloatArray, FloatArray]:
    first = outcomes[0]
    credit, chance = np.array([o.credit for o in outcomes]), np.array([o.question.chance for o in outcomes])
    shown = [o.shown for o in outcomes] if first.kind == "wrong image" else None
    rng = rng_for(seed, "solvers", first.kind, *first.question.cell)
    clusters = Clusters([o.question.scene for o in outcomes], rng, shown=shown)
    unread = sum(not o.read for o in outcomes)
    detail = f"{unread} not read (wording unknown), counted as guesses" if unread else ""
    line = Finding(first.kind, first.name, *first.question.cell, needed=_FEWEST, detail=detail)
    return measure_accuracy(line, clusters, credit, chance), clusters, credit, chance


def _judge_solver(outcomes: Sequence[SolverOutcome], seed: int) -> Finding:
    """Whether looking solves the questions; behind the figure stand those that the solver missed."""
    solver = _choose_solver(outcomes[0].question.task)
    goal = solver.goal if solver else np.nan
    line, clusters, credit, _ = _measure(outcomes, seed)
    line = replace(line, items=_list_ids(sorted((o for o in outcomes if o.credit < 1), key=lambda o: o.credit)))
    if np.isnan(goal):
        return replace(line, needed=0)
    return replace(line, limit=goal, p=clusters.test_below(credit, goal / 100)).judge(line.value >= goal)


def _judge_wrong_images(outcomes: Sequence[SolverOutcome], seed: int) -> Finding:
    """Whether the same solver falls to chance with the images of other questions; else options or texts tell."""
    line, clusters, credit, chance = _measure(outcomes, seed)
    p = min(1.0, 2 * min(clusters.test_above(credit, chance), clusters.test_above(1 - credit, 1 - chance)))
    right = sorted((o for o in outcomes if o.credit > o.question.chance), key=lambda o: -o.credit)
    detail = "; ".join(filter(None, ["each with images of up to 4 others", line.detail]))
    asked = len({o.question.id for o in outcomes})
    line = replace(line, n=asked, limit=line.chance + WRONG_IMAGE_POINTS, p=p, items=_list_ids(right), detail=detail)
    return line.judge(abs(line.value - line.chance) <= WRONG_IMAGE_POINTS)


def _judge_image_rules(outcomes: Sequence[SolverOutcome], seed: int) -> Finding:
    """The best of the rules that look at the image and understand nothing."""
    asked = list({o.question.id: o.question for o in outcomes}.values())
    place = {question.id: k for k, question in enumerate(asked)}
    credits: dict[str, FloatArray] = {}
    for o in (o for o in outcomes if o.name):
        credits.setdefault(o.name, np.full(len(asked), np.nan))[place[o.question.id]] = o.credit
    pixels = {o.question.id: o.pixels for o in outcomes if o.pixels is not None}
    if seen := [question for question in asked if question.id in pixels]:
        places = [place[question.id] for question in seen]
        for name, credit in credit_pixels(seen, [pixels[question.id] for question in seen], seed).items():
            credits.setdefault(name, np.full(len(asked), np.nan))[places] = credit
    line = Finding("image rule", "", *asked[0].cell, n=len(asked), needed=_FEWEST)
    return judge_best(line, credits, asked, [question.scene for question in asked], IMAGE_RULE_POINTS, seed)


def _list_ids(outcomes: Iterable[SolverOutcome]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(o.question.id for o in outcomes))[:MAX_ITEMS]
