"""A first look at a scene: some of its frames side by side, each above its depth."""

from __future__ import annotations

import cv2
import numpy as np

from vgbench_gen.core.types import ColorArray, DepthArray
from vgbench_gen.scenes.base import Scene

_FRAMES, _HEIGHT_PX = 4, 300


def draw_scene_sheet(scene: Scene) -> ColorArray:
    """(600, W, 3) uint8 RGB: frames spread over the scene, their depth below, near things warm, unknown depth black.

    Raises:
        VGBenchError: a frame cannot be read.
    """
    places = np.linspace(0, len(scene.frames) - 1, min(_FRAMES, len(scene.frames))).astype(int)
    columns = []
    for frame in (scene.frames[int(k)] for k in places):
        color = frame.color()
        width = round(_HEIGHT_PX * color.shape[1] / color.shape[0])
        size = (width, _HEIGHT_PX)
        depth = cv2.resize(_paint_depth(frame.depth_m()), size, interpolation=cv2.INTER_NEAREST)
        columns.append(np.vstack([cv2.resize(color, size, interpolation=cv2.INTER_AREA), depth]))
    return np.hstack(columns)


def _paint_depth(depth_m: DepthArray) -> ColorArray:
    known = depth_m > 0
    if not known.any():
        return np.zeros((*depth_m.shape, 3), dtype=np.uint8)
    near, far = np.percentile(depth_m[known], (2, 98))
    share = np.clip((far - depth_m) / max(far - near, 1e-6), 0, 1)
    painted = cv2.applyColorMap((255 * share).astype(np.uint8), cv2.COLORMAP_TURBO)[..., ::-1]
    return np.asarray(np.where(known[..., None], painted, 0), dtype=np.uint8)
