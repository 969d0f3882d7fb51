"""Finds containers, announced answers and refusals in replies (`docs/protocols.md#where-an-answer-stands`)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain

from vgbench_gen.evaluation.answers import units
from vgbench_gen.evaluation.answers.clean import clean_reply
from vgbench_gen.evaluation.answers.outcomes import (
    API_ERROR,
    NOTHING,
    REFUSAL,
    TRUNCATED,
    AnswerReader,
    ParsedAnswer,
)
from vgbench_gen.evaluation.answers.vocabulary import compile_pattern, match_any_of, read_words

_MAX_PLACES = 50  # only the last places are read, so that a reply with thousands of repetitions takes no longer

_TAGGED = re.compile(
    rf"<\s*({match_any_of(read_words('answer_tags'))})\s*>(.*?)(?:<\s*/\s*\1\s*>|\Z)|<\|begin_of_box\|>(.*?)(?:<\|end_of_box\|>|\Z)",
    re.IGNORECASE | re.DOTALL,
)
_BOXED = re.compile(r"\\(?:boxed|fbox)\s*\{|(?<![A-Za-z])boxed\{")
_ANSWER_KEY = re.compile(match_any_of(read_words("answer_keys")), re.IGNORECASE)
_PAIR = re.compile(
    r"(?:[\"'](?P<key>[^\"'\n:]{1,60})[\"']|^[ \t]*(?P<bare>[A-Za-z_]{1,40}))[ \t]*:\s*"
    r"(?:\"(?P<double>[^\"\n]{0,400})\"|'(?P<single>[^'\n]{0,400})'|(?P<plain>-?[0-9][^,}\n]{0,60}|true\b|false\b|null\b)"
    r"|\[\s*[\"'](?P<list>[^\"'\n]{0,200})[\"']\s*\])",
    re.IGNORECASE | re.MULTILINE,
)
_LINKS = match_any_of(read_words("answer_links"))
_PHRASE = compile_pattern(
    rf"(?<![a-z]){match_any_of(read_words('answer_nouns'))}\s*(?:\([^()\n]{{0,30}}\)\s*)?(?:(?:,\s*therefore,?|,\s*then,?)\s*)?"
    rf"(?:{_LINKS}\b\s*:?|:|=|-+>|→|—|-(?=\s))\s*"
    rf"|\b{match_any_of(read_words('answer_verbs'))}\b\s*:?\s*(?:that\s+)?"
    rf"|{match_any_of(read_words('answer_chinese'))}\s*"
    rf"|^[ \t]*(?:the\s)?(?:(?:final|correct|best|my)\s)?answer[ \t]*$"
)
_DENIED = compile_pattern(
    rf"{match_any_of(read_words('denials'))}\s+(?:{_LINKS})\s+(?:[^\n.,;:!?。]|\.(?=[0-9])){{1,60}}"
)
_UNIT = re.compile(rf"[\s,~\\]*(?P<unit>{units.PATTERN})")
_SEGMENT_END = re.compile(r"[\n。;!?]|\.(?=\s|$)")
_API_ERROR = compile_pattern(rf"\A\W{{0,3}}{match_any_of(read_words('api_errors'))}")
_PLACEHOLDER = compile_pattern(rf"\A\W*{match_any_of(read_words('placeholders'))}\W*\Z")
_REFUSAL = compile_pattern("|".join(read_words("refusals")))
_HEDGE = compile_pattern("|".join(read_words("hedges")))
_REVISION = compile_pattern(rf"(?:\A|[.!?;:,\n—(…。-])\s*{match_any_of(read_words('revisions'))}(?![a-z])[\s,:.!—…-]*")
_NO = re.compile(r"[.!?;:,\n—…-]\s*no,\s*")
_ASIDE = compile_pattern(rf",\s*{match_any_of(read_words('asides'))}\s*,\s*\Z")
_JOINT = match_any_of(read_words("clause_joints"))
_CLAUSE_START = compile_pattern(rf"[.,;:!?](?=\s|\Z)|[(\n—]|\s-\s|\b{_JOINT}\b")
_BEGUN = compile_pattern(
    rf"(?:\b{match_any_of(read_words('clause_verbs'))}|'s)(?:\s+(?:it|this|that))?(?:\s+{match_any_of(read_words('clause_adverbs'))})*\s*\Z"
    rf"|\b(?:i|it|we)\s*\Z|\A\W*{match_any_of(read_words('clause_subjects'))}\s*\Z"
)
_JOINED = compile_pattern(rf"[\s,.;]*\b{_JOINT}\W*\Z")
_SENTENCE_END = re.compile(r"[.\n。!?;](?=\s|$)|[\n。]")


def extract_answer(
    reply: str | None, reader: AnswerReader, none_is_a_value: bool = False, empty: ParsedAnswer = NOTHING
) -> ParsedAnswer:
    """Read a reply by the rules of one answer type.

    Args:
        reply: the model's reply; None if there is none.
        reader: the rules of the type.
        none_is_a_value: whether the reply "None" is an answer, as for counts, and not an empty reply.
        empty: the result for a reply without an answer that is no refusal.
    """
    if reply is None or not reply.strip():
        return NOTHING
    if _API_ERROR.match(reply[:400].lower()):
        return API_ERROR
    cleaned = clean_reply(reply)
    found = NOTHING
    for part in cleaned.texts:
        text = _remove_denied(part)
        whole = text.strip().lower()
        says_none = none_is_a_value and whole.strip(".!") in ("none", "[]", "{}")
        if len(whole) < 12 and _PLACEHOLDER.match(whole) and not says_none:
            continue
        found = _read_clean(reader.prepare(text), reader) if text else NOTHING
        if text and found.status == "no_answer" and not cleaned.cut:
            found = empty
        if found.status != "no_answer":
            break
    return TRUNCATED if cleaned.cut and not found.found else found


def _read_clean(text: str, reader: AnswerReader) -> ParsedAnswer:
    found = reader.read_notation(text)
    if found.status != "no_answer":
        return found
    for place in chain(find_containers(text, reader.keys), find_announced(text)):
        found = reader.read_segment(place)
        if found.status == "no_answer" and is_refusal(place):
            found = REFUSAL
        if found.status != "no_answer":
            return found
    refused = _find_refusal(text)
    if refused is None:
        found = reader.read_opening(text)
        return reader.read_anywhere(text) if found.status == "no_answer" else found
    return _read_around_refusal(text, refused, reader)


def _remove_denied(text: str) -> str:
    """The text without clauses such as "I don't think the answer is A" (rule S8)."""
    low = text.lower()
    if len(low) != len(text):
        return text
    for match in reversed(list(_DENIED.finditer(low))):
        text = f"{text[: match.start()]} … {text[match.end() :]}"
    return text


def _read_around_refusal(text: str, refused: re.Match[str], reader: AnswerReader) -> ParsedAnswer:
    """The value before a refusal ("B, but I'm not sure") or after it ("I can't be certain, but probably B")."""
    before = _remove_begun_clause(text[: refused.start()])
    if before:
        found = reader.read_opening(before)
        if found.found and len(before) < 80:
            return found
    rest = text[refused.end() :]
    hedge, stop = _HEDGE.search(rest.lower()), _SENTENCE_END.search(rest)
    starts = [match.end() for match in (hedge, stop) if match is not None]
    if starts:
        later = rest[min(starts) :]
        again = _find_refusal(later)
        found = reader.read_opening(later)
        if not found.found and again is None:
            found = reader.read_anywhere(later)
        if found.found:
            return found
        if again is not None:
            return _read_around_refusal(later, again, reader)
    return REFUSAL


def _remove_begun_clause(before: str) -> str:
    """The text before a refusal, without the start of the refusal's clause, such as "It is" in "It is hard to say"."""
    low = before.lower()
    if len(low) != len(before):
        return before
    aside = _ASIDE.search(low)  # the insertion in "It is, however, hard to say"
    low = (low[: aside.start()] if aside else low).rstrip(" ,;-—(\n")
    starts = [match.end() for match in _CLAUSE_START.finditer(low) if low[match.end() :].strip()]
    start = max(starts, default=0)
    low = low[:start] if _BEGUN.search(low[start:]) else low
    return before[: len(_JOINED.sub("", low).rstrip(" ,;-—(\n"))]


