"""Whether a rewording may stand in the place of its original: every mechanical check, none of which asks a model.

The checks lean to refusing. A good rewording that is refused costs another request; a bad one that passes gives a wrong
answer. What they compare with is data (`rules`); conventions are the lint's.
"""

from __future__ import annotations

import difflib
import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from vgbench_gen.text import lint
from vgbench_gen.text.paraphrase import rules
from vgbench_gen.text.paraphrase.kept import (
    find_binding_problems,
    find_formula_problems,
    find_slot_problems,
    find_word_problems,
    number_problems,
)
from vgbench_gen.text.paraphrase.rules import SLOT, Vocabulary
from vgbench_gen.text.render import MAX_TEMPLATE_CHARS

MIN_LENGTH, MAX_LENGTH = 0.5, 2.0  # of the original's characters
MAX_SIMILARITY = 0.9
MAX_CHARS = MAX_TEMPLATE_CHARS  # of a part; more could not be read back from a bank
REASONS = (
    "json", "shape", "empty", "size", "control", "language", "markup", "url", "injection", "slot_added", "slot_lost",
    "slot_count", "slot_order", "braces", "number", "formula", "symbol", "negation", "polarity", "order", "extreme",
    "unit", "frame", "direction", "quantity", "colour", "letters", "length", "near_copy", "grammar", "lint", "judge",
)  # fmt: skip
"""All reasons for refusing a rewording; `json` and `shape` are of a reply, `judge` of the second model."""

_LOOSE_SLOT = re.compile(r"\{\{\s*([a-z][a-z0-9_]*)\s*\}\}")
_ARTICLE = re.compile(r"\b(?:[Aa] (?=[aeio]\w)(?!one\b|once\b|eu)|[Aa]n (?=[bcdgjkpqtvwyz]\w))|\b[Aa]n? (?=\{\{)")
_DOUBLED_END = re.compile(r"[.?!,;:]{2,}|\(\s*\)")


@dataclass(frozen=True, slots=True)
class Text:
    """A question with its context."""

    question: str
    context: str

    def list_parts(self) -> tuple[tuple[str, str], tuple[str, str]]:
        """(name, text) of both."""
        return ("question", self.question), ("context", self.context)


@dataclass(frozen=True, slots=True)
class WordingProblem:
    """Why a rewording is refused."""

    reason: str
    """The reason, one of `REASONS`."""
    part: str
    """The part that is meant, "question" or "context"; empty for the whole."""
    detail: str

    def __str__(self) -> str:
        return f"{self.reason} ({self.part}): {self.detail}" if self.part else f"{self.reason}: {self.detail}"


@dataclass(frozen=True, slots=True)
class Original:
    """What is to be reworded."""

    text: Text
    """The question and context in English."""
    states: tuple[str, ...] = ()
    """The conventions that the text must state, by the names of the lint."""
    language: str = "en"
    """The code of the language of the rewording."""
    filled: bool = False
    """Whether numbers stand in the text instead of placeholders, so that their order counts."""
    samples: tuple[Mapping[str, str], ...] = ({},)
    """Values of its own placeholders; more than one set where the text stands for several."""


def tidy_text(text: str) -> str:
    """Outer space removed and placeholders spelled as ours are; nothing else is mended."""
    return _LOOSE_SLOT.sub(lambda match: f"{{{{ {match[1]} }}}}", text.strip())


def check(proposed: Text, original: Original, others: Sequence[Text] = ()) -> list[WordingProblem]:
    """All problems of a rewording, empty where it may stand.

    others: wordings that it must differ from beside its original: those accepted before and those it is drawn with.
    """
    found: list[WordingProblem] = []
    for part, new in proposed.list_parts():
        if not new:
            found.append(WordingProblem("empty", part, "no text"))
        elif len(new) > MAX_CHARS:
            found.append(WordingProblem("size", part, f"{len(new)} characters; at most {MAX_CHARS}"))
    if found:
        return found  # what follows needs texts of a decent size
    words, source = rules.load_vocabulary(original.language), rules.load_english()
    for (part, new), (_, old) in zip(proposed.list_parts(), original.text.list_parts(), strict=True):
        for reason, detail in _find_part_problems(new, old, original, words, source):
            found.append(WordingProblem(reason, part, detail))
    found += _find_copies(proposed, original.text, others)
    return found + find_lint_problems(proposed, original)


