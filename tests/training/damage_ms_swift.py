"""What ms-swift 4.6.0 does with a defective row in `swift sft`, at default settings, for Qwen2.5-VL.

Places are files of the wheel. GRPO encodes during training and raises where `swift sft` drops.
"""

from __future__ import annotations

from pathlib import Path

from tests.training.damage import Damaged, Outcome, Record, make_defects

_KEPT = Outcome("kept")
_MARKS = Outcome("altered", "marks")  # template/base.py:_add_default_tags adds marks in front, or ignores the last ones
_LOADING = Outcome("dropped", "while loading")  # dataset/preprocessor/core.py:batched_preprocess logs and leaves out

# LazyLLMDataset (dataset/utils.py) takes another row for one that cannot be encoded.
OUTCOMES = {
    "none": _KEPT,
    "one mark fewer": _MARKS,
    "no marks": _MARKS,
    "one mark more": _MARKS,
    "literal mark": _MARKS,
    "mark in the answer": _MARKS,
    "mark in the system prompt": _MARKS,
    "mark of a video": _KEPT,
    "token of images": Outcome("raised", "tokens of images"),
    "images a string": _KEPT,
    "images null": _MARKS,
    "images empty": _MARKS,
    "no images, no marks": _KEPT,
    "missing image": Outcome("dropped", "No such file"),
    "not an image": Outcome("dropped", "cannot identify image"),
    "empty image": Outcome("dropped", "cannot identify image"),
    "half an image": Outcome("dropped", "image file is truncated"),
    "long image": Outcome("dropped", "aspect ratio"),  # qwen_vl_utils/vision_process.py:smart_resize
    "grey image": _KEPT,
    "tiny image": _KEPT,
    "large image": _KEPT,
    "large images": _KEPT,
    "absolute path": _KEPT,
    # Relative to the working folder, or ROOT_IMAGE_DIR. What is not there may be taken for base64, so no words of it
    # are certain (template/vision_utils.py:_check_path).
    "path from elsewhere": Outcome("dropped"),
    "path null": Outcome("raised", "cannot mix struct", whole=True),
    "empty answer": Outcome("altered", "nothing is learned"),  # but the end of a turn
    "answer null": _LOADING,
    "no answer": Outcome("altered", "nothing is learned"),
    "empty question": _KEPT,
    "empty turn": _MARKS,
    "no messages": _LOADING,
    "messages null": _LOADING,
    "unknown role": _LOADING,
    "answer first": Outcome("dropped", "response_role"),
    "typed content": Outcome("dropped", "new_str"),
    "number for a text": Outcome("dropped", "'int' object"),
    "number in another column": _KEPT,
    "column null": _KEPT,
    "column missing": _KEPT,
    "images missing": _MARKS,
    "overlong": Outcome("dropped", "max_length"),  # more than the model's context; `truncation_strategy` delete
    "somewhat long": _KEPT,
    "overlong answer": _KEPT,
    "unicode": _KEPT,
    "key twice": Outcome("raised", "specified twice", whole=True),
    "half a line": Outcome("raised", "JSON parse error", whole=True),
    "blank line": _KEPT,
}

# With `strict: true`, as in the `sft.yaml` of an export, an error ends the run; rows without messages are dropped.
_EMPTY = ("no messages", "messages null")
OWN_OUTCOMES = {
    defect: Outcome("raised", "" if outcome is _LOADING else outcome.says, whole=outcome is _LOADING)
    if outcome.fate == "dropped" and defect not in _EMPTY
    else outcome
    for defect, outcome in OUTCOMES.items()
}


def damage(record: Record, folder: Path, *, own: bool = False) -> list[Damaged]:
    """A row (see `make_defects`) with each defect, and its fate; `own`: with the settings of the export."""
    outcomes = OWN_OUTCOMES if own else OUTCOMES
    return [Damaged(defect, line, outcomes[defect]) for defect, line in make_defects(record, folder).items()]
