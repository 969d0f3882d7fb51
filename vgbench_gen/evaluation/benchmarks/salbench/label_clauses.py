"""Which labels a sentence calls different (`docs/protocols.md#sets-of-labels`).

A sentence falls into clauses. A label is asserted unless its clause denies that it differs: by a negation or by a
word of sameness, and not by both. What follows "except" has the opposite said of it. A clause that ends in "does not"
or "is" takes its verb from the clause before.
"""

# ruff: noqa: RUF001 (characters of replies that look like others)

from __future__ import annotations

import re

from vgbench_gen.evaluation.answers.vocabulary import compile_pattern, match_any_of, read_words


def _match_any_of(key: str) -> str:
    return match_any_of(read_words(key, "labels"))


_PART = compile_pattern(rf"[,;:()—–|]|\s-\s|\b(?:{_match_any_of('turns')}|and|so|hence|therefore|it's|it is)\b")
_EXCEPT = compile_pattern(rf"\b{_match_any_of('excepts')}\b")
_SAME, _DIFFER = (compile_pattern(rf"\b{_match_any_of(key)}\b") for key in ("same", "differ"))
_NEGATED = compile_pattern(rf"\b{_match_any_of('negations')}\b|n't\b(?!\s+(?:only|just)\b)")
_ELIDED = re.compile(r"\b(?:is|are|was|were|does|do|did|has|have)(?:n't|\s+not)?\s*\Z")
_ALL_BUT = re.compile(r"\b(?:all|everything|nothing|none) but(?: for)?\b")
# What one object lacks is how it differs: "the only one without a pattern", "not in focus".
_LACKED = re.compile(
    r"\b(?:no|without|lacks?|not have)\s+(?:any\s+|an?\s+)?(?=(?:pattern|focus)\b(?! diff))"
    r"|\b(?:not|isn't) in (?=focus\b(?! but))"
)


class Clauses:
    """Reads one sentence after another.

    Args:
        label: a pattern whose groups are the labels.
    """

    def __init__(self, label: re.Pattern[str]) -> None:
        self._label = label
        one = re.sub(r"\?P<[a-z]+>", "?:", label.pattern)
        self._list = re.compile(rf"{one}(?:[\s,;/&+|]+(?:(?:and|or|nor)\s+(?:the\s+)?)?{one})+")
        self._but_not = re.compile(rf"({one}) (?=(?:not|without)\s+(?:the\s+)?{one})")
        self._same = False  # whether the predicate that was read last is one of sameness

    def asserted(self, sentence: str) -> set[str]:
        """The labels that a lower-case sentence calls different."""
        sentence = _LACKED.sub(" ", _ALL_BUT.sub("all except", sentence))
        sentence = self._but_not.sub(r"\1, ", self._list.sub(self._join_list, sentence))
        found: set[str] = set()
        for clause in _PART.split(sentence):
            main, *excepted = _EXCEPT.split(clause)
            named, differs = self._find_named(main), self._says_differ(main)
            found |= named if differs else set()
            for part in excepted:
                found |= set() if named and differs else self._find_named(part)
        return found

    def _join_list(self, match: re.Match[str]) -> str:
        """A list of labels without what would end its clause."""
        return " & ".join(found.group() for found in self._label.finditer(match.group()))

    def _find_named(self, text: str) -> set[str]:
        return {str(match.lastgroup) for match in self._label.finditer(text)}

    def _says_differ(self, clause: str) -> bool:
        same, differ = _SAME.search(clause) is not None, _DIFFER.search(clause) is not None
        if _ELIDED.search(clause) and not same and not differ:
            same = self._same
        elif same or differ:
            self._same = same
        return same == (_NEGATED.search(clause) is not None)
