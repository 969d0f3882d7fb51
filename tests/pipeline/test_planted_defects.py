"""Sets that are bad on purpose: each named audit goes red, and the fair set is green on the same lines."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.pipeline import planted
from tests.pipeline.planted import red, rewritten
from vgbench_gen.core.types import Item
from vgbench_gen.pipeline.audit import AuditReport, audit
from vgbench_gen.quality.questions import Question
from vgbench_gen.store.dataset import load

TEXT = ("rule", "exchange", "letters", "yes_no", "duplicates", "wording")


@pytest.fixture(scope="module")
def fair() -> AuditReport:
    return audit([*planted.choices(), *planted.claims()], only=TEXT)


def test_a_fair_set_is_green(fair: AuditReport) -> None:
    assert fair.fell == []
    green = {line.finding.audit for line in fair.lines if line.finding.verdict == "green"}
    assert green == set(TEXT)


@pytest.mark.parametrize(
    ("plant", "audits"),
    [
        (planted.perturbed, {"rule": {"medoid", "middle"}, "exchange": set()}),
        (planted.letter_bias, {"letters": {"letters"}}),
        (planted.decimals_leak, {"wording": {"mixed decimals"}}),
        (planted.repeated, {"duplicates": {"identical"}}),
    ],
)
def test_planted_in_choices(
    plant: Callable[[list[Question]], list[Question]], audits: dict[str, set[str]], fair: AuditReport
) -> None:
    report = audit(plant(planted.choices()), only=tuple(audits))
    for family, names in audits.items():
        assert names <= red(report, family)
        assert red(report, family)
        assert not red(fair, family)


@pytest.mark.parametrize(
    ("plant", "names"), [(planted.broken_twins, {"twins"}), (planted.unbalanced, {"yes", "twins"})]
)
def test_planted_in_judgments(plant: Callable[[list[Question]], list[Question]], names: set[str]) -> None:
    report = audit(plant(planted.claims()), only=("yes_no",))
    assert red(report, "yes_no") == names


def test_a_classifier_finds_perturbed_truths_and_keeps_its_control() -> None:
    questions = planted.choices(160)
    leaking = audit(planted.perturbed(questions), only=("blind",))
    fair = audit(questions, only=("blind",))
    best, worst = (max(f.value for f in r.findings if f.audit == "blind") for r in (leaking, fair))
    assert best > 60
    assert worst < 45
    # Too few to judge, and said so, however plain the leak.
    assert {f.verdict for f in leaking.findings if f.audit == "blind" and not f.source} == {"few"}
    assert sum(leaking.bias.values()) / len(questions) > sum(fair.bias.values()) / len(questions) + 0.2


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
    report = audit(audited, only=("items", "duplicates", "wording", "yes_no"))
    assert not [line for line in report.fell if line.finding.audit in ("items", "yes_no", "wording")]
    assert {line.finding.verdict for line in report.lines if line.finding.audit == "items"} == {"green"}


@pytest.mark.parametrize(
    ("task", "plant"),
    [("relative_pose", wrong_direction), ("point_tracking", moved_point), ("point_tracking", occluded_point)],
)
def test_a_row_that_says_something_false(
    task: str, plant: Callable[[Item], Item], audited: Path, tmp_path: Path
) -> None:
    item = built(audited, task)
    folder = rewritten(audited, tmp_path, {item.id: plant(item)})
    report = audit(folder, only=("items",))
    behind = {name for line in report.fell for name in line.finding.items}
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
    report = audit(rewritten(audited, tmp_path, swapped), only=("items",))
    assert {(line.finding.name, line.finding.items) for line in report.fell} >= {
        ("pixels", tuple(item.id for item in rows if item.id in swapped))
    }
