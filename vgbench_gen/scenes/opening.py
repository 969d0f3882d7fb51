"""Opening one scene by its reference, and seeing that it keeps the contract of `vgbench_gen.scenes.base`.

A loader from another package may forget an attribute or use a word that nobody knows. That is found here, once, before
anything is measured, and costs that scene alone.
"""

from __future__ import annotations

import inspect
from typing import get_args

import numpy as np

from vgbench_gen.core.errors import SceneError
from vgbench_gen.core.types import DepthArray
from vgbench_gen.scenes import base

_REMEDY = "Mend the loader; vgbench_gen/scenes/base.py says what every attribute holds."


def open_scene(ref: base.SceneRef) -> base.Scene:
    """The open scene, checked. Close it after use (`with open_scene(ref) as scene:`).

    Raises:
        FormatError: the scene cannot be used, its files cannot be read, or it breaks the contract of `Scene`.
    """
    try:
        scene = base.loaders[ref.dataset].open(ref)
    except OSError as error:
        found = error.strerror or str(error)
        raise SceneError(
            error.filename or ref.path, found, "readable files", "Check their rights and the disk."
        ) from error
    try:
        check_scene(scene)
        if scene.dataset != ref.dataset:
            where = f"{type(scene).__qualname__}.dataset"
            raise SceneError(where, repr(scene.dataset), repr(ref.dataset), _REMEDY)
    except SceneError:
        if hasattr(scene, "close"):
            scene.close()
        raise
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


def decode_depth(frame: base.Frame) -> DepthArray:
    """(h, w) float32 depth of a frame, as the loader gives it.

    Raises:
        FrameError: the bytes are damaged.
        SceneError: the loader gives numbers of another type, which is its mistake and not the frame's.
    """
    depth = frame.depth_m()
    if depth.dtype != np.float32:
        where = f"{type(frame).__qualname__}.depth_m() of frame {frame.id}"
        raise SceneError(where, f"numbers of type {depth.dtype}", "float32, in metres", _REMEDY)
    return depth


def _find_missing(thing: base.Scene | base.Frame, contract: type) -> None:
    if not isinstance(thing, contract):
        found, expected = f"a {type(thing).__qualname__}", f"a subclass of {contract.__qualname__}"
        raise SceneError("the loader's open()", found, expected, _REMEDY)
    missing = [name for name in inspect.get_annotations(contract) if not hasattr(thing, name)]
    if missing:
        raise SceneError(type(thing).__qualname__, f"no attribute {', '.join(missing)}", "it to be set", _REMEDY)
