"""`vgbench difficulty`: what rows and saved replies say of each question, and what is read back by a sampler."""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.special import expit

from tests.evaluation.test_hard import answer, line, reply
from tests.pipeline.same_bytes import small_recipe
from tests.shared import make_once
from tests.store.examples import make_item, textured
from vgbench_gen.cli.main import main
from vgbench_gen.core.types import Item
from vgbench_gen.evaluation.benchmarks.vgbench.questions import Built
from vgbench_gen.evaluation.records import ReplyLine
from vgbench_gen.pipeline.build import build
from vgbench_gen.store.dataset import load
from vgbench_gen.store.media import MediaStore
from vgbench_gen.store.pictures import encode_jpeg
from vgbench_gen.store.provenance import dataset_fingerprint, write_manifest
from vgbench_gen.store.shards import write_items
from vgbench_gen.training.difficulty import (
    DifficultyReport,
    DifficultyRow,
    describe_question,
    measure_difficulty,
    write_difficulty,
)
from vgbench_gen.training.irt import fit_rasch

Capture = pytest.CaptureFixture[str]
COUNT, MODELS = 120, 6
TRUTH = "baseline:truth"
Says = Callable[[int, Item], ReplyLine]


def draw_right() -> Any:
    """(questions, models) replies that are right; questions 7 and 8 are keyed wrong: the weakest give their answers."""
    rng, abilities = np.random.default_rng(4), np.linspace(2.5, -2.5, MODELS)
    right = rng.random((COUNT, MODELS)) < 0.25 + 0.75 * expit(abilities - rng.normal(0, 1, (COUNT, 1)))
    right[7], right[8] = np.arange(MODELS) >= MODELS - 2, np.arange(MODELS) >= MODELS // 2
    return right


RIGHT = draw_right()


def say(model: int) -> Says:
    return lambda k, item: line(item, reply(item, not RIGHT[k, model]))


@pytest.fixture(scope="session")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """120 choices with the replies of six models; copy it before changing it."""

    def make(folder: Path) -> None:
        media = MediaStore(folder / "media")
        name = media.put(encode_jpeg(textured(64, 48)), "jpg")
        items = [make_item(k, [name], task=("b", "a")[k % 5 > 2], answer="ABCD"[k % 4]) for k in range(COUNT)]
        write_items(folder / "items", items, media)
        write_manifest(folder, {"fingerprint": dataset_fingerprint(items), "counts": {"items": COUNT}, "seed": 7})
        for model in range(MODELS):
            answer(folder, f"openai:m{model}", say(model))

    return make_once(tmp_path_factory, "asked", make)


@pytest.fixture
def folder(asked: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(asked, tmp_path / "set"))


def measure(folder: Path, *names: str) -> DifficultyReport:
    return measure_difficulty(Built(folder), names)


def columns(rows: Sequence[DifficultyRow], *names: str) -> list[tuple[Any, ...]]:
    return [tuple(getattr(row, name) for name in names) for row in rows]


def test_rates_abilities_and_difficulties_follow_the_replies(folder: Path) -> None:
    found = measure(folder)
    assert columns(found.rows, "models", "pass_rate") == [(MODELS, pytest.approx(one.mean())) for one in RIGHT]
    assert [row.id for row in found.rows] == [item.id for item in load(folder)]
    assert [*found.models.index] == [f"openai:m{model}" for model in range(MODELS)]
    assert found.models["ability"].mean() == pytest.approx(0, abs=1e-9)
    rates, difficulties = (np.array([getattr(row, n) for row in found.rows]) for n in ("pass_rate", "irt_difficulty"))
    assert np.corrcoef(rates, difficulties)[0, 1] < -0.9
    assert [row.id for row in found.suspects] == ["item0007", "item0008"]
    assert found.suspects[0].point_biserial < found.suspects[1].point_biserial
    fit = fit_rasch(RIGHT.astype(float), np.full(COUNT, 0.25))
    assert [row.irt_difficulty for row in found.rows] == pytest.approx(fit.difficulties.tolist(), abs=1e-6)
    assert [row.irt_error for row in found.rows] == pytest.approx(fit.difficulty_errors.tolist(), abs=1e-6)
    abilities = found.models["ability"][[f"openai:m{model}" for model in range(MODELS)]]
    for row, right in zip(found.rows, RIGHT, strict=True):
        alike = right.all() or not right.any()
        expected = math.nan if alike else np.corrcoef(right, abilities)[0, 1]
        assert row.point_biserial == pytest.approx(expected, nan_ok=True)
    assert (found.models["answered"] == COUNT).all()
    assert found.tasks["count"].sum() == COUNT
    medians = {task: np.median([row.irt_difficulty for row in found.rows if row.task == task]) for task in "ab"}
    assert [*found.tasks.index] == sorted("ab", key=lambda task: -medians[task])
    assert found.tasks["50%"].to_dict() == pytest.approx(medians)


