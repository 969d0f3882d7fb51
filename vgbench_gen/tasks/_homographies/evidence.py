"""What is kept of an image that is warped and of each warp that could have been asked about."""

from __future__ import annotations

from typing import Annotated

from vgbench_gen.core.types import FloatArray
from vgbench_gen.geometry import homography
from vgbench_gen.tasks.evidence import ArrayShape, Evidence, FactEvidence, Size


class WarpedImageEvidence(FactEvidence):
    """What is kept of the image that is warped."""

    size: Size
    """Of the image, before and after the warp."""


class Components(Evidence):
    """Parameters of `geometry.homography.make_similarity_perspective`; a component at its default is absent."""

    angle_deg: float = 0.0
    """Rotation about the centre of the image."""
    scale: float = 1.0
    """Enlargement about the centre of the image."""
    tx_px: float = 0.0
    """Translation to the right."""
    ty_px: float = 0.0
    """Translation down."""
    px: float = 0.0
    """Change of the denominator from the centre to the right border."""
    py: float = 0.0
    """Change of the denominator from the centre to the lower border."""

    def make_matrix(self, width: int, height: int) -> FloatArray:
        """(3, 3) before rounding."""
        return homography.make_similarity_perspective(
            width, height, self.angle_deg, self.scale, self.tx_px, self.ty_px, self.px, self.py
        )

    def list_parts(self) -> list[Components]:
        """The components that are present, each alone: rotation, scale, translation, perspective."""
        alone = [
            Components(angle_deg=self.angle_deg),
            Components(scale=self.scale),
            Components(tx_px=self.tx_px, ty_px=self.ty_px),
            Components(px=self.px, py=self.py),
        ]
        return [part for part in alone if part != Components()]

    def mirror(self) -> Components:
        """Those of the same warp between the mirrored images."""
        return self.with_fields(angle_deg=0.0 - self.angle_deg, tx_px=0.0 - self.tx_px, px=0.0 - self.px)


class WarpEvidence(Evidence):
    """What is kept of a sampled warp. One that was named, not sampled, has none."""

    components: Components
    """From which the matrix was made."""
    corners_px: Annotated[FloatArray, ArrayShape(4, 2)]
    """Where the printed matrix puts the corner pixels, in the order of `geometry.homography.image_corners`."""
    margins: dict[str, float]
    """Gate -> value over limit, at least 1, of every gate that the warp passed."""
