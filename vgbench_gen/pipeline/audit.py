"""Audit a dataset: at most eight figures per task and question type, each beside its limit (`docs/validity.md#audit`).

The text is judged on the dataset's questions and on others of the same facts that could be asked as well (the audit's
pool); what needs images or evidence, or was dealt for the dataset, is judged on the dataset.
"""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from os import PathLike
from pathlib import Path
from typing import Any, get_args

import numpy as np

from vgbench_gen.core.config import parse_config
from vgbench_gen.core.errors import DatasetError, VGBenchError
from vgbench_gen.core.gates import Gates
from vgbench_gen.core.registry import make_unknown_error
from vgbench_gen.core.rng import hash_stably
from vgbench_gen.core.types import LETTERS, Item
from vgbench_gen.executors import Engine, run
from vgbench_gen.pipeline.audit_pool import POOL, Cell, fill_pool
from vgbench_gen.pipeline.question import list_strategies
from vgbench_gen.pipeline.recipe import Limits, Recipe
from vgbench_gen.pipeline.subset import is_choice
from vgbench_gen.quality._learners import make_rows
from vgbench_gen.quality.balance import audit_answers, rank_of
from vgbench_gen.quality.duplicates import find_repeats
from vgbench_gen.quality.findings import MAX_ITEMS, Finding, Kind
from vgbench_gen.quality.questions import Question, group_by_cell, group_by_scene, read_question
from vgbench_gen.quality.rules import audit_rules
from vgbench_gen.quality.solvers import make_findings, plan_solvers, run_solvers
from vgbench_gen.quality.text_only import audit_control, audit_text_only
from vgbench_gen.quality.uniqueness import (
    ItemAppearance,
    audit_scene_shares,
    describe_appearance,
    find_near_duplicates,
)
from vgbench_gen.quality.verify import Problem, RowsJob, plan_rows, verify_item, verify_set
from vgbench_gen.quality.wording import find_defects
from vgbench_gen.store import pictures
from vgbench_gen.store.dataset import Dataset, load
from vgbench_gen.store.media import MediaStore
from vgbench_gen.store.pictures import Picture
from vgbench_gen.store.provenance import MANIFEST, read_manifest
from vgbench_gen.tasks.base import tasks
from vgbench_gen.tasks.row_evidence import UNREADABLE, RowEvidence, read_side

Progress = Callable[[str, int, int], None]
KINDS: tuple[Kind, ...] = get_args(Kind)
_SOLVERS: frozenset[Kind] = frozenset({"solver", "wrong image", "image rule"})
_DRAWN = 200  # rows whose pictures are drawn again and compared; all would take minutes
_LEVELS_APART = 4.0  # mean difference of grey from which two pictures are not the same
_LIMITS = Limits(scene_share=0.03, fair_share=1.5)  # docs/validity.md#repetition
_SHOWN_CHARACTERS = 400  # of a question on the page


@dataclass(slots=True)
class AuditReport:
    """What an audit found."""

    dataset: str = ""
    items: int = 0
    findings: list[Finding] = field(default_factory=list)
    """All figures."""
    cells: dict[str, dict[str, int]] = field(default_factory=dict)
    """"task/form" -> "questions" of the dataset, "judged": those on which its text is judged, "scenes" of these."""
    bias: dict[str, float] = field(default_factory=dict)
    """Id -> share of the right answer that the text-only learner gives which never saw the scene; of the dataset's
    questions."""
    seconds: dict[str, float] = field(default_factory=dict)
    """CPU time per part."""
    notes: list[str] = field(default_factory=list)
    """What was left out, and why."""
    texts: dict[str, str] = field(default_factory=dict)
    """The question of every id that a figure names."""
    inside: set[str] = field(default_factory=set)
    """Those of them that are in the dataset."""
    tallies: dict[str, dict[str, list[int]]] = field(default_factory=dict)
    """"letters", "yes_no", "ranks" -> "task/form" -> how often the right answer stands in each place."""

    @property
    def failed(self) -> list[Finding]:
        """The figures whose limit is passed."""
        return [finding for finding in self.findings if finding.failed]


