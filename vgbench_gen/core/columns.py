"""Tables in plain text that fit a screen."""

from __future__ import annotations

import itertools
import textwrap
from collections.abc import Collection, Iterable, Sequence

WIDTH = 100
"""Characters of a line where nobody says how wide the screen is."""
_GAP = 2  # spaces between columns
_TEXT = 28  # the least width of a last column that is folded beside the others
_INDENT = 4  # of one that stands below the others


def format_columns(
    rows: Iterable[Sequence[object]],
    *,
    heads: Sequence[str],
    show_heads: bool = True,
    right: Collection[str] = (),
    drop: Sequence[str] = (),
    least: Sequence[int] = (),
    text: bool = True,
    width: int = WIDTH,
) -> list[str]:
    """Lay rows out in columns of at most `width` characters a line.

    As far as it needs: heads are broken, columns of `drop` are left out, the last column is folded or stands
    below the others, and what is still too wide goes on in further tables below, each begun with the first column.
    Nothing but the columns of `drop` gets lost.

    Args:
        rows: as many cells each as there are heads.
        heads: names of the columns.
        show_heads: print them above the rows; not where rows follow others that were printed before.
        right: names of columns that are set to the right, such as numbers.
        drop: names of columns that a narrow screen lacks, the first to go first.
        least: least width of each column, so that tables of one row each stand below each other.
        text: whether the last column is a text that may be folded.
        width: characters of a line.
    """
    lines = [[str(cell) for cell in row] for row in rows]
    body = [max([*(len(line[k]) for line in lines), *least[k : k + 1], 1]) for k in range(len(heads))]
    sizes = [max(size, len(head)) for size, head in zip(body, heads, strict=True)] if show_heads else body
    if show_heads and _add_up(sizes) > width:
        words = [head.replace("-", "- ").split() for head in heads]
        sizes = [max([size, *map(len, parts)]) for size, parts in zip(body, words, strict=True)]
    kept, last = list(range(len(heads))), len(heads) - 1
    if text:
        sizes[last] = min(sizes[last], max(_TEXT, width - _add_up([*sizes[:-1], 0])))
    for name in drop:
        if _add_up([sizes[k] for k in kept]) > width:
            kept.remove(heads.index(name))
    sizes[0] = min(sizes[0], width // 2 if last else width)
    below = bool(text and last) and _add_up([sizes[k] for k in kept]) > width
    if text and last and not below:
        sizes[last] = width - _add_up([*(sizes[k] for k in kept[:-1]), 0])
    parts = [kept[:1]]
    for k in kept[1:-1] if below else kept[1:]:
        if len(parts[-1]) > 1 and _add_up([sizes[other] for other in [*parts[-1], k]]) > width:
            parts.append(kept[:1])
        parts[-1].append(k)
    table = [[textwrap.wrap(name, size) for name, size in zip(heads, sizes, strict=True)]] if show_heads else []
    for line in lines:
        table.append(
            [_fold(cell, sizes[k]) if k == 0 or (text and k == last) else [cell] for k, cell in enumerate(line)]
        )
    found: list[str] = []
    for part in parts:
        found += [""] if found else []
        for cells in table:
            for row in itertools.zip_longest(*(cells[k] for k in part), fillvalue=""):
                aligned = (
                    cell.rjust(sizes[k]) if heads[k] in right else cell.ljust(sizes[k])
                    for cell, k in zip(row, part, strict=True)
                )
                found.append((" " * _GAP).join(aligned).rstrip())
            if below and part is parts[-1]:
                found += [" " * _INDENT + line for line in _fold(" ".join(cells[last]), width - _INDENT) if line]
    return found


def _add_up(sizes: Sequence[int]) -> int:
    return sum(sizes) + _GAP * (len(sizes) - 1)


def _fold(text: str, size: int) -> list[str]:
    return textwrap.wrap(text, size, break_on_hyphens=False) or [""]
