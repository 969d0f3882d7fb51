"""The published sizes of SpatialScore, and how a set compares with them.

The tables do not agree with each other, so no set of all twelve sources meets them all. Judgments: SpatialSense 3,622,
VSR 1,222 and VGBench's 1,132 are 69 more than the 5,907 of the whole, before any of RealWorldQA and SpatialBench.
Single images: the sources that only have such questions, four tasks of BLINK (509) and VGBench's 2,800 are 17,458, 400
more than published, and several images 5,505, 400 fewer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from vgbench_gen.core.types import Item

# Tables 2, 4 and 5 of the paper; the categories' sizes follow from every printed percentage being k/N.
PUBLISHED: Mapping[str, Mapping[str, int]] = {
    "all": {"questions": 28093},
    "source": {
        "SpatialBench": 174,
        "QSpatialBench": 271,
        "MMVP": 300,
        "BLINK": 681,
        "RealWorldQA": 765,
        "VSR": 1222,
        "MMIU": 2133,
        "CV-Bench": 2638,
        "SpatialSense": 3622,
        "VSI-Bench": 5130,
        "3DSRBench": 5157,
        "VGBench": 6000,
    },
    "question type": {"judgment": 5907, "multi-choice": 17833, "open-ended": 4353},
    "modality": {"single-image": 17058, "multi-images": 5905, "video": 5130},
    "category": {
        "Counting": 1493,
        "Object Localization": 3881,
        "3D Positional Relation": 8748,
        "Depth and Distance": 4993,
        "Object Properties": 2096,
        "Camera and Image Transformation": 3333,
        "Point and Object Tracking": 1672,
        "Others": 1877,
    },
}
# What a complete set differs in all the same.
DISAGREEING = (
    "The paper's tables do not agree with each other: by source there are at least 5,976 judgments (published 5,907), "
    "17,458 questions on single images (17,058) and 5,505 on several (5,905)."
)
_SOURCES = {
    "spatialbench": "SpatialBench",
    "QSpatialBench-Plus": "QSpatialBench",
    "QSpatialBench-ScanNet": "QSpatialBench",
    "VSR-ZeroShot": "VSR",
    "cvbench": "CV-Bench",
    "VSI-Bench_8": "VSI-Bench",
}


def compare_totals(items: Iterable[Item]) -> list[dict[str, Any]]:
    """The set's sizes beside the published ones, by source, question type, modality and category, ready for JSON.

    Each: the `table` and the `name` of its line, how many are `here`, how many are `published` and the `difference`,
    both None where the paper does not say.
    """
    counts: dict[str, Counter[str]] = {table: Counter() for table in PUBLISHED}
    for item in items:
        source = item.benchmark.rpartition("/")[2]
        counts["all"]["questions"] += 1
        counts["source"][_SOURCES.get(source, source)] += 1
        counts["question type"][item.question_type] += 1
        counts["modality"][item.input_modality] += 1
        counts["category"][item.category] += 1
    return [
        {
            "table": table,
            "name": name,
            "here": here,
            "published": size,
            "difference": None if size is None else here - size,
        }
        for table, sizes in PUBLISHED.items()
        for name in (*sizes, *sorted(set(counts[table]) - set(sizes)))
        for here, size in ((counts[table][name], sizes.get(name)),)
    ]
