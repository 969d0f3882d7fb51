"""A small build to publish: two tasks, images that may travel and images that may not, an audit."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.report.gallery_data import finding
from tests.store.examples import make_item, textured
from vgbench_gen.core.types import Item
from vgbench_gen.pipeline.recipe import Recipe
from vgbench_gen.publish.package import Package, write_package
from vgbench_gen.publish.release import Options
from vgbench_gen.store.media import MediaStore
from vgbench_gen.store.pictures import encode_jpeg
from vgbench_gen.store.provenance import dataset_fingerprint, write_manifest
from vgbench_gen.store.shards import write_items

TRAVELS: Mapping[str, Any] = {"source": "wildrgbd", "licence": "mit"}
STAYS: Mapping[str, Any] = {"source": "scannet", "licence": "scannet-tou"}
TASKS = ("metric_depth", "relative_depth")
REPO = "lab/small"


def write_build(
    folder: Path,
    kinds: Sequence[Mapping[str, Any]] = (STAYS, TRAVELS),
    scene: str = "scene",
    tasks: Sequence[str] = TASKS,
) -> Path:
    """Eight questions: four of each of two tasks, sources in turn; every second one shows two images."""
    media = MediaStore(folder / "media")
    items: list[Item] = []
    for k in range(8):
        names = [media.put(encode_jpeg(textured(96, 64, seed=10 * k + n)), "jpg") for n in range(1 + k % 2)]
        kind = kinds[k // 2 % len(kinds)]
        truth = {"answer": "ABCD"[k % 4], "answer_value": (1.2 * (k % 4 + 1),)}
        task = {"task": tasks[k // 4]}
        place = {"scene_id": f"{scene}_{kind['source']}", "group_id": f"{scene}{k}", "evidence": {}}
        items.append(make_item(k, names, id=f"{scene}{k:03d}", **task, **truth, **place, **kind))
    write_items(folder / "items", items, media)
    scenes = [{"scene_id": "broken", "error": f"{folder / 'secret' / 'x.sens'}: found nothing"}]
    manifest = {
        "code": {"version": "0.1.0", "source": "abc"},
        "counts": {"facts": 8, "rejects": 12, "items": 8},
        "fingerprint": dataset_fingerprint(items),
        "recipe": Recipe().model_dump(mode="json"),
        "scenes": scenes,
    }
    write_manifest(folder, manifest)
    lines = [
        finding("rule", "medoid", "failed", [items[0].id], task="metric_depth", form="multi-choice"),
        finding("answers", "yes", "passed", [], task="relative_depth", form="judgment"),
    ]
    plain = [{**line, "high": None} for line in lines]
    (folder / "audit").mkdir()
    (folder / "audit" / "audit.json").write_text(
        json.dumps({"items": 8, "cells": {"a": {}, "b": {}}, "findings": plain})
    )
    (folder / "audit" / "index.html").write_text("<p>the audit</p>")
    return folder


def publish(build: Path, out: Path, **options: Any) -> Package:
    return write_package(build, out, Options(REPO, **options))
