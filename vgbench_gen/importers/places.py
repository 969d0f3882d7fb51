"""Places that scans show: which scenes are one place, and scenes that a model was trained or is tested on.

Two scenes show the same place if they are scans of ScanNet whose names differ only after the underscore; one scene of
ScanNet++ by any camera; one video of ARKitScenes, whose ids CA-1M shares; or, with `visits`, videos of one visit. Other
scenes are compared by data set and name.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
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
_SAME_SCANS = {"ca1m": "arkitscenes", "ca-1m": "arkitscenes"}


@dataclass(frozen=True, slots=True)
class TrainingScenes:
    """Scenes that a model was trained on."""

    places: frozenset[tuple[str, str]]
    """(data set, place) pairs; the data set "" stands for any."""
    visits: Mapping[str, str]
    """Id of a video -> its visit. Videos of one visit show one place."""

    def has(self, item: Item) -> bool:
        """Whether an item shows one of these places."""
        return self.covers(place_of(item.source, item.scene_id, self.visits))

    def covers(self, place: tuple[str, str]) -> bool:
        """Whether a place is one of these."""
        return not self.places.isdisjoint({place, ("", place[1])})


def place_of(scans: str, scene: str, visits: Mapping[str, str]) -> tuple[str, str]:
    """(data set, place) of a scene; scans of one place have the same."""
    data_set = _SAME_SCANS.get(scans.casefold(), scans.casefold())
    if match := _SCANNET.fullmatch(scene):
        return data_set, match[1]
    if data_set == "scannetpp":
        return data_set, scene.partition("/")[0]
    if video := _VIDEO.search(scene) if data_set == "arkitscenes" else None:
        return data_set, visits.get(video.group(), video.group())
    return data_set, scene


def read_visits(path: Path | None) -> dict[str, str]:
    """Id of a video -> its visit, from the `metadata.csv` of ARKitScenes with columns `video_id` and `visit_id`.

    Raises:
        DatasetError: no such file, or a column is missing.
    """
    rows = read_csv_rows(path, [["video_id"], ["visit_id"]]) if path else ()
    return {row["video_id"]: f"visit {row['visit_id']}" for row in rows if row["visit_id"] not in ("", "NA", None)}


def read_training_scenes(path: Path, visits: Path | None = None) -> TrainingScenes:
    """Read the scenes that a model was trained on.

    Args:
        path: a dataset of ours, or a text file with one scene per line, with or without its data set ("scene0011_00",
            "scannetpp/7c9be0a21f"); "#" begins a comment.
        visits: as of `read_visits`.

    Raises:
        DatasetError: no such file, no text, or as `read_visits`.
    """
    visit_of = read_visits(visits)
    if path.is_dir() or path.suffix == ".parquet":
        return TrainingScenes(
            frozenset(place_of(item.source, item.scene_id, visit_of) for item in load(path)), visit_of
        )
    data_sets = {*loaders.names(), "arkitscenes"}
    places: set[tuple[str, str]] = set()
    for line in read_names(path, "a list of scenes, one per line, or a dataset", dataset_error):
        scans, slash, scene = line.partition("/")
        if slash and scans.casefold() in data_sets:
            places.add(place_of(scans, scene, visit_of))
        else:
            places.update(("", place_of(known, line, visit_of)[1]) for known in data_sets)
    return TrainingScenes(frozenset(places), visit_of)
