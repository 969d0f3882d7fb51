"""What one sentence says of labels: which it calls different (`docs/protocols.md#sets-of-labels`).

A label is asserted unless it is denied: by a predicate of sameness after it ("size is the same", "size does not
differ"), by a negation or a word of sameness before it ("not size", "the same size"). A denial ends where something
else becomes the subject ("without a change in size, the color changed"). "does" and "does not" on their own take the
verb of the predicate before them, be it in the sentence before.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from vgbench_gen.evaluation.answers.vocabulary import compile_pattern, match_any_of, read_table, read_words

Says = Literal["same", "differ"]
_OPPOSITE: dict[Says, Says] = {"same": "differ", "differ": "same"}


def _match_any_of(key: str) -> str:
    return match_any_of(read_words(key, "labels"))


_FEW_WORDS = re.compile(r"(?:\s+(?!and\b|or\b)[a-z']+){1,3}\s+")
_VERB, _LIGHT, _JOINT, _DIFFERENCE = (
    _match_any_of("verbs"),
    _match_any_of("light"),
    _match_any_of("joints"),
    _match_any_of("difference"),
)
_END = r"(?=\s*(?:[,:)]|\Z|\b(?:and|but|while|whereas|however|though|too|either|as well|at all)\b))"
_KINDS = (
    ("except", rf"\b{_match_any_of('excepts')}\b"),
    ("other", rf"\b{_match_any_of('others')}\b"),
    ("turn", rf"\b{_match_any_of('turns')}\b"),
    ("likewise", rf"\b{_match_any_of('likewise')}\b"),
    ("elided", rf"\b(?:is|are|was|were|does|do|did|has|have)(?:n't|\s+not)?\b{_END}"),
    ("neg", rf"\b{_match_any_of('negations')}\b|{read_table('labels')['negated_verb']}"),
    ("noun", rf"\b{_DIFFERENCE}\b"),
    ("differ", rf"\b{_match_any_of('differ')}\b"),
    ("relevant", rf"\b{_match_any_of('relevant')}\b"),
    ("same", rf"\b{_match_any_of('same')}\b"),
)
_LIGHT_ONLY = re.compile(rf"(?:[^a-z]*(?<![a-z']){_LIGHT}(?![a-z']))*[^a-z,:]*")
_LIST_ONLY = re.compile(rf"(?:[^a-z:]*(?<![a-z']){_JOINT}(?![a-z']))*[^a-z:]*")
_AFTER_VERB = re.compile(
    rf"(?:(?<![a-z]){_VERB}(?:\s+(?:the|an?|all|also|both|about|exactly|much|\w+ly))*|[:=|>-])\s*\Z"
)
_PLURAL = re.compile(
    r"\b(?:are|were|do|have|remain|stay|look|seem|appear|match|differ|vary|change|aren't|don't|weren't)\b"
)
_TOGETHER = re.compile(r"\b(?:and|or|nor|plus|as well as)\b|[&/+|]")
_PARENTHESES = re.compile(r"\(([^()]*)\)")
_DESCRIBED = re.compile(rf"\b{_match_any_of('describes')}\s+(?:\w+ly\s+)?\Z")
_COMPOUND = re.compile(rf"\s*(?:{_DIFFERENCE}|change|differs?|varies)\b")
_ALL = re.compile(r"\b(?:all|every\w*)\b")


@dataclass(frozen=True, slots=True)
class _Token:
    """A label or a word with a meaning of its own in a sentence."""

    kind: str
    """Either "label" or the kind of word by its name in `_KINDS`."""
    start: int
    """Place of its first character in the sentence."""
    end: int
    """Place after its last character in the sentence."""
    text: str
    """Name of the label; "" for other kinds."""


class Clauses:
    """Reads one sentence after another.

    Args:
        label: a pattern whose groups are the labels.
    """

    def __init__(self, label: re.Pattern[str]) -> None:
        self._label = label
        kinds = "|".join(f"(?P<_{name}>{pattern})" for name, pattern in _KINDS)
        self._token = compile_pattern(rf"{label.pattern}|{kinds}")
        self._verb: Says = "differ"  # of the predicate that was read last, whether denied or not

    def asserted(self, sentence: str) -> set[str]:
        """The labels that a lower-case sentence calls different."""
        found: set[str] = set()
        apart: list[str] = []

        def taken_out(match: re.Match[str]) -> str:
            kinds = {token.kind for token in self._tokens(match[1])}
            if kinds <= {"label"}:  # a list, which belongs to what is around it
                return f" {match[1]} " if kinds else " "
            apart.append(match[1])
            return " "

        while (shorter := _PARENTHESES.sub(taken_out, sentence)) != sentence:
            sentence = shorter
        sentence = sentence.replace("(", ", ").replace(")", ", ")
        found |= _Walk(sentence, self._tokens(sentence), self._verb).labels(self)
        for part in apart:
            found |= _Walk(part, self._tokens(part), self._verb).labels(self)
        return found

    def remember(self, verb: Says) -> None:
        """Keep the verb of a predicate for sentences that leave theirs out."""
        self._verb = verb

    def _tokens(self, text: str) -> list[_Token]:
        found = []
        for match in self._token.finditer(text):
            kind = str(match.lastgroup)
            is_kind = kind.startswith("_")
            found.append(_Token(kind[1:] if is_kind else "label", match.start(), match.end(), "" if is_kind else kind))
        return found


class _Walk:
    """One way through a sentence, from left to right."""

    def __init__(self, text: str, tokens: Sequence[_Token], verb: Says) -> None:
        self._text, self._tokens, self._verb = text, tokens, verb
        self._found: set[str] = set()
        self._open: list[_Token] = []  # labels of which nothing has been said so far
        self._denying = self._named = self._raw = False
        self._governed = False  # whether labels follow a word of difference ("differs in color and ...")
        self._last: Says | None = None
        self._negated = False

    def labels(self, clauses: Clauses) -> set[str]:
        """Those that are asserted."""
        place = 0
        while place < len(self._tokens):
            token = self._tokens[place]
            self._cross(self._get_gap(place))
            place = getattr(self, f"_read_{token.kind}")(place, token) or place + 1
        self._flush()
        clauses.remember(self._verb)
        return self._found

    def _get_gap(self, place: int) -> str:
        """The text before a token, from the token before it."""
        start = self._tokens[place - 1].end if place else 0
        return self._text[start : self._tokens[place].start]

    def _is_light(self, place: int) -> bool:
        """Whether there is such a token, with nothing of weight before it."""
        return place < len(self._tokens) and bool(_LIGHT_ONLY.fullmatch(self._get_gap(place)))

    def _get_kind(self, place: int) -> str:
        return self._tokens[place].kind if place < len(self._tokens) else ""

    def _flush(self) -> None:
        self._found |= {token.text for token in self._open}
        self._open = []

    def _deny(self, raw: bool = False) -> None:
        self._flush()
        self._denying, self._named, self._raw, self._governed = True, False, raw, False

    def _release(self) -> None:
        self._denying = False

    def _cross(self, gap: str) -> None:
        """End a denial at a colon or comma after which it does not go on."""
        if not self._denying:
            return
        head, colon, _ = gap.partition(":")
        _, comma, tail = gap.partition(",")
        if (
            (colon and (self._named or (self._raw and re.search("[a-z]", head))))
            or (comma and not self._named)
            or (comma and not _LIST_ONLY.fullmatch(tail))
        ):
            self._release()

    # --- one method per kind of token; each may give the place to go on at

    def _read_label(self, place: int, token: _Token) -> None:
        gap = self._get_gap(place)
        if self._denying and re.search(r"[,:]|\band\b", gap) and self._is_subject(place):
            self._release()
        if self._denying:
            self._named = True
        else:
            self._open.append(token)

    def _is_subject(self, place: int) -> bool:
        """Whether the list that begins here has a predicate of its own."""
        together = True
        while self._get_kind(place + 1) == "label" and _LIST_ONLY.fullmatch(self._get_gap(place + 1)):
            place += 1
            together = together and bool(_TOGETHER.search(self._get_gap(place)))
        after = place + 1
        kind = self._get_kind(after)
        if not kind or re.search(r"[,:]", self._get_gap(after)) or re.search(r"\band\b|\bas\b", self._get_gap(after)):
            return False
        if not together and not _PLURAL.search(self._text[self._tokens[place].end : self._tokens[after].end]):
            return False  # of "size, the color differs" the color alone
        if kind in ("same", "differ") and self._is_light(after + 1) and self._get_kind(after + 1) == "label":
            return bool(_AFTER_VERB.search(self._text[: self._tokens[after].start]))  # not "different color"
        if kind == "neg":
            return self._is_predicate(after)
        return kind in ("same", "differ", "elided", "relevant")

    def _is_predicate(self, place: int) -> bool:
        """Whether a negation is a verb's: "does not", "has no", "size: no"."""
        token = self._tokens[place]
        before = self._text[: token.start]
        attached = self._text[token.start : token.start + 3] == "n't"
        follows = self._get_kind(place - 1) == "label" and not self._get_gap(place).strip(" '") if place else False
        return attached or follows or bool(_AFTER_VERB.search(before))

    def _read_neg(self, place: int, token: _Token) -> int:
        self._negated = True
        after = self._find_end_of_negation(place)
        if after > place + 1:
            verb: Says = "same" if self._get_kind(place + 1) == "same" else "differ"
            subject = bool(self._open) and self._is_predicate(place)
            if self._get_gap(place).strip() == ":" and self._is_light(after) and self._get_kind(after) == "label":
                subject = False  # "color: no difference in size"
            self._apply_predicate(_OPPOSITE[verb], verb, subject, after)
            return after
        if self._get_kind(after) == "label" and self._is_denial(place):
            self._deny(raw=True)
        return after

    def _find_end_of_negation(self, place: int) -> int:
        """The place of the first token that a negation does not speak of: "no difference", "not the same"."""
        after = place + 1
        while self._get_kind(after) in ("same", "differ", "noun", "relevant") and self._is_light(after):
            if after > place + 1 and (self._get_kind(after) == "same") != (self._get_kind(place + 1) == "same"):
                break
            after += 1
        if after == place + 1 and self._get_kind(after) == "same" and _FEW_WORDS.fullmatch(self._get_gap(after)):
            after += 1  # "is not facing the same way"
        return after

    def _is_denial(self, place: int) -> bool:
        """Whether a negation denies the label after it, rather than describes an object by what it lacks."""
        token, label = self._tokens[place], self._tokens[place + 1]
        gap, before, after = self._get_gap(place + 1), self._text[: token.start], self._text[label.end :]
        word = self._text[token.start : token.end]
        if _COMPOUND.match(after):
            return True
        if word == "no" and _DESCRIBED.search(before):
            return False
        if word == "without" and before.strip(" ,:") and not any(t.kind == "label" for t in self._tokens[:place]):
            return False
        if label.text == "focus" and gap.split() == ["in"] and not re.match(r",?\s*but\b", after.strip()):
            return bool(re.search(_DIFFERENCE, before))
        return self._is_light(place + 1) and not re.search(r"\bha(?:ve|s)\b", gap)

    def _read_same(self, place: int, token: _Token) -> None:
        direct = self._is_light(place + 1) and self._get_kind(place + 1) == "label"
        copula = bool(_AFTER_VERB.search(self._text[: token.start])) and not re.search(
            r"\b(?:has|have|had|having)\b[^,]*\Z", self._get_gap(place)
        )
        verbal = self._text[token.start :].startswith(("match", "agree", "coincide"))
        heading = self._text[token.end :].lstrip().startswith(":")
        attributive = heading or (direct and not copula and not verbal)
        self._apply_predicate("same", "same", bool(self._open) and not attributive, place + 1)
        if direct and not self._get_gap(place + 1).strip():
            self._deny()

    def _read_differ(self, place: int, token: _Token) -> None:
        word = self._text[token.start : token.end]
        leads = "different" in word and self._is_light(place + 1) and self._get_kind(place + 1) == "label"
        within = self._denying and self._raw and self._named and not re.search(r",|\band\b", self._get_gap(place))
        if within and not leads:  # "I do not think that size differs"
            self._release()
            self._verb, self._last = "differ", "same"
            return
        self._apply_predicate("differ", "differ", bool(self._open), place + 1)

    def _read_noun(self, place: int, token: _Token) -> None:
        if place and self._get_kind(place - 1) == "label" and not self._get_gap(place).strip(" '-"):
            return  # "size difference"
        self._flush()
        self._release()
        self._verb, self._last, self._governed = "differ", "differ", True

    def _read_relevant(self, place: int, token: _Token) -> None:
        if self._open:
            self._apply_predicate("differ", "differ", True, place + 1)

    def _read_elided(self, place: int, token: _Token) -> None:
        if not self._open:
            return
        denied = self._text[token.start : token.end].endswith(("n't", "not"))
        self._apply_predicate(_OPPOSITE[self._verb] if denied else self._verb, self._verb, True, place + 1)

    def _read_other(self, place: int, token: _Token) -> None:
        self._deny()
        self._last = "same"

    def _read_turn(self, place: int, token: _Token) -> None:
        self._flush()
        self._release()
        self._governed = False

    def _read_likewise(self, place: int, token: _Token) -> None:
        if self._last == "same":
            self._deny()

    def _read_except(self, place: int, token: _Token) -> int:
        after = place + 1
        said: Says | None = "same" if self._negated else self._last
        coming = next((t.kind for t in self._tokens[after:] if t.kind in ("same", "differ", "neg")), "")
        if said is None:
            all_of = _ALL.search(self._text[: token.end])
            said = "differ" if coming == "differ" or (all_of and not coming) else "same"
        while self._get_kind(after) == "label" and (after == place + 1 or _LIST_ONLY.fullmatch(self._get_gap(after))):
            if said == "same":
                self._found.add(self._tokens[after].text)
            after += 1
        return after

    def _apply_predicate(self, says: Says, verb: Says, after_labels: bool, place: int) -> None:
        """Apply a predicate to the labels before it, or to those that will follow it.

        Args:
            says: what it says of them.
            verb: what its verb says without the negation.
            after_labels: whether they stand before it.
            place: of the token after it.
        """
        self._verb, self._last = verb, says
        if after_labels:
            if says == "same":
                del self._open[self._reach(self._tokens[place - 1].end) :]
            self._flush()
            self._release()
            self._governed = False
        elif says == "same":
            self._deny()
        else:
            self._flush()
            self._release()
            self._governed = True

    def _reach(self, end: int) -> int:
        """From which open label on a predicate that ends at `end` has its subjects."""
        first, joined = len(self._open) - 1, False
        plural = bool(_PLURAL.search(self._text[self._open[-1].end : end]))
        while first > 0:
            gap = self._text[self._open[first - 1].end : self._open[first].start]
            together = bool(_TOGETHER.search(gap))
            if not _LIST_ONLY.fullmatch(gap) or not (together or joined or plural):
                break
            if self._governed and (joined or not plural):
                break
            joined = joined or together
            first -= 1
        return first
