"""Other wrong options for the same questions: the same truths, words and images, nothing measured again."""

from __future__ import annotations

import errno
import shutil
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.pipeline.same_bytes import content, leftovers, small_recipe
from vgbench_gen.core.errors import ConfigError, DatasetError
from vgbench_gen.core.types import LETTERS, Item
from vgbench_gen.pipeline import redraw as redrawing
from vgbench_gen.pipeline.question_plan import QuestionPlan
from vgbench_gen.pipeline.recipe import Recipe
from vgbench_gen.pipeline.redraw import RedrawReport, RedrawSettings, deal_row_letters, redraw
from vgbench_gen.pipeline.rows import row_with_words
from vgbench_gen.quality.verify import verify_item, verify_set
from vgbench_gen.store.dataset import load
from vgbench_gen.store.media import MediaStore
from vgbench_gen.store.provenance import dataset_fingerprint, read_manifest, write_manifest
from vgbench_gen.store.schema import make_item_row
from vgbench_gen.store.shards import write_items

Reference = tuple[Path, dict[str, str]]
NUMBERS = ("camera_parameters", "homography_to_matrix", "metric_depth", "object_distance", "relative_pose")


def settings(seed: int = 1, **shares: float) -> RedrawSettings:
    return RedrawSettings(shares or {"default": 1.0}, seed)


@pytest.fixture(scope="module")
def other(reference: Reference, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, RedrawReport]:
    out = tmp_path_factory.mktemp("redrawn") / "other"
    return out, redraw(reference[0], settings(), out)


def test_the_builds_own_seed_gives_the_build(reference: Reference, tmp_path: Path) -> None:
    report = redraw(reference[0], settings(0), tmp_path / "same")
    assert report.fingerprint == dataset_fingerprint(load(reference[0]))
    assert not report.kept
    assert sum(report.new.values()) > 30


def test_only_options_and_what_shows_them_change(reference: Reference, other: tuple[Path, RedrawReport]) -> None:
    before, (out, report) = list(load(reference[0])), other
    after = list(load(out))
    assert sum(report.new.values()) > 30
    allowed = {
        "id", "options", "answer", "distractors", "evidence", "distractor_seed", "strategy", "question", "context",
        "images", "frame_ids", "error_parts",
    }  # fmt: skip
    changed = 0
    for old, new in zip(before, after, strict=True):
        same = replace(new, **{name: getattr(old, name) for name in allowed})
        assert dataset_fingerprint([same]) == dataset_fingerprint([old])
        if old.question_type != "multi-choice":
            assert dataset_fingerprint([new]) == dataset_fingerprint([old])
            continue
        assert new.evidence["truth"] == old.evidence["truth"]
        if new.task in NUMBERS:
            assert (new.question, new.context, new.images) == (old.question, old.context, old.images)
        if new.distractor_seed == 1:
            assert new.id != old.id
            changed += set(new.options) != set(old.options) or new.images != old.images
    # Some tracks and poses of these few small frames have one set of options alone.
    assert changed > 0.5 * sum(report.new.values())


def test_the_new_rows_hold_and_letters_stay_even(other: tuple[Path, RedrawReport]) -> None:
    items = load(other[0])
    gates = small_recipe().gates
    assert not verify_set(items)
    assert not [
        p for i in items for p in verify_item(i, [items.image_bytes(i, k) for k in range(len(i.images))], gates)
    ]
    assert all(max(counts) - min(counts) <= 1 for counts in other[1].counts["letters"].values())
    sets = Counter(
        (item.task, item.evidence["side"], *sorted(str(o["value"]) for o in item.evidence["options"]))
        for item in items
        if item.question_type == "multi-choice"
    )
    assert max(sets.values()) == 1


def test_workers_change_nothing_and_all_is_there(
    reference: Reference, other: tuple[Path, RedrawReport], tmp_path: Path
) -> None:
    out = tmp_path / "two"
    assert redraw(reference[0], settings(), out, workers=2).fingerprint == other[1].fingerprint
    assert content(out) == content(other[0])
    assert content(reference[0]) == reference[1]
    assert not leftovers(out)
    assert not list(tmp_path.glob(".*"))
    # Facts and images lie beside the rows, so everything that works on a build works on it.
    assert redraw(out, settings(0), tmp_path / "back").fingerprint == dataset_fingerprint(load(reference[0]))


