"""Baselines as models: `baseline:NAME` answers like any model, but is told what the words behind its name say.

random draws among the options, the sets of labels, or another question's number; constant knows the one best answer of
each kind of question; blind has learnt on other scenes and sees the text alone; solvers is classical computer vision;
truth is the key itself, which must score 100 %; noisy knows the key and errs as often as it is told to
(`baseline:noisy?accuracy=0.4&seed=3`). Answers are in the form in which the key is written, as rotated.
`baseline:NAME?seed=N` has a seed of its own.
"""

from __future__ import annotations

import abc
import json
import math
from collections.abc import Iterable, Mapping
from functools import cached_property
from statistics import NormalDist
from typing import Any, ClassVar

import numpy as np
from pydantic import Field

from vgbench_gen.core.config import Config, parse_config
from vgbench_gen.core.errors import ConfigError, UnknownNameError
from vgbench_gen.core.rng import rng_for
from vgbench_gen.core.types import ALPHABET, QUESTION_TYPES, Item
from vgbench_gen.evaluation import metrics
from vgbench_gen.evaluation.base import Keeps, Source
from vgbench_gen.evaluation.prompting import Asked
from vgbench_gen.evaluation.scoring import find_rules
from vgbench_gen.quality.questions import Question, read_question

PREFIX = "baseline:"
DECLINED = "I cannot answer this question: no solver is made for it."
_REFUSAL = "I'm sorry, but I can't help with that."
_FARTHEST, _NEAREST = 6.0, 2.5  # factors by which a wrong number of a noisy baseline is off
_CLOSED = ("multi-choice", "judgment")
_Cell = tuple[str, str, str, str]


class Seeded(Config):
    """Settings of a baseline."""

    seed: int = Field(ge=0, lt=1 << 63)
    """Seed of the random draws, from 0 to 2**63 - 1."""


class Noise(Seeded):
    """What the spec of a noisy baseline says."""

    accuracy: float = Field(default=0.5, ge=0, le=1)
    """The share of right answers."""
    tasks: dict[str, float] = Field(default_factory=dict)
    """The same for single tasks, `accuracy.TASK` in the spec."""
    shared: float = Field(default=0.5, ge=0, le=1)
    """How much of the draw is the question's own, so that models fail alike, from 0 to 1."""
    unreadable: float = Field(default=0.0, ge=0, le=1)
    """The share of replies without an answer."""
    refused: float = Field(default=0.0, ge=0, le=1)
    """The share of refusals."""
    size: str = ""
    """The size of model that it stands for ("72B"); it changes no answer."""


class Baseline(abc.ABC):
    """Answers questions of one dataset.

    Args:
        source: the questions; a baseline may look at all of them, whichever it is asked.
        settings: what its spec says.
    """

    Settings: ClassVar[type[Seeded]] = Seeded

    def __init__(self, source: Source, settings: Seeded) -> None:
        self.source, self.settings, self.seed = source, settings, settings.seed

    @abc.abstractmethod
    def answer(self, item: Item, asked: Asked) -> str:
        """The reply; `item` is the row as built, `asked.item` as it is shown. "" for none."""

    @cached_property
    def questions(self) -> list[Question]:
        """All questions with their keys, as the audits see them."""
        return [read_question(item) for item in read_all_items(self.source)]


def list_baselines() -> list[str]:
    """All specs, sorted, without settings."""
    return sorted(PREFIX + name for name in _NAMES)


def open_baseline(spec: str, source: Source, seed: int) -> Baseline:
    """The baseline of `baseline:NAME` or `baseline:NAME?seed=3`; `noisy` takes more settings (`Noise`).

    Raises:
        UnknownNameError: there is none of this name.
        ConfigError: settings that it does not have, or questions that ask for an image.
    """
    if isinstance(source, Keeps):
        raise ConfigError(
            f"{spec}: found questions that ask for an image, which no baseline draws. Name another model."
        )
    name, _, query = spec.removeprefix(PREFIX).partition("?")
    if PREFIX + name not in list_baselines():
        raise UnknownNameError(f"no baseline is called {name!r}. Known: {', '.join(list_baselines())}")
    kind = _NAMES[name]
    return kind(source, parse_config({"seed": seed} | _parse_settings(query, spec), kind.Settings, spec))


