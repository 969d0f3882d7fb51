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
LETTERS = "ABCD"  # of the options of a multi-choice question, in order
ALPHABET = string.ascii_uppercase  # the same for other people's questions, which have up to ten options
QUESTION_TYPES: tuple[QuestionType, ...] = ("judgment", "multi-choice", "open-ended")


@dataclass(frozen=True, slots=True, eq=False)
class Camera:
    """Pinhole camera of one image, lens distortion already removed.

    Camera frame: x right, y down, z forward. Pixel (0, 0) is the *centre* of the top-left pixel, so the image
    covers [-0.5, width - 0.5) x [-0.5, height - 0.5).

    K: (3, 3) float64, pixels, for exactly this resolution and orientation.
    width, height: pixels.

    Raises:
        ValueError: K is not an upper-triangular pinhole matrix without skew, or the size is not positive.
    """

    K: FloatArray
    width: int
    height: int

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
    """Cuboid in a named frame.

    center_m: (3,) float64, metres, in `frame`.
    size_m: (3,) float64, full side lengths along the columns of `rotation`, metres.
    rotation: (3, 3) float64, `frame_from_box`: columns are the box axes in `frame`.
    frame: "world" or "camera".
    """

    center_m: FloatArray
    size_m: FloatArray
    rotation: FloatArray
    frame: str = "world"


@dataclass(frozen=True, slots=True, eq=False)
class Candidate:
    """One value that could have been asked about, with what must be shown for it.

    key: stable name within the fact, e.g. "region:212,96,64,64" or "frames:120-134".
    value: float64 array in the task's unit; shape is the task's.
    frame_ids: frames shown because of this candidate (empty where the fact's own frames suffice).
    show: JSON-ready drawing and wording inputs (integer pixels, crops, labels), the task's own keys.
    evidence: JSON-ready numbers behind the value.
    """

    key: str
    value: FloatArray
    frame_ids: tuple[str, ...] = ()
    show: Mapping[str, Any] = field(default_factory=dict)
    evidence: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class Fact:
    """One geometric truth, no words, with evidence and everything COMPOSE needs.

    `candidates[truth]` is what is asked. Where the images follow the truth, `truth` was drawn in proportion to
    the number of valid option sets it belongs to, so that a set drawn uniformly among those containing it makes
    all four members equally likely (`design: set first`). Where the image fixes the truth, the pool may hold
    only the truth and options come from a ladder.

    ask: sub-kind of the task ("fx", "deepest", …), "" where there is one kind only.
    key: stable name within (task, scene); unique.
    frame_ids: frames always shown, in order.
    second_value: the answer by the second route, same shape as the truth's value.
    margin: smallest margin of any gate over its requirement (>= 1), for difficulty.
    pictures: frame id -> name of the base image in the media store ("<digest>.<ext>").
    cameras: frame id -> {"K": 9 numbers row-major, "width": px, "height": px} of the base image.
    """

    task: str
    task_version: int
    ask: str
    dataset: str
    scene_id: str
    split: str
    key: str
    frame_ids: tuple[str, ...]
    candidates: tuple[Candidate, ...]
    truth: int
    second_value: FloatArray
    margin: float
    evidence: Mapping[str, Any]
    licence: str
    pictures: Mapping[str, str] = field(default_factory=dict)
    cameras: Mapping[str, Any] = field(default_factory=dict)

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
    """A draft that was not good enough.

    reason: machine-readable, e.g. "region_spread". value and limit: the measured number and the bar it missed
    (NaN where there is none). detail: one line for a person.
    """

    task: str
    dataset: str
    scene_id: str
    key: str
    reason: str
    value: float = float("nan")
    limit: float = float("nan")
    detail: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Distractor:
    """How one wrong option was made.

    strategy: name of the strategy that made it. key: candidate it shows, "" where it was computed.
    separation: distance from the truth over the required one (>= 1 passes), in the task's own metric.
    """

    strategy: str
    key: str
    separation: float


@dataclass(frozen=True, slots=True, eq=False)
class Item:
    """One question as a row of the dataset; `vgbench_gen.store.schema` describes every column.

    images: names ("<digest>.jpg") in the media store, in the order shown.
    options: texts without letters, in the order of the letters; empty unless multi-choice.
    answer: letter, "Yes"/"No", or the number with its unit. answer_value: the true value as printed, flattened.
    convention, evidence: JSON-ready.
    """

    id: str
    index: int
    group_id: str
    twin_id: str
    pair_id: str
    benchmark: str
    task: str
    ask: str
    question_type: QuestionType
    category: str
    subcategory: str
    category_origin: str
    index_origin: int
    input_modality: str
    source: str
    scene_id: str
    frame_ids: tuple[str, ...]
    split: str
    question: str
    context: str
    options: tuple[str, ...]
    answer: str
    answer_value: tuple[float, ...]
    answer_shape: tuple[int, ...]
    unit: str
    tolerance: float
    images: tuple[str, ...]
    convention: Mapping[str, Any]
    distractors: tuple[Distractor, ...]
    evidence: Mapping[str, Any]
    template_id: str
    paraphrase: str
    strategy: str
    distractor_seed: int
    difficulty: str
    licence: str
    schema_version: int