def test_only_plain_replies_that_arrived_count(folder: Path) -> None:
    def more(k: int, item: Item) -> ReplyLine:
        if k == 0:
            return line(item, None)  # failed
        if k == 1:
            return line(item, "I'm sorry, but I can't help with that.")
        return line(item, item.answer, stage="blind" if k == 2 else "", rotation=int(k == 3))

    before = measure(folder)
    answer(folder, "openai:more", more)
    answer(folder, "agent:react+openai:more?tools=classical,oracle", say(0))
    found = measure(folder)
    assert [row.models for row in found.rows[:5]] == [MODELS, MODELS + 1, MODELS, MODELS, MODELS + 1]
    assert found.rows[1].pass_rate == pytest.approx(before.rows[1].pass_rate * MODELS / (MODELS + 1))
    assert found.models.loc["openai:more", "answered"] == COUNT - 3
    assert len(found.models) == MODELS + 1  # no oracle
    answer(folder, "openai:gone", lambda k, item: line(item, None))
    assert [*measure(folder).models.index] == [*found.models.index]
    named = measure(folder, "openai:m0", "openai:m5", "openai:more")
    assert sorted(named.models.index) == ["openai:m0", "openai:m5", "openai:more"]
    some = measure(folder, "openai:m0", "openai:more").rows[2]
    assert (some.models, some.pass_rate) == (1, RIGHT[2, 0])
    assert math.isnan(some.point_biserial)


def test_repeats_of_a_request_count_as_one_reply(folder: Path) -> None:
    path = answer(folder, "openai:twice", lambda k, item: line(item, item.answer))
    text = path.read_text()
    answer(folder, "openai:twice", lambda k, item: line(item, reply(item, wrong=True), epoch=1))
    assert path.read_text().startswith(text)
    found = measure(folder, "openai:m0", "openai:twice")
    assert columns(found.rows, "models", "pass_rate") == [(2, (one + 0.5) / 2) for one in RIGHT[:, 0]]


