"""Reads yes or no from replies (`docs/protocols.md#yes-and-no`)."""

# ruff: noqa: RUF001 (characters of replies that look like others)

from __future__ import annotations

import re

from vgbench_gen.evaluation.answers.outcomes import AMBIGUOUS, NOTHING, REFUSAL, AnswerReader, ParsedAnswer, make_answer
from vgbench_gen.evaluation.answers.places import find_text_after_revision
from vgbench_gen.evaluation.answers.vocabulary import compile_pattern, match_any_of, read_words

YES, NO = "Yes", "No"


def _match_list(key: str) -> str:
    return match_any_of(read_words(key, "yes_no"))


def _compile_any(*patterns: str) -> re.Pattern[str]:
    return compile_pattern("|".join(patterns))


_END = r"(?=\s*(?:$|[.,!?;:)\]\"'、。|]|-|—))"
_YES = (
    rf"(?:{_match_list('yes')}(?!\s+not\b)"
    rf"|{_match_list('stress')}(?:{_END}|\s+(?:is|are|was|were|does|do|did|has|have){_END}))"
)
_PLAIN_NO = r"no(?!\.?\s?\#?[0-9])"  # "No. 1" is a number
_NO = rf"(?:{_match_list('no')}|{_PLAIN_NO}(?!\s+{_match_list('no_idioms')}\b))"
_TRUE, _FALSE, _SUBJECT = _match_list("true"), _match_list("false"), _match_list("subjects")
_ADVERBS = rf"(?:{_match_list('adverbs')} )*"
_SHARE = r"\W{1,4}[0-9.,]{1,6}\s?%?"  # the probability of a yes or a no

