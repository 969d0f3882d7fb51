"""The audit pool: the dataset's own questions, topped up from the same facts with the limits per scene relaxed.

A release cell of a few hundred questions leaves an interval too wide to judge (`docs/validity.md#enough-questions`). So
facts that the release did not ask are asked as well, in words only: no picture is drawn. Where they are not enough,
facts are asked again with other wrong options or claims; folds go by scene, so no truth stands on both sides of a
split.
"""

from __future__ import annotations

import itertools
import re
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Container, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from vgbench_gen.core.errors import TooFewOptionsError
from vgbench_gen.core.rng import rng_for, stable_hash
from vgbench_gen.core.types import LETTERS, Fact, QuestionType
from vgbench_gen.distractors.base import strategies
from vgbench_gen.pipeline.executors import Engine, run
from vgbench_gen.pipeline.known import KnownFacts, knowing_tasks, learnt
from vgbench_gen.pipeline.measure import chosen_tasks, shard_path
from vgbench_gen.pipeline.plan import Card, Planned, truth_at
from vgbench_gen.pipeline.recipe import Recipe
from vgbench_gen.pipeline.survey import cards_of, facts_at
from vgbench_gen.pipeline.write import Refused, Wording, write
from vgbench_gen.quality.findings import CONCLUSIVE
from vgbench_gen.quality.questions import Question, question_of
from vgbench_gen.store.media import MediaStore
from vgbench_gen.store.picture_cache import PictureCache
from vgbench_gen.store.pictures import Picture
from vgbench_gen.tasks.base import Task

POOL = 1200  # most questions of a task and form
_FEW = 600  # questions that this process asks itself: workers take longer to start
_ROUNDS = 16  # one is enough unless facts refuse a form; the others ask facts again
_AGAIN = 2  # times that a fact is asked again at most: a dozen facts asked a hundred times are still a dozen
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")

Cell = tuple[str, QuestionType]


@dataclass(slots=True)
class Pool:
    """Questions to judge by.

    questions: per task and form, the release's own first. asked_again: of them, how many ask a fact that another asks
    too with other options. seconds: CPU time that asking took.
    """

    questions: dict[Cell, list[Question]] = field(default_factory=dict)
    asked_again: Counter[Cell] = field(default_factory=Counter)
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Ask:
    """One fact of a shard in one form. turn: 0 as the recipe says, above with other options. letter: of the truth."""

    row: int
    group_id: str
    form: QuestionType
    turn: int
    letter: int


@dataclass(frozen=True, slots=True)
class AskJob:
    """Facts of one scene to ask; crosses process borders. known: see `pipeline.known`."""

    path: Path
    recipe: Recipe
    asks: tuple[Ask, ...]
    known: KnownFacts = field(default_factory=dict)


class _Names(PictureCache):
    """Names pictures by what they show and renders nothing: equal descriptions are equal pictures."""

    def __init__(self) -> None:
        super().__init__(None, MediaStore(Path()))

    def name(self, picture: Picture) -> str:
        return stable_hash("picture", picture.key(), size=16) if picture.ops else picture.base


def ask(job: AskJob) -> tuple[list[tuple[Question, ...]], float]:
    """Questions of each ask in order, none where the fact cannot be asked so; and the CPU seconds it took.

    Raises:
        DatasetError: the shard cannot be read.
    """
    started = time.process_time()
    by_name = knowing_tasks(job.recipe, job.known)
    facts = facts_at(job.path, {entry.row for entry in job.asks})
    names = _Names()
    asked = [_asked(facts[e.row], e, by_name[facts[e.row].task], job.recipe, names) for e in job.asks]
    return asked, time.process_time() - started


def _asked(fact: Fact, entry: Ask, task: Task, recipe: Recipe, names: PictureCache) -> tuple[Question, ...]:
    options, seed = None, recipe.distractor_seed + entry.turn
    if entry.turn:
        task = task.asking_again()
    if entry.form == "multi-choice":
        rng = rng_for(recipe.seed, "options", entry.group_id, recipe.strategy, str(seed))
        try:
            drawn = strategies[recipe.strategy].options(fact, task, rng, len(LETTERS), recipe.margins)
        except TooFewOptionsError:
            return ()
        options = truth_at(drawn, entry.letter)
    wording = Wording(recipe.seed + entry.turn, recipe.strategy, seed, recipe.wording)
    rows = write(Planned(fact, entry.group_id, entry.form, "", options), task, names, wording)
    return () if isinstance(rows, Refused) else tuple(question_of(row) for row in rows)


def pool_of(
    folder: Path,
    recipe: Recipe,
    release: Iterable[Question],
    scenes: Iterable[tuple[str, str]],
    most: int = POOL,
    engine: Engine | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,
    alone: Container[Cell] = (),
) -> Pool:
    """The release's questions and more of the same facts, at most `most` per task and form.

    Args:
        folder: of the build, with `facts/`.
        recipe: that it was built with.
        release: the questions of the dataset.
        scenes: (source, id) whose facts may be asked; others in the folder are left alone.
        progress: called with (questions asked, questions wanted), which grows where facts refuse.
        alone: cells that get no more questions, because theirs were made otherwise than the recipe says.

    Raises:
        DatasetError: a shard cannot be read.
    """
    engine = engine or Engine()
    desk = _Desk(recipe, list(release), most)
    shards = {}
    for source, scene_id in sorted(scenes):
        path = shard_path(folder, "facts", source, scene_id)
        if path.is_file():
            shards[source, scene_id] = path
            desk.add(cards_of(path, chosen_tasks(recipe), recipe), alone)
    known = learnt(shards.values(), recipe)
    done = 0
    for _ in range(_ROUNDS):
        wanted = desk.next_round()
        if not wanted:
            break
        wanted.sort(key=lambda pair: (pair[0].source, pair[0].scene_id, pair[1].row, pair[1].form))
        jobs, members = [], []
        for scene, group in itertools.groupby(wanted, key=lambda pair: (pair[0].source, pair[0].scene_id)):
            members.append(list(group))
            jobs.append(AskJob(shards[scene], recipe, tuple(entry for _, entry in members[-1]), known))
        outcomes = {}
        before = done
        for index, (answers, seconds) in run(ask, jobs, engine if len(wanted) > _FEW else Engine(), [folder]):
            outcomes[index] = answers
            desk.pool.seconds += seconds
            done += len(answers)
            progress(done, before + len(wanted))
        answered = [
            (card, entry, answer)
            for index, group_members in enumerate(members)
            for (card, entry), answer in zip(group_members, outcomes[index], strict=True)
        ]
        desk.take(answered)
    return desk.pool


