"""What both ends of MCP share: limits, JSON schemas of tools, and what our servers add to an announcement.

A foreign schema is bounded and trimmed to what is listed in `docs/agent.md#servers`. Patterns, which may take for ever,
are left to the server, which checks a call once more; references are followed within the schema alone.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import AfterValidator, Field, create_model

from vgbench_gen.agent.tool import Tool
from vgbench_gen.core.config import Config

MAX_TEXT = 2000  # characters of a description or a default
_MAX_ARGUMENTS = 40
_MAX_SCHEMA = 8000  # characters of the schema of one argument
_MAX_DEPTH = 6
_MAX_PARTS = 1000  # of one argument, references followed
_KINDS = frozenset({"type", "enum", "const", "anyOf", "oneOf"})
_KEPT = _KINDS | {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "required"}
_KEPT |= {"minLength", "maxLength", "minItems", "maxItems"}
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,39}")
META = "vgbench"
"""The key of `ServedFacts` in what the protocol calls meta; results repeat `state` there, and say `failure`."""
MAX_IMAGES = 8  # of one call, and of one reply
MAX_REQUEST_BYTES = 32 << 20
MAX_REPLY_BYTES = 32 << 20
MAX_VALUES = 100_000  # of one message; each takes up to 100 times its bytes in memory


def write_schema(tool: Tool) -> dict[str, Any]:
    """The JSON schema of a tool's arguments, without references; those without a description are left out."""
    schema = _resolve(tool.Arguments.model_json_schema(), {})
    told = {name: about for name, about in schema.get("properties", {}).items() if about.get("description")}
    required = [name for name in schema.get("required", ()) if name in told]
    return {"type": "object", "properties": told, "required": required, "additionalProperties": False}


def _resolve(schema: Any, parts: Mapping[str, Any]) -> Any:
    """A schema of pydantic without references and titles."""
    if isinstance(schema, list):
        return [_resolve(one, parts) for one in schema]
    if not isinstance(schema, dict):
        return schema
    parts = schema.get("$defs", parts)
    if "$ref" in schema:
        told = parts[schema["$ref"].rpartition("/")[2]]
        return _resolve({**told, **{key: value for key, value in schema.items() if key != "$ref"}}, parts)
    left_out = {"$defs"} | ({"title"} if isinstance(schema.get("title"), str) else set())
    return {key: _resolve(value, parts) for key, value in schema.items() if key not in left_out}


def clean_text(text: object) -> str:
    """A foreign text in one line.

    Raises:
        ValueError: it is too long, or holds what could move a terminal's cursor or hide words from a reader.
    """
    clean = " ".join(text.split()) if isinstance(text, str) else ""
    if len(clean) > MAX_TEXT or not clean.isprintable():
        raise ValueError(f"expected at most {MAX_TEXT} printable characters")
    return clean


def count_values(data: bytes) -> int:
    """How many values a JSON text may hold, before it is parsed: brackets that open, and commas."""
    return sum(data.count(sign) for sign in (b"{", b"[", b","))


ToolName = Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_.-]{0,59}$")]
Text = Annotated[str, AfterValidator(clean_text)]


class ServedFacts(Config):
    """What our servers add to a tool's announcement; without it an agent knows less of the tool."""

    does: Text
    """What it does, for a model."""
    returns: dict[ToolName, Text] = Field(max_length=60)
    """Key of the result -> what it is: frame, unit, axis sign."""
    state: str = Field(min_length=1, max_length=200)
    """Changed whenever the same call gives something else: version, options, weights."""
    image: Text = ""
    """What models read of the argument `image`."""
    aliases: tuple[ToolName, ...] = Field(default=(), max_length=10)
    argument_aliases: dict[ToolName, ToolName] = Field(default_factory=dict, max_length=40)
    example: dict[str, Any] = Field(default_factory=dict, max_length=40)
    """Arguments of a call."""
    timeout_s: float = Field(default=60.0, gt=0, le=600)
    """How long a call takes at most on the server, once it began."""
    workers: int = Field(default=1, ge=1, le=1024)
    """How many calls the server runs at once; more wait."""


