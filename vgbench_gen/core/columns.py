"""Tables in plain text that fit a screen."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Collection, Iterable, Sequence

WIDTH = 100
"""Characters of a line where nobody says how wide the screen is."""
_GAP = 2  # spaces between columns
_BESIDE = 28  # the last column is folded beside the others where it has so many characters, and below them otherwise
_INDENT = 4  # of a last column that stands below


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

    As far as it needs: heads are broken, columns of `drop` are left out, the last column is folded beside the others or
    stands below them, and what is still too wide goes on in further tables below, each begun with the first column.
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
    kept = list(range(len(heads)))
    body = [max([*(len(line[k]) for line in lines), *least[k : k + 1], 1]) for k in kept]
    sizes = body
    if show_heads:
        sizes = [max(size, len(name)) for size, name in zip(body, heads, strict=True)]
    if show_heads and _sum(sizes, kept) > width:
        sizes = [max(size, *map(len, _break(name))) for size, name in zip(body, heads, strict=True)]
    for name in drop:
        fixed = kept[:-1] if text else kept
        if _sum(sizes, kept) > width and _sum(sizes, fixed) + (_GAP + _BESIDE if text else 0) > width:
            kept.remove(heads.index(name))
    sizes[0] = min(sizes[0], width // 2) if len(kept) > 1 else width
    cells = [[textwrap.wrap(name, size) or [""] for name, size in zip(heads, sizes, strict=True)]] * show_heads
    cells += [[textwrap.wrap(line[0], sizes[0]) or [""], *([cell] for cell in line[1:])] for line in lines]
    aligned = {k for k in kept if heads[k] in right}
    if _sum(sizes, kept) <= width:
        return _print(cells, kept, sizes, aligned)
    last = kept.pop() if text and len(kept) > 1 else None
    room = width - _sum(sizes, kept) - _GAP
    if last is not None and room >= min(_BESIDE, sizes[last]):
        sizes[last] = room
        folded = [[*row[:last], _fold(row[last], room), *row[last + 1 :]] for row in cells]
        return _print(folded, [*kept, last], sizes, aligned)
    found: list[str] = []
    rest = kept[1:]
    while rest or not found:
        part = [kept[0]]
        while rest and (len(part) == 1 or _sum(sizes, [*part, rest[0]]) <= width):
            part.append(rest.pop(0))
        if found:
            found.append("")
        for row in cells:
            found += _print([row], part, sizes, aligned)
            if last is not None and not rest:
                found += [" " * _INDENT + line for line in _fold(row[last], width - _INDENT) if line]
    return found


def _sum(sizes: Sequence[int], kept: Sequence[int]) -> int:
    return sum(sizes[k] for k in kept) + _GAP * (len(kept) - 1)


def _break(name: str) -> list[str]:
    """Parts of a head that may stand below each other."""
    return re.findall(r"[^\s-]+-?", name) or [""]


def _fold(lines: Sequence[str], room: int) -> list[str]:
    return textwrap.wrap(" ".join(lines), room, break_on_hyphens=False) or [""]


def _print(
    rows: Iterable[Sequence[Sequence[str]]], kept: Sequence[int], sizes: Sequence[int], right: Collection[int]
) -> list[str]:
    """Rows of cells of one or more lines each, the shorter ones at the top."""
    found = []
    for row in rows:
        for k in range(max(len(row[column]) for column in kept)):
            texts = ["".join(row[column][k : k + 1]) for column in kept]
            cells = [t.rjust(sizes[c]) if c in right else t.ljust(sizes[c]) for c, t in zip(kept, texts, strict=True)]
            found.append((" " * _GAP).join(cells).rstrip())
    return found
