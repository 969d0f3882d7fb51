"""Replies on disk: one append-only file per dataset and model, from which everything else is made (`architecture` 2).

The first line is a header; another header follows where a later run differs from it, and the last one counts. Every
other line is one reply. Of several lines with one key the last wins, so that a failed request can be asked again. A
line that a killed process left unfinished is ignored.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, NamedTuple

from vgbench_gen.core.errors import DatasetError
from vgbench_gen.core.rng import stable_hash
from vgbench_gen.store.files import dataset_error, sync

SCHEMA = 1
MAX_LINE_BYTES = 16 << 20
FOLDER = "replies"
_SYNC_EVERY_S = 1.0
_MAX_NAME = 80
_PLAIN_SPEC = re.compile(r"[A-Za-z0-9-]{1,30}:[A-Za-z0-9][A-Za-z0-9.-]{0,48}")  # becomes a file name by itself
_REMEDY = "Move the file away to ask anew."


class ReplyKey(NamedTuple):
    """What a reply is to. rotation: of the options (0: as built). epoch: repeat. stage: "" for the question itself,
    "blind" without its images, "wrong-images" with another question's; others belong to benchmarks with several."""

    id: str
    rotation: int = 0
    epoch: int = 0
    stage: str = ""
    prompt_set: str = "paper"


@dataclass(frozen=True, slots=True)
class ReplyLine:
    """One reply, or a request that failed.

    id, rotation, epoch, stage, prompt_set: see `ReplyKey`. request_digest: of everything that was asked, without the
    model (`prompting.Asked`). response: None where it failed. images: as the model saw them, in order, each with
    "name" and, where known, "tag" and "size_px". usage: tokens by kind. cost_usd: None where no price is known.
    error: kind and message of a failure, "" otherwise. time: of arrival, seconds since 1970.
    """

    id: str
    benchmark: str
    model: str
    request_digest: str
    response: str | None
    rotation: int = 0
    epoch: int = 0
    stage: str = ""
    prompt_set: str = "paper"
    images: tuple[Mapping[str, Any], ...] = ()
    finish_reason: str = ""
    usage: Mapping[str, int] = field(default_factory=dict)
    cost_usd: float | None = None
    latency_s: float = 0.0
    error: str = ""
    time: float = 0.0

    @property
    def key(self) -> ReplyKey:
        """What it is a reply to."""
        return ReplyKey(self.id, self.rotation, self.epoch, self.stage, self.prompt_set)

    @property
    def failed(self) -> bool:
        """Whether there is no reply, so that it is asked again."""
        return bool(self.error) or self.response is None


@dataclass(frozen=True, slots=True)
class Header:
    """What a file of replies is about.

    dataset: fingerprint of the dataset. benchmark: its name. spec, model: who was asked. settings: of the requests
    (temperature, max_tokens, ...) and of the run (prompt set, image limits). code: version of this package.
    """

    dataset: str
    benchmark: str
    spec: str
    model: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    code: str = ""


def replies_path(folder: Path, spec: str) -> Path:
    """The file of a model's replies in the folder `replies` of a dataset; the name says the spec as well as it can."""
    name = re.sub(r"[^A-Za-z0-9.-]+", "_", spec)[:_MAX_NAME].strip("._")
    if not _PLAIN_SPEC.fullmatch(spec):
        name = f"{name}-{stable_hash(spec, size=4)}"
    return folder / f"{name}.jsonl"


def read_replies(path: Path) -> tuple[Header, dict[ReplyKey, ReplyLine]]:
    """The header in force and the last line of every key, in the order of the keys' first lines.

    Raises:
        DatasetError: no such file, no header, a line that is no reply, or one that is too long.
    """
    header: Header | None = None
    lines: dict[ReplyKey, ReplyLine] = {}
    for number, record in _records(path):
        where = f"{path}, line {number}"
        if "dataset" in record:
            header = _header(record, where)
        elif header is None:
            raise dataset_error(where, "a reply before any header", "a header first", _REMEDY)
        else:
            line = _line(record, where)
            lines[line.key] = line
    if header is None:
        raise dataset_error(path, "no header", "a file that `vgbench eval` wrote", _REMEDY)
    return header, lines


