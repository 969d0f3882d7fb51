"""What a task is: it proposes facts, reaches each answer by a second route, and knows how to put the question.

A task sees a scene only through `SceneView` (delivered cameras, cached depth, gates, pair tables). All of its words
come from `templates/`; slots are filled with printed numbers and words looked up by key.
"""

from __future__ import annotations

import abc
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, Generic

import numpy as np

from vgbench_gen.core.config import parse_config
from vgbench_gen.core.gates import Gates, SectionT
from vgbench_gen.core.registry import Registry
from vgbench_gen.core.types import LETTERS, BoolArray, Candidate, Fact, FloatArray, Notation, QuestionType, Rejected
from vgbench_gen.distractors.base import FactorPair, OptionSet, compatibility, draw_truth
from vgbench_gen.scenes.view import SceneView
from vgbench_gen.tasks._noise import NoiseTest
from vgbench_gen.tasks._proposals import Proposals
from vgbench_gen.tasks.evidence import Evidence, FactEvidence
from vgbench_gen.tasks.explaining import Explainer
from vgbench_gen.tasks.gates import NotationGates
from vgbench_gen.tasks.presentation import ClaimPair, Mark, Presentation, WorldBox, WorldPoint
from vgbench_gen.tasks.revealed import Revealed, reveal_cameras
from vgbench_gen.tasks.row_evidence import RowEvidence
from vgbench_gen.tasks.solving import ImageRule, NoSolver, Solver
from vgbench_gen.text.render import bring_task_file

Problems = list[tuple[str, str]]
"""(name of a check, what is wrong in one line) of everything that does not hold in a row; empty where all holds."""
Check = Callable[[Fact, Gates], Problems]
"""What `vgbench verify` asks of a row's evidence, given the fact as read back and the gates of the build."""

SECOND_ROUTE_SHARE = 0.2  # the two routes must agree within a fifth of the margin (docs/validity.md#second-route)
TRUE_CLAIM_MAX = 0.5  # margins; a true claim farther off may be as near to a neighbour (docs/validity.md#judgments)


class OwnGates(Generic[SectionT]):
    """The gates and margins of a task, as its attribute `limits`."""

    def __init__(self, kind: type[SectionT]) -> None:
        self.kind = kind

    def __get__(self, task: Task, owner: type[Task]) -> SectionT:
        return task.gates.section(self.kind)


