"""The layout of the paper's table of VGBench (`docs/protocols.md`)."""

from __future__ import annotations

from collections.abc import Callable

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

    def is_of_column(entry: Entry) -> bool:
        if entry.source.casefold() != "vgbench":
            return False
        kinds = (kind for task in tasks.values() if task.paper_column == head for kind in task.category_origin.values())
        return entry.origin.casefold() in kinds

    return is_of_column


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
