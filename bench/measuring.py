"""What measuring does once per frame, against what cannot be saved: decoding the frame, and sums of its depth."""

from __future__ import annotations

import numpy as np

from bench.session import Session
from bench.table import Row, paired
from vgbench_gen.core.rng import rng_for
from vgbench_gen.scenes.base import loaders
from vgbench_gen.scenes.view import SceneView, ViewFrame
from vgbench_gen.store.pictures import decode
from vgbench_gen.tasks import _regions
from vgbench_gen.tasks._summed_depth import SummedDepth
from vgbench_gen.tasks.point_tracking import track_looks


def rows(session: Session) -> list[Row]:
    """Three rows, on the middle frame of the scene with the most frames."""
    ref = max(session.refs, key=lambda ref: (ref.dataset == "scannet", ref.size_bytes))
    with loaders[ref.dataset].open(ref) as scene:
        view = SceneView(scene, session.recipe.gates)
        frame = view.frames[len(view.frames) // 2]
        found = [_features(frame), _ground(frame, view), _regions_of(frame, view)]
        view.close()
    return found


def _decode(frame: ViewFrame) -> None:
    decode(frame.base_image()[0])


def _features(frame: ViewFrame) -> Row:
    def ours() -> None:
        frame.__dict__.pop("features", None)  # a cached property
        frame.features  # noqa: B018

    ratio, ours_s, other_s = paired(ours, lambda: _decode(frame))
    beside = f"{1e3 * ours_s:.1f} ms and {1e3 * other_s:.1f} ms, {len(frame.features[0])} features"
    return Row("features of a frame / decoding it", ratio, "x", beside, at_most=13)


def _ground(frame: ViewFrame, view: SceneView) -> Row:
    """Gates and looks of every place of a frame that could be an option of point tracking."""
    track_looks.get_ground(frame, view)  # masks of edges and texture are kept for all tasks

    def ours() -> None:
        track_looks._make_ground(frame, view)

    ratio, ours_s, other_s = paired(ours, lambda: _decode(frame))
    places = len(track_looks.get_ground(frame, view).uv_px)
    beside = f"{1e3 * ours_s:.1f} ms and {1e3 * other_s:.1f} ms, {places:,} places"
    return Row("places for tracking options of a frame / decoding it", ratio, "x", beside, at_most=8)


def _regions_of(frame: ViewFrame, view: SceneView) -> Row:
    """Depth and planes of the rectangles that are proposed in a frame."""
    rects = _regions.propose_rects(frame, view, rng_for(0, "bench", frame.id))
    cells = _regions._find_depth_rects(frame, rects)

    def ours() -> None:
        sums = SummedDepth(frame.depth_camera, frame.depth_m)
        sums.measure_means(cells), sums.fit_planes(cells)

    def sum_once() -> None:
        np.cumsum(np.cumsum(frame.depth_m, axis=0, dtype=np.float64), axis=1)

    ratio, ours_s, other_s = paired(ours, sum_once)
    beside = f"{1e3 * ours_s:.1f} ms and {1e3 * other_s:.1f} ms, {len(rects):,} rectangles"
    return Row("means and planes of proposed regions / NumPy's sums of one depth image", ratio, "x", beside, at_most=14)
