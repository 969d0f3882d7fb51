"""Objects that may be asked about in a frame: projected in bulk, looked for in the depth image, gated by `ObjectGates`
(`docs/validity.md#objects`)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np

from vgbench_gen.core.gates import Gates, ObjectGates
from vgbench_gen.core.types import BoolArray, FloatArray, IntArray, OrientedBox
from vgbench_gen.geometry import boxes, cameras, projection
from vgbench_gen.geometry.cameras import Rect
from vgbench_gen.geometry.poses import transform
from vgbench_gen.scenes.view import SceneView, ViewFrame
from vgbench_gen.tasks._object_evidence import ObjectEvidence
from vgbench_gen.tasks._object_extent import find_extent_problem
from vgbench_gen.tasks.presentation import Margins

# Parts of the building: their annotated boxes say where a scan ended, not how large a thing is, and everything else
# stands inside their rectangles.
STRUCTURAL = frozenset(
    [
        *("wall", "floor", "ceiling", "roof", "room", "structure", "pillar", "column", "beam", "stairs", "staircase"),
        *("door frame", "doorframe", "window frame", "windowframe", "window sill", "windowsill", "baseboard"),
        *("skirting", "skirting board", "molding", "moulding"),
    ]
)
# Bookkeeping words, for which nobody checked what the box encloses, and mirrors, whose depth is that of other things.
# All of them still make a rectangle ambiguous.
GENERIC = frozenset(
    [
        *("", "object", "objects", "thing", "item", "items", "stuff", "misc", "other", "others", "clutter", "remove"),
        *("unknown", "undefined", "unlabeled", "unlabelled", "unannotated", "void", "otherfurniture", "otherprop"),
        *("otherstructure", "split", "mirror", "reflection", "mirror reflection"),
    ]
)
# Things that go on where their box ends: one annotator boxes a door with its frame or a whole run of cabinets, the next
# a leaf or one unit, and no reader of a picture can tell which. All of them still make a rectangle ambiguous.
UNBOUNDED = frozenset(
    [
        *("door", "doors", "sliding door", "cabinet door", "cabinet doors", "closet door", "closet doors"),
        *("shower door", "shower doors", "window", "windows", "cabinet", "cabinets", "kitchen cabinet"),
        *("kitchen cabinets", "bathroom cabinet", "wall cabinet", "kitchen unit", "built-in cabinet", "closet"),
        *("closets", "counter", "kitchen counter", "bathroom counter", "countertop", "counter top", "worktop"),
        *("curtain", "curtains", "shower curtain", "blind", "blinds", "drapes", "partition", "divider", "railing"),
        *("handrail", "rail", "fence", "pipe", "pipes", "cable", "cables", "wire", "wires", "panel", "wall panel"),
        *("backsplash", "ledge", "shower", "shower wall", "shower walls"),
    ]
)


def is_structural(label: str) -> bool:
    """Whether a label (lower case) names a part of the building."""
    return label.replace("_", " ") in STRUCTURAL


def is_bounded(label: str) -> bool:
    """Whether things of a label (lower case) end where their box ends."""
    return label.replace("_", " ") not in UNBOUNDED


def is_thing(label: str) -> bool:
    """Whether a label (lower case) names a thing and no part of the building."""
    return not is_structural(label) and label not in GENERIC


# Hidden to this degree, a thing cannot be taken for the one that is framed.
_HIDDEN_BELOW = 0.1
# Depth pixels looked at per object: decides a visible fraction to about 1 %.
_SIGHT_PIXELS = 6000
# Stray pixels left out at either end when the visible pixels are boxed.
_STRAY = 0.01
_BORDER_PX = 1  # so that the outline around the rectangle stays in the image

Dropped = tuple[str, str, float, float]


@dataclass(frozen=True, slots=True, eq=False)
class Sight:
    """What the depth image shows of a box, counted on the depth pixels that were looked at."""

    object: int
    """Number of pixels whose ray meets the box and whose measured depth lies in it, and in no smaller box that stands
    in it."""
    occluder: int
    """Number of pixels whose ray meets the box and whose measured depth is clearly in front of it, or in a smaller
    box that stands in it."""
    behind: int
    """Number of pixels whose ray meets the box and whose measured depth is beyond it."""
    unknown: int
    """Number of pixels whose ray meets the box and whose depth is missing."""
    rect_px: Rect | None
    """Rectangle (x1, y1, x2, y2) around the object's pixels without a few stray ones, pixels of the delivered image;
    None where the object has no pixels."""
    area: float
    """Area of the object's pixels as a share of the depth image."""
    sampled: int
    """Number of all pixels looked at in the rectangle whose depth is known, whether or not their ray meets the box."""

    @property
    def visible(self) -> float:
        """Share of the object that nothing hides: the pixels in the box over those in it and in front of it; 0 where no
        pixel is in the box."""
        return self.object / max(self.object + self.occluder, 1)

    @property
    def known(self) -> float:
        """Share of the pixels on rays through the box whose depth was measured."""
        decided = self.object + self.occluder + self.behind
        return decided / max(decided + self.unknown, 1)


