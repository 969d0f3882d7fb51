"""The hard subset of a dataset: models' votes counted, people's verdicts honoured, a balanced choice written."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np

from vgbench_gen.agent.backend import uses_oracle
from vgbench_gen.core.errors import ConfigError
from vgbench_gen.core.types import ALPHABET, Item
from vgbench_gen.evaluation.base import Source, read_questions
from vgbench_gen.evaluation.baselines import PREFIX
from vgbench_gen.evaluation.board import Entry, ScoreRow, make_entry
from vgbench_gen.evaluation.replies import FOLDER as REPLIES
from vgbench_gen.evaluation.replies import read_header
from vgbench_gen.evaluation.reply_files import reply_files
from vgbench_gen.evaluation.saved import FOLDER as SCORES
from vgbench_gen.evaluation.saved import SavedScores, score_files
from vgbench_gen.evaluation.scoring import CaseError
from vgbench_gen.evaluation.scoring import Rule as Grading
from vgbench_gen.evaluation.sizes import find_size_billions
from vgbench_gen.pipeline.subset import HARD, require_new, write_subset
from vgbench_gen.quality.balance import rank_of
from vgbench_gen.quality.review.export import sort_judged
from vgbench_gen.quality.review.log import FOLDER as REVIEW
from vgbench_gen.quality.review.log import read_logs
from vgbench_gen.quality.review.queue import ReviewItem as Reviewed
from vgbench_gen.quality.review.queue import list_items
from vgbench_gen.quality.review.status import count_verdicts
from vgbench_gen.quality.voting import figures
from vgbench_gen.quality.voting.choice import Choice, Subject, choose_balanced
from vgbench_gen.quality.voting.rule import VOTES, Rule, Vote, Voter, fit_rule
from vgbench_gen.quality.voting.tally import VoteCounts, VoteMatrix, count_by_question
from vgbench_gen.store.dataset import load
from vgbench_gen.store.files import (
    dataset_error,
    fill_folder,
    replace_file,
    write_bytes,
)
from vgbench_gen.store.provenance import MANIFEST, read_manifest

FOLDER = "votes"
CANDIDATES, UNDECIDED, CHOSEN, REPORT = "candidates.jsonl", "undecided.jsonl", "chosen.txt", "report.json"
_MADE_AGAIN = frozenset({"items", "audit", SCORES, MANIFEST})  # what `vgbench vote` may throw away of an older result
ReviewStatus = Literal["accepted", "refused", "open"]


@dataclass(slots=True)
class VoteResult:
    """Votes on all questions of a dataset, and what came of them."""

    rule: Rule
    """The rule by which a question is hard, fitted to the panel."""
    panel: tuple[Voter, ...]
    subjects: tuple[Subject, ...]
    """The questions, in the order of the dataset."""
    votes: VoteMatrix
    """The code of each vote in `VOTES`, (questions, models)."""
    tally: VoteCounts
    """How many of each vote a question got, and whether it is hard."""
    replies: tuple[str, ...]
    """The digest of each model's file of replies."""
    status: Mapping[str, ReviewStatus] = field(default_factory=dict)
    """What people said of questions that they judged, by id."""
    fresh: tuple[str, ...] = ()
    """The models whose replies were scored now; saved scores of the others still held."""
    notes: list[str] = field(default_factory=list)
    """What a reader must know."""

    def of(self, chosen: Any) -> list[Subject]:
        """The questions where a mask (n,) is true."""
        return [self.subjects[k] for k in np.flatnonzero(chosen).tolist()]


