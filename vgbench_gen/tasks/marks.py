"""Kinds that ask which of several marked places of an image is the extreme one, such as the farthest region.

The image fixes the truth, so what must not give it away is where places lie: of the sets of all images of a scene some
are drawn by weights under which the truth lies among its decoys as any of them does (`_balance`). Redrawing the options
takes another set with the same truth, drawn by the same weights.
"""

from __future__ import annotations

import abc
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import cv2
import numpy as np

from vgbench_gen.core.errors import GeometryError
from vgbench_gen.core.noise import SensorNoise
from vgbench_gen.core.types import BoolArray, Candidate, ColorArray, Fact, FloatArray, IntArray, QuestionType, Rejected
from vgbench_gen.distractors.base import OptionSet, leave_out
from vgbench_gen.scenes.view import SceneView, ViewFrame
from vgbench_gen.store.drawing import COLORS
from vgbench_gen.store.pictures import Picture
from vgbench_gen.tasks import _balance
from vgbench_gen.tasks._objects import TARGETS_APART_M
from vgbench_gen.tasks.base import add_margins, reject
from vgbench_gen.tasks.evidence import FactEvidence
from vgbench_gen.tasks.kind import EvidenceTask, Measured
from vgbench_gen.tasks.presentation import Mark, Presentation
from vgbench_gen.tasks.row_evidence import RowEvidence
from vgbench_gen.tasks.solving import Image, ImageRule, Unread, VisibleQuestion
from vgbench_gen.tasks.solving import seen as seen_marks
from vgbench_gen.text import numbers
from vgbench_gen.text.marks import name_mark
from vgbench_gen.text.render import fill_word

DECOYS = 3
SETS_KEPT = 8  # drawn for a fact, some perhaps more than once; options are redrawn from them
_LEAST_WEIGHT = 1e-12
IMAGES_MIN = 12  # whose sets are weighed together


class MarkedPlace(Protocol):
    """A place of an image that may be marked."""

    @property
    def rect_px(self) -> tuple[int, int, int, int]:
        """[x1, y1, x2, y2], ends included, pixels of the delivered image."""

    @property
    def point_m(self) -> FloatArray:
        """(3,) where it is in the world, meters; the truths of one image are apart."""

    def evidence(self) -> Any:
        """The record of the type `candidate_evidence`, by which it is compared; the base fills its field `grey`."""


@dataclass(frozen=True, slots=True, eq=False)
class _Sets:
    """The sets of places that may be asked about in one frame."""

    found: list[tuple[MarkedPlace, Any]]
    """Places of the frame with their evidence, no two of the same score."""
    scores: FloatArray
    """(n,) what they are compared by."""
    rows: IntArray
    """(S, 4) sets of places in `found`, the right one first."""
    weight: FloatArray
    """(S,) weight with which each set is drawn, so that place and size do not tell the answer."""


class SetsEvidence(FactEvidence):
    """What is kept of a fact besides its places."""

    sets: list[list[int]]
    """Sets of wrong options of which one is asked: places of the candidates."""


