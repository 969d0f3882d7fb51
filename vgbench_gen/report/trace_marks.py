"""What a call of a tool points at, found in its arguments and results by the names of their fields.

No tool is known here: pixels, boxes, segments and matches have the same names in all of them, so that the marks of a
tool from outside are drawn as well. Everything here is foreign data; what does not fit is left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

MAX_MARKS = 120  # of one call
_MAX_DEPTH = 6
_FAR = 1e9  # pixels
_BOXES = ("bbox", "bboxes", "box", "rect", "rect_px", "rects_px", "regions")
_POINTS = ("point", "points", "pixel", "pixels", "uv", "track", "tracks")
_SEGMENTS = ("segment", "segments", "line", "lines")
_NAMES = ("label", "object", "name")


@dataclass(frozen=True, slots=True)
class TraceMark:
    """Something to draw on the images of a call."""

    kind: Literal["point", "box", "segment", "match"]
    """A match goes from the first image to the second; all others lie in one."""
    place: int
    """Of the image among those of the call."""
    numbers: tuple[float, ...]
    """Pixels: (u, v); (left, top, right, bottom); (u1, v1, u2, v2)."""
    label: str = ""


def find_marks(
    arguments: Mapping[str, Any], values: Mapping[str, Any], sizes_px: Sequence[tuple[int, int]]
) -> list[TraceMark]:
    """At most `MAX_MARKS` marks of a call, those of its arguments first.

    Args:
        arguments: as it was called.
        values: what it gave.
        sizes_px: (width, height) of the images that it was given, in their order.
    """
    if not sizes_px:
        return []
    given = [_scale_share(mark, sizes_px[mark.place]) for mark in _walk(arguments, len(sizes_px), "", 0)]
    told = list(_walk(values, len(sizes_px), "", 0))
    if any(mark.kind == "box" for mark in told):
        given = [mark for mark in given if mark.kind != "box"]
    return [mark for mark in given + told if _is_near(mark, sizes_px)][:MAX_MARKS]


def _walk(record: Mapping[str, Any], images: int, label: str, depth: int) -> Iterator[TraceMark]:
    label = next((record[name][:40] for name in _NAMES if isinstance(record.get(name), str)), label)
    for key, value in record.items():
        stem, _, tail = str(key).partition("_")
        place = min(images - 1, 1 if tail in ("second", "2") or stem in ("track", "tracks", *_SEGMENTS) else 0)
        if key == "matches" and images == 2:
            yield from (TraceMark("match", 0, numbers) for numbers in _find_numbers(value, 2, pairs=True))
        elif key in _BOXES:
            yield from _number_all(TraceMark("box", 0, numbers, label) for numbers in _find_numbers(value, 4))
        elif stem in _SEGMENTS:
            yield from (TraceMark("segment", place, numbers, label) for numbers in _find_numbers(value, 2, pairs=True))
        elif stem in _POINTS:
            yield from _number_all(TraceMark("point", place, numbers, label) for numbers in _find_numbers(value, 2))
        if depth < _MAX_DEPTH:
            for inner in value if isinstance(value, list) else [value]:
                if isinstance(inner, Mapping):
                    yield from _walk(inner, images, label, depth + 1)


def _number_all(marks: Iterator[TraceMark]) -> Iterator[TraceMark]:
    """Several marks without labels get numbers."""
    found = list(marks)
    for k, mark in enumerate(found, 1):
        wanted = not mark.label and len(found) > 1
        yield TraceMark(mark.kind, mark.place, mark.numbers, str(k)) if wanted else mark


def _find_numbers(value: Any, count: int, pairs: bool = False, depth: int = 0) -> Iterator[tuple[float, ...]]:
    if not isinstance(value, list | tuple) or depth > 3:
        return
    inner = [each for each in value if isinstance(each, list | tuple)]
    if pairs and len(value) == 2 == len(inner) and all(_are_numbers(each, count) for each in value):
        yield (*map(float, value[0]), *map(float, value[1]))
    elif not pairs and _are_numbers(value, count):
        yield tuple(map(float, value))
    else:
        for each in inner[:MAX_MARKS]:
            yield from _find_numbers(each, count, pairs, depth + 1)


def _are_numbers(value: Any, count: int) -> bool:
    return len(value) == count and all(type(each) in (int, float) and abs(each) < _FAR for each in value)


def _scale_share(mark: TraceMark, size_px: tuple[int, int]) -> TraceMark:
    """A box in shares of the sides, as the tool that crops takes it, in pixels."""
    if mark.kind != "box" or not all(0 <= number <= 1 for number in mark.numbers):
        return mark
    scaled = tuple(number * side for number, side in zip(mark.numbers, size_px * 2, strict=True))
    return TraceMark("box", mark.place, scaled, mark.label)


def _is_near(mark: TraceMark, sizes_px: Sequence[tuple[int, int]]) -> bool:
    """Whether it lies within or about its image; numbers of another meaning mostly do not."""
    most = 4 * max(max(size) for size in sizes_px)
    return all(abs(number) <= most for number in mark.numbers)
