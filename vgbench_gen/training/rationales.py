"""Rationales: reasoning before the answer of a training row, written from the row's evidence."""

from __future__ import annotations

from vgbench_gen.core.errors import ConfigError
from vgbench_gen.core.rng import hash_stably
from vgbench_gen.core.types import Item
from vgbench_gen.quality.rationales import find_rationale_problems, list_texts
from vgbench_gen.quality.verify import Problem, RowsJob
from vgbench_gen.store.dataset import load
from vgbench_gen.tasks.row_evidence import UNREADABLE
from vgbench_gen.text.steps import LENGTHS, Length


def write_rationale(item: Item, length: Length) -> str:
    """The steps from what is seen to the answer; the last one names it. The wording follows from the row's id.

    Raises:
        ConfigError: there are no rationales of the row's task, or in its language.
        DatasetError, GeometryError, LookupError, ValueError: the row's evidence is damaged.
    """
    texts, _ = list_texts(item, length)
    return texts[int(hash_stably("rationale", item.id), 16) % len(texts)]


def make_rationale(item: Item, length: Length) -> tuple[str, str]:
    """(the rationale, "") of a row, or ("", why it has none): it cannot be written, or does not hold when it is
    checked."""
    try:
        text = write_rationale(item, length)
    except ConfigError as error:
        return "", str(error)
    except UNREADABLE as error:
        return "", f"the evidence does not give the steps ({type(error).__name__})"
    problems = find_rationale_problems(item, text)
    return ("", f"the rationale does not hold: {problems[0][1]}") if problems else (text, "")


def check_rationales(job: RowsJob) -> tuple[int, list[Problem]]:
    """(how many rationales of a stretch of rows hold, those that do not or cannot be written); both lengths of each
    row.

    Raises:
        DatasetError: the dataset cannot be read.
    """
    items, held, problems = load(job.path), 0, []
    for item in (items[row] for row in range(job.start, job.stop)):
        for length in LENGTHS:
            text, problem = make_rationale(item, length)
            held += bool(text)
            problems += [Problem(item.id, item.task, f"{length}_rationale", problem)] if problem else []
    return held, problems
