"""What a build's facts teach: the same for any number of workers, and again for whoever draws options later."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.pipeline.same_bytes import content, small_recipe
from vgbench_gen.core.types import Fact, Item
from vgbench_gen.pipeline import compose
from vgbench_gen.pipeline.audit_pool import fill_pool
from vgbench_gen.pipeline.build import recompose
from vgbench_gen.pipeline.compose import list_fact_shards
from vgbench_gen.pipeline.known import learn_from_shards
from vgbench_gen.pipeline.measure import shard_path
from vgbench_gen.quality.questions import read_question
from vgbench_gen.store.dataset import load
from vgbench_gen.store.schema import FACTS, REJECTS
from vgbench_gen.store.shards import read_metadata, read_shard, write_shard
from vgbench_gen.tasks import _known
from vgbench_gen.tasks.base import tasks

TASKS = ("object_distance", "object_location")
RECIPE = small_recipe().model_copy(update={"tasks": TASKS, "pairs": 0.0})
COPIES = 6

Teach = Callable[[int], None]


def set_fewest(patch: pytest.MonkeyPatch, facts: int) -> None:
    """Sets the fewest facts that teach something; workers are told what was learnt, so this process is enough."""
    patch.setattr(_known, "FEWEST_FACTS", facts)
    patch.setattr(_known, "FEWEST_SCENES", 2)
    patch.setattr(compose, "FEW", 0)  # trials go to workers, however few


@pytest.fixture
def teach(monkeypatch: pytest.MonkeyPatch) -> Teach:
    """As `set_fewest`, for one test."""
    return lambda facts: set_fewest(monkeypatch, facts)


@pytest.fixture(scope="module")
def many(reference: tuple[Path, dict[str, str]], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Facts of a small build, as if they had been measured in several scenes."""
    out = tmp_path_factory.mktemp("many")
    shutil.copytree(reference[0] / "media", out / "media")
    for path in list_fact_shards(reference[0]):
        facts, about = [fact for fact in read_shard(path, FACTS) if fact.task in TASKS], read_metadata(path)
        for k in range(COPIES if facts else 0):
            scene = f"{facts[0].scene_id}-{k}"
            # Like facts with like answers, not the same ones: those would be known to every reader.
            there = [replace(_scaled(fact, 0.75 * 1.12**k), scene_id=scene) for fact in facts]
            notes = {**about, "scene_id": scene}
            write_shard(shard_path(out, "facts", path.parent.name, scene), there, FACTS, notes)
            write_shard(shard_path(out, "rejects", path.parent.name, scene), [], REJECTS, notes)
    return out


def _scaled(fact: Fact, ratio: float) -> Fact:
    """The fact as if all of it stood so much farther off."""
    truth = fact.truth_candidate
    evidence = json.loads(json.dumps(dict(truth.evidence)))
    for about in (evidence, evidence.get("a", {}), evidence.get("b", {})):
        if "corners_m" in about:
            about["corners_m"] = (np.array(about["corners_m"]) * ratio).tolist()
    value = tasks[fact.task].rounded(truth.value * ratio)
    members = [replace(c, value=value, evidence=evidence) if c is truth else c for c in fact.candidates]
    return replace(fact, candidates=tuple(members))


def composed(many: Path, out: Path, workers: int = 1) -> dict[str, str]:
    shutil.copytree(many, out)
    recompose(RECIPE, out, workers)
    return {name: digest for name, digest in content(out).items() if name.startswith("items")}


@pytest.fixture(scope="module")
def taught(many: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The questions about them, composed by one worker that learnt from four facts; read only."""
    out = tmp_path_factory.mktemp("taught") / "out"
    with pytest.MonkeyPatch.context() as patch:
        set_fewest(patch, 4)
        composed(many, out)
    return out


def said(item: Item) -> tuple[str, str, str, frozenset[str]]:
    question = read_question(item)
    return question.group, question.form, question.question, frozenset(question.options)


def test_any_number_of_workers_knows_the_same(many: Path, taught: Path, teach: Teach, tmp_path: Path) -> None:
    teach(4)
    one = {name: digest for name, digest in content(taught).items() if name.startswith("items")}
    assert one == composed(many, tmp_path / "two", workers=2)
    teach(10**6)
    assert one != composed(many, tmp_path / "untaught")


def test_the_audit_pool_asks_as_the_dataset_does(taught: Path, teach: Teach) -> None:
    teach(4)
    items = load(taught)
    scenes = {(item.source, item.scene_id) for item in items}
    found = fill_pool(taught, RECIPE, [], scenes, most=10_000)
    asked = {(q.group, q.form, q.question, frozenset(q.options)) for m in found.questions.values() for q in m}
    mine = {said(item) for item in items}
    assert {form for _, form, _, _ in mine} == {"judgment", "multi-choice", "open-ended"}
    assert mine <= asked


def test_only_facts_that_may_be_asked_teach(many: Path, teach: Teach) -> None:
    teach(4)
    shards = list_fact_shards(many)
    facts: list[Fact] = [fact for path in shards for fact in read_shard(path, FACTS)]
    known = learn_from_shards(shards, RECIPE)
    assert {name: len(of.scenes) for name, of in known.items()} == {
        name: sum(fact.task == name for fact in facts) for name in TASKS
    }
    assert learn_from_shards(shards[::-1], RECIPE)["object_distance"].scenes == known["object_distance"].scenes
    elsewhere = RECIPE.model_copy(update={"only_from": {"object_location": ("scannetpp",)}})
    assert set(learn_from_shards(shards, elsewhere)) == {"object_distance"}
    other = next(iter({fact.split for fact in facts})) + "x"
    assert not learn_from_shards(shards, RECIPE.model_copy(update={"only_splits": (other,)}))
