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

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "protocols.md").read_text("utf-8")
SECTIONS = dict(re.findall(r"^##+ (.+)\n((?:(?!##).*\n)*)", PAGE, re.MULTILINE))
NOT_QUESTIONS = {"check"}  # asks whether a model can be used


def table(section: str) -> dict[str, str]:
    """First cell -> second cell of the tables in a section, without the code marks."""
    rows = re.findall(r"^\| ([^|]+) \| ([^|]+) \|", SECTIONS[section], re.MULTILINE)
    return {head.replace("`", ""): value.replace("`", "") for head, value in rows}


CODE = {
    ("Cleaning a reply", "characters kept of the beginning"): str(clean.MAX_HEAD_CHARS),
    ("Cleaning a reply", "characters kept of the end"): str(clean.MAX_TAIL_CHARS),
    ("Lengths with units", "tolerance of lengths"): str(metrics.DELTA),
    ("Lengths with units", "headline tolerance"): str(metrics.HEADLINE_DELTA),
    ("Lengths with units", "bounds included"): "inclusive" if metrics.is_within_factor(2.0, 1.0) else "strict",
    ("Numbers without units", "points of mean relative accuracy"): str(
        len({metrics.compute_mean_relative_accuracy(100 + error / 10, 100) for error in range(1000)}) - 1
    ),
    ("Judge scores", "lowest score"): str(judge_replies.LOW),
    ("Judge scores", "highest score"): str(judge_replies.HIGH),
    ("VGBench prompts", "temperature"): str(AskOptions().temperature),
    ("VGBench prompts", "tokens of an answer"): str(AskOptions().settings("openai:gpt-4o").max_tokens),
    ("VGBench prompts", "tokens of a reasoning model"): str(AskOptions().settings("openai:o3").max_tokens),
    ("VGBench prompts", "frames of a video"): str(AskOptions().video_frames),
    ("MMSI-Bench", "questions"): str(mmsi.ROWS),
    ("MMSI-Bench", "tokens"): str(MMSI.max_tokens),
    ("SalBench", "labels of P3"): ", ".join(labels.SPLITS["synthetic"]),
    ("SalBench", "labels of O3"): ", ".join(labels.SPLITS["natural"]),
    ("SalBench", "rows of each P3 configuration"): ", ".join(map(str, sorted(set(salbench.ROWS.values())))),
    ("ROVER", "tokens of the judge"): str(rover_judge.MAX_TOKENS),
    ("ROVER", "askings of one metric"): str(rover_judge.MAX_RETRIES),
}


@pytest.mark.parametrize(("section", "setting"), CODE, ids=lambda value: value)
def test_a_stated_value_is_that_of_the_code(section: str, setting: str) -> None:
    assert table(section)[setting] == CODE[section, setting]


def test_every_setting_on_the_page_is_held_to_the_code() -> None:
    stated = {
        (section, setting)
        for section, text in SECTIONS.items()
        for part in re.findall(r"^\| setting \|.*\n\|[-|]+\n((?:\|.*\n)+)", text, re.MULTILINE)
        for setting in re.findall(r"^\| ([^|]+) \|", part, re.MULTILINE)
    }
    # Held by the tests of the functions themselves: tests/evaluation/test_metrics.py, and of the judge's requests.
    elsewhere = {("Numbers without units", "first and last tolerance"), ("ROVER", "temperature of the judge")}
    assert stated - elsewhere == set(CODE)


def test_the_statuses_and_outcomes_are_those_of_the_code() -> None:
    readings = (outcomes.NOTHING, outcomes.AMBIGUOUS, outcomes.TRUNCATED, outcomes.REFUSAL, outcomes.API_ERROR)
    stated = re.findall(r"^\| `(\w+)` \|[^|]+\| `(\w+)`", SECTIONS["Outcomes"], re.MULTILINE)
    assert stated == [("ok", outcomes.grade_outcome(outcomes.make_answer("B"), 1.0))] + [
        (reading.status, outcomes.grade_outcome(reading, 0.0)) for reading in readings
    ]


def test_every_prompt_set_is_described() -> None:
    named = {name.strip() for cell in table("VGBench prompts") for name in cell.split(",")}
    sets = {path.stem for path in (find_templates_root() / "prompts").glob("*.toml")} - NOT_QUESTIONS
    assert sets <= named
    assert f"`{AskOptions().prompt_set}` | the default" in SECTIONS["VGBench prompts"]


def test_the_published_sizes_are_those_of_the_code() -> None:
    stated = table("Columns of the tables")
    for name, size in _report.PUBLISHED["category"].items():
        assert stated[name] == str(size)
    assert f"{_report.PUBLISHED['all']['questions']:,} questions" in SECTIONS["SpatialScore and VGBench"]


def test_every_link_within_the_page_leads_to_a_section() -> None:
    anchors = {re.sub(r"[^a-z0-9 -]", "", head.lower()).replace(" ", "-") for head in SECTIONS}
    assert set(re.findall(r"\]\(#([^)]+)\)", PAGE)) <= anchors
