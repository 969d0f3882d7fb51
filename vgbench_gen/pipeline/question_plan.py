"""The record that carries a question from its fact to the finished row, and the table that keeps it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from vgbench_gen.core.types import LETTERS, Candidate, QuestionType
from vgbench_gen.distractors.base import OptionSet
from vgbench_gen.store.columns import QUESTION_COLUMNS
from vgbench_gen.store.schema import RecordSchema, Row
from vgbench_gen.store.shards import read_metadata, read_shard, write_shard
from vgbench_gen.tasks.row_evidence import NoiseRecord

Key = tuple[str, QuestionType]
"""The group of a fact and the form in which it is asked."""
ASKED = "asked"
QUESTIONS = "questions.parquet"


@dataclass(frozen=True, slots=True, eq=False)
class QuestionPlan:
    """One fact in one form, from its fact to the finished row. Each stage fills in the fields that it decides.

    Reading the facts gives the fields up to `counterpart_kind`, asking those up to `noise`, and choosing the
    others. A plan is a hundredth of the size of its fact, so the plans of all scenes fit into one process.
    """

    task: str
    source: str
    split: str
    scene_id: str
    group_id: str
    """Hash of the fact (`pipeline.facts.make_plans`): the same truth asked in another form has the same one."""
    question_type: QuestionType
    row: int = 0
    """Place of the fact in its scene's shard."""
    ask: str = ""
    """Sub-kind of the task."""
    value: float = math.nan
    """The answer where it is one number, else NaN."""
    frame: str = ""
    """The first frame that is shown. Questions about one frame are written together."""
    counterpart_kind: str = ""
    """What the task calls the other side of the fact, where it may be asked from there as well; else ""."""
    places: int = len(LETTERS)
    """Of a multi-choice question, how many options it has."""

    draw: int = 0
    """Number of the draw of its options, or of its claims, that it is asked with (`pipeline.ask.choose_draws`)."""
    rejection_reason: str = ""
    """Why the fact cannot be asked so, or ""."""
    fallback: str = ""
    """As in `OptionSet`."""
    option_digests: tuple[str, ...] = ()
    """Digests of the options as printed, in any order, one for each side that can be asked. A set that stood under two
    truths would tell by comparison, so no two facts may share one."""
    noise: tuple[NoiseRecord, ...] = ()
    """What the noise test gave: as the fact is, then from the other side. A side that was not tested is missing."""

    difficulty: str = ""
    letter: int | None = None
    """Place of the right option; None where no letter was dealt."""
    side: str = ""
    """The side that is asked from: "" for the fact as it is, else `counterpart_kind`."""
    paired: bool = False
    """Whether it is one of two that ask the same truth from both sides."""

    proposed: tuple[Candidate, ...] = ()
    """Of a redrawing: values of a model, from which options are drawn in place of the fact's own pool."""
    options: OptionSet | None = None
    """Of a redrawing: the options that were drawn. Builds draw them again from their number, as a set of computed ones
    is larger than its question."""
    reworded: Mapping[int, Row] = field(default_factory=dict)
    """Of a redrawing: place -> row in its own wording, of the rows whose words a model gave."""

    @property
    def lead(self) -> float:
        """By how much its answer leads under noise, in standard deviations; NaN where that was not tested."""
        return self.noise[0].lead if self.noise else math.nan

    @property
    def key(self) -> Key:
        """The group and the form: unique but for the two sides of a pair."""
        return self.group_id, self.question_type

    @property
    def cell(self) -> str:
        """Task, form and source as reports name them."""
        return f"{self.task}/{self.question_type}/{self.source}"


def write_questions(
    folder: Path, outcomes: Iterable[tuple[QuestionPlan, str]], settings: Mapping[str, str | int]
) -> None:
    """Write `questions.parquet`: every fact in every form, with `ASKED` or the reason why it is not asked. The file is
    of use for the same settings alone."""
    ordered = sorted(outcomes, key=lambda pair: (pair[0].task, pair[0].question_type, pair[0].group_id))
    write_shard(folder / QUESTIONS, ordered, _QUESTIONS, {"settings": dict(settings)})


def read_questions(folder: Path, settings: Mapping[str, str | int]) -> list[tuple[QuestionPlan, str]] | None:
    """What `write_questions` wrote; None where the folder holds none, or some of other settings.

    Raises:
        DatasetError: the file is damaged.
    """
    path = folder / QUESTIONS
    if not path.is_file() or read_metadata(path).get("settings") != dict(settings):
        return None
    return read_shard(path, _QUESTIONS)


def _make_row(question: tuple[QuestionPlan, str]) -> Row:
    plan, outcome = question
    return {name: getattr(plan, name) for name in _PLANNED} | {"outcome": outcome}


_PLANNED = tuple(column.name for column in QUESTION_COLUMNS if column.name != "outcome")
_QUESTIONS: RecordSchema[tuple[QuestionPlan, str]] = RecordSchema(
    "questions",
    QUESTION_COLUMNS,
    _make_row,
    lambda row: (QuestionPlan(**{name: row[name] for name in _PLANNED}), row["outcome"]),
)
