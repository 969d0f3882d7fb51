"""Numbers as they are printed in questions, and read back.

Rounding is decimal and correct for the exact binary value (Python's format, ties to even), happens once, here,
and answers are recomputed from what `parse_numbers` reads back. No exponent, no negative zero, "." as decimal
point, no thousands separator. Counterpart: `parse_numbers(print(x))` equals the rounded x.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import numpy.typing as npt

from vgbench_gen.core.types import FloatArray

# A number must not touch a letter, digit, dot or another sign: X2, H33, 3x3, 3D and 1.2.3 hold no value.
_NUMBER = re.compile(r"(?<![\w.+-])[+-]?[0-9]{1,40}(?:\.[0-9]{1,40})?(?!\w|\.[0-9])", re.ASCII)
_EXPONENT = re.compile(r"[0-9][eE][+-]?[0-9]")
_MAX_TEXT_CHARS = 100_000
# What stands behind a printed length or angle in the place of its sign: "0.42 m right" and "0.42 m left".
OPPOSITES = {"left": "right", "up": "down", "back": "forward", "counterclockwise": "clockwise"}
SIGN_WORDS = rf"\b(?:{'|'.join([*OPPOSITES, *OPPOSITES.values()])})\b"
_SIGNED = rf"[0-9]+\.[0-9]+ [a-z]+ (?:{SIGN_WORDS}|(?:wide|deep|high)\b)"
# "0.42 m right, 0.90 m forward; turned 12.0 degrees left"
SIGNED_LIST = rf"{_SIGNED}(?:[,;] (?:[a-z]+ ){{0,2}}{_SIGNED})+"
_LARGEST = 1e15  # beyond it float64 no longer holds every integer, and nothing measured here comes near
_NEGLIGIBLE = 1e-10  # rounding noise of a composed matrix; worth 1e-7 px as a perspective entry at 1000 px


def format_fixed(x: float, decimals: int) -> str:
    """`x` with a fixed number of decimals, e.g. fixed(-0.001, 2) == "0.00".

    Raises:
        ValueError: x is not finite or beyond 1e15.
    """
    text = f"{_check_finite(x):.{decimals}f}"
    # Looked at here: a set of poses or boxes prints a hundred numbers, and a call takes as long as printing one.
    return text[1:] if text[0] == "-" and not text.strip("-0.") else text


def format_significant(x: float, digits: int = 4) -> str:
    """`x` with a fixed number of significant digits, trailing zeros kept and no exponent.

    significant(1.0) == "1.000", significant(-0.00041236) == "-0.0004124", significant(123456) == "123500".
    Zero, which has no leading digit, is printed as precisely as one: significant(0.0) == "0.000"; so is anything
    below 1e-10 in magnitude, which is rounding noise of a composed matrix.

    Raises:
        ValueError: x is not finite or beyond 1e15.
    """
    value = _check_finite(x)
    if abs(value) < _NEGLIGIBLE:
        return format_fixed(0.0, digits - 1)
    return format(Decimal(f"{value:.{digits - 1}e}"), "f")


def format_matrix(values: npt.ArrayLike, formatter: Callable[[float], str]) -> str:
    """Two-dimensional array, one bracketed row per line: "[[a, b],\\n [c, d]]"."""
    return "[" + ",\n ".join(_format_rows(values, formatter)) + "]"


def format_matrix_line(values: npt.ArrayLike, formatter: Callable[[float], str]) -> str:
    """Two-dimensional array on one line: "[[a, b], [c, d]]"."""
    return "[" + ", ".join(_format_rows(values, formatter)) + "]"


def format_vector(values: npt.ArrayLike, formatter: Callable[[float], str]) -> str:
    """One-dimensional array: "[a, b, c]"."""
    return f"[{', '.join(formatter(float(x)) for x in _check_shape(values, 1))}]"


def format_point(uv: npt.ArrayLike) -> str:
    """Point (2,) in integer pixels: "(u, v)". Raises ValueError where a coordinate is not an integer."""
    return f"({', '.join(_format_integers(uv, 2))})"


def format_corners(corners_m: npt.ArrayLike, decimals: int = 2) -> str:
    """Points (N, 3), meters, on one line in the order given: "(x, y, z), (x, y, z), …"."""
    array = _check_shape(corners_m, 2)
    return ", ".join(f"({', '.join(format_fixed(float(x), decimals) for x in row)})" for row in array)


def parse_numbers(text: str) -> FloatArray:
    """All numbers in a text, in order, as a flat float64 array (N,); the caller knows the shape.

    A number that touches a letter is part of a name (fx_2, X2, H33, 3x3) and is not read.

    Raises:
        ValueError: an exponent, which nothing here prints, or a text beyond 100 000 characters.
    """
    if len(text) > _MAX_TEXT_CHARS:
        raise ValueError(f"text of {len(text)} characters; at most {_MAX_TEXT_CHARS} are read")
    exponent = _EXPONENT.search(text)
    if exponent is not None:
        raise ValueError(f"number with an exponent at {text[max(0, exponent.start() - 10) : exponent.end() + 10]!r}")
    return np.array([float(token) for token in number_tokens(text)], dtype=np.float64)


def number_tokens(text: str) -> list[str]:
    """The numbers of a text as printed, in order, by the same rule as `parse_numbers`."""
    return _NUMBER.findall(text)


def blank_numbers(text: str) -> str:
    """The text with "#" in the place of each number."""
    return _NUMBER.sub("#", text)


def count_decimals(token: str) -> int:
    """The number of digits behind the point of a printed number."""
    return len(token.partition(".")[2])


def keep_digits(token: str) -> str:
    """The digits of a printed number from the first one that is not zero."""
    return token.lstrip("+-").replace(".", "").lstrip("0")


def _format_rows(values: npt.ArrayLike, formatter: Callable[[float], str]) -> list[str]:
    return [f"[{', '.join(formatter(float(x)) for x in row)}]" for row in _check_shape(values, 2)]


def _check_shape(values: npt.ArrayLike, ndim: int) -> FloatArray:
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != ndim or array.size == 0:
        raise ValueError(f"expected a non-empty array with {ndim} axes, got shape {array.shape}")
    return array


def _format_integers(values: npt.ArrayLike, count: int) -> list[str]:
    array = _check_shape(values, 1)
    if array.shape != (count,) or not np.array_equal(array, np.round(array)):
        raise ValueError(f"expected {count} integer pixel coordinates, got {array.tolist()}")
    return [format_fixed(float(x), 0) for x in array]


def _check_finite(x: float) -> float:
    value = float(x)
    if not abs(value) < _LARGEST:  # NaN fails this too
        raise ValueError(f"cannot print {value}: numbers must be finite and below {_LARGEST:g}")
    return value


def format_value(value: Any) -> str:
    """A number or an array of any shape for a person to look at, one matrix row per line; anything else as it is."""
    try:
        array = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        return str(value)
    if array.size == 1:
        return f"{array.item():.6g}"
    form = ">8.4g" if array.ndim > 1 else ".6g"  # columns of a matrix stand below each other
    text = np.array2string(
        array, formatter={"float_kind": lambda v: format(v, form)}, separator=", ", max_line_width=10**6
    )
    return "\n".join(line.strip() for line in text.splitlines())
