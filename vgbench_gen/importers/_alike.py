"""Questions that are asked twice, and images that come from one photo, within a set made of many sources."""

from __future__ import annotations

import io
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import product

import numpy as np
import numpy.typing as npt

from vgbench_gen.core.types import Item
from vgbench_gen.store.media import MediaStore

NEAR_BITS = 6  # of 64; copies of a photo in another size or quality mostly differ in 0 to 4
_BANDS = 8  # bytes of a hash: two that differ in fewer than 8 bits agree in at least one
_DRAFT_PX = 128

Groups = list[tuple[str, ...]]


def find_repeats(items: Iterable[Item]) -> tuple[Groups, Groups]:
    """(ids that ask the same about the same images with the same answer, ids that do with different answers)."""
    asked: dict[tuple[object, ...], dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for item in items:
        asked[(*_normalize_words(item), item.images)][_answer(item)].append(item.id)
    same = [tuple(ids) for answers in asked.values() for ids in answers.values() if len(ids) > 1]
    other = [tuple(name for ids in answers.values() for name in ids) for answers in asked.values() if len(answers) > 1]
    return same, other


def find_near_repeats(items: Iterable[Item], hashes: Mapping[str, int]) -> tuple[Groups, Groups]:
    """(pairs that ask the same about images that look alike with the same answer, pairs that do with other answers).

    The images are not all the same files. Marks drawn into one photo hardly change its hash, so a pair with another
    answer may be right.
    """
    asked: dict[tuple[object, ...], list[Item]] = defaultdict(list)
    for item in items:
        asked[(*_normalize_words(item), len(item.images))].append(item)
    same: Groups = []
    other: Groups = []
    for members in asked.values():
        known = [item for item in members if item.images and all(name in hashes for name in item.images)]
        looks = np.array([[hashes[name] for name in item.images] for item in known], dtype=np.uint64)
        for k, item in enumerate(known[:-1]):
            apart = np.bitwise_count(looks[k + 1 :] ^ looks[k]).max(axis=1)
            for place in np.flatnonzero(apart <= NEAR_BITS):
                twin = known[k + 1 + int(place)]
                if twin.images != item.images:
                    (same if _answer(twin) == _answer(item) else other).append((item.id, twin.id))
    return same, other


def find_shared_images(items: Iterable[Item], hashes: Mapping[str, int]) -> dict[str, int]:
    """ "SOURCE and SOURCE" -> images of the first that look like one of the second, for benchmarks that share any."""
    names: dict[str, set[str]] = defaultdict(set)
    for item in items:
        for name in item.images:
            if name in hashes:
                names[item.benchmark.rpartition("/")[2]].add(name)
    # By hash rather than by image: hashes of plain images are equal by the hundred.
    holders: dict[int, dict[str, int]] = defaultdict(dict)
    for benchmark, shown in sorted(names.items()):
        for look, count in Counter(hashes[name] for name in shown).items():
            holders[look][benchmark] = count
    looks = sorted(holders)
    pairs = [(k, k) for k in range(len(looks))] + list(_find_near_pairs(np.array(looks, dtype=np.uint64)))
    found: dict[tuple[str, str], set[int]] = defaultdict(set)
    for i, j in pairs:
        for a, b in {*product(holders[looks[i]], holders[looks[j]])}:
            if a != b:
                found[(a, b) if a < b else (b, a)].add(looks[i] if a < b else looks[j])
    return {f"{a} and {b}": sum(holders[look][a] for look in shared) for (a, b), shared in sorted(found.items())}


def hash_images(
    names: Sequence[str], media: MediaStore, progress: Callable[[int], None] = lambda done: None
) -> dict[str, int]:
    """Name -> perceptual hash (`imagehash.phash`, 64 bits) of images in the store.

    JPEG files are decoded at a small size, which takes a fraction of the time.
    """
    import imagehash
    from PIL import Image

    found: dict[str, int] = {}
    for done, name in enumerate(names, start=1):
        with Image.open(io.BytesIO(media.get(name))) as picture:
            picture.draft("L", (_DRAFT_PX, _DRAFT_PX))
            found[name] = int(str(imagehash.phash(picture)), 16)
        progress(done)
    return found


def count_by_benchmark(items: Iterable[Item], groups: Groups) -> dict[str, int]:
    """Benchmark -> ids of groups that belong to it."""
    of = {item.id: item.benchmark.rpartition("/")[2] for item in items}
    return dict(sorted(Counter(of[name] for group in groups for name in group).items()))


def _normalize_words(item: Item) -> tuple[object, ...]:
    parts = (item.question, item.context, *item.options)
    return item.question_type, *(" ".join(part.split()).casefold() for part in parts)


def _answer(item: Item) -> str:
    return item.answer.strip().casefold()


def _find_near_pairs(looks: npt.NDArray[np.uint64]) -> Iterable[tuple[int, int]]:
    """Places of hashes that differ in at most `NEAR_BITS` bits, each pair once."""
    seen: set[tuple[int, int]] = set()
    for band in range(_BANDS):
        key = (looks >> np.uint64(8 * band)) & np.uint64(0xFF)
        for value in np.unique(key):
            members = np.flatnonzero(key == value)
            for k, place in enumerate(members[:-1]):
                rest = members[k + 1 :]
                apart = np.bitwise_count(looks[rest] ^ looks[place])
                seen.update((int(place), int(other)) for other in rest[apart <= NEAR_BITS])
    return sorted(seen)
