"""What is to be published: a build, the questions of it that are hard, training data beside it, and its counts."""

from __future__ import annotations

import re
import unicodedata
import uuid
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from functools import cached_property
from pathlib import Path
from typing import Any

from vgbench_gen.core.errors import ConfigError
from vgbench_gen.core.json_text import read_json
from vgbench_gen.core.rng import hash_stably
from vgbench_gen.core.stand_ins import config_error
from vgbench_gen.core.text_files import read_names
from vgbench_gen.core.types import Item
from vgbench_gen.pipeline.subset import find_absent_partners
from vgbench_gen.publish.hard import Vote, read_own_vote, vote_of
from vgbench_gen.quality.findings import Finding
from vgbench_gen.report.audit_table import read_record
from vgbench_gen.store.dataset import Dataset, load
from vgbench_gen.store.files import dataset_error
from vgbench_gen.store.provenance import MANIFEST, dataset_fingerprint, read_manifest

REPO = re.compile(r"[A-Za-z0-9][\w.-]{0,95}/[A-Za-z0-9][\w.-]{0,95}", re.ASCII)
VERSION = re.compile(r"\d+\.\d+\.\d+")
ALL, HARD, TRAIN = "vgbench", "hard", "train"


@dataclass(frozen=True, slots=True)
class Options:
    """How to publish."""

    repo: str
    """"owner/name"."""
    hard: Path | None = None
    """The hard questions, as a dataset or as a file of ids (lines, or a JSON list)."""
    train: Path | None = None
    """A build with training data."""
    with_pixels: tuple[str, ...] = ()
    """`NAME=LICENCE` for every source whose images are published although its policy says no."""
    title: str = ""
    """The set's name on its card."""
    version: str = "1.0.0"
    """The version of the data, three numbers."""
    date: str = ""
    """The ISO day that the metadata carry, "" for none."""
    scores: tuple[str, ...] = ()
    """Programs whose scores go onto the card although they are no models."""

    def __post_init__(self) -> None:
        if not REPO.fullmatch(self.repo) or ".." in self.repo or "--" in self.repo:
            raise ConfigError(f"--repo {self.repo}: found no Hub name; expected OWNER/NAME, such as lab/vgbench.")
        if not VERSION.fullmatch(self.version):
            raise ConfigError(f"--version {self.version}: found no version; expected three numbers, such as 1.0.0.")
        if self.date and not is_day(self.date):
            raise ConfigError(f"--date {self.date}: found no day of the calendar; expected YYYY-MM-DD.")

    @property
    def name(self) -> str:
        """Title, else the repository's own name."""
        return self.title or self.repo.partition("/")[2]


@dataclass(frozen=True)
class RowSet:
    """Rows of one dataset that are published as one configuration."""

    name: str
    """The configuration's name."""
    split: str
    """"test" or "train"."""
    home: Path
    """The dataset's folder."""
    dataset: Dataset
    keep: tuple[int, ...] | None = None
    """The places of the rows, in order; None for all."""
    apart: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """The columns to be emptied by id, of rows whose twin or partner is not among them."""

    @property
    def places(self) -> Sequence[int]:
        """Where its rows stand in the dataset, in order."""
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
        """Task -> its rows of the dataset; tasks by first appearance."""
        found: dict[str, list[int]] = {}
        for place, item in zip(self.places, self.items(), strict=True):
            found.setdefault(item.task, []).append(place)
        return found

    @cached_property
    def configurations(self) -> dict[str, str]:
        """Task -> the name of its configuration, folder and example."""
        return make_configuration_names(self.by_task)

    def published(self) -> Iterator[Item]:
        """The questions in the order in which they are published: those of the benchmark task by task."""
        if self.name != ALL:
            return self.items()
        return (self.dataset[k] for rows in self.by_task.values() for k in rows)

    @cached_property
    def fingerprint(self) -> str:
        """`dataset_fingerprint` of the rows as published."""
        return dataset_fingerprint(self.published())


@dataclass(frozen=True)
class Counts:
    """How many questions there are of what kind."""

    cells: Counter[tuple[str, str]] = field(default_factory=Counter)
    """By (task, question type)."""
    origins: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    """By (source, licence, split)."""
    scenes: Mapping[tuple[str, str], int] = field(default_factory=dict)
    """How many scenes each (source, licence) has."""
    images: int = 0
    """How many images there are."""

    @property
    def total(self) -> int:
        """All questions."""
        return sum(self.cells.values())


