"""Scores as Python takes them: one record per model, and tables of pandas."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any, Self

from vgbench_gen.core.errors import VGBenchError
from vgbench_gen.evaluation.answers.outcomes import OUTCOMES
from vgbench_gen.evaluation.base import Source, benchmarks
from vgbench_gen.evaluation.board import Entry, ScoreRow
from vgbench_gen.evaluation.imported import take_replies
from vgbench_gen.evaluation.loaded import LoadedDataset
from vgbench_gen.evaluation.metrics import average_macro, average_micro
from vgbench_gen.evaluation.options import AskOptions
from vgbench_gen.evaluation.replies import find_first_failure
from vgbench_gen.evaluation.saved import SavedScores, score_files, score_source
from vgbench_gen.evaluation.session import Run


@dataclass(frozen=True, eq=False)
class ModelScores:
    """The scored replies of one model."""

    saved: SavedScores = field(repr=False)
    stage: str = ""
    """Of the replies that means are over; see `ReplyKey.stage`."""

    @cached_property
    def figures(self) -> dict[str, Any]:
        """What `vgbench compare --json` prints of it: counts by outcome, and means over replies that did not fail, with
        the options in the order as built. `sane` is the score as we read replies, `official` by the published script,
        `*_distinct` where copies of a question count once; None where there is nothing to average."""
        saved = self.saved
        counts = Counter(row.outcome for row in saved.rows)
        all_failed = 0 < counts["failed"] == len(saved.rows)
        rows = [row for row in saved.rows if row.outcome != "failed" and row.stage == self.stage and not row.rotation]
        contents = {key: question.content for key, question in saved.questions.items()}
        sane, official = defaultdict[str, list[float]](list), defaultdict[str, list[float]](list)
        for row in rows:
            sane[contents.get(row.id) or row.id].append(row.score)
            official[contents.get(row.id) or row.id].append(row.official)
        copies = len(sane) < len({row.id for row in rows})
        return {
            "model": saved.header.model or saved.header.spec,
            "spec": saved.header.spec,
            "path": str(saved.path),
            "fresh": saved.fresh,
            "scorer_version": saved.header.scorer_version,
            "scored": len(saved.rows),
            "averaged": len(rows),
            "outcomes": {outcome: counts[outcome] for outcome in OUTCOMES},
            "failure": find_first_failure(saved.replies) if all_failed else "",
            "ignored": dict(saved.header.ignored),
            "sane": average_micro(row.score for row in rows) if rows else None,
            "official": average_micro(row.official for row in rows) if rows else None,
            "differ": sum(row.score != row.official for row in rows),
            "distinct": len(sane) if copies else 0,
            "sane_distinct": average_macro(sane) if copies else None,
            "official_distinct": average_macro(official) if copies else None,
        }

    @property
    def accuracy(self) -> float:
        """The mean score as we read replies, 0 to 1; NaN where no reply was scored."""
        return math.nan if self.figures["sane"] is None else float(self.figures["sane"])

    def __repr__(self) -> str:
        return f"<Scores of {self.figures['model']}: {self.figures['scored']:,} replies, accuracy {self.accuracy:.4f}>"

    def to_pandas(self) -> Any:
        """A `pandas.DataFrame`, a row per scored reply: what `ScoreRow` says of it, and `Entry` of its question."""
        import pandas as pd

        frames = (
            pd.DataFrame({one.name: [getattr(row, one.name) for row in rows] for one in fields(kind)})
            for kind, rows in ((ScoreRow, self.saved.rows), (Entry, self.saved.questions.values()))
        )
        scores, questions = frames
        return scores.merge(questions.drop(columns="dataset"), how="left", on="id")


class ScoreList(list[ModelScores]):
    """Scores of several models."""

    def to_pandas(self) -> Any:
        """A `pandas.DataFrame`, a row per model."""
        import pandas as pd

        return pd.DataFrame([one.figures | {"accuracy": one.accuracy} for one in self])


def score(
    dataset: str | PathLike[str] | LoadedDataset,
    models: Sequence[str] = (),
    *,
    benchmark: str = "vgbench",
    replies: str | PathLike[str] | None = None,
    again: bool = False,
) -> ScoreList:
    """Score the replies that are saved with a dataset; nothing is asked. One record per model.

    Args:
        dataset: as `vgbench_gen.load` takes it, or what it gives.
        models: names or specs of models; all where empty.
        benchmark: what kind of dataset it is.
        replies: as `vgbench compare --replies`: a folder or file of replies, or another program's log or a table, which
            is kept in `replies` of the dataset's folder, the default.
        again: even where saved scores rest on the same replies, dataset and scorer.

    Raises:
        DatasetError: the dataset or its replies cannot be read, or there are none.
    """
    source = benchmarks[benchmark].open(get_path(dataset))
    names = [models] if isinstance(models, str) else list(models)
    place = None if replies is None else Path(replies)
    if place is not None and (imported := take_replies(source, place)):
        names, place = [*names, imported.spec], None
    found = score_source(source, names, again=again, replies=place)
    return ScoreList(map(ModelScores, found))


def get_path(dataset: str | PathLike[str] | LoadedDataset) -> Path:
    """Where a dataset is."""
    return dataset.path if isinstance(dataset, LoadedDataset) else Path(dataset)


@dataclass
class ScoredRun(Run):
    """What became of one model, with its scores."""

    source: Source = field(kw_only=True, repr=False)
    options: AskOptions = field(kw_only=True, repr=False)
    ids: frozenset[str] = field(kw_only=True, repr=False)
    """Which of them were."""

    @classmethod
    def of(cls, run: Run, source: Source, options: AskOptions, ids: frozenset[str]) -> Self:
        """The run with what its scores need."""
        known = {one.name: getattr(run, one.name) for one in fields(Run)}
        return cls(**known, source=source, options=options, ids=ids)

    @cached_property
    def scores(self) -> ModelScores:
        """The scores of the replies to what was asked, in this run or before.

        Raises:
            DatasetError: the replies cannot be read.
        """
        (saved,) = score_files(self.source, [self.path])
        stage, words = self.options.stage, self.options.prompt_set
        rows = (row for row in saved.rows if (row.stage, row.prompt_set) == (stage, words) and row.id in self.ids)
        return ModelScores(replace(saved, rows=tuple(rows)), stage)

    @property
    def accuracy(self) -> float:
        """The mean score, 0 to 1, of the replies that did not fail; NaN where there is none."""
        return self.scores.accuracy if self.path.is_file() else math.nan

    def to_pandas(self) -> Any:
        """As `ModelScores.to_pandas`."""
        return self.scores.to_pandas()

    def __repr__(self) -> str:
        told = [f"{self.done:,} of {self.total:,} answered"]
        with suppress(VGBenchError):  # replies that are images, or a log that was moved
            told += [] if math.isnan(self.accuracy) else [f"accuracy {100 * self.accuracy:.1f} %"]
        return f"<Run {self.spec}: {', '.join(told)}{f', stopped: {self.stopped}' if self.stopped else ''}>"
