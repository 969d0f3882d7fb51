"""Reads counts, plain numbers and lengths from replies (`docs/protocols.md#reading-a-reply`)."""

# ruff: noqa: RUF001 (characters of replies that look like others)

from __future__ import annotations

import abc
import re
from collections.abc import Iterable
from dataclasses import replace

from vgbench_gen.evaluation.answers import units
from vgbench_gen.evaluation.answers.outcomes import AMBIGUOUS, NOTHING, AnswerReader, ParsedAnswer, make_answer
from vgbench_gen.evaluation.answers.places import find_text_after_revision
from vgbench_gen.evaluation.answers.quantities import (
    UNNAMED_NUMBER,
    Quantity,
    find_quantities,
    prepare_text,
)
from vgbench_gen.evaluation.answers.statements import choose_stated, is_labelled
from vgbench_gen.evaluation.answers.units import Kind, Unit
from vgbench_gen.evaluation.answers.vocabulary import compile_pattern, match_any_of, read_words

_RANGED = rf"(?P<n>{UNNAMED_NUMBER}(?:\s*(?:-|~|to|or|到|至)\s*{UNNAMED_NUMBER})?)"
_TOTALS = [
    compile_pattern(
        pattern.replace("{n}", _RANGED)
        if not pattern.startswith("{n}")
        else rf"(?<![0-9A-Za-z.,]){pattern.replace('{n}', _RANGED)}"
    )
    for pattern in read_words("totals", "counts")
]
# A number that opens a text and is then explained: "5 (2 red, 3 blue)", "3 chairs: ...".
_OPENING = compile_pattern(rf"\A\W{{0,5}}(?P<n>{UNNAMED_NUMBER})(?:[ \t]+[a-z]+){{0,6}}(?:[ \t]*[(:]|[ \t]+—)(?!\s*\Z)")
_TIMES = re.compile(r"(?<=[0-9])\s?[x×](?=\s*(?:[A-Za-z]|\Z))")  # the multiplication sign in "4x chairs"
_NONE = compile_pattern(rf"\A\W*{match_any_of(read_words('none', 'counts'))}\b\W*\Z|\A\W*(?:没有|无|零)\W*\Z")
_NO_THINGS = compile_pattern(rf"(?:^|\b){match_any_of(read_words('no_things', 'counts'))}")
_BOUNDS = compile_pattern(rf"{match_any_of(read_words('bounds', 'counts'))}\s*\Z")
# The end of a sentence after a number, with at most one noun between them ("make that 5 chairs").
_NOTHING_BEHIND = re.compile(r"(?:\s+[a-z]+)?\W*")
_SENTENCES = re.compile(r"[\n。!?;]|\.(?=\s|$)")
_SCALAR = re.compile(
    r"\\?scalar[\"']?\s*[:=]?\s*(?:\{\s*(?P<in>[^{}]{1,80}?)\s*\}|(?P<out>-?[0-9][^\s{}\\]{0,40}))\s*[)\]]?\s*[,;:]?\s*[(\[\"']?\s*"
    r"(?:\\?distance[\s_]{0,2}unit[\"']?\s*[:=]?\s*[\"']?(?:\{\s*(?P<unit>[^{}]{1,40}?)\s*\}|(?P<bare>[A-Za-z\u4e00-\u9fff]{1,20}))|(?P<after>[A-Za-z\u4e00-\u9fff'\"]{1,20}))?",
    re.IGNORECASE,
)


