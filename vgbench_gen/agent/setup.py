"""The setup file of an agent: which weights, device or server each tool uses.

[defaults]                      # for every tool that has the option
device = "cuda:0"

[LocalizeObjects]               # a table per tool, by its name
detector = "IDEA-Research/grounding-dino-base"

[remote.lab]                    # a server for `tools=remote`, under a name of your choice; any number of servers
url = "http://127.0.0.1:8400/mcp"
token_env = "LAB_TOKEN"         # the environment variable with its token; leave it out if it needs none
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from pydantic import ConfigDict, Field

from vgbench_gen.agent.tool import ToolOptions, tools
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
    token_env: str = Field(default="", pattern=r"^([A-Za-z_][A-Za-z0-9_]*)?$")
    """The environment variable that holds its token; "" for none."""


def load_servers(path: Path) -> dict[str, RemoteServer]:
    """The tables `[remote.NAME]` of a setup file, by name; errors are those of `load_setup`."""
    tables = load_toml(path, _Tables).__pydantic_extra__.get(REMOTE, {})
    if "url" in tables:
        raise ConfigError(f"{path}: [{REMOTE}]: found an address; expected a name as well, such as [{REMOTE}.lab]")
    return {name: parse_config(table, RemoteServer, f"{path}: [{REMOTE}.{name}]") for name, table in tables.items()}


def load_setup(path: Path) -> dict[str, ToolOptions]:
    """Options of tools in a setup file, by the tools' registered keys; tools that it does not set up are left out.

    Raises:
        ConfigError: the file cannot be read, or names an unknown tool or option.
    """
    tables = dict(load_toml(path, _Tables).__pydantic_extra__)
    defaults = tables.pop(DEFAULTS, {})
    tables.pop(REMOTE, None)
    settable = [tool for tool in tools.values() if tool.Options.model_fields]
    names = {tool.name for tool in settable}
    if unknown := next((name for name in tables if name not in names), ""):
        raise ConfigError(
            f"{path}: found a table [{unknown}]; expected [{DEFAULTS}], [{REMOTE}.NAME] or a tool with options: "
            f"{', '.join(sorted(names))}{_suggest(unknown, names)}"
        )
    keys = {key for tool in settable for key in tool.Options.model_fields}
    if unknown := next((key for key in defaults if key not in keys), ""):
        raise ConfigError(
            f"{path}: [{DEFAULTS}] {unknown}: found a key of no tool; expected some of "
            f"{', '.join(sorted(keys))}{_suggest(unknown, keys)}"
        )
    setups: dict[str, ToolOptions] = {}
    for tool in settable:
        table, fields = tables.get(tool.name, {}), tool.Options.model_fields
        values = {key: value for key, value in defaults.items() if key in fields} | table
        is_complete = all(key in values for key, field in fields.items() if field.is_required())
        if table or (values and is_complete):
            setups[tool.key] = parse_config(values, tool.Options, f"{path}: [{tool.name}]")
    return setups


def _suggest(unknown: str, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(unknown, list(known), n=1)
    return f". Did you mean {near[0]}?" if near else ""
