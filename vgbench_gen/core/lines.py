"""Foreign words on one line: what a file is called or a server says may hold line breaks and codes for terminals."""

from __future__ import annotations

import re
import shlex


def make_one_line(text: str, most: int | None = None) -> str:
    """The text printable and without line breaks, cut to `most` characters where that is given.

    Other characters become spaces, and several spaces one. Cover keys before (`docs/security.md#keys`): of a key that
    was cut, the rest is not recognised.
    """
    # A bound on the work as well: some texts are whole bodies.
    looked = text if most is None else text[: 8 * most]
    return " ".join("".join(c if c.isprintable() else " " for c in looked).split())[:most]


def format_command(*words: object) -> str:
    """A command as a shell takes it: words with blanks and other signs stand in quotes."""
    return shlex.join(map(str, words))


def set_on_one_line(record: object, *names: str) -> None:
    """In a record that is just made, names that tables show in a line each; what can be printed so stays as it is."""
    for name in names:
        if not getattr(record, name).isprintable():
            object.__setattr__(record, name, make_one_line(getattr(record, name)))


def guard_formula(cell: object) -> object:
    """A cell of a table for spreadsheets, which run texts that begin like a formula; an apostrophe keeps it a text.

    Numbers, also written out, are left as they are.
    """
    if not isinstance(cell, str) or not cell.lstrip().startswith(("=", "+", "-", "@", "\t", "\r")):
        return cell
    return cell if re.fullmatch(r"[+-]?\d+(\.\d+)?(e[+-]?\d+)?%?", cell, re.IGNORECASE) else f"'{cell}"
