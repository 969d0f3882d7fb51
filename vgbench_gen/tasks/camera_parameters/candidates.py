"""Crops as candidates, and their mirror images."""

from __future__ import annotations

from dataclasses import replace

from vgbench_gen.core.types import Candidate
from vgbench_gen.tasks.camera_parameters.crops import Crop
from vgbench_gen.tasks.camera_parameters.quantities import (
    ASK_AXIS,
    CropEvidence,
    compute_parameter,
    read_shown_crop,
    round_as_printed,
)


def make_candidate(crop: Crop, ask: str, size: tuple[int, int]) -> Candidate:
    """What a crop that is resized to `size` (width, height) in pixels says to a kind of question."""
    return Candidate(
        "crop:" + ",".join(map(str, crop.rect)),
        round_as_printed(compute_parameter(crop.camera, ask), ask),
        show={"rect": list(crop.rect), "size": list(size)},
        evidence=CropEvidence(
            zoom=crop.zoom, **{name: compute_parameter(crop.camera, name) for name in ASK_AXIS}
        ).write(),
    )


def mirror_candidate(member: Candidate, ask: str, base_width: int, out_width: int) -> Candidate:
    """The same in the mirrored image; widths in pixels, of the frame and of the image as shown."""
    value, show, camera = member.value, dict(member.show), CropEvidence.given(member)
    if camera is not None and camera.cx is not None:
        camera = camera.with_fields(cx=out_width - 1 - camera.cx)
    if ask == "cx":
        # A computed decoy has no camera, and its whole pixels stay whole.
        exact = None if camera is None else camera.cx
        value = round_as_printed(out_width - 1 - float(value[0]) if exact is None else exact, ask)
    if "rect" in show:
        (x0, y0, width, height), _ = read_shown_crop(show)
        show["rect"] = [base_width - x0 - width, y0, width, height]
    return replace(member, value=value, show=show, evidence={} if camera is None else camera.write())
