"""A backend from another package answers by its name, and what it cannot do costs that model alone."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.contracts.outside import install, started
from tests.contracts.test_example_benchmark import BENCHMARK, write

PROGRAM = """\
import base64, json, sys
prompt = json.load(sys.stdin)
assert base64.b64decode(prompt["images"][0])[:4] == b"\\x89PNG"
print("Yes" if "Is it 0" in prompt["text"] else "No")
"""

pytestmark = pytest.mark.timeout(600)


def test_a_program_answers_by_its_name(tmp_path: Path) -> None:
    for example in ("backend", "benchmark"):
        install(example, tmp_path / "site")
    (tmp_path / "answer.py").write_text(PROGRAM)
    (tmp_path / "fails.py").write_text("raise SystemExit(3)")
    data = write(tmp_path)
    models = [f"program:{sys.executable} {tmp_path / name}" for name in ("answer.py", "fails.py")]
    asked = ["eval", *BENCHMARK, "--data", data, "--retries", "0", "--model"]
    with started(tmp_path / "site") as vgbench:
        listed, answered, failed, missing, scored = vgbench(
            ["models"], [*asked, models[0]], [*asked, models[1]], [*asked, "program:no-such-program"],
            ["compare", data, *BENCHMARK, "--json"],
        )  # fmt: skip
    assert "program:COMMAND" in listed.out
    assert answered.status == 0, answered.errors
    assert (failed.status, missing.status) == (1, 1)
    assert "ended with status 3" in failed.out + failed.errors
    assert "Name a program." in missing.out + missing.errors
    (own,) = [one for one in scored.json()["models"] if one["outcomes"]["failed"] < one["scored"]]
    assert (own["scored"], own["outcomes"]["right"], own["outcomes"]["wrong"]) == (6, 3, 3)  # four truths are yes
