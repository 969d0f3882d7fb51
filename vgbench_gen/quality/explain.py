"""One row drawn: what was shown, what lies behind the answer, and the numbers of both routes."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import cv2
import numpy as np
from PIL import Image, ImageDraw, ImageFont

from vgbench_gen.core.types import ALPHABET, ColorArray, FloatArray, Item
from vgbench_gen.store import pictures
from vgbench_gen.tasks.base import tasks
from vgbench_gen.tasks.presentation import Mark
from vgbench_gen.tasks.row_evidence import UNREADABLE, RowEvidence, rebuild_fact

_WIDTH_PX, _TILE_HEIGHT_PX = 1440, 900  # of the page, and of an image in it at most
_ROW_ASPECT = 2.1  # width over height of a row of images from which no other one is put beside them
_BESIDE = 0.55  # of the page: images that take no more have the words at their side, else below
_BACK = 24
_RIGHT, _WRONG = (0, 158, 115), (215, 0, 30)  # teal and red, in which no mark is drawn
_FONT_PX = 17
_CHARACTER_PX = 8.6  # mean width of one at that size


def draw_row(item: Item, images: Sequence[bytes]) -> ColorArray:
    """(H, 1440, 3) uint8 RGB: every shown image with the truth drawn over it, and a panel with words and numbers.

    A row that another program wrote, or a damaged one, is drawn without what cannot be read of its evidence.

    images: encoded bytes in the order shown.
    """
    marks, _ = find_overlay(item)
    shown = [pictures.decode(data, name) for name, data in zip(item.images, images, strict=True)]
    aspects = [image.shape[1] / image.shape[0] for image in shown]
    rows = []
    for places in _fill_rows(aspects):
        height = min(_TILE_HEIGHT_PX, _WIDTH_PX / sum(aspects[n] for n in places))
        tiles = [_tile(shown[n], marks[n], f"image {n + 1}", int(height * aspects[n])) for n in places]
        rows.append(_join(tiles, 1))
    grid = _join(rows, 0)
    beside = grid.shape[1] <= _BESIDE * _WIDTH_PX
    panel = _draw_panel(item, _WIDTH_PX - grid.shape[1] if beside else _WIDTH_PX)
    return _join([grid, panel], 1 if beside else 0)


def find_overlay(item: Item) -> tuple[list[list[Mark]], str]:
    """(what to draw over each image, why there is nothing to draw or "")."""
    nothing: list[list[Mark]] = [[] for _ in item.images]
    if item.task not in tasks:
        return nothing, "The task is not one of this program's, so nothing can be drawn."
    try:
        found = tasks[item.task].overlay(rebuild_fact(item), RowEvidence.of(item))
    except UNREADABLE as error:
        return nothing, f"The evidence does not give an overlay ({type(error).__name__})."
    if len(found) != len(nothing):
        return nothing, "The evidence is about another number of images."
    return found, ""


def _fill_rows(aspects: Sequence[float]) -> list[range]:
    """Places of images, given by width over height, in rows of about the page's width, each as full as the others."""
    most = -(-len(aspects) // max(1, round(sum(aspects) / _ROW_ASPECT)))
    return [range(k, min(k + most, len(aspects))) for k in range(0, len(aspects), most)]


def _join(parts: Sequence[ColorArray], axis: int) -> ColorArray:
    """Pictures below (0) or beside (1) one another on the page's grey."""
    high, wide = (max(part.shape[k] for part in parts) for k in (0, 1))
    padded = [
        np.pad(
            part,
            (((0, axis * (high - len(part))), (0, (1 - axis) * (wide - part.shape[1])), (0, 0))),
            constant_values=_BACK,
        )
        for part in parts
    ]
    return np.concatenate(padded, axis=axis)


def encode_png(image: ColorArray) -> bytes:
    """(H, W, 3) uint8 RGB as PNG bytes."""
    done, data = cv2.imencode(".png", image[..., ::-1])
    if not done:
        raise ValueError(f"PNG encoder refused an image of shape {image.shape}")
    return data.tobytes()


def _tile(image: ColorArray, overlay: Sequence[Mark], title: str, width: int) -> ColorArray:
    scale = min(width / image.shape[1], 1.0)  # never larger than it was taken
    size = (round(image.shape[1] * scale), max(1, round(image.shape[0] * scale)))
    canvas = np.ascontiguousarray(cv2.resize(image, size, interpolation=cv2.INTER_AREA), dtype=np.uint8)
    for mark in overlay:
        color = _RIGHT if mark.right else _WRONG
        points = np.round((np.array(mark.points_px, dtype=np.float64).reshape(-1, 2) + 0.5) * scale - 0.5).astype(int)
        if not len(points):
            continue
        if mark.kind == "rect":
            cv2.rectangle(canvas, points[0].tolist(), points[1].tolist(), color, 2, cv2.LINE_AA)
        elif mark.kind == "line":
            cv2.polylines(canvas, [points.reshape(-1, 1, 2)], False, color, 2, cv2.LINE_AA)
        else:
            for point in points:
                cv2.circle(canvas, point.tolist(), 4, (255, 255, 255), -1, cv2.LINE_AA)
                cv2.circle(canvas, point.tolist(), 3, color, -1, cv2.LINE_AA)
        if mark.label:
            # Below a rectangle, clear of the image's title.
            at = [points[0][0], points[1][1] + 28] if mark.kind == "rect" else points[0]
            _write(canvas, mark.label, at, color)
    _write(canvas, title, np.array([6, 22]), (255, 255, 255))
    return canvas


def _write(canvas: ColorArray, text: str, at: Any, color: tuple[int, int, int]) -> None:
    (width, height), below = cv2.getTextSize(text, cv2.FONT_HERSHEY_SIMPLEX, 0.5, 1)
    x = int(np.clip(at[0], 2, max(2, canvas.shape[1] - width - 4)))
    y = int(np.clip(at[1] - 6, height + 4, canvas.shape[0] - below - 2))
    cv2.rectangle(canvas, (x - 2, y - height - 3), (x + width + 2, y + below), (0, 0, 0), -1)
    cv2.putText(canvas, text, (x, y), cv2.FONT_HERSHEY_SIMPLEX, 0.5, color, 1, cv2.LINE_AA)


def _draw_panel(item: Item, width_px: int) -> ColorArray:
    """The words and numbers of a row as a picture."""
    wide = int((width_px - 24) / _CHARACTER_PX)
    lines = [*_list_words(item, wide), f"answer: {item.answer}", *_list_numbers(item)]
    wrapped = [part for line in lines for part in (textwrap.wrap(line, wide, drop_whitespace=False) or [""])]
    image = Image.new("RGB", (width_px, (_FONT_PX + 5) * len(wrapped) + 20), (_BACK,) * 3)
    pen = ImageDraw.Draw(image)
    font = ImageFont.load_default(_FONT_PX)
    for n, line in enumerate(wrapped):
        color = (140, 220, 180) if line.startswith("->") else (235, 235, 235)
        pen.text((12, 10 + n * (_FONT_PX + 5)), line, fill=color, font=font)
    return np.asarray(image, dtype=np.uint8)


def _list_words(item: Item, wide: int) -> list[str]:
    lines: list[str] = []
    for paragraph in filter(None, (item.question, item.context)):
        for line in paragraph.splitlines():
            lines += textwrap.wrap(line, wide) or [""]
        lines.append("")
    for letter, option in zip(ALPHABET, item.options, strict=False):
        mark = "->" if letter == item.answer else "  "
        wrapped = [w for line in option.splitlines() for w in textwrap.wrap(line, wide - 8)] or [""]
        lines += [f"{mark} {letter}: {wrapped[0]}", *(f"       {more}" for more in wrapped[1:])]
    return [*lines, ""] if item.options else lines


def _list_numbers(item: Item) -> list[str]:
    row = RowEvidence.found(item)
    if row is None:
        return [f"{item.source} {item.scene_id} · {item.task} {item.ask} · {item.id}"]
    margins = ", ".join(f"{name} {value:g}" for name, value in sorted(row.margins.items()))
    paired = f" · pair {item.pair_id} {row.side}".rstrip() if item.pair_id else ""
    return [
        *_list_values(item, row),
        f"what was measured over what is required, 1 being just enough: {margins}",
        f"{item.source} {item.scene_id} frames {', '.join(item.frame_ids)} · {item.task} {item.ask} · "
        f"{item.difficulty} · {item.id}{paired}",
    ]


def find_words(item: Item, value: FloatArray) -> str:
    """The words of a value of the row's task; "" for numbers, damaged rows and tasks that are not known here."""
    with suppress(*UNREADABLE):
        row = RowEvidence.found(item)
        return "" if row is None else tasks[item.task].find_words(value, row.truth.candidate())
    return ""


def _list_values(item: Item, row: RowEvidence) -> list[str]:
    """The values of both routes, and how far off what was offered is."""

    def tell(value: FloatArray) -> str:
        return find_words(item, value) or f"{_format_numbers(value)} {item.unit}"

    lines = [f"first route:  {tell(row.truth.value)}", f"second route: {tell(row.second_value)}"]
    is_word = bool(find_words(item, row.truth.value))
    if row.claim is not None:
        off = "" if is_word else f", {row.claim.separation:.2f} margins from the truth"
        lines.append(f"claim: {find_words(item, row.claim.value) or _format_numbers(row.claim.value)}{off}")
    if is_word:
        with suppress(*UNREADABLE):
            scores = tasks[item.task].list_scores(rebuild_fact(item))
            lines.append("scores: " + ", ".join(f"{words} {score:.3f}" for words, score in scores.items()))
        return lines
    for letter, distractor in zip((k for k in ALPHABET if k != item.answer), item.distractors, strict=False):
        parts = item.error_parts[ALPHABET.index(letter)] if item.error_parts else ""
        wrong = f" (wrong: {parts.replace('+', ', ').replace('_', ' ')})" if parts else ""
        lines.append(f"{letter}: {distractor.separation:.2f} margins from the truth{wrong}")
    return lines


def _format_numbers(value: Any) -> str:
    array = np.round(np.asarray(value, dtype=np.float64), 3) + 0.0  # no minus zero
    text = np.array2string(array, precision=3, suppress_small=True, separator=", ", max_line_width=10**6)
    return " ".join(text.split())
