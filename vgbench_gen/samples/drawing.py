"""Words, lines, leaves and ornaments for drawn surfaces."""

from __future__ import annotations

import cv2
import numpy as np

from vgbench_gen.core.types import ColorArray
from vgbench_gen.samples.fields import Rgb, shade

# Earthy, muted and bright hues as rooms have them; drawn with a random lightness.
HUES: tuple[Rgb, ...] = (
    *((176, 60, 48), (208, 122, 52), (222, 178, 72), (92, 128, 76), (58, 108, 108), (66, 96, 146), (112, 82, 128)),
    *((150, 104, 74), (196, 150, 128), (118, 136, 148), (60, 66, 80), (214, 202, 178), (160, 70, 90), (70, 140, 130)),
)
_SYLLABLES = ("ba", "re", "no", "ti", "lo", "ma", "ver", "sol", "di", "ka", "fen", "or", "pi", "lum", "ra", "es")
FONTS = (cv2.FONT_HERSHEY_SIMPLEX, cv2.FONT_HERSHEY_DUPLEX, cv2.FONT_HERSHEY_TRIPLEX, cv2.FONT_HERSHEY_COMPLEX)


def draw_hue(rng: np.random.Generator, low: float = 0.7, high: float = 1.15) -> Rgb:
    """A colour of `HUES`, darkened or lightened."""
    return shade(HUES[int(rng.integers(len(HUES)))], rng.uniform(low, high))


def make_word(rng: np.random.Generator) -> str:
    """Something that looks like a word."""
    return "".join(_SYLLABLES[int(i)] for i in rng.integers(0, len(_SYLLABLES), int(rng.integers(2, 4))))


def write(image: ColorArray, text: str, at: tuple[int, int], height_px: float, color: Rgb, font: int = 0) -> None:
    """Text with its lower left corner at a pixel."""
    cv2.putText(image, text, at, font, height_px / 21, color, max(1, round(height_px / 12)), cv2.LINE_AA)


def draw_text_lines(
    image: ColorArray, rng: np.random.Generator, rect: tuple[int, int, int, int], pitch_px: int, ink: Rgb
) -> None:
    """Fill (x1, y1, x2, y2) with lines that look like print."""
    x1, y1, x2, y2 = rect
    for y in range(y1 + pitch_px, y2, pitch_px):
        x, end = x1, x2 - (rng.uniform(0, 0.5) * (x2 - x1) if rng.random() < 0.25 else 0)
        while x < end:
            length = int(rng.integers(2, 8) * pitch_px * 0.45)
            if pitch_px >= 12:
                write(image, make_word(rng), (x, y), pitch_px * 0.55, ink)
                length = int(pitch_px * 2.4)
            else:
                cv2.rectangle(image, (x, y - pitch_px // 2), (min(x + length, x2), y - 1), ink, -1)
            x += length + pitch_px // 2


def draw_leaf(image: ColorArray, rng: np.random.Generator, color: Rgb, wrap: bool) -> None:
    """One leaf with its rib, anywhere; `wrap` lets it cross the border to the other side."""
    h, w = image.shape[:2]
    x, y = int(rng.integers(w)), int(rng.integers(h))
    axes, angle = (int(rng.integers(10, 26)), int(rng.integers(3, 9))), float(rng.uniform(0, 180))
    tone = shade(color, rng.uniform(0.7, 1.2))
    for dx in (-w, 0, w) if wrap else (0,):
        for dy in (-h, 0, h) if wrap else (0,):
            cv2.ellipse(image, (x + dx, y + dy), axes, angle, 0, 360, tone, -1, cv2.LINE_AA)
            a = np.radians(angle)
            p = (round(x + dx - axes[0] * np.cos(a)), round(y + dy - axes[0] * np.sin(a)))
            q = (round(x + dx + axes[0] * np.cos(a)), round(y + dy + axes[0] * np.sin(a)))
            cv2.line(image, p, q, shade(tone, 0.6), 1, cv2.LINE_AA)


def draw_motifs(
    image: ColorArray, rng: np.random.Generator, rect: tuple[int, int, int, int], step: int, inks: tuple[Rgb, ...]
) -> None:
    """Rows of diamonds, rings or stars in (x1, y1, x2, y2), `step` pixels apart."""
    x1, y1, x2, y2 = rect
    step = max(step, 14)
    kind = int(rng.integers(3))
    for j, y in enumerate(range(y1 + step // 2, y2 - step // 3, step)):
        for i, x in enumerate(range(x1 + step // 2, x2 - step // 3, step)):
            ink, r = inks[(i + j) % len(inks)], step // 3
            if kind == 0:
                cv2.fillPoly(
                    image, [np.array([[x - r, y], [x, y - r], [x + r, y], [x, y + r]], np.int32)], ink, cv2.LINE_AA
                )
            elif kind == 1:
                cv2.circle(image, (x, y), r, ink, max(2, r // 3), cv2.LINE_AA)
                cv2.circle(image, (x, y), max(1, r // 3), ink, -1, cv2.LINE_AA)
            else:
                for a in range(0, 180, 45):
                    cv2.ellipse(image, (x, y), (r, max(1, r // 4)), a, 0, 360, ink, -1, cv2.LINE_AA)