def test_solvers_are_a_column_and_no_model_unless_named(folder: Path) -> None:
    assert any("baseline:solvers" in note for note in measure(folder).notes)
    said = ["I cannot answer this question: no solver is made for it.", None, "wrong", "right"]
    answer(
        folder,
        "baseline:solvers",
        lambda k, item: line(
            item, {"right": item.answer, "wrong": reply(item, True)}.get(str(one := said[k % 4]), one)
        ),
    )
    answer(folder, TRUTH, lambda k, item: line(item, item.answer))
    expected = ["none", "none", "wrong", "right"] * (COUNT // 4)
    found, named = measure(folder), measure(folder, "openai:m0", "openai:m1")
    for report, models in ((found, MODELS), (named, 2)):
        assert [row.solver for row in report.rows] == expected
        assert len(report.models) == models
        assert not report.notes
    both = measure(folder, "openai:m0", "openai:m1", TRUTH, "baseline:solvers")
    assert sorted(both.models.index) == ["baseline:solvers", TRUTH, "openai:m0", "openai:m1"]
    assert both.models.index[0] == TRUTH
    assert sorted(measure(folder, "openai:m0", "baseline_truth").models.index) == [TRUTH, "openai:m0"]  # by its file
    assert both.models.loc["baseline:solvers", "answered"] == COUNT // 2  # what it declines is no reply


def test_questions_that_nobody_was_asked_have_no_rate(folder: Path) -> None:
    for path in (folder / "replies").glob("*.jsonl"):
        path.write_text("".join(path.read_text().splitlines(keepends=True)[:-20]))
    found = measure(folder)
    assert [row.models for row in found.rows] == [MODELS] * (COUNT - 20) + [0] * 20
    assert all(math.isnan(one.irt_difficulty + one.irt_error) and math.isnan(one.pass_rate) for one in found.rows[-20:])
    assert "100 of 120 questions" in found.notes[0]
    assert found.tasks["count"].sum() == COUNT - 20


@pytest.mark.parametrize(("left", "named"), [((), "no replies"), ((0,), "openai:m0"), ((TRUTH,), "no model")])
def test_fewer_than_two_models_are_refused(folder: Path, left: Sequence[Any], named: str, capsys: Capture) -> None:
    shutil.rmtree(folder / "replies")
    for one in left:
        spec, said = (f"openai:m{one}", say(one)) if one != TRUTH else (TRUTH, lambda k, item: line(item, item.answer))
        answer(folder, spec, said)
    assert main(["difficulty", str(folder)]) == 2
    (told,) = capsys.readouterr().err.splitlines()
    assert f"{folder / 'replies'}: found" in told
    assert named in told
    assert "vgbench eval" in told
    assert not (folder / "difficulty.jsonl").exists()


def test_the_verb_prints_a_page_and_writes_what_is_read_back(folder: Path, capsys: Capture) -> None:
    assert main(["difficulty", str(folder)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) <= 20
    assert lines[0] == f"{COUNT} of {COUNT} questions answered by some of {MODELS} models"
    assert any("item0007" in told and "Check the key" in told for told in lines)
    first = (folder / "difficulty.jsonl").read_bytes()
    rows = measure(folder).rows
    read = [json.loads(line) for line in first.splitlines()]
    assert [one["id"] for one in read] == [row.id for row in rows]
    for row, stored in zip(rows, read, strict=True):
        values = {name: getattr(row, name) for name in DifficultyRow.__slots__}
        assert stored == pytest.approx({name: one for name, one in values.items() if one == one}, abs=5e-5)  # no NaN
    assert main(["difficulty", str(folder), "--out", str(folder / "other.jsonl"), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (folder / "other.jsonl").read_bytes() == first == (folder / "difficulty.jsonl").read_bytes()
    assert [one["model"] for one in told["models"]] == [*measure(folder).models.index]
    assert {one["task"] for one in told["tasks"]} == {"a", "b"}
    assert [one["id"] for one in told["suspects"]] == ["item0007", "item0008"]
    assert load(folder)[0].id == rows[0].id  # the file is not taken for items


def test_rows_tell_margin_lead_overlap_and_images(raw_room: Path, tmp_path: Path) -> None:
    kinds = ("metric_depth", "relative_depth", "relative_pose")
    build(small_recipe(tasks=kinds), raw_room, tmp_path, 1)
    items = [*load(tmp_path)]
    assert {item.task for item in items} == set(kinds)
    for item in items:
        row, two = describe_question(item), item.task == "relative_pose"
        assert (row.id, row.task, row.question_type, row.frames) == (item.id, item.task, item.question_type, 1 + two)
        assert row.hops == (4 if item.task == "relative_depth" else 1)
        margins = item.evidence["fact"]["margins"].values()
        assert row.margin == pytest.approx(min(margins))
        assert row.lead == item.evidence["noise"]["lead"]
        if two:
            assert row.overlap == item.evidence["truth"]["evidence"]["pair"]["overlap"]
        else:
            assert math.isnan(row.overlap)
    write_difficulty(tmp_path / "difficulty.jsonl", [describe_question(item) for item in items])
    written = (tmp_path / "difficulty.jsonl").read_text().splitlines()
    assert {json.loads(line)["solver"] for line in written} == {"none"}
    imported = describe_question(make_item(3, ["a.jpg", "b.jpg"]))
    assert (imported.hops, imported.frames) == (0, 2)
    assert math.isnan(imported.margin)
