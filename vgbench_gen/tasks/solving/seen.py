"""What a solver is given of a question, and how the printed numbers are read back from its text."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from vgbench_gen.core.types import FloatArray
from vgbench_gen.geometry.poses import find_nearest_rotation, join_turns
from vgbench_gen.tasks.solving.images import Image
from vgbench_gen.text.marks import compile_mark_names
from vgbench_gen.text.numbers import SIGN_WORDS, SIGNED_LIST, parse_numbers
from vgbench_gen.text.render import fill_word

_CAMERA = re.compile(r"fx = (\d+), fy = (\d+), cx = (\d+)(?:,| and) cy = (\d+)")
_MATRIX = re.compile(r"\[\[[^\]]*\],\s*\[[^\]]*\],\s*\[[^\]]*\]\]")
_SHIFT = re.compile(r"t = \[([^\]]*)\]")
_SIGNED_LIST = re.compile(SIGNED_LIST)
_SIGNED = re.compile(rf"([0-9.]+) ([a-z]+) ({SIGN_WORDS})")
_NEGATIVE = frozenset(
    (*((unit, word) for unit in ("m", "px") for word in ("left", "up")), ("m", "back"))
    + tuple(("degrees", word) for word in ("left", "down", "counterclockwise"))
)
_POINT = re.compile(r"\((\d+), (\d+)\)")


@dataclass(frozen=True, slots=True, eq=False)
class VisibleQuestion:
    """A question as a reader with eyes has it. Never add what the text and the images do not show."""

    task: str
    """The name of the task, which the wording gives away, as it does `form` and `ask`."""
    form: str
    ask: str
    """The sub-kind of the task."""
    question: str
    context: str
    options: tuple[str, ...]
    """The printed options; ("Yes", "No") for judgments and none for open-ended questions."""
    images: tuple[Image, ...]
    """The images in the order shown."""
    marks: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    """Pixel or rectangle of each mark that has a name and is drawn on an image."""


class Unread(ValueError):
    """The text does not hold the numbers a solver needs in any known wording."""


def read_cameras(text: str) -> list[FloatArray]:
    """Every printed camera as K (3, 3), integer pixels, in order of mention; twice where a second one is the same.

    Raises:
        Unread: there is none.
    """
    printed = [tuple(map(float, numbers)) for numbers in _CAMERA.findall(text)]
    if not printed:
        raise Unread("no camera")
    if re.search(rf": {fill_word('second_camera.same')}[.;]", text):
        printed *= 2
    return [np.array([[fx, 0, cx], [0, fy, cy], [0, 0, 1]]) for fx, fy, cx, cy in printed]


def read_matrices(text: str) -> list[FloatArray]:
    """Every printed 3x3 matrix, in order."""
    return [parse_numbers(found).reshape(3, 3) for found in _MATRIX.findall(text)]


def read_motions(text: str) -> list[FloatArray]:
    """Every printed motion as [R|t] (3, 4), t in meters, from matrices or words; R is brought back onto the rotations.

    Raises:
        Unread: there are not as many R as t, or a motion in words without six numbers.
    """
    turns, shifts = read_matrices(text), [parse_numbers(found) for found in _SHIFT.findall(text)]
    if len(turns) != len(shifts) or any(t.shape != (3,) for t in shifts):
        raise Unread(f"{len(turns)} rotations and {len(shifts)} translations")
    found = []
    for R, t in zip(turns, shifts, strict=True):
        found.append(np.concatenate([find_nearest_rotation(R), t[:, None]], axis=1))
    for numbers in _read_signed(text, ("m", "degrees"), 6):
        centre_m, R = numbers[:3], join_turns(numbers[3:].tolist()).T
        found.append(np.concatenate([R, -(R @ centre_m)[:, None]], axis=1))
    return found


def read_corner_moves(text: str) -> list[FloatArray]:
    """Moves (4, 2) of the corners of an image by every homography that is told in words, pixels, in the order of
    `geometry.homography.image_corners`.

    Raises:
        Unread: one has not eight numbers.
    """
    return [numbers.reshape(4, 2) for numbers in _read_signed(text, ("px",), 8)]


def _read_signed(text: str, units: tuple[str, ...], count: int) -> list[FloatArray]:
    """The numbers (count,) of every list of signed numbers that begins in one of the units."""
    lists = [_SIGNED.findall(said) for said in _SIGNED_LIST.findall(text)]
    lists = [parts for parts in lists if parts[0][1] in units]
    if any(len(parts) != count for parts in lists):
        raise Unread(f"lists of {[len(parts) for parts in lists]} signed numbers; expected {count}")
    return [
        np.array([-float(x) if (unit, sign) in _NEGATIVE else float(x) for x, unit, sign in parts]) for parts in lists
    ]


def read_point(text: str) -> FloatArray:
    """The first pixel "(u, v)" of a text, (2,).

    Raises:
        Unread: there is none.
    """
    found = _POINT.search(text)
    if found is None:
        raise Unread("no pixel")
    return np.array([float(x) for x in found.groups()])


def read_number(option: str) -> int:
    """The n of an option such as "image n".

    Raises:
        Unread: it holds no single number.
    """
    numbers = parse_numbers(option)
    if numbers.size != 1:
        raise Unread(f"option {option!r}")
    return int(numbers[0])


def list_candidate_images(seen: VisibleQuestion) -> list[Image]:
    """The image that each option names, in the order of the options.

    Raises:
        Unread: an option names no image that is shown.
    """
    places = [read_number(option) - 1 for option in seen.options]
    if not all(0 < place < len(seen.images) for place in places):
        raise Unread(f"options {seen.options} of {len(seen.images)} images")
    return [seen.images[place] for place in places]


def list_marks(seen: VisibleQuestion) -> list[FloatArray]:
    """The pixel or rectangle of the mark that each option names; of a judgment, the claimed one and then the other.

    Raises:
        Unread: an option, or the claim, names no mark that is drawn.
    """
    listed = {name: np.array(place, dtype=np.float64) for name, place in seen.marks.items()}
    if seen.form == "judgment":
        claimed = re.findall(compile_mark_names(), seen.question)
        if len(claimed) != 1 or claimed[0] not in listed or len(listed) != 2:
            raise Unread(f"claim about {claimed} of {sorted(listed)}")
        return [listed[claimed[0]], *(place for name, place in listed.items() if name != claimed[0])]
    if not set(seen.options) <= set(listed):
        raise Unread(f"options {seen.options} of {sorted(listed)}")
    return [listed[name] for name in seen.options]
