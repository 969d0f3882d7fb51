"""One keyframe at delivered size, decoded once.

Loading a `ViewFrame` decodes its colour and its depth exactly once. Colour is then kept as the bytes that later
pictures start from (original bytes where nothing changes, lossless PNG otherwise) in an unnamed file on disk, and as
a grey image of at most 640 columns for sharpness, texture and features. Where crops are cut from it, the same is kept
of the frame at its wide size.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from functools import cached_property

import cv2
import numpy as np
import numpy.typing as npt

from vgbench_gen.core.errors import FrameError
from vgbench_gen.core.gates import DepthGates
from vgbench_gen.core.types import BoolArray, Camera, ColorArray, DepthArray, FloatArray
from vgbench_gen.geometry import cameras, poses, projection, visibility
from vgbench_gen.scenes.base import DepthKind, Frame, FrameObject
from vgbench_gen.scenes.opening import decode_depth
from vgbench_gen.store.pictures import decode, hash_look

Float32Array = npt.NDArray[np.float32]

GREY_WIDTH = 640  # the width at which pixel gates are stated
_FEATURE_SIDE = 256  # the longer side of the image on which features are found
_SAMPLE_COLUMNS = 24  # points per image row for pair tables: 24 x 18 decides an overlap to about 2 %


class Spool:
    """Bytes kept in one unnamed temporary file, so that many frames cost disk and not memory."""

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile(prefix="vgbench-")  # noqa: SIM115 - lives as long as the view

    def put(self, data: bytes) -> tuple[int, int]:
        """Keep bytes; the slot gets them back."""
        offset = self._file.seek(0, 2)
        self._file.write(data)
        return offset, len(data)

    def get(self, slot: tuple[int, int]) -> bytes:
        """The bytes of a slot."""
        self._file.seek(slot[0])
        return self._file.read(slot[1])

    def close(self) -> None:
        """Drop everything."""
        self._file.close()


class ViewFrame:
    """One keyframe at delivered size.

    camera: of the delivered image. wide_camera: of the image that crops are cut from. depth_camera, depth_m: as the
    loader gives them, float32 meters, 0 = unknown. depth_valid: share of known depth.

    wide_side_px: the longer side of the wide image; 0 where no crops are cut, and the wide image is the delivered one.
    keeps_small: whether `small_color` is kept, for those who look at it in most frames.
    """

    def __init__(
        self,
        frame: Frame,
        long_side_px: int,
        spool: Spool,
        wide_side_px: int = 0,
        keeps_small: bool = False,
        depth_kind: DepthKind = "laser",
    ) -> None:
        self.id = frame.id
        self.world_from_camera = frame.world_from_camera
        self.pose_deviation = frame.pose_deviation
        self.camera = make_delivered_camera(frame.camera, long_side_px)
        self.wide_camera = make_delivered_camera(frame.camera, max(long_side_px, wide_side_px))
        self.depth_camera = frame.depth_camera
        self.source_size = frame.camera.size
        self._frame = frame
        self._spool = spool

        native = frame.color()
        color = _resize_to(native, self.camera)
        images = {self.camera.size: color}
        if self.wide_camera.size not in images:
            images[self.wide_camera.size] = _resize_to(native, self.wide_camera)
        self.grey = _shrink(np.asarray(cv2.cvtColor(color, cv2.COLOR_RGB2GRAY), dtype=np.uint8), GREY_WIDTH)
        # Wide images are kept now as well: to come back for some means to decode a video once more from its start.
        self._slots = {
            size: spool.put(_encode_png(image))
            for size, image in images.items()
            if size != frame.camera.size or frame.encoded_color() is None
        }
        small = _shrink_color(color) if keeps_small else None
        self._small = None if small is None else (spool.put(small.tobytes()), small.shape)
        self.depth_m = np.array(decode_depth(frame, depth_kind))
        mask = frame.valid_mask()
        if mask is not None:
            size = self.depth_m.shape[1], self.depth_m.shape[0]
            self.depth_m[cv2.resize(mask.astype(np.uint8), size, interpolation=cv2.INTER_NEAREST) == 0] = 0
        self.depth_m.flags.writeable = False
        self.depth_valid = float(np.count_nonzero(self.depth_m) / self.depth_m.size)

    @property
    def frame(self) -> Frame:
        """The loader's frame (masks and its own object list)."""
        return self._frame

    @cached_property
    def listed(self) -> Mapping[str, FrameObject]:
        """The loader's list of what the frame shows, by instance id; empty where it has none. Raises FrameError."""
        return {entry.instance_id: entry for entry in self._frame.objects()}

    @property
    def camera_from_world(self) -> FloatArray:
        """(4, 4) float64."""
        return poses.invert(self.world_from_camera)

    @property
    def center_m(self) -> FloatArray:
        """(3,) camera centre in the world frame, meters."""
        return np.asarray(self.world_from_camera[:3, 3])

    def base_camera(self, wide: bool = False) -> Camera:
        """The camera of `base_image`."""
        return self.wide_camera if wide else self.camera

    def base_image(self, wide: bool = False) -> tuple[bytes, str]:
        """The bytes that pictures of this frame start from, and their suffix ("jpg" or "png").

        wide: whether crops are cut from it; otherwise it is shown whole.
        """
        slot = self._slots.get(self.base_camera(wide).size)
        data = self._frame.encoded_color() if slot is None else self._spool.get(slot)
        if data is None:
            raise FrameError(self.id, "no original bytes", "the bytes that were there before", "Report this.")
        return data, "jpg" if data[:2] == b"\xff\xd8" else "png"

    def small_color(self) -> ColorArray:
        """(h, w, 3) RGB pixels of the delivered image, shrunk to a long side of at most 640."""
        if self._small is None:
            return _shrink_color(decode(self.base_image()[0], self.id))
        slot, shape = self._small
        return np.frombuffer(self._spool.get(slot), dtype=np.uint8).reshape(shape)

    def depth_uv(self, uv_px: FloatArray) -> FloatArray:
        """Delivered pixels (..., 2) as depth pixels (..., 2)."""
        return cameras.map_pixels(self.depth_camera, self.camera, uv_px)

    def depth_at(self, uv_px: FloatArray) -> FloatArray:
        """Nearest measured depth, meters, at delivered pixels (..., 2); 0 where unknown or outside."""
        return np.asarray(projection.sample_nearest(self.depth_m, self.depth_uv(uv_px), outside=0), dtype=np.float64)

    def depth_patch(self, rect_px: Sequence[float]) -> DepthArray:
        """(h, w) measured depth whose pixel centres lie in the delivered rectangle (x1, y1, x2, y2), ends included."""
        low = np.ceil(self.depth_uv(np.array(rect_px[:2], dtype=np.float64) - 0.5)).astype(int)
        high = np.floor(self.depth_uv(np.array(rect_px[2:], dtype=np.float64) + 0.5)).astype(int)
        low = np.maximum(low, 0)
        return self.depth_m[low[1] : max(high[1] + 1, low[1]), low[0] : max(high[0] + 1, low[0])]

    def points_at(self, uv_px: FloatArray) -> FloatArray:
        """(..., 3) world points of delivered pixels (..., 2) by their measured depth; NaN where unknown."""
        z_m = self.depth_at(uv_px)
        camera_points = projection.back_project(self.camera, uv_px, np.where(z_m > 0, z_m, np.nan))
        return poses.transform(self.world_from_camera, camera_points)

    @cached_property
    def sharpness(self) -> float:
        """Variance of the Laplacian of `grey`."""
        return float(cv2.Laplacian(self.grey, cv2.CV_64F).var())

    @cached_property
    def samples(self) -> tuple[FloatArray, FloatArray]:
        """((N, 2) delivered pixels on a regular grid with known depth, (N, 3) world points), fixed per frame."""
        step = self.camera.width / _SAMPLE_COLUMNS
        u, v = np.meshgrid(np.arange(step / 2, self.camera.width, step), np.arange(step / 2, self.camera.height, step))
        uv_px = np.floor(np.stack([u.ravel(), v.ravel()], axis=-1))
        known = self.depth_at(uv_px) > 0
        uv_px = uv_px[known]
        return uv_px, self.points_at(uv_px)

    @cached_property
    def sampled_depth_m(self) -> FloatArray:
        """(N,) depth of `samples`."""
        return self.depth_at(self.samples[0])

    def edge_mask(self, gates: DepthGates) -> BoolArray:
        """(h, w) depth pixels too near a depth step or unknown depth to carry a point."""
        radius_px = gates.edge_guard_px_at_640 * self.depth_camera.width / GREY_WIDTH
        return visibility.find_depth_edges(self.depth_m, radius_px, gates.edge_step_m, gates.edge_step_relative)

    @cached_property
    def features(self) -> tuple[FloatArray, Float32Array]:
        """SIFT on `grey` at a long side of 256: ((N, 2) delivered pixels, (N, 128) float32 descriptors), strongest 600.

        Faint keypoints of a small image: on 166 pairs of real captures they gave more matches that fit depth and pose
        than OpenCV's defaults at 640 (88 pairs solved instead of 70, 0.25 instead of 0.32 degrees off) in a quarter
        of the time. The finest scale of a large image costs most and matches least.
        """
        height, width = self.grey.shape
        image = _shrink(self.grey, max(1, round(_FEATURE_SIDE * width / max(width, height))))
        found, descriptors = cv2.SIFT.create(nfeatures=600, contrastThreshold=0.01).detectAndCompute(image, None)
        if descriptors is None or not found:
            return np.zeros((0, 2)), np.zeros((0, 128), np.float32)
        scale = np.array([self.camera.width / image.shape[1], self.camera.height / image.shape[0]])
        uv_px = (_list_places(found) + 0.5) * scale - 0.5
        return uv_px, np.asarray(descriptors, dtype=np.float32)

    @cached_property
    def corners_uv(self) -> FloatArray:
        """(N, 2) FAST corners on `grey` in delivered pixels; their number is a cheap measure of what can be matched."""
        found = cv2.FastFeatureDetector.create(threshold=12).detect(self.grey)
        scale = np.array(self.camera.size) / self.grey.shape[1::-1]
        return (_list_places(found) + 0.5) * scale - 0.5

    @cached_property
    def look(self) -> int:
        """64-bit perceptual hash of `grey`."""
        return hash_look(self.grey)

    def textured(self) -> BoolArray:
        """(h, w) where the smaller eigenvalue of the structure tensor on `grey` is above its median.

        The median is that of every second row and column.
        """
        texture = np.asarray(cv2.cornerMinEigenVal(self.grey, blockSize=7), dtype=np.float32)
        return np.asarray(texture > np.median(texture[::2, ::2]))


