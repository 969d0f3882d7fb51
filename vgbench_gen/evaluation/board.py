"""Questions and the scored replies of several models side by side, as arrays: what tables are made of."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from vgbench_gen.core.rng import hash_stably
from vgbench_gen.core.types import BoolArray, FloatArray, IntArray, Item
from vgbench_gen.evaluation.answers.outcomes import OUTCOMES
from vgbench_gen.evaluation.records import ReplyKey
from vgbench_gen.evaluation.scoring import Rule, find_rules, make_case
from vgbench_gen.importers.base import read_origin_index

PAPER = "paper"
MEASURES = ("score", "official", "headline", "strict")


@dataclass(frozen=True, slots=True)
class Entry:
    """What tables need to know of one question; what `Item` has by the same name means the same."""

    id: str
    """The question's id within its data set."""
    dataset: str
    source: str
    """The benchmark it was taken from, without what that is a part of: "SpatialScore/BLINK" is "BLINK"."""
    task: str
    """The kind of question, as in `Item.task`."""
    ask: str
    """What is asked about, as in `Item.ask`."""
    form: str
    """The question type: "multi-choice", "judgment", "open-ended" and so on."""
    category: str
    subcategory: str
    origin: str
    """What the benchmark that it was taken from calls its kind (`Item.category_origin`)."""
    scans: str
    """The data set of its scans or images."""
    scene: str
    """Its scene, unique over data sets. Intervals are drawn over scenes."""
    difficulty: str
    twin: str
    """The name that a true and a false claim about one truth share; "" where there is no twin."""
    pair: str
    """The name that two questions about one truth from two sides share; "" where there is none."""
    kind: str
    """What kind of answer is right (`AnswerKey.kind`)."""
    truth: str | float
    """The right answer (`AnswerKey.truth`)."""
    rule: Rule
    """How an answer is compared with it (`AnswerKey.rule`)."""
    chance: float
    """What a uniform guess scores; 0 for open questions."""
    origin_id: str = ""
    """The id in the benchmark that it was taken from."""
    options: int = 0
    """How many options it has."""
    content: str = ""
    """Digest of all that a reader sees, and of the answer. Questions that share it are one; "" is shared by none."""
    error_parts: tuple[str, ...] = ()
    script: str = "Official script"
    """Whose script `official` stands for (`ScoringRules.script`)."""


def make_entry(item: Item, dataset: str = "") -> Entry:
    """What tables need to know of a row.

    Raises:
        CaseError: its truth cannot be read.
    """
    rules = find_rules(item.benchmark)
    key = rules.answer_key(make_case(item))
    options = len(item.options) or len(key.letters) if key.kind == "letter" else 0
    return Entry(
        id=item.id,
        dataset=dataset,
        source=item.benchmark.rpartition("/")[2],
        task=item.task,
        ask=item.ask,
        form=item.question_type,
        category=item.category,
        subcategory=item.subcategory,
        origin=item.category_origin,
        scans=item.source,
        scene=f"{item.source}/{item.scene_id}",
        difficulty=item.difficulty,
        twin=item.twin_id,
        pair=item.pair_id,
        kind=key.kind,
        truth=key.truth,
        rule=key.rule,
        chance=key.chance(options),
        origin_id=str(read_origin_index(item)),
        options=options,
        content=digest_content(item),
        error_parts=item.error_parts,
        script=rules.script,
    )


def digest_content(item: Item) -> str:
    """Digest of words, options, pictures and answer of an item, by which copies of one question are known."""
    said = (item.question, item.context, *item.options, item.answer)
    return hash_stably("content", item.question_type, str(len(said)), *said, *item.images)


@dataclass(frozen=True, slots=True)
class ScoreRow:
    """One scored reply, as a file of scores holds it in one line."""

    id: str
    """The question; this and the four fields below are those of `ReplyKey`."""
    rotation: int
    epoch: int
    stage: str
    prompt_set: str
    outcome: str
    """One of `OUTCOMES`: right, wrong, unreadable, refused or failed."""
    status: str
    """How the answer was found, or why it was not (`ParsedAnswer.status`, "truncated", "api_error")."""
    score: float
    """By the benchmark's metric, 0 to 1."""
    official: float
    """The score that the published script gives."""
    strict: float
    """The score of a reader that looks at the last line alone."""
    followed: bool
    """Whether the last line is the answer in the form asked for, and nothing else."""
    extracted: str | float | None = None
    """The answer that we read, lengths in meters; None where there is none."""
    official_extracted: str | float | None = None
    """The answer that the published script reads."""
    delta_2: float = math.nan
    """Whether a number is within the factor 2, 0 or 1; NaN, as the three below, where the answer is no number."""
    delta_125: float = math.nan
    """Whether a number is within the factor 1.25, 0 or 1."""
    mra: float = math.nan
    """The mean relative accuracy of a number, 0 to 1."""
    relative_error: float = math.nan
    """The relative error of a number; infinite where none was read."""
    cost_usd: float = math.nan
    """What the request cost; NaN where that is unknown."""
    latency_s: float = math.nan
    """How long the reply took; NaN where that is unknown."""
    tokens: float = math.nan
    """How many tokens were sent and received; NaN where that is unknown."""
    made: bool | None = None
    """Whether an image that was to be made first was there; None where none was to be."""
    content: str = ""
    """See `Entry.content`."""
    settings: str = ""
    """Digest of how it was asked (`ReplyKey.settings`)."""

    @property
    def key(self) -> ReplyKey:
        """What it is a reply to."""
        return ReplyKey(self.id, self.rotation, self.epoch, self.stage, self.prompt_set, self.settings)