class _NumeralReader(AnswerReader, abc.ABC):
    """Base class of the readers of counts, numbers and lengths."""

    def read_notation(self, text: str) -> ParsedAnswer:
        """The number after "wait" or "actually": at the end of the next sentence, or stated as the answer."""
        tail = find_text_after_revision(text)
        ready = prepare_text(_SENTENCES.split(tail, maxsplit=1)[0])
        found = find_quantities(ready)
        if found and _NOTHING_BEHIND.fullmatch(ready, found[-1].end):
            return self.value(found[-1])
        return self._read_stated(tail) if tail else NOTHING

    def _read_stated(self, text: str) -> ParsedAnswer:
        """The quantity that a text states as the answer; only lengths are read in this way."""
        return NOTHING

    def read_segment(self, text: str) -> ParsedAnswer:
        return self._pick(text, first=True)

    def read_opening(self, text: str) -> ParsedAnswer:
        first, _, rest = text.strip().partition("\n")
        return self._read_alone(first) if rest or len(first) < 60 else NOTHING

    def read_anywhere(self, text: str) -> ParsedAnswer:
        return self._pick(text, first=False)

    def _read_alone(self, line: str) -> ParsedAnswer:
        """The number of a line that contains nothing else."""
        line = prepare_text(line.strip())
        found = find_quantities(line)
        if len(found) != 1:
            return NOTHING
        around = line[: found[0].start] + line[found[0].end :]
        return self.value(found[0]) if not re.search(r"\w", around) else NOTHING

    @abc.abstractmethod
    def _pick(self, text: str, first: bool) -> ParsedAnswer:
        """The quantity of a text that is the answer. first: whether to prefer the first of several."""

    @abc.abstractmethod
    def value(self, found: Quantity) -> ParsedAnswer:
        """A quantity as an answer of this type."""


class CountReader(_NumeralReader):
    """Reads a count, or a real number without a unit; ranges and alternatives are not counts.

    Args:
        real: whether any real number is an answer. Then a range means its midpoint, and the last of several numbers is
            read (`docs/protocols.md#numbers-without-units`).
        unit: the unit in the question; lengths and areas in other units are converted.
        question: the question, which helps to choose among several real numbers.
    """

    def __init__(self, real: bool = False, unit: Unit | None = None, question: str = "") -> None:
        self.real, self.unit, self.question = real, unit, question

    def value(self, found: Quantity) -> ParsedAnswer:
        """The number, in the unit of the question."""
        if found.kind != "one" and not (self.real and found.kind == "range"):
            return AMBIGUOUS
        if found.unit is not None and found.unit.kind not in ("length", "area"):
            return NOTHING
        if self.unit and found.unit and found.unit.kind == self.unit.kind:
            return make_answer(found.base / self.unit.scale)
        return make_answer(found.signed)

    def read_opening(self, text: str) -> ParsedAnswer:
        """Zero for "none", a number that is then explained, or a first line with only a number."""
        if _NONE.search(text.lower()) or _NONE.search(text.lower().strip().partition("\n")[0].partition(",")[0]):
            return make_answer(0.0)
        opening = _OPENING.match(prepare_text(text))
        sizes = find_quantities(opening["n"]) if opening else ()
        return self.value(sizes[0]) if sizes else super().read_opening(text)

    def read_anywhere(self, text: str) -> ParsedAnswer:
        """A stated total, else the only number, else the number in the last sentence."""
        ready = prepare_text(text)
        totals = [match for pattern in _TOTALS for match in pattern.finditer(ready)]
        if totals:
            last = max(totals, key=lambda match: match.start("n"))
            sizes = find_quantities(last["n"])
            if sizes:
                return self.value(sizes[0])
        found = self._pick(text, first=False)
        if found.status == "no_answer" and _NO_THINGS.search(text.lower()):
            return make_answer(0.0)
        return found

    def _pick(self, text: str, first: bool) -> ParsedAnswer:
        if _NONE.search(text.lower()):
            return make_answer(0.0)
        ready = prepare_text(text if self.unit else _TIMES.sub("", text))
        usable = self._select_usable(find_quantities(ready))
        if self.unit is not None:
            of_kind = [one for one in usable if one.unit and one.unit.kind == self.unit.kind]
            usable = [one for one in usable if one in of_kind or is_labelled(ready, one, self.question)] or usable
        found = [one for one in usable if one.kind != "product"]
        if not found:
            return AMBIGUOUS if usable else NOTHING
        if len({(one.signed, one.unit, one.kind) for one in found}) == 1:
            return self._read_bounded(ready, found[-1])
        if self.real:
            chosen = choose_stated(ready, found, self.question)
            return self.value(chosen) if chosen else NOTHING
        return self._choose_last(ready, found, first)

    def _choose_last(self, text: str, found: list[Quantity], first: bool) -> ParsedAnswer:
        """The number in the last sentence with a number, for a prepared text with several numbers."""
        sentences = [part for part in _SENTENCES.split(text) if self._select_usable(find_quantities(part))]
        last = self._select_usable(find_quantities(sentences[-1].rpartition("=")[2])) if sentences else []
        last = last or found
        if first or len({one.signed for one in last}) == 1:
            return self.value(last[0])
        return AMBIGUOUS

    def _read_bounded(self, text: str, found: Quantity) -> ParsedAnswer:
        if not self.real and _BOUNDS.search(text[: found.start]):
            return AMBIGUOUS
        return self.value(found)

    def _select_usable(self, found: Iterable[Quantity]) -> list[Quantity]:
        """Leave out percentages, angles and, for counts, lengths."""
        return [one for one in found if one.unit is None or (self.real and one.unit.kind in ("length", "area"))]


