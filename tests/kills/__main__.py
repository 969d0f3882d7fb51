"""`python -m tests.kills VERB FOLDER AT_WRITES AT_RANDOM`: see `tests.kills.harness.kill_often`."""

from __future__ import annotations

import re
from pathlib import Path

from tests.importers import source_files
from tests.kills.harness import Verb, main
from tests.pipeline.same_bytes import small_recipe
from tests.publish.published import publish, write_build
from tests.room_writer import write_wildrgbd
from tests.samples.box_world import box_take
from tests.scene_factory import room_scene
from vgbench_gen.cli.main import main as run_program
from vgbench_gen.pipeline.build import build
from vgbench_gen.pipeline.redraw import RedrawSettings, redraw
from vgbench_gen.samples.make import list_default_specs, make_samples

# Times of builds, and a memory of pictures.
MEMORY = ("times.json", "pictures.sqlite", "pictures.sqlite-wal", "pictures.sqlite-shm")


def drop_times(log: bytes) -> bytes:
    """The lines of a log without times, sorted: replies stand in the order of coming. Scores hold its digest."""
    lines = re.sub(rb'"(?:time|latency_s)":[^,}]*|"replies": ?"[0-9a-f]*"', b"", log).splitlines()
    return b"\n".join(sorted(lines))


def write_scan(folder: Path) -> None:
    write_wildrgbd(folder / "raw", room_scene(seed=3, frames=6, width=240, height=180, dataset="wildrgbd"))


def build_few(folder: Path) -> None:
    recipe = small_recipe().model_copy(update={"tasks": ("metric_depth", "relative_depth")})
    build(recipe, folder / "raw", folder / "out")


def write_built(folder: Path) -> None:
    write_scan(folder)
    build_few(folder)


def run(*argv: str) -> None:
    status = run_program(argv)
    if status:
        raise RuntimeError(f"{argv[0]}: status {status}")


def ask(folder: Path) -> None:
    run("eval", str(folder / "data"), "--model", "baseline:random")


def vote(folder: Path) -> None:
    hard = ["--rule", "demo", "--wrong", "6", "--large", "0", "--ask", "--out", str(folder / "hard")]
    run("vote", str(folder / "data"), *hard, "--workers", "1")


VERBS = {
    "build": Verb(write_scan, build_few, MEMORY),
    "distractors": Verb(
        write_built, lambda f: redraw(f / "out", RedrawSettings({"default": 1.0}, 1), f / "other"), MEMORY
    ),
    "eval": Verb(lambda f: write_build(f / "data"), ask, compared=drop_times),
    "vote": Verb(lambda f: write_build(f / "data"), vote, compared=drop_times),
    "publish": Verb(lambda f: write_build(f / "data"), lambda f: publish(f / "data", f / "out")),
    "pull": Verb(
        lambda f: publish(write_build(f / "data"), f / "set"),
        lambda f: run("pull", str(f / "set"), "--out", str(f / "out")),
    ),
    "import": Verb(
        lambda f: source_files.cvbench(f / "source"),
        lambda f: run("import", "cvbench", "--from", str(f / "source"), "--out", str(f / "out")),
    ),
    "samples": Verb(
        lambda f: None, lambda f: make_samples(list_default_specs({"ca1m": 2}, 0, 4), f / "out", film=box_take)
    ),
}

if __name__ == "__main__":
    main(VERBS)
