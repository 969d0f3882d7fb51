"""OpenAI's chat completions: what is sent, and what of a reply or an error is believed."""

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
_MAX_TOKENS = 1 << 40  # of a count in a reply; more is nonsense
_OURS = {"model", "messages", "stream", "n"}
_MAGIC = (b"\xff\xd8\xff", b"\x89PNG\r\n\x1a\n")


# What a server says of a parameter that it does not take, and of one whose value is out of bounds.
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
_NEAR_CHARS = 80  # between the name of a parameter and what is said of it
_OPTIONAL = ("max_tokens", "max_completion_tokens", "temperature", "seed", "stop", "reasoning_effort")


@dataclass(slots=True)
class Demands:
    """What a model wants differently. It is learned from refusals where the table does not know it."""

    refused: set[str] = field(default_factory=set)
    """Parameters that are not sent. In the place of `max_tokens` it gets `max_completion_tokens`."""
    edits: bool = False
    """Whether it changes images, by an endpoint of its own."""
    without_effort: dict[str, Any] = field(default_factory=dict)
    """The fields that are sent where the settings ask for no reasoning effort."""

    def find_refused(self, refusal: Refusal, sent: Mapping[str, Any]) -> str:
        """The parameter that a refusal is about, one of those that were sent and may be left out; "" where it is about
        none of these."""
        said, name = f"{refusal.said} {refusal.code}", refusal.parameter
        own = set(sent) & {*_OPTIONAL, *self.without_effort}
        if name not in own or (_BOUNDS.search(said) and not _REFUSES.search(said)):
            named = [(near, one) for one in own if (near := _measure_nearness(one, said)) is not None]
            name = min(named, default=(0, ""))[1]
        return name


def _measure_nearness(name: str, said: str) -> int | None:
    """Characters between a parameter's name and words that refuse it; None where there are none near, or a bound that
    its value passed stands nearer."""

    def measure(words: re.Pattern[str], place: re.Match[str]) -> int:
        gaps = (max(one.start() - place.end(), place.start() - one.end()) for one in words.finditer(said))
        return min(gaps, default=_NEAR_CHARS + 1)

    places = list(re.finditer(rf"(?a)(?<![\w-]){re.escape(name)}(?![\w-])", said))
    found = [near for place in places if (near := measure(_REFUSES, place)) <= measure(_BOUNDS, place)]
    return min((near for near in found if near <= _NEAR_CHARS), default=None)


def make_body(call: Call, model: str, sent: Mapping[str, Any]) -> dict[str, Any]:
    """The body of a request, for JSON.

    Raises:
        Failed: the settings' extra fields would replace the messages or the form of the reply.
    """
    if taken := _OURS & set(call.settings.extra_body):
        raise Failed("wrong_request", f"extra_body holds {', '.join(sorted(taken))}, which are not its to set.")
    return {"model": model, "messages": [_make_message(turn) for turn in call.turns], **sent}


def list_parameters(call: Call, demands: Demands) -> dict[str, Any]:
    """The settings as this model takes them; the provider's own fields last, so that they win."""
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
    sent = {name: value for name, value in wanted.items() if value is not None and name not in refused}
    return sent | dict(settings.extra_body)


def _make_message(turn: Turn) -> dict[str, Any]:
    words = [part for part in turn.parts if isinstance(part, str)]
    if len(words) == len(turn.parts):
        return {"role": turn.role, "content": "\n".join(words)}  # some servers take nothing but a string
    parts = [
        {"type": "text", "text": part}
        if isinstance(part, str)
        else {"type": "image_url", "image_url": {"url": part.url}}
        for part in turn.parts
    ]
    return {"role": turn.role, "content": parts}


# Fields in which one server or another says what is wrong, in lower case.
_SAYING = {
    "message", "msg", "error", "errors", "error_msg", "error_message", "error_description", "err", "detail", "details",
    "description", "reason", "title", "metadata", "raw", "cause", "status_msg", "base_resp", "fault", "faultstring",
}  # fmt: skip
_DEEPEST, _MOST_WORDS, _MOST_CHARS = 8, 4, 20_000  # that are looked at


class Refusal(Exception):
    """A server's error, whatever its shape and status.

    Args:
        status: of HTTP.
        told: what the JSON of its body holds, or its text.
        headers: of the answer.

    Attributes:
        status: the one that an answer with 200 names itself.
        said: what it says, on one line, with keys covered.
        code, parameter: what a program may read of it; "" where there is nothing.
    """

    def __init__(self, status: int, told: object, headers: Mapping[str, str]) -> None:
        super().__init__(status)
        tree = told if isinstance(told, Mapping) else {}
        error = tree.get("error") or _find_first_choice(tree).get("error")
        self.error: Mapping[str, Any] = error if isinstance(error, Mapping) else tree
        self.told, self.headers = told, headers
        self.said = cover_line(find_error_words(error or told))
        self.code, self.parameter = (str(self.error.get(name) or "") for name in ("code", "param"))
        known = int(self.code) if self.code.isdecimal() and len(self.code) == 3 else 0
        self.status = known if status == 200 and known >= 400 else status


