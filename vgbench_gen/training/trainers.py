"""What trainers do with a row at the settings of an export's README: keep it, drop it, change it, or end with an error.

Read in the packages' own code (versions in `tools/trainers/`), and compared with it row by row by
`tests/training/test_consumers.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from vgbench_gen.core.errors import UnknownNameError

Fate = Literal["kept", "altered", "dropped", "raised"]
"""What becomes of a row; altered: something else is trained than what the row says."""


@dataclass(frozen=True, slots=True)
class Trainer:
    """One trainer's way with rows."""

    name: str
    setting: str = ""
    """Its setting for the longest row, as its users write it; "" where it has none."""
    most_tokens: int = 0
    """That setting's default; 0 for no limit."""
    fates: Mapping[str, Fate] = field(default_factory=dict)
    """Defect -> what becomes of the row; "kept" for those that are not named."""

    def find_fate(self, defects: Mapping[str, str]) -> Fate:
        """What becomes of a row with these defects: the worst of each."""
        order: tuple[Fate, ...] = ("raised", "dropped", "altered", "kept")
        return min((self.fates.get(name, "kept") for name in defects), key=order.index, default="kept")


TRAINERS = {trainer.name: trainer for trainer in (Trainer("chat-jsonl"),)}


def find_trainer(name: str) -> Trainer:
    """The trainer of a name.

    Raises:
        UnknownNameError: there is none of this name.
    """
    if name not in TRAINERS:
        raise UnknownNameError(f"no trainer is called {name!r}. Known: {', '.join(TRAINERS)}")
    return TRAINERS[name]
