"""How hard each question is: by what its row keeps, by who answered it right, and by the fit of `fit_rasch` to all
answers. A file of JSON lines beside the items, for samplers; a table in parquet there could be taken for items."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from pydantic_core import to_json

from vgbench_gen.core.types import FloatArray, Item
from vgbench_gen.evaluation.base import Source
from vgbench_gen.evaluation.baselines import PREFIX, read_all_items
from vgbench_gen.evaluation.board import Board
from vgbench_gen.evaluation.compare import load_board
from vgbench_gen.evaluation.hard import vote_of
from vgbench_gen.evaluation.replies import FOLDER as REPLIES
from vgbench_gen.evaluation.replies import name_replies_file
from vgbench_gen.store.files import dataset_error, replace_file
from vgbench_gen.tasks.base import tasks
from vgbench_gen.tasks.row_evidence import UNREADABLE, RowEvidence, rebuild_fact
from vgbench_gen.training.irt import RaschFit, fit_rasch

if TYPE_CHECKING:
    import pandas as pd  # it loads when used: 40 MB

FILE = "difficulty.jsonl"
SOLVERS = f"{PREFIX}solvers"
_SUSPECT = -1.5  # standard score of a correlation with ability; where ability does not matter, 1 in 15 is below


@dataclass(frozen=True, slots=True)
class DifficultyRow:
    """How hard one question is; NaN for what is not known."""

    id: str
    task: str
    question_type: str
    frames: int
    """Images shown."""
    hops: int = 0
    """Things to relate for the answer (`Task.count_hops`); 0 where the row keeps no evidence."""
    margin: float = math.nan
    """Smallest margin of a gate over its limit, at least 1."""
    lead: float = math.nan
    """`NoiseRecord.lead`."""
    overlap: float = math.nan
    """`TwoViewEvidence.overlap`, of kinds that measure a pair of views."""
    solver: Literal["right", "wrong", "none"] = "none"
    """Whether classical vision is right (saved replies of `baseline:solvers`); "none" where it did not try."""
    models: int = 0
    """Models that replied."""
    pass_rate: float = math.nan
    """Mean over models of the share of their replies that is right."""
    irt_difficulty: float = math.nan
    """Difficulty in logits, where 0 is the mean ability of the models."""
    irt_error: float = math.nan
    """Standard error of the difficulty."""
    point_biserial: float = math.nan
    """Correlation of being right with ability; below 0, weaker models get right what stronger ones miss, as where a key
    is wrong."""


@dataclass(frozen=True, slots=True)
class DifficultyReport:
    """The difficulties of all questions of a dataset."""

    rows: tuple[DifficultyRow, ...]
    """In the order of the dataset."""
    models: pd.DataFrame
    """By model: ability in logits about their mean, standard error of it, and answers; the strongest first."""
    tasks: pd.DataFrame
    """By task: count of answered questions, and 10, 50 and 90 % points of their difficulties; the hardest first."""
    spread: float
    """Standard deviation of the difficulties, logits."""
    notes: tuple[str, ...]
    """What a reader must know."""

    @property
    def suspects(self) -> list[DifficultyRow]:
        """Questions that stronger models miss and weaker ones get right, the worst first."""
        scores = {row.id: row.point_biserial * math.sqrt(max(row.models - 1, 0)) for row in self.rows}
        return sorted((row for row in self.rows if scores[row.id] < _SUSPECT), key=lambda row: scores[row.id])


def measure_difficulty(
    source: Source,
    names: Sequence[str] = (),
    progress: Callable[[str, int, int], None] = lambda name, done, total: None,
) -> DifficultyReport:
    """Measure how hard the questions of a dataset are; scores replies that have no score yet, and asks nothing.

    Args:
        source: the questions.
        names: of models; all but baselines and agents with oracle tools where empty.
        progress: as in `load_board`.

    Raises:
        DatasetError: no replies, replies of fewer than two models, or a file that cannot be read.
    """
    import pandas as pd

    board, answers = _collect_answers(source, names, progress)
    fit = fit_rasch(answers.to_numpy(), np.array([one.chance for one in board.questions]))
    columns = _measure_answers(board, answers, fit)
    told: Any = columns.to_dict("index")
    rows = tuple(replace(describe_question(item), **told.get(item.id, {})) for item in read_all_items(source))
    models = pd.DataFrame({"ability": fit.abilities, "error": fit.ability_errors, "answered": answers.count()})
    models = models.rename_axis("model").sort_values("ability", ascending=False)
    kinds = columns.groupby(pd.Index([one.task for one in board.questions], name="task"))["irt_difficulty"]
    points = kinds.describe(percentiles=[0.1, 0.5, 0.9]).sort_values("50%", ascending=False).astype({"count": int})
    notes = () if SOLVERS in board.rows else (f"solver: no replies; `vgbench eval --model {SOLVERS}` gives them.",)
    return DifficultyReport(rows, models, points[["count", "10%", "50%", "90%"]], fit.spread, (*board.notes, *notes))


def _collect_answers(
    source: Source, names: Sequence[str], progress: Callable[[str, int, int], None]
) -> tuple[Board, pd.DataFrame]:
    """The board, and `share_right` of each run of a model on plain questions; oracle tools know the answers.

    Raises:
        DatasetError: as `measure_difficulty`.
    """
    import pandas as pd

    solved = name_replies_file(source.folder / REPLIES, SOLVERS).is_file()
    wanted = [*names, SOLVERS] if names and solved else names
    board = load_board({source.folder.resolve().name: source}, wanted, progress)
    plain = [run for run in board.runs.values() if not run.stage and not run.oracle]
    # Of named models others are not on the board, but perhaps the solvers.
    runs = [run.name for run in plain if (names and run.model != SOLVERS) or run.model in names or not run.baseline]
    answers = pd.DataFrame({run: share_right(board, run) for run in runs}).dropna(axis=1, how="all")
    if len(answers.columns) < 2:
        found = f"replies of {', '.join(map(str, answers)) or 'no model'}"
        remedy = "Ask another with `vgbench eval --model SPEC`; baselines count where --model names them."
        raise dataset_error(source.folder / REPLIES, found, "replies of two models at least", remedy)
    return board, answers


def _measure_answers(board: Board, answers: pd.DataFrame, fit: RaschFit) -> pd.DataFrame:
    """Columns of `DifficultyRow` by id of the question."""
    import pandas as pd

    solver = share_right(board, SOLVERS)
    columns = {
        "solver": np.where(np.isnan(solver), "none", np.where(solver >= 0.5, "right", "wrong")),
        "models": answers.count(axis=1),
        "pass_rate": answers.mean(axis=1),
        "irt_difficulty": fit.difficulties,
        "irt_error": fit.difficulty_errors,
        "point_biserial": answers.corrwith(answers * 0 + fit.abilities, axis=1),
    }
    return pd.DataFrame(columns).set_axis([one.id for one in board.questions])


def share_right(board: Board, run: str) -> FloatArray:
    """(questions,) share of a run's replies that are right, as `vote_of` counts them; NaN where none arrived.

    Replies in other orders of the options do not count, nor does what a baseline refused, since it did not try.
    """
    sums = np.zeros((2, len(board.questions)))
    for place, row in board.rows.get(run, ()):
        vote = vote_of(row, board.questions[place].rule)
        if not row.rotation and vote != "failed" and not (vote == "refused" and board.runs[run].baseline):
            sums[:, place] += vote == "right", 1
    with np.errstate(invalid="ignore"):
        return np.asarray(sums[0] / sums[1])


def describe_question(item: Item) -> DifficultyRow:
    """What a row itself tells of its difficulty; rows of other programs tell nothing but their images."""
    row = DifficultyRow(item.id, item.task, item.question_type, len(item.images))
    stored = RowEvidence.found(item)
    if stored is None or item.task not in tasks.names():
        return row
    try:
        fact, task = rebuild_fact(item), tasks[item.task]
        records = task.candidate_evidence.given(fact.truth_candidate), task.fact_evidence.of(fact)
        pair = next((found for record in records if record and (found := record.two_views())), None)
        row = replace(row, hops=task.count_hops(fact), margin=stored.margin)
    except UNREADABLE:
        return row
    lead, overlap = stored.noise.lead if stored.noise else math.nan, pair.overlap if pair else math.nan
    return replace(row, lead=lead, overlap=overlap)


def write_difficulty(path: Path, rows: Sequence[DifficultyRow]) -> None:
    """Write one JSON object per question; numbers that are not known are left out, the others rounded."""
    with replace_file(path) as temporary, temporary.open("wb") as file:
        for row in rows:
            known = {name: value for name, value in asdict(row).items() if value == value}  # NaN is not
            file.write(to_json({name: round(v, 4) if isinstance(v, float) else v for name, v in known.items()}) + b"\n")
