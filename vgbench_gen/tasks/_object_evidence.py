"""What is kept of objects that are asked about, and whether it holds together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from vgbench_gen.core.gates import Gates
from vgbench_gen.core.types import Camera, Fact, FloatArray
from vgbench_gen.geometry import boxes
from vgbench_gen.tasks.base import Problems
from vgbench_gen.tasks.evidence import ArrayShape, Evidence, FactEvidence
from vgbench_gen.tasks.records import read_camera_record
from vgbench_gen.tasks.revealed import RevealedObject

RESIDUAL_M = 1e-3  # of stored corners, before they are rounded
DRAWN_IOU = 0.9
Corners = Annotated[FloatArray, ArrayShape(8, 3)]


class ObjectEvidence(Evidence):
    """What is kept of an object that is asked about."""

    instance_id: str
    """The object in its scan."""
    label: str
    """What the scan calls it."""
    corners_m: Corners
    """Corners of its box in the camera's frame, meters, in the order of `vgbench_gen.geometry.boxes`."""
    visible: float
    """Share of it that is seen, from 0 to 1."""


class BoxEvidence(ObjectEvidence):
    """What is kept of an object whose box is asked."""

    world_corners_m: Corners
    """Corners of its box in the world of the scan, meters, in the same order."""
    needed_ratio: float
    """Ratio of depths from which two such boxes, seen under the same rays, overlap little enough to be told apart."""
    upright: int | None = None
    """Which axis of the box stands upright: 0, 1 or 2; left out where the scan does not say or none does."""


class SidesEvidence(FactEvidence):
    """What is kept of a fact besides its objects."""

    swapped: bool | None = None
    """True where the objects are named in the other order than the one in which they were drawn."""


class PairEvidence(Evidence):
    """What is kept of two objects whose distance may be asked."""

    a: ObjectEvidence
    """The object that is named first."""
    b: ObjectEvidence
    """The other object."""

    @property
    def centres_m(self) -> tuple[FloatArray, FloatArray]:
        """(3,) centres of both boxes in the camera's frame, meters: the means of their corners."""
        return self.a.corners_m.mean(axis=0), self.b.corners_m.mean(axis=0)


def compare_with_rect(name: str, corners_m: FloatArray, rect: Sequence[int], camera: Camera) -> Problems:
    """What is wrong with stored corners (8, 3), meters, beside the drawn rectangle [x1, y1, x2, y2].

    The rectangle drawn is that of the full projection, cut at the image border, not that of the visible part: it is
    the frame by which a reader relates a whole box to the picture.
    """
    residual_m = boxes.cuboid_residual_m(corners_m)
    if not residual_m <= RESIDUAL_M:
        return [("cuboid", f"{name}: stored corners are {residual_m:.4f} m from a cuboid")]
    projected = boxes.project_rect(camera, boxes.fit_to_corners(corners_m, "camera"))
    x1, y1, x2, y2 = rect
    fit = 0.0
    if projected is not None:
        fit = boxes.rect_iou((x1, y1, x2, y2), boxes.clip_rect(projected, camera.width, camera.height))
    return [] if fit >= DRAWN_IOU else [("drawn_box", f"{name}: projects onto the drawn rectangle by {fit:.2f}")]


def get_camera(fact: Fact) -> Camera:
    """The camera of the frame that the fact is about."""
    return read_camera_record(fact.cameras[fact.frame_ids[0]])


def check_box(fact: Fact, gates: Gates) -> Problems:
    """Stored corners are a cuboid and project onto the drawn rectangle."""
    truth = fact.truth_candidate
    return compare_with_rect(truth.key, BoxEvidence.of(truth).corners_m, truth.show["rect"], get_camera(fact))


def reveal_object(stored: ObjectEvidence, rect: Sequence[int], allowed_ratio: float, image: int = 0) -> RevealedObject:
    """An object of an image, with the rectangle [x1, y1, x2, y2] by which it is shown."""
    x1, y1, x2, y2 = rect
    return RevealedObject(
        image=image,
        name=stored.label.replace("_", " "),
        rect_px=(x1, y1, x2, y2),
        corners_m=stored.corners_m,
        allowed_ratio=allowed_ratio,
    )