def is_refusal(text: str) -> bool:
    """Whether a text says that no answer will be given."""
    return _find_refusal(text) is not None


def _find_refusal(text: str) -> re.Match[str] | None:
    low = text.lower()
    return _REFUSAL.search(low)


def find_containers(text: str, keys: re.Pattern[str] | None = None) -> Iterator[str]:
    """Contents of answer tags, boxes and JSON keys, the last first; then values of the reader's `keys`."""
    found: list[tuple[bool, int, str]] = []
    if "<" in text:
        found += [(True, match.start(), match.group(2) or match.group(3) or "") for match in _TAGGED.finditer(text)]
    if "boxed" in text or "fbox" in text:
        boxes = list(_BOXED.finditer(text))[-_MAX_PLACES:]
        found += [(True, match.start(), _read_box(text, match.end())) for match in boxes]
    for pair in _PAIR.finditer(text) if ":" in text else ():
        key, value = pair["key"] or pair["bare"], next(filter(None, pair.groups()[2:]), "")
        if pair["key"] and _ANSWER_KEY.fullmatch(key):
            found.append((True, pair.start(), value))
        elif keys and keys.fullmatch(key):
            found.append((False, pair.start(), value))
    for _, _, content in sorted(found, reverse=True)[:_MAX_PLACES]:
        yield content.strip()


