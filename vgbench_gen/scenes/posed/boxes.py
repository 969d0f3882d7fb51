"""Boxes of annotated objects, as recordings list them."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from vgbench_gen.core.errors import FrameError
from vgbench_gen.core.types import FloatArray, OrientedBox
from vgbench_gen.geometry.poses import measure_orthonormality_deviation
from vgbench_gen.scenes._scannetpp_objects import put_up_last
from vgbench_gen.scenes.base import Issue, SceneObject
from vgbench_gen.scenes.plausible import check_box

MAX_OBJECTS = 20_000
_MAX_DEVIATION = 0.02  # of |R^T R - I|; beyond it the nearest rotation would be an invention


def make_box(center_m: FloatArray, size_m: FloatArray, rotation: FloatArray, up: FloatArray) -> OrientedBox:
    """The box in the world, its third axis exactly up.

    Args:
        center_m, size_m: (3,) the centre and the full sides, meters. rotation: (3, 3) world_from_box.
        up: (3,) unit vector against gravity.

    Raises:
        FrameError: no such box can be, or none of its axes is within 2 degrees of vertical.
    """
    check_box(OrientedBox(center_m, size_m, rotation), "the box")
    if not (size_m > 0).all():
        raise FrameError("the box", f"sides {size_m.tolist()}", "sides above 0", "The object is left out.")
    deviation = float(measure_orthonormality_deviation(rotation))
    if deviation > _MAX_DEVIATION:
        raise FrameError("the box", f"|R^T R - I| = {deviation:.3g}", f"at most {_MAX_DEVIATION}", "It is left out.")
    upright = put_up_last(OrientedBox(center_m, size_m, rotation), up)  # right-handed, as a box is its own mirror image
    if upright is None:
        raise FrameError("the box", "no axis within 2 degrees of vertical", "an upright box", "It is left out.")
    return upright


def collect_objects(found: Iterable[tuple[str, Callable[[], SceneObject]]], issues: list[Issue]) -> list[SceneObject]:
    """Objects by id and what makes them; those that raise FrameError, and repeated ids, are noted and left out."""
    objects: dict[str, SceneObject] = {}
    for name, make in found:
        try:
            if name in objects:
                raise FrameError("the list", "the id a second time", "an id of its own")
            objects[name] = make()
        except FrameError as problem:
            issues.append(Issue("", "box_unusable", f"object {name:.40}: {problem}"))
    return list(objects.values())