def count_votes(
    source: Source,
    rule: Rule,
    names: Sequence[str] = (),
    *,
    wrong: int | None = None,
    large: int | None = None,
    sizes: Mapping[str, float] | None = None,
    prompt_set: str = "paper",
    progress: Callable[[str, int, int], None] = lambda name, done, total: None,
) -> VoteResult:
    """Count the votes of models that replied; scores what is not scored yet, asks nothing.

    Args:
        source: the questions.
        rule: by which a question is hard.
        names: specs, models or files of replies that vote, instead of the rule's panel.
        wrong, large: thresholds for a panel of another size than the rule's.
        sizes: billions of parameters by spec or model, before the registry of sizes.
        prompt_set: whose replies count.
        progress: as in `saved.score_source`.

    Raises:
        ConfigError: rule and panel do not fit together.
        DatasetError: no replies, or a file that cannot be read.
    """
    paths = find_panel_files(source.folder, names or rule.panel)
    if unused := set(sizes or {}) - {known for path in paths for known in _list_names(path)}:
        raise ConfigError(f"--size: found {sorted(unused)[0]!r}; expected a model that votes. Mend its name.")
    notes = _note_oracles(source.folder, paths)
    subjects, grading, people = _read_subjects(source, notes)
    panel: list[Voter] = []
    columns: list[list[int]] = []
    fresh, digests = [], []
    said: dict[frozenset[Any], str] = {}
    for path, saved in zip(paths, score_files(source, paths, progress=progress), strict=True):
        votes, voter = count_model_votes(saved, prompt_set, grading), _make_voter(path, sizes or {})
        notes += _describe_votes(voter.name, saved, votes, len(subjects))
        if not set(votes.values()) - {"failed"}:
            continue
        answers = frozenset((row.id, row.rotation, row.epoch, row.outcome, row.extracted) for row in saved.rows)
        if (twin := said.setdefault(answers, voter.name)) != voter.name:
            notes.append(f"{voter.name}: the same answers as {twin}, each of which has a vote. Leave one out.")
        panel.append(voter)
        columns.append([VOTES.index(votes.get(one.id, "missing")) for one in subjects])
        digests.append(saved.header.replies)
        fresh += [voter.name] if saved.fresh else []
    fit = fit_rule(rule, panel, wrong, large)
    matrix: VoteMatrix = np.asarray(columns, dtype=np.int8).T
    status = _read_review_status(source.folder, people) if people else {}
    tally = count_by_question(matrix, panel, fit)
    return VoteResult(fit, tuple(panel), tuple(subjects), matrix, tally, tuple(digests), status, tuple(fresh), notes)


def count_model_votes(saved: SavedScores, prompt_set: str, rules: Mapping[str, Grading]) -> dict[str, Vote]:
    """Return what one model votes, by question; questions that it was not asked are not in.

    Args:
        saved: the model's scored replies.
        prompt_set: whose replies count; those of controls, of other orders of options and of later repeats do not.
        rules: how each question is graded.

    Raises:
        ConfigError: the model has no replies to this prompt set.
    """
    rows = [row for row in saved.rows if not row.stage and not row.rotation]
    sets = sorted({row.prompt_set for row in rows})
    if sets and prompt_set not in sets:
        raise ConfigError(
            f"{saved.header.spec}: found no reply to prompt set {prompt_set!r}; there are: {', '.join(sets)}. Say "
            "which with --prompt-set."
        )
    found: dict[str, Vote] = {}
    # The first repeat that got a reply; repeats in a file come in any order.
    for row in sorted(rows, key=lambda row: (row.outcome == "failed", row.epoch)):
        if row.prompt_set == prompt_set and row.id in rules:
            found.setdefault(row.id, vote_of(row, rules[row.id]))
    return found


def vote_of(row: ScoreRow, rule: Grading) -> Vote:
    """Return what a scored reply votes.

    Graded scores, which are seldom 1, vote by the factor of 2 that lengths are held to.
    """
    if row.outcome in ("unreadable", "refused", "failed"):
        return row.outcome  # type: ignore[return-value]
    return "right" if (row.delta_2 if rule == "mra" else row.score) >= 1 else "wrong"


def _read_subjects(source: Source, notes: list[str]) -> tuple[list[Subject], dict[str, Grading], list[Reviewed]]:
    """Read what is voted on: the questions, how each is graded, and what people were asked about them.

    Args:
        source: the questions.
        notes: takes a line on each question that is left out.
    """
    subjects: list[Subject] = []
    grading: dict[str, Grading] = {}
    people: list[Reviewed] = []
    reviewed = (source.folder / REVIEW).is_dir()
    for item in read_questions(source):
        try:
            entry = make_entry(item)
        except CaseError as error:
            notes.append(f"item {item.id} is left out: {error}")
            continue
        subjects.append(make_subject(item, entry))
        grading[item.id] = entry.rule
        people += list_items([item]) if reviewed else []
    return subjects, grading, people


def find_panel_files(folder: Path, names: Sequence[str] = ()) -> list[Path]:
    """Files of replies of those who vote: the named ones, or all but baselines and agents with oracle tools.

    Raises:
        DatasetError: there are none.
        ConfigError: an agent with oracle tools is named.
    """
    found = reply_files(folder, names)
    specs = {path: read_header(path).spec for path in found}
    if names:
        if told := [spec for spec in specs.values() if uses_oracle(spec)]:
            raise ConfigError(
                f"{told[0]}: found an agent with oracle tools, which is told how answers came about; expected models "
                "that are not. Leave it out: its answers say nothing of how hard a question is."
            )
        return found
    models = [path for path, spec in specs.items() if not spec.startswith(PREFIX) and not uses_oracle(spec)]
    if not models:
        remedy = "Ask models with `vgbench eval`, name baselines with --model, or see `--rule demo --ask`."
        raise dataset_error(folder / REPLIES, "replies of baselines alone", "replies of models", remedy)
    return models


