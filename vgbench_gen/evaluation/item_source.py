"""Questions in memory whose images are files, as a benchmark of another origin opens to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from vgbench_gen.core.rng import hash_stably
from vgbench_gen.core.types import Item
from vgbench_gen.evaluation.base import QuestionRow
from vgbench_gen.importers._reading import NOT_OURS
from vgbench_gen.store.files import dataset_error


class ItemSource:
    """See `evaluation.base.Source`.

    Args:
        benchmark: the name in records.
        folder: where `replies/` and `scores/` go.
        items: the questions, with ids that differ.
        images: the file of each image by its name in the items; None where a derived class reads them itself. An image
            that is exchanged under its name is not told apart from the old one.
        notes: what a reader of scores must know, such as rows that were left out.

    Raises:
        DatasetError: an id twice, a question without words, or an image without a file in `images`.
    """

    def __init__(
        self,
        benchmark: str,
        folder: Path,
        items: Sequence[Item],
        images: Mapping[str, Path] | None = None,
        notes: Sequence[str] = (),
    ) -> None:
        self.benchmark, self.folder, self.items, self.notes = benchmark, folder, items, tuple(notes)
        self._files = dict(images or {})
        _check_items(benchmark, items, images)
        self.fingerprint = hash_stably(
            benchmark, *(f"{item.id}\n{item.question}\n{item.answer}\n{' '.join(item.images)}" for item in items)
        )

    def rows(self) -> Iterator[QuestionRow]:
        for place, item in enumerate(self.items):
            scene = f"{item.source}/{item.scene_id}"
            yield QuestionRow(place, item.id, item.task, item.question_type, len(item.options), scene, item.group_id)

    def item(self, row: int) -> Item:
        return self.items[row]

    def image(self, item: Item, k: int) -> bytes | Path:
        return self._files[item.images[k]]

    def missing_images(self, rows: Sequence[QuestionRow]) -> list[str]:
        names = dict.fromkeys(name for row in rows for name in self.item(row.row).images)
        return [name for name in names if not self._files[name].is_file()]

    def again(self) -> Self:
        """As `Source.again`; readers share the questions, which are never changed."""
        return self


def _check_items(benchmark: str, items: Sequence[Item], files: Mapping[str, Path] | None) -> None:
    """Refuse questions that could not be asked, or whose replies could not be told apart."""
    first: dict[str, int] = {}
    for place, item in enumerate(items):
        where = f"{benchmark}, question {place} ({item.id})"
        other = first.setdefault(item.id, place)
        if other != place:
            remedy = "Make ids of all that tells questions apart, or leave out the copy."
            raise dataset_error(where, f"the id of question {other} again", "ids that differ", remedy)
        if not item.question.strip():
            raise dataset_error(where, "no words", "a question", "Mend the row.")
        for name in item.images:
            if files is not None and name not in files:
                raise dataset_error(where, f"no file for image {name!r}", "one in `images`", "Name its file.")


def make_item(
    item_id: str,
    *,
    benchmark: str,
    task: str,
    question_type: str,
    question: str,
    answer: str,
    images: Sequence[str],
    source: str,
    scene_id: str,
    options: Sequence[str] = (),
    category: str = "",
    difficulty: str = "",
    licence: str = "",
    index: int = 0,
    evidence: Mapping[str, Any] | None = None,
    pair_id: str = "",
    twin_id: str = "",
    group_id: str = "",
) -> Item:
    """A question as our schema has it; `question` is sent as it stands, with the options in it.

    Args:
        pair_id: a name that the halves of a pair share, for tables that count pairs with both halves right (the column
            "Pairs", and layouts with `how="pairs"`).
        twin_id: likewise of a true and a false claim about the same images (the column "Twins").
        group_id: of questions that stay together where `--limit` draws some; by default those of one pair, else of one
            pair of twins, else each alone.
    """
    return Item(
        id=item_id,
        index=index,
        group_id=group_id or pair_id or twin_id or item_id,
        pair_id=pair_id,
        benchmark=benchmark,
        task=task,
        question_type=question_type,  # type: ignore[arg-type]  # SalBench's kind is none of ours
        category=category,
        subcategory="",
        category_origin=task,
        index_origin=index,
        input_modality="single-image" if len(images) == 1 else "multi-images",
        source=source,
        scene_id=scene_id,
        frame_ids=(),
        split="test",
        question=question,
        context="",
        options=tuple(options),
        answer=answer,
        answer_value=(),
        answer_shape=(),
        unit="",
        images=tuple(images),
        evidence=dict(evidence or {}),
        licence=licence,
        **NOT_OURS | {"twin_id": twin_id, "difficulty": difficulty},
    )
