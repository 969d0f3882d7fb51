"""The noise test: errors have the size they are said to have, sets within their reach fail, others pass."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import erf, sqrt
from typing import Any

import numpy as np
import pytest

from tests.facts_at_hand import ask_facts_at_hand
from tests.quality.conftest import Rows, write_rows
from tests.quality.invariance_room import Room
from vgbench_gen.core.config import parse_config
from vgbench_gen.core.errors import ConfigError
from vgbench_gen.core.gates import Gates
from vgbench_gen.core.noise import NoiseGates, SensorNoise
from vgbench_gen.core.rng import rng_for
from vgbench_gen.core.types import Candidate, Fact, FloatArray, Item
from vgbench_gen.geometry.poses import rotation_angle_deg
from vgbench_gen.pipeline.recipe import Recipe
from vgbench_gen.quality.noise import LEAD_MAX, measure_item_noise, measure_leads, measure_noise
from vgbench_gen.quality.verify import verify_item
from vgbench_gen.tasks._noise import perturb_motions
from vgbench_gen.tasks.base import Task, tasks
from vgbench_gen.tasks.row_evidence import rebuild_fact

SILENT = SensorNoise(depth_m=0, depth_per_m=0, turn_deg=0, shift_m=0, focal=0, box_m=0)
LOUD = SensorNoise(depth_m=0.6, depth_per_m=0.1, turn_deg=40, shift_m=2, focal=0.4, box_m=1)
HOMOGRAPHIES = {"homography_to_image", "homography_to_matrix"}
APPLIED = HOMOGRAPHIES | {"rotated_arrangement"}  # what was drawn is what is asked, whatever a source says
MANY = 4000


def gates(noise: SensorNoise | None = None, draws: int = 200, **changed: float) -> Gates:
    """The shipped gates with one noise for all sources; `changed` in a noise that is silent otherwise."""
    noise = noise or SILENT.model_copy(update=changed)
    of_all = NoiseGates(scannet=noise, scannetpp=noise, ca1m=noise, wildrgbd=noise, draws=draws)
    return Gates().model_copy(update={"noise": of_all})


def share(item: Item, given: Gates) -> float | None:
    found = measure_item_noise(item, rebuild_fact(item), tasks[item.task].with_gates(given))
    return None if found is None else found.kept


def told(*values: float) -> list[Candidate]:
    return [Candidate(f"at:{value}", np.array([value])) for value in values]


def regions(*depths_m: float) -> list[Candidate]:
    """Flat regions at these depths."""
    return [
        replace(one, evidence={"mean_m": z, "quantiles_m": [z] * 7, "valid": 1.0, "blocks": [[z, 9]] * 16})
        for one, z in zip(told(*depths_m), depths_m, strict=True)
    ]


def below(sigmas: float) -> float:
    """Share of normal errors that are smaller than this many standard deviations."""
    return (1 + erf(sigmas / sqrt(2))) / 2


def of(rows: Rows, task: str, form: str = "multi-choice") -> list[Item]:
    return [item for item in rows.items if (item.task, item.question_type) == (task, form)]


# --- sizes of errors -------------------------------------------------------------------------------------------------


def test_sources_and_what_is_taken_for_one_that_is_not_known() -> None:
    known = NoiseGates()
    assert known.of("ca1m") == known.ca1m
    unknown = known.of("elsewhere")
    for name in SensorNoise.model_fields:
        values = [getattr(known.of(source), name) for source in ("scannet", "scannetpp", "ca1m", "wildrgbd")]
        assert getattr(unknown, name) == max(values)
    assert known.scannet.depth_sigma_m(5.0) == pytest.approx(0.04, abs=0.002)  # Khoshelham and Elberink
    with pytest.raises(ConfigError, match="depth_cm"):
        parse_config({"noise": {"ca1m": {"depth_cm": 1.0}}}, Gates, "here")
    with pytest.raises(ConfigError, match="turn_deg"):
        parse_config({"noise": {"ca1m": known.ca1m.model_dump() | {"turn_deg": "1"}}}, Gates, "here")


def test_poses_are_off_by_their_root_mean_square() -> None:
    motion = np.column_stack([np.array([[0.0, -1, 0], [1, 0, 0], [0, 0, 1]]), [1.0, 2.0, 3.0]])
    noise = SILENT.model_copy(update={"turn_deg": 2.0, "shift_m": 0.05})
    noisy = perturb_motions(motion, noise, rng_for(0, "poses"), MANY)
    turns = noisy[:, :, :3] @ motion[:, :3].T
    assert np.sqrt((rotation_angle_deg(turns) ** 2).mean()) == pytest.approx(2.0, rel=0.04)
    shifts = noisy[:, :, 3] - turns @ motion[:, 3]
    assert np.sqrt((shifts**2).sum(axis=1).mean()) == pytest.approx(0.05, rel=0.04)
    assert np.abs(shifts.mean(axis=0)).max() < 0.003


def off_px(item: Item, noise: SensorNoise) -> FloatArray:
    """(MANY, 2) how far a row's target moves in image 2."""
    fact = rebuild_fact(item)
    values = tasks[item.task].noisy_values(fact, fact.truth_candidate, noise, rng_for(1, item.id), MANY)
    return np.asarray(values - np.array(fact.truth_candidate.evidence["uv_2_px"]))