def _parse_settings(query: str, spec: str) -> dict[str, Any]:
    """Settings of a spec, `a=1&b.c=2`; numbers where they are written as such."""
    found: dict[str, Any] = {}
    for part in filter(None, query.split("&")):
        name, _, value = part.partition("=")
        try:
            number: Any = json.loads(value)
        except ValueError:
            number = value
        name, _, task = name.partition(".")
        if task and name != "accuracy":
            raise ConfigError(f"{spec}: found {name}.{task}; expected accuracy.{task}. Mend the spec.")
        if task:
            found.setdefault("tasks", {})[task] = number
        else:
            found[name] = number
    return found


class Truth(Baseline):
    """The key."""

    def answer(self, item: Item, asked: Asked) -> str:
        return asked.item.answer


class Uniform(Baseline):
    """Letters, Yes, No and sets of labels drawn evenly; other answers among the true ones of their kind of question."""

    @cached_property
    def _others(self) -> Mapping[_Cell, list[str]]:
        found: dict[_Cell, list[str]] = {}
        for item in read_all_items(self.source):
            if item.question_type not in _CLOSED:
                found.setdefault(_cell(item), []).append(item.answer)
        return found

    def answer(self, item: Item, asked: Asked) -> str:
        rng = rng_for(self.seed, "baseline", "random", *(str(part) for part in asked.key))
        if item.question_type == "multi-choice":
            return ALPHABET[int(rng.integers(len(item.options)))]
        if item.question_type == "judgment":
            return ("Yes", "No")[int(rng.integers(2))]
        drawn = find_rules(item.benchmark).draw_answer(item, rng)
        if drawn is not None:
            return drawn
        others = self._others[_cell(item)]
        return others[int(rng.integers(len(others)))]


class Constant(Baseline):
    """One answer for each task, type and quantity: the one that is right most often on this very dataset.

    Of numbers, the one that lies within our headline factor of most truths.
    """

    @cached_property
    def _best(self) -> Mapping[_Cell, str]:
        # Brings scipy.stats, which takes a second and 40 MB that no other model needs.
        from vgbench_gen.quality.balance import find_constant_within

        truths: dict[_Cell, list[str]] = {}
        numbers: dict[_Cell, list[float]] = {}
        for item in read_all_items(self.source):
            cell = _cell(item)
            truths.setdefault(cell, []).append(item.answer)
            if item.question_type == "open-ended" and item.answer_value:
                numbers.setdefault(cell, []).append(item.answer_value[0])
        best = {cell: metrics.find_most_common(answers)[0] for cell, answers in truths.items()}
        for cell, values in numbers.items():
            if len(values) == len(truths[cell]) and min(values) > 0 and math.isfinite(sum(values)):
                value, _ = find_constant_within(np.array(values), metrics.HEADLINE_DELTA)
                best[cell] = write_number_like(value, truths[cell][0])
        return best

    def answer(self, item: Item, asked: Asked) -> str:
        return self._best[_cell(item)]


class Blind(Baseline):
    """The text-only classifiers of the audit, which have not seen the scene they answer about."""

    @cached_property
    def _answers(self) -> Mapping[str, str]:
        from vgbench_gen.evaluation.blind_answers import guess_blind_answers

        # Question types that a benchmark brings have no learner.
        return guess_blind_answers([one for one in self.questions if one.form in QUESTION_TYPES], self.seed)

    @cached_property
    def _fallback(self) -> Uniform:
        return Uniform(self.source, self.settings)

    def answer(self, item: Item, asked: Asked) -> str:
        """As `Baseline.answer`; what cannot be learnt, for want of questions or scenes, is drawn."""
        found = self._answers.get(item.id)
        if found is None:
            return self._fallback.answer(item, asked)
        if item.question_type == "open-ended":
            return write_number_like(float(found), item.answer)
        return _turn_letter(found, item, asked)


