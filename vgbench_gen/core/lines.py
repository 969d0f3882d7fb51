"""Foreign words on one line: what a file is called or a server says may hold line breaks and codes for terminals."""

from __future__ import annotations


def make_one_line(text: str, most: int | None = None) -> str:
    """The text printable and without line breaks, cut to `most` characters where that is given.

    Other characters become spaces, and several spaces one. Cover keys before (`docs/security.md#keys`): of a key that
    was cut, the rest is not recognised.
    """
    # A bound on the work as well: some texts are whole bodies.
    looked = text if most is None else text[: 8 * most]
    return " ".join("".join(c if c.isprintable() else " " for c in looked).split())[:most]
