"""Which items are to be reviewed, in which batches, and in which order each reviewer meets them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from vgbench_gen.core.errors import ConfigError
from vgbench_gen.core.rng import hash_stably
from vgbench_gen.core.types import Item, QuestionType
from vgbench_gen.quality.review.lines import CANNOT_TELL, digest_item

BATCH = 50  # docs/validity.md#review-by-people
_LISTED = 12  # known names that a message lists


@dataclass(frozen=True, slots=True)
class ReviewItem:
    """What the queue and the counts need of an item; the whole item is read when it is shown."""

    id: str
    digest: str
    """The digest of the item as `digest_item` makes it."""
    task: str
    form: QuestionType
    source: str
    """The scan dataset."""
    scene: str
    group: str
    """A name that all questions about one truth share."""
    answer: str
    value: float
    """An open-ended answer as a number in the item's unit, else 0; also 0 where the answer of another benchmark is a
    word."""
    tolerance: float
    """The relative tolerance of an open-ended answer."""

    def is_right(self, answer: str) -> bool:
        """Whether a blind answer is right: the same letter or word, or a number within the tolerance as a ratio."""
        if self.form != "open-ended":
            return answer == self.answer
        number = parse_number(answer)
        if number is None or number <= 0 or self.value <= 0:
            return False
        return max(number / self.value, self.value / number) <= 1 + self.tolerance


@dataclass(frozen=True, slots=True)
class ReviewFilter:
    """What to review; empty tuples and None leave everything in."""

    tasks: tuple[str, ...] = ()
    forms: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    """The scan datasets."""
    ids: tuple[str, ...] | None = None
    """The ids of single items."""
    sample: int | None = None
    """At most so many items of each task and source, chosen by hash."""


def list_items(items: Iterable[Item]) -> list[ReviewItem]:
    """Entries in the order of the dataset."""
    return [
        ReviewItem(
            id=item.id,
            digest=digest_item(item),
            task=item.task,
            form=item.question_type,
            source=item.source,
            scene=f"{item.source}/{item.scene_id}",
            group=item.group_id,
            answer=item.answer,
            value=item.answer_value[0] if item.question_type == "open-ended" and item.answer_value else 0.0,
            tolerance=item.tolerance,
        )
        for item in items
    ]


def select_items(entries: Sequence[ReviewItem], wanted: ReviewFilter) -> list[ReviewItem]:
    """The entries that the filter leaves, in the order of the dataset.

    Raises:
        ConfigError: an id, task, type or source that no item has, or nothing is left.
    """
    left = list(entries)
    # No ids at all select nothing, no tasks, types or sources select everything.
    for option, field, asked in (
        ("--task", "task", wanted.tasks or None),
        ("--type", "form", wanted.forms or None),
        ("--source", "source", wanted.sources or None),
        ("--ids", "id", wanted.ids),
    ):
        if asked is not None:
            _require_known(option, asked, {getattr(e, field) for e in entries})
            kept = set(asked)
            left = [e for e in left if getattr(e, field) in kept]
    if wanted.sample is not None:
        left = _sample_items(left, wanted.sample)
    if not left:
        raise ConfigError("the filters leave no item to review; expected at least one. Leave one of them out.")
    return left


def _require_known(option: str, asked: Sequence[str], known: set[str]) -> None:
    missing = sorted(set(asked) - known)
    if missing:
        some = "" if len(missing) == 1 else f" and {len(missing) - 1} more"
        listed = f"one of {', '.join(sorted(known))}" if len(known) <= _LISTED else "an id of the dataset"
        raise ConfigError(f"{option}: found {missing[0]!r}{some}; expected {listed}. Mend it or leave it out.")


def _sample_items(entries: Sequence[ReviewItem], most: int) -> list[ReviewItem]:
    """At most `most` items of each task and source, by hash: a larger sample holds the smaller one."""
    cells: dict[tuple[str, str], list[ReviewItem]] = defaultdict(list)
    for e in entries:
        cells[e.task, e.source].append(e)
    by_hash = (sorted(cell, key=lambda e: hash_stably("review sample", e.id)) for cell in cells.values())
    kept = {e.id for cell in by_hash for e in cell[:most]}
    return [e for e in entries if e.id in kept]


def split_batches(entries: Sequence[ReviewItem], size: int = BATCH) -> list[tuple[str, list[ReviewItem]]]:
    """(name, entries) of each batch: the same for every reviewer, so that second opinions come early.

    Items are spread over the batches by hash; the name is a digest of the batch's ids.
    """
    spread = sorted(entries, key=lambda e: hash_stably("review queue", e.id))
    parts = [spread[k : k + size] for k in range(0, len(spread), size)]
    return [(hash_stably("review batch", *(e.id for e in part)), part) for part in parts]


def place_token(reviewer: str, batch: str, item_id: str, planted: bool) -> str:
    """Hash by which a reviewer's items of a batch are ordered; also the name of the place in an address."""
    return hash_stably("review place", reviewer, batch, item_id, str(planted))


def parse_number(text: str) -> float | None:
    """The number that a person typed, or None; a decimal comma is a point."""
    try:
        number = float(text.strip().replace(",", "."))
    except ValueError:
        return None
    return number if abs(number) < 1e12 else None


def normalise_answer(entry: ReviewItem, options: int, yes_no: tuple[str, str], text: str) -> str | None:
    """The blind answer as it is kept, or None where it is none of those that can be given."""
    if text == CANNOT_TELL:
        return text
    if entry.form == "open-ended":
        number = parse_number(text)
        return None if number is None else f"{number:g}"
    known = yes_no if entry.form == "judgment" else tuple("ABCD"[:options])
    return text if text in known else None
