"""The content of a release: a build, its hard questions, training data, and counts."""

from __future__ import annotations

import re
import unicodedata
import uuid
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import date
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, get_args

from vgbench_gen.core.errors import ConfigError
from vgbench_gen.core.json_text import read_json
from vgbench_gen.core.rng import hash_stably
from vgbench_gen.core.stand_ins import config_error
from vgbench_gen.core.text_files import read_names
from vgbench_gen.core.types import Item
from vgbench_gen.pipeline.subset import find_absent_partners
from vgbench_gen.quality.findings import Finding
from vgbench_gen.report.audit_table import read_record
from vgbench_gen.store.dataset import Dataset, load
from vgbench_gen.store.files import dataset_error
from vgbench_gen.store.provenance import MANIFEST, dataset_fingerprint, read_manifest

REPO = re.compile(r"[A-Za-z0-9][\w.-]{0,95}/[A-Za-z0-9][\w.-]{0,95}", re.ASCII)
VERSION = re.compile(r"\d+\.\d+\.\d+")
ALL, HARD, TRAIN = "vgbench", "hard", "train"
Status = Literal["reviewed", "candidate", "listed"]
_PROGRAM = "baseline:"  # prefix of the model names of baselines


@dataclass(frozen=True, slots=True)
class Options:
    """Options of `vgbench publish`."""

    repo: str
    """"owner/name"."""
    hard: Path | None = None
    """The hard questions, as a dataset or as a file of ids (lines, or a JSON list)."""
    train: Path | None = None
    """A build with training data."""
    with_pixels: tuple[str, ...] = ()
    """`NAME=LICENCE` for every source whose images are published against its policy."""
    title: str = ""
    """The set's name on its card."""
    version: str = "1.0.0"
    """The version of the data, three numbers."""
    date: str = ""
    """ISO date for the metadata; "" for none."""
    scores: tuple[str, ...] = ()
    """Programs whose scores are put on the card although they are not models."""

    def __post_init__(self) -> None:
        if not REPO.fullmatch(self.repo) or ".." in self.repo or "--" in self.repo:
            raise ConfigError(f"--repo {self.repo}: found no Hub name; expected OWNER/NAME, such as lab/vgbench.")
        if not VERSION.fullmatch(self.version):
            raise ConfigError(f"--version {self.version}: found no version; expected three numbers, such as 1.0.0.")
        if self.date and not is_day(self.date):
            raise ConfigError(f"--date {self.date}: found no valid date; expected YYYY-MM-DD.")

    @property
    def name(self) -> str:
        """The title, or the name of the repository."""
        return self.title or self.repo.partition("/")[2]


@dataclass(frozen=True)
class RowSet:
    """Rows of one dataset that are published as one configuration."""

    name: str
    split: str
    """"test" or "train"."""
    home: Path
    """The dataset's folder."""
    dataset: Dataset
    keep: tuple[int, ...] | None = None
    """Indices of the rows, in order; None for all."""
    apart: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Id -> columns to be emptied, for rows whose twin or partner is not in the set."""

    @property
    def places(self) -> Sequence[int]:
        """Indices of the rows in the dataset, in order."""
        return range(len(self.dataset)) if self.keep is None else self.keep

    def __len__(self) -> int:
        return len(self.places)

    def items(self) -> Iterator[Item]:
        """The questions, in the dataset's order."""
        if self.keep is None:
            return iter(self.dataset)
        return (replace(item, **self.apart.get(item.id, {})) for item in self.dataset.take(self.keep))

    @cached_property
    def by_task(self) -> dict[str, list[int]]:
        """Task -> indices of its rows in the dataset; tasks by first appearance."""
        found: dict[str, list[int]] = {}
        for place, item in zip(self.places, self.items(), strict=True):
            found.setdefault(item.task, []).append(place)
        return found

    @cached_property
    def configurations(self) -> dict[str, str]:
        """Task -> name of its configuration, folder and example picture."""
        return make_configuration_names(self.by_task)

    def published(self) -> Iterator[Item]:
        """The questions in published order, in which the benchmark is sorted by task."""
        if self.name != ALL:
            return self.items()
        return (self.dataset[k] for rows in self.by_task.values() for k in rows)

    @cached_property
    def fingerprint(self) -> str:
        """`dataset_fingerprint` of the rows in published order."""
        return dataset_fingerprint(self.published())


@dataclass(frozen=True, slots=True)
class Vote:
    """The vote that chose hard questions, as a manifest records it."""

    status: Status
    """"reviewed" if people accepted every question, "candidate" if they did not, "listed" if the ids come from a plain
    list."""
    rule: Mapping[str, Any]
    """Rule of the vote, as `quality.voting.rule` writes it; empty if the status is "listed"."""
    panel: int = 0
    """Number of models that voted."""
    programs: int = 0
    """Number of baselines among them."""
    chosen: int = 0
    """Number of chosen questions."""
    accepted: int = 0
    """Number of chosen questions that people accepted."""

    def record(self) -> dict[str, Any]:
        """The vote for the published manifest."""
        return asdict(self) | {"rule": dict(self.rule)}


