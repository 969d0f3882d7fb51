"""The parts of an audit that run in workers: one cell's text, the set's text, a stretch of rows."""

from __future__ import annotations

import importlib
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np

from vgbench_gen.core.errors import DatasetError, VGBenchError
from vgbench_gen.core.gates import Gates
from vgbench_gen.core.types import LETTERS, FloatArray, Item
from vgbench_gen.quality.balance import rank_of
from vgbench_gen.quality.findings import MAX_ITEMS, Finding
from vgbench_gen.quality.questions import Question
from vgbench_gen.quality.uniqueness import ItemAppearance, describe_appearance
from vgbench_gen.quality.verify import Problem, verify_item
from vgbench_gen.store import pictures
from vgbench_gen.store.dataset import load
from vgbench_gen.store.media import MediaStore
from vgbench_gen.store.pictures import Picture
from vgbench_gen.tasks.row_evidence import RowEvidence, read_side

Where = Literal["pool", "release", "set", "solvers"]
# What is asked of the questions of one task and form, with a seed; and of the whole set, with other sets.
CELL_AUDITS = {
    "blind": "vgbench_gen.quality.text_only:audit_text_only",
    "rules": "vgbench_gen.quality.rules:audit_rules",
    "exchange": "vgbench_gen.quality.exchangeability:audit_exchangeability",
    "balance": "vgbench_gen.quality.balance:audit_balance",
}
SET_AUDITS = {
    "duplicates": "vgbench_gen.quality.duplicates:audit_duplicates",
    "wording": "vgbench_gen.quality.wording:audit_wording",
}
ITEMS, NEAR, SHARES, PARTNERS = "items", "near duplicates", "scene share", "partners"
SOLVERS = ("solver", "wrong image", "trivial")
# Family of a finding -> the audit that gives it.
FAMILIES = {
    "blind": "blind",
    "control": "blind",
    "rule": "rules",
    "exchange": "exchange",
    "letters": "balance",
    "yes_no": "balance",
    "constant": "balance",
    "duplicates": "duplicates",
    "wording": "wording",
    **{name: name for name in (ITEMS, NEAR, SHARES, PARTNERS, *SOLVERS)},
}
# Not repeated on the release where its questions stand in the pool.
POOL_ONLY = ("blind", "exchange")
# Permutation tests take questions for independent; others count by scene, where one truth lies in one scene.
_PER_TRUTH = ("exchange",)
# Letters and twins are dealt, and open-ended answers spread over their range, for the release; the pool's are not.
_RELEASE_ONLY = ("letters", "yes_no", "constant")
_LEVELS_APART = 4.0  # mean difference of grey from which two pictures are not the same
_SHOWN_CHARACTERS = 400  # of a question on the page


@dataclass(frozen=True, slots=True)
class Step:
    """Something to do in a worker."""

    part: str
    """The part of the audit under which its time counts."""
    function: Callable[[Any], Any]
    argument: Any
    weight: float
    """How long it takes, roughly; the heaviest steps are done first."""


def run_step(step: Step) -> tuple[Any, float]:
    """(result, CPU seconds) of a step."""
    started = time.process_time()
    result = step.function(step.argument)
    return result, time.process_time() - started


@dataclass(frozen=True, slots=True)
class CellJob:
    """Questions of one task and form, and what to audit on them."""

    where: Where
    """Whether they are of the pool or of the release."""
    questions: tuple[Question, ...]
    families: tuple[str, ...]
    """Names of `CELL_AUDITS`."""
    seed: int


@dataclass(frozen=True, slots=True)
class SetJob:
    """All questions of a dataset, and what to audit on them."""

    questions: tuple[Question, ...]
    others: tuple[Question, ...]
    """Questions of other sets, of which none may stand here."""
    families: tuple[str, ...]
    """Names of `SET_AUDITS`."""


@dataclass(frozen=True, slots=True)
class StepFindings:
    """What a step found."""

    where: Where
    """The questions that it is about."""
    findings: list[Finding]
    bias: Mapping[str, float] = field(default_factory=dict)
    """The bias scores of its questions, by id."""


