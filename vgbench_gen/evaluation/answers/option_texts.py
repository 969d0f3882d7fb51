"""Parses option texts from questions and finds them in replies (`docs/protocols.md#option-letters`)."""

from __future__ import annotations

import re
from collections.abc import Mapping

from vgbench_gen.evaluation.answers import units
from vgbench_gen.evaluation.answers.clean import simplify_text
from vgbench_gen.evaluation.answers.number_words import replace_number_words
from vgbench_gen.evaluation.answers.vocabulary import match_any_of, read_words

# Articles. "a" is no article but part of a name in "region A" and "region A is closer".
_ARTICLES = re.compile(
    rf"\b(?:the|an)\b(?![.):])|\ba\b(?=[ \t]+(?!{match_any_of(read_words('after_letter', 'letters'))}\b)\w)"
)
_NOT_TEXT = re.compile(r"(?:[\s,;:!?\"'()\[\]{}<>*_/|→]|-(?![0-9.])|\b[xyuv]\s*=)+")
_NUMBERED = re.compile(r"(?:point|region) ([0-9]{1,2})")
_MEASURE = re.compile(r"([0-9]{1,12}(?:\.[0-9]{1,12})?)\s?[a-z°%]{1,12}")
_ZEROS = re.compile(r"(?<![0-9.])([0-9]+)(?:\.0+|(\.[0-9]*[1-9])0+)(?![0-9]|\.[0-9])")
_WRITTEN_UNIT = re.compile(r"(?<=[0-9])\s?([a-z]{1,11}|[米度])(?![a-z0-9])")
_ADDED = re.compile(r"(?<=\S)\s*\([^()]*\)\s*$")  # an explanation in brackets at the end of an option
_REJECTED = re.compile(r"(?:\bnot|n[' ]t|\brather than|\binstead of|\bneither|\bnor|\bthan|不是)\s*$")
_TWO_WORDS = re.compile("([a-z]+) ([a-z]+)")
_MARKERS = re.compile(r"(?:^|(?<=[\s,;]))(?:\(([A-Za-z])\)|([A-Z])[.:)](?=\s))\s*")


def split_options(question: str) -> dict[str, str]:
    """Letter -> text of the options in a question; empty unless there are at least two, lettered from A in order.

    Reads every notation of `docs/protocols.md#answer-and-option-formats`: `(A) …`, `(a) …`, `A: …`, `A. …`, one per
    line or in one line.
    """
    found: dict[str, tuple[int, int]] = {}
    runs: list[dict[str, tuple[int, int]]] = []
    for match in _MARKERS.finditer(question):
        letter = (match.group(1) or match.group(2)).upper()
        if letter == "A":
            found = {}
            runs.append(found)
        if runs and ord(letter) == ord("A") + len(found):
            found[letter] = (match.start(), match.end())
    best = next((run for run in reversed(runs) if len(run) >= 2), {})
    starts = [*best.values(), (len(question), len(question))]
    texts = {letter: question[end : starts[number + 1][0]] for number, (letter, (_, end)) in enumerate(best.items())}
    if texts:
        last = list(texts)[-1]
        texts[last] = _remove_instruction(texts[last], several_lines="\n" in "".join(list(texts.values())[:-1]))
    return {letter: text.strip().rstrip(",;").strip() for letter, text in texts.items()}


def _remove_instruction(text: str, several_lines: bool) -> str:
    """The last option without an instruction on a following line."""
    first, _, rest = text.partition("\n")
    if rest and (several_lines or re.match(r"\s*(?:please|answer|respond|select|choose)\b", rest, re.IGNORECASE)):
        lines = [first]
        for line in rest.split("\n"):
            if (
                re.match(r"\s*(?:please|answer|respond|select|choose|give|reply)\b", line, re.IGNORECASE)
                or not line.strip()
            ):
                break
            lines.append(line)
        return "\n".join(lines)
    return text


def normalize_text(text: str) -> str:
    """Normalize a text for comparison: lower case, without articles, hyphens, outer punctuation and extra spaces.

    Trailing zeros of numbers are removed and units get one spelling: "2.50 meters" becomes "2.5 m".
    """
    text = _NOT_TEXT.sub(" ", _ARTICLES.sub(" ", text.casefold()))
    if re.search("[0-9]", text):
        text = _WRITTEN_UNIT.sub(_write_unit, _ZEROS.sub(r"\1\2", text))
    return text.strip(" .。")


def _write_unit(match: re.Match[str]) -> str:
    unit = units.find_unit(match.group(1))
    return f" {unit.name}" if unit else match.group()


