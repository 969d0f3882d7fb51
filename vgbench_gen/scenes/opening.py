"""Opening one scene by its reference, and seeing that it keeps the contract of `vgbench_gen.scenes.base`.

One scene, one verdict: whatever is raised while it is opened or used costs that scene, and the others go on. A loader
from another package may forget an attribute or use a word that nobody knows; a file may hold numbers that no scan has.
That is found here, once, before anything is measured.
"""

from __future__ import annotations

import errno
import inspect
import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import get_args

import numpy as np

from vgbench_gen.core.errors import DefectError, FrameError, SceneError, VGBenchError
from vgbench_gen.core.types import DepthArray, FloatArray
from vgbench_gen.scenes import base
from vgbench_gen.scenes._turned import undo_turn
from vgbench_gen.scenes.plausible import (
    MAX_IMPLAUSIBLE_SHARE,
    RANGES,
    check_box,
    check_camera,
    check_plausible,
)
from vgbench_gen.scenes.readings import PosedDepth

RAISE_DEFECTS = "VGBENCH_RAISE_DEFECTS"
"""The environment variable under which `lay_to_scene` lets pass what it does not foresee. Tests set it, so that the net
hides no bug from them."""
_REMEDY = "Mend the loader; vgbench_gen/scenes/base.py says what every attribute holds."
# A full or read-only disk, memory, and files that are open at once: the next scene would meet them as well.
_OF_THE_MACHINE = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.ENOMEM, errno.EMFILE, errno.ENFILE}


@contextmanager
def lay_to_scene(ref: base.SceneRef) -> Iterator[None]:
    """Whatever is raised in the block becomes an error that costs this scene alone.

    Interrupts, a full disk and lack of memory are not the scene's fault and pass as they are.

    Raises:
        VGBenchError: as the block raised it.
        SceneError: the block raised an error of the file system.
        DefectError: it raised what nobody foresaw; what that was is its cause.
    """
    try:
        yield
    except (VGBenchError, MemoryError):
        raise
    except OSError as error:
        if error.errno in _OF_THE_MACHINE:
            raise
        found = error.strerror or str(error)
        remedy = "Check their rights and the disk."
        raise SceneError(error.filename or ref.path, found, "readable files", remedy) from error
    except Exception as error:
        if os.environ.get(RAISE_DEFECTS):
            raise
        found = " ".join(f"{type(error).__name__}: {error}".split())[:200]
        raise DefectError(f"{ref.path}: {found}. This is a defect of vgbench-gen, please report it.") from error


def open_scene(ref: base.SceneRef) -> base.Scene:
    """The open scene, checked. Close it after use: `with lay_to_scene(ref), open_scene(ref) as scene:`.

    Raises:
        VGBenchError: the scene cannot be used, its files cannot be read, or it breaks the contract of `Scene`; or
            `DefectError`, see `lay_to_scene`.
    """
    with lay_to_scene(ref), ExitStack() as undo:
        scene = base.loaders[ref.dataset].open(ref)
        undo.callback(getattr(scene, "close", int))
        check_scene(scene)
        for name, wanted in (("dataset", ref.dataset), ("id", ref.scene_id)):
            if getattr(scene, name) != wanted:
                where = f"{type(scene).__qualname__}.{name}"
                raise SceneError(where, repr(getattr(scene, name)), repr(wanted), _REMEDY)
        _leave_out_implausible(scene, ref)
        undo.pop_all()
    return scene


def check_scene(scene: base.Scene) -> None:
    """See that a scene and its frames have every attribute of the contract, with values that the contract knows.

    Raises:
        SceneError: one is missing or wrong; names the class and the attribute.
    """
    _find_missing(scene, base.Scene)
    where = type(scene).__qualname__
    for name, words in (("split", get_args(base.Split)), ("depth_kind", get_args(base.DepthKind))):
        if getattr(scene, name) not in words:
            raise SceneError(f"{where}.{name}", repr(getattr(scene, name)), f"one of {', '.join(words)}", _REMEDY)
    for name in ("dataset", "id", "licence", "source_digest"):
        if not isinstance(getattr(scene, name), str):
            raise SceneError(f"{where}.{name}", repr(getattr(scene, name)), "text", _REMEDY)
    if not scene.id.isprintable():
        raise SceneError(f"{where}.id", ascii(scene.id), "printable text", "Rename the folder of the scene.")
    seen: set[str] = set()
    kinds: set[type] = set()
    for frame in scene.frames:
        if type(frame) not in kinds:  # frames of one class set the same attributes
            kinds.add(type(frame))
            _find_missing(frame, base.Frame)
        if not isinstance(frame.id, str) or not frame.id:
            raise SceneError(f"{type(frame).__qualname__}.id", repr(frame.id), "text", _REMEDY)
        if frame.id in seen:
            raise SceneError(f"{type(frame).__qualname__}.id", f"{frame.id!r} twice", "an id of its own", _REMEDY)
        seen.add(frame.id)


