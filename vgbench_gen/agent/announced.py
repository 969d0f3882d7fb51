"""How a server announces a tool: the records of the protocol, and the arguments that a JSON schema describes.

What a server says is foreign: texts are printable and bounded, names follow a pattern, and of JSON schema only what is
listed in `docs/agent.md#servers` is read. Patterns are left to the server, which checks a call once more.
"""

from __future__ import annotations

import json
import types
from collections.abc import Mapping
from functools import reduce
from operator import or_
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, TypeAdapter, ValidationError, create_model

from vgbench_gen.agent.tool import ImageName, Tool
from vgbench_gen.core.config import Config

MAX_TOOLS = 100
MAX_TEXT = 2000
MAX_IMAGES = 8  # of one call, and of one reply
MAX_REQUEST_BYTES = 32 << 20
MAX_REPLY_BYTES = 32 << 20
MAX_ANNOUNCEMENT_BYTES = 1 << 20
_MAX_DEPTH = 6
_MAX_LIST = 1000
_NUMBER_BOUNDS = {"minimum": "ge", "maximum": "le", "exclusiveMinimum": "gt", "exclusiveMaximum": "lt"}


def _check_printable(text: str) -> str:
    if not text.isprintable():  # control characters could move a terminal's cursor, or hide words from a reader
        raise ValueError("printable text in one line")
    return text


ToolName = Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_]{0,59}$")]
"""Of a tool, and of what it returns."""
ArgumentName = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,39}$")]
PlainText = Annotated[str, Field(max_length=MAX_TEXT), AfterValidator(_check_printable)]
ShortText = Annotated[str, Field(max_length=200), AfterValidator(_check_printable)]
StateText = Annotated[str, Field(min_length=1, max_length=200), AfterValidator(_check_printable)]


class AnnouncedTool(Config):
    """One tool of a server."""

    name: ToolName
    """As models write it."""
    does: PlainText
    """What it does, for a model."""
    arguments: dict[ArgumentName, Any]
    """Name -> JSON schema with a description that says frame and unit; `image` names images of the call."""
    required: tuple[ArgumentName, ...] = Field(default=(), max_length=40)
    """The arguments that have no default."""
    returns: dict[ToolName, PlainText] = Field(max_length=60)
    """Key of the result -> what it is: frame, unit, axis sign."""
    version: StateText
    """Changed whenever the same call gives something else."""
    checksum: StateText
    """Of what results hang on besides: weights, options."""
    aliases: tuple[ToolName, ...] = Field(default=(), max_length=10)
    """Other names of it."""
    argument_aliases: dict[ArgumentName, ArgumentName] = Field(default_factory=dict, max_length=40)
    """Other names of arguments -> the name."""
    example: dict[ArgumentName, Any] = Field(default_factory=dict, max_length=40)
    """Arguments of a call."""
    tier: ToolName = "remote"
    """What it needs on the server."""
    timeout_s: float = Field(default=60.0, gt=0, le=600)
    """How long a call takes at most on the server, once it began."""


class Announcement(Config):
    """The reply to `GET /tools`."""

    protocol: Literal[1]
    """Version of the protocol."""
    server: ShortText = ""
    """Program and version."""
    workers: int = Field(default=1, ge=1, le=1024)
    """How many calls run at once; more wait."""
    tools: tuple[AnnouncedTool, ...] = Field(max_length=MAX_TOOLS)
    """What may be called."""


class CallRequest(Config):
    """The body of `POST /tools/NAME`."""

    arguments: dict[str, Any]
    """By name; images as image-0, image-1, … in the order of `images`."""
    images: tuple[str, ...] = Field(default=(), max_length=MAX_IMAGES)
    """JPEG or PNG in base64: image-0, image-1, …"""


class CallReply(Config):
    """The reply to `POST /tools/NAME`."""

    values: dict[str, Any] = Field(default_factory=dict, max_length=1000)
    """What the tool says."""
    images: tuple[str, ...] = Field(default=(), max_length=MAX_IMAGES)
    """What it made: JPEG or PNG in base64."""
    failure: Literal["", "tool_error", "wrong_arguments", "timeout", "crash"] = ""
    """"" where it succeeded."""
    message: str = Field(default="", max_length=2000)
    """What a model is told of the failure."""
    version: StateText
    """As announced."""
    checksum: StateText
    """As announced."""


def announce_tool(tool: Tool, checksum: str) -> AnnouncedTool:
    """What a server says of a tool of ours; fields without a description are not for models, and left out.

    Args:
        tool: a registered one.
        checksum: of its options and weights.
    """
    schema = _resolve(tool.Arguments.model_json_schema(), {})
    told = {name: about for name, about in schema.get("properties", {}).items() if about.get("description")}
    return AnnouncedTool(
        name=tool.name,
        does=_join_lines(tool.does),
        arguments=told,
        required=tuple(name for name in schema.get("required", ()) if name in told),
        returns={key: _join_lines(what) for key, what in tool.returns.items()},
        version=str(tool.version),
        checksum=checksum,
        aliases=tool.aliases,
        argument_aliases=dict(tool.argument_aliases),
        example=json.loads(json.dumps(tool.example)),
        tier=tool.tier,
        timeout_s=600.0 if tool.runs == "device" else tool.timeout_s,  # the first call loads weights
    )


def make_arguments(told: AnnouncedTool) -> type[Config]:
    """The class that checks arguments against what a server announced.

    Raises:
        ValueError: a schema uses what is not read, is too deep, or has a default that does not fit.
    """
    if unknown := [name for name in told.required if name not in told.arguments]:
        raise ValueError(f"required argument {unknown[0]} has no schema")
    fields: dict[str, Any] = {}
    for name, schema in told.arguments.items():
        fields[name] = _read_field(name, schema, name in told.required)
    return create_model(f"{told.name}Arguments", __base__=Config, **fields)


