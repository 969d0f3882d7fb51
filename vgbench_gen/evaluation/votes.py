"""What each model's saved replies vote on each question: `votes/models/<model>.jsonl`, made once per file of replies.

The first line says what the votes rest on: the replies, the dataset, the scorer and the prompt set; then comes a line
with the ids for each of `VOTES`. A model whose replies have not changed is neither scored nor asked again when another
joins.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from vgbench_gen.core.errors import ConfigError, DatasetError
from vgbench_gen.core.rng import digest_bytes
from vgbench_gen.evaluation.base import Source
from vgbench_gen.evaluation.board import ScoreRow
from vgbench_gen.evaluation.saved import SavedScores, score_files
from vgbench_gen.evaluation.scoring import SCORER_VERSION, Rule
from vgbench_gen.quality.voting.rule import VOTES, Vote
from vgbench_gen.store.files import dataset_error, replace_file

SCHEMA = 1
FOLDER = "votes"
MODELS = "models"
_READ: Mapping[str, Vote] = {"unreadable": "unreadable", "refused": "refused", "failed": "failed"}


@dataclass(frozen=True, slots=True)
class VoteBasis:
    """What votes rest on. ignored: replies that are not scored, by reason."""

    scorer_version: int
    dataset: str
    replies: str
    prompt_set: str
    spec: str
    model: str
    ignored: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ModelVotes:
    """One model's votes by question; questions that it was not asked are not in. fresh: counted now."""

    path: Path
    basis: VoteBasis
    votes: Mapping[str, Vote]
    fresh: bool = False

    @property
    def name(self) -> str:
        """The spec, which tells models of one name apart."""
        return self.basis.spec or self.basis.model


def read_votes_of_models(
    source: Source,
    paths: Sequence[Path],
    rules: Mapping[str, Rule],
    prompt_set: str = "paper",
    progress: Callable[[str, int, int], None] = lambda name, done, total: None,
) -> Iterator[ModelVotes]:
    """The votes of these files of replies, in their order; what is not scored yet is, and nothing is asked.

    Args:
        source: the questions.
        paths: files of replies.
        rules: how each question is graded.
        prompt_set: whose replies count; those of controls, of other orders of options and of later repeats do not.
        progress: as in `saved.score_source`.

    Raises:
        ConfigError: a model has no replies to this prompt set.
        DatasetError: a file that cannot be read.
    """
    for path in paths:
        target = source.folder / FOLDER / MODELS / path.name
        wanted = (SCORER_VERSION, source.fingerprint, digest_bytes(path.read_bytes()), prompt_set)
        known = _find_current(target, wanted)
        if known is None:
            (saved,) = score_files(source, [path], progress=progress)
            known = _count_votes(saved, target, prompt_set, rules)
            _write(known)
        yield known


def _count_votes(saved: SavedScores, target: Path, prompt_set: str, rules: Mapping[str, Rule]) -> ModelVotes:
    found: dict[str, tuple[bool, int, Vote]] = {}
    sets: Counter[str] = Counter()
    for row in saved.rows:
        if row.stage or row.rotation:
            continue
        sets[row.prompt_set] += 1
        if row.prompt_set != prompt_set or row.id not in rules:
            continue
        # The first repeat that got a reply; repeats in a file come in any order.
        entry = (row.outcome == "failed", row.epoch, vote_of(row, rules[row.id]))
        if row.id not in found or entry[:2] < found[row.id][:2]:
            found[row.id] = entry
    if sets and not sets[prompt_set]:
        there = ", ".join(sorted(sets))
        raise ConfigError(
            f"{saved.header.spec}: found no reply to prompt set {prompt_set!r}; there are: {there}. Say which with "
            "--prompt-set."
        )
    header = saved.header
    basis = VoteBasis(
        header.scorer_version, header.dataset, header.replies, prompt_set, header.spec, header.model, header.ignored
    )
    return ModelVotes(target, basis, {name: vote for name, (_, _, vote) in found.items()}, fresh=True)


def vote_of(row: ScoreRow, rule: Rule) -> Vote:
    """What a scored reply votes: graded scores, which are seldom 1, by the factor of 2 that lengths are held to."""
    if row.outcome in _READ:
        return _READ[row.outcome]
    return "right" if (row.delta_2 if rule == "mra" else row.score) >= 1 else "wrong"


# --- files


def _write(ballot: ModelVotes) -> None:
    with replace_file(ballot.path) as temporary, temporary.open("w", encoding="utf-8") as file:
        file.write(_dump_json({"schema": SCHEMA, **asdict(ballot.basis)}))
        for vote in VOTES:
            ids = [name for name, found in ballot.votes.items() if found == vote]
            file.write(_dump_json({"vote": vote, "ids": ids}))


def _find_current(path: Path, wanted: tuple[int, str, str, str]) -> ModelVotes | None:
    """Votes that still hold."""
    if not path.is_file():
        return None
    try:
        found = read_votes(path)
    except DatasetError:
        return None  # damaged or of another schema: counted again
    basis = found.basis
    same = (basis.scorer_version, basis.dataset, basis.replies, basis.prompt_set) == wanted
    return found if same else None


def read_votes(path: Path) -> ModelVotes:
    """A file of votes.

    Raises:
        DatasetError: it is missing or holds something else.
    """
    try:
        header, *records = map(json.loads, path.read_bytes().splitlines())
        if header.pop("schema", None) != SCHEMA:
            raise ValueError(f"no schema {SCHEMA}")
        if tuple(record["vote"] for record in records) != VOTES:
            raise ValueError(f"no line for each of {', '.join(VOTES)}")
        votes = {name: vote for vote, record in zip(VOTES, records, strict=True) for name in record["ids"]}
        return ModelVotes(path, VoteBasis(**header), votes)
    except OSError as error:
        found = f"no readable file ({error.strerror})"
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        found = f"no votes ({str(error)[:100]})"
    raise dataset_error(path, found, "votes of one model", "Run `vgbench vote` to count them again.")


def _dump_json(value: Mapping[str, object]) -> str:
    return json.dumps(value, separators=(",", ":")) + "\n"
