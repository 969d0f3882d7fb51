"""A benchmark from a package outside the repository, found by its entry point, goes through every verb that asks."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from vgbench_gen.evaluation.base import benchmarks
from vgbench_gen.store.pictures import encode_jpeg

ROOT = Path(__file__).resolve().parents[2]
N = 8

# --- what somebody writes who has yes/no claims about pictures in a file of JSON lines

BENCHMARK = """
import json
from vgbench_gen.evaluation.base import Benchmark, benchmarks
from vgbench_gen.evaluation.layouts import LayoutColumn, TableLayout, of_source
from vgbench_gen.evaluation.item_source import ItemSource, make_item
from yesno.scoring import YesNoRules

NAME = "Claims"
OURS = of_source(NAME)


@benchmarks.register("claims")
class ClaimsBenchmark(Benchmark):
    scoring = YesNoRules()
    layouts = (TableLayout("claims", "Claims", "All claims.", (LayoutColumn("Overall", OURS),), OURS),)

    def open(self, path, images=None):
        rows = list(map(json.loads, (path / "claims.jsonl").read_text().splitlines()))
        return ItemSource(NAME, path, [
            make_item(
                row["id"], benchmark=NAME, task="claim", question_type="judgment", question=row["claim"],
                answer=row["answer"], images=[row["image"]], source="photos", scene_id=row["image"], index=k,
            )
            for k, row in enumerate(rows)
        ], {row["image"]: path / row["image"] for row in rows})
"""
RULES = '''
from vgbench_gen.evaluation.answers.official import OfficialScore
from vgbench_gen.evaluation.scoring import ScoringRules


class YesNoRules(ScoringRules):
    names = ("Claims",)

    def official(self, case, response):
        """The published script looks at the very first word."""
        first = (response or "?").split()[0].strip(".").capitalize()
        return OfficialScore(first, float(first == case.truth))
'''
RUN = """
import json, sys
from vgbench_gen.cli.main import main
for arguments in json.loads(sys.argv[1]):
    print("::", *arguments[:1], main(arguments), flush=True)
"""


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """A folder in which the package lies as pip lays it down."""
    site = tmp_path / "site"
    (site / "yesno").mkdir(parents=True)
    (site / "yesno" / "__init__.py").write_text("")
    (site / "yesno" / "claims.py").write_text(BENCHMARK)
    (site / "yesno" / "scoring.py").write_text(RULES)
    info = site / "yesno-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: yesno\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[vgbench_gen.benchmarks]\nclaims = yesno.claims\n")
    return site


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "claims"
    folder.mkdir()
    rng = np.random.default_rng(0)
    lines = []
    for k in range(N):
        (folder / f"{k}.jpg").write_bytes(encode_jpeg(rng.integers(0, 255, (32, 32, 3)).astype(np.uint8)))
        claim = f"Is the chair left of the lamp in picture {k}?"
        lines.append({"id": f"c{k}", "claim": claim, "answer": ("Yes", "No")[k % 2], "image": f"{k}.jpg"})
    (folder / "claims.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return folder


def run(site: Path, code: str, *arguments: str) -> str:
    paths = os.pathsep.join([str(site), str(ROOT)])
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, env=os.environ | {"PYTHONPATH": paths}
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def test_it_goes_through_every_verb(installed: Path, data: Path, tmp_path: Path) -> None:
    own = ["--benchmark", "claims"]
    out = tmp_path / "export"
    models = [f"baseline:{name}" for name in ("truth", "noisy?accuracy=0&size=72B")]
    asked = [part for model in models for part in ("--model", model)]
    verbs = [
        ["models"],
        ["eval", str(data), *own, *asked],
        ["compare", str(data), *own, "--json"],
        ["compare", str(data), *own],
        ["vote", str(data), *own, *asked, "--wrong", "1", "--large", "1", "--json"],
        ["export", str(data), *own, "--to", "lmms-eval", "--out", str(out)],
    ]
    said = run(installed, RUN, json.dumps(verbs))
    ended = [line.split()[1:] for line in said.splitlines() if line.startswith("::")]
    assert ended[:4] == [["models", "0"], ["eval", "0"], ["compare", "0"], ["compare", "0"]], said
    assert ended[5:] == [["export", "0"]], said
    told = json.loads(said.split(":: eval 0")[1].split(":: compare")[0])
    by_name = {one["spec"]: one for one in told["models"]}
    assert by_name["baseline:truth"]["sane"] == by_name["baseline:truth"]["official"] == 1
    assert by_name[models[1]]["outcomes"]["wrong"] == N
    # Its own table stands in the report.
    tables = {table["key"]: table for table in json.loads((data / "scores/report/tables.json").read_text())["tables"]}
    truth = next(line for line in tables["claims"]["lines"] if line["name"] == "baseline:truth")
    assert truth["cells"]["Overall"]["value"] == 1
    assert truth["cells"]["Overall"]["n"] == N
    # Votes are kept, and hard questions are named by their ids; nobody's dataset is written.
    report = json.loads((data / "votes" / "report.json").read_text())
    assert report["questions"] == report["hard"] == N
    assert set((data / "votes" / "chosen.txt").read_text().split()) <= {f"c{k}" for k in range(N)}
    assert not data.with_name("claims-hard").exists()
    # The export scores by the package's own rules, without the package and without ours.
    grade = (
        "from vgbench_scorer import grade; import sys\n"
        "case = dict(benchmark='Claims', question_type='judgment', truth='Yes', question='Is it?')\n"
        "found = grade(case, 'Well: yes.')\n"
        "assert (found['score'], found['official'], found['official_extracted']) == (1, 0, 'Well:'), found\n"
        "assert not [name for name in sys.modules if name.split('.')[0] in ('vgbench_gen', 'yesno')]\n"
    )
    done = subprocess.run([sys.executable, "-c", grade], cwd=out, env=os.environ | {"PYTHONPATH": str(out)})
    assert done.returncode == 0


def test_it_is_not_there_without_its_package() -> None:
    assert "claims" not in benchmarks.names()
