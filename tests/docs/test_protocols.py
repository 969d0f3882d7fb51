"""The values that `docs/protocols.md` states are those of the code."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from vgbench_gen.evaluation import metrics
from vgbench_gen.evaluation.answers import clean, outcomes
from vgbench_gen.evaluation.benchmarks.mmsi import MMSI
from vgbench_gen.evaluation.benchmarks.mmsi import questions as mmsi
from vgbench_gen.evaluation.benchmarks.rover import judge as rover_judge
from vgbench_gen.evaluation.benchmarks.rover import judge_replies
from vgbench_gen.evaluation.benchmarks.salbench import labels
from vgbench_gen.evaluation.benchmarks.salbench import questions as salbench
from vgbench_gen.evaluation.options import AskOptions
from vgbench_gen.importers import _report
from vgbench_gen.text.render import find_templates_root

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGE = (DOCS / "protocols.md").read_text("utf-8")
SECTIONS = dict(re.findall(r"^##+ (.+)\n((?:(?!##).*\n)*)", PAGE, re.MULTILINE))
NOT_QUESTIONS = {"check"}  # asks whether a model can be used


def tokens(spec: str) -> int | None:
    return AskOptions().settings(spec).max_tokens


(P3_ROWS,) = set(salbench.ROWS.values())
MRA_POINTS = len({metrics.compute_mean_relative_accuracy(100 + error / 10, 100) for error in range(1000)}) - 1
STATED = [
    ("Cleaning a reply", f"first {clean.MAX_HEAD_CHARS:,} and the last {clean.MAX_TAIL_CHARS:,} characters"),
    ("Lengths with units", f"within a factor of {metrics.DELTA:g} (exclusive"),
    ("Lengths with units", f"Our own tables also use {metrics.HEADLINE_DELTA:g}:"),
    ("Numbers without units", f"the share of {MRA_POINTS} tolerances"),
    ("Judge scores", f"a whole number from {judge_replies.LOW} to {judge_replies.HIGH}."),
    ("VGBench prompts", f"the temperature is {AskOptions().temperature:g},"),
    ("VGBench prompts", f"{tokens('openai:gpt-4o'):,} tokens (the script allows 1,024)"),
    ("VGBench prompts", f"{tokens('openai:o3'):,} from reasoning models"),
    ("VGBench prompts", f"{AskOptions().video_frames} evenly spaced frames"),
    ("MMSI-Bench", f"{mmsi.ROWS:,} questions"),
    ("MMSI-Bench", f"may have {MMSI.max_tokens:,} tokens"),
    ("SalBench", f"Each configuration with P3 images (synthetic patterns) has {P3_ROWS:,} rows"),
    ("ROVER", f"{rover_judge.MAX_TOKENS:,} tokens, {rover_judge.MAX_RETRIES} attempts per metric"),
]


@pytest.mark.parametrize(("section", "words"), STATED)
def test_a_stated_value_is_that_of_the_code(section: str, words: str) -> None:
    assert words in " ".join(SECTIONS[section].split())


def test_the_labels_of_salbench_are_those_of_the_code() -> None:
    page = " ".join((DOCS / "salbench.md").read_text("utf-8").split())
    assert f"({', '.join(labels.P3)})" in page
    assert f"(also {', '.join(label for label in labels.O3 if label not in labels.P3)})" in page


def test_a_factor_of_two_is_off_by_too_much() -> None:
    assert not metrics.is_within_factor(metrics.DELTA, 1.0)  # "exclusive"


def test_the_statuses_and_outcomes_are_those_of_the_code() -> None:
    readings = (outcomes.NOTHING, outcomes.AMBIGUOUS, outcomes.TRUNCATED, outcomes.REFUSAL, outcomes.API_ERROR)
    stated = re.findall(r"^\| `(\w+)` \|[^|]+\| `(\w+)`", SECTIONS["Outcomes"], re.MULTILINE)
    assert stated == [("ok", outcomes.grade_outcome(outcomes.make_answer("B"), 1.0))] + [
        (reading.status, outcomes.grade_outcome(reading, 0.0)) for reading in readings
    ]


def test_every_prompt_set_is_described() -> None:
    named = set(re.findall(r"`(\w+)`", "".join(re.findall(r"^- ([^:]+):", SECTIONS["VGBench prompts"], re.MULTILINE))))
    sets = {path.stem for path in (find_templates_root() / "prompts").glob("*.toml")} - NOT_QUESTIONS
    assert sets == named
    assert f"- `{AskOptions().prompt_set}`: the default" in SECTIONS["VGBench prompts"]


def test_the_published_sizes_are_those_of_the_code() -> None:
    stated = " ".join(SECTIONS["Columns of the tables"].split())
    for name, size in _report.PUBLISHED["category"].items():
        assert re.search(rf"\b{name} {size:,}[,.]", stated), name
    assert f"{_report.PUBLISHED['all']['questions']:,} questions" in SECTIONS["SpatialScore and VGBench"]


def test_every_link_within_the_page_leads_to_a_section() -> None:
    anchors = {re.sub(r"[^a-z0-9 -]", "", head.lower()).replace(" ", "-") for head in SECTIONS}
    assert set(re.findall(r"\]\(#([^)]+)\)", PAGE)) <= anchors
