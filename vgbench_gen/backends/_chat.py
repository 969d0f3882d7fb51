"""OpenAI's chat completions: what is sent, and what of a reply is believed."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from vgbench_gen.backends._call import Answer, Call, Failed, Turn
from vgbench_gen.backends._keys import cover_line
from vgbench_gen.backends.base import FinishReason, Usage

_FINISHES: dict[str, FinishReason] = {
    "stop": "stop",
    "length": "length",
    "content_filter": "content_filter",
    "tool_calls": "tool_calls",
    "function_call": "tool_calls",
}
_MAX_TOKENS = 1 << 40  # of a count in a reply; more is nonsense
_OURS = {"model", "messages", "stream", "n"}
_MAGIC = (b"\xff\xd8\xff", b"\x89PNG\r\n\x1a\n")


@dataclass(slots=True)
class Demands:
    """What a model wants differently. It is learned from refusals where the table does not know it."""

    max_completion_tokens: bool = False
    """Whether the limit goes by that name."""
    fixed_temperature: bool = False
    """Whether no temperature may be sent."""
    edits: bool = False
    """Whether it changes images, by an endpoint of its own."""
    without_effort: dict[str, Any] = field(default_factory=dict)
    """The fields that are sent where the settings ask for no reasoning effort."""

    def learn(self, code: str, parameter: str) -> bool:
        """Whether a refusal taught something new, so that the same request may now pass."""
        if not code.startswith("unsupported"):
            return False
        if parameter == "max_tokens" and not self.max_completion_tokens:
            self.max_completion_tokens = True
        elif parameter == "temperature" and not self.fixed_temperature:
            self.fixed_temperature = True
        else:
            return False
        return True


def encode_body(call: Call, model: str, demands: Demands) -> bytes:
    """The JSON body of a request, in UTF-8.

    Written piece by piece: a data URL needs no escaping, and looking through megabytes of them for characters that do
    takes longer than all the rest.

    Raises:
        Failed: the settings' extra fields would replace the messages or the form of the reply.
    """
    if taken := _OURS & set(call.settings.extra_body):
        raise Failed("wrong_request", f"extra_body holds {', '.join(sorted(taken))}, which are not its to set.")
    pieces = [b'{"model":', _encode_json(model), b',"messages":[']
    for number, turn in enumerate(call.turns):
        pieces.append(b"," if number else b"")
        pieces += _encode_message(turn)
    pieces.append(b"]")
    for name, value in list_parameters(call, demands).items():
        pieces += [b",", _encode_json(name), b":", _encode_json(value)]
    pieces.append(b"}")
    return b"".join(pieces)


def list_parameters(call: Call, demands: Demands) -> dict[str, Any]:
    """The settings as this model takes them; the provider's own fields last, so that they win."""
    settings = call.settings
    sent: dict[str, Any] = {}
    if settings.max_tokens is not None:
        sent["max_completion_tokens" if demands.max_completion_tokens else "max_tokens"] = settings.max_tokens
    if settings.temperature is not None and not demands.fixed_temperature:
        sent["temperature"] = settings.temperature
    if settings.seed is not None:
        sent["seed"] = settings.seed
    if settings.stop:
        sent["stop"] = list(settings.stop)
    if settings.reasoning_effort:
        sent["reasoning_effort"] = settings.reasoning_effort
    else:
        sent |= demands.without_effort
    return sent | dict(settings.extra_body)


def _encode_message(turn: Turn) -> list[bytes]:
    words = [part for part in turn.parts if isinstance(part, str)]
    start = [b'{"role":', _encode_json(turn.role), b',"content":']
    if len(words) == len(turn.parts):
        return [*start, _encode_json("\n".join(words)), b"}"]  # some servers take nothing but a string
    pieces = [*start, b"["]
    for number, part in enumerate(turn.parts):
        pieces.append(b"," if number else b"")
        if isinstance(part, str):
            pieces += [b'{"type":"text","text":', _encode_json(part), b"}"]
        else:
            pieces += [b'{"type":"image_url","image_url":{"url":"', part.url, b'"}}']
    return [*pieces, b"]}"]


