"""The same bytes, whatever happens: killed, on a full disk, in other circumstances.

VGBENCH_KILLS says how often the build is killed (4: at every stage once; `make test-all` kills at random as well).
"""

from __future__ import annotations

import json
import multiprocessing
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from multiprocessing.process import BaseProcess
from pathlib import Path

import numpy as np
import pytest

from tests.pipeline.same_bytes import content, leftovers, quick_build
from vgbench_gen.store.provenance import LOCK

ROOT = Path(__file__).parents[2]
KILLS = int(os.environ.get("VGBENCH_KILLS", "4"))
Reference = tuple[Path, dict[str, str]]

MOMENTS: dict[str, Callable[[Path], bool]] = {
    "while measuring": lambda out: (out / LOCK).exists(),
    "between scenes": lambda out: any((out / "facts").rglob("*.parquet")),
    "while writing": lambda out: (out / "pictures.sqlite").exists(),
    "while packing": lambda out: any(path.name.startswith(".items.") for path in out.iterdir()),
}


@pytest.fixture(scope="module")
def started() -> Callable[[Path, Path], BaseProcess]:
    """Starts the quick build in a process of its own that has imported everything already."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["__main__", "tests.pipeline.same_bytes", "vgbench_gen.pipeline.build"])

    def start(raw: Path, out: Path) -> BaseProcess:
        process = context.Process(target=quick_build, args=(raw, out))
        process.start()
        return process

    return start


def moments(whole_s: list[float]) -> Iterator[Callable[[Path], bool]]:
    """When to kill: at every stage once, then at random within the quickest of the whole builds so far."""
    yield from MOMENTS.values()
    rng = np.random.default_rng(0)
    while True:
        until = time.monotonic() + rng.uniform(0, min(whole_s))
        yield lambda _, until=until: time.monotonic() > until  # type: ignore[misc]


@pytest.mark.timeout(900)
def test_a_build_killed_at_any_moment_goes_on_to_the_same_bytes(
    raw_room: Path, tmp_path: Path, started: Callable[[Path, Path], BaseProcess]
) -> None:
    whole_s = []
    for name in ("warm", "reference"):
        began = time.monotonic()
        whole = started(raw_room, tmp_path / name)
        whole.join()
        assert whole.exitcode == 0
        whole_s.append(time.monotonic() - began)
    expected = content(tmp_path / "reference")
    assert {name.split("/")[0] for name in expected} == {"facts", "rejects", "items", "media"}
    out, kills, finished = tmp_path / "b", 0, 0
    moment = moments(whole_s)
    while kills < KILLS:
        anew = not out.exists()
        out.mkdir(exist_ok=True)
        now, began = next(moment), time.monotonic()
        process = started(raw_room, out)
        while process.is_alive() and not now(out):
            time.sleep(0.002)
        process.kill()
        process.join()
        if process.exitcode:
            kills += 1
            continue
        # Done before the moment came: begin anew, or the rest would only be kills of a finished build.
        finished += 1
        if anew:  # a machine that was busy at first would let most builds end before they are killed
            whole_s.append(time.monotonic() - began)
        assert content(out) == expected
        shutil.rmtree(out)
        assert finished <= 3 * KILLS + 3
    report = quick_build(raw_room, out)
    assert content(out) == expected
    assert not leftovers(out)
    assert report.composed.fingerprint == fingerprint(tmp_path / "reference")


def fingerprint(out: Path) -> str:
    return str(json.loads((out / "manifest.json").read_text())["fingerprint"])


def test_other_circumstances_give_the_same_bytes(reference: Reference, raw_room: Path, tmp_path: Path) -> None:
    """Two workers, another locale, time zone and hash seed, the scenes elsewhere and in another order on the disk."""
    raw, out = tmp_path / "raw", tmp_path / "b"
    shutil.copytree(raw_room / "wildrgbd", raw / "a" / "wildrgbd", copy_function=shutil.copyfile)
    shutil.copytree(raw_room / "ca1m", raw / "z" / "deep" / "ca1m", copy_function=shutil.copyfile)
    code = (
        "import sys; from pathlib import Path; from tests.pipeline.same_bytes import small_build\n"
        "small_build([Path(p) for p in sys.argv[2:]], Path(sys.argv[1]), 2)\n"
    )
    # Without its UTF-8 mode Python takes ASCII for the encoding of files in this locale.
    other = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "TZ": "Pacific/Kiritimati"}
    threads = {"PYTHONHASHSEED": "7", "OPENBLAS_NUM_THREADS": "3", "OMP_NUM_THREADS": "3"}
    command = [sys.executable, "-c", code, str(out), str(raw / "a"), str(raw / "z")]
    done = subprocess.run(
        command, cwd=ROOT, env={**os.environ, **other, **threads}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert content(out) == reference[1]
    assert fingerprint(out) == fingerprint(reference[0])


# Runs with a disk that grows step by step: as root of a user namespace with a tmpfs of its own, or with a limit on the
# size of files, which the kernel answers with another error at the same places.
FULL_DISK = """
import contextlib, io, json, resource, subprocess, sys
from pathlib import Path
import vgbench_gen.cli.main
from tests.pipeline.same_bytes import content, leftovers, quick_build

