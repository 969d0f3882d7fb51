"""The audit pool: the release's questions and more of the same facts, the same for any number of workers."""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path

import pytest

from vgbench_gen.pipeline import audit_pool
from vgbench_gen.pipeline.audit_pool import Cell, fill_pool
from vgbench_gen.pipeline.build import read_built_recipe
from vgbench_gen.pipeline.question_plan import ASKED, read_questions, write_questions
from vgbench_gen.quality.questions import Question, read_question
from vgbench_gen.store.dataset import load
from vgbench_gen.store.provenance import read_manifest


def pooled(folder: Path, release: list[Question], most: int = 60) -> dict[Cell, list[Question]]:
    scenes = [(scene["dataset"], scene["scene_id"]) for scene in read_manifest(folder)["scenes"]]
    return fill_pool(folder, read_built_recipe(folder), release, scenes, most)[0]


@pytest.fixture(scope="module")
def release(audited: Path) -> list[Question]:
    return [read_question(item) for item in load(audited)]


def test_a_pool_from_nothing_asks_what_the_release_asks(
    audited: Path, release: list[Question], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Asked by itself, a fact gets the words, options and claims that it has in the dataset; letters are dealt anew."""
    monkeypatch.setattr(audit_pool, "_CHOSEN", (*audit_pool._CHOSEN, ASKED))
    found = pooled(audited, [], most=10_000)
    mine = {
        (q.group, q.form, q.question, q.context, frozenset(q.options)) for q in release if q.task != "point_tracking"
    }
    asked = {(q.group, q.form, q.question, q.context, frozenset(q.options)) for m in found.values() for q in m}
    assert mine <= asked
    pictures = {name for members in found.values() for q in members for name in q.images}
    assert pictures  # named, though none was drawn


def test_a_pool_holds_the_release_and_what_was_not_chosen(
    audited: Path, release: list[Question], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit_pool, "_CHOSEN", (*audit_pool._CHOSEN, ASKED))
    part = [question for question in release if int(question.group, 16) % 2]  # as if no more had been chosen
    found = pooled(audited, part, most=10_000)
    for cell, members in found.items():
        mine = [question.id for question in part if question.cell == cell]
        assert {question.id for question in members[: len(mine)]} == set(mine)
        assert len({question.id for question in members}) == len(members)
        fresh = Counter(question.truth for question in members[len(mine) :])
        if cell[1] == "multi-choice" and fresh:
            assert max(fresh.values()) - min(fresh.values()) <= 4  # blocks of a few sources, whose last may be torn
        if cell[1] == "judgment":
            assert Counter(question.truth for question in members)[0] == len(members) / 2
    assert sum(map(len, found.values())) >= len(release) > len(part)
    again = pooled(audited, part[::-1], most=10_000)
    assert {c: [q.id for q in m] for c, m in again.items()} == {c: [q.id for q in m] for c, m in found.items()}


def test_a_folder_without_its_questions_asks_them_anew(audited: Path, release: list[Question], tmp_path: Path) -> None:
    shutil.copytree(audited / "facts", tmp_path / "facts")
    shutil.copy(audited / "manifest.json", tmp_path)
    expected, found = pooled(audited, release), pooled(tmp_path, release)
    assert {c: [q.id for q in m] for c, m in found.items()} == {c: [q.id for q in m] for c, m in expected.items()}


def test_a_pool_asks_nothing_that_was_refused(audited: Path, tmp_path: Path) -> None:
    shutil.copytree(audited / "facts", tmp_path / "facts")
    shutil.copy(audited / "manifest.json", tmp_path)
    choosing = read_built_recipe(audited).choosing
    asked = [plan for plan, outcome in read_questions(audited, choosing) or [] if outcome == ASKED]
    outcomes = ("cell_full", "noise", "asked_otherwise", "unbalanced", "cell_full", "option_set_taken")
    told = [(plan, outcomes[k % len(outcomes)]) for k, plan in enumerate(asked)]
    write_questions(tmp_path, told, choosing)
    found = {(q.group, q.form) for members in pooled(tmp_path, [], most=10_000).values() for q in members}
    assert found == {plan.key for plan, outcome in told if outcome in outcomes[::2]} != set()


def test_a_pool_is_cut_at_its_size(audited: Path, release: list[Question]) -> None:
    found = pooled(audited, release, most=3)
    assert {len(members) for members in found.values()} <= {2, 3, 4}
