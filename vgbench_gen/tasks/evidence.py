"""Evidence: the numbers behind an answer, as typed records.

Facts and candidates carry their evidence in the form in which it is stored: a mapping that is ready for JSON. What
stands in it is declared by the task, as one record for its facts (`Task.fact_evidence`) and one for its candidates
(`Task.candidate_evidence`). `Evidence.write` is the only writer of such a mapping and `Evidence.of` its only reader, so
that no other code names a key. A row that was damaged, or that another program wrote, is refused there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import EllipsisType
from typing import TYPE_CHECKING, Annotated, Any, Self, cast
from weakref import WeakKeyDictionary

import numpy as np
from pydantic import BaseModel, ConfigDict, PlainSerializer, PlainValidator, Strict, ValidationError
from pydantic_core import CoreSchema, core_schema

from vgbench_gen.core.config import describe_problem
from vgbench_gen.core.errors import DatasetError
from vgbench_gen.core.types import Camera, Candidate, Fact, FloatArray, Item
from vgbench_gen.tasks.records import make_camera_record, read_camera_record

if TYPE_CHECKING:
    from vgbench_gen.tasks._pairs import TwoViewEvidence


class ArrayShape:
    """Marks a field as a finite float64 array of this shape: `Annotated[FloatArray, ArrayShape(8, 3)]`.

    A length of -1 may be any, and so may the whole shape where it is `ArrayShape(...)`. The array is stored as nested
    lists, or as one list row by row where `flat` is set.
    """

    def __init__(self, *lengths: int | EllipsisType, flat: bool = False) -> None:
        self.lengths = None if ... in lengths else cast(tuple[int, ...], lengths)
        self.flat = flat

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> CoreSchema:
        writer = core_schema.plain_serializer_function_ser_schema(self._write)
        return core_schema.no_info_plain_validator_function(self._read, serialization=writer)

    def _read(self, value: Any) -> FloatArray:
        try:
            found = np.asarray(value)
            # Neither strings nor truth values, which `astype` would take for numbers.
            array: FloatArray | None = found.astype(np.float64, copy=False) if found.dtype.kind in "fi" else None
            if array is not None and self.lengths and (array.size == 0 or (self.flat and array.ndim == 1)):
                array = array.reshape(self.lengths)
        except (ValueError, OverflowError):
            array = None
        if array is None or not np.isfinite(array).all() or not self._fits(array.shape):
            written = " in one list, row by row" if self.flat else ""
            raise ValueError(f"finite numbers of shape {self.lengths or 'any'}{written}")
        return array

    def _fits(self, shape: tuple[int, ...]) -> bool:
        return self.lengths is None or (
            len(shape) == len(self.lengths) and all(n in (-1, m) for n, m in zip(self.lengths, shape, strict=True))
        )

    def _write(self, array: FloatArray) -> list[Any]:
        stored: list[Any] = (array.ravel() if self.flat else array).tolist()
        return stored


def _read_camera(value: Any) -> Camera:
    if isinstance(value, Camera):
        return value
    try:
        return read_camera_record(value)
    except (LookupError, TypeError, OverflowError) as error:
        raise ValueError("a camera: K as nine numbers, width and height") from error


Pose = Annotated[FloatArray, ArrayShape(4, 4, flat=True)]
"""(4, 4) `dst_from_src`; the name of the field says between which frames, with lengths in meters."""
Points = Annotated[FloatArray, ArrayShape(-1, 3)]
"""(N, 3) points; the field says in which frame."""
StoredCamera = Annotated[Camera, PlainValidator(_read_camera), PlainSerializer(make_camera_record)]
"""The camera of an image."""
Size = Annotated[tuple[int, int], Strict(False)]
"""(width, height) in pixels."""


class Evidence(BaseModel):
    """Base of the records. A field that is None is left out where it is stored; other keys than the fields are refused.

    Every field says under it what it holds, with unit and frame. A candidate that was computed for a set of options has
    no evidence at all: where a task makes such candidates, it asks `Evidence.given`.
    """

    model_config = ConfigDict(
        extra="forbid", frozen=True, strict=True, allow_inf_nan=False, arbitrary_types_allowed=True
    )

    @classmethod
    def of(cls, owner: Fact | Candidate | Item) -> Self:
        """The evidence of a fact, a candidate or a row, which is read when it is first asked for.

        Raises:
            DatasetError: it is not what the record declares.
        """
        record = _RECORDS.get(owner)
        if not isinstance(record, cls):
            name = owner.id if isinstance(owner, Item) else owner.key
            record = _RECORDS[owner] = cls.read(owner.evidence, f"{type(owner).__name__.lower()} {name!r}")
        return record

    @classmethod
    def read(cls, stored: Any, whose: str) -> Self:
        """Inverse of `write`; `whose` is for messages.

        Raises:
            DatasetError: as for `of`.
        """
        try:
            return cls.model_validate(stored)
        except ValidationError as error:
            problem = describe_problem(cls, error.errors(include_url=False)[0])
            remedy = "Take the row as it was published, or build the dataset again."
            raise DatasetError(f"evidence of {whose} ({cls.__name__}): {problem}. {remedy}") from error

    @classmethod
    def given(cls, owner: Candidate) -> Self | None:
        """As `of`; None for a candidate that was computed and has no evidence."""
        return cls.of(owner) if owner.evidence else None

    def write(self) -> dict[str, Any]:
        """As it is stored."""
        return self.model_dump(mode="json", exclude_none=True)

    def with_fields(self, **changes: Any) -> Self:
        """The record with other values in some fields; None takes a field out."""
        return type(self)(**{**self.__dict__, **changes})

    def poses(self) -> Mapping[str, FloatArray]:
        """Frame id -> (4, 4) `world_from_camera`, in meters, of all frames whose pose the record keeps."""
        return {}

    def two_views(self) -> TwoViewEvidence | None:
        """What the record keeps of a pair of views; None where it keeps nothing of any."""
        return getattr(self, "pair", None)


_RECORDS: WeakKeyDictionary[Fact | Candidate | Item, Evidence] = WeakKeyDictionary()


class PosesEvidence(Evidence):
    """A record that keeps poses of frames."""

    world_from_camera: dict[str, Pose] | None = None
    """Frame id -> camera to world of the scan, meters."""

    def poses(self) -> Mapping[str, FloatArray]:
        return self.world_from_camera or {}

    def list_poses(self, frame_ids: Iterable[str]) -> list[FloatArray]:
        """(4, 4) `world_from_camera` of these frames, in this order, meters.

        Raises:
            KeyError: the record keeps no pose of one of them.
        """
        stored = self.poses()
        return [stored[frame_id] for frame_id in frame_ids]


class FactEvidence(PosesEvidence):
    """What every fact has; a task that keeps more of a fact adds fields in a class of its own."""

    margins: dict[str, float] = {}
    """Gate -> value over limit, at least 1, of every gate that the fact passed."""