@dataclass(frozen=True)
class Release:
    """Everything that the published files are made from."""

    folder: Path
    """The build's folder."""
    manifest: Mapping[str, Any]
    """The build's manifest."""
    sets: tuple[RowSet, ...]
    """What is published, the benchmark first."""
    options: Options
    audit: Sequence[Finding] | None
    """The figures of the audit, None where none was made."""
    vote: Vote | None = None
    """The vote by which the hard questions among them were chosen, or all of them; None where there was none."""

    @property
    def date(self) -> str:
        """ISO day of publication: the one asked for, else the one that the build names, "" where neither is."""
        published = self.manifest.get("published")
        stated = [self.manifest.get("date"), published.get("date") if isinstance(published, Mapping) else None]
        return self.options.date or next((day for day in stated if isinstance(day, str) and is_day(day)), "")

    @property
    def main(self) -> RowSet:
        """The benchmark."""
        return self.sets[0]

    @property
    def canary(self) -> str:
        """Tells a text that quotes the questions apart from others; the same for the same questions."""
        return str(uuid.UUID(hex=hash_stably("canary", self.main.fingerprint, size=16)))

    @cached_property
    def counts(self) -> Counts:
        """Of the benchmark."""
        return count(self.main.items())


def read_release(folder: Path, options: Options) -> Release:
    """Look at what is to be published; no image is read.

    Raises:
        DatasetError: no build there, it is empty, or its rows are not those of its manifest.
        ConfigError: an id of the hard questions is not one of it.
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
        _check_apart(sets[0], sets[-1])
    vote = find_published_vote(folder, options.hard)
    return Release(folder, manifest, tuple(sets), options, _audit(folder, len(dataset)), vote)


def find_published_vote(folder: Path, hard: Path | None) -> Vote | None:
    """The vote behind the hard questions that stand beside a dataset, else the one by which it was chosen itself.

    Raises:
        DatasetError: no manifest, or a damaged record of a vote.
    """
    return read_own_vote(read_manifest(folder), folder) if hard is None else vote_of(hard)


def is_day(text: str) -> bool:
    """Whether a text is a day of the calendar as YYYY-MM-DD."""
    try:
        return date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False


def make_configuration_names(tasks: Iterable[str]) -> dict[str, str]:
    """Task -> a name that the Hub, metadata and any file system take: letters, digits, dots, dashes and underscores.

    Names differ in more than case, and none is that of another configuration; a task that is such a name keeps it.
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
    """The name that stands in a set for one on the Hub, where none is given."""
    return f"your-name/{re.sub('--+|[.][.]+', '-', _make_plain(folder.resolve().name))}"


def count(items: Iterable[Item]) -> Counts:
    """Count questions by task and type, source, split and licence; their scenes; their images."""
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
    strange = [item_id for item_id in wanted if item_id not in rows]
    if strange or not wanted:
        found = f"{len(strange)} ids that are none of the dataset, such as {strange[0]}" if strange else "no ids"
        raise ConfigError(f"--hard {path}: found {found}; expected ids of its questions. Vote on this dataset again.")
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
    if not isinstance(ids, list) or not all(isinstance(each, str) for each in ids):
        raise config_error(f"--hard {path}", "other JSON", expected, "Name the file of ids.")
    return [each for each in ids if each]


def _check_apart(test: RowSet, train: RowSet) -> None:
    """Refuse training data from scenes that are tested on: that is leakage. Raises ConfigError."""
    tested = {(item.source, item.scene_id) for item in test.items()}
    shared = sorted({(item.source, item.scene_id) for item in train.items()} & tested)
    if shared:
        found = f"{len(shared)} scenes that the benchmark asks about, such as {'/'.join(shared[0])}"
        raise ConfigError(f"--train {train.home}: found {found}; expected other scenes. Build it from other scans.")


def _audit(folder: Path, questions: int) -> Sequence[Finding] | None:
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


def list_tasks_in_order(counts: Counts) -> Sequence[str]:
    """Tasks by first appearance."""
    return list(dict.fromkeys(task for task, _ in counts.cells))
