"""What trainers do with a row at the settings of an export's README: keep it, drop it, change it, or end with an error.

Read in the packages' own code (versions in `tools/trainers/`); `tests/training/test_trainers.py` compares what is said
here with what their loaders did to damaged rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from vgbench_gen.core.errors import UnknownNameError

ANY_LENGTH = 1 << 30
"""`exported_tokens` of a trainer whose setting an export's README asks to be as long as the longest row."""
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
    prompt_alone: bool = False
    """Whether that setting is of the prompt without the answer."""
    layouts: tuple[str, ...] = ()
    """`Sample.layout` of the rows that it reads, the export's first; any where empty."""
    one_type: bool = False
    """Whether it refuses a file with a column of several types."""

    def find_fate(self, defects: Mapping[str, str]) -> Fate:
        """What becomes of a row with these defects: the worst of each."""
        order: tuple[Fate, ...] = ("raised", "dropped", "altered", "kept")
        return min((self.fates.get(name, "kept") for name in defects), key=order.index, default="kept")


def _give(fate: Fate, *defects: str) -> dict[str, Fate]:
    return dict.fromkeys(defects, fate)


_PICTURES = ("missing_picture", "broken_picture")
_RAISED = _give("raised", "unreadable", "no_question", "model_token", "not_text", "layout", "no_list", *_PICTURES)
_MARKS = ("marks_over", "marks_under")

TRAINERS = {
    trainer.name: trainer
    for trainer in (
        Trainer("chat-jsonl"),
        Trainer(
            "ms-swift",
            _RAISED
            | _give("kept", "no_list")
            | _give("altered", *_MARKS, "no_answer", "empty_answer", "stray_mark")
            | _give("raised", "long_picture", "too_long", "roles")
            | _give("dropped", "no_question"),
            "--max_length",
            128_000,
            layouts=("marks",),
        ),
        Trainer(
            "llama-factory",
            _RAISED
            | _give("raised", *_MARKS, "stray_mark")
            | _give("altered", "long_picture", "too_long", "empty_answer")
            | _give("dropped", "no_question", "no_answer", "roles"),
            "cutoff_len",
            2048,
            131_072,
            layouts=("marks",),
            one_type=True,
        ),
        Trainer(
            "axolotl",
            _RAISED
            | _give("raised", "long_picture")
            | _give("altered", "no_answer", "empty_answer", "not_text", "layout"),
            layouts=("parts", "url"),
        ),
        Trainer(
            "unsloth",
            _RAISED
            | _give("raised", "long_picture", "no_answer", *_MARKS)
            | _give("altered", "too_long", "empty_answer"),
            "max_length",
            2048,
            32_768,
            layouts=("parts", "places"),
        ),
        Trainer(
            "webdataset",
            _give("dropped", *_RAISED, *_MARKS) | _give("kept", "model_token") | _give("altered", "empty_answer"),
        ),
        Trainer("verifiers", _RAISED | _give("raised", *_MARKS), layouts=("parts",)),
        Trainer(
            "verl",
            _RAISED | _give("raised", *_MARKS, "stray_mark", "long_picture", "too_long"),
            "data.max_prompt_length",
            512,
            ANY_LENGTH,
            prompt_alone=True,
            layouts=("marks",),
        ),
        Trainer(
            "easyr1",
            _RAISED
            | _give("raised", "long_picture", "marks_over", "no_answer")
            | _give("altered", "marks_under")
            | _give("dropped", "too_long"),
            "data.max_prompt_length",
            2048,
            ANY_LENGTH,
            prompt_alone=True,
            layouts=("marks",),
        ),
        Trainer(
            "trl",
            _RAISED | _give("raised", *_MARKS, "long_picture", "no_answer") | _give("dropped", "too_long"),
            "--max_length",
            1024,
            131_072,
            layouts=("places",),
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
