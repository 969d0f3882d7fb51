"""Kinds whose answer is one of a few words, such as left or right: options are all of the words, claims name one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar

import numpy as np
from pydantic import Field, Strict

from vgbench_gen.core.errors import FrameError, GeometryError, PluginError
from vgbench_gen.core.noise import SensorNoise
from vgbench_gen.core.types import Candidate, Fact, FloatArray, QuestionType
from vgbench_gen.distractors.base import OptionSet
from vgbench_gen.scenes.view import SceneView
from vgbench_gen.tasks.evidence import Evidence
from vgbench_gen.tasks.explaining import Explainer
from vgbench_gen.tasks.kind import MARK_COLORS, Measured, QuestionKind
from vgbench_gen.tasks.presentation import Claim, ClaimPair, Mark, Presentation
from vgbench_gen.tasks.row_evidence import RowEvidence
from vgbench_gen.text.render import load_labels

SECOND_GAP_SHARE = 0.5  # of the gap between labels: by the second route an answer may be as near to the boundary


class LabelTask(QuestionKind):
    """One of a closed set of words; values are (1,) arrays with the place of the label.

    `value` gives scores (..., labels), of which the highest is the answer. By `margins`, the best must be `ratio_min`
    times as high as the next one or `gap_min` higher, so that no answer is near a boundary. Every label is right
    equally often, also among places with one `Measured.guess` and one `Measured.group`.
    """

    labels: ClassVar[tuple[str, ...]]
    """Keys of the words below `labels` in the template file; 2 to 6."""
    formats: ClassVar[tuple[QuestionType, ...]] = ("judgment", "multi-choice")
    options_recur = True
    candidate_draws = 2  # of one set each: choosing leaves out facts whose marks tell the label
    symmetric: ClassVar[bool] = False
    """Whether chance decides which label a place has, as for two views in random order; one more of a label than of
    the others then tells nothing."""

    def count_options(self, wanted: int) -> int:
        """All labels, however many options a recipe wants."""
        return len(self.labels)

    def list_words(self, about: Candidate) -> Sequence[str]:
        """The words of the labels in their order; about: the truth of a fact."""
        words = load_labels(self.name)
        return [words[label] for label in self.labels]

    def settle(self, answer: Any) -> tuple[FloatArray, Mapping[str, float]]:
        """The label with the highest score, and by how much it is above the next one.

        Raises:
            GeometryError: there is not one score for each label, or one by ratio is not positive.
        """
        gates, scores = self.limits, np.asarray(answer, dtype=np.float64)
        by_ratio = hasattr(gates, "ratio_min")
        if scores.shape != (self.count_options(0),):
            expected = f"({self.count_options(0)},), one for each label"
            raise GeometryError(f"task {self.name!r}: found scores of shape {scores.shape}; expected {expected}.")
        if by_ratio and not (scores > 0).all():
            raise GeometryError(
                f"task {self.name!r}: found scores {scores.tolist()}; expected positive ones under `ratio_min`. Take "
                "`gap_min` for scores that may be zero or negative."
            )
        *_, second, best = np.sort(scores)
        kept = np.log(best / second) / np.log(gates.ratio_min) if by_ratio else (best - second) / gates.gap_min
        return np.array([float(np.argmax(scores))]), {"decided": float(kept)}

    def check_class_data(self) -> None:
        """Beside what every task has: labels with words, and one margin between scores."""
        super().check_class_data()
        words, labels = load_labels(self.name), getattr(self, "labels", ())
        if not 2 <= len(labels) <= 6 or len(set(labels)) < len(labels) or not set(labels) <= set(words):
            raise TypeError(
                f"found labels {list(labels)}; expected 2 to 6 different keys of {self.templates}, whose table labels "
                f"has {sorted(words)}. Name each in `labels`, and give each its words there"
            )
        if sum(hasattr(getattr(self, "limits", None), name) for name in ("ratio_min", "gap_min")) != 1:
            raise TypeError(
                f"found margins {sorted(self.margins)}; expected either ratio_min or gap_min among them, by which the "
                "best score must be above the next one. Give one in `margins`"
            )

    def find_answer_mark(self, truth: Candidate) -> str:
        """The mark that the label names, by its slot or its color; "" where it names none."""
        label, marks = self.labels[int(truth.value[0])], zip(sorted(truth.show), MARK_COLORS, strict=False)
        return next((name for name, color in marks if label in (name, color)), "")

    def choose(
        self, view: SceneView, found: Sequence[Measured], answers: Sequence[Any], order: list[int], limit: int
    ) -> list[int]:
        """Evenly by labels, among places with one guess and one group."""
        labels = [int(np.argmax(answer)) for answer in answers]
        if unknown := {one.guess for one in found} - {"", *self.labels}:
            expected = f"one of {', '.join(self.labels)}, or an empty one"
            raise PluginError(f"task {self.name!r}: found the guess {min(unknown)!r}; expected {expected}.")

        def agrees(k: int) -> bool:
            return self._agrees(view, found[k], labels[k])

        return self.choose_evenly(view, found, labels, self.count_options(0), order, limit, agrees, self.symmetric)

    def _agrees(self, view: SceneView, one: Measured, label: int) -> bool:
        try:
            value, kept = self.settle(np.asarray(self.second(view, one), dtype=np.float64))
        except (GeometryError, FrameError):
            return False
        return value[0] == label and kept["decided"] >= SECOND_GAP_SHARE

    def list_pool(self, truth: Candidate, others: Sequence[Candidate]) -> tuple[Candidate, ...]:
        """All labels, in their order."""
        words = self.labels or self.list_words(truth)
        pool = [Candidate(f"label:{word}", np.array([float(k)])) for k, word in enumerate(words)]
        pool[int(truth.value[0])] = truth
        return tuple(pool)

    def ladder(self, fact: Fact, count: int, rng: np.random.Generator) -> tuple[list[Candidate], int] | None:
        """All labels."""
        return list(fact.candidates), fact.truth

    def recheck(self, fact: Fact, view: SceneView) -> FloatArray:
        """The label by `second`.

        Raises:
            GeometryError: by the second route it is too near to another label.
        """
        value, kept = self.settle(super().recheck(fact, view))
        if kept["decided"] < SECOND_GAP_SHARE:
            share = f"{kept['decided']:.2f} of the gap that is needed between labels"
            raise GeometryError(f"{fact.key}: by the second route {share}")
        return value

    def recompute(self, fact: Fact) -> FloatArray:
        """The label by the stored evidence."""
        return self.settle(self.value(self.candidate_evidence.of(fact.truth_candidate)))[0]

    def metric(self, a: FloatArray, b: FloatArray, fact: Fact) -> float:
        """0 for the same label, else 1."""
        return float(a[0] != b[0])

    def rounded(self, value: FloatArray) -> FloatArray:
        """The label itself."""
        return value

    def printed(self, value: FloatArray) -> str:
        """The place of the label."""
        return str(int(value[0]))

    def print_option(self, option: Candidate, fact: Fact) -> str:
        """The words of the label."""
        return self.list_words(fact.truth_candidate)[int(option.value[0])]

    def find_words(self, value: FloatArray, truth: Candidate) -> str:
        """The words of the label; "" for a number that is none."""
        words = self.list_words(truth)
        return words[int(value.ravel()[0])] if value.size == 1 and value.ravel()[0] in range(len(words)) else ""

    def read_text_cues(self, fact: Fact, options: Sequence[Candidate]) -> FloatArray:
        """(n, 7 k) of labels that name k marks, as "orange" or "blue_orange", how the rectangle of each differs from
        all: middle, its distance from the middle of the image, logarithms of the sides, upper and lower edge; over the
        size of the image."""
        shown, camera = fact.truth_candidate.show, fact.cameras[fact.frame_ids[0]]
        places = [place for _, place in sorted(shown.items()) if len(place) == 4]
        named, colors = [label.split("_") for label in self.labels], MARK_COLORS[: len(places)]
        if not places or {color for names in named for color in names} != set(colors):
            return super().read_text_cues(fact, options)
        size = np.array([camera["width"], camera["height"]], dtype=np.float64)
        ends = np.reshape(places, (-1, 2, 2)) / size - 0.5
        middle = ends.mean(axis=1)
        sides = np.log(np.ptp(ends, axis=1) + 1 / size)
        traits = np.column_stack([middle, np.linalg.norm(middle, axis=1), sides, ends[:, 0, 1], ends[:, 1, 1]])
        of_label = [[colors.index(color) for color in names] for names in named]
        differs = (traits - traits.mean(axis=0))[of_label].reshape(len(named), -1)
        return np.asarray(differs[[int(option.value[0]) for option in options]])

    def explain(self, fact: Fact, pen: Explainer) -> dict[str, str]:
        """What a judgment claims."""
        return {} if pen.row.claim is None else {"claimed": self.print_option(pen.row.claim.candidate(), fact)}

    def list_scores(self, fact: Fact) -> dict[str, float]:
        """What `value` gives of each label."""
        scores = self.value(self.candidate_evidence.of(fact.truth_candidate))
        words = self.list_words(fact.truth_candidate)
        return {word: float(score) for word, score in zip(words, scores, strict=True)}

    def printed_numbers(self, value: FloatArray) -> FloatArray:
        """None, as labels are words."""
        return np.zeros(0)

    def valid(self, candidate: Candidate, fact: Fact) -> bool:
        """A label of the set."""
        return candidate.value.shape == (1,) and candidate.value[0] in range(self.count_options(0))

    def pair_margins(self, candidates: Sequence[Candidate], fact: Fact) -> tuple[FloatArray, FloatArray]:
        """1 between different labels: how far the truth is from each was asked when it was measured."""
        values = np.array([float(candidate.value[0]) for candidate in candidates])
        return (values[:, None] != values).astype(np.float64), np.zeros((len(values), len(values)))

    def could_be_true(self, fact: Fact, options: Sequence[Candidate], truth: int) -> list[int]:
        """The images fix which label is right."""
        return [truth]

    def noisy_values(
        self, fact: Fact, about: Candidate, noise: SensorNoise, rng: np.random.Generator, n: int
    ) -> FloatArray:
        """(n, 1) labels; `nan` where two have the highest score."""
        scores = self.value(self.disturb(self.candidate_evidence.of(about), noise, rng, n))
        undecided = (scores == scores.max(axis=-1, keepdims=True)).sum(axis=-1) > 1
        return np.where(undecided, np.nan, np.argmax(scores, axis=-1))[:, None]

    def gaps(self, values: FloatArray, options: Sequence[Candidate], about: Candidate, fact: Fact) -> FloatArray:
        """0 where an option is the label, else 1."""
        return np.array([values[:, 0] != option.value[0] for option in options], dtype=np.float64)

    def choice(self, fact: Fact, options: OptionSet, rng: np.random.Generator) -> Presentation:
        """The words of the labels."""
        texts = tuple(self.print_option(option, fact) for option in options.options)
        return Presentation(self.pictures(fact), self.slots(fact), texts)

    def claim_pair(self, fact: Fact, rng: np.random.Generator) -> ClaimPair | None:
        """The right label and another one, drawn."""
        truth, wrong = fact.truth_candidate, [c for k, c in enumerate(fact.candidates) if k != fact.truth]
        true, false = (
            Claim({"label": self.print_option(one, fact)}, one.value, float(one is not truth), one.key)
            for one in (truth, wrong[int(rng.integers(len(wrong)))])
        )
        return ClaimPair(self.pictures(fact), self.slots(fact), true, false, 0.0)


class NamedEvidence(Evidence):
    """What is kept of answers that are called as the scene, or the question, calls them."""

    labels: list[str]
    """(L,) what the answers are called."""
    about: str = ""
    """The label that the question names; "" where the answers do."""
    spots: list[list[Annotated[tuple[str, int, int], Strict(False)]]] = Field(default_factory=list)
    """Of each frame, label and pixel (u, v) of what it shows of these, for readers of the evidence."""


class NamedTask(LabelTask):
    """One of several answers that its `NamedEvidence` calls by name; each of one `Measured.group` is right equally
    often."""

    candidate_evidence: ClassVar[type[NamedEvidence]]
    labels = ()
    options: ClassVar[int] = 4
    formats: ClassVar[tuple[QuestionType, ...]] = ("multi-choice",)
    uses_max = 12  # of one set of answers

    def count_options(self, wanted: int) -> int:
        """As many as every fact has."""
        return self.options

    def list_words(self, about: Candidate) -> Sequence[str]:
        """The answers as they are called."""
        return self.candidate_evidence.of(about).labels

    def check_class_data(self) -> None:
        """What every task has; the labels are those of scenes."""
        QuestionKind.check_class_data(self)

    def find_answer_mark(self, truth: Candidate) -> str:
        """None, as answers name no mark."""
        return ""

    def overlay(self, fact: Fact, row: RowEvidence) -> list[list[Mark]]:
        """The answer at the foot of the first image, and what each shows of the objects that are named."""
        drawn = super().overlay(fact, row)
        for marks, spots in zip(drawn, self.candidate_evidence.of(fact.truth_candidate).spots, strict=False):
            marks += [Mark("point", ((u, v),), name) for name, u, v in spots]
        return drawn

    def slots(self, fact: Fact) -> dict[str, str]:
        """Also the label that the question names."""
        about = self.candidate_evidence.of(fact.truth_candidate).about
        return super().slots(fact) | ({"about": about} if about else {})
