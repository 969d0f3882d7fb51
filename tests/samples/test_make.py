from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.samples.box_world import BoxWorld, box_take
from vgbench_gen.core.errors import ConfigError
from vgbench_gen.core.types import Camera, FloatArray
from vgbench_gen.samples.base import Capture, RenderedView, SampleSpec
from vgbench_gen.samples.make import FULL, SMALL, get_scene_path, list_default_specs, make_samples
from vgbench_gen.samples.paths import FilmingTarget, make_walk
from vgbench_gen.scenes import discover
from vgbench_gen.scenes.licence import find_licence
from vgbench_gen.store.provenance import BuildLocked

COUNTS = {"ca1m": 2, "wildrgbd": 2}


def files(out: Path) -> dict[str, bytes]:
    return {str(p.relative_to(out)): p.read_bytes() for p in sorted(out.rglob("*")) if p.is_file()}


def some(counts: dict[str, int] | None = None, seed: int = 0, frames: int = 4) -> list[SampleSpec]:
    return list_default_specs(COUNTS if counts is None else counts, seed, frames)


def test_the_whole_set() -> None:
    specs = list_default_specs(FULL)
    assert {name: sum(s.dataset == name for s in specs) for name in FULL} == FULL
    assert sum(FULL.values()) == 68
    assert len({(s.dataset, s.scene_id) for s in specs}) == 68
    kinds = [s.camera_kind for s in specs if s.dataset == "scannetpp"]
    assert (kinds.count("iphone"), kinds.count("dslr")) == (7, 3)
    assert {s.scene_id.partition("/")[2] for s in specs if s.camera_kind == "dslr"} == {"dslr"}
    patterns = {"ca1m": r"9\d{7}", "scannet": r"scene9\d{3}_\d\d", "scannetpp": r"[0-9a-f]{10}/\w+"}
    patterns["wildrgbd"] = r"[a-z]+/scenes_\d{3}"
    assert all(re.fullmatch(patterns[s.dataset], s.scene_id) for s in specs)
    splits = {name: {s.split for s in specs if s.dataset == name} for name in FULL}
    assert splits == {name: {"train", "val"} | ({"test"} if name == "scannet" else set()) for name in FULL}
    # Rescans of one room are on one side of a split.
    rooms = {(s.scene_id[:9], s.split) for s in specs if s.dataset == "scannet"}
    assert len(rooms) == 10
    assert set(list_default_specs(SMALL)) < set(specs)


@pytest.mark.parametrize(("counts", "frames"), [({"kitti": 1}, 30), ({"ca1m": 1}, 3), ({"ca1m": 901}, 30)])
def test_senseless_wishes_are_refused(counts: dict[str, int], frames: int) -> None:
    with pytest.raises(ConfigError):
        list_default_specs(counts, frames=frames)


