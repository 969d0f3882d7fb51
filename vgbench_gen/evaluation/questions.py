"""Which requests a run means: questions times repeats times orders of options, made one by one."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterator, Sequence
from itertools import islice

from vgbench_gen.backends.base import Settings
from vgbench_gen.core.errors import ConfigError, DatasetError
from vgbench_gen.core.rng import hash_stably, rng_for
from vgbench_gen.core.types import Item
from vgbench_gen.evaluation import prompting
from vgbench_gen.evaluation.base import QuestionRow, Source, choose_rows
from vgbench_gen.evaluation.options import AskOptions
from vgbench_gen.evaluation.prompting import Asked
from vgbench_gen.store.dataset import find_id

_NEIGHBOURS = 8  # rows near enough that another question's images are mostly in the same row group


class Questions:
    """The requests that the options mean, made one by one.

    Args:
        source: where questions come from.
        options: which, and how they are asked.
        ids: the questions to choose from; all where None.

    Raises:
        ConfigError: a task or type that is not there, or options that contradict each other.
    """

    def __init__(self, source: Source, options: AskOptions, ids: Collection[str] | None = None) -> None:
        self.source, self.options = source, options
        _check_options(options)
        prompting.find_prompt_set(options.prompt_set)
        rows = list(source.rows())
        _check_names(options, rows)
        chosen = (row for row in rows if ids is None or row.id in ids)
        self.rows = choose_rows(chosen, options.tasks, options.types, options.limit, options.sources)
        self._cells: dict[tuple[str, str, int], list[QuestionRow]] = {}
        if options.wrong_images:
            for row in rows:
                self._cells.setdefault((row.task, row.question_type, row.options), []).append(row)
        self._examples: dict[tuple[str, ...], list[QuestionRow]] = {}
        if options.shots:
            for row in sorted(rows, key=lambda row: hash_stably("shots", str(options.seed), row.id)):
                self._examples.setdefault(_get_kind(row), []).append(row)
        self.total = sum(len(self._list_rotations(row)) for row in self.rows) * options.epochs

    def again(self) -> Questions:
        """The same for another walk, with its own buffers."""
        other = object.__new__(Questions)
        other.__dict__.update(self.__dict__)
        other.source = self.source.again()
        return other

    def walk(self, settings: Settings) -> Iterator[tuple[Item, Asked]]:
        """(item as built, request) in the order of the dataset; no image is read."""
        for row in self.rows:
            yield from self.of(row, settings)

    def of(self, row: QuestionRow, settings: Settings) -> Iterator[tuple[Item, Asked]]:
        """The requests of one question."""
        item = self.source.item(row.row)
        other, examples = self._draw_other(row), self._find_examples(row)
        for epoch in range(self.options.epochs):
            for rotation in self._list_rotations(row):
                yield item, prompting.make_asked(item, settings, self.options, rotation, epoch, other, examples)

    def by_id(self, item_id: str) -> QuestionRow:
        """The row of this id among those chosen, or the only one whose id begins so.

        Raises:
            DatasetError: as `find_id`.
        """
        rows = {row.id: row for row in self.rows}
        return rows[find_id(rows, item_id, self.source.folder)]

    def _find_examples(self, row: QuestionRow) -> list[Item]:
        """Examples for a question: others of its kind in an order drawn by the seed, none about its own image."""
        found: list[Item] = []
        if self.options.shots:
            others = (
                one for one in self._examples[_get_kind(row)] if one.scene != row.scene and one.group != row.group
            )
            found = [self.source.item(one.row) for one in islice(others, self.options.shots)]
            if len(found) < self.options.shots:
                raise DatasetError(
                    f"item {row.id}: found {len(found)} other questions of its kind; expected {self.options.shots} for "
                    "examples. Ask with fewer --shots."
                )
        return found

    def _list_rotations(self, row: QuestionRow) -> range:
        return prompting.list_rotations(row.question_type, row.options, self.options.circular)

    def _draw_other(self, row: QuestionRow) -> Item | None:
        """Whose images are shown: a question of the same task and type about another scene, drawn among the nearest.

        None where there is none; the question then cannot be asked.
        """
        if not self.options.wrong_images:
            return None
        cell = self._cells[row.task, row.question_type, row.options]
        place = bisect_left(cell, row)
        walks = (reversed(cell[:place]), iter(cell[place + 1 :]))
        near = [one for side in walks for one in islice((o for o in side if o.scene != row.scene), _NEIGHBOURS)]
        near = sorted(near, key=lambda one: (abs(one.row - row.row), one.row))[:_NEIGHBOURS]
        if not near:
            return None
        drawn = rng_for(self.options.seed, "wrong images", row.id).integers(len(near))
        return self.source.item(near[int(drawn)].row)


def _check_options(options: AskOptions) -> None:
    """Refuse options that contradict each other.

    Raises:
        ConfigError: they do.
    """
    if options.visual_cot and (options.shots or options.blind or options.wrong_images or options.first_image):
        raise ConfigError("visual_cot: found it with examples or another choice of images; expected one of them.")
    if options.shots and (options.blind or options.wrong_images):
        raise ConfigError("shots: found them with a control of the images; expected one of them.")
    if options.blind and (options.wrong_images or options.first_image):
        raise ConfigError("blind: found it with another choice of images; expected one of them.")


def _check_names(options: AskOptions, rows: Sequence[QuestionRow]) -> None:
    """Refuse tasks, question types and sources that no question has.

    Raises:
        ConfigError: some are wanted.
    """
    for name, wanted, there in (
        ("task", options.tasks, {row.task for row in rows}),
        ("question type", options.types, {row.question_type for row in rows}),
        ("source", options.sources, {row.source for row in rows}),
    ):
        if unknown := sorted(set(wanted) - there):
            raise ConfigError(f"{name}: found {', '.join(unknown)}; expected some of {', '.join(sorted(there))}.")


def _get_kind(row: QuestionRow) -> tuple[str, ...]:
    return row.source, row.task, row.question_type, str(row.options)
