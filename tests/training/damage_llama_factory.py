"""What LLaMA-Factory 0.9.5 does with a defective row in `stage: sft`, at default settings, for Qwen2.5-VL.

Places are files of the wheel. A row that raises ends the run before its first step, and so do its neighbors.
"""

from __future__ import annotations

from pathlib import Path

from tests.training.damage import Damaged, Outcome, Record, make_defects

_KEPT = Outcome("kept")
_MARKS = Outcome("raised", "number of images does not match")  # data/mm_plugin.py:_validate_messages
_TYPES = Outcome("raised", "changed from", whole=True)  # datasets 4.0.0: one type a column
_DROPPED = Outcome("dropped", "while encoding")  # data/converter.py empties it, data/processor/supervised.py drops it
_CUT = Outcome("altered", "a turn reads otherwise")  # data/processor/processor_utils.py:infer_seqlen, cutoff_len 2048
_SIZE = Outcome("altered", "another size")  # data/mm_plugin.py:_preprocess_image resizes before the processor

OUTCOMES = {
    "none": _KEPT,
    "one mark fewer": _MARKS,
    "no marks": _MARKS,
    "one mark more": _MARKS,
    "literal mark": _MARKS,
    "mark in the answer": _MARKS,
    "mark in the system prompt": _KEPT,
    "mark of a video": Outcome("raised", "number of videos does not match"),
    "token of images": Outcome("raised", "tokens of images"),
    "images a string": _TYPES,
    "images null": _MARKS,
    "images empty": _MARKS,
    "no images, no marks": _KEPT,
    "missing image": Outcome("raised", "No such file"),
    "not an image": Outcome("raised", "cannot identify image"),
    "empty image": Outcome("raised", "cannot identify image"),
    "half an image": Outcome("raised", "image file is truncated"),
    "long image": _SIZE,
    "grey image": _KEPT,
    "tiny image": _KEPT,
    "large image": _SIZE,
    "large images": Outcome("raised", "tokens of images"),  # the prompt is cut in the middle of its images
    "absolute path": _KEPT,
    "path from elsewhere": Outcome("raised", "No such file"),  # relative to `media_dir`, or `dataset_dir`
    "path null": Outcome("raised", "NoneType"),
    "empty answer": Outcome("altered", "nothing is learned"),  # but the end of a turn
    "answer null": Outcome("raised", "NoneType"),
    "no answer": _DROPPED,
    "empty question": _KEPT,
    "empty turn": _MARKS,
    "no messages": _DROPPED,
    "messages null": Outcome("raised", "NoneType", whole=True),
    "unknown role": _DROPPED,
    "answer first": _DROPPED,
    "typed content": _TYPES,
    "number for a text": _TYPES,
    "number in another column": _TYPES,
    "column null": _KEPT,
    "column missing": _KEPT,
    "images missing": _MARKS,
    "overlong": _CUT,
    "somewhat long": _CUT,
    "overlong answer": _CUT,
    "unicode": _KEPT,
    "key twice": Outcome("raised", "specified twice", whole=True),
    "half a line": Outcome("raised", "JSON parse error", whole=True),
    "blank line": _KEPT,
}

# With the `train.yaml` of an export, nothing is cut below the model's context, and no image is shrunk beforehand.
OWN_OUTCOMES = OUTCOMES | dict.fromkeys(("large image", "large images", "somewhat long", "overlong answer"), _KEPT)


def damage(record: Record, folder: Path, *, own: bool = False) -> list[Damaged]:
    """A row (see `make_defects`) with each defect, and its fate; `own`: with the settings of the export."""
    outcomes = OWN_OUTCOMES if own else OUTCOMES
    return [Damaged(defect, line, outcomes[defect]) for defect, line in make_defects(record, folder).items()]