class OptionTexts:
    """The texts of a question's options. A text that two options share never matches."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self._plain = {letter: simplify_text(text) for letter, text in options.items()}
        whole = {letter: normalize_text(text) for letter, text in self._plain.items()}
        bared = {letter: normalize_text(_ADDED.sub("", text)) for letter, text in self._plain.items()}
        # Brackets are kept if they distinguish options: "chair (left)" and "chair (right)".
        bared = bared if len(set(bared.values())) == len(bared) else whole
        shared = list(bared.values())
        self._bare = {letter: text for letter, text in bared.items() if text and shared.count(text) == 1}
        # Longer texts are searched first, so that "left" is not found in "front left".
        self._order = sorted(self._bare, key=lambda letter: len(self._bare[letter]), reverse=True)
        # A number alone names an option if no other option has it: "2.95" for "2.95 m", "3" for "point 3".
        self._numbers = {
            match.group(1): letter
            for pattern in (_MEASURE, _NUMBERED)
            for letter, match in _match_alone(pattern, bared).items()
        }
        of_color, self._words = _shorten_names(self._bare) if len(self._bare) == len(bared) else ({}, {})
        self._names = {whole[letter]: letter for letter in self._order if letter in self._bare}
        self._names |= {self._bare[letter]: letter for letter in self._order} | of_color
        named_letters = {letter: re.findall(r"\b[A-Z]\b", text) for letter, text in self._plain.items()}
        self.hold_letters = any(named_letters.values())
        self.hold_others = any(found not in ([], [letter]) for letter, found in named_letters.items())

    def find_equal(self, text: str) -> str:
        """The letter of the option whose text equals a reply; "" if there is none, or for a single-letter reply."""
        wanted = normalize_text(text)
        if not wanted or (len(wanted) == 1 and wanted.isalpha()):
            return ""
        return next((names[wanted] for names in (self._names, self._words, self._numbers) if wanted in names), "")

    def is_text(self, letter: str, text: str) -> bool:
        """Whether a text is that of an option; the unit of a measure may be missing."""
        wanted = normalize_text(text)
        return bool(wanted) and (
            normalize_text(self._plain.get(letter, "")) == wanted or self._numbers.get(wanted) == letter
        )

    def find_only_one(self, text: str) -> str:
        """The letter of the only option whose text occurs in a reply and is not rejected there; "" otherwise."""
        found = self._find_all(text)
        return found.pop() if len(found) == 1 else ""

    def count_in(self, text: str) -> int:
        """Number of options whose texts occur in a reply."""
        return len(self._find_all(text))

    def find_restatement_end(self, letter: str, text: str, start: int, end: int) -> int | None:
        """The end of an option that is repeated at `start`; None if the text there is no repetition.

        If option texts are unknown, the repetition ends with its line, or at `end`, where the next letter begins.
        """
        if letter not in self._plain:
            stop = re.search(r"[\n;]|(?<![0-9])\.(?=\s|$)", text[start:end])
            return start + stop.start() if stop else end
        rest = text[start:end]
        own = self._plain[letter].strip()
        lead = len(rest) - len(rest.lstrip())
        if rest.lstrip().casefold().startswith(own.casefold()):
            after = rest[lead + len(own) :]
            tail = re.match(r"[^\n]{0,200}", after)
            # With a verdict on the same line it is more than a repetition.
            return start + lead + len(own) if tail is None or not re.search(r"[A-Za-z]", tail.group()) else None
        return None

    def _find_all(self, text: str) -> set[str]:
        if not self._bare:
            return set()
        rest = f" {normalize_text(text)} "
        rest = re.sub(r"(?<![0-9])\.|\.(?![0-9])", " ", rest)
        found, plain = _find_texts(self._names, rest)
        return found or _find_texts(self._words, plain)[0] or _find_texts(self._names, replace_number_words(rest))[0]


def _match_alone(pattern: re.Pattern[str], texts: Mapping[str, str]) -> dict[str, re.Match[str]]:
    """Letter -> match, for texts that match in full and whose first group is unique."""
    found = {letter: match for letter, text in texts.items() if (match := pattern.fullmatch(text))}
    groups = [match.group(1) for match in found.values()]
    return {letter: match for letter, match in found.items() if groups.count(match.group(1)) == 1}


def _shorten_names(options: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """Shorter names of two-word options -> letter: ("blue one" for "blue square", single words).

    A word that two options share is left out. Both are empty if an option does not have two words.
    """
    marks = {letter: match.groups() for letter, text in options.items() if (match := _TWO_WORDS.fullmatch(text))}
    if len(marks) < len(options):
        return {}, {}
    all_words = [word for words in marks.values() for word in words]
    alone = {word: letter for letter, words in marks.items() for word in words if all_words.count(word) == 1}
    others = [word for word in read_words("others", "marks") if word not in all_words]
    return {f"{c} {other}": letter for letter, (c, _) in marks.items() if c in alone for other in others}, alone


def _find_texts(texts: Mapping[str, str], rest: str) -> tuple[set[str], str]:
    """(letters of the texts that a reply contains and does not reject, the reply without these texts)."""
    found = set()
    for own, letter in texts.items():
        place = rest.find(own)
        while place >= 0:
            end = place + len(own)
            if not _is_part_of_word(rest, place, end):
                if not _REJECTED.search(rest[:place].rstrip()[-20:] + " "):
                    found.add(letter)
                rest = rest[:place] + "\x00" * len(own) + rest[end:]
                end = place + len(own)
            place = rest.find(own, end)
    return found, rest


def _is_part_of_word(text: str, start: int, end: int) -> bool:
    """Whether a span is part of a longer word or number; Chinese text, which has no spaces, may adjoin it."""
    before, after = text[start - 1 : start], text[end : end + 1]
    if (before.isascii() and before.isalnum() and text[start].isascii() and text[start].isalnum()) or (
        before == "." and text[start].isdigit()
    ):
        return True
    if after == "." and text[end + 1 : end + 2].isdigit() and text[end - 1].isdigit():
        return True
    return after.isascii() and after.isalnum() and text[end - 1].isascii() and text[end - 1].isalnum()
