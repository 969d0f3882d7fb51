"""The paper's rule (iii): a language model names the wrong values. Never part of a headline set; for comparison only.

Source: VGBench (SpatialScore, arXiv 2505.17012, section D.2). Values named around a known truth give it away
(`docs/validity.md#options-from-a-language-model`), so the model is told what kind of photograph it is, what is asked
and the range, never the answer. The truth's rank among the options is drawn before anything that came back is looked
at, and a fact is asked only where the named values give it that rank; else the truth would be the odd one out, beyond
all that a model names. A rank that cannot be had is not drawn again: low truths would then take low ranks oftener,
whereas so every member of a set of low values came to be the truth with the same chance. Poses and matrices are ranked
by one number that says how large they are (`AnswerSpace.rank_by`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

import numpy as np

from vgbench_gen.backends.base import Message, Request, Settings
from vgbench_gen.core.errors import TooFewOptionsError
from vgbench_gen.core.json_text import parse_json
from vgbench_gen.core.rng import hash_stably, rng_for
from vgbench_gen.core.types import LETTERS, Candidate, Fact, IntArray
from vgbench_gen.distractors.base import (
    MAX_PROPOSALS,
    AnswerSpace,
    Proposal,
    Strategy,
    compatibility,
    strategies,
    valid_sets,
)
from vgbench_gen.text.render import fill_phrase, find_templates_root, load_words

NAMED = 16  # values that are asked for
KEPT = 24  # values of one fact that are looked at; sets grow with the third power
REPLY_CHARS = 8000
REPLY_TOKENS = 2048
_LARGEST = 1e6  # of a number; nothing that is asked comes near


class UnreadableReply(ValueError):
    """A reply that is not what was asked for. reason: machine-readable."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@strategies.register("llm")
class Llm(Strategy):
    """Options from a pool that holds the truth and what a model named (`make_candidates`); nothing is asked here."""

    name = "llm"

    def propose(
        self, fact: Fact, space: AnswerSpace, rng: np.random.Generator, count: int
    ) -> Iterator[tuple[list[Candidate], int]]:
        """See `Strategy.propose`.

        Raises:
            TooFewOptionsError: the pool has sets, but none in which the truth has the rank that was drawn.
        """
        rank = int(rng.integers(count))
        sets, ranks = _rank_sets(fact, space, count)
        if len(sets) and not (ranks == rank).any():
            raise TooFewOptionsError("rank_out_of_reach", f"{fact.task} {fact.key}: no set with the truth at {rank}")
        sets = sets[ranks == rank]
        for row in rng.permutation(len(sets))[:MAX_PROPOSALS]:
            members = sets[row].tolist()
            yield [fact.candidates[i] for i in members], members.index(fact.truth)


def _rank_sets(fact: Fact, space: AnswerSpace, count: int) -> tuple[IntArray, IntArray]:
    """(sets that hold the truth (n, count), the truth's rank in each (n,))."""
    table = compatibility(fact.candidates, fact, space)
    beside = np.flatnonzero(table[fact.truth])
    sets = beside[valid_sets(table[np.ix_(beside, beside)], count)]
    sets = sets[(sets == fact.truth).any(axis=1)]
    sizes = np.array([space.rank_by(candidate.value, fact) for candidate in fact.candidates])
    return sets, np.asarray((sizes[sets] < sizes[fact.truth]).sum(axis=1), dtype=np.int64)


def request(fact: Fact, proposal: Proposal, name: str, seed: int, turn: int) -> Request:
    """What a model is asked about a fact. Equal for facts of one kind, yet each is asked for itself (`epoch`).

    Args:
        name: of the fact's group.
        turn: from 0, where it is asked more than once.
    """
    path = _find_words_path()
    scenes = load_words(path)
    slots = {
        "scene": scenes.get(f"scenes.{fact.dataset}", scenes["scenes.other"]),
        "quantity": fill_phrase(path, f"values.{proposal.kind}", proposal.slots),
        "count": str(NAMED),
        "shape": fill_phrase(path, f"shapes.{proposal.shape}", {}),
    }
    settings = Settings(
        temperature=1.0,
        max_tokens=REPLY_TOKENS,
        system=fill_phrase(path, "prompts.system", {}),
        epoch=int(hash_stably("llm", name, str(seed), str(turn), size=6), 16),
        stage="distractors",
    )
    return Request((Message.of("user", fill_phrase(path, "prompts.ask", slots)),), settings)


def read_values(text: str, numbers: int) -> list[tuple[float, ...]]:
    """The values of a reply, `numbers` numbers each.

    Strict: one JSON array, alone or in one fence, of numbers or of arrays of numbers; nothing is guessed.

    Raises:
        UnreadableReply: too_long, no_json, no_array, wrong_shape or no_number.
    """
    if len(text) > REPLY_CHARS:
        raise UnreadableReply("too_long")
    body = text.strip()
    if body.startswith("```") and body.endswith("```") and len(body) > 6:
        body = body[3:-3].removeprefix("json")
    try:
        found = parse_json(body)
    except ValueError:
        raise UnreadableReply("no_json") from None
    if not isinstance(found, list) or not found:
        raise UnreadableReply("no_array")
    values = []
    for entry in found[: 2 * NAMED]:
        row = entry if numbers > 1 else [entry]
        if not isinstance(row, list) or len(row) != numbers or any(isinstance(x, list) for x in row):
            raise UnreadableReply("wrong_shape")
        if any(isinstance(x, bool) or not isinstance(x, int | float) for x in row):
            raise UnreadableReply("no_number")
        if any(not abs(x) <= _LARGEST for x in row):
            raise UnreadableReply("no_number")
        values.append(tuple(float(x) for x in row))
    return values


def make_candidates(
    fact: Fact, space: AnswerSpace, proposal: Proposal, values: Sequence[tuple[float, ...]], name: str, seed: int
) -> tuple[Candidate, ...]:
    """What a model named as candidates: members of the family that print unlike the truth and each other.

    A candidate's key is what was named; its value differs from it by the jitter and the rounding of print.
    """
    rng = rng_for(seed, "llm", name)
    printed = {tuple(fact.truth_candidate.value.ravel().tolist())}
    found: list[Candidate] = []
    for numbers in values:
        made = space.proposed(fact, numbers, rng)
        if made is None or not space.valid(made, fact) or len(found) == KEPT:
            continue
        if not proposal.ends[0] <= space.rank_by(made.value, fact) <= proposal.ends[1]:
            continue
        content = tuple(made.value.ravel().tolist())
        if content not in printed:
            printed.add(content)
            key = "llm:" + ",".join(f"{x:g}" for x in numbers)
            found.append(Candidate(key, made.value, made.frame_ids, made.show, made.evidence))
    return tuple(found)


def has_set(fact: Fact, space: AnswerSpace) -> bool:
    """Whether the pool of a fact holds any set of options."""
    return bool(len(_rank_sets(fact, space, len(LETTERS))[0]))


@cache
def _find_words_path() -> Path:
    return find_templates_root() / "distractors" / "llm.toml"
