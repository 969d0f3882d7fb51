"""Sources fetched from a Hub on loopback."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import vgbench_gen
from tests.importers import source_files
from tests.publish.hub_server import TOKEN, Fault, Hub, hub_server
from tests.publish.hub_state import Blob, Repo
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


def test_what_the_hub_does_not_give_is_said_in_one_line(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    from huggingface_hub import constants

    def said(name: str) -> str:
        with pytest.raises(DatasetError) as refused:
            find_place(importers[name], None)
        assert "\n" not in str(refused.value)
        assert len(str(refused.value)) < 240
        return str(refused.value)

    assert re.search(
        r"MMVP \(lmms-lab-eval/MMVP on the Hub\): found no download: .* status 404;.*log in|Log in", said("mmvp")
    )
    for status, remedy in ((403, "Accept its terms"), (401, "hf auth login"), (503, "Run it again later")):
        hub.faults = [Fault("GET", status, times=50)]
        text = said("realworldqa")
        assert f"status {status}; expected its files" in text
        assert remedy in text
        assert "--from FOLDER" in text
    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")
    text = said("realworldqa")
    assert "does not answer (" in text
    assert "Check the connection" in text
