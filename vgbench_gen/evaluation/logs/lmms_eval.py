"""Samples that lmms-eval writes with `--log_samples`: `<time>_samples_<task>.jsonl` (`loggers/evaluation_tracker.py`).

It drops the question from every line but keeps what the task's scoring returned, where exported tasks put the id.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from vgbench_gen.core.json_text import read_json
from vgbench_gen.core.text_files import check_text, iterate_lines, open_text
from vgbench_gen.evaluation.imported import Log, LoggedReply, LogReader, find_only, logs
from vgbench_gen.evaluation.records import ReplyKey, ReplyLine
from vgbench_gen.store.files import dataset_error, parse_object
from vgbench_gen.store.line_writer import MAX_LINE_BYTES

_METRIC = "sane"  # of the exported task
# What its API models return in place of a reply (`models/chat/openai.py`).
NO_REPLY = ("[LMMS_EVAL_REQUEST_FAILED", "[LMMS_EVAL_BUDGET_EXCEEDED]")
_REMEDY = "Give a file of samples that lmms-eval wrote with --log_samples, or the folder that holds one."


@logs.register("lmms-eval")
class LmmsEvalLog(LogReader):
    """One file of samples, or a folder with exactly one."""

    def fits(self, path: Path) -> bool:
        try:
            first = next(_read_records(find_only(path, "**/*_samples_*.jsonl")), None)
        except Exception:
            return False
        return first is not None and "doc_id" in first[1] and "filtered_resps" in first[1]

    def read(self, path: Path) -> Log:
        file = find_only(path, "**/*_samples_*.jsonl")
        results = _read_results(file)
        config = results.get("config")
        config = config if isinstance(config, Mapping) else {}
        arguments = config.get("resolved_cli_args")
        if isinstance(arguments, Mapping) and arguments.get("system_instruction"):
            found = "a run with --system_instruction, which changes every question"
            raise dataset_error(file, found, "questions as exported", "Run the task without it.")
        # No more of the settings than this: the model's arguments may hold a key.
        return Log(
            _model(file, results), _read_replies(file), {"gen_kwargs": str(config.get("gen_kwargs") or "")[:200]}
        )


def _read_records(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    with open_text(path) as file:
        for number, line in iterate_lines(file, MAX_LINE_BYTES):
            where = f"{path}, line {number}"
            if line is None:
                raise dataset_error(where, f"more than {MAX_LINE_BYTES} characters", "fewer", _REMEDY)
            yield (
                where,
                parse_object(check_text(line, number), where, "one sample per line, an object", _REMEDY, "none"),
            )


def _read_replies(path: Path) -> Iterator[LoggedReply]:
    for where, record in _read_records(path):
        told = record.get(_METRIC)
        if not isinstance(told, Mapping) or not isinstance(told.get("id"), str):
            found = f"no {_METRIC}.id, by which a sample says which question it is to"
            raise dataset_error(where, found, "a sample of a task that `vgbench export` wrote", _REMEDY)
        # `resps` holds replies as they came; it is left out where filtering changed nothing.
        given = record.get("resps", record.get("filtered_resps"))
        given = given if isinstance(given, list) else [given]
        counts = record.get("token_counts")
        text = record["input"] if isinstance(record.get("input"), str) else None
        for epoch, reply in enumerate(given):
            count = counts[epoch] if isinstance(counts, list) and epoch < len(counts) else None
            yield LoggedReply(_make_line(told, epoch, reply, count), text)


def _make_line(told: Mapping[str, Any], epoch: int, reply: Any, count: Any) -> ReplyLine:
    reply = reply[0] if isinstance(reply, list) and reply else reply
    words = reply if isinstance(reply, str) else None
    missing = words is None or words.startswith(NO_REPLY)
    return ReplyLine(
        key=ReplyKey(told["id"], epoch=epoch, prompt_set=str(told.get("prompt_set", "paper"))),
        benchmark="",
        model="",
        response=None if missing else words,
        request_digest=str(told.get("request_digest", "")),
        error=f"api_error: {words or 'no reply'}"[:300] if missing else "",
        usage=_parse_usage(count),
    )


def _parse_usage(count: Any) -> dict[str, int]:
    names = {"input_tokens": "prompt_tokens", "output_tokens": "completion_tokens"}
    if not isinstance(count, Mapping):
        return {}
    return {ours: count[name] for name, ours in names.items() if isinstance(count.get(name), int) and count[name]}


def _read_results(samples: Path) -> dict[str, Any]:
    """What the run's results say, nothing where they do not lie beside the samples."""
    beside = samples.with_name(samples.name.partition("_samples_")[0] + "_results.json")
    try:
        found = read_json(beside, "none")
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _model(samples: Path, results: Mapping[str, Any]) -> str:
    """The model's name: of the results, else of the folder, which lmms-eval names after the model."""
    name = results.get("model_name")
    return name if isinstance(name, str) and name else Path(os.path.realpath(samples)).parent.name
