"""OpenAI's chat completions: builds requests, and reads replies and errors without trusting their form."""

from __future__ import annotations

import base64
import html
import re
import reprlib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from vgbench_gen.backends._call import Call, Failed, Turn
from vgbench_gen.backends._keys import cover_line
from vgbench_gen.backends.base import FinishReason, Reply, Usage
from vgbench_gen.core.json_text import parse_json

_FINISHES: dict[str, FinishReason] = {
    "stop": "stop",
    "length": "length",
    "content_filter": "content_filter",
    "tool_calls": "tool_calls",
    "function_call": "tool_calls",
}
_MAX_TOKENS = 1 << 40  # a larger count in a reply is ignored as nonsense
_RESERVED = {"model", "messages", "stream", "n"}
_MAGIC = (b"\xff\xd8\xff", b"\x89PNG\r\n\x1a\n")


# Phrases by which servers refuse a parameter, and phrases about a value that is out of bounds.
_REFUSES = re.compile(
    r"unsupported|n.t\W+support|not\W+(?:be\W+|an?\W+)?(?:supported|permitted|allowed|accepted|recogni[sz]ed|available|compatible)"
    r"|unknown|unrecogni[sz]ed|unexpected|unavailable|incompatible|deprecated|no longer|forbidden|extraneous"
    r"|extra (?:inputs?|fields?|keys?|param)|additional propert|cannot find field|invalid (?:param|arg|field|key)"
    r"|not (?:take|accept|allow)|(?:may|can|must) only|only (?:supports|accepts|the default|[\w.=]+ is)"
    r"|cannot (?:both )?be (?:set|used|specif)|(?:must|should) be (?:unset|omitted|strictly|=? ?1\b)"
    r"|(?:greater than|more than|>) ?0\b|invalid for (?:this|the) model|不支持|不允许|未知",
    re.IGNORECASE,
)
_BOUNDS = re.compile(
    r"too (?:large|long|small|high|low|big|many|few)|maxim|minim|exceed|context|at (?:most|least)|between|range|above"
    r"|below|(?:less|greater|more|fewer) than|[<>]=? ?\d|valid (?:integer|number|string|list)|(?:must|should) be",
    re.IGNORECASE,
)
_NEAR_CHARS = 80  # the largest distance between the name of a parameter and a phrase about it
_OPTIONAL = ("max_tokens", "max_completion_tokens", "temperature", "seed", "stop", "reasoning_effort")


@dataclass(slots=True)
class Demands:
    """Deviations of a model from the API, from the table of providers or learned from refusals."""

    refused: set[str] = field(default_factory=set)
    """Parameters that are not sent; `max_completion_tokens` replaces a refused `max_tokens`."""
    edits: bool = False
    """Whether it edits images, by a separate endpoint."""
    without_effort: dict[str, Any] = field(default_factory=dict)
    """Fields that are sent if the settings have no reasoning effort."""

    def find_refused(self, refusal: Refusal, parameters: Mapping[str, Any]) -> str:
        """The optional parameter of a request that a refusal is about; "" if it is about something else."""
        message, name = f"{refusal.message} {refusal.code}", refusal.parameter
        optional = set(parameters) & {*_OPTIONAL, *self.without_effort}
        if name not in optional or (_BOUNDS.search(message) and not _REFUSES.search(message)):
            gaps = [(gap, each) for each in optional if (gap := _measure_gap(each, message)) is not None]
            name = min(gaps, default=(0, ""))[1]
        return name


def _measure_gap(name: str, message: str) -> int | None:
    """Characters between a parameter's name and a phrase that refuses it; None if no such phrase is near, or a phrase
    about bounds is nearer."""

    def measure(phrases: re.Pattern[str], place: re.Match[str]) -> int:
        gaps = (max(match.start() - place.end(), place.start() - match.end()) for match in phrases.finditer(message))
        return min(gaps, default=_NEAR_CHARS + 1)

    places = re.finditer(rf"(?a)(?<![\w-]){re.escape(name)}(?![\w-])", message)
    gaps = [gap for place in places if (gap := measure(_REFUSES, place)) <= measure(_BOUNDS, place)]
    return min((gap for gap in gaps if gap <= _NEAR_CHARS), default=None)


def check_extra_body(extra: Mapping[str, Any], reserved: set[str]) -> None:
    """Check that the settings' extra fields leave reserved fields alone.

    Raises:
        Failed: they do not.
    """
    if taken := reserved & set(extra):
        raise Failed("wrong_request", f"extra_body sets {', '.join(sorted(taken))}, which is not allowed.")


