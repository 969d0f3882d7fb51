"""One way from a name in data to a file."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from vgbench_gen.core.errors import DatasetError, SceneError
from vgbench_gen.core.paths import choose_snapshot, close_if_raised, inside
from vgbench_gen.store.files import dataset_error


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A folder that is reached through a link, with a secret beside it and links that lead there."""
    real = tmp_path / "real"
    (real / "sub").mkdir(parents=True)
    (tmp_path / "secret").write_text("theirs")
    (real / "out").symlink_to(tmp_path)
    (real / "round").symlink_to("round")
    (real / "within").symlink_to("sub")
    (tmp_path / "root").symlink_to(real)
    return tmp_path / "root"


@pytest.mark.parametrize("name", ["a", "sub/a", "sub/../a", "within/a", "./a", "ein Bild.png", "naïve", "."])
def test_names_below_the_folder_are_found(root: Path, name: str) -> None:
    assert inside(root, name) == Path(os.path.realpath(root / name))


@pytest.mark.parametrize(
    "name",
    ["..", "../secret", "sub/../../secret", "/etc/passwd", "out/secret", "out/new", "round", "within/../../secret"]
    + ["sub\\..\\..\\secret", "a\nb", "a\0b", "\x1b[2J", "", "x" * 300, None, True, 7, ["a"]],
)  # fmt: skip
def test_names_that_lead_out_or_nowhere_are_refused(root: Path, name: object) -> None:
    with pytest.raises(SceneError) as caught:
        inside(root, name)
    assert str(root.parent / "secret") not in str(caught.value) or "secret" in str(name)
    with pytest.raises(DatasetError):
        inside(root, name, dataset_error)


def cached(folder: Path, *commits: str) -> Path:
    """A repository as the Hub's client keeps it, with one file in each commit."""
    repository = folder / "datasets--x--y"
    (repository / "blobs").mkdir(parents=True)
    (repository / "refs").mkdir()
    (repository / "blobs/77").write_bytes(b"\x89PNG")
    for commit in commits:
        (repository / "snapshots" / commit / "data").mkdir(parents=True)
        (repository / "snapshots" / commit / "data/a.png").symlink_to("../../../blobs/77")
    return repository


def test_links_of_the_hubs_cache_stay_in_their_repository(root: Path) -> None:
    repository = cached(root, "0123")
    for folder, name in (("snapshots/0123", "data/a.png"), ("snapshots/0123/data", "a.png")):
        assert inside(repository / folder, name) == (repository / "blobs/77").resolve()
    (repository / "snapshots/0123/out").symlink_to(root.parent / "secret")
    (repository / "snapshots/0123/refs").symlink_to("../../refs")
    for name in ("out", "refs", "../../../sub"):
        with pytest.raises(SceneError, match="a place below"):
            inside(repository / "snapshots/0123", name)


def test_a_repository_of_the_hubs_cache_is_one_revision(tmp_path: Path) -> None:
    assert choose_snapshot(tmp_path, dataset_error) == tmp_path
    repository = cached(tmp_path, "aaaa", "bbbb")
    for main in (None, "cccc", "../blobs", "\xff"):
        if main is not None:
            (repository / "refs/main").write_text(main, "latin-1")
        with pytest.raises(DatasetError, match=r"2 revisions \(aaaa, bbbb\) of which `refs/main` names none.*REVISION"):
            choose_snapshot(repository, dataset_error)
    (repository / "refs/main").write_text("bbbb\n")
    assert choose_snapshot(repository, dataset_error) == repository / "snapshots/bbbb"
    (repository / "refs/main").unlink()
    (repository / "snapshots/bbbb").rename(tmp_path / "gone")
    assert choose_snapshot(repository, dataset_error) == repository / "snapshots/aaaa"


@pytest.mark.parametrize("raised", [None, ValueError, KeyboardInterrupt])
def test_what_was_opened_is_closed_where_the_block_raises_and_only_there(raised: type[BaseException] | None) -> None:
    closed: list[bool] = []
    found = None
    try:
        with close_if_raised(lambda: closed.append(True)):
            if raised is not None:
                raise raised
    except BaseException as error:
        found = type(error)
    assert (found, closed) == (raised, [True] if raised else [])
