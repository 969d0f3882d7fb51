"""A canary: rows that a model can learn only if every picture of a row reaches it, whole, in order and in color.

Twins have the same text, other pictures and other answers, which are drawn by chance: nothing but the picture tells
them apart, and nothing that a model knows helps. It is trained on the rows until it knows them, and asked the same
rows. What it then gets wrong says what the pipeline lost. Rows of `control` can be learned from the text alone: they
say whether the training was long enough to tell.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from vgbench_gen.core.rng import rng_for
from vgbench_gen.core.types import ALPHABET, ColorArray
from vgbench_gen.evaluation.base import Source, read_questions
from vgbench_gen.evaluation.imported import logs
from vgbench_gen.evaluation.replies import read_replies
from vgbench_gen.evaluation.reply_files import has_replies
from vgbench_gen.evaluation.scoring import make_case, score
from vgbench_gen.store.files import dataset_error
from vgbench_gen.text.render import fill_word

PROBES = {"whole": 35, "first": 30, "second": 30, "order": 30, "detail": 25, "color": 25, "border": 25}
"""Probe -> number of twins; they differ in the picture, the first or second of two, their order, fine stripes, hue, or
the rim."""
CONTROL, CONTROL_PAIRS = "control", 20
LONG_SIDE_PX = 512
_STRIPE_PX, _STRIPE_LEVELS, _TINT_LEVELS, _RIM = 16, 24, 36, 0.08
_OTHER = {"first": "second", "second": "first"}
KNOWN, _GUESSED, _REVERSED = 0.85, 0.65, 0.35  # shares of right answers: from here on, up to here, up to here


@dataclass(frozen=True, slots=True)
class Card:
    """One row of a canary."""

    probe: str
    twins: int
    """Number of the pair, which both rows share."""
    half: int
    """0 or 1: which of the pair."""
    question: str
    options: tuple[str, str]
    answer: str
    """A letter."""
    pictures: tuple[ColorArray, ...]


def make_cards(pictures: Sequence[ColorArray], seed: int) -> Iterator[Card]:
    """The rows of a canary, in an order in which no two of a pair need follow each other.

    Args:
        pictures: at least three that look different, (H, W, 3) uint8 RGB each.
        seed: of the answers, words and order.
    """
    probes = [probe for probe, count in PROBES.items() for _ in range(count)] + [CONTROL] * CONTROL_PAIRS
    for k in rng_for(seed, "canary order").permutation(2 * len(probes)).tolist():
        yield _make_card(probes[k // 2], k // 2, k % 2, pictures, seed)


def _make_card(probe: str, number: int, half: int, pictures: Sequence[ColorArray], seed: int) -> Card:
    rng = rng_for(seed, "canary", str(number))
    first, second, third = (pictures[int(k)] for k in rng.choice(len(pictures), 3, replace=False))
    words = _draw_word(rng), _draw_word(rng)
    right = (int(rng.integers(2)) + half) % 2
    shown: tuple[ColorArray, ...] = (first,)
    if probe == "whole":
        shown = ((first, second)[half],)
    elif probe in ("first", "second"):
        shown = (first, (second, third)[half])[:: 1 if probe == "second" else -1]
    elif probe == "order":
        shown = (first, second) if half else (second, first)
    elif probe != CONTROL:
        shown = ({"detail": _add_stripes, "color": _tint, "border": _paint_rim}[probe](first, half),)
    name = f"{number}-{half + 1}" if probe == CONTROL else str(number)
    return Card(probe, number, half, fill_word("canary.question", card=name), words, ALPHABET[right], shown)


def _draw_word(rng: np.random.Generator) -> str:
    """A word that no language has."""
    return "".join(rng.choice(list("bdgklmnprtvz")) + rng.choice(list("aeiou")) for _ in range(3))


def _add_stripes(image: ColorArray, axis: int) -> ColorArray:
    """Stripes across the whole picture, upright or level, which shrinking it takes away."""
    side = image.shape[1 - axis]
    wave = np.where(np.arange(side) // (_STRIPE_PX // 2) % 2, _STRIPE_LEVELS, -_STRIPE_LEVELS)
    return np.clip(image + (wave[:, None, None] if axis else wave[None, :, None]), 0, 255).astype(np.uint8)


def _tint(image: ColorArray, half: int) -> ColorArray:
    """The picture in red or in blue of the same brightness."""
    import cv2

    codes = cv2.cvtColor(image, cv2.COLOR_RGB2YCrCb).astype(np.float64)
    codes[..., 0] = 70 + codes[..., 0] * (115 / 255)  # room for the tint: nothing is cut off
    codes[..., 1:] = 128 + 0.2 * (codes[..., 1:] - 128)
    codes[..., 1 + half] += _TINT_LEVELS
    return np.asarray(cv2.cvtColor(codes.round().astype(np.uint8), cv2.COLOR_YCrCb2RGB), dtype=np.uint8)


def _paint_rim(image: ColorArray, half: int) -> ColorArray:
    """Black along one side and white along the other."""
    rim = max(2, round(_RIM * image.shape[1]))
    painted = image.copy()
    painted[:, :rim], painted[:, -rim:] = (0, 255) if half else (255, 0)
    return painted


def judge_canary(right: Mapping[str, Sequence[bool]]) -> tuple[dict[str, float], list[str]]:
    """(probe -> share of right answers, what is wrong with the pipeline in words); right: probe -> whether each reply
    is right."""
    shares = {probe: float(np.mean(right.get(probe) or [False])) for probe in (*PROBES, CONTROL)}
    found = _diagnose(shares) if shares[CONTROL] >= KNOWN else ["untrained"]
    return shares, [fill_word(f"canary.{name}") for name in found]


def _diagnose(shares: Mapping[str, float]) -> list[str]:
    """Names of what is wrong: of all pictures first, then of what single probes show."""
    if shares["whole"] <= _REVERSED:
        return ["swapped"]
    if shares["whole"] <= _GUESSED:
        return ["missing"]
    if shares["whole"] < KNOWN:
        return ["part"]
    found = []
    if shares["order"] <= _REVERSED:
        found.append("turned")
    elif min(shares[probe] for probe in ("first", "second", "order")) < KNOWN:
        one = next(
            (name for name in ("first", "second") if shares[name] >= KNOWN and shares[_OTHER[name]] <= _GUESSED), ""
        )
        found.append(f"{one}_only" if one else "several")
    lost = [probe for probe in ("detail", "color", "border") if shares[probe] < KNOWN]
    return found + (["shrunk"] if {"detail", "border"} <= set(lost) else lost)


def score_canary(source: Source, path: Path) -> dict[str, list[bool]]:
    """Probe -> which of its rows a model answered right; rows without a reply count as wrong.

    Args:
        source: the canary.
        path: a log of `vgbench eval`, or a table of ids and replies.

    Raises:
        DatasetError: no readable replies, or none to these rows.
    """
    if has_replies(path):
        said = {key.id: line.response for key, line in read_replies(path).lines.items() if not key.rotation}
    else:
        said = {reply.line.key.id: reply.line.response for reply in logs["table"].read(path).replies}
    items = list(read_questions(source))
    if not any(item.id in said for item in items):
        raise dataset_error(path, "no reply to these rows", "replies with their ids", "Ask the rows of this canary.")
    right = defaultdict[str, list[bool]](list)
    for item in items:
        right[item.category].append(score(make_case(item), said.get(item.id)).score >= 1)
    return right