def _encode_json(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()


def answer(tree: dict[str, Any], model: str, sent: Mapping[str, Any]) -> Answer:
    """What a reply says, each field checked. model: asked for, where the reply names none.

    Raises:
        Failed: an error in a reply's clothes, no choice, or no message in it.
    """
    if isinstance(tree.get("error"), Mapping):
        raise Failed(
            "api_error", f"an error in place of a reply: {cover_line(str(tree['error'].get('message')))}", "later"
        )
    choices = tree.get("choices")
    if not isinstance(choices, list) or not choices:
        raise Failed("bad_reply", "the reply holds no choice.", "later", charged=True)
    first = choices[0] if isinstance(choices[0], Mapping) else {}
    message = first.get("message")
    if not isinstance(message, dict):
        raise Failed("bad_reply", "the reply's choice holds no message.", "later", charged=True)
    reason = first.get("finish_reason")
    if reason == "error":
        raise Failed("api_error", "the model stopped with an error.", "later", charged=True)
    finish = _FINISHES.get(reason, "other") if isinstance(reason, str) else "other"
    text = _read_text(message.get("content"))
    if not text and isinstance(message.get("refusal"), str) and message["refusal"]:
        text, finish = message["refusal"], "content_filter"
    named = tree.get("model")
    usage, usd = _read_usage(tree.get("usage"))
    return Answer(
        text=text,
        finish_reason=finish,
        model=named if isinstance(named, str) and named else model,
        usage=usage,
        cost_usd=usd,
        images=_take_pictures(message),
        parameters=dict(sent),
        raw=tree,
    )


def read_edited_images(tree: dict[str, Any], model: str, sent: Mapping[str, Any]) -> Answer:
    """What a reply to a request for changed images holds; the pictures are taken out of the raw reply.

    Raises:
        Failed: no picture in it, or only its address, from which nothing is fetched.
    """
    found: list[bytes] = []
    data = tree.get("data")
    for part in data if isinstance(data, list) else []:
        text = part.get("b64_json") if isinstance(part, dict) else None
        if isinstance(text, str):
            try:
                picture = base64.b64decode(text, validate=True)
            except (binascii.Error, ValueError):
                continue
            if picture.startswith(_MAGIC):
                part["b64_json"] = f"image {len(found)}"
                found.append(picture)
    if not found:
        raise Failed("bad_reply", "the reply holds no JPEG or PNG as b64_json.", "later", charged=True)
    told = tree.get("usage")
    renamed = {"prompt_tokens": "input_tokens", "completion_tokens": "output_tokens"}
    usage, usd = _read_usage(
        {ours: told.get(theirs) for ours, theirs in renamed.items()} if isinstance(told, dict) else None
    )
    return Answer("", "stop", model, usage, usd, tuple(found), dict(sent), tree)


def make_filtered_answer(model: str, sent: Mapping[str, Any], raw: Mapping[str, Any]) -> Answer:
    """For a prompt that a provider's filter refused."""
    return Answer("", "content_filter", model, parameters=dict(sent), raw=raw)


def _read_text(content: object) -> str:
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        parts = [part.get("text") for part in content if isinstance(part, Mapping)]
        return "".join(part for part in parts if isinstance(part, str))
    return ""


def _read_usage(told: object) -> tuple[Usage | None, float | None]:
    """(tokens, USD) as the provider counts them; None for what it does not say."""
    if not isinstance(told, Mapping):
        return None, None
    prompt, completion = _count(told.get("prompt_tokens")), _count(told.get("completion_tokens"))
    cost = told.get("cost")
    usd = float(cost) if isinstance(cost, int | float) and not isinstance(cost, bool) and 0 <= cost < 1e6 else None
    if prompt is None or completion is None:
        return None, usd
    of_completion, of_prompt = told.get("completion_tokens_details"), told.get("prompt_tokens_details")
    reasoning = _count(of_completion.get("reasoning_tokens")) if isinstance(of_completion, Mapping) else None
    cached = _count(of_prompt.get("cached_tokens")) if isinstance(of_prompt, Mapping) else None
    if cached is None:
        cached = _count(told.get("prompt_cache_hit_tokens"))  # DeepSeek's name
    return Usage(prompt, completion, min(reasoning or 0, completion), min(cached or 0, prompt)), usd


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _MAX_TOKENS else None


def _take_pictures(message: dict[str, Any]) -> tuple[bytes, ...]:
    """Images that the model made (OpenRouter's `images`), taken out of the message so that they are kept once."""
    found: list[bytes] = []
    told = message.get("images")
    for part in told if isinstance(told, list) else []:
        place = part.get("image_url") if isinstance(part, Mapping) else None
        url = place.get("url") if isinstance(place, dict) else None
        if not isinstance(place, dict) or not isinstance(url, str) or not url.startswith("data:image/"):
            continue
        try:
            data = base64.b64decode(url.partition(",")[2], validate=True)
        except (binascii.Error, ValueError):
            continue
        if data.startswith(_MAGIC):
            place["url"] = f"image {len(found)}"
            found.append(data)
    return tuple(found)