class MarksTask(EvidenceTask):
    """See the module. Values are (1,) arrays with the score of a place.

    A kind gives `find_places`, `value`, `second` and `disturb`, each about one place, and the margin between the
    right place and every other one: `ratio_min`, `gap_min` or both in `margins`, where `ratio_max` is a ceiling. The
    first of `asks` asks for the highest score, the second for the lowest.
    """

    formats: ClassVar[tuple[QuestionType, ...]] = ("multi-choice",)
    fact_evidence: ClassVar[type[FactEvidence]] = SetsEvidence
    candidate_draws = 16
    options_max = DECOYS + 1  # its sets are chosen when scenes are measured, so that places and sizes stay balanced

    @abc.abstractmethod
    def find_places(self, frame: ViewFrame, view: SceneView) -> tuple[Sequence[MarkedPlace], Mapping[str, int]]:
        """(places of a frame that may be marked, how many each gate dropped)."""

    def find_ends(self, seen: Any) -> tuple[float, float]:
        """Lowest and highest score within a place; those of the truth and of another place are disjoint."""
        return (score := float(self.value(seen))), score

    def is_highest(self, ask: str) -> bool:
        """Whether the highest score is right; else the lowest is."""
        return ask == self.asks[0]

    def drafts(self, view: SceneView, rng: np.random.Generator, limit: int) -> Iterator[Fact | Rejected]:
        """One fact per kind of question and frame."""
        frames = view.distinct_frames(rng)
        made, seen = 0, 0
        targets: dict[str, list[FloatArray]] = {frame.id: [] for frame in frames}
        while made < limit and seen < len(frames):
            # Enough images to weigh sets by, also where few facts are wanted; each of them is asked about once.
            wanted = max(-(-(limit - made) // len(self.asks)), IMAGES_MIN)
            batch, seen = frames[seen : seen + wanted], seen + wanted
            weighed = {
                (frame_id, ask): sets for ask in self.asks for frame_id, sets in self._weigh(batch, view, ask, rng)
            }
            for frame, ask in itertools.product(batch, self.asks):
                if made >= limit:
                    return
                sets = weighed[frame.id, ask]
                draft = (
                    sets if isinstance(sets, Rejected) else self._draft(frame, view, sets, targets[frame.id], ask, rng)
                )
                made += isinstance(draft, Fact)
                yield draft

    def _weigh(
        self, frames: Sequence[ViewFrame], view: SceneView, ask: str, rng: np.random.Generator
    ) -> Iterator[tuple[str, _Sets | Rejected]]:
        """Frame ids, each with its sets and weights that balance them over all the frames, or why it has none."""
        asked: dict[str, tuple[list[tuple[MarkedPlace, Any]], FloatArray, IntArray]] = {}
        differs: list[FloatArray] = []
        for frame in frames:
            places, dropped = self.find_places(frame, view)
            if len(places) <= DECOYS:
                most = max(dropped, key=lambda name: dropped[name])
                problem = f"regions_{most}", len(places), DECOYS + 1, str(dropped)
                yield frame.id, reject(self, view, f"{frame.id}/{ask}", *problem)
                continue
            # One place per score: sensors count in millimeters, and equal values never stand together.
            measured = [(place, place.evidence()) for place in places]
            by_score = {float(self.value(one[1])): one for one in measured}
            found, scores = list(by_score.values()), np.array(list(by_score))
            decided = self._find_decided([seen for _, seen in found], scores, ask)
            rows = _balance.drawn_sets(decided, DECOYS, rng)
            if not len(rows):
                yield frame.id, reject(self, view, f"{frame.id}/{ask}", "no_option_set", len(found), DECOYS + 1)
                continue
            asked[frame.id] = found, scores, rows
            rects = np.array([place.rect_px for place, _ in found], dtype=np.float64)
            differs.append(_balance.traits(rects[rows], frame.camera.size))
        for (frame_id, sets), weight in zip(asked.items(), _balance.weights(differs), strict=True):
            yield frame_id, _Sets(*sets, weight)

    def _find_decided(self, found: Sequence[Any], scores: FloatArray, ask: str) -> BoolArray:
        """(n, n) whether the second place may stand beside the first as the truth."""
        ends = np.array([self.find_ends(seen) for seen in found])
        apart, wide = self.compare(scores)
        beyond = ends[:, :1] > ends[:, 1] if self.is_highest(ask) else ends[:, 1:] < ends[:, 0]
        higher = scores[:, None] > scores if self.is_highest(ask) else scores[:, None] < scores
        return np.asarray(beyond & higher & (apart >= 1) & (wide <= 1))

    def _draft(
        self,
        frame: ViewFrame,
        view: SceneView,
        sets: _Sets,
        taken_m: list[FloatArray],
        ask: str,
        rng: np.random.Generator,
    ) -> Fact | Rejected:
        """A fact of one of the sets, drawn by weight, whose truth is near none of `taken_m` and goes there."""
        found, rows = sets.found, sets.rows
        near = np.array([any(np.linalg.norm(one.point_m - m) < TARGETS_APART_M for m in taken_m) for one, _ in found])
        free = ~near[rows[:, 0]]
        if not free.any():
            return reject(self, view, f"{frame.id}/{ask}", "targets_near", len(rows), 1)
        # Weights may be too small for a number; where only such sets are left, they are all alike.
        weight = np.where(free, sets.weight + _LEAST_WEIGHT, 0.0)
        first = int(rng.choice(len(rows), p=weight / weight.sum()))
        # Drawn with replacement: among different sets those of little weight would be chosen too often.
        weight = np.where(rows[:, 0] == rows[first, 0], weight, 0.0)
        others = rng.choice(len(rows), SETS_KEPT - 1, p=weight / weight.sum()).tolist()
        drawn = rows[[first, *others]].tolist()
        picked = list(dict.fromkeys(itertools.chain.from_iterable(drawn)))
        told = [[picked.index(k) for k in row[1:]] for row in drawn]
        candidates = []
        for k in picked:
            (place, seen), rect = found[k], list(found[k][0].rect_px)
            evidence = seen.with_fields(grey=_measure_grey(frame, place)).write()
            key = "region:" + ",".join(map(str, rect))
            candidates.append(Candidate(key, sets.scores[k : k + 1], show={"rect": rect}, evidence=evidence))
        truth, seen = found[picked[0]]
        self._check_draws(seen)
        taken_m.append(truth.point_m)
        fact = self.new_fact(view, candidates, frame_ids=(frame.id,), ask=ask, evidence=SetsEvidence(sets=told))
        apart = self.compare(sets.scores[picked])[0][0, 1:]
        return add_margins(fact, f"{frame.id}/{ask}/{candidates[0].key}", {"order": apart.min()})

    def compare(self, scores: FloatArray) -> tuple[FloatArray, FloatArray]:
        """(differences of all pairs of scores (n,) over the margin, over the ceiling), (n, n) each."""
        gaps, gates = np.abs(scores[:, None] - scores), self.limits
        apart, wide = np.full_like(gaps, np.inf), np.zeros_like(gaps)
        if hasattr(gates, "gap_min"):
            apart = gaps / gates.gap_min
        if hasattr(gates, "ratio_min"):
            by_ratio = np.abs(np.log(scores)[:, None] - np.log(scores))
            apart = np.minimum(by_ratio / np.log(gates.ratio_min), apart)
            wide = by_ratio / np.log(getattr(gates, "ratio_max", np.inf))
        return apart, wide

    def recheck(self, fact: Fact, view: SceneView) -> FloatArray:
        """What `second` gives of the truth, which must be the extreme one by it."""
        frames = (view.frame(fact.frame_ids[0]),)
        seen = [Measured(frames, self.candidate_evidence.of(c), {"rect": c.show["rect"]}) for c in fact.candidates]
        scores = np.array([float(self.second(view, one)) for one in seen])
        extreme = int(np.argmax(scores) if self.is_highest(fact.ask) else np.argmin(scores))
        if extreme != fact.truth:
            raise GeometryError(f"{fact.key}: by the second route {extreme} is the {fact.ask}, not {fact.truth}")
        return scores[fact.truth : fact.truth + 1]

    def recompute(self, fact: Fact) -> FloatArray:
        """The extreme score among the options, after comparing their lowest and highest ones.

        Raises:
            GeometryError: the ends of the extreme place and of another one overlap.
        """
        seen = [self.candidate_evidence.of(option) for option in fact.candidates]
        low, high = np.array([self.find_ends(one) for one in seen]).T
        highest = self.is_highest(fact.ask)
        first = int(np.argmax(low) if highest else np.argmin(high))
        others = np.arange(len(seen)) != first
        if not (low[first] > high[others] if highest else high[first] < low[others]).all():
            raise GeometryError("scores of the options overlap")
        return np.array([float(self.value(seen[first]))])

    def metric(self, a: FloatArray, b: FloatArray, fact: Fact) -> float:
        """Difference of scores, in the task's unit."""
        return float(abs(a[0] - b[0]))

    def rounded(self, value: FloatArray) -> FloatArray:
        """Nothing of the value is printed."""
        return value

    def printed(self, value: FloatArray) -> str:
        """For reports."""
        return numbers.format_fixed(float(value[0]), 2)

    def pair_margins(self, candidates: Sequence[Candidate], fact: Fact) -> tuple[FloatArray, FloatArray]:
        """As `compare`; only the truth must stand apart, as two decoys may be alike."""
        apart, wide = self.compare(np.array([float(candidate.value[0]) for candidate in candidates]))
        is_truth = np.array([candidate.key == fact.truth_candidate.key for candidate in candidates])
        return np.where(is_truth | is_truth[:, None], apart, 1.0), wide

    def ladder(self, fact: Fact, count: int, rng: np.random.Generator) -> tuple[list[Candidate], int] | None:
        """One of the fact's sets, or a part of one."""
        sets = SetsEvidence.of(fact).sets
        decoys = sets[int(rng.integers(len(sets)))]
        return leave_out([fact.truth_candidate, *(fact.candidates[k] for k in decoys)], 0, count, rng)

    def list_numbers(self, options: Sequence[Candidate]) -> FloatArray:
        """(n, 4) the rectangles, pixels: values are not printed."""
        return np.array([np.ravel(option.show["rect"]) for option in options], dtype=np.float64)

    def read_text_cues(self, fact: Fact, options: Sequence[Candidate]) -> FloatArray:
        """(n, 7) where each place lies in the image and how large it is: the middle from the image's middle, its
        distance from there, area and shape, and how far it is from the top-left corner. Lengths over the sides or the
        diagonal of the image."""
        camera = fact.cameras[fact.frame_ids[-1]]
        size = np.array([camera["width"], camera["height"]], dtype=np.float64)
        rects = np.array([option.show["rect"] for option in options], dtype=np.float64).reshape(-1, 2, 2)
        middle_px, sides_px = rects.mean(axis=1) - (size - 1) / 2, rects[:, 1] - rects[:, 0] + 1
        off = np.linalg.norm(middle_px, axis=1) / np.linalg.norm(size)
        shape = np.log([sides_px.prod(axis=1), sides_px[:, 0] / sides_px[:, 1]]).T
        far = np.linalg.norm(rects.reshape(-1, 4), axis=1) / np.linalg.norm(size)
        return np.column_stack([middle_px / size, np.abs(middle_px[:, 0]) / size[0], off, shape, far])

    def read_image_cues(self, fact: Fact, options: Sequence[Candidate]) -> FloatArray:
        """(n, 1) how bright each place is: in most rooms the nearest ones are bright."""
        stored: list[Any] = [self.candidate_evidence.of(option) for option in options]
        return np.array([[one.grey or 0.0] for one in stored])

    def could_be_true(self, fact: Fact, options: Sequence[Candidate], truth: int) -> list[int]:
        """The image fixes which of the places is the extreme one."""
        return [truth]

    def noisy_gaps(
        self,
        fact: Fact,
        options: Sequence[Candidate],
        truth: int,
        noise: SensorNoise,
        rng: np.random.Generator,
        count: int,
    ) -> FloatArray:
        """See `NoiseTest`: the score itself, every place being measured with errors of its own."""
        stored = [self.candidate_evidence.of(option) for option in options]
        scores = np.array([self.value(self.disturb(seen, noise, rng, count)) for seen in stored])
        return -scores if self.is_highest(fact.ask) else scores

    def overlay(self, fact: Fact, row: RowEvidence) -> list[list[Mark]]:
        """Every place that is an option, with its score."""
        ends = [np.reshape(option.show["rect"], (2, 2)).astype(float).tolist() for option in fact.candidates]
        return [
            [
                Mark(
                    "rect",
                    (tuple(first), tuple(last)),
                    f"{self.printed(one.value)} {self.unit}",
                    one is fact.truth_candidate,
                )
                for one, (first, last) in zip(fact.candidates, ends, strict=True)
            ]
        ]

    def choice(self, fact: Fact, options: OptionSet, rng: np.random.Generator) -> Presentation:
        """Places are outlined in drawn colors, whatever the order of the options, which name them."""
        rects = [option.show["rect"] for option in options.options]
        looks = zip(sorted(rects), rng.permutation(list(COLORS)).tolist(), strict=False)
        marks = [{"op": "region", "rect": rect, "color": color} for rect, color in looks]
        ops = [next(mark for mark in marks if mark["rect"] == rect) for rect in rects]
        listed = sorted(ops, key=lambda op: str(op["color"]))
        slots = {"extreme": fill_word(f"extreme.{fact.ask}"), "count": fill_word(f"number.n{len(rects)}")}
        picture = Picture(fact.pictures[fact.frame_ids[0]], tuple(listed))
        return Presentation((picture,), slots, tuple(map(name_mark, ops)))


def _measure_grey(frame: ViewFrame, place: MarkedPlace) -> float:
    return round(float(cut_grey(frame, place.rect_px).mean()), 1)


def cut_grey(frame: ViewFrame, rect: Sequence[int]) -> ColorArray:
    """(h, w) grey levels in a rectangle [x1, y1, x2, y2] of the delivered image, at the width of grey images."""
    scale = frame.grey.shape[1] / frame.camera.width
    x1, y1, x2, y2 = np.round((np.array(rect) + [0, 0, 1, 1]) * scale).astype(int).tolist()
    return frame.grey[y1:y2, x1:x2]


# --- rules that understand nothing -----------------------------------------------------------------------------------


def _cut_inside(rect: FloatArray, image: Image) -> ColorArray:
    x1, y1, x2, y2 = (int(x) for x in rect)
    patch = image.gray[y1 : y2 + 1, x1 : x2 + 1]
    if patch.size == 0:
        raise Unread(f"region {rect} of an image of {image.size}")
    return patch


# Name of a rule where most of its measure is chosen, and where least is; the measure of a rectangle in an image.
RULES: tuple[tuple[str, str, Callable[[FloatArray, Image], float]], ...] = (
    ("top-most region", "lowest region", lambda rect, _: -float(rect[1] + rect[3])),
    ("largest region", "smallest region", lambda rect, _: float((rect[2] - rect[0] + 1) * (rect[3] - rect[1] + 1))),
    (
        "most detail",  # near surfaces show more fine structure and are blurred less
        "least detail",
        lambda rect, image: float(np.abs(cv2.Laplacian(_cut_inside(rect, image), cv2.CV_64F, ksize=3)).mean()),
    ),
    ("brightest region", "darkest region", lambda rect, image: float(_cut_inside(rect, image).mean())),
    (
        "region farthest from the centre",
        "region nearest the centre",
        lambda rect, image: float(np.linalg.norm((rect[:2] + rect[2:]) / 2 - (np.array(image.size) - 1) / 2)),
    ),
)


def make_rules(*chosen: str) -> tuple[ImageRule, ...]:
    """The rules of these names, each of which chooses the place with most or with least of its measure."""
    found = {most: (measure, 1.0) for most, _, measure in RULES} | {least: (by, -1.0) for _, least, by in RULES}
    return tuple(ImageRule(name, _score_by(*found[name])) for name in chosen)


def _score_by(measure: Callable[[FloatArray, Image], float], sign: float) -> Callable[[VisibleQuestion], FloatArray]:
    return lambda seen: sign * np.array([measure(rect, seen.images[0]) for rect in seen_marks.list_marks(seen)])