@dataclass(frozen=True)
class Counts:
    """Numbers of questions, scenes and images."""

    cells: Counter[tuple[str, str]] = field(default_factory=Counter)
    """(task, question type) -> questions."""
    origins: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    """(source, license, split) -> questions."""
    scenes: Mapping[tuple[str, str], int] = field(default_factory=dict)
    """(source, license) -> scenes."""
    images: int = 0

    @property
    def total(self) -> int:
        """Number of all questions."""
        return self.cells.total()

    @property
    def tasks(self) -> list[str]:
        """Tasks by first appearance."""
        return list(dict.fromkeys(task for task, _ in self.cells))


@dataclass(frozen=True)
class Release:
    """Everything that the published files are made from."""

    folder: Path
    """The build's folder."""
    manifest: Mapping[str, Any]
    """The build's manifest."""
    sets: tuple[RowSet, ...]
    """The published row sets, the benchmark first."""
    options: Options
    audit: Sequence[Finding] | None
    """The figures of the audit; None without an audit."""
    vote: Vote | None = None
    """The vote that chose the hard questions, or the whole build; None without a vote."""

    @property
    def date(self) -> str:
        """ISO date of publication from the options or the build's manifest; "" if neither has one."""
        published = self.manifest.get("published")
        stated = [self.manifest.get("date"), published.get("date") if isinstance(published, Mapping) else None]
        return self.options.date or next((day for day in stated if isinstance(day, str) and is_day(day)), "")

    @property
    def main(self) -> RowSet:
        """The benchmark."""
        return self.sets[0]

    @property
    def canary(self) -> str:
        """A UUID that identifies texts copied from the set; it depends only on the questions."""
        return str(uuid.UUID(hex=hash_stably("canary", self.main.fingerprint, size=16)))

    @cached_property
    def counts(self) -> Counts:
        """Counts of the benchmark."""
        return count(self.main.items())


def read_release(folder: Path, options: Options) -> Release:
    """Read everything but images of a build that is to be published.

    Raises:
        DatasetError: no build, an empty one, or its rows differ from its manifest.
        ConfigError: a hard question is not in the build, or training data shows its scenes.
    """
    manifest = read_manifest(folder)
    dataset = load(folder)
    if not len(dataset):
        raise dataset_error(folder, "no questions", "a dataset to publish", "Build it from more scenes.")
    stated, found = manifest.get("fingerprint"), dataset_fingerprint(dataset)
    if stated != found:
        remedy = "The questions were changed after the build; build or compose it again."
        raise dataset_error(folder / MANIFEST, f"fingerprint {stated}", f"{found}, that of its questions", remedy)
    sets = [RowSet(ALL, "test", folder, dataset)]
    if options.hard is not None:
        rows = _read_hard_rows(dataset, options.hard)
        apart = find_absent_partners(dataset, {item.id for item in dataset.take(rows)})
        sets.append(RowSet(HARD, "test", folder, dataset, rows, apart))
    if options.train is not None:
        sets.append(RowSet(TRAIN, "train", options.train, load(options.train)))
        _check_no_shared_scenes(sets[0], sets[-1])
    audit, vote = _read_audit(folder, len(dataset)), read_vote(folder, options.hard)
    return Release(folder, manifest, tuple(sets), options, audit, vote)


def read_vote(dataset: Path, hard: Path | None) -> Vote | None:
    """The vote that chose the hard questions; without them the one that chose the dataset itself, None without a vote.

    Args:
        dataset: folder of the build.
        hard: the hard questions: a dataset with a manifest, or a list of ids, whose vote is "listed".

    Raises:
        DatasetError: a manifest is missing, or its record of the vote is damaged.
    """
    if hard is None:
        return _parse_vote(dataset)
    is_list = hard.suffix in (".json", ".txt")
    folder = next((f for f in (hard, hard.parent) if not is_list and (f / MANIFEST).is_file()), None)
    return (None if folder is None else _parse_vote(folder)) or Vote("listed", {})


def _parse_vote(folder: Path) -> Vote | None:
    record = read_manifest(folder).get("hard")
    if record is None:
        return None
    try:
        status, rule, panel = record["status"], dict(record["rule"]), record["panel"]
        if status not in get_args(Status):
            raise ValueError(f"status {status!r}")
        if isinstance(panel, int):  # a pulled set, whose manifest was written from `record`
            return Vote(**{name: record[name] for name in Vote.__slots__})
        programs = sum(str(member["model"]).startswith(_PROGRAM) for member in panel)
        accepted = sum(item["review"] == "accepted" for item in record["items"])
        return Vote(status, rule, len(panel), programs, len(record["items"]), accepted)
    except (KeyError, TypeError, ValueError) as error:
        remedy = "Vote again (`vgbench vote`)."
        raise dataset_error(folder / MANIFEST, f"a damaged record of a vote ({error})", "a vote", remedy) from error


