from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from vgbench_gen.core.types import ColorArray, Distractor, Item


def textured(width: int, height: int, seed: int = 0) -> ColorArray:
    """A smooth random picture: every pixel differs from its surroundings, nothing aliases."""
    import cv2

    noise = np.random.default_rng(seed).integers(30, 225, (height // 8 + 2, width // 8 + 2, 3), dtype=np.uint8)
    return np.asarray(cv2.resize(noise, (width, height), interpolation=cv2.INTER_CUBIC), dtype=np.uint8)


def make_item(index: int = 0, images: Sequence[str] = (), **changes: Any) -> Item:
    item = Item(
        id=f"item{index:04d}",
        index=index,
        group_id="g",
        twin_id="",
        pair_id="",
        benchmark="VGBench",
        task="metric_depth",
        ask="",
        question_type="multi-choice",
        category="Depth",
        subcategory="Metric depth",
        category_origin="Depth",
        index_origin=-1,
        input_modality="image",
        source="scannet",
        scene_id="scene0000_00",
        frame_ids=("3", "120"),
        split="val",
        question=f"How deep is region {index}?",
        context="Ünïcode ✓",
        options=("1.20 m", "2.40 m", "3.60 m", "4.80 m"),
        answer="B",
        answer_value=(2.4,),
        answer_shape=(),
        unit="m",
        tolerance=0.05,
        images=tuple(images),
        convention={"frame": "camera", "axes": ["right", "down", "forward"]},
        distractors=(Distractor("set_first", "region:1,2,3,4", 1.5), Distractor("set_first", "", 2.0)),
        evidence={"z_m": 2.4000000000000004, "K": [1.0, 0.0]},
        template_id="t1",
        paraphrase="",
        strategy="set_first",
        distractor_seed=7,
        error_parts=(),
        difficulty="hard",
        licence="scannet-tos",
        schema_version=2,
    )
    return dataclasses.replace(item, **changes)
