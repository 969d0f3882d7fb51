"""Physical rooms of a mixture: scenes are one room by their ids, or where a picture of one shows in the other.

Datasets hold scans of one another under other names, so ids alone do not tell. Two pictures are copies where their
perceptual hashes differ in at most `HASH_BITS_APART` bits and the grey of their 16 x 16 cells correlates by at least
`ALIKE`: copies of two thirds of the size, JPEG quality 60, with marks drawn into them, correlate by 0.99, pictures of
other rooms by 0.90 at most. By the hash alone a hundred thousand pictures would join rooms by chance. Two scans of one
room without a picture in common are not found.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import islice, pairwise, repeat
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from vgbench_gen.core.rng import digest_bytes
from vgbench_gen.core.types import Item
from vgbench_gen.importers.places import place_of
from vgbench_gen.quality.uniqueness import HASH_BITS_APART
from vgbench_gen.store.columns import ITEM_COLUMNS
from vgbench_gen.store.dataset import Dataset
from vgbench_gen.store.files import dataset_error
from vgbench_gen.store.pictures import hash_look, read_image_size
from vgbench_gen.store.schema import ITEMS
from vgbench_gen.store.shards import iterate_rows
from vgbench_gen.tasks.row_evidence import RowEvidence

RoomName = tuple[str, str]
"""(data set, place), as `place_of` names a scene."""
Look = tuple[int, bytes]
"""Perceptual hash of a picture, and the mean grey of its 16 x 16 cells."""
COLUMNS = [column.name for column in ITEM_COLUMNS]  # published rows have one more
ALIKE = 0.97
_PLAIN = 8.0  # grey levels by which cells must vary (standard deviation), lest a picture could be of any wall
_BANDS = 7  # of a hash; of two that differ in fewer bits, one band is equal
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
        self._parent: dict[RoomName, RoomName] = {}
        self._shown: dict[str, RoomName] = {}
        self._looks: list[tuple[Look, RoomName]] = []

    def __iter__(self) -> Iterator[RoomName]:
        return iter(self._parent)

    def add(self, item: Item) -> RoomName:
        """The room of an item."""
        source, place = place_of(item.source, item.scene_id, self._visits)
        room = (sys.intern(source), sys.intern(place))
        self._parent.setdefault(room, room)
        return room

    def find(self, room: RoomName) -> RoomName:
        """The name that rooms share that are one."""
        while (above := self._parent[room]) != room:
            self._parent[room] = room = self._parent[above]
        return room

    def join(self, a: RoomName, b: RoomName) -> None:
        """Make two rooms one."""
        first, last = sorted((self.find(a), self.find(b)))
        self._parent[last] = first

    def has_seen(self, digest: str) -> bool:
        """Whether a picture was noted."""
        return digest in self._shown

    def note(self, digest: str, room: RoomName, look: Look | None) -> None:
        """Note that a picture shows a room, which is one with others that the same bytes show."""
        self.join(room, self._shown.setdefault(digest, room))
        if look is not None:
            self._looks.append((look, room))

    def join_alike(self) -> None:
        """Make rooms one that copies of a picture show."""
        numbers = {room: k for k, room in enumerate(self._parent)}
        hashes = np.array([look[0] for look, _ in self._looks], np.uint64)
        for k, others in find_near(hashes, np.array([numbers[room] for _, room in self._looks])):
            (_, mine), room = self._looks[k]
            for (_, its), other in (self._looks[place] for place in others):
                if self.find(room) != self.find(other) and _correlate(mine, its) >= ALIKE:
                    self.join(room, other)

    def list_joined(self) -> list[list[str]]:
        """Rooms that are one by their pictures, as "data set/place"."""
        groups = defaultdict[RoomName, list[str]](list)
        for room in sorted(self._parent):
            groups[self.find(room)].append("/".join(room))
        return [names for names in groups.values() if len(names) > 1]


def _correlate(*cells: bytes) -> float:
    return float(np.asarray(np.corrcoef([np.frombuffer(each, np.uint8) for each in cells]))[0, 1])


def find_near(hashes: npt.NDArray[np.uint64], room_of: npt.NDArray[Any]) -> Iterator[tuple[int, list[int]]]:
    """(k, places of hashes of other rooms within `HASH_BITS_APART` bits of the k-th); every pair at least once."""
    for low, high in pairwise(np.linspace(0, 64, _BANDS + 1).astype(int).tolist()):
        band = (hashes >> np.uint64(low)) & np.uint64((1 << (high - low)) - 1)
        order = np.argsort(band, kind="stable")
        for group in np.split(order, np.flatnonzero(np.diff(band[order])) + 1):
            near, rooms = hashes[group], room_of[group]
            for k in range(len(group) - 1):
                alike = np.bitwise_count(near[k + 1 :] ^ near[k]) <= HASH_BITS_APART
                if len(others := group[k + 1 :][alike & (rooms[k + 1 :] != rooms[k])]):
                    yield int(group[k]), others.tolist()


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


def look_at(data: bytes, where: object = "image") -> Look | None:
    """How an encoded picture looks; None where it is too plain to tell rooms apart. where: for messages.

    Raises:
        DatasetError: no JPEG or PNG, or larger than ours.
    """
    import cv2

    read_image_size(data, where)
    grey = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_REDUCED_GRAYSCALE_4)
    if grey is None:
        raise dataset_error(where, "an image that cannot be decoded", "a JPEG or PNG", "Build it again.")
    cells = cv2.resize(grey, (16, 16), interpolation=cv2.INTER_AREA)
    return (hash_look(np.asarray(grey, np.uint8)), cells.tobytes()) if cells.std() >= _PLAIN else None


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