kind, raw, out, *sizes = sys.argv[1:]
out = Path(out)
out.mkdir()
vgbench_gen.cli.main._run = lambda app, arguments: quick_build(Path(raw), out) and 0
if kind == "tmpfs":
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4k", "tmpfs", str(out)], check=True)
told = []
for size in sizes:
    if kind == "tmpfs":
        subprocess.run(["mount", "-o", f"remount,size={size}", str(out)], check=True)
    else:
        resource.setrlimit(resource.RLIMIT_FSIZE, (int(size), resource.RLIM_INFINITY))
    with contextlib.redirect_stderr(io.StringIO()) as said:
        status = vgbench_gen.cli.main.main([])
    told.append((status, said.getvalue(), len(list((out / "facts").glob("*/*.parquet")))))
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
print(json.dumps({"told": told, "content": content(out), "left": [str(p) for p in leftovers(out)]}))
"""


@pytest.fixture(scope="module")
def quick(raw_room: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The quick build, made without a stop."""
    out = tmp_path_factory.mktemp("quick")
    quick_build(raw_room, out)
    return out


@pytest.mark.parametrize("kind", ["tmpfs", "file size"])
def test_a_full_disk_ends_in_one_line_and_the_build_goes_on_later(
    quick: Path, raw_room: Path, tmp_path: Path, kind: str
) -> None:
    files = [path.stat().st_size for path in quick.rglob("*") if path.is_file()]
    total = sum(files) if kind == "tmpfs" else max(files)
    shares = (0.02, 0.3, 0.5, 0.7, 3.0) if kind == "tmpfs" else (0.001, 0.5, 3.0, 10.0)
    sizes = [str(max(4096 if kind == "tmpfs" else 10, int(total * share))) for share in shares]
    command = [sys.executable, "-c", FULL_DISK, kind, str(raw_room), str(tmp_path / "b"), *sizes]
    if kind == "tmpfs":
        unshare = ["unshare", "--user", "--map-root-user", "--mount"]
        if shutil.which("unshare") is None or subprocess.run([*unshare, "true"], capture_output=True).returncode:
            pytest.skip("no user namespaces here")
        command = [*unshare, *command]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    *failed, last = found["told"]
    for status, said, _ in failed:
        assert status == 2, found["told"]
        assert len(said.splitlines()) == 1
        assert "Free space and run again: what was finished is kept." in said
    assert last[:2] == [0, ""]
    shards = [count for _, _, count in failed]
    assert shards[0] == 0
    # The largest file of all is a temporary one of measuring, so a limit of sizes bites there or not at all.
    assert kind == "file size" or shards[-1] == 2, "the disk was never full after the last scene: choose other sizes"
    assert found["content"] == content(quick)
    assert not found["left"]


def test_the_manifest_is_the_same_whatever_was_measured_before(quick: Path, raw_room: Path, tmp_path: Path) -> None:
    """Times and what was reused stand in a file of their own."""
    out = shutil.copytree(quick, tmp_path / "b")
    (out / "times.json").unlink()
    quick_build(raw_room, out)
    assert (out / "manifest.json").read_bytes() == (quick / "manifest.json").read_bytes()
    times = json.loads((out / "times.json").read_bytes()).values()
    assert times
    assert all(scene["reused"] is True and scene["seconds"] >= 0 for scene in times)
