"""A whole build from raw files: content, resume, kill, faults, the same bytes for any number of workers."""

from __future__ import annotations

import errno
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from vgbench_gen.core.errors import ConfigError
from vgbench_gen.pipeline.build import BuildReport, build, recompose
from vgbench_gen.pipeline.recipe import Recipe, load_recipe
from vgbench_gen.quality.verify import scene_jobs, verify_item, verify_scene, verify_set
from vgbench_gen.scenes import discover
from vgbench_gen.scenes.base import SceneRef, loaders
from vgbench_gen.store.dataset import load
from vgbench_gen.store.provenance import LOCK
from vgbench_gen.tasks.base import tasks

SEED = 5


def recipe(**changes: object) -> Recipe:
    return load_recipe("default").model_copy(update={"seed": SEED, "facts_per_scene": 5, **changes})


@pytest.fixture(scope="session")
def built(raw_room: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, BuildReport]:
    out = tmp_path_factory.mktemp("built")
    return out, build(recipe(), raw_room, out, workers=1)


def test_every_task_is_asked_in_every_form(built: tuple[Path, BuildReport]) -> None:
    out, report = built
    asked = {(item.task, item.question_type) for item in load(out)}
    for task in tasks.values():
        for form in task.formats:
            assert (task.name, form) in asked, f"{task.name} {form}: {report.scenes}"


def test_every_answer_is_reached_again_from_evidence_and_from_raw_files(
    built: tuple[Path, BuildReport], raw_room: Path
) -> None:
    out, _ = built
    items = load(out)
    problems = verify_set(items)
    for item in items:
        problems += verify_item(item, [items.image_bytes(item, k) for k in range(len(item.images))], recipe().gates)
    jobs, missing = scene_jobs(items, discover(raw_room), recipe().gates)
    assert len(jobs) == 2
    for job in jobs:
        problems += verify_scene(job)
    assert problems + missing == []


def test_nothing_vanishes(built: tuple[Path, BuildReport]) -> None:
    """Every fact is asked or listed as not asked, in every form of its task; the manifest counts the same."""
    out, report = built
    manifest = json.loads((out / "manifest.json").read_text())
    assert manifest["counts"]["facts"] == report.facts > 0
    assert manifest["counts"]["items"] == len(load(out)) == report.composed.total
    for task in tasks.values():
        measured = sum(scene.facts.get(task.name, 0) for scene in report.scenes)
        for form in task.formats:
            rows = sum(n for key, n in report.composed.items.items() if key.startswith(f"{task.name}/{form}/"))
            unasked = sum(n for key, n in report.composed.unasked.items() if key.startswith(f"{task.name}/{form}/"))
            assert rows // (2 if form == "judgment" else 1) + unasked == measured


def test_neither_twin_always_comes_first(built: tuple[Path, BuildReport]) -> None:
    first: dict[str, str] = {}
    for item in load(built[0]):
        if item.question_type == "judgment":
            first.setdefault(item.twin_id, item.answer)
    share = sum(answer == "Yes" for answer in first.values()) / len(first)
    assert len(first) > 30
    assert 0.25 < share < 0.75


def test_two_workers_give_the_same_bytes(built: tuple[Path, BuildReport], raw_room: Path, tmp_path: Path) -> None:
    out, report = built
    again = build(recipe(), raw_room, tmp_path / "b", workers=2)
    assert again.composed.fingerprint == report.composed.fingerprint
    for kind in ("facts", "rejects", "items"):
        first = sorted(path.relative_to(out) for path in (out / kind).rglob("*.parquet"))
        assert first
        assert first == sorted(path.relative_to(tmp_path / "b") for path in (tmp_path / "b" / kind).rglob("*.parquet"))
        for path in first:
            assert (out / path).read_bytes() == (tmp_path / "b" / path).read_bytes(), path


def test_a_second_build_measures_nothing_again(raw_room: Path, tmp_path: Path) -> None:
    quick = recipe(tasks=("relative_depth", "metric_depth"))
    first = build(quick, raw_room, tmp_path, workers=1)
    second = build(quick, raw_room, tmp_path, workers=1)
    assert [scene.reused for scene in first.scenes] == [False, False]
    assert [scene.reused for scene in second.scenes] == [True, True]
    assert second.composed.fingerprint == first.composed.fingerprint
    assert [scene.rejects for scene in second.scenes] == [scene.rejects for scene in first.scenes]
    # Another seed is another build, and a lost image makes its scene be measured again.
    assert not any(s.reused for s in build(quick.model_copy(update={"seed": 6}), raw_room, tmp_path).scenes)


def test_a_lost_image_is_made_again(raw_room: Path, tmp_path: Path) -> None:
    quick = recipe(tasks=("relative_depth",))
    first = build(quick, raw_room, tmp_path)
    shutil.rmtree(tmp_path / "media")
    again = build(quick, raw_room, tmp_path)
    assert not any(scene.reused for scene in again.scenes)
    assert again.composed.fingerprint == first.composed.fingerprint


