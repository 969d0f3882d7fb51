"""The words that checks know, read from `templates/paraphrase/`: a language's vocabulary, refused texts, prompts."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from vgbench_gen.core.config import Config, load_toml
from vgbench_gen.core.errors import ConfigError
from vgbench_gen.text.render import find_templates_root

Compare = Literal["count", "set", "new", "flip"]
# A placeholder or a number; the same rule as in `text.numbers`, with placeholders beside.
ATOM = r"(?:\{\{ [a-z][a-z0-9_]* \}\}|(?<![\w.])[+-]?[0-9]{1,40}(?:\.[0-9]{1,40})?(?!\w|\.[0-9]))"
SLOT = re.compile(r"\{\{ ([a-z][a-z0-9_]*) \}\}")


class _Same(Config):
    """Two ways of saying one thing, as the vocabulary file gives them."""

    find: str
    """A regular expression for one way, in which ATOM stands for a placeholder or a number."""
    put: str
    """The other way, which may name groups of `find`."""


class _Class(Config):
    """Words of one kind, as the vocabulary file gives them."""

    compare: Compare
    """How they are compared: "count", as often as in the original; "set", the same ones; "new", none that the original
    does not have; "flip", none that it does not have where it has another one of this kind."""
    ordered: bool = False
    """Whether they keep the original's order in filled texts."""
    words: Mapping[str, tuple[str, ...]]
    """Regular expressions by the name that they share in all languages."""


class _Binding(Config):
    """Words that belong together, as the vocabulary file gives them."""

    reason: str
    """The reason for refusing a text that binds them otherwise; one of `checks.REASONS`."""
    from_: tuple[str, ...] = Field(alias="from")
    """Regular expressions for the words that others go with."""
    to: tuple[str, ...]
    """Regular expressions for the words that go with the nearest of those."""
    after: bool = False
    """Whether the partner may also stand behind, in brackets."""


class _VocabularyFile(Config):
    """The vocabulary file of one language."""

    language: str
    common_share: float = Field(default=0, ge=0, le=1)
    """The least share of a text's words that are among `common`."""
    common: tuple[str, ...] = ()
    """The commonest words of the language."""
    same: tuple[_Same, ...] = ()
    """Ways of saying one thing, which are written alike before anything is compared."""
    classes: Mapping[str, _Class]
    """Kinds of words by name, the same in the file of every language."""
    bindings: tuple[_Binding, ...] = ()
    """Words that belong together."""
    ordinals: tuple[str, ...] = ()
    """Words such as "first", which clauses with values name in the original's order."""


class Language(Config):
    """How a language is written."""

    name: str
    """Its name in English, for prompts."""
    scripts: tuple[str, ...]
    """The first words of the Unicode names of its letters."""
    ends: str = ".?"
    """The marks that end a text."""
    asks: str = "?"
    """The marks that end a question."""
    density: float = 1.0
    """About how many characters it takes for one of English."""


class _LanguagesFile(Config):
    """The file that lists the languages."""

    languages: Mapping[str, Language]
    refused: Mapping[str, tuple[str, ...]]
    """Regular expressions of texts that are refused in every language, by reason."""


class Slots(Config):
    """What placeholders are filled with when a rewording is checked."""

    other: str
    """The value of a placeholder that is not listed."""
    order: tuple[tuple[str, ...], ...]
    """Families of placeholders whose order in a text must stay."""
    samples: Mapping[str, str]
    """Sample values by name of the placeholder."""


class ParaphrasePrompts(Config):
    """What a model is told."""

    fence: str
    """The line between which texts stand, so that nothing in them passes for an instruction."""
    formats: Mapping[str, str]
    """Shapes of answers by name, which are shown as they stand."""
    prompts: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class WordClass:
    """Words of one kind, ready for comparing."""

    name: str
    """The name of the kind, the same in every language."""
    compare: Compare
    """How they are compared; see `_Class.compare`."""
    ordered: bool
    """Whether they come in the original's order in filled texts, where nothing else tells what goes with what."""
    keys: tuple[str, ...]
    """The name of the word behind each group of `pattern`; the group's number less one indexes them."""
    pattern: re.Pattern[str]
    """Finds any of the words."""


@dataclass(frozen=True, slots=True)
class Binding:
    """Words that belong together, ready for comparing; see the vocabulary file."""

    reason: str
    """The reason for refusing a text that binds them otherwise."""
    pattern: re.Pattern[str]
    """Finds the words of both sides, in the groups `from` and `to`."""
    after: bool
    """Whether the partner may also stand behind, in brackets."""


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """What a rewording in one language must keep."""

    language: str
    common: frozenset[str]
    """The commonest words of the language."""
    common_share: float
    """The least share of a text's words that are among `common`."""
    same: tuple[tuple[re.Pattern[str], str], ...]
    """Patterns of ways of saying one thing, each with the way they are written alike."""
    classes: tuple[WordClass, ...]
    bindings: tuple[Binding, ...]
    """The words that belong together."""
    ordinals: re.Pattern[str] | None
    """Finds words such as "first"; None where the language lists none."""

    def unify_synonyms(self, text: str) -> str:
        """The text with its ways of saying one thing written alike."""
        for pattern, put in self.same:
            text = pattern.sub(put, text)
        return text


