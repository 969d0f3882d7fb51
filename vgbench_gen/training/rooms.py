"""Physical rooms of a mixture: scenes are one room by their ids, or where a picture of one shows in the other.

Datasets hold scans of one another under other names, so ids alone do not tell: copies of a picture do (`looks`). Two
scans of one room without a picture in common are not found.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import islice, repeat
from typing import NamedTuple

import numpy as np
from scipy.cluster.hierarchy import DisjointSet

from vgbench_gen.core.rng import digest_bytes
from vgbench_gen.core.types import Item
from vgbench_gen.importers.places import place_of
from vgbench_gen.store.columns import ITEM_COLUMNS
from vgbench_gen.store.dataset import Dataset
from vgbench_gen.store.files import dataset_error
from vgbench_gen.store.schema import ITEMS
from vgbench_gen.store.shards import iterate_rows
from vgbench_gen.tasks.row_evidence import RowEvidence
from vgbench_gen.training.looks import Look, are_copies, find_near, look_at

RoomName = tuple[str, str]
"""(data set, place), as `place_of` names a scene."""
COLUMNS = [column.name for column in ITEM_COLUMNS]  # published rows have one more
_BATCH = 32  # rows whose images are in memory


class MixRow(NamedTuple):
    """What is kept of a row while it is decided where it goes."""

    dataset: int
    place: int
    """Its place in the dataset."""
    id: str
    partner: str
    """What it shares with its twin or pair; its id where it has none."""
    room: RoomName
    task: str
    question_type: str
    difficulty: str
    split: str
    images: int
    frames: tuple[str, ...]
    """Scene and frame of all frames shown."""


class Rooms:
    """The rooms of all datasets of a mixture. visits: as of `importers.places.read_visits`."""

    def __init__(self, visits: Mapping[str, str]) -> None:
        self._visits = visits
        self._sets: DisjointSet[RoomName] = DisjointSet()
        self._shown: dict[str, RoomName] = {}
        self.looks: list[tuple[Look, RoomName]] = []
        self.find, self.join = self._sets.__getitem__, self._sets.merge

    def __iter__(self) -> Iterator[RoomName]:
        return iter(self._sets)

    def add(self, item: Item) -> RoomName:
        """The room of an item."""
        source, place = place_of(item.source, item.scene_id, self._visits)
        room = (sys.intern(source), sys.intern(place))
        self._sets.add(room)
        return room

    def has_seen(self, digest: str) -> bool:
        """Whether a picture was noted."""
        return digest in self._shown

    def note(self, digest: str, room: RoomName, look: Look | None) -> None:
        """Note that a picture shows a room, which is one with others that the same bytes show."""
        self.join(room, self._shown.setdefault(digest, room))
        if look is not None:
            self.looks.append((look, room))

    def join_alike(self) -> None:
        """Make rooms one that copies of a picture show."""
        numbers = {room: k for k, room in enumerate(self._sets)}
        hashes = np.array([look[0] for look, _ in self.looks], np.uint64)
        for k, others in find_near(hashes, np.array([numbers[room] for _, room in self.looks])):
            look, room = self.looks[k]
            for its, other in (self.looks[place] for place in others):
                if not self._sets.connected(room, other) and are_copies(look, its):
                    self.join(room, other)

    def list_joined(self) -> list[list[str]]:
        """Rooms that are one by their pictures, as "data set/place"."""
        return sorted(sorted(map("/".join, some)) for some in self._sets.subsets() if len(some) > 1)


def scan_rows(items: Dataset, number: int, rooms: Rooms, need_pixels: bool) -> Iterator[MixRow]:
    """All rows of a dataset, whose rooms and pictures are noted.

    number: of the dataset. need_pixels: refuse rows whose images are not embedded.

    Raises:
        DatasetError: the dataset is damaged, an image is no JPEG or PNG or larger than ours, or images are missing.
    """
    place = 0
    with ThreadPoolExecutor() as pool:
        for path in items.paths:
            rows = iterate_rows([path], COLUMNS, _BATCH)
            while batch := list(islice(rows, _BATCH)):
                found = [ITEMS.from_row(row, path) for row in batch]
                data = {image["path"]: image["bytes"] for row in batch for image in row["images"]}
                if need_pixels and None in data.values():
                    remedy = "Rebuild the pixels with `vgbench pull --scenes`."
                    raise dataset_error(path, "an image without bytes", "embedded images", remedy)
                known = {name: digest_bytes(image) if image else name for name, image in data.items()}
                fresh = {name for item in found for name in list_whole_frames(item) if data[name]}
                fresh = {name for name in fresh if not rooms.has_seen(known[name])}
                looks = dict(zip(fresh, pool.map(look_at, map(data.__getitem__, fresh), repeat(path)), strict=True))
                for item in found:
                    room = rooms.add(item)
                    for name in item.images:
                        rooms.note(known[name], room, looks.pop(name, None))
                    yield _make_row(item, number, place, room)
                    place += 1


def list_whole_frames(item: Item) -> Sequence[str]:
    """Names of the images of an item that are neither cut from a frame nor drawn without one."""
    evidence = RowEvidence.found(item)
    shown = evidence.shown() if evidence is not None else []
    if len(shown) != len(item.images):
        return item.images
    return [name for name, made in zip(item.images, shown, strict=True) if not any("size" in op for op in made.ops)]


def _make_row(item: Item, number: int, place: int, room: RoomName) -> MixRow:
    task, form, difficulty, split = map(sys.intern, (item.task, item.question_type, item.difficulty, item.split))
    frames = tuple(sys.intern(f"{item.scene_id}/{frame}") for frame in item.frame_ids)
    partner = item.twin_id or item.pair_id or item.id
    return MixRow(number, place, item.id, partner, room, task, form, difficulty, split, len(item.images), frames)
