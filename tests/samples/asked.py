"""An item as its reader gets it, beside the exact frames that it shows."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import cv2
import numpy as np

from tests.samples.exact_truth import ExactFrame, ExactScene, seen_alike
from vgbench_gen.core.types import Camera, ColorArray, FloatArray, Item

# Files keep poses to 1e-6 or better.
K_OFF_PX = 1e-3
# Wrong options and false claims lie this many times farther from the truth than the right one.
CLEAR = 4.0


@dataclass(eq=False)
class Asked:
    """One item, what it shows, and the exact world behind it."""

    item: Item
    scene: ExactScene
    images: Callable[[int], bytes]

    @property
    def side(self) -> str:
        """From which side of a pair the item asks: "" for the first one."""
        return str(self.item.evidence["side"])

    @cached_property
    def frames(self) -> dict[str, ExactFrame]:
        """frame id -> what the item shows of it."""
        found = {}
        for frame_id, record in self.item.evidence["cameras"].items():
            stated = Camera(np.array(record["K"]).reshape(3, 3), record["width"], record["height"])
            # The camera of a picture whose distortion was taken out is the loader's choice; pixels tell if it is true.
            frame = self.scene.frame(frame_id, stated.size, stated if self.item.source == "scannetpp" else None)
            assert frame.camera.size == stated.size
            assert np.abs(frame.camera.K - stated.K).max() < K_OFF_PX, f"{stated.K.tolist()} {frame.camera.K.tolist()}"
            found[frame_id] = frame
        return found

    def picture(self, k: int) -> ColorArray:
        return decoded(self.images(k))

    def shown(self, k: int) -> ExactFrame:
        """The frame behind the k-th picture."""
        name = self.item.evidence["pictures"][k]["base"]
        return self.frames[next(i for i, base in self.item.evidence["bases"].items() if base == name)]

    @property
    def up(self) -> FloatArray:
        """(3,) against gravity, in the camera of the first picture; z goes up in every sample world."""
        return np.asarray(self.shown(0).pose[2, :3])

    @property
    def text(self) -> str:
        return f"{self.item.question}\n{self.item.context}"

    @property
    def rects(self) -> list[list[int]]:
        """Regions that are drawn, in the order of drawing."""
        return [op["rect"] for op in self.drawn if op["op"] == "region"]

    @property
    def marks(self) -> dict[str, list[int]]:
        """name -> pixel of "the blue square (12, 40)" as printed, or rectangle of "the pink region" as drawn."""
        found = re.findall(r"(the \w+ (?:circle|triangle|square|diamond)) \((\d+), (\d+)\)", self.item.context)
        printed = {name: [int(u), int(v)] for name, u, v in found}
        return printed | {f"the {op['color']} region": op["rect"] for op in self.drawn if op["op"] == "region"}

    @property
    def drawn(self) -> list[dict[str, Any]]:
        return [op for picture in self.item.evidence["pictures"] for op in picture["ops"]]

    def options(self) -> list[FloatArray]:
        return [numbers(text) for text in self.item.options]

    @property
    def right(self) -> int:
        return "ABCDEF".index(self.item.answer)  # orders of three are six

    @property
    def stated_tolerance(self) -> tuple[float, str]:
        """What a judgment about one number says a true claim may be off by, and of what: "percent" or "pixels"."""
        before = r"(?:within|take|up\s+to|at\s+most)"
        ((value, unit),) = re.findall(rf"{before}\s+(\d+)\s+(percent|pixels)\b", self.item.question)
        return float(value), unit

    @property
    def claimed(self) -> FloatArray:
        """The claim of a judgment; every number of it stands in the question."""
        claim = np.array(self.item.evidence["claim"]["value"], np.float64)
        said = numbers(self.text)
        assert all(np.abs(said - x).min() < 1e-9 for x in claim.ravel()), "the question says something else"
        return claim

    def nearest_is_right(self, off: Sequence[float], at_most: float, clear: float = CLEAR) -> None:
        """off: how far each option is from the exact truth; clear: how many times farther a wrong one is at least."""
        right, wrong = off[self.right], min(x for n, x in enumerate(off) if n != self.right)
        assert right <= at_most, f"the right option is {right:.4g} off, allowed {at_most:.4g}"
        assert right * clear < wrong, f"the right option is {right:.4g} off, a wrong one {wrong:.4g}"

    def holds(self, off: float, tolerance: float) -> None:
        """Yes well within a claim's tolerance, No beyond it by more than anything here errs."""
        yes = self.item.answer == "Yes"
        assert yes or self.item.answer == "No"
        assert off <= 0.75 * tolerance if yes else off >= 1.02 * tolerance, f"{self.item.answer} at {off:.4g}"


def numbers(text: str) -> FloatArray:
    """All numbers of a text that are no part of a name."""
    return np.array([float(x) for x in re.findall(r"(?<![\w.])-?\d+(?:\.\d+)?(?!\w)", text)])


def decoded(data: bytes) -> ColorArray:
    image = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_COLOR_RGB)
    assert image is not None
    return np.asarray(image, np.uint8)


def looks_alike(picture: ColorArray, camera: Camera, frame: ExactFrame) -> None:
    """The picture shows what the renderer sees from there with that camera."""
    correlation, shift_px = seen_alike(picture, camera, frame)
    assert correlation > 0.95, f"frame {frame.number}: correlation {correlation:.3f}"
    # What moved while the shutter was open lies anywhere along its smear.
    limit_px = 2.0 if frame.number in frame.capture.blurred else 1.0
    assert shift_px < limit_px, f"frame {frame.number}: shifted by {shift_px:.2f} px"


def only_marked(picture: ColorArray, base: ColorArray) -> None:
    """The picture is the frame, but for marks and one more JPEG coding."""
    assert picture.shape == base.shape
    off = np.abs(picture[::4, ::4].astype(int) - base[::4, ::4])
    assert np.median(off) <= 4, f"half of the picture is {np.median(off):.0f} grey levels off"
