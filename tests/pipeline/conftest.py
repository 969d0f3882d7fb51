"""Raw scenes for builds: the rendered room in two layouts, made once per test process."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.room_writer import write_ca1m, write_wildrgbd
from tests.scene_factory import room_scene


@pytest.fixture(scope="session")
def raw_room(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder with one CA-1M tar and one WildRGB-D scene."""
    root = tmp_path_factory.mktemp("raw")
    write_ca1m(root, room_scene(seed=1, frames=16, width=400, height=300))
    write_wildrgbd(root, room_scene(seed=2, frames=8, width=320, height=240, dataset="wildrgbd"))
    return root
