"""What checks and prompts of rewordings are made of, read from `templates/paraphrase/`: words, languages, prompts."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

from pydantic import Field

from vgbench_gen.core.config import Config, load_toml
from vgbench_gen.core.errors import ConfigError
from vgbench_gen.text.render import find_templates_root

# A placeholder or a number; the same rule as in `text.numbers`, with placeholders besides.
ATOM = r"(?:\{\{ [a-z][a-z0-9_]* \}\}|(?<![\w.])[+-]?[0-9]{1,40}(?:\.[0-9]{1,40})?(?!\w|\.[0-9]))"
SLOT = re.compile(r"\{\{ ([a-z][a-z0-9_]*) \}\}")


class _Synonym(Config):
    """Another way of saying something; `put` may name groups of the pattern `find`."""

    find: str
    put: str


class _Class(Config):
    """Words of one kind: regular expressions by the name that all ways of saying a word share."""

    compare: Literal["count", "set", "new", "flip"]
    """How they are compared: "count", as often as in the original; "set", the same ones; "new", none that the original
    does not have; "flip", none that it does not have where it has another one of this kind."""
    words: Mapping[str, tuple[str, ...]]


class _Binding(Config):
    """Words that belong together: a word of `to` goes with the nearest word of `from` before it."""

    reason: str
    """The reason for refusing a text that binds them otherwise; one of `checks.REASONS`."""
    from_: tuple[str, ...] = Field(alias="from")
    to: tuple[str, ...]
    after: bool = False
    """Whether the partner may also stand behind, in brackets."""


class _VocabularyFile(Config):
    same: tuple[_Synonym, ...]
    classes: Mapping[str, _Class]
    bindings: tuple[_Binding, ...]


class Language(Config):
    """A language that texts can be reworded in."""

    name: str
    """Its name in English, for prompts."""
    scripts: tuple[str, ...] = ("LATIN",)
    """The first words of the Unicode names of its letters."""


class _LanguagesFile(Config):
    languages: Mapping[str, Language]
    refused: Mapping[str, tuple[str, ...]]


class Slots(Config):
    """What placeholders are filled with when a rewording is checked."""

    other: str
    samples: Mapping[str, str]


class ParaphrasePrompts(Config):
    """What a model is asked."""

    fence: str
    """The line between which texts stand, so that nothing in them passes for an instruction."""
    formats: Mapping[str, str]
    prompts: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """The English words that a rewording must keep, compiled."""

    same: tuple[tuple[re.Pattern[str], str], ...]
    classes: tuple[tuple[str, str, tuple[str, ...], re.Pattern[str]], ...]
    """(name, how words are compared, word behind each group of the pattern, pattern) of each kind of words."""
    bindings: tuple[tuple[str, bool, re.Pattern[str]], ...]
    """(reason, whether a partner may stand behind in brackets, pattern with the groups `from` and `to`)."""

    def unify_synonyms(self, text: str) -> str:
        """The text with its ways of saying one thing written alike."""
        for pattern, put in self.same:
            text = pattern.sub(put, text)
        return text


@cache
def load_vocabulary() -> Vocabulary:
    """The words of `vocabulary/en.toml`."""
    found = load_toml(_find_folder() / "vocabulary" / "en.toml", _VocabularyFile)
    classes = []
    for name, group in found.classes.items():
        # Longer ways first: "top left" is no "left". Which group matched gives the word.
        ways = sorted(
            ((way, key) for key, listed in group.words.items() for way in listed), key=lambda w: (-len(w[0]), w)
        )
        pattern = _compile_words("|".join(f"({way})" for way, _ in ways))
        classes.append((name, group.compare, tuple(key for _, key in ways), pattern))
    sides = ((rule, f"(?P<from>{'|'.join(rule.from_)})|(?P<to>{'|'.join(rule.to)})") for rule in found.bindings)
    return Vocabulary(
        tuple((_compile_words(rule.find.replace("ATOM", ATOM)), rule.put) for rule in found.same),
        tuple(classes),
        tuple((rule.reason, rule.after, _compile_words(both.replace("ATOM", ATOM), re.NOFLAG)) for rule, both in sides),
    )


@cache
def _load_languages_file() -> _LanguagesFile:
    return load_toml(_find_folder() / "languages.toml", _LanguagesFile)


def find_language(code: str) -> Language:
    """A language by its code, such as `en`.

    Raises:
        ConfigError: no such language.
    """
    known = _load_languages_file().languages
    if code not in known:
        raise ConfigError(f"language {code!r}: found no such code; expected one of {', '.join(sorted(known))}.")
    return known[code]


@cache
def load_refused() -> Mapping[str, re.Pattern[str]]:
    """Reason -> pattern of texts that are refused in every language."""
    refused = _load_languages_file().refused
    return {reason: re.compile("|".join(ways), re.IGNORECASE) for reason, ways in refused.items()}


@cache
def list_slots() -> Slots:
    """Sample values of placeholders."""
    return load_toml(_find_folder() / "slots.toml", Slots)


@cache
def load_prompts() -> ParaphrasePrompts:
    """What a model is asked."""
    return load_toml(_find_folder() / "prompts.toml", ParaphrasePrompts)


def fill_prompt(key: str, **values: str) -> str:
    """The prompt of this name with its slots filled. Values are put in as they are and never read as templates."""
    return SLOT.sub(lambda match: values[match[1]], load_prompts().prompts[key])


def _find_folder() -> Path:
    return find_templates_root() / "paraphrase"


def _compile_words(pattern: str, flags: re.RegexFlag = re.IGNORECASE) -> re.Pattern[str]:
    """A pattern of whole words, unless it begins with a bracket as such."""
    return re.compile(rf"(?<![\w-])(?:{pattern})(?![\w-])" if pattern[0] != "\\" else pattern, flags)
