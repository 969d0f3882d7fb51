"""Whether a rewording may stand in the place of its original: every mechanical check, none of which asks a model.

A rewording keeps the placeholders, numbers, formulas and protected words of each part, and passes the lint. The checks
lean to refusing: a good rewording that is refused costs another request; a bad one that passes gives a wrong answer.
The words are data (`rules`); grammar, style and the rest of the meaning are for the judge and for people.
"""

from __future__ import annotations

import difflib
import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from vgbench_gen.text import lint
from vgbench_gen.text.numbers import number_tokens
from vgbench_gen.text.paraphrase import rules
from vgbench_gen.text.paraphrase.rules import ATOM, SLOT
from vgbench_gen.text.render import MAX_TEMPLATE_CHARS

MAX_SIMILARITY = 0.9
MIN_SHARE = 0.3  # of letters are of the language's own script; others name axes, matrices and parameters
MAX_CHARS = MAX_TEMPLATE_CHARS  # of a part; more could not be read back from a bank
REASONS = (
    "json", "shape", "empty", "size", "control", "language", "markup", "url", "injection", "slot", "number", "formula",
    "symbol", "negation", "polarity", "order", "extreme", "unit", "frame", "direction", "quantity", "colour",
    "near_copy", "lint", "judge",
)  # fmt: skip
"""All reasons for refusing a rewording; `json` and `shape` are of a reply, `judge` of the second model."""

_LOOSE_SLOT = re.compile(r"\{\{\s*([a-z][a-z0-9_]*)\s*\}\}")
_TERM = (
    r"(?:\{\{ \w+ \}\}|\([^()\n]{1,80}\)|\[[^\[\]\n]{1,80}\]|(?<![\w.])[+-]?[0-9]{1,12}(?:\.[0-9]{1,12})?(?!\w|\.[0-9])"
    r"|(?<![\w])[A-Za-z][A-Za-z]?[0-9]{0,2}(?!\w))"
)
_MORE = rf"(?:\s*[+*/-]\s*{_TERM}|\s+[A-Za-z][0-9](?!\w)|\s+\([a-z][0-9](?:, ?(?:[a-z][0-9]|[0-9]))*\))"
_FORMULA = re.compile(rf"(?:(?<=\s)[A-Z]\s+)?{_TERM}\s*[=~]\s*{_TERM}{_MORE}*|{ATOM} x {ATOM}(?: pixels)?")
_SYMBOL = re.compile(r"(?<![\w'.-])(?:[B-HJ-Z][0-9]{0,2}|[b-z][0-9]?|[fc][xy]|[A-Za-z]*[0-9]\w*)(?!\w|\.\w)")


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
    part: str
    """The part that is meant, "question" or "context"; empty for the whole."""
    detail: str

    def __str__(self) -> str:
        return f"{self.reason} ({self.part}): {self.detail}" if self.part else f"{self.reason}: {self.detail}"


@dataclass(frozen=True, slots=True)
class Original:
    """What is to be reworded."""

    text: Text
    states: tuple[str, ...] = ()
    language: str = "en"
    filled: bool = False
    """Whether numbers stand in the text instead of placeholders, so that their order counts."""
    samples: tuple[Mapping[str, str], ...] = ({},)
    """Values of its own placeholders; more than one set where the text stands for several."""


def tidy_text(text: str) -> str:
    """Outer space removed and placeholders spelled as ours are; nothing else is mended."""
    return _LOOSE_SLOT.sub(lambda match: f"{{{{ {match[1]} }}}}", text.strip())


def check(proposed: Text, original: Original, others: Sequence[Text] = ()) -> list[WordingProblem]:
    """All problems of a rewording, empty where it may stand.

    others: wordings that it must differ from besides its original: those accepted before and those it is drawn with.
    """
    for part, new in proposed.list_parts():
        if not new or len(new) > MAX_CHARS:
            return [WordingProblem("size" if new else "empty", part, f"{len(new)} characters; 1 to {MAX_CHARS}")]
    found: list[WordingProblem] = []
    for (part, new), (_, old) in zip(proposed.list_parts(), original.text.list_parts(), strict=True):
        found += [WordingProblem(reason, part, detail) for reason, detail in _find_part_problems(new, old, original)]
        if is_too_similar(new, old):
            found.append(WordingProblem("near_copy", part, "nearly the words of the original"))
    if any(measure_similarity(proposed, other) for other in others):
        found.append(WordingProblem("near_copy", "", "nearly the words of another wording of this question"))
    return found + find_lint_problems(proposed, original)


def _find_part_problems(new: str, old: str, original: Original) -> Iterator[tuple[str, str]]:
    yield from _find_character_problems(new, original.language)
    for reason, pattern in rules.load_refused().items():
        match = pattern.search(new)
        if match is not None and pattern.search(old) is None:
            yield reason, repr(match.group().strip()[:60])
    yield from _find_slot_problems(new, old, original.filled)
    words = rules.load_vocabulary()
    old = words.unify_synonyms(old)
    new = words.unify_synonyms(new) if original.language == "en" else new
    yield from _compare("number", Counter(number_tokens(new)), Counter(number_tokens(old)))
    if original.filled and _list_brackets(new) != _list_brackets(old):
        yield "number", "numbers in brackets come in another order"
    yield from _compare("symbol", _find_symbols(new), _find_symbols(old))
    if original.language == "en":
        formulas, wanted = _list_formulas(new), _list_formulas(old)
        if formulas != wanted:
            yield "formula", f"{formulas[:6]} instead of {wanted[:6]}"
        yield from _find_word_problems(new, old)


def _compare(reason: str, have: Counter[str] | set[str], want: Counter[str] | set[str]) -> Iterator[tuple[str, str]]:
    if have != want:
        yield reason, f"added {sorted(have - want)[:6]}, lost {sorted(want - have)[:6]}"  # type: ignore[operator]


