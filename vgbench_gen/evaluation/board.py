"""Questions and the scored replies of several models as frames of pandas: what tables are made of."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from vgbench_gen.core.rng import hash_stably
from vgbench_gen.core.types import BoolArray, FloatArray, IntArray, Item
from vgbench_gen.evaluation.answers.outcomes import OUTCOMES
from vgbench_gen.evaluation.records import ReplyKey
from vgbench_gen.evaluation.scoring import Rule, find_rules, make_case
from vgbench_gen.importers.base import read_origin_index

if TYPE_CHECKING:
    import pandas as pd  # it loads when used: 40 MB

    from vgbench_gen.evaluation.saved import SavedScores

PAPER = "paper"
BASELINE = "baseline:"  # how names of models begin that are no models
ORACLE = " (oracle)"  # how names of models end whose tools answer from the rows; no table ranks them


@dataclass(frozen=True, slots=True)
class Entry:
    """What tables need to know of one question; what `Item` has by the same name means the same."""

    id: str
    """The question's id within its data set."""
    dataset: str = ""
    """The name of the data set; "" in a file of scores, which lies beside it."""
    source: str = ""
    """The benchmark it was taken from, without what that is a part of: "SpatialScore/BLINK" is "BLINK"."""
    task: str = ""
    ask: str = ""
    question_type: str = ""
    """The question type: "multi-choice", "judgment", "open-ended" and so on."""
    category: str = ""
    subcategory: str = ""
    origin: str = ""
    """What the benchmark that it was taken from calls its kind (`Item.category_origin`)."""
    scans: str = ""
    """The data set of its scans or images."""
    scene: str = ""
    """Its scene, unique over data sets. Intervals are drawn over scenes."""
    difficulty: str = ""
    twin: str = ""
    """The name that a true and a false claim about one truth share; "" where there is no twin."""
    pair: str = ""
    """The name that two questions about one truth from two sides share; "" where there is none."""
    kind: str = ""
    """What kind of answer is right (`AnswerKey.kind`)."""
    truth: str | float = ""
    """The right answer (`AnswerKey.truth`)."""
    rule: Rule = "exact"
    """How an answer is compared with it (`AnswerKey.rule`)."""
    chance: float = 0.0
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


