"""Questions of each kind of answer, and the replies of the corpora as the scorer's tests keep them."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from tests.evaluation.answers.test_corpus import BY_KIND, CORPUS, case_of
from vgbench_gen.evaluation.scoring import Case

METERS = {"A": "1.52 meters", "B": "2.31 meters", "C": "0.87 meters", "D": "3.05 meters"}
MARKS = {"A": "the blue square", "B": "the orange circle", "C": "the green region", "D": "it cannot be determined"}
CHOICE = Case("VGBench", "multi-choice", "B", METERS, "How far is the table from the camera?")
CLAIM = Case("VGBench", "judgment", "Yes", {}, "Is it true that the mean depth of the region is 2.10 meters?")
DEPTH = Case("VGBench", "open-ended", "2.30 meters", {}, "What is the mean depth of the marked region, in meters?")
ANGLE = Case("VGBench", "open-ended", "42.5 degrees", {}, "What is the vertical field of view, in degrees?")
COUNT = Case("VGBench", "open-ended", "2", {}, "How many chairs are there?")
AREA = Case("VGBench", "open-ended", "12.5 m2", {}, "What is the floor area in square meters?")


def write(case: Case, **more: Any) -> str:
    """The solution of a case."""
    return json.dumps(asdict(case) | more)


def read_corpora() -> list[tuple[Case, str]]:
    """All replies of the corpora to questions, each with its question."""
    rows = [json.loads(line) for file in (CORPUS, BY_KIND) for line in file.read_text("utf-8").splitlines()]
    return [(case_of(row), row["reply"]) for row in rows if row["kind"] != "judge"]
