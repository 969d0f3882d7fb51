"""Sets that are bad on purpose: the figures that must fall do, and those of the fair set hold."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.pipeline import planted
from tests.pipeline.planted import fallen, rewritten
from vgbench_gen.core.types import Item
from vgbench_gen.pipeline.audit import AuditReport, audit
from vgbench_gen.quality.findings import CELL_KINDS, Kind
from vgbench_gen.quality.questions import Question
from vgbench_gen.store.dataset import load

TEXT = ("text", "rule", "answers", "repeats", "wording", "control")


@pytest.fixture(scope="module")
def fair() -> AuditReport:
    return audit([*planted.choices(), *planted.claims()], only=TEXT)


def test_a_fair_set_holds(fair: AuditReport) -> None:
    assert fair.failed == []
    assert {finding.verdict for finding in fair.findings} == {"passed"}
    assert {finding.kind for finding in fair.findings} == set(TEXT)
    cells = [finding for finding in fair.findings if finding.kind in CELL_KINDS]
    assert max(Counter((finding.task, finding.form) for finding in cells).values()) <= 8


@pytest.mark.parametrize(
    ("plant", "kinds"),
    [
        (planted.perturbed, {"text", "rule"}),
        (planted.most_alike, {"text", "rule"}),
        (planted.usual_sizes, {"text"}),
        (planted.ordered, {"text"}),
        (planted.letter_bias, {"answers"}),
        (planted.decimals_leak, {"text", "rule", "wording"}),
        (planted.repeated, {"repeats"}),
    ],
)
def test_planted_in_choices(plant: Callable[[list[Question]], list[Question]], kinds: set[Kind]) -> None:
    assert fallen(audit(plant(planted.choices()), only=sorted(kinds))) == kinds


@pytest.mark.parametrize(
    ("plant", "kind"), [(planted.broken_twins, "answers"), (planted.unbalanced, "answers"), (planted.worded, "text")]
)
def test_planted_in_judgments(plant: Callable[[list[Question]], list[Question]], kind: Kind) -> None:
    assert fallen(audit(plant(planted.claims()), only=(kind,))) == {kind}


def test_a_learner_finds_perturbed_truths_and_gives_them_their_scores() -> None:
    questions = planted.choices(160)
    leaking, even = (audit(asked, only=("text",)) for asked in (planted.perturbed(questions), questions))
    assert [finding.verdict for finding in leaking.findings] == ["failed"]  # few questions, but so plain a leak
    assert [finding.verdict for finding in even.findings] == ["not judged"]
    assert leaking.findings[0].value > 60
    assert sum(leaking.bias.values()) / len(questions) > sum(even.bias.values()) / len(questions) + 0.2


def built(folder: Path, task: str, form: str = "multi-choice") -> Item:
    return next(item for item in load(folder) if (item.task, item.question_type) == (task, form))


def wrong_direction(item: Item) -> Item:
    """The pose printed as right leads from the second camera to the first."""
    option = item.evidence["options"]["ABCD".index(item.answer)]
    value = [option["value"][row] for row in range(3)]
    R = [[value[column][row] for column in range(3)] for row in range(3)]
    t = [-sum(R[row][k] * value[k][3] for k in range(3)) for row in range(3)]
    inverse = [[*R[row], round(t[row], 2)] for row in range(3)]
    return _with_truth(item, inverse)


def moved_point(item: Item) -> Item:
    """The point said to be right lies 40 pixels beside the true one."""
    u, v = item.answer_value
    return _with_truth(item, [u + (40 if u < 150 else -40), v])


def occluded_point(item: Item) -> Item:
    """The point of image 1 lies half a meter behind what is seen there."""
    evidence = _deep(item.evidence)
    for record in (evidence["truth"], evidence["options"]["ABCD".index(item.answer)]):
        record["evidence"]["z_1_m"] += 0.5
    return replace(item, evidence=evidence)


def _with_truth(item: Item, value: list[Any]) -> Item:
    evidence = _deep(item.evidence)
    evidence["truth"]["value"] = evidence["options"]["ABCD".index(item.answer)]["value"] = value
    flat = [float(x) for row in value for x in (row if isinstance(row, list) else [row])]
    return replace(item, evidence=evidence, answer_value=tuple(flat))


def _deep(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _deep(member) for key, member in value.items()}
    return [_deep(member) for member in value] if isinstance(value, list | tuple) else value


def test_a_real_build_is_green_on_its_items(audited: Path) -> None:
    report = audit(audited, only=("evidence", "answers", "wording"))
    assert fallen(report) == set()
    assert {finding.verdict for finding in report.findings if finding.kind == "evidence"} == {"passed"}


@pytest.mark.parametrize(
    ("task", "plant"),
    [("relative_pose", wrong_direction), ("point_tracking", moved_point), ("point_tracking", occluded_point)],
)
def test_a_row_that_says_something_false(
    task: str, plant: Callable[[Item], Item], audited: Path, tmp_path: Path
) -> None:
    item = built(audited, task)
    folder = rewritten(audited, tmp_path, {item.id: plant(item)})
    report = audit(folder, only=("evidence",))
    behind = {name for finding in report.failed for name in finding.items}
    assert behind == {item.id}
    assert report.texts[item.id].startswith(item.question[:10])


def test_swapped_images(audited: Path, tmp_path: Path) -> None:
    """Two pictures of one size change places, names and all; only drawing them again tells."""
    rows = list(load(audited))
    first = next(item for item in rows if item.task == "homography_to_matrix")
    second = next(i for i in rows if i.task == first.task and i.source == first.source and i.images != first.images)
    swapped = {
        first.id: replace(first, images=(first.images[0], second.images[1])),
        second.id: replace(second, images=(second.images[0], first.images[1])),
    }
    report = audit(rewritten(audited, tmp_path, swapped), only=("evidence",))
    (found,) = report.failed
    assert found.name == "homography_to_matrix pixels 2"
    assert set(found.items) == set(swapped)
