"""Options that a model names, from a server on loopback: what survives, what it costs, and what a kill loses."""

from __future__ import annotations

import json
import math
import os
import re
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.backends.server import Play, Seen, reply, serving, wait_until
from tests.pipeline.same_bytes import small_recipe
from vgbench_gen.cli.main import main
from vgbench_gen.core.rng import rng_for
from vgbench_gen.quality.verify import verify_item, verify_set
from vgbench_gen.store.dataset import load
from vgbench_gen.store.provenance import read_manifest

NAMED = ("camera_parameters", "homography_to_matrix", "metric_depth", "object_distance", "relative_pose")
CONCURRENCY = 3


def plausible(seen: Seen) -> Play:
    """What a good model would say: values all over the range it was told."""
    rng = rng_for(seen.number, "model")
    text = seen.text
    values: list[Any]
    if "rotation vector" in text:
        turns, shifts = rng.uniform(-30, 30, (16, 3)), rng.uniform(-0.8, 0.8, (16, 3))
        values = [[*map(float, a.round(1)), *map(float, t.round(2))] for a, t in zip(turns, shifts, strict=True)]
    elif "about its centre" in text:
        ends = np.array(re.findall(r"from (-?\d+\.\d+) to (-?\d+\.\d+)", text), dtype=np.float64)
        values = rng.uniform(ends[:, 0], ends[:, 1], (16, 2)).round(2).tolist()
    else:
        found = re.search(r"from (\d+(?:\.\d+)?) to (\d+(?:\.\d+)?)", text)
        assert found is not None
        low, high = map(float, found.groups())
        values = [round(low * math.exp((k + rng.random()) / 16 * math.log(high / low)), 2) for k in range(16)]
    return reply(json.dumps(values))


def arguments(dataset: Path, out: Path, url: str) -> list[str]:
    tasks = [part for task in (*NAMED, "point_tracking") for part in ("--task", task)]
    options = ["--strategy", "llm", "--seed", "4", "--out", str(out), "--model", f"vllm:{url}#m", "--workers", "1"]
    return [
        "distractors", str(dataset), *options, *tasks,
        "--concurrency", str(CONCURRENCY), "--allow-unchanged", "--json",
    ]  # fmt: skip


def test_a_killed_run_goes_on_where_it_was(
    reference: tuple[Path, dict[str, str]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def slowly(seen: Seen) -> Play:
        return replace(plausible(seen), delay_s=0.05)

    out = tmp_path / "named"
    with serving(slowly) as server:
        line = arguments(reference[0], out, server.url)
        child = subprocess.Popen([sys.executable, "-m", "vgbench_gen.cli", *line], stdout=subprocess.DEVNULL)
        wait_until(lambda: server.counts()["requests"] >= 6)
        os.kill(child.pid, signal.SIGKILL)
        child.wait()
        assert not out.exists()
        before = server.counts()["requests"]
        assert main(line) == 0
        report = json.loads(capsys.readouterr().out)
        total = server.counts()["requests"]
        # All that were answered before count as asked; what was under way at the kill is asked again.
        asked = report["words"]["replies"]["readable"]
        assert asked > before
        assert total <= asked + CONCURRENCY
        assert main(line) == 0
        again = json.loads(capsys.readouterr().out)
        assert server.counts()["requests"] == total
        assert again["fingerprint"] == report["fingerprint"]
    words, items = report["words"], load(out)
    assert words["survived"] > 0
    assert words["refused"]["options_are_images"] > 0
    assert words["questions"] == words["survived"] + sum(words["refused"].values())
    new = [item for item in items if item.strategy == "llm"]
    assert {item.task for item in new} <= set(NAMED)
    assert len(new) == sum(report["new"].values())
    for item in new:
        assert {d.strategy for d in item.distractors} == {"llm"}
        assert all(d.key.startswith("llm:") for d in item.distractors)
        assert all(d.separation >= 1 - 1e-9 for d in item.distractors)  # margins are met up to rounding
    gates = small_recipe().gates
    assert not verify_set(items)
    assert not [p for i in new for p in verify_item(i, [items.image_bytes(i, k) for k in range(len(i.images))], gates)]
    manifest = read_manifest(out)
    assert not manifest["redrawn"]["headline"]
    assert manifest["recipe"]["strategy"] == "default"  # nobody can ask more of the facts by this strategy


@pytest.mark.parametrize("text", ["no", "[[1, 2]]", '{"answer": 3}'])
def test_nonsense_costs_nothing_but_the_requests(
    reference: tuple[Path, dict[str, str]], tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str
) -> None:
    with serving(lambda seen: reply(text)) as server:
        assert main(arguments(reference[0], tmp_path / "x", server.url)) == 1
    assert not json.loads(capsys.readouterr().out)["new"]
    assert not (tmp_path / "x").exists()
