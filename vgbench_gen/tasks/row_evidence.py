"""The evidence of a row: what composing keeps of the question, and the fact that is read back from it.

Every task's rows have these keys and no others; what the task keeps of its fact and of each option stands inside, as
its own records wrote it (`vgbench_gen.tasks.evidence`).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Annotated, Any, Self

from pydantic import ConfigDict
from pydantic_core import from_json

from vgbench_gen.core.errors import DatasetError, VGBenchError
from vgbench_gen.core.types import ALPHABET, Candidate, Fact, FloatArray, Item
from vgbench_gen.store.drawing import CROSSHAIR
from vgbench_gen.store.pictures import Picture
from vgbench_gen.tasks.evidence import ArrayShape, Evidence
from vgbench_gen.text.marks import name_mark

UNREADABLE = (VGBenchError, ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
"""What reading a damaged or foreign row can raise; such a row is shown without what cannot be read."""
Value = Annotated[FloatArray, ArrayShape(...)]
"""A value in the task's unit and shape."""


class CandidateRecord(Evidence):
    """A candidate as a row stores it. The fields are those of `vgbench_gen.core.types.Candidate`."""

    key: str
    """Stable name of the candidate within its fact."""
    value: Value
    """The candidate's value, in the task's unit and shape."""
    frame_ids: list[str]
    """Frames that are shown because of this candidate; empty where the fact's own frames suffice."""
    show: dict[str, Any]
    """Inputs of drawing and wording, such as pixels, crops and labels, under the task's own keys."""
    evidence: dict[str, Any]
    """Numbers behind the value, as the task's record of a candidate wrote them; empty for a value that was computed."""

    def candidate(self) -> Candidate:
        """The candidate that this record stores."""
        return Candidate(self.key, self.value, tuple(self.frame_ids), self.show, self.evidence)

    @classmethod
    def make(cls, candidate: Candidate, **more: Any) -> Self:
        """The record of a candidate; `more` holds the fields that a subclass adds."""
        return cls(
            key=candidate.key,
            value=candidate.value,
            frame_ids=list(candidate.frame_ids),
            show=dict(candidate.show),
            evidence=dict(candidate.evidence),
            **more,
        )


class ClaimRecord(CandidateRecord):
    """What a judgment claims: a candidate of the pool with the claimed value, where the claim is about one."""

    holds: bool
    """Whether it is true."""
    separation: float
    """Distance from the truth over the required margin."""


class NoiseRecord(Evidence):
    """What the noise test gave (`docs/validity.md#noise-test`)."""

    kept: float
    """Share of the draws that left the question its answer."""
    draws: int
    """Perturbations that were tried."""
    lead: float
    """By how much the right answer leads the next one, or stays within its tolerance: median over the draws, in
    standard deviations of the noise."""

    @property
    def described(self) -> str:
        """Such as "unchanged in 200 of 200 trials with simulated sensor noise"."""
        return f"unchanged in {round(self.kept * self.draws)} of {self.draws} trials with simulated sensor noise"


class ShownEvidence(Evidence):
    """How the images of a row are made from frames of a scan; other keys may stand beside it."""

    model_config = ConfigDict(extra="ignore")

    pictures: list[dict[str, Any]]
    """What each image shows, in order (`vgbench_gen.store.pictures.Picture`)."""
    cameras: dict[str, dict[str, Any]]
    """Frame id -> {"K": nine numbers row by row, "width": pixels, "height": pixels} of its base image."""
    bases: dict[str, str]
    """Frame id -> name of its base image in the media store."""

    @classmethod
    def is_in(cls, stored: Any) -> bool:
        """Whether a stored evidence tells how the images are made."""
        return isinstance(stored, Mapping) and all(name in stored for name in cls.model_fields)

    def shown(self) -> list[Picture]:
        """The pictures, in the order shown."""
        return [Picture.from_json(record) for record in self.pictures]

    def locate_marks(self) -> dict[str, tuple[float, ...]]:
        """Name ("the blue region") -> pixel or rectangle of each mark that is drawn, crosshairs apart."""
        ops = [op for picture in self.shown() for op in picture.ops if op["op"] in ("point", "region")]
        named = [op for op in ops if op.get("shape") != CROSSHAIR]
        return {name_mark(op): tuple(op["rect"] if op["op"] == "region" else op["uv"]) for op in named}

    def frame_of(self, base: str) -> str:
        """The frame whose base image has this name in the media store.

        Raises:
            KeyError: the row does not know that image.
        """
        return {name: frame_id for frame_id, name in self.bases.items()}[base]

    def base_size(self, base: str) -> tuple[int, int]:
        """(width, height) in pixels of a base image.

        Raises:
            KeyError: the row does not know that image.
        """
        camera = self.cameras[self.frame_of(base)]
        return int(camera["width"]), int(camera["height"])


