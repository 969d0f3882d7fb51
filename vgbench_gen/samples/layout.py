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
from vgbench_gen.samples.sensors import smear_motion

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


def expose_frame(color: ColorArray, camera: Camera, capture: Capture, spec: SampleSpec, number: int) -> ColorArray:
    """The picture of one frame, smeared where the camera shook. camera: of the picture."""
    if number not in capture.blurred:
        return color
    return smear_motion(color, camera, make_rng(spec, "blur", number))


def encode_lines(lines: Sequence[str]) -> bytes:
    """Lines of a list file."""
    return "".join(f"{line}\n" for line in lines).encode()