@dataclass(frozen=True, slots=True)
class TextJob:
    """Questions of one task and form, and what of their text is judged; crosses process borders."""

    questions: tuple[Question, ...]
    kinds: tuple[Kind, ...]
    seed: int


def judge_text(job: TextJob) -> tuple[list[Finding], Mapping[str, float]]:
    """(figures, bias score of each question by id)."""
    findings, scores = list[Finding](), dict[str, float]()
    rows = make_rows(job.questions) if job.questions[0].form != "open-ended" else None
    if "text" in job.kinds:
        found, scores = audit_text_only(job.questions, job.seed, rows)
        findings.append(found)
    if "rule" in job.kinds and rows is not None:
        findings.append(audit_rules(job.questions, job.seed, rows))
    if "control" in job.kinds:
        findings.append(audit_control(job.questions, job.seed))
    return findings, scores


def audit(
    dataset: str | PathLike[str] | Sequence[Question],
    *,
    only: Sequence[str] = (),
    against: Sequence[Sequence[Question]] = (),
    pool: int = POOL,
    verified: Sequence[Problem] | None = None,
    workers: int | Engine = 1,
    progress: Progress = lambda part, done, total: None,
) -> AuditReport:
    """Audit a dataset; writes nothing.

    Args:
        dataset: a build folder or its parquet files; or questions, of which only the text is judged.
        only: kinds of figures (`KINDS`); all when empty.
        against: other sets in which none of these questions may stand.
        pool: most questions of a task and form on which the text is judged.
        verified: the problems of rows that were verified by their evidence just now; None verifies them here.
        workers: processes, 0 for all cores; or an `Engine`. The figures do not depend on it.
        progress: called with (part, steps done, steps in all).

    Raises:
        UnknownNameError: no such kind.
        DatasetError: the dataset cannot be read.
    """
    for name in only:
        if name not in KINDS:
            raise make_unknown_error("figure of an audit", name, KINDS)
    engine = workers if isinstance(workers, Engine) else Engine(workers=workers)
    work = _Audit(frozenset(only or KINDS), engine, progress, verified)
    if isinstance(dataset, str | PathLike):
        work.open(Path(dataset), pool)
    else:
        work.report, work.questions = AuditReport("questions", len(dataset)), list(dataset)
        work.report.notes.append("Only the text is judged: questions alone have no evidence, poses or images.")
    work.plan_text()
    if work.items is not None:
        work.plan_rows(work.items)
        work.plan_solvers(work.items)
    work.judge(work.run(), [*chain(*against)])
    return work.report


