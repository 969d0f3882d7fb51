"""Types that every room shares. Conventions (axes, units, pixel centre) stand in `vgbench_gen.geometry`."""

from __future__ import annotations

import string
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
DepthArray = npt.NDArray[np.float32]
BoolArray = npt.NDArray[np.bool_]
IntArray = npt.NDArray[np.int64]
ColorArray = npt.NDArray[np.uint8]

QuestionType = Literal["judgment", "multi-choice", "open-ended"]
Notation = Literal["words", "matrix"]  # how an answer of several numbers is printed
ALPHABET = string.ascii_uppercase  # letters of the options of a multi-choice question, in order
LETTERS = ALPHABET[:4]  # of a set as tasks measure and strategies propose it; a recipe may ask for fewer or more
QUESTION_TYPES: tuple[QuestionType, ...] = ("judgment", "multi-choice", "open-ended")
NOTATIONS: tuple[Notation, ...] = ("matrix", "words")


@dataclass(frozen=True, slots=True, eq=False)
class Camera:
    """Pinhole camera of one image, lens distortion already removed.

    Camera frame: x right, y down, z forward. Pixel (0, 0) is the *centre* of the top-left pixel, so the image
    covers [-0.5, width - 0.5) x [-0.5, height - 0.5).

    Raises:
        ValueError: K is not an upper-triangular pinhole matrix without skew, or the size is not positive.
    """

    K: FloatArray
    """Intrinsics, (3, 3) float64, pixels, for exactly this resolution and orientation."""
    width: int
    """Width of the image, pixels."""
    height: int
    """Height of the image, pixels."""

    def __post_init__(self) -> None:
        K = np.array(self.K, dtype=np.float64, order="C")  # a copy: the caller's own array stays writable
        if K.shape != (3, 3) or not np.isfinite(K).all():
            raise ValueError(f"K must be a finite 3x3 matrix, got shape {K.shape}: {K.tolist()}")
        if not (K[0, 0] > 0 and K[1, 1] > 0 and np.array_equal(K[2], [0, 0, 1]) and K[1, 0] == 0 and K[0, 1] == 0):
            raise ValueError(f"K must be [[fx,0,cx],[0,fy,cy],[0,0,1]] with fx, fy > 0, got {K.tolist()}")
        if self.width <= 0 or self.height <= 0:
            raise ValueError(f"image size must be positive, got {self.width}x{self.height}")
        K.flags.writeable = False
        object.__setattr__(self, "K", K)

    @property
    def fx(self) -> float:
        """Focal length along x, pixels."""
        return float(self.K[0, 0])

    @property
    def fy(self) -> float:
        """Focal length along y, pixels."""
        return float(self.K[1, 1])

    @property
    def cx(self) -> float:
        """Principal point x, pixels."""
        return float(self.K[0, 2])

    @property
    def cy(self) -> float:
        """Principal point y, pixels."""
        return float(self.K[1, 2])

    @property
    def size(self) -> tuple[int, int]:
        """(width, height) in pixels."""
        return self.width, self.height

    @property
    def diagonal_px(self) -> float:
        """Length of the image diagonal, pixels."""
        return float(np.hypot(self.width, self.height))


@dataclass(frozen=True, slots=True, eq=False)
class OrientedBox:
    """Cuboid in a named frame."""

    center_m: FloatArray
    """Centre, (3,) float64, meters, in `frame`."""
    size_m: FloatArray
    """Full side lengths along the columns of `rotation`, (3,) float64, meters."""
    rotation: FloatArray
    """`frame_from_box`, (3, 3) float64: its columns are the axes of the box in `frame`."""
    frame: str = "world"
    """The frame, "world" or "camera"."""


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Candidate:
    """One value that could have been asked about, with what must be shown for it."""

    key: str
    """A stable name within the fact, such as "region:212,96,64,64" or "frames:120-134"."""
    value: FloatArray
    """The value, float64 in the task's unit and shape."""
    frame_ids: tuple[str, ...] = ()
    """The frames that are shown because of this candidate; empty where the fact's own frames suffice."""
    show: Mapping[str, Any] = field(default_factory=dict)
    """JSON-ready inputs of drawing and wording, such as integer pixels, crops and labels, under the task's own keys."""
    evidence: Mapping[str, Any] = field(default_factory=dict)
    """Numbers behind the value as they are stored: what `Evidence.write` of the task's record gives; empty for a value
    that was computed."""


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Fact:
    """One geometric truth without words, with its evidence and everything that composing needs.

    `candidates[truth]` is what is asked. Where the images follow the truth, `truth` was drawn in proportion to the
    number of valid option sets it belongs to, so that a set drawn uniformly among those containing it makes all four
    members equally likely (`docs/validity.md#exchangeable-by-construction`). Where the image fixes the truth, the pool
    may hold only the truth, and options come from a ladder.
    """

    task: str
    """The name of the task."""
    task_version: int
    """The version of the task that measured it."""
    ask: str
    """The kind of question within the task, such as "fx" or "deepest"; "" where there is one kind only."""
    dataset: str
    """The dataset of the scan."""
    scene_id: str
    """The id of the scene."""
    split: str
    """The official split of the scene."""
    key: str
    """A stable name that is unique within task and scene."""
    frame_ids: tuple[str, ...]
    """The frames that are always shown, in order."""
    candidates: tuple[Candidate, ...]
    """The values that could have been asked about, the truth among them."""
    truth: int
    """The place of the truth among the candidates."""
    second_value: FloatArray
    """The answer by the second route, in the shape of the truth's value."""
    margin: float
    """The smallest margin of any gate over its requirement, at least 1."""
    evidence: Mapping[str, Any]
    """Numbers behind the answer as they are stored: what `Evidence.write` of the task's record gives."""
    licence: str
    """The id of the licence of the scan."""
    pictures: Mapping[str, str] = field(default_factory=dict)
    """For each frame id the name of its base image in the media store, "<digest>.<ext>"."""
    cameras: Mapping[str, Any] = field(default_factory=dict)
    """For each frame id {"K": 9 numbers row by row, "width": pixels, "height": pixels} of its base image."""

    @property
    def truth_candidate(self) -> Candidate:
        """The candidate that is asked about."""
        return self.candidates[self.truth]

    @property
    def shown_frame_ids(self) -> tuple[str, ...]:
        """All frames any question on this fact may show, without repeats, in order of first use."""
        ids = [*self.frame_ids, *(f for c in self.candidates for f in c.frame_ids)]
        return tuple(dict.fromkeys(ids))


