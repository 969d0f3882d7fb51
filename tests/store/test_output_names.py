"""A folder whose name is no UTF-8: pyarrow cannot write below it, which is said before any work is done."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from vgbench_gen.core.errors import DatasetError
from vgbench_gen.core.surroundings import explain_surroundings
from vgbench_gen.pipeline.build import build
from vgbench_gen.pipeline.derived import check_target
from vgbench_gen.pipeline.preflight import check_storage
from vgbench_gen.pipeline.recipe import load_recipe
from vgbench_gen.pipeline.subset import require_new
from vgbench_gen.store.files import check_name, fill_folder
from vgbench_gen.store.provenance import BuildLock


@pytest.fixture(params=[b"\xca\xfd", b"a\xff/b", b"caf\xe9"])
def odd(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    folder = tmp_path / os.fsdecode(request.param)
    folder.mkdir(parents=True)
    return folder


ENTRANCES: list[Callable[[Path], object]] = [
    check_name,
    lambda out: BuildLock(out).__enter__(),
    lambda out: fill_folder(out).__enter__(),
    require_new,
    lambda out: check_target(out, "reworded", ""),
    lambda out: build(load_recipe("default"), [], out),
]


@pytest.mark.parametrize("enter", ENTRANCES, ids=range(len(ENTRANCES)))
def test_it_is_refused_before_any_work(odd: Path, enter: Callable[[Path], object]) -> None:
    with pytest.raises(DatasetError, match=r"found a name that is no UTF-8.*--out") as caught:
        enter(odd / "out")
    assert str(caught.value).isprintable()
    assert not list(odd.iterdir())


def test_the_doctor_says_so_and_scans_may_lie_there(odd: Path, tmp_path: Path) -> None:
    check = check_storage(odd / "out")
    assert (check.verdict, "no UTF-8" in check.found) == ("FAIL", True)
    with BuildLock(odd, for_tables=False):
        pass
    check_name(tmp_path / "ünïcode \U0001f600")


def test_reading_there_is_no_damage_of_the_file(odd: Path, tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": [1]}), tmp_path / "a.parquet")
    (tmp_path / "a.parquet").rename(odd / "a.parquet")
    with pytest.raises(UnicodeEncodeError) as caught:
        pq.read_table(odd / "a.parquet")
    told = explain_surroundings(caught.value)
    assert told is not None
    assert "no UTF-8" in told
    assert told.isprintable()
