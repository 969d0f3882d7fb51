"""MEASURE: the only stage that opens raw scenes. One scene in, one shard of facts and one of rejects out."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from traceback import format_exception

import numpy as np

from vgbench_gen.core.errors import (
    DatasetError,
    DefectError,
    FrameError,
    GeometryError,
    PluginError,
    VGBenchError,
    escape_surrogates,
)
from vgbench_gen.core.rng import hash_stably, rng_for
from vgbench_gen.core.types import Fact, Rejected
from vgbench_gen.executors import WorkerDied
from vgbench_gen.pipeline.recipe import Recipe
from vgbench_gen.scenes.base import Scene, SceneRef, loaders
from vgbench_gen.scenes.opening import gather_depth, lay_to_scene, open_scene
from vgbench_gen.scenes.readings import PosedDepth, measure_agreement
from vgbench_gen.scenes.view import SceneView
from vgbench_gen.store.files import name_scene_file, write_bytes
from vgbench_gen.store.media import MediaStore
from vgbench_gen.store.provenance import code_version
from vgbench_gen.store.schema import FACTS, REJECTS
from vgbench_gen.store.shards import iterate_rows, read_metadata, read_shard, write_shard
from vgbench_gen.tasks.base import Task, tasks
from vgbench_gen.tasks.records import make_camera_record


@dataclass(frozen=True, slots=True)
class MeasureJob:
    """One scene to measure; crosses process borders."""

    ref: SceneRef
    recipe: Recipe
    out: Path


@dataclass(slots=True)
class SceneReport:
    """What measuring one scene gave. `seconds`, `task_seconds` and `reused` are for the log; they never reach the
    dataset."""

    dataset: str
    scene_id: str
    facts: dict[str, int] = field(default_factory=dict)
    """Facts per task."""
    rejects: dict[str, int] = field(default_factory=dict)
    """Rejected drafts and frames per "task/reason"."""
    issues: dict[str, int] = field(default_factory=dict)
    """What was wrong with the scan and could be left out, per reason."""
    total_frames: int = 0
    frames: int = 0
    """Usable keyframes."""
    objects: int = 0
    """Objects with a box."""
    error: str = ""
    """Why the scene was dropped, or ""."""
    raised: bool = False
    """Whether it was dropped for an error, not for a measurement: the next run tries again."""
    lost: bool = False
    """Whether its workers died, so that nothing is on the disk and the next run tries again."""
    key: str = ""
    """Digest of everything that the shard depends on."""
    source_digest: str = ""
    """Digest of the raw files."""
    reused: bool = False
    """Whether the shards of an earlier run were kept."""
    seconds: float = 0.0
    task_seconds: dict[str, float] = field(default_factory=dict)
    """Seconds per task."""


_NOTED = ("key", "scene_id", "frames", "objects", "total_frames", "issues", "source_digest")
"""Fields of a `SceneReport` that stand in the notes of its shards."""


def count_reasons(reports: Iterable[SceneReport]) -> dict[str, Counter[str]]:
    """By task, how often each reason cost a draft in these scenes."""
    found: dict[str, Counter[str]] = defaultdict(Counter)
    for report in reports:
        for name, count in report.rejects.items():
            task, _, reason = name.partition("/")
            found[task][reason] += count
    return found


def shard_path(out: Path, kind: str, dataset: str, scene_id: str) -> Path:
    """`facts/<dataset>/<scene>.parquet` or the same below `rejects/`, named by `name_scene_file`."""
    return out / kind / dataset / f"{name_scene_file(scene_id)}.parquet"


def list_tasks(recipe: Recipe) -> list[Task]:
    """The recipe's tasks under its gates.

    Raises:
        UnknownNameError: a name is not registered; says which is meant.
    """
    return [tasks[name].with_gates(recipe.gates) for name in recipe.task_names]


def name_tasks(recipe: Recipe) -> dict[str, Task]:
    """The recipe's tasks under its gates, by name; raises what `list_tasks` raises."""
    return {task.name: task for task in list_tasks(recipe)}


