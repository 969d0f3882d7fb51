"""Visibility of many points in one frame, and overlap of all pairs of a long scene."""

from __future__ import annotations

import numpy as np

from bench.session import Session
from bench.table import Row, paired, seconds
from vgbench_gen.geometry.overlap import compute_pairwise_overlap, compute_pairwise_states
from vgbench_gen.geometry.poses import make_pose, transform
from vgbench_gen.scenes.base import loaders
from vgbench_gen.scenes.view import SceneView

POINTS = 190_000
FRAMES, FROM = 1_000, 60  # the table of a 1,000-frame scene; as many of its rows as take seconds
TABLE_WIDTH = 256  # of the depth that a scene's table is made from (`scenes.view`)


def rows(session: Session) -> list[Row]:
    """Two rows, on the scene with the most frames."""
    ref = max(session.refs, key=lambda ref: (ref.dataset == "scannet", ref.size_bytes))
    with loaders[ref.dataset].open(ref) as scene:
        view = SceneView(scene, session.recipe.gates)
        found = [_visibility(view), _overlap(view)]
        view.close()
    return found


def _visibility(view: SceneView) -> Row:
    """All points of the scene that the samples of its frames give, repeated with noise up to `POINTS`."""
    rng = np.random.default_rng(0)
    base = np.concatenate([frame.samples[1] for frame in view.frames])
    points = base[rng.integers(len(base), size=POINTS)] + rng.normal(0, 0.01, (POINTS, 3))
    frame = view.frames[len(view.frames) // 2]

    K, depth_m, pose = frame.depth_camera.K[None], frame.depth_m[None], frame.world_from_camera[None]

    def ours() -> None:
        compute_pairwise_states(points, K, depth_m, pose, view.tolerance)

    ratio, ours_s, moved_s = paired(ours, lambda: transform(frame.camera_from_world, points), rounds=15)
    height, width = frame.depth_m.shape
    beside = f"{ratio:.1f}x moving the points alone ({1e3 * moved_s:.1f} ms); depth of {width}x{height}"
    return Row(f"visibility of {POINTS:,} points", 1e3 * ours_s, "ms", beside, at_most=8)


def _overlap(view: SceneView) -> Row:
    """Frames of the scene in turn, each time a little off, up to `FRAMES`; every row is against all of them."""
    rng = np.random.default_rng(0)
    shape = view.frames[0].depth_m.shape
    frames = [frame for frame in view.frames if frame.depth_m.shape == shape]
    step = max(1, round(shape[1] / TABLE_WIDTH))
    used = [frames[k % len(frames)] for k in range(FRAMES)]
    depths_m = np.stack([frame.depth_m[::step, ::step] for frame in used])
    Ks = np.stack([frame.depth_camera.K for frame in used])
    Ks[:, :2] /= step
    jitters = [make_pose(np.eye(3), shift) for shift in rng.normal(0, 0.02, (FRAMES, 3))]
    poses = np.stack([frame.world_from_camera @ jitter for frame, jitter in zip(used, jitters, strict=True)])
    samples = [frame.samples[1] for frame in used[:FROM]]

    def ours() -> None:
        for points in samples:
            compute_pairwise_overlap(points, Ks, depths_m, poses, view.tolerance, min_decided=30)

    ours()
    spent = min(seconds(ours) for _ in range(3))
    pairs = FROM * FRAMES
    beside = f"{pairs:,} of {FRAMES * FRAMES:,} ordered pairs in {spent:.2f} s, {len(samples[0])} points each"
    return Row(f"overlap of a pair of {FRAMES:,} frames", 1e3 * spent / pairs, "ms", beside, at_most=0.05)
