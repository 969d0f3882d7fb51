from __future__ import annotations

import math

import krippendorff
import numpy as np
import pytest

from vgbench_gen.quality.review.agreement import (
    gwet_ac1,
    krippendorff_alpha,
    measure_agreement,
    rate_bound,
    raw_agreement,
)

# 125 items, two reviewers: 118 both fine, 5 and 2 differ, none both bad.
PARADOX = [["y", "y"]] * 118 + [["y", "n"]] * 5 + [["n", "y"]] * 2


def test_nearly_all_fine_is_agreement_for_ac1_and_none_for_alpha() -> None:
    found = measure_agreement(PARADOX, ("y", "n"))
    assert found.n == 125
    assert found.raw == pytest.approx(118 / 125)
    share = 243 / 250  # of "y" over both
    chance = 2 * share * (1 - share)
    assert found.ac1 == pytest.approx((118 / 125 - chance) / (1 - chance))
    assert found.ac1 == pytest.approx(0.9408, abs=1e-4)
    # Krippendorff's coincidences by hand: observed 2 * 7 / 250, expected 2 * 243 * 7 / (250 * 249).
    assert found.alpha == pytest.approx(1 - (14 / 250) / (2 * 243 * 7 / (250 * 249)))
    assert found.alpha < 0 < 0.9 < found.ac1


def test_three_raters_with_gaps_by_hand() -> None:
    units = [["a", "a", "b"], ["b", "b"], ["a"], ["c", "a", "c"]]
    # Pairs agree 1/3, 1, 1/3. Shares over all four units: a (2/3 + 0 + 1 + 1/3) / 4, b (1/3 + 1) / 4, c (2/3) / 4.
    assert raw_agreement(units) == pytest.approx(5 / 9)
    shares = [0.5, 1 / 3, 1 / 6]
    chance = sum(p * (1 - p) for p in shares) / 2
    assert gwet_ac1(units, ("a", "b", "c")) == pytest.approx((5 / 9 - chance) / (1 - chance))


def test_two_categories_of_four_count_as_four() -> None:
    units = [["A", "A"], ["B", "B"], ["A", "B"], ["A", "A"]]
    p, q = 5 / 8, 3 / 8
    chance = (p * (1 - p) + q * (1 - q)) / 3
    assert gwet_ac1(units, "ABCD") == pytest.approx((0.75 - chance) / (1 - chance))


def test_alpha_is_the_library_s_on_its_own_example() -> None:
    # Four observers, twelve units with gaps (Krippendorff 2011): nominal 0.743.
    table = np.array(
        [
            [1, 2, 3, 3, 2, 1, 4, 1, 2, np.nan, np.nan, np.nan],
            [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, np.nan, 3],
            [np.nan, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, np.nan],
            [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, np.nan],
        ]
    )
    units = [[str(value) for value in column if not np.isnan(value)] for column in table.T]
    assert krippendorff_alpha(units) == pytest.approx(0.743, abs=5e-4)
    numbers = [[float(value) for value in column if not np.isnan(value)] for column in table.T]
    ratio = krippendorff.alpha(reliability_data=table, level_of_measurement="ratio")
    assert krippendorff_alpha(numbers, "ratio") == pytest.approx(ratio)


def test_what_cannot_be_measured_is_nan() -> None:
    assert math.isnan(krippendorff_alpha([["y", "y"]] * 9))
    assert math.isnan(raw_agreement([["y"]]))
    assert math.isnan(gwet_ac1([["y"]], "yn"))
    assert gwet_ac1([["y", "y"]] * 9, "yn") == 1
    with pytest.raises(ValueError, match="two categories"):
        gwet_ac1([["y", "y"]], "y")


def test_no_defect_in_99_bounds_the_rate_at_3_percent() -> None:
    assert rate_bound(0, 99) == pytest.approx(1 - 0.05 ** (1 / 99))
    assert 0.029 < rate_bound(0, 99) < 0.0301
    assert 0.0099 < rate_bound(0, 299) < 0.01
    assert rate_bound(1, 99) > 0.045
    assert rate_bound(0, 0) == 1
