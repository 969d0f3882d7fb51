"""Exports read by axolotl, unsloth, Megatron energon and verifiers themselves: all rows are kept, damaged ones are not.

Each runs in the environment that `tools/trainers/NAME.txt` lists, below the folder VGBENCH_TRAINERS.
"""

from __future__ import annotations

import io
import json
import os
import shutil
import subprocess
import tarfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.publish.exported import written
from tests.training import damage_axolotl, damage_unsloth, damage_verifiers, damage_webdataset
from vgbench_gen.evaluation.base import Source
from vgbench_gen.evaluation.options import AskOptions
from vgbench_gen.publish.export import export

pytestmark = [pytest.mark.harness, pytest.mark.timeout(900)]
ROOT = Path(__file__).resolve().parents[2]
ENVIRONMENTS = Path(os.environ.get("VGBENCH_TRAINERS", ROOT))
IDS = {f"item{k:04}" for k in range(8)}
BAD = "bad"  # the id of a damaged row
PLACE, SHARD_PLACE = 5, 6  # of a row with two images, and of a sample that holds two of its own
FATES = ("kept", "altered", "dropped", "raised")
Fates = dict[str, Any]


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Source:
    return written(tmp_path_factory.mktemp("built") / "set")


def consume(trainer: str, environment: str, folders: Sequence[Path], *settings: str) -> list[Fates]:
    """What becomes of the rows of each folder."""
    place = ENVIRONMENTS / f".venv-train-{environment}"
    if not (place / ".made").exists():
        pytest.skip(f"no {place.name} here; `make trainers` makes it where the package can be had")
    kept = {name: value for name, value in os.environ.items() if name in ("PATH", "HOME", "LANG", "TMPDIR")}
    script = ROOT / "tests" / "training" / "consumers" / f"read_{trainer}.py"
    command = [str(place / "bin" / "python"), str(script), *map(str, folders), *settings]
    done = subprocess.run(command, env=kept, capture_output=True, text=True, timeout=800, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    return [json.loads(line) for line in done.stdout.splitlines()]


def made(source: Source, to: str, folder: Path) -> Path:
    return export(source, to, folder, AskOptions(prompt_set="final_line")).path


def find_fate(found: Fates) -> str:
    """Of the damaged row; `file` if its neighbours share it."""
    if len(found["raised"]) > 1:
        assert not found["kept"]
        return "file"
    assert {*found["altered"], *found["dropped"], *found["raised"]} <= {BAD}  # its neighbours are well
    assert len(found["kept"]) > 1
    return [name for name in FATES if BAD in found[name]][-1]


def lay_rows(whole: Path, damages: Any, folder: Path) -> Iterator[tuple[str, str, Path]]:
    """(defect, expected fate, export of three rows with one damaged) of every defect."""
    lines = (whole / "train.jsonl").read_text("utf-8").splitlines()
    for k, (defect, record, fate) in enumerate(damages(json.loads(lines[PLACE]), whole)):
        place = folder / f"{k}"
        shutil.copytree(whole, place)
        rows = [lines[0], json.dumps(record | {"id": BAD}), lines[1]]
        (place / "train.jsonl").write_text("\n".join(rows) + "\n", encoding="utf-8")
        yield defect, fate, place


def lay_shards(whole: Path, folder: Path) -> Iterator[tuple[str, str, Path]]:
    """The same of tar shards, with all samples."""
    samples: dict[str, dict[str, bytes]] = {}
    with tarfile.open(whole / "data" / "000000.tar") as shard:
        for member in shard:
            file = shard.extractfile(member)
            assert file is not None
            samples.setdefault(member.name.partition(".")[0], {})[member.name] = file.read()
    key = f"{SHARD_PLACE:08}"
    good, name = samples[key], f"{key}.json"
    good[name] = json.dumps(json.loads(good[name]) | {"id": BAD}).encode()
    for k, (defect, files, fate) in enumerate(damage_webdataset.damages(good, f"{0:08}")):
        place = folder / f"{k}"
        shutil.copytree(whole, place)
        with tarfile.open(place / "data" / "000000.tar", "w") as shard:
            for path, data in [item for one in (samples | {key: files}).values() for item in sorted(one.items())]:
                member = tarfile.TarInfo(path)
                member.size = len(data)
                shard.addfile(member, io.BytesIO(data))
        yield defect, fate, place


@pytest.mark.parametrize(
    ("to", "environment"),
    [("axolotl", "axolotl"), ("unsloth", "unsloth"), ("webdataset", "energon"), ("verifiers", "verifiers")],
)
def test_all_rows_are_kept(source: Source, to: str, environment: str, tmp_path: Path) -> None:
    (found,) = consume(to, environment, [made(source, to, tmp_path / to)])
    assert set(found["kept"]) == IDS
    assert [found[name] for name in FATES[1:]] == [{}, {}, {}]


@pytest.mark.parametrize(
    ("to", "damages"),
    [
        ("axolotl", damage_axolotl.damages),
        ("unsloth", damage_unsloth.damages),
        ("verifiers", damage_verifiers.damages),
    ],
)
def test_damaged_rows_fare_as_we_say(source: Source, to: str, damages: Any, tmp_path: Path) -> None:
    laid = list(lay_rows(made(source, to, tmp_path / "whole"), damages, tmp_path / "laid"))
    found = consume(to, to, [place for _, _, place in laid])
    assert {defect: find_fate(one) for (defect, _, _), one in zip(laid, found, strict=True)} == {
        defect: fate for defect, fate, _ in laid
    }


def test_damaged_samples_fare_as_we_say(source: Source, tmp_path: Path) -> None:
    laid = list(lay_shards(made(source, "webdataset", tmp_path / "whole"), tmp_path / "laid"))
    found = consume("webdataset", "energon", [place for _, _, place in laid])
    assert {defect: find_fate(one) for (defect, _, _), one in zip(laid, found, strict=True)} == {
        defect: fate for defect, fate, _ in laid
    }


@pytest.mark.parametrize(
    ("to", "setting", "fate"),
    [
        ("axolotl", "skip_prepare_dataset=false", "raised"),  # rows become tokens without images
        ("axolotl", 'chat_template="tokenizer_default"', "altered"),  # the question is learned
        ("axolotl", "sequence_len=64", "kept"),
        ("unsloth", "train_on_responses_only=false", "altered"),  # the question is learned
        ("unsloth", "resize=64", "altered"),  # images are shrunk
        ("unsloth", "max_seq_length=90", "altered"),  # the answer is cut off
        ("unsloth", "max_seq_length=null", "kept"),
    ],
)
def test_other_settings_do_what_the_readme_says(
    source: Source, to: str, setting: str, fate: str, tmp_path: Path
) -> None:
    more = ("dataset_num_proc=1",) if to == "axolotl" else ()
    (found,) = consume(to, to, [made(source, to, tmp_path / to)], setting, *more)
    fates = [name for name in FATES if "item0000" in found[name]]
    assert fates[-1] == fate
