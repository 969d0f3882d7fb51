"""Rationales: the steps that lead to an answer, in the wordings of `templates/rationales/`.

A task gives what fills the slots (`Task.explain`). To check a text, it gives them once more, unrounded and reached in
another way: the text must be one of the wordings up to the rounding of its numbers. So its words are checked as well,
"left" and "right", letters, names and verdicts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import product
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import numpy.typing as npt
from pydantic import Field

from vgbench_gen.core.config import Config, load_toml
from vgbench_gen.core.types import FloatArray
from vgbench_gen.text.numbers import blank_numbers, count_decimals, format_fixed, number_tokens
from vgbench_gen.text.render import fill_phrase, fill_slots, fill_word, find_templates_root, load_words, phrasing_error

Length = Literal["short", "long"]
LENGTHS: tuple[Length, ...] = ("short", "long")
_EXACT_DECIMALS, _MORE_DECIMALS = 9, 2  # of a pen that does not round; at most, where numbers would be printed alike
_DECIMALS = {"m": 2, "degrees": 1, "percent": 1, "meters": 1, "px": 1}  # by the last word of a phrase's key
_OPTION_MAX = 60  # characters of an option that a closing line repeats
_ROUNDING = 0.5 + 1e-6  # units of the last digit
_NUMBER = r"([0-9]+(?:\.[0-9]+)?)"

_Lines = Annotated[tuple[str, ...], Field(min_length=1)]


class _Bodies(Config):
    short: _Lines
    long: _Lines


class _RationaleFile(Config):
    steps: dict[str, _Bodies] = Field(default_factory=dict)
    """The steps of each case of a task."""
    closing: dict[str, _Lines] = Field(default_factory=dict)
    """Lines that name the answer, where they are not those of all tasks, which `closings.toml` has."""


@dataclass(frozen=True, slots=True)
class Pen:
    """Prints quantities, lengths in meters and angles in degrees, in phrases of `templates/rationales/words.toml`."""

    exact: bool = False
    """Whether numbers are not rounded."""

    def say(self, kind: str, value: float, decimals: int | None = None, unlike: Sequence[float] = ()) -> str:
        """A quantity; one that is negative in the phrase of its opposite, such as "to the left", and not as zero.

        Args:
            kind: key of the phrase, which ends in its unit.
            value: in that unit.
            decimals: as many; None for as many as the unit has.
            unlike: numbers that must not be printed like this one, which has more decimals if they would be.
        """
        signed = f"opposite.{kind}" in _load_words()
        if decimals is None:
            decimals = self._separate(kind, [value, *unlike, *([0.0] if signed else [])])
        number = self.print_number(value, decimals)
        table = "opposite" if signed and number.startswith("-") else "amount"
        return _fill(f"{table}.{kind}", value=number.removeprefix("-") if signed else number)

    def print_number(self, value: float, decimals: int) -> str:
        """A number without its unit."""
        return format_fixed(value, _EXACT_DECIMALS if self.exact else decimals)

    def point(self, uv_px: npt.ArrayLike) -> str:
        """A point (2,) of an image, whole pixels: "(u, v)"."""
        return f"({', '.join(self.print_number(float(x), 0) for x in np.asarray(uv_px))})"

    def list(self, kind: str, named: Sequence[tuple[str, float]]) -> str:
        """Names with their quantities, none of which are printed alike: "1.20 m for image 2 and 0.90 m for image 3"."""
        decimals = self._separate(kind, [value for _, value in named])
        return self.join([_fill("list.named", name=name, value=self.say(kind, x, decimals)) for name, x in named])

    def series(self, kinds: Sequence[str], values: npt.ArrayLike, decimals: int | None = None) -> str:
        """Quantities one after the other, each of its kind."""
        numbers = np.asarray(values, dtype=np.float64).tolist()
        return self.join([self.say(kind, x, decimals) for kind, x in zip(kinds, numbers, strict=True)])

    def spot(self, point_m: npt.ArrayLike, decimals: int | None = None) -> str:
        """A point (3,) or a way in the frame of a camera, meters."""
        return self.series(("right_m", "down_m", "ahead_m"), point_m, decimals)

    def join(self, parts: Sequence[str]) -> str:
        """Parts of a sentence in one line: "a, b and c"."""
        *before, last = parts
        return self.word("list.and", before=", ".join(before), last=last) if before else last

    def word(self, key: str, **slots: str) -> str:
        """A phrase of `templates/rationales/words.toml`, else of `text.render.fill_word`."""
        return _fill(key, **slots) if key in _load_words() else fill_word(key, **slots)

    def find_decimals(
        self, kind: str, values: npt.ArrayLike, compute: Callable[[FloatArray], Any], true: float, unit: float
    ) -> int:
        """The fewest decimals with which what is computed from numbers as printed rounds to a true value in units."""
        tried, exact = _try_decimals(kind), np.asarray(values, dtype=np.float64)
        return next((n for n in tried if abs(compute(np.round(exact, n)) - true) < unit / 2), tried[-1])

    def _separate(self, kind: str, values: Sequence[float]) -> int:
        tried, different = _try_decimals(kind), len({round(x, _EXACT_DECIMALS) for x in values})
        return next((n for n in tried if len({format_fixed(x, n) for x in values}) == different), tried[0])


def _try_decimals(kind: str) -> range:
    first = _DECIMALS.get(kind.rpartition("_")[2], 0)
    return range(first, first + _MORE_DECIMALS + 1)


def list_rationales(task: str, length: Length, form: str, slots: Mapping[str, str]) -> Iterator[str]:
    """The rationale of a row in every wording.

    Args:
        task: its name.
        length: of the steps before the closing line.
        form: "multi-choice", "open-ended", "yes" or "no".
        slots: what fills them; "case" says which steps, where a task has several cases.

    Raises:
        ConfigError: the task has no rationales, or none for these slots.
    """
    path, case = _find_path(task), slots.get("case", "any")
    if not path.is_file():
        raise phrasing_error(f"task {task!r}", "no rationales", "wordings of its steps", "Leave them out.")
    if case not in (file := _load_file(path)).steps:
        raise phrasing_error(path, f"no steps for the case {case!r}", f"one of {sorted(file.steps)}")
    if form == "multi-choice" and ("\n" in slots["option"] or len(slots["option"]) > _OPTION_MAX):
        form = "letter"
    own = file.closing.get(f"{form}-{length}", file.closing.get(form))
    last = own or _load_file(_find_path("closings")).closing[form]
    for body, closing in product(getattr(file.steps[case], length), last):
        yield fill_slots(f"{body} {closing}", slots, path)


def find_difference(text: str, exact: str) -> str:
    """Why a text is not another one with its numbers rounded; "" where it is."""
    (words, said), (others, meant) = _split(text), _split.__wrapped__(exact)
    if words != others:
        return "its words are those of no rationale of the row"
    for token, true in zip(said, meant, strict=True):
        if abs(float(token) - float(true)) > _ROUNDING * 10.0 ** -count_decimals(token):
            return f"it says {token}, the evidence gives {float(true):g}"
    return ""


@lru_cache(maxsize=1)  # a text is compared with many
def _split(text: str) -> tuple[str, list[str]]:
    """(words with "#" for each number, the numbers), a quantity in an opposite phrase being a negative number."""
    pattern, phrases = _list_opposites()
    text = pattern.sub(lambda found: phrases[(k := found.lastindex or 1) - 1].replace("#", found[k]), text)
    return blank_numbers(text), number_tokens(text)


@cache
def _list_opposites() -> tuple[re.Pattern[str], list[str]]:
    """A pattern of all opposite phrases, each with its number as a group, and the phrases that take their places."""
    kinds = [key.partition(".")[2] for key in _load_words() if key.startswith("opposite.")]
    words = [re.escape(_fill(f"opposite.{kind}", value="#")).replace(r"\#", _NUMBER) for kind in kinds]
    phrases = [_fill(f"amount.{kind}", value="-#") for kind in kinds]
    return re.compile(rf"(?<![\w.+-])(?:{'|'.join(words)})\b"), phrases


def _fill(key: str, **slots: str) -> str:
    return fill_phrase(_find_path("words"), key, slots)


@cache
def _find_path(name: str) -> Path:
    return find_templates_root() / "rationales" / f"{name}.toml"


def _load_words() -> Mapping[str, str]:
    return load_words(_find_path("words"))


@cache
def _load_file(path: Path) -> _RationaleFile:
    return load_toml(path, _RationaleFile)
