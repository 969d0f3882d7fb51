"""Yes and no in replies (`docs/protocols.md#yes-and-no`)."""

from __future__ import annotations

import re

from vgbench_gen.evaluation.answers.outcomes import AMBIGUOUS, NOTHING, REFUSAL, ParsedAnswer, make_answer
from vgbench_gen.evaluation.answers.places import find_text_after_revision
from vgbench_gen.evaluation.answers.vocabulary import compile_pattern, match_any_of, read_words

YES, NO = "Yes", "No"

_END = r"(?=\s*(?:$|[.,!?;:)\]\"'、。|]|-|—))"
_ALONE = match_any_of(read_words("yes_alone", "yes_no"))
_YES = rf"(?:{match_any_of(read_words('yes', 'yes_no'))}(?!\s+not\b)|{_ALONE}"
_YES += rf"(?:{_END}|\s+(?:is|are|was|were|does|do|did|has|have){_END}))"
_NO = rf"(?:{match_any_of(read_words('no', 'yes_no'))}|no(?!\s+{match_any_of(read_words('no_idioms', 'yes_no'))}\b))"
_TRUE, _FALSE = match_any_of(read_words("true", "yes_no")), match_any_of(read_words("false", "yes_no"))
_SUBJECT = match_any_of(read_words("subjects", "yes_no"))
_OPENS_YES = rf"{_ALONE}\s+(?:{match_any_of(read_words('yes_goes_on', 'yes_no'))}\b|{_TRUE})"
_CHINESE_NO, _CHINESE_YES = (
    match_any_of(read_words("chinese_no", "yes_no")),
    match_any_of(read_words("chinese_yes", "yes_no")),
)

_ECHO = compile_pattern(
    rf"\"?\byes\"?\s*(?:or|/|\|)\s*\"?no\"?\b|\"?\bno\"?\s*(?:or|/|\|)\s*\"?yes\"?\b|\btrue\s*(?:or|/)\s*false\b"
    rf"|(?:\bnot|n't)\s+(?:a\s+|simply\s+|just\s+)?\"?(?:yes|no)\b\"?"
    rf"|\b(?:yes|no)\s*\?(?=\s*\S)"  # "Yes? Let me check."
    rf"|{match_any_of(read_words('chinese_echoes', 'yes_no'))}"
)
_BOTH = compile_pattern(r"\byes\b\W+(?:and|but also)\W+\bno\b|\bno\b\W+(?:and|but also)\W+\byes\b")
_LEADING = compile_pattern(
    rf"\A\W*(?:(?P<yes>{_OPENS_YES}|{_YES}\b|y\b(?=\W*$))|(?P<no>{_NO}\b|n\b(?=\W*$))"
    rf"|(?P<not>not\s+(?:quite\s+|really\s+|exactly\s+)?{_TRUE}\b{_END}|not\s+really\b)"
    rf"|(?P<right>(?:that's\s+|that is\s+)?{_TRUE}\b{_END})|(?P<wrong>{_FALSE}\b{_END})"
    rf"|(?P<cno>{_CHINESE_NO})|(?P<cyes>{_CHINESE_YES}))"
)
_TOKEN = compile_pattern(
    rf"\b(?:(?P<yes>{_YES})\b(?!\s+or\b)|(?P<no>{match_any_of(read_words('no', 'yes_no'))}\b|no\b{_END}))"
)
_PREDICATE = compile_pattern(
    rf"\b{_SUBJECT}\s*(?:(?:is|was|'s|must be|appears? to be|seems?(?: to be)?|would be|holds?)\s*)"
    rf"(?:therefore |thus |indeed |clearly |definitely |hence |probably |likely |also |in fact )*"
    rf"(?P<not>(?:not|n't)\s+)?(?:entirely |quite |really |factually |completely )?"
    rf"(?:(?P<true>{_TRUE})|(?P<false>{_FALSE}))\b"
    rf"(?!\s+[a-z]+\s+of\b)|\b{_SUBJECT}\s*(?P<isnt>isn't|wasn't)\s+(?:(?P<true2>{_TRUE})|(?P<false2>{_FALSE}))\b"
)
_HOLDING = compile_pattern(
    rf"\b{_SUBJECT}\s+(?:(?P<not>does(?:n't| not))\s+hold|(?:still\s+)?holds)\b(?!\s+(?!true\b)[a-z])"
)
_OF_STATEMENT = compile_pattern(
    r"\bstatement\b[^.\n]{1,200}\b(?:is|was)\s+(?:therefore |thus |clearly |indeed |also )?(?P<not>not\s+)?"
    r"(?:(?P<true>true|correct|accurate|valid)|(?P<false>false|incorrect|wrong|untrue|inaccurate|invalid))\s*(?:[.!]|$)"
)
_CHINESE_PREDICATE = compile_pattern(
    rf"{match_any_of(read_words('chinese_subjects', 'yes_no'))}(?:显然|因此|所以)?(?:是|为)?"
    rf"(?:(?P<false>{match_any_of(read_words('chinese_false', 'yes_no'))})|(?P<true>正确|对的|成立|准确|属实))"
)
# Whole replies that are a verb or an adverb alone ("It is."), and "I think so".
_ELLIPSIS = compile_pattern(
    r"\A\W*(?:(?:sure|indeed|of course|definitely)\b\W*)?(?:it|they|that|this|he|she)\s+(?:really\s+|indeed\s+)?"
    r"(?:is|are|does|do|was|were|did|has|have)(?P<not>n't|\s+not)?(?:\s+indeed)?[\s.!]*\Z"
    r"|\A\W*(?:(?P<none>not (?:at all|quite))|exactly|indeed|definitely|sure|of course)\W*\Z"
    r"|\bi (?P<doubt>do not |don't )?(?:think|believe|suppose) so\b"
)
_HELPLESS = compile_pattern(
    r"\A\W*no\b[\s,.]*i(?:'m| am)? "
    r"(?:sorry|(?:can't|cannot|can not|unable to|not able to|don't|do not)\s+"
    r"(?:help|assist|answer|determine|provide|know|do that))"
)
_SENTENCE = re.compile(r"[.!?。;\n]")


