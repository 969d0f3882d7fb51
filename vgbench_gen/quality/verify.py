"""Every answer again: from the row's own evidence, and from the raw scenes when they are there.

`verify_item` needs the row only. `verify_scene` opens one scan and reaches each of its answers by the task's second
route from raw pixels, depth and poses.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from vgbench_gen.core.errors import VGBenchError
from vgbench_gen.core.gates import Gates
from vgbench_gen.core.rng import digest_bytes
from vgbench_gen.core.types import ALPHABET, Candidate, Fact, FloatArray, Item
from vgbench_gen.distractors.base import Margins, set_problem
from vgbench_gen.geometry.poses import measure_orthonormality_deviation
from vgbench_gen.quality.checks import (
    find_claim_text_problem,
    find_consistency_problems,
    find_shown_problems,
    is_name,
    is_shown,
)
from vgbench_gen.quality.noise import find_noise_problems
from vgbench_gen.scenes.base import SceneRef
from vgbench_gen.scenes.opening import lay_to_scene, open_scene
from vgbench_gen.scenes.view import SceneView
from vgbench_gen.store.dataset import load
from vgbench_gen.tasks.base import Task, tasks
from vgbench_gen.tasks.records import read_camera_record
from vgbench_gen.tasks.row_evidence import UNREADABLE, RowEvidence, read_side, rebuild_fact
from vgbench_gen.text.numbers import parse_numbers
from vgbench_gen.text.render import fill_word

_CHUNK = 200  # rows per job, at least: a few row groups
_CAMERA_TOLERANCE_PX = 1e-6  # a stored camera must be the scan's own
_POSE_TOLERANCE = 1e-9  # a stored pose must be that of the scan


@dataclass(frozen=True, slots=True)
class Problem:
    """Something about a row that does not hold."""

    item_id: str
    task: str
    check: str
    """The machine-readable name of the check that failed."""
    detail: str
    """What was found and what was expected, in words."""

    def __str__(self) -> str:
        return f"{self.item_id} ({self.task}): {self.check}: {self.detail}"


@dataclass(frozen=True, slots=True)
class VerifyJob:
    """One scan and the items that were made from it; it crosses process borders."""

    ref: SceneRef
    items: tuple[Item, ...]
    gates: Gates
    """The gates of the build that the items come from."""


@dataclass(frozen=True, slots=True)
class RowsJob:
    """A stretch of rows to verify by their own evidence; it crosses process borders."""

    path: str
    start: int
    """Place of the first row."""
    stop: int
    """Place after the last row."""
    gates: Gates
    """The gates of the build that the rows come from."""


def plan_rows(path: str, group_starts: Sequence[int], gates: Gates) -> list[RowsJob]:
    """Jobs for all rows of a dataset, each a few row groups (`Dataset.group_starts`), which are read whole."""
    jobs, start = [], 0
    for stop in group_starts[1:]:
        if stop - start >= _CHUNK or start < stop == group_starts[-1]:
            jobs.append(RowsJob(path, start, stop, gates))
            start = stop
    return jobs


def verify_rows(job: RowsJob) -> list[Problem]:
    """Problems of a stretch of rows by their own evidence.

    Raises:
        DatasetError: the dataset cannot be read, or an image is missing.
    """
    items, problems = load(job.path), []
    for row in range(job.start, job.stop):
        item = items[row]
        problems += verify_item(item, [items.image_bytes(row, k) for k in range(len(item.images))], job.gates)
    return problems


def verify_item(item: Item, images: Sequence[bytes], gates: Gates) -> list[Problem]:
    """Problems of one row by its own evidence; empty when all holds.

    images: encoded bytes in the order shown.
    """
    try:
        task = tasks[item.task].with_gates(gates)
        fact = rebuild_fact(item)
        found = [*_answer_problems(item, fact, task), *find_shown_problems(item, images)]
        found += find_consistency_problems(item, fact, task)
        if item.question_type == "multi-choice":
            found += _find_option_problems(item, fact, task)
        elif item.question_type == "judgment":
            found += _find_claim_problems(item, fact, task)
        else:
            found += _open_problems(item, fact)
        if not found:  # how well an answer bears noise says nothing where it is not the answer
            found = find_noise_problems(item, fact, task)
    except UNREADABLE as error:
        # A row that cannot even be read back is a problem of that row, whatever is wrong with it.
        found = [("evidence", f"{type(error).__name__}: {error}")]
    return [Problem(item.id, item.task, check, detail) for check, detail in found]


def verify_set(items: Iterable[Item], chosen: bool = False) -> list[Problem]:
    """Problems that only show between rows: repeated ids, twins that are not one true and one false claim, and pairs
    that are not one truth asked from two sides.

    chosen: the rows were chosen one by one from a larger set, so one whose partner is not among them is no problem.
    """
    problems: list[Problem] = []
    seen: set[str] = set()
    twins: dict[str, list[Item]] = defaultdict(list)
    pairs: dict[str, list[Item]] = defaultdict(list)
    for item in items:
        if item.id in seen:
            problems.append(Problem(item.id, item.task, "repeated_id", "another row has this id"))
        seen.add(item.id)
        if item.question_type == "judgment":
            twins[item.twin_id].append(item)
        if item.pair_id or read_side(item):
            pairs[item.pair_id].append(item)
    yes, no = fill_word("answer.yes"), fill_word("answer.no")
    if chosen:
        twins, pairs = ({k: m for k, m in found.items() if k and len(m) > 1} for found in (twins, pairs))
    for twin_id, members in twins.items():
        answers = sorted(member.answer for member in members)
        shared = {(member.group_id, member.images, member.context) for member in members}
        if not twin_id or answers != sorted((yes, no)) or len(shared) != 1:
            first = members[0]
            problems.append(
                Problem(first.id, first.task, "twins", f"twin {twin_id!r} has answers {answers}, {len(shared)} groups")
            )
    for pair_id, members in pairs.items():
        problem = _pair_problem(pair_id, members)
        if problem:
            problems.append(Problem(members[0].id, members[0].task, "pairs", problem))
    return problems


def _pair_problem(pair_id: str, members: Sequence[Item]) -> str:
    """Why these items are not one truth from two sides, or ""."""
    sides = sorted(read_side(member) for member in members)
    shared = {(member.task, member.group_id, member.question_type) for member in members}
    if not pair_id or len(shared) != 1 or sides != ["", tasks[members[0].task].counterpart_kind]:
        return f"pair {pair_id!r} has sides {sides}, {len(shared)} groups or forms"
    first, second = sorted(members, key=lambda member: read_side(member))
    try:
        back, fact = tasks[second.task].counterpart(rebuild_fact(second)), rebuild_fact(first)
        if back is None:
            return f"pair {pair_id!r}: {second.id} cannot be turned back"
        found = _compare_with_stored("pairs", back.truth_candidate.value, fact, tasks[first.task])
        return f"pair {pair_id!r}: {second.id} turned back {found[0][1]}" if found else ""
    except UNREADABLE as error:
        return f"pair {pair_id!r}: {type(error).__name__}: {error}"


def group_by_scene(
    items: Iterable[Item], refs: Iterable[SceneRef], gates: Gates
) -> tuple[list[VerifyJob], list[Problem]]:
    """Items grouped with their scans, and a problem for every item whose scan is not there."""
    known = {(ref.dataset, ref.scene_id): ref for ref in refs}
    grouped: dict[tuple[str, str], list[Item]] = defaultdict(list)
    for item in items:
        grouped[item.source, item.scene_id].append(item)
    jobs = [VerifyJob(known[key], tuple(members), gates) for key, members in sorted(grouped.items()) if key in known]
    missing = [
        Problem(item.id, item.task, "scene_missing", f"{item.source} {item.scene_id} is not among the scenes given")
        for key, members in sorted(grouped.items())
        if key not in known
        for item in members
    ]
    return jobs, missing


def verify_scene(job: VerifyJob) -> list[Problem]:
    """Reach every answer of one scan again by the second route from raw data; compare cameras, poses and pixels."""
    try:
        with lay_to_scene(job.ref), open_scene(job.ref) as scene:
            wanted = {frame_id for item in job.items for frame_id in item.frame_ids}
            cut = {frame_id for item in job.items if tasks[item.task].cuts_crops for frame_id in item.frame_ids}
            view = SceneView(scene, job.gates, wanted, wide=cut)
            names: dict[tuple[str, bool], str] = {}
            problems = [problem for item in job.items for problem in _find_raw_problems(item, view, names)]
            view.close()
            return problems
    except VGBenchError as error:
        return [Problem(item.id, item.task, "scene_unreadable", str(error)) for item in job.items]


def verify_job(job: VerifyJob | RowsJob) -> list[Problem]:
    """Verify rows by their evidence, or the items of a scan by raw data."""
    return verify_rows(job) if isinstance(job, RowsJob) else verify_scene(job)


def _find_raw_problems(item: Item, view: SceneView, names: dict[tuple[str, bool], str]) -> list[Problem]:
    """names: (frame id, whether wide) -> media name of what the scan gives, filled as frames are met.

    The second item of a pair is turned back first, to what the scan shows; what the second route gives there is turned
    into the item's own terms and compared with the item itself.
    """
    found: list[tuple[str, str]] = []
    try:
        task, asked = tasks[item.task].with_gates(view.gates), rebuild_fact(item)
        fact = task.counterpart(asked) if read_side(item) else asked
        if fact is None:
            raise ValueError("the item cannot be turned back to what the scan shows")
        poses, wide = task.stored_poses(fact), task.cuts_crops
        for frame_id, record in fact.cameras.items():
            frame = view.frame(frame_id)
            stored, camera = read_camera_record(record), frame.base_camera(wide)
            if stored.size != camera.size or np.abs(stored.K - camera.K).max() > _CAMERA_TOLERANCE_PX:
                found.append(("camera", f"frame {frame_id}: stored {record}, scan {camera.K.ravel().tolist()}"))
            if frame_id in poses:
                off = np.abs(poses[frame_id] - frame.world_from_camera).max()
                if off > _POSE_TOLERANCE:
                    found.append(("pose", f"frame {frame_id}: stored pose is {off:.2e} from the scan's"))
            if (frame_id, wide) not in names:
                data, suffix = frame.base_image(wide)
                names[frame_id, wide] = f"{digest_bytes(data)}.{suffix}"
            given = names[frame_id, wide]
            if given != fact.pictures[frame_id]:
                found.append(("pixels", f"frame {frame_id}: image {fact.pictures[frame_id]}, scan gives {given}"))
        second = task.recheck(fact, view)
        if fact is not asked:
            turned = task.counterpart(replace(fact, second_value=second))
            if turned is None:
                raise ValueError("what the second route gives has no other side")
            second = turned.second_value
        found += _compare_with_stored("raw_route", second, asked, task)
    except UNREADABLE as error:
        found.append(("raw_route", f"{type(error).__name__}: {error}"))
    return [Problem(item.id, item.task, check, detail) for check, detail in found]


def _answer_problems(item: Item, fact: Fact, task: Task) -> list[tuple[str, str]]:
    value = np.array(item.answer_value).reshape(item.answer_shape)
    truth = RowEvidence.of(item).truth
    option = fact.truth_candidate
    found = []
    if not np.array_equal(value, truth.value) or not np.array_equal(value, option.value):
        found.append(("answer_value", f"row says {value.tolist()}, evidence {truth.value.tolist()}"))
    if not np.array_equal(task.rounded(value), value):
        found.append(("answer_value", f"{value.tolist()} is not as printed"))
    for frame_id, pose in task.stored_poses(fact).items():
        if measure_orthonormality_deviation(pose[:3, :3]) > 1e-6:
            found.append(("pose", f"stored pose of frame {frame_id} is not rigid"))
    if (truth.evidence, truth.show) != (option.evidence, option.show):
        found.append(("recomputed", f"the numbers behind the truth are not those of its option {option.key!r}"))
    else:
        found += _compare_with_stored("recomputed", task.recompute(fact), fact, task)
    found += _compare_with_stored("second_route", fact.second_value, fact, task)
    return found


def _compare_with_stored(check: str, value: FloatArray, fact: Fact, task: Task) -> list[tuple[str, str]]:
    off = task.agreement(np.asarray(value, dtype=np.float64), fact)
    if off <= 1:
        return []
    stored = fact.truth_candidate.value.ravel().tolist()
    return [(check, f"gives {np.asarray(value).ravel().tolist()}, row says {stored}; {off:.2f} of what is allowed")]


def _find_option_problems(item: Item, fact: Fact, task: Task) -> list[tuple[str, str]]:
    found = []
    count = len(item.options)
    if count < 2 or count != len(fact.candidates):
        return [("options", f"{len(item.options)} options, {len(fact.candidates)} in the evidence")]
    margins: Margins = "recorded" if item.difficulty == "stress" else "enforced"
    problem = set_problem(fact.candidates, count, fact, task, margins)
    if problem:
        found.append(("option_set", problem))
    if len(set(item.options)) != len(item.options):
        found.append(("options", "two options read alike"))
    if len(item.distractors) != count - 1:
        found.append(("options", f"{len(item.distractors)} distractor records"))
    shown = RowEvidence.of(item).shown()
    for letter, text, option in zip(ALPHABET[:count], item.options, fact.candidates, strict=True):
        if is_name(text):
            if not is_shown(text, option, item, shown):
                found.append(("option_text", f"{letter} reads {text!r}, which does not show {option.key!r}"))
        elif not _is_printed(text, option, fact, task):
            found.append(("option_text", f"{letter} reads {text!r}, value {option.value.tolist()}"))
    wrong = [option for i, option in enumerate(fact.candidates) if i != fact.truth]
    for record, option in zip(item.distractors, wrong, strict=False):
        off = task.margin_ratio(fact.truth_candidate, option, fact)
        if record.key != option.key or not np.isclose(record.separation, off, rtol=1e-6):
            found.append(("distractors", f"{record.key!r} at {record.separation:.3f}, options say {off:.3f} margins"))
    return found


def _is_printed(text: str, option: Candidate, fact: Fact, task: Task) -> bool:
    """Whether a text says an option: its numbers, or all of it where words count as well."""
    numbers = task.printed_numbers(option.value)
    return np.array_equal(parse_numbers(text), numbers) if numbers.size else text == task.print_option(option, fact)


def _find_claim_problems(item: Item, fact: Fact, task: Task) -> list[tuple[str, str]]:
    claim = RowEvidence.of(item).claim
    if claim is None:
        return [("claim", "the evidence keeps no claim")]
    holds, claimed = claim.holds, claim.candidate()
    found = []
    if item.answer != fill_word("answer.yes" if holds else "answer.no"):
        found.append(("claim", f"answer {item.answer!r} for a claim that {'holds' if holds else 'does not hold'}"))
    problem = task.find_claim_problem(claimed, holds, fact)
    if problem:
        found.append(("claim", problem))
    unsaid = find_claim_text_problem(item, claimed, fact, task)
    if unsaid:
        found.append(("claim_text", unsaid))
    return found


def _open_problems(item: Item, fact: Fact) -> list[tuple[str, str]]:
    printed = parse_numbers(item.answer)
    if printed.size != 1 or printed[0] != fact.truth_candidate.value.ravel()[0]:
        return [("answer", f"reads {item.answer!r}, value {fact.truth_candidate.value.tolist()}")]
    return []
