"""One way from a name in data to a file."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from vgbench_gen.core.errors import DatasetError, SceneError
from vgbench_gen.core.paths import close_if_raised, inside
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