@dataclass(frozen=True, slots=True, eq=False)
class GatedObject:
    """An object that passed every gate in one frame."""

    instance_id: str
    label: str
    """What the scan calls the object."""
    box: OrientedBox
    """Box of the object in the frame "camera", meters."""
    world_box: OrientedBox
    """Box of the object in the frame "world" of the scan, meters."""
    rect_px: tuple[int, int, int, int]
    """Rectangle that is drawn, [x1, y1, x2, y2], whole pixels of the delivered image, ends included."""
    projected_px: Rect
    """Rectangle (x1, y1, x2, y2) around the projected corners of the box, pixels of the delivered image, not clipped to
    it."""
    visible: float
    """Share of the object that nothing hides in the depth image, 0 to 1."""
    margins: Mapping[str, float]
    """Name of a gate that was passed -> measured value over its limit, or the limit over the value where the limit is
    an upper one; at least 1."""

    def evidence(self) -> ObjectEvidence:
        """The record that a question keeps of the object."""
        return ObjectEvidence(
            instance_id=self.instance_id,
            label=self.label,
            corners_m=boxes.corners(self.box),
            visible=round(self.visible, 4),
        )

    @property
    def depth_m(self) -> float:
        """Depth of the box's centre along the viewing axis of the camera, meters."""
        return float(self.box.center_m[2])


@dataclass(frozen=True, slots=True, eq=False)
class FrameObjects:
    """The annotated objects that a frame shows, sorted by whether questions may ask about them."""

    found: tuple[GatedObject, ...]
    """Objects that passed every gate, in the order of the scan's list."""
    dropped: tuple[Dropped, ...]
    """Objects in the picture that failed a gate, each as (instance id, reason, measured value, limit)."""


_CORNERS: WeakKeyDictionary[SceneView, FloatArray] = WeakKeyDictionary()
_WITHIN: WeakKeyDictionary[SceneView, list[list[int]]] = WeakKeyDictionary()
_FOUND: WeakKeyDictionary[ViewFrame, FrameObjects] = WeakKeyDictionary()


def gate_objects(frame: ViewFrame, view: SceneView) -> FrameObjects:
    """The frame's objects that may be asked about; measured once per frame, for all tasks."""
    known = _FOUND.get(frame)
    if known is None:
        known = _FOUND[frame] = _measure(frame, view, view.gates.object)
    return known


def list_seen_objects(
    frame: ViewFrame, view: SceneView, *, visible_min: float, inside_min: float, share_min: float
) -> tuple[GatedObject, ...]:
    """The frame's objects that can be told from others in their rectangles, whether or not they are seen whole."""
    limits = {"visible_min": visible_min, "inside_min": inside_min, "share_min": share_min}
    loose = view.gates.object.model_copy(update=limits | {"rendered_to_projected_iou_min": share_min})
    return _measure(frame, view, loose, whole_only=False).found


