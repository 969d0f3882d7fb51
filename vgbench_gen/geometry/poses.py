"""Rigid transforms: checking what comes from disk, composing, inverting, angles. Conventions: package docstring."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from scipy.spatial.transform import Rotation

from vgbench_gen.core.errors import GeometryError, PoseError
from vgbench_gen.core.types import FloatArray

MAX_DEVIATION = 5e-3
DETERMINANT_RANGE = (0.95, 1.05)
LAST_ROW_TOLERANCE = 1e-3
MAX_TRANSLATION_M = 1e4
_EXPECTED = "a finite rigid 4x4 transform"


def measure_orthonormality_deviation(R: npt.ArrayLike) -> FloatArray:
    """Largest entry of |R^T R - I| for R (..., 3, 3); shape (...). 0 for a rotation or reflection."""
    R_ = np.asarray(R, dtype=np.float64)
    deviation: FloatArray = np.abs(np.swapaxes(R_, -1, -2) @ R_ - np.eye(3)).max(axis=(-2, -1))
    return deviation


def find_nearest_rotation(R: npt.ArrayLike) -> FloatArray:
    """The proper rotation closest to R (..., 3, 3) in the Frobenius norm, by singular values."""
    U, _, Vt = np.linalg.svd(np.asarray(R, dtype=np.float64))
    nearest: FloatArray = U @ Vt
    mirrored = np.linalg.det(nearest) < 0
    if mirrored.any():
        nearest = (U * np.where(mirrored[..., None], [1.0, 1.0, -1.0], 1.0)[..., None, :]) @ Vt
    return nearest


def check_pose(matrix: npt.ArrayLike, where: object) -> tuple[FloatArray, float]:
    """Check that a pose from a file is rigid, and make it exactly so.

    Rules (`docs/formats.md#checks-on-every-scene`): all finite; last row (0, 0, 0, 1) within 1e-3; max |R^T R - I|
    < 5e-3; 0.95 < det R < 1.05. Beyond them, no coordinate may exceed 10 km (`docs/validity.md#plausible-values`). What
    passes gets its rotation re-orthonormalised, its last row set.

    Args:
        matrix: (4, 4), any transform between metric frames.
        where: file and record, for the message.

    Returns:
        The repaired (4, 4) float64 pose and max |R^T R - I| as it was before the repair.

    Raises:
        PoseError: a rule is broken; says which and by how much.
    """
    try:
        pose = np.array(matrix, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise PoseError(where, "something that is not a matrix of numbers", _EXPECTED) from error
    if pose.shape != (4, 4):
        raise PoseError(where, f"an array of shape {pose.shape}", _EXPECTED)
    finite = np.isfinite(pose)
    if not finite.all():
        if np.isneginf(pose).all():
            raise PoseError(where, "a pose of -inf only (lost tracking)", _EXPECTED)
        raise PoseError(where, f"{int((~finite).sum())} of 16 numbers not finite", _EXPECTED)
    if np.abs(pose[3] - (0.0, 0.0, 0.0, 1.0)).max() > LAST_ROW_TOLERANCE:
        row = ", ".join(f"{value:g}" for value in pose[3])
        raise PoseError(where, f"last row ({row})", "last row (0, 0, 0, 1) within 0.001")
    with np.errstate(over="ignore", invalid="ignore"):
        deviation = float(measure_orthonormality_deviation(pose[:3, :3]))
        determinant = float(np.linalg.det(pose[:3, :3]))
    if not deviation < MAX_DEVIATION:
        raise PoseError(where, f"max |R^T R - I| = {deviation:.3g}", f"less than {MAX_DEVIATION:g}")
    low, high = DETERMINANT_RANGE
    if not low < determinant < high:
        raise PoseError(where, f"det R = {determinant:.3f}", f"between {low:g} and {high:g}")
    if np.abs(pose[:3, 3]).max() > MAX_TRANSLATION_M:
        found = f"a translation of {np.abs(pose[:3, 3]).max():.3g} m"
        raise PoseError(where, found, f"at most {MAX_TRANSLATION_M:g} m")
    pose[:3, :3] = find_nearest_rotation(pose[:3, :3])
    pose[3] = (0.0, 0.0, 0.0, 1.0)
    return pose, deviation


def make_pose(R: npt.ArrayLike, t: npt.ArrayLike) -> FloatArray:
    """(..., 4, 4) from rotation R (..., 3, 3) and translation t (..., 3), meters; leading axes broadcast."""
    R_, t_ = np.asarray(R, dtype=np.float64), np.asarray(t, dtype=np.float64)
    lead = np.broadcast_shapes(R_.shape[:-2], t_.shape[:-1])
    pose = np.zeros((*lead, 4, 4))
    pose[..., :3, :3], pose[..., :3, 3], pose[..., 3, 3] = R_, t_, 1.0
    return pose


def invert(pose: FloatArray) -> FloatArray:
    """`src_from_dst` of a rigid `dst_from_src` (..., 4, 4)."""
    R_inverse = np.swapaxes(pose[..., :3, :3], -1, -2)
    return make_pose(R_inverse, -(R_inverse @ pose[..., :3, 3:])[..., 0])


def relative_pose(world_from_src: FloatArray, world_from_dst: FloatArray) -> FloatArray:
    """`dst_from_src` (..., 4, 4) of two poses in one world: X_dst = R X_src + t."""
    relative: FloatArray = invert(world_from_dst) @ world_from_src
    return relative


def transform(dst_from_src: FloatArray, points: npt.ArrayLike) -> FloatArray:
    """Points (..., N, 3) of frame src in frame dst; `dst_from_src` is (4, 4) or (..., 4, 4)."""
    points_ = np.asarray(points, dtype=np.float64)
    R, t = dst_from_src[..., :3, :3], dst_from_src[..., :3, 3]
    # As columns: what comes next reads one coordinate of all points at a time.
    columns: FloatArray = R @ np.swapaxes(points_, -1, -2)
    columns += t[..., :, None]
    return np.swapaxes(columns, -1, -2)


def rotation_angle_deg(R: npt.ArrayLike) -> FloatArray:
    """Angle of rotation of R (..., 3, 3), degrees in [0, 180]; exact near 0 as well as near 180."""
    R_ = np.asarray(R, dtype=np.float64)
    axis = np.stack(
        [R_[..., 2, 1] - R_[..., 1, 2], R_[..., 0, 2] - R_[..., 2, 0], R_[..., 1, 0] - R_[..., 0, 1]], axis=-1
    )
    trace = np.trace(R_, axis1=-2, axis2=-1)
    angle: FloatArray = np.degrees(np.arctan2(np.linalg.norm(axis, axis=-1), trace - 1.0))
    return angle


def split_turns_deg(R: npt.ArrayLike) -> FloatArray:
    """(3,) a rotation (3, 3) from the second to the first camera as three turns, one after the other: right about the
    vertical axis (y), up about the horizontal axis as turned (x), clockwise about the viewing axis as turned (z)."""
    return np.asarray(Rotation.from_matrix(find_nearest_rotation(R)).as_euler("YXZ", degrees=True))


def measure_motion(second_from_first: FloatArray) -> FloatArray:
    """(..., 5) how the second camera stands in the frame of the first, by the motion (..., 3 or 4, 4) between them:
    turned right and tilted up, degrees, by its optical axis; moved right, up and forward, meters, by its centre."""
    R, t = second_from_first[..., :3, :3], second_from_first[..., :3, 3:]
    x, y, z = np.moveaxis(R[..., 2, :], -1, 0)
    turns_deg = np.degrees([np.arctan2(x, z), np.arctan2(-y, np.hypot(x, z))])
    right, down, forward = np.moveaxis(-(np.swapaxes(R, -1, -2) @ t)[..., 0], -1, 0)
    return np.stack([*turns_deg, right, -down, forward], axis=-1)


def join_turns(turns_deg: Sequence[float]) -> FloatArray:
    """The rotation (3, 3) that `split_turns_deg` splits into these turns (3,)."""
    return np.asarray(Rotation.from_euler("YXZ", turns_deg, degrees=True).as_matrix())


def angle_between_deg(a: npt.ArrayLike, b: npt.ArrayLike) -> FloatArray:
    """Angle between vectors (..., 3), degrees in [0, 180]; `nan` where one of them has no length."""
    a_, b_ = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    angle = np.degrees(np.arctan2(np.linalg.norm(np.cross(a_, b_), axis=-1), (a_ * b_).sum(axis=-1)))
    directed = (np.linalg.norm(a_, axis=-1) > 0) & (np.linalg.norm(b_, axis=-1) > 0)
    return np.where(directed, angle, np.nan)


def quaternion_to_matrix(q_wxyz: npt.ArrayLike) -> FloatArray:
    """Rotation (..., 3, 3) of Hamilton quaternions (w, x, y, z) (..., 4) of any length but 0.

    Raises:
        GeometryError: a quaternion is not finite or has no length.
    """
    q = np.asarray(q_wxyz, dtype=np.float64)
    norm = np.linalg.norm(q, axis=-1)
    if not (np.isfinite(norm) & (norm > 1e-12)).all():
        raise GeometryError("a quaternion is not finite or has length 0, so it is no rotation")
    matrices: FloatArray = Rotation.from_quat(q.reshape(-1, 4), scalar_first=True).as_matrix()
    return matrices.reshape(*q.shape[:-1], 3, 3)
