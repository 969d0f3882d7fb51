"""Sets of labels in replies: SalBench asks for all features in which one object differs.

Source: `docs/protocols.md#sets-of-labels`.

A value is the labels in alphabetical order, joined by ", "; "" is the empty set, which is an answer like any other.
Source of `score_as_released`: MikeWise2718/salbench, `evaluation/response_parser.py` and `metrics.py`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache

from vgbench_gen.evaluation.answers.official import OfficialScore
from vgbench_gen.evaluation.answers.outcomes import NOTHING, AnswerReader, ParsedAnswer, make_answer
from vgbench_gen.evaluation.answers.places import find_text_after_revision
from vgbench_gen.evaluation.answers.vocabulary import compile_pattern, match_any_of, read_table, read_words
from vgbench_gen.evaluation.benchmarks.salbench.label_clauses import Clauses

P3 = ("orientation", "color", "size")
O3 = ("orientation", "color", "focus", "shape", "size", "location", "pattern")
SPLITS: Mapping[str, Sequence[str]] = {"synthetic": P3, "natural": O3}
MEASURES = ("precision", "recall", "f1", "exact_match")

_JOINT = ", "
_CHINESE: Mapping[str, str] = read_table("labels")["chinese"]
EMPTY = make_answer("")  # what a reply says that names no label
_SENTENCE = re.compile(r"[\n;!?。]|\.(?=\s|$)")
_DASH = re.compile(r"\s+-+\s+|\s*[\u2014\u2013]\s*")
_FRAME = str.maketrans(dict.fromkeys('"“”{}[]', " "))
_EMPTY = compile_pattern(rf"\A\W*{match_any_of(read_words('empty', 'labels'))}\W*\Z")
_DIFFER, _ASKS = (compile_pattern(rf"\b{match_any_of(read_words(key, 'labels'))}\b") for key in ("differ", "asks"))
_LEFT_OPEN = compile_pattern(rf"\W+{match_any_of(read_words('turns', 'labels'))}\b[\w' ]*\Z")
_GIVEN = compile_pattern(match_any_of(read_words("given", "labels")))
_YES, _NO = match_any_of(read_words("verdicts_yes", "labels")), match_any_of(read_words("verdicts_no", "labels"))
_SHORT_NO = match_any_of(read_words("short_no", "labels"))
_MARK_YES, _MARK_NO = match_any_of(read_words("marks_yes", "labels")), match_any_of(read_words("marks_no", "labels"))
_ANNOUNCED = compile_pattern(
    rf"{match_any_of(read_words('announcements', 'labels'))}\s*(?:is|are)?\s*:?[ \t]*(?P<below>\n+)"
    r"|\banswers?\s*(?:is|are|:|=)+[ \t]*"
)
_FILLING = re.compile(r"\b(?:and|the|an?|features?|difference|in|[0-9]{1,2})\b|[^a-z]")


@lru_cache(maxsize=8)
def _compile_pattern(vocabulary: tuple[str, ...]) -> re.Pattern[str]:
    """One label as a whole word, with its plural; "colour" is "color", "foci" "focus"."""
    forms = read_table("labels")["forms"]
    named = "|".join(f"(?P<{label}>{forms[label]})" for label in vocabulary)
    return re.compile(rf"(?<![a-z])(?:{named})(?:e?s)?(?![a-z])")


@lru_cache(maxsize=8)
def _compile_verdict(vocabulary: tuple[str, ...]) -> re.Pattern[str]:
    """A label and what a table says of it: "size: no", "size (yes)", '"size": false', "size ✓"."""
    either_way = rf"(?:{_YES}|(?P<{{0}}>{_NO}))"
    alike = match_any_of(read_words("all_alike", "labels"))
    forms = (
        rf"\s*(?:[:=|?]|-+>?|→)\s*[\"']?{either_way.format('no1')}(?![a-z])",
        rf"\s*\(\s*{either_way.format('no2')}(?![a-z])[^()\n]*\)",
        rf"\s+(?P<no3>{_SHORT_NO})(?=\s*(?:[,.;|)]|$))",
        rf"\s*:?\s*(?:{_MARK_YES}|(?P<no4>{_MARK_NO}))",
        rf"\s*:\s*(?P<no5>{alike})",
    )
    return compile_pattern(rf"[\"']?(?P<of>{_compile_pattern(vocabulary).pattern})[\"']?(?:{'|'.join(forms)})")


@lru_cache(maxsize=8)
def _compile_ticked(vocabulary: tuple[str, ...]) -> re.Pattern[str]:
    """A label behind its mark: "✗ size"."""
    return compile_pattern(rf"(?:{_MARK_YES}|(?P<no>{_MARK_NO}))\s*(?P<of>{_compile_pattern(vocabulary).pattern})")


class LabelReader(AnswerReader):
    """Reads the labels of one split.

    Args:
        vocabulary: the labels that there are, lower case.
    """

    def __init__(self, vocabulary: Sequence[str]) -> None:
        self.vocabulary = tuple(vocabulary)
        self._label = _compile_pattern(self.vocabulary)
        one = re.sub(r"\?P<[a-z]+>", "?:", self._label.pattern)
        self._list = re.compile(rf"{one}(?:[\s,;/&|]+(?:and\s+|or\s+)?{one}){{{len(self.vocabulary) - 1},}}")
        self._verdict, self._ticked = _compile_verdict(self.vocabulary), _compile_ticked(self.vocabulary)

    def read_notation(self, text: str) -> ParsedAnswer:
        """What follows "wait" or "actually", else a list over several lines after the last "answer:"."""
        revised = self.read_anywhere(find_text_after_revision(text))
        if revised.found:
            return revised
        text = text.lower()
        starts = list(_ANNOUNCED.finditer(text))
        found: set[str] = set()
        lines = 0
        for line in text[starts[-1].end() :].split("\n") if starts else ():
            named = self._find_named(line)
            if line.strip() and (not named or _FILLING.sub("", self._label.sub(" ", line))):
                break
            found |= named
            lines += bool(named)
        # One line beside the announcement is left to the rules for phrases.
        return _make_answer(found, NOTHING) if lines > 1 or (starts and starts[-1]["below"]) else NOTHING

    def read_segment(self, text: str) -> ParsedAnswer:
        """The labels in a container or after a phrase."""
        found = self._find_asserted(text.lower())
        if found:
            return _make_answer(found)
        return EMPTY if _EMPTY.match(text.lower()) else NOTHING

    def read_opening(self, text: str) -> ParsedAnswer:
        """What opens a reply that then gives up ("color, but I cannot tell more"); else as anywhere."""
        low = _LEFT_OPEN.sub("", text.lower())
        listed = not _FILLING.sub("", self._label.sub(" ", low))
        if not listed and (_ASKS.search(low) or not _DIFFER.search(low)):
            return NOTHING
        return self.read_anywhere(text)

    def read_anywhere(self, text: str) -> ParsedAnswer:
        """The labels that the text asserts anywhere, those of a sentence that repeats the whole list aside."""
        parts = self._read_sentences(text.lower())
        some = [part for part in parts if part and len(part) < len(self.vocabulary)]
        return _make_answer(set[str]().union(*(some or parts)), NOTHING)

    def _remove_echo(self, text: str) -> str:
        """The text without a list of all labels that there are, where it names some of them elsewhere."""
        for match in self._list.finditer(text):
            rest = f"{text[: match.start()]} {text[match.end() :]}"
            if self._find_named(match.group()) == set(self.vocabulary) and self._label.search(rest):
                return rest
        return text

    def _find_named(self, text: str) -> set[str]:
        return {str(match.lastgroup) for match in self._label.finditer(text)}

    def _find_asserted(self, text: str) -> set[str]:
        return set[str]().union(*self._read_sentences(text))

    def _read_sentences(self, text: str) -> list[set[str]]:
        """The labels that each sentence of a lower-case text asserts."""

        def told(match: re.Match[str]) -> str:
            denied = any(value for name, value in match.groupdict().items() if name.startswith("no"))
            return ", " if denied else f", {match['of']}, "

        for chinese, english in _CHINESE.items():
            text = text.replace(chinese, english)
        text = self._remove_echo(_GIVEN.sub(" ", text))
        ticked = self._ticked.search(text)
        if ticked and not self._label.search(text[: ticked.start()]):
            text = self._ticked.sub(told, text)
        text = _DASH.sub(": ", self._verdict.sub(told, text).translate(_FRAME))
        clauses = Clauses(self._label)
        return [clauses.asserted(sentence) for sentence in _SENTENCE.split(text)]


def _make_answer(labels: set[str], otherwise: ParsedAnswer = EMPTY) -> ParsedAnswer:
    return make_answer(_JOINT.join(sorted(labels))) if labels else otherwise


def convert_to_set(value: str | float | None) -> frozenset[str]:
    """The labels of a value as `LabelReader` gives them."""
    return frozenset(str(value).split(_JOINT)) if isinstance(value, str) and value else frozenset()


def parse_truth(text: str, vocabulary: Sequence[str]) -> str | None:
    """The value that a published answer ("Color, Size") stands for; None where it holds anything but labels."""
    named = {str(match.lastgroup) for match in _compile_pattern(tuple(vocabulary)).finditer(text.lower())}
    rest = _FILLING.sub("", _compile_pattern(tuple(vocabulary)).sub(" ", text.lower()))
    return None if rest or not named else _JOINT.join(sorted(named))


def score_exactly(line: str, vocabulary: Sequence[str]) -> ParsedAnswer:
    """The labels of a line that holds nothing else."""
    value = parse_truth(line, vocabulary)
    return NOTHING if value is None else make_answer(value)


def find_unknown_labels(text: str, vocabulary: Sequence[str]) -> int:
    """How many labels of the other split a reply names."""
    others = {str(match.lastgroup) for match in _compile_pattern(O3).finditer(text.lower())}
    return len(others - set(vocabulary))


def measure_labels(said: frozenset[str], true: frozenset[str]) -> dict[str, float]:
    """Precision, recall, F1 and exact match of one reply; all 1 where both sets are empty, all 0 where one is."""
    if not said or not true:
        return dict.fromkeys(MEASURES, float(said == true))
    hits = len(said & true)
    precision, recall = hits / len(said), hits / len(true)
    f1 = 2 * precision * recall / (precision + recall) if hits else 0.0
    return {"precision": precision, "recall": recall, "f1": f1, "exact_match": float(said == true)}


def score_as_released(response: str | None, true: str, vocabulary: Sequence[str]) -> OfficialScore:
    """What the released parser makes of a reply: per part between separators the first label found in it as a piece of
    text.

    It looks through a set, so that which label of a part comes first changes from run to run; here they stand in the
    order in which the prompt names them.
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
