"""Things that stand on tables, shelves and floors."""

from __future__ import annotations

import numpy as np

from vgbench_gen.samples import drawing, textures
from vgbench_gen.samples.furniture.style import Style, pick
from vgbench_gen.samples.parts import Model, Vec3


def mug(rng: np.random.Generator, style: Style) -> Model:
    """Mug with a handle."""
    h, r = rng.uniform(0.085, 0.11), rng.uniform(0.038, 0.045)
    model = Model("mug")
    paint = pick(rng, style.ceramics + style.bright)
    model.add_lathe([(0, 0), (r, 0), (r, h), (r - 0.004, h), (r - 0.004, 0.01), (0, 0.01)], (0, 0, 0), paint)
    for a, b in (((r, 0.75), (r + 0.028, 0.68)), ((r + 0.028, 0.7), (r + 0.028, 0.35)), ((r + 0.028, 0.37), (r, 0.25))):
        model.add_rod((a[0], 0, a[1] * h), (b[0], 0, b[1] * h), 0.006, paint, 8)
    return model


def bowl(rng: np.random.Generator, style: Style) -> Model:
    """Bowl, often with fruit."""
    r, h = rng.uniform(0.1, 0.16), rng.uniform(0.06, 0.09)
    profile = [
        (0, 0),
        (0.45 * r, 0),
        (0.85 * r, 0.5 * h),
        (r, h),
        (r - 0.007, h),
        (0.8 * r, 0.5 * h + 0.008),
        (0.4 * r, 0.012),
        (0, 0.012),
    ]
    model = Model("bowl").add_lathe(profile, (0, 0, 0), pick(rng, style.ceramics), 28)
    if rng.random() < 0.6:
        for k in range(5):
            a = 2 * np.pi * k / 5
            at = (0.45 * r * np.cos(a), 0.45 * r * np.sin(a), 0.02 + 0.4 * r)
            model.add_ball((0.3 * r, 0.3 * r, 0.28 * r), at, pick(rng, style.bright))
    return model


def bottle(rng: np.random.Generator, style: Style) -> Model:
    """Bottle with a label."""
    h, r = rng.uniform(0.24, 0.32), rng.uniform(0.035, 0.045)
    glass = textures.plain(rng, ((40, 70, 44), (96, 56, 26), (60, 80, 110))[int(rng.integers(3))], 0.9)
    model = Model("bottle").add_lathe(
        [(0, 0), (r, 0), (r, 0.58 * h), (0.35 * r, 0.76 * h), (0.35 * r, h), (0, h)], (0, 0, 0), glass
    )
    return model.add_lathe(
        [(0, 0.15 * h), (r + 0.001, 0.15 * h), (r + 0.001, 0.48 * h), (0, 0.48 * h)],
        (0, 0, 0),
        pick(rng, style.packages),
    )


def pot(rng: np.random.Generator, style: Style) -> Model:
    """Cooking pot with a lid."""
    r, h = rng.uniform(0.09, 0.13), rng.uniform(0.1, 0.16)
    paint = style.metal if rng.random() < 0.5 else pick(rng, style.bright)
    model = Model("pot").add_lathe([(0, 0), (r, 0), (r, h), (0, h)], (0, 0, 0), paint, 28)
    model.add_lathe([(0, h), (r + 0.006, h), (0.7 * r, h + 0.025), (0, h + 0.032)], (0, 0, 0), style.metal, 28)
    model.add_ball((0.018, 0.018, 0.016), (0, 0, h + 0.045), style.black, 1)
    for x in (-1, 1):
        model.add_box((0.03, 0.07, 0.018), (x * (r + 0.013), 0, 0.75 * h), style.black)
    return model


def package(rng: np.random.Generator, style: Style) -> Model:
    """Printed carton."""
    w, d, h = rng.uniform(0.12, 0.2), rng.uniform(0.05, 0.09), rng.uniform(0.18, 0.3)
    print_ = pick(rng, style.packages)
    return Model("package").add_box((w, d, h), (0, 0, 0), style.white, {"-y": print_, "+y": print_})


def books(rng: np.random.Generator, style: Style) -> Model:
    """A few books lying on each other."""
    model, z = Model("books"), 0.0
    for _ in range(int(rng.integers(2, 6))):
        w, d, thick = rng.uniform(0.19, 0.27), rng.uniform(0.14, 0.19), rng.uniform(0.018, 0.045)
        cover = pick(rng, style.packages)
        k = int(rng.integers(16))
        sides = {"+z": cover, "-z": pick(rng, style.bright), "-y": style.books}
        region = (k / 16, 0.0, (k + 1) / 16, 1.0)
        model.add_box(
            (w, d, thick), (0, 0, z), style.pages, sides, (0, 0, rng.uniform(-14, 14)), region=region, bevel=False
        )
        z += thick
    return model


