"""More targets: what others ask and answer, what agents did and how they are set up, and facts."""

from __future__ import annotations

import json
from contextlib import suppress
from functools import partial
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from openpyxl import Workbook

from tests.agent.cores import step, without_processes
from tests.evaluation.benchmarks import mmsi_files, test_rover, test_salbench
from tests.evaluation.test_spatialscore import file_of
from tests.evaluation.test_spatialscore import row as published
from tests.fuzz.verbs import COUNTED, FINE, REFUSED, BrokenPromiseError, Target, run_verb
from tests.importers.source_files import photo
from tests.kills.__main__ import build_few, write_built
from tests.publish.exported import items_of, written
from tests.publish.test_logs import predictions, sample
from vgbench_gen.agent.setup import load_servers, load_setup
from vgbench_gen.core.errors import ConfigError, VGBenchError
from vgbench_gen.core.json_text import parse_json
from vgbench_gen.evaluation.base import Source, benchmarks, read_questions
from vgbench_gen.evaluation.trace_log import TraceLog
from vgbench_gen.pipeline.redraw import RedrawSettings, redraw
from vgbench_gen.store.dataset import load

LIST = "dataset/SpatialScore.json"
HALF = {"image": "image-0", "bbox": [0, 0, 0.5, 0.5]}
REPLIES = {"item0000": "B", "item0001": "No", "item0003": "2.5 m", "item0005": None}


def worst(*outcomes: str) -> str:
    """The outcome that says most."""
    return max(outcomes, key=(FINE, COUNTED, REFUSED).index)


# --- benchmarks as they are published


def write_spatialscore(data: Path) -> None:
    rows = [published(k, "MMVP", "Yes") for k in range(4)]
    folder = file_of(data, rows).parent / "photos"
    folder.mkdir()
    for k in range(4):
        (folder / f"{k}.jpg").write_bytes(photo(str(k)))


def write_mmsi(data: Path) -> None:
    mmsi_files.write(data, [mmsi_files.row(k) for k in range(6)])


def use_benchmark(name: str, where: str, case: Path) -> str:
    """Every row is a question or is told of; then a model is asked and its replies are scored."""
    path = case / "data" / where
    source = benchmarks[name].open(path)
    items, notes = list(read_questions(source)), list(getattr(source, "notes", ()))
    if len(items) < count_rows(path) and not notes:
        raise BrokenPromiseError(f"only {len(items)} of {count_rows(path)} rows came, without a word")
    told = COUNTED if notes else FINE
    for item in items:
        for k in range(len(item.images)):
            with suppress(VGBenchError):
                source.image(item, k)
    if name == "rover":  # its replies are images, which no baseline draws
        return told
    named = ["--benchmark", name, "--replies", str(case / "out")]
    asked = run_verb("eval", str(path), *named, "--model", "baseline:constant")
    return worst(told, asked, run_verb("compare", str(path), *named) if asked == FINE else FINE)


def count_rows(path: Path) -> int:
    """Rows of a list of JSON, or of the tables directly below; 0 where that is neither."""
    if path.is_file():
        with suppress(ValueError):  # where a reader has refused rows, it may have done so by its own rules
            rows = parse_json(path.read_bytes())
            return len(rows) if isinstance(rows, list) else 0
        return 0
    return sum(pq.read_metadata(table).num_rows for table in path.glob("*.parquet"))