class Solvers(Baseline):
    """The first solver that a task declares. Where a task has none, or it finds nothing to go by, it declines:
    what was not attempted counts as refused, not as unreadable."""

    def __init__(self, source: Source, settings: Seeded) -> None:
        super().__init__(source, settings)
        self._latest = ("", "")  # rotations of one question come after each other

    def answer(self, item: Item, asked: Asked) -> str:
        if self._latest[0] != item.id:
            self._latest = item.id, self._solved(item)
        return _turn_letter(self._latest[1], item, asked)

    def _solved(self, item: Item) -> str:
        from vgbench_gen.quality.solvers import find_solvers, look
        from vgbench_gen.tasks.solving import Image, Unread

        question, solvers = read_question(item), find_solvers(item.task)
        if not solvers or question.truth < 0:
            return DECLINED
        images = []
        for k, name in enumerate(item.images):
            data = self.source.image(item, k)
            images.append(Image(data if isinstance(data, bytes) else data.read_bytes(), name))
        try:
            scores = solvers[0].score(look(question, tuple(images)))
        except Unread:
            return DECLINED
        place = int(np.nan_to_num(scores, nan=-np.inf).argmax())
        return question.options[place] if item.question_type == "judgment" else ALPHABET[place]


class Noisy(Baseline):
    """A scripted model of a given strength, for demonstrations and tests of what needs many models.

    Whether it is right is a draw of two normal numbers, one of the question, which all such models share, and one of
    its own: what is hard for one is hard for others.
    """

    Settings: ClassVar[type[Seeded]] = Noise

    def __init__(self, source: Source, settings: Seeded) -> None:
        super().__init__(source, settings)
        assert isinstance(settings, Noise)
        self.noise = settings
        self._hardness = ("", 0.0)  # questions about one truth come after each other

    def answer(self, item: Item, asked: Asked) -> str:
        """As `Baseline.answer`; a question whose truth is a text is always answered by the key."""
        rng = rng_for(self.seed, "baseline", "noisy", *(str(part) for part in asked.key))
        kept = float(rng.random())
        if kept < self.noise.unreadable:
            return ""
        if kept < self.noise.unreadable + self.noise.refused:
            return _REFUSAL
        own, share = float(rng.standard_normal()), self.noise.shared
        drawn = math.sqrt(share) * self._of(item) + math.sqrt(1 - share) * own
        if NormalDist().cdf(drawn) < self.noise.tasks.get(item.task, self.noise.accuracy):
            return asked.item.answer
        return _wrong(asked.item, rng)

    def _of(self, item: Item) -> float:
        name = item.group_id or item.id
        if self._hardness[0] != name:
            self._hardness = name, float(rng_for(0, "baseline", "hardness", name).standard_normal())
        return self._hardness[1]


def _wrong(item: Item, rng: np.random.Generator) -> str:
    if item.question_type == "multi-choice":
        others = [letter for letter in ALPHABET[: len(item.options)] if letter != item.answer]
        return others[int(rng.integers(len(others)))]
    if item.question_type == "judgment":
        return "No" if item.answer == "Yes" else "Yes"
    drawn = find_rules(item.benchmark).draw_answer(item, rng, other_than=item.answer)
    if drawn is not None:
        return drawn
    if not item.answer_value:
        return item.answer
    factor = math.exp(float(rng.uniform(math.log(_NEAREST), math.log(_FARTHEST))))
    return write_number_like(item.answer_value[0] * (factor if rng.random() < 0.5 else 1 / factor), item.answer)


def write_number_like(value: float, like: str) -> str:
    """A number with the unit of another answer."""
    _, _, unit = like.partition(" ")
    return f"{value:.4g} {unit}".rstrip()


def _turn_letter(answer: str, item: Item, asked: Asked) -> str:
    """A letter of the row as built under the rotation in which it is shown."""
    if answer == DECLINED or item.question_type != "multi-choice" or not asked.key.rotation:
        return answer
    return ALPHABET[(ALPHABET.index(answer) - asked.key.rotation) % len(item.options)]


def _cell(item: Item) -> _Cell:
    return item.task, item.question_type, item.ask, item.unit if item.question_type == "open-ended" else ""


def read_all_items(source: Source) -> Iterable[Item]:
    """Yield all questions whole, with what their answers were found from."""
    return (source.item(row.row) for row in source.rows())


_NAMES: dict[str, type[Baseline]] = {
    "truth": Truth,
    "random": Uniform,
    "constant": Constant,
    "blind": Blind,
    "solvers": Solvers,
    "noisy": Noisy,
}