BASELINE = "baseline:"  # how names of models begin that are no models
ORACLE = " (oracle)"  # how names of models end whose tools answer from the rows; no table ranks them


@dataclass(eq=False)
class BoardRun:
    """One model with one prompt set over the n questions of a board, in their order.

    Numbers of a question are means over its repeats. They are NaN where there is no reply, or none but failed ones.
    Replies in another order of the options count for `circular` alone.
    """

    name: str
    """The run's name in tables: the model, with stage and prompt set where they are not the usual ones."""
    model: str
    prompt_set: str
    """The prompt set whose words were sent."""
    stage: str
    """See `ReplyKey.stage`."""
    score: FloatArray
    """(n,) by the benchmark's metric."""
    official: FloatArray
    """(n,) by the published script."""
    headline: FloatArray
    """(n,) as `score`, with delta = 1.25 for lengths."""
    strict: FloatArray
    """(n,) by a reader of the last line alone."""
    followed: FloatArray
    """(n,) whether the last line is the answer in the form asked for."""
    delta_2: FloatArray
    """(n,) whether a number is within the factor 2; NaN, as the three below, where the answer is no number."""
    delta_125: FloatArray
    """(n,) whether a number is within the factor 1.25."""
    mra: FloatArray
    """(n,) mean relative accuracy of a number."""
    relative_error: FloatArray
    """(n,) relative error of a number."""
    circular: FloatArray
    """(n,) 1 where the answer is right in every order of the options; NaN unless every order was answered."""
    circled: BoolArray
    """(n,) where there was more than one order of the options."""
    made: FloatArray
    """(n,) 1 where an image that was to be made first was there; NaN where none was to be."""
    counts: FloatArray
    """(n, 5) replies per outcome, in the order of `OUTCOMES`."""
    extracted: list[str | float | None]
    """n answers, each of the first reply."""
    epochs: int
    """How many repeats there are."""
    cost_usd: float
    """What all replies cost whose price is known; NaN where none is."""
    cost_known: int
    """For how many replies that is."""
    failure: str = field(default="", init=False)
    """Why the first request failed, where all did and it is known."""

    @cached_property
    def asked(self) -> BoolArray:
        """Where there is a reply of any outcome."""
        return np.asarray(self.counts.sum(axis=1) > 0)

    @cached_property
    def declined(self) -> BoolArray:
        """Where a baseline did not try: it refused in every reply. A model that refuses has tried."""
        refused = self.counts[:, OUTCOMES.index("refused")] == self.counts.sum(axis=1)
        return np.asarray(self.asked & refused & self.model.startswith(BASELINE))

    @cached_property
    def answered(self) -> BoolArray:
        """Where there is a reply that did not fail."""
        return ~np.isnan(self.score)

    def describe_failures(self) -> str:
        """How many questions have failed requests alone, and where it is all of them, why the first; "" for none."""
        asked, failed = int(self.asked.sum()), int((self.asked & ~self.answered).sum())
        if not 0 < failed == asked:
            return f"{failed} of {asked} failed" if failed else ""
        return f"all {asked} requests failed" + (f", the first with {self.failure}" if self.failure else "")

    def values(self, measure: str) -> FloatArray:
        """The scores (n,) of one of `MEASURES`."""
        found: FloatArray = getattr(self, measure)
        return found


