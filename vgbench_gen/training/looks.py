"""How pictures look, so that a copy is found under another name, size and quality.

Two pictures are copies where their perceptual hashes differ in at most `HASH_BITS_APART` bits and the grey of their
16 x 16 cells correlates by at least `ALIKE`: copies of two thirds of the size, JPEG quality 60, with marks drawn into
them, correlate by 0.99, pictures of other rooms by 0.90 at most. By the hash alone, a hundred thousand pictures would
have thousands of copies by chance.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from vgbench_gen.core.types import ColorArray
from vgbench_gen.quality.uniqueness import HASH_BITS_APART
from vgbench_gen.store.files import dataset_error
from vgbench_gen.store.pictures import hash_look, read_image_size

Look = tuple[int, bytes]
"""Perceptual hash of a picture, and the mean grey of its 16 x 16 cells."""
ALIKE = 0.97
_PLAIN = 8.0  # grey levels by which cells must vary (standard deviation), lest a picture could be of any wall
_BANDS = HASH_BITS_APART + 1  # of a hash; of two that differ in fewer bits, one band is equal


def describe_grey(grey: ColorArray) -> Look | None:
    """How a grey picture (H, W) looks; None where it is too plain to be told from others."""
    import cv2

    cells = cv2.resize(grey, (16, 16), interpolation=cv2.INTER_AREA)
    return (hash_look(grey), cells.tobytes()) if cells.std() >= _PLAIN else None


def look_at(data: bytes, where: object = "image") -> Look | None:
    """As `describe_grey`, of an encoded picture; where: for messages.

    Raises:
        DatasetError: no JPEG or PNG, or larger than ours.
    """
    import cv2

    read_image_size(data, where)
    grey = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_REDUCED_GRAYSCALE_4)
    if grey is None:
        raise dataset_error(where, "an image that cannot be decoded", "a JPEG or PNG", "Build it again.")
    return describe_grey(np.asarray(grey, np.uint8))


def are_copies(one: Look, other: Look) -> bool:
    """Whether two pictures are copies."""
    if (one[0] ^ other[0]).bit_count() > HASH_BITS_APART:
        return False
    cells = [np.frombuffer(look[1], np.uint8) for look in (one, other)]
    return float(np.asarray(np.corrcoef(cells))[0, 1]) >= ALIKE


def find_near(hashes: npt.NDArray[np.uint64], group_of: npt.NDArray[Any]) -> Iterator[tuple[int, list[int]]]:
    """(k, places of hashes of other groups within `HASH_BITS_APART` bits of the k-th); every pair at least once."""
    for low, high in pairwise(np.linspace(0, 64, _BANDS + 1).astype(int).tolist()):
        band = (hashes >> np.uint64(low)) & np.uint64((1 << (high - low)) - 1)
        order = np.argsort(band, kind="stable")
        for members in np.split(order, np.flatnonzero(np.diff(band[order])) + 1):
            near, groups = hashes[members], group_of[members]
            for k in range(len(members) - 1):
                alike = np.bitwise_count(near[k + 1 :] ^ near[k]) <= HASH_BITS_APART
                if len(others := members[k + 1 :][alike & (groups[k + 1 :] != groups[k])]):
                    yield int(members[k]), others.tolist()


def count_copies(looks: Iterable[Look]) -> int:
    """How many of some pictures are copies of another one."""
    counts = Counter(looks)
    known = list(counts)
    copied = {k for k, look in enumerate(known) if counts[look] > 1}
    for k, others in find_near(np.array([look[0] for look in known], np.uint64), np.arange(len(known))):
        copied.update(n for other in others if are_copies(known[k], known[other]) for n in (k, other))
    return sum(counts[known[k]] for k in copied)
