"""Samples as ScanNet++ scenes, filmed with an iPhone or photographed with a DSLR.

Format: `docs/formats.md#scannet-iphone-and-dslr`.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from vgbench_gen.core.types import FloatArray, IntArray, OrientedBox
from vgbench_gen.geometry.boxes import transform_box
from vgbench_gen.samples.annotation import AnnotatedMesh, format_segments, segment_mesh
from vgbench_gen.samples.base import Capture, SampleObject, SampleSpec
from vgbench_gen.samples.encode import encode_json, encode_ply
from vgbench_gen.samples.layout import Layout, encode_lines, make_file_frame, make_rng

_MARGIN_M = 0.5


class ScanNetPPLayout(Layout):
    """`data/<scene>/` with `iphone/` or `dslr/`, and `scans/`."""

    def path(self, spec: SampleSpec) -> Path:
        return Path("data", spec.scene_id.partition("/")[0])

    def write(self, capture: Capture, spec: SampleSpec, path: Path) -> None:
        from vgbench_gen.samples.scannetpp_dslr import write_dslr
        from vgbench_gen.samples.scannetpp_iphone import write_iphone

        file_from_world = draw_placement(capture, spec)
        device = spec.scene_id.partition("/")[2]
        write_device = write_dslr if device == "dslr" else write_iphone
        (path / device).mkdir(parents=True)
        write_device(capture, spec, file_from_world, path / device)
        mesh = segment_mesh(capture.world, file_from_world)
        write_scans(mesh, file_from_world, self.path(spec).name, path / "scans")

    def make_lists(self, specs: Sequence[SampleSpec]) -> dict[str, bytes]:
        """`splits/nvs_sem_{train,val}.txt`."""
        return {
            f"splits/nvs_sem_{split}.txt": encode_lines(
                sorted({s.scene_id.partition("/")[0] for s in specs if s.split == split})
            )
            for split in ("train", "val")
        }


def draw_placement(capture: Capture, spec: SampleSpec) -> FloatArray:
    """(4, 4) `file_from_world`: walls only about parallel to the axes, and no coordinate below 0."""
    turned = make_file_frame(make_rng(spec, "placement").uniform(-4.0, 4.0), (0.0, 0.0, 0.0))
    vertices = capture.world.make_surface(1e3).vertices_m @ turned[:3, :3].T
    turned[:3, 3] = np.round(_MARGIN_M - vertices.min(axis=0), 3)
    return turned


def write_scans(mesh: AnnotatedMesh, file_from_world: FloatArray, scene: str, folder: Path) -> None:
    """Mesh, segments and annotations of one scene. scene: name of its folder."""
    folder.mkdir(parents=True)
    (folder / "mesh_aligned_0.05.ply").write_bytes(encode_ply(mesh.vertices_m, mesh.faces, mesh.color))
    (folder / "segments.json").write_bytes(encode_json(format_segments(mesh, scene)))
    groups = [
        _group(number, item, transform_box(item.box, file_from_world, "world"), segments, mesh.points(segments))
        for number, (item, segments) in enumerate(mesh.objects)
    ]
    head = {"sceneId": scene, "appId": "Aggregator.v2", "segGroups": groups}
    (folder / "segments_anno.json").write_bytes(encode_json(head))


def _group(number: int, item: SampleObject, box: OrientedBox, segments: IntArray, points: FloatArray) -> dict[str, Any]:
    entry = {"id": number + 1, "objectId": number + 1, "index": number, "partId": number + 1, "label": item.label}
    # Lengths are whole sides; the axes stand as rows.
    obb = {"centroid": box.center_m, "axesLengths": box.size_m, "normalizedAxes": box.rotation.T.ravel()}
    obb |= {"min": points.min(axis=0), "max": points.max(axis=0)}
    return entry | {"segments": segments, "obb": obb, "dominantNormal": box.rotation[:, 2]}
