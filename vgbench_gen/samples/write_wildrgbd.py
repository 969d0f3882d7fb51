"""Samples as WildRGB-D videos: folders of PNG around one object, type and split lists (`docs/formats.md#wildrgb-d`)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from vgbench_gen.geometry.cameras import resize_camera
from vgbench_gen.geometry.poses import invert
from vgbench_gen.samples.base import Capture, SampleSpec
from vgbench_gen.samples.encode import convert_to_millimetres, encode_json, encode_png
from vgbench_gen.samples.layout import Layout, encode_lines, expose_frame, make_rng
from vgbench_gen.samples.sensors import LIDAR_SIZE, enlarge_depth, simulate_lidar

_MASK_LEVEL = 6  # masks are all runs: slow compression costs nothing


class WildRGBDLayout(Layout):
    """`<category>/scenes/<scene>/`; the world is the first camera, so nobody knows which way is up."""

    def path(self, spec: SampleSpec) -> Path:
        category, _, scene = spec.scene_id.partition("/")
        return Path(category, "scenes", scene)

    def write(self, capture: Capture, spec: SampleSpec, path: Path) -> None:
        for kind in ("rgb", "depth", "masks"):
            (path / kind).mkdir(parents=True)
        camera = capture.camera
        size = LIDAR_SIZE if camera.width >= camera.height else LIDAR_SIZE[::-1]
        sensor = resize_camera(camera, *size)
        file_from_world = invert(capture.world_from_camera[0])
        lines = []
        for number, pose in enumerate(capture.world_from_camera):
            look = capture.world.look(camera, pose)
            depth, _, cosine = capture.world.render_depth(sensor, pose, look)
            depth, _ = simulate_lidar(depth, cosine, make_rng(spec, "depth", number))
            mask = np.where(look.instance == capture.focus, 255, 0).astype(np.uint8)
            name = f"{number:05d}.png"
            (path / "rgb" / name).write_bytes(encode_png(expose_frame(look.color, camera, capture, spec, number)))
            (path / "depth" / name).write_bytes(encode_png(convert_to_millimetres(enlarge_depth(depth, camera.size))))
            (path / "masks" / name).write_bytes(encode_png(mask, _MASK_LEVEL))
            if number not in capture.lost:
                lines.append(format_pose_line(number, file_from_world @ pose))
        # K stands column by column.
        metadata = {"w": camera.width, "h": camera.height, "dw": camera.width, "dh": camera.height, "fps": 30}
        (path / "metadata").write_bytes(encode_json({**metadata, "K": camera.K.T.ravel()}))
        (path / "cam_poses.txt").write_bytes(encode_lines(lines))

    def make_lists(self, specs: Sequence[SampleSpec]) -> dict[str, bytes]:
        """`types.json`, `nvs_list.json` and `camera_eval_list.json` of every category."""
        of_category: defaultdict[str, list[SampleSpec]] = defaultdict(list)
        for spec in sorted(specs, key=lambda spec: spec.scene_id):
            of_category[spec.scene_id.partition("/")[0]].append(spec)
        files: dict[str, bytes] = {}
        for category, members in of_category.items():
            keys = {spec: f"scenes/{spec.scene_id.partition('/')[2]}" for spec in members}
            splits = {split: [keys[s] for s in members if s.split == split] for split in ("train", "val")}
            files[f"{category}/types.json"] = encode_json(dict.fromkeys(keys.values(), "single"))
            files[f"{category}/nvs_list.json"] = encode_json(splits)
            files[f"{category}/camera_eval_list.json"] = encode_json(splits)
        return files


def format_pose_line(number: int, pose: np.ndarray) -> str:
    """Line of cam_poses.txt: frame number and 16 numbers, row by row."""
    return " ".join([str(number), *(f"{value:.9f}" for value in pose.ravel())])