def test_a_tracked_point_moves_as_small_angle_theory_and_parallax_say(all_rows: Rows) -> None:
    for item in of(all_rows, "point_tracking"):
        camera = item.evidence["fact"]["camera_2"]
        turn = np.radians(1.0) / np.sqrt(3)
        evidence = rebuild_fact(item).truth_candidate.evidence
        x, y = np.array(evidence["point_2_m"])[:2] / evidence["point_2_m"][2]
        sigma_u = camera["K"][0] * turn * np.sqrt((1 + x * x) ** 2 + (x * y) ** 2 + y * y)
        off = off_px(item, SILENT.model_copy(update={"turn_deg": 1.0}))
        assert off[:, 0].std() == pytest.approx(sigma_u, rel=0.06)
        # Depth moves it along one line, the epipolar one, by sigma / z of its parallax.
        off = off_px(item, SILENT.model_copy(update={"depth_m": 0.01}))
        spread = np.linalg.svd(off - off.mean(axis=0), compute_uv=False)
        assert spread[1] < 0.05 * spread[0]
        further = dict(evidence) | {"z_1_m": evidence["z_1_m"] + 0.01}
        fact = rebuild_fact(item)
        moved = tasks[item.task].noisy_values(
            fact, replace(fact.truth_candidate, evidence=further), SILENT, rng_for(1), 1
        )[0]
        step_px = np.linalg.norm(moved - np.array(evidence["uv_2_px"]))
        assert np.linalg.norm(off.std(axis=0)) == pytest.approx(step_px, rel=0.06)


# --- sets within and beyond reach ------------------------------------------------------------------------------------


def test_a_margin_below_sigma_fails_by_the_law_of_errors_and_a_wide_one_passes(room: Room) -> None:
    task = tasks["metric_depth"].with_gates(gates(depth_m=0.02, draws=MANY))
    fact = room.facts["metric_depth"][0]

    def kept(*values: float) -> float:
        return measure_noise(fact, "group", "multi-choice", task, told(*values)).kept

    assert kept(1.00, 1.25, 1.60, 2.10) == 1.0
    # The geometric middle between 1.00 and 1.03 is 0.74 sigma from the lower one, 0.76 from the upper one.
    assert kept(1.00, 1.03, 1.60, 2.10) == pytest.approx(below(0.745), abs=0.02)
    # Hemmed in from both sides.
    assert kept(0.97, 1.00, 1.03, 2.10) == pytest.approx(2 * below(0.745) - 1, abs=0.025)


def test_the_lead_counts_deviations_of_the_noise(room: Room) -> None:
    fact = room.facts["metric_depth"][0]

    def lead(depth_m: float, next_m: float) -> float:
        task = tasks["metric_depth"].with_gates(gates(depth_m=depth_m, draws=MANY))
        return measure_noise(fact, "group", "multi-choice", task, told(1.0, next_m, 3.0)).lead

    # The lead falls by twice the error where the depth is too large, and stays where it is too small.
    assert lead(0.02, 1.6) == pytest.approx(np.log(1.6) / 0.02, rel=0.05)
    assert lead(0.04, 1.6) == pytest.approx(lead(0.02, 1.6) / 2, rel=0.05)
    assert lead(0.02, 1.6) > lead(0.02, 1.3) > lead(0.02, 1.1) > 0
    assert lead(0.0, 1.6) == LEAD_MAX


