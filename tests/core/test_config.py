from __future__ import annotations

import os
from pathlib import Path

import pytest
from pydantic import Field, ValidationError

from vgbench_gen.core.config import MAX_CONFIG_BYTES, Config, load_toml, parse_config
from vgbench_gen.core.errors import ConfigError


class Cell(Config):
    limit: int = Field(default=5, gt=0)
    formats: tuple[str, ...] = ()


class Recipe(Config):
    seed: int
    scale: float = 1.0
    strict_poses: bool = True
    default_cell: Cell = Cell()
    maybe: Cell | None = None
    tasks: dict[str, Cell] = Field(default_factory=dict)
    cells: tuple[Cell, ...] = ()


def write(folder: Path, text: str) -> Path:
    path = folder / "recipe.toml"
    path.write_text(text, encoding="utf-8")
    return path


def complaint(folder: Path, text: str) -> str:
    path = write(folder, text)
    with pytest.raises(ConfigError) as caught:
        load_toml(path, Recipe)
    message = str(caught.value)
    assert message.startswith(f"{path}: ")
    return message.removeprefix(f"{path}: ")


def test_a_good_file(tmp_path: Path) -> None:
    text = 'seed = 3\nscale = 2\n[tasks.metric_depth]\nlimit = 9\nformats = ["judgment"]\n[[cells]]\nlimit = 1\n'
    assert load_toml(write(tmp_path, text), Recipe) == Recipe(
        seed=3, scale=2.0, tasks={"metric_depth": Cell(limit=9, formats=("judgment",))}, cells=(Cell(limit=1),)
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "seed = 1\n[tasks.depth]\nlimt = 3",
            "tasks.depth.limt: found an unknown key 'limt'. Did you mean limit? Known keys: formats, limit",
        ),
        (
            "seed = 1\n[default_cell]\nformat = []",
            "default_cell.format: found an unknown key 'format'. Did you mean formats? Known keys: formats, limit",
        ),
        (  # a free key that is called like a field
            "seed = 1\n[tasks.limit]\nlimt = 3",
            "tasks.limit.limt: found an unknown key 'limt'. Did you mean limit? Known keys: formats, limit",
        ),
        (
            "seed = 1\n[maybe]\nlimt = 3",
            "maybe.limt: found an unknown key 'limt'. Did you mean limit? Known keys: formats, limit",
        ),
        (
            "seed = 1\n[[cells]]\n[[cells]]\nlimt = 3",
            "cells.1.limt: found an unknown key 'limt'. Did you mean limit? Known keys: formats, limit",
        ),
        (
            "seed = 1\nqqq = 3",
            "qqq: found an unknown key 'qqq'. Known keys: cells, default_cell, maybe, scale, seed, strict_poses, tasks",
        ),
        ("", "seed: found nothing; expected a value for this key"),
        ('seed = "5"', 'seed: found "5"; expected a valid integer'),
        ("seed = 1.0", "seed: found 1.0; expected a valid integer"),
        ("seed = true", "seed: found true; expected a valid integer"),
        ("seed = 1\nstrict_poses = 1", "strict_poses: found 1; expected a valid boolean"),
        ("seed = 1\ndefault_cell.limit = 0", "default_cell.limit: found 0; expected greater than 0"),
        ("seed = 1\nscale = inf", "scale: found Infinity; expected a finite number"),
        (
            'seed = "5"\nscale = "x"',
            'seed: found "5"; expected a valid integer; scale: found "x"; expected a valid number',
        ),
    ],
)
def test_every_mistake_is_named_with_its_place(tmp_path: Path, text: str, message: str) -> None:
    assert complaint(tmp_path, text) == message


def test_a_long_value_is_cut(tmp_path: Path) -> None:
    assert len(complaint(tmp_path, f'seed = "{"x" * 5000}"')) < 120


def test_broken_toml_names_the_line(tmp_path: Path) -> None:
    message = complaint(tmp_path, "seed = 1\nscale =\n")
    assert message.startswith("found no valid TOML (")
    assert "line 2" in message


def test_files_that_are_no_toml(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.toml")
    with pytest.raises(ConfigError, match=r"pipe\.toml: found no readable file \(no regular file\)"):
        load_toml(tmp_path / "pipe.toml", Recipe)
    with pytest.raises(ConfigError, match=r"absent\.toml: found no such file; expected a TOML file\. Check the path\."):
        load_toml(tmp_path / "absent.toml", Recipe)
    with pytest.raises(ConfigError, match="no regular file"):
        load_toml(tmp_path, Recipe)
    path = tmp_path / "bytes.toml"
    path.write_bytes(b"seed = \xff")
    with pytest.raises(ConfigError, match="byte 0xFF in line 1, which is not UTF-8: save it as UTF-8"):
        load_toml(path, Recipe)
    path.write_bytes(b"#" * (MAX_CONFIG_BYTES + 1))
    with pytest.raises(ConfigError, match="more than 1048576 characters"):
        load_toml(path, Recipe)
    path.write_text("seed = " + "[" * 100_000)
    with pytest.raises(ConfigError, match="no valid TOML"):
        load_toml(path, Recipe)


def test_flags_are_checked_the_same_way() -> None:
    with pytest.raises(ConfigError) as caught:
        parse_config({"seed": 1, "sede": 2}, Recipe, "--set")
    assert str(caught.value).startswith("--set: sede: found an unknown key 'sede'. Did you mean seed?")


def test_a_configuration_cannot_be_changed() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        Recipe(seed=1).__setattr__("seed", 2)


@pytest.mark.parametrize("number", ["9" * 5000, "0x" + "f" * 5000, "1e" + "9" * 5000])
def test_numbers_of_thousands_of_digits_are_refused(tmp_path: Path, number: str) -> None:
    assert len(complaint(tmp_path, f"seed = {number}")) < 400
