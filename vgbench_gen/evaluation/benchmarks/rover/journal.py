"""Verdicts of ROVER's judge on disk: a line as each metric comes, one line per sample when all is done.

Both kinds of lines may stand in one file, so a run that was killed goes on metric by metric. A verdict counts only
while the sample, the judge and the words it was asked with are the same; those of other judges stay in the file as
they are. A torn last line is ignored.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from vgbench_gen.core.errors import DatasetError
from vgbench_gen.core.paths import close_if_raised
from vgbench_gen.evaluation.benchmarks.rover import judge as rover_judge
from vgbench_gen.evaluation.benchmarks.rover.judge import (
    ALIGNMENT,
    EXTRAS,
    METRICS,
    Verdict,
    merge_verdicts,
    name_score,
)
from vgbench_gen.store.files import dataset_error, open_data, parse_object, replace_file

SCHEMA = 1
MAX_LINE_BYTES = 1 << 20
_REMEDY = "Move the file away, or name another one."
_GIVEN = ("ok", "no_reasoning_text")


@dataclass(frozen=True, slots=True)
class Basis:
    """What verdicts rest on besides the sample."""

    judge: str
    """The spec of the judge."""
    version: int
    """The version of the words that it is asked in."""
    repeat: int = 0
    """The number of the independent judgement, from 0."""


class Journal:
    """The results of one judge in a file, or in memory where there is none.

    Args:
        path: made with its folder; None for memory alone.
        basis: what its verdicts rest on; those of another basis do not count here and stay in the file.

    Raises:
        DatasetError: another process writes it, it holds something else, or no such file can be written.
    """

    def __init__(self, path: Path | None, basis: Basis) -> None:
        self.path, self.basis = path, basis
        self._verdicts: dict[str, dict[str, tuple[str, Verdict]]] = {}
        self._places: dict[str, tuple[str, str]] = {}
        self._others: list[tuple[int, int]] = []  # (place of its start, of its end) of each line of another basis
        self._handle = -1
        if path is None:
            return
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._handle = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o644)
        except OSError as error:
            found = f"nothing that can be written ({error.strerror})"
            raise dataset_error(path, found, "a file for results", "Name a file.") from None
        with close_if_raised(partial(os.close, self._handle)):
            try:
                fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                told = f"{path}: found another process that writes it; expected one. Wait for it."
                raise DatasetError(told) from None
            self._read(path)

    def given(self, sample_id: str, inputs: str) -> dict[str, Verdict]:
        """Verdicts with a score about this very sample, by metric."""
        known = self._verdicts.get(sample_id, {})
        return {name: one for name, (about, one) in known.items() if about == inputs and one.status in _GIVEN}

    def add(self, sample_id: str, place: tuple[str, str], inputs: str, verdict: Verdict) -> None:
        """Keep a verdict, durably once this returns to a process that may be killed."""
        self._verdicts.setdefault(sample_id, {})[verdict.metric] = (inputs, verdict)
        self._places[sample_id] = place
        if self._handle >= 0:
            line = {"schema": SCHEMA, **asdict(self.basis), "sample_id": sample_id, "inputs": inputs, **asdict(verdict)}
            line |= {"dimension": place[0], "reasoning_type": place[1]}
            data = _encode_line(line | {"judge": self.basis.judge, "judge_model": verdict.judge})
            sent = os.write(self._handle, data)
            while sent < len(data):
                sent += os.write(self._handle, data[sent:])

    def result(self, sample_id: str, place: tuple[str, str], metrics: Sequence[str]) -> dict[str, Any]:
        """The merged result of a sample."""
        known = self._verdicts.get(sample_id, {})
        return merge_verdicts(sample_id, place, {name: known[name][1] for name in metrics if name in known})

    def close(self, places: Mapping[str, tuple[str, str]] | None = None) -> None:
        """Let go of the file; with `places` of the samples judged, one line per sample replaces this judge's first."""
        if self._handle < 0:
            return
        if places is not None and self.path is not None:
            with replace_file(self.path) as temporary, temporary.open("wb") as file:
                for start, end in self._others:
                    file.write(os.pread(self._handle, end - start, start))
                for sample_id, known in self._verdicts.items():
                    row = merge_verdicts(
                        sample_id,
                        places.get(sample_id) or self._places.get(sample_id, ("", "")),
                        {name: one for name in (*METRICS, *EXTRAS) if name in known for one in (known[name][1],)},
                    )
                    inputs = {name: about for name, (about, _) in known.items()}
                    file.write(_encode_line({"schema": SCHEMA, **row, **asdict(self.basis), "inputs": inputs}))
        os.close(self._handle)
        self._handle = -1

    def _read(self, path: Path) -> None:
        size = os.fstat(self._handle).st_size
        whole = 0
        for number, (end, record) in enumerate(_read_records(path), start=1):
            start, whole = whole, end
            basis = {name: record.get(name) for name in asdict(self.basis)}
            if not isinstance(record.get("sample_id"), str):
                raise dataset_error(f"{path}, line {number}", "no sample_id", "results of a judge", _REMEDY)
            if basis == asdict(self.basis):
                self._take(record)
            else:
                self._others.append((start, end))
        if whole < size:
            os.ftruncate(self._handle, whole)  # what a killed writer left of its last line

    def _take(self, record: Mapping[str, Any]) -> None:
        known = self._verdicts.setdefault(record["sample_id"], {})
        place = (str(record.get("dimension") or ""), str(record.get("reasoning_type") or ""))
        if any(place):
            self._places[record["sample_id"]] = place
        if "metric" in record:
            verdict = Verdict(record["metric"], record.get("score"), str(record.get("reasoning", "")),
                              record.get("status", "judge_failed"), str(record.get("judge_model", "")))  # fmt: skip
            known[verdict.metric] = (str(record.get("inputs", "")), verdict)
            return
        inputs = record.get("inputs")
        for metric in (*METRICS, *EXTRAS):
            if isinstance(inputs, dict) and metric in inputs:
                score = record.get("raw_alignment" if metric == ALIGNMENT else name_score(metric))
                status = record.get(f"{metric}_status", "judge_failed")
                words, who = record.get(f"{metric}_reasoning", ""), record.get(f"{metric}_judge", "")
                known[metric] = (str(inputs[metric]), Verdict(metric, score, str(words), status, str(who)))


def make_basis(judge: str, repeat: int = 0) -> Basis:
    """What verdicts of this judge rest on now."""
    return Basis(judge, rover_judge.read_words().version, repeat)


def _read_records(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """(place of its end, object) of every whole line."""
    with open_data(path, "results", _REMEDY) as file:
        end = number = 0
        while raw := file.readline(MAX_LINE_BYTES + 1):
            number += 1
            if not raw.endswith(b"\n"):
                if len(raw) > MAX_LINE_BYTES:
                    raise dataset_error(f"{path}, line {number}", "a line without an end", "JSON lines", _REMEDY)
                return
            end += len(raw)
            yield end, parse_object(raw, f"{path}, line {number}", "results of a judge", _REMEDY, "keep")


def _encode_line(record: Mapping[str, Any]) -> bytes:
    return json.dumps(record, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace") + b"\n"
