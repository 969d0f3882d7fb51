"""Leave out the questions that a text-only classifier answers best: iterative bias pruning (IBP, arXiv 2511.04655).

Pruning hides a faulty sampler: what it removes is the evidence of the fault, and what stays was made by the same hand.
So no build prunes, and a pruned dataset says in its manifest what was left out and why.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from os import PathLike
from pathlib import Path

from vgbench_gen.core.errors import ConfigError
from vgbench_gen.executors import Engine, run
from vgbench_gen.pipeline.audit import TextJob, judge_text
from vgbench_gen.pipeline.plan import count_letters
from vgbench_gen.pipeline.subset import require_new, write_subset
from vgbench_gen.quality.questions import Question, find_clusters, group_by_cell, read_question
from vgbench_gen.store.dataset import load

ROUNDS = 5  # models are trained again after each round
REASON = "iterative bias pruning (arXiv 2511.04655): a text-only classifier answers these without the images"


@dataclass(frozen=True, slots=True)
class Pruned:
    """A question that goes."""

    id: str
    task: str
    form: str
    bias: float | None
    """Its bias score in that round; None where it only goes with another."""
    round: int
    """From 1."""


@dataclass(slots=True)
class PruneReport:
    """Which questions go, in order, how many stay, and the mean bias score before each round."""

    removed: list[Pruned] = field(default_factory=list)
    kept: int = 0
    means: list[float] = field(default_factory=list)


def prune(
    dataset: str | PathLike[str],
    out: str | PathLike[str] | None,
    share: float,
    *,
    rounds: int = ROUNDS,
    workers: int | Engine = 1,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> PruneReport:
    """Choose what to leave out, and write what stays as a new dataset.

    Args:
        dataset: a build folder or its parquet files.
        out: folder of the new dataset, empty or new; None writes nothing.
        share: of the questions that may go, above 0 and below 1. Fewer go where no more are above chance.
        rounds: after each, everything that is left is scored anew.
        workers: processes, 0 for all cores; or an `Engine`. The result does not depend on it.
        progress: called with (steps done, steps in all).

    Raises:
        ConfigError: `share` or `rounds` make no sense, or `out` holds something.
        DatasetError: the dataset cannot be read.
    """
    if not 0 < share < 1:
        raise ConfigError(f"--share: found {share:g}; expected a share above 0 and below 1, such as 0.1.")
    if rounds < 1:
        raise ConfigError(f"rounds: found {rounds}; expected at least 1.")
    if out is not None:
        require_new(Path(out))
    items = load(dataset)
    engine = workers if isinstance(workers, Engine) else Engine(workers=workers)
    report = choose([read_question(item) for item in items], share, rounds, engine, progress)
    if out is not None:
        removed = [{**asdict(p), "bias": p.bias if p.bias is None else round(p.bias, 6)} for p in report.removed]
        record = {"why": REASON, "share": share, "rounds": rounds, "removed": removed}
        kept = {item.id for item in items} - {pruned.id for pruned in report.removed}
        write_subset(items, Path(dataset), Path(out), kept, "pruned", record)
    return report


def choose(
    questions: Sequence[Question],
    share: float,
    rounds: int,
    engine: Engine,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> PruneReport:
    """What pruning would take, without writing. Whole groups, twins and partners go together; letters stay balanced."""
    left, most, report = list(questions), int(share * len(questions)), PruneReport()
    for number in range(1, rounds + 1):
        cells = [tuple(members) for members in group_by_cell(left).values() if members[0].form != "open-ended"]
        jobs = [TextJob(members, ("text",), number) for members in cells]
        found: dict[int, Mapping[str, float]] = {}
        for index, (_, scores) in run(judge_text, jobs, engine):
            found[index] = scores
            progress((number - 1) * len(jobs) + len(found), rounds * len(jobs))
        bias = {name: score for _, scores in sorted(found.items()) for name, score in scores.items()}
        if not bias:
            break
        report.means.append(sum(bias.values()) / len(bias))
        budget = most * number // rounds - len(report.removed)
        gone = list(_pick(left, bias, budget))
        if not gone:
            break
        report.removed += [Pruned(q.id, q.task, q.form, bias.get(q.id), number) for q in gone]
        names = {question.id for question in gone}
        left = [question for question in left if question.id not in names]
    report.kept = len(left)
    return report


def find_units(questions: Iterable[Question]) -> list[list[Question]]:
    """Questions that stay or go together: of one truth, twins, and consistency partners."""
    members = list(questions)
    units: dict[int, list[Question]] = defaultdict(list)
    clusters = find_clusters([("group", q.group), ("twin", q.twin), ("pair", q.pair)] for q in members)
    for question, cluster in zip(members, clusters, strict=True):
        units[cluster].append(question)
    return list(units.values())


def _pick(questions: Sequence[Question], bias: Mapping[str, float], budget: int) -> Iterator[Question]:
    """At most `budget` questions to remove, the most biased units first, none at or below chance."""
    letters = count_letters((_name_cell(q), len(q.options), q.truth) for q in _list_choices(questions))
    ranked = []
    for unit in find_units(questions):
        scored = [bias[q.id] - q.chance for q in unit if q.id in bias]
        if scored and sum(scored) > 0:
            ranked.append((-sum(scored) / len(scored), min(q.id for q in unit), unit))
    waiting = [unit for _, _, unit in sorted(ranked, key=lambda entry: entry[:2])]
    # A letter that is no more frequent than another may not become rarer still; it waits for its turn.
    while unit := next((u for u in waiting if len(u) <= budget and _keeps_balance(u, letters)), []):
        waiting = [other for other in waiting if other is not unit]
        for question in _list_choices(unit):
            letters[_name_cell(question)][question.truth] -= 1
        budget -= len(unit)
        yield from unit


def _keeps_balance(unit: Sequence[Question], letters: Mapping[str, Sequence[int]]) -> bool:
    """Whether letters are no more uneven in any cell without the unit, or differ by 1 at most."""
    counts = {cell: list(letters[cell]) for cell in map(_name_cell, _list_choices(unit))}
    for question in _list_choices(unit):
        counts[_name_cell(question)][question.truth] -= 1
    return all(max(n) - min(n) <= max(1, max(letters[cell]) - min(letters[cell])) for cell, n in counts.items())


def _list_choices(questions: Iterable[Question]) -> list[Question]:
    return [question for question in questions if question.form == "multi-choice"]


def _name_cell(question: Question) -> str:
    return f"{question.task}/{question.source}"