# A polite opening, as in "Certainly! Let me check."; alone, "Certainly!" is a yes.
_COURTESY = compile_pattern(
    rf"\A\W*(?:(?P<yes>{_match_list('stress')})|{_match_list('courtesies')})\s*[.!,:]+\s*(?=\w)"
)
# No answer: both words together, or a word in a question or a denial.
_ECHO = _compile_any(
    r"\"?\byes\"?\s*(?:or|/|\|)\s*\"?no\"?\b",
    r"\"?\bno\"?\s*(?:or|/|\|)\s*\"?yes\"?\b",
    r"\btrue\s*(?:or|/)\s*false\b",
    r"(?:\bnot|n't)\s+(?:a\s+|simply\s+|just\s+)?\"?(?:yes|no)\b\"?",
    r"\b(?:yes|no)\s*\?(?=\s*\S)",  # "Yes? Let me check."
    rf"\b(?:yes|true){_SHARE}\W+(?:and\s+)?(?:no|false){_SHARE}",
    rf"\b(?:no|false){_SHARE}\W+(?:and\s+)?(?:yes|true){_SHARE}",
    _match_list("chinese_echoes"),
)
_BOTH = compile_pattern(r"\byes\b\W+(?:and|but also)\W+\bno\b|\bno\b\W+(?:and|but also)\W+\byes\b")
_LEADING_YES = (
    rf"{_match_list('stress')}\s+(?:{_match_list('stress_goes_on')}\b|{_TRUE})",
    rf"{_YES}\b",
    r"(?:y|t|1)\b(?=\W*\Z)",
    rf"(?:that's\s+|that is\s+)?{_TRUE}\b{_END}",
    _match_list("chinese_yes"),
)
_LEADING_NO = (
    rf"{_NO}\b",
    r"(?:n|f|0)\b(?=\W*\Z)",
    rf"not\s+(?:quite\s+|really\s+|exactly\s+)?{_TRUE}\b{_END}",
    r"not\s+(?:really|quite|exactly)\b",
    rf"{_FALSE}\b{_END}",
    _match_list("chinese_no"),
)
_LEADING = compile_pattern(
    rf"\A\W*(?:{_match_list('hedges')}\s+)?(?:(?P<yes>{'|'.join(_LEADING_YES)})|(?P<no>{'|'.join(_LEADING_NO)}))"
)
_TOKEN = compile_pattern(rf"\b(?:(?P<yes>{_YES})\b(?!\s+or\b)|(?P<no>{_match_list('no')}\b|{_PLAIN_NO}\b{_END}))")
# A statement about the claim. It affirms the claim unless an odd number of the named groups match.
_PREDICATE = _compile_any(
    # "I don't think that the claim is not false"
    rf"(?P<doubt>{_match_list('disbelief')}\s+(?:that\s+)?)?(?<!whether )(?<!if )\b{_SUBJECT}"
    r"(?:\s+that\b[^.\n]{1,200}?)?\s*"
    rf"(?!would be [a-z]+ to\b)(?:{_match_list('copulas')}\s*|(?P<never>isn't|wasn't|can(?:'t|not| not) be)\s+)"
    rf"{_ADVERBS}(?P<not>{_match_list('negations')}\s+)?{_ADVERBS}(?:{_TRUE}|(?P<false>{_FALSE}))\b(?!\s+[a-z]+\s+of\b)",
    rf"(?:\A|[.:])\W*(?:the\s+)?(?:statement|claim)\s+(?:{_TRUE}|(?P<denied>{_FALSE}))\b",
    rf"\b{_SUBJECT}\s+(?:(?P<fails>does(?:n't| not))\s+hold|(?:still\s+)?holds)\b(?!\s+(?!(?:true|up)\b)[a-z])",
    rf"(?P<unsupported>(?:does|do)(?:n't| not)\s+)?\b{_match_list('supports')}\s+{_SUBJECT}",
    rf"(?P<refuted>\b{_match_list('refutes')})\s+{_SUBJECT}",
    rf"\bnothing\s+(?:is\s+)?{_FALSE}\b",
    r"\b(?:i|we)\b[^.,;!?\n]{0,12}?(?P<unable>(?:not|n't)\s+)?(?P<dissent>\bdisagree)\b",
    r"\b(?:i|we)\b[^.,;!?\n]{0,12}?(?P<declines>(?:not|n't)\s+(?:\w+ly\s+)?agree)\b",
    r"\b(?:i|we)(?:'d| would| do)?\s+(?:\w+ly\s+)?agree\b|\bagreed\b",
    rf"{_match_list('chinese_subjects')}(?:显然|因此|所以)?(?:是|为)?(?:(?P<wrong>{_match_list('chinese_false')})|{_match_list('chinese_true')})",
)
# Elliptic replies: a verb or an adverb alone ("It is."), and "I think so".
_ELLIPSIS = _compile_any(
    r"\A\W*(?:(?:sure|indeed|of course|definitely)\b\W*)?(?:it|they|that|this|he|she)\s+(?:really\s+|indeed\s+)?"
    r"(?:is|are|does|do|was|were|did|has|have)(?P<not>n't|\s+not)?(?:\s+indeed)?\s*(?:[.;!,]|\Z)",
    r"\A\W*(?P<isnt>(?:it|that|this)'s not|they're not)\s*(?:[.;!,]|\Z)",
    r"\A\W*(?:(?P<none>not (?:at all|quite))|exactly|indeed|definitely|sure|of course)\W*\Z",
    r"\bi(?:'d| would)? (?P<doubt>do not |don't |not )?(?:think|believe|suppose|say) so\b",
    r"\bi (?P<doubts>(?:\w+ly )?doubt (?:it|that|so)\W*\Z)",
)
_HELPLESS = compile_pattern(
    r"\A\W*no\b[\s,.]*i(?:'m| am)? "
    r"(?:sorry|(?:can't|cannot|can not|unable to|not able to|don't|do not)\s+"
    r"(?:help|assist|answer|determine|provide|know|do that))"
)
_UNTICKED = re.compile(r"(?:\[ ?\]|☐)[ \t]*\w+|\[[xX]\]")
_UNTICKED_BEHIND = re.compile(r"\w+[ \t]*(?:\[ ?\]|☐)|\[[xX]\]")
_TRUTH_VALUE = re.compile(r"[\"']\w{1,40}[\"']\s*:\s*[\"']?(true|false)\b", re.IGNORECASE)
_FALSE_KEY = re.compile(
    r"[\"'](?:(?:is_?)?(?:false|incorrect|wrong|untrue|invalid)|no)[\"']\s*:\s*[\"']?(true|false)\b", re.IGNORECASE
)
_SENTENCE = re.compile(r"[.!?。;\n]")
_TURNS = re.compile(r"\b(?:but|however|actually|in fact|so|therefore|thus|hence)\b")
_TICKS, _CROSSES = "✓✔✅☑√👍🟢", "✗✘❌✖✕×❎👎🔴"