def _list_places(found: Sequence[cv2.KeyPoint]) -> FloatArray:
    """(N, 2) pixels of keypoints."""
    return np.array(cv2.KeyPoint.convert(found), dtype=np.float64).reshape(-1, 2)


def make_delivered_camera(camera: Camera, long_side_px: int) -> Camera:
    """The camera after the image is shrunk (never enlarged) to a long side of at most `long_side_px`."""
    long_side = max(camera.size)
    if long_side <= long_side_px:
        return camera
    scale = long_side_px / long_side
    return cameras.resize_camera(camera, max(1, round(camera.width * scale)), max(1, round(camera.height * scale)))


def make_delivered_color(frame: Frame, long_side_px: int) -> tuple[ColorArray, bytes | None]:
    """(H, W, 3) uint8 RGB of a frame at delivered size, and its original bytes where they hold exactly these pixels.

    Raises:
        FrameError: the frame cannot be decoded.
    """
    camera = make_delivered_camera(frame.camera, long_side_px)
    color = _resize_to(frame.color(), camera)
    return color, frame.encoded_color() if camera.size == frame.camera.size else None


def _resize_to(color: ColorArray, camera: Camera) -> ColorArray:
    """The image at the size of a camera, itself where it has that size."""
    if color.shape[1::-1] == camera.size:
        return color
    return np.asarray(cv2.resize(color, camera.size, interpolation=cv2.INTER_AREA), dtype=np.uint8)


