"""The words of a question whose options changed: filled again where they name the options, else as they were."""

from __future__ import annotations

from collections.abc import Mapping

from vgbench_gen.core.errors import DatasetError
from vgbench_gen.core.types import Item
from vgbench_gen.pipeline.recipe import Recipe
from vgbench_gen.tasks.base import Presentation
from vgbench_gen.text.bank import ITEM_MARK, origin_of, shipped
from vgbench_gen.text.paraphrase.rules import SLOT
from vgbench_gen.text.render import phrasings, render

REWORDED = "words_name_options"
"""Why a row may keep its options: nobody can say where its own wording names them."""


def has_own_words(item: Item) -> bool:
    """Whether the row was reworded by itself, so that no template gives its words."""
    return ITEM_MARK in item.template_id


def words_again(
    item: Item, before: Mapping[str, str] | None, shown: Presentation, recipe: Recipe
) -> tuple[str, str, str] | str:
    """(question, context, model that worded them) for other options, or why there are none.

    A row reworded by itself keeps its wording, in which the new values take the place of the old ones.

    Args:
        item: the row as it was.
        before: slots of its old options; None where the row does not tell.
        shown: of the new options.
        recipe: whose bank holds the wordings that are not shipped.

    Raises:
        DatasetError: the row's template is not known here.
    """
    if has_own_words(item):
        texts = _exchanged(item, before, shown.slots) if before is not None else None
        return (*texts, item.paraphrase) if texts is not None else REWORDED
    bank = [*recipe.wording.phrasings, *phrasings(item.task, item.question_type)]
    phrasing = next((p for p in bank if p.id == item.template_id), None)
    if phrasing is None:
        raise DatasetError(
            f"item {item.id}: found template {item.template_id!r}, which is not in the phrasings of {item.task}; its "
            "words name the options and must be filled again. Use the version and the bank it was built with."
        )
    return *render(phrasing, shown.slots), phrasing.paraphrase


def _exchanged(item: Item, before: Mapping[str, str], after: Mapping[str, str]) -> tuple[str, str] | None:
    """Question and context with other values, or None unless they hold each old one to the letter and once."""
    phrasing = shipped().get(origin_of(item.template_id)[0])
    if phrasing is None or before.keys() != after.keys():
        return None
    named = {match[1] for text in (phrasing.question, phrasing.context) for match in SLOT.finditer(text)}
    texts = [item.question, item.context]
    places = []
    for name in sorted(name for name in named & before.keys() if before[name] != after[name]):
        found = [(k, text.find(before[name])) for k, text in enumerate(texts) if before[name] in text]
        if len(found) != 1 or texts[found[0][0]].count(before[name]) != 1:
            return None
        places.append((*found[0], before[name], after[name]))
    places.sort(reverse=True)  # from the end, so that the places in front stay where they are
    for (k, start, old, _), (other, behind, *_) in zip(places[1:], places, strict=False):
        if k == other and start + len(old) > behind:
            return None
    for k, start, old, new in places:
        texts[k] = texts[k][:start] + new + texts[k][start + len(old) :]
    return texts[0], texts[1]
