"""Frames of a `.sens` file as arrays, against nothing but its codecs: one by one in random order, and all in a row."""

from __future__ import annotations

import zlib
from collections.abc import Sequence

import cv2
import numpy as np

from bench.session import Session
from bench.table import Row, paired
from vgbench_gen.scenes._sens import SensFile


def rows(session: Session) -> list[Row]:
    """Colour and depth of all frames."""
    names = (".sens random frames / bare codecs", ".sens full scan / bare codecs")
    found = sorted(session.root.rglob("*.sens"))
    if not found:
        return [Row(name, None, "x", "no .sens file below the scenes", at_most=1.1) for name in names]
    file = SensFile(found[0])
    n = len(file)
    shuffled = np.random.default_rng(0).permutation(n).tolist()
    made = [_row(name, file, order) for name, order in zip(names, (shuffled, list(range(n))), strict=True)]
    file.close()
    return made


def _row(name: str, file: SensFile, order: Sequence[int]) -> Row:
    payloads = [(file._read(i, 0), file._read(i, 1)) for i in order]
    width, height = file.header.depth_size

    def ours() -> None:
        for i in order:
            file.color(i), file.depth_m(i)

    def bare() -> None:
        for color, depth in payloads:
            cv2.imdecode(np.frombuffer(color, np.uint8), cv2.IMREAD_COLOR_RGB)
            units = np.frombuffer(zlib.decompress(depth), "<u2").reshape(height, width)
            units.astype(np.float32) / np.float32(file.header.depth_shift)

    ratio, a, b = paired(ours, bare)
    n = len(order)
    beside = f"{1e3 * a / n:.2f} ms against {1e3 * b / n:.2f} ms per frame (zlib + JPEG in memory, metres); {n} frames"
    return Row(name, ratio, "x", beside, at_most=1.1)
