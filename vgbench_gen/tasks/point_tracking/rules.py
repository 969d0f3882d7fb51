"""What can be known of marked points without understanding the images, and a solver that does look.

Rules must guess (`docs/validity.md#best-rule`), and sets of options are chosen such that no cue tells the right
place (`docs/validity.md#balanced-selection`). The solver goes by matches around the query: local transfer, epipolar
line, and the look of the candidate patches.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from vgbench_gen.core.types import Candidate, Fact, FloatArray
from vgbench_gen.store.drawing import StrokeSizes
from vgbench_gen.tasks.point_tracking.evidence import ImagesEvidence, PlaceEvidence
from vgbench_gen.tasks.solving import Image, ImageRule, Solver, Unread, VisibleQuestion
from vgbench_gen.tasks.solving.seen import list_marks, read_point
from vgbench_gen.tasks.solving.transfer import correlate_patches, score_places


def _measure_from_query(seen: VisibleQuestion) -> FloatArray:
    distance: FloatArray = np.linalg.norm(np.array(list_marks(seen)) - read_point(seen.question), axis=1)
    return distance


def _score_near(seen: VisibleQuestion) -> FloatArray:
    return -_measure_from_query(seen)


def _score_central(seen: VisibleQuestion) -> FloatArray:
    middle = (np.array(seen.images[-1].size) - 1) / 2
    distance: FloatArray = np.linalg.norm(np.array(list_marks(seen)) - middle, axis=1)
    return -distance


def _score_similar_patch(seen: VisibleQuestion) -> FloatArray:
    """Correlation of the surroundings as they are, neither turned nor scaled."""
    first, second, query = *seen.images, read_point(seen.question)
    unmoved = np.eye(2, 3)
    unit_px = max(*first.size, *second.size) / 640
    return np.array([correlate_patches(first, second, query, mark, unmoved, unit_px) for mark in list_marks(seen)])


def _score_similar_colour(seen: VisibleQuestion) -> FloatArray:
    """Least difference in the mean colour inside the marker."""
    first, second = seen.images
    wanted = _read_inside_marker(first, read_point(seen.question))
    return -np.array([np.linalg.norm(_read_inside_marker(second, mark) - wanted) for mark in list_marks(seen)])


def _read_inside_marker(image: Image, uv: FloatArray) -> FloatArray:
    radius = int(StrokeSizes.of(*image.size).open_centre / np.sqrt(2))
    u, v = (int(x) for x in uv)
    patch = image.color[max(v - radius, 0) : v + radius + 1, max(u - radius, 0) : u + radius + 1]
    if patch.size == 0:
        raise Unread(f"pixel ({u}, {v}) of an image of {image.size}")
    return np.asarray(patch.reshape(-1, 3).mean(axis=0), dtype=np.float64)


RULES = (
    ImageRule("nearest to the pixel", _score_near),
    ImageRule("nearest the centre", _score_central),
    ImageRule("most similar patch", _score_similar_patch),
    ImageRule("most similar colour", _score_similar_colour),
)


def score_by_transfer(seen: VisibleQuestion) -> FloatArray:
    """Score per marked point, higher for the more plausible; of a judgment, of the claimed point and of the other.

    Raises:
        Unread: the text does not hold the query and the marked points.
    """
    if len(seen.images) != 2:
        raise Unread(f"{len(seen.images)} images")
    return score_places(seen.images[0], seen.images[1], read_point(seen.question), list_marks(seen))


SOLVERS = (Solver("epipolar line, local transfer, patch", score_by_transfer, 85.0),)


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
    """(n, 9) what the rules choose by: nearness to the query's pixel and to the middle, likeness in all parts of a look
    and in color as a whole. All are larger where a rule would rather choose the place."""
    query = np.array(fact.truth_candidate.show["query"], dtype=np.float64)
    place = _list_places(options)
    looks = np.array([PlaceEvidence.of(option).look for option in options])
    far = [np.linalg.norm(place - about, axis=1) for about in (query, (_read_size(fact) - 1) / 2)]
    return -np.column_stack([*far, looks, np.hypot(looks[:, 0], looks[:, 1])])


def _read_size(fact: Fact) -> FloatArray:
    camera = fact.cameras[fact.frame_ids[1]]
    return np.array([camera["width"], camera["height"]], dtype=np.float64)


def _list_places(options: Sequence[Candidate]) -> FloatArray:
    return np.stack([option.value for option in options])