def papers(rng: np.random.Generator, style: Style) -> Model:
    """Sheets on a desk."""
    model = Model("papers")
    for k in range(int(rng.integers(2, 5))):
        at = (rng.uniform(-0.05, 0.05), rng.uniform(-0.04, 0.04), 0.003 * k)
        model.add_box((0.21, 0.29, 0.003), at, style.white, {"+z": style.sheet}, (0, 0, rng.uniform(-20, 20)))
    return model


def box(rng: np.random.Generator, style: Style) -> Model:
    """Cardboard box."""
    w, d, h = rng.uniform(0.28, 0.5), rng.uniform(0.24, 0.4), rng.uniform(0.2, 0.4)
    sides = {"-y": style.card_label, "+x": style.card_label, "+z": style.card_label}
    return (
        Model("box")
        .add_box((w, d, h), (0, 0, 0), style.card, sides)
        .add_shelf((0, 0, h), (w / 2 - 0.02, d / 2 - 0.02), 0.4)
    )


def crate(rng: np.random.Generator, style: Style) -> Model:
    """Slatted crate."""
    w, d, h = rng.uniform(0.36, 0.5), rng.uniform(0.28, 0.36), rng.uniform(0.22, 0.3)
    model = Model("crate").add_box((w, d, 0.014), (0, 0, 0), style.wood2)
    slats = 3
    tall = h / slats - 0.016
    for k in range(slats):
        z = 0.014 + k * h / slats
        for s in (-1, 1):
            model.add_box((w, 0.012, tall), (0, s * (d - 0.012) / 2, z), style.wood2)
            model.add_box((0.012, d - 0.024, tall), (s * (w - 0.012) / 2, 0, z), style.wood2)
    for x in (-1, 1):
        for y in (-1, 1):
            model.add_box((0.024, 0.024, h), (x * (w / 2 - 0.026), y * (d / 2 - 0.026), 0.014), style.wood2)
    for _ in range(4):
        at = (rng.uniform(-0.28, 0.28) * w, rng.uniform(-0.2, 0.2) * d, 0.1)
        model.add_ball((0.07, 0.07, 0.07), at, pick(rng, style.bright))
    return model


def bin_(rng: np.random.Generator, style: Style) -> Model:
    """Waste-paper bin."""
    r, h = rng.uniform(0.11, 0.15), rng.uniform(0.26, 0.36)
    shell = pick(rng, (style.metal, style.black, style.wicker, *style.bright))
    profile = [(0, 0), (0.8 * r, 0), (r, h), (r - 0.006, h), (0.78 * r, 0.01), (0, 0.01)]
    model = Model("trash bin").add_lathe(profile, (0, 0, 0), shell, 28)
    for _ in range(5):
        at = (rng.uniform(-0.4, 0.4) * r, rng.uniform(-0.4, 0.4) * r, 0.06 + rng.uniform(0, 0.5) * h)
        model.add_ball((0.05, 0.045, 0.04), at, style.white, 1)
    return model


def basket(rng: np.random.Generator, style: Style) -> Model:
    """Wicker basket with cloth."""
    r, h = rng.uniform(0.17, 0.24), rng.uniform(0.24, 0.38)
    profile = [
        (0, 0),
        (0.8 * r, 0),
        (r, 0.6 * h),
        (0.94 * r, h),
        (0.9 * r, h),
        (0.95 * r, 0.6 * h),
        (0.75 * r, 0.02),
        (0, 0.02),
    ]
    model = Model("basket").add_lathe(profile, (0, 0, 0), style.wicker, 30)
    return model.add_cushion((1.2 * r, 1.2 * r, 0.6 * h), (0, 0, 0.35 * h), pick(rng, style.fabrics), 0.07, 0.04)


def backpack(rng: np.random.Generator, style: Style) -> Model:
    """School bag standing upright."""
    cloth, trim = textures.fabric(rng, drawing.draw_hue(rng), "plain"), style.black
    model = Model("backpack").add_cushion((0.32, 0.17, 0.44), (0, 0, 0), cloth, 0.07)
    model.add_cushion((0.26, 0.09, 0.22), (0, -0.1, 0.03), cloth, 0.035)
    model.add_box((0.2, 0.004, 0.012), (0, -0.146, 0.17), trim)
    model.add_rod((-0.05, 0.03, 0.43), (0.05, 0.03, 0.43), 0.009, trim)
    model.add_rod((-0.05, 0.03, 0.45), (0.05, 0.03, 0.45), 0.011, trim)
    for x in (-0.09, 0.09):
        model.add_box((0.05, 0.02, 0.34), (x, 0.09, 0.05), trim)
    model.add_box((0.07, 0.004, 0.05), (0.05, -0.147, 0.07), trim, {"-y": pick(rng, style.packages)})
    return model


