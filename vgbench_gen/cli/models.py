"""`vgbench models`: who can be asked, and whether one of them works from end to end."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from typing import Annotated, Any

import typer

from vgbench_gen.backends.spec import BackendOptions
from vgbench_gen.cli._flags import Only
from vgbench_gen.cli._screen import print_columns, print_json
from vgbench_gen.cli._verbs import add_verb
from vgbench_gen.core.lines import format_command

_BASELINE = "baseline:"
_SENT = BackendOptions(concurrency=4, retries=2)


def register(app: typer.Typer) -> None:
    """Add the verb."""
    add_verb(app, "models", models, "Score", "vgbench models openai:gpt-4o    (without SPEC: who can be asked)")


def models(
    spec: Annotated[
        str, typer.Argument(metavar="[SPEC]", help="Such as openai:gpt-4o, vllm:http://host:8000/v1#NAME, hf:FOLDER.")
    ] = "",
    image: Annotated[bool, typer.Option("--image/--no-image", help="Whether to show it a picture.")] = True,
    long_side: Annotated[
        int, typer.Option("--long-side", metavar="PIXELS", min=0, help="Send the picture smaller; 0 as drawn.")
    ] = 0,
    max_tokens: Annotated[
        int, typer.Option("--max-tokens", metavar="N", min=1, help="Of each reply; models that reason need many.")
    ] = 1024,
    sent: Annotated[BackendOptions, Only("key_file", "base_url", "timeout_s", "retries", "prices", "local")] = _SENT,
    as_json: bool = False,
) -> None:
    """Check a model from end to end with words, a picture, JSON, temperature and seed: some ten short requests.

    Without SPEC, list the providers with the environment variables they read (set or not, never the value) and the
    extras they need. Exits 1 if the model answers but fails a check, 2 if it cannot be asked.
    """
    if not spec:
        _list_providers(as_json)
        return
    import asyncio

    from vgbench_gen.backends.spec import open_backend
    from vgbench_gen.cli._model_check import examine_model
    from vgbench_gen.core.errors import ConfigError

    if spec.startswith(_BASELINE):
        answer = format_command("vgbench", "eval", "--model", spec)
        raise ConfigError(f"{spec}: found a baseline, which asks nobody; it answers in `{answer}`.")

    backend = open_backend(spec, sent)
    try:
        found = examine_model(backend, image=image, long_side_px=long_side, max_tokens=max_tokens)
    finally:
        asyncio.run(backend.close())
    images = backend.capabilities.images_in, backend.capabilities.images_out
    if as_json:
        print_json({"spec": backend.spec, **found, "images_in": images[0], "images_out": images[1]})
    else:
        print("\n".join(_list_checks(backend.spec, images, found)))
    if not found["good"]:
        raise typer.Exit(1)


def _list_checks(spec: str, images: tuple[bool, bool], found: Mapping[str, Any]) -> Iterator[str]:
    from vgbench_gen.cli._model_check import NO_TEXT

    takes, gives = ("text and images" if one else "text" for one in images)
    yield f"model        {found['model']}  ({spec}; sent {takes}, may give {gives})"
    for check in found["checks"]:
        told = check["found"]
        if check["verdict"] != "refused":
            sent = "".join(f"; sent {width} x {height} px" for width, height in check["image_sizes_px"])
            wanted = f', expected "{check["expected"]}"' if check["verdict"] == "wrong" else ""
            said = told if told.startswith(NO_TEXT) else f'replied "{told}"'
            told = f"{said}{wanted}  ({check['latency_s']:.2f} s{sent})"
        yield f"{check['name']:<12} {check['verdict']:<8} {told}"
    cost = "not in the table of prices" if found["cost_usd"] is None else f"USD {found['cost_usd']:.6f}"
    yield f"temperature  {found['temperature']}"
    yield f"seed         {found['seed']}"
    yield "used         {} requests, {} + {} tokens; cost: {}".format(found["requests"], *found["tokens"], cost)
    failed = [check["name"] for check in found["checks"] if check["verdict"] != "ok"]
    if failed == ["image"]:
        yield "fell short: fit for wording, not for questions with pictures (--no-image checks the rest alone)"
    else:
        yield f"fell short: {', '.join(failed)}" if failed else "good"


def _list_providers(as_json: bool) -> None:
    from vgbench_gen.backends.spec import providers

    rows: list[dict[str, Any]] = []
    for name in providers:
        needs = providers[name].needs(name)
        rows.append(
            {
                "provider": name,
                "example": needs.example,
                "keys": _list_set(needs.keys),
                "needs_key": needs.needs_key,
                "without_key": needs.without_key,
                "variables": _list_set(needs.variables),
                "extra": needs.extra,
                "extra_installed": all(map(_is_installed, needs.packages)),
            }
        )
    if as_json:
        print_json(rows)
        return
    lines = []
    for row in rows:
        optional = "" if row["needs_key"] or not row["keys"] else " (may be left out)"
        parts = [" or ".join(_describe(row["keys"])) + optional or row["without_key"]]
        if row["extra"]:
            remedy = "installed" if row["extra_installed"] else f"missing: pip install 'vgbench-gen[{row['extra']}]'"
            parts.append(f"extra {row['extra']} {remedy}")
        if row["variables"]:
            parts.append(f"also read: {', '.join(_describe(row['variables']))}")
        lines.append((row["provider"], row["example"], "; ".join(parts)))
    print_columns(lines, heads=("provider", "example", "needs"))


def _list_set(variables: tuple[str, ...]) -> dict[str, bool]:
    """Variable -> whether it is set; never its value."""
    return {variable: bool(os.environ.get(variable, "").strip()) for variable in variables}


def _describe(variables: Any) -> list[str]:
    return [f"{name} {'set' if is_set else 'not set'}" for name, is_set in variables.items()]


def _is_installed(package: str) -> bool:
    try:
        return find_spec(package) is not None
    except ModuleNotFoundError:  # of the package that it would be in
        return False
