"""Random frames of a `.sens` file as arrays, against nothing but its codecs."""

from __future__ import annotations

import zlib
from pathlib import Path

import cv2
import numpy as np

from bench.table import Row, paired
from vgbench_gen.scenes._sens import SensFile


def rows(root: Path, scratch: Path) -> list[Row]:
    """One row per reader: colour and depth of all frames in random order."""
    found = sorted(root.rglob("*.sens"))
    if not found:
        return [Row(".sens random frame / bare codecs", "-", "<= 1.1x", "no .sens file below the scenes")]
    cv2.setNumThreads(1)
    file = SensFile(found[0])
    order = np.random.default_rng(0).permutation(len(file)).tolist()
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
    absolute = f"{1e3 * a / n:.2f} ms against {1e3 * b / n:.2f} ms per frame (zlib + JPEG in memory, metres)"
    file.close()
    return [Row(".sens random frame / bare codecs", f"{ratio:.2f}x", "<= 1.1x", absolute)]
