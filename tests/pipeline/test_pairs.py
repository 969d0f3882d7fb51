"""Consistency pairs: as many as the recipe asks for, without moving any total; rows that hold on their own."""

from __future__ import annotations

import copy
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.facts_at_hand import count_dealt
from vgbench_gen.cli.main import main
from vgbench_gen.core.config import parse_config
from vgbench_gen.core.errors import ConfigError
from vgbench_gen.core.types import LETTERS, Candidate, Fact, Item
from vgbench_gen.pipeline.audit import audit
from vgbench_gen.pipeline.build import BuildReport, build
from vgbench_gen.pipeline.pick import Picker
from vgbench_gen.pipeline.plan import Plan, choose, difficulty_counts, pair_counts
from vgbench_gen.pipeline.question import ask_as_planned
from vgbench_gen.pipeline.question_plan import QuestionPlan
from vgbench_gen.pipeline.quotas import ITEMS
from vgbench_gen.pipeline.recipe import Recipe, load_recipe
from vgbench_gen.pipeline.subset import write_subset
from vgbench_gen.pipeline.summary import pair_lines
from vgbench_gen.quality.verify import group_by_scene, verify_item, verify_scene, verify_set
from vgbench_gen.scenes import discover
from vgbench_gen.store.dataset import Dataset, load
from vgbench_gen.tasks.base import tasks
from vgbench_gen.tasks.metric_depth import MetricDepth
from vgbench_gen.tasks.relative_pose import RelativePose
from vgbench_gen.tasks.row_evidence import NoiseRecord

VGBENCH = load_recipe("vgbench")
FORMATS = {name: tasks[name].formats for name in VGBENCH.items}
SCENES = [("scannet", 18), ("scannetpp", 14), ("ca1m", 26), ("wildrgbd", 10)]


def supply() -> list[QuestionPlan]:
    """24 facts per task and scene, as far as the recipe takes them; every task has another side."""
    plans = []
    for source, count in SCENES:
        for scene in range(count):
            for task, forms in FORMATS.items():
                if source not in VGBENCH.only_from.get(task, (source,)):
                    continue
                plans += [
                    QuestionPlan(
                        task, source, "val", f"{scene:03}", f"{task}/{source}/{scene}/{n}", form, n,
                        noise=(NoiseRecord(kept=1.0, draws=200, lead=(37 * n % 24) / 7),), frame="0",
                        counterpart_kind="" if form == "judgment" else "swap",
                        rejection_reason="" if VGBENCH.items[task].get(form) else "not_in_recipe",
                    )
                    for n in range(24)
                    for form in forms
                ]  # fmt: skip
    return plans


@cache
def planned(pairs: float) -> Plan:
    return choose(supply(), VGBENCH.model_copy(update={"pairs": pairs}), FORMATS)


def totals(plan: Plan, *names: str) -> Counter[tuple[str, ...]]:
    counts: Counter[tuple[str, ...]] = Counter()
    for entry in plan.chosen:
        known = {"form": entry.question_type} | {n: getattr(entry, n) for n in ("task", "source", "scene_id")}
        counts[tuple(known[name] for name in names)] += ITEMS[entry.question_type]
    return counts


def test_pairs_move_no_total() -> None:
    with_pairs, without = planned(0.15), planned(0.0)
    assert sum(totals(with_pairs, "task").values()) == 6000
    for names in (("task", "form"), ("source",), ("task", "source", "form"), ("task", "source", "scene_id", "form")):
        assert totals(with_pairs, *names) == totals(without, *names)
    plain = difficulty_counts(without.chosen)
    for cell, levels in difficulty_counts(with_pairs.chosen).items():
        assert all(abs(levels[name] - count) <= 2 for name, count in plain[cell].items())
    assert not pair_counts(without.chosen)