def make_body(call: Call, model: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """The body of a request, for JSON; errors are those of `check_extra_body`."""
    check_extra_body(call.settings.extra_body, _RESERVED)
    return {"model": model, "messages": [_make_message(turn) for turn in call.turns], **parameters}


def list_parameters(call: Call, demands: Demands) -> dict[str, Any]:
    """The settings as this model takes them; the provider's own fields override them."""
    settings, refused = call.settings, demands.refused
    wanted: dict[str, Any] = {
        "max_completion_tokens" if "max_tokens" in refused else "max_tokens": settings.max_tokens,
        "temperature": settings.temperature,
        "seed": settings.seed,
        "stop": list(settings.stop) or None,
        "reasoning_effort": settings.reasoning_effort or None,
    }
    if not settings.reasoning_effort:
        wanted |= demands.without_effort
    parameters = {name: value for name, value in wanted.items() if value is not None and name not in refused}
    return parameters | dict(settings.extra_body)


def _make_message(turn: Turn) -> dict[str, Any]:
    words = [part for part in turn.parts if isinstance(part, str)]
    if len(words) == len(turn.parts):
        return {"role": turn.role, "content": "\n".join(words)}  # some servers accept only a string
    parts = [
        {"type": "text", "text": part}
        if isinstance(part, str)
        else {"type": "image_url", "image_url": {"url": part.url}}
        for part in turn.parts
    ]
    return {"role": turn.role, "content": parts}


# Fields in which servers describe errors, in lower case.
_ERROR_FIELDS = {
    "message", "msg", "error", "errors", "error_msg", "error_message", "error_description", "err", "detail", "details",
    "description", "reason", "title", "metadata", "raw", "cause", "status_msg", "base_resp", "fault", "faultstring",
}  # fmt: skip
# Limits of the search in an error: nesting, texts, and characters of a text.
_MAX_DEPTH, _MAX_TEXTS, _MAX_CHARS = 8, 4, 20_000


class Refusal(Exception):
    """A server's error of any form.

    Args:
        status: of HTTP.
        body: parsed JSON, or text.
        headers: of the response.

    Attributes:
        status: of HTTP, or the status in the body of a response with 200.
        message: in one line, with keys covered.
        code, parameter: OpenAI's machine-readable fields; "" if missing.
    """

    def __init__(self, status: int, body: object, headers: Mapping[str, str]) -> None:
        super().__init__(status)
        tree = body if isinstance(body, Mapping) else {}
        error = tree.get("error") or _find_first_choice(tree).get("error")
        self.error: Mapping[str, Any] = error if isinstance(error, Mapping) else tree
        self.headers = headers
        self.message = cover_line(find_error_message(error or body))
        self.code, self.parameter = (str(self.error.get(name) or "") for name in ("code", "param"))
        known = int(self.code) if self.code.isdecimal() and len(self.code) == 3 else 0
        self.status = known if status == 200 and known >= 400 else status


def find_error_message(body: object) -> str:
    """The message of an error of any form: a text, a web page, or JSON with texts in one of the usual fields."""
    texts = list(dict.fromkeys(_list_texts(body, 0)))
    if not texts and body:
        return reprlib.repr(body)
    return ": ".join(texts[:_MAX_TEXTS]) or "an empty body"


def _list_texts(body: object, depth: int) -> Iterator[str]:
    if depth > _MAX_DEPTH:
        return
    if isinstance(body, list):
        for member in body[:_MAX_TEXTS]:
            yield from _list_texts(member, depth + 1)
    elif isinstance(body, Mapping):
        texts = [text for name in body if name.lower() in _ERROR_FIELDS for text in _list_texts(body[name], depth + 1)]
        place = body.get("loc") or body.get("param")  # the names of pydantic and of OpenAI
        place = ".".join(map(str, place)) if isinstance(place, list) else place
        if isinstance(place, str) and texts and place.rpartition(".")[2] not in texts[0]:
            texts[0] = f"{place}: {texts[0]}"
        yield from texts
    elif isinstance(body, str) and (text := body.strip()):
        with suppress(ValueError):
            if text.startswith(("{", "[")) and (texts := list(_list_texts(parse_json(text), depth + 1))):
                yield from texts
                return
        is_page = re.search(r"<(?:!doctype html|html|head|body)\b", text[:500], re.IGNORECASE)
        yield _describe_page(text) if is_page else text[:_MAX_CHARS]


def _describe_page(text: str) -> str:
    match = re.search(r"<(title|h1)\b[^>]{0,200}>(.{0,500}?)</\1", text[:_MAX_CHARS], re.IGNORECASE | re.DOTALL)
    title = " ".join(html.unescape(re.sub(r"<[^>]*>", " ", match[2])).split()) if match else ""
    return f"a web page answered, entitled {title!r}" if title else "a web page answered"


def _find_first_choice(tree: Mapping[str, Any]) -> Mapping[str, Any]:
    choices = tree.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    return first if isinstance(first, Mapping) else {}


def read_reply(tree: dict[str, Any], model: str, parameters: Mapping[str, Any]) -> Reply:
    """The reply in a response's JSON, with each field checked. model: the requested one, if the response names none.

    Raises:
        Refusal: the response is an error with status 200.
        Failed: no choice, or no message in it.
    """
    first = _find_first_choice(tree)
    if tree.get("error") or first.get("error") or (not first and any(_list_texts(tree, 0))):
        raise Refusal(200, tree, {})
    if not first:
        raise Failed("bad_reply", "the reply holds no choice.", "later", charged=True)
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
    name = tree.get("model")
    usage, usd = _read_usage(tree.get("usage"))
    return Reply(
        text=text,
        finish_reason=finish,
        model=name if isinstance(name, str) and name else model,
        usage=usage,
        cost_usd=usd,
        images=_take_images(message),
        parameters=dict(parameters),
        raw=tree,
    )


def read_edited_images(tree: dict[str, Any], model: str, parameters: Mapping[str, Any]) -> Reply:
    """The reply of the endpoint for image editing; its images are moved out of the raw reply.

    Raises:
        Failed: it has no image, or only an address, which is not fetched.
    """
    images: list[bytes] = []
    data = tree.get("data")
    for part in data if isinstance(data, list) else []:
        if isinstance(part, dict) and (image := _decode_image(part.get("b64_json"))) is not None:
            part["b64_json"] = f"image {len(images)}"
            images.append(image)
    if not images:
        raise Failed("bad_reply", "the reply holds no JPEG or PNG as b64_json.", "later", charged=True)
    counts = tree.get("usage")
    if isinstance(counts, dict):
        counts = {"prompt_tokens": counts.get("input_tokens"), "completion_tokens": counts.get("output_tokens")}
    usage, _ = _read_usage(counts)
    return Reply("", "stop", model, usage=usage, images=tuple(images), parameters=dict(parameters), raw=tree)


def _read_text(content: object) -> str:
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        parts = [part.get("text") for part in content if isinstance(part, Mapping)]
        return "".join(part for part in parts if isinstance(part, str))
    return ""


def _read_usage(counts: object) -> tuple[Usage | None, float | None]:
    """(tokens, USD) as the provider counts them; None for missing or invalid counts."""
    if not isinstance(counts, Mapping):
        return None, None
    prompt, completion = _read_count(counts, "prompt_tokens"), _read_count(counts, "completion_tokens")
    cost = counts.get("cost")
    usd = float(cost) if isinstance(cost, int | float) and not isinstance(cost, bool) and 0 <= cost < 1e6 else None
    if prompt is None or completion is None:
        return None, usd
    reasoning = _read_count(counts.get("completion_tokens_details"), "reasoning_tokens")
    cached = _read_count(counts.get("prompt_tokens_details"), "cached_tokens")
    if cached is None:
        cached = _read_count(counts, "prompt_cache_hit_tokens")  # DeepSeek's name
    return Usage(prompt, completion, min(reasoning or 0, completion), min(cached or 0, prompt)), usd


def _read_count(counts: object, name: str) -> int | None:
    value = counts.get(name) if isinstance(counts, Mapping) else None
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _MAX_TOKENS else None


def _take_images(message: dict[str, Any]) -> tuple[bytes, ...]:
    """Images that the model made (OpenRouter's `images`), moved out of the message so that they are kept once."""
    images: list[bytes] = []
    parts = message.get("images")
    for part in parts if isinstance(parts, list) else []:
        place = part.get("image_url") if isinstance(part, Mapping) else None
        url = place.get("url") if isinstance(place, dict) else None
        if isinstance(place, dict) and isinstance(url, str) and url.startswith("data:image/"):
            image = _decode_image(url.partition(",")[2])
            if image is not None:
                place["url"] = f"image {len(images)}"
                images.append(image)
    return tuple(images)


def _decode_image(text: object) -> bytes | None:
    """A JPEG or PNG in base64; None if it is neither."""
    try:
        data = base64.b64decode(text, validate=True) if isinstance(text, str) else b""
    except ValueError:
        return None
    return data if data.startswith(_MAGIC) else None