def _leave_out_implausible(scene: base.Scene, ref: base.SceneRef) -> None:
    """Drop frames and objects whose numbers no scan has, and note each; a scene without any frame left is refused."""
    frames, objects = [], []
    for frame in scene.frames:
        where = f"{ref.path}, frame {frame.id}"
        try:
            check_camera(frame.camera, where)
            check_camera(frame.depth_camera, f"{where}, depth")
            check_plausible("coordinate", frame.world_from_camera[:3, 3], where)
            frames.append(frame)
        except FrameError as error:
            scene.issues.append(base.Issue(frame.id, "implausible", str(error)))
    for annotated in scene.objects:
        try:
            check_box(annotated.box, f"{ref.path}, object {annotated.instance_id}")
            objects.append(annotated)
        except FrameError as error:
            scene.issues.append(base.Issue("", "implausible", str(error)))
    if scene.frames and not frames:
        raise SceneError(ref.path, f"no plausible frame ({scene.issues[-1].detail})", "one at least", "Check its unit.")
    if len(frames) < len(scene.frames):
        scene.frames = frames
    if len(objects) < len(scene.objects):
        scene.objects = objects


def decode_depth(frame: base.Frame, kind: base.DepthKind = "laser") -> DepthArray:
    """(h, w) float32 depth of a frame, as the loader gives it; 0 where a few pixels have values that no scan has.

    kind: of the scene; says what is plausible.

    Raises:
        FrameError: the bytes are damaged, or more than a few pixels have values that no scan has.
        SceneError: the loader gives numbers of another type, which is its mistake and not the frame's.
    """
    depth = frame.depth_m()
    if depth.dtype != np.float32:
        where = f"{type(frame).__qualname__}.depth_m() of frame {frame.id}"
        raise SceneError(where, f"numbers of type {depth.dtype}", "float32, in meters", _REMEDY)
    limits = RANGES[f"depth of a {kind}"]
    strange = ~((depth >= limits.low) & (depth <= limits.high))
    if strange.any():
        many = np.count_nonzero(strange) > MAX_IMPLAUSIBLE_SHARE * np.count_nonzero(depth)
        typical = float(np.median(depth[strange].astype(np.float64))) if many else 0.0
        check_plausible(f"depth of a {kind}", [typical], f"depth of frame {frame.id}")
        depth = np.where(strange, np.float32(0), depth)
    return depth


def gather_depth(
    frames: Sequence[base.Frame], poses: FloatArray | None = None, kind: base.DepthKind = "laser"
) -> PosedDepth:
    """Frames as `scenes.readings` compares them: as they are stored, without a turn that wrong poses would have made.

    poses: (N, 4, 4) to be read; default: those of the frames. kind: of the scene's depth.
    """

    frames = [undo_turn(frame) for frame in frames]

    def read(i: int) -> DepthArray | None:
        try:
            return decode_depth(frames[i], kind)
        except FrameError:
            return None

    if poses is None:
        poses = np.array([frame.world_from_camera for frame in frames])
    return PosedDepth(poses, lambda i: frames[i].depth_camera, read)


def _find_missing(made: base.Scene | base.Frame, contract: type) -> None:
    if not isinstance(made, contract):
        found, expected = f"a {type(made).__qualname__}", f"a subclass of {contract.__qualname__}"
        raise SceneError("the loader's open()", found, expected, _REMEDY)
    missing = [name for name in inspect.get_annotations(contract) if not hasattr(made, name)]
    if missing:
        raise SceneError(type(made).__qualname__, f"no attribute {', '.join(missing)}", "it to be set", _REMEDY)