def _find_part_problems(
    new: str, old: str, original: Original, words: Vocabulary | None, source: Vocabulary
) -> list[tuple[str, str]]:
    found = _find_character_problems(new, old, original.language, words)
    for reason, patterns in rules.load_refused().items():
        for pattern in patterns:
            match = pattern.search(new)
            if match is not None and pattern.search(old) is None:
                found.append((reason, repr(match.group().strip()[:60])))
    found += find_slot_problems(new, old, original.filled)
    found += _find_grammar_problems(new, old, original)
    share = len(new) / (len(old) * rules.find_language(original.language).density)
    if not MIN_LENGTH <= share <= MAX_LENGTH and abs(len(new) - len(old)) > 20:
        found.append(("length", f"{share:.2f} times as long as it should be"))
    new, old = (words or source).unify_synonyms(new), source.unify_synonyms(old)
    found += number_problems(new, old, original.filled)
    found += find_formula_problems(new, old, words is not None)
    if words is not None:
        found += find_word_problems(new, old, words, source, original.filled)
        found += find_binding_problems(new, old, words, source)
    return found


def _find_character_problems(new: str, old: str, language: str, words: Vocabulary | None) -> list[tuple[str, str]]:
    """Control characters, foreign digits and letters, and words of another language."""
    found: list[tuple[str, str]] = []
    control = next((character for character in new if _is_control(character)), None)
    if control is not None:
        found.append(("control", f"the character U+{ord(control):04X}"))
    if any(c.isdigit() and not c.isascii() for c in new):
        found.append(("number", "digits other than 0 to 9"))
    scripts = set(rules.find_language(language).scripts)
    letters = [c for c in SLOT.sub("", new) if c.isalpha()]
    foreign = [c for c in letters if not _is_in_scripts(c, scripts | {"LATIN"})]
    own = sum(_is_in_scripts(c, scripts) for c in letters)
    if foreign:
        found.append(("language", f"the letter {foreign[0]!r} is not written in {rules.find_language(language).name}"))
    elif letters and own < 0.3 * len(letters):
        found.append(("language", f"{own} of {len(letters)} letters are of {rules.find_language(language).name}"))
    found += _find_language_problems(new, old, language, words)
    if language == "en" and not new.isascii() and old.isascii() and not foreign:
        odd = next(c for c in new if not c.isascii())
        found.append(("control", f"the character {odd!r}, which the original has no like of"))
    return found


def _is_control(character: str) -> bool:
    category = unicodedata.category(character)
    return (category[0] == "C" and character != "\n") or category in ("Zl", "Zp")


def _find_language_problems(new: str, old: str, language: str, words: Vocabulary | None) -> list[tuple[str, str]]:
    """Words that are too seldom those of the language, or too often English."""
    found = []
    if words is not None:
        share, enough = _share(new, words), _share(old, words) if language == "en" else 1.0
        # Short questions hold few of the common words; no rewording needs to hold more than its original.
        if share < min(words.common_share, 0.6 * enough):
            found.append(("language", f"{share:.0%} of its words are common ones of {words.language}"))
    english = rules.load_english()
    if language != "en" and _share(new, english) > 0.8 * max(_share(old, english), 0.2):
        found.append(("language", "it is in English"))
    return found


def _is_in_scripts(character: str, scripts: set[str]) -> bool:
    return unicodedata.name(character, "").split(" ")[0] in scripts


