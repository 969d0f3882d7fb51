"""What asking a whole dataset costs the client: our runner beside other programs', on a server that waits for nothing.

    python -m bench.eval_overhead BUILD [--number 28000] [--beside 1200] [--inspect PYTHON] [--lmms-eval PYTHON] \\
        [--vlmevalkit PYTHON]

The dataset is a build's rows over and over, with new ids, other words and small pictures. Each runner is a process of
its own, in an environment of its own where one is named, and gets what `vgbench export` writes for it. Processor time
of a request is the slope between two numbers of questions, so that starting up does not count; memory is the peak of
the larger one. Every runner shows so many connections as it is allowed (64).
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import cv2
import numpy as np

from bench.session import Session
from bench.table import Row, lines
from tests.backends.server import Apart, serving_apart
from vgbench_gen.core.rng import hash_stably
from vgbench_gen.core.types import Item
from vgbench_gen.store.dataset import Dataset, load
from vgbench_gen.store.media import MediaStore
from vgbench_gen.store.provenance import dataset_fingerprint, write_manifest
from vgbench_gen.store.shards import write_items

NUMBER, BESIDE, FEW = 28_000, 1_200, 200
CONCURRENCY = 64
_WIDTH_PX = 160
_KEY = "none-needed"
_SCORING_S = 20.0
_ROOT = Path(__file__).resolve().parents[1]
_START = str(_ROOT / "tests" / "publish" / "harness_main.py")
# A process is told the peak of the one it was forked from, so a small one stands between.
_METER = """\
import json, resource, subprocess, sys
code = subprocess.run(sys.argv[2:]).returncode
used = resource.getrusage(resource.RUSAGE_CHILDREN)
with open(sys.argv[1], "w") as file:
    json.dump({"cpu_s": used.ru_utime + used.ru_stime, "peak_mb": used.ru_maxrss / 1024}, file)
