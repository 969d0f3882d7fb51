"""What a task adds to the noise test (`docs/validity.md#noise-test`): answers when what they were measured from is off.

All draws of a test are made at once. Pictures, drawn places and printed numbers stay as they are: the question is
whether a reader of a world that is slightly other than the files say would still choose the same option.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.spatial.transform import Rotation

from vgbench_gen.core.noise import SensorNoise
from vgbench_gen.core.types import Candidate, Fact, FloatArray


class NoiseTest:
    """The part of a `Task` that the noise test asks. n: draws, m: options.

    A task gives `noisy_values` and `gaps`, or `noisy_gaps` alone.
    """

    def noisy_values(
        self, fact: Fact, about: Candidate, noise: SensorNoise, rng: np.random.Generator, n: int
    ) -> FloatArray:
        """(n, ...) what the value of `about` may really be, each under errors of its own.

        From its evidence; a computed option has none, and its printed value stands for the exact one. `nan` in a draw
        where it has no value.
        """
        raise TypeError(f"{type(self).__name__} has no noisy values; its `noisy_gaps` says all")

    def gaps(self, values: FloatArray, options: Sequence[Candidate], about: Candidate, fact: Fact) -> FloatArray:
        """(m, n) how far each option, as printed, is from each of `noisy_values(about)`, in the task's own measure."""
        raise TypeError(f"{type(self).__name__} has no gaps; its `noisy_gaps` says all")

    def claim_errors(self, values: FloatArray, claimed: FloatArray, fact: Fact) -> FloatArray | None:
        """(n,) error of a claim over the tolerance its text states, were each of `values` (n, ...) the truth; <= 1
        makes it true. None where claims state no number: the nearer claim is the true one."""
        return None

    def could_be_true(self, fact: Fact, options: Sequence[Candidate], truth: int) -> list[int]:
        """Places of the options that might have been asked about instead of the truth, the truth among them."""
        return list(range(len(options)))

    def noisy_gaps(
        self,
        fact: Fact,
        options: Sequence[Candidate],
        truth: int,
        noise: SensorNoise,
        rng: np.random.Generator,
        count: int,
    ) -> FloatArray:
        """(m, count) how far each option is from what would be right, were the option at `truth` the true one; smaller
        is better."""
        about = options[truth]
        return self.gaps(self.noisy_values(fact, about, noise, rng, count), options, about, fact)


def perturb_motions(motion: FloatArray, noise: SensorNoise, rng: np.random.Generator, n: int) -> FloatArray:
    """(n, 3, 4) a motion [R|t] with errors of its second camera's pose, which turn and shift that camera's frame."""
    turns, shifts = draw_pose_errors(noise, rng, n)
    R, t = motion[:3, :3], motion[:3, 3]
    return np.concatenate([turns @ R, (turns @ t + shifts)[..., None]], axis=2)


def draw_pose_errors(noise: SensorNoise, rng: np.random.Generator, n: int) -> tuple[FloatArray, FloatArray]:
    """Rotations (n, 3, 3) and translations (n, 3) in meters; see `SensorNoise`."""
    turns = Rotation.from_rotvec(rng.normal(0.0, np.radians(noise.turn_deg) / np.sqrt(3), (n, 3))).as_matrix()
    return turns, rng.normal(0.0, noise.shift_m / np.sqrt(3), (n, 3))


def measure_mean_gaps_m(values: FloatArray, told: FloatArray, points: FloatArray) -> FloatArray:
    """(m, n) mean distance, meters, between where motions told (m, 3, 4) and values (n, 3, 4) put points (p, 3)."""
    homogeneous = np.concatenate([points, np.ones((len(points), 1))], axis=1)
    # One product for all motions, coordinate by coordinate: NumPy is slow along a last axis of three.
    a, b = (homogeneous @ np.swapaxes(motions, 0, 1).reshape(-1, 4).T for motions in (told, values))
    a, b = a.reshape(len(points), 3, len(told)), b.reshape(len(points), 3, len(values))
    means = np.empty((len(told), len(values)))
    for k in range(len(told)):
        square = b - a[:, :, k : k + 1]
        square *= square
        means[k] = np.sqrt(square[:, 0] + square[:, 1] + square[:, 2]).mean(axis=0)
    return means
