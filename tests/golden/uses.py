"""Parts that use a build: redraw its options, check it, score models on it, and pass it on."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from tests.golden import foreign
from tests.golden.digests import Artefacts
from tests.golden.parts import build_of, captures, captures_build, compose, items_of, mini, mini_build
from tests.golden.runs import Run
from tests.golden.trees import json_text, named, tree

EXPORTS = ("lmms-eval", "vlmevalkit", "inspect", "spatialscore-json", "chat-jsonl")


def distractors(run: Run) -> Artefacts:
    """Options redrawn by every strategy, enforced and recorded, and of a set that was redrawn before."""
    source = captures_build(run)
    found: Artefacts = {}
    ways = (("set-first", source, ()), ("sampled", source, ()),
            ("perturbed", source, ("--margins", "recorded", "--allow-unchanged")),
            ("again", "sampled", ("--mix", "set-first=0.3,sampled=0.7", "--task", "metric_depth", "--task",
                                  "relative_depth", "--refused", "drop")))  # fmt: skip
    for name, base, more in ways:
        folder = base if isinstance(base, Path) else run.folder / f"distractors-{base}"
        out = run.new(f"distractors-{name}")
        words = more if "--mix" in more else ("--strategy", name, *more)
        told = run.vgbench("distractors", folder, *words, "--seed", 1, "--out", out, "--workers", 1)
        found |= {f"{name}.rows": items_of(out), f"{name} told": told}
    return found


def verify(run: Run) -> Artefacts:
    """What `verify` says of both builds, from the rows and from the scenes."""
    found: Artefacts = {}
    for name, folder, scenes in (
        ("captures", captures_build(run), run.captures),
        ("mini", mini_build(run), run.samples()),
    ):
        given = ("verify", folder, "--workers", 1)
        found[f"{name} by evidence"] = run.vgbench(*given)
        found[f"{name} by scenes"] = json_text(run, run.vgbench(*given, "--scenes", scenes, "--json"))
    return found


def audit(run: Run) -> Artefacts:
    """The audit's figures."""
    out = run.new("audit")
    run.vgbench("audit", mini_build(run), "--out", out, "--workers", 1, "--pool", 200, exits=(0, 1))
    return tree(run, out, lambda name: name != "index.html")


def prune(run: Run) -> Artefacts:
    """What would be left out."""
    told = run.vgbench(
        "distractors", mini_build(run), "--prune", 0.1, "--dry-run", "--workers", 1, "--rounds", 2, "--json"
    )
    return {"told": json_text(run, told)}


def score(run: Run) -> Artefacts:
    """Replies of baselines and of a scripted model to every benchmark, scored both ways, and the tables of them."""
    mini_copy = run.copy(mini_build(run), "score/vgbench")
    published, images = foreign.spatialscore(run.new("score/spatialscore"))
    found: Artefacts = {}
    for name, data, count, more in (
        ("vgbench", mini_copy, 240, ()),
        ("spatialscore", published, 7, ("--images", images)),
        ("mmsi", foreign.mmsi(run.new("score/mmsi")), 33, ()),
        ("salbench", foreign.salbench(run.new("score/salbench")), 23, ()),
    ):
        script = foreign.scripted(run.folder, f"{name}-replies.jsonl", foreign.manners(count))
        models = (script, "baseline:random", "baseline:constant", "baseline:truth")
        asked = ("eval", data, "--benchmark", name, *more, *(word for model in models for word in ("--model", model)))
        found[f"{name}: asked"] = json_text(run, run.vgbench(*asked, "--concurrency", 1, "--json", exits=(0, 1)))
        found[f"{name}: compared"] = run.vgbench("compare", data, "--benchmark", name, exits=(0, 1))
        kept = data if data.is_dir() else data.with_name(f"{data.stem}.vgbench")
        for part in ("replies", "scores"):
            found |= named(f"{name} {part}", tree(run, kept / part, lambda one: not one.endswith(".html")))
    return found