sys.exit(code)
"""
_SCORE = """\
import collections, json, pathlib, sys
from vgbench_gen.evaluation.base import benchmarks
from vgbench_gen.evaluation.saved import score_source
(saved,) = score_source(benchmarks["vgbench"].open(pathlib.Path(sys.argv[1])))
print(json.dumps([len(saved.rows), collections.Counter(row.outcome for row in saved.rows)]))
"""


@dataclass(frozen=True, slots=True)
class Used:
    """What one run of one runner took. requests: that the server saw."""

    cpu_s: float
    wall_s: float
    peak_mb: float
    requests: int


@dataclass(frozen=True, slots=True)
class Runner:
    """Somebody's program. command: with "{n}", "{url}", "{export}" and "{out}" filled in, in the export's folder."""

    name: str
    command: tuple[str, ...]
    target: str = ""
    variables: Mapping[str, str] | None = None

    def run(self, server: Apart, n: int, export: Path, out: Path) -> Used:
        """Ask `n` questions.

        Raises:
            CalledProcessError: it failed; the end of what it said is on standard error.
        """
        slots = {"n": str(n), "url": server.url, "export": str(export), "out": str(out)}
        command = [part.format_map(slots) for part in self.command]
        variables = {name: value.format_map(slots) for name, value in (self.variables or {}).items()}
        before = server.counts()["requests"]
        used = run_metered(command, export, variables)[0]
        return replace(used, requests=server.counts()["requests"] - before)


def run_metered(command: Sequence[str], folder: Path, variables: Mapping[str, str]) -> tuple[Used, bytes]:
    """What a command took, and what it printed."""
    with tempfile.TemporaryDirectory() as scratch:
        told, errors = Path(scratch, "used.json"), Path(scratch, "errors")
        began = time.perf_counter()
        with errors.open("wb") as said:
            done = subprocess.run(
                [sys.executable, "-S", "-c", _METER, str(told), *command],
                cwd=folder,
                env={**os.environ, **variables},
                stdout=subprocess.PIPE,
                stderr=said,
            )
        wall_s = time.perf_counter() - began
        if done.returncode:
            print((done.stdout + errors.read_bytes())[-3000:].decode(errors="replace"), file=sys.stderr)
            raise subprocess.CalledProcessError(done.returncode, command)
        return Used(wall_s=wall_s, requests=0, **json.loads(told.read_text())), done.stdout


def runners(pythons: Mapping[str, str]) -> Iterator[Runner]:
    """Ours, and those whose Python is named (lmms-eval, vlmevalkit, inspect)."""
    yield Runner(
        "vgbench",
        (sys.executable, "-m", "vgbench_gen.cli", "eval", "{export}", "--model", "vllm:{url}#bench", "--limit", "{n}",
         "--concurrency", str(CONCURRENCY), "--replies", "{out}"),
    )  # fmt: skip
    if python := pythons.get("inspect", ""):
        yield Runner(
            "inspect",
            (python, "-m", "inspect_ai", "eval", "vgbench_export.py", "--model", "openai-api/bench/bench",
             "--max-connections", str(CONCURRENCY), "--max-samples", str(CONCURRENCY), "--display", "none",
             "--log-dir", "{out}"),
            "inspect",
            {"BENCH_API_KEY": _KEY, "BENCH_BASE_URL": "{url}"},
        )  # fmt: skip
    if python := pythons.get("lmms-eval", ""):
        yield Runner(
            "lmms-eval",
            (python, _START, "lmms_eval", "--include_path", ".", "--tasks", "vgbench_export", "--model", "openai",
             "--model_args", f"model=bench,base_url={{url}},api_key={_KEY},num_concurrent={CONCURRENCY}",
             "--batch_size", "1", "--log_samples", "--output_path", "{out}"),
            "lmms-eval",
            {"OPENAI_API_KEY": _KEY, "OPENAI_API_BASE": "{url}", "HF_HUB_OFFLINE": "1", "HF_HOME": "{out}/hf"},
        )  # fmt: skip
    if python := pythons.get("vlmevalkit", ""):
        yield Runner(
            "VLMEvalKit",
            (python, _START, "run_vgbench.py", "--model", "bench", "--base-url", "{url}", "--work-dir", "{out}",
             "--api-nproc", str(CONCURRENCY)),
            "vlmevalkit",
            {"OPENAI_API_KEY": _KEY, "LMUData": "{out}/data"},
        )  # fmt: skip


def grown(dataset: Dataset, media: MediaStore, number: int, folder: Path) -> Path:
    """A dataset of `number` rows under `folder`: those of another over and over, in small pictures."""
    store, small = MediaStore(folder / "media"), dict[str, str]()
    # All rows before the first repeat, evenly over the dataset where fewer are wanted.
    places = np.linspace(0, len(dataset), min(number, len(dataset)), endpoint=False).astype(int)

    def shrunk(name: str) -> str:
        if name not in small:
            pixels = cv2.imdecode(np.frombuffer(media.get(name), np.uint8), cv2.IMREAD_COLOR)
            assert pixels is not None
            size = (_WIDTH_PX, max(1, round(_WIDTH_PX * pixels.shape[0] / pixels.shape[1])))
            encoded = cv2.imencode(".jpg", cv2.resize(pixels, size, interpolation=cv2.INTER_AREA))[1]
            small[name] = store.put(encoded.tobytes(), "jpg")
        return small[name]

    def items() -> Iterator[Item]:
        for n in range(number):
            turn, place = divmod(n, len(places))
            item = dataset[int(places[place])]
            names = [name for name in ("id", "group_id", "twin_id", "pair_id") if getattr(item, name)]
            new: dict[str, Any] = {name: hash_stably(getattr(item, name), str(turn), size=12) for name in names}
            # Other words, or the client would share the reply of a question that is under way.
            words = f"{item.question} (variant {'i' * (turn + 1)})" if turn else item.question
            yield replace(item, **new, index=n, question=words, images=tuple(map(shrunk, item.images)))

    with store.batch():
        for place in places:
            for name in dataset[int(place)].images:
                shrunk(name)
    write_items(folder / "items", items(), store)
    write_manifest(folder, {"fingerprint": dataset_fingerprint(load(folder))})
    return folder


def measured(build: Path, scratch: Path, number: int, beside: int, pythons: Mapping[str, str]) -> list[Row]:
    """Rows of the table: all of ours, and each of the others beside it."""
    source = grown(load(build), MediaStore(build / "media"), number, scratch / "export")
    found = []
    with serving_apart() as server:
        slopes: dict[str, float] = {}
        for runner in runners(pythons):
            try:
                few, more = (_asked(runner, server, n, source, scratch) for n in (FEW, beside))
            except subprocess.CalledProcessError:
                if runner.name == "vgbench":
                    raise
                print(f"{runner.name}: failed, see above; its rows are left out", file=sys.stderr)
                continue
            slopes[runner.name] = 1e3 * (more.cpu_s - few.cpu_s) / (more.requests - few.requests)
            told = f"{slopes[runner.name]:.2f} ms a request, from {few.requests} to {more.requests}; "
            told += f"{more.peak_mb:.0f} MB at most, {few.cpu_s:.1f} s for the first {few.requests} with starting up"
            if runner.name == "vgbench":
                ours = more
                whole = _asked(runner, server, number, source, scratch)
                each_ms = 1e3 * whole.cpu_s / whole.requests
                of_whole = f"{each_ms:.2f} ms a request with starting up; {whole.cpu_s:.0f} s of processor time"
                found += [
                    Row(f"asking {whole.requests:,} questions: memory", whole.peak_mb, "MB", of_whole),
                    Row(f"asking {more.requests:,} questions: memory", more.peak_mb, "MB", told),
                ]
            else:
                ratio = slopes["vgbench"] / slopes[runner.name]
                found += [
                    Row(f"request to a model: vgbench against {runner.name}", ratio, "x", told, at_most=1.0),
                    Row(f"memory: vgbench against {runner.name}", ours.peak_mb / more.peak_mb, "x", told, at_most=1.0),
                ]
    return [*found, *_scored(source, scratch)]


def _asked(runner: Runner, server: Apart, n: int, source: Path, scratch: Path) -> Used:
    out = scratch / f"out-{runner.name}-{n}"
    if not runner.target:
        return runner.run(server, n, source, out)
    export = scratch / f"{runner.target}-{n}" / "vgbench_export"
    command = [sys.executable, "-m", "vgbench_gen.cli", "export", str(source), "--to", runner.target]
    subprocess.run([*command, "--limit", str(n), "--out", str(export)], check=True, stdout=subprocess.DEVNULL)
    (out / "data").mkdir(parents=True, exist_ok=True)
    return runner.run(server, n, export, out)


def _scored(source: Path, scratch: Path) -> list[Row]:
    """Scoring all replies anew, and `vgbench compare` with the scores at hand: tables and pages; each in a process of
    its own."""
    replies = sorted(scratch.glob("out-vgbench-*/*.jsonl"), key=lambda path: path.stat().st_size)[-1]
    (source / "replies").mkdir(exist_ok=True)
    shutil.copyfile(replies, source / "replies" / "bench.jsonl")
    shutil.rmtree(source / "scores", ignore_errors=True)
    used, said = run_metered([sys.executable, "-c", _SCORE, str(source)], source, {})
    scored, outcomes = json.loads(said)
    told = f"{used.wall_s:.1f} s by the clock, {used.peak_mb:.0f} MB at most"
    found = [Row(f"scoring {scored:,} replies", used.cpu_s, "s", f"{told}; {outcomes}", at_most=_SCORING_S)]
    used, said = run_metered([sys.executable, "-m", "vgbench_gen.cli", "compare", str(source), "--json"], source, {})
    pages = len(list((source / "scores" / "report").glob("*.html")))
    told = f"{used.wall_s:.1f} s by the clock, {used.peak_mb:.0f} MB at most; {pages} pages"
    return [*found, Row(f"tables and pages of {scored:,} scores", used.cpu_s, "s", told, at_most=_SCORING_S)]


def rows(session: Session) -> list[Row]:
    """The part of `python -m bench`: ours alone, on a build of the session; others need environments of their own."""
    return measured(session.built(1).out, session.scratch / "overhead", NUMBER, BESIDE, {})


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(prog="bench.eval_overhead", description=__doc__)
    parser.add_argument("build", type=Path, help="folder that vgbench build made")
    parser.add_argument("--number", type=int, default=NUMBER)
    parser.add_argument("--beside", type=int, default=BESIDE, help="questions for the comparison")
    parser.add_argument("--scratch", default=None, help="where the dataset goes and is removed")
    for name in ("inspect", "lmms-eval", "vlmevalkit"):
        made = _ROOT / f".venv-{name}" / "bin" / "python"
        default = str(made) if made.is_file() else ""
        parser.add_argument(
            f"--{name}", default=default, metavar="PYTHON", help=f"that has {name} ({default or 'none'})"
        )
    given = vars(parser.parse_args())
    pythons = {name: given[name.replace("-", "_")] for name in ("inspect", "lmms-eval", "vlmevalkit")}
    with tempfile.TemporaryDirectory(prefix="vgbench-bench-", dir=given["scratch"]) as folder:
        for line in lines(measured(given["build"], Path(folder), given["number"], given["beside"], pythons)):
            print(line)


if __name__ == "__main__":
    main()
