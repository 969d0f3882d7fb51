"""Whether right options come from the same distribution as wrong ones (`docs/validity.md#exchangeability-test`).

Options of one question depend on each other, so the textbook two-sample test does not hold. The Kolmogorov-Smirnov
distance between right and wrong values is kept as the measure; its distribution comes from drawing the right option
anew within every question, which is exact when options are exchangeable and questions independent. Questions of one
scene are not, so the distance must also stand out where whole scenes change sides. Two views of each quantity are
tested: as printed, and beside the mean of the question's options, where differences between questions cannot hide a
leak. Twins of a judgment are a question with two options here.

Options of one question are much alike in some quantities, and there a test sees differences that help nobody. So a
figure falls where the distance is proven *and* large enough for a reader to win by it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from vgbench_gen.core.rng import rng_for
from vgbench_gen.core.types import FloatArray, IntArray
from vgbench_gen.quality._blocks import PRINTED, Block, list_option_sets, make_blocks
from vgbench_gen.quality.family import LEVEL
from vgbench_gen.quality.findings import MAX_ITEMS, ChanceTest, Finding
from vgbench_gen.quality.questions import Question, group_by_scene
from vgbench_gen.quality.text_only import join_claim_pairs

FEWEST = 20
DISTANCE_BAR = 4.0  # points; who goes by one quantity of four options wins at most three quarters of them
_FIRST, _LOOK_AGAIN = 199, 0.05
_MOST_DRAWS = 59_999  # Holm multiplies by the number of figures: so many can tell a leak among 3,000
_CUTS = 256
_CHUNK = 250_000  # values drawn in one batch of permutations
_TESTED_PRINT = frozenset({"significant", "trailing_zeros", "length"})


def audit_exchangeability(questions: Sequence[Question], seed: int) -> list[Finding]:
    """One line per quantity of the options of one task and form, each kind of question (ask) by itself.

    Nothing for open-ended questions. A line's value is the distance in points, from 0 to 100.
    """
    task, form = questions[0].cell
    if form == "open-ended":
        return []
    asked = join_claim_pairs(questions) if form == "judgment" else list(questions)
    found = [
        line for ask in sorted({q.ask for q in asked}) for line in _list_quantities([q for q in asked if q.ask == ask])
    ]
    lines = []
    for line, values, truth, scenes in found:
        rng = rng_for(seed, "exchange", task, form, line.name)
        p, distance = measure_exchangeability_p(values, truth, scenes, rng)
        line = replace(line, task=task, form=form, value=100 * distance)
        lines.append(line.judge(line.value <= DISTANCE_BAR, conclusive=0, test=ChanceTest(p)))
    return sorted(lines, key=lambda line: line.test.p if line.test else 1.0)


def _list_quantities(questions: Sequence[Question]) -> Iterator[tuple[Finding, FloatArray, IntArray, IntArray]]:
    """A line without its value for each quantity of the options of one kind of question (ask).

    With the quantity of every option (n, k), the places of the truths (n,) and the scenes by number (n,).
    """
    ask, scenes = questions[0].ask, np.array(group_by_scene(questions), dtype=np.int64)
    for block in make_blocks(questions, list_option_sets(questions)):
        n, k = block.gaps.shape[:2]
        if n < FEWEST or k < 2:
            continue
        truth = np.array([questions[row].truth for row in block.rows], dtype=np.int64)
        for name, values in _choose_columns(block).items():
            line = Finding(audit="exchange", name=f"{ask}: {name}" if ask else name, n=n)
            ids = tuple(questions[block.rows[i]].id for i in _find_worst(values, truth))
            yield (
                replace(line, unit="KS", bar=f"<= {DISTANCE_BAR:g}, or p >= {LEVEL:g} (Holm)", items=ids),
                values,
                truth,
                scenes[list(block.rows)],
            )


def measure_exchangeability_p(
    values: FloatArray, truth: IntArray, scenes: IntArray, rng: np.random.Generator, most: int = _MOST_DRAWS
) -> tuple[float, float]:
    """(p, KS distance) of right against wrong values (n, k), the larger p of two tests.

    One draws the right option anew within every question. The other lets whole scenes change the sign of what they add
    to the difference of the distributions (wild cluster bootstrap, Cameron, Gelbach and Miller 2008): what repeats
    within a scene is one observation there.

    The distance is the largest at `_CUTS` places that are spread evenly over the values, or at all of them where there
    are fewer. A look takes 199 draws; only where it says p < 0.05 another takes ten times as many fresh ones, and so on
    up to `most`.

    Args:
        values: of the options, (n, k).
        truth: places of the right ones, (n,).
        scenes: number of the scene of each question, (n,).
        rng: the only source of chance.
        most: draws of a look, at most.
    """
    n, k = values.shape
    cuts = np.unique(values)
    if len(cuts) > _CUTS:
        cuts = np.unique(np.quantile(values, np.arange(1, _CUTS + 1) / _CUTS, method="lower"))
    bins = np.searchsorted(cuts, values)  # (n, k): a value lies below or at every cut from this one on
    width = len(cuts) + 1
    everyone = np.cumsum(np.bincount(bins.ravel(), minlength=width))

    def measure_distances(chosen: IntArray) -> FloatArray:
        places = bins[np.arange(n), chosen] + width * np.arange(len(chosen))[:, None]
        right = np.bincount(places.ravel(), minlength=width * len(chosen)).reshape(len(chosen), width).cumsum(axis=1)
        return np.asarray(np.abs(right / n - (everyone - right) / (n * (k - 1))).max(axis=1), dtype=np.float64)

    numbers, at = np.unique(scenes, return_inverse=True)
    added = np.zeros((len(numbers), width))
    np.add.at(added, (at, bins[np.arange(n), truth]), float(k))
    np.add.at(added, (np.repeat(at, k), bins.ravel()), -1.0)
    added = added.cumsum(axis=1) / (n * (k - 1))

    found = float(measure_distances(truth[None])[0])
    draws = min(_FIRST, most)
    while True:
        redrawn = turned = 0
        left = draws
        while left:
            batch = min(left, max(1, _CHUNK // n))
            redrawn += int((measure_distances(rng.integers(0, k, size=(batch, n))) >= found - 1e-9).sum())
            signs = rng.choice((-1.0, 1.0), size=(batch, len(numbers)))
            turned += int((np.abs(signs @ added).max(axis=1) >= found - 1e-9).sum())
            left -= batch
        above = max(redrawn, turned)
        p = (1 + above) / (1 + draws)
        if draws == most or above > _LOOK_AGAIN * draws:
            return p, found
        draws = min(10 * draws, most)


def _choose_columns(block: Block) -> dict[str, FloatArray]:
    found = {name: c for name, c in block.columns.items() if name not in PRINTED or name in _TESTED_PRINT}
    if block.kind in ("name", "text"):
        found = {name: c for name, c in found.items() if name in _TESTED_PRINT}
    if block.kind == "scalar" and (block.values > 0).all():
        found["value"] = np.log(block.values[..., 0])
    both = found | {f"{name}, beside the others": c - c.mean(axis=1, keepdims=True) for name, c in found.items()}
    # Sums in another order differ in the last digit, and equal values must stay equal.
    return {name: np.asarray(np.round(c, 9)) for name, c in both.items() if np.ptp(c, axis=1).max() > 1e-9}


def _find_worst(values: FloatArray, truth: IntArray) -> IntArray:
    """Questions whose right value stands furthest from the wrong ones."""
    right = values[np.arange(len(truth)), truth]
    gap = np.abs(right - (values.sum(axis=1) - right) / (values.shape[1] - 1))
    return np.argsort(-gap, kind="stable")[:MAX_ITEMS]