def make_arguments(name: str, schema: Mapping[str, Any], images: str = "") -> type[Config]:
    """The class that checks arguments against a server's schema.

    Args:
        name: of the tool.
        schema: of an object; its property `image` takes images.
        images: what models read of that property, whose values here are names.

    Raises:
        ValueError: it uses what is not read, is too large or too deep, or has a default that does not fit.
    """
    told, required, parts = schema.get("properties", {}), schema.get("required", []), schema.get("$defs", {})
    if not isinstance(told, dict) or not isinstance(required, list) or not isinstance(parts, dict):
        raise ValueError("expected the schema of an object")
    if len(told) > _MAX_ARGUMENTS:
        raise ValueError(f"found {len(told)} arguments; expected at most {_MAX_ARGUMENTS}")
    if unknown := [one for one in required if one not in told]:
        raise ValueError(f"required argument {unknown[0]!s:.60} has no schema")
    fields: dict[str, Any] = {}
    for one, about in told.items():
        try:
            fields[one] = _read_field(one, about, one in required, parts, images)
        except ValueError as error:
            raise ValueError(f"argument {one!s:.60}: {error}") from None
    return create_model(f"{name}Arguments", __base__=Config, **fields)


def _read_field(name: str, schema: Any, required: bool, parts: Mapping[str, Any], images: str) -> tuple[Any, Any]:
    from jsonschema import Draft202012Validator, SchemaError

    if not _NAME.fullmatch(name) or hasattr(Config, name) or name.startswith("model_"):
        raise ValueError("the name is taken, or none")
    kept = trim_schema(schema, parts)
    about, default = clean_text(schema.get("description")), schema.get("default")
    if len(json.dumps(kept)) > _MAX_SCHEMA or len(json.dumps(default)) > MAX_TEXT:
        raise ValueError(f"expected a schema of at most {_MAX_SCHEMA} characters, and a default of {MAX_TEXT}")
    if name == "image":
        about = images or ("name of the image" if kept.get("type") == "string" else "names of images, in order")
    try:
        Draft202012Validator.check_schema(kept)
    except SchemaError as error:
        raise ValueError(f"found no JSON schema: {error.message:.200}") from None
    validator = Draft202012Validator(kept)
    if "default" in schema and not validator.is_valid(default):
        raise ValueError("the default does not fit its own schema")

    def check(value: Any) -> Any:
        if value is None and not required and "default" not in schema:  # it was left out
            return value
        if name == "image" and not all(isinstance(one, str) for one in (value if isinstance(value, list) else [value])):
            raise ValueError("names of images")
        if (problem := next(validator.iter_errors(value), None)) is not None:
            raise ValueError(
                f"{problem.validator} {json.dumps(problem.validator_value):.100} at {problem.json_path:.60}"
            )
        return value

    kind = Annotated[Any, AfterValidator(check)]
    about = about or json.dumps(kept)[:200]  # an argument that nothing is said of would be hidden from models
    return kind, Field(description=about) if required else Field(default=default, description=about)


def trim_schema(schema: Any, parts: Mapping[str, Any], depth: int = 0, left: list[int] | None = None) -> dict[str, Any]:
    """A schema without all that is not read: descriptions, defaults, patterns, references.

    Args:
        schema: of an argument.
        parts: name -> schema that `#/$defs/NAME` means.
        depth: of it in the argument's.
        left: how many more schemas the argument's may hold.

    Raises:
        ValueError: it says no type, refers to something else, or is too deep or large.
    """
    left = [_MAX_PARTS] if left is None else left
    left[0] -= 1
    if not isinstance(schema, dict) or depth > _MAX_DEPTH or left[0] < 0:
        raise ValueError(f"expected a JSON schema of at most {_MAX_DEPTH} levels and {_MAX_PARTS} parts")
    if isinstance(named := schema.get("$ref"), str) and not _KINDS & set(schema):
        return trim_schema(parts.get(named.removeprefix("#/$defs/")), parts, depth + 1, left)
    if not _KINDS & set(schema):
        raise ValueError(f"found a schema without {', '.join(sorted(_KINDS))}; expected one of them")
    kept = {key: schema[key] for key in schema if key in _KEPT}
    for key in {"anyOf", "oneOf", "prefixItems"} & set(schema):
        listed = schema[key] if isinstance(schema[key], list) else [schema[key]]
        kept[key] = [trim_schema(one, parts, depth + 1, left) for one in listed]
    if isinstance(schema.get("items"), dict):
        kept["items"] = trim_schema(schema["items"], parts, depth + 1, left)
    if isinstance(named := schema.get("properties"), dict):
        kept["properties"] = {name: trim_schema(one, parts, depth + 1, left) for name, one in named.items()}
        kept["additionalProperties"] = False
    return kept
