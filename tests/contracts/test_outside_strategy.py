"""An option strategy from another package is chosen by name, under the gates that no strategy can avoid."""

from __future__ import annotations

import pytest

import vgbench_gen
from tests.contracts.conftest import Outside

pytestmark = pytest.mark.timeout(600)  # whole builds, on machines that may be busy


def test_a_strategy_from_outside_draws_options_that_every_verb_takes(outside: Outside) -> None:
    assert {verb: told.errors for verb, told in outside.told.items() if told.status} == {}
    before = {item.group_id: item for item in outside.built if item.options}
    items = [item for item in outside.far if item.options]
    assert len(items) == len(before) > 4
    assert {item.strategy for item in items} == {"far_apart"}
    assert all(d.strategy == "far_apart" and d.separation >= 1 for item in items for d in item.distractors)
    assert all(item.answer_value == before[item.group_id].answer_value for item in items)
    assert any(set(item.options) != set(before[item.group_id].options) for item in items)


def test_a_recipe_names_a_strategy_from_outside(outside: Outside) -> None:
    items = [item for item in vgbench_gen.load(outside.home / "other") if item.options]
    assert items
    assert {item.strategy for item in items} == {"far_apart"}
    unknown = outside.refused["distractors"]
    assert unknown.status == 2
    assert "Did you mean far_apart?" in unknown.errors
