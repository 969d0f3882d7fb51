"""Audit a dataset: at most eight figures per task and question type, each beside its limit (`docs/validity.md#audit`).

The text is judged on the dataset's questions and on others of the same facts that could be asked as well (the audit's
pool); what needs images or evidence, or was dealt for the dataset, is judged on the dataset.
"""

from __future__ import annotations

import difflib
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any, get_args

from vgbench_gen.core.config import parse_config
from vgbench_gen.core.errors import ConfigError, DatasetError
from vgbench_gen.core.gates import Gates
from vgbench_gen.core.rng import hash_stably
from vgbench_gen.core.types import LETTERS
from vgbench_gen.executors import Engine, run
from vgbench_gen.pipeline.audit_pool import POOL, Cell, fill_pool
from vgbench_gen.pipeline.audit_rows import ItemChecks, ItemJob, check_rows
from vgbench_gen.pipeline.question import list_strategies
from vgbench_gen.pipeline.recipe import Limits, Recipe
from vgbench_gen.pipeline.subset import is_choice
from vgbench_gen.quality._learners import make_rows
from vgbench_gen.quality.balance import audit_answers, rank_of
from vgbench_gen.quality.duplicates import find_repeats
from vgbench_gen.quality.findings import MAX_ITEMS, Finding, Kind
from vgbench_gen.quality.questions import Question, group_by_cell, group_by_scene, read_question
from vgbench_gen.quality.rules import audit_rules
from vgbench_gen.quality.solvers.jobs import PER_CELL, RULES_PER_CELL, SolverJob, SolverOutcome
from vgbench_gen.quality.solvers.jobs import plan as plan_solvers
from vgbench_gen.quality.solvers.jobs import run as run_solvers
from vgbench_gen.quality.solvers.report import make_findings
from vgbench_gen.quality.text_only import audit_control, audit_text_only
from vgbench_gen.quality.uniqueness import audit_partners, audit_scene_shares, find_near_duplicates
from vgbench_gen.quality.verify import Problem, verify_set
from vgbench_gen.quality.wording import find_defects
from vgbench_gen.store.dataset import Dataset, load
from vgbench_gen.store.provenance import MANIFEST, read_manifest
from vgbench_gen.tasks.base import tasks

Progress = Callable[[str, int, int], None]
KINDS: tuple[Kind, ...] = get_args(Kind)
_SOLVERS: frozenset[Kind] = frozenset({"solver", "wrong image", "image rule"})
_DRAWN = 200  # rows whose pictures are drawn again and compared; all would take minutes
_CHUNK = 200  # rows per job: two row groups as they are written
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
    def fell(self) -> list[Finding]:
        """The figures whose limit is passed."""
        return [finding for finding in self.findings if finding.fell]


@dataclass(frozen=True, slots=True)
class TextJob:
    """Questions of one task and form, and what of their text is judged; crosses process borders."""

    questions: tuple[Question, ...]
    kinds: tuple[Kind, ...]
    seed: int


def judge_text(job: TextJob) -> tuple[list[Finding], Mapping[str, float]]:
    """(figures, bias score of each question by id)."""
    findings: list[Finding] = []
    scores: Mapping[str, float] = {}
    rows = make_rows(job.questions) if job.questions[0].form != "open-ended" else None
    if "text" in job.kinds:
        found = audit_text_only(job.questions, job.seed, rows)
        findings, scores = [found.finding], found.scores
    if "rule" in job.kinds and rows is not None:
        findings.append(audit_rules(job.questions, job.seed, rows))
    if "control" in job.kinds:
        findings.append(audit_control(job.questions, job.seed))
    return findings, scores


@dataclass(frozen=True, slots=True)
class _Step:
    """Something to do in a worker."""

    part: str
    """The part of the audit under which its time counts."""
    function: Callable[[Any], Any]
    argument: Any
    weight: float
    """How long it takes, roughly; the heaviest steps are done first."""


def _run_step(step: _Step) -> tuple[Any, float]:
    """(result, CPU seconds) of a step."""
    started = time.process_time()
    result = step.function(step.argument)
    return result, time.process_time() - started


