"""Scored replies of several models over one or more data sets, put on one board."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from vgbench_gen.agent.backend import uses_oracle
from vgbench_gen.core.errors import DatasetError
from vgbench_gen.evaluation.base import Source
from vgbench_gen.evaluation.board import ORACLE, Board, Entry, ScoreRow
from vgbench_gen.evaluation.replies import find_first_failure
from vgbench_gen.evaluation.saved import SavedScores, score_source

_TOLD = {
    "unknown_id": "to questions that the data set does not have",
    "other_request": "to other words, options or images",
    "other_stage": "of a stage that is no answer",
    "bad_rotation": "in an order of options that there is not",
    "bad_question": "to questions whose truth cannot be read",
    "other_settings": "at other settings (`vgbench eval` with those puts them in force and asks nothing twice)",
}


def load_board(
    sources: Mapping[str, Source],
    names: Sequence[str] = (),
    progress: Callable[[str, int, int], None] = lambda name, done, total: None,
    replies: Path | None = None,
) -> Board:
    """Score what is not scored yet and gather everything; the board holds the questions that anybody was asked.

    Args:
        sources: by name of the data set.
        names: of models; all where empty.
        progress: as in `score_source`.
        replies: folder of the replies, `replies` of each data set where None.

    Raises:
        DatasetError: no replies, or none that belong to the data sets.
    """
    notes: list[str] = []
    saved = {
        name: tuple(score_source(source, names, progress=progress, replies=replies, notes=notes))
        for name, source in sources.items()
    }
    entries: list[Entry] = []
    for name, source in sources.items():
        asked = {key: question for one in saved[name] for key, question in one.questions.items()}
        ids = [row.id for row in source.rows()]
        entries += [replace(asked[one], dataset=name) for one in ids if one in asked]
        notes += _make_notes(name, saved[name], len(asked), len(ids))
    if not entries:
        raise DatasetError(f"{', '.join(sources)}: found no reply that belongs to a question; {'; '.join(notes)}")
    board = Board(entries)
    board.saved = saved
    for name, files in group_by_model(saved).items():
        board.add(name, _collect_rows(files))
        replied = {(row.stage, row.prompt_set) for _, one in files for row in one.rows if _is_answer(row)}
        for run in board.runs.values():
            if run.model == name and (run.stage, run.prompt_set) not in replied:
                reasons = (find_first_failure(one.replies, run.stage, run.prompt_set) for _, one in files)
                board.runs[run.name] = run._replace(failure=next(filter(None, reasons), ""))
        if not replied:
            paths = ", ".join(str(one.replies) for _, one in files)
            notes.append(f"{name}: delete {paths} to drop its row, or run its `vgbench eval` again.")
    board.notes = tuple(notes)
    return board


def _is_answer(row: ScoreRow) -> bool:
    return row.outcome != "failed" and not row.rotation


def _make_notes(name: str, saved: Sequence[SavedScores], asked: int, total: int) -> list[str]:
    found = [f"{name}: {asked:,} of {total:,} questions were asked."] if asked < total else []
    for one in saved:
        for reason, count in one.header.ignored.items():
            found.append(f"{name}, {one.header.spec}: {count:,} replies {_TOLD.get(reason, reason)} are not scored.")
    return found


def group_by_model(saved: Mapping[str, Sequence[SavedScores]]) -> dict[str, list[tuple[str, SavedScores]]]:
    """Name -> (data set, file of scores); a model goes by its name, or by its spec where two have the same name.

    Names of agents with oracle tools say so (`board.ORACLE`).
    """
    specs: dict[str, set[str]] = defaultdict(set)
    for files in saved.values():
        for one in files:
            specs[one.header.model].add(one.header.spec)
    found: dict[str, list[tuple[str, SavedScores]]] = defaultdict(list)
    for dataset, files in saved.items():
        for one in files:
            header = one.header
            name = header.model if header.model and len(specs[header.model]) == 1 else header.spec
            found[name + ORACLE if uses_oracle(header.spec) else name].append((dataset, one))
    return dict(sorted(found.items()))


def _collect_rows(files: Sequence[tuple[str, SavedScores]]) -> dict[str, tuple[ScoreRow, ...]]:
    """Data set -> rows of a model's files."""
    found: dict[str, tuple[ScoreRow, ...]] = {}
    for dataset, one in files:
        found[dataset] = found.get(dataset, ()) + one.rows
    return found
