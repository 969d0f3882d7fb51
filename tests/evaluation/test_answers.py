"""Awkward replies, type by type, and what we read in them."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from vgbench_gen.evaluation.scoring import Case, score

CASES = Path(__file__).parent / "cases"
FEWEST = {"multi_choice": 60, "judgment": 60, "length": 60, "count": 60, "number": 60, "text": 10}


def groups(name: str) -> list[dict[str, Any]]:
    return list(tomllib.loads((CASES / f"{name}.toml").read_text("utf-8"))["group"])


def case_of(group: dict[str, Any]) -> Case:
    return Case(
        group.get("benchmark", "SpatialScore"),
        group["question_type"],
        group["truth"],
        group.get("options", {}),
        group.get("question", ""),
    )


def rows() -> Iterator[Any]:
    for name in FEWEST:
        for group in groups(name):
            for reply, expected in group["cases"]:
                yield pytest.param(group, reply, expected, id=f"{name}: {group['name']}: {reply[:40]!r}")


@pytest.mark.parametrize(("group", "reply", "expected"), list(rows()))
def test_a_reply_is_read_as_a_person_would(group: dict[str, Any], reply: str, expected: object) -> None:
    found = score(case_of(group), reply)
    if isinstance(expected, str) and expected.startswith("!"):
        assert (found.reading.value, found.reading.status) == (None, expected[1:])
        assert found.score == 0
    else:
        assert found.reading.status == "ok"
        assert found.reading.value == (expected if isinstance(expected, str) else pytest.approx(expected, rel=1e-5))
