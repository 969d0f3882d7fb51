"""Texts of questions in which matrices stand, cut so that a page can set their rows in a font of one width."""

from __future__ import annotations

import re
from itertools import groupby
from typing import NamedTuple

# A row of a matrix, or the vector of a pose: "[[0.9, 0.1, 3]," " [0.1, 0.9, 4]," "t = [0.2, 0.1, 0.3]".
_ROW = re.compile(r"\s*(?:\w{1,2} = )?\[+\s*[-+\d.]")
_NAME = re.compile(r"\s*\w{1,2} =\s*")


class LineBlock(NamedTuple):
    """Some lines of a text."""

    matrix: bool
    """Whether they are rows of a matrix, with the name before it."""
    text: str
    """The lines; the break between two parts belongs to neither."""


def split_matrices(text: str) -> list[LineBlock]:
    """The text in parts that are matrices and parts that are words, in order; one part where it is of one line."""
    lines = text.split("\n")
    if len(lines) == 1:
        return [LineBlock(False, text)]
    rows = [bool(_ROW.match(line)) for line in lines]
    # A name such as "R =" belongs to the matrix below it.
    marked = [row or (any(rows[k + 1 : k + 2]) and bool(_NAME.fullmatch(lines[k]))) for k, row in enumerate(rows)]
    parts = groupby(zip(marked, lines, strict=True), key=lambda pair: pair[0])
    return [LineBlock(matrix, "\n".join(line for _, line in members)) for matrix, members in parts]