def judge_cell(job: CellJob) -> StepFindings:
    """Run the text audits of one cell."""
    findings: list[Finding] = []
    bias: dict[str, float] = {}
    for name in job.families:
        questions = keep_one_per_truth(job.questions) if name in _PER_TRUTH else job.questions
        found = _find_function(CELL_AUDITS[name])(questions, job.seed)
        if name == "blind":
            bias.update(found.scores)
            found = found.findings
        findings += [line for line in found if job.where == "release" or line.audit not in _RELEASE_ONLY]
    return StepFindings(job.where, findings, bias)


def keep_one_per_truth(questions: Iterable[Question]) -> tuple[Question, ...]:
    """The first question about each truth, with its twin; another side or other options of it say nothing new."""
    first: dict[str, Question] = {}
    kept = []
    for question in questions:
        known = first.setdefault(question.group, question)
        if known is question or (known.twin and known.twin == question.twin):
            kept.append(question)
    return tuple(kept)


def judge_set(job: SetJob) -> StepFindings:
    """Run the audits that only show between cells."""
    findings: list[Finding] = []
    for name in job.families:
        findings += _find_function(SET_AUDITS[name])(job.questions, job.others)
    return StepFindings("set", findings)


def _find_function(place: str) -> Callable[..., Any]:
    # Looked up when used: scikit-learn takes a second to import, and not every audit needs it.
    module, _, name = place.partition(":")
    found: Callable[..., Any] = getattr(importlib.import_module(module), name)
    return found


def shorten_question(question: Question) -> str:
    """A question in one line, for a person who looks up what a figure is about."""
    text = " ".join(f"{question.question} {' / '.join(question.options)}".split())
    return text if len(text) <= _SHOWN_CHARACTERS else text[: _SHOWN_CHARACTERS - 1] + "…"


def count_answer_places(questions: Iterable[Question]) -> dict[str, dict[str, list[int]]]:
    """How often the right answer stands in each place: letters, yes and no, and rank by size of four single numbers."""
    found: dict[str, dict[str, list[int]]] = {"letters": {}, "yes_no": {}, "ranks": {}}
    for question in questions:
        kind = {"multi-choice": "letters", "judgment": "yes_no"}.get(question.form, "")
        if not kind or not 0 <= question.truth < len(question.options):
            continue
        cell = found[kind].setdefault("/".join(question.cell), [])
        cell += [0] * (len(question.options) - len(cell))
        cell[question.truth] += 1
        rank = rank_of(question.options, question.truth) if kind == "letters" else None
        if rank is not None and len(question.options) == len(LETTERS):
            found["ranks"].setdefault(question.task, [0] * len(LETTERS))[rank] += 1
    return found


@dataclass(frozen=True, slots=True)
class ItemJob:
    """Rows of a dataset to check by their evidence; crosses process borders."""

    path: str
    start: int
    stop: int
    """Place after the last row."""
    gates: Gates
    media: str
    """The folder of base images, "" where there is none."""
    drawn: frozenset[str]
    """Ids of rows whose pictures are drawn again from it."""
    verified: bool = False
    """Whether the rows were verified by their evidence already, so that they are only compared here."""


@dataclass(slots=True)
class ItemChecks:
    """What checking rows gave."""

    problems: list[Problem] = field(default_factory=list)
    sights: list[ItemAppearance] = field(default_factory=list)
    """What makes a row like another one."""
    checked: Counter[str] = field(default_factory=Counter)
    """Rows that were looked at, per task."""
    unseen: int = 0
    """Rows whose images are not embedded, which were not looked at."""

    @classmethod
    def join(cls, parts: Iterable[ItemChecks]) -> ItemChecks:
        """Several as one, in their order."""
        whole = cls()
        for part in parts:
            whole.problems += part.problems
            whole.sights += part.sights
            whole.checked += part.checked
            whole.unseen += part.unseen
        return whole


