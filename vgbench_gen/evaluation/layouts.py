"""Which columns the published tables have, and which questions stand in each.

Rules: `docs/protocols.md#columns-of-the-tables`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from vgbench_gen.core.types import QUESTION_TYPES
from vgbench_gen.evaluation.board import Board, Entry
from vgbench_gen.evaluation.scoring import rules_of
from vgbench_gen.tasks.base import tasks

How = Literal["micro", "macro", "pairs", "flips"]


@dataclass(frozen=True, slots=True)
class Column:
    """One column: its head and the questions it holds.

    how: "micro" pools questions; "macro" averages the means of `part`; "pairs" counts pairs with both halves right;
    "flips" a question and its mirrored twin.
    """

    head: str
    wanted: Callable[[Entry], bool]
    how: How = "micro"
    part: Callable[[Entry], str] = lambda entry: entry.origin


@dataclass(frozen=True, slots=True)
class Layout:
    """One table. told: what a reader must know of it. wanted: whose questions it is about."""

    key: str
    title: str
    told: str
    columns: tuple[Column, ...]
    wanted: Callable[[Entry], bool]

    def fits(self, board: Board) -> bool:
        """Whether the board has questions for it."""
        return any(map(self.wanted, board.questions))


# In the order of the paper's Table 1; a task says in which of these columns it stands.
_VGBENCH = ("Homo.", "Pose-Est.", "Camera", "3D-Recon.", "Distance", "Depth", "Tracking", "Obj-Pos.")
_CATEGORIES = (
    ("Count.", "Counting"),
    ("Obj-Loc.", "Object Localization"),
    ("Pos-Rel.", "3D Positional Relation"),
    ("Dist.", "Depth and Distance"),
    ("Obj-Prop.", "Object Properties"),
    ("Cam.&IT.", "Camera and Image Transformation"),
    ("Tracking", "Point and Object Tracking"),
    ("Others", "Others"),
)


def _of(*sources: str) -> Callable[[Entry], bool]:
    wanted = {source.casefold() for source in sources}
    return lambda entry: entry.source.casefold() in wanted


def _began(sources: tuple[str, ...], beginnings: tuple[str, ...]) -> Callable[[Entry], bool]:
    of = _of(*sources)
    lower = tuple(one.casefold() for one in beginnings)
    return lambda entry: of(entry) and entry.origin.casefold().startswith(lower)


def _in_paper_column(head: str) -> Callable[[Entry], bool]:
    """Rows of VGBench whose kind, by `category_origin`, is one that a task of this column asks.

    Built and published rows share these words; the tasks of published rows have no name.
    """

    def is_of_column(entry: Entry) -> bool:
        if entry.source.casefold() != "vgbench":
            return False
        kinds = (kind for task in tasks.values() if task.paper_column == head for kind in task.category_origin.values())
        return entry.origin.casefold() in kinds

    return is_of_column


def _of_task(source: str, task: str) -> Callable[[Entry], bool]:
    of = _of(source)
    return lambda entry: of(entry) and entry.task == task


# In the order of its paper's table.
_MMSI = (
    ("Cam.-Cam.", "positional_cam_cam"), ("Obj.-Obj.", "positional_obj_obj"), ("Reg.-Reg.", "positional_reg_reg"),
    ("Cam.-Obj.", "positional_cam_obj"), ("Obj.-Reg.", "positional_obj_reg"), ("Cam.-Reg.", "positional_cam_reg"),
    ("Meas.", "attribute_meas"), ("Appr.", "attribute_appr"), ("Motion Cam.", "motion_cam"),
    ("Motion Obj.", "motion_obj"), ("MSR", "msr"),
)  # fmt: skip


def _source_table(key: str, title: str, told: str, sources: tuple[str, ...], parts: Mapping[str, tuple[str, ...]],
                  overall: tuple[Column, ...] = ()) -> Layout:  # fmt: skip
    """A source by its own parts: {head: beginnings of category_origin}."""
    of = _of(*sources)
    columns = (*(overall or (Column("Overall", of),)), *(Column(h, _began(sources, b)) for h, b in parts.items()))
    return Layout(key, title, told, columns, of)


_VSI = ("VSI-Bench", "VSI-Bench_8")
_VSI_TASKS = {
    "Obj. Count": ("object_counting",),
    "Abs. Dist.": ("object_abs_distance",),
    "Obj. Size": ("object_size_estimation",),
    "Room Size": ("room_size_estimation",),
    "Rel. Dist.": ("object_rel_distance",),
    "Rel. Dir.": ("object_rel_direction",),
    "Route Plan": ("route_planning",),
    "Appr. Order": ("obj_appearance_order",),
}


def vsi_task(entry: Entry) -> str:
    """One of VSI-Bench's eight tasks; the three difficulties of directions are one."""
    return next((head for head, begins in _VSI_TASKS.items() if entry.origin.startswith(begins)), entry.origin)


