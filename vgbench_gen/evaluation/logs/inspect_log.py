"""Logs of inspect_ai (`.eval`, `.json`), read with that package; needs the extra `inspect`.

Its epochs count from 1. Exported tasks put a question's digest into the metadata of its sample; a sample without one is
known by its id and the words it was sent.
"""

from __future__ import annotations

import importlib.util
import re
import zipfile
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vgbench_gen.core.errors import ConfigError
from vgbench_gen.core.json_text import MAX_BYTES, parse_json
from vgbench_gen.core.paths import open_file
from vgbench_gen.evaluation.imported import Log, LoggedReply, LogReader, find_only, logs
from vgbench_gen.evaluation.records import ReplyKey, ReplyLine
from vgbench_gen.store.files import dataset_error

if TYPE_CHECKING:
    from inspect_ai.log import EvalSample

_ZIP = b"PK\x03\x04"
_PACKAGE = "inspect_ai"
_REMEDY = "Give a log that inspect_ai wrote, or the folder that holds one."
_NUMBERS = re.compile(rb'\[[^\[\]{}"]+')  # a list that holds nothing else, or its beginning
_MAX_NUMBERS = 50_000  # in one list: where messages are expected, inspect_ai says of each what it is not, in 9 kB
_FINISHES = {"max_tokens": "length", "model_length": "length", "unknown": "other"}
_SETTINGS = ("temperature", "max_tokens", "seed", "reasoning_effort")
# What a reply needs none of; events alone can be nine tenths of a log.
_UNREAD = {"events", "attachments", "store", "scores", "timelines", "events_data"}


@logs.register("inspect")
class InspectLog(LogReader):
    """One log, or a folder with exactly one."""

    def fits(self, path: Path) -> bool:
        try:
            file = find_only(path, "*.eval", "*.json")
            with file.open("rb") as opened:
                start = opened.read(4096)
        except Exception:
            return False
        return (file.suffix == ".eval" and start.startswith(_ZIP)) or (file.suffix == ".json" and b'"eval":' in start)

    def read(self, path: Path) -> Log:
        """As `LogReader.read`.

        Raises:
            ConfigError: inspect_ai is not installed.
        """
        if importlib.util.find_spec(_PACKAGE) is None:
            raise ConfigError(
                f"{path}: logs of {_PACKAGE} are read with that package, not installed here. Install the extra: "
                "pip install 'vgbench-gen[inspect]'"
            )
        from inspect_ai.log import read_eval_log

        file = find_only(path, "*.eval", "*.json")
        try:
            _check_amounts(file)
            header = read_eval_log(str(file), header_only=True)
        except Exception as error:
            # Zip, JSON and pydantic each fail in their own way on a damaged file.
            raise _make_error(file, error) from error
        told = header.plan.config.model_dump() | header.eval.model_generate_config.model_dump(exclude_none=True)
        settings = {name: told[name] for name in _SETTINGS if told.get(name) is not None}
        return Log(header.eval.model, _read_replies(file), settings | {"task": header.eval.task})


def _check_amounts(path: Path) -> None:
    """See that every text of a log is within our bounds; inspect_ai has none, and lists in lists take it gigabytes.

    Raises:
        ValueError: one is not. zipfile.BadZipFile: no archive of them, as whatever else `zipfile` raises.
    """
    with open_file(path) as file:
        if path.suffix == ".json":
            _check_text(file.read(MAX_BYTES + 1))
            return
        with zipfile.ZipFile(file) as archive:
            for member in archive.infolist():
                if member.file_size > MAX_BYTES:
                    raise ValueError(f"{member.file_size} bytes of JSON; at most {MAX_BYTES} are read")
                _check_text(archive.read(member))


def _check_text(text: bytes) -> None:
    parse_json(text, "keep", MAX_BYTES)
    for found in _NUMBERS.finditer(text):
        if (count := found[0].count(b",") + 1) > _MAX_NUMBERS:
            raise ValueError(f"a list of {count} numbers; at most {_MAX_NUMBERS} are read")


def _read_replies(path: Path) -> Iterator[LoggedReply]:
    from inspect_ai.log import read_eval_log_samples

    samples = read_eval_log_samples(str(path), all_samples_required=False, exclude_fields=_UNREAD)
    while True:
        try:
            sample = next(samples, None)
        except Exception as error:
            raise _make_error(path, error) from error
        if sample is None:
            return
        yield _reply(sample)


def _reply(sample: EvalSample) -> LoggedReply:
    metadata: Mapping[str, Any] = sample.metadata or {}
    output, error = sample.output, ""
    if sample.error is not None:
        error = "api_error: " + (" ".join(sample.error.message.split())[:300] or "failed")
    elif output.empty:
        error = "no_reply: the log holds none"
    digest = metadata.get("request_digest")
    used = output.usage
    read = 0 if used is None else (used.input_tokens_cache_read or 0) + (used.input_tokens_cache_write or 0)
    return LoggedReply(
        ReplyLine(
            key=ReplyKey(
                str(metadata.get("id", sample.id)),
                int(metadata.get("rotation", 0)),
                sample.epoch - 1,
                str(metadata.get("stage", "")),
                str(metadata.get("prompt_set", "paper")),
            ),
            benchmark="",
            model="",
            response=None if error else output.completion,
            request_digest=digest if isinstance(digest, str) else "",
            error=error,
            finish_reason="" if error else _FINISHES.get(output.stop_reason, output.stop_reason),
            usage={}
            if used is None
            else {"prompt_tokens": used.input_tokens + read, "completion_tokens": used.output_tokens},
            cost_usd=None if used is None else used.total_cost,
            latency_s=float(output.time or 0.0),
            time=_convert_to_seconds(sample.completed_at),
        ),
        _join_text(sample),
    )


def _join_text(sample: EvalSample) -> str | None:
    """All words that were sent, one part a line; None where the log holds messages of the model's making among them."""
    if isinstance(sample.input, str):
        return sample.input
    words: list[str] = []
    for message in sample.input:
        if message.role not in ("system", "user"):
            return None
        parts = [message.content] if isinstance(message.content, str) else message.content
        for part in parts:
            words += [part] if isinstance(part, str) else [part.text] if part.type == "text" else []
    return "\n".join(words)


def _convert_to_seconds(moment: object) -> float:
    try:
        return datetime.fromisoformat(str(moment)).timestamp()
    except ValueError:
        return 0.0


def _make_error(path: Path, error: Exception) -> Exception:
    said = " ".join(str(error).split())[:200] or type(error).__name__
    return dataset_error(path, f"no log that can be read ({said})", "a log of inspect_ai", _REMEDY)
