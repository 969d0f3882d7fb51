"""Tables in plain text that fit a screen."""

from __future__ import annotations

import itertools
import textwrap
from collections.abc import Collection, Iterable, Sequence

WIDTH = 100
"""Characters of a line where nobody says how wide the screen is."""
_GAP = 2  # spaces between columns
_TEXT = 28  # the least width of a last column that is folded


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

    As far as it needs: columns of `drop` are left out, the last column is folded, and what is still too wide goes on in
    further tables below, each begun with the first column. Nothing but the columns of `drop` gets lost.

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
    table = [list(heads)] * show_heads + [[str(cell) for cell in row] for row in rows]
    last = len(heads) - 1
    sizes = [max([1, *least[k : k + 1], *(len(row[k]) for row in table)]) for k in range(len(heads))]
    if last:
        sizes[0] = min(sizes[0], width // 2)
    if text:
        sizes[last] = min(sizes[last], _TEXT, width - (sizes[0] + _GAP) * bool(last))
    kept = list(range(len(heads)))
    for name in drop:
        if _add_up(sizes, kept) > width:
            kept.remove(heads.index(name))
    parts = [kept[:1]]
    for k in kept[1:]:
        if len(parts[-1]) > 1 and _add_up(sizes, [*parts[-1], k]) > width:
            parts.append(kept[:1])
        parts[-1].append(k)
    if text and last:
        sizes[last] = width - _add_up(sizes, parts[-1][:-1]) - _GAP
    lines: list[str] = []
    for part in parts:
        lines += [""] if lines else []
        for row in table:
            folded = [_fold(row[k], sizes[k]) if k == 0 or (text and k == last) else [row[k]] for k in part]
            for cells in itertools.zip_longest(*folded, fillvalue=""):
                aligned = (
                    cell.rjust(sizes[k]) if heads[k] in right else cell.ljust(sizes[k])
                    for cell, k in zip(cells, part, strict=True)
                )
                lines.append((" " * _GAP).join(aligned).rstrip())
    return lines


def _add_up(sizes: Sequence[int], columns: Sequence[int]) -> int:
    return sum(sizes[k] for k in columns) + _GAP * (len(columns) - 1)


def _fold(text: str, size: int) -> list[str]:
    return textwrap.wrap(text, size, break_on_hyphens=False) or [""]
