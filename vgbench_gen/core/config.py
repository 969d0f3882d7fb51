"""Configuration: TOML read into strict, frozen pydantic models; every mistake is named with its place.

Strict means: nothing is coerced ("5" is no number, 1 is no boolean) and unknown keys are refused with near misses.
Arrays may fill tuples, strings may fill paths and enumerations, because TOML has no spelling of its own for those.
"""

from __future__ import annotations

import difflib
import json
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, ConfigDict, ValidationError

from vgbench_gen.core.errors import ConfigError
from vgbench_gen.core.paths import ErrorMaker
from vgbench_gen.core.stand_ins import config_error
from vgbench_gen.core.text_files import read_text

MAX_CONFIG_BYTES = 1 << 20  # no recipe comes near; keeps a wrong path (a video, a parquet) out of memory
_SHOWN_CHARACTERS = 60


class Config(BaseModel):
    """Base of every configuration model: unknown keys are errors, values are not coerced, instances are frozen."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)


ConfigT = TypeVar("ConfigT", bound=Config)


@dataclass(frozen=True, slots=True)
class Flag:
    """Marks a field of a configuration model as an option of the command line: `Annotated[int, Flag("…", "N")]`."""

    help: str
    """The sentence in the verb's `--help`."""
    metavar: str = ""
    """The word for the value in the usage, such as `FILE`; empty for switches."""
    panel: str = ""
    """The section of `--help` that lists the option, such as `Limits`; `Options` where empty."""
    names: str = ""
    """How the option is spelt, with blanks between several names; the name of the field with dashes where empty."""
    is_list: bool = False
    """Whether the option may be repeated and holds names separated by commas; the field is a tuple of strings."""


def load_toml(path: Path, model: type[ConfigT]) -> ConfigT:
    """Read one TOML file into `model`.

    Raises:
        ConfigError: the file cannot be read, is no TOML, or does not fit the model; names the file, the dotted key,
            what was found and what was expected, for every mistake at once.
    """
    return parse_config(read_toml(path), model, str(path))


def read_toml(path: Path, error: ErrorMaker = config_error) -> dict[str, Any]:
    """What a TOML file says.

    error: as of `read_text`.

    Raises:
        VGBenchError: (by `error`) the file cannot be read, or is no TOML.
    """
    text = read_text(path, "a TOML file", error, MAX_CONFIG_BYTES)
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as problem:
        raise error(path, f"no valid TOML ({problem})", "a TOML file", "Mend that line.") from problem


def parse_config(data: Mapping[str, Any], model: type[ConfigT], where: str) -> ConfigT:
    """Check a nested mapping (as TOML gives it) against `model`.

    Args:
        data: keys to numbers, strings, booleans, dates, lists and mappings.
        model: what is expected.
        where: file or flag, for messages.

    Raises:
        ConfigError: as in `load_toml`.
    """
    try:
        # By way of JSON, because strict validation of Python objects refuses a list where a tuple is declared.
        text = json.dumps(data, default=str)
    except (ValueError, RecursionError) as exc:
        raise ConfigError(f"{where}: found a value that cannot be used ({exc}). Mend it.") from exc
    try:
        return model.model_validate_json(text)
    except ValidationError as exc:
        problems = [describe_problem(model, error) for error in exc.errors(include_url=False)]
        raise ConfigError(f"{where}: " + "; ".join(problems)) from exc


def describe_problem(model: type[BaseModel], error: Mapping[str, Any], key: str = "") -> str:
    """One mistake that pydantic found in words: the key, what was found and what was expected.

    Args:
        model: what was expected.
        error: one of `ValidationError.errors()`.
        key: how the user knows the field, such as the option `--retries`; its place in the model where empty.
    """
    location: Sequence[int | str] = error["loc"]
    key = key or ".".join(str(part) for part in location) or "(top level)"
    if error["type"] == "extra_forbidden":
        name = str(location[-1])
        known = _list_keys_at(model, location[:-1])
        near = difflib.get_close_matches(name, known, n=1)
        hint = f" Did you mean {near[0]}?" if near else ""
        listing = f" Known keys: {', '.join(known)}" if known else ""
        return f"{key}: found an unknown key {name!r}.{hint}{listing}"
    expected = str(error["msg"]).removeprefix("Value error, ").removeprefix("Input should be ")
    if error["type"] == "missing":
        return f"{key}: found nothing; expected a value for this key"
    return f"{key}: found {_show_value(error['input'])}; expected {expected}"


def _show_value(value: object) -> str:
    text = json.dumps(value, default=str, ensure_ascii=False)
    return text if len(text) <= _SHOWN_CHARACTERS else text[:_SHOWN_CHARACTERS] + "…"


def _list_keys_at(model: type[BaseModel], location: Sequence[int | str]) -> list[str]:
    """Keys the model knows at a place in it; empty where that place is no single table."""
    annotation: Any = model
    for part in location:
        inner = _model_in(annotation)
        if inner is not None and (step := _list_fields(inner).get(str(part))) is not None:
            annotation = step
        else:
            # An index of a list or a free key of a mapping: what follows is its last type argument.
            arguments = [a for a in get_args(annotation) if a is not type(None) and a is not Ellipsis]
            if not arguments:
                return []
            annotation = arguments[-1]
    inner = _model_in(annotation)
    return sorted(_list_fields(inner)) if inner is not None else []


def _list_fields(model: type[BaseModel]) -> dict[str, Any]:
    fields = {field.alias or name: field.annotation for name, field in model.model_fields.items()}
    sections = getattr(model, "sections", None)  # tables that plug-ins bring
    return fields if sections is None else fields | sections()


def _model_in(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    inside = [a for a in get_args(annotation) if isinstance(a, type) and issubclass(a, BaseModel)]
    has_mapping = hasattr(annotation, "__origin__") and annotation.__origin__ in (dict, Mapping, list, tuple)
    return inside[0] if len(inside) == 1 and not has_mapping else None
