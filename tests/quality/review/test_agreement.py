from __future__ import annotations

import math

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


# Four observers, twelve units: Krippendorff, "Computing Krippendorff's Alpha-Reliability" (2011), examples C and D.
PUBLISHED = ["111", "2232", "3333", "3333", "2222", "1234", "4444", "1121", "2222", "555", "11", "3"]


def make_units(seed: int) -> list[list[float]]:
    return [[float((7 * seed + 3 * k * k + 5 * u + u * u * k) % 11 % 5 + 1) for k in range(2 + u % 4)]
            for u in range(3 + 4 * seed)]  # fmt: skip


@pytest.mark.parametrize(
    ("units", "nominal", "ordinal", "ratio"),
    [
        # 0.743 and 0.815 are printed there. All other digits are what the package krippendorff 0.9.0 gave.
        ([[float(value) for value in unit] for unit in PUBLISHED], 0.743421053, 0.815387504, 0.797402775),
        (make_units(1), -0.143470790, -0.211765623, -0.215761905),
        (make_units(2), -0.055248619, -0.092424932, -0.043225695),
        (make_units(3), -0.198175788, -0.166503557, -0.199264177),
    ],
)
def test_alpha_is_the_published_one(units: list[list[float]], nominal: float, ordinal: float, ratio: float) -> None:
    assert krippendorff_alpha([[str(value) for value in unit] for unit in units]) == pytest.approx(nominal, abs=1e-9)
    assert krippendorff_alpha(units, "ordinal") == pytest.approx(ordinal, abs=1e-9)
    assert krippendorff_alpha(units, "ratio") == pytest.approx(ratio, abs=1e-9)


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
