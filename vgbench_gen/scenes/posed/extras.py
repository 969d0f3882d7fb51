"""Packages that only some layouts need, imported when such a recording is opened."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from vgbench_gen.core.errors import SceneError


def need(module: str, extra: str) -> Any:
    """An optional module.

    Raises:
        SceneError: it is not installed; says how to install it.
    """
    try:
        return importlib.import_module(module)
    except ImportError as problem:
        remedy = f"Run pip install 'vgbench-gen[{extra}]', then repeat."
        raise SceneError(f"the package {module}", f"not installed ({problem})", "it", remedy) from problem


@contextmanager
def silence() -> Iterator[None]:
    """Nothing that is printed in the block is seen: libraries of C++ print into what is meant for other programs."""
    sys.stdout.flush()
    kept = [(number, os.dup(number)) for number in (1, 2)]
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        for number, _ in kept:
            os.dup2(nowhere, number)
        yield
    finally:
        for number, copy in kept:
            os.dup2(copy, number)
            os.close(copy)
        os.close(nowhere)
