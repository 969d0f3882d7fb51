"""What MCP client and server share: limits, JSON schemas of tools, and `ServedFacts`, added to a tool's announcement.

A schema from a server is bounded and reduced to the keywords in `docs/agent.md#servers`. Patterns, which may never
finish, are left to the server, which checks each call again; references are followed within the schema only.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import AfterValidator, Field, create_model

from vgbench_gen.agent.tool import Tool
from vgbench_gen.core.config import Config

MAX_TEXT = 2000  # the most characters of a description or a default
_MAX_ARGUMENTS = 40
_MAX_SCHEMA = 8000  # the most characters of the schema of one argument
_MAX_DEPTH = 6
_MAX_PARTS = 1000  # the most subschemas of one argument, with references followed
_KINDS = frozenset({"type", "enum", "const", "anyOf", "oneOf"})
_KEPT = _KINDS | {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "required"}
_KEPT |= {"minLength", "maxLength", "minItems", "maxItems"}
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,39}")
META = "vgbench"
"""The key of `ServedFacts` in the protocol's meta fields; results repeat `state` there, and add `failure`."""
MAX_IMAGES = 8  # the most images in one call, and in one reply
MAX_REQUEST_BYTES = 32 << 20
MAX_REPLY_BYTES = 32 << 20
MAX_VALUES = 100_000  # the most JSON values in one message; each may take 100 times its bytes in memory


def write_schema(tool: Tool) -> dict[str, Any]:
    """The JSON schema of a tool's arguments, without references; arguments without a description are left out."""
    schema = _resolve(tool.Arguments.model_json_schema(), {})
    properties = {name: entry for name, entry in schema.get("properties", {}).items() if entry.get("description")}
    required = [name for name in schema.get("required", ()) if name in properties]
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def _resolve(schema: Any, parts: Mapping[str, Any]) -> Any:
    """A schema of pydantic without references and titles."""
    if isinstance(schema, list):
        return [_resolve(one, parts) for one in schema]
    if not isinstance(schema, dict):
        return schema
    parts = schema.get("$defs", parts)
    if "$ref" in schema:
        part = parts[schema["$ref"].rpartition("/")[2]]
        return _resolve({**part, **{key: value for key, value in schema.items() if key != "$ref"}}, parts)
    left_out = {"$defs"} | ({"title"} if isinstance(schema.get("title"), str) else set())
    return {key: _resolve(value, parts) for key, value in schema.items() if key not in left_out}


def clean_text(text: object) -> str:
    """A server's text in one line.

    Raises:
        ValueError: it is too long, or has characters that could move a terminal's cursor or hide words.
    """
    clean = " ".join(text.split()) if isinstance(text, str) else ""
    if len(clean) > MAX_TEXT or not clean.isprintable():
        raise ValueError(f"expected at most {MAX_TEXT} printable characters")
    return clean


def count_values(data: bytes) -> int:
    """An upper bound of the number of values in a JSON text, without parsing it: opening brackets and commas."""
    return sum(data.count(sign) for sign in (b"{", b"[", b","))


ToolName = Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_.-]{0,59}$")]
Text = Annotated[str, AfterValidator(clean_text)]


class ServedFacts(Config):
    """Fields of `Tool` that our servers add to a tool's announcement; other servers announce less."""

    does: Text
    returns: dict[ToolName, Text] = Field(max_length=60)
    state: str = Field(min_length=1, max_length=200)
    """Changes whenever the same call would give another result: version, options, weights."""
    image: Text = ""
    """The description of the argument `image` for models."""
    aliases: tuple[ToolName, ...] = Field(default=(), max_length=10)
    argument_aliases: dict[ToolName, ToolName] = Field(default_factory=dict, max_length=40)
    example: dict[str, Any] = Field(default_factory=dict, max_length=40)
    timeout_s: float = Field(default=60.0, gt=0, le=600)
    """The time limit of a call on the server, after it has started."""
    workers: int = Field(default=1, ge=1, le=1024)
    """The number of calls that the server runs at once."""