def check_rows(job: ItemJob) -> ItemChecks:
    """Check a stretch of rows.

    Raises:
        DatasetError: the dataset cannot be read.
    """
    items, found = load(job.path), ItemChecks()
    for row in range(job.start, job.stop):
        item = items[row]
        try:
            images = [items.image_bytes(row, k) for k in range(len(item.images))]
        except DatasetError:
            found.unseen += 1
            continue
        found.checked[item.task] += 1
        if not job.verified:
            found.problems += verify_item(item, images, job.gates)
        if item.id in job.drawn:
            found.problems += _find_pixel_problems(item, images, MediaStore(Path(job.media)))
        try:
            if not read_side(item):  # its other half speaks for both
                found.sights.append(describe_appearance(item, images))
        except (VGBenchError, LookupError, TypeError, ValueError, AttributeError):
            continue  # a row that cannot be read back is a problem that `verify_item` named
    return found


def _find_pixel_problems(item: Item, images: Sequence[bytes], media: MediaStore) -> list[Problem]:
    """Pictures that do not show what the evidence says they show."""
    found = []
    row = RowEvidence.found(item)
    if row is None:
        return []  # what `verify_item` named
    for k, (record, data) in enumerate(zip(row.pictures, images, strict=False)):
        try:
            drawn = pictures.render(Picture.from_json(record), media)
            if drawn == data:
                continue
            # Another JPEG library gives other bytes, but not another picture.
            a, b = (_decode_small_grey(encoded) for encoded in (drawn, data))
            if a.shape == b.shape and float(np.abs(a - b).mean()) <= _LEVELS_APART:
                continue
            told = f"image {k + 1} is not the picture of {record['base']} that the evidence describes"
        except (VGBenchError, LookupError, TypeError, ValueError) as error:
            told = f"image {k + 1} cannot be drawn again: {error}"
        found.append(Problem(item.id, item.task, "pixels", told))
    return found


def _decode_small_grey(encoded: bytes) -> FloatArray:
    import cv2

    grey = cv2.imdecode(np.frombuffer(encoded, np.uint8), cv2.IMREAD_REDUCED_GRAYSCALE_4)
    return np.zeros((0, 0)) if grey is None else grey.astype(np.float64)


def summarise_problems(problems: Iterable[Problem], checked: Counter[str]) -> list[Finding]:
    """A line per task and check that fails, or one for a task whose rows all hold."""
    failing: dict[tuple[str, str], dict[str, str]] = defaultdict(dict)
    for problem in problems:
        failing[problem.task, problem.check].setdefault(problem.item_id, problem.detail)
    lines = []
    for task in sorted({*checked, *(task for task, _ in failing)}):
        n = checked[task]
        here = {check: ids for (name, check), ids in sorted(failing.items()) if name == task}
        if not here:
            lines.append(Finding(ITEMS, "all checks", task, n=n, value=0.0, unit="count", bar="= 0").judge(True, 1))
        for check, ids in here.items():
            first = next(iter(ids.values()))
            line = Finding(ITEMS, check, task, n=n, value=float(len(ids)), unit="count", bar="= 0",
                           detail=first, items=tuple(ids)[:MAX_ITEMS])  # fmt: skip
            lines.append(line.judge(False, 0))
    return lines


def plan_solver_jobs(path: str, questions: Sequence[Question], most: int) -> list[Any]:
    """Jobs for `run_solver`. most: questions per task and form; 0 for as many as the solvers take by themselves."""
    from vgbench_gen.quality.solvers.jobs import PER_CELL, RULES_PER_CELL, plan

    return list(plan(questions, path, most or PER_CELL, most or RULES_PER_CELL))


def run_solver(job: Any) -> SolverAnswers:
    """Answer the questions of a job."""
    from vgbench_gen.quality.solvers.jobs import run

    return SolverAnswers(run(job))


@dataclass(slots=True)
class SolverAnswers:
    """What solvers answered in one job, or in several joined."""

    outcomes: list[Any] = field(default_factory=list)
    """The answers, each a `quality.solvers.jobs.SolverOutcome`."""

    def findings(self, seed: int) -> list[Finding]:
        """Figures per task, form and solver."""
        from vgbench_gen.quality.solvers.report import make_findings

        return make_findings(self.outcomes, seed)
