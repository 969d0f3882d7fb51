"""What looks like print: drawn letters do; stripes, planes and grain do not; and what real captures show."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
import numpy.typing as npt
import pytest

from vgbench_gen.core.gates import FrameGates
from vgbench_gen.scenes._print import measure_print_share

Grey = npt.NDArray[np.uint8]
LEAST = FrameGates().print_share_min


def draw_wall() -> Grey:
    """A plane with slow shading and an edge."""
    image = np.linspace(90, 170, 640)[None].repeat(480, axis=0)
    image[:, 400:] -= 60
    return image.astype(np.uint8)


def draw_page(image: Grey, height_px: float, ink: int, turn_deg: float = 0.0) -> Grey:
    """Lines of letters in the middle of an image, turned."""
    page = image.copy()
    for row in range(6):
        place = (200, round(160 + 1.8 * row * height_px))
        cv2.putText(page, "Geometry 3D view", place, cv2.FONT_HERSHEY_SIMPLEX, height_px / 22, ink, 1, cv2.LINE_AA)
    turn = cv2.getRotationMatrix2D((320, 240), turn_deg, 1.0)
    return np.asarray(cv2.warpAffine(page, turn, (640, 480), borderMode=cv2.BORDER_REPLICATE), dtype=np.uint8)


@pytest.mark.parametrize("height_px", [9.0, 14.0])
@pytest.mark.parametrize("ink", [10, 245])
@pytest.mark.parametrize("turn_deg", [0.0, 25.0, 90.0])
def test_letters_look_like_print(height_px: float, ink: int, turn_deg: float) -> None:
    share = measure_print_share(draw_page(draw_wall(), height_px, ink, turn_deg))
    assert share > LEAST
    mirrored = draw_page(draw_wall(), height_px, ink, turn_deg)[:, ::-1]
    assert abs(measure_print_share(np.ascontiguousarray(mirrored)) - share) < 0.3 * share


def test_planes_stripes_and_grain_do_not() -> None:
    u = np.arange(640)[None].repeat(480, axis=0)
    stripes = (128 + 80 * np.sign(np.sin(u / 2.0))).astype(np.uint8)
    assert measure_print_share(stripes) < LEAST
    assert measure_print_share(np.ascontiguousarray(stripes[:, :480].T)) < LEAST
    assert measure_print_share(draw_wall()) == 0
    grain = np.clip(draw_wall() + np.random.default_rng(0).normal(0, 6, (480, 640)), 0, 255).astype(np.uint8)
    assert measure_print_share(grain) < LEAST


def test_real_frames(captures: Path) -> None:
    """The frames of this capture that are sharp show books and posters."""
    shares = []
    for path in sorted((captures / "scannet" / "scene9001_01" / "color").glob("*.jpg")):
        grey = cv2.imread(str(path), cv2.IMREAD_GRAYSCALE)
        assert grey is not None
        shares.append(measure_print_share(np.asarray(grey, dtype=np.uint8)))
    assert np.mean(np.array(shares) > LEAST) > 0.6
