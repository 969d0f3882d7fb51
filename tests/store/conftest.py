from __future__ import annotations

from pathlib import Path

import pytest

from tests.store.examples import textured
from vgbench_gen.store.media import MediaStore
from vgbench_gen.store.pictures import encode_jpeg


@pytest.fixture
def media(tmp_path: Path) -> MediaStore:
    return MediaStore(tmp_path / "media")


@pytest.fixture
def jpegs(media: MediaStore) -> list[str]:
    """Names of four small JPEGs in the store."""
    return [media.put(encode_jpeg(textured(64 + 8 * k, 48, k)), "jpg") for k in range(4)]
