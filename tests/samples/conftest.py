from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.samples.box_world import box_take
from tests.shared import make_once
from vgbench_gen.samples.base import Capture, SampleSpec
from vgbench_gen.samples.make import get_scene_path, list_default_specs, make_samples
from vgbench_gen.scenes import discover
from vgbench_gen.scenes.base import Scene, loaders

# Running numbers: train, val and test; landscape and portrait (odd); iPhone and DSLR (1).
NUMBERS = {"ca1m": (0, 1), "scannet": (0, 5, 9), "scannetpp": (0, 1, 3), "wildrgbd": (0, 1)}
Opened = tuple[Scene, SampleSpec, Capture, Path]


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A few samples of every dataset."""
    return make_once(tmp_path_factory, "samples", lambda out: make_samples(specs(), out, film=box_take))


@pytest.fixture(scope="session")
def opened(folder: Path) -> Callable[[str, int], Opened]:
    """(scene as the loader reads it, spec, take it was made of, its file or folder) by dataset and running number."""
    refs = {(ref.dataset, ref.scene_id): ref for ref in discover(folder)}
    assert set(refs) == {(spec.dataset, spec.scene_id) for spec in specs()}

    def open_one(dataset: str, number: int) -> Opened:
        spec = next(s for s in specs() if (s.dataset, s.number) == (dataset, number))
        ref = refs[dataset, spec.scene_id]
        assert ref.split == spec.split
        scene = loaders[dataset].open(ref)
        assert (scene.split, scene.licence) == (spec.split, "cc0-1.0")
        return scene, spec, box_take(spec), get_scene_path(folder, spec)

    return open_one


def specs() -> list[SampleSpec]:
    everything = list_default_specs({"ca1m": 2, "scannet": 10, "scannetpp": 4, "wildrgbd": 2}, seed=3, frames=6)
    return [spec for spec in everything if spec.number in NUMBERS[spec.dataset]]
