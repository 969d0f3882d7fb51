"""Questions in memory whose images are files, as a benchmark of another origin opens to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from vgbench_gen.core.rng import hash_stably
from vgbench_gen.core.types import Item
from vgbench_gen.evaluation.base import QuestionRow
from vgbench_gen.store.schema import SCHEMA_VERSION


class ItemSource:
    """See `evaluation.base.Source`.

    Args:
        benchmark: the name in records.
        folder: where `replies/` and `scores/` go.
        items: the questions, with ids that differ.
        images: the file of each image by its name in the items. An image that is exchanged under its name is not told
            apart from the old one.
        notes: what a reader of scores must know, such as rows that were left out.
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
        self.fingerprint = hash_stably(
            benchmark, *(f"{item.id}\n{item.question}\n{item.answer}\n{' '.join(item.images)}" for item in items)
        )

    def rows(self) -> Iterator[QuestionRow]:
        """As `Source.rows`."""
        for place, item in enumerate(self.items):
            scene = f"{item.source}/{item.scene_id}"
            yield QuestionRow(place, item.id, item.task, item.question_type, len(item.options), scene, item.group_id)

    def item(self, row: int) -> Item:
        """As `Source.item`."""
        return self.items[row]

    def image(self, item: Item, k: int) -> bytes | Path:
        """As `Source.image`."""
        return self._files[item.images[k]]

    def missing_images(self, rows: Sequence[QuestionRow]) -> list[str]:
        """As `NamesImages.missing_images`."""
        names = dict.fromkeys(name for row in rows for name in self.item(row.row).images)
        return [name for name in names if not self._files[name].is_file()]

    def again(self) -> Self:
        """As `Source.again`; readers share the questions, which are never changed."""
        return self


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
) -> Item:
    """A question as our schema has it; `question` is sent as it stands, with the options in it."""
    return Item(
        id=item_id,
        index=index,
        group_id=item_id,
        twin_id="",
        pair_id="",
        benchmark=benchmark,
        task=task,
        ask="",
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
        tolerance=0.0,
        images=tuple(images),
        convention={},
        distractors=(),
        evidence=dict(evidence or {}),
        template_id="",
        paraphrase="",
        strategy="",
        distractor_seed=0,
        difficulty=difficulty,
        licence=licence,
        schema_version=SCHEMA_VERSION,
    )
