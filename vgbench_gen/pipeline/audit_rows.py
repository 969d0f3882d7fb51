"""What an audit looks at in the rows themselves: their evidence, their pictures, and what makes two of them alike."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from vgbench_gen.core.errors import DatasetError, VGBenchError
from vgbench_gen.core.gates import Gates
from vgbench_gen.core.types import FloatArray, Item
from vgbench_gen.quality.uniqueness import ItemAppearance, describe_appearance
from vgbench_gen.quality.verify import Problem, verify_item
from vgbench_gen.store import pictures
from vgbench_gen.store.dataset import load
from vgbench_gen.store.media import MediaStore
from vgbench_gen.store.pictures import Picture
from vgbench_gen.tasks.row_evidence import RowEvidence, read_side

_LEVELS_APART = 4.0  # mean difference of grey from which two pictures are not the same


@dataclass(frozen=True, slots=True)
class ItemJob:
    """Rows of a dataset to check by their evidence; crosses process borders."""

    path: str
    start: int
    stop: int
    """Place after the last row."""
    gates: Gates
    media: str
    """The folder of base images, "" where there is none."""
    drawn: frozenset[str]
    """Ids of rows whose pictures are drawn again from it."""
    verified: bool = False
    """Whether the rows were verified by their evidence already, so that they are only compared here."""


@dataclass(slots=True)
class ItemChecks:
    """What checking rows gave."""

    problems: list[Problem] = field(default_factory=list)
    sights: list[ItemAppearance] = field(default_factory=list)
    """What makes a row like another one."""
    checked: int = 0
    unseen: int = 0
    """Rows whose images are not embedded, which were not looked at."""

    @classmethod
    def join(cls, parts: Iterable[ItemChecks]) -> ItemChecks:
        """Several as one, in their order."""
        whole = cls()
        for part in parts:
            whole.problems += part.problems
            whole.sights += part.sights
            whole.checked += part.checked
            whole.unseen += part.unseen
        return whole


def check_rows(job: ItemJob) -> ItemChecks:
    """Check a stretch of rows.

    Raises:
        DatasetError: the dataset cannot be read.
    """
    items, found = load(job.path), ItemChecks()
    for row in range(job.start, job.stop):
        item = items[row]
        try:
            images = [items.image_bytes(row, k) for k in range(len(item.images))]
        except DatasetError:
            found.unseen += 1
            continue
        found.checked += 1
        if not job.verified:
            found.problems += verify_item(item, images, job.gates)
        if item.id in job.drawn:
            found.problems += _find_pixel_problems(item, images, MediaStore(Path(job.media)))
        try:
            if not read_side(item):  # its other half speaks for both
                found.sights.append(describe_appearance(item, images))
        except (VGBenchError, LookupError, TypeError, ValueError, AttributeError):
            continue  # a row that cannot be read back is a problem that `verify_item` named
    return found


def _find_pixel_problems(item: Item, images: Sequence[bytes], media: MediaStore) -> list[Problem]:
    """Pictures that do not show what the evidence says they show."""
    found = []
    row = RowEvidence.found(item)
    if row is None:
        return []  # what `verify_item` named
    for k, (record, data) in enumerate(zip(row.pictures, images, strict=False)):
        try:
            drawn = pictures.render(Picture.from_json(record), media)
            if drawn == data:
                continue
            # Another JPEG library gives other bytes, but not another picture.
            a, b = (_decode_small_grey(encoded) for encoded in (drawn, data))
            if a.shape == b.shape and float(np.abs(a - b).mean()) <= _LEVELS_APART:
                continue
            said = f"image {k + 1} is not the picture of {record['base']} that the evidence describes"
        except (VGBenchError, LookupError, TypeError, ValueError) as error:
            said = f"image {k + 1} cannot be drawn again: {error}"
        found.append(Problem(item.id, item.task, "pixels", said))
    return found


def _decode_small_grey(encoded: bytes) -> FloatArray:
    import cv2

    grey = cv2.imdecode(np.frombuffer(encoded, np.uint8), cv2.IMREAD_REDUCED_GRAYSCALE_4)
    return np.zeros((0, 0)) if grey is None else grey.astype(np.float64)
