"""One text through its rounds: ask, check, judge, ask again for what failed, and count everything."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from vgbench_gen.backends.base import Backend, BackendError, Reply, Request, Settings
from vgbench_gen.text.paraphrase.checks import Original, Text, WordingProblem, check, measure_similarity
from vgbench_gen.text.paraphrase.prompts import (
    MAX_TOKENS,
    Failure,
    make_judge_request,
    make_reword_request,
    read_rewordings,
    read_verdict,
)

RETRIES = 3  # times that what failed is asked again
_STOPS = ("budget", "refused_key", "cancelled")  # no other text would fare better


@dataclass(frozen=True, slots=True)
class Asker:
    """Who is asked for rewordings and how."""

    backend: Backend
    judge: Backend | None
    """The model that says whether the meaning is the same; None asks nobody."""
    n: int = 8
    settings: Settings = field(default_factory=lambda: Settings(temperature=0.8, max_tokens=MAX_TOKENS))
    """The settings of requests for rewordings, which may get shorter answers than `max_tokens`; the judge answers at
    temperature 0."""
    retries: int = RETRIES


@dataclass(slots=True)
class RewordCounts:
    """What happened to a group of texts."""

    texts: int = 0
    reworded: int = 0
    """Texts with at least one new wording."""
    rounds: int = 0
    """Requests for rewordings that got a reply."""
    proposed: int = 0
    accepted: int = 0
    judged: int = 0
    cached: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    usd: float = 0.0
    """Cost of the replies whose price is known."""
    uncosted: int = 0
    """Replies whose price is not known."""
    refused: Counter[str] = field(default_factory=Counter)
    """Refused rewordings by reason; one rewording may have several."""
    failed: Counter[str] = field(default_factory=Counter)
    """Requests without a reply, by kind of failure."""

    @classmethod
    def sum_over(cls, groups: Iterable[RewordCounts]) -> RewordCounts:
        """The sum of all groups."""
        total = cls()
        for counts in groups:
            total.add(counts)
        return total

    def add(self, other: RewordCounts) -> None:
        """Count another group in."""
        for name in self.__slots__:
            setattr(self, name, getattr(self, name) + getattr(other, name))

    def count(self, reply: Reply) -> None:
        """Count what one reply took."""
        if reply.cached:
            self.cached += 1
            return
        if reply.usage is not None:
            self.prompt_tokens += reply.usage.prompt_tokens
            self.completion_tokens += reply.usage.completion_tokens
        if reply.cost_usd is None:
            self.uncosted += 1
        else:
            self.usd += reply.cost_usd

    def as_json(self) -> dict[str, Any]:
        """The counts as values that JSON can hold."""
        record = {name: getattr(self, name) for name in self.__slots__}
        return record | {
            "usd": round(self.usd, 6),
            "refused": dict(sorted(self.refused.items())),
            "failed": dict(sorted(self.failed.items())),
        }


class Stopped(Exception):
    """The work ends here for all texts: the budget is spent, or the provider refuses us."""

    def __init__(self, error: BackendError) -> None:
        super().__init__(str(error))
        self.error = error


async def reword(
    original: Original,
    need: int,
    asker: Asker,
    counts: RewordCounts,
    others: Sequence[Text] = (),
    have: Sequence[Text] = (),
) -> list[Text]:
    """At most `need` accepted rewordings of one text; none where the original has to stand.

    others: wordings that new ones must differ from. have: those of this text that stand in the bank already. They are
    looked at last, and one that comes again, as it does from a cache, is no copy of itself: a run that was cut short
    asks the same questions as one that was not.

    Raises:
        Stopped: the budget is spent, the key is refused, or the work was cancelled.
    """
    counts.texts += 1
    accepted: list[Text] = []
    failures: list[Failure] = []
    for turn in range(asker.retries + 1):
        missing = need - len(accepted)
        if missing <= 0:
            break
        n = asker.n if turn == 0 else min(asker.n, 2 * missing)
        reply = await _ask(asker.backend, make_reword_request(original, n, failures, turn, asker.settings), counts)
        if reply is None:
            break
        counts.rounds += 1
        texts, wrong = read_rewordings(reply.text, n)
        if wrong:
            counts.refused[wrong] += 1
        for text in texts:
            if len(accepted) == need:
                break
            counts.proposed += 1
            problems = check(text, original, [*others, *accepted])
            if not problems and text not in have and any(measure_similarity(text, earlier) for earlier in have):
                problems = [WordingProblem("near_copy", "", "nearly the words of another wording of this question")]
            if not problems and asker.judge is not None:
                problems = await _judge(original, text, asker.judge, asker.settings, counts)
            if problems:
                counts.refused.update({problem.reason for problem in problems})
                failures.append((text, problems))
            else:
                accepted.append(text)
                counts.accepted += 1
    counts.reworded += bool(accepted)
    return accepted


async def _judge(
    original: Original, text: Text, judge: Backend, settings: Settings, counts: RewordCounts
) -> list[WordingProblem]:
    counts.judged += 1
    reply = await _ask(judge, make_judge_request(original, text, settings), counts)
    if reply is None:
        return [WordingProblem("judge", "", "no verdict")]
    same, reason = read_verdict(reply.text)
    return [] if same else [WordingProblem("judge", "", reason or "another meaning")]


async def _ask(backend: Backend, request: Request, counts: RewordCounts) -> Reply | None:
    try:
        reply = await backend.ask(request.messages, request.settings)
    except BackendError as error:
        counts.failed[error.kind] += 1
        if error.kind in _STOPS:
            raise Stopped(error) from error
        return None
    counts.count(reply)
    return reply
