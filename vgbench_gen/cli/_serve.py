"""`vgbench agent serve`: geometry tools for agents and programs elsewhere, as an MCP server."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from vgbench_gen.cli._options import count_workers
from vgbench_gen.core.config import Flag
from vgbench_gen.core.errors import ConfigError
from vgbench_gen.core.local_server import is_loopback, listen, make_address, serve

if TYPE_CHECKING:
    from collections.abc import Iterator

    from vgbench_gen.agent.toolbox import Toolbox


def serve_tools(
    tools: Annotated[str, Flag("Groups: classical, weights; utility tools are always included.", "A,B")] = "classical",
    setup: Annotated[Path | None, Flag("TOML file with a table per tool: weights, devices.", "FILE")] = None,
    host: Annotated[str, Flag("Address to listen on; a public one needs --token-env.", "HOST")] = "127.0.0.1",
    port: Annotated[int, Flag("Port; 0 = any free one.", "PORT"), Field(ge=0, le=65535)] = 8400,
    token_env: Annotated[str, Flag("Environment variable with the token that callers must send.", "NAME")] = "",
    workers: Annotated[int, Flag("Number of concurrent calls; 0 = all cores.", "N"), Field(ge=0)] = 0,
    stdio: Annotated[bool, Flag("Serve standard input and output instead of HTTP.")] = False,
    images: Annotated[list[Path] | None, Flag("With --stdio: folder whose images callers may name.", "FOLDER")] = None,
) -> None:
    """Serve geometry tools over the Model Context Protocol.

    Prints its address, and a setup file with which an agent uses the tools (tools=remote). Needs the extra mcp. Stop
    with Ctrl-C.
    """
    if images and not stdio:
        raise ConfigError("--images: found it without --stdio; over HTTP images come as bytes. Leave it out.")
    if absent := [folder for folder in images or () if not folder.is_dir()]:
        raise ConfigError(f"--images {absent[0]}: found no folder; expected one with images")
    token = os.environ.get(token_env, "").strip() if token_env else ""
    if token_env and (not token.isascii() or not token.isprintable() or len(token) < 16):
        raise ConfigError(f"--token-env {token_env}: found no token of at least 16 ASCII characters in that variable")
    if not token and not is_loopback(host):
        raise ConfigError(f"--host {host}: others can reach it; expected --token-env NAME as well")
    count = count_workers(workers)
    with _open(tools, setup, count) as toolbox:
        from vgbench_gen.agent.mcp_server import make_mcp_server, serve_stdio

        server = make_mcp_server(toolbox, count, images or ())
        if stdio:
            with suppress(KeyboardInterrupt):
                asyncio.run(serve_stdio(server))
        else:
            _serve_http(server, toolbox, host, port, token, token_env)


@contextmanager
def _open(tiers: str, setup: Path | None, workers: int) -> Iterator[Toolbox]:
    try:
        import uvicorn  # noqa: F401

        from vgbench_gen.agent.mcp_server import SERVED_TIERS, choose_served
        from vgbench_gen.agent.setup import load_setup
        from vgbench_gen.agent.toolbox import Toolbox, choose_tools
    except ModuleNotFoundError as error:
        raise ConfigError(f"agent serve needs the package {error.name}: pip install 'vgbench-gen[mcp]'") from error
    names = [name for name in tiers.split(",") if name]
    if unknown := sorted(set(names) - set(SERVED_TIERS)):
        raise ConfigError(f"--tools: found {', '.join(unknown)}; expected some of {', '.join(SERVED_TIERS)}")
    setups = load_setup(setup) if setup is not None else {}
    toolbox = Toolbox(choose_served(choose_tools(names, setups=setups)), workers, setups=setups)
    before = signal.signal(signal.SIGTERM, _interrupt)  # so that the processes of tools are ended
    try:
        yield toolbox
    finally:
        toolbox.close()
        signal.signal(signal.SIGTERM, before)


def _interrupt(*_: Any) -> None:
    raise KeyboardInterrupt


def _serve_http(server: Any, toolbox: Toolbox, host: str, port: int, token: str, token_env: str) -> None:
    from vgbench_gen.agent.guard import ToolGuard
    from vgbench_gen.agent.mcp_server import make_mcp_app

    guarded = ToolGuard(make_mcp_app(server), token, any_host=not is_loopback(host))
    sock = listen(host, port)
    try:
        url = f"{make_address(sock, host)}/mcp"
        print(f"{len(toolbox.tools)} tools at {url}: {', '.join(toolbox.tools)}.")
        print("An agent uses them with tools=remote&setup=FILE.toml, where FILE.toml contains:\n")
        print(f'[remote.tools]\nurl = "{url}"' + (f'\ntoken_env = "{token_env}"' if token else "") + "\n")
        print("Stop with Ctrl-C.", flush=True)
        serve(guarded, sock, lifespan=True)
    finally:
        sock.close()
    print("Stopped.", file=sys.stderr)
