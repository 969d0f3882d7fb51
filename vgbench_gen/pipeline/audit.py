"""Audit a dataset: every figure of `docs/validity.md#audit` beside its bar, the solvers, and the items themselves.

What stands in the text is judged on the audit pool, per task and form; the release's own cells stand beside it and say
"few" where they are too small to judge. What needs images or evidence is judged on the release.
"""

from __future__ import annotations

import difflib
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path
from typing import Any, get_args

from vgbench_gen.core.config import parse_config
from vgbench_gen.core.errors import ConfigError, DatasetError
from vgbench_gen.core.gates import Gates
from vgbench_gen.core.rng import hash_stably
from vgbench_gen.executors import Engine, run
from vgbench_gen.pipeline import audit_steps as steps
from vgbench_gen.pipeline.audit_pool import POOL, Cell, fill_pool
from vgbench_gen.pipeline.question import list_strategies
from vgbench_gen.pipeline.recipe import Limits, Recipe
from vgbench_gen.pipeline.subset import is_choice
from vgbench_gen.quality.family import is_tested, judge_family
from vgbench_gen.quality.findings import CONCLUSIVE, Finding, Verdict
from vgbench_gen.quality.questions import Question, group_by_cell, read_question
from vgbench_gen.quality.uniqueness import audit_partners, audit_scene_shares, find_near_duplicates
from vgbench_gen.quality.verify import Problem, verify_set
from vgbench_gen.store.dataset import Dataset, load
from vgbench_gen.store.provenance import MANIFEST, read_manifest
from vgbench_gen.tasks.base import tasks

Where = steps.Where
Progress = Callable[[str, int, int], None]
_SOLVER_WEIGHT = 10.0  # a job of a solver takes seconds, one of checks a moment
_DRAWN = 200  # rows whose pictures are drawn again and compared; all would take minutes
_CHUNK = 200  # rows per job: two row groups as they are written
_LIMITS = Limits(scene_share=0.03, fair_share=1.5)  # docs/validity.md#repetition


@dataclass(frozen=True, slots=True)
class AuditLine:
    """A finding, and the questions that it is about."""

    where: Where
    """The pool, the release by cell, the release as a whole, or the questions that solvers saw."""
    finding: Finding


