"""The kinds of question in `examples/kinds`, registered for as long as a test needs them."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from vgbench_gen.core import gates
from vgbench_gen.tasks.base import tasks
from vgbench_gen.text import render

FOLDER = Path(__file__).resolve().parents[1] / "examples" / "kinds"
EXAMPLES = sorted(path.stem for path in FOLDER.glob("*.py"))


@contextmanager
def register_examples() -> Iterator[None]:
    """The examples among the tasks of this process; other tests see the shipped ones alone."""
    tasks.names()
    sys.path.insert(0, str(FOLDER))
    try:
        for name in EXAMPLES:
            importlib.import_module(name)
        yield
    finally:
        sys.path.remove(str(FOLDER))
        for name in EXAMPLES:
            sys.modules.pop(name, None)
            for known in (tasks._entries, render._BROUGHT, gates._SECTIONS):
                known.pop(name, None)
