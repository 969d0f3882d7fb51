"""A report with a line of every kind, and text that would do harm if it were not escaped."""

from __future__ import annotations

from vgbench_gen.pipeline.audit import AuditLine, AuditReport
from vgbench_gen.quality.findings import Finding, Verdict

EVIL = '<script>alert(1)</script><img src=x onerror=alert(2)> "quoted" & \' {{ 7 * 7 }}'
INSIDE, OUTSIDE = "a" * 24, "b" * 24


def _classifiers(chance: float) -> list[tuple[str, float, Verdict]]:
    return [("forest", chance + 9, "red"), ("linear", chance + 1, "green")]


def report() -> AuditReport:
    cells = [("metric_depth", "multi-choice"), ("point_tracking", "judgment")]
    lines = [
        AuditLine(
            "pool",
            Finding(
                "blind",
                name,
                task,
                form,
                n=1200,
                value=value,
                low=value - 2.5,
                high=value + 2.5,
                chance=chance,
                bar=f"<= {chance + 3:.1f}, upper <= {chance + 6:.1f}",
                verdict=verdict,
                items=(OUTSIDE, INSIDE),
            ),
        )
        for (task, form), chance in zip(cells, (25.0, 50.0), strict=True)
        for name, value, verdict in _classifiers(chance)
    ]
    lines += [
        AuditLine(
            "release",
            Finding(
                "rule",
                "medoid",
                *cells[0],
                n=58,
                value=31.0,
                low=20.0,
                high=44.0,
                chance=25.0,
                bar="<= 28.0, upper <= 31.0",
                verdict="few",
            ),
        ),
        AuditLine(
            "pool",
            Finding(
                "exchange",
                "value",
                *cells[0],
                n=1200,
                value=1.4,
                unit="KS",
                bar="<= 4, or p >= 0.05 (Holm)",
                verdict="green",
            ),
        ),
        AuditLine(
            "set",
            Finding(
                "duplicates",
                "identical",
                n=1258,
                value=2.0,
                unit="count",
                bar="0",
                verdict="red",
                detail=EVIL,
                items=(INSIDE,),
            ),
        ),
        AuditLine(
            "solvers",
            Finding(
                "solver",
                "features",
                *cells[1],
                n=100,
                value=91.0,
                low=84.0,
                high=95.0,
                chance=50.0,
                bar=">= 85.0",
                verdict="green",
            ),
        ),
        AuditLine(
            "solvers",
            Finding(
                "wrong image",
                "features",
                *cells[1],
                n=400,
                value=51.0,
                low=46.0,
                high=56.0,
                chance=50.0,
                bar="47.0 to 53.0",
                verdict="green",
            ),
        ),
        AuditLine("set", Finding("partners", "share", n=1258, verdict="skipped", detail="no partners are known")),
    ]
    return AuditReport(
        dataset=EVIL,
        items=1258,
        lines=lines,
        bias={INSIDE: 0.71, "c" * 24: 0.22},
        notes=["A note."],
        texts={INSIDE: EVIL, OUTSIDE: "A question of the pool?"},
        inside={INSIDE},
        tallies={"letters": {"metric_depth/multi-choice": [14, 15, 15, 14]}, "yes_no": {}, "ranks": {}},
    )
