"""What `vgbench models SPEC` asks, and what it makes of the replies."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

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
from vgbench_gen.backends.batch import ask_all
from vgbench_gen.core.json_text import parse_json
from vgbench_gen.core.lines import make_one_line
from vgbench_gen.text.render import find_templates_root, load_words

if TYPE_CHECKING:
    from vgbench_gen.backends.base import Backend
    from vgbench_gen.backends.batch import Outcome

_SIZE_PX = (320, 200)
# OpenCV's order: blue, green, red. Far apart for every eye and every model; the words stand in templates/.
_LEFT, _RIGHT = (0, 220, 255), (40, 150, 0)
_SHOWN_CHARACTERS = 80
_JSON_MODE = {"response_format": {"type": "json_object"}}
NO_TEXT = "(no text: "  # begins what stands in the place of an empty reply
# Temperature, seed and epoch: twice without drawing, twice with one seed, then with two others.
_DRAWS = ((0.0, None, 0), (0.0, None, 1), (1.0, 1, 0), (1.0, 1, 1), (1.0, 2, 0), (1.0, 3, 0))


def examine_model(backend: Backend, *, image: bool, long_side_px: int, max_tokens: int) -> dict[str, Any]:
    """Ask a model for a word, a picture's content, JSON, and free replies with and without a seed.

    Args:
        backend: who is asked; without a cache, or old replies are judged.
        image: whether to show a picture.
        long_side_px: of the picture as sent, 0 as drawn.
        max_tokens: of each reply.

    Returns:
        the `model`'s name in replies; `checks`, each with its `name`, whether the reply was "ok", "wrong" or "refused"
        (`verdict`), what was `found` and `expected`, `latency_s` and `image_sizes_px`; whether all are `good`; whether
        `temperature` and `seed` are honoured, in words; and what it took: `requests`, `tokens`, `cost_usd`.

    Raises:
        BackendError: not even plain words get a reply.
    """
    backend.tally.reported = True  # by the checks
    words = load_words(find_templates_root() / "prompts" / "check.toml")
    outcomes: list[Outcome] = []
    checks = []
    for name in ("text", "image", "json") if image else ("text", "json"):
        picture = [ImagePart(_draw_picture(), long_side_px)] if name == "image" else []
        for body in (_JSON_MODE, {}) if name == "json" else ({},):
            settings = Settings(max_tokens=max_tokens, extra_body=body)
            outcomes += ask_all(backend, [_request(words[f"{name}.ask"], settings, *picture)])
            if not isinstance(outcomes[-1], BackendError) or outcomes[-1].kind != "wrong_request":
                break  # else it may be the mode for JSON that a server refuses
        if name == "text" and isinstance(outcomes[-1], BackendError):
            raise outcomes[-1]
        checks.append(_judge_reply(name, outcomes[-1], words[f"{name}.expect"]))
    free = [Settings(max_tokens=max_tokens, temperature=one, seed=two, epoch=epoch) for one, two, epoch in _DRAWS]
    drawn = ask_all(backend, [_request(words["draw.ask"], settings) for settings in free])
    replies = [outcome for outcome in (*outcomes, *drawn) if isinstance(outcome, Reply)]
    temperature, seed = judge_draws(drawn)
    used, costs = [reply.usage or Usage() for reply in replies], [reply.cost_usd for reply in replies]
    return {
        "model": replies[0].model,
        "checks": checks,
        "good": all(check["verdict"] == "ok" for check in checks),
        "temperature": temperature,
        "seed": seed,
        "requests": len(outcomes) + len(drawn),
        "tokens": [sum(usage.prompt_tokens for usage in used), sum(usage.completion_tokens for usage in used)],
        "cost_usd": None if None in costs else sum(cost for cost in costs if cost is not None),
    }


def judge_draws(drawn: Sequence[Outcome]) -> tuple[str, str]:
    """Whether the temperature and whether the seed did anything, in words, from the replies to `_DRAWS`."""
    for outcome in drawn:
        if isinstance(outcome, BackendError):
            return (f"refused: {_shorten(outcome.message)}",) * 2
    replies = [outcome for outcome in drawn if isinstance(outcome, Reply)]
    texts = [reply.text for reply in replies]
    if not any(text.strip() for text in texts):
        return ("cannot be told: the replies are empty",) * 2
    varied = len({*texts[2:]}) > 1
    temperature = (
        "honoured: replies at 0 repeat, those at 1 vary" if varied else "no effect seen: replies at 1 do not vary"
    )
    if texts[0] != texts[1]:
        temperature = "two replies at 0 differ" + ("" if varied else ", yet those at 1 do not")
    if not all("temperature" in reply.parameters for reply in replies):
        temperature = "fixed by the model; none is sent"
    if len({texts[2], texts[4], texts[5]}) == 1:
        return temperature, "cannot be told: replies at temperature 1 do not vary"
    same = texts[2] == texts[3]
    return temperature, "honoured, as far as four replies tell" if same else "not honoured: one seed gave two replies"


def _judge_reply(name: str, outcome: Outcome, expected: str) -> dict[str, Any]:
    if isinstance(outcome, BackendError):
        return {"name": name, "verdict": "refused", "found": outcome.message}
    text = outcome.text if name != "json" else _read_place(outcome.text)
    in_order = r"\b.*?\b".join(map(re.escape, expected.split()))
    right = re.search(rf"\b{in_order}\b", text, re.IGNORECASE | re.DOTALL) is not None
    return {
        "name": name,
        "verdict": "ok" if right else "wrong",
        "found": _shorten(outcome.text) if outcome.text.strip() else f"{NO_TEXT}{find_shortfall(outcome)[1]})",
        "expected": expected,
        "latency_s": round(outcome.latency_s, 3),
        "image_sizes_px": [list(size) for size in outcome.image_sizes_px],
    }


def _read_place(text: str) -> str:
    """What a reply that is one JSON object says; "" where it is none."""
    try:
        tree = parse_json(text)
    except ValueError:
        return ""
    return str(tree.get("place", "")) if isinstance(tree, Mapping) else ""


def _shorten(text: str) -> str:
    line = make_one_line(text, 10 * _SHOWN_CHARACTERS)
    return line if len(line) <= _SHOWN_CHARACTERS else f"{line[:_SHOWN_CHARACTERS]}…"


def _request(text: str, settings: Settings, *images: ImagePart) -> Request:
    return Request((Message("user", (*images, TextPart(text))),), settings)


def _draw_picture() -> bytes:
    """A PNG of two squares side by side on white."""
    import cv2
    import numpy as np

    width, height = _SIZE_PX
    pixels = np.full((height, width, 3), 255, np.uint8)
    side, middle = height // 2, height // 4
    for left, colour in ((width // 4 - side // 2, _LEFT), (3 * width // 4 - side // 2, _RIGHT)):
        pixels[middle : middle + side, left : left + side] = colour
    return cv2.imencode(".png", pixels)[1].tobytes()
