"""Points of images as a family of models reads them: after its own resize, in pixels, fractions or thousandths.

Only points of images, and the sentence that says how they are counted, are rewritten. What is stated of a camera
("1024 x 768 pixels, fx = 843.1") stays: it is true of the image file, as are homographies and focal lengths.

Rules are those of the processors in transformers (`models/qwen2_vl/image_processing_qwen2_vl.py:smart_resize`,
`models/got_ocr2/image_processing_got_ocr2.py:get_optimal_tiled_canvas`) with the settings of the published checkpoints;
`tests/training/test_processors.py` compares them. Which family counts how: QwenLM/Qwen3-VL issues 866 and 1486.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from vgbench_gen.core.errors import UnknownNameError
from vgbench_gen.core.stand_ins import config_error
from vgbench_gen.core.types import Item
from vgbench_gen.tasks.row_evidence import ShownEvidence
from vgbench_gen.text.numbers import format_point
from vgbench_gen.text.render import fill_word

Size = tuple[int, int]
_POINT = re.compile(r"\((\d{1,5}), (\d{1,5})\)")
_SENTENCE = re.compile(r"[^.]*\(x, y\)[^.]*\.")  # says how points are counted
_TILE_PX, _TILES_MAX, _TILE_TOKENS = 448, 12, 256  # OpenGVLab/InternVL3-8B: preprocessor_config.json
_ASPECT_MAX = 200.0


@dataclass(frozen=True, slots=True)
class Family:
    """How models of one family see an image and count its points."""

    name: str
    unit: str
    """"pixels", "fractions" or "thousandths"."""
    step_px: int = 0
    """Both sides of a resized image are multiples of it; 0 where images are not resized so."""
    min_pixels: int = 0
    max_pixels: int = 0
    """Limits of the area of a resized image, pixels."""
    tiles: bool = False
    """Whether the image is cut into square tiles."""

    def resize(self, size: Size) -> Size:
        """(width, height) in pixels of an image as the family's processor resizes it.

        Raises:
            ConfigError: the image is more than 200 times as long as wide, which the processor refuses.
        """
        if self.tiles:
            columns, rows = _choose_tiles(size)
            return columns * _TILE_PX, rows * _TILE_PX
        if not self.step_px:
            return size
        width, height = size
        if max(size) > _ASPECT_MAX * min(size):
            found, expected = f"an image of {width} x {height} pixels", f"sides of a ratio up to {_ASPECT_MAX:g}"
            raise config_error(f"family {self.name}", found, expected, "Leave the row out.")
        step = self.step_px
        wide, high = (round(side / step) * step for side in size)
        if wide * high > self.max_pixels:
            shrink = math.sqrt(width * height / self.max_pixels)
            wide, high = (max(step, math.floor(side / shrink / step) * step) for side in size)
        elif wide * high < self.min_pixels:
            grow = math.sqrt(self.min_pixels / (width * height))
            wide, high = (math.ceil(side * grow / step) * step for side in size)
        return wide, high

    def count_tokens(self, size: Size) -> int:
        """Tokens that an image of (width, height) pixels becomes in the language model; 0 where that is unknown."""
        width, height = self.resize(size)
        if self.tiles:
            tiles = (width // _TILE_PX) * (height // _TILE_PX)
            return _TILE_TOKENS * (tiles + (tiles > 1))  # and a thumbnail
        return (width // self.step_px) * (height // self.step_px) if self.step_px else 0

    def print_point(self, uv_px: Sequence[float], size: Size) -> str:
        """A point as the family writes it.

        Args:
            uv_px: (2,) pixels of the image file; (0, 0) is the center of the top-left pixel.
            size: (width, height) of the image file, pixels.
        """
        shares = [(at + 0.5) / side for at, side in zip(uv_px, size, strict=True)]
        if self.unit == "fractions":
            return f"({shares[0]:.3f}, {shares[1]:.3f})"
        if self.unit == "thousandths":
            return f"({round(1000 * shares[0])}, {round(1000 * shares[1])})"
        sides = self.resize(size)
        return "({}, {})".format(
            *(min(side - 1, round(share * side - 0.5)) for share, side in zip(shares, sides, strict=True))
        )

    def describe(self, sizes: Sequence[Size]) -> str:
        """The sentence that says how points are counted in images of these sizes."""
        resized = list(dict.fromkeys(map(self.resize, sizes)))
        if self.unit != "pixels":
            return fill_word(f"coordinates.{self.unit}")
        if len(resized) == 1:
            width, height = map(str, resized[0])
            return fill_word("coordinates.pixels", width=width, height=height)
        each = [fill_word("coordinates.size", width=str(w), height=str(h)) for w, h in map(self.resize, sizes)]
        return fill_word("coordinates.several", sizes=fill_word("list.separator").join(each))


FAMILIES = {
    family.name: family
    for family in (
        Family("qwen2.5-vl", "pixels", 28, 56 * 56, 16384 * 28 * 28),  # Qwen/Qwen2.5-VL-7B-Instruct
        Family("qwen3-vl", "thousandths", 32, 256 * 256, 4096 * 4096),  # Qwen/Qwen3-VL-8B-Instruct
        Family("internvl", "thousandths", tiles=True),
        Family("pixels", "pixels"),
        Family("0-1", "fractions"),
        Family("0-1000", "thousandths"),
    )
}


def find_family(name: str, max_pixels: int = 0) -> Family:
    """The family of a name.

    Args:
        name: one of `FAMILIES`.
        max_pixels: the limit that your trainer sets, instead of the checkpoint's; 0 for the checkpoint's.

    Raises:
        UnknownNameError: there is none of this name.
        ConfigError: a limit for a family that has none.
    """
    if name not in FAMILIES:
        raise UnknownNameError(f"no model family is called {name!r}. Known: {', '.join(FAMILIES)}")
    family = FAMILIES[name]
    if max_pixels and not family.step_px:
        named = ", ".join(one.name for one in FAMILIES.values() if one.step_px)
        raise config_error("max_pixels", f"it with the family {name}", f"one of {named}", "Leave it out.")
    return replace(family, max_pixels=max_pixels) if max_pixels else family


def has_points(item: Item) -> bool:
    """Whether points are marked on the images of a row; others need no rewriting, and no sizes of images."""
    if not ShownEvidence.is_in(item.evidence):
        return False
    return any(op["op"] == "point" for picture in item.evidence["pictures"] for op in picture["ops"])


def rewrite_points(item: Item, sizes: Sequence[Size], family: Family) -> Item:
    """The row with the points of its images as the family counts them; a row without points stays as it is.

    Args:
        item: the row.
        sizes: (width, height) in pixels of each image as delivered.
        family: the family.

    Raises:
        ConfigError: a text has points and no sentence that says how they are counted.
    """
    places = _find_points(item, sizes)
    if not places or family.name == "pixels":
        return item

    def rewrite(text: str) -> str:
        return _print_points(text, places, family)

    context, found = _SENTENCE.subn(lambda _: f" {family.describe(sizes)}", rewrite(item.context))
    if not found:
        where, expected = (
            f"family {family.name}, item {item.id}",
            "a sentence with (x, y) that says how they are counted",
        )
        raise config_error(where, "points of an image", expected, "Add it to the context, or leave the kind out.")
    options = tuple(map(rewrite, item.options))
    return replace(item, question=rewrite(item.question), context=context.strip(), options=options)


def rewrite_text(text: str, item: Item, sizes: Sequence[Size], family: Family) -> str:
    """A text about a row, such as its rationale, with points as `rewrite_points` writes them; item: as built."""
    return _print_points(text, {} if family.name == "pixels" else _find_points(item, sizes), family)


def _print_points(text: str, places: Mapping[str, Size], family: Family) -> str:
    def write(match: re.Match[str]) -> str:
        size = places.get(match[0])
        return match[0] if size is None else family.print_point((int(match[1]), int(match[2])), size)

    return _POINT.sub(write, text)


def _find_points(item: Item, sizes: Sequence[Size]) -> dict[str, Size]:
    """Printed point -> size of the image on which it is marked.

    Raises:
        ConfigError: one point is marked on images of different sizes, so that its text stands for two places.
    """
    shown = ShownEvidence.read(item.evidence, f"item {item.id}").shown() if ShownEvidence.is_in(item.evidence) else ()
    found: dict[str, Size] = {}
    for picture, size in zip(shown, sizes, strict=False):
        for op in picture.ops:
            if op["op"] == "point" and found.setdefault(format_point(op["uv"]), size) != size:
                where, found_ = f"item {item.id}", f"{format_point(op['uv'])} marked on images of two sizes"
                raise config_error(where, found_, "points that differ", "Leave the row out.")
    return found


def _choose_tiles(size: Size) -> tuple[int, int]:
    """(columns, rows) of tiles: the grid nearest to the image's shape; of several, the largest not twice its area."""
    grids = [(c, r) for c in range(1, _TILES_MAX + 1) for r in range(1, _TILES_MAX + 1) if c * r <= _TILES_MAX]
    aspect, area = size[0] / size[1], size[0] * size[1]
    best, least = (1, 1), math.inf
    for columns, rows in sorted(grids, key=lambda grid: grid[0] * grid[1]):
        off = abs(aspect - columns / rows)
        if off < least or (off == least and area > 0.5 * columns * rows * _TILE_PX**2):
            best, least = (columns, rows), off
    return best
