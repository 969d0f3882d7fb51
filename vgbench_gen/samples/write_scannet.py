"""Samples as ScanNet scans: `.sens`, metadata, mesh, segments, objects, split lists (`docs/formats.md#scannet`)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import cv2
import numpy as np

from vgbench_gen.core.types import Camera, FloatArray
from vgbench_gen.geometry.cameras import resize_camera
from vgbench_gen.geometry.poses import invert
from vgbench_gen.samples.annotation import format_segments, segment_mesh
from vgbench_gen.samples.base import Capture, SampleSpec
from vgbench_gen.samples.encode import (
    convert_to_millimetres,
    encode_jpeg,
    encode_json,
    encode_ply,
    encode_sens_depth,
    encode_sens_header,
    encode_sens_record,
)
from vgbench_gen.samples.layout import FIRST_UPTIME_S, Layout, encode_lines, expose_frame, make_file_frame, make_rng
from vgbench_gen.samples.sensors import simulate_structured_light

DEPTH_SIZE = (640, 480)
SENSOR_NAME = b"StructureSensor (calibrated)"
_JPEG_QUALITY = 90
# Of the size that colour is delivered at, how much the tablet's video really resolves.
_SHARPNESS = 0.7
_SPLITS = ("train", "val", "test")


class ScanNetLayout(Layout):
    """`scans/<scanId>/`; the test scans, without annotation, in `scans_test/`."""

    def path(self, spec: SampleSpec) -> Path:
        return Path("scans_test" if spec.split == "test" else "scans", spec.scene_id)

    def write(self, capture: Capture, spec: SampleSpec, path: Path) -> None:
        path.mkdir(parents=True)
        scan = spec.scene_id
        alignment = draw_axis_alignment(spec)
        file_from_world = invert(alignment)
        camera, depth_camera = capture.camera, make_depth_camera(capture.camera)
        seen = resize_camera(camera, round(camera.width * _SHARPNESS), round(camera.height * _SHARPNESS))
        with (path / f"{scan}.sens").open("wb") as file:
            file.write(
                encode_sens_header(
                    name=SENSOR_NAME,
                    color_K=_pad_to_4x4(camera.K),
                    depth_K=_pad_to_4x4(depth_camera.K),
                    color_size=camera.size,
                    depth_size=depth_camera.size,
                    count=len(capture.world_from_camera),
                )
            )
            for number, pose in enumerate(capture.world_from_camera):
                look = capture.world.look(seen, pose)
                color = cv2.resize(
                    expose_frame(look.color, seen, capture, spec, number), camera.size, interpolation=cv2.INTER_CUBIC
                )
                depth, _, cosine = capture.world.render_depth(depth_camera, pose, look)
                depth = simulate_structured_light(depth, cosine, depth_camera, make_rng(spec, "depth", number))
                written = np.full((4, 4), -np.inf) if number in capture.lost else file_from_world @ pose
                time_us = round((FIRST_UPTIME_S + float(capture.timestamps_s[number])) * 1e6)
                file.write(
                    encode_sens_record(
                        written,
                        time_us,
                        encode_jpeg(color, _JPEG_QUALITY),
                        encode_sens_depth(convert_to_millimetres(depth)),
                    )
                )
            file.write(bytes(8))  # no motion sensor
        has_labels = spec.split != "test"
        info = _format_info(capture, depth_camera, alignment if has_labels else None)
        (path / f"{scan}.txt").write_bytes(encode_lines([f"{key} = {value}" for key, value in info.items()]))
        mesh = segment_mesh(capture.world, file_from_world)
        color4 = np.column_stack([mesh.color, np.full(len(mesh.color), 255, np.uint8)])
        (path / f"{scan}_vh_clean_2.ply").write_bytes(encode_ply(mesh.vertices_m, mesh.faces, color4))
        if not has_labels:
            return
        segs = f"{scan}_vh_clean_2.0.010000.segs.json"
        groups = [
            {"id": number, "objectId": number, "segments": segments, "label": item.label}
            for number, (item, segments) in enumerate(mesh.objects)
        ]
        head = {"sceneId": f"scannet.{scan}", "appId": "Aggregator.v2", "segGroups": groups}
        (path / segs).write_bytes(encode_json(format_segments(mesh, f"scannet.{scan}")))
        (path / f"{scan}.aggregation.json").write_bytes(encode_json({**head, "segmentsFile": f"scannet.{segs}"}))

    def make_lists(self, specs: Sequence[SampleSpec]) -> dict[str, bytes]:
        """`scannetv2_{train,val,test}.txt`."""
        return {
            f"scannetv2_{split}.txt": encode_lines(sorted(s.scene_id for s in specs if s.split == split))
            for split in _SPLITS
        }


def make_depth_camera(color: Camera) -> Camera:
    """The camera that depth was warped to, by the rule of ScanNet's calibration (corner pixel to corner pixel)."""
    width, height = DEPTH_SIZE
    to_x, to_y = (width - 1) / (color.width - 1), (height - 1) / (color.height - 1)
    fx, fy = color.fx * width / color.width, color.fy * height / color.height
    return Camera(np.array([[fx, 0, color.cx * to_x], [0, fy, color.cy * to_y], [0, 0, 1]]), width, height)


def draw_axis_alignment(spec: SampleSpec) -> FloatArray:
    """(4, 4) `aligned_from_scan`, rounded as it will be printed; every scan, rescans too, has a frame of its own.

    Test scans have no alignment and keep the world they were made in.
    """
    if spec.split == "test":
        return np.eye(4)
    rng = make_rng(spec, "alignment")
    shift = rng.uniform((-5.0, -5.0, -0.15), (-1.0, -1.0, 0.0))
    return np.round(make_file_frame(rng.uniform(-180, 180), shift), 6)


def _pad_to_4x4(K: FloatArray) -> FloatArray:
    matrix = np.eye(4)
    matrix[:3, :3] = K
    return matrix


def _format_info(capture: Capture, depth: Camera, alignment: FloatArray | None) -> dict[str, str]:
    color, count = capture.camera, str(len(capture.world_from_camera))

    def format_row(matrix: FloatArray) -> str:
        return " ".join(f"{value:f}" for value in matrix.ravel())

    info = {} if alignment is None else {"axisAlignment": format_row(alignment)}
    info |= {
        "colorHeight": str(color.height),
        "colorToDepthExtrinsics": format_row(np.eye(4)),
        "colorWidth": str(color.width),
    }
    info |= {"depthHeight": str(depth.height), "depthWidth": str(depth.width)}
    numbers = {"fx_color": color.fx, "fx_depth": depth.fx, "fy_color": color.fy, "fy_depth": depth.fy}
    numbers |= {"mx_color": color.cx, "mx_depth": depth.cx, "my_color": color.cy, "my_depth": depth.cy}
    info |= {key: f"{value:f}" for key, value in numbers.items()}
    info |= {"numColorFrames": count, "numDepthFrames": count, "numIMUmeasurements": "0"}
    return info | {"sceneType": capture.notes.get("kind", "misc").title()}