def _read_field(name: str, schema: Any, required: bool) -> tuple[Any, Any]:
    if hasattr(Config, name) or name.startswith("model_"):
        raise ValueError(f"argument {name}: the name is taken")
    kind = _read_type(schema, 0, ImageName if name == "image" else str, name)
    about = schema.get("description", "")
    if not isinstance(about, str) or len(about) > MAX_TEXT or not about.isprintable():
        raise ValueError(f"argument {name}: expected a description of at most {MAX_TEXT} printable characters")
    if required:
        return kind, Field(description=about)
    default = schema.get("default")
    if "default" not in schema:
        return _wrap(kind) | None, Field(default=None, description=about)
    listed = default if isinstance(default, list) else [default]
    if any(isinstance(value, dict | list) for value in listed):
        raise ValueError(f"argument {name}: found a nested default; expected a number, text or list of such")
    try:
        adapter: TypeAdapter[Any] = TypeAdapter(kind)
        value = adapter.validate_json(json.dumps(default), strict=True)
    except ValidationError:
        raise ValueError(f"argument {name}: the default does not fit its own schema") from None
    return kind, Field(default=value, description=about)


def _read_type(schema: Any, depth: int, text: Any, where: str) -> Any:
    """A type for pydantic; `text` stands for strings."""
    if not isinstance(schema, dict) or depth > _MAX_DEPTH:
        raise ValueError(f"argument {where}: expected a JSON schema of at most {_MAX_DEPTH} levels")
    for key in ("anyOf", "oneOf"):
        if key in schema:
            among = _read_list(schema[key], 1, 8, where)
            return reduce(or_, [_wrap(_read_type(one, depth + 1, text, where)) for one in among])
    if "const" in schema or "enum" in schema:
        values = _read_list(schema.get("enum", [schema.get("const")]), 1, 50, where)
        if not all(isinstance(value, str) and len(value) <= 200 and value.isprintable() for value in values):
            raise ValueError(f"argument {where}: expected an enum of texts")
        return Literal[tuple(values)]
    match schema.get("type"):
        case [_, *_] as kinds if all(isinstance(kind, str) for kind in kinds):
            # Without repetitions: nested ones would multiply.
            each = [_read_type({**schema, "type": kind}, depth + 1, text, where) for kind in sorted(set(kinds))]
            return reduce(or_, map(_wrap, each))
        case "string":
            bounds = _read_lengths(schema, "minLength", "maxLength", 4000, where)
            return Annotated[text, Field(**bounds)]
        case "boolean":
            return bool
        case "null":
            return None
        case "integer" | "number" as kind:
            limits = {ours: schema[theirs] for theirs, ours in _NUMBER_BOUNDS.items() if theirs in schema}
            if any(isinstance(limit, bool) or not isinstance(limit, int | float) for limit in limits.values()):
                raise ValueError(f"argument {where}: expected numbers as bounds")
            number = int if kind == "integer" else float
            return Annotated[number, Field(**limits)]
        case "array":
            return _read_array(schema, depth, text, where)
        case "object":
            return _read_object(schema, depth, text, where)
    raise ValueError(f"argument {where}: found a schema of type {schema.get('type')!r:.40}; expected a JSON type")


def _read_array(schema: Mapping[str, Any], depth: int, text: Any, where: str) -> Any:
    if "prefixItems" in schema:
        places = _read_list(schema["prefixItems"], 1, 20, where)
        return tuple[tuple(_read_type(one, depth + 1, text, where) for one in places)]  # type: ignore[misc]
    if "items" not in schema:
        raise ValueError(f"argument {where}: expected items of an array")
    each: Any = _read_type(schema["items"], depth + 1, text, where)
    most = MAX_IMAGES if text is ImageName else _MAX_LIST
    return Annotated[
        tuple[each, ...],
        Field(**_read_lengths(schema, "minItems", "maxItems", most, where)),
    ]


def _read_object(schema: Mapping[str, Any], depth: int, text: Any, where: str) -> Any:
    properties, required = schema.get("properties"), schema.get("required", [])
    if not isinstance(properties, dict) or not 1 <= len(properties) <= 40 or not isinstance(required, list):
        raise ValueError(f"argument {where}: expected an object with named properties")
    fields: dict[str, Any] = {}
    for name, one in properties.items():
        if not TypeAdapter(ArgumentName).validate_python(name) or hasattr(Config, name):
            raise ValueError(f"argument {where}: the name {name} is taken")
        kind = _read_type(one, depth + 1, text, where)
        fields[name] = (kind, ...) if name in required else (kind | None, None)
    return create_model("Part", __base__=Config, **fields)


def _read_lengths(schema: Mapping[str, Any], least: str, most: str, bound: int, where: str) -> dict[str, Any]:
    found = {"min_length": schema.get(least, 0), "max_length": schema.get(most, bound)}
    if any(isinstance(length, bool) or not isinstance(length, int) or length < 0 for length in found.values()):
        raise ValueError(f"argument {where}: expected whole numbers as {least} and {most}")
    return {"min_length": found["min_length"], "max_length": min(found["max_length"], bound)}


def _read_list(value: Any, least: int, most: int, where: str) -> list[Any]:
    if not isinstance(value, list) or not least <= len(value) <= most:
        raise ValueError(f"argument {where}: expected a list of {least} to {most}")
    return value


def _wrap(kind: Any) -> Any:
    """None as a type, so that types can be joined."""
    return types.NoneType if kind is None else kind


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


def _join_lines(text: str) -> str:
    return " ".join(text.split())
