"""Printing numbers and reading them back, against Python's decimal module."""

from __future__ import annotations

from decimal import ROUND_HALF_EVEN, Context, Decimal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vgbench_gen.core.types import FloatArray
from vgbench_gen.text import numbers

finite = st.floats(min_value=-1e6, max_value=1e6, allow_nan=False)


@pytest.mark.parametrize(
    ("x", "decimals", "text"),
    [
        (2.1, 2, "2.10"),
        (-0.001, 2, "0.00"),
        (-0.0, 3, "0.000"),
        (-0.4, 0, "0"),
        (1e-9, 2, "0.00"),
        (0.125, 2, "0.12"),
        (0.375, 2, "0.38"),
        (2.675, 2, "2.67"),
        (-1.5, 0, "-2"),
        (123456789.0, 1, "123456789.0"),
    ],
)
def test_fixed(x: float, decimals: int, text: str) -> None:
    assert numbers.format_fixed(x, decimals) == text


@pytest.mark.parametrize(
    ("x", "text"),
    [
        (1.0, "1.000"),
        (0.0, "0.000"),
        (-0.0, "0.000"),
        (-0.00041236, "-0.0004124"),
        (0.000012, "0.00001200"),
        (123456.0, "123500"),
        (9999.6, "10000"),
        (12.345678, "12.35"),
        (-345.678, "-345.7"),
        (1e-17, "0.000"),
    ],
)
def test_significant(x: float, text: str) -> None:
    assert numbers.format_significant(x, 4) == text


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf"), 1e300])
def test_what_cannot_be_printed(bad: float) -> None:
    with pytest.raises(ValueError, match="cannot print"):
        numbers.format_fixed(bad, 2)
    with pytest.raises(ValueError, match="cannot print"):
        numbers.format_significant(bad)


@given(finite, st.integers(0, 6))
def test_fixed_rounds_like_decimal_and_reads_back(x: float, decimals: int) -> None:
    text = numbers.format_fixed(x, decimals)
    rounded = Decimal(x).quantize(Decimal(1).scaleb(-decimals), rounding=ROUND_HALF_EVEN)
    assert Decimal(text) == rounded
    assert numbers.parse_numbers(f"about {text} metres.").tolist() == [float(rounded)]
    assert "e" not in text
    assert not (text.startswith("-") and float(text) == 0)


@given(finite.filter(lambda x: abs(x) > 1e-9), st.integers(1, 8))
def test_significant_rounds_like_decimal_and_reads_back(x: float, digits: int) -> None:
    text = numbers.format_significant(x, digits)
    rounded = Context(prec=digits, rounding=ROUND_HALF_EVEN).create_decimal(Decimal(x))
    assert Decimal(text) == rounded
    assert numbers.parse_numbers(text).tolist() == [float(rounded)]
    if "." in text:
        assert len(text.lstrip("-0.").replace(".", "")) == digits


def test_arrays_read_back_in_order() -> None:
    values: FloatArray = np.random.default_rng(3).normal(size=(3, 3)) * [1, 100, 1e-4]
    expected = np.array([[float(f"{x:.3e}") for x in row] for row in values])
    for text in (
        numbers.format_matrix(values, numbers.format_significant),
        numbers.format_matrix_line(values, numbers.format_significant),
    ):
        np.testing.assert_array_equal(numbers.parse_numbers(text).reshape(3, 3), expected)
    assert numbers.format_matrix([[1, 2], [3, 4]], lambda x: numbers.format_fixed(x, 1)) == "[[1.0, 2.0],\n [3.0, 4.0]]"
    assert (
        numbers.format_matrix_line([[1, 2], [3, 4]], lambda x: numbers.format_fixed(x, 1)) == "[[1.0, 2.0], [3.0, 4.0]]"
    )
    assert numbers.format_vector([0.254, -0.001], lambda x: numbers.format_fixed(x, 2)) == "[0.25, 0.00]"
    corners = np.random.default_rng(4).normal(size=(8, 3))
    text = numbers.format_corners(corners)
    assert "\n" not in text
    np.testing.assert_array_equal(
        numbers.parse_numbers(text).reshape(8, 3), [[float(f"{x:.2f}") for x in c] for c in corners]
    )


def test_pixels_are_integers() -> None:
    assert numbers.format_point((301, 222)) == "(301, 222)"
    assert numbers.format_point(np.array([1.0, -0.0])) == "(1, 0)"
    for bad in ([1.5, 2], [1, 2, 3], [1, float("nan")]):
        with pytest.raises(ValueError, match="2 integer pixel coordinates"):
            numbers.format_point(bad)


@pytest.mark.parametrize("bad", [[], [[]], [[1.0], [2.0]]])
def test_vector_refuses_other_shapes(bad: list[float]) -> None:
    with pytest.raises(ValueError, match="1 axes"):
        numbers.format_vector(bad, str)


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("fx_2 = 577, X2 = R X1 + t, H33, 3x3, 3D", [577.0]),
        ("It is 2.10.", [2.10]),
        ("[-1.5,+2] (3, -0.25)", [-1.5, 2.0, 3.0, -0.25]),
        ("range 3-5 and 1.2.3", [3.0]),
        ("region 3", [3.0]),
        ("no number", []),
    ],
)
def test_parse_numbers(text: str, values: list[float]) -> None:
    parsed = numbers.parse_numbers(text)
    assert parsed.dtype == np.float64
    assert parsed.tolist() == values


def test_parse_refuses_exponents_and_endless_text() -> None:
    with pytest.raises(ValueError, match="exponent"):
        numbers.parse_numbers("R = 1.5e-03")
    with pytest.raises(ValueError, match="at most"):
        numbers.parse_numbers("1 " * 60_000)


def test_numbers_are_spelled_for_people() -> None:
    assert numbers.format_value([1.23456789]) == "1.23457"
    assert numbers.format_value(np.array([[1.0, -20.5], [0.25, 3.0]])).splitlines() == [
        "[[       1,    -20.5],",
        "[    0.25,        3]]",
    ]
    assert numbers.format_value("frames 1 and 2") == "frames 1 and 2"
