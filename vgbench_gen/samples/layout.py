"""What the four writers have in common: where a scene goes, how it gets there, and what lies beside the scenes."""

from __future__ import annotations

import abc
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from vgbench_gen.core.rng import rng_for
from vgbench_gen.core.types import Camera, ColorArray, FloatArray
from vgbench_gen.geometry.poses import make_pose
from vgbench_gen.samples.base import Capture, SampleSpec
from vgbench_gen.samples.sensors import add_grain, shake, smear_motion

FIRST_UPTIME_S = 1000.0
"""Devices stamp frames with the time since they were started; ours were started a while ago."""


class Layout(abc.ABC):
    """How one dataset puts scenes on disk. Paths are relative to the dataset's own folder."""

    @abc.abstractmethod
    def path(self, spec: SampleSpec) -> Path:
        """The file or folder that holds the whole scene and appears when it is finished."""

    @abc.abstractmethod
    def write(self, capture: Capture, spec: SampleSpec, path: Path) -> None:
        """Render the capture and write it to `path`, which is not there yet: the scene's file or folder."""

    @abc.abstractmethod
    def make_lists(self, specs: Sequence[SampleSpec]) -> dict[str, bytes]:
        """Files beside the scenes that name them (splits, types), by path; the same for the same set of scenes."""


def make_rng(spec: SampleSpec, purpose: str, frame: int | str = "") -> np.random.Generator:
    """Randomness of one purpose in one scene, the same whichever process writes it and in whatever order."""
    return rng_for(spec.seed, "samples", purpose, spec.dataset, spec.scene_id, str(frame))


def make_file_frame(yaw_deg: float, shift_m: Sequence[float] | FloatArray) -> FloatArray:
    """(4, 4) `file_from_world` of a frame with the same up direction."""
    c, s = np.cos(np.radians(yaw_deg)), np.sin(np.radians(yaw_deg))
    return make_pose(np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]]), np.asarray(shift_m, np.float64))


_SENSORS = {
    # Deviation of the grain in grey levels, of the shake in pixels, and how much the camera sharpens.
    "scannet": (2.0, 0.7, 0.5),
    "scannetpp/iphone": (1.2, 0.5, 0.6),
    "scannetpp/dslr": (0.8, 0.25, 0.3),
    "ca1m": (1.3, 0.4, 0.6),
    "wildrgbd": (1.3, 0.4, 0.6),
}


def expose_frame(color: ColorArray, camera: Camera, capture: Capture, spec: SampleSpec, number: int) -> ColorArray:
    """The picture of one frame as its dataset's sensor takes it: shaken a little, grainy, and smeared where the camera
    was jerked. Nothing moves on the whole: every smear is even about the pose. camera: of the picture."""
    grain, shake_px, sharpen = _SENSORS[f"{spec.dataset}/{spec.camera_kind}" if spec.camera_kind else spec.dataset]
    if number in capture.blurred:
        color = smear_motion(color, camera, make_rng(spec, "blur", number))
    rng = make_rng(spec, "sensor noise", number)
    return add_grain(shake(color, shake_px * rng.standard_normal(2), sharpen), grain, rng)


def encode_lines(lines: Sequence[str]) -> bytes:
    """Lines of a list file."""
    return "".join(f"{line}\n" for line in lines).encode()
