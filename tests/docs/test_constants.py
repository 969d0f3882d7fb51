"""`docs/constants.md` is what its generator makes of the code, and no gate or reason is missing."""

from __future__ import annotations

import copy
import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs"


@pytest.fixture(scope="module")
def generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("constants", DOCS / "_ext" / "constants.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["constants"] = module
    spec.loader.exec_module(module)
    return module


def test_the_committed_page_is_current(generator: ModuleType) -> None:
    assert (DOCS / "constants.md").read_text(encoding="utf-8") == generator.render_markdown(generator.read_table()), (
        "run: python docs/_ext/constants.py > docs/constants.md"
    )


@pytest.mark.parametrize(
    ("name", "entry", "said"),
    [
        (
            "tasks.base.NO_SUCH",
            "a reason",
            "tasks.base.NO_SUCH: .*the code has no such constant",
        ),
        ("no_gate.at_all", "a reason", "no_gate.at_all: .*the code has no such constant"),
        ("text.lint.MAX_DECIMALS", "", "text.lint.MAX_DECIMALS: needs one row with a reason"),
        ("pair.overlap_min", None, "no row for the gates .'pair.overlap_min'"),
        ("track.gap_min_d", "twice", "track.gap_min_d: needs one row"),  # it stands in its own section
    ],
)
def test_a_row_without_constant_or_reason_is_refused(
    generator: ModuleType, name: str, entry: str | None, said: str
) -> None:
    stated = copy.deepcopy(generator.read_table())
    if entry is None or name.startswith("text."):
        for table in stated.values():
            table.pop(name, None)
    if entry is not None:
        stated["Frames"][name] = entry
    with pytest.raises(LookupError, match=said):
        generator.render_markdown(stated)


def test_values_and_reasons_are_those_of_the_code(generator: ModuleType) -> None:
    assert (
        generator.read_constant("scenes.plausible.RANGES.image side")[0]
        == generator.importlib.import_module("vgbench_gen.scenes.plausible").RANGES["image side"]
    )
    value, text = generator.read_gates()["depth.near_m"]
    assert (value, text) == (0.4, "The least depth in meters; structured light and phone LiDAR see nothing nearer.")
    assert generator.read_constant("tasks._registration.RATIO_MAX") == (
        0.8, "nearest over second nearest descriptor (Lowe 2004)"
    )  # fmt: skip
