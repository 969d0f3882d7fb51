"""Words and Markdown of the dataset card; the sentences stand in `templates/cards/`."""

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
    """A name that the words may lack, such as that of a task of another benchmark."""
    return load_words(_find_path("words.toml")).get(f"{table}.{key.replace(' ', '_')}", default or key)


def fill_page(name: str, slots: Mapping[str, str]) -> str:
    """The template `cards/<name>` with its slots filled, which are exactly these.

    Raises:
        ConfigError: a slot without a value, or a value without a slot.
    """
    text = _find_path(name).read_text("utf-8")
    wanted = set(_SLOT.findall(text))
    if wanted != set(slots):
        odd = ", ".join(sorted(wanted ^ set(slots)))
        raise ConfigError(f"{_find_path(name)}: found other slots than have values: {odd}; expected the same.")
    return re.sub(r"\n{3,}", "\n\n", _SLOT.sub(lambda match: slots[match[1]], text)).strip() + "\n"


def format_table(heads: Sequence[str], rows: Iterable[Sequence[object]], right: Iterable[int] = ()) -> str:
    """A Markdown table; text that could end a cell or a line is made harmless. right: columns of numbers."""
    right = set(right)
    lines = [heads, ["--:" if k in right else "---" for k in range(len(heads))], *rows]
    return "\n".join("| " + " | ".join(map(format_cell, line)) + " |" for line in lines)


def format_cell(value: object) -> str:
    """Text for one cell: one line, without bars and markup of its own."""
    text = f"{value:,}" if isinstance(value, int) else str(value)
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")


def share(part: int, whole: int) -> str:
    """Per cent, for people."""
    return f"{100 * part / whole:.0f} %" if whole else ""


@cache
def _find_path(name: str) -> Path:
    return find_templates_root() / "cards" / name


def info_of(source: str) -> DatasetInfo | None:
    """What the loader of a source says about it; None where no installed loader has that name."""
    return loaders[source].info if source in loaders.names() else None


def title_of(source: str) -> str:
    """The name of a source for people; the source itself where no loader knows it."""
    info = info_of(source)
    return source if info is None else info.title
