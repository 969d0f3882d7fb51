"""Visual-geometry questions with provable answers, generated from raw RGB-D scenes.

Public names load on first use, so that `import vgbench_gen` stays fast.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_PUBLIC = {
    "audit": "vgbench_gen.pipeline.audit",
    "open_scenes": "vgbench_gen.scenes",
    "build": "vgbench_gen.pipeline.build",
    "evaluate": "vgbench_gen.evaluation.runner",
    "load": "vgbench_gen.store.dataset",
}

__all__ = ["__version__", "audit", "build", "evaluate", "load", "open_scenes"]

if TYPE_CHECKING:
    from vgbench_gen.evaluation.runner import evaluate
    from vgbench_gen.pipeline.audit import audit
    from vgbench_gen.pipeline.build import build
    from vgbench_gen.scenes import open_scenes
    from vgbench_gen.store.dataset import load


def __getattr__(name: str) -> Any:
    if name not in _PUBLIC:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_PUBLIC[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_PUBLIC])
