"""Reads ROVER's image generation tasks from parquet files, and stores and reads the images of a model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from vgbench_gen.backends.base import Reply
from vgbench_gen.core.errors import DatasetError
from vgbench_gen.core.json_text import parse_json
from vgbench_gen.core.types import Item
from vgbench_gen.evaluation.benchmarks import _parquet as parquet
from vgbench_gen.evaluation.benchmarks._parquet import ImagePlace, ParquetSource
from vgbench_gen.evaluation.benchmarks.rover.samples import EvaluationSample, convert_to_png, read_think_output
from vgbench_gen.evaluation.item_source import make_item
from vgbench_gen.importers._files import RawRow, RowError, Text, table_rows
from vgbench_gen.store import shards
from vgbench_gen.store.files import dataset_error, write_bytes

REPOSITORY = "cheryyunl/ROVER"


class _Row(RawRow):
    id: Text
    prompt: Text
    image: Any
    target_image: Any = None
    dimension: int | str = ""


class Tasks(ParquetSource):
    """ROVER's tasks; generated images and texts are stored in the benchmark's layout."""

    def keep(self, item: Item, reply: Reply, folder: Path) -> str:
        """Write `gen_{id}.png` and `gen_{id}.txt`, the text also without an image; returns an error or ""."""
        task = item.evidence["id"]
        picture, problem = folder / f"gen_{task}.png", "the reply holds no image"
        write_bytes(folder / f"gen_{task}.txt", reply.text.encode("utf-8", "replace"))
        if reply.images:
            try:
                write_bytes(picture, convert_to_png(reply.images[0], "the reply"))
                return ""
            except DatasetError as error:
                problem = str(error)
        picture.unlink(missing_ok=True)  # an image of an earlier reply
        return f"no_image: {problem}"

    def samples(self, folder: Path) -> Iterator[EvaluationSample]:
        """The samples in a folder written by `keep`; tasks without an image are left out."""
        for item in self.items:
            task, facts = item.evidence["id"], item.evidence
            picture = folder / f"gen_{task}.png"
            if picture.is_file():
                target = self.image_named(facts["target_image"]) if facts["target_image"] else None
                yield EvaluationSample(
                    sample_id=task,
                    original_image=self.image(item, 0),
                    generated_image=picture,
                    target_image=target,
                    prompt=item.question,
                    dimension=facts["dimension"],
                    reasoning_type=facts["reasoning_type"],
                    keywords=facts["keywords"],
                    target_description=facts["target_description"],
                    think_output=read_think_output(folder, task),
                )


def open_tasks(path: Path) -> Tasks:
    """Open the tasks under a folder, in a file, or on the Hub; see `Benchmark.open`."""
    place = parquet.place_of(path, REPOSITORY, ["ROVER-IG/*"])
    if path.is_file():
        files = [path]
    else:
        files = place.find("ROVER-IG/*.parquet", "**/ROVER-IG/*.parquet", "*.parquet", "data/*.parquet")
    items: list[Item] = []
    pictures: dict[str, ImagePlace] = {}
    notes = parquet.SkippedRows()
    for file in files:
        labels = _read_class_labels(file)
        for number, fields in enumerate(table_rows(file, _Row.list_columns())):
            try:
                items.append(_make_item(file, number, len(items), fields, labels, pictures))
            except RowError as problem:
                notes.add(file, number, problem)
    if not items:
        raise dataset_error(path, "no task", "tasks of ROVER", f"Download {REPOSITORY} and name its folder.")
    return Tasks("ROVER", place.folder, items, pictures, notes.bad)


def _make_item(
    file: Path,
    number: int,
    index: int,
    fields: Mapping[str, Any],
    labels: Sequence[str],
    pictures: dict[str, ImagePlace],
) -> Item:
    row = _Row.read(fields)
    task, dimension = row.id, row.dimension
    if "/" in task or "\\" in task or task.startswith("."):
        raise RowError("id", f"{task[:60]!r}, which is no name of a file")
    names = parquet.list_image_names(row.image)
    targets = parquet.list_image_names(row.target_image)
    if isinstance(dimension, int):
        dimension = labels[dimension] if 0 <= dimension < len(labels) else ""
    texts = {
        name: value if isinstance(value := fields.get(name), str) else ""
        for name in ("reasoning_type", "keywords", "target_description")
    }
    place = EvaluationSample(task, b"", b"", dimension=dimension, reasoning_type=texts["reasoning_type"]).place
    pictures[names[0]] = ImagePlace(file, number, "image")
    if targets:
        pictures[targets[0]] = ImagePlace(file, number, "target_image")
    return make_item(
        f"rover-{task}",
        benchmark="ROVER",
        task=place[0] or "unknown",
        question_type="image",
        question=row.prompt,
        answer="",
        images=names[:1],
        source=place[0] or "unknown",
        scene_id=task,
        category=place[1],
        index=index,
        evidence={
            "id": task,
            **texts,
            "dimension": place[0],
            "reasoning_type": place[1],
            "target_image": targets[0] if targets else "",
        },
    )


def _read_class_labels(file: Path) -> list[str]:
    """Names of the class label `dimension` in the file's metadata; empty if the column is text."""
    with shards.open_parquet(file) as opened:
        metadata = opened.schema_arrow.metadata or {}
    try:
        features = parse_json(metadata.get(b"huggingface", b"{}"))["info"]["features"]
        return [str(name) for name in features["dimension"]["names"]]
    except (ValueError, KeyError, TypeError):
        return []