def read_header(path: Path) -> Header:
    """The first header of a file: who was asked stands there as in those that follow; replies are not read.

    Raises:
        DatasetError: no such file, or it does not begin with a header.
    """
    for number, record in _records(path):
        if "dataset" in record:
            return _header(record, f"{path}, line {number}")
        break
    raise dataset_error(path, "no header", "a file that `vgbench eval` wrote", _REMEDY)


def has_header(path: Path) -> bool:
    """Whether a file holds more than what a writer that died at its first line left."""
    return path.is_file() and next(_records(path), None) is not None


def read_answered(path: Path) -> dict[ReplyKey, str]:
    """Digest of the request of every key that has a reply; empty where there is no file.

    Raises:
        DatasetError: as `read_replies`.
    """
    if not has_header(path):
        return {}
    return {key: line.request_digest for key, line in read_replies(path)[1].items() if not line.failed}


def append(path: Path, line: ReplyLine) -> None:
    """Add one reply to a file that has its header, durably. `ReplyWriter` is for many."""
    header, _ = read_replies(path)
    with ReplyWriter(path, header) as writer:
        writer.append(line)


class ReplyWriter:
    """Appends replies as they come; one writer per file at a time.

    Each line is handed to the system whole, so a killed process loses none that was appended; the disk is told to keep
    them at least once a second, so a power cut loses at most those of the last second.

    Args:
        path: made with its folder where missing.
        header: written where the file has none, or another one.

    Raises:
        DatasetError: another process writes it, it belongs to another model, or it is damaged.
    """

    def __init__(self, path: Path, header: Header) -> None:
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        new = not path.exists()
        self._handle = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o644)
        try:
            self._lock()
            self._mend_tail()
            old = read_replies(path)[0] if has_header(path) else None
            if old is not None and old.spec != header.spec:
                raise dataset_error(path, f"replies of {old.spec}", f"those of {header.spec}", _REMEDY)
            if old != header:
                self._write(asdict(header))
            os.fsync(self._handle)
        except BaseException:
            os.close(self._handle)
            raise
        if new:
            sync(path.parent)
        self._synced_s = time.monotonic()
        self._dirty = False

    def append(self, line: ReplyLine) -> None:
        """Add one reply."""
        record = asdict(line)
        if line.response is not None and _too_long(record):
            error = f"bad_reply: longer than {MAX_LINE_BYTES} bytes"
            record |= {"response": None, "error": error}
        self._write(record)
        self._dirty = True
        if time.monotonic() - self._synced_s >= _SYNC_EVERY_S:
            self.flush()

    def flush(self) -> None:
        """Make all of them durable."""
        if self._dirty:
            os.fsync(self._handle)
        self._dirty, self._synced_s = False, time.monotonic()

    def close(self) -> None:
        """Flush and let go of the file."""
        if self._handle >= 0:
            self.flush()
            os.close(self._handle)
            self._handle = -1

    def __enter__(self) -> ReplyWriter:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _lock(self) -> None:
        try:
            fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise DatasetError(
                f"{self.path}: found another process that writes it; expected one at a time. Wait for it, or end it."
            ) from None

    def _mend_tail(self) -> None:
        """Cut off what a killed writer left of its last line, so that the next one starts afresh."""
        size = os.fstat(self._handle).st_size
        tail = os.pread(self._handle, min(size, MAX_LINE_BYTES + 1), max(0, size - MAX_LINE_BYTES - 1))
        torn = len(tail) - tail.rfind(b"\n") - 1
        if torn > MAX_LINE_BYTES:
            raise dataset_error(self.path, "a last line without an end", "JSON lines", _REMEDY)
        if torn:
            os.ftruncate(self._handle, size - torn)

    def _write(self, record: Mapping[str, Any]) -> None:
        data = _encoded(record)
        sent = os.write(self._handle, data)
        while sent < len(data):  # a disk that fills up takes a part and refuses the rest with an error
            sent += os.write(self._handle, data[sent:])