def make_arguments(name: str, schema: Mapping[str, Any], images: str = "") -> type[Config]:
    """The model class that checks arguments against a server's schema.

    Args:
        name: of the tool.
        schema: of an object; its property `image` takes images, which arguments here name.
        images: the description of that property for models.

    Raises:
        ValueError: it uses unknown keywords, is too large or too deep, or has a default that it does not allow.
    """
    properties, required, parts = schema.get("properties", {}), schema.get("required", []), schema.get("$defs", {})
    if not isinstance(properties, dict) or not isinstance(required, list) or not isinstance(parts, dict):
        raise ValueError("expected the schema of an object")
    if len(properties) > _MAX_ARGUMENTS:
        raise ValueError(f"found {len(properties)} arguments; expected at most {_MAX_ARGUMENTS}")
    if unknown := [argument for argument in required if argument not in properties]:
        raise ValueError(f"required argument {unknown[0]!s:.60} has no schema")
    fields: dict[str, Any] = {}
    for argument, entry in properties.items():
        try:
            fields[argument] = _read_field(argument, entry, argument in required, parts, images)
        except ValueError as error:
            raise ValueError(f"argument {argument!s:.60}: {error}") from None
    return create_model(f"{name}Arguments", __base__=Config, **fields)


def _read_field(name: str, schema: Any, required: bool, parts: Mapping[str, Any], images: str) -> tuple[Any, Any]:
    from jsonschema import Draft202012Validator, SchemaError

    if not _NAME.fullmatch(name) or hasattr(Config, name) or name.startswith("model_"):
        raise ValueError("the name is reserved or invalid")
    trimmed = trim_schema(schema, parts)
    description, default = clean_text(schema.get("description")), schema.get("default")
    if len(json.dumps(trimmed)) > _MAX_SCHEMA or len(json.dumps(default)) > MAX_TEXT:
        raise ValueError(f"expected a schema of at most {_MAX_SCHEMA} characters, and a default of {MAX_TEXT}")
    if name == "image":
        description = images or (
            "name of the image" if trimmed.get("type") == "string" else "names of images, in order"
        )
    try:
        Draft202012Validator.check_schema(trimmed)
    except SchemaError as error:
        raise ValueError(f"found no JSON schema: {error.message:.200}") from None
    validator = Draft202012Validator(trimmed)
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
    description = description or json.dumps(trimmed)[:200]  # models are not shown arguments without a description
    return kind, Field(description=description) if required else Field(default=default, description=description)


def trim_schema(schema: Any, parts: Mapping[str, Any], depth: int = 0, left: list[int] | None = None) -> dict[str, Any]:
    """A schema with references resolved, and without descriptions, defaults, patterns and unknown keywords.

    Args:
        schema: of an argument.
        parts: name -> schema, for references `#/$defs/NAME`.
        depth: the nesting depth of this schema in the argument's schema.
        left: the number of further subschemas that are allowed, counted down in place.

    Raises:
        ValueError: it has no type, an unknown reference, or is too deep or large.
    """
    left = [_MAX_PARTS] if left is None else left
    left[0] -= 1
    if not isinstance(schema, dict) or depth > _MAX_DEPTH or left[0] < 0:
        raise ValueError(f"expected a JSON schema of at most {_MAX_DEPTH} levels and {_MAX_PARTS} parts")
    if isinstance(reference := schema.get("$ref"), str) and not _KINDS & set(schema):
        return trim_schema(parts.get(reference.removeprefix("#/$defs/")), parts, depth + 1, left)
    if not _KINDS & set(schema):
        raise ValueError(f"found a schema without {', '.join(sorted(_KINDS))}; expected one of them")
    trimmed = {key: schema[key] for key in schema if key in _KEPT}
    for key in {"anyOf", "oneOf", "prefixItems"} & set(schema):
        members = schema[key] if isinstance(schema[key], list) else [schema[key]]
        trimmed[key] = [trim_schema(member, parts, depth + 1, left) for member in members]
    if isinstance(schema.get("items"), dict):
        trimmed["items"] = trim_schema(schema["items"], parts, depth + 1, left)
    if isinstance(properties := schema.get("properties"), dict):
        trimmed["properties"] = {name: trim_schema(entry, parts, depth + 1, left) for name, entry in properties.items()}
        trimmed["additionalProperties"] = False
    return trimmed