class _Audit:
    """One run: what is open, what is to do, what came."""

    def __init__(
        self, kinds: frozenset[str], engine: Engine, progress: Progress, verified: Sequence[Problem] | None
    ) -> None:
        self.kinds, self.engine, self.progress, self.verified = kinds, engine, progress, verified
        self.report = AuditReport()
        self.questions: list[Question] = []
        self.pool: list[Question] = []
        self.items: Dataset | None = None
        self.has_evidence = False
        self.recipe: Recipe | None = None
        self.seed, self.gates = 0, Gates()
        self.chosen = False  # one by one from a larger set: partners may be absent
        self.scenes: list[tuple[str, str]] = []
        self._steps: list[tuple[float, str, Callable[[], Any]]] = []  # how long it takes, roughly; part; work

    def open(self, path: Path, most: int) -> None:
        """Read the questions, the manifest where there is one, and fill the pool where there are facts."""
        ways: dict[Cell, set[str]] = defaultdict(set)
        with self._timed("read"):
            self.items = load(path)
            self.report = AuditReport(str(path), len(self.items))
            for item in self.items:
                self.questions.append(read_question(item))
                self.has_evidence |= "truth" in item.evidence
                ways[item.task, item.question_type].add(item.strategy)
        folder = next((f for f in (path, path.parent) if (f / MANIFEST).is_file()), path)
        if (folder / MANIFEST).is_file():
            manifest = read_manifest(folder)
            self.chosen = is_choice(manifest)
            self.scenes = [(s["dataset"], s["scene_id"]) for s in manifest.get("scenes", ()) if not s.get("error")]
            if "recipe" in manifest:  # other people's questions have none
                self.recipe = parse_config(manifest["recipe"], Recipe, str(folder / MANIFEST))
                self.seed, self.gates = self.recipe.seed, self.recipe.gates
        if not self.kinds & {"text", "rule", "control"}:
            return
        if self.recipe is None or not (folder / "facts").is_dir():
            self.report.notes.append("No facts stand beside the questions: their text is judged on them alone.")
            return
        strategy = self.recipe.strategy
        alone = {  # cells whose options were chosen by other strategies than the recipe's
            cell
            for cell, found in ways.items()
            if cell[1] == "multi-choice" and not found.issubset(list_strategies(strategy, tasks[cell[0]]))
        }
        if alone:
            names = ", ".join(sorted(task for task, _ in alone))
            self.report.notes.append(
                f"Options by other strategies than {strategy}: judged on the dataset alone are {names}."
            )
        tell = partial(self.progress, "pool")
        cells, self.report.seconds["pool"] = fill_pool(
            folder, self.recipe, self.questions, self.scenes, most, self.engine, tell, alone
        )
        self.pool = [*chain(*cells.values())]

    def plan_text(self) -> None:
        """A step per cell, and one that learns shuffled answers of the largest."""
        mine, judged = group_by_cell(self.questions), group_by_cell(self.pool or self.questions)
        options = [members for (_, form), members in judged.items() if form != "open-ended"]
        jobs: list[tuple[list[Question], tuple[Kind, ...]]] = []
        for cell, members in judged.items():
            scenes = int(group_by_scene(members).max()) + 1
            counts = {"questions": len(mine.get(cell, [])), "judged": len(members), "scenes": scenes}
            self.report.cells["/".join(cell)] = counts
            jobs.append((members, ("text", "rule")))
        jobs += [(max(options, key=len), ("control",))] if options else []
        for members, kinds in jobs:
            if wanted := tuple(kind for kind in kinds if kind in self.kinds):
                job = TextJob(tuple(members), wanted, self.seed)
                self._steps.append((10.0 + len(members), "text", partial(judge_text, job)))

    def plan_rows(self, items: Dataset) -> None:
        """Steps over the rows themselves: their evidence, their pictures, and what makes two of them alike."""
        if not self.kinds & {"evidence", "repeats"}:
            return
        if not self.has_evidence:
            self.report.notes.append("The rows have no evidence: their checks and poses are left out.")
            return
        media = Path(self.report.dataset) / "media"
        ranked = sorted(self.questions, key=lambda q: hash_stably("drawn", q.id)) if media.is_dir() else []
        drawn = frozenset(question.id for question in ranked[:_DRAWN])
        for job in plan_rows(self.report.dataset, items.group_starts, self.gates):
            self._steps.append((0.0, "rows", partial(_check_rows, job, media, drawn, self.verified is None)))

    def plan_solvers(self, items: Dataset) -> None:
        """Steps of solvers and of rules that look at images."""
        if not self.kinds & _SOLVERS:
            return
        try:
            items.image_bytes(items[0], 0)
        except (DatasetError, IndexError):
            self.report.notes.append("The rows hold no images, so no solver was asked.")
            return
        for asked in plan_solvers(self.questions, self.report.dataset):
            if self.kinds & ({"image rule"} if asked.kind == "rules" else {"solver", "wrong image"}):
                self._steps.append((5.0, "solvers", partial(run_solvers, asked)))

    def run(self) -> dict[str, list[Any]]:
        """The results of all steps by part, in the order of the plan, whoever did them."""
        results: dict[int, Any] = {}
        # Training takes longest, so it comes first; no worker should begin it when the others are done.
        order = sorted(range(len(self._steps)), key=lambda k: -self._steps[k][0])
        for place, (result, seconds) in run(_do_timed, [self._steps[k][2] for k in order], self.engine):
            results[order[place]] = result
            part = self._steps[order[place]][1]
            self.report.seconds[part] = self.report.seconds.get(part, 0.0) + seconds
            self.progress("audit", len(results), len(order))
        found: dict[str, list[Any]] = {"text": [], "rows": [], "solvers": []}
        for k, (_, part, _) in enumerate(self._steps):
            found[part].append(results[k])
        return found

    def judge(self, found: Mapping[str, Sequence[Any]], others: Sequence[Question]) -> None:
        """Put together what the workers found, judge what only the main process sees, and keep what a page shows."""
        mine = {question.id for question in self.questions}
        for findings, scores in found["text"]:
            self._add(*findings)
            self.report.bias |= {name: score for name, score in scores.items() if name in mine}
        self._add(*make_findings(chain(*found["solvers"]), self.seed))
        with self._timed("rows"):
            self._judge_rows(found["rows"], others)
        named = {name for finding in self.report.findings for name in finding.items}
        told = [question for question in [*self.pool, *self.questions] if question.id in named]
        self.report.texts = {question.id: _shorten_question(question) for question in told}
        self.report.inside = named & mine
        self.report.tallies = _count_answer_places(self.questions)

    def _judge_rows(
        self, checks: Sequence[tuple[int, list[Problem], list[ItemAppearance]]], others: Sequence[Question]
    ) -> None:
        """How right answers are spread, repeats and defects of texts of each cell; evidence, scenes and partners."""
        unseen, problems = sum(one for one, _, _ in checks), [problem for _, found, _ in checks for problem in found]
        if "answers" in self.kinds:
            self._add(*map(audit_answers, group_by_cell(self.questions).values()))
        if "repeats" in self.kinds:
            near = find_near_duplicates(chain(*(sights for _, _, sights in checks)), self.gates)
            self._count("repeats", find_repeats(self.questions, others) | near)
        if "wording" in self.kinds:
            self._count("wording", find_defects(self.questions))
        if self.items is None:
            return
        if unseen:
            self.report.notes.append(
                f"{unseen} rows hold no images and were not checked (`vgbench pull --scenes` rebuilds them)."
            )
        if self.has_evidence and "evidence" in self.kinds:
            problems += self.verified if self.verified is not None else verify_set(self.items, self.chosen)
            self._add(_count_problems(problems, len(self.items) - unseen))
        if "scene share" in self.kinds:
            limited = self.recipe is not None and self.recipe.limits.scene_share < 1
            limits = self.recipe.limits if self.recipe is not None and limited else _LIMITS
            there = Counter(source for source, _ in self.scenes)
            self._add(*audit_scene_shares(self.questions, there, limits.scene_items, limited))

    def _count(self, kind: Kind, found: Mapping[str, Sequence[str]]) -> None:
        """A figure per cell: how many of its questions are named, and by which check."""
        for cell, members in group_by_cell(self.questions).items():
            ids = {question.id for question in members}
            here = {name: [one for one in named if one in ids] for name, named in found.items()}
            said = ", ".join(f"{name} {len(named)}" for name, named in here.items() if named)
            self._add(_count_wrong(Finding(kind, said, *cell, n=len(members)), chain(*here.values())))

    def _add(self, *findings: Finding) -> None:
        self.report.findings += [found for found in findings if found.kind in self.kinds]

    @contextmanager
    def _timed(self, part: str) -> Iterator[None]:
        started = time.process_time()
        yield
        self.report.seconds[part] = self.report.seconds.get(part, 0.0) + time.process_time() - started


