"""Which questions get other options by which strategy, and which options: none stands under two truths."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np

from vgbench_gen.core.rng import stable_hash
from vgbench_gen.core.types import Candidate
from vgbench_gen.distractors.base import Margins
from vgbench_gen.pipeline.executors import Engine, run
from vgbench_gen.pipeline.known import KnownFacts
from vgbench_gen.pipeline.measure import shard_path
from vgbench_gen.pipeline.plan import Card, Chosen, with_letters
from vgbench_gen.pipeline.recipe import Recipe
from vgbench_gen.pipeline.redraw_rows import CHOICE, Draw, DrawJob, Redrawn, redrawn
from vgbench_gen.pipeline.redraw_words import REWORDED
from vgbench_gen.pipeline.survey import content_of
from vgbench_gen.store.schema import Row
from vgbench_gen.tasks.base import tasks

REPLIES = "replies.sqlite"  # in the folder of the new dataset: what models answered
ATTEMPTS = 6  # draws for one fact; what fails so often hardly has another set
CHUNK = 96  # most questions per job, so that one rich scene does not keep a single worker busy at the end
FEW = 400  # draws that this process does itself: workers take longer to start
_FINAL = ("fact_changed", "no_fact", REWORDED)
Progress = Callable[[str, int, int], None]
"""Called with (stage, done, in all)."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What to choose anew, and how.

    shares: strategy -> share of the questions of each task and source. seed: of the draws. tasks: all when empty.
    margins: those of the dataset's recipe when empty; with "recorded" every new set is labelled a stress set. refused:
    whether a row that the strategy cannot ask keeps its options or is left out.
    """

    shares: Mapping[str, float]
    seed: int = 0
    tasks: tuple[str, ...] = ()
    margins: Margins | Literal[""] = ""
    refused: Literal["keep", "drop"] = "keep"

    @property
    def name(self) -> str:
        """The strategy as it is typed, or "mix" for several."""
        return next(iter(self.shares)).replace("_", "-") if len(self.shares) == 1 else "mix"

    @property
    def label(self) -> str:
        """Strategy and seed, for names of folders."""
        return f"{self.name}-{self.seed}"


@dataclass(frozen=True, slots=True, eq=False)
class Asked:
    """One truth that the dataset asks as a multi-choice question, from one side or from both.

    places: of its rows. shard: where its fact is. key: of the fact, where a model is asked about it.
    """

    group_id: str
    task: str
    source: str
    scene_id: str
    places: tuple[int, ...]
    strategy: str
    shard: Path
    key: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Proposals:
    """What somebody else proposes as options. refused: why there are none, by group. report: for the manifest."""

    values: Mapping[str, tuple[Candidate, ...]] = field(default_factory=dict)
    refused: Mapping[str, str] = field(default_factory=dict)
    report: Mapping[str, Any] = field(default_factory=dict)


Propose = Callable[[Sequence[Asked], Recipe, Path, Progress], Proposals]
"""Called with the questions, the recipe, a folder that outlives a killed run, and where to tell of progress."""


def settle(
    asked: Sequence[Asked],
    rows: Sequence[Row],
    recipe: Recipe,
    known: KnownFacts,
    settings: Settings,
    proposals: Proposals,
    out: Path,
    engine: Engine,
    progress: Progress,
) -> tuple[dict[int, Row], dict[str, str]]:
    """(new rows by place, why a group has none); no set stands under two truths.

    The first draw is the one that composing makes with this seed, so that the same seed gives the same sets.

    Raises:
        DatasetError: facts or images cannot be read.
    """
    found: dict[str, Redrawn] = {}
    reasons = dict(proposals.refused)
    owner: dict[str, str] = {}
    letters = letters_of(rows, recipe.seed, {question.task for question in asked})
    waiting = [question for question in asked if question.group_id not in reasons]
    desk = _Desk(rows, letters, recipe, known, settings, proposals, out, engine, progress, len(waiting))
    for attempt in range(ATTEMPTS):
        again = []
        for question, outcome in zip(waiting, desk.drawn(waiting, attempt), strict=True):
            name, reason = question.group_id, outcome.reason
            if not reason and any(owner.get(content, name) != name for content in outcome.contents):
                reason = "option_set_taken"
            if not reason:
                owner.update(dict.fromkeys(outcome.contents, name))
                found[name] = outcome
                continue
            reasons[name] = reason
            # Other strategies than a ladder have tried all they have; a model's values get one rank (see there).
            tried_all = question.strategy == "llm" or (reason == "too_few_options" and question.strategy != "set_first")
            if reason not in _FINAL and not tried_all:
                again.append(question)
        waiting = again
        if not waiting:
            break
    if settings.refused == "keep":
        _give_way(asked, rows, found, reasons)
    new = {
        place: row
        for question in asked
        if (drawn := found.get(question.group_id)) is not None
        for place, row in zip(question.places, drawn.rows, strict=True)
    }
    return new, {question.group_id: reasons[question.group_id] for question in asked if question.group_id not in found}


@dataclass(slots=True)
class _Desk:
    """Hands out draws by scene and collects what comes; `total` questions are wanted."""

    rows: Sequence[Row]
    letters: Mapping[int, int]
    recipe: Recipe
    known: KnownFacts
    settings: Settings
    proposals: Proposals
    out: Path
    engine: Engine
    progress: Progress
    total: int

    def drawn(self, waiting: Sequence[Asked], attempt: int) -> list[Redrawn]:
        """What the draws of these questions give, in their order."""
        by_shard: dict[Path, list[int]] = defaultdict(list)
        for k, question in enumerate(waiting):
            by_shard[question.shard].append(k)
        chunks = [
            (shard, chunk)
            for shard, members in by_shard.items()
            # By picture, so that a base image is decoded for all of its questions at once.
            for chunk in _batched(sorted(members, key=lambda k: self.rows[waiting[k].places[0]]["frame_ids"]))
        ]
        chunks.sort(key=lambda pair: -len(pair[1]))  # the largest first, so that no worker starts one at the end
        jobs = [
            DrawJob(
                self.out, shard, self.recipe, self.known, tuple(self._draw(waiting[k], attempt) for k in chunk),
                not self.engine.address,
            )
            for shard, chunk in chunks
        ]  # fmt: skip
        found: dict[int, Redrawn] = {}
        engine = self.engine if len(waiting) > FEW else Engine()
        for index, outcomes in run(redrawn, jobs, engine, [self.out]):
            found.update(zip(chunks[index][1], outcomes, strict=True))
            self.progress("options", self.total - len(waiting) + len(found), self.total)
        return [found[k] for k in range(len(waiting))]

    def _draw(self, question: Asked, attempt: int) -> Draw:
        seed = self.settings.seed
        return Draw(
            group_id=question.group_id,
            strategy=question.strategy,
            seed=seed,
            draw_seed=int(stable_hash("again", str(seed), str(attempt)), 16) if attempt else seed,
            rows=tuple(self.rows[k] for k in question.places),
            letters=tuple(self.letters[k] for k in question.places),
            proposed=self.proposals.values.get(question.group_id, ()),
        )


def _batched(members: Sequence[int]) -> list[tuple[int, ...]]:
    return [tuple(members[k : k + CHUNK]) for k in range(0, len(members), CHUNK)]


def letters_of(rows: Sequence[Row], seed: int, only: Container[str] | None = None) -> dict[int, int]:
    """Place of a multi-choice row (of the tasks in `only`, of all where None) -> its letter, balanced in blocks as
    composing does."""
    places = [
        k for k, row in enumerate(rows) if row["question_type"] == CHOICE and (only is None or row["task"] in only)
    ]
    chosen = []
    for k in places:
        row = rows[k]
        # A question that is asked from one side alone has none, and reading all evidence takes seconds.
        side = str(json.loads(row["evidence"]).get("side", "")) if row["pair_id"] else ""
        card = Card(
            row["task"], row["source"], row["split"], row["scene_id"], row["group_id"], 0.0, "", 0, (CHOICE,)
        )  # fmt: skip
        chosen.append(Chosen(card, CHOICE, "", side=side))
    lettered = zip(places, with_letters(chosen, seed), strict=True)
    return {k: entry.letter for k, entry in lettered if entry.letter is not None}


def _give_way(asked: Sequence[Asked], rows: Sequence[Row], found: dict[str, Redrawn], reasons: dict[str, str]) -> None:
    """Rows that keep their options keep them for themselves: a new set of the same content goes, until all differ."""
    known = {question.group_id: question for question in asked}
    kept = [name for name in known if name not in found]
    while kept:
        theirs = {content for name in kept for content in _contents(known[name], rows)}
        kept = [name for name, outcome in found.items() if not theirs.isdisjoint(outcome.contents)]
        for name in kept:
            del found[name]
            reasons[name] = "option_set_taken"


def _contents(question: Asked, rows: Sequence[Row]) -> list[str]:
    task = tasks[question.task]
    options = (json.loads(rows[k]["evidence"])["options"] for k in question.places)
    return [content_of([np.asarray(o["value"], dtype=np.float64) for o in members], task) for members in options]


def asked_in(rows: Sequence[Row], facts: Path, settings: Settings) -> list[Asked]:
    """The truths whose options are to be chosen anew, each with its strategy, in the order of the dataset."""
    places: dict[str, list[int]] = defaultdict(list)
    for k, row in enumerate(rows):
        if row["question_type"] == CHOICE and (not settings.tasks or row["task"] in settings.tasks):
            places[row["group_id"]].append(k)
    firsts = [rows[members[0]] for members in places.values()]
    strategy = _assigned(firsts, settings)
    return [
        Asked(
            name, first["task"], first["source"], first["scene_id"], tuple(members), strategy[name],
            shard_path(facts.parent, facts.name, first["source"], first["scene_id"]),
            str(json.loads(first["evidence"]).get("key")) if strategy[name] == "llm" else "",
        )
        for first, (name, members) in zip(firsts, places.items(), strict=True)
    ]  # fmt: skip


def _assigned(firsts: Sequence[Row], settings: Settings) -> dict[str, str]:
    """Group -> strategy, by hash and by the shares as exactly as whole questions allow, per task and source."""
    cells: dict[tuple[str, str], list[str]] = defaultdict(list)
    for row in firsts:
        cells[row["task"], row["source"]].append(row["group_id"])
    assigned = {}
    for (task, source), names in cells.items():
        names.sort(key=lambda name: stable_hash("mix", str(settings.seed), task, source, name))
        start, share = 0, 0.0
        for strategy, part in sorted(settings.shares.items()):
            share += part
            stop = round(share * len(names))
            assigned.update(dict.fromkeys(names[start:stop], strategy))
            start = stop
    return assigned
