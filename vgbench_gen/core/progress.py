"""Bars of progress for whoever calls from Python; the program has its own screen."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def show_progress(wanted: bool = True) -> Iterator[Callable[[str, int, int | None], None]]:
    """Yields what is called with (name of a phase, done, in all or None); a bar per phase in a terminal or notebook,
    and nothing elsewhere or where it is not wanted."""
    bars: dict[str, Any] = {}
    shown = wanted and (sys.stderr.isatty() or "ipykernel" in sys.modules)

    def tell(name: str, done: int, total: int | None) -> None:
        if not shown:
            return
        if name not in bars:
            from tqdm.auto import tqdm

            bars[name] = tqdm(desc=name, total=total)
        bars[name].total, bars[name].n = total, done
        bars[name].refresh()

    try:
        yield tell
    finally:
        for bar in bars.values():
            bar.close()
