"""Shared fixtures. Real captures are found through VGBENCH_CAPTURES; tests that need them skip where it is unset."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def captures() -> Path:
    """Folder with the real camera captures (scannet/, scannetpp/, ca1m/, wildrgbd/)."""
    value = os.environ.get("VGBENCH_CAPTURES", "")
    if not value or not Path(value).is_dir():
        pytest.skip("no real captures here: set VGBENCH_CAPTURES to their folder")
    return Path(value)