def _find_character_problems(new: str, language: str) -> Iterator[tuple[str, str]]:
    """Control characters, digits other than ours, and scripts other than the language's; Latin letters name axes."""
    known = rules.find_language(language)
    plain = SLOT.sub("", new)
    for character in dict.fromkeys(plain):
        if unicodedata.category(character)[0] in "CZ" and character not in " \n":
            yield "control", f"the character U+{ord(character):04X}"
        elif not character.isascii() and character.isdigit():
            yield "number", "digits other than 0 to 9"
    scripts = Counter(unicodedata.name(character, "").split(" ")[0] for character in plain if character.isalpha())
    if foreign := sorted(set(scripts) - {"LATIN", *known.scripts}):
        yield "language", f"letters of {foreign}, in which {known.name} is not written"
    elif sum(scripts[script] for script in known.scripts) < MIN_SHARE * scripts.total():
        yield "language", f"few letters of {known.name}"


def _find_slot_problems(new: str, old: str, filled: bool) -> Iterator[tuple[str, str]]:
    if re.search(r"[{}]", SLOT.sub("", new)):
        yield "slot", "braces that are no placeholder"
    have, want = SLOT.findall(new), SLOT.findall(old)
    yield from _compare("slot", Counter(have), Counter(want))
    if filled and set(have) == set(want) and list(dict.fromkeys(have)) != list(dict.fromkeys(want)):
        yield "slot", "placeholders come in another order"


def _list_brackets(text: str) -> list[str]:
    """Numbers in brackets, whose order in a filled text shows their meaning; but for the origin."""
    found = re.findall(r"[\[(][^\[\](){}A-Za-z\n]*[0-9][^\[\](){}A-Za-z\n]*[\])]", text)
    return [numbers for numbers in found if numbers != "(0, 0)"]


def _list_formulas(text: str) -> list[str]:
    """Equations and sizes by their left side, those of one left side in the order of the text."""
    found = dict.fromkeys(re.sub(r"\s+", " ", match.group()).strip() for match in _FORMULA.finditer(text))
    return sorted(found, key=lambda formula: formula.partition("=")[0] if "=" in formula else "")


def _find_symbols(text: str) -> set[str]:
    plain = re.sub(rf"{ATOM} x (?={ATOM})", " ", text)  # the x of a size is no axis
    tokens = _SYMBOL.findall(SLOT.sub(" . ", plain))
    return {token for token in tokens if not token.isdigit() and token != "s"}


def _find_word_problems(new: str, old: str) -> Iterator[tuple[str, str]]:
    words = rules.load_vocabulary()
    for name, compare, keys, pattern in words.classes:
        have, want = (
            [keys[match.lastindex - 1] for match in pattern.finditer(text) if match.lastindex] for text in (new, old)
        )
        if compare == "count":
            yield from _compare(name, Counter(have), Counter(want))
        elif compare == "set" or (set(have) - set(want) and (want or compare == "new")):
            yield from _compare(name, set(have), set(want))
    for reason, after, pattern in words.bindings:
        bound, wanted = _bind(new, pattern, after), _bind(old, pattern, after)
        clear = len({word for word, _ in wanted}) == len({word for _, word in wanted}) == len(wanted)
        for a, b in sorted(bound - wanted) if clear else ():
            if any(word == b for _, word in wanted):
                yield reason, f"{b!r} goes with {a!r}, which it does not in the original"


def _bind(text: str, pattern: re.Pattern[str], after: bool) -> set[tuple[str, str]]:
    """Pairs of words that go together, by clause."""
    pairs: set[tuple[str, str]] = set()
    for clause in re.split(r"[.;:?\n](?:\s|$)", text):
        last = ""
        for match in pattern.finditer(clause):
            if match["from"] is not None:
                last = match["from"]
                continue
            word = match["to"].lower().removesuffix("s")
            behind = pattern.match(clause, clause.find("(", match.end(), match.end() + 30) + 1) if after else None
            if behind is not None and behind["from"] is not None and clause[behind.end() : behind.end() + 1] == ")":
                pairs.add((behind["from"], word))
            elif last:
                pairs.add((last, word))
    return pairs


def measure_similarity(a: Text, b: Text) -> bool:
    """Whether two whole texts are nearly the same words."""
    return is_too_similar(f"{a.question}\n{a.context}", f"{b.question}\n{b.context}")


def is_too_similar(a: str, b: str) -> bool:
    """Whether two texts have nearly the same words in the same order, whatever their case and punctuation."""
    words_a, words_b = (re.findall(r"[^\W_]+|\{\{ \w+ \}\}", text.casefold()) for text in (a, b))
    matcher = difflib.SequenceMatcher(None, words_a, words_b, autojunk=False)
    return matcher.quick_ratio() >= MAX_SIMILARITY and matcher.ratio() >= MAX_SIMILARITY


def find_lint_problems(proposed: Text, original: Original) -> list[WordingProblem]:
    """What the lint finds in the filled rewording and not in the filled original."""
    states = original.states if original.language == "en" else ()
    problems: dict[str, None] = {}
    for values in original.samples:
        known = set(lint.lint(*_fill(original.text, values), states=states))
        problems |= {p: None for p in lint.lint(*_fill(proposed, values), states=states) if p not in known}
    return [WordingProblem("lint", p.partition(":")[0].replace("text", ""), p) for p in problems]


def _fill(text: Text, own: Mapping[str, str]) -> tuple[str, str]:
    data = rules.list_slots()
    question, context = (
        SLOT.sub(lambda match: own.get(match[1]) or data.samples.get(match[1], data.other), part)
        for _, part in text.list_parts()
    )
    return question, context
