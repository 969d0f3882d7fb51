"""Damage to bytes and to text: of what one character or one block of a file says."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Literal, TypeVar

import numpy as np

Rng = np.random.Generator
Damage = Callable[[bytes, Rng], bytes]
T = TypeVar("T")

NAMES = (
    "../../precious",
    "/etc/hostname",
    "a\0b",
    "..",
    "",
    "a\\b",
    "x" * 300,
    "\ud800",
    "=1+1",
    "\x1b[31mred",
    "a\nb",
)
NUMBERS = ("9" * 5000, "1e308", "-1e308", "NaN", "Infinity", "-Infinity", "1" + "0" * 400, "-1", "0", "1e-308",
           "99999999999999999999", "9223372036854775807", "0x10", "1_000", "1.#QNAN", "4294967295", "-0.0")  # fmt: skip
HEADS = (0, 1, 0x7FFFFFFF, 0xFFFFFFFF, 1 << 63, (1 << 64) - 1, 1 << 40, 1_000_000)
DEEP = 100_000


def choose(rng: Rng, options: Sequence[T]) -> T:
    """One of them. Works for what numpy would turn into an array."""
    return options[int(rng.integers(len(options)))]


def _span(data: bytes, rng: Rng) -> tuple[int, int]:
    """A block of the bytes, short ones as often as long ones."""
    begin = int(rng.integers(len(data) + 1))
    return begin, min(len(data), begin + int(2 ** rng.uniform(0, 13)))


def flip_bytes(data: bytes, rng: Rng) -> bytes:
    changed = bytearray(data or b"\0")
    for _ in range(int(choose(rng, (1, 1, 3, 20)))):
        changed[int(rng.integers(len(changed)))] ^= int(rng.integers(1, 256))
    return bytes(changed)


def flip_head_bits(data: bytes, rng: Rng) -> bytes:
    return flip_bytes(data[:200], rng) + data[200:]


def truncate(data: bytes, rng: Rng) -> bytes:
    return data[: int(rng.integers(len(data) + 1)) if rng.random() < 0.8 else int(rng.integers(20))]


def repeat_block(data: bytes, rng: Rng) -> bytes:
    begin, end = _span(data, rng)
    return data[:end] + data[begin:end] * int(choose(rng, (1, 2, 50))) + data[end:]


def blank_block(data: bytes, rng: Rng) -> bytes:
    begin, end = _span(data, rng)
    return data[:begin] + choose(rng, (b"\0", b"\xff", b" ")) * (end - begin) + data[end:]


def cut_block(data: bytes, rng: Rng) -> bytes:
    begin, end = _span(data, rng)
    return data[:begin] + data[end:]


def set_size(data: bytes, rng: Rng) -> bytes:
    """A whole number of four or eight bytes near the front becomes another, as where sizes and counts stand."""
    width = choose(rng, (4, 8))
    order: Literal["little", "big"] = "little" if rng.random() < 0.5 else "big"
    at = int(rng.integers(min(len(data), 400) + 1))
    value = choose(rng, HEADS) & ((1 << 8 * width) - 1)
    return data[:at] + value.to_bytes(width, order) + data[at + width :]


def append_garbage(data: bytes, rng: Rng) -> bytes:
    return data + rng.bytes(int(2 ** rng.uniform(0, 16)))


BYTES: tuple[Damage, ...] = (
    *(flip_bytes, flip_bytes, flip_head_bits, truncate, repeat_block, blank_block, cut_block, set_size, append_garbage),
)

_NUMBER = re.compile(rb"-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?")


def blow_number_up(data: bytes, rng: Rng) -> bytes:
    found = list(_NUMBER.finditer(data))
    if not found:
        return data + b" " + choose(rng, NUMBERS).encode()
    at = choose(rng, found)
    return data[: at.start()] + choose(rng, NUMBERS).encode() + data[at.end() :]


def insert_text(data: bytes, rng: Rng) -> bytes:
    at = int(rng.integers(len(data) + 1))
    what = choose(
        rng, (b"\xff\xfe", b"\0", b"\xef\xbb\xbf", b"\r", "\u2028".encode(), b"\xed\xa0\x80", b"[" * DEEP, b"," * 50)
    )
    return data[:at] + what + data[at:]


def mark_byte_order(data: bytes, rng: Rng) -> bytes:
    return choose(rng, (b"\xef\xbb\xbf" + data, data.decode("utf-8", "replace").encode("utf-16")))


def change_lines(data: bytes, rng: Rng) -> bytes:
    lines = data.splitlines(keepends=True) or [b""]
    at = int(rng.integers(len(lines)))
    what: list[bytes] = choose(rng, ([], [lines[at]] * 2, [lines[at].rstrip()[:10_000] * 1000], [b"\n"], lines[::-1]))
    return b"".join([*lines[:at], *what, *lines[at + 1 :]])


def change_word(data: bytes, rng: Rng) -> bytes:
    words = list(re.finditer(rb"[^\s,\[\]{}:\"=]+", data))
    if not words:
        return data
    at, name = choose(rng, words), choose(rng, NAMES)
    return data[: at.start()] + name.encode("utf-8", "surrogatepass") + data[at.end() :]


TEXT: tuple[Damage, ...] = (blow_number_up, blow_number_up, insert_text, mark_byte_order, change_lines, change_word)
