"""How far the ground truth of each source may be off, and how well an answer must bear that.

The noise test (`docs/validity.md#noise-test`) perturbs what an answer was measured from and asks whether the best
option stays best. Errors are normal; what follows "judged" has no published figure and is to be calibrated on real data
(`docs/validity.md#to-be-calibrated`).
"""

from __future__ import annotations

from typing import Annotated

from pydantic import ConfigDict, Field

from vgbench_gen.core.config import Config

Sigma = Annotated[float, Field(ge=0)]


class SensorNoise(Config):
    """Standard deviations of the errors of one source."""

    depth_m: Sigma
    """The constant part of the error of depth, meters; together, a depth of z meters is off by depth_m + depth_per_m *
    z^2. One error holds for a whole region: pixels' own noise vanishes in a mean or median over a region, what they
    share does not."""
    depth_per_m: Sigma
    """The part that grows with the square of the depth, meters per square meter."""
    turn_deg: Sigma
    """The root mean square angle by which the pose of one camera is off from that of another, or from the scene's, in
    degrees; no direction is preferred."""
    shift_m: Sigma
    """The root mean square translation by which the pose of one camera is off in the same sense, meters."""
    focal: Sigma
    """The error of focal lengths as a share of them; principal points are off by as many pixels."""
    box_m: Sigma
    """The error of each coordinate of an annotated box's centre and of each of its sides, meters."""

    def depth_sigma_m(self, z_m: float) -> float:
        """Standard deviation of the depth of a region at depth z, in meters."""
        return self.depth_m + self.depth_per_m * z_m**2


class NoiseGates(Config):
    """The noise test: sources, how often it perturbs, and in which share of the draws the best option must stay best.

    Reference poses disagree by algorithm at the level of 1 cm and 1 degree (Brachmann et al. 2021,
    `docs/validity.md#noise-of-the-sources`). Focal lengths are off by half a per cent, and by a per cent for WildRGB-D,
    where one camera serves a whole scene (judged).

    Other sources may stand beside these under their own names: what a recipe says in `[gates.noise.<source>]`, and what
    the loader of a source says of itself (`scenes.base.DatasetInfo.noise`), which a build notes in its recipe.
    """

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, SensorNoise] = Field(init=False)

    scannet: SensorNoise = SensorNoise(
        depth_m=0.001, depth_per_m=0.0016, turn_deg=1.0, shift_m=0.03, focal=0.005, box_m=0.03
    )
    """Errors of ScanNet. Structured light is off by 1.6 mm * z^2 (Khoshelham and Elberink 2012) and by the millimeter
    it is stored in. BundleFusion poses drift by 3 cm, which the gate of visible points allows for at two deviations.
    Boxes are fitted to fused surface, which rounds off 1 to 2 cm and ends where the annotation does: 3 cm (judged)."""
    scannetpp: SensorNoise = SensorNoise(
        depth_m=0.010, depth_per_m=0.0010, turn_deg=1.0, shift_m=0.03, focal=0.005, box_m=0.03
    )
    """Errors of the phone of ScanNet++, the worse of its two cameras. Moving LiDAR is off by 1 cm (Teo and Yang 2023),
    and upsampling from 256 x 192 adds with distance (judged, within the gate of visible points). Its poses are "often
    inaccurate" (`ByteDance-Seed/Depth-Anything-3` issue 29). Boxes are those of ScanNet, around annotated surface."""
    ca1m: SensorNoise = SensorNoise(
        depth_m=0.003, depth_per_m=0.0005, turn_deg=0.5, shift_m=0.01, focal=0.005, box_m=0.02
    )
    """Errors of CA-1M. Depth is rendered from a laser scan and poses are registered to it: millimeters, and half of
    what other poses are off (judged). Boxes are annotated on the laser scan, for each frame: 2 cm (judged)."""
    wildrgbd: SensorNoise = SensorNoise(
        depth_m=0.010, depth_per_m=0.0010, turn_deg=1.0, shift_m=0.03, focal=0.010, box_m=0.03
    )
    """Errors of WildRGB-D, which has phone LiDAR as ScanNet++ and poses by SLAM. It has no boxes, so its `box_m` is the
    largest of all."""
    draws: int = Field(default=200, ge=1)
    """How many times the test perturbs an item; 200 measure a share of 0.99 to a few tenths of a per cent."""
    kept_min: float = Field(default=0.99, ge=0, le=1)
    """The least share of the draws after which the best option must still be the best."""

    def of(self, source: str) -> SensorNoise:
        """The noise of a source; where the source is not known, the largest error of each kind."""
        known = self.stated
        if source in known:
            return known[source]
        return SensorNoise(
            **{name: max(getattr(noise, name) for noise in known.values()) for name in SensorNoise.model_fields}
        )

    @property
    def stated(self) -> dict[str, SensorNoise]:
        """The noise of every source of which it is known, by the name of its loader."""
        return {name: value for name, value in self if isinstance(value, SensorNoise)}