def _do_timed(work: Callable[[], Any]) -> tuple[Any, float]:
    """(result, CPU seconds) of a step."""
    started = time.process_time()
    return work(), time.process_time() - started


def _check_rows(
    job: RowsJob, media: Path, drawn: frozenset[str], verify: bool
) -> tuple[int, list[Problem], list[ItemAppearance]]:
    """(rows without images, which are not looked at; problems; what makes a row like another) of a stretch of rows.

    Args:
        job: which rows.
        media: folder of base images.
        drawn: ids of rows whose pictures are drawn again from it.
        verify: whether the rows were not verified by their evidence yet.

    Raises:
        DatasetError: the dataset cannot be read.
    """
    items, unseen = load(job.path), 0
    problems: list[Problem] = []
    sights: list[ItemAppearance] = []
    for row in range(job.start, job.stop):
        item = items[row]
        try:
            images = [items.image_bytes(row, k) for k in range(len(item.images))]
        except DatasetError:
            unseen += 1
            continue
        if verify:
            problems += verify_item(item, images, job.gates)
        if item.id in drawn:
            problems += _find_pixel_problems(item, images, MediaStore(media))
        with suppress(*UNREADABLE):  # a row that cannot be read back is a problem that `verify_item` named
            if not read_side(item):  # its other half speaks for both
                sights.append(describe_appearance(item, images))
    return unseen, problems, sights


