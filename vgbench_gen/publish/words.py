"""Phrases and Markdown of the dataset card; the phrases are in `templates/cards/`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path

from vgbench_gen.core.errors import ConfigError
from vgbench_gen.scenes.base import DatasetInfo, loaders
from vgbench_gen.text.render import fill_phrase, find_templates_root, load_words

_SLOT = re.compile(r"\{\{ ([a-z_]+) \}\}")


def load_word(key: str, **slots: str) -> str:
    """Phrase `<table>.<key>` of `cards/words.toml`. Raises ConfigError as `text.render.fill_phrase` does."""
    return fill_phrase(_find_path("words.toml"), key, slots)


def name_of(table: str, key: str, default: str = "") -> str:
    """The phrase `<table>.<key>`; `default` or the key if there is none, as for tasks of other benchmarks."""
    return load_words(_find_path("words.toml")).get(f"{table}.{key.replace(' ', '_')}", default or key)


def fill_page(name: str, slots: Mapping[str, str]) -> str:
    """The template `cards/<name>` with its slots filled.

    Raises:
        ConfigError: a slot has no value, or a value has no slot.
    """
    text = _find_path(name).read_text("utf-8")
    wanted = set(_SLOT.findall(text))
    if wanted != set(slots):
        odd = ", ".join(sorted(wanted ^ set(slots)))
        raise ConfigError(f"{_find_path(name)}: found slots without values, or values without slots: {odd}.")
    return re.sub(r"\n{3,}", "\n\n", _SLOT.sub(lambda match: slots[match[1]], text)).strip() + "\n"


def format_table(heads: Sequence[str], rows: Iterable[Sequence[object]], right: Iterable[int] = ()) -> str:
    """A Markdown table with escaped texts. right: columns that are aligned to the right."""
    right = set(right)
    lines = [heads, ["--:" if k in right else "---" for k in range(len(heads))], *rows]
    return "\n".join("| " + " | ".join(map(format_cell, line)) + " |" for line in lines)


def format_cell(value: object) -> str:
    """Text of a table cell: one line, with bars and markup escaped."""
    text = f"{value:,}" if isinstance(value, int) else str(value)
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")


def share(part: int, whole: int) -> str:
    """A share as text, such as "12 %"; "" of nothing."""
    return f"{100 * part / whole:.0f} %" if whole else ""


@cache
def _find_path(name: str) -> Path:
    return find_templates_root() / "cards" / name


def info_of(source: str) -> DatasetInfo | None:
    """The description of a source by its loader; None if no installed loader has that name."""
    return loaders[source].info if source in loaders.names() else None


def title_of(source: str) -> str:
    """The title of a source by its loader, or its own name without a loader."""
    info = info_of(source)
    return source if info is None else info.title
