"""Questions and the scored replies of several models side by side, as arrays: what tables are made of."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from vgbench_gen.core.rng import hash_stably
from vgbench_gen.core.types import BoolArray, FloatArray, IntArray, Item
from vgbench_gen.evaluation.answers.outcomes import OUTCOMES
from vgbench_gen.evaluation.scoring import Rule, find_rules, make_case
from vgbench_gen.importers.base import read_origin_index

PAPER = "paper"
MEASURES = ("score", "official", "headline", "strict")


@dataclass(frozen=True, slots=True)
class Entry:
    """What tables need to know of one question.

    source: the benchmark it was taken from, without what it is a part of ("SpatialScore/BLINK" is "BLINK").
    scans: data set of the scans. scene: cluster for intervals, unique over data sets. twin, pair: "" or the name that
    two items share. kind, truth, rule: see `scoring.AnswerKey`. chance: of a uniform guess, 0 for open questions.
    content: digest of all that a reader sees and of the answer; items that share it are one question, "" for none.
    """

    id: str
    dataset: str
    source: str
    task: str
    ask: str
    form: str
    category: str
    subcategory: str
    origin: str
    scans: str
    scene: str
    difficulty: str
    twin: str
    pair: str
    kind: str
    truth: str | float
    rule: Rule
    chance: float
    origin_id: str = ""
    options: int = 0
    content: str = ""


def make_entry(item: Item, dataset: str = "") -> Entry:
    """What tables need to know of a row.

    Raises:
        CaseError: its truth cannot be read.
    """
    key = find_rules(item.benchmark).answer_key(make_case(item))
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
    )


def digest_content(item: Item) -> str:
    """Digest of words, options, pictures and answer of an item, by which copies of one question are known."""
    said = (item.question, item.context, *item.options, item.answer)
    return hash_stably("content", item.question_type, str(len(said)), *said, *item.images)


@dataclass(frozen=True, slots=True)
class ScoreRow:
    """One scored reply as it is saved. extracted: as `cases.line_out` writes it. relative_error: NaN unless a number.

    cost_usd, latency_s, tokens: NaN where unknown. content: see `Entry.content`.
    """

    id: str
    rotation: int
    epoch: int
    stage: str
    prompt_set: str
    outcome: str
    status: str
    score: float
    official: float
    strict: float
    followed: bool
    extracted: str | float | None = None
    official_extracted: str | float | None = None
    delta_2: float = math.nan
    delta_125: float = math.nan
    mra: float = math.nan
    relative_error: float = math.nan
    cost_usd: float = math.nan
    latency_s: float = math.nan
    tokens: float = math.nan
    made: bool | None = None
    content: str = ""


@dataclass(eq=False)
class BoardRun:
    """One model with one prompt set over the questions of a board, in their order; repeats of a question are averaged.

    score: by the benchmark's metric. headline: with delta = 1.25 for lengths, strict: by the last line alone.
    NaN where there is no reply, or none but failed ones. counts: (n, 5) replies per outcome. circular: 1 where all
    rotations are right, NaN unless every rotation was answered; circled: where there was more than one. made: 1 where
    an image that was to be made first was there, NaN where none was to be. extracted: of
    the first reply. cost_known: replies whose price is known.
    """

    name: str
    model: str
    prompt_set: str
    stage: str
    score: FloatArray
    official: FloatArray
    headline: FloatArray
    strict: FloatArray
    followed: FloatArray
    delta_2: FloatArray
    delta_125: FloatArray
    mra: FloatArray
    relative_error: FloatArray
    circular: FloatArray
    circled: BoolArray
    made: FloatArray
    counts: FloatArray
    extracted: list[str | float | None]
    epochs: int
    cost_usd: float
    cost_known: int

    @cached_property
    def asked(self) -> BoolArray:
        """Where there is a reply of any outcome."""
        return np.asarray(self.counts.sum(axis=1) > 0)

    @cached_property
    def answered(self) -> BoolArray:
        """Where there is a reply that did not fail."""
        return ~np.isnan(self.score)

    def values(self, measure: str) -> FloatArray:
        """The scores (n,) of one of `MEASURES`."""
        found: FloatArray = getattr(self, measure)
        return found


@dataclass(eq=False)
class Board:
    """Questions, and runs over them by name."""

    questions: tuple[Entry, ...]
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
            self.runs[name] = _run(name, (model, stage, prompt_set), self.questions, parted[stage, prompt_set])


def _run(
    name: str, key: tuple[str, str, str], questions: Sequence[Entry], rows: Sequence[tuple[int, ScoreRow]]
) -> BoardRun:
    model, stage, prompt_set = key
    n = len(questions)
    means = {
        key: _Mean(n)
        for key in (
            "score",
            "official",
            "headline",
            "strict",
            "followed",
            "delta_2",
            "delta_125",
            "mra",
            "error",
            "made",
        )
    }
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
        by_delta = questions[place].rule == "delta"
        means["score"].add(place, row.score)
        means["official"].add(place, row.official)
        means["headline"].add(place, row.delta_125 if by_delta else row.score)
        means["strict"].add(place, row.strict)
        means["followed"].add(place, float(row.followed))
        if row.made is not None:
            means["made"].add(place, float(row.made))
        if questions[place].kind not in ("letter", "yes_no", "text"):
            means["delta_2"].add(place, row.delta_2)
            means["delta_125"].add(place, row.delta_125)
            means["mra"].add(place, row.mra)
            means["error"].add(place, row.relative_error)
        if extracted[place] is None:
            extracted[place] = row.extracted
    costs = [row.cost_usd for _, row in rows if not math.isnan(row.cost_usd)]
    return BoardRun(
        name=name,
        model=model,
        prompt_set=prompt_set,
        stage=stage,
        score=means["score"].values,
        official=means["official"].values,
        headline=means["headline"].values,
        strict=means["strict"].values,
        followed=means["followed"].values,
        delta_2=means["delta_2"].values,
        delta_125=means["delta_125"].values,
        mra=means["mra"].values,
        relative_error=means["error"].values,
        circular=_score_circular(questions, turned),
        circled=circled,
        made=means["made"].values,
        counts=counts,
        extracted=extracted,
        epochs=1 + max((row.epoch for _, row in rows), default=0),
        cost_usd=math.fsum(costs) if costs else math.nan,
        cost_known=len(costs),
    )


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