class MeasureReader(_NumeralReader):
    """Reads a length in meters, or another measure in its base unit.

    Args:
        unit: the unit in the question, used for a reply without a unit; None rejects such a reply.
        kind: kind of measure.
        question: the question, which helps to choose among several lengths.
    """

    def __init__(self, unit: Unit | None = None, kind: Kind = "length", question: str = "") -> None:
        self.unit, self.kind, self.question = unit, kind, question

    def value(self, found: Quantity) -> ParsedAnswer:
        """The measure in its base unit; nothing for a negative one or without a unit."""
        unit = found.unit or self.unit
        if unit is None or unit.kind != self.kind or found.negative:
            return NOTHING
        return make_answer(found.value * unit.scale)

    def read_notation(self, text: str) -> ParsedAnswer:
        r"""`\scalar{…} \distance_unit{…}` in any of its notations, the last one; the mean of the numbers inside."""
        for match in reversed(list(_SCALAR.finditer(text)) if "calar" in text.lower() else []):
            found = self._read_scalar(match)
            if found.found:
                return found
        return super().read_notation(text)

    def _read_scalar(self, match: re.Match[str]) -> ParsedAnswer:
        numbers = find_quantities(prepare_text(match["in"] or match["out"]))
        written = match["unit"] or match["bare"] or match["after"] or ""
        unit = units.find_unit(written.strip(". "))
        inside = next((one.unit for one in numbers if one.unit), None)
        is_other_word = bool(match["after"]) and bool(inside or self.unit)
        if not numbers or (written and unit is None and not is_other_word):
            return NOTHING
        mean = sum(one.signed for one in numbers) / len(numbers)
        return self.value(Quantity(abs(mean), unit or inside, 0, 0, mean < 0))

    def _pick(self, text: str, first: bool) -> ParsedAnswer:
        return self._choose(text)

    def _read_stated(self, text: str) -> ParsedAnswer:
        return self._choose(text, only_stated=True)

    def _choose(self, text: str, only_stated: bool = False) -> ParsedAnswer:
        ready = prepare_text(text)
        found = find_quantities(ready)
        fit = [one for one in found if one.unit is not None and one.unit.kind == self.kind]
        unit = (units.find_named_unit(text, (self.kind,)) if not fit else None) or self.unit
        bare = [replace(one, unit=unit) for one in found if one.unit is None] if unit else []
        fit = sorted(
            [*fit, *(one for one in bare if not fit or is_labelled(ready, one, self.question))],
            key=lambda one: one.start,
        )
        usable = [one for one in fit if one.kind != "product"]
        if not usable:
            return AMBIGUOUS if fit else NOTHING
        chosen = choose_stated(ready, usable, self.question, only_stated)
        return self.value(chosen) if chosen else NOTHING
