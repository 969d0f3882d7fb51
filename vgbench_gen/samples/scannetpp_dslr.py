"""The DSLR half of a ScanNet++ sample: fisheye photographs with their poses (`docs/formats.md#colmap-models`)."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from vgbench_gen.core.types import Camera, FloatArray
from vgbench_gen.samples.base import Capture, SampleSpec
from vgbench_gen.samples.encode import (
    convert_to_nerfstudio,
    encode_jpeg,
    encode_json,
    encode_png,
    format_colmap_camera,
    format_colmap_model,
)
from vgbench_gen.samples.layout import expose_frame, make_rng
from vgbench_gen.samples.lenses import LensImage

# Of the release's lens, at a longer focal length (there 0.45 of the width): its corners look 76 degrees off the axis,
# for which one pinhole picture is no source.
_DISTORTION = (-0.03, -0.006, 0.002, -0.0004)
_FOCAL_SHARE = (0.565, 0.588)
# The rim of the pinhole picture has detail to spare; its middle is as fine as pictures of 1100 pixels are.
_PINHOLE_SHARE = 0.62
_JPEG_QUALITY = 93
_TEST_OF_TEN = 4
_MASK_LEVEL = 9


def write_dslr(capture: Capture, spec: SampleSpec, file_from_world: FloatArray, folder: Path) -> None:
    """Everything below `dslr/`. file_from_world: (4, 4), where the mesh was put."""
    lens = LensImage("OPENCV_FISHEYE", _draw_camera(spec, capture.camera.size), _DISTORTION, _PINHOLE_SHARE, fine=2)
    for name in ("resized_images", "resized_anon_masks", "colmap", "nerfstudio"):
        (folder / name).mkdir()
    nobody = encode_png(np.full(lens.camera.size[::-1], 255, np.uint8), _MASK_LEVEL)
    first = int(make_rng(spec, "photographs").integers(100, 9000))
    names = [f"DSC{first + number:05d}.JPG" for number in range(len(capture.world_from_camera))]
    for number, (name, pose) in enumerate(zip(names, capture.world_from_camera, strict=True)):
        color = lens.color(capture.world.look(lens.pinhole, pose).color)
        color = expose_frame(color, lens.camera, capture, spec, number)
        (folder / "resized_images" / name).write_bytes(encode_jpeg(color, _JPEG_QUALITY))
        (folder / "resized_anon_masks" / f"{name[:-4]}.png").write_bytes(nobody)
    kept = {
        name: file_from_world @ pose
        for number, (name, pose) in enumerate(zip(names, capture.world_from_camera, strict=True))
        if number not in capture.lost
    }
    line = format_colmap_camera("OPENCV_FISHEYE", lens.camera.size, lens.camera.K, lens.distortion)
    for name, text in format_colmap_model(line, kept).items():
        (folder / "colmap" / name).write_text(text)
    bad = {names[number] for number in capture.blurred}
    frames = [
        {
            "file_path": name,
            "mask_path": f"{name[:-4]}.png",
            "transform_matrix": convert_to_nerfstudio(pose),
            "is_bad": name in bad,
        }
        for name, pose in kept.items()
    ]
    K, (width, height) = lens.camera.K, lens.camera.size
    head = {"fl_x": K[0, 0], "fl_y": K[1, 1], "cx": K[0, 2] + 0.5, "cy": K[1, 2] + 0.5, "w": width, "h": height}
    head |= dict(zip(("k1", "k2", "k3", "k4"), lens.distortion, strict=True))
    test = set(list(kept)[_TEST_OF_TEN::10])
    groups = {
        "frames": [frame for frame in frames if frame["file_path"] not in test],
        "test_frames": [frame for frame in frames if frame["file_path"] in test],
    }
    transforms = head | {"camera_model": "OPENCV_FISHEYE", "has_mask": True} | groups
    (folder / "nerfstudio" / "transforms.json").write_bytes(encode_json(transforms))
    lists = {"train": [n for n in kept if n not in test], "test": sorted(test), "has_masks": True}
    (folder / "train_test_lists.json").write_bytes(encode_json(lists))


def _draw_camera(spec: SampleSpec, size: tuple[int, int]) -> Camera:
    """K of the lens, a little off centre, one for all photographs."""
    rng = make_rng(spec, "lens")
    fx = float(np.round(size[0] * rng.uniform(*_FOCAL_SHARE), 3))
    cx, cy = np.round(np.array(size) * (0.5 + rng.uniform(-0.005, 0.005, 2)), 3).tolist()
    return Camera(np.array([[fx, 0, cx], [0, fx * 1.0004, cy], [0, 0, 1]]), *size)