class YesNoReader(AnswerReader):
    """Reads "Yes" or "No"."""

    keys = re.compile(read_words("keys", "yes_no")[0])

    def prepare(self, text: str) -> str:
        """Remove choices that are not ticked, and replace a JSON key "is_false" by "is_true" with the negated value."""
        if "[x]" in text.lower() or "☐" in text:
            text = (_UNTICKED if re.match(r"\W*?[\[☐☑✓✔✅]", text) else _UNTICKED_BEHIND).sub(" ", text)
        if len(_TRUTH_VALUE.findall(text)) == 1:
            text = _TRUTH_VALUE.sub(r'"is_true": \1', _FALSE_KEY.sub(_write_opposite, text))
        text = re.sub(r"\(([A-Za-z])\)(?=[A-Za-z])", r"\1", text)
        return _FALSE_KEY.sub(_write_opposite, text)

    def read_notation(self, text: str) -> ParsedAnswer:
        """A mark alone, a refusal that begins with "no", or the answer after "wait"."""
        if not re.search(r"\w", text):
            marks = _find_marks(text)
            return make_answer(YES if marks.pop() else NO) if len(marks) == 1 else NOTHING
        if _HELPLESS.search(text.lower()):
            return REFUSAL
        tail = find_text_after_revision(text, says_no=True)
        found = self.read_anywhere(tail) if tail else NOTHING
        return found if found.found else NOTHING

    def read_segment(self, text: str) -> ParsedAnswer:
        """A yes or no in a container or after an announcing phrase."""
        found = self.read_opening(text)
        return self.read_anywhere(text) if found.status == "no_answer" else found

    def read_opening(self, text: str) -> ParsedAnswer:
        """A yes or no at the start, after a polite opening; ambiguous if the same sentence contradicts it."""
        text = _clear(text)
        if _BOTH.search(text):
            return AMBIGUOUS
        text = _ECHO.sub(" ", text).strip()
        polite = _COURTESY.match(text)
        if polite:
            found = self.read_segment(text[polite.end() :])
            return make_answer(YES) if found.status == "no_answer" and polite["yes"] else found
        match = _LEADING.search(text)
        if match is None:
            short = _ELLIPSIS.search(text)
            return NOTHING if short is None else make_answer(NO if any(short.groups()) else YES)
        following = _SENTENCE.split(text[match.end() :].lstrip(" .!"), maxsplit=1)[0]
        meanings = {bool(match["yes"]), *_find_predicates(following), *_read_alone(following)}
        return make_answer(YES if match["yes"] else NO) if len(meanings) == 1 else AMBIGUOUS

    def read_anywhere(self, text: str) -> ParsedAnswer:
        """The last yes or no, unless a phrase such as "the statement is true" follows; else a mark."""
        low = _ECHO.sub(" ", _clear(text))
        tokens = list(_TOKEN.finditer(low))
        meanings = _find_predicates(low[tokens[-1].end() if tokens else 0 :])
        if tokens and len(meanings) != 1:
            sentence = _SENTENCE.split(low[: tokens[-1].end()])[-1]
            meanings = {bool(token["yes"]) for token in _TOKEN.finditer(sentence)}
        if len(meanings) > 1:
            meanings = _find_predicates(_TURNS.split(low)[-1]) or meanings
        last = next((part for part in reversed(re.split(r"[.!?。;\n→]", low)) if part.strip()), "")
        meanings = meanings or _read_alone(last) or _find_marks(text)
        return make_answer(YES if meanings.pop() else NO) if len(meanings) == 1 else AMBIGUOUS if meanings else NOTHING


def _read_alone(sentence: str) -> set[bool]:
    """The meaning (true is yes) of a sentence such as "true" or "it is not" that says nothing else."""
    for pattern in (_LEADING, _ELLIPSIS):
        alone = pattern.match(sentence)
        if alone and not re.search(r"\w", sentence[alone.end() :]):
            return {bool(alone["yes"]) if pattern is _LEADING else not any(alone.groups())}
    return set()


def _find_marks(text: str) -> set[bool]:
    return {mark in _TICKS for mark in text if mark in _TICKS + _CROSSES}


def _write_opposite(match: re.Match[str]) -> str:
    return f'"is_true": {"false" if match[1].lower() == "true" else "true"}'


def _clear(text: str) -> str:
    """The text in lower case, without ticks and crosses."""
    return re.sub(f"[{_TICKS}{_CROSSES}\ufe0f]", " ", text.lower()).strip()


def _find_predicates(text: str) -> set[bool]:
    """Whether a text calls the claim true: {True}, {False}, both, or empty if it does not say."""
    return {sum(map(bool, match.groups())) % 2 == 0 for match in _PREDICATE.finditer(text)}
