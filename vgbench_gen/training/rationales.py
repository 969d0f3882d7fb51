"""Rationales: reasoning before the answer of a training row, written from the row's evidence and checked."""

from __future__ import annotations

from functools import cache

from vgbench_gen.core.errors import ConfigError
from vgbench_gen.core.rng import hash_stably
from vgbench_gen.core.stand_ins import config_error
from vgbench_gen.core.types import ALPHABET, NOTATIONS, Item, Notation
from vgbench_gen.quality.verify import Problem, RowsJob
from vgbench_gen.store.dataset import load
from vgbench_gen.tasks.base import Task, tasks
from vgbench_gen.tasks.explaining import Explainer
from vgbench_gen.tasks.row_evidence import UNREADABLE, RowEvidence, rebuild_fact
from vgbench_gen.text.bank import find_origin
from vgbench_gen.text.render import fill_word, load_phrasings
from vgbench_gen.text.steps import LENGTHS, Length, find_difference, list_rationales


def make_rationale(item: Item, length: Length) -> tuple[str, str]:
    """(the rationale, "") of a row, or ("", why it has none): it cannot be written, or does not hold when it is
    checked. The wording follows from the row's id."""
    try:
        texts, _ = list_texts(item, length)
    except ConfigError as error:
        return "", str(error)
    except UNREADABLE as error:
        return "", f"the evidence does not give the steps ({type(error).__name__})"
    text = texts[int(hash_stably("rationale", item.id), 16) % len(texts)]
    problem = find_rationale_problem(item, text)
    return ("", f"the rationale does not hold: {problem}") if problem else (text, "")


def list_texts(item: Item, length: Length, exact: bool = False) -> tuple[list[str], str]:
    """(the rationale of a row in every wording, the answer that it names); exact: with numbers that are not rounded
    and were reached in another way.

    Raises:
        ConfigError: there are no rationales of the row's task, or in its language.
        DatasetError, GeometryError, LookupError, ValueError: the row's evidence is damaged.
    """
    if item.task not in tasks:
        raise config_error(f"task {item.task!r}", "no rationales", "a kind of ours, which have some", "Leave them out.")
    template, language = find_origin(item.template_id)
    if language != "en":
        where, expected = f"item {item.id}", "one in English, as rationales are"
        raise config_error(where, f"a text in {language!r}", expected, "Leave them out.")
    told = (n for n in NOTATIONS if template in {p.id for p in load_phrasings(item.task, item.question_type, n)})
    task, row = _find_task(item.task, next(told, NOTATIONS[0])), RowEvidence.of(item)
    slots, form = task.explain(rebuild_fact(item), Explainer(row=row, exact=exact)), str(item.question_type)
    if form == "multi-choice":
        place = [option.key for option in row.options].index(row.truth.key)
        slots |= {"letter": ALPHABET[place], "option": item.options[place], "answer": ALPHABET[place]}
    elif row.claim is not None:
        form = "yes" if row.claim.holds else "no"
        slots["answer"] = fill_word(f"answer.{form}")
    return list(list_rationales(item.task, length, form, slots)), slots["answer"]


@cache
def _find_task(name: str, notation: Notation) -> Task:
    return tasks[name].in_notation(notation)


def find_rationale_problem(item: Item, text: str) -> str:
    """What does not hold in a rationale of a row; "" where each number, reached in another way than by who wrote it,
    rounds to what the text says, and the words, the letter and the verdict are the row's."""
    try:
        found = [list_texts(item, length, exact=True) for length in LENGTHS]
    except UNREADABLE as error:
        return f"{type(error).__name__}: {error}"
    problems = [find_difference(text, exact) for texts, _ in found for exact in texts]
    if "" not in problems:
        return min(problems, key=lambda problem: "its words" in problem)
    return f"it names another answer than {item.answer!r}" if find_difference(item.answer, found[0][1]) else ""


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
