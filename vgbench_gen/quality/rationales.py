"""Whether a rationale says what the row's evidence gives, number by number and word by word."""

from __future__ import annotations

from functools import cache

from vgbench_gen.core.stand_ins import config_error
from vgbench_gen.core.types import ALPHABET, NOTATIONS, Item, Notation
from vgbench_gen.tasks.base import Problems, Task, tasks
from vgbench_gen.tasks.explaining import Explainer
from vgbench_gen.tasks.row_evidence import UNREADABLE, RowEvidence, rebuild_fact
from vgbench_gen.text.bank import find_origin
from vgbench_gen.text.render import fill_word, load_phrasings
from vgbench_gen.text.steps import LENGTHS, Length, find_difference, list_rationales


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


def find_rationale_problems(item: Item, text: str) -> Problems:
    """(check, detail) of all that does not hold in a rationale of a row; none where each number, reached in another way
    than by who wrote it, rounds to what the text says, and the words, the letter and the verdict are the row's."""
    try:
        found = [list_texts(item, length, exact=True) for length in LENGTHS]
    except UNREADABLE as error:
        return [("rationale", f"{type(error).__name__}: {error}")]
    problems = [find_difference(text, exact) for texts, _ in found for exact in texts]
    if "" not in problems:
        return [("rationale", min(problems, key=lambda problem: "its words" in problem))]
    off = find_difference(item.answer, found[0][1])
    return [("rationale", f"it names another answer than {item.answer!r}")] if off else []
