"""Agents on what others published and on an imported set: asked, scored, compared, their traces shown and exported."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest

from tests.agent.cores import plan, step, without_processes
from tests.evaluation.benchmarks import mmsi_files
from tests.evaluation.test_spatialscore import file_of
from tests.evaluation.test_spatialscore import row as published
from tests.importers import source_files
from vgbench_gen.cli.main import main
from vgbench_gen.evaluation.base import benchmarks
from vgbench_gen.evaluation.runner import evaluate
from vgbench_gen.evaluation.saved import score_source
from vgbench_gen.evaluation.trace_log import TraceLog
from vgbench_gen.importers._dataset import import_source
from vgbench_gen.importers._files import Place

__all__ = ["without_processes"]

pytestmark = pytest.mark.usefixtures("without_processes")
SLOW = pytest.mark.slow
HALF = {"image": "image-0", "bbox": [0, 0, 0.5, 0.5]}


def write_spatialscore(folder: Path) -> tuple[Path, str]:
    choice = {"form": "multi-choice", "question": "Which?\n(A) x\n(B) y"}
    rows = [published(0, "MMVP", "Yes"), published(1, "cvbench", "(B)", **choice), published(2, "BLINK", "No")]
    path = file_of(folder, rows)
    (path.parent / "photos").mkdir()
    for k in range(3):
        (path.parent / f"photos/{k}.jpg").write_bytes(source_files.photo(str(k)))
    return path, "spatialscore"


def write_mmsi(folder: Path) -> tuple[Path, str]:
    return mmsi_files.write(folder, [mmsi_files.row(k) for k in range(6)]), "mmsi"


def write_import(folder: Path) -> tuple[Path, str]:
    import_source("cvbench", Place(source_files.cvbench(folder / "cvbench")), folder / "out")
    return folder / "out", "vgbench"


@pytest.mark.parametrize(
    ("kind", "mode"), [("react", "sane"), ("plan-execute", "official"), pytest.param("react", "official", marks=SLOW)]
)
@pytest.mark.parametrize("write", [write_spatialscore, write_mmsi, write_import])
def test_an_agent_answers_and_every_row_counts(write: object, mode: str, kind: str, tmp_path: Path) -> None:
    data, benchmark = write(tmp_path / "data")  # type: ignore[operator]
    lines: list[dict[str, Any]] = [
        {"match": "[BEGIN OF TOOL EXECUTION", "reply": "It shows (B)."},
        {"match": 'rect_px": [', "reply": step("Terminate", answer="B") if kind == "react" else "<answer>B</answer>"},
        {"match": "", "reply": step("Crop", **HALF) if kind == "react" else plan(("Crop", HALF)), "times": 0},
    ]
    if kind == "react" and mode == "official":  # its summariser has the last word
        lines.insert(0, {"match": "Generate a final REASONING", "reply": "<answer>B</answer>"})
    core = tmp_path / "core.jsonl"
    core.write_text("".join(json.dumps(line) + "\n" for line in lines))
    run = evaluate(data, f"agent:{kind}+scripted:{core}?tools=none&mode={mode}", benchmark=benchmark)
    assert run.complete
    source = benchmarks[benchmark].open(data)
    (saved,) = score_source(source)
    asked = sum(1 for _ in source.rows())
    assert len(saved.rows) == asked > 1
    right = sum(row.outcome == "right" for row in saved.rows)
    assert 0 < right < asked
    traces = [line.trace for line in TraceLog(run.path).walk()]
    assert len(traces) == asked
    for trace in traces:
        assert [one["name"] for one in trace["steps"] if one["step"] == "tool"] == ["Crop"]
        assert not trace["failures"]
    named = ["--benchmark", benchmark]
    main(["compare", str(data), *named, "--out", str(tmp_path / "report")])
    assert len(list((tmp_path / "report" / "traces").glob("*.html"))) == asked - right
    for page in (tmp_path / "report" / "traces").glob("*.html"):
        shown = re.findall(r'<image id="[^"]+" href="([^"]+)"', page.read_text())
        assert len(shown) >= 2, "the question's image, and the crop"
        assert all((page.parent / unquote(address)).is_file() for address in shown)
    table = json.loads((tmp_path / "report" / "tables.json").read_text())["tables"]
    failures = next(one for one in table if one["key"] == "agent-failures")
    assert failures["lines"][0]["cells"]["Not judged"]["value"] == pytest.approx((asked - right) / asked)
    main(["export", str(data), *named, "--to", "trajectories", "--out", str(tmp_path / "rows")])
    (file,) = (tmp_path / "rows").glob("*.jsonl")
    rows = [json.loads(line) for line in file.read_text("utf-8").splitlines()]
    assert len(rows) == right
    for row in rows:
        assert all((tmp_path / "rows" / path).is_file() for path in row["images"])
