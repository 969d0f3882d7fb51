"""Sets of labels in replies (`eval-protocols.md` 2.7): SalBench asks for all features in which one object differs.

A value is the labels in alphabetical order, joined by ", "; "" is the empty set, which is an answer like any other.
Source of `released`: MikeWise2718/salbench, `evaluation/response_parser.py` and `metrics.py`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache

from vgbench_gen.evaluation.answers.official import Official
from vgbench_gen.evaluation.answers.outcomes import NOTHING, Reading, ok
from vgbench_gen.evaluation.answers.vocabulary import compiled, either, words

P3 = ("orientation", "color", "size")
O3 = ("orientation", "color", "focus", "shape", "size", "location", "pattern")
SPLITS: Mapping[str, Sequence[str]] = {"synthetic": P3, "natural": O3}
MEASURES = ("precision", "recall", "f1", "exact_match")

_JOINT = ", "
EMPTY = ok("")  # what a reply says that names no label
_SENTENCE = re.compile(r"[\n;!?。]|\.(?=\s|$)")
_CLAUSE = compiled(rf"[()]|,?\s*\b{either(words('turns', 'labels'))}\b|,\s*(?={either(words('restarts', 'labels'))}\b)")
_UNLIKE = compiled(either(words("unlike", "labels")))
_SAME_AFTER = compiled(either(words("same_after", "labels")))
_SAME_BEFORE = compiled(either(words("same_before", "labels")))
_NOT = compiled(either(words("negations", "labels")))
_EMPTY = compiled(rf"\A\W*{either(words('empty', 'labels'))}\W*\Z")
_DIFFER = compiled(either(words("differ", "labels")))
_YES, _NO = either(words("verdicts_yes", "labels")), either(words("verdicts_no", "labels"))
_ANNOUNCED = compiled(rf"{either(words('announcements', 'labels'))}\s*(?:is|are)?\s*:?[ \t]*\n+")
_FILLING = re.compile(r"\b(?:and|the|an?|features?|difference|in|[0-9]{1,2})\b|[^a-z]")


@lru_cache(maxsize=8)
def _pattern(vocabulary: tuple[str, ...]) -> re.Pattern[str]:
    """One label as a whole word, with its plural; "colour" is "color", "foci" "focus"."""
    forms = {"color": "colou?r", "focus": "foc(?:us|i)"}
    named = "|".join(f"(?P<{label}>{forms.get(label, label)})" for label in vocabulary)
    return re.compile(rf"(?<![a-z])(?:{named})(?:e?s)?(?![a-z])")


@lru_cache(maxsize=8)
def _verdict(vocabulary: tuple[str, ...]) -> re.Pattern[str]:
    """A label and what a table says of it: "size: no"."""
    return compiled(rf"(?P<of>{_pattern(vocabulary).pattern})\s*(?:[:=|]|-+>?|→)\s*(?:{_YES}|(?P<no>{_NO}))(?![a-z])")


class LabelReader:
    """Reads the labels of one split.

    Args:
        vocabulary: the labels that there are, lower case.
    """

    def __init__(self, vocabulary: Sequence[str]) -> None:
        self.vocabulary = tuple(vocabulary)
        self._label = _pattern(self.vocabulary)
        self._verdict = _verdict(self.vocabulary)

    def marked(self, text: str) -> Reading:
        """A list over several lines after the last "answer:"."""
        text = text.lower()
        starts = [match.end() for match in _ANNOUNCED.finditer(text)]
        found: set[str] = set()
        for line in text[starts[-1] :].split("\n") if starts else ():
            named = self._named(line)
            if line.strip() and (not named or _FILLING.sub("", self._label.sub(" ", line))):
                break
            found |= named
        return _reading(found, NOTHING)

    def segment(self, text: str) -> Reading:
        """The labels in a container or after a phrase."""
        found = self._asserted(text.lower())
        if found:
            return _reading(found)
        return EMPTY if _EMPTY.match(text.lower()) else NOTHING

    def leading(self, text: str) -> Reading:
        """Nothing: labels at the beginning are read with all others."""
        return NOTHING

    def free(self, text: str) -> Reading:
        """The labels that the text asserts anywhere, those of a sentence that repeats the whole list aside."""
        parts = [self._asserted(part) for part in _SENTENCE.split(text.lower())]
        some = [part for part in parts if part and len(part) < len(self.vocabulary)]
        return _reading(set[str]().union(*(some or parts)), NOTHING)

    def _named(self, text: str) -> set[str]:
        return {str(match.lastgroup) for match in self._label.finditer(text)}

    def _asserted(self, text: str) -> set[str]:
        found: set[str] = set()
        text = self._verdict.sub(lambda match: ", " if match["no"] else f"{match['of']}, ", text)
        for sentence in _SENTENCE.split(text):
            for clause in _CLAUSE.split(_UNLIKE.sub(" differs ", sentence)):
                denied = list(_denied(clause))
                for match in self._label.finditer(clause):
                    if not any(start <= match.start() < end for start, end in denied):
                        found.add(str(match.lastgroup))
        return found


def _denied(clause: str) -> Iterator[tuple[int, int]]:
    """(start, end) of where a clause names what does not differ."""
    turns = [match.span() for match in _DIFFER.finditer(clause)]
    if negation := _NOT.search(clause):
        yield negation.start(), len(clause)
    if same := _SAME_BEFORE.search(clause):
        yield same.end(), min((start for start, _ in turns if start > same.end()), default=len(clause))
    for same in _SAME_AFTER.finditer(clause):
        yield max((end for _, end in turns if end <= same.start()), default=0), same.start()


def _reading(labels: set[str], otherwise: Reading = EMPTY) -> Reading:
    return ok(_JOINT.join(sorted(labels))) if labels else otherwise


def as_set(value: str | float | None) -> frozenset[str]:
    """The labels of a value as `LabelReader` gives them."""
    return frozenset(str(value).split(_JOINT)) if isinstance(value, str) and value else frozenset()


def truth(text: str, vocabulary: Sequence[str]) -> str | None:
    """The value that a published answer ("Color, Size") stands for; None where it holds anything but labels."""
    named = {str(match.lastgroup) for match in _pattern(tuple(vocabulary)).finditer(text.lower())}
    rest = _FILLING.sub("", _pattern(tuple(vocabulary)).sub(" ", text.lower()))
    return None if rest or not named else _JOINT.join(sorted(named))


def strict(line: str, vocabulary: Sequence[str]) -> Reading:
    """The labels of a line that holds nothing else."""
    value = truth(line, vocabulary)
    return NOTHING if value is None else ok(value)


def out_of_vocabulary(text: str, vocabulary: Sequence[str]) -> int:
    """How many labels of the other split a reply names."""
    others = {str(match.lastgroup) for match in _pattern(O3).finditer(text.lower())}
    return len(others - set(vocabulary))


def measures(said: frozenset[str], true: frozenset[str]) -> dict[str, float]:
    """Precision, recall, F1 and exact match of one reply; all 1 where both sets are empty, all 0 where one is."""
    if not said or not true:
        return dict.fromkeys(MEASURES, float(said == true))
    hits = len(said & true)
    precision, recall = hits / len(said), hits / len(true)
    f1 = 2 * precision * recall / (precision + recall) if hits else 0.0
    return {"precision": precision, "recall": recall, "f1": f1, "exact_match": float(said == true)}


def released(response: str | None, true: str, vocabulary: Sequence[str]) -> Official:
    """What the released parser makes of a reply: per part between separators the first label found in it as a piece of
    text.

    It looks through a set, so that which label of a part comes first changes from run to run; here they stand in the
    order in which the prompt names them.
    """
    if response is None:
        return Official(None, 0.0)
    text = response.lower().strip()
    for separator in (";", " and ", "\n", "|"):
        text = text.replace(separator, ",")
    found = set()
    for part in text.split(","):
        part = re.sub(r"^(the\s+|a\s+|an\s+)", "", part.strip())
        part = re.sub(r"\s*(feature|difference|differs?|aspect)s?\s*$", "", part)
        found.update([label for label in vocabulary if label in part][:1])
    value = _JOINT.join(sorted(found))
    return Official(value, measures(frozenset(found), as_set(true))["exact_match"])
