"""`vgbench serve-tools`: geometry tools for agents elsewhere, over HTTP or as an MCP server."""

from __future__ import annotations

import os
import signal
import sys
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vgbench_gen.cli._options import count_workers
from vgbench_gen.cli._verbs import add_verb
from vgbench_gen.core.errors import ConfigError
from vgbench_gen.core.local_server import is_loopback, listen, make_address, serve

if TYPE_CHECKING:
    from collections.abc import Iterator

    from vgbench_gen.agent.tool_server import ServedTools


def register(app: typer.Typer) -> None:
    """Add the verb."""
    add_verb(app, "serve-tools", serve_tools, "Score", "vgbench serve-tools --tools classical --port 8400")


def serve_tools(
    tools: Annotated[
        str, typer.Option("--tools", metavar="TIERS", help="classical, weights or both; utility is always there.")
    ] = "classical",
    setup: Annotated[
        Path | None, typer.Option("--setup", metavar="FILE", help="TOML with a table per tool: weights, devices.")
    ] = None,
    host: Annotated[
        str, typer.Option("--host", help="Address to listen on; others than this machine's own need --token-env.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="0 takes a free one.")] = 8400,
    token_env: Annotated[
        str, typer.Option("--token-env", metavar="NAME", help="Variable with the token that callers must know.")
    ] = "",
    workers: Annotated[int, typer.Option("--workers", metavar="N", min=0, help="Calls at once; 0 for all cores.")] = 0,
    mcp: Annotated[
        bool, typer.Option("--mcp", help="Be an MCP server on standard input and output instead (extra mcp).")
    ] = False,
    mcp_http: Annotated[
        bool, typer.Option("--mcp-http", help="Be an MCP server over HTTP instead, at /mcp (extra mcp).")
    ] = False,
    images: Annotated[
        list[Path] | None,
        typer.Option("--images", metavar="FOLDER", help="Of --mcp: images below it may be named by path; repeat."),
    ] = None,
) -> None:
    """Offer geometry tools to agents elsewhere by a small HTTP protocol; stop with Ctrl-C.

    Prints its address and what to put into the setup file of an agent, which then names them with tools=remote. With
    --mcp or --mcp-http, programs that speak the Model Context Protocol have the same tools.
    """
    if images and not mcp:
        raise ConfigError("--images: found it without --mcp; over HTTP images come as bytes. Leave it out.")
    if mcp and mcp_http:
        raise ConfigError("--mcp --mcp-http: found both; expected one of them")
    if absent := [folder for folder in images or () if not folder.is_dir()]:
        raise ConfigError(f"--images {absent[0]}: found no folder; expected one with images")
    token = os.environ.get(token_env, "").strip() if token_env else ""
    if token_env and (not token.isascii() or not token.isprintable() or len(token) < 16):
        raise ConfigError(f"--token-env {token_env}: found no token of at least 16 ASCII characters in that variable")
    if not token and not is_loopback(host):
        raise ConfigError(f"--host {host}: others can reach it; expected --token-env NAME as well")
    with _open(tools, setup, count_workers(workers)) as served:
        if mcp:
            _serve_stdio(served, images or [])
        else:
            _serve_http(served, host, port, token, token_env, mcp_http)


@contextmanager
def _open(tiers: str, setup: Path | None, workers: int) -> Iterator[ServedTools]:
    try:
        import uvicorn  # noqa: F401

        from vgbench_gen.agent.setup import load_setup
        from vgbench_gen.agent.tool_server import SERVED_TIERS, ServedTools, choose_served
        from vgbench_gen.agent.toolbox import Toolbox, choose_tools
    except ModuleNotFoundError as error:
        raise ConfigError(f"serve-tools needs the package {error.name}: pip install 'vgbench-gen[serve]'") from error
    names = [name for name in tiers.split(",") if name]
    if unknown := sorted(set(names) - set(SERVED_TIERS)):
        raise ConfigError(f"--tools: found {', '.join(unknown)}; expected some of {', '.join(SERVED_TIERS)}")
    setups = load_setup(setup) if setup is not None else {}
    toolbox = Toolbox(choose_served(choose_tools(names, setups=setups)), workers, setups=setups)
    before = signal.signal(signal.SIGTERM, _interrupt)  # so that the processes of tools are ended
    try:
        yield ServedTools(toolbox, workers)
    finally:
        toolbox.close()
        signal.signal(signal.SIGTERM, before)


def _interrupt(*_: Any) -> None:
    raise KeyboardInterrupt


def _serve_stdio(served: ServedTools, folders: list[Path]) -> None:
    import asyncio

    server = _make_mcp_server(served, folders)
    from vgbench_gen.agent.mcp_server import serve_stdio

    with suppress(KeyboardInterrupt):
        asyncio.run(serve_stdio(server))


def _make_mcp_server(served: ServedTools, folders: list[Path]) -> Any:
    try:
        from vgbench_gen.agent.mcp_server import make_mcp_server
    except ModuleNotFoundError as error:
        raise ConfigError(f"--mcp needs the package {error.name}: pip install 'vgbench-gen[mcp]'") from error
    return make_mcp_server(served, folders)


def _serve_http(served: ServedTools, host: str, port: int, token: str, token_env: str, mcp: bool) -> None:
    from vgbench_gen.agent.tool_server import ToolGuard, ToolServer

    app: Any = ToolServer(served)
    if mcp:
        server = _make_mcp_server(served, [])
        from vgbench_gen.agent.mcp_server import make_mcp_app

        app = make_mcp_app(server)
    guarded = ToolGuard(app, token, any_host=not is_loopback(host))
    sock = listen(host, port)
    try:
        url = make_address(sock, host)
        print(f"{len(served.announced)} tools at {url}{'/mcp' if mcp else ''}: {', '.join(served.announced)}.")
        if not mcp:
            print("An agent takes them with tools=remote&setup=FILE.toml, where FILE.toml holds:\n")
            print(f'[remote.tools]\nurl = "{url}"' + (f'\ntoken_env = "{token_env}"' if token else "") + "\n")
        print("Stop with Ctrl-C.", flush=True)
        serve(guarded, sock, lifespan=mcp)
    finally:
        sock.close()
    print("Stopped.", file=sys.stderr)
