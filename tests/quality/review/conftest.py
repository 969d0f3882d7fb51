from __future__ import annotations

from dataclasses import replace

import pytest

from tests.quality.conftest import Rows
from vgbench_gen.store.dataset import Dataset, load
from vgbench_gen.store.media import MediaStore
from vgbench_gen.store.shards import write_items


@pytest.fixture(scope="session")
def dataset(rows: Rows, tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    """The rows of the small room, said to be of three scenes."""
    folder = tmp_path_factory.mktemp("reviewed")
    items = [replace(item, scene_id=f"room{n % 3}") for n, item in enumerate(rows.items)]
    write_items(folder / "items", items, rows.media)
    return load(folder)


@pytest.fixture
def media(rows: Rows) -> MediaStore:
    return rows.media
