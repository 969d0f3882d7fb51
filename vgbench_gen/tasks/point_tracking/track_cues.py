"""What can be known of a place that is an option without understanding the images.

Sets of options are chosen such that none of it tells the right place (`docs/validity.md#balanced-selection`).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from vgbench_gen.core.types import Candidate, Fact, FloatArray
from vgbench_gen.tasks.point_tracking.evidence import ImagesEvidence, PlaceEvidence

_FEWEST_D = 0.5  # per cent of the diagonal; nothing right is nearer, and a logarithm needs an end


def read_text_cues(fact: Fact, options: Sequence[Candidate]) -> FloatArray:
    """(n, 11) what the text tells of each place: how far from the query and in which direction, how far from the middle
    of the image, and where in it. Lengths over the diagonal of image 2."""
    diagonal_px, size = ImagesEvidence.of(fact).diagonal_px, _read_size(fact)
    query = np.array(fact.truth_candidate.show["query"], dtype=np.float64)
    place = _list_places(options)
    move, inward = (place - query) / diagonal_px, ((size - 1) / 2 - query) / diagonal_px
    far = np.linalg.norm(move, axis=1)
    x, y = (move / np.maximum(far, _FEWEST_D / 100)[:, None]).T
    across, down = (place / size - 0.5).T
    start = np.broadcast_to(query / size - 0.5, (len(place), 2))
    columns = (
        np.log(np.maximum(100 * far, _FEWEST_D)), np.abs(x), y, move[:, 0], move[:, 1],
        (move @ inward) / np.maximum(far, _FEWEST_D / 100), np.abs(across), down,
        np.linalg.norm(place - (size - 1) / 2, axis=1) / diagonal_px, np.abs(start[:, 0]), start[:, 1],
    )  # fmt: skip
    return np.stack(columns, axis=1)


def read_image_cues(fact: Fact, options: Sequence[Candidate]) -> FloatArray:
    """(n, 4) what the rules choose by: nearness to the query's pixel and to the middle, likeness in colour and of the
    surroundings. All are larger where a rule would rather choose the place."""
    query = np.array(fact.truth_candidate.show["query"], dtype=np.float64)
    place = _list_places(options)
    kept = [PlaceEvidence.of(option).look for option in options]
    looks = np.array([np.zeros(2) if look is None else look for look in kept])
    far = [np.linalg.norm(place - about, axis=1) for about in (query, (_read_size(fact) - 1) / 2)]
    return -np.column_stack([*far, looks])


def _read_size(fact: Fact) -> FloatArray:
    camera = fact.cameras[fact.frame_ids[1]]
    return np.array([camera["width"], camera["height"]], dtype=np.float64)


def _list_places(options: Sequence[Candidate]) -> FloatArray:
    return np.stack([option.value for option in options])
