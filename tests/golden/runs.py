"""Where a run of the golden parts works, and how it calls the program: by its command line alone, as a user would."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from tests.golden.digests import normalise
from vgbench_gen.samples.make import SAMPLES_VERSION

ROOT = Path(__file__).parents[2]


class PartFailed(Exception):
    """A verb did not end as it should."""


class NotHere(Exception):
    """What a part needs is not on this machine."""


@dataclass(frozen=True)
class Run:
    """Folders of one run.

    shared: kept between runs of all checkouts (the rendered samples). folder: of this checkout's run.
    """

    shared: Path
    folder: Path

    @property
    def captures(self) -> Path:
        """The folder of real captures, from VGBENCH_CAPTURES or beside the checkout."""
        for place in (os.environ.get("VGBENCH_CAPTURES", ""), ROOT.parent / "shared" / "captures"):
            if place and Path(place).is_dir():
                return Path(place).resolve()
        raise NotHere("no real captures: set VGBENCH_CAPTURES to their folder")

    def new(self, name: str) -> Path:
        """A folder that is not there yet, below `folder`."""
        path = self.folder / name
        shutil.rmtree(path, ignore_errors=True)
        path.parent.mkdir(parents=True, exist_ok=True)
        return path

    def copy(self, source: Path, name: str) -> Path:
        """A copy of a build, to change or to write beside, without its picture cache and what models said."""
        target = self.new(name)
        shutil.copytree(source, target, ignore=shutil.ignore_patterns("*.sqlite*", "replies", "scores", "votes"))
        return target

    def vgbench(self, *words: object, exits: Sequence[int] = (0,)) -> str:
        """Standard output of `vgbench WORDS`, without times and folders; it runs in `folder`.

        Raises:
            PartFailed: it ended otherwise than with one of `exits`.
        """
        own = {"PYTHONPATH": str(ROOT), "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "COLUMNS": "120"}
        command = [sys.executable, "-m", "vgbench_gen.cli", *map(str, words)]
        done = subprocess.run(
            command, cwd=self.folder, env={**os.environ, **own}, capture_output=True, text=True, check=False
        )
        if done.returncode not in exits:
            tail = "\n".join([*done.stdout.splitlines()[-5:], *done.stderr.splitlines()[-15:]])
            raise PartFailed(f"vgbench {' '.join(map(str, words))}: exit {done.returncode}\n{tail}")
        return self.plain(done.stdout)

    def plain(self, text: str) -> str:
        """A text without times and without the folders of this machine."""
        places = {str(self.folder): "run", str(self.shared): "shared", str(ROOT): "checkout"}
        with suppress(NotHere):
            places[str(self.captures)] = "captures"
        return normalise(text, places)

    def samples(self) -> Path:
        """The small sample scenes, rendered once for all checkouts with this version of the samples."""
        folder, whole = self.shared / "samples", self.shared / "samples.whole"
        with self.alone("samples"):
            if not whole.exists() or whole.read_text() != str(SAMPLES_VERSION):
                shutil.rmtree(folder, ignore_errors=True)
                self.vgbench("samples", "--small", "--out", folder, "--workers", 1)
                whole.write_text(str(SAMPLES_VERSION))
        return folder

    @contextmanager
    def alone(self, name: str) -> Iterator[None]:
        """Wait for other runs that do this."""
        self.shared.mkdir(parents=True, exist_ok=True)
        with (self.shared / f".{name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
