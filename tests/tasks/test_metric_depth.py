from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import stats

from tests.scene_factory import render
from tests.small_room import small_room, small_view
from vgbench_gen.core.errors import ConfigError, GeometryError, TooFewOptionsError
from vgbench_gen.core.gates import Gates
from vgbench_gen.core.types import Camera, Candidate, Fact, Rejected
from vgbench_gen.distractors.base import compatibility, strategies
from vgbench_gen.geometry import projection
from vgbench_gen.pipeline.measure import confirm_draft
from vgbench_gen.scenes.view import SceneView
from vgbench_gen.tasks import _regions
from vgbench_gen.tasks._regions import find_regions, measure, propose_rects
from vgbench_gen.tasks._summed_depth import SummedDepth
from vgbench_gen.tasks.base import read_gates
from vgbench_gen.tasks.metric_depth import MetricDepth
from vgbench_gen.tasks.records import make_camera_record
from vgbench_gen.tasks.scalar import read_evidence_rect

TASK = MetricDepth()


def drafts(view: SceneView, seed: int = 0, limit: int = 100) -> list[Fact | Rejected]:
    return list(TASK.drafts(view, np.random.default_rng(seed), limit))


def facts_of(view: SceneView, seed: int = 0, limit: int = 100) -> list[Fact]:
    return [draft for draft in drafts(view, seed, limit) if isinstance(draft, Fact)]


@pytest.fixture(scope="module")
def facts() -> list[Fact]:
    return facts_of(small_view())


def shown(fact: Fact) -> Fact:
    """As the pipeline completes it."""
    camera = make_camera_record(small_view().frame(fact.frame_ids[0]).camera)
    names = dict.fromkeys(fact.frame_ids, "0" * 32 + ".png")
    return replace(fact, pictures=names, cameras=dict.fromkeys(fact.frame_ids, camera))


def test_every_candidate_is_the_mean_depth_of_the_analytic_room(facts: list[Fact]) -> None:
    view, scene = small_view(), small_room()
    assert len(facts) >= 6
    rendered: dict[str, Any] = {}
    checked = 0
    for fact in facts:
        frame = view.frame(fact.frame_ids[0])
        if frame.id not in rendered:
            rendered[frame.id] = render(frame.camera, frame.world_from_camera, scene.solids, shade=False)[0]
        for candidate in fact.candidates:
            x1, y1, x2, y2 = read_evidence_rect(candidate.show)
            exact = rendered[frame.id][y1 : y2 + 1, x1 : x2 + 1]
            assert candidate.value[0] == pytest.approx(exact.mean(), rel=0.015, abs=0.006)
            assert np.ptp(np.quantile(exact, [0.25, 0.75])) <= 0.12 * np.median(exact)
            assert abs(exact.mean() / np.median(exact) - 1) < 0.035
            checked += 1
    assert checked > 60


def test_pool_and_draw(facts: list[Fact]) -> None:
    pooled = [fact for fact in facts if len(fact.candidates) > 1]
    assert 0 < len(pooled) < len(facts)  # regions without a set of four are asked without options
    for fact in pooled:
        rects = [read_evidence_rect(candidate.show) for candidate in fact.candidates]
        assert 4 <= len(rects) <= TASK.pool_size
        for i, a in enumerate(rects):
            assert a[2] - a[0] + 1 >= 32
            assert a[3] - a[1] + 1 >= 32
            assert 6 <= a[0] <= a[2] <= 313
            assert 4 <= a[1] <= a[3] <= 235
            for b in rects[:i]:
                assert a[2] < b[0] or b[2] < a[0] or a[3] < b[1] or b[3] < a[1]
        assert compatibility(fact.candidates, fact, TASK)[fact.truth].sum() >= 4
        assert fact.margin >= 1
        assert fact.evidence["margins"]


