from __future__ import annotations

import gc
import weakref
from typing import Any

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from tests.tasks.two_view_scenes import room, room_view
from vgbench_gen.core.gates import Gates, PairGates
from vgbench_gen.core.rng import rng_for
from vgbench_gen.geometry.visibility import find_co_visible, overlap_fraction
from vgbench_gen.scenes.view import SceneView
from vgbench_gen.tasks import _pairs
from vgbench_gen.tasks._pairs import PairTable, get_pair_table, thin_rows

PAIR = (1, 3)


def test_measures_agree_with_separate_computations() -> None:
    view = room_view()
    a, b = view.frames[PAIR[0]], view.frames[PAIR[1]]
    pair = get_pair_table(view).pair(*PAIR)
    assert pair is not None

    turn = Rotation.from_matrix(b.world_from_camera[:3, :3]).inv() * Rotation.from_matrix(a.world_from_camera[:3, :3])
    assert pair.rotation_deg == pytest.approx(np.degrees(turn.magnitude()), abs=1e-6)
    assert pair.baseline_m == pytest.approx(np.linalg.norm(a.center_m - b.center_m), abs=1e-9)

    of_a, of_b = ((f.depth_camera, f.depth_m, f.world_from_camera) for f in (a, b))
    there = find_co_visible(*of_a, *of_b, view.tolerance, stride=2)
    back = find_co_visible(*of_b, *of_a, view.tolerance, stride=2)
    dense = min(overlap_fraction(there.state), overlap_fraction(back.state))
    assert pair.overlap == pytest.approx(dense, abs=0.04)

    points = np.concatenate(pair.seen_m)
    to_a, to_b = a.center_m - points, b.center_m - points
    cosine = (to_a * to_b).sum(axis=1) / np.linalg.norm(to_a, axis=1) / np.linalg.norm(to_b, axis=1)
    assert pair.parallax_deg == pytest.approx(np.median(np.degrees(np.arccos(cosine))), abs=1e-6)


def test_order_of_the_frames_does_not_matter() -> None:
    table = PairTable(room_view())
    assert table.pair(*PAIR) is table.pair(*PAIR[::-1])
    gates = PairGates()
    assert table.find_problem(*PAIR, gates) == table.find_problem(*PAIR[::-1], gates)


@pytest.mark.parametrize(
    ("gates", "reason", "above"),
    [
        ({"rotation_min_deg": 50.0}, "rotation_small", False),
        ({"rotation_max_deg": 6.0}, "rotation_large", True),
        ({"baseline_min_m": 3.0}, "baseline_short", False),
        ({"overlap_min": 0.95, "overlap_max": 0.99}, "overlap_low", False),
        ({"overlap_max": 0.4}, "overlap_high", True),
        ({"parallax_min_deg": 29.0}, "parallax_small", False),
        ({"parallax_max_deg": 4.0}, "parallax_large", True),
        ({"baseline_of_depth_min": 1.5}, "baseline_of_depth", False),
        ({"plane_share_max": 0.01}, "one_plane", True),
    ],
)
def test_each_gate_names_itself_and_the_value_it_judged(gates: dict[str, Any], reason: str, above: bool) -> None:
    table = get_pair_table(room_view())
    assert table.find_problem(*PAIR, PairGates(), planes=True) is None
    problem = table.find_problem(*PAIR, PairGates(**gates), planes=True)
    assert problem is not None
    assert problem[0] == reason
    assert (problem[1] > problem[2]) == above


def test_only_poses_ask_for_more_than_a_plane() -> None:
    assert get_pair_table(room_view()).find_problem(*PAIR, PairGates(plane_share_max=0.01)) is None


def test_a_pair_counts_as_taken_in_both_directions_and_when_hardly_different() -> None:
    table = PairTable(room_view())
    assert table.is_taken(3, 1, [(1, 3)])
    assert not table.is_taken(1, 4, [(1, 3)])
    table.near[4, 3] = table.near[3, 4] = True
    assert table.is_taken(1, 4, [(1, 3)])


def test_proposals_leave_out_frames_that_share_nothing() -> None:
    view = room_view()
    table = get_pair_table(view)
    proposed = table.propose_pairs(PairGates(), rng_for(0, "x"))
    assert {tuple(sorted(p)) for p in proposed} == {
        (i, j)
        for i in range(len(view.frames))
        for j in range(i + 1, len(view.frames))
        if view.mutual_overlap[i, j] >= 0.15
    }


def test_the_table_is_shared_and_dies_with_its_view() -> None:
    view = SceneView(room(), Gates(), frame_ids=["0", "10"])
    table = get_pair_table(view)
    assert get_pair_table(view) is table
    gone = weakref.ref(view)
    del view
    gc.collect()
    assert gone() is None


def test_thinned_keeps_ends_and_count() -> None:
    points = np.arange(300.0).reshape(100, 3)
    kept = thin_rows(points, 32)
    assert len(kept) == 32
    assert np.array_equal(kept[[0, -1]], points[[0, -1]])
    assert thin_rows(points[:5], 32) is not None
    assert len(thin_rows(points[:5], 32)) == 5


def test_masks_are_kept_until_there_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    view = room_view()
    monkeypatch.setattr(_pairs, "_MASKS_KEPT", 3)
    monkeypatch.setattr(_pairs, "_EDGES", weakref.WeakKeyDictionary())
    for frame in [*view.frames, view.frames[-2], view.frames[0]]:
        np.testing.assert_array_equal(_pairs.get_edges(frame, view), frame.edge_mask(view.gates.depth))
        assert _pairs.get_edges(frame, view) is _pairs.get_edges(frame, view)
        assert len(_pairs._EDGES) <= 3
