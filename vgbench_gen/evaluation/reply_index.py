"""Which replies of a file are in force, where questions were asked at several settings."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar

from vgbench_gen.core.rng import hash_stably
from vgbench_gen.evaluation.reply_lines import (
    DRAWING,
    REMEDY,
    Header,
    ReplyKey,
    ReplyLine,
    parse_header,
    parse_line,
    read_records,
)
from vgbench_gen.store.files import dataset_error

_NOT_SETTINGS = ("program", "task", "prompt_set")  # which questions, and what the key says
_IMAGE_SETTINGS = ("long_side_px", "first_image", "video_frames", "visual_cot", "image_model")
KeptT = TypeVar("KeptT")


class IndexedReply(NamedTuple, Generic[KeptT]):
    """What was kept of a line, and whether it is a failure."""

    kept: KeptT
    failed: bool


def _digest_settings(header: Header) -> str:
    """Digest of what a header says of how each question was asked: what the key does not say already."""
    told = header.settings
    sent = told.get("settings")
    if not isinstance(sent, dict):
        return _digest({name: value for name, value in told.items() if name not in _NOT_SETTINGS})
    content: dict[str, Any] = {name: sent[name] for name in sorted(sent) if name not in ("system", "stage")}
    content |= {name: told.get(name) or 0 for name in _IMAGE_SETTINGS}
    if told.get("wrong_images") or told.get("shots") or header.spec.startswith("baseline:"):
        content["drawn"] = told.get("seed", 0)
    return _digest(content)


def _digest(content: dict[str, Any]) -> str:
    # A damaged header may hold NaN, which the digests of requests refuse.
    return hash_stably(json.dumps(content, sort_keys=True))


def _find_kind(header: Header) -> tuple[str, str] | None:
    """(stage, prompt set) of what a run asked; None where its header does not say."""
    sent = header.settings.get("settings")
    stage = sent.get("stage") if isinstance(sent, dict) else None
    return None if stage is None else (str(stage), str(header.settings.get("prompt_set")))


class ReplyIndex(Generic[KeptT]):
    """Every line of a file by key and settings, from which those in force are chosen.

    Args:
        path: of the file.
        keep: what to keep of a line, given the byte at which it begins.

    Attributes:
        header: the last one.

    Raises:
        DatasetError: no readable file, no header, or a line that is no reply.
    """

    def __init__(self, path: Path, keep: Callable[[ReplyLine, int], KeptT]) -> None:
        header: Header | None = None
        self._places: dict[ReplyKey, dict[str, IndexedReply[KeptT]]] = {}
        self._last: dict[tuple[str, str], dict[str, bool]] = {}  # settings in the order of their last use: answered?
        settings = ""
        for number, at, record in read_records(path):
            where = f"{path}, line {number}"
            if "dataset" in record:
                header = parse_header(record, where)
                settings = _digest_settings(header)
                if (kind := _find_kind(header)) is not None:
                    self._use(kind, settings, False)
            elif header is None:
                raise dataset_error(where, "a reply before any header", "a header first", REMEDY)
            else:
                line = parse_line(record, where)
                # A drawing does not depend on how the question after it is asked.
                self._add(line, "" if line.stage == DRAWING else settings, keep(line, at))
        if header is None:
            raise dataset_error(path, "no header", "a file that `vgbench eval` wrote", REMEDY)
        self.header = header

    def _add(self, line: ReplyLine, settings: str, kept: KeptT) -> None:
        places = self._places.setdefault(line.key, {})
        if not line.failed or settings not in places or places[settings].failed:
            places[settings] = IndexedReply(kept, line.failed)
        self._use((line.stage, line.prompt_set), settings, not line.failed)

    def _use(self, kind: tuple[str, str], settings: str, answered: bool) -> None:
        used = self._last.setdefault(kind, {})
        used[settings] = used.pop(settings, False) or answered

    def active_replies(self, header: Header | None = None) -> tuple[dict[ReplyKey, IndexedReply[KeptT]], int]:
        """(line in force of every key, keys answered at other settings alone); header: of the run they are for."""
        chosen = {
            kind: next((one for one in reversed(used) if used[one]), next(reversed(used)))
            for kind, used in self._last.items()
        }
        if header is not None:
            own = _digest_settings(header)
            chosen = {kind: one if kind[0] == DRAWING else own for kind, one in chosen.items()}
        found: dict[ReplyKey, IndexedReply[KeptT]] = {}
        others = 0
        for key, places in self._places.items():
            place = places.get(chosen[key.stage, key.prompt_set])
            if place is not None:
                found[key] = place
            else:
                others += any(not one.failed for one in places.values())
        return found, others
