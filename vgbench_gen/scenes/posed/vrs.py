"""Streams of pictures in VRS files, and their fisheye lens, by projectaria-tools (extra `aria`)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
import numpy.typing as npt

from vgbench_gen.core.errors import FrameError, SceneError
from vgbench_gen.core.types import FloatArray
from vgbench_gen.scenes._lens import Lens
from vgbench_gen.scenes.files import MAX_PIXELS, open_regular
from vgbench_gen.scenes.posed.extras import need, silence

_ZOOMS = np.linspace(1.0, 3.0, 201)


class VrsStream:
    """One stream of pictures.

    Args:
        path: the file. names: of the stream: its id or its description; the first that there is counts.

    Raises:
        SceneError: projectaria-tools is not installed, no readable file, or no such stream.
    """

    def __init__(self, path: Path, names: Sequence[str]) -> None:
        core = need("projectaria_tools.core", "aria")
        open_regular(path, path).close()
        self.path, self._lock = path, Lock()
        try:
            with silence():
                self._provider: Any = core.data_provider.create_vrs_data_provider(str(path))
                self._id, config = self._find(core, names)
                times_ns = self._provider.get_timestamps_ns(self._id, core.sensor_data.TimeDomain.DEVICE_TIME)
        except (RuntimeError, ValueError, IndexError, AttributeError) as problem:
            found = f"no readable stream {names[0]} ({str(problem)[:80]})"
            raise SceneError(path, found, "a VRS file of Aria with it", "Download it again.") from problem
        self.size = int(config.image_width), int(config.image_height)
        """Width and height in pixels."""
        if not 0 < self.size[0] * self.size[1] <= MAX_PIXELS:
            raise SceneError(path, f"{self.size[0]}x{self.size[1]} pixels", f"1 to {MAX_PIXELS} pixels")
        self.times_s: FloatArray = np.array(times_ns, dtype=np.float64) / 1e9
        """(n,) seconds of the device's clock, rising."""

    def _find(self, core: Any, names: Sequence[str]) -> tuple[Any, Any]:
        provider = self._provider  # None where the file is no VRS file
        ids = [each for each in provider.get_all_streams() if _holds_pictures(core, provider, each)]
        known = {str(each): (each, provider.get_image_configuration(each)) for each in ids}
        known = {config.description: (each, config) for each, config in known.values()} | known
        found = next((known[name] for name in names if name in known), None)
        if found is None:
            raise ValueError(f"streams of pictures {', '.join(known)}")
        return found

    def read(self, i: int, channels: int) -> npt.NDArray[Any]:
        """Picture i: (H, W, 3) uint8 RGB, or (h, w) uint16 where there is one channel. Raises FrameError."""
        where = f"{self.path}, picture {i}"
        with self._lock:
            try:
                data, _ = self._provider.get_image_data_by_index(self._id, i)
                pixels = np.array(data.to_numpy_array()) if data.is_valid() else np.zeros(0)
            except (RuntimeError, ValueError, AttributeError) as problem:  # the last where the file is closed
                raise FrameError(where, f"pixels that do not decode ({str(problem)[:80]})", "a picture") from problem
        shape = self.size[::-1] if channels == 1 else (*self.size[::-1], channels)
        if pixels.shape != shape or pixels.dtype != (np.uint16 if channels == 1 else np.uint8):
            raise FrameError(where, f"pixels {pixels.shape} of {pixels.dtype}", f"{shape}")
        return pixels

    def read_calibration(self, label: str) -> Any:
        """The calibration of a camera in the file. Raises SceneError."""
        device = self._provider.get_device_calibration()
        found = device.get_camera_calib(label) if device is not None else None
        if found is None or tuple(int(side) for side in found.get_image_size()) != self.size:
            raise SceneError(self.path, f"no calibration of {label} for its pictures", "one", "Download it again.")
        return found

    def close(self) -> None:
        """Release the file."""
        with self._lock:
            self._provider = None


class Fisheye:
    """The pinhole camera of a fisheye lens: of the size of the picture, with the smallest focal length, from the lens's
    own on, for which the corners lie inside the old picture.

    Raises:
        SceneError: there is none.
    """

    def __init__(self, calibration: Any, where: object) -> None:
        self._core, self._source = need("projectaria_tools.core", "aria"), calibration
        width, height = (int(side) for side in calibration.get_image_size())
        focal = float(calibration.get_focal_lengths()[0])
        corners = [np.array([x * (width - 1) / 2, y * (height - 1) / 2, 1.0]) for x in (-1, 1) for y in (-1, 1)]
        scales = [(1 / (zoom * focal), 1 / (zoom * focal), 1.0) for zoom in _ZOOMS]
        seen = (all(calibration.project(corner * scale) is not None for corner in corners) for scale in scales)
        zoom = next((float(zoom) for zoom, fits in zip(_ZOOMS, seen, strict=True) if fits), None)
        if zoom is None:
            raise SceneError(where, "a lens that no pinhole picture can be cut from", "that of a camera of Aria")
        self._made = self._core.calibration.get_linear_camera_calibration(width, height, zoom * focal)
        self.lens = Lens("pinhole", width, height, zoom * focal, zoom * focal, (width - 1) / 2, (height - 1) / 2)
        """The camera of what `undistort` gives."""
        self.device_from_camera = np.array(calibration.get_transform_device_camera().to_matrix(), np.float64)
        """(4, 4)."""

    def undistort(self, picture: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """The picture of the pinhole camera; of depth, which has one channel, with the nearest value."""
        methods = self._core.image.InterpolationMethod
        method = methods.NEAREST_NEIGHBOR if picture.ndim == 2 else methods.BILINEAR
        return np.asarray(self._core.calibration.distort_by_calibration(picture, self._made, self._source, method))


def _holds_pictures(core: Any, provider: Any, stream: Any) -> bool:
    return bool(provider.get_sensor_data_type(stream) == core.sensor_data.SensorDataType.IMAGE)