class RowEvidence(ShownEvidence):
    """What a row keeps, besides its columns, so that its answer can be reached again from the row alone."""

    model_config = ConfigDict(extra="forbid")

    ask: str
    """The kind of question within the task; "" where there is one kind only."""
    side: str = ""
    """The side from which the truth is asked (`Task.counterpart_kind`); "" for the one that was measured."""
    key: str
    """The key of the fact."""
    frame_ids: list[str]
    """The frames that are shown in any case."""
    fact: dict[str, Any]
    """What the task's record of the fact wrote."""
    truth: CandidateRecord
    """What is asked."""
    second_value: Value
    """The answer by the second route."""
    margin: float
    """The smallest margin of any gate over its requirement."""
    options: list[CandidateRecord]
    """The options in the order of their letters; the truth alone where there are none."""
    claim: ClaimRecord | None = None
    """What a judgment claims."""
    twin_value: Value | None = None
    """What the other judgment about the same images claims."""
    noise: NoiseRecord | None = None
    """What the noise test gave."""

    @classmethod
    def found(cls, item: Item) -> Self | None:
        """As `of`; None for a row that was damaged or that another program wrote."""
        try:
            return cls.of(item)
        except DatasetError:
            return None

    @classmethod
    def of_row(cls, row: Mapping[str, Any]) -> Self:
        """The evidence of a row as the store has it, with its JSON text."""
        return cls.read(from_json(row["evidence"]), f"item {row['id']!r}")

    @property
    def margins(self) -> Mapping[str, float]:
        """Gate -> value over limit, as the record of every fact has them (`FactEvidence`)."""
        stored = self.fact.get("margins")
        found = stored.items() if isinstance(stored, Mapping) else ()
        return {name: float(value) for name, value in found if isinstance(value, int | float)}


def read_side(item: Item) -> str:
    """`RowEvidence.side` of a row, without reading the rest; "" for rows of other programs."""
    return str(item.evidence.get("side", ""))


def list_names(item: Item) -> tuple[str, ...]:
    """What the objects that a row's truth is about are called; none for rows of other programs."""
    truth = item.evidence.get("truth")
    stored = truth.get("evidence") if isinstance(truth, Mapping) else None
    if not isinstance(stored, Mapping):
        return ()
    objects = [one["label"] for one in stored.values() if isinstance(one, Mapping) and "label" in one]
    return tuple(map(str, [stored.get("about", ""), *objects, *stored.get("labels", ())]))


@lru_cache(maxsize=1)  # several parts of a page ask for that of one item, and the records of a fact are read with it
def rebuild_fact(item: Item) -> Fact:
    """The fact behind an item, as far as the row tells: its options, or the truth alone, as candidates.

    Raises:
        DatasetError: the row's evidence is damaged.
        ValueError: the answer of a choice is no letter.
    """
    row = RowEvidence.of(item)
    return Fact(
        task=item.task,
        task_version=0,
        ask=item.ask,
        dataset=item.source,
        scene_id=item.scene_id,
        split=item.split,
        key=row.key,
        frame_ids=tuple(row.frame_ids),
        candidates=tuple(record.candidate() for record in row.options),
        truth=ALPHABET.index(item.answer) if item.question_type == "multi-choice" else 0,
        second_value=row.second_value,
        margin=row.margin,
        evidence=row.fact,
        licence=item.licence,
        pictures=row.bases,
        cameras=row.cameras,
    )
