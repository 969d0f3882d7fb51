"""Scenes that a model may have been trained on: by id, by room where a room was scanned again, and by video.

What is one place: scans of ScanNet whose names differ only after the underscore; a scene of ScanNet++, whatever camera
took it; a video of ARKitScenes, whose ids CA-1M shares; with `visits`, all videos of one visit. Everything else goes by
data set and name.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from vgbench_gen.core.text_files import read_names
from vgbench_gen.core.types import Item
from vgbench_gen.importers._files import read_csv_rows
from vgbench_gen.scenes.base import loaders
from vgbench_gen.store.dataset import load
from vgbench_gen.store.files import dataset_error

_SCANNET = re.compile(r"(scene\d{4})_\d{2}")
_VIDEO = re.compile(r"\d{8}")
_SAME_SCANS = {"ca1m": "arkitscenes", "ca-1m": "arkitscenes", "arkitscenes": "arkitscenes"}


@dataclass(frozen=True, slots=True)
class TrainingScenes:
    """Scenes that a model was trained on."""

    named: frozenset[tuple[str, str]]
    """(dataset, scene) pairs."""
    bare: frozenset[str]
    """Names that were given without a dataset. They count in any."""
    visits: Mapping[str, str]
    """The visit of a video by its id. Videos of one visit show one place."""

    def has(self, item: Item) -> bool:
        """Whether an item's scene is one of these places."""
        scans, place = place_of(item.source, item.scene_id, self.visits)
        return (scans, place) in self.named or place in self.bare


def place_of(scans: str, scene: str, visits: Mapping[str, str]) -> tuple[str, str]:
    """(data set, place) of a scene, the same for scans of one place."""
    data_set = _SAME_SCANS.get(scans.casefold(), scans.casefold())
    if match := _SCANNET.fullmatch(scene):
        return data_set, match[1]
    if data_set == "scannetpp":
        return data_set, scene.partition("/")[0]
    if video := _VIDEO.search(scene) if data_set == "arkitscenes" else None:
        return data_set, visits.get(video.group(), video.group())
    return data_set, scene


def read_training_scenes(path: Path, visits: Path | None = None) -> TrainingScenes:
    """What was trained on.

    Args:
        path: a text file with a scene per line, alone ("scene0011_00") or after its data set ("scannetpp/7c9be0a21f"),
            "#" begins a remark; or a dataset of ours.
        visits: the `metadata.csv` of ARKitScenes, whose columns `video_id` and `visit_id` tell videos of one visit.

    Raises:
        DatasetError: nothing there, no text, or the columns are missing.
    """
    visit_of = {} if visits is None else _read_visits(visits)
    if path.is_dir() or path.suffix == ".parquet":
        found = {place_of(item.source, item.scene_id, visit_of) for item in load(path)}
        return TrainingScenes(frozenset(found), frozenset(), visit_of)
    data_sets = {*loaders.names(), "arkitscenes"}
    named: set[tuple[str, str]] = set()
    bare: set[str] = set()
    for line in read_names(path, "a list of scenes, one per line, or a dataset", dataset_error):
        scans, slash, scene = line.partition("/")
        if slash and scans.casefold() in data_sets:
            named.add(place_of(scans, scene, visit_of))
        else:
            bare.update(place_of(known, line, visit_of)[1] for known in data_sets)
    return TrainingScenes(frozenset(named), frozenset(bare), visit_of)


def find_leaked(items: Iterable[Item], scenes: TrainingScenes) -> list[str]:
    """Ids of items whose scene was trained on."""
    return [item.id for item in items if scenes.has(item)]


def _read_visits(path: Path) -> dict[str, str]:
    rows = read_csv_rows(path, ["video_id", "visit_id"])
    return {row["video_id"]: f"visit {row['visit_id']}" for row in rows if row["visit_id"] not in ("", "NA", None)}
