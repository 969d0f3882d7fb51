"""Visual-geometry questions with provable answers, generated from raw RGB-D scenes.

Public names load on first use, so that `import vgbench_gen` stays fast.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_PUBLIC = {
    "audit": "vgbench_gen.pipeline.audit",
    "build": "vgbench_gen.pipeline.build",
    "compare": "vgbench_gen.report.scores_page",
    "evaluate": "vgbench_gen.evaluation.runner",
    "load": "vgbench_gen.evaluation.loaded",
    "open_scenes": "vgbench_gen.scenes",
    "score": "vgbench_gen.evaluation.results",
}

__all__ = ["__version__", "audit", "build", "compare", "evaluate", "load", "open_scenes", "score"]

if TYPE_CHECKING:
    from vgbench_gen.evaluation.loaded import load
    from vgbench_gen.evaluation.results import score
    from vgbench_gen.evaluation.runner import evaluate
    from vgbench_gen.pipeline.audit import audit
    from vgbench_gen.pipeline.build import build
    from vgbench_gen.report.scores_page import compare
    from vgbench_gen.scenes import open_scenes


def __getattr__(name: str) -> Any:
    if name not in _PUBLIC:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_PUBLIC[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_PUBLIC])
