"""Classifiers find planted leaks, none where there is none, and give each item its score."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.quality.text_questions import (
    around_hidden,
    choices,
    question,
    times_noise,
    times_uniform,
)
from vgbench_gen.core.rng import rng_for
from vgbench_gen.core.types import FloatArray, IntArray
from vgbench_gen.quality import text_only
from vgbench_gen.quality._learners import LearnerRows, make_rows, predict_out_of_fold, score_credit, split_folds
from vgbench_gen.quality.questions import Question, group_by_scene
from vgbench_gen.quality.reading import read_claim
from vgbench_gen.quality.text_only import audit_control, audit_text_only, join_claim_pairs


def _claims(pairs: int, factor: float, debris: bool = False) -> list[Question]:
    """Twins with a true claim and one that is off by `factor` either way; false ones may end in a telling digit."""
    rng = rng_for(0, "claims", str(factor), str(debris))
    asked = []
    for number in range(pairs):
        true = float(np.exp(rng.uniform(0, 1)))
        other = true * factor ** rng.choice([-1, 1])
        claims = (f"{true:.2f}", f"{other:.3f}" if debris else f"{other:.2f}")
        for answer, claim in enumerate(claims):
            asked.append(
                question(
                    f"j{number}{answer}",
                    ["Yes", "No"],
                    answer,
                    form="judgment",
                    scene=f"s/{number % 40}",
                    twin=f"w{number}",
                    question=f"Is it within 10 percent of {claim} meters?",
                )
            )
    return asked


def test_the_figure_is_the_mean_over_splits_of_the_scenes(monkeypatch: pytest.MonkeyPatch) -> None:
    asked, splits = choices(times_uniform(0.5), 200, 1), list[bytes]()

    def believe(name: str, rows: LearnerRows, fold: IntArray, state: int) -> FloatArray:
        """All right under the first split, all wrong under the others."""
        splits.append(fold.tobytes())
        return np.asarray(rows.right if fold.tobytes() == splits[0] else ~rows.right, dtype=np.float64)

    monkeypatch.setattr(text_only, "predict_out_of_fold", believe)
    assert audit_text_only(asked, 0)[0].value == pytest.approx(100 / text_only.SPLITS)
    assert len(set(splits)) == text_only.SPLITS


def test_the_published_camera_rule_is_broken() -> None:
    asked = choices(times_noise(0.05, 0.15), 800, 0)
    result = audit_text_only(asked, 0)
    found = result[0]
    assert (found.name, found.failed) == ("forest", True)
    assert found.value > 88  # 93.7 by the rule that made them
    assert found.low > 80
    assert "leans on" in found.detail
    assert found.detail.count(", ") == 4
    assert set(result[1]) == {q.id for q in asked}
    assert np.mean(list(result[1].values())) > 0.6
    assert result[1][found.items[0]] >= result[1][found.items[-1]]
    assert result[1][found.items[0]] > 0.9
    assert audit_control(asked, 0).verdict == "passed"


def test_the_published_distance_rule_leaks_as_published() -> None:
    found = audit_text_only(choices(times_uniform(0.5), 500, 1), 0)[0]
    assert found.value == pytest.approx(57.4, abs=8)
    assert found.failed  # so plain a leak is one in a small cell too


def test_exchangeable_options_stay_at_chance() -> None:
    asked = choices(around_hidden(1), 800, seed=2)
    result = audit_text_only(asked, 0)
    assert not result[0].failed
    assert result[0].value < 31
    control = audit_control(asked, 0)
    assert control.verdict == "passed"
    assert control.value == pytest.approx(25, abs=2)
    assert np.mean(list(result[1].values())) == pytest.approx(0.25, abs=0.02)
    assert audit_text_only(asked[:200], 0)[0].verdict == "not judged"


def test_words_of_the_right_option_are_seen() -> None:
    rng = rng_for(0, "words")
    asked = []
    for number in range(160):
        truth = int(rng.integers(4))
        options = [f"the {rng.choice(['red', 'blue', 'green'])} chair" for _ in range(4)]
        options[truth] = f"the {rng.choice(['red', 'large'])} chair"
        asked.append(question(f"w{number}", options, truth, scene=f"s/{number % 30}"))
    found = audit_text_only(asked, 0)[0]
    assert (found.name, found.failed) == ("linear", True)
    assert found.value > 45


def test_fair_claims_hold() -> None:
    found = audit_text_only(_claims(400, 1.0), 0)[0]
    assert not found.failed
    assert (found.chance, found.value < 56) == (50, True)


def test_claims_that_end_in_a_telling_digit() -> None:
    found = audit_text_only(_claims(60, 1.0, debris=True), 0)[0]
    assert found.value > 95
    assert found.failed


def test_twins_that_only_tell_by_each_other() -> None:
    """The larger claim of a pair is true, though each claim by itself says little."""
    rng, asked = rng_for(0, "by each other"), []
    for number in range(300):
        small = float(np.exp(rng.uniform(0, 4)))
        for answer, claim in enumerate((1.4 * small, small)):
            text = f"Is it within 10 percent of {claim:.2f} meters?"
            one = question(f"j{number}{answer}", ["Yes", "No"], answer, form="judgment", question=text)
            asked.append(replace(one, scene=f"s/{number % 40}", twin=f"w{number}"))
    found = audit_text_only(asked, 0)[0]
    assert (found.name, found.failed) == ("forest on both claims of twins", True)
    assert found.value > 95


def test_a_scene_stays_in_one_fold_and_so_do_twins() -> None:
    asked = [replace(q, scene="") for q in _claims(60, 1.5)]
    groups = np.array(group_by_scene(asked))
    fold = split_folds(asked, groups, 3)
    assert len(np.unique(fold)) == 5
    assert all(len(set(fold[groups == group])) == 1 for group in np.unique(groups))
    assert np.bincount(fold).min() >= 16


def test_what_is_known_of_one_scene_only_does_not_help() -> None:
    """Every scene has its own right word: learnt within the scene it would answer everything."""
    rng = rng_for(0, "own")
    asked = []
    for number in range(120):
        words = [f"right{number % 24}", *(f"wrong{number % 24}" for _ in range(3))]
        order = rng.permutation(4)
        truth = int(np.flatnonzero(order == 0)[0])
        asked.append(question(f"o{number}", [words[i] for i in order], truth, scene=f"s/{number % 24}"))
    known = [replace(q, scene=f"s/{i}") for i, q in enumerate(asked)]
    for questions, low, high in ((asked, 0, 0.4), (known, 0.8, 1)):
        rows = make_rows(questions)
        belief = predict_out_of_fold("linear", rows, split_folds(questions, np.array(group_by_scene(questions)), 1), 1)
        assert low <= score_credit(belief, rows).mean() <= high


def test_what_a_thing_is_called_tells_how_large_it_is() -> None:
    """Each of 90 names has its usual size. Numbers alone tell little: options at the ends of the range are wrong."""
    rng, asked = rng_for(0, "names"), []
    usual = np.exp(rng.uniform(-2, 2, 90))
    for number in range(900):
        thing, step, rank = int(rng.integers(90)), rng.uniform(1.6, 1.8), int(rng.integers(4))
        values = usual[thing] * rng.uniform(0.85, 1.15) * step ** (np.arange(4.0) - rank)
        order, name = rng.permutation(4), f"thing {chr(97 + thing % 26)}{chr(97 + thing // 26)}"
        options, truth = [f"{values[i]:.2f} m" for i in order], int(np.flatnonzero(order == rank)[0])
        one = question(f"t{number}", options, truth, question=f"How long is the {name}?")
        asked.append(replace(one, scene=f"s/{number // 30}"))
    assert audit_text_only(asked, 0)[0].value > 85
    mute = [replace(one, question="How long is it?") for one in asked]
    assert audit_text_only(mute, 0)[0].value < 55


def test_open_ended_numbers_are_predicted_from_the_text() -> None:
    rng = rng_for(0, "open")
    asked = []
    for number in range(200):
        y = int(rng.integers(100, 900))
        text = f"How deep is [10, {y - 50}, 90, {y}] in meters? The image is 1000 x 1000 pixels."
        asked.append(question(f"d{number}", question=text, value=900 / y, scene=f"s/{number % 20}"))
    found = audit_text_only(asked, 0)[0]
    assert found.verdict == "reported"
    assert found.value > 80
    assert 10 < found.chance < 60  # of the best constant
    assert np.isnan(audit_text_only([replace(q, value=-1.0) for q in asked], 0)[0].value)


def test_too_little_to_learn_from_is_said() -> None:
    few = choices(around_hidden(1), 8)
    one_scene = [replace(q, scene="s/1") for q in choices(around_hidden(1), 40)]
    for asked in (few, one_scene):
        result = audit_text_only(asked, 0)
        assert result[0].verdict == audit_control(asked, 0).verdict == "not judged"
        assert not result[1]


def test_twins_become_one_question() -> None:
    pair = join_claim_pairs(_claims(3, 2.0)[:5])
    assert len(pair) == 2
    assert [q.options[q.truth] for q in pair] == [read_claim(q)[0][0].text for q in _claims(3, 2.0)[:4:2]]
    assert all(option not in q.question for q in pair for option in q.options)


def test_same_seed_same_result() -> None:
    asked = choices(times_noise(0.05, 0.15), 24, 0)
    first, second = audit_text_only(asked, 1), audit_text_only(asked, 1)
    assert first == second
