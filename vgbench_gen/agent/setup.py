"""The setup file of an agent: which weights, device or server each tool uses.

[defaults]                      # for every tool that knows the key
device = "cuda:0"

[LocalizeObjects]               # a table per tool, by its name
detector = "IDEA-Research/grounding-dino-base"

[remote.lab]                    # a server whose tools `tools=remote` offers; any number, by names of your own
url = "http://127.0.0.1:8400/mcp"
token_env = "LAB_TOKEN"         # the environment variable with its token; left out where it asks for none
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from pydantic import ConfigDict, Field

from vgbench_gen.agent.tool import Tool, ToolOptions, tools
from vgbench_gen.core.config import Config, load_toml, parse_config
from vgbench_gen.core.errors import ConfigError

DEFAULTS = "defaults"
REMOTE = "remote"


class _Tables(Config):
    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, dict[str, Any]]


class RemoteServer(Config):
    """A table `[remote.NAME]`."""

    url: str = Field(pattern=r"^https?://", max_length=500)
    """Where it answers, with the path."""
    token_env: str = Field(default="", pattern=r"^([A-Za-z_][A-Za-z0-9_]*)?$")
    """The environment variable that holds its token; "" for none."""


def load_servers(path: Path) -> dict[str, RemoteServer]:
    """The tables `[remote.NAME]` of a setup file, by name.

    Raises:
        ConfigError: as `load_setup`.
    """
    told = load_toml(path, _Tables).__pydantic_extra__.get(REMOTE, {})
    if "url" in told:
        raise ConfigError(f"{path}: [{REMOTE}]: found an address; expected a name as well, such as [{REMOTE}.lab]")
    return {name: parse_config(table, RemoteServer, f"{path}: [{REMOTE}.{name}]") for name, table in told.items()}


def load_setup(path: Path) -> dict[str, ToolOptions]:
    """Options of tools by the names under which they are registered; those that nothing is said of are left out.

    Args:
        path: a TOML file with a table per tool, and `[defaults]` for every tool that knows the key.

    Raises:
        ConfigError: the file cannot be read, or names a tool or an option that there is not; says which table, what was
            found and what was expected.
    """
    told = dict(load_toml(path, _Tables).__pydantic_extra__)
    shared = told.pop(DEFAULTS, {})
    told.pop(REMOTE, None)
    settable = [tool for tool in tools.values() if tool.Options.model_fields]
    names = {tool.name for tool in settable}
    if unknown := next((name for name in told if name not in names), ""):
        raise ConfigError(
            f"{path}: found a table [{unknown}]; expected [{DEFAULTS}], [{REMOTE}.NAME] or a tool with options: "
            f"{', '.join(sorted(names))}{_hint(unknown, names)}"
        )
    keys = {key for tool in settable for key in tool.Options.model_fields}
    if unknown := next((key for key in shared if key not in keys), ""):
        raise ConfigError(
            f"{path}: [{DEFAULTS}] {unknown}: found a key of no tool; expected some of "
            f"{', '.join(sorted(keys))}{_hint(unknown, keys)}"
        )
    read = {tool.key: _read_options(tool, told.get(tool.name, {}), shared, path) for tool in settable}
    return {key: options for key, options in read.items() if options is not None}


def _read_options(tool: Tool, own: Mapping[str, Any], shared: Mapping[str, Any], path: Path) -> ToolOptions | None:
    fields = tool.Options.model_fields
    told = {key: value for key, value in shared.items() if key in fields} | dict(own)
    needed = {name for name, field in fields.items() if field.is_required()}
    if not told or (not own and not needed <= set(told)):
        return None
    return parse_config(told, tool.Options, f"{path}: [{tool.name}]")


def _hint(found: str, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(found, list(known), n=1)
    return f". Did you mean {near[0]}?" if near else ""