@dataclass(slots=True)
class AuditReport:
    """What an audit found."""

    dataset: str = ""
    items: int = 0
    lines: list[AuditLine] = field(default_factory=list)
    tested: int = 0
    """The figures that luck can move, over which p values are corrected."""
    bias: dict[str, float] = field(default_factory=dict)
    """Id -> share of the right answer that text-only classifiers give which never saw the scene; of the dataset's
    questions."""
    cells: dict[str, dict[str, int]] = field(default_factory=dict)
    """"task/form" -> questions in the release and in the pool, and distinct truths behind the pool."""
    seconds: dict[str, float] = field(default_factory=dict)
    """CPU time per part."""
    notes: list[str] = field(default_factory=list)
    """What was left out, and why."""
    texts: dict[str, str] = field(default_factory=dict)
    """The question of every id that a line names."""
    inside: set[str] = field(default_factory=set)
    """Those of them that are in the dataset."""
    tallies: dict[str, dict[str, list[int]]] = field(default_factory=dict)
    """"letters", "yes_no", "ranks" -> "task/form" -> how often the right answer stands in each place."""

    @property
    def findings(self) -> list[Finding]:
        """All figures."""
        return [line.finding for line in self.lines]

    @property
    def fell(self) -> list[AuditLine]:
        """Lines whose bar fell."""
        return [line for line in self.lines if line.finding.fell]

    def summary(self) -> str:
        """How many figures had which verdict, and a line for each bar that fell."""
        counts = Counter(line.finding.verdict for line in self.lines)
        told = ", ".join(f"{counts[verdict]} {verdict}" for verdict in get_args(Verdict) if counts[verdict])
        head = f"{self.dataset}: {self.items} questions, {len(self.lines)} figures ({told})"
        return "\n".join([head, *(str(line.finding) for line in self.fell)])


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
        only: families of findings (`audit_steps.FAMILIES`); all when empty.
        against: other sets in which none of these questions may stand.
        pool: most questions of a task and form in the audit pool.
        solvers: whether the solvers that see are asked.
        solver_items: most questions per task and form that they are asked; 0 for as many as they ask by themselves.
        verified: the problems of rows that were verified by their evidence just now; None verifies them here.
        workers: processes, 0 for all cores; or an `Engine`. The figures do not depend on it.
        progress: called with (part, steps done, steps in all).

    Raises:
        ConfigError: no such family.
        DatasetError: the dataset cannot be read.
    """
    engine = workers if isinstance(workers, Engine) else Engine(workers=workers)
    work = _Audit(_check_families(only, solvers), engine, progress, verified)
    if isinstance(dataset, str | PathLike):
        work.open(Path(dataset), pool)
    else:
        work.report = AuditReport("questions", len(dataset))
        work.release = list(dataset)
        work.report.notes.append("Only the text is judged: questions alone have no evidence, poses or images.")
    work.plan_text(against)
    work.plan_rows(solver_items)
    work.run()
    work.judge_whole()
    work.judge_family()
    work.explain()
    return work.report


def _check_families(only: Sequence[str], solvers: bool) -> frozenset[str]:
    for name in only:
        if name not in steps.FAMILIES:
            near = difflib.get_close_matches(name, steps.FAMILIES, n=1)
            hint = f" Did you mean {near[0]}?" if near else ""
            raise ConfigError(f"no audit is called {name!r}.{hint} There are: {', '.join(steps.FAMILIES)}.")
    return frozenset(only or steps.FAMILIES) - (frozenset() if solvers else frozenset(steps.SOLVERS))


class _Audit:
    """One run: what is open, what is to do, what came."""

    def __init__(
        self, families: frozenset[str], engine: Engine, progress: Progress, verified: Sequence[Problem] | None
    ) -> None:
        self.families, self.engine, self.progress, self.verified = families, engine, progress, verified
        self.audits = {steps.FAMILIES[name] for name in families}
        self.report = AuditReport()
        self.release: list[Question] = []
        self.pool: list[Question] = []
        self.items: Dataset | None = None
        self.has_evidence = False
        self.recipe: Recipe | None = None
        self.chosen = False  # one by one from a larger set: partners may be absent
        self.scenes: list[tuple[str, str]] = []
        self._steps: list[steps.Step] = []
        self._results: list[Any] = []

    def open(self, path: Path, most: int) -> None:
        """Read the questions, the manifest where there is one, and fill the pool where there are facts."""
        with self._timed("read"):
            self.items = load(path)
            self.report = AuditReport(str(path), len(self.items), seconds=self.report.seconds)
            ways: dict[Cell, set[str]] = defaultdict(set)
            for item in self.items:
                self.release.append(read_question(item))
                self.has_evidence |= "truth" in item.evidence
                ways[item.task, item.question_type].add(item.strategy)
        folder = self._read_manifest(path)
        if not self.audits & steps.CELL_AUDITS.keys():
            return
        if folder is None or self.recipe is None or not (folder / "facts").is_dir():
            self.report.notes.append("No facts stand beside the questions: the rows are judged alone, without a pool.")
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
                f"Options by other strategies than {recipe.strategy} are judged without a pool: {names}."
            )

        def tell(done: int, total: int) -> None:
            self.progress("pool", done, total)

        found = fill_pool(folder, recipe, self.release, self.scenes, most, self.engine, tell, alone)
        self.report.seconds["pool"] = found.seconds
        self.pool = [question for members in found.questions.values() for question in members]

    def plan_text(self, against: Sequence[Sequence[Question]]) -> None:
        """A step per cell of pool and release, and one for what only shows between cells."""
        release, pool = group_by_cell(self.release), group_by_cell(self.pool)
        for cell in sorted({*release, *pool}):
            mine, more = release.get(cell, []), pool.get(cell, [])
            self.report.cells["/".join(cell)] = {
                "release": len(mine),
                "pool": len(more),
                "facts": len({question.group for question in more or mine}),
            }
            wanted = tuple(name for name in steps.CELL_AUDITS if name in self.audits)
            seed = self.recipe.seed if self.recipe else 0
            if more and wanted:
                self._plan("text", steps.judge_cell, steps.CellJob("pool", tuple(more), wanted, seed), len(more))
            # What stands in the pool already is judged there; testing once more on a part of it says nothing new.
            alone = (
                wanted if not more or len(mine) >= CONCLUSIVE else tuple(n for n in wanted if n not in steps.POOL_ONLY)
            )
            if mine and alone:
                trained = len(mine) if "blind" in alone else 0
                self._plan("text", steps.judge_cell, steps.CellJob("release", tuple(mine), alone, seed), trained)
        whole = tuple(name for name in steps.SET_AUDITS if name in self.audits)
        if whole:
            others = tuple(question for other in against for question in other)
            self._plan("set", steps.judge_set, steps.SetJob(tuple(self.release), others, whole))

    def plan_rows(self, solver_items: int) -> None:
        """Steps over the rows themselves: their checks, and the solvers."""
        if self.items is None:
            return
        path = str(self.report.dataset)
        if self.families & {steps.ITEMS, steps.NEAR}:
            if self.has_evidence:
                gates = self.recipe.gates if self.recipe else Gates()
                media = Path(path) / "media"
                ranked = sorted(self.release, key=lambda q: hash_stably("drawn", q.id)) if media.is_dir() else []
                drawn = frozenset(question.id for question in ranked[:_DRAWN])
                for start in range(0, len(self.items), _CHUNK):
                    stop = min(start + _CHUNK, len(self.items))
                    known = self.verified is not None
                    job = steps.ItemJob(path, start, stop, gates, str(media), drawn, known)
                    self._plan("items", steps.check_rows, job)
            else:
                self.report.notes.append("The rows have no evidence: their checks and poses are left out.")
        if self.families & set(steps.SOLVERS):
            try:
                self.items.image_bytes(self.items[0], 0)
            except (DatasetError, IndexError):
                self.report.notes.append("The rows hold no images, so no solver was asked.")
                return
            for job in steps.plan_solver_jobs(path, self.release, solver_items):
                self._plan("solvers", steps.run_solver, job, _SOLVER_WEIGHT)

    def run(self) -> None:
        """Do all steps; results keep the order of the plan, whoever did them."""
        results: dict[int, Any] = {}
        # Training takes longest, so it comes first; no worker should begin it when the others are done.
        order = sorted(range(len(self._steps)), key=lambda k: -self._steps[k].weight)
        planned = [self._steps[k] for k in order]
        for place, (result, seconds) in run(steps.run_step, planned, self.engine):
            results[order[place]] = result
            part = planned[place].part
            self.report.seconds[part] = self.report.seconds.get(part, 0.0) + seconds
            self.progress("audit", len(results), len(planned))
        self._results = [results[k] for k in range(len(planned))]
        for result in self._results:
            if isinstance(result, steps.StepFindings):
                self._add(result.where, result.findings)
                mine = {question.id for question in self.release} if result.bias else set()
                self.report.bias.update({name: score for name, score in result.bias.items() if name in mine})

    def judge_whole(self) -> None:
        """Judge what only the main process sees: rows against rows, scenes, partners, and the solvers' sums."""
        with self._timed("items"):
            self._judge_rows()
        if self.items is None:
            return
        if steps.SHARES in self.families:
            self._judge_shares()
        if steps.PARTNERS in self.families:
            required = self.recipe is not None and self.recipe.pairs > 0 and not self.chosen
            self._add("set", audit_partners(self.release, required))
        with self._timed("solvers"):
            answers = steps.SolverAnswers()
            for result in self._results:
                if isinstance(result, steps.SolverAnswers):
                    answers.outcomes += result.outcomes
            self._add("solvers", answers.findings(self.recipe.seed if self.recipe else 0))

    def judge_family(self) -> None:
        """Judge the figures that luck can move among one another, and say how many there are."""
        lines = self.report.lines
        self.report.tested = sum(is_tested(line.finding) for line in lines)
        judged = judge_family([line.finding for line in lines])
        self.report.lines = [replace(line, finding=found) for line, found in zip(lines, judged, strict=True)]

    def _judge_rows(self) -> None:
        """Judge rows by their evidence, and against one another."""
        checks = steps.ItemChecks.join(r for r in self._results if isinstance(r, steps.ItemChecks))
        if self.items is not None and self.has_evidence:
            if checks.unseen:
                self.report.notes.append(
                    f"{checks.unseen} rows hold no images and were not checked (`vgbench hydrate` rebuilds them)."
                )
            if steps.ITEMS in self.families:
                before = self.verified if self.verified is not None else verify_set(self.items, self.chosen)
                problems = [*checks.problems, *before]
                self._add("set", steps.summarise_problems(problems, checks.checked))
        if steps.NEAR in self.families and checks.sights:
            self._add("set", find_near_duplicates(checks.sights, self.recipe.gates if self.recipe else Gates()))

    def _judge_shares(self) -> None:
        """Judge whether a few scenes give most of the questions: by the recipe's limits, else by ours."""
        limits, limited = _LIMITS, self.recipe is not None and self.recipe.limits.scene_share < 1
        if self.recipe is not None and limited:
            limits = self.recipe.limits
        there = Counter(source for source, _ in self.scenes)
        self._add("set", audit_scene_shares(self.release, there, limits.scene_share, limits.fair_share, limited))

    def explain(self) -> None:
        """Keep the words of the questions that lines name, so that a page can show them."""
        named = {name for line in self.report.lines for name in line.finding.items}
        for question in [*self.pool, *self.release]:
            if question.id in named:
                self.report.texts[question.id] = steps.shorten_question(question)
        self.report.inside = named & {question.id for question in self.release}
        self.report.tallies = steps.count_answer_places(self.release)

    def _plan(self, part: str, function: Callable[[Any], Any], job: Any, weight: float = 0.0) -> None:
        self._steps.append(steps.Step(part, function, job, weight))

    def _add(self, where: Where, findings: Sequence[Finding]) -> None:
        wanted = [
            found for found in findings if steps.FAMILIES.get(found.audit) is None or found.audit in self.families
        ]
        self.report.lines += [AuditLine(where, finding) for finding in wanted]

    @contextmanager
    def _timed(self, part: str) -> Iterator[None]:
        started = time.process_time()
        yield
        self.report.seconds[part] = self.report.seconds.get(part, 0.0) + time.process_time() - started