class YesNoReader:
    """Reads "Yes" or "No"."""

    def read_notation(self, text: str) -> ParsedAnswer:
        """A "no" that declines to help; what follows "wait," where nothing is announced later or boxed."""
        low = text.lower()
        if _HELPLESS.search(low):
            return REFUSAL
        return self._read_revision(text)

    def read_segment(self, text: str) -> ParsedAnswer:
        """A yes or no in a container or after a phrase."""
        found = self.read_opening(text)
        return self.read_anywhere(text) if found.status == "no_answer" else found

    def read_opening(self, text: str) -> ParsedAnswer:
        """A token that opens the reply, unless the reply takes it back."""
        text = text.lower()
        if _BOTH.search(text):
            return AMBIGUOUS
        text = _ECHO.sub(" ", text).strip()
        match = _LEADING.search(text)
        if match is None:
            short = _ELLIPSIS.search(text)
            return NOTHING if short is None else make_answer(NO if any(short.groups()) else YES)
        said_yes = match["yes"] or match["right"] or match["cyes"]
        return make_answer(YES if said_yes else NO)

    def read_anywhere(self, text: str) -> ParsedAnswer:
        """The last token of the text; else "the statement is true" and its like."""
        text = _ECHO.sub(" ", text.lower())
        tokens = list(_TOKEN.finditer(text))
        if tokens:
            sentence = _SENTENCE.split(text[: tokens[-1].end()])[-1]
            kinds = {bool(token["yes"]) for token in _TOKEN.finditer(sentence)}
            return AMBIGUOUS if len(kinds) > 1 else make_answer(YES if tokens[-1]["yes"] else NO)
        said = {_says_true(match) for match in _PREDICATE.finditer(text)}
        if len(said) > 1:
            return AMBIGUOUS
        said |= {not match["not"] for match in _HOLDING.finditer(text)}
        if not said:
            said = {bool(match["true"]) != bool(match["not"]) for match in _OF_STATEMENT.finditer(text)}
            said |= {bool(match["true"]) for match in _CHINESE_PREDICATE.finditer(text)}
        return make_answer(YES if said.pop() else NO) if len(said) == 1 else AMBIGUOUS if said else NOTHING

    def _read_revision(self, text: str) -> ParsedAnswer:
        """The yes or no of what follows "wait" or "actually", where something does."""
        tail = find_text_after_revision(text, says_no=True)
        found = self.read_anywhere(tail) if tail else NOTHING
        return found if found.found else NOTHING


def _says_true(match: re.Match[str]) -> bool:
    negated = bool(match["not"] or match["isnt"])
    return bool(match["true"] or match["true2"]) != negated
