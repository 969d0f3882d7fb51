"""The wordings that a recipe draws from, read once, before anything is measured or composed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from vgbench_gen.core.errors import ConfigError
from vgbench_gen.pipeline.recipe import Recipe
from vgbench_gen.tasks.base import Task
from vgbench_gen.text.bank import load_bank, select_phrasings
from vgbench_gen.text.paraphrase.rules import find_language


def load_wordings(recipe: Recipe, tasks: Sequence[Task]) -> tuple[Recipe, dict[str, Any]]:
    """(the recipe with its bank's wordings at hand, what to note about them; nothing where it has no bank).

    Raises:
        ConfigError: the bank cannot be read or breaks its rules, a headline recipe draws unreviewed wordings, or
            another language has no wordings for something that is asked.
    """
    words = recipe.wording
    find_language(words.language)
    if recipe.headline and words.use != "reviewed":
        raise ConfigError(
            f'wording.use: found "{words.use}" in a headline recipe; expected "reviewed". Accept wordings in the bank, '
            "or set headline = false in a copy of the recipe."
        )
    if not words.bank:
        if words.language != "en":
            raise ConfigError(
                f"wording.language = {words.language!r}: found no bank; expected one, because the shipped phrasings "
                "are in English. Make one with `vgbench paraphrase --language`."
            )
        return recipe, {}
    bank = load_bank(Path(words.bank))
    found = select_phrasings(bank, words.use, words.language)
    if words.language != "en":
        have = {(p.task, p.question_type) for p in found}
        asked = [
            (t.name, f) for t in tasks for f in t.formats if not recipe.items or recipe.items.get(t.name, {}).get(f)
        ]
        lacking = [f"{task}/{form}" for task, form in asked if (task, form) not in have]
        if lacking:
            raise ConfigError(
                f"{words.bank}: found no {words.use} wordings in {find_language(words.language).name} of "
                f"{', '.join(lacking[:6])}{' and others' if len(lacking) > 6 else ''}; expected at least one of each. "
                "Add them with `vgbench paraphrase`, accept them, or name fewer tasks."
            )
    note = {
        "bank": Path(words.bank).name,
        "digest": bank.digest,
        "use": words.use,
        "language": words.language,
        "phrasings": len(found),
        "stale": [entry.id for entry in bank.stale],
    }
    return recipe.model_copy(update={"wording": words.with_phrasings(found)}), note
