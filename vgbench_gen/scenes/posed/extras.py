"""Packages that only some layouts need, imported when such a recording is opened."""

from __future__ import annotations

import importlib
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
