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
    fates: Mapping[str, Fate] = field(default_factory=dict)
    """Defect -> what becomes of the row; "kept" for those that are not named."""
    setting: str = ""
    """Its setting for the longest row, as its users write it; "" where it has none."""
    most_tokens: int = 0
    """That setting's default; 0 for no limit."""
    exported_tokens: int = 0
    """What an export sets it to."""
    typed: bool = False
    """Whether pictures are parts of the messages, and marks in a text are words."""

    def find_fate(self, defects: Mapping[str, str]) -> Fate:
        """What becomes of a row with these defects: the worst of each."""
        order: tuple[Fate, ...] = ("raised", "dropped", "altered", "kept")
        return min((self.fates.get(name, "kept") for name in defects), key=order.index, default="kept")


_BAD_PICTURES = ("missing_picture", "broken_picture")
_RAISED: dict[str, Fate] = dict.fromkeys(
    ("unreadable", "no_question", "model_token", "layout", *_BAD_PICTURES), "raised"
)
_MARKS = ("marks_over", "marks_under")

TRAINERS = {
    trainer.name: trainer
    for trainer in (
        Trainer("chat-jsonl"),
        Trainer(
            "ms-swift",
            _RAISED
            | dict.fromkeys((*_MARKS, "no_answer"), "altered")
            | dict.fromkeys(("long_picture", "too_long", "roles"), "raised"),
            "--max_length",
        ),
        Trainer(
            "llama-factory",
            _RAISED
            | dict.fromkeys((*_MARKS, "no_list"), "raised")
            | dict.fromkeys(("long_picture", "too_long"), "altered")
            | dict.fromkeys(("no_answer", "roles"), "dropped"),
            "cutoff_len",
            2048,
            131072,
        ),
        Trainer(
            "axolotl",
            _RAISED | {"long_picture": "raised", "no_answer": "altered"},
            typed=True,
        ),
        Trainer(
            "unsloth",
            _RAISED | {"long_picture": "raised", "too_long": "altered", "no_answer": "altered"},
            "max_length",
            2048,
            32768,
            typed=True,
        ),
        Trainer(
            "webdataset",
            dict.fromkeys(("unreadable", "no_question", "layout", *_MARKS, *_BAD_PICTURES), "dropped")
            | {"no_answer": "altered"},
            typed=True,
        ),
        Trainer("verifiers", _RAISED | dict.fromkeys(_MARKS, "raised"), typed=True),
        Trainer(
            "verl",
            dict.fromkeys((*_RAISED, *_MARKS, "no_list", "long_picture", "too_long"), "dropped"),
            "data.max_prompt_length",
            1024,
        ),
        Trainer(
            "easyr1",
            _RAISED
            | dict.fromkeys(("no_list", "long_picture", "marks_over"), "raised")
            | {"marks_under": "altered", "too_long": "dropped"},
            "data.max_prompt_length",
            1024,
        ),
        Trainer(
            "trl",
            _RAISED | dict.fromkeys((*_MARKS, "no_list", "long_picture", "roles"), "raised") | {"too_long": "dropped"},
            "--max_length",
            1024,
            typed=True,
        ),
    )
}


def find_trainer(name: str) -> Trainer:
    """The trainer of a name.

    Raises:
        UnknownNameError: there is none of this name.
    """
    if name not in TRAINERS:
        raise UnknownNameError(f"no trainer is called {name!r}. Known: {', '.join(TRAINERS)}")
    return TRAINERS[name]