def write_samples(data: Path) -> None:
    """What a judge of images is shown."""
    data.mkdir()
    lines = []
    for k in range(3):
        (data / f"{k}.png").write_bytes(test_rover.png(k))
        lines.append({"sample_id": f"science_temporal_{k}", "original_image": f"{k}.png", "generated_image": "0.png",
                      "prompt": "Show it later.", "think_output": "It grows.", "keywords": "growth",
                      "target_description": "taller"})  # fmt: skip
    (data / "samples.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))


def use_samples(case: Path) -> str:
    judge = case / "out/judge.jsonl"
    judge.parent.mkdir()
    judge.write_text(json.dumps({"match": "", "reply": '{"reasoning_visual_score": 4}', "times": 0}) + "\n")
    given = ["--samples", str(case / "data/samples.jsonl"), "--metrics", "reasoning_visual", "--concurrency", "1"]
    given += ["--scores", str(case / "out/s.jsonl"), "--judge", f"scripted:{judge}"]
    return run_verb("eval", "--benchmark", "rover", *given)


# --- logs of other programs


def write_set(data: Path) -> Source:
    data.mkdir(parents=True, exist_ok=True)
    return written(data / "set")


def write_lmms(data: Path) -> None:
    source = write_set(data)
    folder = data / "log" / "org__model"
    folder.mkdir(parents=True)
    lines = [sample(item, [REPLIES[item.id]]) for item in items_of(source) if item.id in REPLIES]
    (folder / "1_samples_vgbench_set.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    (folder / "1_results.json").write_text(json.dumps({"model_name": "org/model", "config": {"gen_kwargs": "a=1"}}))


def write_predictions(data: Path) -> None:
    rows = predictions(write_set(data), {name: reply or "" for name, reply in REPLIES.items()})
    (data / "log").mkdir()
    (data / "log/model_vgbench_set.json").write_text(json.dumps(rows))
    lines = ["\t".join(rows[0]), *("\t".join('"' + str(cell).replace('"', '""') + '"' for cell in row.values())
                                   for row in rows)]  # fmt: skip
    (data / "log/model_vgbench_set.tsv").write_text("\n".join(lines) + "\n")
    book = Workbook()
    for row in ([*rows[0]], *([*row.values()] for row in rows)):
        book.worksheets[0].append(row)
    book.save(data / "log/model_vgbench_set.xlsx")


def use_log(program: str, case: Path) -> str:
    logs = [case / "data/log"] if program == "lmms-eval" else sorted((case / "data/log").glob("model_*.*"))
    verbs = [["compare", str(case / "data/set"), "--from", program, "--replies", str(log)] for log in logs]
    return worst(*(run_verb(*verb, "--as", f"log:{k}") for k, verb in enumerate(verbs)), FINE)


# --- agents


def write_traces(data: Path) -> None:
    """A dataset that an agent was asked about, with a trace and a crop for each reply."""
    written(data)
    core = data.parent / f"core-{data.parent.name}.jsonl"
    lines = [{"match": 'rect_px": [', "reply": step("Terminate", answer="<answer>(A)</answer>")},
             {"match": "", "reply": step("Crop", **HALF), "times": 0}]  # fmt: skip
    core.write_text("".join(json.dumps(line) + "\n" for line in lines))
    with pytest.MonkeyPatch.context() as patch:
        without_processes.__wrapped__(patch)  # type: ignore[attr-defined]
        run_verb("eval", str(data), "--model", f"agent:react+scripted:{core}?tools=none")
    core.unlink()
    (log,) = (data / "replies").glob("*.jsonl")
    if not list(TraceLog(log).walk()):
        raise BrokenPromiseError("no trace was written")


def use_traces(case: Path) -> str:
    """Tables and pages, and traces as training rows."""
    data, out = str(case / "data"), case / "out"
    verbs = (["compare", data, "--out", str(out / "report")],
             ["export", data, "--to", "trajectories", "--out", str(out / "rows")])  # fmt: skip
    return worst(*(run_verb(*verb) for verb in verbs))


SETUP = """
[defaults]
device = "cpu"

[LocalizeObjects]
detector = "IDEA-Research/grounding-dino-base"

[remote.lab]
url = "http://127.0.0.1:8400"
token_env = "LAB_TOKEN"
"""


def write_setup(data: Path) -> None:
    data.mkdir()
    (data / "setup.toml").write_text(SETUP)


def use_setup(case: Path) -> str:
    path = case / "data/setup.toml"
    try:
        load_setup(path)
        load_servers(path)
    except ConfigError as error:
        if len(str(error).splitlines()) != 1:  # what cannot be printed is left out where it is printed
            raise BrokenPromiseError(f"a refusal of several lines: {str(error)!r}") from error
        raise
    return FINE


# --- facts


def use_facts(case: Path) -> str:
    """Options drawn anew from the facts, and the build gone on with."""
    data, outcome = case / "data", FINE
    try:
        redraw(data / "out", RedrawSettings({"default": 1.0}, 1), case / "out" / "new")
    except VGBenchError:
        outcome = REFUSED
    build_few(data)
    return outcome if len(load(data / "out")) else REFUSED


MORE_TARGETS = (
    Target(
        "spatialscore",
        write_spatialscore,
        partial(use_benchmark, "spatialscore", "dataset/SpatialScore.json"),
        "",
        stays=True,
    ),
    Target("mmsi", write_mmsi, partial(use_benchmark, "mmsi", ""), ""),
    Target("salbench", test_salbench.write, partial(use_benchmark, "salbench", ""), ""),
    Target("rover tasks", test_rover.write_tasks, partial(use_benchmark, "rover", ""), ""),
    Target("rover samples", write_samples, use_samples, ""),
    Target("log of lmms-eval", write_lmms, partial(use_log, "lmms-eval"), "log"),
    Target("log of vlmevalkit", write_predictions, partial(use_log, "vlmevalkit"), "log", stays=True),
    Target("traces", write_traces, use_traces, "replies"),
    Target("setup of agents", write_setup, use_setup, "", stays=True),
    Target("facts", write_built, use_facts, "out/facts"),
)