class _Desk:
    """Keeps what is wanted, what came, and whose turn it is; everything in an order fixed by hashes."""

    def __init__(self, recipe: Recipe, release: Sequence[Question], most: int) -> None:
        self.recipe, self.most = recipe, most
        self.pool = Pool()
        self._seen: set[tuple[str, QuestionType, tuple[str, ...]]] = set()
        self._asked: set[tuple[str, QuestionType]] = set()
        self._cards: dict[Cell, list[Card]] = defaultdict(list)
        self._queue: dict[Cell, list[Card]] = {}
        self._turn: Counter[Cell] = Counter()
        self._refused: set[tuple[str, QuestionType]] = set()
        self._letters: dict[tuple[str, str], list[int]] = defaultdict(list)
        self._blocks: Counter[tuple[str, str]] = Counter()
        by_cell: dict[Cell, list[Question]] = defaultdict(list)
        for question in release:
            by_cell[question.cell].append(question)
        for cell, members in sorted(by_cell.items()):
            # Twins share their group, so that the cut leaves no half of a pair but the last.
            kept = sorted(members, key=lambda q: (stable_hash("pool", q.group), q.id))[:most]
            self.pool.questions[cell] = kept
            for question in kept:
                self._seen.add(_content(question))
            self._asked |= {(question.group, question.form) for question in members}

    def add(self, cards: Iterable[Card], alone: Container[Cell]) -> None:
        """Facts that may be asked, but in the cells that stay alone."""
        for card in cards:
            for form in card.forms:
                if (card.task, form) not in alone:
                    self._cards[card.task, form].append(card)

    def next_round(self) -> list[tuple[Card, Ask]]:
        """What to ask next; empty when every cell is full or has nothing left."""
        wanted: list[tuple[Card, Ask]] = []
        for cell in sorted(self._cards):
            if cell not in self._queue:
                ranked = sorted(self._cards[cell], key=lambda card: stable_hash("pool", card.group_id))
                self._cards[cell] = ranked
                self._queue[cell] = [c for c in ranked if (c.group_id, cell[1]) not in self._asked][::-1]
            have = len(self.pool.questions.get(cell, ()))
            goal = self.most if not self._turn[cell] else min(self.most, CONCLUSIVE)
            if not self._queue[cell] and have < min(self.most, CONCLUSIVE) and self._may_again(cell):
                self._turn[cell] += 1
                goal = min(self.most, CONCLUSIVE)
                able = [c for c in self._cards[cell] if (c.group_id, cell[1]) not in self._refused]
                self._queue[cell] = able[::-1]
            per_ask = 2 if cell[1] == "judgment" else 1
            queue = self._queue[cell]
            for _ in range(min(len(queue), max(0, -(-(goal - have) // per_ask)))):
                card = queue.pop()
                letter = self._letter(card) if cell[1] == "multi-choice" else 0
                wanted.append((card, Ask(card.row, card.group_id, cell[1], self._turn[cell], letter)))
        return wanted

    def _may_again(self, cell: Cell) -> bool:
        return cell[1] != "open-ended" and self._turn[cell] < _AGAIN

    def take(self, answered: Sequence[tuple[Card, Ask, tuple[Question, ...]]]) -> None:
        """What came of a round, in its order. The letter of a refused question goes to the next of its source."""
        for card, entry, questions in answered:
            cell = (card.task, entry.form)
            new = [question for question in questions if _content(question) not in self._seen]
            if not questions:
                self._refused.add((card.group_id, entry.form))
            if len(new) < len(questions) or not questions:
                if entry.form == "multi-choice":
                    self._letters[card.task, card.source].append(entry.letter)
                continue
            self._seen |= {_content(question) for question in new}
            self.pool.questions.setdefault(cell, []).extend(new)
            if entry.turn:
                self.pool.asked_again[cell] += len(new)

    def _letter(self, card: Card) -> int:
        key = (card.task, card.source)
        if not self._letters[key]:
            block = str(self._blocks[key])
            self._blocks[key] += 1
            dealt = rng_for(self.recipe.seed, "pool", "letters", *key, block).permutation(len(LETTERS))
            self._letters[key] = [int(letter) for letter in dealt]
        return self._letters[key].pop()


def _content(question: Question) -> tuple[str, QuestionType, tuple[str, ...]]:
    """What makes another question of the same truth: its options, or the numbers and words of a claim."""
    if question.form == "multi-choice":
        return question.group, question.form, tuple(sorted(question.options))
    numbers = _NUMBER.findall(question.question) or [question.question]
    return question.group, question.form, (str(question.truth), *numbers)
