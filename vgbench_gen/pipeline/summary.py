"""A build in a table: what each task got from each source, and why a cell is empty."""

from __future__ import annotations

from collections import Counter, defaultdict

from vgbench_gen.core.columns import WIDTH, format_columns
from vgbench_gen.core.types import QUESTION_TYPES
from vgbench_gen.pipeline.build import BuildReport
from vgbench_gen.pipeline.measure import SceneReport, count_reasons
from vgbench_gen.pipeline.recipe import Recipe
from vgbench_gen.tasks.base import tasks

_HEADS = ("task", "source", "facts", "rejects", *QUESTION_TYPES, "main rejection reasons")
_DRAFTS, _FEW_KEPT, _LOST = 20, 5, 0.9  # of so many drafts and more, fewer facts than that, and this share lost
# Reasons of facts that the recipe has no place for: nothing is missing there.
_NOT_WANTED = frozenset({
    "cell_full", "asked_otherwise", "not_in_recipe", "source_not_in_recipe", "split_not_in_recipe"
})  # fmt: skip


def cell_lines(report: BuildReport, names: tuple[str, ...] = (), width: int = WIDTH) -> list[str]:
    """One row per task and source: facts, items per question type, and the commonest reasons for what is missing.

    Those are reasons of rejected drafts, and of facts that were measured and could not be asked in a form; the manifest
    has all of them in its reports of scenes and in `unasked`.
    """
    scenes_of: dict[str, list[SceneReport]] = defaultdict(list)
    for scene in sorted(report.scenes, key=lambda scene: scene.dataset):
        scenes_of[scene.dataset].append(scene)
    rejects = {source: count_reasons(scenes) for source, scenes in scenes_of.items()}
    rows: list[tuple[object, ...]] = []
    for task in names or tuple(tasks.names()):
        for source, scenes in scenes_of.items():
            counts = [
                str(report.composed.items.get(f"{task}/{form}/{source}", 0)) if form in tasks[task].formats else "-"
                for form in QUESTION_TYPES
            ]
            missing = rejects[source][task]
            why = "; ".join(filter(None, (_name_commonest(missing), _list_unasked(report, task, source))))
            if tasks[task].needs_objects and not any(scene.objects for scene in scenes):
                why = "no object boxes in this source"
            facts = sum(scene.facts.get(task, 0) for scene in scenes)
            rows.append((task, source, facts, missing.total(), *counts, why))
    return format_columns(rows, heads=_HEADS, right=_HEADS[2:-1], width=width)


def total_lines(report: BuildReport, names: tuple[str, ...] = (), width: int = WIDTH) -> list[str]:
    """One row per task: facts, items per question type, and the commonest reason why drafts were rejected."""
    rejects, rows, totals = count_reasons(report.scenes), [], Counter[str]()
    sources = {scene.dataset for scene in report.scenes}
    for task in names or tuple(tasks.names()):
        counts = {
            form: sum(report.composed.items.get(f"{task}/{form}/{source}", 0) for source in sources)
            for form in tasks[task].formats
        }
        totals.update(counts)
        facts = sum(scene.facts.get(task, 0) for scene in report.scenes)
        reason = ", ".join(f"{name} {count}" for name, count in rejects[task].most_common(1))
        rows.append((task, facts, *(counts.get(form, "-") for form in QUESTION_TYPES), rejects[task].total(), reason))
    lost = sum(count for reasons in rejects.values() for count in reasons.values())
    rows.append(("all", report.facts, *(totals[form] for form in QUESTION_TYPES), lost, ""))
    heads = ("task", "facts", *QUESTION_TYPES, "rejects", "most frequent reason")
    return format_columns(rows, heads=heads, right=heads[1:-1], width=width)


def note_lines(report: BuildReport, recipe: Recipe) -> list[str]:
    """What is short of the recipe, and what else a reader of the table should know, the most important first."""
    return [
        *plan_lines(report, recipe),
        *scene_lines(report),
        *pair_lines(report),
        *fallback_lines(report),
        *loss_lines(report),
    ]


def _list_unasked(report: BuildReport, task: str, source: str) -> str:
    """The commonest reasons for which facts could not be asked in some type, such as "not asked as judgment: …"."""
    told = []
    for form in QUESTION_TYPES:
        cell = f"{task}/{form}/{source}/"
        unasked = Counter({
            reason: count
            for key, count in report.composed.unasked.items()
            if key.startswith(cell) and (reason := key.removeprefix(cell)) not in _NOT_WANTED
        })  # fmt: skip
        if unasked:
            told.append(f"not asked as {form}: {_name_commonest(unasked)}")
    return "; ".join(told)


