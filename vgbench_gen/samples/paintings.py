"""Pictures that hang on walls."""

from __future__ import annotations

import cv2
import numpy as np

from vgbench_gen.core.types import ColorArray
from vgbench_gen.samples.drawing import draw_hue, draw_leaf, draw_text_lines, make_word, write
from vgbench_gen.samples.fields import color_by_scale, make_fractal_noise, mix, resize_field, scale_to_unit, shade


def paint_landscape(rng: np.random.Generator, w: int, h: int) -> ColorArray:
    """Hills under a sun."""
    low, high = draw_hue(rng, 0.9, 1.3), mix(draw_hue(rng, 0.8, 1.2), (140, 180, 220), 0.5)
    image = (
        np.linspace(0, 1, h)[:, None, None] * np.array(low) + np.linspace(1, 0, h)[:, None, None] * np.array(high)
    ).repeat(w, axis=1)
    image = np.clip(image, 0, 255).astype(np.uint8)
    cv2.circle(
        image, (int(rng.integers(w)), int(rng.integers(h // 8, h // 2))), h // 12, (250, 238, 200), -1, cv2.LINE_AA
    )
    x = np.arange(w)
    for k in range(5):
        level = h * (0.38 + 0.13 * k)
        ridge = level + sum(
            h * 0.07 / (j + 1) * np.sin(x * (j + 1) * rng.uniform(0.5, 1.6) * 2 * np.pi / w + rng.uniform(0, 6))
            for j in range(6)
        )
        points = np.concatenate([np.stack([x, ridge], axis=1), [[w, h], [0, h]]]).round().astype(np.int32)
        cv2.fillPoly(image, [points], shade(draw_hue(rng), 1.0 - 0.14 * k), cv2.LINE_AA)
    for _ in range(30):
        at = (int(rng.integers(w)), int(rng.integers(h // 2, h)))
        cv2.ellipse(
            image,
            at,
            (int(rng.integers(2, 9)), int(rng.integers(5, 22))),
            0,
            0,
            360,
            draw_hue(rng, 0.3, 0.8),
            -1,
            cv2.LINE_AA,
        )
    return np.asarray(image, np.uint8)


def paint_abstract(rng: np.random.Generator, w: int, h: int) -> ColorArray:
    """Veils of colour with lines and dots."""
    field = scale_to_unit(make_fractal_noise(rng, 3, 4) + 0.8 * make_fractal_noise(rng, 2, 2))
    image = color_by_scale(resize_field(field, w, h), [draw_hue(rng) for _ in range(6)])
    for _ in range(int(rng.integers(12, 40))):
        p, q = ((int(rng.integers(w)), int(rng.integers(h))) for _ in range(2))
        cv2.line(image, p, q, draw_hue(rng, 0.3, 1.3), int(rng.integers(1, 9)), cv2.LINE_AA)
    for _ in range(60):
        cv2.circle(
            image,
            (int(rng.integers(w)), int(rng.integers(h))),
            int(rng.integers(1, 7)),
            draw_hue(rng, 0.3, 1.3),
            -1,
            cv2.LINE_AA,
        )
    return image


def paint_geometric(rng: np.random.Generator, w: int, h: int) -> ColorArray:
    """Circles, bars and triangles."""
    image = np.full((h, w, 3), draw_hue(rng, 1.0, 1.3), np.uint8)
    for _ in range(int(rng.integers(14, 40))):
        x, y, size = int(rng.integers(w)), int(rng.integers(h)), int(rng.integers(w // 16, w // 4))
        shape = int(rng.integers(3))
        if shape == 0:
            cv2.circle(image, (x, y), size // 2, draw_hue(rng), -1, cv2.LINE_AA)
        elif shape == 1:
            cv2.rectangle(image, (x, y), (x + size, y + int(rng.integers(6, size + 7))), draw_hue(rng), -1)
        else:
            points = np.array([[x, y], *(np.array([x, y]) + rng.integers(-size, size, (2, 2)))], np.int32)
            cv2.fillPoly(image, [points], draw_hue(rng), cv2.LINE_AA)
    return image


def paint_poster(rng: np.random.Generator, w: int, h: int) -> ColorArray:
    """A picture with a title and small print."""
    base = draw_hue(rng, 0.9, 1.3)
    ink = shade(base, 0.25) if sum(base) > 360 else mix(base, (248, 240, 220), 0.85)
    image = np.full((h, w, 3), base, np.uint8)
    top = round(0.5 * h)
    image[round(0.05 * h) : top, round(0.06 * w) : w - round(0.06 * w)] = cv2.resize(
        paint_geometric(rng, 200, 160) if rng.random() < 0.5 else paint_landscape(rng, 200, 160),
        (w - 2 * round(0.06 * w), top - round(0.05 * h)),
    )
    write(image, make_word(rng).upper(), (round(0.06 * w), round(0.66 * h)), 0.12 * w, ink, cv2.FONT_HERSHEY_TRIPLEX)
    write(
        image,
        f"{make_word(rng)} {make_word(rng)}",
        (round(0.06 * w), round(0.76 * h)),
        0.06 * w,
        ink,
        cv2.FONT_HERSHEY_DUPLEX,
    )
    draw_text_lines(image, rng, (round(0.06 * w), round(0.79 * h), w - round(0.06 * w), h - 6), 13, ink)
    return image


def paint_botanical(rng: np.random.Generator, w: int, h: int) -> ColorArray:
    """Pressed leaves with a name."""
    image = np.full((h, w, 3), (234, 226, 206), np.uint8)
    for _ in range(46):
        draw_leaf(image, rng, mix(draw_hue(rng, 0.5, 1.0), (80, 120, 70), 0.6), wrap=False)
    write(image, make_word(rng).title(), (w // 3, h - 10), 16, (70, 60, 50), cv2.FONT_HERSHEY_COMPLEX)
    return image


def paint_chart(rng: np.random.Generator, w: int, h: int) -> ColorArray:
    """Land and sea with a grid and towns."""
    land = resize_field(make_fractal_noise(rng, 3, 6), w, h)
    image = color_by_scale(
        land, [(96, 140, 176), (130, 172, 196), (206, 206, 160), (186, 176, 120), (150, 130, 96), (230, 226, 220)]
    )
    image[np.abs(land - 0.42) < 0.012] = (60, 70, 80)
    for k in range(1, 8):
        image[:, k * w // 8] = image[k * h // 8, :] = (120, 130, 140)
    for _ in range(18):
        at = (int(rng.integers(w - 50)), int(rng.integers(12, h)))
        cv2.circle(image, at, 3, (150, 30, 30), -1, cv2.LINE_AA)
        write(image, make_word(rng).title(), (at[0] + 4, at[1]), 10, (40, 36, 40))
    return image
