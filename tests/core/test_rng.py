from __future__ import annotations

import hashlib
import math

import pytest

from vgbench_gen.core.rng import digest_bytes, format_canonical_json, hash_stably, rng_for


def test_fixed_values_never_change() -> None:
    # A changed value here means that every dataset built before comes out different.
    assert rng_for(7, "depth", "scene0000_00").integers(0, 2**32, 3).tolist() == [2589641538, 3344313392, 1682834666]
    assert rng_for(7).integers(0, 2**32) == 3766068178
    assert hash_stably("depth", "scene0000_00") == hashlib.blake2b(b"depth\x1fscene0000_00", digest_size=8).hexdigest()
    assert hash_stably("depth", "scene0000_00") == "19e426d591fd56f1"
    assert digest_bytes(b"abc", size=4) == hashlib.blake2b(b"abc", digest_size=4).hexdigest()


def test_a_generator_depends_on_its_key_alone() -> None:
    first = rng_for(7, "a", "b")
    first.random(1000)
    rng_for(7, "c").random(10)
    assert rng_for(7, "a", "b").random() == rng_for(7, "a", "b").random()


@pytest.mark.parametrize("other", [(8, "a", "b"), (7, "b", "a"), (7, "ab"), (7, "a", "b", ""), (7, "a")])
def test_every_part_of_the_key_counts(other: tuple[int, *tuple[str, ...]]) -> None:
    assert rng_for(*other).random() != rng_for(7, "a", "b").random()
    assert other[0] != 7 or hash_stably(*other[1:]) != hash_stably("a", "b")


def test_digest_sizes_and_buffers() -> None:
    assert len(hash_stably("a", size=16)) == 32
    assert digest_bytes(memoryview(b"abc")) == digest_bytes(b"abc")


def test_canonical_json_has_one_text_per_content() -> None:
    assert (
        format_canonical_json({"b": [1, 2.5], "a": "é"})
        == '{"a":"é","b":[1,2.5]}'
        == format_canonical_json({"a": "é", "b": [1, 2.5]})
    )
    for bad in (math.nan, math.inf):
        with pytest.raises(ValueError, match="not JSON compliant"):
            format_canonical_json({"a": bad})
