"""Every figure of every table is the one that was measured, to the last digit on the machine that measured it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.evaluation.golden_boards import FILE, NAMES, list_golden
from tests.golden.machine import here

GOLDEN = json.loads(FILE.read_text("utf-8"))


@pytest.mark.parametrize("name", NAMES)
def test_every_figure_is_the_same(name: str, tmp_path: Path) -> None:
    found = list_golden(name, tmp_path)
    if here() == GOLDEN["machine"]:
        assert found == GOLDEN[name]
    else:
        assert without_digests(found) == approximate(without_digests(GOLDEN[name]))


def without_digests(value: Any) -> Any:
    """A tree without digests of texts, in which a last digit may round otherwise."""
    if isinstance(value, dict):
        kept = {name: one for name, one in value.items() if name not in ("digests", "files", "scores", "vote")}
        return {name: without_digests(one) for name, one in kept.items()}
    return [without_digests(one) for one in value] if isinstance(value, list) else value


def approximate(value: Any) -> Any:
    """A tree whose numbers are compared in six digits."""
    if isinstance(value, dict):
        return {name: approximate(one) for name, one in value.items()}
    if isinstance(value, list):
        return [approximate(one) for one in value]
    return pytest.approx(value, rel=1e-6, abs=1e-6) if isinstance(value, float) else value
