"""Lines of files of replies: what they hold, how they are written, and what is refused when they are read."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, NamedTuple

from vgbench_gen.core.errors import DatasetError
from vgbench_gen.core.lines import set_on_one_line
from vgbench_gen.store.files import dataset_error, open_data, parse_object

SCHEMA = 1
MAX_LINE_BYTES = 16 << 20
DRAWING = "visual-cot-image"  # stage of what is no answer but was made for one
REMEDY = "Move the file away to ask anew."
_MOST = 1 << 53  # numbers of a reply that go into sums; beyond, floats no longer count


class ReplyKey(NamedTuple):
    """What a reply is to: one question in one order of its options, asked in one way for one time."""

    id: str
    """The question."""
    rotation: int = 0
    """By how many places its options were moved up; 0 for the order in which it was built."""
    epoch: int = 0
    """The number of the repeat, from 0."""
    stage: str = ""
    """"" for the question itself, "blind" without its images, "wrong-images" with another question's, and so on."""
    prompt_set: str = "paper"
    """The prompt set whose words were sent."""


@dataclass(frozen=True, slots=True)
class ReplyLine:
    """One reply, or a request that failed: a line of the log of replies."""

    id: str
    """The question; this and the four fields below are those of `ReplyKey`."""
    benchmark: str
    """The benchmark of the question, as in `Item.benchmark`."""
    model: str
    """Who replied, by the name that the server gave."""
    request_digest: str
    """The digest of everything that was asked, without the model (`prompting.Asked.digest`)."""
    response: str | None
    """The whole text of the reply; None where the request failed."""
    rotation: int = 0
    """See `ReplyKey.rotation`."""
    epoch: int = 0
    """See `ReplyKey.epoch`."""
    stage: str = ""
    """See `ReplyKey.stage`."""
    prompt_set: str = "paper"
    """See `ReplyKey.prompt_set`."""
    images: tuple[Mapping[str, Any], ...] = ()
    """The images as the model saw them, in order, each with its "name" and, where known, "tag" and "size_px"."""
    finish_reason: str = ""
    """Why the model stopped, as its server says it: "stop", "length", "content_filter"."""
    usage: Mapping[str, int] = field(default_factory=dict)
    """How many tokens of each kind the request took."""
    cost_usd: float | None = None
    """What the request cost; None where no price is known."""
    latency_s: float = 0.0
    """How long the reply took."""
    error: str = ""
    """The kind and the message of a failure; "" where the request did not fail."""
    time: float = 0.0
    """When the reply came, in seconds since 1970."""

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
    """What the replies below it are about: a line of the log of replies."""

    dataset: str
    """The fingerprint of the dataset."""
    benchmark: str
    """The name of the benchmark."""
    spec: str
    """Who was asked, as given on the command line."""
    model: str
    """Who was asked, by the model's name."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """The settings of the requests (temperature, max_tokens, ...) and of the run (prompt set, image limits)."""
    code: str = ""
    """The version of this package."""

    def __post_init__(self) -> None:
        set_on_one_line(self, "spec", "model")


def encode_record(record: Mapping[str, Any]) -> bytes:
    """One line of a file, for a header or a reply."""
    # Half of a surrogate pair, which a reply may hold and UTF-8 cannot, becomes "?" as in `parse_json`.
    text = json.dumps({"schema": SCHEMA, **record}, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.encode("utf-8", "replace") + b"\n"


def is_too_long(record: Mapping[str, Any]) -> bool:
    """Whether the line of a reply would be refused by those who read it."""
    return len(record["response"]) * 2 > MAX_LINE_BYTES // 6 and len(encode_record(record)) > MAX_LINE_BYTES


def read_records(path: Path, skip_damaged: bool = False) -> Iterator[tuple[str, int, dict[str, Any]]]:
    """Read a log line by line; a last line without its end is as if never written.

    Args:
        path: of the log.
        skip_damaged: pass over lines that are no object of ours; a line that is too long ends what can be read.

    Yields:
        Where a line stands in words ("FILE, line 3"), the byte at which it begins, and the object that it holds.

    Raises:
        DatasetError: no readable file, one whose name cannot be printed, or a line that is too long or no object of
            ours.
    """
    if not path.name.isprintable():  # it becomes the name of scores and traces, which tables and verbs show in a line
        raise dataset_error(path, "a name that cannot be printed", "<model>.jsonl", "Rename the file.")
    with open_data(path, "replies", "Run `vgbench eval`.") as file:
        number = at = 0
        while raw := file.readline(MAX_LINE_BYTES + 2):
            number += 1
            if not raw.endswith(b"\n"):
                if len(raw) <= MAX_LINE_BYTES or skip_damaged:
                    return  # torn: its writer died
                raise dataset_error(f"{path}, line {number}", f"more than {MAX_LINE_BYTES} bytes", "less", REMEDY)
            where = f"{path}, line {number}"
            try:
                record = _parse_object(raw, where)
            except DatasetError:
                if not skip_damaged:
                    raise
            else:
                yield where, at, record
            at += len(raw)


def read_line_at(path: Path, at: int) -> ReplyLine:
    """The reply whose line begins at this byte.

    Raises:
        DatasetError: there is none.
    """
    return parse_line(read_record_at(path, at), f"{path}, byte {at}")


def read_record_at(path: Path, at: int) -> dict[str, Any]:
    """The object whose line begins at this byte.

    Raises:
        DatasetError: there is none.
    """
    with path.open("rb") as file:
        file.seek(at)
        return _parse_object(file.readline(MAX_LINE_BYTES + 2), f"{path}, byte {at}")


def _parse_object(raw: bytes, where: str) -> dict[str, Any]:
    record = parse_object(raw, where, "one object per line", REMEDY)
    if record.get("schema") != SCHEMA:
        raise dataset_error(where, f"no object of schema {SCHEMA}", "a reply or a header", REMEDY)
    return record


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


def _check_record(record: dict[str, Any], known: set[str], where: str) -> dict[str, Any]:
    found = {name: value for name, value in record.items() if name in known}
    for name, value in found.items():
        if not isinstance(value, _TYPES[name]) or isinstance(value, bool):
            raise dataset_error(where, f"{name} = {str(value)[:60]!r}", f"{_TYPES[name][0].__name__}", REMEDY)
        if isinstance(value, int) and abs(value) > _MOST:
            raise dataset_error(where, f"{name} = {str(value)[:60]}", f"a number up to {_MOST}", REMEDY)
    for name, value in found.get("usage", {}).items():
        if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= _MOST:
            raise dataset_error(where, f"usage.{name} = {str(value)[:60]!r}", "a number of tokens", REMEDY)
    return found


def parse_line(record: dict[str, Any], where: str) -> ReplyLine:
    """The reply that an object of a file is.

    Raises:
        DatasetError: it is none.
    """
    given = _check_record(record, _LINE_FIELDS, where)
    given["images"] = tuple(image for image in given.get("images", ()) if isinstance(image, dict))
    try:
        return ReplyLine(**given)
    except TypeError as error:
        raise dataset_error(where, f"no reply ({error})", "a line that `vgbench eval` wrote", REMEDY) from None


def parse_header(record: dict[str, Any], where: str) -> Header:
    """The header that an object of a file is.

    Raises:
        DatasetError: it is none.
    """
    try:
        return Header(**_check_record(record, _HEADER_FIELDS, where))
    except TypeError as error:
        raise dataset_error(where, f"no header ({error})", "one that `vgbench eval` wrote", REMEDY) from None
