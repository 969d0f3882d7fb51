"""Where an import may write: into nothing, or over an earlier import of the same source."""

from __future__ import annotations

from pathlib import Path

import pytest

import vgbench_gen
from tests.importers import source_files
from tests.publish.published import write_build
from vgbench_gen.core.errors import DatasetError
from vgbench_gen.importers import _dataset
from vgbench_gen.importers._dataset import assemble, find_place, find_places, import_source
from vgbench_gen.importers._files import Place
from vgbench_gen.importers.base import importers
from vgbench_gen.store import provenance


def held(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_nobodys_dataset_is_written_over(tmp_path: Path) -> None:
    place = Place(source_files.cvbench(tmp_path / "source" / "cvbench"))
    build = write_build(tmp_path / "build")
    (build / "replies").mkdir()
    (build / "replies" / "model.jsonl").write_text("{}\n")
    before = held(build)
    with pytest.raises(DatasetError, match=r"found a dataset that was not imported; .*import of CV-Bench.*--out"):
        import_source("cvbench", place, build)
    with pytest.raises(DatasetError, match=r"found other files \(items-00000"):
        import_source("cvbench", place, build / "items")
    with pytest.raises(DatasetError, match="not imported; expected nothing, or an earlier import of SpatialScore"):
        assemble(find_places(tmp_path / "source"), build)
    assert held(build) == before
    import_source("cvbench", place, tmp_path / "out")
    before = held(tmp_path / "out")
    mmvp = Place(source_files.mmvp_original(tmp_path / "mmvp"))
    with pytest.raises(
        DatasetError, match="found an import of CV-Bench; expected nothing, or an earlier import of MMVP"
    ):
        import_source("mmvp", mmvp, tmp_path / "out")
    assert held(tmp_path / "out") == before
    import_source("cvbench", place, tmp_path / "out")
    assert held(tmp_path / "out") == before


def test_an_import_that_was_cut_short_is_taken_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = Place(source_files.cvbench(tmp_path / "source"))
    real = provenance.write_manifest
    calls = iter((real, None))

    def cut(folder: Path, manifest: dict[str, object]) -> Path:
        write = next(calls)
        if write is None:
            raise KeyboardInterrupt
        return write(folder, manifest)

    monkeypatch.setattr(_dataset, "write_manifest", cut)
    with pytest.raises(KeyboardInterrupt):
        import_source("cvbench", place, tmp_path / "out")
    monkeypatch.setattr(_dataset, "write_manifest", real)
    assert import_source("cvbench", place, tmp_path / "out").items == 3
    assert len(vgbench_gen.load(tmp_path / "out")) == 3


def test_one_revision_of_a_repository_in_the_hubs_cache_is_read(tmp_path: Path) -> None:
    """Both were, and every question was there twice."""
    repository = tmp_path / "downloads" / "datasets--nyu-visionx--CV-Bench"
    for revision in ("aaaa", "bbbb"):
        source_files.cvbench(repository / "snapshots" / revision)
    (repository / "blobs").mkdir()
    with pytest.raises(DatasetError, match=r"2 revisions \(aaaa, bbbb\)"):
        find_place(importers["cvbench"], repository)
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text("bbbb")
    alone = import_source("cvbench", Place(repository / "snapshots" / "aaaa"), tmp_path / "alone")
    place = find_places(repository.parent)["cvbench"]
    assert isinstance(place, Place)
    assert import_source("cvbench", place, tmp_path / "out").items == alone.items
