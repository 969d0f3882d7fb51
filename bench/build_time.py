"""A whole build on one worker, against nothing but the codecs of the frames it used and the pictures it wrote."""

from __future__ import annotations

import time
from pathlib import Path

import cv2

from bench.table import Row
from vgbench_gen.pipeline.build import build, find_scenes
from vgbench_gen.pipeline.recipe import load_recipe
from vgbench_gen.scenes._keyframes import keyframe_indices
from vgbench_gen.scenes.base import loaders
from vgbench_gen.store import pictures
from vgbench_gen.store.dataset import load
from vgbench_gen.store.media import MediaStore
from vgbench_gen.store.pictures import Picture


def rows(root: Path, scratch: Path) -> list[Row]:
    """One row: measure and compose from nothing."""
    cv2.setNumThreads(1)
    recipe = load_recipe("default")
    out = scratch / "build"
    began = time.perf_counter()
    report = build(recipe, root, out, workers=1)
    built_s = time.perf_counter() - began
    decoded_s, frames = 0.0, 0
    for ref in find_scenes(root):
        with loaders[ref.dataset].open(ref) as scene:
            used = [scene.frames[i] for i in keyframe_indices(scene.frames, recipe.gates.frame)]
            began = time.perf_counter()
            for frame in used:
                frame.color(), frame.depth_m()
            decoded_s += time.perf_counter() - began
            frames += len(used)
    items = load(out)
    media = MediaStore(out / "media")
    shown = {Picture.from_json(p).key(): Picture.from_json(p) for item in items for p in item.evidence["pictures"]}
    bases = {picture.base: media.get(picture.base) for picture in shown.values()}
    began = time.perf_counter()
    decoded = {name: pictures.decode(data) for name, data in bases.items()}
    for picture in shown.values():
        if picture.ops or not picture.base.endswith(".jpg"):
            pictures.encode_jpeg(decoded[picture.base])
    coded_s = time.perf_counter() - began
    pure_s = decoded_s + coded_s
    absolute = (
        f"{built_s:.2f} s for {report.composed.total} items; codecs {pure_s:.2f} s "
        f"({frames} keyframes decoded in {decoded_s:.2f} s, {len(shown)} pictures coded in {coded_s:.2f} s)"
    )
    return [Row("build / pure codec time", f"{built_s / pure_s:.2f}x", "<= 1.5x", absolute)]
