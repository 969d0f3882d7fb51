"""The groups that verbs stand in, and how a verb joins the program."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from vgbench_gen.cli._flags import expand_flags
from vgbench_gen.cli._screen import hush

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
_QUIET = Annotated[bool, typer.Option("--quiet", help="Say nothing but errors, and JSON where it is asked for.")]
_JSON = Annotated[bool, typer.Option("--json", help="Print JSON instead of lines.")]


def add_verb(
    app: typer.Typer, name: str, verb: Callable[..., None], group: str, example: str, hidden: bool = False
) -> None:
    """Add a verb to the program.

    Args:
        app: the program.
        name: what the user types.
        verb: called with the options; its docstring is the help. Models among its parameters become options, and
            `as_json: bool = False` becomes `--json`: every verb that tells something has it and prints by `print_json`.
        group: one of `GROUPS`.
        example: a command line, shown at the end of the help.
        hidden: an older name, which works and is not listed.
    """
    app.command(name, epilog=f"Example: {example}", rich_help_panel=group, hidden=hidden)(prepare_verb(verb))


def prepare_verb(verb: Callable[..., None]) -> Callable[..., None]:
    """The verb as typer takes it: with the options of its models, `--quiet`, and `--json` where it takes `as_json`."""
    command = expand_flags(verb)
    signature = inspect.signature(command)
    quiet = inspect.Parameter("quiet", inspect.Parameter.KEYWORD_ONLY, default=False, annotation=_QUIET)

    @functools.wraps(command)
    def quietly(*, quiet: bool, **given: Any) -> None:
        with hush(quiet, keep_output=bool(given.get("as_json"))):
            command(**given)

    own = signature.parameters.values()
    parameters = [*(one.replace(annotation=_JSON) if one.name == "as_json" else one for one in own), quiet]
    quietly.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    quietly.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return quietly


class GroupedVerbs(TyperGroup):
    """A program whose help lists the verbs by group, in plain text."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """As typer's, where no path among the arguments is empty: that would be taken for the current folder."""
        name, command, rest = super().resolve_command(ctx, args)
        if command is not None:
            texts = {name for each in command.params if not _takes_path(each) for name in each.opts}
            for before, given in zip(["", *rest], rest, strict=False):
                option, equals, value = given.partition("=")
                if (not given and before not in texts) or (
                    equals and not value and option.startswith("--") and option not in texts
                ):
                    raise typer.BadParameter("found an empty path; expected one, or . for the current folder", ctx)
        return name, command, rest

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


def _takes_path(parameter: Any) -> bool:
    return "Path" in str(getattr(getattr(parameter, "type_descriptor", None), "annotation", ""))
