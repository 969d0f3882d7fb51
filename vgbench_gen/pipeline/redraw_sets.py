"""Which questions get other options by which strategy, and which options: none stands under two truths."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from vgbench_gen.core.rng import hash_stably
from vgbench_gen.core.types import Candidate
from vgbench_gen.distractors.base import Margins
from vgbench_gen.executors import Engine, run
from vgbench_gen.pipeline.facts import FEW, cut_by_scene, read_plans
from vgbench_gen.pipeline.measure import list_tasks, shard_path
from vgbench_gen.pipeline.plan import deal_letters
from vgbench_gen.pipeline.question import digest_values
from vgbench_gen.pipeline.question_plan import QuestionPlan
from vgbench_gen.pipeline.recipe import Recipe
from vgbench_gen.pipeline.redraw_rows import CHOICE, Redraw, RedrawJob, redraw_options
from vgbench_gen.store.schema import Row
from vgbench_gen.tasks.base import tasks
from vgbench_gen.tasks.row_evidence import RowEvidence

REPLIES = "replies.sqlite"  # in the folder of the new dataset: what models answered
Progress = Callable[[str, int, int], None]
"""Called with (stage, done, in all)."""


@dataclass(frozen=True, slots=True)
class RedrawSettings:
    """What to choose anew, and how."""

    shares: Mapping[str, float]
    """Strategy, or `DEFAULT` for each task's own -> share of the questions of each task and source."""
    seed: int = 0
    tasks: tuple[str, ...] = ()
    """The tasks; all when empty."""
    margins: Margins | Literal[""] = ""
    """Those of the dataset's recipe when empty; with "recorded" every new set is labelled a stress set."""
    refused: Literal["keep", "drop"] = "keep"
    """Whether a row that the strategy cannot ask keeps its options or is left out."""

    @property
    def name(self) -> str:
        """The strategy as it is typed, or "mix" for several."""
        return next(iter(self.shares)).replace("_", "-") if len(self.shares) == 1 else "mix"

    @property
    def label(self) -> str:
        """Strategy and seed, for names of folders."""
        return f"{self.name}-{self.seed}"


@dataclass(frozen=True, slots=True, eq=False)
class ProposedOptions:
    """What somebody else proposes as options."""

    values: Mapping[str, tuple[Candidate, ...]] = field(default_factory=dict)
    """The values, by group."""
    refused: Mapping[str, str] = field(default_factory=dict)
    """Why there are none, by group."""
    report: Mapping[str, Any] = field(default_factory=dict)
    """What the manifest tells about it."""


Propose = Callable[[Sequence[Redraw], Recipe, Path, Progress], ProposedOptions]
"""Called with the questions, the recipe, a folder that outlives a killed run, and where to tell of progress."""


@dataclass(frozen=True, slots=True, eq=False)
class Redrawer:
    """Draws other options for questions, scene by scene."""

    rows: Sequence[Row]
    recipe: Recipe
    settings: RedrawSettings
    proposals: ProposedOptions
    """What somebody else proposes as options."""
    out: Path
    engine: Engine
    progress: Progress

    def draw_distinct_sets(self, asked: Sequence[Redraw]) -> tuple[dict[int, Row], dict[str, str]]:
        """(new rows by place, why a group has none); no set stands under two truths.

        Raises:
            DatasetError: facts or images cannot be read.
        """
        found: dict[str, Redraw] = {}
        reasons = dict(self.proposals.refused)
        owner: dict[str, str] = {}
        drawn_anew = [question for question in asked if question.plan.group_id not in reasons]
        letters = deal_row_letters(self.rows, self.recipe.seed, {question.plan.task for question in drawn_anew})
        for question, outcome in zip(drawn_anew, self._draw(drawn_anew, letters), strict=True):
            name, reason = question.plan.group_id, outcome.rejection_reason
            if not reason and any(digest in owner for digest in outcome.option_digests):
                reason = "option_set_taken"
            if reason:
                reasons[name] = reason
            else:
                owner.update(dict.fromkeys(outcome.option_digests, name))
                found[name] = outcome
        if self.settings.refused == "keep":
            _give_way(asked, self.rows, found, reasons)
        new = {place: row for drawn in found.values() for place, row in zip(drawn.places, drawn.rows, strict=True)}
        return new, {q.plan.group_id: reasons[q.plan.group_id] for q in asked if q.plan.group_id not in found}

    def _draw(self, asked: Sequence[Redraw], letters: Mapping[int, int]) -> list[Redraw]:
        """What the draws of these questions give, in their order."""
        full = [self._add_rows(question, letters) for question in asked]
        return run_redraws(full, self.out, self.recipe, self.settings.seed, self.engine, self.progress)

    def _add_rows(self, question: Redraw, letters: Mapping[int, int]) -> Redraw:
        return replace(
            question,
            rows=tuple(self.rows[k] for k in question.places),
            letters=tuple(letters[k] for k in question.places),
            proposed=self.proposals.values.get(question.plan.group_id, ()),
        )


