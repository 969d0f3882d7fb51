"""Shared fixtures. Real captures are found through VGBENCH_CAPTURES, posed recordings through VGBENCH_RECORDINGS; tests
that need them skip where it is unset."""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

from tests.shared import make_once

if TYPE_CHECKING:
    from playwright.sync_api import Browser

# Whoever collects thousands of tests makes a million objects that all stay: looking for garbage among them, now and
# while tests run, costs more than all imports together.
gc.disable()


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.enable()


# A scene that meets a defect of ours costs a user that scene; here it must fail the test. Workers inherit it.
os.environ["VGBENCH_RAISE_DEFECTS"] = "1"

# A shell has what it starts in the background ignore these, and programs that tests start would inherit that.
for number, handler in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, handler)

# What a property says must not depend on how busy the machine is, nor on which examples a run happens to draw.
settings.register_profile("vgbench", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("vgbench")


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Headless Chromium; the test skips where none is installed."""
    from tests.browser import run_browser

    yield from run_browser()


@pytest.fixture(scope="session")
def captures() -> Path:
    """Folder with the real camera captures (scannet/, scannetpp/, ca1m/, wildrgbd/)."""
    value = os.environ.get("VGBENCH_CAPTURES", "")
    if not value or not Path(value).is_dir():
        pytest.skip("no real captures here: set VGBENCH_CAPTURES to their folder")
    return Path(value)


@pytest.fixture(scope="session")
def recordings() -> Path:
    """Folder with posed recordings in the layouts of others (real/, written/)."""
    value = os.environ.get("VGBENCH_RECORDINGS", "")
    if not value or not Path(value).is_dir():
        pytest.skip("no recordings here: set VGBENCH_RECORDINGS to their folder")
    return Path(value)


@pytest.fixture(scope="session")
def raw_room(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder with the rendered room as one CA-1M tar and one WildRGB-D scene; never to be written into."""

    def write(root: Path) -> None:
        # Imported on use: most tests need neither the room nor OpenCV.
        from tests.room_writer import write_ca1m, write_wildrgbd
        from tests.scene_factory import room_scene

        write_ca1m(root, room_scene(seed=1, frames=16, width=400, height=300))
        write_wildrgbd(root, room_scene(seed=3, frames=8, width=320, height=240, dataset="wildrgbd"))

    return make_once(tmp_path_factory, "raw", write)
