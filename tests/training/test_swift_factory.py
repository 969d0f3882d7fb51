"""ms-swift and LLaMA-Factory themselves keep every row of an export, and do with defective rows what is noted."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from tests.evaluation.test_saved import built
from tests.publish.exported import written
from tests.publish.test_trajectories import asked
from tests.quality.conftest import Rows, all_rows, room
from tests.training import damage_llama_factory, damage_ms_swift
from tests.training.damage import write_damaged
from vgbench_gen.evaluation.base import benchmarks
from vgbench_gen.evaluation.options import AskOptions
from vgbench_gen.publish.export import export
from vgbench_gen.store.shards import write_items
from vgbench_gen.training.families import FAMILIES
from vgbench_gen.training.options import TrainOptions

__all__ = ["all_rows", "asked", "room"]
pytestmark = [pytest.mark.harness, pytest.mark.timeout(1500)]  # they read three files a second
ROOT = Path(__file__).resolve().parents[2]
ENVIRONMENTS = Path(os.environ.get("VGBENCH_TRAINERS", ROOT))
BOTH = {"ms-swift": damage_ms_swift, "llama-factory": damage_llama_factory}
PATCH_PX = {"qwen2.5-vl": 14, "qwen3-vl": 16}


def judged(trainer: str, folders: Sequence[Path], work: Path, *options: str) -> list[dict[str, Any]]:
    """What the trainer's own code does with the rows of folders."""
    python = ENVIRONMENTS / f".venv-train-{trainer}" / "bin" / "python"
    if not python.exists():
        pytest.skip(f"no .venv-train-{trainer} here; `make trainers` makes it where the packages can be had")
    script = ROOT / "tests/training/consumers" / f"read_{trainer.replace('-', '_')}.py"
    kept = {name: value for name, value in os.environ.items() if name in ("PATH", "HOME", "LANG", "TMPDIR")}
    command = [str(python), str(script), *map(str, folders), "--work", str(work), *options]
    done = subprocess.run(command, env=kept | {"OMP_NUM_THREADS": "1"}, capture_output=True, text=True, timeout=1400)
    assert done.returncode == 0, done.stderr[-4000:]
    return [json.loads(line) for line in done.stdout.splitlines()]


def rows_of(folder: Path) -> list[dict[str, Any]]:
    (path,) = folder.glob("*.jsonl")
    return [json.loads(line) for line in path.read_text("utf-8").split("\n")[:-1]]


@pytest.mark.parametrize("family", PATCH_PX)
@pytest.mark.parametrize("trainer", BOTH)
def test_every_row_is_kept_at_the_size_of_its_family(trainer: str, family: str, tmp_path: Path) -> None:
    options, train = AskOptions(prompt_set="final_line"), TrainOptions(family=family)
    folder = export(written(tmp_path / "set"), trainer, tmp_path / "out", options, train=train).path
    (found,) = judged(trainer, [folder], tmp_path / "work", "--family", family, "--own")
    rows, patch_px = rows_of(folder), PATCH_PX[family]
    assert found["kept"] == [row["id"] for row in rows]
    assert not found["altered"] | found["dropped"] | found["raised"]
    for row in rows:
        sizes = [FAMILIES[family].resize(Image.open(folder / path).size) for path in row["images"]]
        assert found["grids"][row["id"]] == [[1, height // patch_px, width // patch_px] for width, height in sizes]


@pytest.mark.parametrize("trainer", BOTH)
def test_tool_turns_are_kept_whole(trainer: str, all_rows: Rows, tmp_path: Path) -> None:
    write_items(tmp_path / "set" / "items", all_rows.items, all_rows.media)
    source = benchmarks["vgbench"].open(tmp_path / "set")
    train = TrainOptions(rationale="short")
    folder = export(source, "tool-turns", tmp_path / "out", AskOptions(prompt_set="final_line"), train=train).path
    (found,) = judged(trainer, [folder], tmp_path / "work", "--own")
    assert found["kept"] == [row["id"] for row in rows_of(folder)]
    assert not found["altered"] | found["dropped"] | found["raised"]


def test_traces_of_agents_are_kept_by_ms_swift(asked: Path, tmp_path: Path) -> None:
    folder = export(built(asked), "trajectories", tmp_path / "out", AskOptions()).path
    rows = [row | {"id": f"{row['id']} of {row['kind']}"} for row in rows_of(folder)]
    (path,) = folder.glob("*.jsonl")
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    (found,) = judged("ms-swift", [folder], tmp_path / "work")
    assert found["kept"] == [row["id"] for row in rows]
    assert not found["dropped"] | found["raised"]
    assert set(found["altered"].values()) <= {"an image has another size than by its processor"}  # its own limits


@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize("trainer", BOTH)
def test_a_defective_row_fares_as_is_noted(trainer: str, own: bool, tmp_path: Path) -> None:
    options = AskOptions(prompt_set="final_line")
    sound = export(written(tmp_path / "set"), trainer, tmp_path / "out", options).path
    row, *others = sorted(rows_of(sound), key=lambda row: len(row["images"]) != 2)
    folders, damages = [], BOTH[trainer].damage(row, sound, own=own)
    for k, _ in enumerate(damages):
        folder = shutil.copytree(sound, tmp_path / f"{k:02}")
        line = BOTH[trainer].damage(row, folder, own=own)[k].line  # with paths of its own folder
        write_damaged(sound, folder, line, others[:3])
        folders.append(folder)
    wrong = []
    for one, found in zip(
        damages, judged(trainer, folders, tmp_path / "work", *(["--own"] if own else [])), strict=True
    ):
        reasons = found["altered"] | found["dropped"] | found["raised"]
        fate = next(name for name in ("altered", "dropped", "raised", "kept") if row["id"] in found[name])
        spared = len(found["kept"]) == 3 + (fate in ("kept", "altered"))
        wanted = one.outcome
        if (fate, spared) != (wanted.fate, not wanted.whole) or wanted.says not in reasons.get(row["id"], ""):
            wrong.append((one.defect, wanted, fate, reasons.get(row["id"])))
    assert not wrong
