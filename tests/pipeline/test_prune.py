"""Pruning takes what the text gives away, whole groups at a time, and leaves letters even."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from tests.pipeline import planted
from tests.store.examples import make_item, textured
from vgbench_gen.core.errors import ConfigError, DatasetError
from vgbench_gen.core.types import Item
from vgbench_gen.executors import Engine
from vgbench_gen.pipeline.prune import choose, find_units, prune
from vgbench_gen.quality.questions import Question
from vgbench_gen.store.dataset import load
from vgbench_gen.store.media import MediaStore
from vgbench_gen.store.pictures import encode_jpeg
from vgbench_gen.store.provenance import read_manifest
from vgbench_gen.store.shards import write_items


def half_leaking() -> list[Question]:
    """80 questions whose truth is the middle one, among 160 fair ones; consistency pairs of one of each kind."""
    fair, leaking = planted.choices(160), planted.perturbed(planted.choices(240)[160:])
    leaking = [replace(question, pair=f"pair{k}") if k < 4 else question for k, question in enumerate(leaking)]
    return [replace(q, pair=f"pair{k}") if k < 4 else q for k, q in enumerate(fair)] + leaking


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("leaking")
    media = MediaStore(folder / "media")
    names = [media.put(encode_jpeg(textured(64, 48, k)), "jpg") for k in range(3)]
    items: list[Item] = []
    for k, q in enumerate(half_leaking()):
        items.append(
            make_item(k, [names[k % 3]], id=q.id, group_id=q.group, scene_id=q.scene.partition("/")[2], pair_id=q.pair,
                      question=q.question, context=q.context, options=q.options, answer="ABCD"[q.truth], evidence={})
        )  # fmt: skip
    write_items(folder / "items", items, media)
    return folder


def test_units_hold_what_belongs_together() -> None:
    a, b, c, d = planted.choices(4)
    found = find_units([replace(a, twin="t"), replace(b, pair="p"), replace(c, twin="t", pair="p"), d])
    assert sorted(sorted(q.id for q in unit) for unit in found) == [["choice0", "choice1", "choice2"], ["choice3"]]


def test_what_leaks_goes_first_and_letters_stay_even(dataset: Path, tmp_path: Path) -> None:
    report = prune(dataset, tmp_path / "new", 0.2, rounds=2)
    removed = {p.id for p in report.removed}
    assert 40 <= len(removed) <= 48
    assert len(removed & {f"choice{k}" for k in range(160, 240)}) >= 0.85 * len(removed)
    assert {p.round for p in report.removed} == {1, 2}
    kept = load(tmp_path / "new")
    assert [item.id for item in kept] == [item.id for item in load(dataset) if item.id not in removed]
    assert [item.index for item in kept] == list(range(report.kept))
    letters = Counter(item.answer for item in kept)
    assert max(letters.values()) - min(letters.values()) <= 1
    partners = Counter(item.pair_id for item in kept if item.pair_id)
    assert set(partners.values()) <= {2}
    assert kept.image_bytes(kept[5], 0) == load(dataset).image_bytes(kept[5].id, 0)
    manifest = read_manifest(tmp_path / "new")
    assert {entry["id"] for entry in manifest["pruned"]["removed"]} == removed
    assert "text-only" in manifest["pruned"]["why"]
    assert manifest["counts"]["items"] == report.kept == len(kept)


def test_a_fair_set_loses_little_and_everything_is_refused_that_makes_no_sense(dataset: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="above 0 and below 1"):
        prune(dataset, tmp_path / "new", 1.5)
    (tmp_path / "full").mkdir()
    (tmp_path / "full/file").write_text("mine")
    with pytest.raises(DatasetError, match="something there already"):
        prune(dataset, tmp_path / "full", 0.1)
    assert not choose([], 0.1, 2, Engine()).removed
