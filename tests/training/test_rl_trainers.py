"""verl, EasyR1 and TRL themselves keep every row of an export, do with damaged rows what is noted, and train on it.

Each runs in the environment that `tools/trainers/NAME.txt` lists, below the folder VGBENCH_TRAINERS.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from tests.publish.exported import written
from tests.store.examples import make_item, textured
from tests.training.damage_easyr1 import damage_easyr1
from tests.training.damage_trl import CHANCE, GRPO, damage_trl
from tests.training.damage_verl import damage_verl
from tests.training.damaged import Damage, Record, write_records
from vgbench_gen.evaluation.base import Source, benchmarks
from vgbench_gen.evaluation.options import AskOptions
from vgbench_gen.publish.export import export
from vgbench_gen.store.media import MediaStore
from vgbench_gen.store.pictures import encode_jpeg
from vgbench_gen.store.shards import write_items

pytestmark = [pytest.mark.harness, pytest.mark.timeout(900)]
ROOT = Path(__file__).resolve().parents[2]
ENVIRONMENTS = Path(os.environ.get("VGBENCH_TRAINERS", ROOT))
KEEPING = {"verl": ["max_prompt_length=4096"], "easyr1": ["max_prompt_length=4096"], "trl": ["max_length=null"]}
IDS = [f"item{k:04}" for k in range(8)]
TWO_IMAGES = 5  # place of a row
FATES = ("altered", "dropped", "raised")


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Source:
    return written(tmp_path_factory.mktemp("built") / "set")


def consume(script: str, *arguments: object) -> list[Any]:
    """The lines of JSON that a script prints in its trainer's environment."""
    place = ENVIRONMENTS / f".venv-train-{script.partition('_')[2]}"
    if not (place / ".made").exists():
        pytest.skip(f"no {place.name} here; `make trainers` makes it where the packages can be had")
    kept = {name: value for name, value in os.environ.items() if name in ("PATH", "HOME", "LANG", "TMPDIR")}
    command = [str(place / "bin" / "python"), str(ROOT / "tests/training/consumers" / f"{script}.py")]
    done = subprocess.run(
        [*command, *map(str, arguments)],
        env=kept | {"HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=800,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith('{"')]


def made(source: Source, to: str, folder: Path) -> Path:
    return export(source, to, folder / to, AskOptions(prompt_set="final_line")).path


@pytest.mark.parametrize("family", ["qwen2.5-vl", "qwen3-vl"])
@pytest.mark.parametrize("to", KEEPING)
def test_every_row_is_kept(source: Source, to: str, family: str, tmp_path: Path) -> None:
    (found,) = consume(f"read_{to}", made(source, to, tmp_path), *KEEPING[to], f"family={family}")
    assert found["kept"] == IDS
    assert [found[fate] for fate in FATES] == [{}, {}, {}]


def test_grpo_of_trl_reads_the_same_file(source: Source, tmp_path: Path) -> None:
    (found,) = consume("read_trl", made(source, "trl", tmp_path), "trainer=grpo")
    assert found["kept"] == IDS
    assert not found["raised"]


def lay(damages: Sequence[Damage], folder: Path) -> Iterator[Path]:
    for k, damage in enumerate(damages):
        write_records(folder / f"{k}" / "data" / "train.parquet", damage.records, damage.featured)
        yield folder / f"{k}"


def find_fate(found: Any) -> str:
    return next((fate for fate in FATES if found[fate]), "kept" if found["kept"] else "none")


@pytest.mark.parametrize(
    ("to", "damage", "settings", "others"),
    [
        ("verl", damage_verl, [], {}),
        ("verl", damage_verl, ["filter_overlong_prompts=false"], {"dropped": "raised"}),
        ("easyr1", damage_easyr1, [], {}),
        ("trl", damage_trl, [], {}),
        ("trl", damage_trl, ["trainer=grpo"], GRPO),
    ],
    ids=["verl", "verl-unfiltered", "easyr1", "trl-sft", "trl-grpo"],
)
def test_damaged_rows_fare_as_we_say(
    source: Source,
    to: str,
    damage: Callable[[Record], Iterator[Damage]],
    settings: list[str],
    others: dict[str, str],
    tmp_path: Path,
) -> None:
    rows = pq.read_table(made(source, to, tmp_path) / "data" / "train.parquet").to_pylist()
    damages = [one for one in damage(rows[TWO_IMAGES]) if not (others is GRPO and one.name in CHANCE)]
    found = consume(f"read_{to}", *lay(damages, tmp_path / "laid"), *settings)
    wanted = {one.name: others.get(one.name, others.get(one.outcome, one.outcome)) for one in damages}
    assert dict(zip(wanted, map(find_fate, found), strict=True)) == wanted


def test_twenty_steps_of_grpo_move_the_reward(tmp_path: Path) -> None:
    media = MediaStore(tmp_path / "media")
    picture = media.put(encode_jpeg(textured(128, 112, 0)), "jpg")
    items = [make_item(k, [picture], answer="ABCD"[k % 4], question=f"How deep is {k}?") for k in range(16)]
    write_items(tmp_path / "items", items, media)
    (found,) = consume("train_trl", made(benchmarks["vgbench"].open(tmp_path), "trl", tmp_path / "out"))
    total, of_package = found["total"], found["reward"]
    assert len(total) == 20
    assert sum(total[-5:]) > 2 * sum(total[:5])
    assert len(set(of_package)) > 1  # the export's own reward arrives
    assert max(of_package) > 0
