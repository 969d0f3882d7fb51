"""What the row of a question tells of the scene, as perfect tools would measure it in the images shown.

`Task.reveal` gives it. Oracle tools answer from it, and what other tools gave is held against it
(`docs/agent.md#oracle`). It holds quantities and never which option is right, so that a plan is still needed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Self

from pydantic import Field, Strict

from vgbench_gen.core.types import Camera, FloatArray
from vgbench_gen.geometry.boxes import rect_iou
from vgbench_gen.geometry.cameras import crop_camera, resize_camera
from vgbench_gen.tasks.evidence import ArrayShape, Evidence, Pose, StoredCamera
from vgbench_gen.tasks.records import read_camera_record
from vgbench_gen.tasks.row_evidence import ShownEvidence

SAME_RECT_IOU = 0.8  # of a rectangle that a model read off an image
Pixel = Annotated[FloatArray, ArrayShape(2)]
Rect = Annotated[tuple[int, int, int, int], Strict(False)]


class RevealedCamera(Evidence):
    """The camera of an image."""

    image: int
    """Place of the image, from 0."""
    camera: StoredCamera
    """In pixels of the image as shown."""
    allowed_ratio: float | None = None
    """By which factor a focal length may be off and still leave the answer; None where it answers nothing."""


class RevealedRegion(Evidence):
    """The depth of a region."""

    image: int
    """Place of the image, from 0."""
    rect_px: Rect
    """[x1, y1, x2, y2], ends included."""
    mean_m: float
    """Mean depth, meters along the view."""
    median_m: float
    """Median depth likewise."""
    allowed_ratio: float
    """By which factor a depth may be off and still leave the answer."""


class RevealedObject(Evidence):
    """An object with its box in space."""

    image: int
    """Place of the image, from 0."""
    name: str
    """What the scan calls it, in words; the question only draws its outline."""
    rect_px: Rect
    """Its outline as drawn, [x1, y1, x2, y2], ends included."""
    corners_m: Annotated[FloatArray, ArrayShape(8, 3)]
    """Corners of its box in the frame of the camera (x right, y down, z forward), meters."""
    allowed_ratio: float
    """By which factor the depth of its centre may be off and still leave the answer."""


class RevealedMotion(Evidence):
    """How one camera stands to another."""

    first: int
    """Place of the first image, from 0."""
    second: int
    """Place of the second image."""
    second_from_first: Pose
    """(4, 4) X2 = R X1 + t, meters."""
    allowed_rotation_deg: float
    """By how much a rotation may be off and still leave the answer, degrees."""
    allowed_direction_deg: float
    """By how much the direction of the translation may be off and still leave the answer, degrees."""


class RevealedTrack(Evidence):
    """Where a point of one image is in another."""

    first: int
    """Place of the image with the given pixel, from 0."""
    second: int
    """Place of the other image."""
    first_px: Pixel
    """(u, v) in the first image."""
    second_px: Pixel
    """(u, v) in the second image."""
    allowed_px: float
    """How far off a place in the second image may be and still leave the answer, pixels."""


class RevealedHomography(Evidence):
    """The homography between two images."""

    first: int
    """Place of the first image, from 0."""
    second: int
    """Place of the second image."""
    H: Annotated[FloatArray, ArrayShape(3, 3)]
    """(3, 3) x2 ~ H x1, pixels."""
    size: Annotated[tuple[int, int], Strict(False)]
    """(width, height) of the first image, pixels."""
    allowed_px: float
    """Mean error of the image corners that still leaves the answer, pixels."""


class Revealed(Evidence):
    """All that a row tells; images go by their places among those shown."""

    cameras: list[RevealedCamera] = Field(default_factory=list)
    """Of images that are pictures of a camera."""
    regions: list[RevealedRegion] = Field(default_factory=list)
    """Of the regions that the question names."""
    objects: list[RevealedObject] = Field(default_factory=list)
    """Of the objects that the question names."""
    motions: list[RevealedMotion] = Field(default_factory=list)
    """Of pairs of images."""
    tracks: list[RevealedTrack] = Field(default_factory=list)
    """Of the points that the question follows."""
    homographies: list[RevealedHomography] = Field(default_factory=list)
    """Of pairs of images."""

    def renumber(self, shown: Sequence[int | None]) -> Self:
        """The same where other images are shown, or in another order; what is about an image that is not shown goes.

        Args:
            shown: the place that each image has in this record, in the new order; None for images of other origin.
        """
        place = {old: new for new, old in enumerate(shown) if old is not None}

        def single(listed: Sequence[Evidence]) -> list[Evidence]:
            return [one.with_fields(image=place[one.image]) for one in listed if one.image in place]  # type: ignore[attr-defined]

        def pairs(listed: Sequence[Evidence]) -> list[Evidence]:
            known = [(one, one.first, one.second) for one in listed]  # type: ignore[attr-defined]
            return [
                one.with_fields(first=place[first], second=place[second])
                for one, first, second in known
                if first in place and second in place
            ]

        return self.with_fields(
            cameras=single(self.cameras),
            regions=single(self.regions),
            objects=single(self.objects),
            motions=pairs(self.motions),
            tracks=pairs(self.tracks),
            homographies=pairs(self.homographies),
        )


def is_same_rect(drawn: Sequence[int], read: Sequence[float]) -> bool:
    """Whether a rectangle [x1, y1, x2, y2], ends included, that a model read off an image is the one drawn there."""
    (a, b, c, d), (x1, y1, x2, y2) = drawn, read
    return rect_iou((a, b, c + 1, d + 1), (x1, y1, x2 + 1, y2 + 1)) >= SAME_RECT_IOU


def reveal_cameras(row: ShownEvidence, allowed_ratio: float | None = None) -> list[RevealedCamera]:
    """The cameras of the pictures of a row; a warped picture and a drawing have none."""
    found = []
    for place, picture in enumerate(row.shown()):
        camera: Camera | None = read_camera_record(row.cameras[row.frame_of(picture.base)])
        for op in picture.ops:
            if op["op"] == "crop_resize" and camera is not None:
                camera = resize_camera(crop_camera(camera, *op["rect"]), *op["size"])
            elif op["op"] in ("warp", "plan"):
                camera = None
        if camera is not None:
            found.append(RevealedCamera(image=place, camera=camera, allowed_ratio=allowed_ratio))
    return found