@pytest.mark.parametrize(("strategy", "draws"), [("set_first", [3, 0, 1, 2, 4, 5]), ("llm", [3])])
def test_draws_are_tried_until_one_may_be_asked_but_those_of_a_model(
    strategy: str, draws: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: list[int] = []

    def refuse(fact: Any, plan: QuestionPlan, *_: Any) -> QuestionPlan:
        tried.append(plan.draw)
        return replace(plan, rejection_reason="noise")

    monkeypatch.setattr(redrawing, "check_plan", refuse)
    plan = QuestionPlan("metric_depth", "ca1m", "val", "s", "g", "multi-choice", draw=3)
    some: Any = object()
    outcome = redrawing.ask_anew(some, plan, some, Recipe().model_copy(update={"strategy": strategy}))
    assert (tried, outcome.rejection_reason) == (draws, "noise")


def test_what_a_strategy_cannot_ask_keeps_its_options(reference: Reference, tmp_path: Path) -> None:
    report = redraw(reference[0], RedrawSettings({"perturbed": 1.0}, 3, (), "recorded"), tmp_path / "noisy")
    assert "metric_depth/perturbed/no_rule" in report.kept
    old = {item.id: item for item in load(reference[0])}
    for item in load(tmp_path / "noisy"):
        if item.task == "metric_depth" and item.question_type == "multi-choice":
            assert item.strategy == "set_first"
            assert item.options == old[item.id].options
    manifest = read_manifest(tmp_path / "noisy")
    assert manifest["redrawn"]["from"] == dataset_fingerprint(load(reference[0]))
    assert manifest["recipe"]["strategy"] == "perturbed"
    assert manifest["redrawn"]["kept"] == report.kept


def test_margins_that_are_only_recorded_make_a_stress_set(reference: Reference, tmp_path: Path) -> None:
    noisy = RedrawSettings({"perturbed": 1.0}, 3, ("camera_parameters",), "recorded")
    report = redraw(reference[0], noisy, tmp_path / "stress")
    assert not report.headline
    assert sum(report.new.values())
    # Without recorded margins nothing is drawn, and what is there is not replaced; another setting is named.
    none = redraw(reference[0], replace(noisy, margins="enforced"), tmp_path / "stress")
    assert (none.out, none.new, list(tmp_path.glob(".*"))) == (None, {}, [])
    again = redraw(reference[0], replace(noisy, seed=4), tmp_path / "stress")
    assert (again.out, again.replaced) == (tmp_path / "stress", {"seed": 3})
    for item in load(tmp_path / "stress"):
        made = item.task == "camera_parameters" and item.question_type == "multi-choice"
        assert (item.difficulty == "stress") == made == (item.strategy == "perturbed")


def test_dropping_what_cannot_be_asked_evens_the_letters_again(reference: Reference, tmp_path: Path) -> None:
    drop = RedrawSettings({"perturbed": 0.5, "sampled": 0.5}, 2, refused="drop")
    report = redraw(reference[0], drop, tmp_path / "fewer")
    items = list(load(tmp_path / "fewer"))
    gone = sum(report.kept.values())
    assert gone
    assert len(items) == len(load(reference[0])) - gone
    assert [item.index for item in items] == list(range(len(items)))
    assert not verify_set(items)
    dealt = deal_row_letters(dict(enumerate(map(make_item_row, items))), small_recipe().seed)
    assert all(items[k].answer == LETTERS[letter] for k, letter in dealt.items())
    assert all(max(counts) - min(counts) <= 1 for counts in report.counts["letters"].values())


def test_shares_are_met_within_each_task_and_source(reference: Reference, tmp_path: Path) -> None:
    redraw(reference[0], settings(2, set_first=0.5, sampled=0.5), tmp_path / "mixed")
    groups: dict[tuple[str, str], dict[str, str]] = {}
    for item in load(tmp_path / "mixed"):
        if item.question_type == "multi-choice" and item.distractor_seed == 2:
            groups.setdefault((item.task, item.source), {})[item.group_id] = item.strategy
    assert {name for names in groups.values() for name in names.values()} == {"set_first", "sampled"}
    for names in groups.values():
        found = Counter(names.values())
        assert abs(found["set_first"] - found["sampled"]) <= 1 + len(names) // 4  # some of either are refused


def test_a_disk_that_cannot_link_gets_copies(
    reference: Reference, other: tuple[Path, RedrawReport], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(self: Path, target: Path) -> None:
        raise OSError(errno.EXDEV, "other disk")

    monkeypatch.setattr(Path, "hardlink_to", refuse)
    redraw(reference[0], settings(), tmp_path / "apart")
    assert content(tmp_path / "apart") == content(other[0])
    shard = next(name for name in reference[1] if name.startswith("facts/"))
    assert not (tmp_path / "apart" / shard).samefile(reference[0] / shard)
    assert (other[0] / shard).samefile(reference[0] / shard)


def test_what_stands_in_the_way_is_not_replaced(reference: Reference, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("keep me")
    with pytest.raises(ConfigError, match="something else"):
        redraw(reference[0], settings(), tmp_path / "mine")
    with pytest.raises(ConfigError, match="--model"):
        redraw(reference[0], settings(llm=1.0), tmp_path / "new")
    with pytest.raises(ConfigError, match="sum to 1"):
        redraw(reference[0], settings(set_first=0.5, sampled=0.1), tmp_path / "new")
    bare = tmp_path / "bare"
    shutil.copytree(reference[0] / "items", bare / "items")
    shutil.copy(reference[0] / "manifest.json", bare)
    with pytest.raises(DatasetError, match="--build"):
        redraw(bare, settings(), tmp_path / "new")
    assert redraw(bare, settings(0), tmp_path / "new", build=reference[0]).total == len(load(bare))


def test_words_of_ones_own_stay_and_a_changed_fact_is_told(reference: Reference, tmp_path: Path) -> None:
    """A reworded row, and one whose truth the facts no longer have."""
    folder = tmp_path / "reworded"
    items = list(load(reference[0]))
    mine = next(k for k, i in enumerate(items) if i.task == "camera_parameters" and i.question_type == "multi-choice")
    items[mine] = row_with_words(items[mine], "My own words, in pixels or degrees?", "", "me", "en")
    gone = next(k for k, i in enumerate(items) if i.task == "relative_depth" and not i.pair_id)
    items[gone] = replace(items[gone], group_id="0" * 24)
    write_items(folder / "items", items, MediaStore(reference[0] / "media"))
    write_manifest(folder, {**read_manifest(reference[0]), "fingerprint": dataset_fingerprint(items)})
    report = redraw(folder, settings(), tmp_path / "new", build=reference[0])
    rows: list[Item] = list(load(tmp_path / "new"))
    assert rows[mine].question == items[mine].question
    assert rows[mine].paraphrase == "me"
    assert rows[mine].answer in LETTERS
    assert rows[mine].distractor_seed == 1
    assert report.kept["relative_depth/default/no_fact"] == 1
    assert rows[gone].distractor_seed == 0


def test_rows_reworded_by_themselves_keep_their_wording(reference: Reference, tmp_path: Path) -> None:
    seed = 2  # under which two truths get options that their words name
    redraw(reference[0], settings(seed), tmp_path / "plain")
    plain, folder = list(load(tmp_path / "plain")), tmp_path / "reworded"
    items = [
        row_with_words(item, f"Look closely. {item.question}", item.context, "somebody", "en")
        for item in load(reference[0])
    ]
    naming = {"relative_depth", "point_tracking"}  # their words list the marks of the options
    asked = [k for k, item in enumerate(plain) if item.distractor_seed == seed and item.task in naming]
    lost = next(k for k in asked if plain[k].question + plain[k].context != "".join(_words(items[k])))
    items[lost] = replace(items[lost], question="Which is it, of those that are marked?", context="Guess.")
    write_items(folder / "items", items, MediaStore(reference[0] / "media"))
    write_manifest(folder, {**read_manifest(reference[0]), "fingerprint": dataset_fingerprint(items)})
    report = redraw(folder, settings(seed), tmp_path / "new", build=reference[0])
    stay = {k for k in asked if items[k].group_id == items[lost].group_id}  # both sides of a pair
    assert report.kept[f"{items[lost].task}/default/words_name_options"] == len(stay)
    rows, moved = list(load(tmp_path / "new")), 0
    assert len({row.id for row in rows}) == len(rows)
    for k, (old, row, twin) in enumerate(zip(items, rows, plain, strict=True)):
        assert (row.template_id, row.paraphrase) == (old.template_id, "somebody")
        if k in stay:
            assert dataset_fingerprint([row]) == dataset_fingerprint([old])
        elif row.distractor_seed == seed:
            # The words of the same options by their template, after those that were put in front of them.
            assert (row.question, row.context) == (f"Look closely. {twin.question}", twin.context)
            assert (row.options, row.images, row.answer) == (twin.options, twin.images, twin.answer)
            assert row.id not in {old.id, twin.id}
            moved += (row.question, row.context) != (old.question, old.context)
    assert moved


def _words(item: Item) -> tuple[str, str]:
    return item.question.removeprefix("Look closely. "), item.context