def _name_commonest(reasons: Counter[str]) -> str:
    return ", ".join(f"{reason} {count}" for reason, count in reasons.most_common(2))


def plan_lines(report: BuildReport, recipe: Recipe) -> list[str]:
    """What is short of the recipe's totals and would help; and where difficulty is off its shares."""
    lines = []
    if note := report.composed.wording:
        stale = f"; left out, because their templates changed: {', '.join(note['stale'])}" if note["stale"] else ""
        used = f"({note['use']}, {note['language']})"
        lines.append(f"wording {note['phrasings']} wordings from {note['bank']} {used}{stale}")
    lines += [f"short   {line}" for line in report.composed.advice]
    if recipe.difficulty is None:
        return lines
    for cell, counts in report.composed.difficulty.items():
        total = sum(counts.values())
        off = [
            f"{level} {100 * counts.get(level, 0) / total:.0f}% instead of {100 * share:.0f}%"
            for level, share in recipe.difficulty.shares.items()
            if abs(counts.get(level, 0) / total - share) > recipe.difficulty.tolerance
        ]
        if off:
            lines.append(f"note    difficulty of {cell}: {', '.join(off)}")
    return lines


def loss_lines(report: BuildReport) -> list[str]:
    """One line per task and source of which nearly all drafts were lost in some scene, with the reason."""
    lost: dict[tuple[str, str], list[tuple[float, str, int, Counter[str]]]] = defaultdict(list)
    boxed = {scene.dataset for scene in report.scenes if scene.objects}
    for scene in report.scenes:
        for task, counts in count_reasons([scene]).items():
            kept, gone = scene.facts.get(task, 0), counts.total()
            if task not in tasks or (tasks[task].needs_objects and scene.dataset not in boxed):
                continue  # a reason for the whole source, which the table tells
            if kept < _FEW_KEPT and kept + gone >= _DRAFTS and gone >= _LOST * (kept + gone):
                lost[task, scene.dataset].append((gone / (kept + gone), scene.scene_id, kept + gone, counts))
    lines = []
    for (task, source), scenes in sorted(lost.items()):
        share, name, drafts, counts = max(scenes, key=lambda one: (one[0], one[2], one[1]))
        more = f" (the worst of {len(scenes)} scenes)" if len(scenes) > 1 else ""
        lines.append(
            f"note    {task}, {source} {name}: {round(share * drafts)} of {drafts} drafts lost{more}, "
            f"mostly because of {_name_commonest(counts)}; what these mean: docs/howto/reasons.md"
        )
    return lines


def fallback_lines(report: BuildReport) -> list[str]:
    """How many option sets are not by their task's own strategy, per task, and the commonest reasons."""
    per_task: dict[str, Counter[str]] = defaultdict(Counter)
    for cell, count in report.composed.fallbacks.items():
        task, _, reason = cell.split("/")
        per_task[task][reason] += count
    return [
        f"note    {task}: {reasons.total()} option set{'s use' if reasons.total() > 1 else ' uses'} set_first because "
        f"{tasks[task].strategy} found none ({_name_commonest(reasons)})"
        for task, reasons in sorted(per_task.items())
    ]


def pair_lines(report: BuildReport) -> list[str]:
    """How many items stand in consistency pairs, and of which tasks; nothing where none does."""
    per_task: Counter[str] = Counter()
    for cell, count in report.composed.pairs.items():
        per_task[cell.partition("/")[0]] += count
    if not per_task:
        return []
    items = 2 * per_task.total()
    share = 100 * items / max(report.composed.total, 1)
    named = ", ".join(f"{task} {count}" for task, count in sorted(per_task.items()))
    return [f"pairs   {items} of {report.composed.total} items ({share:.1f}%) belong to consistency pairs: {named}"]


def scene_lines(report: BuildReport) -> list[str]:
    """One line per scene that was dropped or had trouble."""
    lines = []
    for scene in report.scenes:
        if scene.error:
            lines.append(f"dropped {scene.dataset} {scene.scene_id}: {scene.error}")
        elif scene.issues:
            named = ", ".join(f"{reason} x{count}" for reason, count in scene.issues.items())
            lines.append(f"note    {scene.dataset} {scene.scene_id}: {named}")
    return lines
