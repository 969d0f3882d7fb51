"""Draw the picture of the README: one question of each task, from a dataset.

    python tools/hero.py build/vgbench docs/assets/ten-questions.jpg [ID ...]

IDs name the questions to take for their tasks; of the other tasks the question whose id comes first.
"""

from __future__ import annotations

import io
import sys
import textwrap
from pathlib import Path

from PIL import Image, ImageDraw, ImageFont

from vgbench_gen.core.types import Item
from vgbench_gen.store.dataset import Dataset, load

CARD_PX = (500, 430)
PICTURE_PX = (484, 250)
COLUMNS = 5
GAP_PX = 8
WIDTH_PX = 1800
MAX_BYTES = 150_000
INK, QUIET, PAPER, GROUND = "#1b1f24", "#57606a", "#ffffff", "#e6e9ed"
RIGHT = "#1a7f37"


def choose_items(dataset: Dataset, wanted: list[str]) -> list[Item]:
    """One multi-choice question of each task, in the order of the tasks' names."""
    found: dict[str, Item] = {}
    for item in sorted((item for item in dataset if item.question_type == "multi-choice"), key=lambda item: item.id):
        if item.task not in found or any(item.id.startswith(one) for one in wanted):
            found[item.task] = item
    return [found[task] for task in sorted(found)]


def lay_out_pictures(pictures: list[Image.Image]) -> Image.Image:
    """Pictures side by side (five or more: the first one large, the others in two rows of two) on one canvas."""
    canvas = Image.new("RGB", PICTURE_PX, GROUND)
    width, height = PICTURE_PX
    if len(pictures) <= 2:
        share = width // len(pictures)
        boxes = [(k * share, 0, share, height) for k in range(len(pictures))]
    else:
        small = [(k, row) for row in range(2) for k in range(2)]
        boxes = [(0, 0, width // 2, height)]
        boxes += [(width // 2 + k * width // 4, row * height // 2, width // 4, height // 2) for k, row in small]
    for picture, (x, y, w, h) in zip(pictures, boxes, strict=False):
        scaled = picture.copy()
        scaled.thumbnail((w - 2, h - 2), Image.Resampling.LANCZOS)
        canvas.paste(scaled, (x + (w - scaled.width) // 2, y + (h - scaled.height) // 2))
    return canvas


def draw_card(item: Item, pictures: list[Image.Image]) -> Image.Image:
    """A question as a card: pictures, words, options, the right one in green."""
    card = Image.new("RGB", CARD_PX, PAPER)
    draw = ImageDraw.Draw(card)
    head, text, small = (ImageFont.load_default(size) for size in (17, 15, 13))
    card.paste(lay_out_pictures(pictures), (8, 34))
    draw.text((10, 8), item.task.replace("_", " "), INK, head)
    y = 292
    words = textwrap.shorten(item.question, 205, placeholder=" …")
    for line in textwrap.wrap(words, 70)[:3]:
        draw.text((10, y), line, INK, text)
        y += 19
    y += 4
    for letter, option in zip("ABCD", item.options, strict=False):
        line = textwrap.shorten(f"{letter}  {' '.join(option.split())}", 74, placeholder=" …")
        draw.text((10, y), line, RIGHT if letter == item.answer else QUIET, small)
        y += 17
    return card


def draw_sheet(dataset: Dataset, items: list[Item]) -> Image.Image:
    """All cards on one sheet."""
    rows = -(-len(items) // COLUMNS)
    size = COLUMNS * (CARD_PX[0] + GAP_PX) + GAP_PX, rows * (CARD_PX[1] + GAP_PX) + GAP_PX
    sheet = Image.new("RGB", size, GROUND)
    for place, item in enumerate(items):
        raw = [dataset.image_bytes(item, k) for k in range(len(item.images))]
        card = draw_card(item, [Image.open(io.BytesIO(data)).convert("RGB") for data in raw])
        row, column = divmod(place, COLUMNS)
        sheet.paste(card, (GAP_PX + column * (CARD_PX[0] + GAP_PX), GAP_PX + row * (CARD_PX[1] + GAP_PX)))
    return sheet


def main() -> None:
    """Write the picture, as good as its size in bytes allows."""
    folder, out, *wanted = sys.argv[1:]
    dataset = load(folder)
    sheet = draw_sheet(dataset, choose_items(dataset, wanted))
    sheet.thumbnail((WIDTH_PX, WIDTH_PX), Image.Resampling.LANCZOS)
    for quality in range(88, 40, -4):
        data = io.BytesIO()
        sheet.save(data, "JPEG", quality=quality, optimize=True, progressive=True)
        if data.tell() <= MAX_BYTES:
            Path(out).parent.mkdir(parents=True, exist_ok=True)
            Path(out).write_bytes(data.getvalue())
            print(f"{out}: {sheet.width} x {sheet.height}, {data.tell()} bytes, quality {quality}")
            return
    raise SystemExit(f"{out}: larger than {MAX_BYTES} bytes at every quality")


if __name__ == "__main__":
    main()
