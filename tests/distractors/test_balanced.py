"""Chosen sets tell the truth neither to a model that is fitted to them nor to a rule; facts alone decide the choice."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np
import pytest
from scipy.stats import ks_2samp
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import GroupKFold

from vgbench_gen.core.types import FloatArray, IntArray
from vgbench_gen.distractors import balanced
from vgbench_gen.distractors.balanced import CandidateSets, choose_sets

SETS, FACTS, PER_SCENE = 24, 600, 20


@cache
def leaking_facts(cues: int = 3, images: int = 0) -> tuple[CandidateSets, ...]:
    """True options have another spread than wrong ones, and two of their cues go together."""
    rng = np.random.default_rng(0)
    facts = []
    for number in range(FACTS):
        truth, wrong = rng.normal(0, 0.7, cues), rng.normal(0.4, 1.3, (11, cues))
        truth[1] += 0.6 * truth[0]
        pool = np.vstack([truth, wrong])
        members = np.array([[0, *rng.choice(np.arange(1, 12), 3, replace=False)] for _ in range(SETS)])
        looks = rng.normal(0, 1, (12, images))
        looks[0] += 0.5
        facts.append(
            CandidateSets(
                f"s/{number // PER_SCENE}",
                f"f{number}",
                pool[members].astype(np.float32),
                looks[members].astype(np.float32),
            )
        )
    return tuple(facts)


def attack(facts: Sequence[CandidateSets], chosen: IntArray) -> float:
    """Share of the sets in which trees of another kind, fitted to other scenes, find the truth."""
    sets = np.stack([fact.text[k] for fact, k in zip(facts, chosen, strict=True)])
    rank = (sets[:, :, None] > sets[:, None]).sum(axis=2)
    x = np.concatenate([sets, sets - sets.mean(axis=1, keepdims=True), rank], axis=2)
    scenes = [fact.scene for fact in facts]
    right = 0
    for train, test in GroupKFold(4).split(x, groups=scenes):
        model = RandomForestClassifier(60, min_samples_leaf=3, random_state=0)
        model.fit(x[train].reshape(-1, x.shape[2]), np.tile(np.arange(4) == 0, len(train)))
        belief = model.predict_proba(x[test].reshape(-1, x.shape[2]))[:, 1].reshape(-1, 4)
        right += int((belief.argmax(axis=1) == 0).sum())
    return right / len(facts)


def test_a_model_that_is_fitted_anew_finds_little_in_chosen_sets() -> None:
    facts = leaking_facts()
    drawn = attack(facts, np.zeros(len(facts), dtype=np.int64))
    chosen = attack(facts, choose_sets(facts, 0))
    assert drawn > 0.42
    assert chosen < drawn - 0.08


def test_without_rounds_the_sets_tell_more(monkeypatch: pytest.MonkeyPatch) -> None:
    facts = leaking_facts()
    chosen = attack(facts, choose_sets(facts, 0))
    monkeypatch.setattr(balanced, "ROUNDS", 0)
    assert attack(facts, choose_sets(facts, 0)) > chosen + 0.05


def test_as_many_truths_as_wrong_options_lie_below_any_value() -> None:
    facts = leaking_facts()

    def measure_distance(chosen: IntArray) -> float:
        """The largest Kolmogorov-Smirnov distance of true from wrong options over the cues."""
        sets = np.stack([fact.text[k] for fact, k in zip(facts, chosen, strict=True)])
        return max(float(ks_2samp(sets[:, 0, cue], sets[:, 1:, cue].ravel()).statistic) for cue in range(3))

    assert measure_distance(np.zeros(len(facts), dtype=np.int64)) > 0.25
    assert measure_distance(choose_sets(facts, 0)) < 0.09


def test_every_rank_by_an_image_cue_comes_out_alike() -> None:
    facts = leaking_facts(images=2)

    def shares(chosen: IntArray) -> FloatArray:
        looks = np.stack([fact.looks[k] for fact, k in zip(facts, chosen, strict=True)])
        above = (looks[:, 1:] > looks[:, :1]).sum(axis=1)
        return np.stack([np.bincount(column, minlength=4) for column in above.T]) / len(facts)

    assert shares(np.zeros(len(facts), dtype=np.int64)).max() > 0.37
    assert shares(choose_sets(facts, 0)).max() < 0.35  # of some facts every set has the truth first


def test_the_choice_depends_on_the_facts_alone() -> None:
    facts = leaking_facts(images=1)
    order = np.random.default_rng(1).permutation(len(facts))
    chosen = choose_sets(facts, 0)
    assert np.array_equal(choose_sets([facts[k] for k in order], 0), chosen[order])
    assert np.array_equal(choose_sets(facts, 0), chosen)
    assert not np.array_equal(choose_sets(facts, 1), chosen)


def test_few_facts_teach_nothing_and_still_get_a_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(balanced, "_make_model")
    chosen = choose_sets(leaking_facts()[:10], 0)
    assert all(0 <= place < SETS for place in chosen.tolist())
    with pytest.raises(NameError):
        choose_sets(leaking_facts(), 0)
    assert choose_sets([], 0).tolist() == []
