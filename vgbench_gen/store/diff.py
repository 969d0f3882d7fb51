"""Two datasets row by row: what is the same, what was asked otherwise, what one of them lacks."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from vgbench_gen.core.types import Item
from vgbench_gen.store.schema import make_item_row

# Where a row stands says nothing about it; `DatasetDifference.moved` is about the order.
_PLACE = ("index", "index_origin")
# The first kind with a changed column names the change.
_KINDS: Mapping[str, tuple[str, ...]] = {
    "other answer": ("answer_value", "answer_shape", "unit", "tolerance"),
    "other options": ("options", "distractors", "strategy", "distractor_seed", "error_parts"),
    "other pictures": ("images", "frame_ids"),
    "reworded": ("question", "context", "template_id", "paraphrase"),
}


@dataclass(frozen=True, slots=True)
class Change:
    """One question that both datasets ask in different ways."""

    task: str
    question_type: str
    id_a: str
    id_b: str
    kind: str
    """What kind of difference it is, such as other words or another answer."""
    columns: tuple[str, ...]
    """The columns that differ, in the order of the schema."""


@dataclass(slots=True)
class DatasetDifference:
    """What two datasets A and B have in common and what not, by the ids of rows. The four kinds of rows together are
    every row of both."""

    rows: tuple[int, int] = (0, 0)
    same: int = 0
    changed: list[Change] = field(default_factory=list)
    only_a: list[str] = field(default_factory=list)
    only_b: list[str] = field(default_factory=list)
    moved: bool = False
    """Whether the common rows come in another order."""
    tasks: dict[str, dict[str, int]] = field(default_factory=dict)
    """For each task, how many rows are of each of the four kinds."""

    @property
    def equal(self) -> bool:
        """Whether both hold the same rows in the same order."""
        return not (self.changed or self.only_a or self.only_b or self.moved)

    @property
    def columns(self) -> dict[str, int]:
        """Column -> changed rows in which it differs, most first."""
        counts = Counter(column for change in self.changed for column in change.columns)
        return dict(sorted(counts.items(), key=lambda pair: (-pair[1], pair[0])))


def diff(a: Iterable[Item], b: Iterable[Item]) -> DatasetDifference:
    """Compare by id; then, among the rest, by fact and question type (and by the claim's truth, for judgments).

    Images count by their names, which are digests of their bytes.
    """
    rows_a, rows_b = {item.id: item for item in a}, {item.id: item for item in b}
    found = DatasetDifference((len(rows_a), len(rows_b)))
    tasks: dict[str, Counter[str]] = defaultdict(Counter)
    common = [name for name in rows_a if name in rows_b]
    found.moved = common != [name for name in rows_b if name in rows_a]
    pairs = [(rows_a[name], rows_b[name]) for name in common]
    rest: dict[tuple[str, str, str], tuple[list[Item], list[Item]]] = defaultdict(lambda: ([], []))
    for side, (rows, others) in enumerate(((rows_a, rows_b), (rows_b, rows_a))):
        for name, item in rows.items():
            if name not in others:
                rest[_identify_question(item)][side].append(item)
    for left, right in rest.values():
        both = min(len(left), len(right))
        pairs += zip(left[:both], right[:both], strict=True)
        for items, ids, count in ((left[both:], found.only_a, "only_a"), (right[both:], found.only_b, "only_b")):
            ids += [item.id for item in items]
            for item in items:
                tasks[item.task][count] += 1
    for one, other in pairs:
        columns = _list_changed_columns(one, other)
        tasks[one.task]["changed" if columns else "same"] += 1
        if columns:
            kind = _name_kind(one, columns)
            found.changed.append(Change(one.task, one.question_type, one.id, other.id, kind, columns))
        else:
            found.same += 1
    counts = ("same", "changed", "only_a", "only_b")
    found.tasks = {task: {count: tasks[task][count] for count in counts} for task in sorted(tasks)}
    return found


def _identify_question(item: Item) -> tuple[str, str, str]:
    return item.group_id, item.question_type, item.answer if item.question_type == "judgment" else ""


def _list_changed_columns(a: Item, b: Item) -> tuple[str, ...]:
    one, other = make_item_row(a), make_item_row(b)
    # NaN, which a number may be, is not equal to itself; its text is.
    return tuple(
        name for name in one if name not in _PLACE and one[name] != other[name] and f"{one[name]}" != f"{other[name]}"
    )


def _name_kind(item: Item, columns: tuple[str, ...]) -> str:
    if "answer" in columns and item.question_type != "multi-choice":
        return "other answer"
    for kind, about in _KINDS.items():
        if any(column in about for column in columns):
            return kind
    return "other options" if "answer" in columns else "other notes"