def audit(
    dataset: str | PathLike[str] | Sequence[Question],
    *,
    only: Sequence[str] = (),
    against: Sequence[Sequence[Question]] = (),
    pool: int = POOL,
    solvers: bool = True,
    solver_items: int = 0,
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
        solvers: whether solvers and rules that look at images are asked.
        solver_items: most questions per task and form that they are asked; 0 for as many as they ask by themselves.
        verified: the problems of rows that were verified by their evidence just now; None verifies them here.
        workers: processes, 0 for all cores; or an `Engine`. The figures do not depend on it.
        progress: called with (part, steps done, steps in all).

    Raises:
        ConfigError: no such kind.
        DatasetError: the dataset cannot be read.
    """
    engine = workers if isinstance(workers, Engine) else Engine(workers=workers)
    work = _Audit(_check_kinds(only) - (frozenset() if solvers else _SOLVERS), engine, progress, verified)
    if isinstance(dataset, str | PathLike):
        work.open(Path(dataset), pool)
    else:
        work.report = AuditReport("questions", len(dataset))
        work.questions = list(dataset)
        work.report.notes.append("Only the text is judged: questions alone have no evidence, poses or images.")
    work.plan_text()
    work.plan_rows(solver_items)
    work.run()
    work.judge_whole([question for other in against for question in other])
    work.explain()
    return work.report


def _check_kinds(only: Sequence[str]) -> frozenset[Kind]:
    for name in only:
        if name not in KINDS:
            near = difflib.get_close_matches(name, KINDS, n=1)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            raise ConfigError(f"no figure of an audit is called {name!r}.{hint} There are: {', '.join(KINDS)}.")
    return frozenset(kind for kind in KINDS if not only or kind in only)


class _Audit:
    """One run: what is open, what is to do, what came."""

    def __init__(
        self, kinds: frozenset[Kind], engine: Engine, progress: Progress, verified: Sequence[Problem] | None
    ) -> None:
        self.kinds, self.engine, self.progress, self.verified = kinds, engine, progress, verified
        self.report = AuditReport()
        self.questions: list[Question] = []
        self.pool: list[Question] = []
        self.items: Dataset | None = None
        self.has_evidence = False
        self.recipe: Recipe | None = None
        self.chosen = False  # one by one from a larger set: partners may be absent
        self.scenes: list[tuple[str, str]] = []
        self._steps: list[_Step] = []
        self._results: list[Any] = []

    @property
    def seed(self) -> int:
        return self.recipe.seed if self.recipe else 0

    @property
    def gates(self) -> Gates:
        return self.recipe.gates if self.recipe else Gates()

    def open(self, path: Path, most: int) -> None:
        """Read the questions, the manifest where there is one, and fill the pool where there are facts."""
        with self._timed("read"):
            self.items = load(path)
            self.report = AuditReport(str(path), len(self.items), seconds=self.report.seconds)
            ways: dict[Cell, set[str]] = defaultdict(set)
            for item in self.items:
                self.questions.append(read_question(item))
                self.has_evidence |= "truth" in item.evidence
                ways[item.task, item.question_type].add(item.strategy)
        folder = self._read_manifest(path)
        if not self.kinds & {"text", "rule", "control"}:
            return
        if folder is None or self.recipe is None or not (folder / "facts").is_dir():
            self.report.notes.append("No facts stand beside the questions: their text is judged on them alone.")
            return
        self._fill_pool(folder, self.recipe, ways, most)

    def _read_manifest(self, path: Path) -> Path | None:
        """Read what the manifest says of a dataset, and return its folder; None where there is no manifest."""
        folder = next((f for f in (path, path.parent) if (f / MANIFEST).is_file()), None)
        if folder is not None:
            manifest = read_manifest(folder)
            self.chosen = is_choice(manifest)
            if "recipe" in manifest:  # other people's questions have none
                self.recipe = parse_config(manifest["recipe"], Recipe, str(folder / MANIFEST))
            self.scenes = [(s["dataset"], s["scene_id"]) for s in manifest.get("scenes", ()) if not s.get("error")]
        return folder

    def _fill_pool(self, folder: Path, recipe: Recipe, ways: Mapping[Cell, set[str]], most: int) -> None:
        """Ask facts of the build, but in cells whose options were chosen by other strategies than the recipe's."""
        alone = {
            cell
            for cell, found in ways.items()
            if cell[1] == "multi-choice" and not found.issubset(list_strategies(recipe.strategy, tasks[cell[0]]))
        }
        if alone:
            names = ", ".join(sorted(task for task, _ in alone))
            self.report.notes.append(
                f"Options by other strategies than {recipe.strategy}: judged on the dataset alone are {names}."
            )

        tell = partial(self.progress, "pool")
        found = fill_pool(folder, recipe, self.questions, self.scenes, most, self.engine, tell, alone)
        self.report.seconds["pool"] = found.seconds
        self.pool = [question for members in found.questions.values() for question in members]

    def plan_text(self) -> None:
        """A step per cell, and one that learns shuffled answers of the largest."""
        mine, judged = group_by_cell(self.questions), group_by_cell(self.pool or self.questions)
        for cell, members in judged.items():
            scenes = len(set(group_by_scene(members)))
            counts = {"questions": len(mine.get(cell, [])), "judged": len(members), "scenes": scenes}
            self.report.cells["/".join(cell)] = counts
            wanted = tuple(kind for kind in ("text", "rule") if kind in self.kinds)
            if wanted:
                self._plan("text", judge_text, TextJob(tuple(members), wanted, self.seed), 10.0 + len(members))
        options = [members for (_, form), members in judged.items() if form != "open-ended"]
        if "control" in self.kinds and options:
            largest = max(options, key=len)
            self._plan("text", judge_text, TextJob(tuple(largest), ("control",), self.seed), 10.0 + len(largest))

    def plan_rows(self, solver_items: int) -> None:
        """Steps over the rows themselves: their checks, and the solvers."""
        if self.items is None:
            return
        path = str(self.report.dataset)
        if self.kinds & {"evidence", "repeats"}:
            if self.has_evidence:
                media = Path(path) / "media"
                ranked = sorted(self.questions, key=lambda q: hash_stably("drawn", q.id)) if media.is_dir() else []
                drawn = frozenset(question.id for question in ranked[:_DRAWN])
                for start in range(0, len(self.items), _CHUNK):
                    stop = min(start + _CHUNK, len(self.items))
                    job = ItemJob(path, start, stop, self.gates, str(media), drawn, self.verified is not None)
                    self._plan("rows", check_rows, job)
            else:
                self.report.notes.append("The rows have no evidence: their checks and poses are left out.")
        if self.kinds & _SOLVERS:
            try:
                self.items.image_bytes(self.items[0], 0)
            except (DatasetError, IndexError):
                self.report.notes.append("The rows hold no images, so no solver was asked.")
                return
            per_cell = solver_items or PER_CELL, solver_items or RULES_PER_CELL
            for asked in plan_solvers(self.questions, path, *per_cell):
                kinds = {"image rule"} if asked.kind == "rules" else {"solver", "wrong image"}
                if self.kinds & kinds:
                    self._plan("solvers", run_solvers, asked, 5.0)

    def run(self) -> None:
        """Do all steps; results keep the order of the plan, whoever did them."""
        results: dict[int, Any] = {}
        # Training takes longest, so it comes first; no worker should begin it when the others are done.
        order = sorted(range(len(self._steps)), key=lambda k: -self._steps[k].weight)
        planned = [self._steps[k] for k in order]
        for place, (result, seconds) in run(_run_step, planned, self.engine):
            results[order[place]] = result
            part = planned[place].part
            self.report.seconds[part] = self.report.seconds.get(part, 0.0) + seconds
            self.progress("audit", len(results), len(planned))
        self._results = [results[k] for k in range(len(planned))]

    def judge_whole(self, others: Sequence[Question]) -> None:
        """Put together what the workers found, and judge what only the main process sees."""
        mine = {question.id for question in self.questions}
        outcomes: list[SolverOutcome] = []
        checks = ItemChecks()
        for step, result in zip(self._steps, self._results, strict=True):
            if isinstance(step.argument, TextJob):
                findings, scores = result
                self._add(*findings)
                self.report.bias |= {name: score for name, score in scores.items() if name in mine}
            elif isinstance(step.argument, SolverJob):
                outcomes += result
            else:
                checks = ItemChecks.join([checks, result])
        self._add(*make_findings(outcomes, self.seed))
        with self._timed("rows"):
            self._judge_cells(others, checks)
            if self.items is not None:
                self._judge_set(checks)

    def _judge_cells(self, others: Sequence[Question], checks: ItemChecks) -> None:
        """How right answers are spread, repeats and defects of texts of each cell."""
        for members in group_by_cell(self.questions).values() if "answers" in self.kinds else ():
            self._add(audit_answers(members))
        if "repeats" in self.kinds:
            self._count(
                "repeats", find_repeats(self.questions, others) | find_near_duplicates(checks.sights, self.gates)
            )
        if "wording" in self.kinds:
            self._count("wording", find_defects(self.questions))

    def _count(self, kind: Kind, found: Mapping[str, Sequence[str]]) -> None:
        """A figure per cell: how many of its questions are named, and by which check."""
        for cell, members in group_by_cell(self.questions).items():
            ids = {question.id for question in members}
            here = {name: [one for one in named if one in ids] for name, named in found.items()}
            behind = list(dict.fromkeys(one for named in here.values() for one in named))
            said = ", ".join(f"{name} {len(named)}" for name, named in here.items() if named)
            line = Finding(kind, said, *cell, n=len(members), value=float(len(behind)), limit=0.0, unit="count")
            self._add(replace(line, items=tuple(behind[:MAX_ITEMS])).judge(not behind))

    def _judge_set(self, checks: ItemChecks) -> None:
        """Answers by their evidence, scenes and partners."""
        assert self.items is not None
        if checks.unseen:
            self.report.notes.append(
                f"{checks.unseen} rows hold no images and were not checked (`vgbench hydrate` rebuilds them)."
            )
        if self.has_evidence and "evidence" in self.kinds:
            before = self.verified if self.verified is not None else verify_set(self.items, self.chosen)
            self._add(_count_problems([*checks.problems, *before], checks.checked))
        if "scene share" in self.kinds:
            limited = self.recipe is not None and self.recipe.limits.scene_share < 1
            limits = self.recipe.limits if self.recipe is not None and limited else _LIMITS
            there = Counter(source for source, _ in self.scenes)
            self._add(*audit_scene_shares(self.questions, there, limits.scene_share, limits.fair_share, limited))
        if "partners" in self.kinds:
            required = self.recipe is not None and self.recipe.pairs > 0 and not self.chosen
            self._add(audit_partners(self.questions, required))

    def explain(self) -> None:
        """Keep the words of the questions that figures name, so that a page can show them."""
        named = {name for finding in self.report.findings for name in finding.items}
        for question in [*self.pool, *self.questions]:
            if question.id in named:
                self.report.texts[question.id] = _shorten_question(question)
        self.report.inside = named & {question.id for question in self.questions}
        self.report.tallies = count_answer_places(self.questions)

    def _plan(self, part: str, function: Callable[[Any], Any], job: Any, weight: float = 0.0) -> None:
        self._steps.append(_Step(part, function, job, weight))

    def _add(self, *findings: Finding) -> None:
        self.report.findings += [found for found in findings if found.kind in self.kinds]

    @contextmanager
    def _timed(self, part: str) -> Iterator[None]:
        started = time.process_time()
        yield
        self.report.seconds[part] = self.report.seconds.get(part, 0.0) + time.process_time() - started


def _count_problems(problems: Sequence[Problem], checked: int) -> Finding:
    """Rows whose evidence does not hold, with the checks that fail and the first problem in words."""
    ids = list(dict.fromkeys(problem.item_id for problem in problems))
    checks = Counter(f"{problem.task} {problem.check}" for problem in problems)
    said = ", ".join(f"{name} {count}" for name, count in sorted(checks.items()))
    line = Finding("evidence", said, n=checked, value=float(len(ids)), limit=0.0, unit="count")
    return replace(line, detail=problems[0].detail if problems else "", items=tuple(ids[:MAX_ITEMS])).judge(not ids)


def _shorten_question(question: Question) -> str:
    """A question in one line, for a person who looks up what a figure is about."""
    text = " ".join(f"{question.question} {' / '.join(question.options)}".split())
    return text if len(text) <= _SHOWN_CHARACTERS else text[: _SHOWN_CHARACTERS - 1] + "…"


def count_answer_places(questions: Sequence[Question]) -> dict[str, dict[str, list[int]]]:
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
