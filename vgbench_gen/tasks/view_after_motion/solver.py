"""View after motion by matches under the epipolar geometry of the stated motion."""

from __future__ import annotations

import numpy as np

from vgbench_gen.core.types import FloatArray
from vgbench_gen.tasks.solving import Image, Solver, Unread, VisibleQuestion
from vgbench_gen.tasks.solving.epipolar import match_rays, measure_support
from vgbench_gen.tasks.solving.seen import list_candidate_images, read_cameras, read_motions

_SIDE = 300  # tells five images apart as often as 400 does (99 of 100), in half the time
_ADDED_MATCHES = 10  # unexplained ones, so that two lucky matches are no proof


def score_by_matches(seen: VisibleQuestion) -> FloatArray:
    """Score per candidate image: the share of its matches with image 1 that the printed motion explains.

    The share, since an image that looks like image 1 has many matches and so many that fit by accident. Only camera 1
    is printed; the candidates are taken to come from the same camera.

    Raises:
        Unread: the text does not hold one camera and one motion.
    """
    K, motion = read_cameras(seen.context), read_motions(seen.question)
    if len(K) != 1 or len(motion) != 1:
        raise Unread(f"{len(K)} cameras, {len(motion)} motions")
    source = seen.images[0]
    scores = []
    for image in list_candidate_images(seen):
        x_1, x_2, tolerance = match_rays(source, image, K[0], _get_camera(K[0], source, image), _SIDE)
        scores.append(measure_support(motion[0], x_1, x_2, tolerance) / (len(x_1) + _ADDED_MATCHES))
    return np.array(scores)


def _get_camera(K: FloatArray, source: Image, image: Image) -> FloatArray:
    """K of another image of the same camera: as it is for the same size, else focal length by the long side."""
    if image.size == source.size:
        return K
    f = np.sqrt(K[0, 0] * K[1, 1]) * max(image.size) / max(source.size)
    width, height = image.size
    return np.array([[f, 0, (width - 1) / 2], [0, f, (height - 1) / 2], [0, 0, 1]])


SOLVERS = (Solver("matches under the stated motion", score_by_matches, 75.0),)
