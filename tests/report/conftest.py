from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.browser import open_page
from tests.report.gallery_data import Looked, write_looked, write_verdicts
from tests.shared import recall_once
from vgbench_gen.report.gallery import make_gallery

__all__ = ["open_page"]


@pytest.fixture(scope="session")
def looked(tmp_path_factory: pytest.TempPathFactory) -> Looked:
    """A dataset to look at; never to be written into."""
    return recall_once(tmp_path_factory, "looked", write_looked)


@pytest.fixture(scope="session")
def site(looked: Looked, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The dataset with verdicts, and its gallery; the folder of the dataset."""
    folder = tmp_path_factory.mktemp("site") / "set"
    shutil.copytree(looked.folder, folder)
    write_verdicts(folder, looked)
    make_gallery(folder)
    return folder
