"""`vgbench score`: replies that are already there, scored; nothing is asked and nothing is fetched."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from vgbench_gen.evaluation.cases import Tally

_NAMED = 20  # bad lines named in full; all of them are counted


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("score", epilog="Example: vgbench score --cases replies.jsonl --json")(score)


def score(
    cases: Annotated[
        Path,
        typer.Option(
            "--cases",
            metavar="FILE",
            help="One case per line: id, benchmark, question_type, response, ground_truth, options, question.",
        ),
    ],
    as_json: Annotated[bool, typer.Option("--json", help="Print one line per case instead of a summary.")] = False,
) -> None:
    """Score replies as we read them (sane) and as the published scripts do (official), side by side.

    Lengths are extracted in metres. A line that cannot be scored is named on standard error and the others go on.
    Exits 0 if every line was scored and 1 otherwise.
    """
    from vgbench_gen.evaluation.cases import Tally, score_file

    tally = Tally()
    for row in score_file(cases, tally):
        if as_json:
            print(json.dumps(row, ensure_ascii=False, allow_nan=False))
    if not as_json:
        for line in _summary(tally):
            print(line)
    for problem in tally.bad[:_NAMED]:
        print(f"vgbench: warning: {problem}", file=sys.stderr)
    if tally.bad:
        total = len(tally.bad) + len(tally.sane)
        print(f"vgbench: warning: {len(tally.bad)} of {total} lines could not be scored", file=sys.stderr)
        raise typer.Exit(1)


def _summary(tally: Tally) -> list[str]:
    from vgbench_gen.evaluation.answers.outcomes import OUTCOMES
    from vgbench_gen.evaluation.metrics import micro

    n = len(tally.sane)
    if not n:
        return ["0 cases scored"]
    lines = [f"{n} cases scored", f"mean score: sane {micro(tally.sane):.4f}, official {micro(tally.official):.4f}"]
    lines += [f"{outcome:<11}{tally.outcomes[outcome]:>7} {tally.outcomes[outcome] / n:>7.1%}" for outcome in OUTCOMES]
    unread = ", ".join(f"{status} {tally.statuses[status]}" for status in ("no_answer", "ambiguous", "truncated"))
    differ = sum(ours != theirs for ours, theirs in zip(tally.sane, tally.official, strict=True))
    return [*lines, f"unreadable: {unread}", f"sane and official differ on {differ}"]
