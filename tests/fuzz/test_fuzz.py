"""Damaged inputs break no promise of `docs/security.md`; and the fuzzer would notice if they did."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.fuzz import structures
from tests.fuzz.mutations import mutate
from tests.fuzz.plain import BYTES, TEXT
from tests.fuzz.structures import OWN
from tests.fuzz.targets import write_tar

ROOT = Path(__file__).parents[2]
CASES = 56  # two of every target; `make fuzz` tries ten thousand


def run(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *command], cwd=ROOT, capture_output=True, text=True, check=False)


def test_damaged_inputs_break_no_promise() -> None:
    done = run("-m", "tests.fuzz", "--cases", str(CASES), "--seed", "1")
    assert done.returncode == 0, done.stdout + done.stderr[-2000:]
    *_, last = done.stdout.splitlines()
    counts = [int(cell) for cell in last.split(" | ")[1:]]
    assert counts[0] == CASES == sum(counts[1:4])
    assert min(counts[1:4]) > CASES // 20  # else the damage is so slight, or so great, that nothing is tried


# Targets that do what none may do, each in its own way.
BAD = """
import json, os, sys, time
from pathlib import Path
from tests.fuzz import runner, targets
from tests.fuzz.targets import HURT, SOUND, use_scenes, write_both, write_objects
from tests.fuzz.verbs import COUNTED, FINE, Target

def write(data):
    data.mkdir()
    (data / "a.txt").write_text("1 2 3")

def after_damage(act):
    return lambda case: FINE if (case / "data/a.txt").read_bytes() == b"1 2 3" else act(case) or FINE

def lose(case):
    found, targets.discover = targets.discover, lambda root, on_error: [
        ref for ref in found(root, on_error=on_error) if case.name == "loses" or SOUND in ref.path.parts]
    return use_scenes(case)

ways = {
    "raises": lambda case: {}["x"],
    "hoards": lambda case: b"x" * 500_000_000 and None,
    "maps": lambda case: bytearray(1 << 36) and None,
    "hangs": lambda case: time.sleep(1000),
    "waits": lambda case: time.sleep(1.5) or COUNTED,
    "spins": lambda case: sum(1 for _ in iter(int, 1)),
    "dies": lambda case: os.abort(),
    "escapes": lambda case: (case / "precious").write_text("mine") and None,
    "strews": lambda case: (case / "other").write_text("mine") and None,
}
all = [Target(name, write, after_damage(act), "", stays=True) for name, act in ways.items()]
all.append(Target("loses", write_both(write_objects), lose, HURT))
runner.MAX_PEAK_MB = 600
found = []
for number, (cpu_s, clock_s, *names) in enumerate(json.loads(sys.argv[2])):
    runner.MAX_S, runner.MAX_CLOCK_S = cpu_s, clock_s
    asked = [target for target in all if target.name in names]
    work = Path(sys.argv[1]) / str(number)
    work.mkdir()
    found += runner.run_cases(runner.make_cases(len(asked), 2, asked), work, asked)
print(json.dumps({r.case.target: [r.outcome, r.told] for r in found}))
"""


def test_the_fuzzer_notices_what_is_bad(tmp_path: Path) -> None:
    expected = {
        "raises": "unexpected exception",
        "hoards": "memory",
        "maps": "memory",
        "dies": "died",
        "escapes": "broken promise",
        "strews": "broken promise",
        "loses": "broken promise",
        "hangs": "time",
        "spins": "time",
        "waits": "rejected and counted",  # which is no work
    }
    endless = ("hangs", "spins", "waits")
    groups = [[300, 300, *(name for name in expected if name not in endless)]]
    groups += [[300, 2, "hangs"], [1, 300, "spins", "waits"]]
    done = run("-c", BAD, str(tmp_path), json.dumps(groups))
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert {name: outcome for name, (outcome, _) in found.items()} == expected
    assert "KeyError: 'x'" in found["raises"][1]
    assert "lost without a word" in found["loses"][1]
    assert found["hangs"][1] == "over 2 s by the clock"
    assert found["spins"][1] == "over 1 s of processor time"


def hold(folder: Path) -> dict[str, Any]:
    return {str(path.relative_to(folder)): path.is_file() and path.read_bytes() for path in sorted(folder.rglob("*"))}


def test_the_same_seed_gives_the_same_bytes(tmp_path: Path) -> None:
    for name in ("a", "b"):
        for k in range(40):
            data = tmp_path / name / str(k) / "data"
            data.mkdir(parents=True)
            (data / "x.json").write_text('{"a": [1, 2.5], "b": "text"}')
            (data / "x.toml").write_text("a = 1\n[b]\nc = [1]\n")
            (data / "x.bin").write_bytes(bytes(range(256)))
            mutate(data, np.random.default_rng(k), data.parent / "elsewhere", stays=True)
    assert hold(tmp_path / "a") == hold(tmp_path / "b")
    changed = [k for k in range(40) if hold(tmp_path / f"a/{k}/data") != hold(tmp_path / f"a/{(k + 1) % 40}/data")]
    assert len(changed) > 35


@pytest.mark.parametrize("damage", [*BYTES, *TEXT, *OWN.values()], ids=lambda damage: damage.__name__)
def test_every_damage_changes_something(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, damage: Any) -> None:
    monkeypatch.setattr(structures, "BLANKS_MB", (1,))
    samples = {"change_toml": b"a = 1\n[b]\nc = [1]\n", "change_json": b'{"a": [1, 2.5], "b": "text"}'}
    if damage.__name__ == "change_parquet":
        stream = io.BytesIO()
        pq.write_table(pa.Table.from_pylist([{"a": "x", "n": 1, "l": [0.5, 2.0], "s": {"b": b"1"}}] * 3), stream)
        sample = stream.getvalue()
    elif damage.__name__ == "change_eval":
        stream = io.BytesIO()
        with zipfile.ZipFile(stream, "w") as archive:
            for name in ("a.json", "b.json"):
                archive.writestr(name, samples["change_json"])
        sample = stream.getvalue()
    elif damage.__name__ == "change_tar":
        write_tar(tmp_path, 1)
        sample = next(tmp_path.glob("*.tar")).read_bytes()
    else:
        sample = samples.get(damage.__name__, b"".join(b"%d words and numbers\n" % k for k in range(100)))
    changed = [damage(sample, np.random.default_rng(k)) != sample for k in range(20)]
    assert sum(changed) >= 15
