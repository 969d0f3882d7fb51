"""The layouts of SpatialScore's tables, and of those of the benchmarks that it was assembled from."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from vgbench_gen.evaluation.board import Entry
from vgbench_gen.evaluation.layouts import LayoutColumn, TableLayout, of_origin, of_source

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


def _make_source_table(order: int, key: str, title: str, told: str, sources: tuple[str, ...],
                  parts: Mapping[str, tuple[str, ...]],
                  overall: tuple[LayoutColumn, ...] = ()) -> TableLayout:  # fmt: skip
    """A source by its own parts: {head: beginnings of category_origin}."""
    of = of_source(*sources)
    columns = (
        *(overall or (LayoutColumn("Overall", of),)),
        *(LayoutColumn(h, of_origin(sources, b)) for h, b in parts.items()),
    )
    return TableLayout(key, title, told, columns, of, order)


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


def find_vsi_task(entry: Entry) -> str:
    """One of VSI-Bench's eight tasks; the three difficulties of directions are one."""
    return next((head for head, begins in _VSI_TASKS.items() if entry.origin.startswith(begins)), entry.origin)


_is_vgbench, _is_mmvp, _is_3dsr = of_source("VGBench"), of_source("MMVP"), of_source("3DSRBench")


def _select_category(name: str) -> Callable[[Entry], bool]:
    return lambda entry: entry.category == name


SPATIALSCORE = TableLayout(
    "spatialscore",
    "SpatialScore categories (layout of Tables 2 and 3)",
    "Overall pools all questions.",
    (
        LayoutColumn("Overall", lambda entry: True),
        *(LayoutColumn(head, _select_category(name)) for head, name in _CATEGORIES),
    ),
    lambda entry: any(entry.category == name for _, name in _CATEGORIES),
    order=10,
    needs=lambda entry: not _is_vgbench(entry),  # our own table says more of our own questions
)
SOURCES = (
    _make_source_table(20, "cvbench", "CV-Bench", "Overall pools all questions.", ("cvbench", "CV-Bench"),
                  {"2D Count": ("count",), "2D Relation": ("relation",), "3D Depth": ("depth",),
                   "3D Distance": ("distance",)}),
    _make_source_table(21, "mmiu", "MMIU", "Overall pools all questions.", ("MMIU", "MMIU-Benchmark"),
                  {"Point Tracking": ("point_tracking",), "3D Depth": ("threed_depth",),
                   "3D Det.": ("threed_object_det",), "3D Tracking": ("threed_object_track",),
                   "3D Pose": ("threed_pose",), "Homography": ("homography",),
                   "Transformation": ("image_spatial",), "Visual Corr.": ("visual_corr",),
                   "Grounded Reas.": ("visually_grounded",), "Multi-view": ("multiview_reasoning",
                                                                            "multi_view", "multi-view")}),
    _make_source_table(22, "blink", "BLINK",
                  "Overall pools all questions; Macro averages the tasks, as BLINK itself does.",
                  ("BLINK",),
                  {"Counting": ("counting",), "Localization": ("object_localization",),
                   "Rel. Depth": ("relative_depth",), "Spatial Rel.": ("spatial_relation",),
                   "Visual Corr.": ("visual_correspondence",), "Multi-view": ("multi-view", "multi_view")},
                  (LayoutColumn("Overall", of_source("BLINK")), LayoutColumn("Macro", of_source("BLINK"), "macro"))),
    _make_source_table(23, "3dsrbench", "3DSRBench",
                  "Overall pools all questions; Flip counts a question and its mirror "
                  "image as one, right if both are.", ("3DSRBench",),
                  {"Height": ("height",), "Location": ("location",), "Orientation": ("orientation",),
                   "Multi-object": ("multi_object",)},
                  (LayoutColumn("Overall", _is_3dsr), LayoutColumn("Flip", _is_3dsr, "flips"))),
    _make_source_table(24, "vsi", "VSI-Bench",
                  "Overall averages the eight tasks (direction is one of them); questions of "
                  "VSI-Bench itself by mean relative accuracy, inside SpatialScore by delta = 2, inclusive.", _VSI,
                  _VSI_TASKS, (LayoutColumn("Overall (macro)", of_source(*_VSI), "macro", find_vsi_task),)),
    TableLayout("mmvp", "MMVP", "Pairs: both questions of a pair right, as MMVP itself counts; Samples: as inside "
           "SpatialScore.", (LayoutColumn("Pairs", _is_mmvp, "pairs"), LayoutColumn("Samples", _is_mmvp)), _is_mmvp,
           order=26),
    TableLayout("others", "Other sources", "Each by its own metric.", tuple(
        LayoutColumn(head, of_source(*names)) for head, names in {
            "RealWorldQA": ("RealWorldQA",), "VSR ZeroShot": ("VSR-ZeroShot",), "VSR Random": ("VSR-Random",),
            "SpatialSense": ("SpatialSense",), "SpatialBench": ("SpatialBench",),
            "QSpatial Plus": ("QSpatialBench-Plus",), "QSpatial ScanNet": ("QSpatialBench-ScanNet",)}.items()),
        of_source("RealWorldQA", "VSR-ZeroShot", "VSR-Random", "SpatialSense", "SpatialBench", "QSpatialBench-Plus",
            "QSpatialBench-ScanNet"), order=27),
)  # fmt: skip