_is_vgbench = _of("VGBench")
_is_mmvp, _is_3dsr = _of("MMVP"), _of("3DSRBench")
VGBENCH = Layout(
    "vgbench",
    "VGBench (layout of Table 1)",
    "Overall pools all questions.",
    (
        Column("Overall", _is_vgbench),
        *(Column(head, _in_paper_column(head)) for head in _VGBENCH),
    ),
    _is_vgbench,
)


def _in_category(name: str) -> Callable[[Entry], bool]:
    return lambda entry: entry.category == name


SPATIALSCORE = Layout(
    "spatialscore",
    "SpatialScore categories (layout of Tables 2 and 3)",
    "Overall pools all questions.",
    (Column("Overall", lambda entry: True), *(Column(head, _in_category(name)) for head, name in _CATEGORIES)),
    lambda entry: any(entry.category == name for _, name in _CATEGORIES),
)
SOURCES = (
    _source_table("cvbench", "CV-Bench", "Overall pools all questions.", ("cvbench", "CV-Bench"),
                  {"2D Count": ("count",), "2D Relation": ("relation",), "3D Depth": ("depth",),
                   "3D Distance": ("distance",)}),
    _source_table("mmiu", "MMIU", "Overall pools all questions.", ("MMIU", "MMIU-Benchmark"),
                  {"Point Tracking": ("point_tracking",), "3D Depth": ("threed_depth",),
                   "3D Det.": ("threed_object_det",), "3D Tracking": ("threed_object_track",),
                   "3D Pose": ("threed_pose",), "Homography": ("homography",),
                   "Transformation": ("image_spatial",), "Visual Corr.": ("visual_corr",),
                   "Grounded Reas.": ("visually_grounded",), "Multi-view": ("multiview_reasoning",
                                                                            "multi_view", "multi-view")}),
    _source_table("blink", "BLINK", "Overall pools all questions; Macro averages the tasks, as BLINK itself does.",
                  ("BLINK",),
                  {"Counting": ("counting",), "Localization": ("object_localization",),
                   "Rel. Depth": ("relative_depth",), "Spatial Rel.": ("spatial_relation",),
                   "Visual Corr.": ("visual_correspondence",), "Multi-view": ("multi-view", "multi_view")},
                  (Column("Overall", _of("BLINK")), Column("Macro", _of("BLINK"), "macro"))),
    _source_table("3dsrbench", "3DSRBench", "Overall pools all questions; Flip counts a question and its mirror image "
                  "as one, right if both are.", ("3DSRBench",),
                  {"Height": ("height",), "Location": ("location",), "Orientation": ("orientation",),
                   "Multi-object": ("multi_object",)},
                  (Column("Overall", _is_3dsr), Column("Flip", _is_3dsr, "flips"))),
    _source_table("vsi", "VSI-Bench", "Overall averages the eight tasks (direction is one of them); questions of "
                  "VSI-Bench itself by mean relative accuracy, inside SpatialScore by delta = 2, inclusive.", _VSI,
                  _VSI_TASKS, (Column("Overall (macro)", _of(*_VSI), "macro", vsi_task),)),
    Layout("mmsi", "MMSI-Bench", "Overall pools all questions, as MMSI-Bench's own average does.", (
        Column("Overall", _of("MMSI-Bench")), *(Column(head, _of_task("MMSI-Bench", task)) for head, task in _MMSI)),
        _of("MMSI-Bench")),
    Layout("mmvp", "MMVP", "Pairs: both questions of a pair right, as MMVP itself counts; Samples: as inside "
           "SpatialScore.", (Column("Pairs", _is_mmvp, "pairs"), Column("Samples", _is_mmvp)), _is_mmvp),
    Layout("others", "Other sources", "Each by its own metric.", tuple(
        Column(head, _of(*names)) for head, names in {
            "RealWorldQA": ("RealWorldQA",), "VSR ZeroShot": ("VSR-ZeroShot",), "VSR Random": ("VSR-Random",),
            "SpatialSense": ("SpatialSense",), "SpatialBench": ("SpatialBench",),
            "QSpatial Plus": ("QSpatialBench-Plus",), "QSpatial ScanNet": ("QSpatialBench-ScanNet",)}.items()),
        _of("RealWorldQA", "VSR-ZeroShot", "VSR-Random", "SpatialSense", "SpatialBench", "QSpatialBench-Plus",
            "QSpatialBench-ScanNet")),
)  # fmt: skip