def _note_oracles(folder: Path, voting: Sequence[Path]) -> list[str]:
    others = (read_header(path).spec for path in reply_files(folder) if path not in voting)
    told = "has no vote: its oracle tools are told how answers came about."
    return [f"{spec} {told}" for spec in others if uses_oracle(spec)]


def make_subject(item: Item, entry: Entry) -> Subject:
    """What choosing needs to know of a row."""
    letter, yes_no = entry.kind == "letter", entry.kind == "yes_no"
    place = ALPHABET.index(str(entry.truth)) if letter else (0 if entry.truth == "Yes" else 1) if yes_no else -1
    rank = rank_of(item.options, place) if letter and place < len(item.options) else None
    return Subject(
        id=item.id,
        category=item.category,
        task=item.task or item.category_origin,
        form=item.question_type,
        kind="letter" if letter else "yes_no" if yes_no else "open",
        options=entry.options if letter else 2 if yes_no else 0,
        place=place,
        rank=-1 if rank is None else rank,
        # Of two judgments of a pair one has each truth more often than not: they go together, as twins do.
        twin=item.twin_id or (item.pair_id if yes_no else ""),
        source=item.source,
        pair=item.pair_id,
    )


def choose_hard(result: VoteResult, seed: int, reviewed_only: bool = False) -> Choice:
    """A balanced choice among hard questions that people did not refuse; with `reviewed_only`, that they accepted."""
    status = result.status
    allowed = {"accepted"} if reviewed_only else {"accepted", "open"}
    candidates = [one for one in result.of(result.tally.hard) if status.get(one.id, "open") in allowed]
    accepted = frozenset(name for name, found in status.items() if found == "accepted")
    return choose_balanced(candidates, result.subjects, result.rule.balance, seed, accepted)


def count_parted(result: VoteResult, choice: Choice) -> int:
    """The number of pairs and twins of which one question is chosen and another is not."""
    chosen = set(choice.ids)
    groups: dict[str, set[bool]] = defaultdict(set)
    for one in result.subjects:
        if name := one.pair or one.twin:
            groups[name].add(one.id in chosen)
    return sum(len(found) > 1 for found in groups.values())


# --- what is written


def make_report(result: VoteResult, choice: Choice, seed: int) -> dict[str, Any]:
    """Everything that the vote says, JSON-ready."""
    tally, chosen = result.tally, set(choice.ids)
    hard = result.of(tally.hard)
    review = {state: sum(result.status.get(one.id, "open") == state for one in hard)
              for state in ("accepted", "refused", "open")}  # fmt: skip
    return {
        "rule": _dump_rule(result.rule),
        "seed": seed,
        "questions": len(result.subjects),
        "hard": len(hard),
        "undecided": int(tally.undecided.sum()),
        "review": review,
        "models": figures.count_by_model(result.votes, result.panel, result.rule),
        "agreement": figures.measure_agreement(result.votes, result.panel, result.rule),
        "categories": figures.measure_hard_rates(result.subjects, tally, lambda one: one.category),
        "tasks": figures.measure_hard_rates(result.subjects, tally, lambda one: one.task),
        "over": choice.over,
        "parts": [asdict(part) for part in choice.parts],
        "chosen": len(choice.ids),
        "dropped_for_letters": choice.dropped,
        "truths": {
            "dataset": figures.count_truth_positions(result.subjects),
            "hard": figures.count_truth_positions(hard),
            "chosen": figures.count_truth_positions([one for one in hard if one.id in chosen]),
        },
        "notes": result.notes,
    }


def write_votes(folder: Path, result: VoteResult, choice: Choice, report: Mapping[str, Any]) -> Path:
    """Write candidates with all verdicts, undecided questions, chosen ids and the report; returns the folder."""
    votes = folder / FOLDER
    chosen = set(choice.ids)
    for name, mask in ((CANDIDATES, result.tally.hard), (UNDECIDED, result.tally.undecided)):
        with replace_file(votes / name) as temporary, temporary.open("w", encoding="utf-8") as file:
            for record in _make_records(result, np.flatnonzero(mask).tolist()):
                more = {"chosen": record["id"] in chosen} if name == CANDIDATES else {}
                file.write(json.dumps(record | more) + "\n")
    write_bytes(votes / CHOSEN, "".join(f"{name}\n" for name in choice.ids).encode())
    write_bytes(votes / REPORT, (json.dumps(report, indent=2, allow_nan=False) + "\n").encode())
    return votes


