"""How sure a measured share of right answers is, when questions of one scene are not independent.

Source of the tests: Wilson 1927; the cluster bootstrap and the cluster-robust t test as in Cameron and Miller,
"A Practitioner's Guide to Cluster-Robust Inference" (2015); Holm 1979.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import scipy  # its rooms load when used: scipy.stats takes a second and 40 MB

from vgbench_gen.core.types import FloatArray, IntArray

CONFIDENCE = 0.95
_DRAWS = 2000
_SIGNS = 9999  # tells p below 0.001 from above it
_FEWEST_DRAWS, _MOST_WEIGHTS = 400, 8_000_000  # 32 MB; with thousands of clusters the ends hardly move
_LEVELS = ((1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2)


def wilson_interval(right: float, n: int) -> tuple[float, float]:
    """95 % interval of a share, `right` of `n` independent questions; `right` may be fractional (shared credit).

    Equal to scipy's `binomtest(right, n).proportion_ci(method="wilson")` for whole numbers. (0, 1) for n = 0.
    """
    if n == 0:
        return 0.0, 1.0
    z = float(scipy.special.ndtri(_LEVELS[1]))
    share = right / n
    centre = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * np.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    return max(0.0, float(centre - half)), min(1.0, float(centre + half))


def adjust_by_holm(p_values: Sequence[float]) -> list[float]:
    """Holm's adjusted p values, in the order given: compare each with the level wanted for the whole family."""
    p = np.asarray(p_values, dtype=np.float64)
    order = np.argsort(p, kind="stable")
    steps = np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1))
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(steps, 1.0)
    return [float(value) for value in adjusted]


class Clusters:
    """Questions in clusters (scenes), with one set of bootstrap weights for all measures over them."""

    def __init__(
        self,
        labels: Sequence[int] | Sequence[str] | IntArray,
        rng: np.random.Generator,
        draws: int = _DRAWS,
        shown: Sequence[int] | Sequence[str] | None = None,
    ) -> None:
        """`labels`: cluster of each question, at least one. `shown`: that of its images, where they are another's."""
        n = len(labels)
        index = np.unique([*labels, *(shown or ())], return_inverse=True)[1].astype(np.int64)
        self.index, self._shown = index[:n], index[n:]
        self.count = int(index.max()) + 1
        self._groupings = [self.index]
        if shown is not None:
            pair = np.sort(np.stack([self.index, self._shown]), axis=0)
            self._groupings += [self._shown, np.unique(pair, axis=1, return_inverse=True)[1].ravel()]
        self._sizes = np.bincount(self.index, minlength=self.count).astype(np.float64)
        shares = np.full(self.count, 1 / self.count)
        draws = min(draws, max(_FEWEST_DRAWS, _MOST_WEIGHTS // self.count))
        self._weights = rng.multinomial(self.count, shares, size=draws).astype(np.float32)

    def interval(self, credit: npt.ArrayLike) -> tuple[float, float]:
        """95 % interval of the mean credit (n,), credits 0 to 1.

        Scenes are drawn with replacement (percentiles). Never narrower than Wilson's interval for independent
        questions: with a handful of scenes, or none that differ, a bootstrap is too sure of itself.
        """
        values = np.asarray(credit, dtype=np.float64)
        low, high = wilson_interval(float(values.sum()), len(values))
        if self.count < 2:
            return low, high
        if len(self._shown):  # a question counts as often as both scenes are drawn
            weights = self._weights[:, self.index] * self._weights[:, self._shown]
            weights = weights[weights.any(axis=1)]
            drawn = np.quantile(weights @ values / weights.sum(axis=1), _LEVELS)
        else:
            right = self._weights @ self._sum_clusters(values).astype(np.float32)
            drawn = np.quantile(right / (self._weights @ self._sizes.astype(np.float32)), _LEVELS)
        return min(low, float(drawn[0])), max(high, float(drawn[1]))

    def test_below(self, credit: npt.ArrayLike, goal: float) -> float:
        """One-sided p of "the mean credit is no worse than `goal`", as `test_above`."""
        return self.test_above(1 - np.asarray(credit, dtype=np.float64), 1 - goal)

    def test_above(self, credit: npt.ArrayLike, chance: npt.ArrayLike) -> float:
        """One-sided p of "the mean credit is no better than chance"; `chance` is a number or (n,).

        The larger of two p values: the binomial tail, exact where credits are 0 or 1 and chance is the same
        everywhere (fractional credit varies less, so the tail is then too large), and a t test on the sums of
        clusters, which sees that questions of one scene may be right or wrong together.
        """
        values = np.asarray(credit, dtype=np.float64)
        expected = np.broadcast_to(np.asarray(chance, dtype=np.float64), values.shape)
        n, right = len(values), float(values.sum())
        p_binomial = float(scipy.stats.binom.sf(np.floor(right + 1e-9) - 1, n, expected.mean()))
        if self.count < 2:
            return p_binomial
        spread, gain = self._measure_spread(values - expected), float((values - expected).sum())
        if spread < 1e-9 * n:
            return p_binomial if gain > 1e-9 * n else 1.0
        return max(p_binomial, float(scipy.stats.t.sf(gain / spread, self.count - 1)))

    def test_rules(self, excess: FloatArray, rng: np.random.Generator) -> FloatArray:
        """(rules,) one-sided p of "no better than chance", each for the family of all rules.

        excess: (rules, n) credit over that of guessing. Whole scenes change the sign of what they add, alike for all
        rules (wild cluster bootstrap, Cameron, Gelbach and Miller 2008), and each t is compared with the largest one
        under such signs (Westfall and Young 1993); so trying many rules is paid for, and what repeats within a scene
        is one observation.
        """
        sums = np.stack([self._sum_clusters(row) for row in excess])
        spread = np.sqrt((sums**2).sum(axis=1))
        scaled = np.where(spread[:, None] > 1e-9, sums / np.maximum(spread, 1e-9)[:, None], 0.0)
        signs = rng.choice((-1.0, 1.0), size=(self.count, _SIGNS))
        largest = (scaled @ signs).max(axis=0)
        above = (largest[None] >= scaled.sum(axis=1)[:, None] - 1e-9).sum(axis=1)
        return np.asarray((1 + above) / (1 + _SIGNS))

    def _measure_spread(self, excess: FloatArray) -> float:
        """Standard deviation of the sum of `excess` (n,) over redrawn scenes.

        Where images are another question's, that of the largest variance: by scenes of questions, of images, by pairs
        of scenes, and dyadic (Fafchamps and Gubert 2007), where all that share a scene in either place vary together.
        """
        residual = excess - excess.mean()
        squares = [float((np.bincount(group, residual) ** 2).sum()) for group in self._groupings]
        if len(self._shown):
            touched = np.bincount(self.index, residual, self.count) + np.bincount(self._shown, residual, self.count)
            squares.append(float((touched**2).sum()) - squares[-1])
        return float(np.sqrt(max(squares) * self.count / (self.count - 1)))

    def _sum_clusters(self, values: FloatArray) -> FloatArray:
        return np.bincount(self.index, weights=values, minlength=self.count).astype(np.float64)
