"""Sources fetched from a Hub on loopback."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import vgbench_gen
from tests.importers import source_files
from tests.publish.hub_server import TOKEN, Blob, Fault, Hub, Repo, hub_server
from vgbench_gen.cli.main import main
from vgbench_gen.core.errors import DatasetError
from vgbench_gen.importers._dataset import find_place
from vgbench_gen.importers.base import importers


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Hub]:
    """A Hub that has CV-Bench, with a file that no importer wants."""
    from huggingface_hub import constants

    source = source_files.cvbench(tmp_path / "source")
    files = {path.name: Blob(path.read_bytes(), False) for path in source.glob("*.parquet")}
    with hub_server() as server:
        repo = Repo(private=False)
        repo.add("main", files | {"weights.bin": Blob(b"large", False)})
        server.repos["nyu-visionx/CV-Bench"] = repo
        monkeypatch.setattr(constants, "ENDPOINT", server.url)
        template = constants.HUGGINGFACE_CO_URL_TEMPLATE.replace(constants._HF_DEFAULT_ENDPOINT, server.url)
        monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)
        monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
        monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", True)
        monkeypatch.setenv("HF_TOKEN", TOKEN)
        yield server


def test_a_source_comes_from_the_hub_and_only_what_is_read(hub: Hub, tmp_path: Path) -> None:
    assert main(["import", "cvbench", "--out", str(tmp_path / "hub")]) == 0
    assert main(["import", "cvbench", "--from", str(tmp_path / "source"), "--out", str(tmp_path / "copy")]) == 0
    one, other = (vgbench_gen.load(tmp_path / name) for name in ("hub", "copy"))
    assert [item.id for item in one] == [item.id for item in other]
    assert hub.count(r"test_2d\.parquet") > 0
    assert hub.count("weights") == 0


def test_what_the_hub_does_not_give_is_named(hub: Hub) -> None:
    with pytest.raises(DatasetError, match=r"MMVP: found no download"):
        find_place(importers["mmvp"], None)
    hub.faults = [Fault("GET", 403, times=50)]
    with pytest.raises(DatasetError, match=r"RealworldQA: found no download.*hf auth login"):
        find_place(importers["realworldqa"], None)