def test_composing_again_opens_no_scene_and_keeps_every_truth(built: tuple[Path, BuildReport], tmp_path: Path) -> None:
    out = tmp_path / "copy"
    shutil.copytree(built[0], out)
    before = list(load(out))
    report = recompose(recipe(distractor_seed=1), out)
    after = list(load(out))
    assert report.composed.fingerprint != built[1].composed.fingerprint
    truths = {
        (i.group_id, i.question_type): (i.answer_value, i.images[0]) for i in before if i.question_type != "judgment"
    }
    changed = compared = 0
    for item in after:
        # Another seed draws another ladder, and a ladder may fail its gates where the first one did not.
        if item.question_type == "judgment" or (item.group_id, item.question_type) not in truths:
            continue
        compared += 1
        assert truths[item.group_id, item.question_type][0] == item.answer_value
        old = next(i for i in before if (i.group_id, i.question_type) == (item.group_id, item.question_type))
        if item.question_type == "multi-choice":
            assert item.id != old.id
            changed += item.options != old.options or item.images != old.images
        else:
            assert item.id == old.id
    assert changed > 0
    assert compared > 0.9 * len(truths)
    assert all(scene.reused for scene in report.scenes)


def test_datasets_opens_the_build_with_its_images(built: tuple[Path, BuildReport], tmp_path: Path) -> None:
    files = str(built[0] / "items" / "*.parquet")
    code = (
        "import datasets\n"
        f"rows = datasets.load_dataset('parquet', data_files={files!r}, split='train')\n"
        "row = rows[0]\n"
        "assert row['images'][0].size[0] > 100, row\n"
        "print(len(rows), sum(len(r) for r in rows['images']))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "HF_HOME": str(tmp_path), "HF_HUB_OFFLINE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split()[0] == str(built[1].composed.total)


MOMENTS: dict[str, Callable[[Path], bool]] = {
    "while measuring": lambda out: (out / LOCK).exists(),
    "between scenes": lambda out: len(list((out / "facts").rglob("*.parquet"))) == 1,
    "while writing": lambda out: (out / "pictures.sqlite").exists(),
    "while packing": lambda out: any(path.name.startswith(".items.") for path in out.iterdir()),
}


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_killed_build_goes_on_to_the_same_dataset(
    built: tuple[Path, BuildReport], raw_room: Path, tmp_path: Path, moment: str
) -> None:
    settings, out = tmp_path / "recipe.toml", tmp_path / "b"
    settings.write_text(
        f"seed = {SEED}\nfacts_per_scene = 5\n[gates.frame]\nkeyframe_turn_deg = 5.0\nkeyframe_shift_m = 0.05\n"
    )
    out.mkdir()
    command = [sys.executable, "-m", "vgbench_gen.cli", "build", str(settings), "--scenes", str(raw_room)]
    command += ["--out", str(out), "--workers", "1"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while process.poll() is None and not MOMENTS[moment](out):
        time.sleep(0.005)
    process.send_signal(signal.SIGKILL)
    # Packing takes a moment only, and a busy machine may look too late.
    assert process.wait() == -signal.SIGKILL or moment == "while packing", "the build ended before the moment came"
    report = build(load_recipe(settings), raw_room, out)
    assert report.composed.fingerprint == built[1].composed.fingerprint
    assert not list(out.rglob("*.tmp*"))


def test_a_bad_scene_costs_only_itself_and_is_reported(
    built: tuple[Path, BuildReport], raw_room: Path, tmp_path: Path
) -> None:
    raw = tmp_path / "raw"
    shutil.copytree(raw_room, raw)
    (raw / "ca1m" / "ca1m-val-90000002.tar").write_bytes(b"this is no tar archive" * 100)
    report = build(recipe(), raw, tmp_path / "b")
    bad = next(scene for scene in report.scenes if scene.scene_id == "90000002")
    assert "90000002" in bad.error
    assert bad.rejects == {"scene/unreadable": 1}
    assert report.composed.fingerprint == built[1].composed.fingerprint
    again = recompose(recipe(), tmp_path / "b")
    assert [scene.error for scene in again.scenes] == [scene.error for scene in report.scenes]


def test_a_scene_whose_files_cannot_be_read_costs_only_itself(
    raw_room: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(ref: SceneRef) -> None:
        raise OSError(errno.EIO, "Input/output error", str(ref.path))

    monkeypatch.setattr(loaders["ca1m"], "open", fails)
    report = build(recipe(tasks=("relative_depth",)), raw_room, tmp_path / "b")
    bad, good = report.scenes
    assert bad.error.endswith(
        ".tar: found Input/output error; expected readable files. Check their rights and the disk."
    )
    assert good.facts["relative_depth"] > 0


def test_a_bad_frame_costs_only_itself_and_is_reported(raw_room: Path, tmp_path: Path) -> None:
    raw = tmp_path / "raw"
    shutil.copytree(raw_room / "wildrgbd", raw)
    picture = raw / "box" / "scenes" / "scenes_000" / "rgb" / "00000.png"
    picture.write_bytes(picture.read_bytes()[:5000])
    report = build(recipe(tasks=("relative_depth",)), raw, tmp_path / "b")
    (scene,) = report.scenes
    assert scene.facts["relative_depth"] > 0
    assert scene.issues == {"unusable_file": 1}
    (again,) = recompose(recipe(tasks=("relative_depth",)), tmp_path / "b").scenes
    assert (again.issues, again.total_frames) == (scene.issues, scene.total_frames)


def test_an_empty_folder_is_the_users_to_mend(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="found no scene of scannet, scannetpp, ca1m or wildrgbd"):
        build(recipe(), tmp_path, tmp_path / "b")
    with pytest.raises(ConfigError, match="found no such folder"):
        build(recipe(), tmp_path / "nowhere", tmp_path / "b")
