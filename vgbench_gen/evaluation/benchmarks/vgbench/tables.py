"""The layout of the paper's table of VGBench (`docs/protocols.md`), and published categories beside our kinds."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path

from vgbench_gen.core.config import Config, parse_config, read_toml
from vgbench_gen.evaluation.board import Entry
from vgbench_gen.evaluation.layouts import LayoutColumn, TableLayout, of_source
from vgbench_gen.tasks.base import tasks

# In the order of the paper's Table 1; a task says in which of these columns it stands.
_COLUMNS = ("Homo.", "Pose-Est.", "Camera", "3D-Recon.", "Distance", "Depth", "Tracking", "Obj-Pos.")
_is_vgbench = of_source("VGBench")


def _select_paper_column(head: str) -> Callable[[Entry], bool]:
    """Rows of VGBench whose kind, by `category_origin`, is one that a task of this column asks.

    Built and published rows share these words; the tasks of published rows have no name.
    """
    return lambda entry: _is_vgbench(entry) and entry.origin.casefold() in _list_kinds(head)


@cache
def _list_kinds(head: str) -> frozenset[str]:
    return frozenset(
        kind for task in tasks.values() if task.paper_column == head for kind in task.category_origin.values()
    )


VGBENCH = TableLayout(
    "vgbench",
    "VGBench (layout of Table 1)",
    "Overall pools all questions.",
    (
        LayoutColumn("Overall", _is_vgbench),
        *(LayoutColumn(head, _select_paper_column(head)) for head in _COLUMNS),
    ),
    _is_vgbench,
    order=0,
)


class Category(Config):
    """A category of a published benchmark."""

    items: int = 0
    """How many questions of the benchmark's test set it holds; 0 where that is not known."""
    corpus: int = 0
    """The same for the training set."""
    kinds: tuple[str, ...] = ()
    """Our kinds that stand for it."""


class PublishedCategories(Config):
    """The file `published.toml`."""

    benchmarks: dict[str, dict[str, Category]]


@cache
def read_published() -> Mapping[str, Mapping[str, Category]]:
    """Benchmark -> name of a category -> the category."""
    path = Path(__file__).with_name("published.toml")
    return parse_config({"benchmarks": read_toml(path)}, PublishedCategories, str(path)).benchmarks


def make_counterparts() -> tuple[TableLayout, ...]:
    """A layout for each published benchmark, for boards that hold its questions beside ours: each of its categories,
    and then our kinds that stand for it."""
    return tuple(_make_counterpart(name, categories) for name, categories in read_published().items())


def _make_counterpart(name: str, categories: Mapping[str, Category]) -> TableLayout:
    columns: list[LayoutColumn] = []
    for head, category in categories.items():
        if category.kinds:
            told = head.replace("_", " ")
            columns.append(LayoutColumn(told, _select_published(name, head)))
            columns.append(LayoutColumn(f"ours: {told}", _select_kinds(category.kinds)))
    return TableLayout(
        f"ours-{name.casefold().replace(' ', '-')}",
        f"{name} beside our kinds",
        "Each category before our kinds for it; they share a row where they were asked with one prompt set. Unreadable "
        "is of our questions.",
        tuple(columns),
        _select_any(columns[1::2]),
        needs=_select_any(columns[::2]),
    )


def _select_published(name: str, category: str) -> Callable[[Entry], bool]:
    """Rows of a benchmark whose kind begins so; VSI-Bench's directions are of three difficulties."""
    name, category = name.casefold(), category.casefold()
    return lambda entry: (
        entry.source.casefold().startswith(name)
        and (entry.task.casefold().startswith(category) or entry.origin.casefold().startswith(category))
    )


def _select_kinds(kinds: Sequence[str]) -> Callable[[Entry], bool]:
    return lambda entry: _is_vgbench(entry) and entry.task in kinds


def _select_any(columns: Sequence[LayoutColumn]) -> Callable[[Entry], bool]:
    return lambda entry: any(column.wanted(entry) for column in columns)
