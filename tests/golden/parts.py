"""The parts that build: what each runs, and which artefacts it keeps.

A part that works on the build of another makes that one first, unless this run already did.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tests.golden.digests import Artefacts, file_digests, parquet_rows, parquet_schema, rows_text
from tests.golden.runs import Run
from tests.golden.trees import json_text


def captures(run: Run) -> Artefacts:
    """The recipe `default` over the real captures."""
    out = run.new("captures")
    told = run.vgbench("build", "default", "--scenes", run.captures, "--out", out, "--workers", 1)
    return build_of(run, out) | {"told": told}


def mini(run: Run) -> Artefacts:
    """The recipe `vgbench-mini` over the small sample scenes."""
    out = run.new("mini")
    told = run.vgbench("build", "vgbench-mini", "--scenes", run.samples(), "--out", out, "--workers", 1)
    return build_of(run, out) | {"told": told}


def compose(run: Run) -> Artefacts:
    """Both builds composed anew from their facts, as they were and with other draws."""
    found: Artefacts = {}
    for name, source in (("captures", captures_build(run)), ("mini", mini_build(run))):
        out = run.copy(source, "compose")
        run.vgbench("build", "--facts", out, "--workers", 1)
        found[f"{name} again.rows"] = items_of(out)
        run.vgbench("build", "--facts", out, "--workers", 1, "--distractor-seed", 7, "--strategy", "sampled",
                    "--allow-short")  # fmt: skip
        found[f"{name} sampled.rows"] = items_of(out)
    return found


def captures_build(run: Run) -> Path:
    """The build of `captures`, made where it is missing."""
    return _built(run, "captures", captures)


def mini_build(run: Run) -> Path:
    """The build of `mini`, made where it is missing."""
    return _built(run, "mini", mini)


def _built(run: Run, name: str, make: Callable[[Run], Artefacts]) -> Path:
    if not (run.folder / name / "manifest.json").exists():
        make(run)
    return run.folder / name


def build_of(run: Run, folder: Path) -> Artefacts:
    """A build: its questions as rows and as bytes, its facts and rejects, its manifest."""
    shards = sorted((folder / "items").glob("*.parquet"))
    found = {
        "items.rows": items_of(folder),
        "items schema": parquet_schema(shards),
        "items bytes": file_digests(folder, shards),
    }
    for name in ("facts", "rejects"):
        paths = sorted((folder / name).rglob("*.parquet"))
        if paths:
            found |= {f"{name}.rows": rows_text(parquet_rows(paths)), f"{name} schema": parquet_schema(paths)}
    return found | {"manifest": manifest_of(run, folder)}


def items_of(folder: Path) -> str:
    """All questions of a dataset folder as rows."""
    return rows_text(parquet_rows(sorted((folder / "items").glob("*.parquet"))))


def manifest_of(run: Run, folder: Path) -> str:
    """The manifest without what it says of the moment, the machine and the code."""
    return json_text(run, (folder / "manifest.json").read_text())