def make_entry(item: Item) -> Entry:
    """What tables need to know of a row.

    Raises:
        CaseError: its truth cannot be read.
    """
    rules = find_rules(item.benchmark)
    key = rules.answer_key(make_case(item))
    options = len(item.options) or len(key.letters) if key.kind == "letter" else 0
    return Entry(
        id=item.id,
        source=item.benchmark.rpartition("/")[2],
        task=item.task,
        ask=item.ask,
        question_type=item.question_type,
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
    extracted: str | int | float | None = None
    """The answer that we read, lengths in meters; None where there is none."""
    official_extracted: str | int | float | None = None
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
    settings: str = ""
    """Digest of how it was asked (`ReplyKey.settings`)."""

    @property
    def key(self) -> ReplyKey:
        """What it is a reply to."""
        return ReplyKey(self.id, self.rotation, self.epoch, self.stage, self.prompt_set, self.settings)


class BoardRun(NamedTuple):
    """One model with one prompt set and stage; what it answered is in `Board.answers`."""

    name: str
    """The run's name in tables: the model, with stage and prompt set where they are not the usual ones."""
    model: str
    stage: str
    """See `ReplyKey.stage`."""
    prompt_set: str
    """The prompt set whose words were sent."""
    baseline: bool
    """Whether it is no model."""
    oracle: bool
    """Whether its tools answer from the rows."""
    cost_usd: float
    """What all replies cost whose price is known; NaN where none is."""
    cost_known: int
    """For how many replies that is."""
    failure: str = ""
    """Why the first request failed, where all did and it is known."""


_GRADED = ("delta_2", "delta_125", "mra", "relative_error")
_AVERAGED = ("score", "official", "headline", "strict", "followed", "made", *_GRADED)
_WORDED = ("letter", "yes_no", "text")  # kinds of answers that are no numbers


class Board:
    """Questions, and the replies of several runs to them.

    Args:
        questions: all of them, in the order of every mask (n,) and of the answers of a run.

    Attributes:
        runs: by name. rows: the scored replies of each run, each with the place of its question. saved: the files of
            scores by data set, where replies were read from files. notes: what is not as a reader may expect, in
            sentences.
    """

    def __init__(self, questions: Sequence[Entry]) -> None:
        self.questions = tuple(questions)
        self.runs: dict[str, BoardRun] = {}
        self.rows: dict[str, list[tuple[int, ScoreRow]]] = {}
        self.saved: Mapping[str, Sequence[SavedScores]] = {}
        self.notes: tuple[str, ...] = ()

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
        """Add a model's scored replies, by data set; one run per stage (sighted, blind, ...) and prompt set.

        A run that is there already is replaced.
        """
        parted: dict[tuple[str, str], list[tuple[int, ScoreRow]]] = defaultdict(list)
        for dataset, found in rows.items():
            for row in found:
                place = self._places.get((dataset, row.id))
                if place is not None:
                    parted[row.stage, row.prompt_set].append((place, row))
        for stage, prompt_set in sorted(parted, key=lambda key: (key[0], key[1] not in ("", PAPER), key[1])):
            told = ", ".join(part for part in (stage, prompt_set) if part not in ("", PAPER))
            name = f"{model} ({told})" if told else model
            own = parted[stage, prompt_set]
            costs = [row.cost_usd for _, row in own if not math.isnan(row.cost_usd)]
            spent = math.fsum(costs) if costs else math.nan
            kind = model.startswith(BASELINE), model.endswith(ORACLE)
            self.rows[name] = own
            self.runs[name] = BoardRun(name, model, stage, prompt_set, *kind, spent, len(costs))
        self.__dict__.pop("answers", None)  # they are made anew

    @cached_property
    def _places(self) -> dict[tuple[str, str], int]:
        return {(question.dataset, question.id): k for k, question in enumerate(self.questions)}

    @property
    def replies(self) -> pd.DataFrame:
        """One row per scored reply: number of the run, place of the question, and what `ScoreRow` says of the reply,
        with `headline`, which is `score` with delta = 1.25 for lengths."""
        import pandas as pd

        columns = ("rotation", "outcome", "score", "official", "strict", "followed", "made", "extracted", *_GRADED)
        found = [(run, place, row) for run, name in enumerate(self.runs) for place, row in self.rows[name]]
        rows = [row for _, _, row in found]
        frame = pd.DataFrame([(run, place) for run, place, _ in found], columns=["run", "place"], dtype=np.int64)
        for name in columns:
            kind = object if name in ("outcome", "extracted") else np.int64 if name == "rotation" else np.float64
            values = (getattr(row, name) for row in rows)
            frame[name] = pd.Series(np.fromiter(values, dtype=kind, count=len(rows)), dtype=kind)
        rules, kinds = (np.array([getattr(one, name) for one in self.questions]) for name in ("rule", "kind"))
        places = frame["place"].to_numpy(np.int64)
        frame["headline"] = np.where(rules[places] == "delta", frame["delta_125"], frame["score"])
        frame.loc[np.isin(kinds[places], _WORDED), [*_GRADED]] = math.nan
        return frame

    @cached_property
    def answers(self) -> pd.DataFrame:
        """One row per run and question, see `one_per_question`."""
        return one_per_question(self)

    def answers_of(self, run: str) -> pd.DataFrame:
        """The n rows of `answers` of one run, by the places of the questions."""
        n, k = len(self.questions), [*self.runs].index(run)
        return self.answers.iloc[k * n : (k + 1) * n].reset_index(drop=True)


def one_per_question(board: Board) -> pd.DataFrame:
    """What each run answered to each question: a row also where it was not asked, by runs and places of questions.

    Numbers are means over repeats, NaN where there is no reply, or none but failed ones; replies in another order of
    the options count for `circular` alone. Columns:

    - run, place: numbers of the run and of the question; question: its `Entry`; scene: the number of its scene.
    - copy_of: `Board.contents`; copy_scene: the scene of that question.
    - score, official, headline, strict, followed, made, delta_2, delta_125, mra, relative_error: means.
    - circular: 1 where the answer is right in every order of the options, NaN unless every order was answered;
      circled: whether it was asked in more than one order.
    - extracted: the first answer that was read; None where there is none.
    - right, wrong, unreadable, refused, failed: numbers of replies.
    - asked: whether there is a reply of any outcome; answered: whether there is one that did not fail.
    - declined: whether a baseline did not try: it refused in every reply. A model that refuses has tried.
    """
    import pandas as pd

    n, runs = len(board.questions), len(board.runs)
    replies, size = board.replies, n * runs
    replies["cell"] = replies["run"] * n + replies["place"]
    first_order = replies[replies["rotation"] == 0]
    replied = replies[replies["outcome"] != "failed"]
    built = replied[replied["rotation"] == 0]
    scenes = np.unique(np.asarray(board.scenes, dtype=np.str_), return_inverse=True)[1]
    own = {"place": np.arange(n), "scene": scenes, "copy_of": board.contents, "copy_scene": scenes[board.contents]}
    frame = pd.DataFrame({"run": np.repeat(np.arange(runs), n)} | {key: np.tile(v, runs) for key, v in own.items()})
    frame["question"] = pd.Series([*board.questions] * runs, dtype=object)
    for measure in _AVERAGED:
        counted = built[built[measure].notna()] if measure == "made" else built
        cells = counted["cell"].to_numpy(np.int64)
        sums = np.bincount(cells, weights=counted[measure].to_numpy(), minlength=size)
        with np.errstate(invalid="ignore"):
            frame[measure] = sums / np.bincount(cells, minlength=size)
    for outcome in OUTCOMES:
        counted = first_order[first_order["outcome"] == outcome]
        frame[outcome] = np.bincount(counted["cell"].to_numpy(np.int64), minlength=size)
    frame["circular"] = _score_circular(board, replied)
    frame["circled"] = np.isin(np.arange(size), replies["cell"][replies["rotation"] != 0])
    read = built[built["extracted"].notna()].drop_duplicates("cell")
    extracted = np.full(size, None, dtype=object)
    extracted[read["cell"].to_numpy(np.int64)] = read["extracted"].to_numpy()
    frame["extracted"] = pd.Series(extracted, dtype=object)
    total = frame[[*OUTCOMES]].sum(axis=1)
    frame["asked"], frame["answered"] = total > 0, frame["score"].notna()
    baselines = np.repeat([run.baseline for run in board.runs.values()], n)
    frame["declined"] = frame["asked"] & (frame["refused"] == total) & baselines
    return frame


def _score_circular(board: Board, replied: pd.DataFrame) -> FloatArray:
    """(runs * n,) whether a question is right in every order of its options."""
    options = np.array([question.options for question in board.questions], dtype=np.int64)
    size = len(options) * len(board.runs)
    needed = np.tile(options, len(board.runs))
    turned = replied[replied["rotation"].to_numpy() < options[replied["place"].to_numpy(np.int64)]]
    cells, missed = turned["cell"].to_numpy(np.int64), turned["score"].to_numpy() < 1
    orders = np.bincount(turned.drop_duplicates(["cell", "rotation"])["cell"].to_numpy(np.int64), minlength=size)
    right = np.bincount(cells, weights=missed, minlength=size) == 0
    return np.where((needed > 1) & (orders == needed), right.astype(np.float64), np.nan)


def count_confusion(board: Board, run: str, mask: BoolArray) -> dict[str, dict[str, int]]:
    """Truth -> what was answered -> how often, for letters or yes and no; what is no answer goes by its outcome."""
    table: dict[str, Counter[str]] = defaultdict(Counter)
    answers = board.answers_of(run)
    read = answers[mask & answers["answered"]][["question", "extracted", "refused"]]
    for entry, extracted, refused in read.to_numpy(dtype=object):
        said = extracted if extracted is not None else "refused" if refused else "unreadable"
        table[str(entry.truth)][str(said)] += 1
    return {truth: dict(sorted(table[truth].items())) for truth in sorted(table)}