def test_the_same_bytes_from_one_process_and_two_in_any_order(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    made = make_samples(some(), one, film=box_take)
    assert [m.spec for m in made] == some()
    assert all(m.seconds > 0 and m.size_bytes > 1000 for m in made)
    told: list[tuple[int, int]] = []
    make_samples(list(reversed(some())), two, 2, film=box_take, on_frame=lambda done, total: told.append((done, total)))
    assert files(one) == files(two)
    assert (told[0], told[-1]) == ((0, 16), (16, 16))
    assert told == sorted(told)
    other = make_samples(some(seed=1), tmp_path / "other", film=box_take)
    assert Path(other[0].path).read_bytes() != Path(made[0].path).read_bytes()


def test_every_rendered_frame_is_counted(tmp_path: Path) -> None:
    told: list[tuple[int, int]] = []
    specs = some({"scannet": 1, "scannetpp": 2})  # of ScanNet one pose is lost, of ScanNet++ one is a DSLR
    make_samples(specs, tmp_path, film=box_take, on_frame=lambda done, total: told.append((done, total)))
    assert told == [(done, 12) for done in range(13)]


def test_a_walk_of_too_few_frames_says_what_to_do() -> None:
    rng, target = np.random.default_rng(0), FilmingTarget(np.array([3.0, 2.0, 0.5]), 1.0)
    camera = Camera(np.array([[500.0, 0, 320], [0, 500, 240], [0, 0, 1]]), 640, 480)
    with pytest.raises(ConfigError, match=r"found no camera path .* Use --frames 24"):
        make_walk(rng, 4, camera, [target], (0.7, 0.7, 2.5), lambda eyes: np.ones(len(eyes)))


def test_videos_have_the_same_bytes_twice(tmp_path: Path) -> None:
    for name in ("one", "two"):
        make_samples(some({"scannetpp": 1}), tmp_path / name, film=box_take)
    assert files(tmp_path / "one") == files(tmp_path / "two")
    assert sum(name.endswith(".mkv") for name in files(tmp_path / "one")) == 2


def test_a_second_run_makes_what_is_missing_and_lists_it(tmp_path: Path) -> None:
    make_samples(some({"ca1m": 1, "wildrgbd": 1}), tmp_path / "grown", film=box_take)
    first = get_scene_path(tmp_path / "grown", some()[0])
    stamp = first.stat().st_mtime_ns
    told: list[tuple[str, int, int]] = []
    grown = make_samples(some(), tmp_path / "grown", 1, lambda m, d, t: told.append((m.spec.scene_id, d, t)), box_take)
    assert [m.seconds > 0 for m in grown] == [False, True, False, True]
    assert first.stat().st_mtime_ns == stamp
    assert [(done, total) for _, done, total in told] == [(2, 4), (2, 4), (3, 4), (4, 4)]
    make_samples(some(), tmp_path / "whole", film=box_take)
    assert files(tmp_path / "grown") == files(tmp_path / "whole")
    # Asking for less takes nothing away.
    make_samples(some({"ca1m": 1}), tmp_path / "grown", film=box_take)
    assert files(tmp_path / "grown") == files(tmp_path / "whole")


class TiredWorld(BoxWorld):
    """Fails at the third look."""

    looks = 0

    def look(self, camera: Camera, world_from_camera: FloatArray) -> RenderedView:
        self.looks += 1
        if self.looks == 3:
            raise RuntimeError("tired")
        return super().look(camera, world_from_camera)


def tired_capture(spec: SampleSpec) -> Capture:
    capture = box_take(spec)
    return replace(capture, world=TiredWorld()) if spec.number else capture


@pytest.mark.parametrize("dataset", ["ca1m", "scannet", "scannetpp", "wildrgbd"])
def test_a_broken_run_leaves_no_half_scene(tmp_path: Path, dataset: str) -> None:
    specs = [spec for spec in some({dataset: 3}) if spec.number != 1]  # of one camera, so made in this order
    with pytest.raises(RuntimeError, match="tired"):
        make_samples(specs, tmp_path, film=tired_capture)
    assert [ref.scene_id for ref in discover(tmp_path)] == [specs[0].scene_id]
    assert not [name for name in files(tmp_path) if ".tmp" in name]


KILLED = """
import os, signal
from pathlib import Path
from tests.samples import test_make
from tests.samples.box_world import box_take
from vgbench_gen.samples.make import make_samples
class Deadly(test_make.TiredWorld):
    def look(self, camera, pose):
        try:
            return super().look(camera, pose)
        except RuntimeError:
            os.kill(os.getpid(), signal.SIGKILL)
test_make.TiredWorld = Deadly
make_samples(test_make.some(), Path({out!r}), film=test_make.tired_capture)
"""


def test_a_killed_run_goes_on_where_it_stopped(tmp_path: Path) -> None:
    out, whole = tmp_path / "killed", tmp_path / "whole"
    root = Path(__file__).resolve().parents[2]
    environment = os.environ | {"PYTHONPATH": str(root), "OMP_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, "-c", KILLED.format(out=str(out))], env=environment, check=False)
    assert done.returncode == -9
    assert [name for name in files(out) if ".tmp" in name]  # it died amid a scene
    assert {ref.scene_id for ref in discover(out)} < {spec.scene_id for spec in some()}
    make_samples(some(), out, film=box_take)
    make_samples(some(), whole, film=box_take)
    assert files(out) == files(whole)


def test_other_settings_are_not_mixed_in(tmp_path: Path) -> None:
    make_samples(some({"ca1m": 1}), tmp_path, film=box_take)
    before = files(tmp_path)
    for other in (some({"ca1m": 1}, seed=5), some({"ca1m": 1}, frames=5)):
        with pytest.raises(ConfigError, match=r"made with (seed|frames) \d+; expected .*delete"):
            make_samples(other, tmp_path, film=box_take)
    marker = tmp_path / "samples-ca1m" / "SAMPLES.json"
    stated = json.loads(marker.read_text())
    marker.write_text(json.dumps(stated | {"settings": stated["settings"] | {"version": 0}}))
    with pytest.raises(ConfigError, match="made with version 0"):
        make_samples(some({"ca1m": 1}), tmp_path, film=box_take)
    marker.write_text("{")
    with pytest.raises(ConfigError, match="damaged"):
        make_samples(some({"ca1m": 1}), tmp_path, film=box_take)
    marker.write_bytes(before["samples-ca1m/SAMPLES.json"])
    assert files(tmp_path) == before


def test_a_walk_of_too_few_frames_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    for dataset in ("ca1m", "scannet", "scannetpp"):
        with pytest.raises(ConfigError, match=f"--frames 11: too few for {dataset}; expected 12 or more"):
            make_samples(some({dataset: 1}, frames=11), tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_folder_of_a_run_without_a_finished_scene_takes_other_settings(tmp_path: Path) -> None:
    def fail(spec: SampleSpec) -> Capture:
        raise ConfigError("no way")

    with pytest.raises(ConfigError, match="no way"):
        make_samples(some({"ca1m": 2}, frames=5), tmp_path / "again", film=fail)
    assert list(files(tmp_path / "again"))
    for name in ("again", "whole"):
        make_samples(some({"ca1m": 1}), tmp_path / name, film=box_take)
    assert files(tmp_path / "again") == files(tmp_path / "whole")


def test_what_others_put_there_stays(tmp_path: Path) -> None:
    foreign = tmp_path / "samples-ca1m" / "ca1m-val-42898570.tar"
    foreign.parent.mkdir()
    foreign.write_bytes(b"theirs")
    with pytest.raises(ConfigError, match=r"no SAMPLES\.json"):
        make_samples(some({"ca1m": 1}), tmp_path, film=box_take)
    assert files(tmp_path) == {"samples-ca1m/ca1m-val-42898570.tar": b"theirs"}
    foreign.unlink()
    make_samples(some({"ca1m": 1}), tmp_path, film=box_take)
    theirs = get_scene_path(tmp_path, some()[1])
    theirs.write_bytes(b"theirs")
    with pytest.raises(ConfigError, match=r"does not name"):
        make_samples(some({"ca1m": 2}), tmp_path, film=box_take)
    assert theirs.read_bytes() == b"theirs"


def test_two_runs_do_not_share_a_folder(tmp_path: Path) -> None:
    def film(spec: SampleSpec) -> Capture:
        with pytest.raises(BuildLocked):
            make_samples([spec], tmp_path, film=box_take)
        return box_take(spec)

    make_samples(some({"ca1m": 1}), tmp_path, film=film)


@pytest.mark.parametrize(
    "text",
    ["", "[]", '{"licence": 7}', '{"licence": "Do what\\nyou like"}', '{"licence": "cc0-1.0"}']
    + ['{"licence": "cc0-1.0", "scenes": ' + scenes + "}" for scenes in ("[]", '{"x": 1}', '{"x": {"path": "data"}}')]
    + [
        json.dumps({"licence": "cc0-1.0", "scenes": {"x": {"path": path, "digest": ""}}})
        for path in (".", "..", "data")
    ],
)
def test_a_senseless_samples_file_gives_no_licence(tmp_path: Path, text: str) -> None:
    scene = tmp_path / "data" / "0a1b2c3d4e" / "iphone"
    scene.mkdir(parents=True)
    assert find_licence(scene, "scannetpp-tou") == "scannetpp-tou"
    (tmp_path / "SAMPLES.json").write_text(text)
    assert find_licence(scene, "scannetpp-tou") == "scannetpp-tou"


def test_only_the_samples_themselves_stand_under_their_licence(tmp_path: Path) -> None:
    """A real scan that is put beside samples, in the place of one or under its name keeps its own terms."""
    first, second = (made.path for made in make_samples(some({"wildrgbd": 2}), tmp_path, film=box_take))
    assert find_licence(first, "mit") == find_licence(second, "mit") == "cc0-1.0"
    beside = first.with_name("scenes_001")
    shutil.copytree(first, beside)
    assert find_licence(beside, "mit") == "mit"
    picture = next((first / "rgb").iterdir())
    picture.write_bytes(picture.read_bytes()[:-1] + b"x")
    assert find_licence(first, "mit") == "mit"
    shutil.rmtree(second)
    beside.rename(second)
    assert find_licence(second, "mit") == "mit"


def test_a_scene_that_is_there_without_a_digest_is_made_again_and_compared(tmp_path: Path) -> None:
    (spec,) = some({"ca1m": 1})
    (made,) = make_samples([spec], tmp_path, film=box_take)
    before, marker = files(tmp_path), tmp_path / "samples-ca1m/SAMPLES.json"
    stated = json.loads(marker.read_text())
    del stated["scenes"][spec.scene_id]["digest"]
    marker.write_text(json.dumps(stated))
    assert find_licence(made.path, "theirs") == "theirs"
    make_samples([spec], tmp_path, film=box_take)
    assert files(tmp_path) == before
    assert find_licence(made.path, "theirs") == "cc0-1.0"
    marker.write_text(json.dumps(stated))
    made.path.write_bytes(b"a real scan")
    with pytest.raises(ConfigError, match="other files than"):
        make_samples([spec], tmp_path, film=box_take)
    assert made.path.read_bytes() == b"a real scan"
    assert find_licence(made.path, "theirs") == "theirs"
