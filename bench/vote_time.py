"""Voting on a set of SpatialScore's size: questions read, votes counted, hard ones chosen and written, all reported."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import replace
from itertools import cycle, islice
from pathlib import Path

from bench.session import Session
from bench.table import Row
from vgbench_gen.core.rng import digest_bytes, rng_for
from vgbench_gen.core.types import Item
from vgbench_gen.evaluation.board import Entry, ScoreRow, make_entry
from vgbench_gen.evaluation.json_lines import encode_line
from vgbench_gen.evaluation.records import Header, ReplyKey, ReplyLine
from vgbench_gen.evaluation.replies import FOLDER as REPLIES
from vgbench_gen.evaluation.replies import name_replies_file
from vgbench_gen.evaluation.saved import FOLDER as SCORES
from vgbench_gen.evaluation.saved import SavedScores, ScoreHeader, write_scores
from vgbench_gen.evaluation.scoring import SCORER_VERSION
from vgbench_gen.store.dataset import load
from vgbench_gen.store.media import MediaStore
from vgbench_gen.store.provenance import dataset_fingerprint, write_manifest
from vgbench_gen.store.shards import write_items

QUESTIONS, MODELS = 28_000, 20
_SIZES_B = (1, 4, 8, 38, 78)
_RIGHT = 0.35  # share of right replies, so that some 4,000 questions are hard, as in the published vote
_REPLY = "x" * 200  # as long as a short reply with its record


def rows(session: Session) -> list[Row]:
    """Two rows: time and memory of a first vote on scored replies; beside them, those of voting again."""
    folder = session.scratch / "vote"
    questions = _dataset(folder, load(session.built(2).out))
    for k in range(MODELS):
        _model(folder, questions, k)
    first_s, peak_mb = _vote(folder)
    again_s, again_mb = _vote(folder)
    report = json.loads((folder / "votes" / "report.json").read_text("utf-8"))
    beside = f"{report['hard']:,} hard, {report['chosen']:,} chosen and written; again {again_s:.1f} s"
    name = f"voting: {QUESTIONS:,} questions, {MODELS} models"
    return [
        Row(name, first_s, "s", beside, at_most=30),
        Row(f"{name}, peak", peak_mb, "MB", f"again {again_mb:.0f} MB", at_most=1000),
    ]


def _dataset(folder: Path, items: Iterable[Item]) -> dict[str, Entry]:
    """Rows of a build over and over, with other ids and one small image; returns what tables know of each, by id."""
    from PIL import Image

    data = io.BytesIO()
    Image.new("RGB", (8, 8)).save(data, "JPEG")
    media = MediaStore(folder / "media")
    picture = media.put(data.getvalue(), "jpg")
    copies = [
        replace(item, id=f"{item.id}-{k}", index=k, twin_id=item.twin_id and f"{item.twin_id}-{k}", images=(picture,))
        for k, item in enumerate(islice(cycle(items), QUESTIONS))
    ]
    write_items(folder / "items", copies, media)
    write_manifest(folder, {"fingerprint": dataset_fingerprint(copies)})
    return {item.id: make_entry(item) for item in copies}


def _model(folder: Path, questions: dict[str, Entry], k: int) -> None:
    """Replies of a model, and their scores as `vgbench compare` leaves them."""
    spec = f"openai:model-{k}-{_SIZES_B[k % len(_SIZES_B)]}B"
    fingerprint = json.loads((folder / "manifest.json").read_text("utf-8"))["fingerprint"]
    header = Header(dataset=fingerprint, benchmark="VGBench", spec=spec, model=spec)
    path = name_replies_file(folder / REPLIES, spec)
    path.parent.mkdir(exist_ok=True)
    with path.open("wb") as file:
        file.write(encode_line(header))
        for name in questions:
            key = ReplyKey(name, settings=header.digest)
            line = ReplyLine(key=key, benchmark="VGBench", model=spec, request_digest="", response=_REPLY)
            file.write(encode_line(line))
    right = (rng_for(0, "bench", "vote", spec).random(len(questions)) < _RIGHT).tolist()
    made = [_row(name, float(good)) for name, good in zip(questions, right, strict=True)]
    digest = digest_bytes(path.read_bytes())
    scored = ScoreHeader(SCORER_VERSION, fingerprint, digest, spec, spec)
    write_scores(SavedScores(folder / SCORES / path.name, scored, tuple(made), questions, replies=path))


def _row(name: str, score: float) -> ScoreRow:
    return ScoreRow(
        id=name, rotation=0, epoch=0, stage="", prompt_set="paper", outcome="right" if score else "wrong", status="ok",
        score=score, official=score, strict=score, followed=True, extracted="A", official_extracted="A", delta_2=score,
        cost_usd=0.001, latency_s=1.0, tokens=900.0,
    )  # fmt: skip


def _vote(folder: Path) -> tuple[float, float]:
    """(processor seconds, peak MB) of the command."""
    command = [sys.executable, "-m", "vgbench_gen.cli", "vote", str(folder), "--no-audit", "--workers", "1", "--json"]
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise subprocess.CalledProcessError(child.returncode, command)
    return used.ru_utime + used.ru_stime, used.ru_maxrss / 1024