class Task(NoiseTest, Proposals, abc.ABC):
    """One kind of question."""

    name: ClassVar[str]
    """Name under which the task is registered; the column `task` of its rows."""
    version: ClassVar[int] = 1
    """A new version means other facts and new ids."""
    formats: ClassVar[tuple[QuestionType, ...]]
    """Question types that it can take."""
    unit: ClassVar[str] = ""
    """Unit of the column `answer_value`; see `unit_for`."""
    asks: ClassVar[tuple[str, ...]] = ("",)
    """Names of the task's sub-kinds, which stand in the column `ask`; "" where there is one kind only."""
    input_modality: ClassVar[str] = "single-image"
    """Value of SpatialScore's column of this name, like the three that follow."""
    category: ClassVar[str]
    subcategory: ClassVar[str]
    category_origin: ClassVar[Mapping[str, str]]
    """Question type -> value of the column."""
    convention: ClassVar[Mapping[str, str]]
    """Tokens for the column `convention`."""
    by_default: ClassVar[bool] = True
    """Whether recipes ask it that name no tasks."""
    needs_objects: ClassVar[bool] = False
    """Whether it can only ask about scenes with annotated objects."""
    needs_gravity: ClassVar[bool] = False
    """Whether it can only ask about scenes in which the direction of gravity is known."""
    needs_meters: ClassVar[bool] = True
    """Whether its answers need poses and depth in meters, and not only in some scale."""
    candidate_draws: ClassVar[int] = 1
    """Draws of options, or of claims, among which one is chosen by `read_text_cues` and `read_image_cues`; 1 for a task
    whose sets tell nothing as they are drawn."""
    strategy: ClassVar[str] = "set_first"
    """The strategy that chooses its options unless another one is named; where that has no set, "set_first" does."""
    counterpart_kind: ClassVar[str] = ""
    """From which other side its questions can be asked (see `counterpart`); "" where there is none."""
    partner_draws: ClassVar[tuple[str, ...]] = ()
    """Strategies whose sets are none of the kind when they are read from the other side; a partner draws its own."""
    options_max: ClassVar[int] = 6
    """The most options that a question of it can have."""
    options_recur: ClassVar[bool] = False
    """Whether many questions have the same options, as labels are; of other tasks no two facts may share a set."""
    pool_size: ClassVar[int] = 12
    """Candidates that are kept with a fact."""
    fact_evidence: ClassVar[type[FactEvidence]]
    """What is kept of every fact (`vgbench_gen.tasks.evidence`)."""
    candidate_evidence: ClassVar[type[Evidence]]
    """What is kept of every candidate that was measured."""
    checks: ClassVar[tuple[Check, ...]]
    """What must hold between the numbers of a row's evidence, beside what `verify` asks of every row."""
    solvers: ClassVar[tuple[Solver, ...] | NoSolver]
    """Classical programs that answer the questions from their pixels, or why there is none."""
    image_rules: ClassVar[tuple[ImageRule, ...]] = ()
    """Rules that understand nothing and must guess; see `rules_for`."""
    templates: ClassVar[Path | None] = None
    """Template file `<name>.toml` of a task from another package; ours stand in `templates/tasks/`."""
    asked: ClassVar[str] = ""
    """What is asked, in a few words for the table of a dataset card; ours stand in `templates/cards/words.toml`."""
    paper_column: ClassVar[str] = ""
    """Heading of the task's column in the paper's Table 1; "" for a task that the paper does not have."""
    cuts_crops: ClassVar[bool] = False
    """Whether its images are crops, cut from frames at their wide size (`SceneView`) rather than the delivered one."""
    any_image_fits: ClassVar[bool] = False
    """Whether nothing in another image could contradict the question's numbers. Reviewers are then never shown one."""

    gates: Gates
    """Limits that everything that is asked must pass; the defaults unless a recipe gives others."""

    def __init__(self, gates: Gates | None = None) -> None:
        self.gates = gates or Gates()

    def check_class_data(self) -> None:
        """Refuse a class without what its rows state; words are at hand.

        Raises:
            TypeError: what was found, what is expected and what to do.
        """
        for name in ("category", "subcategory", "convention", "formats"):
            if getattr(self, name, "") in ("", ()):
                raise TypeError(f"found no {name}; expected class data of this name. Give `{name}` in the class")

    @property
    def notation(self) -> Notation:
        """How its values are printed; "matrix" also where there is one way only."""
        limits = getattr(self, "limits", None)
        return limits.notation if isinstance(limits, NotationGates) else "matrix"

    def with_gates(self, gates: Gates) -> Task:
        """The same task under other gates."""
        return type(self)(gates)

    def in_notation(self, notation: Notation) -> Task:
        """The same task with values printed in this way, where it has the choice."""
        limits = getattr(self, "limits", None)
        if notation == self.notation or not isinstance(limits, NotationGates):
            return self
        return self.with_gates(read_gates({limits.section: {"notation": notation}}, f"task {self.name!r}"))

    def unit_for(self, fact: Fact) -> str:
        """Unit of this fact's answer; tasks whose kinds of question differ in unit say which."""
        return self.unit

    def count_options(self, wanted: int) -> int:
        """The options of its multi-choice questions where a recipe wants that many."""
        return wanted

    def rules_for(self, ask: str) -> tuple[ImageRule, ...]:
        """The rules that understand nothing for one sub-kind of the task."""
        return self.image_rules

    def tolerance_words(self, ask: str, tolerance: float) -> tuple[str, ...]:
        """Phrases by which a judgment's text must state the item's tolerance; none where claims state no number."""
        return ()

    # --- measuring -------------------------------------------------------------------------------------------------

    @abc.abstractmethod
    def drafts(self, view: SceneView, rng: np.random.Generator, limit: int) -> Iterator[Fact | Rejected]:
        """Propose at most `limit` facts; every attempt yields a `Fact` or a `Rejected`, never nothing.

        `second_value` of a yielded fact is a placeholder (the first route's value) until `recheck` fills it.
        """

    @abc.abstractmethod
    def recheck(self, fact: Fact, view: SceneView) -> FloatArray:
        """The truth's value by a second route that shares nothing with the first beyond `geometry/`.

        Raises:
            GeometryError, FrameError: the second route does not exist for this fact; the draft is rejected.
        """

    @abc.abstractmethod
    def recompute(self, fact: Fact) -> FloatArray:
        """The truth's value from what a row keeps of its fact (poses, K, stored measurements).

        fact: as read back from a row: its candidates are the options, or the truth alone.
        """

    @abc.abstractmethod
    def metric(self, a: FloatArray, b: FloatArray, fact: Fact) -> float:
        """How far two answers are apart, in the task's own unit."""

    def new_fact(
        self,
        view: SceneView,
        candidates: Sequence[Candidate],
        *,
        frame_ids: Sequence[str] = (),
        key: str = "",
        ask: str = "",
        evidence: FactEvidence | None = None,
    ) -> Fact:
        """A fact of this task and scene whose truth is, for the time being, its first candidate."""
        return Fact(
            task=self.name,
            task_version=self.version,
            ask=ask,
            dataset=view.dataset,
            scene_id=view.id,
            split=view.split,
            key=key,
            frame_ids=tuple(frame_ids),
            candidates=tuple(candidates),
            truth=0,
            second_value=candidates[0].value,
            margin=1.0,
            evidence=evidence.write() if evidence else {},
            licence=view.licence,
        )

    def with_drawn_truth(self, fact: Fact, rng: np.random.Generator, eligible: BoolArray | None = None) -> Fact | None:
        """The fact with its truth drawn from the pool (`draw_truth`), or None where no set of four options exists.

        eligible: (pool,) False for candidates that may be shown but not asked about.
        """
        if eligible is not None and not eligible.any():
            return None
        truth = draw_truth(compatibility(fact.candidates, fact, self), len(LETTERS), rng, eligible)
        if truth is None:
            return None
        return replace(fact, truth=truth, second_value=fact.candidates[truth].value)

    # --- answer space (see `distractors.base.AnswerSpace`) ---------------------------------------------------------

    @abc.abstractmethod
    def rounded(self, value: FloatArray) -> FloatArray:
        """The value that a reader of the printed option gets back."""

    @abc.abstractmethod
    def printed(self, value: FloatArray) -> str:
        """The value as an option text."""

    def print_option(self, option: Candidate, fact: Fact) -> str:
        """The text of an option, or of what a claim or a question states; `printed` unless that takes more than the
        value."""
        return self.printed(option.value)

    def find_words(self, value: FloatArray, truth: Candidate) -> str:
        """The words that a value of a fact with this truth stands for; "" where it stands for itself."""
        return ""

    def list_scores(self, fact: Fact) -> dict[str, float]:
        """Words -> score, where the highest one decides the answer of a fact, as read back from a row; else empty."""
        return {}

    def printed_numbers(self, value: FloatArray) -> FloatArray:
        """The numbers of `printed` in the order in which they stand there; none where its words count as well."""
        return self.rounded(value).ravel()

    @abc.abstractmethod
    def pair_margins(self, candidates: Sequence[Candidate], fact: Fact) -> tuple[FloatArray, FloatArray]:
        """(distances over the required margin, distances over the ceiling) of all ordered pairs, (n, n) each; zeros for
        a ceiling that the task does not have."""

    def margin_ratio(self, a: Candidate, b: Candidate, fact: Fact) -> float:
        """The distance of two candidates over the required margin."""
        return float(self.pair_margins((a, b), fact)[0][0, 1])

    def valid(self, candidate: Candidate, fact: Fact) -> bool:
        """Whether the value is a member of the family."""
        return bool(np.isfinite(candidate.value).all())

    def ladder(self, fact: Fact, count: int, rng: np.random.Generator) -> tuple[list[Candidate], int] | None:
        """None, as options come from the pool unless a task says otherwise."""
        return None

    def factor_pairs(self, fact: Fact, rng: np.random.Generator) -> Iterator[FactorPair]:
        """Nothing, as an answer has no parts that can be combined unless a task says so."""
        return iter(())

    def list_numbers(self, options: Sequence[Candidate]) -> FloatArray:
        """(n, d) the numbers of each option, by which a reader sees how far options are from each other."""
        return np.array([option.value.ravel() for option in options])

    def read_text_cues(self, fact: Fact, options: Sequence[Candidate]) -> FloatArray:
        """(n, d) what a reader of the text alone can know of each option beside the question.

        Of `candidate_draws` draws the one is asked under which none of it tells the truth
        (`docs/validity.md#balanced-selection`).
        """
        return np.zeros((len(options), 0))

    def read_image_cues(self, fact: Fact, options: Sequence[Candidate]) -> FloatArray:
        """(n, e) what rules choose by that understand nothing of the image, larger for what they would choose."""
        return np.zeros((len(options), 0))

    def perturbed(self, fact: Fact, rng: np.random.Generator) -> Candidate | None:
        """None, as the paper gives most tasks no noise rule."""
        return None

    def sampled(self, fact: Fact, rng: np.random.Generator) -> Candidate | None:
        """None, as random values come from the pool unless a task says otherwise."""
        return None

    def published(self, fact: Fact, count: int, rng: np.random.Generator) -> list[Candidate] | None:
        """None, as v2 takes other objects, points or random values unless a task says otherwise."""
        return None

    def agreement(self, second: FloatArray, fact: Fact) -> float:
        """Difference of the two routes over what is allowed; <= 1 passes."""
        truth = fact.truth_candidate
        return self.margin_ratio(truth, replace(truth, value=second), fact) / SECOND_ROUTE_SHARE

    def claim_ratio(self, claimed: Candidate, fact: Fact) -> float:
        """How far a judgment's claim is from the truth, over the margin; a task may weigh claims in its own way."""
        return self.margin_ratio(fact.truth_candidate, claimed, fact)

    def find_claim_problem(self, claimed: Candidate, holds: bool, fact: Fact) -> str:
        """Why a claim that is said to hold, or not to, is neither true nor false beyond doubt; "" where it is.

        Composing refuses such a claim, and `verify` reports one. Source: `docs/validity.md#judgments`.
        """
        off = self.claim_ratio(claimed, fact)
        if holds and off > TRUE_CLAIM_MAX:
            expected = f"at most {TRUE_CLAIM_MAX} for a true claim"
        elif not holds and off < 1:
            expected = "at least 1 for a false claim"
        else:
            return ""
        return f"claimed value is {off:.2f} margins from the truth; expected {expected} (`{self.name}.claim_ratio`)"

    # --- asking ----------------------------------------------------------------------------------------------------

    @abc.abstractmethod
    def choice(self, fact: Fact, options: OptionSet, rng: np.random.Generator) -> Presentation:
        """A multi-choice question with these options in this order."""

    def claim_pair(self, fact: Fact, rng: np.random.Generator) -> ClaimPair | None:
        """A true and a false claim, or None where no false claim keeps the margins."""
        return None

    def open_ended(self, fact: Fact) -> Presentation:
        """An open-ended question; only for tasks with that format."""
        raise TypeError(f"{self.name} has no open-ended form")

    def count_hops(self, fact: Fact) -> int:
        """How many things a reader has to relate for the answer, at least 1: each object, region, warp or pair of views
        that the record of the truth keeps.

        fact: as read back from a row.

        Raises:
            DatasetError: the evidence is not what the task declares.
        """
        seen = self.candidate_evidence.given(fact.truth_candidate) or ()
        return max(1, sum(isinstance(value, Evidence) for _, value in seen))

    def stored_poses(self, fact: Fact) -> dict[str, FloatArray]:
        """Frame id -> (4, 4) `world_from_camera`, meters, of all frames whose pose the fact or a candidate keeps.

        Raises:
            DatasetError: the evidence of the fact or of a candidate is not what the task declares.
        """
        measured = [self.candidate_evidence.given(candidate) for candidate in fact.candidates]
        kept = [self.fact_evidence.of(fact), *(evidence for evidence in measured if evidence is not None)]
        return {frame_id: pose for evidence in kept for frame_id, pose in evidence.poses().items()}

    def reveal(self, fact: Fact, row: RowEvidence) -> Revealed:
        """What perfect tools would measure in the images of a question (`docs/agent.md#oracle`): the cameras, unless
        the task tells more. No quantity says which option is right.

        Args:
            fact: as read back from a row: its candidates are the options, or the truth alone.
            row: what the row keeps besides.

        Raises:
            DatasetError: the row's evidence is damaged.
        """
        return Revealed(cameras=reveal_cameras(row))

    def explain(self, fact: Fact, pen: Explainer) -> dict[str, str]:
        """What a rationale says: slots of `templates/rationales/`, and under "case" which of its steps they fill; none
        for a task without rationales. They tell nothing that the question and its images do not show.

        Args:
            fact: as read back from a row: its candidates are the options, or the truth alone.
            pen: knows what the row keeps besides, and prints; to check a text, it reaches quantities in another way.

        Raises:
            DatasetError, GeometryError: the row's evidence is damaged.
        """
        return {}

    def overlay(self, fact: Fact, row: RowEvidence) -> list[list[Mark]]:
        """What explains the answer, drawn on each shown picture in order; empty lists where there is nothing.

        Args:
            fact: as read back from a row: its candidates are the options, or the truth alone.
            row: what the row keeps besides: pictures and claim.
        """
        return [[] for _ in row.pictures]

    def world_boxes(self, fact: Fact) -> tuple[WorldBox, ...]:
        """Boxes of the objects that a fact, as read back from a row, is about; none where it is about none."""
        return ()

    def world_points(self, fact: Fact) -> tuple[WorldPoint, ...]:
        """Points that `overlay` marks, of a fact as read back from a row; none where it marks none that are known in
        space."""
        return ()

    def counterpart(self, fact: Fact) -> Fact | None:
        """The same truth asked from the other side, or None where there is no such question.

        Source: `docs/validity.md#consistency-pairs`.

        `counterpart_kind` names the side: "inverse" (first and second image exchanged) or "swap" (A to B, B to A).
        Candidates keep their order, the truth its place. Two partners of one another ask the same again:
        `partner(partner(f))` equals f up to rounding.

        Every candidate is turned, also one that was computed for an option set, so the partner of
        `replace(fact, candidates=options.options, truth=options.truth)` holds the set as it reads from the other
        side. One without a counterpart gets a value of NaN, which `valid` refuses.
        """
        return None

    def tolerance(self, question_type: QuestionType) -> float:
        """The relative tolerance that an open-ended row records, 0 for choices; a judgment records that of its claim.

        It is recorded only. Open-ended replies are scored by the factors 2 and 1.25 whatever a task says here
        (`docs/validity.md#open-ended-answers`).
        """
        return 0.25 if question_type == "open-ended" else 0.0


