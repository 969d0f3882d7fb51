"""The audit pool: the release's questions and more of the same facts, the same for any number of workers."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from tests.pipeline import planted
from vgbench_gen.pipeline import audit_pool
from vgbench_gen.pipeline.audit_pool import Pool, fill_pool
from vgbench_gen.pipeline.audit_steps import keep_one_per_truth
from vgbench_gen.pipeline.build import read_built_recipe
from vgbench_gen.pipeline.question_plan import QuestionPlan
from vgbench_gen.pipeline.recipe import Recipe
from vgbench_gen.quality.questions import Question, read_question
from vgbench_gen.store.dataset import load
from vgbench_gen.store.provenance import read_manifest


def pooled(folder: Path, release: list[Question], most: int = 60) -> Pool:
    scenes = [(scene["dataset"], scene["scene_id"]) for scene in read_manifest(folder)["scenes"]]
    return fill_pool(folder, read_built_recipe(folder), release, scenes, most)


@pytest.fixture(scope="module")
def release(audited: Path) -> list[Question]:
    return [read_question(item) for item in load(audited)]


def test_a_pool_from_nothing_asks_what_the_release_asks(audited: Path, release: list[Question]) -> None:
    """Asked by itself, a fact gets the words, options and claims that it has in the dataset; letters are dealt anew."""
    found = pooled(audited, [], most=10_000)
    mine = {
        (q.group, q.form, q.question, q.context, frozenset(q.options)) for q in release if q.task != "point_tracking"
    }
    asked = {
        (q.group, q.form, q.question, q.context, frozenset(q.options)) for m in found.questions.values() for q in m
    }
    assert mine <= asked
    pictures = {name for members in found.questions.values() for q in members for name in q.images}
    assert pictures  # named, though none was drawn


def test_a_small_cell_is_filled_by_asking_again(
    audited: Path, release: list[Question], monkeypatch: pytest.MonkeyPatch
) -> None:
    cell: audit_pool.Cell = ("homography_to_matrix", "multi-choice")
    facts = len({question.group for question in pooled(audited, release).questions[cell]})
    monkeypatch.setattr(audit_pool, "CONCLUSIVE", 2 * facts)
    found = pooled(audited, release)
    members = found.questions[cell]
    mine = [q.id for q in release if q.cell == cell]
    assert [q.id for q in members[: len(mine)]] != []
    assert {q.id for q in members[: len(mine)]} == set(mine)
    assert len(members) == 2 * facts
    assert found.asked_again[cell] == len(members) - len({q.group for q in members}) > 0
    assert len({(q.group, frozenset(q.options)) for q in members}) == len(members)  # never the same set again
    assert len({q.id for q in members}) == len(members)
    fresh = Counter(q.truth for q in members[len(mine) :])
    assert max(fresh.values()) - min(fresh.values()) <= 4  # two sources, whose last blocks may be torn
    claims = found.questions["relative_pose", "judgment"]
    assert Counter(q.truth for q in claims)[0] == len(claims) / 2
    again = pooled(audited, release[::-1])
    assert {c: [q.id for q in m] for c, m in again.questions.items()} == {
        c: [q.id for q in m] for c, m in found.questions.items()
    }


def test_a_pool_is_cut_at_its_size(audited: Path, release: list[Question]) -> None:
    found = pooled(audited, release, most=3)
    assert {len(members) for members in found.questions.values()} <= {2, 3, 4}


def test_tests_of_distributions_see_a_truth_once() -> None:
    a, b = planted.choices(4)[:2]
    yes, no, *_ = planted.claims(4)
    again = replace(a, id="again", options=a.options[::-1])
    third = replace(yes, id="third", twin="another claim")
    assert keep_one_per_truth([a, again, b]) == (a, b)
    assert keep_one_per_truth([yes, no, third]) == (yes, no)


def test_the_same_options_again_are_no_new_question() -> None:
    question = planted.choices(4)[0]
    plan = QuestionPlan(question.task, question.source, "val", "scene0000_00", question.group, "multi-choice", letter=2)
    sampler = audit_pool.PoolSampler(Recipe(), [question], 10)
    again = replace(question, id="again", options=question.options[::-1])
    sampler.take([((1, plan), (again,))])
    assert sampler.pool.questions[question.cell] == [question]
    sampler.take([((1, plan), (replace(again, options=("1 m", "2 m", "3 m", "4 m")),))])
    assert len(sampler.pool.questions[question.cell]) == 2
    assert sampler.pool.asked_again[question.cell] == 1
