"""How a verb joins the program, and what its help looks like."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable
from types import ModuleType
from typing import Annotated, Any, TypeVar

import typer
from typer.core import TyperCommand, TyperGroup

from vgbench_gen.cli._flags import expand_flags
from vgbench_gen.cli._screen import hush
from vgbench_gen.core.config import Flag

Verb = TypeVar("Verb", bound=Callable[..., None])
GROUPS = {
    "Build": "vgbench build --scenes raw_scenes --out build/mine",
    "Look": "vgbench browse",
    "Vary": "vgbench distractors --seed 7",
    "Score": "vgbench eval --model baseline:constant --model openai:gpt-4o",
    "Share": "vgbench publish --dry-run",
}
"""Groups of verbs in the order of `vgbench --help`, with an example; verbs of another group come after them."""
_QUIET = Annotated[bool, Flag("Print only errors, and JSON where it is asked for.")]
_JSON = Annotated[bool, Flag("Print JSON instead of lines.", names="--json")]
_BOUNDS = re.compile(r"(?:; )?(?:-?[\d.]+<=)?x[<>]=-?[\d.]+")  # as typer prints them; errors name the bound


def verb(name: str, group: str, example: str) -> Callable[[Verb], Verb]:
    """Mark a function as a verb, which `add_verbs` adds to the program; arguments as of `add_verb`.

    name: what the user types; two words for a verb of a verb, such as `agent ask`.
    """

    def mark(function: Verb) -> Verb:
        function.__verb__ = (name, group, example)  # type: ignore[attr-defined]
        return function

    return mark


def add_verbs(app: typer.Typer, module: ModuleType) -> None:
    """Add the verbs of a module to the program; the module's docstring is the help of a verb that has verbs."""
    below: dict[str, typer.Typer] = {}
    marked = [function for function in vars(module).values() if hasattr(function, "__verb__")]
    for function in sorted(marked, key=lambda function: function.__verb__):
        name, group, example = function.__verb__
        above, _, name = name.rpartition(" ")
        if not above:
            add_verb(app, name, function, group, example)
            continue
        if above not in below:
            below[above] = typer.Typer(cls=GroupedVerbs, help=module.__doc__, rich_markup_mode=None)
            app.add_typer(below[above], name=above, epilog=f"Example: {example}", rich_help_panel=group)
        add_verb(below[above], name, function, None, example)


def add_verb(app: typer.Typer, name: str, verb: Callable[..., None], group: str | None, example: str) -> None:
    """Add a verb to the program.

    Args:
        app: the program, or one verb of it that has verbs of its own.
        name: what the user types.
        verb: called with the options; its docstring is the help. Parameters with a `Flag` and the fields of models
            become options, and `as_json: bool = False` becomes `--json`: every verb that prints results has it and
            prints by `print_json`.
        group: one of `GROUPS`; None below another verb.
        example: a command line, shown at the end of the help.
    """
    join = app.command(name, cls=PlainCommand, epilog=f"Example: {example}", rich_help_panel=group)
    join(_prepare_verb(verb))


def _prepare_verb(verb: Callable[..., None]) -> Callable[..., None]:
    """The verb with `--quiet`, and `--json` where it takes `as_json`."""
    signature = inspect.signature(verb, eval_str=True)
    quiet = inspect.Parameter("quiet", inspect.Parameter.KEYWORD_ONLY, default=False, annotation=_QUIET)

    @functools.wraps(verb)
    def quietly(*, quiet: bool, **given: Any) -> None:
        with hush(quiet, keep_output=bool(given.get("as_json"))):
            verb(**given)

    own = signature.parameters.values()
    parameters = [one.replace(annotation=_JSON) if one.name == "as_json" else one for one in own]
    keywords = [one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in (*parameters, quiet)]
    quietly.__signature__ = signature.replace(parameters=keywords)  # type: ignore[attr-defined]
    return expand_flags(quietly)


class PlainCommand(TyperCommand):
    """A verb whose help is plain text with a section for each panel of options."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """As typer's; an empty path among the arguments is refused, which would be taken for the current folder."""
        texts = {name for each in self.params if not _takes_path(each) for name in each.opts}
        for before, given in zip(["", *args], args, strict=False):
            option, equals, value = given.partition("=")
            if (not given and before not in texts) or (
                equals and not value and option.startswith("--") and option not in texts
            ):
                raise typer.BadParameter("found an empty path; expected one, or . for the current folder", ctx)
        return super().parse_args(ctx, args)

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write one section for the arguments and one for each panel."""
        for title, rows in list_help(self, ctx).items():
            with formatter.section(title):
                formatter.write_dl(rows)


class GroupedVerbs(TyperGroup):
    """A program whose help lists the verbs by group, in plain text."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write one section for each group: its verbs with their first sentence, whole, and an example of its own."""
        sections: dict[str, list[tuple[str, str]]] = {group: [] for group in GROUPS}
        for name, command in self.commands.items():
            group = getattr(command, "rich_help_panel", None) or "Commands"
            sections.setdefault(str(group), []).append((name, find_first_sentence(command.help or "")))
        for group, rows in sections.items():
            if rows:
                with formatter.section(group):
                    formatter.write_dl(rows, col_spacing=2)
                if group in GROUPS:
                    formatter.write_text(f"  Example: {GROUPS[group]}")


def list_help(command: Any, context: Any) -> dict[str, list[tuple[str, str]]]:
    """What the help of a verb says of its arguments and options: title of a section -> (name, text), in order."""
    sections: dict[str, list[tuple[str, str]]] = {"Arguments": []}
    for parameter in command.get_params(context):
        record = parameter.get_help_record(context)
        if record is None:
            continue
        name, title = record[0], getattr(parameter, "rich_help_panel", None) or "Options"
        if parameter.param_type_name == "argument":
            name, title = parameter.metavar or parameter.name.upper(), "Arguments"
        sections.setdefault(title, []).append((name, _BOUNDS.sub("", record[1]).replace("[]", "").rstrip()))
    return {title: rows for title, rows in sections.items() if rows}


def find_first_sentence(text: str) -> str:
    """The first sentence of a help text, on one line."""
    return re.split(r"(?<=\.)\s", " ".join(text.split()), maxsplit=1)[0]


def _takes_path(parameter: Any) -> bool:
    return "Path" in str(getattr(getattr(parameter, "type_descriptor", None), "annotation", ""))
