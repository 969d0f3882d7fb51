"""Randomness and digests that depend on what is made, never on when or by whom.

The only module besides tests that creates random generators.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

_SEPARATOR = b"\x1f"  # ASCII unit separator: no id or name contains it, so joined keys cannot collide


def rng_for(build_seed: int, *key: str) -> np.random.Generator:
    """Generator for one purpose, fixed by the build seed and a path of names such as (task, scene, frame)."""
    digest = hashlib.blake2b(_join_key(key), digest_size=16).digest()
    return np.random.default_rng([build_seed, *np.frombuffer(digest, "<u4").tolist()])


def hash_stably(*key: str, size: int = 8) -> str:
    """Hexadecimal BLAKE2 digest of a path of names; `size` bytes (two characters each)."""
    return hashlib.blake2b(_join_key(key), digest_size=size).hexdigest()


def digest_bytes(data: bytes | memoryview, size: int = 16) -> str:
    """Hexadecimal BLAKE2 digest of raw bytes; `size` bytes (two characters each)."""
    return hashlib.blake2b(data, digest_size=size).hexdigest()


def format_canonical_json(value: Mapping[str, Any] | Sequence[Any]) -> str:
    """JSON with sorted keys, no spaces and no NaN, so that equal content gives equal text.

    Raises:
        ValueError: a number is NaN or infinite.
    """
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False, ensure_ascii=False)


def _join_key(key: Sequence[str]) -> bytes:
    # Names of files and words of a command line may hold bytes that are no text.
    return _SEPARATOR.join(part.encode("utf-8", "surrogatepass") for part in key)
