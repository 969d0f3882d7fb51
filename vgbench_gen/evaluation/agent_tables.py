"""What tools are worth: agents beside their core model with nothing, and with all but the tools, on the same questions.

Source: `docs/agent.md#the-tables-of-agents`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import compress
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from pydantic import Field

from vgbench_gen.agent.backend import AgentSpec, read_agent_spec
from vgbench_gen.core.config import Config, load_toml
from vgbench_gen.core.types import Item
from vgbench_gen.evaluation import reference_scores
from vgbench_gen.evaluation.agent_traces import FAILURES, NO_TRACE, TRACED, AgentUse, count_use
from vgbench_gen.evaluation.base import Source
from vgbench_gen.evaluation.board import Board, BoardRun
from vgbench_gen.evaluation.cells import NONE, Cell, compare_answers, mean
from vgbench_gen.evaluation.compare import group_by_model
from vgbench_gen.evaluation.options import BLIND
from vgbench_gen.evaluation.tables import ColumnHead, Row, Table, find_floors

if TYPE_CHECKING:
    import pandas as pd

_WORTH = (
    "What stands under one heading has the same core model and is compared on the questions that all of it were asked. "
    "Tools are worth the difference to the same loop without them (tools=none: turns and tokens per turn are limited "
    "alike), not to the model alone. Above: paired differences in points. Oracle tools answer from the rows: an upper "
    "bound, no rival. Calls, tokens and seconds: means over all of a run's answers; seconds hold the tools' time too."
)
_FAILURES = (
    "Share of all answers, in per cent, in which it happened at least once. Every answer that is not right is in one "
    "of the last five columns. Right and wrong tools: results held against what the row reveals."
)
_TOOLS = (
    "Right: of the results that can be held against what the row reveals, those near enough to lead to the answer. "
    "Score, tokens and seconds are of the answers for which the tool was called, with all else that these needed."
)
_PUBLISHED = (
    "{source}. As published and not measured here: other questions, and tools of which no code was released. The "
    "constant is what one answer to everything scores on the published rows."
)


class PublishedScore(Config):
    """One published number."""

    name: str
    """Model and kind of agent."""
    score: float = Field(ge=0, le=1)
    """Share right."""


class PublishedAgents(Config):
    """The file `published_agents.toml`."""

    source: str
    """Where the scores stand, and on what they were reached."""
    constant: float = Field(ge=0, le=1)
    """What the best constant answer scores there."""
    scores: tuple[PublishedScore, ...]
    """In the order of the publication."""


@cache
def read_published() -> PublishedAgents:
    """The published scores of agents."""
    return load_toml(Path(__file__).with_name("published_agents.toml"), PublishedAgents)


@dataclass(frozen=True, slots=True)
class _Member:
    """A run that stands in the table of agents."""

    run: BoardRun
    """Of the board."""
    agent: AgentSpec | None
    """None for the core model itself."""
    use: AgentUse | None
    """What the traces say; None for the core model itself."""

    @property
    def is_bare(self) -> bool:
        """Whether it is an agent without tools but those that need nothing."""
        return self.agent is not None and self.agent.tools == ("none",)


def make_agent_tables(board: Board, sources: Mapping[str, Source], seed: int = 0) -> tuple[Table, ...]:
    """The tables of agents: what tools are worth, failures, tools, and published scores; none where nobody is an agent.

    Args:
        board: of all runs; traces lie beside the logs of its files of scores.
        sources: the questions by data set.
        seed: of the bootstrap.
    """
    groups = _group_members(board, sources)
    if not groups:
        return ()
    agents = [member for members in groups.values() for member in members if member.use is not None]
    return (_compare(board, groups, seed), _list_failures(agents), _list_tools(agents), _list_published())


def _group_members(board: Board, sources: Mapping[str, Source]) -> dict[str, list[_Member]]:
    """Core model -> itself, itself blind, its agents; oracle last."""
    files = group_by_model(board.saved)
    specs = {name: listed[0][1].header.spec for name, listed in files.items()}
    finders = {name: _make_finder(source) for name, source in sources.items()}
    agents = {run.name: read_agent_spec(specs.get(run.model, "")) for run in board.runs.values() if not run.stage}
    groups: dict[str, list[_Member]] = {}
    for core in dict.fromkeys(agent.core for agent in agents.values() if agent is not None):
        members = []
        for run in board.runs.values():
            agent = agents.get(run.name)
            alone = specs.get(run.model) == core and run.stage in ("", BLIND)
            if not alone and (agent is None or agent.core != core):
                continue
            own, key = [(one, finders[name]) for name, one in files[run.model]], (run.stage, run.prompt_set)
            members.append(_Member(run, agent, None if agent is None else count_use(own, key)))
        groups[core] = sorted(members, key=_sort_member)
    return groups


def _sort_member(member: _Member) -> tuple[bool, bool, bool, bool, str]:
    blind = member.run.stage == BLIND
    return member.run.oracle, member.agent is not None, blind, not member.is_bare, member.run.name


def _make_finder(source: Source) -> Callable[[str], Item | None]:
    places = {row.id: row.row for row in source.rows()}
    return lambda name: source.item(places[name]) if name in places else None


def _compare(board: Board, groups: Mapping[str, Sequence[_Member]], seed: int) -> Table:
    heads = (
        ColumnHead("Score"),
        ColumnHead("Above the model alone", "points"),
        ColumnHead("Above no tools, same limits", "points"),
        ColumnHead("Calls", "count"),
        ColumnHead("Tokens", "count"),
        ColumnHead("Seconds", "count"),
        ColumnHead("Cost, USD", "usd"),
    )
    lines: list[Row] = []
    for core, members in groups.items():
        answers = {member.run.name: board.answers_of(member.run.name) for member in members}
        asked = np.logical_and.reduce([one["asked"].to_numpy() for one in answers.values()])
        if asked.any():  # where they have nothing in common each stands on its own, and says on how many
            answers = {name: one[asked] for name, one in answers.items()}
        for member in members:
            run = member.run
            replies = [row for _, row in board.rows[run.name] if not row.rotation]
            alone = next((one for one in members if one.agent is None and not one.run.stage), None)
            bare = next((one for one in members if one.is_bare and _is_alike(one, member)), None)
            found = (
                mean(answers[run.name], "score", seed),
                _subtract(answers, member, alone, seed),
                _subtract(answers, member, None if member.is_bare else bare, seed),
                _average_calls(member),
                _average([row.tokens for row in replies]),
                _average([row.latency_s for row in replies]),
                Cell(run.cost_usd, n=run.cost_known, asked=run.cost_known),
            )
            kind = "floor" if run.stage or member.run.oracle else "model"
            lines.append(Row(run.name, kind, found, _describe(member), core))  # type: ignore[arg-type]
        if asked.any():
            floors = find_floors(list(compress(board.questions, asked)))
            more = [NONE] * (len(heads) - 1)
            lines += [Row(name, "floor", (cell, *more), group=core) for name, cell in floors.items()]
    return Table("agents", "Agents: what tools are worth", _WORTH, heads, tuple(lines))


def _is_alike(one: _Member, other: _Member) -> bool:
    """Whether two agents differ in their tools alone."""
    if one.agent is None or other.agent is None or one.run.prompt_set != other.run.prompt_set:
        return False
    return one.agent._replace(tools=()) == other.agent._replace(tools=())


def _describe(member: _Member) -> str:
    if member.agent is None:
        return "no tools, without images" if member.run.stage else "no tools"
    tools = "no tools, same limits" if member.is_bare else f"tools: {', '.join(member.agent.tools)}"
    bound = "; upper bound, answers from the rows" if member.run.oracle else ""
    return f"{member.agent.kind}, {member.agent.mode}, {tools}{bound}"


def _subtract(answers: Mapping[str, pd.DataFrame], member: _Member, other: _Member | None, seed: int) -> Cell:
    if other is None or member is other or member.agent is None:
        return NONE
    compared = compare_answers(answers[member.run.name], answers[other.run.name], "score", seed)
    if compared is None:
        return NONE
    n, found = compared
    return Cell(found.value, found.low, found.high, n, n)


def _average(values: Sequence[float]) -> Cell:
    known = [value for value in values if not math.isnan(value)]
    return Cell(math.fsum(known) / len(known), n=len(known), asked=len(known)) if known else NONE


def _average_calls(member: _Member) -> Cell:
    traced = 0 if member.use is None else int((member.use.answers[NO_TRACE] == 0).sum())
    return NONE if member.use is None or not traced else _make_share(len(member.use.calls), traced)


def _list_failures(agents: Sequence[_Member]) -> Table:
    happened = [(agent, agent.use.answers[[*FAILURES]] > 0) for agent in agents if agent.use is not None]
    kinds = [kind for kind in FAILURES if kind not in TRACED or any(found[kind].any() for _, found in happened)]
    rows = [
        Row(
            agent.run.name,
            "floor" if agent.run.oracle else "model",
            tuple(_make_share(int(found[kind].sum()), len(found)) for kind in kinds),
        )
        for agent, found in happened
    ]
    heads = tuple(ColumnHead(kind.replace("_", " ").capitalize()) for kind in kinds)
    return Table("agent-failures", "Agents: failures by kind", _FAILURES, heads, tuple(rows))


def _list_tools(agents: Sequence[_Member]) -> Table:
    heads = (
        ColumnHead("Calls", "count"),
        ColumnHead("Failed"),
        ColumnHead("Right"),
        ColumnHead("Answers", "count"),
        ColumnHead("Score"),
        ColumnHead("Tokens", "count"),
        ColumnHead("Seconds", "count"),
    )
    lines = []
    for agent in agents:
        if agent.use is not None:
            for name, calls in sorted(agent.use.calls.groupby("tool"), key=lambda one: (-len(one[1]), str(one[0]))):
                answers = agent.use.answers.loc[calls["answer"].unique()]
                cells = (
                    Cell(len(calls), n=len(calls), asked=len(calls)),
                    _make_share(int(calls["failed"].sum()), len(calls)),
                    _make_share(int(calls["right"].sum()), int(calls["right"].count())),
                    Cell(len(answers), n=len(answers), asked=len(answers)),
                    _make_share(int(answers["right"].sum()), len(answers)),
                    _average(answers["tokens"].tolist()),
                    _average(answers["seconds"].tolist()),
                )
                lines.append(Row(str(name), "floor" if agent.run.oracle else "model", cells, group=agent.run.name))
    return Table("agent-tools", "Agents: what tools gave and took", _TOOLS, heads, tuple(lines))


def _make_share(part: int, n: int) -> Cell:
    return Cell(part / n if n else math.nan, n=n, asked=n)


def _list_published() -> Table:
    told = read_published()
    lines = [Row(one.name, "model", (Cell(one.score),)) for one in told.scores]
    lines.append(Row(reference_scores.CONSTANT, "floor", (Cell(told.constant),)))
    caption = _PUBLISHED.format(source=told.source)
    return Table(
        "agents-published", "Agents as published, on SpatialScore-Hard", caption, (ColumnHead("Score"),), tuple(lines)
    )
