"""No name that users rely on is lost: verbs, options, columns, recipes, plug-ins, entry points."""

from __future__ import annotations

import json

from tests.golden import inventory


def test_every_name_of_the_baseline_is_still_there() -> None:
    kept = json.loads(inventory.KEPT.read_text())
    assert inventory.missing(kept, inventory.in_new_process()) == []
    assert inventory.missing({"verbs": ["build", "fly"]}, kept) == ["verbs: fly is gone"]
    # Without options an inventory would be complete of nothing.
    assert "--scenes" in kept["vgbench build"]
    assert "vgbench_gen.tasks" in kept["entry-point groups"]
