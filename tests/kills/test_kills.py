"""Whatever is killed goes on to the same bytes and leaves nothing behind.

`make test-all` kills each verb at up to 20 of its writes and 5 times at random, some 200 times in all; `make test`
kills two of them a few times. Builds are killed more often at random in `tests/pipeline/test_same_bytes.py`.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.kills.__main__ import VERBS

ROOT = Path(__file__).parents[2]


def kill(verb: str, folder: Path, at_writes: int, at_random: int) -> dict[str, Any]:
    command = [sys.executable, "-m", "tests.kills", verb, str(folder), str(at_writes), str(at_random)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return dict(json.loads(done.stdout))


@pytest.mark.parametrize("verb", ["pull", "eval"])
def test_a_few_kills_leave_the_same_bytes_and_no_leftovers(tmp_path: Path, verb: str) -> None:
    """What a killed `pull` had copied stayed for ever, as did the beginning of a log."""
    found = kill(verb, tmp_path, 3, 0)
    assert found["kills"] == 3
    assert not found["wrong"]


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("verb", sorted(VERBS))
def test_killed_at_every_write_and_at_random(tmp_path: Path, verb: str) -> None:
    found = kill(verb, tmp_path, 20, 5)
    assert found["kills"] >= min(found["writes"], 20)
    assert not found["wrong"]