def test_two_targets_of_a_frame_are_apart_and_keys_are_unique(facts: list[Fact]) -> None:
    assert len({fact.key for fact in facts}) == len(facts)
    view = small_view()
    by_frame: dict[str, list[np.ndarray]] = {}
    for fact in facts:
        frame = view.frame(fact.frame_ids[0])
        x1, y1, x2, y2 = read_evidence_rect(fact.truth_candidate.show)
        uv = np.array([[(x1 + x2) / 2, (y1 + y2) / 2]])
        by_frame.setdefault(frame.id, []).append(frame.points_at(uv)[0])
    pairs = [points for points in by_frame.values() if len(points) == 2]
    assert len(pairs) >= 3
    assert max(map(len, by_frame.values())) == 2
    assert min(np.linalg.norm(a - b) for a, b in pairs) > 0.25  # 0.3 at the region's median depth


def test_the_truth_is_any_member_of_the_pool_by_its_sets() -> None:
    values = [1.0, 1.3, 1.35, 1.7, 2.2, 2.9, 2.95]
    pool = tuple(Candidate(str(i), np.array([v])) for i, v in enumerate(values))
    fact = replace(facts_of(small_view(), limit=1)[0], candidates=pool, truth=0)
    table = compatibility(pool, fact, TASK)
    # ratio >= 1.25, gap >= 0.15 m, ratio <= 3
    expected = [
        [
            i == j or (max(a, b) / min(a, b) >= 1.25 and abs(a - b) >= 0.15 and max(a, b) / min(a, b) <= 3)
            for j, b in enumerate(values)
        ]
        for i, a in enumerate(values)
    ]
    assert table.tolist() == expected
    near = [Candidate(str(v), np.array([v])) for v in (0.5, 0.64)]
    assert TASK.margin_ratio(near[0], near[1], fact) == pytest.approx(0.14 / 0.15)
    assert TASK.pair_margins(near, fact)[0][0, 1] == pytest.approx(0.14 / 0.15)


def test_drafts_follow_the_seed_and_are_bounded(facts: list[Fact]) -> None:
    assert [fact.key for fact in facts_of(small_view(), seed=1)] != [fact.key for fact in facts]
    for limit in (1, 3):
        assert len(facts_of(small_view(), limit=limit)) == limit


def test_a_wrong_depth_mapping_sinks_the_draft(monkeypatch: pytest.MonkeyPatch) -> None:
    """The depth image is cropped but its K is not: the first route reads depth elsewhere than the cloud lands."""
    view = SceneView(small_room(), Gates())
    good = facts_of(view)
    assert all(isinstance(confirm_draft(TASK, fact, view), Fact) for fact in good)
    for frame in view.frames:
        K = frame.depth_camera.K.copy()
        K[0, 2] += 25
        frame.depth_camera = Camera(K, frame.depth_camera.width, frame.depth_camera.height)
    outcomes = [confirm_draft(TASK, fact, view) for fact in good]
    wrong = [o for o in outcomes if isinstance(o, Rejected)]
    assert len(wrong) >= len(good) / 3  # flat regions have equal depth beside them
    assert {r.reason for r in wrong} <= {"second_route_disagrees", "no_second_route"}
    disagreeing = [r.value for r in wrong if r.reason == "second_route_disagrees"]
    assert disagreeing
    assert min(disagreeing) > 1


def test_a_region_without_cloud_has_no_second_route(facts: list[Fact]) -> None:
    fact = facts[0]
    away = replace(fact.truth_candidate, show={"rect": [5000, 5000, 5040, 5040]})
    with pytest.raises(GeometryError):
        TASK.recheck(replace(fact, candidates=(away,), truth=0), small_view())


def test_noise_of_the_sensor_moves_a_mean_by_little() -> None:
    noisy = SceneView(small_room(noise_m=0.004), Gates())
    quiet = small_view()
    offs = []
    for fact in facts_of(noisy):
        frame = quiet.frame(fact.frame_ids[0])
        exact = measure(frame, quiet, np.array(read_evidence_rect(fact.truth_candidate.show)))
        assert isinstance(confirm_draft(TASK, fact, noisy), Fact)
        if exact is not None:
            offs.append(fact.truth_candidate.value[0] - exact.mean_m)
    assert len(offs) > 4
    assert max(map(abs, offs)) < 0.006  # of which half a centimeter is print


