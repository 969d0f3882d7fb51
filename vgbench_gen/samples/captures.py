"""Which room is filmed, with which camera, along which path: everything a scene's number decides."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from vgbench_gen.core.rng import rng_for
from vgbench_gen.core.types import Camera, FloatArray
from vgbench_gen.samples import paths
from vgbench_gen.samples.base import FIRST_TOUR, Capture, SampleSpec
from vgbench_gen.samples.programs import PROGRAMS
from vgbench_gen.samples.rooms import RoomPlan, build_room

# WildRGB-D's categories as far as this package can build them, and what builds them.
TURNTABLE: dict[str, str] = {
    **{
        name: name
        for name in ("kettle", "microwave", "laptop", "keyboard", "bowl", "helmet", "pot", "backpack", "ball")
    },
    "bucket": "bucket",
    "box": "box",
    "shoe": "shoes",
    "car": "toy car",
    "vase": "vase",
    "cup": "mug",
    "bottle": "bottle",
    "stool": "stool",
    "teddy bear": "teddy",
    "basket": "basket",
    "suitcase": "suitcase",
    "toaster": "toaster",
    "clock": "globe",
    "plant": "small plant",
    "watering can": "watering can",
    "book": "books",
}
_FRAME_S = 0.4
# What is so small that it would be filmed closer is filmed at arm's length: a few millimeters of LiDAR error, seen from
# all around at half a meter, move points by more pixels than `gates.scene.cycle_median_px_at_640` allows.
_CLOSEST_M, _ARM_M = 0.62, 0.8
# Sides of the rooms of tours over those of the others: kinds that ask how large a room is need small and large ones.
_SMALLEST, _LARGEST = 0.85, 1.7


@dataclass(frozen=True)
class _Lens:
    """The colour camera of one dataset, held in landscape; a share of its captures is held in portrait."""

    width: int
    height: int
    focal_px: float
    spread: float
    """The largest change of the focal length from capture to capture, as a share of it."""
    portrait_share: float


_LENSES = {
    "scannet": _Lens(1296, 968, 1170.0, 0.012, 0.0),
    "scannetpp/iphone": _Lens(1920, 1440, 1480.0, 0.05, 0.4),
    "scannetpp/dslr": _Lens(1752, 1168, 1010.0, 0.03, 0.0),
    "ca1m": _Lens(1024, 768, 790.0, 0.06, 0.4),
    "wildrgbd": _Lens(640, 480, 545.0, 0.06, 1.0),
}


def make_capture(spec: SampleSpec) -> Capture:
    """Build the room of a scene and walk through it. The same `spec` gives the same take.

    Raises:
        ValueError: the dataset or the kind of camera is unknown.
    """
    rng = rng_for(spec.seed, "samples", "take", spec.dataset, str(spec.number), spec.scene_id)
    camera = make_camera(spec, rng)
    if spec.dataset == "wildrgbd":
        return _make_turntable_capture(spec, camera, rng)
    room_id = spec.scene_id.split("/")[0]
    if spec.dataset == "scannet":
        room_id = room_id.rsplit("_", 1)[0]
    # Rescans share the room, which their numbers do not; elsewhere every kind has its turn.
    kind = "" if spec.dataset == "scannet" else list(PROGRAMS)[spec.number % len(PROGRAMS)]
    is_tour = spec.number >= FIRST_TOUR
    sizes = rng_for(spec.seed, "samples", "size", spec.dataset, room_id)
    scale = float(np.exp(sizes.uniform(np.log(_SMALLEST), np.log(_LARGEST)))) if is_tour else 1.0
    built = build_room(spec.seed, f"{spec.dataset}/{room_id}", kind, scale=scale)
    plan = built.plan
    if is_tour:
        poses = paths.make_tour(rng, spec.frames, plan.size_m, built.world.clearance_m)
    else:
        poses = paths.make_walk(rng, spec.frames, camera, list_targets(plan), plan.size_m, built.world.clearance_m)
    lost: frozenset[int] = frozenset()
    if spec.dataset == "scannet":
        lost = frozenset(int(k) for k in rng.choice(np.arange(1, spec.frames), int(rng.integers(1, 3)), replace=False))
    blurred = frozenset([int(rng.integers(1, spec.frames))]) if rng.random() < 0.6 else frozenset()
    return Capture(
        built.world,
        camera,
        poses,
        _draw_times(rng, spec.frames),
        lost,
        blurred - lost,
        room=f"{spec.dataset}/{room_id}",
        notes={"kind": built.plan.kind},
    )


def make_camera(spec: SampleSpec, rng: np.random.Generator) -> Camera:
    """The colour camera of a capture, upright, at delivered size.

    Raises:
        ValueError: the dataset or the kind of camera is unknown.
    """
    name = f"{spec.dataset}/{spec.camera_kind or 'iphone'}" if spec.dataset == "scannetpp" else spec.dataset
    if name not in _LENSES:
        raise ValueError(f"no camera for {name}; known: {', '.join(_LENSES)}")
    lens = _LENSES[name]
    focal = lens.focal_px * (1 + float(rng.uniform(-lens.spread, lens.spread)))
    width, height = (lens.width, lens.height) if rng.random() >= lens.portrait_share else (lens.height, lens.width)
    off = rng.uniform(-0.008, 0.008, 2) * max(width, height)
    K = np.array([[focal, 0, (width - 1) / 2 + off[0]], [0, focal * (1 + 0.002), (height - 1) / 2 + off[1]], [0, 0, 1]])
    return Camera(K, width, height)


def list_targets(plan: RoomPlan) -> list[paths.FilmingTarget]:
    """Things of the room that a person with a camera looks at."""
    found = []
    for thing in plan.placed:
        size = float((thing.high_m - thing.low_m).max())
        if (
            not thing.structural
            and not thing.clutter
            and thing.model.label not in ("rug", "ceiling lamp", "curtain", "blinds", "papers")
        ):
            found.append(paths.FilmingTarget(thing.box().center_m, size))
    return found


def _make_turntable_capture(spec: SampleSpec, camera: Camera, rng: np.random.Generator) -> Capture:
    category = spec.scene_id.split("/")[0].replace("_", " ")
    if category not in TURNTABLE:
        category = list(TURNTABLE)[int(rng.integers(len(TURNTABLE)))]
    kinds = [kind for kind in PROGRAMS if kind not in ("dining room", "kitchen")]
    kind = kinds[spec.number % len(kinds)]
    built = build_room(spec.seed, f"{spec.dataset}/{spec.scene_id}", kind, TURNTABLE[category])
    focus = next(k for k, thing in enumerate(built.plan.placed, start=1) if thing is built.plan.focus)
    box = built.world.objects[focus - 1].box
    radius = 1.75 * float(np.linalg.norm(box.size_m))
    radius = radius if radius >= _CLOSEST_M else _ARM_M
    center: FloatArray = box.center_m - np.array([0, 0, 0.1 * box.size_m[2]])
    poses = paths.make_orbit(rng, spec.frames, center, radius, built.world.clearance_m)
    return Capture(
        built.world,
        camera,
        poses,
        _draw_times(rng, spec.frames),
        focus=focus,
        room=f"{spec.dataset}/{spec.scene_id}",
        notes={"kind": built.plan.kind},
    )


def _draw_times(rng: np.random.Generator, frames: int) -> FloatArray:
    start = float(rng.uniform(100, 5000))
    return np.round(start + np.cumsum(_FRAME_S * rng.uniform(0.9, 1.1, frames)), 6)
