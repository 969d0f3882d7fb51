"""The groups that verbs stand in, and how a verb joins the program."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import typer
from typer.core import TyperGroup

from vgbench_gen.cli._flags import expand_flags

GROUPS = ("Build", "Look", "Vary", "Score", "Share")
"""In the order of `vgbench --help`; verbs of another group, such as a plug-in's, come after them."""
EXAMPLES = {
    "Build": "vgbench build --scenes raw_scenes --out build/mine",
    "Look": "vgbench browse",
    "Vary": "vgbench distractors --seed 7",
    "Score": "vgbench eval --model baseline:constant --model openai:gpt-4o",
    "Share": "vgbench publish --dry-run",
}
"""One command line for each of them."""


def add_verb(
    app: typer.Typer, name: str, verb: Callable[..., None], group: str, example: str, hidden: bool = False
) -> None:
    """Add a verb to the program.

    Args:
        app: the program.
        name: what the user types.
        verb: called with the options; its docstring is the help. Models among its parameters become options.
        group: one of `GROUPS`.
        example: a command line, shown at the end of the help.
        hidden: an older name, which works and is not listed.
    """
    app.command(name, epilog=f"Example: {example}", rich_help_panel=group, hidden=hidden)(expand_flags(verb))


class GroupedVerbs(TyperGroup):
    """A program whose help lists the verbs by group, in plain text."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write one section for each group: its verbs with their first sentence, whole, and an example of its own."""
        sections: dict[str, list[tuple[str, str]]] = {group: [] for group in GROUPS}
        for name, command in self.commands.items():
            if not command.hidden:
                group = getattr(command, "rich_help_panel", None) or "Other"
                sections.setdefault(str(group), []).append((name, _find_first_sentence(command.help or "")))
        for group, rows in sections.items():
            if rows:
                with formatter.section(group):
                    formatter.write_dl(rows, col_spacing=2)
                if group in EXAMPLES:
                    formatter.write_text(f"  Example: {EXAMPLES[group]}")


def _find_first_sentence(text: str) -> str:
    return re.split(r"(?<=\.)\s", " ".join(text.split()), maxsplit=1)[0]