def judge(run: Run) -> Artefacts:
    """Images graded by a scripted judge, as ROVER does it."""
    folder = run.new("judge")
    samples = foreign.rover(folder)
    model = foreign.judge(run.folder, "judge-replies.jsonl")
    told = run.vgbench("eval", "--benchmark", "rover", "--samples", samples, "--scores", folder / "out" / "o.jsonl",
                       "--judge", model, "--concurrency", 1, "--json", exits=(0, 1))  # fmt: skip
    return {"told": json_text(run, told)} | tree(run, folder / "out")


def export(run: Run) -> Artefacts:
    """Every format. The scorer inside is a copy of our modules, which tests run; here it does not count."""
    found: Artefacts = {}
    for name in EXPORTS:
        out = run.new(f"export-{name}")
        more = ("--answers",) if name == "chat-jsonl" else ()
        run.vgbench("export", mini_build(run), "--to", name, "--out", out, "--limit", 80, *more)
        found |= named(name, tree(run, out, lambda one: not one.startswith("vgbench_scorer/")))
    return found


def publish(run: Run) -> Artefacts:
    """The repositories of both builds, one with images that stay behind."""
    found: Artefacts = {}
    for name, folder in (("captures", captures_build(run)), ("mini", mini_build(run))):
        out = run.new(f"publish-{name}")
        told = run.vgbench("publish", folder, "--dry-run", "--no-check", "--out", out, "--date", "2026-01-01")
        found |= named(name, tree(run, out)) | {f"{name}: told": told}
    return found


def vote(run: Run) -> Artefacts:
    """The hard questions by the demo rule."""
    folder = run.copy(mini_build(run), "vote")
    out = run.new("vote-hard")
    told = run.vgbench(
        "vote", folder, "--rule", "demo", "--ask", "--no-audit", "--out", out, "--workers", 1, exits=(0, 1)
    )
    return named("votes", tree(run, folder / "votes")) | build_of(run, out) | {"told": told}


def imports(run: Run) -> Artefacts:
    """Every importer, and the assembly with a build of ours."""
    found: Artefacts = {}
    places = foreign.sources(run.new("sources"))
    for name, place in sorted(places.items()):
        out = run.new("imported")
        told = run.vgbench("import", name, "--from", place, "--out", out, exits=(0, 1))
        found |= {f"{name}.rows": items_of(out), f"{name} told": told}
    out = run.new("imported")
    told = run.vgbench("import", "spatialscore", "--from", run.folder / "sources", "--vgbench", mini_build(run),
                       "--out", out, exits=(0, 1))  # fmt: skip
    return found | {"spatialscore.rows": items_of(out), "spatialscore told": told}


def pages(run: Run) -> Artefacts:
    """The gallery, and one question of each kind drawn."""
    folder = mini_build(run)
    out = run.new("gallery")
    run.vgbench("browse", folder, "--out", out)
    found = named("browse", tree(run, out))
    rows: dict[str, str] = {}
    for line in items_of(folder).splitlines():
        row = json.loads(line)
        rows.setdefault(row["task"], row["id"])
    drawn = run.new("explained")
    drawn.mkdir(parents=True)
    for task, one in sorted(rows.items()):
        run.vgbench("show", one, folder, "--out", drawn / f"{task}.png")
    return found | named("explain", tree(run, drawn))


def listings(run: Run) -> Artefacts:
    """What is told of scenes."""
    return {f"scenes {name}": json_text(run, run.vgbench("scenes", place, "--json"))
             for name, place in (("captures", run.captures), ("samples", run.samples()))}  # fmt: skip


PARTS: dict[str, Callable[[Run], Artefacts]] = {
    "captures": captures, "mini": mini, "compose": compose, "distractors": distractors, "verify": verify,
    "audit": audit, "prune": prune, "score": score, "judge": judge, "export": export, "publish": publish, "vote": vote,
    "imports": imports, "pages": pages, "listings": listings,
}  # fmt: skip
