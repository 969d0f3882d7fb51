"""How a server announces a tool: the messages of the protocol, and the arguments that a JSON schema describes.

What a server says is foreign: texts are printable and bounded, names follow a pattern, and of JSON schema only what is
listed in `docs/agent.md#servers` is kept. Patterns, which may take for ever, are left to the server, which checks a
call once more; nothing is looked up elsewhere (`$ref`).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal, TypeVar

from pydantic import AfterValidator, FailFast, Field, create_model

from vgbench_gen.agent.tool import Tool
from vgbench_gen.core.config import Config
from vgbench_gen.core.json_text import parse_json

MAX_TOOLS = 100
MAX_TEXT = 2000
MAX_IMAGES = 8  # of one call, and of one reply
MAX_REQUEST_BYTES = 32 << 20
MAX_REPLY_BYTES = 32 << 20
MAX_ANNOUNCEMENT_BYTES = 1 << 20
MAX_VALUES = 100_000  # of one message; each takes up to 100 times its bytes in memory
_MAX_SCHEMA = 8000  # characters of the schema of one argument
_MAX_DEPTH = 6
_KINDS = frozenset({"type", "enum", "const", "anyOf", "oneOf"})
_KEPT = _KINDS | {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "required"}
_KEPT |= {"minLength", "maxLength", "minItems", "maxItems"}
ConfigT = TypeVar("ConfigT", bound=Config)


def read_message(data: bytes, model: type[ConfigT], cover: Callable[[Any], Any] = lambda told: told) -> ConfigT:
    """What a message says.

    Args:
        data: JSON.
        model: what is expected.
        cover: what is done to the JSON before anybody sees it, such as covering keys.

    Raises:
        ValueError: no JSON, or too many values; a `pydantic.ValidationError` where it is of another form.
    """
    if (found := count_values(data)) > MAX_VALUES:
        raise ValueError(f"{found} values; at most {MAX_VALUES} are read")
    return model.model_validate_json(json.dumps(cover(parse_json(data))))


def count_values(data: bytes) -> int:
    """How many values a JSON text may hold, before it is parsed: brackets that open, and commas."""
    return sum(data.count(sign) for sign in (b"{", b"[", b","))


def _check_printable(text: str) -> str:
    if not text.isprintable():  # control characters could move a terminal's cursor, or hide words from a reader
        raise ValueError("printable text in one line")
    return text


def _check_short(given: dict[str, Any]) -> dict[str, Any]:
    if len(json.dumps(given)) > MAX_TEXT:  # models read it
        raise ValueError(f"at most {MAX_TEXT} characters of JSON")
    return given


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
    arguments: dict[ArgumentName, Any] = Field(max_length=40)
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
    example: Annotated[dict[ArgumentName, Any], AfterValidator(_check_short)] = Field(default_factory=dict)
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
    tools: Annotated[tuple[AnnouncedTool, ...], FailFast()] = Field(max_length=MAX_TOOLS)
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
        ValueError: a schema uses what is not read, is too large or too deep, or has a default that does not fit.
    """
    if unknown := [name for name in told.required if name not in told.arguments]:
        raise ValueError(f"required argument {unknown[0]} has no schema")
    fields: dict[str, Any] = {}
    for name, schema in told.arguments.items():
        try:
            fields[name] = _read_field(name, schema, name in told.required)
        except ValueError as error:
            raise ValueError(f"argument {name}: {error}") from None
    return create_model(f"{told.name}Arguments", __base__=Config, **fields)


def _read_field(name: str, schema: Any, required: bool) -> tuple[Any, Any]:
    from jsonschema import Draft202012Validator, SchemaError

    if hasattr(Config, name) or name.startswith("model_"):
        raise ValueError("the name is taken")
    kept = trim_schema(schema)
    about, default = schema.get("description", ""), schema.get("default")
    if not isinstance(about, str) or len(about) > MAX_TEXT or not about.isprintable():
        raise ValueError(f"expected a description of at most {MAX_TEXT} printable characters")
    if len(json.dumps(kept)) > _MAX_SCHEMA or len(json.dumps(default)) > MAX_TEXT:
        raise ValueError(f"expected a schema of at most {_MAX_SCHEMA} characters, and a default of {MAX_TEXT}")
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
    return kind, Field(description=about) if required else Field(default=default, description=about)


def trim_schema(schema: Any, depth: int = 0) -> dict[str, Any]:
    """A schema without all that is not read: descriptions, defaults, patterns, references.

    Raises:
        ValueError: it says no type, or is too deep.
    """
    if not isinstance(schema, dict) or depth > _MAX_DEPTH:
        raise ValueError(f"expected a JSON schema of at most {_MAX_DEPTH} levels")
    if not _KINDS & set(schema):
        raise ValueError(f"found a schema without {', '.join(sorted(_KINDS))}; expected one of them")
    kept = {key: schema[key] for key in schema if key in _KEPT}
    for key in {"anyOf", "oneOf", "prefixItems"} & set(schema):
        listed = schema[key] if isinstance(schema[key], list) else [schema[key]]
        kept[key] = [trim_schema(one, depth + 1) for one in listed]
    if "items" in schema:
        kept["items"] = trim_schema(schema["items"], depth + 1)
    if isinstance(named := schema.get("properties"), dict):
        kept["properties"] = {name: trim_schema(one, depth + 1) for name, one in named.items()}
        kept["additionalProperties"] = False
    return kept


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
