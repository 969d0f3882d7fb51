"""Made-up items and reviewers."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from vgbench_gen.core.types import QuestionType
from vgbench_gen.quality.review.lines import ReviewLine
from vgbench_gen.quality.review.queue import ReviewItem


def entry(
    name: str,
    task: str = "relative_depth",
    source: str = "ca1m",
    answer: str = "A",
    form: QuestionType = "multi-choice",
    value: float = 0.0,
    scene: str = "",
) -> ReviewItem:
    tolerance = 0.25 if form == "open-ended" else 0.0
    scene = f"{source}/{scene or name}"
    return ReviewItem(name, f"digest-{name}", task, form, source, scene, f"group-{name}", answer, value, tolerance)


def lines(
    reviewer: str,
    item: str,
    verdict: str,
    answer: str = "A",
    flags: Sequence[str] = (),
    planted: str = "",
    batch: str = "b",
    minute: int = 0,
    digest: str = "",
) -> list[ReviewLine]:
    """The answer and the verdict of one reviewer on one item."""
    time = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(minutes=minute)
    record = {
        "reviewer": reviewer,
        "item": item,
        "digest": digest or f"digest-{item}",
        "planted": planted,
        "batch": batch,
        "time": time.isoformat(timespec="milliseconds"),
    }
    blind = {**record, "stage": "answer", "answer": answer, "confidence": "sure"}
    return [
        ReviewLine.model_validate(blind),
        ReviewLine.model_validate({**record, "stage": "verdict", "verdict": verdict, "flags": tuple(flags)}),
    ]