@dataclass(frozen=True, slots=True, eq=False)
class Rejected:
    """A draft that was not good enough."""

    task: str
    """The name of the task."""
    dataset: str
    """The dataset of the scan."""
    scene_id: str
    """The id of the scene."""
    key: str
    """A stable name of the draft within task and scene."""
    reason: str
    """The machine-readable reason, such as "region_spread"."""
    value: float = float("nan")
    """The measured number, NaN where there is none."""
    limit: float = float("nan")
    """The bar that the number missed, NaN where there is none."""
    detail: str = ""
    """One line for a person."""


@dataclass(frozen=True, slots=True, eq=False)
class Distractor:
    """How one wrong option was made."""

    strategy: str
    """The name of the strategy that made it."""
    key: str
    """The candidate that it shows, "" where it was computed."""
    separation: float
    """The distance from the truth over the required one in the task's own metric; it passes from 1 on."""


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Item:
    """One question as a row of the dataset. The data dictionary describes every column."""

    def __repr__(self) -> str:
        text = " ".join(self.question.split())
        shown = text if len(text) <= 60 else f"{text[:59]}…"
        return f"<Item {self.id}: {self.task}, {self.question_type}, {shown!r}, answer {self.answer!r}>"

    id: str
    """The hash of everything that makes the question; a changed question has another id."""
    index: int
    """The position in the dataset, from 0."""
    group_id: str
    """The hash of the fact, which the forms of one truth share."""
    twin_id: str
    """A name that the two halves of a judgment pair share, "" elsewhere."""
    pair_id: str
    """A name that two items share which ask one truth from two sides, "" elsewhere."""
    benchmark: str
    """The benchmark, which selects prompts and scorer."""
    task: str
    """The name of the task."""
    ask: str
    """The kind of question within the task, "" where there is one kind only."""
    question_type: QuestionType
    """The question type."""
    category: str
    """SpatialScore's category."""
    subcategory: str
    """SpatialScore's subcategory."""
    category_origin: str
    """The category in the benchmark that the item came from."""
    index_origin: int
    """The index in the benchmark that the item came from, -1 where there is none."""
    input_modality: str
    """What is shown, such as "multi-images"."""
    source: str
    """The dataset of the scan."""
    scene_id: str
    """The id of the scene."""
    frame_ids: tuple[str, ...]
    """The frames behind the images."""
    split: str
    """The official split of the scene."""
    question: str
    """The question line."""
    context: str
    """What the reader must know first: image size, conventions and units."""
    options: tuple[str, ...]
    """The texts of the options in the order of their letters, without letters; empty unless multi-choice."""
    answer: str
    """A letter, "Yes" or "No", or the number with its unit."""
    answer_value: tuple[float, ...]
    """The true value as printed, flattened row by row."""
    answer_shape: tuple[int, ...]
    """The shape of `answer_value`, empty for a scalar."""
    unit: str
    """The unit of `answer_value`."""
    tolerance: float
    """How far a number may be off and still be right."""
    images: tuple[str, ...]
    """Names in the media store, "<digest>.jpg", in the order in which they are shown."""
    convention: Mapping[str, Any]
    """Frame, axes and units in words that a program can read; JSON-ready."""
    distractors: tuple[Distractor, ...]
    """How each wrong option was made."""
    evidence: Mapping[str, Any]
    """JSON-ready cameras, poses, numbers of both routes, margins and results of checks."""
    template_id: str
    """The wording that was used."""
    paraphrase: str
    """The model that reworded it, "" where none did."""
    strategy: str
    """The strategy that made the options."""
    distractor_seed: int
    """The seed of the options."""
    error_parts: tuple[str, ...]
    """Per option the parts of the answer that it gets wrong, as in "depth+yaw", "" for the right one; empty where the
    options are no combinations of parts."""
    difficulty: str
    """The tercile of the lead of its answer under noise, within task, sub-kind and form."""
    licence: str
    """The id of the licence of the scan."""
    schema_version: int
    """The version of the schema of rows."""
