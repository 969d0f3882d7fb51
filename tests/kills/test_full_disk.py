"""The tests of `full_disk.py`, verb by verb, each in a process that nobody has started threads in."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.kills.__main__ import VERBS

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("verb", sorted(VERBS))
def test_what_disturbs_a_verb_leaves_its_bytes(tmp_path: Path, verb: str) -> None:
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "no:xdist", "-k", verb]
    command += [f"--basetemp={tmp_path / 'tests'}", str(Path(__file__).with_name("full_disk.py"))]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]
    assert "4 passed" in done.stdout
