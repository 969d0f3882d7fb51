"""Drawn surfaces: pictures, wallpaper, rugs, book covers, package labels, screens, keyboards, clock faces."""

from __future__ import annotations

import cv2
import numpy as np

from vgbench_gen.core.types import ColorArray
from vgbench_gen.samples.drawing import FONTS, draw_hue, draw_leaf, draw_motifs, draw_text_lines, make_word, write
from vgbench_gen.samples.fields import (
    Rgb,
    color_by_scale,
    load_field,
    make_fractal_noise,
    mix,
    modulate_color,
    resize_field,
    shade,
)
from vgbench_gen.samples.paintings import (
    paint_abstract,
    paint_botanical,
    paint_chart,
    paint_geometric,
    paint_landscape,
    paint_poster,
)
from vgbench_gen.samples.textures import Texture


def picture(rng: np.random.Generator, aspect: float) -> Texture:
    """What hangs in a frame: landscape, abstract, geometric, botanical or a printed poster. aspect: width / height."""
    w = 384
    h = max(64, round(w / aspect))
    kind = int(rng.integers(6))
    image = (paint_landscape, paint_abstract, paint_geometric, paint_poster, paint_botanical, paint_chart)[kind](
        rng, w, h
    )
    if rng.random() < 0.5:
        border = round(0.06 * w)
        image[:border] = image[-border:] = (236, 232, 222)
        image[:, :border] = image[:, -border:] = (236, 232, 222)
    return Texture(image, (1.0, 1.0), tiles=False, gloss=0.3)