def test_more_than_a_tenth_of_the_benchmark_stands_in_pairs() -> None:
    plan = planned(0.15)
    both = Counter((e.group_id, e.question_type) for e in plan.chosen if e.paired)
    assert set(both.values()) == {2}
    assert 2 * len(both) / 6000 > 0.10
    counts = pair_counts(plan.chosen)
    per_scene = totals(plan, "task", "form", "source", "scene_id")
    for (task, form), count in totals(plan, "task", "form").items():
        due = 0.0 if form == "judgment" else 0.15 * count / 2
        # A pair needs the place of two facts in one scene.
        room = sum(number // 2 for key, number in per_scene.items() if key[:2] == (task, form))
        assert abs(counts.get(f"{task}/{form}", 0) - min(due, room)) <= 0.5
    # No truth is asked again: neither what stands in a pair nor any other.
    once = Counter(e.group_id for e in plan.chosen if not e.side)
    assert set(once.values()) == {1}


def test_letters_stay_balanced_and_partners_do_not_share_them() -> None:
    chosen = planned(0.15).chosen
    for count in count_dealt(chosen).values():
        assert max(count) - min(count) <= 1
    first = {(e.group_id, e.question_type): e.letter for e in chosen if e.paired and not e.side}
    same = [first[e.group_id, e.question_type] == e.letter for e in chosen if e.side and e.letter is not None]
    assert len(same) > 250
    assert 0.17 < np.mean(same) < 0.33  # chance is a quarter


def test_the_order_of_facts_does_not_matter() -> None:
    plans = [plan for plan in supply() if plan.task in {"relative_depth", "metric_depth"}]
    items = {task: VGBENCH.items[task] for task in ("relative_depth", "metric_depth")}
    recipe = VGBENCH.model_copy(update={"items": items, "sources": {}})
    expected = choose(plans, recipe, FORMATS).chosen
    again = choose([plans[k] for k in np.random.default_rng(0).permutation(len(plans))], recipe, FORMATS).chosen
    assert [(e.group_id, e.question_type, e.side, e.paired, e.letter) for e in expected] == [
        (e.group_id, e.question_type, e.side, e.paired, e.letter) for e in again
    ]


class Unchanged(MetricDepth):
    def counterpart(self, fact: Fact) -> Fact:
        return fact


def test_wrong_options_take_other_places_on_the_other_side() -> None:
    """Who reads both halves must not see in what stayed and what moved which option is right."""
    pool = tuple(Candidate(str(n), np.array([1.4**n])) for n in range(4))
    fact = Fact("metric_depth", 1, "", "ca1m", "s", "val", "k", ("0",), pool, 2, pool[2].value, 1.0, {}, "l")
    orders: Counter[str] = Counter()
    for n in range(120):
        plan = QuestionPlan("metric_depth", "ca1m", "val", "s", str(n), "multi-choice", letter=1)
        first, second = (
            ask_as_planned(fact, replace(plan, side=side), Unchanged(), Recipe())[1] for side in ("", "swap")
        )
        assert first is not None
        assert second is not None
        assert first.options[1].key == "2"
        assert second.options[1].key == "2"
        assert second.truth == 1
        orders["".join(option.key for option in second.options)] += 1
        orders["".join(option.key for option in first.options)] += 1
    assert len(orders) == 6
    assert max(orders.values()) < 80


def test_what_has_no_other_side_costs_only_the_pair() -> None:
    plans = [
        replace(plan, counterpart_kind=plan.counterpart_kind if plan.row % 5 == 0 else "")
        for plan in supply()
        if plan.task == "relative_depth" and plan.source != "scannetpp"
    ]
    recipe = VGBENCH.model_copy(update={"items": {"relative_depth": {"multi-choice": 300}}, "sources": {}})
    plan = choose(plans, recipe, FORMATS)
    assert len(plan.chosen) == 300
    assert {e.row % 5 for e in plan.chosen if e.paired} == {0}
    wanted = 300 * VGBENCH.pairs / 2
    # The last scenes may lack some, and half a pair is rounded.
    assert wanted - 3 <= pair_counts(plan.chosen)["relative_depth/multi-choice"] <= wanted + 0.5


def test_a_pair_takes_the_places_of_two() -> None:
    def pick(picker: Picker, wanted: int) -> list[tuple[int, str]]:
        facts = [[QuestionPlan("t", "ca1m", "val", "a", str(k), "multi-choice", k)] for k in range(4)]
        facts[2] = [replace(facts[2][0], counterpart_kind="swap")]
        return [(plan.row, plan.side) for plan in picker.pick(facts, {"multi-choice": wanted})]

    picker = Picker({}, None, 1.0, 1)
    assert pick(picker, 1) == [(0, "")]  # no room: the next scene makes up for it
    assert pick(picker, 3) == [(2, "swap"), (2, ""), (0, "")]
    assert pick(Picker({}, None, 0.0, 1), 3) == [(0, ""), (1, ""), (2, "")]
    assert pick(Picker({}, None, 1.0, 1), 4) == [(2, "swap"), (2, ""), (0, ""), (1, "")]


@pytest.mark.parametrize("share", [-0.1, 1.1])
def test_a_share_is_between_none_and_all(share: float) -> None:
    with pytest.raises(ConfigError, match="pairs"):
        parse_config({"pairs": share}, Recipe, "own.toml")


# --- rows -------------------------------------------------------------------------------------------------------


def small() -> Recipe:
    tasks_ = ("relative_pose", "homography_to_matrix", "object_distance", "relative_depth")
    return load_recipe("default").model_copy(update={"seed": 5, "facts_per_scene": 4, "pairs": 1.0, "tasks": tasks_})


@pytest.fixture(scope="module")
def built(raw_room: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, BuildReport, Dataset]:
    out = tmp_path_factory.mktemp("pairs")
    report = build(small(), raw_room, out)
    return out, report, load(out)


def partners(items: Sequence[Item]) -> list[tuple[Item, Item]]:
    """(first side, other side) of every pair."""
    sides = {(item.pair_id, item.evidence["side"]): item for item in items if item.pair_id}
    return [(sides[pair, ""], item) for (pair, side), item in sides.items() if side]


def test_rows_of_a_pair_share_the_truth_and_nothing_else_that_tells(
    built: tuple[Path, BuildReport, Dataset],
) -> None:
    _, report, items = built
    found = partners(list(items))
    assert len(found) == sum(report.composed.pairs.values()) > 10
    assert sum(bool(item.pair_id) for item in items) == 2 * len(found)
    for first, other in found:
        assert (first.group_id, first.question_type, first.difficulty) == (
            other.group_id, other.question_type, other.difficulty
        )  # fmt: skip
        assert other.evidence["side"] == tasks[other.task].counterpart_kind
        assert first.id != other.id
        assert (first.question, first.context, first.options, first.images) != (
            other.question, other.context, other.options, other.images
        )  # fmt: skip
    assert all(item.evidence["side"] == "" for item in items if not item.pair_id)
    assert {first.task for first, _ in found} == {name for name in small().tasks if tasks[name].counterpart_kind}
    (line,) = pair_lines(report)
    assert line.startswith(f"pairs   {2 * len(found)} of {len(items)} items")


def test_partners_are_verified_like_any_row(built: tuple[Path, BuildReport, Dataset], raw_room: Path) -> None:
    _, _, items = built
    problems = verify_set(items)
    for item in items:
        problems += verify_item(item, [items.image_bytes(item, k) for k in range(len(item.images))], small().gates)
    jobs, missing = group_by_scene(items, discover(raw_room), small().gates)
    for job in jobs:
        problems += verify_scene(job)
    assert problems + missing == []


def test_a_choice_of_single_partners_is_verified_too(
    built: tuple[Path, BuildReport, Dataset], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    home, _, items = built
    twins = {item.twin_id: item for item in items if item.twin_id and not item.pair_id}
    singles = [pair[0] for pair in partners(list(items))] + list(twins.values())[::2]
    whole = list(one(items, "object_distance"))
    kept = {item.id for item in [*singles, *whole]}
    assert verify_set([item for item in items if item.id in kept])
    write_subset(items, home, tmp_path / "hard", kept, "hard", {"status": "candidate"})
    chosen = load(tmp_path / "hard")
    assert {item.id for item in chosen} == kept
    assert {item.id for item in chosen if item.pair_id} == {item.id for item in whole}
    assert not any(item.twin_id for item in chosen if item.id in {twin.id for twin in twins.values()})
    assert main(["verify", str(tmp_path / "hard"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"items": len(kept), "from_scenes": 0, "problems": []}
    found = audit(tmp_path / "hard", only=("evidence",), workers=1)
    assert [finding.verdict for finding in found.findings] == ["passed"]
    # A pair that is there and is none is still found.
    assert verify_set([whole[0], replace(whole[1], evidence=dict(whole[1].evidence) | {"side": ""})], chosen=True)


def one(items: Dataset, task: str) -> tuple[Item, Item]:
    return next(pair for pair in partners(list(items)) if pair[0].task == task)


def pair_problems(*rows: Item) -> list[str]:
    return [problem.check for problem in verify_set(rows)]


def test_a_pair_that_is_none_is_found(built: tuple[Path, BuildReport, Dataset]) -> None:
    _, _, items = built
    first, other = one(items, "object_distance")
    assert pair_problems(first, other) == []
    assert pair_problems(other) == pair_problems(first) == ["pairs"]
    assert pair_problems(first, replace(other, pair_id="")) == ["pairs", "pairs"]
    assert pair_problems(first, other, replace(first, id="another")) == ["pairs"]
    assert pair_problems(first, replace(other, evidence=dict(other.evidence) | {"side": ""})) == ["pairs"]
    assert pair_problems(first, replace(other, evidence=dict(other.evidence) | {"side": "back"})) == ["pairs"]
    assert pair_problems(first, replace(other, group_id="0" * 24)) == ["pairs"]
    longer = copy.deepcopy(dict(other.evidence))
    for option in longer["options"]:
        option["value"] = [2 * option["value"][0]]
    assert pair_problems(first, replace(other, evidence=longer)) == ["pairs"]


@pytest.mark.parametrize("task", ["relative_pose", "homography_to_matrix"])
def test_a_partner_in_the_first_ones_direction_is_found(
    built: tuple[Path, BuildReport, Dataset], task: str, raw_room: Path
) -> None:
    """Its options, as texts and as values, are those of the first side."""
    _, _, items = built
    first, other = one(items, task)
    evidence: dict[str, Any] = copy.deepcopy(dict(other.evidence))
    values = [option["value"] for option in first.evidence["options"]]
    place, right = LETTERS.index(first.answer), LETTERS.index(other.answer)
    order = list(range(4))
    order[right], order[place] = order[place], order[right]
    for option, k in zip(evidence["options"], order, strict=True):
        option["value"] = values[k]
    evidence["truth"]["value"] = evidence["options"][right]["value"]
    wrong = replace(
        other,
        evidence=evidence,
        options=tuple(first.options[k] for k in order),
        answer_value=tuple(np.array(evidence["truth"]["value"]).ravel().tolist()),
    )
    images = [items.image_bytes(other, k) for k in range(len(other.images))]
    assert verify_item(other, images, small().gates) == []
    assert {"recomputed", "second_route"} <= {p.check for p in verify_item(wrong, images, small().gates)}
    (job,) = (job for job in group_by_scene([wrong], discover(raw_room), small().gates)[0] if job.items)
    assert "raw_route" in {p.check for p in verify_scene(job)}


def test_a_task_that_forgets_to_turn_its_values_is_found(
    built: tuple[Path, BuildReport, Dataset], raw_room: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same mistake on the way there and back: only another route to the answer shows it."""
    turned = RelativePose.counterpart

    def careless(self: RelativePose, fact: Fact) -> Fact | None:
        other = turned(self, fact)
        if other is None:
            return None
        kept = tuple(replace(c, value=old.value) for c, old in zip(other.candidates, fact.candidates, strict=True))
        return replace(other, candidates=kept, second_value=fact.second_value)

    monkeypatch.setattr(RelativePose, "counterpart", careless)
    recipe = small().model_copy(update={"tasks": ("relative_pose",), "margins": "recorded"})
    build(recipe, raw_room, tmp_path / "b")
    items = load(tmp_path / "b")
    sides = [other for _, other in partners(list(items))]
    assert sides
    for item in sides:
        images = [items.image_bytes(item, k) for k in range(len(item.images))]
        assert "recomputed" in {p.check for p in verify_item(item, images, recipe.gates)}