def sort_depth_pixels(
    frame: ViewFrame, view: SceneView, box: OrientedBox, rect_px: Rect, within: Sequence[OrientedBox] = ()
) -> Sight:
    """Sort the depth pixels of a rectangle by where their ray meets a camera-frame box (slab test).

    within: camera-frame boxes of smaller things that reach into the box, whose pixels are theirs.
    """
    low = np.ceil(frame.depth_uv(np.array(rect_px[:2])))
    high = np.floor(frame.depth_uv(np.array(rect_px[2:])))
    size = np.array([frame.depth_camera.width, frame.depth_camera.height])
    low, high = np.clip(low, 0, size).astype(int), np.clip(high + 1, 0, size).astype(int)
    step = max(1, int(np.ceil(np.sqrt(max(int(np.prod(np.maximum(high - low, 0))), 1) / _SIGHT_PIXELS))))
    u, v = np.meshgrid(np.arange(low[0], high[0], step), np.arange(low[1], high[1], step))
    uv = np.stack([u.ravel(), v.ravel()], axis=-1)
    z_m = frame.depth_m[uv[:, 1], uv[:, 0]].astype(np.float64)
    rays = projection.back_project(frame.depth_camera, uv, np.ones(len(uv)))
    entry, leave = cross_box(rays, box)
    hit = (entry < leave) & (leave > 0)
    known = hit & (z_m > 0)
    tolerance = view.tolerance.of(np.where(hit, np.maximum(entry, 0), 1.0))
    inside = known & (z_m >= entry - tolerance) & (z_m <= leave + tolerance)
    front = known & (z_m < entry - 2 * tolerance)
    behind = known & (z_m > leave + tolerance)
    for other in within:
        theirs = inside & boxes.contains(other, rays * z_m[:, None], float(view.tolerance.absolute_m) / 2)
        inside, front = inside & ~theirs, front | theirs
    rect = None
    if inside.any():
        ends = np.quantile(uv[inside], [_STRAY, 1 - _STRAY], axis=0) + np.array([[-step / 2], [step / 2]])
        (x1, y1), (x2, y2) = cameras.map_pixels(frame.camera, frame.depth_camera, ends)
        rect = (float(x1), float(y1), float(x2), float(y2))
    count = int(inside.sum())
    unknown = int((hit & (z_m <= 0)).sum())
    area = count * step**2 / frame.depth_m.size
    return Sight(count, int(front.sum()), int(behind.sum()), unknown, rect, area, int((z_m > 0).sum()))


def cross_box(rays: FloatArray, box: OrientedBox) -> tuple[FloatArray, FloatArray]:
    """Along rays (N, 3) from the camera centre, in multiples of the ray: where each enters and leaves a camera-frame
    box. It misses where entry > leave."""
    directions = rays @ box.rotation
    origin = -box.center_m @ box.rotation
    with np.errstate(divide="ignore", invalid="ignore"):
        a = (-box.size_m / 2 - origin) / directions
        b = (box.size_m / 2 - origin) / directions
    # 0/0 is a ray within a face plane; it neither enters nor leaves through that slab.
    entry = np.fmax.reduce(np.fmin(a, b), axis=1)
    leave = np.fmin.reduce(np.fmax(a, b), axis=1)
    return entry, leave


def round_drawn_rect(projected_px: Rect, width: int, height: int) -> tuple[int, int, int, int] | None:
    """The projection rounded and kept a pixel inside the image, or None where nothing is left."""
    x1, x2 = (round(min(max(x, _BORDER_PX), width - 1 - _BORDER_PX)) for x in (projected_px[0], projected_px[2]))
    y1, y2 = (round(min(max(y, _BORDER_PX), height - 1 - _BORDER_PX)) for y in (projected_px[1], projected_px[3]))
    return (x1, y1, x2, y2) if x2 > x1 and y2 > y1 else None


def make_delivered_rect(rect_px: Rect, frame: ViewFrame) -> Rect:
    """A rectangle in pixels of the source image as one of the delivered image."""
    sx, sy = frame.camera.width / frame.source_size[0], frame.camera.height / frame.source_size[1]
    x1, y1, x2, y2 = rect_px
    return (x1 + 0.5) * sx - 0.5, (y1 + 0.5) * sy - 0.5, (x2 + 0.5) * sx - 0.5, (y2 + 0.5) * sy - 0.5