def find_announced(text: str) -> Iterator[str]:
    """The rests of the sentences after phrases such as "the answer is", the last first."""
    starts = [match.end() for match in _PHRASE.finditer(text.lower())]
    for start in reversed(starts[-_MAX_PLACES:]):
        yield find_segment_at(text, start)


def find_text_after_revision(text: str, says_no: bool = False) -> str:
    """The text after the last "wait", "actually" or "correction" in a reply; "" if there is no such word.

    Also "" if the reply has a container, or announces an answer after the word, because these take precedence.
    says_no: whether "no" is an answer; else "no" counts as such a word, as in "It is B. No, C.".
    """
    low = text.lower()
    starts = [match.end() for match in _REVISION.finditer(low)]
    if not says_no:
        starts += [match.end() for match in _NO.finditer(low)]
    tail = text[max(starts) :] if starts else ""
    if any(True for _ in find_containers(text)) or any(True for _ in find_announced(tail)):
        return ""
    return tail


def find_segment_at(text: str, start: int) -> str:
    """The rest of the sentence from `start`; the next line if nothing follows on this one."""
    while start < len(text) and text[start] in " \t\n:":
        start += 1
    end = _SEGMENT_END.search(text, start)
    return text[start : end.start() if end else len(text)].strip()


def _read_box(text: str, start: int) -> str:
    """The content of a box, with the unit right after the box."""
    content = _read_braces(text, start)
    unit = _UNIT.match(text[start + len(content) + 1 :][:40].lower()) if content[-1:].isdigit() else None
    return f"{content} {unit['unit']}" if unit else content


def _read_braces(text: str, start: int) -> str:
    """The text up to the brace that closes the one before `start`; up to the end if it is cut off."""
    depth = 1
    for place in range(start, min(len(text), start + 2000)):
        depth += {"{": 1, "}": -1}.get(text[place], 0)
        if depth == 0:
            return text[start:place]
    return text[start : start + 2000]