def find_error_words(told: object) -> str:
    """What an error says, whatever its shape: a text, a page, or JSON with the words in one of the usual fields."""
    words = list(dict.fromkeys(_list_words(told, 0)))
    if not words and told:
        return reprlib.repr(told)
    return ": ".join(words[:_MOST_WORDS]) or "an empty body"


def _list_words(told: object, depth: int) -> Iterator[str]:
    if depth > _DEEPEST:
        return
    if isinstance(told, list):
        for one in told[:_MOST_WORDS]:
            yield from _list_words(one, depth + 1)
    elif isinstance(told, Mapping):
        words = [word for name in told if name.lower() in _SAYING for word in _list_words(told[name], depth + 1)]
        place = told.get("loc") or told.get("param")  # pydantic's, and OpenAI's
        place = ".".join(map(str, place)) if isinstance(place, list) else place
        named = isinstance(place, str) and words and place.rpartition(".")[2] not in words[0]
        yield from [f"{place}: {words[0]}", *words[1:]] if named else words
    elif isinstance(told, str) and (text := told.strip()):
        with suppress(ValueError):
            if text.startswith(("{", "[")) and (words := list(_list_words(parse_json(text), depth + 1))):
                yield from words
                return
        is_page = re.search(r"<(?:!doctype html|html|head|body)\b", text[:500], re.IGNORECASE)
        yield _describe_page(text) if is_page else text[:_MOST_CHARS]


def _describe_page(text: str) -> str:
    title = re.search(r"<(title|h1)\b[^>]{0,200}>(.{0,500}?)</\1", text[:_MOST_CHARS], re.IGNORECASE | re.DOTALL)
    words = " ".join(html.unescape(re.sub(r"<[^>]*>", " ", title[2])).split()) if title else ""
    return f"a web page answered, entitled {words!r}" if words else "a web page answered"


def _find_first_choice(tree: Mapping[str, Any]) -> Mapping[str, Any]:
    choices = tree.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    return first if isinstance(first, Mapping) else {}


def answer(tree: dict[str, Any], model: str, sent: Mapping[str, Any]) -> Reply:
    """What a reply says, each field checked. model: asked for, where the reply names none.

    Raises:
        Refusal: an error in a reply's clothes.
        Failed: no choice, or no message in it.
    """
    first = _find_first_choice(tree)
    if tree.get("error") or first.get("error") or (not first and any(_list_words(tree, 0))):
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
    named = tree.get("model")
    usage, usd = _read_usage(tree.get("usage"))
    return Reply(
        text=text,
        finish_reason=finish,
        model=named if isinstance(named, str) and named else model,
        usage=usage,
        cost_usd=usd,
        images=_take_pictures(message),
        parameters=dict(sent),
        raw=tree,
    )


def read_edited_images(tree: dict[str, Any], model: str, sent: Mapping[str, Any]) -> Reply:
    """What a reply to a request for changed images holds; the pictures are taken out of the raw reply.

    Raises:
        Failed: no picture in it, or only its address, from which nothing is fetched.
    """
    found: list[bytes] = []
    data = tree.get("data")
    for part in data if isinstance(data, list) else []:
        if isinstance(part, dict) and (picture := _decode_picture(part.get("b64_json"))) is not None:
            part["b64_json"] = f"image {len(found)}"
            found.append(picture)
    if not found:
        raise Failed("bad_reply", "the reply holds no JPEG or PNG as b64_json.", "later", charged=True)
    told = tree.get("usage")
    renamed = {"prompt_tokens": "input_tokens", "completion_tokens": "output_tokens"}
    usage, usd = _read_usage(
        {ours: told.get(theirs) for ours, theirs in renamed.items()} if isinstance(told, dict) else None
    )
    return Reply("", "stop", model, usage=usage, cost_usd=usd, images=tuple(found), parameters=dict(sent), raw=tree)


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
        if isinstance(place, dict) and isinstance(url, str) and url.startswith("data:image/"):
            picture = _decode_picture(url.partition(",")[2])
            if picture is not None:
                place["url"] = f"image {len(found)}"
                found.append(picture)
    return tuple(found)


def _decode_picture(text: object) -> bytes | None:
    """A JPEG or PNG in base64; None where it is none."""
    try:
        data = base64.b64decode(text, validate=True) if isinstance(text, str) else b""
    except ValueError:
        return None
    return data if data.startswith(_MAGIC) else None
