"""Options of the command line, each declared once by a `Flag`: on a parameter of a verb, or on a field of a model.

A verb takes a model as a parameter, `sent: BackendOptions`. `expand_flags` replaces that parameter by one typer option
for each field that carries a `Flag`, and hands the verb the checked model. Fields that are models themselves are
expanded too. `Annotated[BackendOptions, Only("timeout_s", "retries")]` takes some of the fields; the others keep the
values of the parameter's default, or of the model where there is none.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator, Sequence
from types import UnionType
from typing import Annotated, Any, NamedTuple, Union, get_args, get_origin

import typer
from pydantic import ValidationError
from pydantic.fields import FieldInfo

from vgbench_gen.core.config import Config, Flag, describe_problem
from vgbench_gen.core.errors import ConfigError


class Only:
    """Names the fields of a model that a verb offers as options."""

    def __init__(self, *names: str) -> None:
        self.names = names


class _Option(NamedTuple):
    """One field of a model as an option."""

    path: tuple[str, ...]
    """The names that lead to the field, through models inside models."""
    flag: Flag
    parameter: inspect.Parameter
    """The parameter that typer reads."""

    @property
    def spelling(self) -> str:
        """How messages name the option."""
        return self.flag.names.split()[0].split("/")[0] if self.flag.names else _dashed(self.path[-1])


def expand_flags(verb: Callable[..., None]) -> Callable[..., None]:
    """The verb with one option for each `Flag` of its parameters and of the models that it takes.

    Raises:
        ConfigError: from the verb's call, where a value does not fit its field; the message names the option.
    """
    signature = inspect.signature(verb, eval_str=True)
    parameters: list[inspect.Parameter] = []
    models: dict[str, tuple[Config, list[_Option]]] = {}
    for name, parameter in signature.parameters.items():
        kind, *marks = get_args(parameter.annotation) if get_origin(parameter.annotation) is Annotated else (
            parameter.annotation,
        )  # fmt: skip
        if isinstance(kind, type) and issubclass(kind, Config):
            base = kind() if parameter.default is parameter.empty else parameter.default
            offered = next((mark for mark in marks if isinstance(mark, Only)), None)
            options = list(_list_options(base, offered))
            models[name] = base, options
            parameters += [option.parameter for option in options]
        elif flag := next((mark for mark in marks if isinstance(mark, Flag)), None):
            parameters.append(_make_parameter(name, kind, marks, flag, parameter.default))
        else:
            parameters.append(parameter)

    @functools.wraps(verb)
    def command(**given: Any) -> None:
        for name, (base, options) in models.items():
            values = [(option, given.pop(option.parameter.name)) for option in options]
            given[name] = _fill_model(base, values)
        verb(**given)

    # Options may follow on required ones; typer looks at names and never at positions.
    keywords = [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in parameters]
    command.__signature__ = signature.replace(parameters=keywords)  # type: ignore[attr-defined]
    command.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return command


def _list_options(base: Config, offered: Only | None, path: tuple[str, ...] = ()) -> Iterator[_Option]:
    for name, field in type(base).model_fields.items():
        value = getattr(base, name)
        if offered is not None and name not in offered.names:
            continue
        if isinstance(value, Config):
            yield from _list_options(value, None, (*path, name))
        flag = next((mark for mark in field.metadata if isinstance(mark, Flag)), None)
        if flag is not None:
            yield _Option((*path, name), flag, _make_parameter(name, field.annotation, [field], flag, value))


def _make_parameter(name: str, kind: Any, marks: Sequence[Any], flag: Flag, value: Any) -> inspect.Parameter:
    """The parameter that typer reads: its type, its bounds, its help."""
    bounds = _read_bounds(kind, [part for mark in marks if isinstance(mark, FieldInfo) for part in mark.metadata])
    option = typer.Option(
        *(flag.names or _dashed(name)).split(),
        metavar=flag.metavar or None,
        help=flag.help,
        rich_help_panel=flag.panel or None,
        **bounds,
    )
    default = (list(value) or None) if flag.is_list else value
    kind = list[str] | None if flag.is_list else kind
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[kind, option])


def _read_bounds(kind: Any, marks: Sequence[Any]) -> dict[str, Any]:
    """The bounds of a number as typer takes them, which knows closed intervals alone."""
    whole = int in (get_args(kind) if get_origin(kind) in (Union, UnionType) else (kind,))
    bounds: dict[str, Any] = {}
    for mark in marks:
        for name, side, step in (("ge", "min", 0), ("gt", "min", 1), ("le", "max", 0), ("lt", "max", -1)):
            limit = getattr(mark, name, None)
            if limit is not None and (whole or not step):
                bounds[side] = limit + step
    return bounds


def _dashed(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _fill_model(base: Config, values: Sequence[tuple[_Option, Any]]) -> Config:
    """The model with the values of a command line.

    Raises:
        ConfigError: a value does not fit; the message names the option.
    """
    tree = base.model_dump()
    for option, value in values:
        table = tree
        for step in option.path[:-1]:
            table = table[step]
        table[option.path[-1]] = split_names(value) if option.flag.is_list else value
    try:
        return type(base).model_validate(tree)
    except ValidationError as exc:
        spellings = {option.path: option.spelling for option, _ in values}
        problems = []
        for error in exc.errors(include_url=False):
            place = tuple(str(step) for step in error["loc"])
            spelling = next((spellings[place[:end]] for end in (1, 2) if place[:end] in spellings), "")
            problems.append(describe_problem(type(base), error, spelling))
        raise ConfigError("; ".join(problems)) from exc


def split_names(given: list[str] | None) -> tuple[str, ...]:
    """The names in options such as `--tasks A,B --tasks C`."""
    return tuple(name.strip() for text in given or [] for name in text.split(",") if name.strip())
