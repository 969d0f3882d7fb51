"""What the parts of one run share: the scenes, a scratch folder, and the builds that several of them look at."""

from __future__ import annotations

import resource
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

from vgbench_gen.pipeline.build import find_scenes
from vgbench_gen.pipeline.recipe import Recipe, load_recipe
from vgbench_gen.scenes.base import SceneRef


@dataclass(frozen=True, slots=True)
class Built:
    """A finished build. seconds: from typing the command to its end, nothing loaded or measured before.

    cpu_s: processor time of it and its workers; above `seconds` with several, and below where it waited for the disk.
    """

    out: Path
    seconds: float
    cpu_s: float


@dataclass
class Session:
    """root: raw scenes. scratch: goes when the run ends. recipe_name: what is built."""

    root: Path
    scratch: Path
    recipe_name: str
    _built: dict[int, Built] = field(default_factory=dict)

    @property
    def recipe(self) -> Recipe:
        """The recipe behind the name."""
        return load_recipe(self.recipe_name)

    @property
    def refs(self) -> list[SceneRef]:
        """All scenes below the root."""
        return find_scenes(self.root)

    def built(self, workers: int) -> Built:
        """A build from nothing with this many workers; made once per run.

        Raises:
            CalledProcessError: the build failed; it has said why.
        """
        if workers not in self._built:
            out = self.scratch / f"build-{workers}"
            command = [sys.executable, "-m", "vgbench_gen.cli", "build", self.recipe_name, "--allow-short"]
            command += ["--scenes", str(self.root), "--out", str(out), "--workers", str(workers)]
            began, cpu_s = time.perf_counter(), _children_cpu_s()
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
            self._built[workers] = Built(out, time.perf_counter() - began, _children_cpu_s() - cpu_s)
        return self._built[workers]


def _children_cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
