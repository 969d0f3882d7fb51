"""What is kept of an image that is warped and of each warp that could have been asked about, and what must hold in
it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal, get_args

import numpy as np
from pydantic import Strict

from vgbench_gen.core.gates import Gates
from vgbench_gen.core.types import Fact, FloatArray
from vgbench_gen.geometry import homography
from vgbench_gen.tasks.base import Problems
from vgbench_gen.tasks.evidence import ArrayShape, Evidence, FactEvidence, Size

Kind = Literal["similarity", "affine", "projective"]
"""What a warp keeps: angles, parallels, or straight lines alone."""
KINDS: tuple[Kind, ...] = get_args(Kind)
Part = Literal["rotation", "scale", "stretch", "shear", "tilt_x", "tilt_y"]
"""What of a warp one number says; a tilt makes the image larger towards one side."""
PARTS: dict[Kind, tuple[Part, Part]] = {
    "similarity": ("rotation", "scale"),
    "affine": ("stretch", "shear"),
    "projective": ("tilt_x", "tilt_y"),
}
"""The two parts in which the warps that stand side by side differ."""
PART_FIELDS: dict[Part, str] = {
    "rotation": "angle_deg",
    "scale": "scale",
    "stretch": "stretch",
    "shear": "shear",
    "tilt_x": "px",
    "tilt_y": "py",
}
"""The field of `Components` that holds a part."""


class WarpedImageEvidence(FactEvidence):
    """What is kept of the image that is warped."""

    kind: Kind
    """Of all warps of the image that could have been asked about."""
    frame_size: Size
    """Of the frame that the image is cut from."""
    crop: Annotated[tuple[int, int, int, int], Strict(False)]
    """Where: x0, y0, width and height in pixels of the frame."""
    size: Size
    """Of the image as it is shown, before and after the warp."""

    def make_crop_op(self) -> dict[str, Any]:
        """The operation that cuts the image from its frame (`store.pictures`)."""
        return {"op": "crop_resize", "rect": list(self.crop), "size": list(self.size)}

    def make_warp_op(self, entries: Sequence[float]) -> dict[str, Any]:
        """The operation that draws from the frame what a matrix, its entries row by row, makes of the image and of what
        lies around it."""
        return {"op": "warp", "H": list(entries), "rect": list(self.crop), "size": list(self.size)}

    def unshrink(self, uv: FloatArray) -> FloatArray:
        """(..., 2) pixels of the frame at pixels of the image."""
        return (uv + 0.5) / self.size * self.crop[2:] - 0.5 + self.crop[:2]

    def measure_room_px(self, H: FloatArray) -> FloatArray:
        """(...) how far inside the frame's outermost pixel centres all lies that H (..., 3, 3) draws; below 0 outside.

        -inf where H draws what lies beyond infinity.
        """
        sources = self.unshrink(homography.find_sources(H, *self.size))
        room = np.minimum(sources, np.array(self.frame_size) - 1.0 - sources).min(axis=(-2, -1))
        return np.where(np.isfinite(room), room, -np.inf)


class Components(Evidence):
    """Parameters of `geometry.homography.make_about_centre`; a component at its default is absent."""

    angle_deg: float = 0.0
    """Rotation about the centre of the image."""
    scale: float = 1.0
    """Enlargement about the centre of the image."""
    tx_px: float = 0.0
    """Translation to the right."""
    ty_px: float = 0.0
    """Translation down."""
    stretch: float = 1.0
    """Width over height of what was a square."""
    shear: float = 0.0
    """Pixels to the right for each pixel below the centre."""
    px: float = 0.0
    """Change of the denominator from the centre to the right border."""
    py: float = 0.0
    """Change of the denominator from the centre to the lower border."""

    def make_matrix(self, width: int, height: int) -> FloatArray:
        """(3, 3) before rounding."""
        return homography.make_about_centre(width, height, **self.model_dump())

    def read_parts(self, kind: Kind) -> tuple[float, float]:
        """The values of the two parts in which warps of a kind differ."""
        first, second = PARTS[kind]
        return float(getattr(self, PART_FIELDS[first])), float(getattr(self, PART_FIELDS[second]))


class WarpEvidence(Evidence):
    """What is kept of a sampled warp. One that was named, not sampled, has none."""

    components: Components
    """From which the matrix was made."""
    corners_px: Annotated[FloatArray, ArrayShape(4, 2)]
    """Where the printed matrix puts the corner pixels, in the order of `geometry.homography.image_corners`."""
    margins: dict[str, float]
    """Gate -> value over limit, at least 1, of every gate that the warp passed."""


WARP_PX = 0.5  # between stored corners and those of the printed matrix


def check_crop(fact: Fact, gates: Gates) -> Problems:
    """The first image is cut from inside its frame."""
    image, found = WarpedImageEvidence.of(fact), Problems()
    x0, y0, width, height = image.crop
    camera = fact.cameras[fact.frame_ids[0]]
    if image.frame_size != (camera["width"], camera["height"]):
        found.append(("crop", f"cut from {image.frame_size}, the frame has {camera['width']} x {camera['height']}"))
    if not (0 <= x0 <= image.frame_size[0] - width and 0 <= y0 <= image.frame_size[1] - height):
        found.append(("crop", f"{list(image.crop)} is not inside a frame of {image.frame_size}"))
    return found


def check_warps(fact: Fact, gates: Gates) -> Problems:
    """Each matrix puts the corners where they are stored, its inverse brings them home, and the frame fills the image
    that it draws."""
    image = WarpedImageEvidence.of(fact)
    home = homography.image_corners(*image.size)
    found: Problems = []
    for option in fact.candidates:
        stored = WarpEvidence.given(option)
        if stored is None:
            continue
        away = stored.corners_px
        start, end = (away, home) if "source_H" in option.show else (home, away)
        there = homography.apply(option.value, start)
        back = homography.apply(np.linalg.inv(option.value), end)
        for name, off in (("there", there - end), ("back", back - start)):
            furthest = float(np.linalg.norm(off, axis=1).max())
            if not furthest <= WARP_PX:
                found.append(("warp_inverse", f"{option.key}: {name}, a corner is {furthest:.2f} px off"))
        drawn = np.array(option.show.get("source_H", option.show["H"]), dtype=np.float64).reshape(3, 3)
        room_px = float(image.measure_room_px(drawn))
        if not room_px >= 0:
            found.append(("warp_filled", f"{option.key}: draws on what lies {-room_px:.1f} px outside the frame"))
    return found