def test_gates_refuse_what_they_name() -> None:
    view = small_view()
    frame = view.frames[0]
    flat = next(r for r in find_regions(frame, view, np.random.default_rng(0))[0])
    rect = np.array(flat.rect_px)

    def measured(depth_m: np.ndarray) -> object:
        fake = object.__new__(type(frame))
        fake.__dict__.update(frame.__dict__ | {"depth_m": depth_m.astype(np.float32)})
        return measure(fake, view, rect)

    inside = np.ones_like(frame.depth_m) * 2.0
    assert measured(inside) is not None
    holes = inside.copy()
    holes.ravel()[::8] = 0
    assert measured(holes) is None  # 12.5 % unknown
    holes = inside.copy()
    holes.ravel()[::16] = 0
    assert measured(holes) is not None
    step = inside.copy()
    step[:, : (rect[0] + rect[2]) // 4] = 2.3
    assert measured(step) is None  # half of it 15 % farther: quartiles 2.0 and 2.3
    for z in (0.35, 8.5):
        assert measured(inside * z / 2) is None


def test_cheap_statistics_are_the_exact_ones() -> None:
    view = small_view()
    frame = view.frames[0]
    depth = frame.depth_m.copy()
    depth[30:50, 40:80] = 0
    fake = object.__new__(type(frame))
    fake.__dict__.update(frame.__dict__ | {"depth_m": depth})
    rects = propose_rects(fake, view, np.random.default_rng(0))
    sums = SummedDepth(fake.depth_camera, fake.depth_m)
    known, mean, std = sums.measure_means(_regions._find_depth_rects(fake, rects))
    for k in range(0, len(rects), 20):
        patch = fake.depth_patch(rects[k].tolist()).astype(np.float64)
        values = patch[patch > 0]
        assert known[k] == pytest.approx(values.size / patch.size)
        if values.size:
            assert (mean[k], std[k]) == pytest.approx((values.mean(), values.std()), abs=1e-6)


def test_statistics_of_a_region_are_those_of_numpy() -> None:
    rng = np.random.default_rng(0)
    for height, width in ((1, 1), (3, 9), (8, 8), (13, 22)):
        patch = rng.uniform(1, 3, (height, width)).astype(np.float32)
        patch[rng.random(patch.shape) < 0.2] = 0
        patch[0, 0] = 2.5
        parts = [np.array_split(rows, 4, axis=1) for rows in np.array_split(patch, 4, axis=0)]
        blocks = _regions._measure_blocks(patch)
        assert [count for _, count in blocks] == [int((part > 0).sum()) for row in parts for part in row]
        means = [part[part > 0].mean(dtype=np.float64) if part.any() else 0.0 for row in parts for part in row]
        np.testing.assert_allclose([mean for mean, _ in blocks], means, rtol=1e-12)
        known = patch[patch > 0].astype(np.float64)
        np.testing.assert_allclose(_regions._compute_quantiles(known), np.quantile(known, _regions._LEVELS), rtol=1e-12)


def test_cloud_of_a_region_is_the_projected_cloud() -> None:
    view = small_view()
    frame = view.frames[0]
    points, _ = projection.back_project_depth(frame.depth_camera, frame.depth_m)
    uv, z = projection.project(frame.camera, points)
    rects = [[20, 30, 61, 72], [0, 0, 319, 239], [100, 7, 100, 7], [400, 10, 420, 20]]
    for (x1, y1, x2, y2), median in zip(rects, _regions.measure_cloud_medians_m(frame, rects), strict=True):
        inside = ((uv >= (x1 - 0.5, y1 - 0.5)) & (uv <= (x2 + 0.5, y2 + 0.5))).all(axis=1)
        assert median == pytest.approx(np.median(z[inside]) if inside.any() else np.nan, abs=1e-3, nan_ok=True)


def test_every_flat_proposal_survives_the_cheap_gates() -> None:
    """Regions come from proposals that pass; a filter that mixes rows up loses most of them."""
    view = small_view()
    frame = view.frames[2]
    depth = frame.depth_m.copy()
    depth[:, :80] = 0  # half of the proposals fail the first gate
    fake = object.__new__(type(frame))
    fake.__dict__.update(frame.__dict__ | {"depth_m": depth})
    rng = np.random.default_rng(4)
    rects = propose_rects(fake, view, np.random.default_rng(4))
    cells, sums = _regions._find_depth_rects(fake, rects), SummedDepth(fake.depth_camera, fake.depth_m)
    known, mean, std = sums.measure_means(cells)
    found, dropped = find_regions(fake, view, rng)
    assert dropped["valid"] == (known < 0.9).sum()
    passing = (known >= 0.9) & (mean >= view.near_m) & (mean <= view.far_m) & (std <= 0.12 * mean)
    planes = sums.fit_planes(cells)
    flat = (planes.residual_m <= 0.004 + 0.0005 * planes.depth_m**2) & (planes.spread_deg <= 20)
    assert view.depth_kind == "laser"
    assert dropped["one_surface"] == (passing & ~flat).sum() > 50
    passing &= flat
    allowed = {tuple(rect) for rect in rects[passing].tolist()}
    assert {region.rect_px for region in found} <= allowed
    considered = dropped["overlapping"] + dropped["cross_view"] + len(found)
    assert considered <= passing.sum()
    assert considered >= 0.7 * passing.sum()


def test_a_surface_that_moves_with_the_viewpoint_is_refused() -> None:
    """Mirrors: depth of one frame that no other frame confirms."""
    view = SceneView(small_room(), Gates())
    frame = view.frames[0]
    assert find_regions(frame, view, np.random.default_rng(0))[1]["cross_view"] == 0
    frame.depth_m = (frame.depth_m * 0.8).astype(np.float32)  # floats in front of what the others see
    found, dropped = find_regions(frame, view, np.random.default_rng(0))
    assert dropped["cross_view"] > 10
    assert len(found) < 6


def test_twins_stand_on_either_side_of_the_margin() -> None:
    trues, falses, truths = [], [], []
    fact = shown(facts_of(small_view(), limit=1)[0])
    rng = np.random.default_rng(0)
    for _ in range(600):
        values = np.round(np.exp(rng.uniform(np.log(0.8), np.log(4.0), 10)), 2)
        pool = tuple(Candidate(str(i), np.array([v]), show={"rect": [0, 0, 40, 40]}) for i, v in enumerate(values))
        asked = replace(fact, candidates=pool, truth=int(rng.integers(10)))
        twins = TASK.claim_pair(asked, rng)
        if twins is None or twins.false.separation < 1:
            continue
        truth = float(asked.truth_candidate.value[0])
        true, false = float(twins.true.value[0]), float(twins.false.value[0])
        assert abs(true - truth) <= 0.05 * truth + 0.00501
        assert max(false / truth, truth / false) >= 1.25
        assert abs(false - truth) >= 0.15
        assert max(false / truth, truth / false) <= 3 * 1.06
        assert twins.true.slots["claim"] == f"{true:.2f}"
        assert twins.false.slots["claim"] == f"{false:.2f}"
        assert TASK.claim_ratio(Candidate("", twins.true.value), asked) <= 0.5
        assert TASK.claim_ratio(Candidate("", twins.false.value), asked) >= 1
        trues.append(true)
        falses.append(false)
        truths.append(truth)
    assert len(trues) > 180
    assert np.std(np.array(trues) / truths - 1) > 0.02  # true claims carry noise, too


def test_claims_whose_tolerance_is_too_wide_for_the_margin_are_refused() -> None:
    fact = shown(facts_of(small_view(), limit=1)[0])
    for ratio_min in (1.10, 1.11):
        task = MetricDepth(read_gates({"metric_depth": {"ratio_min": ratio_min}}, "test"))
        if ratio_min < 1.05**2:
            with pytest.raises(ConfigError, match=r"'metric_depth': found ratio_min 1\.1 with .* at least 1\.103"):
                task.claim_pair(fact, np.random.default_rng(0))
        else:
            task.claim_pair(fact, np.random.default_rng(0))


def test_neither_options_nor_claims_of_a_pool_are_likelier_than_others() -> None:
    """For a reader who knows the whole pool, every word of the question, and how truths are drawn."""
    # The outer two are in nine sets, the others in three: false claims drawn evenly would be of them too seldom.
    values = (1.0, 1.4, 1.42, 1.44, 1.9, 1.92, 1.94, 2.6)
    pool = tuple(Candidate(str(i), np.array([v]), show={"rect": [0, 0, 40, 40]}) for i, v in enumerate(values))
    fact = replace(shown(facts_of(small_view(), limit=1)[0]), candidates=pool, truth=0)
    rng = np.random.default_rng(0)
    of_sets: dict[tuple[float, ...], list[int]] = {}
    of_pairs: dict[tuple[int, ...], list[bool]] = {}
    for _ in range(2500):
        asked = TASK.with_drawn_truth(fact, rng)
        assert asked is not None
        options = strategies["set_first"].options(asked, TASK, rng)
        row = sorted(float(option.value[0]) for option in options.options)
        of_sets.setdefault(tuple(row), []).append(row.index(float(asked.truth_candidate.value[0])))
        other = TASK.draw_false_value(asked, rng)
        if other is not None:
            about = values.index(other)
            of_pairs.setdefault(tuple(sorted((asked.truth, about))), []).append(asked.truth < about)
    assert len(of_sets) == 9
    for ranks in of_sets.values():
        assert stats.chisquare(np.bincount(ranks, minlength=4)).pvalue > 1e-3
    assert sum(map(len, of_pairs.values())) > 1000
    for lower in of_pairs.values():
        assert stats.binomtest(sum(lower), len(lower)).pvalue > 1e-3


@pytest.fixture(scope="module")
def long_view() -> SceneView:
    """Small regions, so that a small room holds enough that are flat in several frames."""
    frame = {"keyframe_turn_deg": 4, "keyframe_shift_m": 0.04}
    region = {"side_min_px": 12, "area_min": 0.001}
    return SceneView(small_room(frames=16), Gates.model_validate({"frame": frame, "region": region}))


def test_options_are_depths_of_one_rectangle_in_several_frames(long_view: SceneView) -> None:
    facts = facts_of(long_view, limit=24)
    sets = [fact for fact in facts if len(fact.candidates) > 1]
    assert len(sets) >= 3
    assert len({fact.key for fact in facts}) == len(facts)
    for fact in sets:
        rects = {tuple(candidate.show["rect"]) for candidate in fact.candidates}
        assert len(rects) == 1
        named = [candidate.key.split(":")[1] for candidate in fact.candidates]
        assert len(set(named)) == len(named) >= 4
        assert fact.frame_ids == (named[fact.truth],)
        for frame_id, candidate in zip(named, fact.candidates, strict=True):
            region = measure(long_view.frame(frame_id), long_view, np.array(candidate.show["rect"]))
            assert region is not None
            assert candidate.value[0] == pytest.approx(region.mean_m, abs=0.0051)
        strategies["set_first"].options(fact, TASK, np.random.default_rng(0))
        assert isinstance(confirm_draft(TASK, fact, long_view), Fact)


def test_regions_without_a_set_are_asked_open_ended_and_spread_over_depth(long_view: SceneView) -> None:
    single = [fact for fact in facts_of(long_view, limit=24) if len(fact.candidates) == 1]
    assert len(single) >= 6
    depths = [float(fact.truth_candidate.value[0]) for fact in single]
    assert max(depths) / min(depths) > 2
    for fact in single:
        with pytest.raises(TooFewOptionsError):
            strategies["set_first"].options(fact, TASK, np.random.default_rng(0))
        assert TASK.draw_false_value(fact, np.random.default_rng(0)) is None


def test_a_claim_between_noise_and_margin_is_neither_true_nor_false() -> None:
    fact = replace(facts_of(small_view(), limit=1)[0], candidates=(Candidate("t", np.array([2.0])),), truth=0)
    for claimed, low, high in ((2.1, 0, 0.5), (2.11, 0.51, 0.99), (2.22, 0.51, 0.99), (2.51, 1, 9)):
        assert low <= TASK.claim_ratio(Candidate("", np.array([claimed])), fact) <= high


def test_open_answer_and_options_print_the_value(facts: list[Fact]) -> None:
    fact = shown(facts[0])
    value = fact.truth_candidate.value[0]
    asked = TASK.open_ended(fact)
    assert asked.answer == f"{value:.2f} meters"
    (picture,) = asked.pictures
    assert [op["rect"] for op in picture.ops] == [fact.truth_candidate.show["rect"]]
