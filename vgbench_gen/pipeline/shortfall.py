"""What a plan lacks of its recipe's totals, and what would help."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from vgbench_gen.core.config import read_toml
from vgbench_gen.core.errors import VGBenchError
from vgbench_gen.pipeline.measure import SceneReport, count_reasons
from vgbench_gen.pipeline.plan import Plan
from vgbench_gen.pipeline.question_plan import QuestionPlan
from vgbench_gen.pipeline.quotas import ITEMS
from vgbench_gen.pipeline.recipe import Recipe


@dataclass(frozen=True, slots=True)
class Shortfall:
    """One total that is not met."""

    kind: str
    """"task", "source" or "split"."""
    name: str
    form: str
    """The form, "" where a task's forms count as one."""
    wanted: int
    got: int

    @property
    def what(self) -> str:
        """Key of the manifest: "task/form", "task", "source/name" or "split/name"."""
        if self.kind == "task":
            return f"{self.name}/{self.form}" if self.form else self.name
        return f"{self.kind}/{self.name}"


class QuotasNotMet(VGBenchError):
    """The facts at hand cannot fill the recipe. Nothing was composed; what was measured is kept.

    Args:
        missing: items that are lacking in all. total: items that the recipe asks for. shortfalls: which totals are not
            met. advice: what would help, a line per task, source or split that is short.
    """

    def __init__(self, missing: int, total: int, shortfalls: Sequence[Shortfall], advice: Sequence[str]) -> None:
        super().__init__(missing, total, shortfalls, advice)
        self.missing, self.total, self.shortfalls, self.advice = missing, total, list(shortfalls), list(advice)

    @property
    def lines(self) -> list[str]:
        """The message, line by line."""
        return [
            f"the facts fill {self.total - self.missing} of {self.total} items; no question was written.",
            *(f"  {line}" for line in self.advice),
            "What was measured is kept: add scenes and run again (only the new ones are measured), or pass "
            "--allow-short (make: ALLOW_SHORT=1) to write what there is, or use the recipe `default` (make: "
            "RECIPE=default), which takes what the scenes give.",
        ]

    def _word(self) -> str:
        return " ".join(line.strip() for line in self.lines)


def find_shortfalls(plan: Plan, recipe: Recipe) -> list[Shortfall]:
    """Totals that must be met and are not, in a fixed order; empty where the recipe only sets limits."""
    if not (recipe.items or recipe.items_per_task):
        return []
    got: Counter[tuple[str, str, str]] = Counter()
    for entry in plan.chosen:
        count = ITEMS[entry.question_type]
        for key in (("task", entry.task, entry.question_type), ("task", entry.task, "")):
            got[key] += count
        got["source", entry.source, ""] += count
        got["split", entry.split, ""] += count
    targets = plan.targets
    wanted: dict[tuple[str, str, str], int] = {("task", task, form): n for (task, form), n in targets.cells.items()}
    wanted |= {("task", task, ""): n for task, n in targets.tasks.items()}
    for kind, totals in (("source", targets.sources), ("split", targets.splits)):
        wanted |= {(kind, name, ""): n for name, n in totals.items()}
    order = ("task", "source", "split")
    keys = sorted(wanted, key=lambda key: (order.index(key[0]), key))
    return [Shortfall(*key, wanted[key], got[key]) for key in keys if got[key] < wanted[key]]


def give_advice(
    short: Sequence[Shortfall],
    plan: Plan,
    plans: Sequence[QuestionPlan],
    reports: Sequence[SceneReport],
    recipe: Recipe,
) -> list[str]:
    """A line per task, source or split that is short: by how much, and what would help.

    Args:
        short: the totals that are not met, in the order of `find_shortfalls`.
        plan: the best plan there is.
        plans: all facts in all of their forms.
        reports: of the scenes that were measured.
        recipe: what was wanted.
    """
    short_sources = {s.name for s in short if s.kind == "source"}
    lines = []
    for (kind, name), members in itertools.groupby(short, key=lambda s: (s.kind, s.name)):
        group = list(members)
        lacking = ", ".join(f"{s.form} {s.got} of {s.wanted}".strip() for s in group)
        if kind == "task":
            lines.append(
                f"{name}: {lacking}. {_advise_on_task(name, group, short_sources, plan, plans, reports, recipe)}"
            )
        else:
            have = {(p.source, p.scene_id) for p in plans if name == (p.source if kind == "source" else p.split)}
            lines.append(f"{kind} {name}: {lacking}. {_format_scene_count(len(have))} of it gave facts; add scenes.")
    return lines


def count_missing_items(plan: Plan) -> int:
    """Items that the totals ask for beyond the plan."""
    return plan.targets.total - sum(ITEMS[entry.question_type] for entry in plan.chosen)


