"""The published scoring scripts of VSI-Bench, MMSI-Bench, BLINK and QSpatialBench.

Rules: `docs/protocols.md#other-benchmarks`.

Sources of the rules: vision-x-nyu/thinking-in-space, `lmms_eval/tasks/vsibench/utils.py`; the regular expressions of
MMSI-Bench's README (OpenRobotLab/MMSI-Bench; EvolvingLMMs-Lab/lmms-eval runs them in
`lmms_eval/tasks/unig2u/mmsi/utils.py`, while its `score_mmsi_bench` takes E, F and small letters as well);
zeyofu/BLINK_Benchmark, `eval/test_benchmark.py`; andrewliao11/Q-Spatial-Bench-code,
`examples/evaluate_success_rate.ipynb`.
"""

from __future__ import annotations

import math
import re

import numpy as np

from vgbench_gen.evaluation.answers import official as released
from vgbench_gen.evaluation.answers.official import OfficialScore
from vgbench_gen.evaluation.metrics import compute_mean_relative_accuracy

_SPANS = (re.compile("``([^`]*)``"), re.compile("`([^`]*)`"), re.compile(r"\{([^}]*)\}"))
_LETTER = re.compile(r"\b[A-D]\b(?!\s[a-zA-Z])")

_BLINK_LETTERS = "ABCDE"
_SCALAR, _UNIT = re.compile(r"scalar\{([^}]*+)\}"), re.compile(r"distance_unit\{([^}]*+)\}")
_DIGITS = re.compile(r"\d+\.?\d*")
_TRUTH = re.compile(r"\s*([-+]?[\d.]+(?:[eE][-+]?\d+)?)\s*(.*?)\s*", re.DOTALL)
_MAX_CHARS = 200_000


def score_vsi_bench(response: str | None, truth: str, question_type: str) -> OfficialScore:
    """Compare the first word of the reply as a letter, or as a number by mean relative accuracy."""
    if response is None:
        return OfficialScore(None, 0.0, "the reply is None")
    word = response.split(" ", 1)[0].rstrip(".").strip()
    if question_type == "multi-choice":
        return OfficialScore(word, float(word.lower() == truth.lower()))
    value, expected = _parse_float(word), _parse_float(truth)
    if value is None or expected is None:
        return OfficialScore(None, 0.0)
    if expected == 0:
        return OfficialScore(value, 0.0, "float division by zero")
    return OfficialScore(value, compute_mean_relative_accuracy(value, expected))


def score_mmsi_bench(response: str | None, truth: str) -> OfficialScore:
    """Compare the first letter in backticks or braces, else the first that stands alone and not before a word."""
    if response is None:
        return OfficialScore(None, 0.0)
    text = response
    for span in _SPANS:
        found = span.search(text)
        text = found.group(1) if found else text
    letter = _LETTER.search(text)
    if letter is None:
        return OfficialScore(None, 0.0)
    answer = letter.group()
    return OfficialScore(answer, float(answer == truth.strip().upper()))


def score_blink(response: str | None, truth: str, options: int) -> OfficialScore:
    """Compare the only bracketed letter that stands alone in a reply or its last paragraph, or a reply "(B)" or "B".

    If there is none or several, BLINK's script asks gpt-3.5-turbo. Here, as in the script without a connection, the
    answer is then "(Z)", which is never right.

    Args:
        response: the reply.
        truth: "(B)" or "B".
        options: number of options; the script supports five.
    """
    if response is None:
        return OfficialScore(None, 0.0, "the reply is None")
    wanted = f"({truth.strip().strip('()').upper()})"
    known = {f"({letter})" for letter in _BLINK_LETTERS[:options]}
    reply = response[:_MAX_CHARS]
    everywhere, last = known.intersection(reply.split()), known.intersection(reply.split("\n\n")[-1].split())
    if reply in tuple(_BLINK_LETTERS):
        answer = f"({reply})"
    elif reply in {f"({letter})" for letter in _BLINK_LETTERS}:
        answer = reply
    elif len(last) == 1:
        (answer,) = last
    elif len(everywhere) == 1:
        (answer,) = everywhere
    else:
        return OfficialScore("(Z)", 0.0, "the script asks a language model here")
    return OfficialScore(answer, float(answer == wanted))


def score_q_spatial(response: str | None, truth: str) -> OfficialScore:
    """Compare the mean of the numbers in the last scalar braces, in the last unit in braces, within a factor of 2.

    An unknown unit means centimeters. Without braces the script raises an IndexError.
    """
    if response is None:
        return OfficialScore(None, 0.0, "the reply is None")
    reply = response[:_MAX_CHARS]
    # Unclosed braces never match; without them the search takes linear time.
    reply = reply[: reply.rfind("}") + 1]
    scalars, in_units = _SCALAR.findall(reply), _UNIT.findall(reply)
    if not scalars or not in_units:
        return OfficialScore(None, 0.0, "list index out of range")
    numbers = [float(number) for number in _DIGITS.findall(scalars[-1])]
    expected = _TRUTH.fullmatch(truth)
    value = _parse_float(expected[1]) if expected else None
    if expected is None or value is None:
        return OfficialScore(None, 0.0, f"the truth is {truth[:60]!r}")
    with np.errstate(over="ignore"):
        mean = float(np.mean(numbers)) if numbers else math.nan
    extracted = f"{mean:g} {in_units[-1]}"[:100]
    mean, wanted = (
        mean * released.convert_to_centimeters(in_units[-1].lower()),
        value * released.convert_to_centimeters(expected[2].lower()),
    )
    if not mean > 0 or not wanted > 0:
        return OfficialScore(extracted, 0.0)
    return OfficialScore(extracted, float(max(mean / wanted, wanted / mean) < 2))


def _parse_float(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