def measure_scene(job: MeasureJob) -> SceneReport:
    """Measure one scene, or reuse its shards when nothing they depend on has changed.

    Never raises for what is wrong with the scene: that is in the report and in the rejects, and the traceback of a
    defect of ours in a file beside them.
    """
    began = time.monotonic()
    report = SceneReport(job.ref.dataset, job.ref.scene_id)
    media = MediaStore(job.out / "media")
    try:
        with lay_to_scene(job.ref), open_scene(job.ref) as scene:
            report.key, report.source_digest = shard_key(scene, job.recipe), scene.source_digest
            report.issues = dict(sorted(Counter(issue.reason for issue in scene.issues).items()))
            report.total_frames, report.objects = scene.total_frames, len(scene.objects)
            if not _reuse(job, report, media):
                facts, rejects = _measure(scene, job, media, report)
                _write(job, report, facts, rejects)
    except VGBenchError as error:
        report.error, report.raised, report.key = str(error), True, ""
        reason = "unreadable"
        if isinstance(error, DefectError):
            reason = "defect"
            report.error += f" {_write_traceback(job, error)} holds its traceback."
        rejects = [Rejected("scene", job.ref.dataset, job.ref.scene_id, "", reason, detail=report.error)]
        _write(job, report, [], rejects)
    report.seconds = time.monotonic() - began
    return report


def _write_traceback(job: MeasureJob, error: DefectError) -> Path:
    """Write what a report of the defect needs, beside the rejects of the scene; the file below the build folder."""
    path = shard_path(job.out, "rejects", job.ref.dataset, job.ref.scene_id).with_suffix(".log")
    lines = [f"{job.ref.dataset} {job.ref.scene_id} {job.ref.variant}\n", *format_exception(error)]
    lines += [f"{name} {value}\n" for name, value in code_version().items()]
    write_bytes(path, escape_surrogates("".join(lines)).encode())
    return path.relative_to(job.out)


def report_lost_scene(job: MeasureJob, error: WorkerDied) -> SceneReport:
    """The report of a scene whose worker died twice."""
    return SceneReport(job.ref.dataset, job.ref.scene_id, error=f"tried twice: {error}", lost=True)


def shard_key(scene: Scene, recipe: Recipe) -> str:
    """Digest of everything the facts of a scene depend on."""
    versions = [f"{task.name}={task.version}" for task in list_tasks(recipe)]
    loader = loaders[scene.dataset]
    if loader.version != 1:  # version 1 is left out: scenes that were measured before loaders had versions stay
        versions.append(f"{scene.dataset}={loader.version}")
    return hash_stably(
        scene.dataset, scene.id, scene.source_digest, recipe.digest, code_version()["source"], *versions, size=16
    )


def _reuse(job: MeasureJob, report: SceneReport, media: MediaStore) -> bool:
    facts_path = shard_path(job.out, "facts", report.dataset, report.scene_id)
    rejects_path = shard_path(job.out, "rejects", report.dataset, report.scene_id)
    if not (facts_path.is_file() and rejects_path.is_file()):
        return False
    try:
        notes = [read_metadata(path) for path in (facts_path, rejects_path)]
        if any(note.get("key") != report.key for note in notes):
            return False
        facts, rejects = read_shard(facts_path, FACTS), read_shard(rejects_path, REJECTS)
    except DatasetError:
        return False
    if not all(media.has(name) for fact in facts for name in fact.pictures.values()):
        return False
    _count(report, [fact.task for fact in facts], rejects)
    report.frames, report.reused = int(notes[0].get("frames", 0)), True
    return True