def require_reviewed(vote: Vote | None, allowed: bool) -> None:
    """Raise ConfigError for hard questions that people did not accept, unless `--candidates` allows them."""
    if vote is None or vote.status == "reviewed" or allowed:
        return
    found = (
        f"candidates: {vote.accepted} of {vote.chosen} hard questions were accepted by people"
        if vote.status == "candidate"
        else "hard questions from a list, which does not say who accepted them"
    )
    remedy = "Review them and vote again (`vgbench review`, `vgbench vote --reviewed`), or publish them as candidates"
    raise ConfigError(f"found {found}; expected reviewed ones. {remedy} with --candidates.")


def is_day(text: str) -> bool:
    """Whether a text is a valid date as YYYY-MM-DD."""
    try:
        return date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False


def make_configuration_names(tasks: Iterable[str]) -> dict[str, str]:
    """Task -> configuration name of letters, digits, dots, dashes and underscores, valid on the Hub and as a file name.

    Names are unique, case ignored, and differ from those of the other configurations. A task with a valid name keeps
    it.
    """
    plain = {task: _make_plain(task) for task in tasks}
    taken = {ALL, HARD, TRAIN, "default"}
    names: dict[str, str] = {}
    for task in sorted(plain, key=lambda task: plain[task] != task):
        number, name = 1, plain[task]
        while name.casefold() in taken:
            number, name = number + 1, f"{plain[task]}-{number + 1}"
        taken.add(name.casefold())
        names[task] = name
    return {task: names[task] for task in plain}


def _make_plain(task: str) -> str:
    letters = unicodedata.normalize("NFKD", task).encode("ascii", "ignore").decode()
    return re.sub(r"[^A-Za-z0-9._-]+", "-", letters).strip("-._")[:80] or "task"


def name_repository(folder: Path) -> str:
    """The placeholder for OWNER/NAME in a set that is written without --repo."""
    return f"your-name/{re.sub('--+|[.][.]+', '-', _make_plain(folder.resolve().name))}"


def count(items: Iterable[Item]) -> Counts:
    """Count questions, scenes and images."""
    cells: Counter[tuple[str, str]] = Counter()
    origins: Counter[tuple[str, str, str]] = Counter()
    scenes: dict[tuple[str, str], set[str]] = {}
    images = 0
    for item in items:
        cells[item.task, item.question_type] += 1
        origins[item.source, item.licence, item.split] += 1
        scenes.setdefault((item.source, item.licence), set()).add(item.scene_id)
        images += len(item.images)
    return Counts(cells, origins, {key: len(ids) for key, ids in scenes.items()}, images)


def _read_hard_rows(dataset: Dataset, path: Path) -> tuple[int, ...]:
    wanted = _read_hard_ids(path)
    rows = {item_id: row for row, item_id in enumerate(dataset.ids())}
    unknown = [item_id for item_id in wanted if item_id not in rows]
    if unknown or not wanted:
        found = f"{len(unknown)} ids that are not in the dataset, such as {unknown[0]}" if unknown else "no ids"
        raise config_error(f"--hard {path}", found, "ids of its questions", "Vote on this dataset again.")
    return tuple(sorted({rows[item_id] for item_id in wanted}))


def _read_hard_ids(path: Path) -> list[str]:
    if path.is_dir() or path.suffix == ".parquet":
        return load(path).ids()
    expected = "a dataset, or ids as lines, a JSON list or the `ids` of a JSON object"
    if path.suffix != ".json":
        return read_names(path, expected, config_error)
    try:
        found = read_json(path)
    except (OSError, ValueError) as error:
        raise config_error(f"--hard {path}", f"no readable file ({error})", expected, "Check the path.") from error
    ids = found.get("ids") if isinstance(found, dict) else found
    if not isinstance(ids, list) or not all(isinstance(item_id, str) for item_id in ids):
        raise config_error(f"--hard {path}", "other JSON", expected, "Name the file of ids.")
    return list(filter(None, ids))


def _check_no_shared_scenes(test: RowSet, train: RowSet) -> None:
    """Raise ConfigError if training data shows scenes of the benchmark, which would be leakage."""
    tested = {(item.source, item.scene_id) for item in test.items()}
    shared = sorted({(item.source, item.scene_id) for item in train.items()} & tested)
    if shared:
        found = f"{len(shared)} scenes that the benchmark asks about, such as {'/'.join(shared[0])}"
        raise config_error(f"--train {train.home}", found, "other scenes", "Build it from other scans.")


def _read_audit(folder: Path, questions: int) -> Sequence[Finding] | None:
    path = folder / "audit" / "audit.json"
    if not path.is_file():
        return None
    try:
        found = read_json(path)
        items, figures = found["items"], [read_record(record) for record in found["findings"]]
    except (ValueError, KeyError, TypeError) as error:
        name = type(error).__name__
        raise dataset_error(path, f"no audit ({name})", "what `vgbench audit` writes", "Audit it again.") from error
    if items != questions:
        raise dataset_error(path, f"an audit of {items} questions", f"{questions}", "Audit it again.")
    return figures
