"""What `vgbench models SPEC` asks, and what it makes of the replies."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from vgbench_gen.backends.base import BackendError, ImagePart, Message, Reply, Request, Settings, TextPart
from vgbench_gen.backends.batch import ask_all
from vgbench_gen.core.json_text import parse_json
from vgbench_gen.text.render import find_templates_root, load_words

if TYPE_CHECKING:
    from vgbench_gen.backends.base import Backend
    from vgbench_gen.backends.batch import Outcome

Verdict = Literal["ok", "wrong", "refused"]
_SIZE_PX = (320, 200)
# OpenCV's order: blue, green, red. Far apart for every eye and every model; the words stand in templates/.
_LEFT, _RIGHT = (0, 220, 255), (40, 150, 0)
_SHOWN_CHARACTERS = 80
NO_TEXT = "(no text: "  # begins what stands in the place of an empty reply
# Temperature, seed and epoch: twice without drawing, twice with one seed, then with two others.
_DRAWS = ((0.0, None, 0), (0.0, None, 1), (1.0, 1, 0), (1.0, 1, 1), (1.0, 2, 0), (1.0, 3, 0))


@dataclass(frozen=True, slots=True)
class ModelCheck:
    """One question to the model and what became of it."""

    name: str
    """What was asked for: "text", "image" or "json"."""
    verdict: Verdict
    """Whether the reply was right ("ok") or not ("wrong"), or there was none ("refused")."""
    found: str
    """What the model said, or why it said nothing."""
    expected: str = ""
    """The words that a right reply holds, in this order; empty where there was no reply to judge."""
    latency_s: float = 0.0
    """How long the reply took in seconds; 0 where there was none."""
    image_sizes_px: tuple[tuple[int, int], ...] = ()
    """Width and height of each image as it was sent; empty where none was."""


@dataclass(frozen=True, slots=True)
class Examination:
    """What a model can do."""

    model: str
    """The name that the model gives itself in replies."""
    checks: tuple[ModelCheck, ...]
    """The questions to it, in the order in which they were asked."""
    temperature: str
    """Whether the temperature was honoured, in words."""
    seed: str
    """Whether the seed was honoured, in words."""
    requests: int
    """The number of requests sent."""
    tokens: tuple[int, int]
    """The tokens of the prompts and those of the replies."""
    cost_usd: float | None
    """The cost of all replies in US dollars; None where the price of one is not known."""

    @property
    def good(self) -> bool:
        """Whether every check went well."""
        return all(check.verdict == "ok" for check in self.checks)


def examine_model(backend: Backend, *, image: bool, long_side_px: int, max_tokens: int) -> Examination:
    """Ask a model for a word, a picture's content, JSON, and free replies with and without a seed.

    Args:
        backend: who is asked; without a cache, or old replies are judged.
        image: whether to show a picture.
        long_side_px: of the picture as sent, 0 as drawn.
        max_tokens: of each reply.

    Raises:
        BackendError: not even plain words get a reply.
    """
    words = load_words(find_templates_root() / "prompts" / "check.toml")
    plain = Settings(max_tokens=max_tokens)
    (first,) = ask_all(backend, [_request(words["text.ask"], plain)])
    if isinstance(first, BackendError):
        raise first
    checks = [_judge_reply("text", first, words["text.expect"])]
    outcomes: list[Outcome] = [first]
    if image:
        part = ImagePart(_draw_picture(), long_side_px)
        (seen,) = ask_all(backend, [_request(words["image.ask"], plain, part)])
        checks.append(_judge_reply("image", seen, words["image.expect"]))
        outcomes.append(seen)
    parsed = _ask_for_json(backend, words["json.ask"], plain)
    checks.append(_judge_reply("json", parsed[-1], words["json.expect"]))
    drawn = ask_all(backend, [_request(words["draw.ask"], settings) for settings in _list_draws(max_tokens)])
    outcomes += [*parsed, *drawn]
    replies = [outcome for outcome in outcomes if isinstance(outcome, Reply)]
    costs = [reply.cost_usd for reply in replies]
    used = [reply.usage for reply in replies if reply.usage is not None]
    return Examination(
        model=first.model,
        checks=tuple(checks),
        temperature=judge_temperature(drawn),
        seed=seed_verdict(drawn),
        requests=len(outcomes),
        tokens=(sum(usage.prompt_tokens for usage in used), sum(usage.completion_tokens for usage in used)),
        cost_usd=None if None in costs else sum(cost for cost in costs if cost is not None),
    )


def _list_draws(max_tokens: int) -> list[Settings]:
    """Settings of the free requests; epochs keep equal ones apart."""
    return [
        Settings(max_tokens=max_tokens, temperature=temperature, seed=seed, epoch=epoch)
        for temperature, seed, epoch in _DRAWS
    ]


def judge_temperature(drawn: Sequence[Outcome]) -> str:
    """Whether the temperature did anything, from the replies to `_DRAWS`."""
    texts, refused = _read_texts(drawn)
    if refused:
        return refused
    sent = [reply.parameters for reply in drawn if isinstance(reply, Reply)]
    if not all("temperature" in parameters for parameters in sent):
        return "fixed by the model; none is sent"
    varied = len({*texts[2:]}) > 1
    if texts[0] != texts[1]:
        return "two replies at 0 differ" + ("" if varied else ", yet those at 1 do not")
    return "honoured: replies at 0 repeat, those at 1 vary" if varied else "no effect seen: replies at 1 do not vary"


def seed_verdict(drawn: Sequence[Outcome]) -> str:
    """Whether a seed did anything, from the replies to `_DRAWS`."""
    texts, refused = _read_texts(drawn)
    if refused:
        return refused
    if len({texts[2], texts[4], texts[5]}) == 1:
        return "cannot be told: replies at temperature 1 do not vary"
    same = texts[2] == texts[3]
    return "honoured, as far as four replies tell" if same else "not honoured: one seed gave two replies"


def _read_texts(drawn: Sequence[Outcome]) -> tuple[list[str], str]:
    """(texts, why they cannot be judged)."""
    for outcome in drawn:
        if isinstance(outcome, BackendError):
            return [], f"refused: {shorten_reply(outcome.message)}"
    texts = [outcome.text for outcome in drawn if isinstance(outcome, Reply)]
    return texts, "" if any(text.strip() for text in texts) else "cannot be told: the replies are empty"


def _ask_for_json(backend: Backend, ask: str, plain: Settings) -> list[Outcome]:
    """A reply in the mode for JSON, or without it where a server refuses that mode."""
    mode = plain.model_copy(update={"extra_body": {"response_format": {"type": "json_object"}}})
    outcomes = ask_all(backend, [_request(ask, mode)])
    if isinstance(outcomes[0], BackendError) and outcomes[0].kind == "wrong_request":
        outcomes += ask_all(backend, [_request(ask, plain)])
    return outcomes


def _judge_reply(name: str, outcome: Outcome, expected: str) -> ModelCheck:
    if isinstance(outcome, BackendError):
        return ModelCheck(name, "refused", outcome.message)
    text = outcome.text if name != "json" else _place(outcome.text)
    in_order = r"\b.*?\b".join(map(re.escape, expected.split()))
    right = re.search(rf"\b{in_order}\b", text, re.IGNORECASE | re.DOTALL) is not None
    return ModelCheck(
        name,
        "ok" if right else "wrong",
        _describe_found(outcome),
        expected,
        round(outcome.latency_s, 3),
        outcome.image_sizes_px,
    )


def _place(text: str) -> str:
    """What a reply that is one JSON object says; "" where it is none."""
    try:
        tree = parse_json(text)
    except ValueError:
        return ""
    return str(tree.get("place", "")) if isinstance(tree, Mapping) else ""


def _describe_found(reply: Reply) -> str:
    if reply.text.strip():
        return shorten_reply(reply.text)
    why = {"length": "the limit of tokens was reached first; try --max-tokens", "content_filter": "a content filter"}
    return f"{NO_TEXT}{why.get(reply.finish_reason, reply.finish_reason)})"


def shorten_reply(text: str) -> str:
    """A reply as one short line that no terminal takes for a command."""
    line = " ".join("".join(c if c.isprintable() else " " for c in text[:2000]).split())
    return line if len(line) <= _SHOWN_CHARACTERS else line[:_SHOWN_CHARACTERS] + "…"


def _request(text: str, settings: Settings, image: ImagePart | None = None) -> Request:
    return Request((Message("user", (*([image] if image else []), TextPart(text))),), settings)


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