def paper_layouts(board: Board) -> list[Layout]:
    """The published tables that the board has questions for.

    Categories are a table of their own only where there is more than VGBench, whose columns say more.
    """
    found = [VGBENCH] if VGBENCH.fits(board) else []
    if any(not _is_vgbench(entry) for entry in board.questions) and SPATIALSCORE.fits(board):
        found.append(SPATIALSCORE)
    return found + [layout for layout in SOURCES if layout.fits(board)]


def breakdown(board: Board, key: str, title: str, told: str, part: Callable[[Entry], str],
              order: Sequence[str] = ()) -> Layout | None:  # fmt: skip
    """A table with a column per value of a property; None where all questions have the same or none."""
    names = sorted({part(entry) for entry in board.questions} - {""})
    if len(names) < 2:
        return None
    names.sort(key=lambda name: (list(order).index(name) if name in order else len(order), name))

    def having(name: str) -> Callable[[Entry], bool]:
        return lambda entry: part(entry) == name

    columns = tuple(Column(name.replace("_", " "), having(name)) for name in names)
    return Layout(key, title, told, columns, lambda entry: bool(part(entry)))


def breakdowns(board: Board) -> list[Layout]:
    """Tables by task, form, difficulty, scans and data set, where these differ."""
    wanted = (
        breakdown(board, "task", "By task", "", lambda e: e.task),
        breakdown(board, "form", "By form of question", "", lambda e: e.form, QUESTION_TYPES),
        breakdown(board, "difficulty", "By difficulty", "Terciles of the smallest margin over the required one, "
                  "within the data set.", lambda e: "" if rules_of(e.source).own_difficulty else e.difficulty,
                  ("easy", "medium", "hard")),
        breakdown(board, "scans", "By source of the scans", "", lambda e: e.scans),
        breakdown(board, "source", "By benchmark", "", lambda e: e.source),
        breakdown(board, "dataset", "By data set", "", lambda e: e.dataset),
    )  # fmt: skip
    return [layout for layout in wanted if layout is not None]


def pair_name(entry: Entry) -> str:
    """The pair an item of MMVP is in: numbered from 1, two and two."""
    try:
        return f"{entry.dataset}/{(int(entry.origin_id) + 1) // 2}"
    except ValueError:
        return f"{entry.dataset}/{entry.origin_id}"


def flip_name(entry: Entry) -> str:
    """The id of a 3DSRBench question without the mark of its mirror image."""
    return f"{entry.dataset}/{entry.origin_id.replace('-flip', '')}"