def admit(task: Task) -> None:
    """Refuse a task that would be skipped in silence by `verify` or by `audit`, or whose evidence nobody could read;
    take in the templates that it brings.

    Raises:
        TypeError: the task declares no records of its evidence, no checks, or neither solvers nor the reason why it has
            none, or `Task.check_class_data` refuses it.
        ConfigError: the task brings templates and another file has its name.
    """
    where = f"task {task.name!r} ({type(task).__module__})"
    for name in ("fact_evidence", "candidate_evidence"):
        if not hasattr(task, name):
            raise TypeError(f"{where} declares no {name}; name the record of what it keeps, a subclass of `Evidence`")
    if not getattr(task, "checks", ()):
        raise TypeError(f"{where} declares no checks; name what `verify` must ask of a row in `checks`")
    if not getattr(task, "solvers", ()):
        raise TypeError(f"{where} declares no solver; name some in `solvers`, or NoSolver('why there is none')")
    if task.templates is not None:
        bring_task_file(task.templates)
    try:
        task.check_class_data()
    except TypeError as error:
        raise TypeError(f"{where}: {error}") from error


tasks: Registry[Task] = Registry("task", "vgbench_gen.tasks", admit)


def read_gates(data: Mapping[str, Any], where: str) -> Gates:
    """Gates as a recipe or a manifest holds them, with the tables of every installed task.

    Args:
        data: the table `gates`.
        where: file, for messages.

    Raises:
        ConfigError: a table or a key that no task has, or a value of another kind.
    """
    tasks.names()  # imports each task, and with it its gates
    return parse_config(data, Gates, where)


def reject(
    task: Task, view: SceneView, key: str, reason: str, value: float, limit: float, detail: str = ""
) -> Rejected:
    """A `Rejected` of this task and scene."""
    return Rejected(task.name, view.dataset, view.id, key, reason, float(value), float(limit), detail)


def add_margins(fact: Fact, key: str, ratios: Mapping[str, float]) -> Fact:
    """The fact under its key, with the margins of the gates it passed (value over limit, >= 1)."""
    rounded = {name: round(float(ratio), 4) for name, ratio in ratios.items()}
    margin = min(rounded.values(), default=1.0)
    evidence = tasks[fact.task].fact_evidence.of(fact).with_fields(margins=rounded)
    return replace(fact, key=key, margin=margin, evidence=evidence.write())
