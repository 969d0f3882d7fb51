"""Datasets as a notebook takes them: filtered, as a table, and each question as a model is asked it."""

from __future__ import annotations

import base64
import re
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import fields
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, overload

from vgbench_gen.core.errors import ConfigError
from vgbench_gen.core.registry import make_unknown_error
from vgbench_gen.core.types import Item
from vgbench_gen.evaluation.base import benchmarks
from vgbench_gen.evaluation.options import AskOptions
from vgbench_gen.store.dataset import Dataset, find_id
from vgbench_gen.store.dataset import load as open_dataset
from vgbench_gen.store.files import dataset_error

if TYPE_CHECKING:
    from vgbench_gen.backends.base import Request

_HUB_NAME = re.compile(r"[\w.-]+/[\w.-]+")
_NAMES = tuple(field.name for field in fields(Item))
_HEAVY = ("convention", "distractors", "evidence")  # what takes longest to read, and is no column of a table
COLUMNS = tuple(name for name in _NAMES if name not in _HEAVY)
_LISTED = 12  # values that a message names
_JPEG = b"\xff\xd8\xff"


def load(path: str | PathLike[str]) -> LoadedDataset:
    """Open a dataset.

    Args:
        path: `build/<name>`, its `items` folder, any folder of parquet files, or one parquet file.

    Raises:
        DatasetError: nothing there, a shard is missing, a file is damaged or holds something else.
    """
    if not Path(path).exists() and _HUB_NAME.fullmatch(name := str(path)):
        remedy = f"Name a folder that `vgbench build` made; a dataset of the Hub comes by `vgbench pull {name}`."
        raise dataset_error(path, "no such folder", "a built dataset", remedy)
    dataset = open_dataset(path)
    return LoadedDataset(Path(path), dataset, range(len(dataset)))


class LoadedItem(Item):
    """A question that knows its images."""

    __slots__ = ("_dataset",)
    _dataset: Dataset

    @classmethod
    def of(cls, item: Item, dataset: Dataset) -> Self:
        """The question with the dataset that holds its images."""
        found = cls(**{name: getattr(item, name) for name in _NAMES})
        object.__setattr__(found, "_dataset", dataset)
        return found

    @property
    def prompt(self) -> str:
        """The words that `vgbench eval` sends about the question where no other prompt set is named."""
        return self._ask().messages[-1].parts[-1].text  # type: ignore[union-attr]  # words come last

    @property
    def messages(self) -> list[dict[str, Any]]:
        """The request that `vgbench eval` sends, in the form of OpenAI's chat completions: images as data URLs."""
        request = self._ask()
        found: list[dict[str, Any]] = []
        if request.settings.system:
            found.append({"role": "system", "content": request.settings.system})
        for message in request.messages:
            found.append({"role": message.role, "content": [_write_part(part) for part in message.parts]})
        return found

    def _ask(self) -> Request:
        from vgbench_gen.evaluation.prompting import make_asked

        options = AskOptions(prompt_set=benchmarks["vgbench"].prompt_set)
        return make_asked(self, options.settings(""), options).request(self._dataset.image_bytes)


def _write_part(part: Any) -> dict[str, Any]:
    text = getattr(part, "text", None)
    if text is not None:
        return {"type": "text", "text": text}
    kind = "jpeg" if part.source.startswith(_JPEG) else "png"
    url = f"data:image/{kind};base64,{base64.b64encode(part.source).decode()}"
    return {"type": "image_url", "image_url": {"url": url}}


class LoadedDataset(Sequence[LoadedItem]):
    """Questions of a dataset, or some of them; read when they are asked for.

    `dataset[0]` is the first of them, `dataset["3d5be7"]` that whose id begins so. `images(item)` gives the images of a
    question in the order shown, as Pillow's, and `image_bytes(item, k)` the encoded k-th one; both take ids too.

    Args:
        path: as it was named.
        dataset: the files.
        rows: places of the questions in the dataset.
    """

    def __init__(self, path: Path, dataset: Dataset, rows: Sequence[int]) -> None:
        self.path, self.rows, self._dataset = path, rows, dataset
        self.images, self.image_bytes = dataset.images, dataset.image_bytes

    def __len__(self) -> int:
        return len(self.rows)

    def __repr__(self) -> str:
        tasks = Counter(item.task for item in self._read_light())
        told = ", ".join(f"{task} {count}" for task, count in sorted(tasks.items()))
        return f"<Dataset {self.path}: {len(self):,} questions ({told})>" if told else f"<Dataset {self.path}: empty>"

    @overload
    def __getitem__(self, index: int | str) -> LoadedItem: ...
    @overload
    def __getitem__(self, index: slice) -> LoadedDataset: ...
    def __getitem__(self, index: int | str | slice) -> LoadedItem | LoadedDataset:
        if isinstance(index, slice):
            return LoadedDataset(self.path, self._dataset, self.rows[index])
        if isinstance(index, str):
            name = index if self.is_whole else find_id(self.ids(), index, str(self.path))
            return LoadedItem.of(self._dataset.by_id(name), self._dataset)
        return LoadedItem.of(self._dataset[self.rows[index]], self._dataset)

    @property
    def is_whole(self) -> bool:
        """Whether no question was left out."""
        return len(self.rows) == len(self._dataset)

    def ids(self) -> list[str]:
        """All ids in order."""
        known = self._dataset.ids()
        return [known[row] for row in self.rows]

    def filter(self, **wanted: Any) -> LoadedDataset:
        """The questions whose columns have these values; of several values of one column, any.

        Such as `filter(task="relative_pose", difficulty=["medium", "hard"])`.

        Raises:
            UnknownNameError: there is no such column. ConfigError: no question of the dataset has such a value.
        """
        for name in wanted:
            if name not in COLUMNS:
                raise make_unknown_error("column", name, COLUMNS)
        many = {
            name: value if isinstance(value, Collection) and not isinstance(value, str) else (value,)
            for name, value in wanted.items()
        }
        items = list(self._dataset.without_evidence())
        for name, values in many.items():
            for value in values if items else ():
                if not any(getattr(item, name) == value for item in items):
                    known = sorted({repr(getattr(item, name)) for item in items})
                    some = ", ".join(known[:_LISTED]) + f" and {len(known) - _LISTED} more" * (len(known) > _LISTED)
                    raise ConfigError(f"filter: found no question with {name} {value!r}; expected some of {some}.")
        kept = [row for row in self.rows if all(getattr(items[row], name) in some for name, some in many.items())]
        return LoadedDataset(self.path, self._dataset, kept)

    def to_pandas(self) -> Any:
        """A `pandas.DataFrame`, a row per question; of the columns all but evidence, convention and distractors."""
        import pandas as pd

        records = ([getattr(item, name) for name in COLUMNS] for item in self._read_light())
        return pd.DataFrame(records, columns=list(COLUMNS))

    def _read_light(self) -> list[Item]:
        """The questions without evidence, convention and distractors, in the order of `rows`."""
        wanted = set(self.rows)
        found = {row: item for row, item in enumerate(self._dataset.without_evidence()) if row in wanted}
        return [found[row] for row in self.rows]
