"""A report with figures of every kind and verdict, and text that would do harm if it were not escaped."""

from __future__ import annotations

from typing import Any

from vgbench_gen.pipeline.audit import AuditReport
from vgbench_gen.quality.findings import Finding, Kind, Verdict

EVIL = '<script>alert(1)</script><img src=x onerror=alert(2)> "quoted" & \' {{ 7 * 7 }}'
INSIDE, OUTSIDE = "a" * 24, "b" * 24
LEAKS, HOLDS = ("metric_depth", "multi-choice"), ("point_tracking", "judgment")
SMALL, OPEN = ("object_location", "multi-choice"), ("metric_depth", "open-ended")


def accuracy(
    kind: Kind, cell: tuple[str, str], value: float, limit: float, verdict: Verdict, n: int = 1200, **more: Any
) -> Finding:
    """A figure in per cent with an interval of five points, judged from 800 questions."""
    chance = 50.0 if cell[1] == "judgment" else 25.0
    ends = {"low": value - 2.5, "high": value + 2.5}
    settings = {"n": n, "needed": 800, "value": value, "chance": chance, "limit": limit, "p": 0.2} | ends | more
    return Finding(kind, task=cell[0], form=cell[1], verdict=verdict, **settings)


def count(kind: Kind, cell: tuple[str, str], value: float = 0.0, **more: Any) -> Finding:
    """A number of questions of which none is allowed."""
    verdict: Verdict = "failed" if value else "passed"
    task, form = cell
    return Finding(kind, task=task, form=form, n=400, value=value, limit=0.0, unit="count", verdict=verdict, **more)


def report() -> AuditReport:
    leaks: dict[str, Any] = {"p": 0.0001, "items": (OUTSIDE, INSIDE), "detail": "leans on depth, size 0, x"}
    findings = [
        accuracy("text", HOLDS, 51.2, 53.0, "passed", name="linear"),
        accuracy("rule", HOLDS, 50.8, 53.0, "passed", name="longest"),
        accuracy("solver", HOLDS, 91.0, 85.0, "passed", n=100, needed=50, name="features"),
        accuracy("wrong image", HOLDS, 51.0, 53.0, "passed", n=400, needed=100, name="features"),
        count("repeats", HOLDS),
        count("wording", HOLDS),
        accuracy("text", SMALL, 31.0, 28.0, "not judged", n=155, name="forest"),
        accuracy("rule", SMALL, 30.0, 28.0, "not judged", n=155, name="medoid"),
        accuracy("image rule", SMALL, 26.0, 31.0, "passed", needed=100, name="top-most"),
        count("repeats", SMALL),
        accuracy("text", LEAKS, 34.0, 28.0, "failed", name="forest", **leaks),
        accuracy("rule", LEAKS, 26.0, 28.0, "passed", name="medoid"),
        accuracy("answers", LEAKS, 26.4, 27.0, "passed", name="most frequent letter"),
        count("repeats", LEAKS, 2.0, detail=EVIL, items=(INSIDE,)),
        accuracy("text", OPEN, 31.0, float("nan"), "reported", name="forest, number"),
        Finding("scene share", task=OPEN[0], form=OPEN[1], n=400, value=2.45, limit=3.0, verdict="passed"),
        Finding("control", "answers drawn at random", n=60, needed=800, verdict="not judged"),
    ]
    return AuditReport(
        dataset=EVIL,
        items=1258,
        findings=findings,
        cells={
            "/".join(cell): {"questions": 400, "judged": 155 if cell == SMALL else 1200, "scenes": 60}
            for cell in (LEAKS, HOLDS, SMALL, OPEN)
        },
        bias={INSIDE: 0.71, "c" * 24: 0.22},
        notes=["A note."],
        texts={INSIDE: EVIL, OUTSIDE: "A question that could be asked?"},
        inside={INSIDE},
        tallies={"letters": {"metric_depth/multi-choice": [14, 15, 15, 14]}, "yes_no": {}, "ranks": {}},
    )
