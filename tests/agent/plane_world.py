"""A small world of textured planes, rendered exactly by homographies: a slanted wall and two boards before it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import cv2
import numpy as np
from scipy.spatial.transform import Rotation

from vgbench_gen.agent.tool import Tool, ToolInput, ToolOutput, tools
from vgbench_gen.core.types import ColorArray, FloatArray
from vgbench_gen.store.pictures import encode_jpeg
from vgbench_gen.tasks.solving import Image

WIDTH, HEIGHT = 480, 360
K = np.array([[420.0, 0, 239.5], [0, 420.0, 179.5], [0, 0, 1]])
CAMERA = {"fx": 420.0, "fy": 420.0, "cx": 239.5, "cy": 179.5}
TURN = Rotation.from_euler("yxz", [8, -3, 4], degrees=True).as_matrix()
SHIFT = np.array([-0.35, 0.06, 0.12])
# A corner, the two sides and their lengths in meters; the farthest first.
_BOARDS = (
    ((-6.0, -4.5, 4.6), (12.0, 0.0, 1.2), (0.0, 9.0, 0.0)),
    ((-1.3, -0.7, 3.0), (1.1, 0.0, 0.4), (0.0, 1.2, 0.1)),
    ((0.2, -0.2, 2.4), (1.0, 0.0, -0.3), (0.0, 0.9, 0.0)),
)
_TEXELS = 100  # per meter


@dataclass(frozen=True)
class View:
    """One image of the world from a camera at X_camera = R X_world + t."""

    image: ColorArray
    depth: FloatArray

    def open(self) -> Image:
        return Image(encode_jpeg(self.image))


@cache
def _make_texture(place: int, wide: int, high: int) -> ColorArray:
    rng = np.random.default_rng(place)
    layers = []
    for step in (4, 9, 24):
        coarse = rng.uniform(0, 255, (max(2, high // step), max(2, wide // step), 3))
        layers.append(cv2.resize(coarse, (wide, high), interpolation=cv2.INTER_CUBIC))
    return np.asarray(np.clip(128 + 1.5 * (np.mean(layers, axis=0) - 128), 0, 255), dtype=np.uint8)


def render(R: FloatArray | None = None, t: FloatArray | None = None, camera: FloatArray = K) -> View:
    R, t = np.eye(3) if R is None else R, np.zeros(3) if t is None else t
    return _render(R.tobytes(), t.tobytes(), camera.tobytes())


@cache
def _render(R_: bytes, t_: bytes, K_: bytes) -> View:
    R, t, camera = (np.frombuffer(x) for x in (R_, t_, K_))
    R, camera = R.reshape(3, 3), camera.reshape(3, 3)
    scale = round(camera[0, 0] / K[0, 0])
    size = (WIDTH * scale, HEIGHT * scale)
    image, depth = np.zeros((size[1], size[0], 3), np.uint8), np.full(size[::-1], np.nan)
    rays = np.stack([*np.meshgrid(np.arange(size[0]), np.arange(size[1])), np.ones(size[::-1])], axis=-1)
    for place, (corner, along, down) in enumerate(_BOARDS):
        lengths = [float(np.linalg.norm(side)) for side in (along, down)]
        wide, high = (round(length * _TEXELS) for length in lengths)
        frame = np.column_stack([np.array(along) / wide, np.array(down) / high, np.array(corner)])
        H = camera @ (R @ frame + np.outer(t, [0, 0, 1]))
        texture = _make_texture(place, wide, high)
        shown = cv2.warpPerspective(texture, H, size, flags=cv2.INTER_LINEAR)
        mask = cv2.warpPerspective(np.full((high, wide), 255, np.uint8), H, size) > 250
        texel = rays @ np.linalg.inv(H).T
        z = 1 / np.where(texel[..., 2] > 0, texel[..., 2], np.nan)
        image[mask], depth[mask] = shown[mask], z[mask]
    return View(image, depth)


def move(uv: FloatArray, view: View, R: FloatArray, t: FloatArray, camera: FloatArray = K) -> FloatArray:
    """(N, 2) pixels of the world's first view where a second camera sees the same points."""
    u, v = np.round(uv).astype(int).T
    z = view.depth[v, u]
    rays = np.column_stack([np.round(uv), np.ones(len(uv))]) @ np.linalg.inv(camera).T
    seen = (rays * z[:, None] @ R.T + t) @ camera.T
    return np.asarray(seen[:, :2] / seen[:, 2:])


def mirror(image: ColorArray) -> ColorArray:
    return np.ascontiguousarray(image[:, ::-1])


def call(name: str, images: list[Any] | None = None, **arguments: Any) -> ToolOutput:
    """What a tool gives, with arguments as a model writes them."""
    import json

    tool: Tool = tools[name]
    opened = [view.open() if isinstance(view, View) else view for view in images or []]
    if "image" in tool.Arguments.model_fields and opened and "image" not in arguments:
        single = tool.Arguments.model_fields["image"].annotation is str
        arguments["image"] = "image-0" if single else [f"image-{k}" for k in range(len(opened))]
    given = tool.Arguments.model_validate_json(json.dumps(arguments))
    made = tool.run(ToolInput(given, opened))
    return ToolOutput(json.loads(json.dumps(made.values, allow_nan=False)), made.images)