def test_a_set_fails_by_any_member_that_might_have_been_asked_about(room: Room) -> None:
    task = tasks["metric_depth"].with_gates(gates(depth_m=0.02))
    fact = room.facts["metric_depth"][0]
    options = told(1.00, 1.60, 2.10, 2.13)  # the truth, at 1.00, is far from all others
    noise = task.gates.noise
    assert (measure_leads(task.noisy_gaps(fact, options, 0, noise.ca1m, rng_for(0), noise.draws), 0) > 0).all()
    assert measure_noise(fact, "group", "multi-choice", task, options, 0).kept < 0.9
    # Of regions only one is the farthest, whatever else is asked.
    assert tasks["relative_depth"].could_be_true(fact, options, 2) == [2]
    # A rung of a ladder of distances is a value alone, and is perturbed as the truth.
    rungs = told(0.4, 0.45, 0.9, 1.5)
    distance = tasks["object_distance"].with_gates(gates(box_m=0.03))
    assert measure_noise(room.facts["object_distance"][0], "group", "multi-choice", distance, rungs, 3).kept < 0.9


def test_neighbours_in_depth_change_places(room: Room) -> None:
    task = tasks["relative_depth"].with_gates(gates(depth_m=0.02, draws=MANY))
    fact = replace(room.facts["relative_depth"][0], ask="deepest")
    # Both are off: the difference of the two has sqrt(2) times the sigma.
    kept = measure_noise(fact, "group", "multi-choice", task, regions(1.0, 1.2, 2.00, 2.03), 3).kept
    assert kept == pytest.approx(below(0.03 / 0.02 / sqrt(2)), abs=0.02)
    assert measure_noise(fact, "group", "multi-choice", task, regions(1.0, 1.2, 2.0, 2.3), 3).kept == 1.0
    nearest = replace(fact, ask="nearest")
    assert measure_noise(nearest, "group", "multi-choice", task, regions(1.0, 1.2, 2.0, 2.03), 0).kept == 1.0
    assert measure_noise(nearest, "group", "multi-choice", task, regions(1.0, 1.2, 2.0, 2.03), 3).kept == 0.0


def test_claims_and_open_answers_are_judged_by_their_tolerance(room: Room) -> None:
    task = tasks["metric_depth"].with_gates(gates(depth_m=0.02, draws=MANY))
    fact = room.facts["metric_depth"][0]
    measured = {"mean_m": 1.0, "quantiles_m": [1.0] * 7, "valid": 1.0, "blocks": [[1.0, 9]] * 16}
    fact = replace(fact, candidates=(Candidate("truth", np.array([1.0]), evidence=measured),), truth=0)

    def claims(true: float, false: float) -> float:
        return measure_noise(fact, "group", "judgment", task, claims=(np.array([true]), np.array([false]))).kept

    assert claims(1.01, 1.6) == 1.0
    # Within 10 percent of the truth where that is 1.0364 or more: 1.82 sigma up.
    assert claims(0.99, 1.14) == pytest.approx(below(1.82), abs=0.015)
    # The true one stays within 10 percent where the truth is 1.09 / 1.1 or more.
    assert claims(1.09, 1.6) == pytest.approx(below((1 - 1.09 / 1.1) / 0.02), abs=0.015)
    # The false one, taken for the truth, must be as far from the true one: 0.60 and 0.63 part at 0.75 sigma.
    assert claims(0.63, 0.60) < 0.9
    answer = replace(fact, candidates=tuple(told(0.1)))
    within = below(0.025 / 0.02) + below(0.02 / 0.02) - 1
    assert measure_noise(answer, "group", "open-ended", task).kept == pytest.approx(within, abs=0.025)
    assert measure_noise(fact, "group", "open-ended", task).kept == 1.0


def test_matrices_that_differ_by_less_than_their_last_digit(room: Room) -> None:
    for name in sorted(HOMOGRAPHIES):
        task, fact = tasks[name], room.facts[name][0]
        H = fact.truth_candidate.value
        off = H.copy()
        off[0, 0] += 0.3 * (0.0001 if abs(H[0, 0]) < 1 else 0.001)
        twice = [replace(fact.truth_candidate, key="a"), replace(fact.truth_candidate, key="b", value=off)]
        assert measure_noise(fact, "group", "multi-choice", task, twice).kept < 0.9
        off = H.copy()
        off[0, 2] += 1.0
        assert measure_noise(fact, "group", "multi-choice", task, [twice[0], replace(twice[1], value=off)]).kept == 1.0


