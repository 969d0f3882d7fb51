"""Lines of files of replies: what they hold, how they are written, and what is refused when they are read."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, NamedTuple

from vgbench_gen.store.files import dataset_error

SCHEMA = 1
MAX_LINE_BYTES = 16 << 20
DRAWING = "visual-cot-image"  # stage of what is no answer but was made for one
REMEDY = "Move the file away to ask anew."
_MOST = 1 << 53  # numbers of a reply that go into sums; beyond, floats no longer count


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


def encode_record(record: Mapping[str, Any]) -> bytes:
    """One line of a file, for a header or a reply."""
    # Replies may hold lone surrogates, which UTF-8 cannot; JSON's own escapes can.
    text = json.dumps({"schema": SCHEMA, **record}, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    try:
        return text.encode() + b"\n"
    except UnicodeEncodeError:
        return json.dumps(json.loads(text), allow_nan=False, separators=(",", ":")).encode() + b"\n"


def is_too_long(record: Mapping[str, Any]) -> bool:
    """Whether the line of a reply would be refused by those who read it."""
    return len(record["response"]) * 2 > MAX_LINE_BYTES // 6 and len(encode_record(record)) > MAX_LINE_BYTES


class FileRecord(NamedTuple):
    """One object of a file: in which line, and at which byte it begins."""

    number: int
    at: int
    value: dict[str, Any]


def read_records(path: Path) -> Iterator[FileRecord]:
    """The object of every whole line; a last one without its end is as if never written.

    Raises:
        DatasetError: no readable file, or a line that is too long or no object of ours.
    """
    try:
        file = path.open("rb")
    except OSError as error:
        raise dataset_error(path, f"no readable file ({error.strerror})", "replies", "Run `vgbench eval`.") from error
    with file:
        number = at = 0
        while raw := file.readline(MAX_LINE_BYTES + 2):
            number += 1
            if not raw.endswith(b"\n"):
                if len(raw) <= MAX_LINE_BYTES:
                    return  # torn: its writer died
                raise dataset_error(f"{path}, line {number}", f"more than {MAX_LINE_BYTES} bytes", "less", REMEDY)
            yield FileRecord(number, at, _parse_object(raw, f"{path}, line {number}"))
            at += len(raw)


def read_line_at(path: Path, at: int) -> ReplyLine:
    """The reply whose line begins at this byte.

    Raises:
        DatasetError: there is none.
    """
    with path.open("rb") as file:
        file.seek(at)
        where = f"{path}, byte {at}"
        return parse_line(_parse_object(file.readline(MAX_LINE_BYTES + 2), where), where)


def _parse_object(raw: bytes, where: str) -> dict[str, Any]:
    try:
        record = json.loads(raw)
    except (ValueError, RecursionError) as error:
        found = f"no JSON ({str(error)[:100]})"
        raise dataset_error(where, found, "one object per line", REMEDY) from None
    if not isinstance(record, dict) or record.get("schema") != SCHEMA:
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
