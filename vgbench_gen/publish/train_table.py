"""Training rows as one parquet file that holds its images, for trainers that take bytes."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any

from vgbench_gen.publish.export import IMAGES, ExportRow, Job
from vgbench_gen.publish.training_rows import describe_row
from vgbench_gen.store.columns import Column
from vgbench_gen.store.schema import RecordSchema
from vgbench_gen.store.shards import write_rows

# In a folder of its own, from which `datasets` loads it anew when it has changed. Beside other files it may take these
# for data, and with a list of data files in README.md it loads an older copy of a folder of the same name. A file name
# with "test" or "val" in it would be another split.
TABLE = "data/train.parquet"
_DESCRIBED = ("id", "task", "question_type", "scene", "split", "licence")
_IMAGES = Column("images", "images", "")


def write_table(
    job: Job, template: str, columns: Sequence[Column], make_record: Callable[[ExportRow], Mapping[str, Any]]
) -> None:
    """Write every row to `TABLE`, with the bytes of its images, and beside it the reward and a README.

    Args:
        job: the export; the image files that it laid down are removed again.
        template: the README's folder in `templates/exports/`.
        columns: columns of this trainer, to which `images` and those of `describe_row` are added.
        make_record: their values in a row.
    """
    most_images = 0

    def make_rows() -> Iterator[dict[str, Any]]:
        nonlocal most_images
        for row in job.rows():
            most_images = max(most_images, len(row.images))
            images = [{"bytes": (job.folder / at).read_bytes(), "path": PurePosixPath(at).name} for at in row.images]
            yield {**make_record(row), "images": images, **describe_row(row)}

    table = RecordSchema(
        "training rows", (*columns, _IMAGES, *(Column(name, "string", "") for name in _DESCRIBED)), dict, dict
    )
    write_rows(job.folder / TABLE, make_rows(), table)
    shutil.rmtree(job.folder / IMAGES, ignore_errors=True)
    job.scorer()
    job.template("rewards/vgbench_reward.py", "vgbench_reward.py")
    limit = job.train.max_pixels
    pixels = f" Limit it to {limit} pixels in the model's `preprocessor_config.json`." if limit else ""
    job.template(f"{template}/README.md", "README.md", images=str(most_images), pixels=pixels)
