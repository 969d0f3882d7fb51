"""Samples as WildRGB-D videos: folders of PNG around one object, type and split lists (`docs/formats.md#wildrgb-d`)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from vgbench_gen.geometry.cameras import resized
from vgbench_gen.geometry.poses import invert
from vgbench_gen.samples.base import SampleSpec, Take
from vgbench_gen.samples.encode import json_bytes, millimetres, png
from vgbench_gen.samples.layout import Layout, exposed, generator, text_lines
from vgbench_gen.samples.sensors import LIDAR_SIZE, enlarged, lidar

_MASK_LEVEL = 6  # masks are all runs: slow compression costs nothing


class WildRGBDLayout(Layout):
    """`<category>/scenes/<scene>/`; the world is the first camera, so nobody knows which way is up."""

    def path(self, spec: SampleSpec) -> Path:
        """See `Layout.path`."""
        category, _, scene = spec.scene_id.partition("/")
        return Path(category, "scenes", scene)

    def write(self, take: Take, spec: SampleSpec, path: Path) -> None:
        """See `Layout.write`."""
        for kind in ("rgb", "depth", "masks"):
            (path / kind).mkdir(parents=True)
        camera = take.camera
        size = LIDAR_SIZE if camera.width >= camera.height else LIDAR_SIZE[::-1]
        sensor = resized(camera, *size)
        file_from_world = invert(take.world_from_camera[0])
        lines = []
        for number, pose in enumerate(take.world_from_camera):
            look = take.world.look(camera, pose)
            depth, _, cosine = take.world.depth(sensor, pose)
            depth, _ = lidar(depth, cosine, generator(spec, "depth", number))
            mask = np.where(look.instance == take.focus, 255, 0).astype(np.uint8)
            name = f"{number:05d}.png"
            (path / "rgb" / name).write_bytes(png(exposed(look.color, camera, take, spec, number)))
            (path / "depth" / name).write_bytes(png(millimetres(enlarged(depth, camera.size))))
            (path / "masks" / name).write_bytes(png(mask, _MASK_LEVEL))
            if number not in take.lost:
                lines.append(pose_line(number, file_from_world @ pose))
        # K stands column by column.
        metadata = {"w": camera.width, "h": camera.height, "dw": camera.width, "dh": camera.height, "fps": 30}
        (path / "metadata").write_bytes(json_bytes({**metadata, "K": camera.K.T.ravel()}))
        (path / "cam_poses.txt").write_bytes(text_lines(lines))

    def lists(self, specs: Sequence[SampleSpec]) -> dict[str, bytes]:
        """`types.json`, `nvs_list.json` and `camera_eval_list.json` of every category."""
        of_category: defaultdict[str, list[SampleSpec]] = defaultdict(list)
        for spec in sorted(specs, key=lambda spec: spec.scene_id):
            of_category[spec.scene_id.partition("/")[0]].append(spec)
        files: dict[str, bytes] = {}
        for category, members in of_category.items():
            keys = {spec: f"scenes/{spec.scene_id.partition('/')[2]}" for spec in members}
            splits = {split: [keys[s] for s in members if s.split == split] for split in ("train", "val")}
            files[f"{category}/types.json"] = json_bytes(dict.fromkeys(keys.values(), "single"))
            files[f"{category}/nvs_list.json"] = json_bytes(splits)
            files[f"{category}/camera_eval_list.json"] = json_bytes(splits)
        return files


def pose_line(number: int, pose: np.ndarray) -> str:
    """Line of cam_poses.txt: frame number and 16 numbers, row by row."""
    return " ".join([str(number), *(f"{value:.9f}" for value in pose.ravel())])