def suitcase(rng: np.random.Generator, style: Style) -> Model:
    """Hard-shell suitcase."""
    w, d, h = rng.uniform(0.38, 0.48), rng.uniform(0.22, 0.28), rng.uniform(0.52, 0.68)
    shell = pick(rng, style.bright)
    model = Model("suitcase").add_cushion((w, d, h), (0, 0, 0.035), shell, 0.05)
    for k in range(6):
        model.add_box((0.018, 0.008, h - 0.14), (-w / 2 + (k + 1) * w / 7, -d / 2 - 0.002, 0.1), shell)
    for x in (-1, 1):
        for y in (-1, 1):
            model.add_ball((0.022, 0.022, 0.022), (x * (w / 2 - 0.05), y * (d / 2 - 0.05), 0.022), style.black, 1)
        model.add_rod((x * 0.09, d / 2 - 0.05, h), (x * 0.09, d / 2 - 0.05, h + 0.16), 0.008, style.metal)
    model.add_rod((-0.1, d / 2 - 0.05, h + 0.16), (0.1, d / 2 - 0.05, h + 0.16), 0.013, style.black)
    return model


def toolbox(rng: np.random.Generator, style: Style) -> Model:
    """Toolbox with handle."""
    paint, w = pick(rng, style.bright), rng.uniform(0.38, 0.5)
    model = Model("toolbox").add_box((w, 0.22, 0.16), (0, 0, 0), paint)
    model.add_box((w + 0.01, 0.23, 0.05), (0, 0, 0.16), style.black)
    for x in (-1, 1):
        model.add_box((0.02, 0.03, 0.06), (x * 0.1, 0, 0.21), style.black)
        model.add_box((0.04, 0.012, 0.06), (x * w * 0.3, -0.118, 0.13), style.metal)
    model.add_rod((-0.11, 0, 0.265), (0.11, 0, 0.265), 0.013, style.black)
    model.add_box((0.14, 0.004, 0.07), (0, -0.112, 0.04), paint, {"-y": pick(rng, style.packages)})
    return model


def bucket(rng: np.random.Generator, style: Style) -> Model:
    """Bucket with rim."""
    r, h = rng.uniform(0.13, 0.16), rng.uniform(0.25, 0.3)
    profile = [
        (0, 0),
        (0.75 * r, 0),
        (0.95 * r, h - 0.02),
        (r, h - 0.02),
        (r, h),
        (0.93 * r, h),
        (0.72 * r, 0.012),
        (0, 0.012),
    ]
    model = Model("bucket").add_lathe(profile, (0, 0, 0), pick(rng, style.bright), 28)
    return model.add_lathe(
        [(0, 0.3 * h), (0.831 * r, 0.3 * h), (0.915 * r, 0.75 * h), (0, 0.75 * h)],
        (0, 0, 0),
        pick(rng, style.packages),
        28,
    )


def ball(rng: np.random.Generator, style: Style) -> Model:
    """Ball with stripes."""
    r = rng.uniform(0.1, 0.14)
    profile = [(r * np.sin(t), r - r * np.cos(t)) for t in np.linspace(0, np.pi, 19)]
    return Model("ball").add_lathe(
        profile, (0, 0, 0), textures.fabric(rng, drawing.draw_hue(rng, 0.9, 1.2), "plaid"), 28
    )


def teddy(rng: np.random.Generator, style: Style) -> Model:
    """Sitting teddy bear."""
    fur = textures.carpet(rng, ((150, 106, 66), (196, 160, 116), (110, 92, 84))[int(rng.integers(3))])
    s = rng.uniform(0.9, 1.4)
    model = Model("teddy bear")
    balls: list[tuple[Vec3, Vec3]] = [((0.095, 0.085, 0.12), (0, 0, 0.115)), ((0.082, 0.078, 0.075), (0, -0.01, 0.285))]
    for x in (-1, 1):
        balls += [((0.03, 0.02, 0.03), (x * 0.062, 0, 0.35)), ((0.04, 0.1, 0.04), (x * 0.075, -0.11, 0.042))]
        balls += [((0.032, 0.075, 0.034), (x * 0.105, -0.055, 0.17))]
    for radii, at in balls:
        model.add_ball((s * radii[0], s * radii[1], s * radii[2]), (s * at[0], s * at[1], s * at[2]), fur)
    model.add_ball((s * 0.035, s * 0.03, s * 0.03), (0, s * -0.08, s * 0.27), style.white, 1)
    for x in (-1, 1):
        model.add_ball((s * 0.009, s * 0.008, s * 0.009), (s * x * 0.03, s * -0.075, s * 0.31), style.black, 1)
    return model


