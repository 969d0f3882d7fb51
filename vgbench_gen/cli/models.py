"""`vgbench models`: the providers of models, and a check of one model from end to end."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Annotated, Any

import typer
from pydantic import Field

from vgbench_gen.backends.base import (
    BackendError,
    ImagePart,
    Message,
    Reply,
    Request,
    Settings,
    TextPart,
    Usage,
    find_shortfall,
)
from vgbench_gen.backends.spec import BackendOptions
from vgbench_gen.cli._flags import Only
from vgbench_gen.cli._screen import print_columns, print_json
from vgbench_gen.cli._verbs import verb
from vgbench_gen.core.config import Flag
from vgbench_gen.core.errors import ConfigError
from vgbench_gen.core.json_text import parse_json
from vgbench_gen.core.lines import format_command, make_one_line

if TYPE_CHECKING:
    from vgbench_gen.backends.base import Backend
    from vgbench_gen.backends.batch import Outcome

_BASELINE = "baseline:"
_SENT = BackendOptions(concurrency=4, retries=2)
# OpenCV's order: blue, green, red. Far apart for every eye and every model; the words stand in templates/.
_LEFT, _RIGHT = (0, 220, 255), (40, 150, 0)
_SHOWN_CHARACTERS = 80
_JSON_MODE = {"response_format": {"type": "json_object"}}
_NO_TEXT = "(no text: "  # begins what is printed in place of an empty reply


@verb("models", "Score", "vgbench models --check openai:gpt-4o    (without --check: the list)")
def models(
    check: Annotated[str, Flag("Model to check: openai:gpt-4o, vllm:http://host:8000/v1#NAME, …", "SPEC")] = "",
    image: Annotated[bool, Flag("Also send the model a test image.", names="--image/--no-image")] = True,
    long_side: Annotated[int, Flag("Downscale the image to this side; 0 = never.", "PIXELS"), Field(ge=0)] = 0,
    max_tokens: Annotated[int, Flag("Longest reply in tokens; reasoning models need many.", "N"), Field(ge=1)] = 1024,
    sent: Annotated[BackendOptions, Only("key_file", "base_url", "timeout_s", "retries", "prices", "local")] = _SENT,
    as_json: bool = False,
) -> None:
    """List the providers of models, or check one model.

    The list has the environment variables that each provider reads (set or not, never the value) and the extras it
    needs. The check sends five short requests: text, an image, JSON, and two identical ones at temperature 0, to see
    whether the replies agree. It exits 1 if the model answers but fails a check, 2 if it does not answer.
    """
    if not check:
        _list_providers(as_json)
        return
    import asyncio

    from vgbench_gen.backends.spec import open_backend

    if check.startswith(_BASELINE):
        answer = format_command("vgbench", "eval", "--model", check)
        raise ConfigError(f"{check}: found a baseline, which sends no requests; it answers in `{answer}`.")
    backend = open_backend(check, sent)
    try:
        found = examine_model(backend, image=image, long_side_px=long_side, max_tokens=max_tokens)
    finally:
        asyncio.run(backend.close())
    images = backend.images_in, backend.images_out
    if as_json:
        print_json({"spec": backend.spec, **found, "images_in": images[0], "images_out": images[1]})
    else:
        print("\n".join(_list_checks(backend.spec, images, found)))
    if not found["good"]:
        raise typer.Exit(1)


def examine_model(backend: Backend, *, image: bool, long_side_px: int, max_tokens: int) -> dict[str, Any]:
    """Ask a model for a word, a picture's content and JSON, and twice for the same at temperature 0.

    Args:
        backend: who is asked; without a cache, or old replies are judged.
        image: whether to show a picture.
        long_side_px: of the picture as sent, 0 as drawn.
        max_tokens: of each reply.

    Returns:
        the `model`'s name in replies; `checks`, each with its `name`, whether the reply was "ok", "wrong" or "refused"
        (`verdict`), what was `found` and `expected`, `latency_s` and `image_sizes_px`; whether all are `good`; whether
        replies at `temperature` 0 repeat, in words; and what it took: `requests`, `tokens`, `cost_usd`.

    Raises:
        BackendError: not even plain words get a reply.
    """
    from vgbench_gen.backends.batch import ask_all
    from vgbench_gen.text.render import find_templates_root, load_words

    backend.tally.reported = True  # by the checks
    words = load_words(find_templates_root() / "prompts" / "check.toml")

    def ask(name: str, **settings: Any) -> list[Outcome]:
        picture = [ImagePart(_draw_picture(), long_side_px)] if name == "image" else []
        epochs = [Settings(max_tokens=max_tokens, epoch=k, **settings) for k in range(1 + (name == "draw"))]
        message = Message("user", (*picture, TextPart(words[f"{name}.ask"])))
        return ask_all(backend, [Request((message,), one) for one in epochs])

    outcomes, checks = [], []
    for name in ("text", "image", "json") if image else ("text", "json"):
        outcomes += ask(name, extra_body=_JSON_MODE if name == "json" else {})
        if name == "json" and isinstance(outcomes[-1], BackendError) and outcomes[-1].kind == "wrong_request":
            outcomes += ask(name)  # a server may refuse the mode for JSON alone
        if name == "text" and isinstance(outcomes[-1], BackendError):
            raise outcomes[-1]
        checks.append(_judge_reply(name, outcomes[-1], words[f"{name}.expect"]))
    drawn = ask("draw", temperature=0.0)
    replies = [outcome for outcome in (*outcomes, *drawn) if isinstance(outcome, Reply)]
    used, costs = [reply.usage or Usage() for reply in replies], [reply.cost_usd for reply in replies]
    return {
        "model": replies[0].model,
        "checks": checks,
        "good": all(check["verdict"] == "ok" for check in checks),
        "temperature": _compare_replies(drawn),
        "requests": len(outcomes) + len(drawn),
        "tokens": [sum(usage.prompt_tokens for usage in used), sum(usage.completion_tokens for usage in used)],
        "cost_usd": None if None in costs else sum(cost for cost in costs if cost is not None),
    }


def _compare_replies(drawn: Sequence[Outcome]) -> str:
    for outcome in drawn:
        if isinstance(outcome, BackendError):
            return f"refused: {_shorten(outcome.message)}"
    first, second = (outcome for outcome in drawn if isinstance(outcome, Reply))
    if "temperature" not in first.parameters:
        return "fixed by the model; none is sent"
    return "two replies at 0 are the same" if first.text == second.text else "two replies at 0 differ"


def _judge_reply(name: str, outcome: Outcome, expected: str) -> dict[str, Any]:
    if isinstance(outcome, BackendError):
        return {"name": name, "verdict": "refused", "found": outcome.message}
    text = outcome.text
    if name == "json":
        try:
            tree = parse_json(text)
        except ValueError:
            tree = None
        text = str(tree.get("place", "")) if isinstance(tree, Mapping) else ""
    in_order = r"\b.*?\b".join(map(re.escape, expected.split()))
    right = re.search(rf"\b{in_order}\b", text, re.IGNORECASE | re.DOTALL) is not None
    return {
        "name": name,
        "verdict": "ok" if right else "wrong",
        "found": _shorten(outcome.text) if outcome.text.strip() else f"{_NO_TEXT}{find_shortfall(outcome)[1]})",
        "expected": expected,
        "latency_s": round(outcome.latency_s, 3),
        "image_sizes_px": [list(size) for size in outcome.image_sizes_px],
    }


def _shorten(text: str) -> str:
    line = make_one_line(text, 10 * _SHOWN_CHARACTERS)
    return line if len(line) <= _SHOWN_CHARACTERS else f"{line[:_SHOWN_CHARACTERS]}…"


def _draw_picture() -> bytes:
    """A PNG of 320 x 200 pixels: a yellow square to the left of a green one, on white."""
    import cv2
    import numpy as np

    pixels = np.full((200, 320, 3), 255, np.uint8)
    pixels[50:150, 30:130], pixels[50:150, 190:290] = _LEFT, _RIGHT
    return cv2.imencode(".png", pixels)[1].tobytes()


def _list_checks(spec: str, images: tuple[bool, bool], found: Mapping[str, Any]) -> Iterator[str]:
    takes, gives = ("text and images" if one else "text" for one in images)
    yield f"model        {found['model']}  ({spec}; sent {takes}, may give {gives})"
    for check in found["checks"]:
        text = check["found"]
        if check["verdict"] != "refused":
            sent = "".join(f"; sent {width} x {height} px" for width, height in check["image_sizes_px"])
            wanted = f', expected "{check["expected"]}"' if check["verdict"] == "wrong" else ""
            reply = text if text.startswith(_NO_TEXT) else f'replied "{text}"'
            text = f"{reply}{wanted}  ({check['latency_s']:.2f} s{sent})"
        yield f"{check['name']:<12} {check['verdict']:<8} {text}"
    cost = "not in the table of prices" if found["cost_usd"] is None else f"USD {found['cost_usd']:.6f}"
    yield f"temperature  {found['temperature']}"
    yield "used         {} requests, {} + {} tokens; cost: {}".format(found["requests"], *found["tokens"], cost)
    failed = [check["name"] for check in found["checks"] if check["verdict"] != "ok"]
    if failed == ["image"]:
        yield "failed: image. Fit for rewording, not for questions with images (--no-image checks only the rest)"
    else:
        yield f"failed: {', '.join(failed)}" if failed else "good"


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
        optional = "" if row["needs_key"] or not row["keys"] else "optional: "
        parts = [optional + " or ".join(_describe(row["keys"])) or row["without_key"]]
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
    return [f"{name} ({'set' if is_set else 'not set'})" for name, is_set in variables.items()]


def _is_installed(package: str) -> bool:
    try:
        return find_spec(package) is not None
    except ModuleNotFoundError:  # of the package that it would be in
        return False
