"""The record that carries a question from the first plan to the finished row, and the names of facts."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from vgbench_gen.core.rng import format_canonical_json, hash_stably
from vgbench_gen.core.types import LETTERS, Candidate, Fact, QuestionType
from vgbench_gen.distractors.base import OptionSet

Key = tuple[str, QuestionType]
"""The group of a fact and the form in which it is asked."""


@dataclass(frozen=True, slots=True, eq=False)
class PackedOptions:
    """An option set without its fact, which is small enough to travel between processes."""

    members: tuple[int | Candidate, ...]
    """Per option its place in the fact's pool, or the candidate itself where the option was computed."""
    truth: int
    """Place of the truth among the members."""
    strategy: str
    separations: tuple[float, ...]
    """Per option its distance from the truth over the required margin."""
    fallback: str = ""
    """As in `OptionSet`."""

    @classmethod
    def pack(cls, options: OptionSet, fact: Fact) -> PackedOptions:
        """The set, with places in the pool of this fact instead of its candidates."""
        places: Mapping[int, int] = {id(candidate): k for k, candidate in enumerate(fact.candidates)}
        members = tuple(places.get(id(option), option) for option in options.options)
        return cls(members, options.truth, options.strategy, options.separations, options.fallback)

    def unpack(self, fact: Fact) -> OptionSet:
        """The set with the candidates of this fact."""
        members = tuple(fact.candidates[m] if isinstance(m, int) else m for m in self.members)
        return OptionSet(members, self.truth, self.strategy, self.separations, self.fallback)


@dataclass(frozen=True, slots=True, eq=False)
class QuestionPlan:
    """One fact in one form, from the first plan to the finished row. Each stage fills in the fields that it decides.

    Reading the facts gives the fields up to `counterpart_kind`; looking at all facts gives `draw`; a trial gives those
    up to `noise_kept`; choosing gives the others. A plan is a hundredth of the size of its fact, so the plans of all
    scenes fit into one process.
    """

    task: str
    source: str
    split: str
    scene_id: str
    group_id: str
    """Hash of the fact, see `group_id`."""
    question_type: QuestionType
    row: int = 0
    """Place of the fact in its scene's shard."""
    ask: str = ""
    """Sub-kind of the task."""
    margin: float = 0.0
    """The smallest ratio by which the fact passed its gates; difficulty follows from it."""
    value: float = math.nan
    """The answer where it is one number, else NaN."""
    frame: str = ""
    """The first frame that is shown. Questions about one frame are written together."""
    counterpart_kind: str = ""
    """What the task calls the other side of the fact, where the form may be asked from there as well; else ""."""
    places: int = len(LETTERS)
    """Of a multi-choice question, how many options it has."""

    draw: int = 0
    """Number of the draw of its options, or of its claims, that it is asked with (`pipeline.draws`)."""
    rejection_reason: str = ""
    """Why the fact cannot be asked so, or "" as far as is known."""
    unpaired_reason: str = ""
    """Why the fact cannot be asked from its other side as well, or "" as far as is known."""
    options: PackedOptions | None = None
    """The options that were drawn for a multi-choice question."""
    other_options: PackedOptions | None = None
    """Those that were drawn for its other side, where the first ones do not read as a set of their strategy from
    there (`Task.partner_draws`); places are those in the pool of the task's counterpart."""
    option_digests: tuple[str, ...] = ()
    """Digests of the options as printed, in any order, one for each side that can be asked. A set that stood under two
    truths would tell by comparison, so no two facts may share one."""
    noise_kept: tuple[float, ...] = ()
    """Shares of the noise draws that leave the question its answer: as the fact is, then from the other side. A side
    that was not tested is missing."""

    difficulty: str = ""
    letter: int | None = None
    """Place of the right option; None where no letter was dealt."""
    side: str = ""
    """The side that is asked from: "" for the fact as it is, else `counterpart_kind`."""
    paired: bool = False
    """Whether the fact is asked from both sides."""

    @property
    def key(self) -> Key:
        """The group and the form, which name a question of the plan up to its side."""
        return self.group_id, self.question_type

    @property
    def cell(self) -> str:
        """Task, form and source as reports name them."""
        return f"{self.task}/{self.question_type}/{self.source}"

    @property
    def can_pair(self) -> bool:
        """Whether the fact can be asked from both sides, as far as is known."""
        return bool(self.counterpart_kind) and not self.unpaired_reason


def group_id(fact: Fact) -> str:
    """Hash of the fact: the same truth asked in another form, or with other decoys, has the same one."""
    truth = fact.truth_candidate
    keys = [candidate.key for candidate in fact.candidates]
    where = (fact.task, str(fact.task_version), fact.ask, fact.dataset, fact.scene_id, fact.key, truth.key)
    return group_hash(where, truth.value.ravel().tolist(), keys)


def group_hash(where: Sequence[str], value: Sequence[float], candidates: Sequence[str]) -> str:
    """`group_id` from its parts: names down to the truth's key, the true value flattened, the keys of the pool."""
    return hash_stably(*where, format_canonical_json(value), *candidates, size=12)
