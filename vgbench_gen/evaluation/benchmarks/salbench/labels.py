"""Reads sets of labels from replies: SalBench asks for all features in which one object differs.

Rules: `docs/protocols.md#sets-of-labels`.

A value is the labels in alphabetical order, joined by ", "; "" is the empty set, which is a valid answer. Source of
`score_as_released`: MikeWise2718/salbench, `evaluation/response_parser.py` and `metrics.py`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import takewhile

from vgbench_gen.evaluation.answers.official import OfficialScore
from vgbench_gen.evaluation.answers.outcomes import NOTHING, AnswerReader, ParsedAnswer, make_answer
from vgbench_gen.evaluation.answers.places import find_text_after_revision
from vgbench_gen.evaluation.answers.vocabulary import compile_pattern, match_any_of, read_table, read_words

P3 = ("orientation", "color", "size")
O3 = ("orientation", "color", "focus", "shape", "size", "location", "pattern")
SPLITS: Mapping[str, Sequence[str]] = {"synthetic": P3, "natural": O3}
MEASURES = ("precision", "recall", "f1", "exact_match")

_JOINT = ", "
EMPTY = make_answer("")  # the answer of a reply that names no label
_CHINESE: Mapping[str, str] = read_table("labels")["chinese"]
_PART = compile_pattern(
    rf"[,:()\u2013\u2014|]|\s-\s|\b(?:{match_any_of(read_words('turns', 'labels'))}|and|so|hence|therefore)\b"
)
_SENTENCE = re.compile(r"[\n;!?。]|\.(?=\s|$)")
_EMPTY = compile_pattern(rf"\A\W*{match_any_of(read_words('empty', 'labels'))}\W*\Z")
_SAME, _EXCEPT, _NEGATED = (
    compile_pattern(rf"\b{match_any_of(read_words(key, 'labels'))}\b") for key in ("same", "excepts", "negations")
)
_ELIDED = re.compile(r"\b(?:is|are|was|were|does|do|did|has|have)(?:n't|\s+not)?\s*\Z")
# A feature that the object lacks is one in which it differs: "the only one without a pattern", "not in focus".
_LACKED = re.compile(
    r"\b(?:no|without|lacks?|not have)\s+(?:any\s+|an?\s+)?(?=(?:pattern|focus)\b(?! diff))"
    r"|\b(?:not|isn't) in (?=focus\b(?! but))"
)
_GIVEN = compile_pattern(match_any_of(read_words("given", "labels")))
_NO = match_any_of(read_words("verdicts_no", "labels"))
_CROSS = match_any_of(read_words("crosses", "labels"))
_ANNOUNCED = compile_pattern(rf"\b{match_any_of(read_words('announcements', 'labels'))}\s*(?:is|are)?\s*(?::\s*|\n+)")
_FILLING = re.compile(r"\b(?:and|the|an?|features?|difference|in|[0-9]{1,2})\b|[^a-z]")


@lru_cache(maxsize=8)
def _compile_pattern(vocabulary: tuple[str, ...]) -> re.Pattern[str]:
    """A pattern for a label as a whole word, with its plural and other spellings ("colour", "foci")."""
    forms = read_table("labels")["forms"]
    named = "|".join(f"(?P<{label}>{forms[label]})" for label in vocabulary)
    return re.compile(rf"(?<![a-z])(?:{named})(?:e?s)?(?![a-z])")


class LabelReader(AnswerReader):
    """Reads the labels of one split.

    Args:
        vocabulary: all labels of the split, lower case.
    """

    def __init__(self, vocabulary: Sequence[str]) -> None:
        self.vocabulary = tuple(vocabulary)
        self._label = _compile_pattern(self.vocabulary)
        one = re.sub(r"\?P<[a-z]+>", "?:", self._label.pattern)
        self._list = re.compile(rf"{one}(?:[ \t,/&+|]+(?:(?:and|or|nor)\s+(?:the\s+)?)?{one})+")
        self._no = compile_pattern(
            rf"^[^\w\n]*{_CROSS}\s*{one}"
            rf"|{one}[\"']?[ \t]*(?:(?:[:=|(?]|-+>?|→)[ \t]*[\"']?(?:{_CROSS}|{_NO}(?![a-z]))|{_CROSS})"
        )

    def read_notation(self, text: str) -> ParsedAnswer:
        """The labels after "wait" or "actually", else the lines with only labels after the last "answer:"."""
        revised = self.read_anywhere(find_text_after_revision(text))
        starts = list(_ANNOUNCED.finditer(text.lower()))
        if revised.found or not starts:
            return revised
        lines = text.lower()[starts[-1].end() :].split("\n")
        listed = takewhile(lambda line: not _FILLING.sub("", self._label.sub(" ", line)), lines)
        found = self._find_named("\n".join(listed))
        return _make_answer(found if len(found) < len(self.vocabulary) else set(), NOTHING)

    def read_segment(self, text: str) -> ParsedAnswer:
        """The labels in a container or after an announcing phrase."""
        found = set[str]().union(*self._read_sentences(text))
        return _make_answer(found, EMPTY if _EMPTY.match(text.lower()) else NOTHING)

    def read_opening(self, text: str) -> ParsedAnswer:
        return self.read_anywhere(text)

    def read_anywhere(self, text: str) -> ParsedAnswer:
        """The labels that the text asserts anywhere, except in a sentence that repeats the whole list."""
        parts = self._read_sentences(text)
        some = [part for part in parts if part and len(part) < len(self.vocabulary)]
        return _make_answer(set[str]().union(*(some or parts)), NOTHING)

    def _find_named(self, text: str) -> set[str]:
        return {str(match.lastgroup) for match in self._label.finditer(text)}

    def _read_sentences(self, text: str) -> list[set[str]]:
        """The labels that each sentence asserts: those in clauses with neither a negation nor a word of sameness, or
        with both."""
        text = text.lower()
        for chinese, english in _CHINESE.items():
            text = text.replace(chinese, english)
        text = self._list.sub(self._join_list, self._no.sub(", ", _GIVEN.sub(" ", text)))
        same = False  # whether the last predicate expresses sameness
        parts = []
        for sentence in _SENTENCE.split(_LACKED.sub(" ", text)):
            found: set[str] = set()
            for clause in _PART.split(sentence):
                main, *excepted = _EXCEPT.split(clause, maxsplit=1)
                named = self._find_named(main)
                same = _SAME.search(main) is not None or (same and _ELIDED.search(main) is not None)
                denied = same != (_NEGATED.search(main) is not None)
                found |= set() if denied else named
                found |= self._find_named(excepted[0]) if excepted and (denied or not named) else set()
            parts.append(found)
        return parts

    def _join_list(self, match: re.Match[str]) -> str:
        """A list of labels without separators that would end a clause; " " for the whole list of the question."""
        found = self._find_named(match.group())
        echo = len(found) == len(self.vocabulary) and self._label.search(
            match.string[: match.start()] + " " + match.string[match.end() :]
        )
        return " " if echo else " & ".join(one.group() for one in self._label.finditer(match.group()))


def _make_answer(labels: set[str], otherwise: ParsedAnswer = EMPTY) -> ParsedAnswer:
    return make_answer(_JOINT.join(sorted(labels))) if labels else otherwise


def convert_to_set(value: str | float | None) -> frozenset[str]:
    """The labels in a value of `LabelReader`."""
    return frozenset(str(value).split(_JOINT)) if isinstance(value, str) and value else frozenset()


def parse_truth(text: str, vocabulary: Sequence[str]) -> str | None:
    """The value of a published answer ("Color, Size"); None if it contains anything but labels."""
    named = {str(match.lastgroup) for match in _compile_pattern(tuple(vocabulary)).finditer(text.lower())}
    rest = _FILLING.sub("", _compile_pattern(tuple(vocabulary)).sub(" ", text.lower()))
    return None if rest or not named else _JOINT.join(sorted(named))


def score_exactly(line: str, vocabulary: Sequence[str]) -> ParsedAnswer:
    """The labels of a line that contains nothing else."""
    value = parse_truth(line, vocabulary)
    return NOTHING if value is None else make_answer(value)


def find_unknown_labels(text: str, vocabulary: Sequence[str]) -> int:
    """Number of labels in a reply that only the other split has."""
    others = {str(match.lastgroup) for match in _compile_pattern(O3).finditer(text.lower())}
    return len(others - set(vocabulary))


def measure_labels(named: frozenset[str], true: frozenset[str]) -> dict[str, float]:
    """Precision, recall, F1 and exact match of a reply; all 1 if both sets are empty, all 0 if only one is."""
    if not named or not true:
        return dict.fromkeys(MEASURES, float(named == true))
    hits = len(named & true)
    precision, recall = hits / len(named), hits / len(true)
    f1 = 2 * precision * recall / (precision + recall) if hits else 0.0
    return {"precision": precision, "recall": recall, "f1": f1, "exact_match": float(named == true)}


def score_as_released(response: str | None, true: str, vocabulary: Sequence[str]) -> OfficialScore:
    """Score a reply as the released parser does: in each part between separators it takes the first label that occurs.

    It iterates over a set, so that the label of a part with several changes from run to run; here the labels are tried
    in the order of the prompt.
    """
    if response is None:
        return OfficialScore(None, 0.0)
    text = response.lower().strip()
    for separator in (";", " and ", "\n", "|"):
        text = text.replace(separator, ",")
    found = set()
    for part in text.split(","):
        part = re.sub(r"^(the\s+|a\s+|an\s+)", "", part.strip())
        part = re.sub(r"\s*(feature|difference|differs?|aspect)s?\s*$", "", part)
        found.update([label for label in vocabulary if label in part][:1])
    value = _JOINT.join(sorted(found))
    return OfficialScore(value, measure_labels(frozenset(found), convert_to_set(true))["exact_match"])