def write_hard(dataset: Path, out: Path, result: VoteResult, choice: Choice, seed: int) -> list[str]:
    """Write the chosen questions as a dataset; one that this program made there before is replaced, whole.

    Returns:
        In what that one was chosen otherwise: rule, seed or panel.

    Raises:
        DatasetError: `out` holds something else, or replies, votes or reviews; or no question was chosen.
    """
    if not choice.ids:
        found = f"{int(result.tally.hard.sum())} hard questions, of which none can be chosen"
        raise dataset_error(dataset, found, "at least one", "Lower the thresholds, or see what people refused.")
    check_out(out)
    places = {one.id: k for k, one in enumerate(result.subjects)}
    counts = {"wrong": result.tally.wrong, "right": result.tally.right, "large_wrong": result.tally.large_wrong}
    items = [
        {"id": name, "review": result.status.get(name, "open")}
        | {key: int(values[places[name]]) for key, values in counts.items()}
        for name in choice.ids
    ]
    reviewed = all(item["review"] == "accepted" for item in items)
    record = {
        "rule": _dump_rule(result.rule),
        "seed": seed,
        "panel": [
            {"model": voter.name, "billions": voter.billions, "replies": digest}
            for voter, digest in zip(result.panel, result.replies, strict=True)
        ],
        "over": choice.over,
        "parts": [asdict(part) for part in choice.parts],
        "status": "reviewed" if reviewed else "candidate",
        "items": items,
    }
    older = read_manifest(out)[HARD] if (out / MANIFEST).is_file() else record
    with fill_folder(out) as filled:
        write_subset(load(dataset), dataset, filled, choice.ids, HARD, record)
    return [name for name in ("rule", "seed", "panel") if older[name] != record[name]]


def check_out(out: Path) -> None:
    """Refuse a folder that holds anything but an older hard subset.

    Raises:
        DatasetError: it does.
    """
    older = out.is_dir() and (out / MANIFEST).is_file() and HARD in read_manifest(out)
    if older and (kept := sorted({path.name for path in out.iterdir()} - _MADE_AGAIN)):
        raise dataset_error(
            out, f"an older hard subset with {', '.join(kept)}", "no work of yours in it", "Give another --out."
        )
    if not older:
        require_new(out)


def _make_records(result: VoteResult, places: Sequence[int]) -> Iterator[dict[str, Any]]:
    tally = result.tally
    for k in places:
        one = result.subjects[k]
        yield {
            "id": one.id,
            "category": one.category,
            "task": one.task,
            "wrong": int(tally.wrong[k]),
            "right": int(tally.right[k]),
            "large_wrong": int(tally.large_wrong[k]),
            "without_vote": int(tally.open[k]),
            "review": result.status.get(one.id, "open"),
            "votes": {
                voter.name: VOTES[code] for voter, code in zip(result.panel, result.votes[k].tolist(), strict=True)
            },
        }


def _dump_rule(rule: Rule) -> dict[str, Any]:
    return rule.model_dump(mode="json", exclude={"panel"})


def _list_names(path: Path) -> tuple[str, str, str]:
    header = read_header(path)
    return header.spec, header.model, path.stem


def _make_voter(path: Path, sizes: Mapping[str, float]) -> Voter:
    spec, model, stem = _list_names(path)
    given = next((sizes[name] for name in (spec, model, stem) if name in sizes), None)
    return Voter(spec, given if given is not None else find_size_billions(spec) or find_size_billions(model))


def _describe_votes(name: str, saved: SavedScores, votes: Mapping[str, Vote], total: int) -> Iterator[str]:
    replied = sum(vote != "failed" for vote in votes.values())
    if not replied:
        yield f"{name} has no vote: {'all of its requests failed' if votes else 'no reply to a question of this set'}."
    elif replied < total / 2:
        yield f"{name}: replies to {replied:,} of {total:,} questions alone."
    for reason, number in saved.header.ignored.items():
        yield f"{name}: {number} replies are not scored ({reason.replace('_', ' ')})."


def _read_review_status(folder: Path, people: Sequence[Reviewed]) -> dict[str, ReviewStatus]:
    found = sort_judged(people, count_verdicts(read_logs(folder / REVIEW), people), "hard")
    status: dict[str, ReviewStatus] = dict.fromkeys(found.accepted, "accepted")
    return status | dict.fromkeys((name for name, _ in found.refused), "refused")