def _measure(
    scene: Scene, job: MeasureJob, media: MediaStore, report: SceneReport
) -> tuple[list[Fact], list[Rejected]]:
    recipe = job.recipe
    # What the recipe takes from other sources alone would be measured for nothing.
    wanted = [task for task in list_tasks(recipe) if scene.dataset in recipe.only_from.get(task.name, (scene.dataset,))]
    unscaled = [task for task in wanted if task.needs_meters and not scene.metric]
    wanted = [task for task in wanted if task not in unscaled]
    view = SceneView(scene, recipe.gates, wide=any(task.cuts_crops for task in wanted))
    report.frames = len(view.frames)
    rejects = list(view.rejected)
    rejects += [Rejected(task.name, scene.dataset, scene.id, scene.id, "no_meters") for task in unscaled]
    facts: list[Fact] = []
    problem = find_misreading(scene, view) or find_scene_problem(view)
    if problem is not None:
        rejects.append(problem)
        measured = (
            f"{problem.value:.3g} (limit {problem.limit:g})" if problem.value == problem.value else problem.detail
        )
        report.error = f"{problem.reason}: {measured}"
    else:
        for task in wanted:
            began = time.monotonic()
            try:
                with lay_to_scene(job.ref):
                    kept, dropped = measure_task(task, view, recipe.seed, recipe.find_most_facts(task.name))
            except (DefectError, GeometryError, PluginError) as error:  # costs the scene this task alone
                kept, dropped = [], [_reject_task(task, job, error)]
                report.issues[f"defect of {task.name}"] = 1
                report.raised, report.key = True, ""
            report.task_seconds[task.name] = time.monotonic() - began
            facts += kept
            rejects += dropped
        facts = store_pictures(facts, view, media)
    view.close()
    return facts, rejects


def _reject_task(task: Task, job: MeasureJob, error: VGBenchError) -> Rejected:
    detail = str(error)
    if isinstance(error, DefectError):
        owner = type(task).__module__
        where = "vgbench-gen" if owner.startswith("vgbench_gen.") else f"the package of the task ({owner})"
        found = " ".join(f"{type(error.__cause__).__name__}: {error.__cause__}".split())[:200]
        log = _write_traceback(job, error)
        detail = f"{found}. This is a defect of {where}, please report it. {log} holds its traceback."
    return Rejected(task.name, job.ref.dataset, job.ref.scene_id, "", "defect", detail=detail)


def find_misreading(scene: Scene, view: SceneView) -> Rejected | None:
    """Why no question may be asked about this scene: poses or depth are read otherwise than its pictures bear out.

    Keyframes are at hand; where they do not decide, because few are left, frames in between are decoded.
    """
    poses = np.array([frame.world_from_camera for frame in view.frames]).reshape(-1, 4, 4)
    views = PosedDepth(poses, lambda i: view.frames[i].depth_camera, lambda i: view.frames[i].depth_m)
    found = measure_agreement(views, scene.reading, scene.quaternions)
    if found.best is None or found.problem:  # of turned keyframes another reading could be named
        found = measure_agreement(gather_depth(scene.frames), scene.reading, scene.quaternions)
    if found.problem:
        return Rejected("scene", view.dataset, view.id, "", "misread", detail=found.problem)
    if scene.needs_decision and found.doubt:
        return Rejected("scene", view.dataset, view.id, "", "undecided_reading", detail=found.doubt)
    return None


def find_scene_problem(view: SceneView) -> Rejected | None:
    """Why no question may be asked about this scene: poses and depth that contradict each other."""
    gates = view.gates.scene
    cycle_px, share, pairs = view.pose_agreement()

    def rejected(reason: str, value: float, limit: float) -> Rejected:
        return Rejected("scene", view.dataset, view.id, "", reason, value, limit, f"over {pairs} frame pairs")

    if not view.frames:
        return rejected("no_usable_frames", 0, 1)
    if pairs == 0:
        return None  # single-image tasks need no pairs
    if not cycle_px <= gates.cycle_median_px_at_640:
        return rejected("pose_depth_cycle", cycle_px, gates.cycle_median_px_at_640)
    if share < gates.agree_share_min:
        return rejected("pose_depth_agreement", share, gates.agree_share_min)
    return None


def measure_task(task: Task, view: SceneView, seed: int, limit: int) -> tuple[list[Fact], list[Rejected]]:
    """Drafts of one task that survive the second route, and all that do not, with reasons.

    Every draft ends in exactly one of the two lists.
    """
    facts: list[Fact] = []
    rejects: list[Rejected] = []
    keys: set[str] = set()
    for draft in task.drafts(view, rng_for(seed, "measure", task.name, view.dataset, view.id), limit):
        if isinstance(draft, Rejected):
            rejects.append(draft)
            continue
        checked = confirm_draft(task, draft, view)
        if isinstance(checked, Fact) and checked.key in keys:
            checked = Rejected(task.name, view.dataset, view.id, draft.key, "repeated_key")
        if isinstance(checked, Rejected):
            rejects.append(checked)
            continue
        keys.add(checked.key)
        facts.append(checked)
    return facts, rejects