def run_redraws(
    asked: Sequence[Redraw], out: Path, recipe: Recipe, seed: int, engine: Engine, progress: Progress
) -> list[Redraw]:
    """The questions with their new rows, in their order.

    Args:
        asked: with the rows as they are and their letters.
        out: the new dataset, with `facts/` and `media/`.
        recipe: of the dataset.
        seed: of the new options.
        engine: where the work runs.
        progress: called with ("options", done, in all).
    """
    chunks = cut_by_scene([(q.plan.source, q.plan.scene_id, str(q.rows[0]["frame_ids"])) for q in asked])
    jobs = [
        RedrawJob(out, recipe, tuple(asked[k] for k in chunk), remember=not engine.address, seed=seed)
        for chunk in chunks
    ]
    found: dict[int, Redraw] = {}
    for index, outcomes in run(redraw_options, jobs, engine if len(asked) > FEW else Engine(), [out]):
        found.update(zip(chunks[index], outcomes, strict=True))
        progress("options", len(found), len(asked))
    return [found[k] for k in range(len(asked))]


def deal_row_letters(rows: Sequence[Row], seed: int, only: Container[str] | None = None) -> dict[int, int]:
    """Place of a multi-choice row (of the tasks in `only`, of all where None) -> its letter, balanced in blocks as
    composing does."""
    places = [
        k for k, row in enumerate(rows) if row["question_type"] == CHOICE and (only is None or row["task"] in only)
    ]
    plans = []
    for k in places:
        row = rows[k]
        # A question that is asked from one side alone has none, and reading all evidence takes seconds.
        side = RowEvidence.of_row(row).side if row["pair_id"] else ""
        plans.append(replace(make_row_plan(row), side=side))
    dealt = zip(places, deal_letters(plans, seed), strict=True)
    return {k: plan.letter for k, plan in dealt if plan.letter is not None}


def make_row_plan(row: Row) -> QuestionPlan:
    """The plan of a multi-choice row without its fact."""
    return QuestionPlan(
        row["task"], row["source"], row["split"], row["scene_id"], row["group_id"], CHOICE,
        row=-1, places=len(row["options"]),
    )  # fmt: skip


def _give_way(asked: Sequence[Redraw], rows: Sequence[Row], found: dict[str, Redraw], reasons: dict[str, str]) -> None:
    """Rows that keep their options keep them for themselves: a new set of the same content goes, until all differ."""
    known = {question.plan.group_id: question for question in asked}
    kept = [name for name in known if name not in found]
    while kept:
        theirs = {digest for name in kept for digest in _digest_rows(known[name], rows)}
        kept = [name for name, outcome in found.items() if not theirs.isdisjoint(outcome.option_digests)]
        for name in kept:
            del found[name]
            reasons[name] = "option_set_taken"


def _digest_rows(question: Redraw, rows: Sequence[Row]) -> list[str]:
    task = tasks[question.plan.task]
    options = (RowEvidence.of_row(rows[k]).options for k in question.places)
    return [digest_values([option.value for option in members], task) for members in options]


def list_redraws(rows: Sequence[Row], out: Path, recipe: Recipe, settings: RedrawSettings) -> list[Redraw]:
    """The truths whose options are to be chosen anew, each with its strategy, in the order of the dataset.

    Args:
        rows: of the dataset.
        out: the folder with its facts.
        recipe: of the dataset.
        settings: which tasks, and by which strategy.
    """
    places: dict[str, list[int]] = defaultdict(list)
    for k, row in enumerate(rows):
        # All labels are options of a question about labels, whatever is drawn.
        wanted = row["task"] in (settings.tasks or (row["task"],)) and not tasks[row["task"]].options_recur
        if row["question_type"] == CHOICE and wanted:
            places[row["group_id"]].append(k)
    firsts = [rows[members[0]] for members in places.values()]
    strategy = _assign_strategies(firsts, settings)
    paths = {shard_path(out, "facts", row["source"], row["scene_id"]) for row in firsts}
    chosen_tasks = [task for task in list_tasks(recipe) if any(row["task"] == task.name for row in firsts)]
    plans = {
        plan.group_id: replace(plan, rejection_reason="")
        for path in sorted(paths)
        if path.is_file()
        for plan in read_plans(path, chosen_tasks, recipe)
        if plan.question_type == CHOICE and plan.group_id in places
    }
    return [
        Redraw(plans.get(name) or make_row_plan(first), strategy[name], tuple(members))
        for first, (name, members) in zip(firsts, places.items(), strict=True)
    ]


def _assign_strategies(firsts: Sequence[Row], settings: RedrawSettings) -> dict[str, str]:
    """Group -> strategy, by hash and by the shares as exactly as whole questions allow, per task and source."""
    cells: dict[tuple[str, str], list[str]] = defaultdict(list)
    for row in firsts:
        cells[row["task"], row["source"]].append(row["group_id"])
    assigned = {}
    for (task, source), names in cells.items():
        names.sort(key=lambda name: hash_stably("mix", str(settings.seed), task, source, name))
        start, share = 0, 0.0
        for strategy, part in sorted(settings.shares.items()):
            share += part
            stop = round(share * len(names))
            assigned.update(dict.fromkeys(names[start:stop], strategy))
            start = stop
    return assigned
