"""Marks have the colours that people call by their names, and colour-blind readers can tell them apart."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from vgbench_gen.store.drawing import COLORS
from vgbench_gen.text.render import fill_word

Array = npt.NDArray[Any]

# Centres of the basic colour terms in the survey of names for colours by xkcd (R. Munroe 2010, "Color Survey Results",
# https://xkcd.com/color/rgb.txt, CC0).
SURVEY = {
    "black": (0, 0, 0), "white": (255, 255, 255), "grey": (146, 149, 145), "red": (229, 0, 0),
    "orange": (249, 115, 6), "yellow": (255, 255, 20), "green": (21, 176, 26), "blue": (3, 67, 223),
    "purple": (126, 30, 156), "pink": (255, 129, 192), "brown": (101, 55, 0),
}  # fmt: skip
# What dichromats see, in linear sRGB (Machado, Oliveira and Fernandes 2009, severity 1).
SEEN: dict[str, npt.ArrayLike] = {
    "all cones": np.eye(3),
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "tritanopia": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
}


def measure_lab(rgb: tuple[int, int, int], seen: npt.ArrayLike = SEEN["all cones"]) -> Array:
    """CIE Lab (D65) of an sRGB colour."""
    c = np.array(rgb) / 255
    linear = np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4)
    linear = np.clip(np.asarray(seen) @ linear, 0, 1)
    to_xyz = np.array(
        [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750], [0.0193339, 0.1191920, 0.9503041]]
    )
    xyz = to_xyz @ linear / [0.95047, 1.0, 1.08883]
    f = np.where(xyz > (6 / 29) ** 3, np.cbrt(xyz), xyz / (3 * (6 / 29) ** 2) + 4 / 29)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


def test_lab_is_that_of_opencv() -> None:
    cv2 = pytest.importorskip("cv2")
    for rgb in (*COLORS.values(), *SURVEY.values()):
        expected = cv2.cvtColor(np.array([[rgb]], np.float32) / 255, cv2.COLOR_RGB2Lab)[0, 0]
        assert np.abs(measure_lab(rgb) - expected).max() < 0.6


def test_every_colour_is_called_by_its_word() -> None:
    for color, rgb in COLORS.items():
        off = {name: float(np.linalg.norm(measure_lab(rgb) - measure_lab(c))) for name, c in SURVEY.items()}
        first, second = sorted(off, key=lambda name: off[name])[:2]
        assert fill_word(f"color.{color}") == first
        assert off[first] < 20
        assert off[second] > off[first] + 20, (color, off)


@pytest.mark.parametrize("reader", SEEN)
def test_colours_differ_for_every_reader(reader: str) -> None:
    """A just noticeable difference is 2.3 (Mahy et al. 1994); the marks differ by ten times as much."""
    for a, b in itertools.combinations(COLORS.values(), 2):
        assert np.linalg.norm(measure_lab(a, SEEN[reader]) - measure_lab(b, SEEN[reader])) > 23