def confirm_draft(task: Task, draft: Fact, view: SceneView) -> Fact | Rejected:
    """The draft with its second value, or a reject where the second route does not exist or disagrees."""

    def rejected(reason: str, value: float, limit: float, detail: str) -> Rejected:
        return Rejected(task.name, draft.dataset, draft.scene_id, draft.key, reason, value, limit, detail)

    try:
        second = np.asarray(task.recheck(draft, view), dtype=np.float64)
    except (GeometryError, FrameError) as error:
        return rejected("no_second_route", float("nan"), float("nan"), str(error))
    if second.shape != draft.truth_candidate.value.shape or not np.isfinite(second).all():
        return rejected("no_second_route", float("nan"), float("nan"), f"second route gave {second.tolist()}")
    off = task.agreement(second, draft)
    if not off <= 1:
        detail = f"first {draft.truth_candidate.value.ravel().tolist()}, second {second.ravel().tolist()}"
        return rejected("second_route_disagrees", off, 1.0, detail)
    return replace(draft, second_value=second)


def store_pictures(facts: Sequence[Fact], view: SceneView, media: MediaStore) -> list[Fact]:
    """Store the base images that the facts may show, each once, and name them in the facts."""
    names: dict[tuple[str, bool], str] = {}
    stored: list[Fact] = []
    with media.batch():
        for fact in facts:
            wide, frames = tasks[fact.task].cuts_crops, [view.frame(frame_id) for frame_id in fact.shown_frame_ids]
            for frame in frames:
                if (frame.id, wide) not in names:
                    names[frame.id, wide] = media.put(*frame.base_image(wide))
            pictures = {frame.id: names[frame.id, wide] for frame in frames}
            cameras = {frame.id: make_camera_record(frame.base_camera(wide)) for frame in frames}
            stored.append(replace(fact, pictures=pictures, cameras=cameras))
    return stored


def read_reports(out: Path) -> list[SceneReport]:
    """Reports of all measured scenes, read back from their shards."""
    reports = []
    for path in sorted((out / "rejects").glob("*/*.parquet")):
        notes = read_metadata(path)
        report = SceneReport(path.parent.name, **{name: notes[name] for name in _NOTED}, reused=True)
        # The names alone: unpacking a thousand scenes' facts only to count them would take minutes.
        facts = shard_path(out, "facts", report.dataset, report.scene_id)
        _count(report, [str(row["task"]) for row in iterate_rows([facts], ["task"])], read_shard(path, REJECTS))
        reports.append(report)
    return reports


def _write(job: MeasureJob, report: SceneReport, facts: list[Fact], rejects: list[Rejected]) -> None:
    notes = {name: getattr(report, name) for name in _NOTED}
    where = report.dataset, report.scene_id
    write_shard(shard_path(job.out, "rejects", *where), rejects, REJECTS, notes)
    # Facts last: their presence says that the scene is done.
    write_shard(shard_path(job.out, "facts", *where), facts, FACTS, notes)
    _count(report, [fact.task for fact in facts], rejects)


def _count(report: SceneReport, facts: Sequence[str], rejects: Sequence[Rejected]) -> None:
    """Fill in the report: `facts` are the tasks of all facts."""
    report.facts = dict(sorted(Counter(facts).items()))
    report.rejects = dict(sorted(Counter(f"{r.task}/{r.reason}" for r in rejects).items()))
    if not report.error:
        # A scene that was dropped says so again when its shards are reused.
        dropped = [r for r in rejects if r.task == "scene"]
        if dropped:
            first = dropped[0]
            numbers = f"{first.reason}: {first.value:.3g} (limit {first.limit:g})"
            report.error = first.detail or numbers if first.reason in ("unreadable", "defect") else numbers
