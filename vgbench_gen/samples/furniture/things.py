"""Things that stand on tables, shelves, floors and walls, by tables; one of a kind is stretched to its own size."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from vgbench_gen.samples.furniture.build import Kind
from vgbench_gen.samples.furniture.build import part as p

_HALF_TURN = np.linspace(0, np.pi, 9)


def _arc(width: float, height: float) -> list[float]:
    """The points (x, 0, z) of a half ellipse after its first, which lies at the right end, as numbers in turn."""
    points = [(width * (np.cos(t) - 1), 0.0, height * np.sin(t)) for t in _HALF_TURN[1:]]
    return [float(value) for point in points for value in point]


def _list_around(count: int) -> list[tuple[float, float]]:
    """Cosine and sine of directions that are evenly spread."""
    return [(float(np.cos(a)), float(np.sin(a))) for a in np.arange(count) * 2 * np.pi / count + np.pi / 2]


def _bar_ring(radius: float) -> list[float]:
    """The points (x, 0, z) of a circle after its first, which lies on the right, as numbers in turn."""
    points = [(radius * (np.cos(t) - 1), 0.0, radius * np.sin(t)) for t in np.linspace(0, 2 * np.pi, 25)[1:]]
    return [float(value) for point in points for value in point]


def _globe(radius: float) -> list[float]:
    """The profile of a ball that stands on 0."""
    points = [(radius * np.sin(t), radius - radius * np.cos(t)) for t in _HALF_TURN]
    return [0.0 if abs(value) < 1e-12 else float(value) for point in points for value in point]


_POT = p(
    "lathe", "ceramics|wicker", 0, 0, 0.045, 0, 0.064, 0.088, 0.065, 0.09, 0.065, 0.1, 0.056, 0.1, 0.055, 0.09, 0, 0.09
)

THINGS: Mapping[str, Kind] = {
    # To sit, lie and work on.
    "office chair": Kind("office chair", [
        *(p("rod", "black", 0.27 * c, 0.27 * s, -0.025, 0.02, at=(0.02 * c, 0.02 * s, 0.1)) for c,
          s in _list_around(5)),
        *(p("ball", "black", 0.028, 0.028, 0.03, at=(0.29 * c, 0.29 * s, 0.03)) for c, s in _list_around(5)),
        p("cylinder", "metal", 0.028, 0.37, at=(0, 0, 0.08)),
        p("cushion", "fabrics|leather", 0.5, 0.48, 0.09, 0.04, 0.015, at=(0, -0.02, 0.45)),
        p("box", "black", 0.07, 0.03, 0.3, at=(0, 0.24, 0.47), turn=(-6, 0, 0)),
        p("cushion", "fabrics|leather", 0.46, 0.07, 0.57, 0.034, at=(0, 0.25, 0.59), turn=(-6, 0, 0)),
        p("box", "black", 0.03, 0.03, 0.2, at=(0.27, 0.02, 0.47), mirror="x"),
        p("cushion", "black", 0.06, 0.26, 0.03, 0.014, at=(0.27, 0, 0.67), mirror="x"),
    ]),
    "stool": Kind("stool", [
        p("rod", "wood2", -0.05, -0.05, 0.429, 0.016, at=(0.14, 0.14, 0.001), mirror="xy"),
        p("lathe", "wood", 0, 0.42, 0.17, 0.42, 0.18, 0.44, 0.172, 0.46, 0, 0.46),
    ]),
    "bar stool": Kind("bar stool", [
        p("rod", "black", -0.064, -0.064, 0.67, 0.013, at=(0.156, 0.156, 0.001), mirror="xy"),
        p("rod", "black", 0.27, 0, 0, 0.01, at=(-0.135, 0.135, 0.22), mirror="y"),
        p("rod", "black", 0, 0.27, 0, 0.01, at=(0.135, -0.135, 0.22), mirror="x"),
        p("cushion", "leather", 0.36, 0.36, 0.07, 0.03, at=(0, 0, 0.67)),
    ]),
    "bench": Kind("bench", [
        p("box", "wood", 1.1, 0.36, 0.04, at=(0, 0, 0.4)),
        p("box", "wood", 0.04, 0.32, 0.4, at=(0.45, 0, 0), mirror="x"),
        p("box", "wood", 0.86, 0.03, 0.08, at=(0, 0, 0.3)), p("shelf", "", 0.52, 0.15, 0.4, at=(0, 0, 0.44)),
        p("hollow", "", 0.41, 0.16, 0.29),
    ]),
    "ottoman": Kind("ottoman", [p("cushion", "cloth", 0.5, 0.45, 0.39, 0.05, 0.02)]),
    "round table": Kind("round table", [
        p("lathe", "wood", 0, 0.705, 0.49, 0.705, 0.5, 0.72, 0.495, 0.735, 0, 0.735),
        p("lathe", "black", 0, 0, 0.28, 0, 0.26, 0.03, 0.06, 0.06, 0.045, 0.3, 0.05, 0.705, 0, 0.705),
        p("shelf", "", 0.33, 0.33, 1.0, at=(0, 0, 0.735)),
    ]),
    "workbench": Kind("workbench", [
        p("box", "wood", 1.55, 0.65, 0.06, at=(0, 0, 0.8)),
        p("box", "wood2", 0.08, 0.08, 0.8, at=(0.695, 0.255, 0), mirror="xy"),
        p("box", "wood2", 0.06, 0.43, 0.08, at=(0.695, 0, 0.16), mirror="x"),
        p("box", "wood2", 1.45, 0.55, 0.024, at=(0, 0, 0.24)),
        p("box", "wood2", 1.31, 0.03, 0.1, at=(0, 0.255, 0.69)), p("shelf", "", 0.615, 0.185, 0.42, at=(0, 0, 0.264)),
        p("shelf", "", 0.735, 0.285, 0.8, at=(0, 0, 0.86)),
    ]),
    "crate rack": Kind("storage rack", [
        p("box", "metal", 0.03, 0.03, 1.65, at=(0.46, 0.185, 0), mirror="xy"),
        p("box", "wood2", 0.94, 0.39, 0.025, at=(0, 0, 0.12), times=4, step=(0, 0, 0.49)),
        p("shelf", "", 0.415, 0.15, 0.43, at=(0, 0, 0.145), times=4, step=(0, 0, 0.49)),
    ]),
    "stove": Kind("stove", [
        p("box", "metal", 0.6, 0.6, 0.88), p("box", "black", 0.54, 0.02, 0.46, at=(0, -0.308, 0.2)),
        p("rod", "metal", 0.44, 0, 0, 0.012, at=(-0.22, -0.35, 0.7)),
        p("rod", "black", 0, -0.03, 0, 0.022, at=(-0.22, -0.3, 0.79), times=5, step=(0.11, 0, 0)),
        p("box", "black", 0.58, 0.56, 0.012, at=(0, 0, 0.88)),
        p("cylinder", "metal", 0.085, 0.008, at=(0.14, 0.13, 0.892), mirror="xy"),
        p("shelf", "", 0.24, 0.24, 0.6, at=(0, 0, 0.9)),
    ]),
    "refrigerator": Kind("refrigerator", [
        p("box", "metal|white", 0.64, 0.59, 1.72, at=(0, 0.025, 0)),
        p("box", "metal|white", 0.64, 0.045, 0.56, at=(0, -0.295, 0.03)),
        p("box", "metal|white", 0.64, 0.045, 1.11, at=(0, -0.295, 0.6)),
        p("rod", "metal", 0, 0, 0.28, 0.012, at=(-0.26, -0.345, 0.09)),
        p("rod", "metal", 0, 0, 0.55, 0.012, at=(-0.26, -0.345, 0.71)),
        *(p("box", "white", size, 0.003, 1.3 * size, at=(x, -0.319, z), sides={"-y": "sheet|packages*"})
          for x, z, size in ((-0.02, 0.95, 0.13), (0.16, 1.1, 0.09), (0.06, 1.32, 0.15), (0.2, 0.8, 0.08))),
    ]),
    # Electric.
    "monitor": Kind("monitor", [
        p("box", "black", 0.24, 0.18, 0.014, at=(0, 0.02, 0)), p("box", "black", 0.05, 0.03, 0.26, at=(0, 0.05, 0.01)),
        p("box", "black", 0.56, 0.035, 0.325, at=(0, 0.01, 0.1)),
        p("box", "black", 0.54, 0.004, 0.295, at=(0, -0.009, 0.118), sides={"-y": "screen"}),
    ]),
    "television": Kind("television", [
        p("box", "black", 0.04, 0.22, 0.02, at=(0.33, 0, 0), mirror="x"),
        p("box", "black", 0.03, 0.03, 0.08, at=(0.33, 0, 0.015), mirror="x"),
        p("box", "black", 1.02, 0.05, 0.58, at=(0, 0, 0.07)),
        p("box", "black", 0.99, 0.004, 0.54, at=(0, -0.026, 0.09), sides={"-y": "screen"}),
    ]),
    "laptop": Kind("laptop", [
        p("box", "metal", 0.34, 0.23, 0.016, sides={"+z": "keyboard"}),
        p("box", "metal", 0.34, 0.008, 0.23, at=(0, 0.115, 0.012), turn=(-15, 0, 0), sides={"-y": "screen"}),
    ]),
    "keyboard": Kind("keyboard", [p("box", "black", 0.42, 0.14, 0.022, sides={"+z": "keyboard"})]),
    "tower": Kind("computer tower", [
        p("box", "black", 0.2, 0.42, 0.42), p("box", "metal", 0.17, 0.006, 0.1, at=(0, -0.213, 0.29)),
        p("box", "bright", 0.03, 0.008, 0.03, at=(0, -0.214, 0.2)),
        p("box", "metal", 0.14, 0.006, 0.008, at=(0, -0.213, 0.05), times=6, step=(0, 0, 0.02)),
    ]),
    "speaker": Kind("speaker", [
        p("box", "wood2", 0.22, 0.24, 0.5),
        *(p("rod", what, 0, -deep, 0, share * r, at=(0, -0.119, z))
          for z, r in ((0.31, 0.08), (0.425, 0.04), (0.125, 0.08))
          for what, deep, share in (("black", 0.013, 1), ("metal", 0.021, 0.4))),
    ]),
    "printer": Kind("printer", [
        p("box", "white", 0.42, 0.35, 0.22), p("box", "black", 0.32, 0.03, 0.05, at=(0, -0.17, 0.04)),
        p("box", "white", 0.21, 0.16, 0.004, at=(0, -0.225, 0.05), sides={"+z": "sheet"}),
        p("box", "black", 0.36, 0.25, 0.02, at=(0, 0.02, 0.22)),
        p("box", "bright", 0.1, 0.06, 0.01, at=(0.12, -0.135, 0.22)),
    ]),
    "microwave": Kind("microwave", [
        p("box", "metal|white", 0.48, 0.37, 0.285), p("box", "black", 0.32, 0.012, 0.235, at=(-0.062, -0.19, 0.025)),
        p("rod", "metal", 0, 0, 0.185, 0.009, at=(0.106, -0.215, 0.05)),
        p("box", "black", 0.07, 0.008, 0.03, at=(0.182, -0.188, 0.04), times=4, step=(0, 0, 0.055)),
    ]),
    "toaster": Kind("toaster", [
        p("cushion", "metal|bright", 0.28, 0.17, 0.19, 0.04, at=(0, 0, 0.01)), p("box", "black", 0.24, 0.14, 0.012),
        p("box", "black", 0.2, 0.022, 0.006, at=(0, 0.035, 0.198), mirror="y"),
        p("box", "black", 0.02, 0.03, 0.02, at=(0.148, 0, 0.12)),
    ]),
    "kettle": Kind("kettle", [
        p("cylinder", "black", 0.085, 0.02),
        p("lathe", "metal|bright", 0, 0.02, 0.08, 0.02, 0.078, 0.1, 0.06, 0.2, 0.03, 0.215, 0, 0.215),
        p("rod", "black", 0, 0, 0.025, 0.013, at=(0, 0, 0.21)),
        p("rod", "black", 0.055, 0, -0.01, 0.011, at=(0.065, 0, 0.19)),
        p("rod", "black", -0.018, 0, -0.125, 0.011, at=(0.118, 0, 0.185)),
        p("rod", "metal|bright", -0.045, 0, 0.035, 0.015, at=(-0.05, 0, 0.16)),
    ]),
    "coffee machine": Kind("coffee machine", [
        p("box", "black", 0.2, 0.3, 0.03),
        p("cushion", "black|metal|bright", 0.2, 0.14, 0.33, 0.02, at=(0, 0.08, 0.03)),
        p("cushion", "black|metal|bright", 0.2, 0.28, 0.09, 0.02, at=(0, 0, 0.25)),
        p("cylinder", "metal", 0.03, 0.05, at=(0, -0.07, 0.2)),
        p("box", "metal", 0.13, 0.1, 0.012, at=(0, -0.07, 0.03)),
    ]),
    "floor lamp": Kind("floor lamp", [
        p("cylinder", "brass", 0.14, 0.025), p("rod", "brass", 0, 0, 1.3, 0.012, at=(0, 0, 0.02)),
        p("lathe", "shade", 0, 1.27, 0.19, 1.27, 0.143, 1.52, 0, 1.52), p("lamp", "", 0.22, 0.7, at=(0, 0, 1.4)),
    ]),
    "table lamp": Kind("table lamp", [
        p("lathe", "ceramics", 0, 0, 0.07, 0, 0.075, 0.02, 0.05, 0.06, 0.065, 0.13, 0.03, 0.2, 0.012, 0.22, 0, 0.22),
        p("rod", "brass", 0, 0, 0.09, 0.008, at=(0, 0, 0.2)),
        p("lathe", "shade", 0, 0.27, 0.125, 0.27, 0.088, 0.45, 0, 0.45), p("lamp", "", 0.145, 0.28, at=(0, 0, 0.36)),
    ]),
    "desk lamp": Kind("desk lamp", [
        p("cylinder", "bright", 0.085, 0.02, at=(0, 0.1, 0)),
        p("rod", "metal", 0, 0.06, 0.245, 0.008, at=(0, 0.1, 0.015)),
        p("rod", "metal", 0, -0.2, 0.165, 0.008, at=(0, 0.16, 0.255)),
        p("lathe", "bright", 0, 0.32, 0.075, 0.32, 0.03, 0.42, 0, 0.43, at=(0, -0.06, 0)),
    ]),
    "fan": Kind("fan", [
        p("cylinder", "white", 0.17, 0.025), p("rod", "white", 0, 0, 0.6, 0.014, at=(0, 0.02, 0.02)),
        p("rod", "white", 0, -0.12, 0, 0.05, at=(0, 0.09, 0.7)),
        *(p("box", "bright", 0.15, 0.012, 0.075, turn=(0, -90 * k, 0), at=(
            0.09 * (1 - k) * (k % 2 == 0), -0.05, 0.6625 + 0.09 * (2 - k) * (k % 2))) for k in range(4)),
        *(p("cord", "metal", 0.004, *_bar_ring(r), at=(r, -0.07, 0.7)) for r in (0.08, 0.14, 0.19)),
        *(p("rod", "metal", 0.17 * float(np.cos(a)), 0, 0.17 * float(np.sin(a)), 0.003, at=(
            0.02 * float(np.cos(a)), -0.07, 0.7 + 0.02 * float(np.sin(a)))) for a in np.radians(range(0, 360, 30))),
    ]),
    "remote control": Kind("remote control", [
        p("box", "black", 0.046, 0.17, 0.018), p("box", "bright", 0.01, 0.01, 0.003, at=(0, 0.07, 0.018)),
        p("box", "white", 0.013, 0.011, 0.003, at=(0.012, 0.045, 0.018), mirror="x", times=4, step=(0, -0.026, 0)),
    ]),
    "phone": Kind("phone", [
        p("box", "black", 0.075, 0.15, 0.009, sides={"+z": "packages"}),
        p("cord", "white", 0.003, 0.03, -0.01, -0.001, 0.07, -0.03, -0.001, 0.06, -0.06, -0.001, 0, -0.08, -0.001,
          -0.02, -0.1, -0.001, 0.02, -0.12, -0.001, at=(0, -0.073, 0.004)),
    ]),
    "headphones": Kind("headphones", [
        p("cord", "black", 0.007, *(float(v) for t in np.linspace(-0.15, np.pi + 0.15, 13)[1:] for v in (
            0.085 * (np.cos(t) - np.cos(0.15)), 0.09 * (np.sin(t) + np.sin(0.15)), 0)), at=(0.084, -0.0135, 0.03)),
        p("cushion", "leather", 0.035, 0.075, 0.07, 0.016, at=(0.077, -0.03, 0), mirror="x"),
    ]),
    "game controller": Kind("game controller", [
        p("cushion", "black|white", 0.13, 0.055, 0.032, 0.014, at=(0, 0.01, 0.012)),
        p("cushion", "black|white", 0.042, 0.1, 0.034, 0.016, at=(0.058, -0.012, 0), turn=(0, 0, 14), mirror="x"),
        p("cylinder", "metal", 0.009, 0.012, at=(0.025, 0, 0.043), mirror="x"),
    ]),
    "power strip": Kind("power strip", [
        p("box", "white|black", 0.3, 0.055, 0.038),
        p("cylinder", "black", 0.019, 0.002, at=(-0.11, 0, 0.038), times=5, step=(0.055, 0, 0)),
        p("box", "black", 0.035, 0.035, 0.03, at=(-0.055, 0, 0.038)),
        p("cord", "white|black", 0.004, *(float(v) for t in np.linspace(0, 6.5, 15) for v in (
            0.015 + 0.035 * t, 0.045 * np.sin(t), -0.014)), at=(0.145, 0, 0.018)),
    ]),
    # On walls.
    "whiteboard": Kind("whiteboard", [
        p("box", "white", 1.25, 0.012, 0.82, at=(0, 0.006, 0), sides={"-y": "whiteboard"}),
        p("box", "metal", 0.02, 0.024, 0.86, at=(0.635, 0, -0.02), mirror="x"),
        p("box", "metal", 1.25, 0.024, 0.02, at=(0, 0, -0.02), times=2, step=(0, 0, 0.84)),
        p("box", "metal", 0.62, 0.06, 0.012, at=(0, -0.04, -0.02)),
    ]),
    "clock": Kind("clock", [
        p("rod", "black|wood2|bright", 0, -0.04, 0, 0.155, at=(0, 0.02, 0.155)),
        p("rod", "clock face", 0, -0.01, 0, 0.14, at=(0, -0.016, 0.155)),
    ]),
    "radiator": Kind("radiator", [
        p("box", "white", 0.048, 0.066, 0.52, at=(-0.42, 0, 0.12), times=15, step=(0.06, 0, 0)),
        p("rod", "white", 0, 0, 0.5, 0.0195, at=(-0.42, -0.034, 0.13), times=15, step=(0.06, 0, 0)),
        p("rod", "white", 0.9, 0, 0, 0.018, at=(-0.45, 0, 0.16), times=2, step=(0, 0, 0.42)),
        p("box", "white", 0.03, 0.06, 0.14, at=(0.32, 0.01, 0), mirror="x"),
    ]),
    # For their looks.
    "cactus": Kind("cactus", [
        _POT, p("ball", "green", 0.045, 0.045, 0.095, at=(0, 0, 0.18)),
        p("ball", "green", 0.02, 0.02, 0.048, at=(0.048, 0, 0.2)),
    ]),
    "vase": Kind("vase", [
        p("lathe", "ceramics", 0, 0, 0.045, 0, 0.067, 0.045, 0.075, 0.12, 0.06, 0.195, 0.04, 0.255, 0.048, 0.3, 0,
          0.29),
        *(p("rod", "wood2", x, y, z, 0.004, at=(0, 0, 0.28), times=0) for x, y, z in (
            (0.09, 0.02, 0.2), (-0.06, 0.07, 0.26), (0.02, -0.1, 0.16), (-0.09, -0.03, 0.22))),
        *(p("ball", "bright*", 0.025, 0.025, 0.035, at=(x, y, z + 0.28), times=0) for x, y, z in (
            (0.09, 0.02, 0.2), (-0.06, 0.07, 0.26), (0.02, -0.1, 0.16), (-0.09, -0.03, 0.22))),
    ], (0, 1)),
    "candle": Kind("candle", [
        p("lathe", "brass", 0, 0, 0.05, 0, 0.062, 0.015, 0, 0.015),
        p("cylinder", "white", 0.032, 0.13, at=(0, 0, 0.015)),
    ]),
    "globe": Kind("globe", [
        p("lathe", "wood2", 0, 0, 0.1, 0, 0.09, 0.02, 0.02, 0.035, 0.018, 0.08, 0, 0.08),
        p("lathe", "world", *_globe(0.145), at=(0, 0, 0.07)),
    ]),
    "mirror tray": Kind("tray", [
        p("box", "wood2", 0.36, 0.24, 0.012), p("box", "wood2", 0.012, 0.24, 0.03, at=(0.174, 0, 0.012), mirror="x"),
        p("box", "wood2", 0.336, 0.012, 0.03, at=(0, 0.114, 0.012), mirror="y"),
        p("cylinder", "ceramics", 0.035, 0.08, at=(-0.08, 0, 0.012)),
        p("cylinder", "ceramics#2", 0.035, 0.13, at=(0.08, 0, 0.012)),
    ]),
    "photo frame": Kind("photo frame", [
        p("box", "wood2|black|white|brass", 0.15, 0.014, 0.2, at=(0, 0, 0.001), turn=(-14, 0, 0)),
        p("box", "wood2|black|white|brass", 0.12, 0.002, 0.17, at=(0, -0.004, 0.014), turn=(-14, 0, 0),
          sides={"-y": "photo"}),
        p("rod", "wood2|black|white|brass", 0, -0.05, 0.117, 0.004, at=(0, 0.085, 0.003)),
    ]),
    "hat": Kind("hat", [
        p("lathe", "fabrics|wicker", 0, 0, 0.15, 0, 0.152, 0.006, 0.09, 0.012, 0.084, 0.075, 0.06, 0.098, 0, 0.1),
        p("lathe", "black", 0, 0.014, 0.0925, 0.014, 0.09, 0.036, 0, 0.036),
    ]),
    # Kitchen and table.
    "mug": Kind("mug", [
        p("lathe", "ceramics|bright", 0, 0, 0.041, 0, 0.041, 0.098, 0.037, 0.098, 0.037, 0.01, 0, 0.01),
        p("rod", "ceramics|bright", 0.028, 0, -0.007, 0.006, at=(0.041, 0, 0.0735)),
        p("rod", "ceramics|bright", 0, 0, -0.034, 0.006, at=(0.069, 0, 0.0685)),
        p("rod", "ceramics|bright", -0.028, 0, -0.012, 0.006, at=(0.069, 0, 0.036)),
    ]),
    "bowl": Kind("bowl", [
        p("lathe", "ceramics", 0, 0, 0.06, 0, 0.11, 0.037, 0.13, 0.075, 0.123, 0.075, 0.104, 0.045, 0.052, 0.012, 0,
          0.012),
        *(p("ball", "bright*", 0.039, 0.039, 0.036, at=(0.058 * float(np.cos(a)), 0.058 * float(np.sin(a)), 0.072))
          for a in np.arange(5) * 2 * np.pi / 5),
    ]),
    "bottle": Kind("bottle", [
        p("lathe", "glass", 0, 0, 0.04, 0, 0.04, 0.162, 0.014, 0.213, 0.014, 0.28, 0, 0.28),
        p("lathe", "packages", 0, 0.042, 0.041, 0.042, 0.041, 0.134, 0, 0.134),
    ]),
    "pot": Kind("pot", [
        p("lathe", "metal|bright", 0, 0, 0.11, 0, 0.11, 0.13, 0, 0.13),
        p("lathe", "metal", 0, 0.13, 0.116, 0.13, 0.077, 0.155, 0, 0.162),
        p("ball", "black", 0.018, 0.018, 0.016, at=(0, 0, 0.175)),
        p("box", "black", 0.03, 0.07, 0.018, at=(0.123, 0, 0.098), mirror="x"),
    ]),
    "package": Kind("package", [p("box", "white", 0.16, 0.07, 0.24, sides={"-y": "packages", "+y": "packages"})]),
    "canisters": Kind("canister", [
        p("lathe", "ceramics|bright*", 0, 0, 0.038, 0, 0.038, 0.1, 0.032, 0.11, 0, 0.11, at=(-0.045, 0, 0), times=0,
          step=(0.09, 0, 0)),
        p("cylinder", "metal|wood2", 0.034, 0.013, at=(-0.045, 0, 0.108), times=0, step=(0.09, 0, 0)),
    ], (1, 3)),
    "plates": Kind("plate", [
        p("lathe", "ceramics", 0, 0, 0.07, 0, 0.115, 0.018, 0.115, 0.022, 0.071, 0.007, 0, 0.007, times=0, step=(0, 0,
          0.009)),
    ], (1, 5)),
    "cutting board": Kind("cutting board", [
        p("box", "wood2", 0.36, 0.23, 0.018), p("box", "metal", 0.18, 0.026, 0.0025, at=(0.03, -0.07, 0.018)),
        p("box", "black", 0.11, 0.022, 0.016, at=(-0.11, -0.07, 0.018)),
        p("ball", "bright*", 0.032, 0.032, 0.032, at=(-0.09, 0.045, 0.049), times=0, step=(0.09, 0, 0)),
    ], (1, 3)),
    "fruit": Kind("fruit", [
        p("ball", "bright", 0.036, 0.036, 0.036, at=(0.046, 0, 0.036)),
        p("ball", "bright", 0.036, 0.036, 0.036, at=(-0.023, 0.04, 0.036), mirror="y"),
    ]),
    "paper towel": Kind("paper towel", [
        p("cylinder", "wood2", 0.075, 0.012), p("cylinder", "white", 0.055, 0.23, at=(0, 0, 0.014)),
        p("cylinder", "wood2", 0.011, 0.31, at=(0, 0, 0.01)),
    ]),
    "soap": Kind("soap dispenser", [
        p("lathe", "bright", 0, 0, 0.034, 0, 0.034, 0.112, 0.014, 0.135, 0, 0.135),
        p("cylinder", "white", 0.007, 0.05, at=(0, 0, 0.135)),
        p("box", "white", 0.016, 0.055, 0.012, at=(0, -0.016, 0.185)),
    ]),
    "dish rack": Kind("dish rack", [
        p("box", "black", 0.36, 0.27, 0.012), p("rod", "metal", 0.34, 0, 0, 0.004, at=(-0.17, 0.12, 0.1), mirror="y"),
        p("rod", "metal", 0, 0, 0.09, 0.004, at=(0.17, 0.12, 0.01), mirror="xy"),
        p("rod", "ceramics", 0.008, 0, 0.0025, 0.1, at=(-0.13, 0, 0.112), times=0, step=(0.045, 0, 0)),
    ], (3, 6)),
    # Paper, cloth and boxes.
    "books": Kind("books", [
        p("box", "pages", 0.23, 0.165, 0.03, times=0, step=(0, 0, 0.03), jitter=(0.012, 0.012, 14),
          sides={"+z": "packages*", "-z": "bright*", "-y": "books"}),
    ], (2, 5)),
    "papers": Kind("papers", [
        p("box", "white", 0.21, 0.29, 0.003, times=0, step=(0, 0, 0.003), jitter=(0.05, 0.04, 20),
          sides={"+z": "sheet"}),
    ], (2, 4)),
    "magazines": Kind("magazine", [
        p("box", "white", 0.21, 0.28, 0.006, times=0, step=(0, 0, 0.006), jitter=(0.02, 0.02, 12),
          sides={"+z": "packages*"}),
    ], (1, 3)),
    "notebook": Kind("notebook", [
        p("box", "bright", 0.3, 0.2, 0.003),
        p("box", "white", 0.142, 0.19, 0.007, at=(0.073, 0, 0.003), mirror="x", sides={"+z": "sheet"}),
        p("rod", "bright#2", 0.05, 0.12, 0, 0.0045, at=(0.04, -0.05, 0.0145)),
    ]),
    "paper tray": Kind("paper tray", [
        p("box", "black|metal|white", 0.25, 0.32, 0.004, times=2, step=(0, 0, 0.07)),
        p("box", "black|metal|white", 0.25, 0.004, 0.05, at=(0, 0.158, 0.004), times=2, step=(0, 0, 0.07)),
        p("box", "black|metal|white", 0.004, 0.316, 0.05, at=(0.123, -0.002, 0.004), mirror="x", times=2, step=(0, 0,
          0.07)),
        p("box", "black|metal|white", 0.012, 0.012, 0.02, at=(0.115, 0.145, 0.054), mirror="x", times=2, step=(0, 0,
          0.07)),
        p("box", "white", 0.21, 0.29, 0.018, at=(0, 0, 0.004), times=2, step=(0, 0, 0.07)),
    ]),
    "pen holder": Kind("pen holder", [
        p("lathe", "metal|black|ceramics", 0, 0, 0.038, 0, 0.038, 0.1, 0.034, 0.1, 0.034, 0.008, 0, 0.008),
        *(p("rod", "bright*", 0.041 * float(np.cos(a)), 0.041 * float(np.sin(a)), 0.13 + 0.01 * k, 0.004, at=(
            -0.015 * float(np.cos(a)), -0.015 * float(np.sin(a)), 0.01)) for k, a in enumerate((0.4, 2.6, 4.4, 5.5))),
    ]),
    "tape": Kind("tape", [p("lathe", "card|bright", 0.03, 0, 0.048, 0, 0.048, 0.045, 0.03, 0.045, 0.03, 0)]),
    "tissues": Kind("tissues", [
        p("box", "bright|wood2", 0.23, 0.12, 0.085),
        *(p("box", "white", 0.08, 0.002, 0.07, at=(0.02 * (k - 1), 0, 0.082), turn=(18 - 16 * k, 6 * k - 6,
          40 * k)) for k in range(3)),
    ]),
    "container": Kind("container", [
        p("box", "fabrics|wicker|card", 0.25, 0.17, 0.135),
        p("box", "fabrics|wicker|card", 0.26, 0.18, 0.045, at=(0, 0, 0.105)),
        p("box", "metal", 0.07, 0.003, 0.04, at=(0, -0.086, 0.05), sides={"-y": "white"}),
    ]),
    "box": Kind("box", [
        p("box", "card", 0.4, 0.32, 0.3, sides=dict.fromkeys(("-y", "+x", "+z"), "card_label")),
        p("shelf", "", 0.18, 0.14, 0.4, at=(0, 0, 0.3)),
    ]),
    "folded cloth": Kind("clothes", [
        p("cushion", "fabrics*", 0.29, 0.22, 0.036, 0.012, 0.003, times=0, step=(0, 0, 0.034), jitter=(0.01, 0.008, 4)),
    ], (2, 4)),
    "blanket": Kind("blanket", [
        p("cushion", "fabrics", 0.46, 0.32, 0.05, 0.022, 0.004, times=3, step=(0, 0, 0.046), jitter=(0.008, 0.006, 2)),
    ]),
    "tote bag": Kind("tote bag", [
        p("cushion", "fabrics", 0.32, 0.14, 0.32, 0.05),
        p("cord", "fabrics", 0.008, *_arc(0.07, 0.12), at=(0.07, 0.056, 0.29), mirror="y"),
    ]),
    "slippers": Kind("slippers", [
        p("cushion", "black", 0.095, 0.27, 0.022, 0.01, at=(-0.062, 0, 0)),
        p("cushion", "black", 0.095, 0.27, 0.022, 0.01, at=(0.062, 0.03, 0)),
        p("cushion", "fabrics", 0.1, 0.14, 0.06, 0.028, at=(-0.062, -0.062, 0.012)),
        p("cushion", "fabrics", 0.1, 0.14, 0.06, 0.028, at=(0.062, -0.032, 0.012)),
    ]),
    "pillow": Kind("pillow", [p("cushion", "cloth", 0.52, 0.52, 0.13, 0.06, 0.03)]),
    "shoes": Kind("shoes", [
        p("cushion", "white", 0.095, 0.28, 0.025, 0.011, at=(0.065, 0, 0), mirror="x"),
        p("cushion", "leather|fabrics|bright", 0.088, 0.27, 0.06, 0.028, at=(0.065, 0, 0.018), mirror="x"),
        p("cushion", "leather|fabrics|bright", 0.08, 0.13, 0.07, 0.028, at=(0.065, 0.065, 0.05), mirror="x"),
    ]),
    # Vessels and bags for the floor.
    "bin": Kind("trash bin", [
        p("lathe", "metal|black|wicker|bright", 0, 0, 0.104, 0, 0.13, 0.31, 0.124, 0.31, 0.101, 0.01, 0, 0.01),
        p("ball", "white", 0.05, 0.045, 0.04, at=(0, 0, 0.06), times=5, step=(0, 0, 0.03), jitter=(0.05, 0.05, 0)),
    ]),
    "basket": Kind("basket", [
        p("lathe", "wicker", 0, 0, 0.165, 0, 0.205, 0.185, 0.193, 0.31, 0.185, 0.31, 0.195, 0.185, 0.154, 0.02, 0,
          0.02),
        p("cushion", "fabrics", 0.246, 0.246, 0.186, 0.07, 0.04, at=(0, 0, 0.108)),
    ]),
    "bucket": Kind("bucket", [
        p("lathe", "bright", 0, 0, 0.109, 0, 0.138, 0.255, 0.145, 0.255, 0.145, 0.275, 0.135, 0.275, 0.104, 0.012, 0,
          0.012),
        p("lathe", "packages", 0, 0.082, 0.1205, 0.082, 0.1328, 0.206, 0, 0.206),
    ]),
    "crate": Kind("crate", [
        p("box", "wood2", 0.43, 0.32, 0.014),
        p("box", "wood2", 0.43, 0.012, 0.07, at=(0, 0.154, 0.014), mirror="y", times=3, step=(0, 0, 0.087)),
        p("box", "wood2", 0.012, 0.296, 0.07, at=(0.209, 0, 0.014), mirror="x", times=3, step=(0, 0, 0.087)),
        p("box", "wood2", 0.024, 0.024, 0.26, at=(0.189, 0.134, 0.014), mirror="xy"),
        p("ball", "bright*", 0.07, 0.07, 0.07, at=(-0.1, 0, 0.1), times=2, step=(0.19, 0.03, 0), jitter=(0.02, 0.05,
          0)),
    ]),
    "backpack": Kind("backpack", [
        p("cushion", "plain cloth", 0.32, 0.17, 0.44, 0.07),
        p("cushion", "plain cloth", 0.26, 0.09, 0.22, 0.035, at=(0, -0.1, 0.03)),
        p("box", "black", 0.2, 0.004, 0.012, at=(0, -0.146, 0.17)),
        p("rod", "black", 0.1, 0, 0, 0.01, at=(-0.05, 0.03, 0.44)),
        p("box", "black", 0.05, 0.02, 0.34, at=(0.09, 0.09, 0.05), mirror="x"),
        p("box", "black", 0.07, 0.004, 0.05, at=(0.05, -0.147, 0.07), sides={"-y": "packages"}),
    ]),
    "suitcase": Kind("suitcase", [
        p("cushion", "bright", 0.43, 0.25, 0.6, 0.05, at=(0, 0, 0.035)),
        p("box", "bright", 0.018, 0.008, 0.46, at=(-0.1536, -0.127, 0.1), times=6, step=(0.0614, 0, 0)),
        p("ball", "black", 0.022, 0.022, 0.022, at=(0.165, 0.075, 0.022), mirror="xy"),
        p("rod", "metal", 0, 0, 0.16, 0.008, at=(0.09, 0.075, 0.6), mirror="x"),
        p("rod", "black", 0.2, 0, 0, 0.013, at=(-0.1, 0.075, 0.76)),
    ]),
    "toolbox": Kind("toolbox", [
        p("box", "bright", 0.44, 0.22, 0.16), p("box", "black", 0.45, 0.23, 0.05, at=(0, 0, 0.16)),
        p("box", "black", 0.02, 0.03, 0.06, at=(0.1, 0, 0.21), mirror="x"),
        p("box", "metal", 0.04, 0.012, 0.06, at=(0.13, -0.118, 0.13), mirror="x"),
        p("rod", "black", 0.22, 0, 0, 0.013, at=(-0.11, 0, 0.265)),
        p("box", "bright", 0.14, 0.004, 0.07, at=(0, -0.112, 0.04), sides={"-y": "packages"}),
    ]),
    "watering can": Kind("watering can", [
        p("lathe", "bright|metal", 0, 0, 0.1, 0, 0.09, 0.2, 0.05, 0.21, 0, 0.21),
        p("rod", "bright|metal", 0.18, 0, 0.19, 0.012, at=(0.08, 0, 0.05)),
        p("ball", "bright|metal", 0.03, 0.03, 0.018, at=(0.27, 0, 0.25)),
        p("cord", "bright|metal", 0.009, -0.06, 0, 0.03, -0.08, 0, 0, -0.08, 0, -0.07, -0.01, 0, -0.13, at=(-0.08, 0,
          0.18)),
    ]),
    "paint can": Kind("paint can", [
        p("cylinder", "bright", 0.083, 0.18), p("cylinder", "metal", 0.078, 0.008, at=(0, 0, 0.18)),
        p("cord", "metal", 0.003, 0.06, 0.04, -0.03, 0.087, 0.089, -0.054, 0.06, 0.138, -0.03, 0, 0.178, 0, at=(0,
          -0.089, 0.126)),
    ]),
    # Toys, tools and sports.
    "ball": Kind("ball", [p("lathe", "plaid", *_globe(0.12))]),
    "teddy": Kind("teddy bear", [
        p("ball", "fur", 0.11, 0.098, 0.138, at=(0, 0, 0.132)),
        p("ball", "fur", 0.094, 0.09, 0.086, at=(0, -0.012, 0.328)),
        p("ball", "fur", 0.035, 0.023, 0.035, at=(0.071, 0, 0.4), mirror="x"),
        p("ball", "fur", 0.046, 0.115, 0.046, at=(0.086, -0.126, 0.048), mirror="x"),
        p("ball", "fur", 0.037, 0.086, 0.039, at=(0.121, -0.063, 0.195), mirror="x"),
        p("ball", "white", 0.04, 0.035, 0.035, at=(0, -0.092, 0.31)),
        p("ball", "black", 0.01, 0.009, 0.01, at=(0.035, -0.086, 0.356), mirror="x"),
    ]),
    "blocks": Kind("toy blocks", [
        p("box", "bright", 0.085, 0.085, 0.085, jitter=(0.005, 0, 8), sides={"-y": "packages", "+x": "packages#2"}),
        p("box", "bright#2", 0.085, 0.085, 0.085, at=(0.11, 0.01, 0), jitter=(0.005, 0, 8), sides={"-y": "packages#2",
          "+x": "packages"}),
        p("box", "bright#3", 0.085, 0.085, 0.085, at=(0, 0, 0.085), jitter=(0.01, 0, 8), sides={"-y": "packages#3",
          "+x": "packages"}),
    ]),
    "toy car": Kind("toy car", [
        p("cushion", "bright", 0.34, 0.156, 0.078, 0.018, at=(0, 0, 0.039)),
        p("cushion", "white", 0.17, 0.137, 0.078, 0.018, at=(-0.026, 0, 0.11)),
        p("rod", "black", 0, 0.029, 0, 0.043, at=(0.104, 0.065, 0.043), mirror="xy"),
        p("rod", "metal", 0, 0.006, 0, 0.021, at=(0.104, 0.092, 0.043), mirror="xy"),
    ]),
    "toy train": Kind("toy train", [
        p("box", "bright*", 0.12, 0.06, 0.03, at=(-0.15, 0, 0.022), times=3, step=(0.15, 0, 0)),
        p("rod", "black", 0, 0.012, 0, 0.02, at=(-0.115, 0.024, 0.02), mirror="y", times=3, step=(0.15, 0, 0)),
        p("rod", "black", 0, 0.012, 0, 0.02, at=(-0.185, 0.024, 0.02), mirror="y", times=3, step=(0.15, 0, 0)),
        p("box", "bright*", 0.1, 0.05, 0.035, at=(0, 0, 0.052), times=2, step=(0.15, 0, 0)),
        p("rod", "metal", 0.05, 0, 0, 0.005, at=(-0.1, 0, 0.03), times=2, step=(0.15, 0, 0)),
        p("box", "bright#4", 0.045, 0.056, 0.06, at=(-0.115, 0, 0.052)),
        p("rod", "black", 0.06, 0, 0, 0.022, at=(-0.19, 0, 0.07)),
        p("cylinder", "black", 0.01, 0.04, 0.014, at=(-0.18, 0, 0.085)),
    ]),
    "stacking rings": Kind("stacking rings", [
        p("cylinder", "wood2", 0.07, 0.015), *(p("lathe", f"bright#{k}", 0, 0, r - 0.01, 0, r, 0.008, r, 0.024,
          r - 0.01, 0.032, 0, 0.032, at=(
            0, 0, 0.015 + 0.032 * k)) for k, r in enumerate((0.066, 0.055, 0.044, 0.033))),
            p("ball", "bright#0", 0.016, 0.016, 0.016, at=(0, 0, 0.155)),
    ]),
    "helmet": Kind("helmet", [
        p("ball", "bright", 0.12, 0.15, 0.1, at=(0, 0, 0.1)), p("box", "black", 0.014, 0.22, 0.03, at=(0, 0, 0.172)),
        p("box", "black", 0.014, 0.22, 0.03, at=(0.06, 0, 0.142), mirror="x"),
    ]),
    "hammer": Kind("hammer", [
        p("rod", "bright", 0.28, 0, 0, 0.014, at=(-0.15, 0, 0.014)),
        p("box", "metal", 0.028, 0.11, 0.028, at=(0.135, 0, 0)),
    ]),
    "dumbbells": Kind("dumbbell", [
        p("rod", "metal", 0.2, 0, 0, 0.014, at=(-0.1, 0.075, 0.055), mirror="y"),
        p("rod", "black|bright", 0.065, 0, 0, 0.055, at=(0.06, 0.075, 0.055), mirror="xy"),
    ]),
}  # fmt: skip
"""By name of kind."""
