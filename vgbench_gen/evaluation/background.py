"""What is known of a question beside its words, for agents: where it comes from, and, for those with oracle tools, the
quantities that its row reveals."""

from __future__ import annotations

from typing import Any

from vgbench_gen.backends.base import Background
from vgbench_gen.core.types import Item
from vgbench_gen.evaluation.prompting import Asked
from vgbench_gen.tasks.base import tasks
from vgbench_gen.tasks.revealed import Revealed
from vgbench_gen.tasks.row_evidence import RowEvidence, rebuild_fact


def tell_background(asked: Asked, reads_evidence: bool) -> Background:
    """What an agent is told.

    Args:
        asked: the question.
        reads_evidence: whether it is one with oracle tools; nobody else is told what the row reveals.
    """
    return Background(asked.item.benchmark, reveal_shown(asked) if reads_evidence else {})


def reveal_shown(asked: Asked) -> dict[str, Any]:
    """What the row of a question reveals of the images that are shown, which go by their places, those of examples
    before them; empty where the row tells nothing, and for the images of other questions.

    Raises:
        DatasetError: the row's evidence is damaged.
    """
    own = [shown for shown in asked.images if shown.item.id == asked.key.id]
    if not own:
        return {}
    revealed = reveal_item(own[0].item)
    if revealed is None:
        return {}
    before = sum(len(one.images) for one in asked.examples)
    places = [shown.k if shown.item.id == asked.key.id else None for shown in asked.images]
    return revealed.renumber([*[None] * before, *places]).write()


def reveal_item(item: Item) -> Revealed | None:
    """What the row of a question reveals of its images in the order in which it was built; None of rows that tell
    nothing, as those of other benchmarks."""
    row = RowEvidence.found(item) if item.task in tasks else None
    return None if row is None else tasks[item.task].reveal(rebuild_fact(item), row)