def _measure(frame: ViewFrame, view: SceneView, gates: ObjectGates, whole_only: bool = True) -> FrameObjects:
    if not view.objects:
        return FrameObjects((), ())
    if view not in _CORNERS:
        _CORNERS[view] = np.stack([boxes.corners(item.box) for item in view.objects])
    corners = transform(frame.camera_from_world, _CORNERS[view].reshape(-1, 3)).reshape(-1, 8, 3)
    uv_px, z_m = projection.project(frame.camera, corners)
    whole: BoolArray = np.asarray((z_m > 0).all(axis=1))
    low, high = np.nan_to_num(uv_px, nan=-1e9).min(axis=1), np.nan_to_num(uv_px, nan=1e9).max(axis=1)
    size = np.array([frame.camera.width, frame.camera.height]) - 0.5
    pictured: BoolArray = np.asarray((low < size).all(axis=1) & (high > -0.5).all(axis=1))
    pictured &= corners[..., 2].mean(axis=1) > 0
    listed = frame.listed
    rects = {i: (*low[i].tolist(), *high[i].tolist()) for i in np.flatnonzero(pictured & whole).tolist()}
    clipped = {i: boxes.clip_rect(rect, *frame.camera.size) for i, rect in rects.items()}
    found: list[GatedObject] = []
    dropped: list[Dropped] = []
    for i in np.flatnonzero(pictured).tolist():
        item = view.objects[i]
        if not is_thing(item.label):
            continue
        if not is_bounded(item.label):
            dropped.append((item.instance_id, "object_unbounded", 0.0, 1.0))
            continue
        if not whole[i]:
            dropped.append((item.instance_id, "object_around_camera", float(z_m[i].min()), 0.0))
            continue
        if listed and item.instance_id not in listed:
            dropped.append((item.instance_id, "object_not_listed", 0.0, 1.0))
            continue
        seen_px = listed[item.instance_id].rendered_px if listed else None
        box = boxes.transform_box(item.box, frame.camera_from_world, "camera")
        margins = Margins()
        problem = _find_problem(frame, view, i, box, rects[i], clipped[i], seen_px, margins, gates)
        if problem is None and item.points_m is not None and whole_only:
            problem = find_extent_problem(frame, box, clipped[i], item.box_source, view.gates.object, margins)
        if problem is None:
            problem = _find_ambiguity(frame, view, i, clipped, margins)
        rect = round_drawn_rect(rects[i], *frame.camera.size)
        if problem is None and rect is not None:
            visible = margins.ratios["visible"] * gates.visible_min
            found.append(
                GatedObject(item.instance_id, item.label, box, item.box, rect, rects[i], visible, dict(margins.ratios))
            )
        elif problem is not None:
            dropped.append((item.instance_id, *problem))
    return FrameObjects(tuple(found), tuple(dropped))


