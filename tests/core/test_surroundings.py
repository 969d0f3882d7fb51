"""Errors of the machine around the program, each in one line with its culprit."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from vgbench_gen.core.errors import ConfigError, PluginError
from vgbench_gen.core.registry import Registry
from vgbench_gen.core.surroundings import explain_surroundings

ROOT = Path(__file__).parents[2]
MISSING = "cannot open shared object file: No such file or directory"


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (ImportError(f"libGL.so.1: {MISSING}"), "apt-get install libgl1"),
        (OSError(f"libX11.so.6: {MISSING}"), "apt-get install libx11-6"),
        (ImportError(f"libfoo-2.so.1: {MISSING}"), "the package of your system that holds libfoo-2.so.1"),
        (ImportError(f"libopenblasp-r0-59ffcd50.3.15.so: {MISSING}"), "the Python package again"),
        (ImportError("Error loading shared library libGL.so.1: No such file (needed by x.so)"), "libgl1"),
        (MemoryError(), "--workers"),
        (RuntimeError("can't start new thread"), "can't start new thread"),
        (OSError(12, "Cannot allocate memory"), "--workers"),
        (ImportError("\n\nREAD THIS\nOriginal error was: libx.so: failed to map segment"), "failed to map segment"),
    ],
)
def test_what_an_error_is_owed_to(error: Exception, said: str) -> None:
    told = explain_surroundings(error)
    assert told is not None
    assert said in told
    assert told.isprintable()
    ours = ConfigError("ours")
    ours.__context__ = error  # also where another error came of it
    assert explain_surroundings(ours) == told


@pytest.mark.parametrize(
    "error",
    [
        ConfigError("it says: cannot allocate memory"),
        ImportError("No module named 'ray'"),
        OSError(2, "gone", "a"),
        ValueError("x"),
    ],
)
def test_other_errors_are_no_ones_but_ours(error: Exception) -> None:
    assert explain_surroundings(error) is None


def test_the_loaders_own_words_are_understood() -> None:
    with pytest.raises(OSError, match="shared object") as caught:
        ctypes.CDLL("libvgbench-nowhere.so.7")
    assert "holds libvgbench-nowhere.so.7" in str(explain_surroundings(caught.value))
    with pytest.raises(MemoryError) as too_much:
        np.empty(1 << 60, np.uint8)
    assert "Unable to allocate" in str(explain_surroundings(too_much.value))


def test_a_package_is_not_blamed_for_a_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "needs_library.py").write_text(f"raise ImportError('libGL.so.1: {MISSING}')\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    from importlib.metadata import EntryPoint

    registry: Registry[object] = Registry("thing", "vgbench_gen.core")
    with pytest.raises(ImportError, match=r"libGL\.so\.1"):
        registry._load(EntryPoint("x", "needs_library", "vgbench_gen.core"))
    (tmp_path / "fails.py").write_text("raise ImportError('No module named ray')\n")
    with pytest.raises(PluginError, match="ray"):
        registry._load(EntryPoint("x", "fails", "vgbench_gen.core"))


@pytest.mark.parametrize("verb", ["browse nowhere", "compare nowhere", "scenes .", "models", "build --dry-run"])
@pytest.mark.parametrize(
    ("library", "remedy"), [("libGL.so.1", "apt-get install libgl1"), ("libfoo.so.1", "holds libfoo.so.1")]
)
def test_every_verb_names_a_library_that_is_missing(tmp_path: Path, verb: str, library: str, remedy: str) -> None:
    (tmp_path / "cv2.py").write_text(f"raise ImportError('{library}: {MISSING}')\n")
    command = [sys.executable, "-m", "vgbench_gen.cli", *verb.split()]
    environment = os.environ | {"PYTHONPATH": f"{tmp_path}:{ROOT}"}
    done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False)
    told = " ".join((done.stdout + done.stderr).split())
    assert done.returncode == 2
    assert library in told
    assert remedy in told
    assert "Traceback" not in told
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("megabytes", [150, 300, 700])
def test_too_little_memory_ends_in_a_line(megabytes: int) -> None:
    line = f"ulimit -v {megabytes * 1000}; exec {sys.executable} -m vgbench_gen.cli scenes ."
    environment = os.environ | {"PYTHONPATH": str(ROOT), "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(["bash", "-c", line], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode
    assert "Traceback" not in done.stderr
