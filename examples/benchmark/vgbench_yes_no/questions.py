"""Yes/no questions about one image each, from a JSON list of objects.

Each has `image`, `question`, `answer` and `topic`, and may have `pair`.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from vgbench_gen.core.rng import hash_stably
from vgbench_gen.evaluation.base import Benchmark, benchmarks
from vgbench_gen.evaluation.cells import grouped, mean
from vgbench_gen.evaluation.item_source import ItemSource, make_item
from vgbench_gen.evaluation.layouts import LayoutColumn, TableLayout, of_source
from vgbench_gen.evaluation.tables import ColumnHead, Table, TableColumn, TableMaker
from vgbench_gen.scenes.files import inside
from vgbench_gen.store.files import dataset_error
from vgbench_yes_no.rules import NAME, YesNoRules

TOPICS = {"left-right": "Left/right", "front-behind": "Front/behind", "above-below": "Above/below"}
MAX_BYTES = 100_000_000


@benchmarks.register("yes_no_relations")
class YesNoRelations(Benchmark):
    """A JSON file, and a folder of images beside it or named by `--images`."""

    scoring = YesNoRules()

    def open(self, path: Path, images: Path | None = None) -> ItemSource:
        """See `Benchmark.open`."""
        folder = images or path.parent
        items, files = [], {}
        for number, row in enumerate(read_rows(path)):
            try:
                image, question, topic = str(row["image"]), str(row["question"]), str(row["topic"])
                answer = {"yes": "Yes", "no": "No"}[str(row["answer"]).casefold()]
            except KeyError as error:
                expected = "image, question, topic, and answer that is yes or no"
                raise dataset_error(f"{path}, row {number}", f"no {error}", expected, "Mend the row.") from error
            files[image] = inside(folder, folder / image)  # a name such as ../../x is refused
            item = make_item(
                hash_stably(NAME, image, question),
                benchmark=NAME,
                task=topic,
                question_type="judgment",
                question=question,
                answer=answer,
                images=[image],
                source=NAME,
                scene_id=image,  # questions about one image are not independent: intervals are taken over images
                index=number,
                pair_id=str(row.get("pair", "")),
            )
            items.append(item)
        return ItemSource(NAME, path.with_suffix(".vgbench"), items, files)

    @property
    def layouts(self) -> Sequence[TableLayout]:
        """One table: all questions, pairs with both halves right, then a column per topic."""
        mine = of_source(NAME)
        columns = [LayoutColumn("Overall", mine), LayoutColumn("Pairs", mine, "pairs")]
        for topic, head in TOPICS.items():
            columns.append(LayoutColumn(head, lambda entry, topic=topic: mine(entry) and entry.task == topic))
        return (TableLayout("yes-no-relations", "Yes/no relations", "Mean over questions.", tuple(columns), mine),)

    def tables(self, maker: TableMaker) -> Sequence[Table]:
        """A table that is no mean over questions: images of which every question is answered right."""
        mine = maker.board.mask(of_source(NAME))  # (questions,), true where the question is ours
        if not mine.any():
            return ()
        columns = (
            TableColumn(ColumnHead("Questions", total=int(mine.sum())), mine, mean),
            TableColumn(ColumnHead("Whole images"), mine, grouped(lambda entry: entry.scene)),
        )
        caption = "Whole images: those with several questions, all of them answered right."
        return (maker.table("yes-no-images", "Yes/no by image", caption, columns),)


def read_rows(path: Path) -> list[dict[str, Any]]:
    """The rows of a file.

    Raises:
        DatasetError: it cannot be read, or is no list of objects.
    """
    try:
        if path.stat().st_size > MAX_BYTES:
            raise ValueError(f"more than {MAX_BYTES} bytes")
        rows = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise dataset_error(path, str(error), "a JSON list of objects", "Name the benchmark's file.") from error
    if not isinstance(rows, list) or not rows or not all(isinstance(row, dict) for row in rows):
        raise dataset_error(path, "something else", "a JSON list of objects", "Name the benchmark's file.")
    return rows
