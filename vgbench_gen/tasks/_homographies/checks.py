"""Whether a crop and the stored corners of its warps hold together with what is shown."""

from __future__ import annotations

import numpy as np

from vgbench_gen.core.gates import Gates
from vgbench_gen.core.types import Fact
from vgbench_gen.geometry import homography
from vgbench_gen.tasks._homographies.evidence import WarpedImageEvidence, WarpEvidence
from vgbench_gen.tasks.base import Problems

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
