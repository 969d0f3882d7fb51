"""Which replies of a file are in force, where questions were asked at several settings."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

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
_Kind = tuple[str, str]  # stage and prompt set


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
    if told.get("setup"):
        content["setup"] = told["setup"]
    return _digest(content)


def _digest(content: dict[str, Any]) -> str:
    # A damaged header may hold NaN, which the digests of requests refuse.
    return hash_stably(json.dumps(content, sort_keys=True))


def _find_kind(header: Header) -> _Kind | None:
    """(stage, prompt set) of what a run asked; None where its header does not say."""
    sent = header.settings.get("settings")
    stage = sent.get("stage") if isinstance(sent, dict) else None
    return None if stage is None else (str(stage), str(header.settings.get("prompt_set")))


def select_replies(
    path: Path, keep: Callable[[ReplyLine, int], KeptT], header: Header | None = None
) -> tuple[Header, dict[ReplyKey, KeptT], int]:
    """Choose the line in force of every key.

    Args:
        path: of the log.
        keep: what to keep of a line, given the byte at which it begins; memory holds nothing else.
        header: of a run, whose settings are then the ones in force.

    Returns:
        The last header, what was kept of the lines in force in the order of the keys' first lines, and how many keys
        were answered at other settings alone.

    Raises:
        DatasetError: no readable file, no header, or a line that is no reply.
    """
    last: Header | None = None
    settings = ""
    places: dict[ReplyKey, dict[str, tuple[KeptT, bool]]] = {}  # by settings: what was kept, and whether it failed
    used: dict[_Kind, dict[str, bool]] = {}  # settings in the order of their last use: whether anything was answered
    for where, at, record in read_records(path):
        if "dataset" in record:
            last = parse_header(record, where)
            settings = _digest_settings(last)
            if (kind := _find_kind(last)) is not None:
                _note_use(used, kind, settings, False)
        elif last is None:
            raise dataset_error(where, "a reply before any header", "a header first", REMEDY)
        else:
            line = parse_line(record, where)
            # A drawing does not depend on how the question after it is asked.
            own = "" if line.stage == DRAWING else settings
            given = places.setdefault(line.key, {})
            if not line.failed or own not in given or given[own][1]:
                given[own] = keep(line, at), line.failed
            _note_use(used, (line.stage, line.prompt_set), own, not line.failed)
    if last is None:
        raise dataset_error(path, "no header", "a file that `vgbench eval` wrote", REMEDY)
    chosen = _choose_settings(used, header)
    found: dict[ReplyKey, KeptT] = {}
    others = 0
    for key, given in places.items():
        wanted = chosen[key.stage, key.prompt_set]
        if wanted in given:
            found[key] = given[wanted][0]
        else:
            others += any(not failed for _, failed in given.values())
    return last, found, others


def _note_use(used: dict[_Kind, dict[str, bool]], kind: _Kind, settings: str, answered: bool) -> None:
    own = used.setdefault(kind, {})
    own[settings] = own.pop(settings, False) or answered


def _choose_settings(used: Mapping[_Kind, dict[str, bool]], header: Header | None) -> dict[_Kind, str]:
    """Choose the settings in force of each kind of question: the last that were answered, or those of a run."""
    chosen = {kind: next((one for one in reversed(own) if own[one]), next(reversed(own))) for kind, own in used.items()}
    if header is not None:
        asked = _digest_settings(header)
        chosen = {kind: one if kind[0] == DRAWING else asked for kind, one in chosen.items()}
    return chosen
