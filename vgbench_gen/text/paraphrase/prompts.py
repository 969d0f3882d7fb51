"""What a model is asked, and how its answer is read: JSON only, of bounded size, never trusted."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from vgbench_gen.backends.base import Message, Request, Settings
from vgbench_gen.text.paraphrase import rules
from vgbench_gen.text.paraphrase.checks import Original, Text, WordingProblem, tidy_text

MAX_REPLY_CHARS = 200_000
MAX_SHOWN_FAILURES = 8
_CHARS_PER_TOKEN = 2.5  # low, so that the answer is never cut short
MAX_TOKENS = 8000  # the least that a common provider allows

Failure = tuple[Text, Sequence[WordingProblem]]


def make_reword_request(original: Original, n: int, failures: Sequence[Failure], turn: int, base: Settings) -> Request:
    """The request for `n` rewordings.

    failures: earlier ones and what was wrong with them. turn: 0 for the first request about this text; requests of
    different turns are never the same one. base: temperature, seed and the like; the answer may have as many tokens as
    it needs, at most those of `base`.
    """
    text = original.text
    told = rules.fill_prompt(
        "ask",
        n=str(n),
        language=rules.find_language(original.language).name,
        question_slots=_format_list(text.question),
        context_slots=_format_list(text.context),
        fence=rules.load_prompts().fence,
        text=json.dumps(_record(text), ensure_ascii=False, indent=1),
        format=rules.load_prompts().formats["rewordings"],
    )
    if failures:
        shown = [
            {
                "question": t.question[:1500],
                "context": t.context[:4000],
                "problems": [str(p)[:200] for p in problems[:6]],
            }
            for t, problems in failures[-MAX_SHOWN_FAILURES:]
        ]
        told += "\n\n" + rules.fill_prompt("again", n=str(n), failures=json.dumps(shown, ensure_ascii=False))
    size = int(n * 1.5 * (len(text.question) + len(text.context)) / _CHARS_PER_TOKEN) + 400
    settings = base.model_copy(
        update={
            "system": rules.fill_prompt("system"),
            "max_tokens": None if base.max_tokens is None else min(size, base.max_tokens),
            "stage": "paraphrase",
            "epoch": base.epoch + turn,
        }
    )
    return Request((Message.of("user", told),), settings)


def make_judge_request(original: Original, proposed: Text, base: Settings) -> Request:
    """The request whether a rewording means the same as its original."""
    both = {"original": _record(original.text), "rewording": _record(proposed)}
    told = rules.fill_prompt(
        "judge",
        language=rules.find_language(original.language).name,
        fence=rules.load_prompts().fence,
        text=json.dumps(both, ensure_ascii=False, indent=1),
        format=rules.load_prompts().formats["verdict"],
    )
    limit = None if base.max_tokens is None else min(400, base.max_tokens)
    settings = base.model_copy(
        update={
            "system": rules.fill_prompt("judge_system"),
            "max_tokens": limit,
            "temperature": None if base.temperature is None else 0.0,
            "stage": "judge",
        }
    )
    return Request((Message.of("user", told),), settings)


def read_rewordings(reply: str, most: int) -> tuple[list[Text], str]:
    """(texts that a reply holds, at most `most`; what is wrong with the reply, or "")."""
    found = _find_json(reply)
    if found is None:
        return [], "json"
    entries = found.get("rewordings") if isinstance(found, dict) else found
    if isinstance(found, dict) and entries is None and {"question", "context"} <= set(found):
        entries = [found]
    if not isinstance(entries, list):
        return [], "shape"
    texts = []
    for entry in entries[:most]:
        if not isinstance(entry, dict):
            continue
        question, context = entry.get("question"), entry.get("context")
        if isinstance(question, str) and isinstance(context, str) and set(entry) == {"question", "context"}:
            texts.append(Text(tidy_text(question), tidy_text(context)))
    return texts, "" if len(texts) == len(entries[:most]) and texts else "shape"


def read_verdict(reply: str) -> tuple[bool, str]:
    """(whether a judge says that the meaning is the same, its reason). Anything unclear is a no."""
    found = _find_json(reply)
    if not isinstance(found, dict) or "same" not in found:
        return False, "no verdict in the reply"
    same, reason = found["same"], found.get("reason", "")
    told = " ".join(reason.split())[:300] if isinstance(reason, str) else ""
    return same is True or (isinstance(same, str) and same.strip().lower() in ("yes", "true")), told


def _find_json(reply: str) -> Any:
    """The first JSON object or list in a reply, whatever stands around it; None where there is none."""
    if len(reply) > MAX_REPLY_CHARS:
        return None
    starts = [k for k in (reply.find("{"), reply.find("[")) if k >= 0]
    if not starts:
        return None
    try:
        found, _ = json.JSONDecoder().raw_decode(reply, min(starts))
    except (ValueError, RecursionError):
        return None
    return found


def _format_list(text: str) -> str:
    names = list(dict.fromkeys(match.group() for match in rules.SLOT.finditer(text)))
    return json.dumps(names)


def _record(text: Text) -> dict[str, str]:
    return {"question": text.question, "context": text.context}