@cache
def load_vocabulary(language: str) -> Vocabulary | None:
    """The vocabulary of a language; None where there is no file for it.

    Raises:
        ConfigError: the file breaks the rules above.
    """
    if language not in list_languages():
        return None
    path = _find_folder() / "vocabulary" / f"{language}.toml"
    if not path.is_file():
        return None
    found = load_toml(path, _VocabularyFile)
    same = tuple(
        (_compile_pattern(_match_whole_words(rule.find.replace("ATOM", ATOM)), path), rule.put) for rule in found.same
    )
    classes = []
    for name, group in found.classes.items():
        # Longer ways first: "top left" is no "left". The key is told by which group matched.
        ways = sorted(
            ((way, key) for key, listed in group.words.items() for way in listed), key=lambda w: (-len(w[0]), w)
        )
        joined = "|".join(f"({way})" for way, _ in ways)
        classes.append(
            WordClass(
                name,
                group.compare,
                group.ordered,
                tuple(key for _, key in ways),
                _compile_pattern(_match_whole_words(joined), path),
            )
        )
    bindings = []
    for rule in found.bindings:
        sides = f"(?P<from>{'|'.join(rule.from_)})|(?P<to>{'|'.join(rule.to)})"
        bindings.append(Binding(rule.reason, re.compile(rf"(?<![\w-])(?:{sides})(?![\w-])"), rule.after))
    ordinals = _compile_pattern(_match_whole_words("|".join(found.ordinals)), path) if found.ordinals else None
    return Vocabulary(
        language, frozenset(found.common), found.common_share, same, tuple(classes), tuple(bindings), ordinals
    )


def load_english() -> Vocabulary:
    """The vocabulary of the shipped phrasings.

    Raises:
        ConfigError: it is missing.
    """
    found = load_vocabulary("en")
    if found is None:
        raise ConfigError(
            f"{_find_folder()}: found no vocabulary/en.toml; expected an installation with its templates."
        )
    return found


@cache
def list_languages() -> Mapping[str, Language]:
    """Languages by their code, such as `en`."""
    return _load_languages_file().languages


def find_language(code: str) -> Language:
    """A language by its code.

    Raises:
        ConfigError: no such language.
    """
    known = list_languages()
    if code not in known:
        raise ConfigError(f"language {code!r}: found no such code; expected one of {', '.join(sorted(known))}.")
    return known[code]


@cache
def load_refused() -> Mapping[str, tuple[re.Pattern[str], ...]]:
    """Reason -> patterns of texts that are refused in every language."""
    path = _find_folder() / "languages.toml"
    return {
        reason: tuple(_compile_pattern(way, path) for way in ways)
        for reason, ways in _load_languages_file().refused.items()
    }


@cache
def list_slots() -> Slots:
    """Sample values of placeholders, and their order."""
    return load_toml(_find_folder() / "slots.toml", Slots)


@cache
def load_prompts() -> ParaphrasePrompts:
    """What a model is told."""
    return load_toml(_find_folder() / "prompts.toml", ParaphrasePrompts)


def fill_prompt(key: str, **values: str) -> str:
    """The prompt of this name with its slots filled. Values are put in as they are and never read as templates.

    Raises:
        ConfigError: the template and the values do not go together.
    """
    template = load_prompts().prompts[key]
    used = set(SLOT.findall(template))
    if used != set(values):
        where = _find_folder() / "prompts.toml"
        raise ConfigError(
            f"{where}, {key}: found the slots {sorted(used)}; expected {sorted(values)}. Mend the prompt."
        )
    return SLOT.sub(lambda match: values[match[1]], template)


@cache
def _load_languages_file() -> _LanguagesFile:
    return load_toml(_find_folder() / "languages.toml", _LanguagesFile)


def _find_folder() -> Path:
    return find_templates_root() / "paraphrase"


def _match_whole_words(pattern: str) -> str:
    return rf"(?<![\w-])(?:{pattern})(?![\w-])" if pattern[0] != "\\" else pattern


def _compile_pattern(pattern: str, path: Path) -> re.Pattern[str]:
    try:
        return re.compile(pattern, re.IGNORECASE)
    except re.error as error:
        place: Any = pattern[:60]
        raise ConfigError(f"{path}: found the pattern {place!r}, which is none ({error}). Mend it.") from error