def _share(text: str, words: Vocabulary) -> float:
    tokens = re.findall(r"[^\W\d_]{1,40}", SLOT.sub(" ", text).casefold())
    long = [t for t in tokens if len(t) > 1 or t == "a"]
    return sum(t in words.common for t in long) / len(long) if long else 0.0


def _find_copies(proposed: Text, original: Text, others: Sequence[Text]) -> list[WordingProblem]:
    found = []
    for (part, new), (_, old) in zip(proposed.list_parts(), original.list_parts(), strict=True):
        if is_too_similar(new, old):
            found.append(WordingProblem("near_copy", part, "nearly the words of the original"))
    if any(measure_similarity(proposed, other) for other in others):
        found.append(WordingProblem("near_copy", "", "nearly the words of another wording of this question"))
    return found


def measure_similarity(a: Text, b: Text) -> bool:
    """Whether two whole texts are nearly the same words."""
    return is_too_similar(f"{a.question}\n{a.context}", f"{b.question}\n{b.context}")


def is_too_similar(a: str, b: str) -> bool:
    """Whether two texts have nearly the same words in the same order, whatever their case and punctuation."""
    words_a, words_b = (re.findall(r"[^\W_]+|\{\{ \w+ \}\}", text.casefold()) for text in (a, b))
    matcher = difflib.SequenceMatcher(None, words_a, words_b, autojunk=False)
    return (
        matcher.real_quick_ratio() >= MAX_SIMILARITY
        and matcher.quick_ratio() >= MAX_SIMILARITY
        and matcher.ratio() >= MAX_SIMILARITY
    )


def _find_grammar_problems(new: str, old: str, original: Original) -> list[tuple[str, str]]:
    found = []
    language = original.language
    for pair in ("()", "[]"):
        if new.count(pair[0]) != new.count(pair[1]) and old.count(pair[0]) == old.count(pair[1]):
            found.append(("grammar", f"brackets {pair} are not closed"))
    found += _find_ending_problems(new, old, original)
    if language == "en":
        if new[0].isalpha() and not new[0].isupper():
            found.append(("grammar", "it begins with a small letter"))
        article = _ARTICLE.search(new)
        if article is not None and _ARTICLE.search(old) is None:
            found.append(("grammar", repr(new[article.start() : article.end() + 12])))
    if _DOUBLED_END.search(new):
        found.append(("grammar", "doubled punctuation"))
    if new.count("\n") > old.count("\n"):
        found.append(("grammar", "more line breaks than in the original"))
    return found


def _find_ending_problems(new: str, old: str, original: Original) -> list[tuple[str, str]]:
    """An ending that no sentence has, or a question that asks no more."""
    marks = rules.find_language(original.language)
    new_end, old_end = (_fill_part(text, original.samples[0])[-1] for text in (new, old))
    if new_end not in marks.ends and old_end in ".?":
        return [("grammar", f"it ends with {new_end!r}")]
    if "?" in old and not any(mark in new for mark in marks.asks):
        return [("grammar", "no question")]
    return []


def find_lint_problems(proposed: Text, original: Original) -> list[WordingProblem]:
    """What the lint says of the filled rewording and not of the filled original."""
    states = original.states if original.language == "en" else ()
    problems: dict[str, None] = {}
    for values in original.samples:
        known = set(lint.lint(*_fill(original.text, values), states=states))
        problems |= {p: None for p in lint.lint(*_fill(proposed, values), states=states) if p not in known}
    return [
        WordingProblem("letters" if "option letters" in p else "lint", p.partition(":")[0].replace("text", ""), p)
        for p in problems
    ]


def _fill(text: Text, own: Mapping[str, str]) -> tuple[str, str]:
    return _fill_part(text.question, own), _fill_part(text.context, own)


def _fill_part(text: str, own: Mapping[str, str]) -> str:
    data = rules.list_slots()
    return SLOT.sub(lambda match: own.get(match[1]) or data.samples.get(match[1], data.other), text)
