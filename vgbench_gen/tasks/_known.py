"""What a reader of the text alone can know about answers after reading the other questions of a build.

Answers cluster together with what the text says beside them: chairs are as wide as chairs, things stand on floors,
what appears low in an image is near. How they do depends on the scenes, so it is estimated from a build's own facts: a
kernel density over them, from which a fact's own scene is left out (a learner judged on unseen scenes has none of it,
and no truth may be favoured by its own kernel). Options are then balanced for a reader who knows that (`_ladder`).

How wide kernels are, and how much is left to the constants of `core.gates` (`doubt`), is chosen by the likelihood of
the true answers, each under the facts of other scenes. Fewer than `FEWEST_FACTS` facts or `FEWEST_SCENES` scenes teach
nothing: the constants stand alone there, as they do for a fact that is asked outside any build.
"""

from __future__ import annotations

import abc
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.spatial.distance import cdist

from vgbench_gen.core.rng import hash_stably
from vgbench_gen.core.types import FloatArray
from vgbench_gen.tasks._ladder import Density

FEWEST_FACTS, FEWEST_SCENES = 50, 8
_MOST_FACTS, _MOST_TRIED = 2000, 400  # kernels kept and facts that widths are chosen by; bounds time and memory
# Widest first, each the one before over the root of two: a kernel is then the square of the one before.
_WIDER = (2.0, 2**0.5, 1.0, 0.5**0.5)
_DOUBT = (0.03, 0.1, 0.3, 1.0)
_CELLS = 64  # of a density between its ends
_ALIKE = 1e-6  # of the weight of one fact at the centre of its kernel; less says nothing


@dataclass(frozen=True, slots=True)
class Clue(abc.ABC):
    """One question as its text shows it, for whatever answer it might have. It is hashable."""

    scene: str
    """Scan that the question is about, as "source/id"."""
    key: str
    """Name of the question's fact in its scan."""
    answer: float
    """Logarithm of the true answer."""
    usual: Density
    """How the logarithm of answers is spread by constants alone, between the ends of what may be asked."""

    @abc.abstractmethod
    def features(self, x: FloatArray) -> FloatArray:
        """The numbers (n, d) that questions are compared by, in kernel widths, if the logarithm of the answer were each
        of x (n,)."""

    @abc.abstractmethod
    def stretch(self, x: FloatArray) -> FloatArray:
        """How much of the space of features one unit of x takes up, (n,); it turns a density of features into one of
        x."""


@dataclass(frozen=True, slots=True)
class Curve:
    """A tabled density of the logarithm of an answer."""

    low: float
    """Logarithm of the smallest answer."""
    high: float
    """Logarithm of the largest answer."""
    logs: tuple[float, ...]
    """Logarithms of the density at equal steps from `low` to `high`."""

    def density(self, x: FloatArray) -> FloatArray:
        """The density at logarithms x (n,), up to a factor."""
        return np.asarray(np.exp(np.interp(x, np.linspace(self.low, self.high, len(self.logs)), self.logs)))


@dataclass(frozen=True, slots=True, eq=False)
class Known:
    """What the facts of a build say about answers."""

    points: FloatArray
    """(n, d) features of the facts with their true answers, in kernel widths."""
    scenes: tuple[str, ...]
    """Scan of each of the n facts, as "source/id"."""
    wider: float = 1.0
    """Factor on the widths of kernels."""
    doubt: float = 0.1
    """Share of the density that is left to the constants, 0 to 1."""

    def of(self, clue: Clue) -> Density:
        """How answers are spread for a reader who knows the facts of all other scenes."""
        return _curve(self, clue)

    def learnt(self, clue: Clue, x: FloatArray) -> FloatArray:
        """The density of log answers x (n,) by the facts of other scenes, summing to one; it is that of the constants
        where the question is like none of them."""
        apart = cdist(clue.features(x), _elsewhere(self, clue.scene), "sqeuclidean")
        return _shares(np.exp(apart / (-2 * self.wider**2)), clue, x)


def learn(clues: Iterable[Clue]) -> Known | None:
    """What these facts teach, or None where they are too few; their order does not matter."""
    ranked = sorted(clues, key=lambda clue: hash_stably("known", clue.scene, clue.key))[:_MOST_FACTS]
    scenes = tuple(clue.scene for clue in ranked)
    if len(ranked) < FEWEST_FACTS or len(set(scenes)) < FEWEST_SCENES:
        return None
    points = np.concatenate([clue.features(np.array([clue.answer])) for clue in ranked])
    tried = ranked[:_MOST_TRIED]
    grids = [np.linspace(clue.usual.low, clue.usual.high, _CELLS) for clue in tried]
    usual = np.array([_usual(clue, x) for clue, x in zip(tried, grids, strict=True)])
    places = [int(np.argmin(np.abs(x - clue.answer))) for clue, x in zip(tried, grids, strict=True)]
    truths = np.arange(len(tried)), np.array(places)
    known = Known(points, scenes, _WIDER[0])
    learnt = np.array([_by_width(known, clue, x) for clue, x in zip(tried, grids, strict=True)])
    best = (-np.inf, 1.0, 1.0)
    for k, wider in enumerate(_WIDER):
        for doubt in _DOUBT:
            likely = (1 - doubt) * learnt[:, k][truths] + doubt * usual[truths]
            best = max(best, (round(float(np.log(likely + 1e-12).mean()), 6), wider, doubt))
    return Known(points, scenes, best[1], best[2])


def spread_of(known: Known | None, clue: Clue) -> Density:
    """What a reader knows of an answer: from a build's facts where there are enough, else from the constants."""
    return clue.usual if known is None else known.of(clue)


@lru_cache(maxsize=512)
def _curve(known: Known, clue: Clue) -> Curve:
    x = np.linspace(clue.usual.low, clue.usual.high, _CELLS)
    mixed = (1 - known.doubt) * known.learnt(clue, x) + known.doubt * _usual(clue, x)
    # Rounded, so that no option hangs on the last digits of a sum.
    logs = np.round(np.log(np.maximum(mixed, 1e-9)), 4)
    return Curve(clue.usual.low, clue.usual.high, tuple(logs.tolist()))


def _by_width(widest: Known, clue: Clue, x: FloatArray) -> FloatArray:
    """(widths, n) `Known.learnt` for all of `_WIDER`, from those of the first."""
    kernels = np.exp(cdist(clue.features(x), _elsewhere(widest, clue.scene), "sqeuclidean") / (-2 * widest.wider**2))
    found = [_shares(kernels, clue, x)]
    for _ in _WIDER[1:]:
        np.square(kernels, out=kernels)
        found.append(_shares(kernels, clue, x))
    return np.array(found)


def _shares(kernels: FloatArray, clue: Clue, x: FloatArray) -> FloatArray:
    """Of the density of each x by kernels (n, facts)."""
    density = kernels.sum(axis=1) * clue.stretch(x)
    total = float(density.sum())
    return np.asarray(density / total) if total > _ALIKE else _usual(clue, x)


@lru_cache(maxsize=128)
def _elsewhere(known: Known, scene: str) -> FloatArray:
    return np.asarray(known.points[np.array([other != scene for other in known.scenes], dtype=bool)])


def _usual(clue: Clue, x: FloatArray) -> FloatArray:
    density = clue.usual.density(x)
    return np.asarray(density / density.sum())