def _shrink_color(color: ColorArray) -> ColorArray:
    height, width = color.shape[:2]
    scale = min(1.0, GREY_WIDTH / max(width, height))
    size = max(1, round(width * scale)), max(1, round(height * scale))
    return np.asarray(cv2.resize(color, size, interpolation=cv2.INTER_AREA), dtype=np.uint8)


def _shrink(grey: ColorArray, width: int) -> ColorArray:
    """The image shrunk to at most `width` columns."""
    if grey.shape[1] <= width:
        return grey
    height = max(1, round(grey.shape[0] * width / grey.shape[1]))
    return np.asarray(cv2.resize(grey, (width, height), interpolation=cv2.INTER_AREA), dtype=np.uint8)


def _encode_png(color: ColorArray) -> bytes:
    # No search for repeats, which photographs do not have, and the filter that is fastest both ways: writing and
    # reading together take half the time of zlib's level 1 for as many bytes (Paeth: fewer bytes, half as long again).
    options = [cv2.IMWRITE_PNG_STRATEGY, cv2.IMWRITE_PNG_STRATEGY_HUFFMAN_ONLY]
    options += [cv2.IMWRITE_PNG_FILTER, cv2.IMWRITE_PNG_FILTER_AVG]
    done, data = cv2.imencode(".png", cv2.cvtColor(color, cv2.COLOR_RGB2BGR), options)
    if not done:
        raise ValueError(f"PNG encoder refused an image of shape {color.shape}")
    return data.tobytes()