def blocks(rng: np.random.Generator, style: Style) -> Model:
    """Tower of toy blocks."""
    model, side = Model("toy blocks"), rng.uniform(0.07, 0.1)
    for k in range(3):
        front = pick(rng, style.packages)
        sides = {"-y": front, "+x": pick(rng, style.packages)}
        model.add_box(
            (side, side, side),
            (-0.5 * side * (k == 1) + rng.uniform(-0.01, 0.01), 0, side * (k // 2)) if k < 2 else (0, 0, side),
            style.bright[k],
            sides,
            (0, 0, rng.uniform(-8, 8)),
        )
        if k == 0:
            model.add_box(
                (side, side, side), (1.3 * side, 0.1 * side, 0), style.bright[3], sides, (0, 0, rng.uniform(-8, 8))
            )
    return model


def toy_car(rng: np.random.Generator, style: Style) -> Model:
    """Toy truck."""
    s = rng.uniform(1.0, 1.6)
    paint = pick(rng, style.bright)
    model = Model("toy car").add_cushion((0.26 * s, 0.12 * s, 0.06 * s), (0, 0, 0.03 * s), paint, 0.015)
    model.add_cushion((0.13 * s, 0.105 * s, 0.06 * s), (-0.02 * s, 0, 0.085 * s), style.white, 0.015)
    for x in (-0.08, 0.08):
        for y in (-1, 1):
            model.add_rod(
                (x * s, y * 0.05 * s, 0.033 * s), (x * s, y * 0.072 * s, 0.033 * s), 0.033 * s, style.black, 16
            )
            model.add_rod(
                (x * s, y * 0.07 * s, 0.033 * s), (x * s, y * 0.075 * s, 0.033 * s), 0.016 * s, style.metal, 10
            )
    return model


def shoes(rng: np.random.Generator, style: Style) -> Model:
    """A pair of shoes."""
    model, upper = Model("shoes"), pick(rng, (style.leather, *style.fabrics, *style.bright))
    for x in (-0.065, 0.065):
        model.add_cushion((0.095, 0.28, 0.025), (x, 0, 0), style.white, 0.011)
        model.add_cushion((0.088, 0.27, 0.06), (x, 0, 0.018), upper, 0.028)
        model.add_cushion((0.08, 0.13, 0.07), (x, 0.065, 0.05), upper, 0.028)
    return model


def pillow(rng: np.random.Generator, style: Style) -> Model:
    """Floor cushion."""
    w = rng.uniform(0.45, 0.6)
    return Model("pillow").add_cushion((w, w, 0.13), (0, 0, 0), textures.fabric(rng, drawing.draw_hue(rng)), 0.06, 0.03)


def helmet(rng: np.random.Generator, style: Style) -> Model:
    """Bicycle helmet."""
    model = Model("helmet").add_ball((0.12, 0.15, 0.1), (0, 0, 0.1), pick(rng, style.bright))
    for x in (-0.06, 0.0, 0.06):
        model.add_box((0.014, 0.22, 0.03), (x, 0, 0.172 - abs(x) * 0.5), style.black)
    return model


def watering_can(rng: np.random.Generator, style: Style) -> Model:
    """Watering can."""
    paint = pick(rng, (*style.bright, style.metal))
    model = Model("watering can").add_lathe([(0, 0), (0.1, 0), (0.09, 0.2), (0.05, 0.21), (0, 0.21)], (0, 0, 0), paint)
    model.add_rod((0.08, 0, 0.05), (0.26, 0, 0.24), 0.012, paint)
    model.add_ball((0.03, 0.03, 0.018), (0.27, 0, 0.25), paint, 1)
    for a, b in (((-0.08, 0.18), (-0.15, 0.22)), ((-0.15, 0.225), (-0.16, 0.1)), ((-0.16, 0.11), (-0.09, 0.05))):
        model.add_rod((a[0], 0, a[1]), (b[0], 0, b[1]), 0.009, paint, 8)
    return model