def wallpaper(rng: np.random.Generator, base: Rgb) -> Texture:
    """Repeating pattern: damask, stripes, leaves, trellis or small motifs on a textured ground."""
    size, ink = 512, mix(base, draw_hue(rng, 0.6, 1.0), rng.uniform(0.3, 0.65))
    image = np.full((size, size, 3), base, np.uint8)
    kind, step = int(rng.integers(5)), int(rng.choice([64, 128]))
    v, u = np.mgrid[:size, :size].astype(np.float32) * np.float32(2 * np.pi / step)
    if kind == 0:
        petals = np.cos(u) + np.cos(v) + 0.8 * np.cos(2 * u) * np.cos(v) + 0.6 * np.sin(u / 2) ** 2 * np.cos(3 * v)
        image[petals > 0.7] = ink
        image[(petals > 0.2) & (petals < 0.35)] = shade(ink, 0.9)
    elif kind == 1:
        image[(np.cos(u) > 0.3)] = ink
        image[(np.cos(u + 1.6) > 0.97)] = shade(ink, 0.7)
    elif kind == 2:
        for _ in range(150):
            draw_leaf(image, rng, ink, wrap=True)
    elif kind == 3:
        image[(np.abs(np.cos((u + v) / 2)) > 0.985) | (np.abs(np.cos((u - v) / 2)) > 0.985)] = ink
        image[(np.cos(u) + np.cos(v)) > 1.7] = shade(ink, 0.8)
    else:
        for j in range(size // step):
            for i in range(size // step):
                centre = (round((i + 0.5 + 0.5 * (j % 2)) * step) % size, round((j + 0.5) * step))
                for k in range(5):
                    a = 2 * np.pi * k / 5 + 0.3 * i
                    at = (round(centre[0] + 0.17 * step * np.cos(a)), round(centre[1] + 0.17 * step * np.sin(a)))
                    cv2.circle(image, at, round(0.1 * step), ink, -1, cv2.LINE_AA)
                cv2.circle(image, centre, round(0.08 * step), shade(ink, 0.7), -1, cv2.LINE_AA)
    image = modulate_color(
        modulate_color(image, load_field("weave", 1), 0.1), load_field("cloud", int(rng.integers(3))), 0.14
    )
    return Texture(image, (0.9, 0.9))


def rug(rng: np.random.Generator, aspect: float) -> Texture:
    """A whole rug: borders, medallions and motifs, or stripes, or blocks. aspect: width / height."""
    w = 640
    h = round(w / aspect)
    ground, field, ink = draw_hue(rng, 0.5, 0.9), draw_hue(rng, 0.6, 1.1), draw_hue(rng, 0.9, 1.3)
    image = np.full((h, w, 3), ground, np.uint8)
    kind = int(rng.integers(3))
    if kind == 0:
        for k, colour in enumerate((ink, ground, field, ground)):
            inset = 10 + 16 * k
            cv2.rectangle(image, (inset, inset), (w - inset, h - inset), colour, 10 if k < 3 else -1)
        cv2.rectangle(image, (70, 70), (w - 70, h - 70), field, -1)
        draw_motifs(image, rng, (80, 80, w - 80, h - 80), 40, (ink, ground, shade(ink, 0.6)))
        draw_motifs(image, rng, (20, 20, w - 20, 58), 24, (ink, shade(field, 0.6)))
        draw_motifs(image, rng, (20, h - 58, w - 20, h - 20), 24, (ink, shade(field, 0.6)))
        for r, colour in ((0.3, ground), (0.24, ink), (0.17, shade(field, 0.7)), (0.08, ink)):
            axes = (round(r * w * 0.75), round(r * h))
            points = cv2.ellipse2Poly((w // 2, h // 2), axes, 0, 0, 360, 30)
            cv2.fillPoly(image, [np.array(points)], colour, cv2.LINE_AA)
    elif kind == 1:
        x = 0
        while x < w:
            wide = int(rng.integers(12, 60))
            colour = (ground, field, ink, shade(ink, 0.7), shade(field, 0.6))[int(rng.integers(5))]
            cv2.rectangle(image, (x, 0), (x + wide, h), colour, -1)
            if wide > 36:
                draw_motifs(image, rng, (x + 6, 4, x + wide - 6, h), wide - 14, (shade(colour, 0.55), ink))
            x += wide
    else:
        step = int(rng.choice([64, 80]))
        for y in range(0, h, step):
            for x in range(0, w, step):
                a, b = ((ground, field, ink, shade(field, 0.6))[int(k)] for k in rng.integers(0, 4, 2))
                cv2.rectangle(image, (x, y), (x + step, y + step), a, -1)
                triangle = np.array([[x, y], [x + step, y], [x, y + step]], np.int32)
                cv2.fillPoly(image, [triangle if rng.random() < 0.5 else triangle[::-1] + (0, 0)], b)
                cv2.circle(image, (x + step // 2, y + step // 2), step // 7, shade(b, 0.6), -1, cv2.LINE_AA)
    image = modulate_color(
        modulate_color(image, load_field("pile", int(rng.integers(3))), 0.55), load_field("cloud"), 0.2
    )
    return Texture(image, (1.0, 1.0), tiles=False)


def spines(rng: np.random.Generator, count: int = 16) -> Texture:
    """Backs of books side by side; column k of `count` is one book."""
    side = 32
    image = np.zeros((256, side * count, 3), np.uint8)
    for k in range(count):
        color = draw_hue(rng, 0.45, 1.2)
        ink = mix(color, (245, 235, 205), 0.85) if sum(color) < 400 else shade(color, 0.25)
        page = np.full((side, 256, 3), color, np.uint8)
        for x in (12, int(rng.integers(190, 240))):
            cv2.rectangle(page, (x, 0), (x + int(rng.integers(2, 9)), side), ink, -1)
        if rng.random() < 0.4:
            cv2.rectangle(page, (60, 0), (int(rng.integers(120, 180)), side), shade(color, 0.5), -1)
        write(page, f"{make_word(rng)} {make_word(rng)}".upper(), (30, 22), 14, ink, FONTS[int(rng.integers(4))])
        cv2.circle(page, (246, side // 2), 5, ink, -1, cv2.LINE_AA)
        page = (
            page * np.linspace(0.75, 1, side)[np.minimum(np.arange(side), np.arange(side)[::-1] * 2), None, None]
        ).astype(np.uint8)
        image[:, k * side : (k + 1) * side] = np.rot90(page)
    return Texture(modulate_color(image, load_field("grit"), 0.2), (1.0, 1.0), tiles=False, gloss=0.2)


def cardboard(rng: np.random.Generator, label: bool) -> Texture:
    """A side of a cardboard box, with tape, print and a delivery label, or plain."""
    base = shade((186, 148, 104), rng.uniform(0.85, 1.1))
    field = 0.5 * load_field("brushed", int(rng.integers(3))) + 0.5 * load_field("cloud", int(rng.integers(3)))
    image = color_by_scale(field[::2, ::2], [shade(base, 0.82), base, shade(base, 1.08)]).copy()
    ink = shade(base, 0.35)
    if label:
        cv2.rectangle(image, (118, 0), (140, 256), mix(base, (226, 206, 160), 0.6), -1)
        x, y = int(rng.integers(16, 60)), int(rng.integers(30, 90))
        cv2.rectangle(image, (x, y), (x + 90, y + 66), (238, 236, 230), -1)
        draw_text_lines(image, rng, (x + 6, y + 4, x + 84, y + 36), 7, (40, 40, 46))
        for bar in range(24):
            if rng.random() < 0.6:
                cv2.rectangle(image, (x + 8 + 3 * bar, y + 42), (x + 9 + 3 * bar, y + 60), (30, 30, 34), -1)
        write(image, make_word(rng).upper(), (150, 200), 22, ink, cv2.FONT_HERSHEY_DUPLEX)
        cv2.arrowedLine(image, (190, 90), (190, 40), ink, 4, cv2.LINE_AA, 0, 0.35)
        cv2.arrowedLine(image, (216, 90), (216, 40), ink, 4, cv2.LINE_AA, 0, 0.35)
    return Texture(image, (1.0, 1.0), tiles=False)


def package(rng: np.random.Generator) -> Texture:
    """Front of a package or bottle label: brand, picture, small print."""
    base, ink, accent = draw_hue(rng, 0.7, 1.2), draw_hue(rng, 0.3, 0.6), draw_hue(rng, 1.0, 1.3)
    image = np.full((256, 192, 3), base, np.uint8)
    cv2.ellipse(image, (96, 128), (int(rng.integers(40, 80)), int(rng.integers(30, 60))), 0, 0, 360, accent, -1)
    for _ in range(14):
        x, y = int(rng.integers(40, 150)), int(rng.integers(80, 180))
        cv2.circle(image, (x, y), int(rng.integers(4, 16)), draw_hue(rng), -1, cv2.LINE_AA)
    cv2.rectangle(image, (0, 18), (192, 66), ink, -1)
    write(image, make_word(rng).upper(), (12, 54), 28, (244, 240, 228), cv2.FONT_HERSHEY_DUPLEX)
    draw_text_lines(image, rng, (14, 200, 180, 250), 8, ink)
    return Texture(image, (1.0, 1.0), tiles=False, gloss=0.4)


def screen(rng: np.random.Generator, aspect: float = 1.7) -> Texture:
    """A lit desktop with windows, a document, an icon row."""
    w, h = 384, round(384 / aspect)
    image = np.asarray(cv2.resize(paint_landscape(rng, 192, 108), (w, h)), np.uint8)
    for _ in range(int(rng.integers(2, 4))):
        x, y = int(rng.integers(6, w // 2)), int(rng.integers(6, h // 3))
        x2, y2 = x + int(rng.integers(110, w // 2)), y + int(rng.integers(80, h // 2))
        paper: Rgb = (244, 244, 246) if rng.random() < 0.6 else (34, 38, 46)
        cv2.rectangle(image, (x, y), (x2, y2), paper, -1)
        cv2.rectangle(image, (x, y), (x2, y + 10), draw_hue(rng), -1)
        draw_text_lines(
            image, rng, (x + 8, y + 14, x2 - 8, y2 - 4), 8, (60, 70, 90) if paper[0] > 99 else (150, 200, 160)
        )
    cv2.rectangle(image, (0, h - 14), (w, h), (28, 32, 40), -1)
    for k in range(9):
        cv2.rectangle(image, (10 + 16 * k, h - 12), (20 + 16 * k, h - 3), draw_hue(rng), -1)
    return Texture(np.asarray(image, np.uint8), (1.0, 1.0), tiles=False, gloss=0.5, glow=0.35)


def keyboard(rng: np.random.Generator) -> Texture:
    """Keys in rows."""
    dark = bool(rng.random() < 0.6)
    base, key, ink = (
        ((40, 40, 44), (70, 70, 76), (220, 220, 224)) if dark else ((170, 170, 172), (236, 236, 236), (60, 60, 66))
    )
    image = np.full((160, 448, 3), base, np.uint8)
    for row in range(5):
        x = 8 + int(rng.integers(0, 8))
        while x < 430:
            wide = 24 if rng.random() < 0.85 else 44
            if row == 4 and 110 < x < 200:
                wide = 150
            cv2.rectangle(image, (x, 8 + 30 * row), (min(x + wide, 440), 32 + 30 * row), key, -1)
            cv2.putText(image, chr(65 + int(rng.integers(26))), (x + 6, 26 + 30 * row), 0, 0.45, ink, 1, cv2.LINE_AA)
            x += wide + 5
    return Texture(image, (1.0, 1.0), tiles=False, gloss=0.2)


def world_map(rng: np.random.Generator) -> Texture:
    """Land and sea, for globes."""
    return Texture(paint_chart(rng, 384, 192), (1.0, 1.0), tiles=False, gloss=0.4)


def whiteboard(rng: np.random.Generator) -> Texture:
    """Words, boxes and arrows on white."""
    image = np.full((384, 576, 3), (236, 238, 238), np.uint8)
    for _ in range(6):
        x, y, w, h = (int(c) for c in rng.integers((10, 30, 40, 30), (450, 300, 110, 70)))
        ink = draw_hue(rng, 0.4, 0.9)
        write(image, f"{make_word(rng)} {make_word(rng)}", (x, y), 26, ink)
        cv2.rectangle(image, (x, y + 10), (x + w, y + 10 + h), ink, 2)
        cv2.arrowedLine(image, (x, y), (int(rng.integers(576)), int(rng.integers(384))), ink, 2, 16)
    return Texture(image, (1.0, 1.0), tiles=False, gloss=0.6)


def clock_face(rng: np.random.Generator) -> Texture:
    """Dial with numbers and hands."""
    image = np.full((256, 256, 3), (240, 238, 230), np.uint8)
    ink = draw_hue(rng, 0.2, 0.4)
    cv2.circle(image, (128, 128), 124, ink, 5, cv2.LINE_AA)
    for k in range(60):
        a = 2 * np.pi * k / 60
        inner = 104 if k % 5 == 0 else 113
        p, q = ((round(128 + r * np.sin(a)), round(128 - r * np.cos(a))) for r in (inner, 119))
        cv2.line(image, p, q, ink, 5 if k % 5 == 0 else 2, cv2.LINE_AA)
    for k in range(12):
        a = 2 * np.pi * (k + 1) / 12
        write(image, str(k + 1), (round(118 + 86 * np.sin(a)), round(137 - 86 * np.cos(a))), 20, ink)
    for length, thick in ((60, 8), (92, 5)):
        a = rng.uniform(0, 2 * np.pi)
        cv2.line(
            image,
            (128, 128),
            (round(128 + length * np.sin(a)), round(128 - length * np.cos(a))),
            ink,
            thick,
            cv2.LINE_AA,
        )
    return Texture(image, (1.0, 1.0), tiles=False, gloss=0.3)


def paper(rng: np.random.Generator) -> Texture:
    """A printed sheet."""
    image = np.full((256, 192, 3), (238, 237, 232), np.uint8)
    write(image, make_word(rng).title(), (16, 30), 20, (40, 42, 60))
    draw_text_lines(image, rng, (16, 40, 176, 150), 8, (90, 90, 96))
    cv2.rectangle(image, (16, 160), (100, 236), draw_hue(rng), -1)
    draw_text_lines(image, rng, (108, 158, 176, 240), 8, (90, 90, 96))
    return Texture(image, (1.0, 1.0), tiles=False)


def make_outside_panorama(rng: np.random.Generator) -> ColorArray:
    """(768, 3072, 3) sRGB panorama for what is seen through windows: sky, houses, trees; rows from zenith to nadir."""
    w, h, horizon = 3072, 768, 400
    sky = np.linspace(0, 1, horizon)[:, None, None] ** 1.5
    image = np.empty((h, w, 3), np.uint8)
    image[:horizon] = ((1 - sky) * np.array([150, 188, 234]) + sky * np.array([236, 242, 248])).astype(np.uint8)
    clouds = resize_field(make_fractal_noise(rng, 4, 5), w, horizon)
    image[:horizon] = modulate_color(image[:horizon], clouds, 0.2)
    ground = color_by_scale(
        resize_field(make_fractal_noise(rng, 6, 6), w, h - horizon), [(92, 112, 64), (128, 146, 88), (156, 160, 118)]
    )
    image[horizon:] = ground
    x = 0
    while x < w:
        wide = int(rng.integers(170, 420))
        top = horizon - int(rng.integers(50, 150))
        wall = mix(draw_hue(rng), (214, 204, 190), 0.55)
        cv2.rectangle(image, (x, top), (x + wide, horizon + 20), wall, -1)
        roof = np.array(
            [[x - 12, top], [x + wide // 2, top - int(rng.integers(30, 80))], [x + wide + 12, top]], np.int32
        )
        cv2.fillPoly(image, [roof], shade((150, 84, 64), rng.uniform(0.6, 1.1)), cv2.LINE_AA)
        for wy in range(top + 14, horizon - 6, 40):
            for wx in range(x + 14, x + wide - 20, 38):
                cv2.rectangle(image, (wx, wy), (wx + 18, wy + 24), shade(wall, 0.4), -1)
                cv2.rectangle(image, (wx, wy), (wx + 18, wy + 24), (236, 234, 228), 2)
        x += wide + int(rng.integers(20, 160))
    for _ in range(16):
        cx, top, green = (
            int(rng.integers(w)),
            horizon - int(rng.integers(30, 110)),
            shade((104, 132, 74), rng.uniform(0.6, 1.1)),
        )
        cv2.rectangle(image, (cx - 4, top), (cx + 4, horizon + 24), (88, 70, 54), -1)
        for _ in range(70):
            at = (round(cx + 38 * rng.normal()), round(top + 24 * rng.normal()))
            cv2.circle(image, at, int(rng.integers(6, 18)), shade(green, rng.uniform(0.6, 1.3)), -1, cv2.LINE_AA)
    return np.asarray(cv2.GaussianBlur(image, (0, 0), 1.5), np.uint8)