def test_gaps_of_all_draws_are_the_metric_of_each(room: Room) -> None:
    for name in sorted(HOMOGRAPHIES):
        task, fact = tasks[name], room.facts[name][0]
        told, noise = fact.candidates[:4], task.gates.noise.of(fact.dataset)
        values = task.noisy_values(fact, told[1], noise, rng_for(2, name), 25)
        gaps = task.gaps(values, told, told[1], fact)
        assert gaps.shape == (4, 25)
        each = [[task.metric(value, option.value, fact) for value in values] for option in told]
        assert gaps == pytest.approx(np.array(each), rel=1e-9)


@pytest.mark.parametrize("name", sorted(tasks))
def test_every_form_bears_no_noise_at_all_and_not_any_noise(name: str, all_rows: Rows) -> None:
    for form in tasks[name].formats:
        rows = of(all_rows, name, form)
        assert rows
        for item in rows:
            assert share(item, gates(SILENT)) == 1.0
            again = measure_item_noise(item, rebuild_fact(item), tasks[name].with_gates(Gates()))
            assert again is not None
            assert again.write() == item.evidence["noise"]
            assert again.kept >= 0.99
            assert again.lead > 1
            loud = share(item, gates(LOUD))
            assert loud is not None
            assert loud == 1.0 if name in APPLIED else loud < 0.9, (form, item.ask)


# --- what the test depends on ----------------------------------------------------------------------------------------


def test_the_same_question_gives_the_same_share_whatever_its_letters(all_rows: Rows) -> None:
    noisy = gates(LOUD, draws=37)
    for name in sorted(tasks):
        item = of(all_rows, name)[0]
        task, fact = tasks[name].with_gates(noisy), rebuild_fact(item)
        options: Sequence[Candidate] = fact.candidates

        def kept(order: Sequence[int], group: str, task: Task = task, fact: Fact = fact) -> float:
            members = [fact.candidates[k] for k in order]
            return measure_noise(fact, group, "multi-choice", task, members, list(order).index(fact.truth)).kept

        first = kept(range(len(options)), "group")
        assert first * 37 == pytest.approx(round(first * 37), abs=1e-9)  # as many draws as the gates say
        assert kept([2, 0, 3, 1] if len(options) == 4 else range(len(options))[::-1], "group") == first
        if name not in APPLIED:
            assert len({kept(range(len(options)), f"group {n}") for n in range(6)}) > 1, name


# --- in the pipeline -------------------------------------------------------------------------------------------------


def test_what_does_not_bear_the_noise_is_refused_for_that_reason(room: Room) -> None:
    facts = [fact for name in sorted(set(room.facts) - APPLIED) for fact in room.facts[name]]
    chosen = [tasks[name].with_gates(gates(LOUD)) for name in sorted(tasks)]
    plans = ask_facts_at_hand(facts, chosen, Recipe(gates=gates(LOUD)))
    forms = sum(len(tasks[fact.task].formats) for fact in facts)
    reasons = [plan.rejection_reason for plan in plans]
    assert len(reasons) == forms
    assert set(reasons) <= {"noise", "no_false_claim", "too_few_options", "ladder_out_of_range"}
    assert reasons.count("noise") > 0.5 * forms


def test_a_stress_set_records_the_share_and_need_not_meet_the_bar(room: Room, tmp_path: Any) -> None:
    recipe = Recipe(gates=gates(LOUD), margins="recorded", pairs=0.0)
    rows = write_rows(tmp_path, room.facts["metric_depth"], room.media, recipe)
    assert rows.items
    assert all(item.evidence["noise"]["kept"] < 0.9 for item in rows.items)
    for item in rows.items:
        assert verify_item(item, rows.images(item), recipe.gates) == []


def checks(rows: Rows, item: Item, given: Gates) -> list[str]:
    return [problem.check for problem in verify_item(item, rows.images(item), given)]


def test_a_row_that_records_another_share_or_none(all_rows: Rows) -> None:
    for name in sorted(tasks):
        for form in tasks[name].formats:
            item = of(all_rows, name, form)[0]
            for off in ({"kept": 0.97}, {"draws": 50}, {"lead": 2 * item.evidence["noise"]["lead"]}):
                wrong = replace(item, evidence={**item.evidence, "noise": item.evidence["noise"] | off})
                assert checks(all_rows, wrong, Gates()) == ["noise"]
            # Rows without a record are tested all the same, judgments by their own claim.
            early = {k: v for k, v in item.evidence.items() if k not in ("noise", "twin_value")}
            assert checks(all_rows, replace(item, evidence=early), Gates()) == []
            if name not in APPLIED and item.answer != "Yes":
                assert checks(all_rows, replace(item, evidence=early), gates(LOUD)) == ["noise"], (name, form)
