"""What loaders say about their datasets, by the name that stands in the column `source` of a row."""

from __future__ import annotations

from vgbench_gen.scenes.base import DatasetInfo, loaders


def info_of(source: str) -> DatasetInfo | None:
    """What the loader of a source says about it; None where no installed loader has that name."""
    return loaders[source].info if source in loaders.names() else None


def title_of(source: str) -> str:
    """The name of a source for people; the source itself where no loader knows it."""
    info = info_of(source)
    return source if info is None else info.title
