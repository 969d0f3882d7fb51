"""Chooses the answer among several quantities of a reply (`docs/protocols.md#lengths-with-units`)."""

# ruff: noqa: RUF001 (characters of replies that look like others)

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from vgbench_gen.evaluation.answers.quantities import Quantity
from vgbench_gen.evaluation.answers.vocabulary import compile_pattern, match_any_of, read_table, read_words

_SENTENCE_END = re.compile(r"[\n。!?;}]|\.(?=\s|$)")
_CLAUSE_START = compile_pattern(
    rf"[,(\[{{，、](?=\s|[^0-9])|\b{match_any_of(read_words('clause_starts', 'lengths'))}\b"
)
_CLAUSE_END = compile_pattern(rf"[,:(\[，、|]|\b{match_any_of(read_words('clause_ends', 'lengths'))}\b")
_CONCLUDES = compile_pattern(
    rf"\b{match_any_of(read_words('conclusions', 'lengths'))}\b|[→⇒]|=>"
    rf"|{match_any_of(read_words('chinese_conclusions', 'lengths'))}"
)
_EQUATION = re.compile(r"(?:^|[(,:])(?P<sum>[^(,:=]*[0-9][^(,:=]*(?:\([^()]*\)[^(,:=]*)*|[^,:=]*\))[=≈]\s*\Z")
_PLAIN = match_any_of(read_words("plain", "lengths"))
_CHINESE_PLAIN = match_any_of(read_words("chinese_plain", "lengths"))
_MEASURES = [
    (re.compile(rf"\b(?:{asked})\b"), rf"\b(?:{names})\b") for asked, names in read_table("lengths")["families"]
]
_SUPPOSED = re.compile(r"\b(?:if|unless|had|were)\b|如果|假如")
_WORD = re.compile("[a-z\u4e00-\u9fff]")
_WORDS = re.compile("[a-z]{3,}|[\u4e00-\u9fff]+")
_MAX_QUESTION_CHARS, _MAX_CLAUSE_CHARS, _MAX_LABEL_CHARS = 600, 600, 80
# Of many numbers in a reply only this many of the first and the last are considered, which bounds the time.
_FIRST, _LAST = 8, 40


class _Statement(NamedTuple):
    """Properties of the clause around a quantity."""

    of_asked: bool
    """Whether the clause is only about the measure in the question."""
    named: bool
    """Whether it names that measure."""
    words: int
    """Number of different words of the question in it."""
    bare: bool
    """Whether it is the quantity alone, at the start of a sentence."""
    concludes: bool
    """Whether words such as "so" or an equation precede it, or it ends the reply, alone or with the measure's name."""


def choose_stated(text: str, found: Sequence[Quantity], question: str, only_stated: bool = False) -> Quantity | None:
    """The quantity that a reply states as its answer.

    In order of preference: a conclusion about the measure in the question, an answer that opens the reply, the last
    clause that names the measure, the last conclusion, the last clause about the measure, the last quantity.

    Args:
        text: the prepared text.
        found: the candidate quantities in order; at least one.
        question: the question, whose words a statement may use.
        only_stated: whether to return None if no clause is about the measure in the question.
    """
    some = found if len(found) <= _FIRST + _LAST else [*found[:_FIRST], *found[-_LAST:]]
    statements = [(one, _read_statement(text, one, question)) for one in some]
    asked = [(one, statement) for one, statement in statements if statement.of_asked]
    named = [one for one, statement in asked if statement.named]
    opening, first = statements[0]
    most = max((statement.words for _, statement in asked), default=0)
    opens = first.of_asked and not _SENTENCE_END.search(text[: opening.start].lstrip())
    ranked = (
        [one for one, statement in asked if statement.concludes],
        [opening] if opens and (first.named or first.bare or (not named and first.words == most)) else [],
        named,
        [one for one, statement in statements if statement.concludes],
        [one for one, statement in asked if statement.words == most],
        found,
    )
    if only_stated and not asked:
        return None
    return next(group[-1] for group in ranked if group)


def is_labelled(text: str, one: Quantity, question: str) -> bool:
    """Whether a number opens a reply, or follows the name of the measure in the question as its label."""
    before = text[max(0, one.start - _MAX_LABEL_CHARS) : one.start]
    if not re.search(r"\w", before):
        return len(before) == one.start
    return re.search(rf"(?:{_compile_named(question).pattern})[\"'*]*\s*[:=]\s*[\"'*~≈]*\Z", before) is not None


def _read_statement(text: str, one: Quantity, question: str) -> _Statement:
    near, far = max(0, one.start - _MAX_CLAUSE_CHARS), min(len(text), one.end + _MAX_CLAUSE_CHARS)
    begins = max((match.end() for match in _SENTENCE_END.finditer(text, near, one.start)), default=near)
    ends = _SENTENCE_END.search(text, one.end, far)
    before, after = text[begins : one.start], text[one.end : ends.start() if ends else far]
    stop = _CLAUSE_END.search(after)
    behind = after[: stop.start()] if stop else after
    starts = list(_CLAUSE_START.finditer(before))
    lead = before[starts[-1].end() :] if starts else before
    is_result = _EQUATION.search(before) is not None
    asked, named = _compile_asked(question), _compile_named(question)
    if is_result:
        lead = before.partition(":")[0] if ":" in before else ""
    elif starts and not named.search(lead + behind):  # an apposition belongs to the clause before it
        lead = before
    clause = f"{lead} {behind}"
    ends_reply = not re.search(r"\w", text[one.end : far])
    supposed = _SUPPOSED.search(before) is not None
    return _Statement(
        of_asked=not supposed and not _WORD.search(asked.sub(" ", clause)),
        named=named.search(clause) is not None,
        words=len(_list_words(question).intersection(_WORDS.findall(clause))),
        bare=not starts and not _WORD.search(clause),
        concludes=not supposed
        and (
            is_result
            or _CONCLUDES.search(before) is not None
            or (ends_reply and (named.search(clause) is not None or not _WORD.search(clause)))
        ),
    )


@lru_cache(maxsize=1024)
def _list_words(question: str) -> frozenset[str]:
    return frozenset(_WORDS.findall(_find_head(question)))


@lru_cache(maxsize=1024)
def _compile_asked(question: str) -> re.Pattern[str]:
    """A pattern for the words that a clause about the measure in the question may use."""
    own = {re.escape(word) for word in _list_words(question)}
    verbs = rf"\b(?:{'|'.join(sorted(own) or ['(?!)'])})(?:e?[sd]|ing)?\b"
    return re.compile(rf"{verbs}|{_compile_named(question).pattern}|\b{_PLAIN}\b|{_CHINESE_PLAIN}")


@lru_cache(maxsize=1024)
def _compile_named(question: str) -> re.Pattern[str]:
    """A pattern for the names of the measure in a question; names of depth and distance if it mentions no measure."""
    head = _find_head(question)
    return re.compile("|".join([names for asked, names in _MEASURES if asked.search(head)] or [_MEASURES[0][1]]))


def _find_head(question: str) -> str:
    """The first line of a question in lower case, without text in brackets."""
    return re.sub(r"\([^()]*\)|\[[^\[\]]*\]", " ", question.strip().partition("\n")[0][:_MAX_QUESTION_CHARS].lower())
