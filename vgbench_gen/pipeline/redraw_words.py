"""The words of a question whose options changed: filled again where they name the options, else as they were."""

from __future__ import annotations

from collections.abc import Mapping

from vgbench_gen.core.errors import DatasetError
from vgbench_gen.core.types import Item
from vgbench_gen.pipeline.question import QuestionRejectedError
from vgbench_gen.pipeline.recipe import Recipe
from vgbench_gen.text.bank import ITEM_MARK, find_origin, load_shipped
from vgbench_gen.text.paraphrase.rules import SLOT
from vgbench_gen.text.render import load_phrasings, render

REWORDED = "words_name_options"
"""Why a row may keep its options: nobody can say where its own wording names them."""


def refill_template(
    item: Item, before: Mapping[str, str], after: Mapping[str, str], recipe: Recipe
) -> tuple[str, str, str]:
    """(question, context, model that worded them) of a row whose options changed.

    A row that was reworded by itself has no template that gives its words. It keeps its wording, in which the new
    values take the place of the old ones.

    Args:
        item: the row as it was.
        before: slots of its old options.
        after: slots of the new ones.
        recipe: whose bank holds the wordings that are not shipped.

    Raises:
        QuestionRejectedError: the row has its own wording, and nobody can say where that names the options.
        DatasetError: the row's template is not known here.
    """
    if ITEM_MARK in item.template_id:
        return *_exchange_values(item, before, after), item.paraphrase
    bank = [*recipe.wording.phrasings, *load_phrasings(item.task, item.question_type)]
    phrasing = next((p for p in bank if p.id == item.template_id), None)
    if phrasing is None:
        raise DatasetError(
            f"item {item.id}: found template {item.template_id!r}, which is not in the phrasings of {item.task}; its "
            "words name the options and must be filled again. Use the version and the bank it was built with."
        )
    return *render(phrasing, after), phrasing.paraphrase


def _exchange_values(item: Item, before: Mapping[str, str], after: Mapping[str, str]) -> tuple[str, str]:
    """Question and context with other values.

    Raises:
        QuestionRejectedError: they do not hold each old value to the letter and once.
    """
    phrasing = load_shipped().get(find_origin(item.template_id)[0])
    if phrasing is None or before.keys() != after.keys():
        raise QuestionRejectedError(REWORDED)
    named = {match[1] for text in (phrasing.question, phrasing.context) for match in SLOT.finditer(text)}
    texts = [item.question, item.context]
    places = []
    for name in sorted(name for name in named & before.keys() if before[name] != after[name]):
        found = [(k, text.find(before[name])) for k, text in enumerate(texts) if before[name] in text]
        if len(found) != 1 or texts[found[0][0]].count(before[name]) != 1:
            raise QuestionRejectedError(REWORDED)
        places.append((*found[0], before[name], after[name]))
    places.sort(reverse=True)  # from the end, so that the places in front stay where they are
    for (k, start, old, _), (other, behind, *_) in zip(places[1:], places, strict=False):
        if k == other and start + len(old) > behind:
            raise QuestionRejectedError(REWORDED)
    for k, start, old, new in places:
        texts[k] = texts[k][:start] + new + texts[k][start + len(old) :]
    return texts[0], texts[1]
