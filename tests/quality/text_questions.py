"""Questions made of numbers alone, with the defects of published sets or without.

Reasons and values: `docs/validity.md#rules-that-leak-by-construction`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from vgbench_gen.core.rng import rng_for
from vgbench_gen.quality.questions import Question

Values = npt.NDArray[np.float64]
Maker = Callable[[np.random.Generator], Values]
"""Options (4, d), the right one first."""


def question(name: str, options: Sequence[str] = (), truth: int = -1, **fields: object) -> Question:
    given: dict[str, object] = {
        "id": name,
        "group": f"group {name}",
        "scene": "",
        "source": "s",
        "task": "t",
        "ask": "",
        "form": "multi-choice" if options else "open-ended",
        "question": "Which value is right?",
        "context": "",
        "images": (f"{name}.jpg",),
    }
    return Question(**(given | {"options": tuple(options), "truth": truth} | fields))  # type: ignore[arg-type]


def printed(row: Values, decimals: int = 2) -> str:
    numbers = [f"{value:.{decimals}f}" for value in row]
    return numbers[0] if len(numbers) == 1 else f"[{', '.join(numbers)}]"


def choices(maker: Maker, count: int, decimals: int = 2, scenes: int = 60, seed: int = 0) -> list[Question]:
    """`count` questions by `maker`, letters at random, spread over scenes."""
    rng = rng_for(seed, "questions")
    found = []
    for number in range(count):
        values = maker(rng)
        order = rng.permutation(len(values))
        texts = [printed(values[i], decimals) for i in order]
        truth = int(np.flatnonzero(order == 0)[0])
        found.append(question(f"q{number}", texts, truth, scene=f"s/{number % scenes}"))
    return found


def times_noise(low: float, high: float) -> Maker:
    """The published rule for cameras: truth x (1 +- U(low, high))."""

    def make(rng: np.random.Generator) -> Values:
        truth = rng.uniform(500, 900)
        signs = rng.choice([-1, 1], 3)
        return np.array([[truth], *(truth * (1 + signs * rng.uniform(low, high, 3)))[:, None]])

    return make


def times_uniform(reach: float) -> Maker:
    """The published rule for distances: truth x (1 + U(-reach, reach))."""

    def make(rng: np.random.Generator) -> Values:
        truth = rng.uniform(50, 500)
        return np.array([[truth], *(truth * (1 + rng.uniform(-reach, reach, 3)))[:, None]])

    return make


def around_truth(d: int) -> Maker:
    """Normal noise around the truth in d dimensions."""

    def make(rng: np.random.Generator) -> Values:
        truth = rng.normal(0, 10, d)
        return np.array([truth, *(truth + rng.normal(0, 1, (3, d)))])

    return make


def around_hidden(d: int) -> Maker:
    """The same noise around a hidden centre; the truth is one of the four."""

    def make(rng: np.random.Generator) -> Values:
        return np.asarray(rng.normal(0, 10, d) + rng.normal(0, 1, (4, d)))

    return make


def kept_apart(d: int, all_pairs: bool, gap: float) -> Maker:
    """Uniform draws from a cube that keep a distance from the truth, or all from each other."""

    def make(rng: np.random.Generator) -> Values:
        while True:
            values = rng.uniform(0, 1, (4, d))
            apart = np.linalg.norm(values[:, None] - values, axis=2) + 9 * np.eye(4)
            if (apart if all_pairs else apart[0]).min() >= gap:
                return values

    return make


def ladder(rng: np.random.Generator) -> Values:
    """Steps of 1.3, the rank of the truth uniform."""
    values = rng.uniform(100, 200) * 1.3 ** np.arange(4)
    return np.asarray(np.roll(values, -int(rng.integers(4)))[:, None])