@dataclass(eq=False)
class Board:
    """Questions, and runs over them."""

    questions: tuple[Entry, ...]
    """All questions, in the order of every array of a run."""
    runs: dict[str, BoardRun] = field(default_factory=dict)

    @cached_property
    def scenes(self) -> list[str]:
        """Cluster of each question."""
        return [question.scene for question in self.questions]

    @cached_property
    def contents(self) -> IntArray:
        """Place of the first question with the same content, for each question (n,); its own where there is none."""
        first: dict[str, int] = {}
        places = [first.setdefault(q.content, k) if q.content else k for k, q in enumerate(self.questions)]
        return np.asarray(places, dtype=np.int64)

    @property
    def copies(self) -> int:
        """Questions whose content stands further up already."""
        return int((self.contents != np.arange(len(self.questions))).sum())

    def mask(self, wanted: Callable[[Entry], bool]) -> BoolArray:
        """Which questions are wanted, (n,)."""
        return np.fromiter(map(wanted, self.questions), dtype=np.bool_, count=len(self.questions))

    def add(self, model: str, rows: Mapping[str, Iterable[ScoreRow]]) -> None:
        """Add a model's scored replies, by data set; one run per stage (sighted, blind, ...) and prompt set."""
        places = {(question.dataset, question.id): k for k, question in enumerate(self.questions)}
        parted: dict[tuple[str, str], list[tuple[int, ScoreRow]]] = defaultdict(list)
        for dataset, found in rows.items():
            for row in found:
                place = places.get((dataset, row.id))
                if place is not None:
                    parted[row.stage, row.prompt_set].append((place, row))
        for stage, prompt_set in sorted(parted, key=lambda key: (key[0], key[1] not in ("", PAPER), key[1])):
            told = ", ".join(part for part in (stage, prompt_set) if part not in ("", PAPER))
            name = f"{model} ({told})" if told else model
            self.runs[name] = _make_run(name, (model, stage, prompt_set), self.questions, parted[stage, prompt_set])


_GRADED = ("delta_2", "delta_125", "mra", "relative_error")
_AVERAGED = ("score", "official", "headline", "strict", "followed", "made", *_GRADED)


def _make_run(
    name: str, key: tuple[str, str, str], questions: Sequence[Entry], rows: Sequence[tuple[int, ScoreRow]]
) -> BoardRun:
    """Average the repeats of every question.

    Args:
        name: of the run.
        key: model, stage and prompt set.
        questions: of the board.
        rows: the run's scored replies, each with the place of its question.
    """
    model, stage, prompt_set = key
    n = len(questions)
    means = {measure: _Mean(n) for measure in _AVERAGED}
    counts = np.zeros((n, len(OUTCOMES)))
    extracted: list[str | float | None] = [None] * n
    turned: dict[int, dict[int, float]] = defaultdict(dict)
    circled = np.zeros(n, dtype=np.bool_)
    for place, row in rows:
        if row.outcome != "failed":
            turned[place][row.rotation] = min(turned[place].get(row.rotation, 1.0), float(row.score >= 1))
        if row.rotation:
            circled[place] = True
            continue
        counts[place, OUTCOMES.index(row.outcome)] += 1
        if row.outcome == "failed":
            continue
        for measure, value in _list_measures(row, questions[place]):
            means[measure].add(place, value)
        if extracted[place] is None:
            extracted[place] = row.extracted
    costs = [row.cost_usd for _, row in rows if not math.isnan(row.cost_usd)]
    return BoardRun(
        name=name,
        model=model,
        prompt_set=prompt_set,
        stage=stage,
        **{measure: mean.values for measure, mean in means.items()},
        circular=_score_circular(questions, turned),
        circled=circled,
        counts=counts,
        extracted=extracted,
        epochs=1 + max((row.epoch for _, row in rows), default=0),
        cost_usd=math.fsum(costs) if costs else math.nan,
        cost_known=len(costs),
    )


def _list_measures(row: ScoreRow, question: Entry) -> Iterator[tuple[str, float]]:
    """Yield the name and value of every number of one reply that is averaged over repeats."""
    yield "score", row.score
    yield "official", row.official
    yield "headline", row.delta_125 if question.rule == "delta" else row.score
    yield "strict", row.strict
    yield "followed", float(row.followed)
    if row.made is not None:
        yield "made", float(row.made)
    if question.kind not in ("letter", "yes_no", "text"):
        for measure in _GRADED:
            yield measure, getattr(row, measure)


class _Mean:
    """Means per place, NaN where nothing was added."""

    def __init__(self, n: int) -> None:
        self._sums, self._counts = np.zeros(n), np.zeros(n)

    def add(self, place: int, value: float) -> None:
        self._sums[place] += value
        self._counts[place] += 1

    @property
    def values(self) -> FloatArray:
        with np.errstate(invalid="ignore"):
            return np.asarray(np.where(self._counts > 0, self._sums / self._counts, np.nan))


def _score_circular(questions: Sequence[Entry], turned: Mapping[int, Mapping[int, float]]) -> FloatArray:
    found = np.full(len(questions), np.nan)
    for place, rights in turned.items():
        options = questions[place].options
        if options > 1 and set(rights) >= set(range(options)):
            found[place] = min(rights[rotation] for rotation in range(options))
    return found


def count_confusion(board: Board, run: BoardRun, mask: BoolArray) -> dict[str, dict[str, int]]:
    """Truth -> what was answered -> how often, for letters or yes and no; what is no answer goes by its outcome."""
    table: dict[str, Counter[str]] = defaultdict(Counter)
    for k in np.flatnonzero(mask & run.answered):
        truth, said = str(board.questions[k].truth), run.extracted[k]
        refused = run.counts[k, OUTCOMES.index("refused")] > 0
        table[truth][str(said) if said is not None else "refused" if refused else "unreadable"] += 1
    return {truth: dict(sorted(table[truth].items())) for truth in sorted(table)}
