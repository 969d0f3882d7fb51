"""Traces of agents beside their replies: what was called for each answer and what came of it.

Source: `docs/agent.md#traces`.

Beside `replies/MODEL.jsonl` lies `replies/MODEL/traces.jsonl` with one line per request that was answered, written
before the line of the reply, and `replies/MODEL/traces/` with the images that tools made, each once under its digest.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from vgbench_gen.core.config import Config
from vgbench_gen.core.errors import DatasetError
from vgbench_gen.core.paths import inside
from vgbench_gen.core.rng import digest_bytes
from vgbench_gen.evaluation.json_lines import drop_schema, encode_line, read_line_at, read_lines
from vgbench_gen.evaluation.records import KeyField, ReplyKey
from vgbench_gen.store.files import dataset_error, write_bytes
from vgbench_gen.store.line_writer import MAX_LINE_BYTES, LineWriter

FILE, IMAGES = "traces.jsonl", "traces"
_DIGEST = re.compile(r"[0-9a-f]{16,128}")
_LONG_VALUES = 4096  # characters of a call's values or of a text, above which they go where a line would be too long


class TraceLine(Config):
    """The trace of one answered request."""

    key: KeyField
    request_digest: str
    """`ReplyLine.request_digest` of the reply."""
    trace: Mapping[str, Any]
    """As `agent.trace.Trace.to_json` wrote it."""


class TraceLog:
    """The traces of one file of replies; nothing is made on disk before the first one.

    Args:
        replies: the file of replies, whether it is there or not.
    """

    def __init__(self, replies: Path) -> None:
        self.path = replies.with_suffix("") / FILE
        self._images = self.path.parent / IMAGES
        self._writer: LineWriter | None = None
        self._at: dict[tuple[ReplyKey, str], int] | None = None

    def append(self, key: ReplyKey, request_digest: str, trace: Mapping[str, Any], images: Sequence[bytes]) -> None:
        """Keep a trace, and the images that its tools made. One that is there already, word for word, is not repeated.

        Args:
            key: of the reply.
            request_digest: of the reply.
            trace: as `agent.trace.Trace.to_json` gives it.
            images: those that tools made, JPEG or PNG.

        Raises:
            DatasetError: another process writes the same file, or a link leads out of the folder of replies.
        """
        for data in images:
            suffix = ".png" if data.startswith(b"\x89PNG") else ".jpg"
            target = self._images / f"{digest_bytes(data)}{suffix}"
            if not self._check(target).exists():
                write_bytes(target, data)
        if self._writer is None:
            self._check(self.path)
            self._writer = LineWriter(self.path)
            self._at = None
        index, data = self._read_index(), encode_trace(TraceLine(key=key, request_digest=request_digest, trace=trace))
        at = index.get((key, request_digest))
        # What a run that was killed before the reply's line wrote comes once more, from what was kept of it.
        if at is None or read_line_at(self.path, at) != drop_schema(data):
            index[key, request_digest] = self._writer.write(data)

    def read(self, key: ReplyKey, request_digest: str) -> Mapping[str, Any] | None:
        """The trace of a reply; None where there is none, or the line is damaged."""
        at = self._read_index().get((key, request_digest))
        line = None if at is None else _parse_trace(read_line_at(self.path, at))
        return None if line is None else line.trace

    def walk(self) -> Iterator[TraceLine]:
        """The traces in the order of the file, of several to one request the last; damaged lines are passed over."""
        last = set(self._read_index().values())
        for at, line in self._read_lines():
            if at in last:
                yield line

    def find_image(self, digest: str) -> Path | None:
        """The file of an image that a tool made; None where there is none, or the text is no digest."""
        if not isinstance(digest, str) or not _DIGEST.fullmatch(digest):
            return None
        files = (self._images / f"{digest}{suffix}" for suffix in (".jpg", ".png"))
        return next(filter(self._is_ours, files), None)

    def _is_ours(self, path: Path) -> bool:
        """Whether there is such a file and no link leads out of the folder of replies."""
        with suppress(DatasetError):
            return self._check(path).is_file()
        return False

    def _check(self, path: Path) -> Path:
        return inside(self.path.parent.parent, path, dataset_error)

    def close(self) -> None:
        """Make what was written durable and let go of the file."""
        if self._writer is not None:
            self._writer.close()
            self._writer = None

    def _read_index(self) -> dict[tuple[ReplyKey, str], int]:
        if self._at is None:
            self._at = {(line.key, line.request_digest): at for at, line in self._read_lines()}
        return self._at

    def _read_lines(self) -> Iterator[tuple[int, TraceLine]]:
        if not self._is_ours(self.path):
            return
        for _, at, data in read_lines(self.path, skip_damaged=True):
            if (line := _parse_trace(data)) is not None:
                yield at, line


def encode_trace(line: TraceLine) -> bytes:
    """The line of a trace; one that would be too long loses its long texts and values, and says how long they were."""
    data, trace = encode_line(line), line.trace
    if len(data) > MAX_LINE_BYTES:
        trace = {**trace, "steps": [_shorten(step) for step in trace.get("steps", ())]}
        data = encode_line(line.model_copy(update={"trace": trace}))
    if len(data) > MAX_LINE_BYTES:
        trace = {**trace, "steps": [], "question": "", "left_out": "longer than a line may be"}
        data = encode_line(line.model_copy(update={"trace": trace}))
    return data


def _shorten(step: Mapping[str, Any]) -> dict[str, Any]:
    kept = dict(step)
    for name, value in step.items():
        length = len(encode_line({"": value}))
        if length > _LONG_VALUES:
            note = f"{length} bytes left out"
            kept[name] = {"left_out": note} if isinstance(value, Mapping) else note
    return kept


def _parse_trace(data: bytes) -> TraceLine | None:
    try:
        return TraceLine.model_validate_json(data)
    except ValidationError:
        return None