def _advise_on_task(
    task: str,
    short: Sequence[Shortfall],
    short_sources: set[str],
    plan: Plan,
    plans: Sequence[QuestionPlan],
    reports: Sequence[SceneReport],
    recipe: Recipe,
) -> str:
    known = {report.dataset for report in reports} | {entry.source for entry in plans}
    may = set(recipe.only_from.get(task, known))
    sources = may & short_sources or may
    named = "" if sources == known else " of " + ", ".join(sorted(sources))
    forms = {s.form for s in short if s.form}
    scenes = [report for report in reports if report.dataset in sources and not report.error]
    mine = [entry for entry in plans if entry.task == task and entry.source in sources]
    able = {
        entry.group_id for entry in mine if not forms or (entry.question_type in forms and not entry.rejection_reason)
    }
    asked = {entry.group_id for entry in plan.chosen if entry.task == task}
    parts = [f"{_format_scene_count(len(scenes))}{named} gave {len(able)} facts that can be asked so"]
    if able - asked:
        parts[0] += f", of which other totals or limits leave some out{_explain_caps(task, sources, plan)}"
    if able and scenes:
        parts.append(f"about {_estimate_more_scenes(short, len(scenes), len(able), recipe)} more such scenes would do")
    else:
        parts.append(f"add scenes{named} that show more for this task")
    most = recipe.find_most_facts(task)
    full = sum(report.facts.get(task, 0) >= most for report in scenes)
    if full:
        key = f"facts_of.{task}" if task in recipe.facts_of else "facts_per_scene"
        parts.append(f"{full} of them reach {key} = {most}: raise it")
    if lost := _find_losses(task, forms, scenes, mine, recipe):
        parts.append(lost)
    return "; ".join(parts) + "."


def _estimate_more_scenes(short: Sequence[Shortfall], scenes: int, able: int, recipe: Recipe) -> int:
    """Scenes that are lacking if further ones give as much as those at hand."""
    (first, *_) = short
    if not first.form and first.got:
        return math.ceil(scenes * (first.wanted - first.got) / first.got)
    facts = sum((s.wanted - s.got) / (2 if s.form == "judgment" else 1) for s in short)
    return math.ceil(scenes * facts / (able * min(recipe.limits.forms_per_fact, len(short))))


def _format_scene_count(count: int) -> str:
    return f"{count} scene{'' if count == 1 else 's'}"


def _explain_caps(task: str, sources: set[str], plan: Plan) -> str:
    """How many items of the task a scene may hold, in brackets; "" where that is not limited."""
    caps = sorted({plan.targets.caps[task, s] for s in sources if (task, s) in plan.targets.caps})
    return f" (a scene may hold {' or '.join(map(str, caps))} items: limits.scene_share)" if caps else ""


def _find_losses(
    task: str, forms: set[str], scenes: Sequence[SceneReport], plans: Sequence[QuestionPlan], recipe: Recipe
) -> str:
    """Which gates dropped most drafts of a task or kept its facts from being asked, and which scans would help; "" for
    none.

    Args:
        task: the task.
        forms: the forms that are lacking; all where empty.
        scenes: the scenes that were measured.
        plans: the facts of the task in all of their forms.
        recipe: with the gates.
    """
    reasons = count_reasons(scenes)[task]
    for entry in plans:
        reason = entry.rejection_reason
        if reason and not reason.endswith("not_in_recipe") and (not forms or entry.question_type in forms):
            reasons[reason] += 1
    if not reasons:
        return ""
    told: list[str] = []
    for reason, count in sorted(reasons.items(), key=lambda r: (-r[1], r[0]))[:2]:
        hint = find_hint(task, reason)
        gate = f", gates.{hint['gate']} = {_read_gate(recipe, hint['gate'])}" if hint else ""
        helps = f"; {hint['helps']} would help" if hint and not told else ""
        told.append(f"{reason} ({count} of {reasons.total()}{gate}{helps})")
    return f"dropped most by {', then by '.join(told)}"


def find_hint(task: str, reason: str) -> Mapping[str, str]:
    """The "gate" behind a reason, and which scans would make up for it ("helps"); empty where none is known."""
    hints = _read_hints()
    found: Mapping[str, str] = hints.get(f"{task}/{reason}") or hints.get(reason) or {}
    return found


@cache
def _read_hints() -> dict[str, dict[str, str]]:
    return read_toml(Path(__file__).with_name("reasons.toml"))


def _read_gate(recipe: Recipe, key: str) -> float:
    section, _, name = key.partition(".")
    value: float = recipe.gates.model_dump(mode="json")[section][name]
    return value