def _encoded(record: Mapping[str, Any]) -> bytes:
    # Replies may hold lone surrogates, which UTF-8 cannot; JSON's own escapes can.
    text = json.dumps({"schema": SCHEMA, **record}, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    try:
        return text.encode() + b"\n"
    except UnicodeEncodeError:
        return json.dumps(json.loads(text), allow_nan=False, separators=(",", ":")).encode() + b"\n"


def _too_long(record: Mapping[str, Any]) -> bool:
    return len(record["response"]) * 2 > MAX_LINE_BYTES // 6 and len(_encoded(record)) > MAX_LINE_BYTES


def _records(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """(line number, object) of every whole line."""
    try:
        file = path.open("rb")
    except OSError as error:
        raise dataset_error(path, f"no readable file ({error.strerror})", "replies", "Run `vgbench eval`.") from error
    with file:
        number = 0
        while raw := file.readline(MAX_LINE_BYTES + 2):
            number += 1
            if not raw.endswith(b"\n"):
                if len(raw) <= MAX_LINE_BYTES:
                    return  # torn: its writer died
                raise dataset_error(f"{path}, line {number}", f"more than {MAX_LINE_BYTES} bytes", "less", _REMEDY)
            try:
                record = json.loads(raw)
            except (ValueError, RecursionError) as error:
                found = f"no JSON ({str(error)[:100]})"
                raise dataset_error(f"{path}, line {number}", found, "one object per line", _REMEDY) from None
            if not isinstance(record, dict) or record.get("schema") != SCHEMA:
                found = f"no object of schema {SCHEMA}"
                raise dataset_error(f"{path}, line {number}", found, "a reply or a header", _REMEDY)
            yield number, record


_LINE_FIELDS = {one.name for one in fields(ReplyLine)}
_HEADER_FIELDS = {one.name for one in fields(Header)}
_TYPES: dict[str, tuple[type, ...]] = {
    **dict.fromkeys(("id", "benchmark", "model", "request_digest", "stage", "prompt_set", "finish_reason"), (str,)),
    **dict.fromkeys(("rotation", "epoch"), (int,)),
    **dict.fromkeys(("latency_s", "time"), (int, float)),
    **dict.fromkeys(("dataset", "spec", "code"), (str,)),
    **dict.fromkeys(("usage", "settings"), (dict,)),
    "error": (str,),
    "response": (str, type(None)),
    "cost_usd": (int, float, type(None)),
    "images": (list,),
}


def _checked(record: dict[str, Any], known: set[str], where: str) -> dict[str, Any]:
    found = {name: value for name, value in record.items() if name in known}
    for name, value in found.items():
        if not isinstance(value, _TYPES[name]) or isinstance(value, bool):
            raise dataset_error(where, f"{name} = {str(value)[:60]!r}", f"{_TYPES[name][0].__name__}", _REMEDY)
    return found


def _line(record: dict[str, Any], where: str) -> ReplyLine:
    given = _checked(record, _LINE_FIELDS, where)
    given["images"] = tuple(image for image in given.get("images", ()) if isinstance(image, dict))
    try:
        return ReplyLine(**given)
    except TypeError as error:
        raise dataset_error(where, f"no reply ({error})", "a line that `vgbench eval` wrote", _REMEDY) from None


def _header(record: dict[str, Any], where: str) -> Header:
    try:
        return Header(**_checked(record, _HEADER_FIELDS, where))
    except TypeError as error:
        raise dataset_error(where, f"no header ({error})", "one that `vgbench eval` wrote", _REMEDY) from None
