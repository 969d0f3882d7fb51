"""The layout of MMSI-Bench's own table (`docs/protocols.md#mmsi-bench`)."""

from __future__ import annotations

from collections.abc import Callable

from vgbench_gen.evaluation.board import Entry
from vgbench_gen.evaluation.layouts import LayoutColumn, TableLayout, of_source

# In the order of its paper's table.
_COLUMNS = (
    ("Cam.-Cam.", "positional_cam_cam"), ("Obj.-Obj.", "positional_obj_obj"), ("Reg.-Reg.", "positional_reg_reg"),
    ("Cam.-Obj.", "positional_cam_obj"), ("Obj.-Reg.", "positional_obj_reg"), ("Cam.-Reg.", "positional_cam_reg"),
    ("Meas.", "attribute_meas"), ("Appr.", "attribute_appr"), ("Motion Cam.", "motion_cam"),
    ("Motion Obj.", "motion_obj"), ("MSR", "msr"),
)  # fmt: skip


_is_mmsi = of_source("MMSI-Bench")


def _select_task(task: str) -> Callable[[Entry], bool]:
    return lambda entry: _is_mmsi(entry) and entry.task == task


MMSI = TableLayout(
    "mmsi",
    "MMSI-Bench",
    "Overall pools all questions, as MMSI-Bench's own average does.",
    (LayoutColumn("Overall", _is_mmsi), *(LayoutColumn(head, _select_task(task)) for head, task in _COLUMNS)),
    _is_mmsi,
    order=25,
)