def _find_pixel_problems(item: Item, images: Sequence[bytes], media: MediaStore) -> list[Problem]:
    """Pictures that do not show what the evidence says they show."""
    found = []
    row = RowEvidence.found(item)
    if row is None:
        return []  # what `verify_item` named
    for k, (record, data) in enumerate(zip(row.pictures, images, strict=False)):
        try:
            drawn = pictures.render(Picture.from_json(record), media)
            if drawn == data or _look_equal(drawn, data):
                continue
            said = f"image {k + 1} is not the picture of {record['base']} that the evidence describes"
        except (VGBenchError, LookupError, TypeError, ValueError) as error:
            said = f"image {k + 1} cannot be drawn again: {error}"
        found.append(Problem(item.id, item.task, "pixels", said))
    return found


def _look_equal(a: bytes, b: bytes) -> bool:
    """Whether two encoded pictures differ by no more than another JPEG library would make them."""
    import cv2

    first, second = (cv2.imdecode(np.frombuffer(x, np.uint8), cv2.IMREAD_REDUCED_GRAYSCALE_4) for x in (a, b))
    if first is None or second is None or first.shape != second.shape:
        return False
    return float(cv2.absdiff(first, second).mean()) <= _LEVELS_APART


def _count_wrong(line: Finding, ids: Iterable[str]) -> Finding:
    """The figure as a number of questions, of which none may be named."""
    behind = tuple(dict.fromkeys(ids))
    line = replace(line, value=float(len(behind)), limit=0.0, unit="count", items=behind[:MAX_ITEMS])
    return line.judge(not behind)


def _count_problems(problems: Sequence[Problem], checked: int) -> Finding:
    """Rows whose evidence does not hold, with the checks that fail and the first problem in words."""
    checks = Counter(f"{problem.task} {problem.check}" for problem in problems)
    said = ", ".join(f"{name} {count}" for name, count in sorted(checks.items()))
    line = Finding("evidence", said, n=checked, detail=problems[0].detail if problems else "")
    return _count_wrong(line, (problem.item_id for problem in problems))


def _shorten_question(question: Question) -> str:
    """A question in one line, for a person who looks up what a figure is about."""
    text = " ".join(f"{question.question} {' / '.join(question.options)}".split())
    return text if len(text) <= _SHOWN_CHARACTERS else text[: _SHOWN_CHARACTERS - 1] + "…"


def _count_answer_places(questions: Sequence[Question]) -> dict[str, dict[str, list[int]]]:
    """How often the right answer stands in each place: letters, yes and no, and rank by size of four single numbers."""
    found: dict[str, dict[str, list[int]]] = {"letters": {}, "yes_no": {}, "ranks": {}}
    for question in questions:
        count = len(question.options)
        if question.form == "open-ended" or not 0 <= question.truth < count:
            continue
        kind = "letters" if question.form == "multi-choice" else "yes_no"
        cell = found[kind].setdefault("/".join(question.cell), [])
        cell += [0] * (count - len(cell))
        cell[question.truth] += 1
        rank = rank_of(question.options, question.truth) if kind == "letters" and count == len(LETTERS) else None
        if rank is not None:
            found["ranks"].setdefault(question.task, [0] * len(LETTERS))[rank] += 1
    return found