def _find_problem(
    frame: ViewFrame,
    view: SceneView,
    index: int,
    box: OrientedBox,
    rect: Rect,
    clipped: Rect,
    seen_px: Rect | None,
    margins: Margins,
    gates: ObjectGates,
) -> tuple[str, float, float] | None:
    """(reason, value, limit) of the first gate that fails, cheap ones first."""
    all_gates: Gates = view.gates
    depth, far = float(box.center_m[2]), min(gates.depth_max_m, view.far_m)
    side = float(np.sort(box.size_m)[1])
    inside = boxes.rect_area(clipped) / max(boxes.rect_area(rect), 1e-9)
    if not margins.at_least("near", depth, view.near_m):
        return "object_near", depth, view.near_m
    if not margins.at_most("far", depth, far):
        return "object_far", depth, far
    if not margins.at_least("side", side, gates.second_side_min_m):
        return "object_thin", side, gates.second_side_min_m
    if not margins.at_least("inside", inside, gates.inside_min):
        return "object_cut_off", inside, gates.inside_min
    projected = boxes.rect_area(clipped) / (frame.camera.width * frame.camera.height)
    if projected < gates.area_min:  # the visible part cannot be larger
        return "object_small", projected, gates.area_min
    within = [view.objects[other].box for other in _find_within(view)[index]]
    within = [boxes.transform_box(other, frame.camera_from_world, "camera") for other in within]
    shown = sort_depth_pixels(frame, view, box, clipped, within)
    # As for whole frames: mostly unknown depth hides occluders.
    if shown.known < all_gates.frame.depth_valid_min:
        return "object_depth_unknown", shown.known, all_gates.frame.depth_valid_min
    if not margins.at_least("visible", shown.visible, gates.visible_min):
        return "object_hidden", shown.visible, gates.visible_min
    if not margins.at_least("area", shown.area, gates.area_min):
        return "object_small", shown.area, gates.area_min
    share = shown.object / max(shown.sampled, 1)
    if not margins.at_least("share", share, gates.share_min):
        return "object_share", share, gates.share_min
    visible_rect = make_delivered_rect(seen_px, frame) if seen_px is not None else shown.rect_px
    fit = 0.0 if visible_rect is None else boxes.rect_iou(boxes.clip_rect(visible_rect, *frame.camera.size), clipped)
    if not margins.at_least("rect", fit, gates.rendered_to_projected_iou_min):
        return "object_rect_unlike", fit, gates.rendered_to_projected_iou_min
    return None


def _find_within(view: SceneView) -> list[list[int]]:
    """For each object of the scene the places of the smaller things whose boxes may reach into its box."""
    found = _WITHIN.get(view)
    if found is None:
        centres_m, sizes_m = (np.stack([getattr(o.box, name) for o in view.objects]) for name in ("center_m", "size_m"))
        reach_m, volumes_m3 = np.linalg.norm(sizes_m, axis=1) / 2, sizes_m.prod(axis=1)
        apart_m = np.linalg.norm(centres_m[:, None] - centres_m, axis=-1)
        near = (apart_m < reach_m[:, None] + reach_m) & (volumes_m3 < volumes_m3[:, None])
        near &= ~np.array([is_structural(item.label) for item in view.objects])
        found = _WITHIN[view] = [np.flatnonzero(row).tolist() for row in near]
    return found


def _find_ambiguity(
    frame: ViewFrame, view: SceneView, index: int, clipped: Mapping[int, Rect], margins: Margins
) -> tuple[str, float, float] | None:
    """Whether another annotated thing that can be seen fills nearly the same rectangle."""
    limit, worst = view.gates.object.ambiguous_rect_iou_max, 0.0
    for other, rect in clipped.items():
        if other == index or is_structural(view.objects[other].label):
            continue
        overlap = boxes.rect_iou(clipped[index], rect)
        if overlap > limit:
            box = boxes.transform_box(view.objects[other].box, frame.camera_from_world, "camera")
            if sort_depth_pixels(frame, view, box, rect).visible < _HIDDEN_BELOW:
                continue
        worst = max(worst, overlap)
    return None if margins.at_most("alone", worst, limit) else ("object_ambiguous", worst, limit)


PER_FRAME = 2
TARGETS_APART_M = 0.3  # groups on one frame need targets this far apart (docs/validity.md#repetition)
_STRATUM = 1.25  # ratio of values that share a stratum


def order_in_strata(values: Sequence[float], targets: Sequence[str], rng: np.random.Generator) -> IntArray:
    """Order in which to take positive values: strata of equal ratio in turn; within one, targets not used yet
    first, otherwise at random."""
    if not len(values):
        return np.zeros(0, dtype=np.int64)
    strata = np.floor(np.log(np.asarray(values)) / np.log(_STRATUM)).astype(int)
    chance = rng.random(len(values))
    uses: Counter[str] = Counter()
    repeat = np.zeros(len(values), dtype=int)
    for i in np.argsort(chance):
        repeat[i] = uses[targets[i]]
        uses[targets[i]] += 1
    turn = np.zeros(len(values), dtype=int)
    for stratum in np.unique(strata):
        members = np.flatnonzero(strata == stratum)
        turn[members[np.lexsort((chance[members], repeat[members]))]] = np.arange(len(members))
    order: IntArray = np.lexsort((chance, turn))
    return order
