"""What VSI-Bench's and MMSI-Bench's own scripts make of a reply (`eval-protocols.md` 5.3 and 8).

Sources of the rules: vision-x-nyu/thinking-in-space, `lmms_eval/tasks/vsibench/utils.py`; the regular expressions of
MMSI-Bench's README as EvolvingLMMs-Lab/lmms-eval runs them (`lmms_eval/tasks/mmsi_bench/utils.py`).
"""

from __future__ import annotations

import re

from vgbench_gen.evaluation.answers.official import Official
from vgbench_gen.evaluation.metrics import mean_relative_accuracy

_SPANS = (re.compile("``([^`]*)``"), re.compile("`([^`]*)`"), re.compile(r"\{([^}]*)\}"))
_LETTER = re.compile(r"\b[A-F]\b(?!\s[a-zA-Z])", re.IGNORECASE)


def vsi_bench(response: str | None, truth: str, question_type: str) -> Official:
    """The first word of the reply, compared as a letter or as a number by mean relative accuracy."""
    if response is None:
        return Official(None, 0.0, "the reply is None")
    word = response.split(" ", 1)[0].rstrip(".").strip()
    if question_type == "multi-choice":
        return Official(word, float(word.lower() == truth.lower()))
    value, expected = _float(word), _float(truth)
    if value is None or expected is None:
        return Official(None, 0.0)
    if expected == 0:
        return Official(value, 0.0, "float division by zero")
    return Official(value, mean_relative_accuracy(value, expected))


def mmsi_bench(response: str | None, truth: str) -> Official:
    """The first letter in backticks or braces, else the first that stands alone and before no word."""
    if response is None:
        return Official(None, 0.0)
    text = response
    for span in _SPANS:
        found = span.search(text)
        text = found.group(1) if found else text
    letter = _LETTER.search(text)
    if letter is None:
        return Official(None, 0.0)
    said = letter.group().upper()
    return Official(said, float(said == truth.strip().upper()))


def _float(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
