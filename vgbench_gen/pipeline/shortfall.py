"""What a plan lacks of its recipe's totals, and what would help."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

from vgbench_gen.core.config import read_toml
from vgbench_gen.core.errors import VGBenchError
from vgbench_gen.pipeline.measure import SceneReport, count_reasons
from vgbench_gen.pipeline.plan import Plan
from vgbench_gen.pipeline.question_plan import QuestionPlan
from vgbench_gen.pipeline.quotas import ITEMS, TaskScene, Total
from vgbench_gen.pipeline.recipe import Recipe


class Shortfall(NamedTuple):
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
        return "/".join(filter(None, (self.name, self.form) if self.kind == "task" else (self.kind, self.name)))


class QuotasNotMet(VGBenchError):
    """The facts at hand cannot fill the recipe. Nothing was composed; what was measured is kept.

    Args:
        missing, total: items that are lacking in all, and items that the recipe asks for.
        advice: what would help, a line per task, source or split that is short.
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
    got: Counter[Total] = Counter()
    for p in plan.chosen:
        for total in plan.targets.list_totals(TaskScene(p.task, "", p.source, p.split, p.scene_id), p.question_type):
            got[total] += ITEMS[p.question_type]
    order = ("task", "source", "split")
    wanted = sorted(plan.targets.totals.items(), key=lambda entry: (order.index(entry[0][0]), entry[0]))
    return [Shortfall(*total, count, got[total]) for total, count in wanted if got[total] < count]


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
    """
    lines = []
    for (kind, name), members in itertools.groupby(short, key=lambda s: (s.kind, s.name)):
        group = list(members)
        lacking = ", ".join(f"{s.form} {s.got} of {s.wanted}".strip() for s in group)
        if kind == "task":
            sources = set(recipe.only_from.get(name, ())) or {report.dataset for report in reports}
            scenes = [report for report in reports if report.dataset in sources and not report.error]
            mine = [p for p in plans if p.task == name and p.source in sources]
            helps = _advise_on_task(name, group, plan, mine, scenes, recipe)
            lines.append(f"{name}: {lacking}. {helps}.")
        else:
            have = {(p.source, p.scene_id) for p in plans if name == (p.source if kind == "source" else p.split)}
            lines.append(f"{kind} {name}: {lacking}. {_format_scene_count(len(have))} of it gave facts; add scenes.")
    return lines


def _advise_on_task(
    task: str,
    short: Sequence[Shortfall],
    plan: Plan,
    plans: Sequence[QuestionPlan],
    scenes: Sequence[SceneReport],
    recipe: Recipe,
) -> str:
    forms = {s.form for s in short}
    wanted = [p for p in plans if "" in forms or p.question_type in forms]
    able = {p.group_id for p in wanted if not p.rejection_reason}
    parts = [f"{_format_scene_count(len(scenes))} gave {len(able)} facts that can be asked so"]
    if able - {p.group_id for p in plan.chosen}:
        caps = sorted({str(most) for (name, _), most in plan.targets.caps.items() if name == task})
        limit = f" (a scene may hold {' or '.join(caps)} items: limits.scene_share)" if caps else ""
        parts[0] += f", of which other totals or limits leave some out{limit}"
    if got := sum(s.got for s in short):
        more = math.ceil(len(scenes) * sum(s.wanted - s.got for s in short) / got)
        parts.append(f"about {more} more such scenes would do")
    else:
        parts.append("add scenes that show more for this task")
    most = recipe.find_most_facts(task)
    if full := sum(report.facts.get(task, 0) >= most for report in scenes):
        key = f"facts_of.{task}" if task in recipe.facts_of else "facts_per_scene"
        parts.append(f"{full} of them reach {key} = {most}: raise it")
    reasons = count_reasons(scenes)[task]
    lost = (p.rejection_reason for p in wanted if p.rejection_reason)
    reasons.update(reason for reason in lost if not reason.endswith("not_in_recipe"))
    named: list[str] = []
    for reason, count in sorted(reasons.items(), key=lambda r: (-r[1], r[0]))[:2]:
        hint = find_hint(task, reason)
        gate = f", gates.{hint['gate']} = {_read_gate(recipe, hint['gate'])}" if hint else ""
        helps = f"; {hint['helps']} would help" if hint and not named else ""
        named.append(f"{reason} ({count} of {reasons.total()}{gate}{helps})")
    if named:
        parts.append(f"dropped most by {', then by '.join(named)}")
    return "; ".join(parts)


def _format_scene_count(count: int) -> str:
    return f"{count} scene{'' if count == 1 else 's'}"


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
