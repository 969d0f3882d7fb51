"""Reads option letters from replies; a reply that names two letters or only lists the options has no answer.

Rules: `docs/protocols.md#option-letters`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import zip_longest

from vgbench_gen.evaluation.answers.letter_patterns import (
    CROSSES,
    MARKS,
    VERDICT,
    compile_letter_patterns,
)
from vgbench_gen.evaluation.answers.option_texts import OptionTexts
from vgbench_gen.evaluation.answers.outcomes import AMBIGUOUS, NOTHING, AnswerReader, ParsedAnswer, make_answer
from vgbench_gen.evaluation.answers.places import find_text_after_revision
from vgbench_gen.evaluation.answers.vocabulary import compile_pattern, read_words

DEFAULT_LETTERS = "ABCDEF"

_MAX_VERDICT, _MAX_REVISION, _SHORT_REPLY = 160, 120, 40
_MARKED = re.compile(rf"\W*?{MARKS}")
_REJECTS = ("☐", "[]", "[ ]", *CROSSES)
# Ordinals and numerals by position: the words for the last option come first, then those for option 1, 2, …
_ORDINALS = [tuple(names.split()) for names in read_words("ordinals", "letters")]
_WORD = rf"(?<!-)(?:{'|'.join(name for names in _ORDINALS for name in names if name.isascii() and name[1:])})(?!-)"
_NTH = re.compile(
    rf"\b({_WORD})\s+(?:of\s+the\s+(?:\w+\s+)?)?(?:options?|choices?|alternatives?|candidates?)\b"
    rf"|\b(?:option|choice)\s*(?:number|no\.?|nr\.?|\#)?\s*([1-6](?![0-9.]*[0-9])|{_WORD})\b"
    r"|(?:第([一二三四五六1-6])|(最后一))(?:[个项]?选?项|个(?=\W*\Z))",
    re.IGNORECASE,
)
_NTH_ALONE = re.compile(
    rf"\A\W*(?:(?:it(?:'s| is)|answer:?)\s+)?(?:the\s+)?(?:({_WORD})(?:\s+one)?|(?:\#|no\.?\s*|number\s+)([1-6]))\W*\Z",
    re.IGNORECASE,
)
_CONCLUSION = re.compile(r"\b(?:so|therefore|thus|hence)\b|因此|所以", re.IGNORECASE)
_CLAUSE = re.compile(
    r"(?<![0-9])\.(?=\s|$)|[;!?\n。]"
    r"|,\s*(?=(?:so|thus|hence|therefore|but|making|which means|it is|it's|i|we|the|then)\b)"
    r"|\b(?:so|therefore|thus|hence)\b|因此|所以",
    re.IGNORECASE,
)
_HEDGED = compile_pattern(r"\b(?:could|might|may|possibl[ey]|can be|either)\b|可能")


class LetterReader(AnswerReader):
    """Reads the letter of an option.

    Args:
        letters: the valid letters, upper case, in order.
        options: letter -> text; empty if the texts are unknown.
        question: the question, whose superlatives a reply may use ("C is the farthest").
    """

    keys = re.compile(read_words("keys", "letters")[0])

    def __init__(
        self, letters: str = DEFAULT_LETTERS, options: Mapping[str, str] | None = None, question: str = ""
    ) -> None:
        self.letters = letters
        self.texts = OptionTexts(options or {})
        self._p = compile_letter_patterns(letters)
        self._superlatives, self._asked = self._p.compile_superlatives(question)

    def prepare(self, text: str) -> str:
        """Replace "the second option" by "option B", and a whole reply such as "Second." or "#2"."""
        alone = _NTH_ALONE.match(text) if len(text) <= _SHORT_REPLY else None
        if alone:
            text = f"{alone[1]} option" if alone[1] else f"option {alone[2]}"
        return _NTH.sub(self._name_option, text)

    def _name_option(self, match: re.Match[str]) -> str:
        word = next(filter(None, match.groups())).lower()
        number = next(place for place, words in enumerate(_ORDINALS) if word in words) or len(self.letters)
        return f"option {self.letters[number - 1]}" if number <= len(self.letters) else match.group()

    def read_notation(self, text: str) -> ParsedAnswer:
        """A letter shortly after "wait" or "actually", unless an announced answer follows."""
        tail = find_text_after_revision(text)
        found = self._choose_anywhere(tail) if 0 < len(tail) < _MAX_REVISION else NOTHING
        return found if found.found else NOTHING

    def read_segment(self, text: str) -> ParsedAnswer:
        """A letter or an option's text in a container or after an announcing phrase."""
        if self._is_list_of_letters(text):
            return AMBIGUOUS
        return self._read_first_letter(text, whole_text=True) or self._choose_anywhere(text)

    def read_opening(self, text: str) -> ParsedAnswer:
        """An option with letter and text, a letter as first line, "B is the correct answer", or an option's text."""
        if self._is_list_of_letters(text):
            return AMBIGUOUS
        stated = self._find_stated(text)
        if stated:
            return make_answer(stated)
        first, _, rest = text.partition("\n")
        bare = None if _MARKED.match(text) else self._p.bare.fullmatch(first.strip())
        if bare and not (rest and self._p.bare.fullmatch(rest.strip().partition("\n")[0].strip())):
            return self._accept_letter(bare.group(1))
        chosen = self._read_verdicts(text)
        if chosen is not None:
            return chosen
        if self._is_list_of_options(text):
            return NOTHING
        equal = self.texts.find_equal(text) or self.texts.find_equal(first)
        if equal:
            return make_answer(equal)
        opening = None if "\n" in text.strip() else self._read_first_letter(text, whole_text=False)
        return opening if opening and not self._p.joined.match(text) else NOTHING

    def read_anywhere(self, text: str) -> ParsedAnswer:
        """A letter that stands alone, else the text of an option."""
        return self._choose_anywhere(text)

    def _read_verdicts(self, text: str) -> ParsedAnswer | None:
        """The only letter that a text calls right, or the only one that it does not call wrong; else None."""
        if self.texts.hold_others:  # for example "Point C" is the text of option A
            return None
        one = self._p.all_but.search(text) or self._p.ranked.search(text)
        if one:
            return make_answer(next(filter(None, one.groups())))
        kept = self._remove_rejected(text)
        if self._p.both_accepted.search(kept):
            return AMBIGUOUS
        accepted = {match.group(1) for match in self._p.accepted.finditer(kept)}
        accepted |= {match.group(1) for match in self._superlatives.finditer(kept)}
        if len(accepted) == 1:
            return make_answer(accepted.pop())
        right, wrong = self._judge_options(text)
        chosen = set() if not wrong else right if right else set(self.letters) - wrong
        return make_answer(chosen.pop()) if len(chosen) == 1 else None

    def _judge_options(self, text: str) -> tuple[set[str], set[str]]:
        """(letters that a text calls right, letters that it calls wrong)."""
        right, wrong = set[str](), set[str]()
        items = list(self._p.item.finditer(text))
        is_before = _MARKED.match(text) is not None
        for item, following in zip_longest(items, items[1:]):
            if is_before:
                if item["mark"]:
                    (wrong if item["mark"] in _REJECTS else right).add(item["letter"])
                continue
            comment = text[item.end() : following.start("letter") if following else len(text)]
            comment = comment.partition("\n")[0][:_MAX_VERDICT]
            verdict = VERDICT.match(comment) if item["link"].isalpha() or not item["link"] else VERDICT.search(comment)
            if verdict:
                (wrong if verdict["reject"] else right).add(item["letter"])
        return right - wrong, wrong - right

    def _accept_letter(self, letter: str, rest: str = "") -> ParsedAnswer:
        """The letter, unless the text after it is that of another option."""
        if self.texts.find_equal(rest) not in ("", letter.upper()):
            return AMBIGUOUS
        return make_answer(letter.upper()) if letter.upper() in self.letters else NOTHING

    def _read_first_letter(self, text: str, whole_text: bool) -> ParsedAnswer | None:
        """The letter at the start of a text; None if there is none."""
        bare = self._p.bare.fullmatch(text.strip())
        if bare:
            return self._accept_letter(bare.group(1))
        if whole_text:
            equal = self.texts.find_equal(text)
            if equal:
                return make_answer(equal)
        opening = self._p.opening.match(text)
        if opening is None:
            return None
        if self._p.rejected_after.match(text) or self._is_list_of_options(text):
            return None
        if self._p.joined.match(text):
            return AMBIGUOUS
        return self._accept_letter(opening.group(1) or opening.group(2), text[opening.end() :].partition("\n")[0])

    def _find_stated(self, text: str) -> str:
        """The letter of a first or last line that states an option in full ("B: image 3"); "" if it is part of a list.

        The line is a choice if no other line states another option, or if it repeats an option of a list.
        """
        lines = [line for line in text.split("\n") if line.strip()] if "\n" in text else []
        if len(lines) < 2:
            return ""
        chosen = set()
        for place in (0, -1):
            letter = self._match_option(lines[place])
            if not letter:
                continue
            stated = [self._match_option(line) for line in lines]
            markers = [match.group(1) for line in lines[1:] if (match := self._p.listed.match(line.lstrip()))]
            of_list = bool(markers) and markers[0] > letter  # the list goes on
            if place:
                before = self._p.listed.match(lines[-2].lstrip())
                of_list = before is not None and before.group(1) != letter
            alone = not of_list and set(stated) <= {"", letter}
            if alone or stated.count(letter) > 1:
                chosen.add(letter)
        return chosen.pop() if len(chosen) == 1 else ""

    def _match_option(self, line: str) -> str:
        match = self._p.option.match(line)
        if match is None:
            return ""
        letter, rest = match.group(1), line[match.end() :]
        verdict = VERDICT.search(rest)
        names = [rest, rest[: verdict.start()]] if verdict and verdict["accept"] else [rest]
        return letter if any(self.texts.is_text(letter, name) for name in names) else ""

    def _choose_anywhere(self, text: str) -> ParsedAnswer:
        if self.texts.hold_letters:  # for example "Point A" is the text of option B
            contained = self.texts.find_only_one(self._remove_lists(text))
            if contained:
                return make_answer(contained)
        rest = self._remove_lists(self._remove_rejected(text))
        wrong = set() if self.texts.hold_others else self._judge_options(text)[1]
        found = self._find_letters(rest) - wrong
        if len(found) == 1:
            return make_answer(found.pop())
        if found:
            for clause in reversed(_CLAUSE.split(rest)):
                named = self._find_letters(clause) - wrong
                if named and self._is_list_of_options(text) and self._p.listed.match(clause.lstrip()):
                    return AMBIGUOUS
                if named:
                    return (
                        make_answer(named.pop())
                        if len(named) == 1 and not _HEDGED.search(clause.lower())
                        else AMBIGUOUS
                    )
            return AMBIGUOUS
        contained = (
            self.texts.find_only_one(rest)
            or self._find_superlative(rest)
            or self.texts.find_only_one(_CONCLUSION.split(rest)[-1])
        )
        if contained and contained not in wrong:
            return make_answer(contained)
        left = set(self.letters) - self._find_letters(self._remove_lists(text))
        if len(left) == 1 and len(self.letters) > 2:  # all other letters are rejected
            return make_answer(left.pop())
        return AMBIGUOUS if self._is_list_of_options(text) or self.texts.count_in(rest) > 1 else NOTHING

    def _find_superlative(self, text: str) -> str:
        """The letter of the option in the last sentence that uses the question's superlative about only one option."""
        sentences = [part for part in reversed(re.split(r"[.!?;\n]\s", text)) if self._asked.search(part)]
        return next(filter(None, map(self.texts.find_only_one, sentences)), "")

    def _find_letters(self, text: str) -> set[str]:
        found = {match.group(1) or match.group(2).upper() for match in self._p.standalone.finditer(text)}
        if "A" in found and not self._p.first_letter.search(text):
            found.discard("A")
        return found

    def _is_list_of_letters(self, text: str) -> bool:
        """Whether a text consists of two or more different letters (rule S9)."""
        named = re.findall(r"[^\s()\[\]{}<>.,;:'\"*`|/&]+", text)
        return len(set(named)) == len(named) > 1 and set(named) <= set(self.letters)

    def _is_list_of_options(self, text: str) -> bool:
        """Whether a text lists two or more options by their letters, as a question does."""
        return len({match.group(1) for match in self._p.listed.finditer(text)}) > 1

    def _remove_rejected(self, text: str) -> str:
        """The text without letters that it calls wrong (rule S8)."""
        for pattern in self._p.rejected:
            text = pattern.sub(" ", text)
        return text

    def _remove_lists(self, text: str) -> str:
        """The text without options repeated from the question, and without phrases like "among A, B, C and D"."""
        text = self._p.enumerated.sub(" ", text)
        if "|" in text:
            text = self._p.row.sub(
                lambda row: " " if self.texts.is_text(row.group(1), row.group(2)) else row.group(), text
            )
        markers = list(self._p.listed.finditer(text))
        if len({match.group(1) for match in markers}) < 2:
            return text
        kept, start = [], 0
        for number, marker in enumerate(markers):
            end = markers[number + 1].start() if number + 1 < len(markers) else len(text)
            stop = self.texts.find_restatement_end(marker.group(1), text, marker.end(), end)
            if stop is None:
                continue
            kept.append(text[start : marker.start()])
            start = stop
        return " ".join([*kept, text[start:]])
