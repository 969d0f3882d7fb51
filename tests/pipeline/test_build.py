"""A whole build from raw files: content, reuse, faults. The same bytes however built: `test_same_bytes`."""

from __future__ import annotations

import errno
import json
import re
import shutil
from collections import Counter
from pathlib import Path

import datasets
import pyarrow.parquet as pq
import pytest

from tests.pipeline.same_bytes import small_recipe as recipe
from vgbench_gen.cli.main import main
from vgbench_gen.core.errors import ConfigError
from vgbench_gen.evaluation.board import make_entry
from vgbench_gen.pipeline.build import BuildReport, build, measure, recompose
from vgbench_gen.pipeline.compose import ComposeReport
from vgbench_gen.pipeline.measure import SceneReport, shard_key
from vgbench_gen.pipeline.plan import Plan, read_targets
from vgbench_gen.pipeline.recipe import Limits
from vgbench_gen.pipeline.redraw import RedrawSettings, redraw
from vgbench_gen.pipeline.shortfall import QuotasNotMet, Shortfall, give_advice
from vgbench_gen.pipeline.summary import cell_lines, loss_lines
from vgbench_gen.quality.verify import group_by_scene, verify_item, verify_scene, verify_set
from vgbench_gen.scenes import discover, open_scenes
from vgbench_gen.scenes.base import SceneRef, loaders
from vgbench_gen.store.dataset import load
from vgbench_gen.tasks.base import tasks

QUICK = recipe(tasks=("relative_depth", "metric_depth"))


@pytest.fixture(scope="module")
def built(small_built: tuple[Path, BuildReport]) -> tuple[Path, BuildReport]:
    return small_built


@pytest.fixture(scope="module")
def quick(raw_room: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, BuildReport]:
    """A build of two tasks; copy it before changing it."""
    out = tmp_path_factory.mktemp("quick")
    return out, build(QUICK, raw_room, out)


def test_every_task_is_asked_in_every_form(built: tuple[Path, BuildReport]) -> None:
    out, report = built
    asked = {(item.task, item.question_type) for item in load(out)}
    for task in (task for task in tasks.values() if task.by_default):
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
    jobs, missing = group_by_scene(items, discover(raw_room), recipe().gates)
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
    for task in (task for task in tasks.values() if task.by_default):
        measured = sum(scene.facts.get(task.name, 0) for scene in report.scenes)
        for form in task.formats:
            rows = sum(n for key, n in report.composed.items.items() if key.startswith(f"{task.name}/{form}/"))
            unasked = sum(n for key, n in report.composed.unasked.items() if key.startswith(f"{task.name}/{form}/"))
            twice = report.composed.pairs.get(f"{task.name}/{form}", 0)
            assert rows // (2 if form == "judgment" else 1) - twice + unasked == measured
    assert manifest["pairs"] == report.composed.pairs
    assert sum(report.composed.pairs.values()) > 2


def test_neither_twin_always_comes_first(built: tuple[Path, BuildReport]) -> None:
    first: dict[str, str] = {}
    for item in load(built[0]):
        if item.question_type == "judgment":
            first.setdefault(item.twin_id, item.answer)
    share = sum(answer == "Yes" for answer in first.values()) / len(first)
    assert len(first) > 20
    assert 0.25 < share < 0.75


def test_a_second_build_measures_nothing_again(quick: tuple[Path, BuildReport], raw_room: Path, tmp_path: Path) -> None:
    out, first = shutil.copytree(quick[0], tmp_path / "b"), quick[1]
    second = build(QUICK, raw_room, out, workers=1)
    assert [scene.reused for scene in first.scenes] == [False, False]
    assert [scene.reused for scene in second.scenes] == [True, True]
    assert second.composed.fingerprint == first.composed.fingerprint
    assert [scene.rejects for scene in second.scenes] == [scene.rejects for scene in first.scenes]
    # Another seed is another build, and a lost image makes its scene be measured again.
    assert not any(s.reused for s in build(QUICK.model_copy(update={"seed": 6}), raw_room, out).scenes)


def test_the_version_of_a_loader_is_part_of_the_key_once_it_is_raised(
    raw_room: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with next(iter(open_scenes(raw_room, datasets=["ca1m"]))) as scene:
        before = shard_key(scene, recipe())
        monkeypatch.setattr(type(loaders["wildrgbd"]), "version", 2)
        assert shard_key(scene, recipe()) == before
        monkeypatch.setattr(type(loaders["ca1m"]), "version", 2)
        assert shard_key(scene, recipe()) != before


def test_a_lost_image_is_made_again(quick: tuple[Path, BuildReport], raw_room: Path, tmp_path: Path) -> None:
    out, first = shutil.copytree(quick[0], tmp_path / "b"), quick[1]
    shutil.rmtree(out / "media")
    again = build(QUICK, raw_room, out)
    assert not any(scene.reused for scene in again.scenes)
    assert again.composed.fingerprint == first.composed.fingerprint


def test_composing_again_opens_no_scene_and_keeps_every_truth(built: tuple[Path, BuildReport], tmp_path: Path) -> None:
    out = tmp_path / "copy"
    shutil.copytree(built[0], out)
    before = list(load(out))
    report = recompose(recipe(distractor_seed=1), out)
    after = list(load(out))
    assert report.composed.fingerprint != built[1].composed.fingerprint
    asked = {(i.group_id, str(i.question_type), i.evidence["side"]): i for i in before if i.question_type != "judgment"}
    changed = compared = 0
    for item in after:
        # Another seed draws another ladder, and a ladder may fail its gates where the first one did not.
        old = asked.get((item.group_id, item.question_type, item.evidence["side"]))
        if old is None:
            continue
        compared += 1
        assert old.answer_value == item.answer_value
        if item.question_type == "multi-choice":
            assert item.id != old.id
            changed += item.options != old.options or item.images != old.images
        else:
            assert item.id == old.id
    assert changed > 0
    assert compared > 0.9 * len(asked)
    assert all(scene.reused for scene in report.scenes)


def test_datasets_opens_the_build_with_its_images(built: tuple[Path, BuildReport], tmp_path: Path) -> None:
    files = str(built[0] / "items" / "*.parquet")
    rows = datasets.load_dataset("parquet", data_files=files, split="train", cache_dir=str(tmp_path))
    assert rows[0]["images"][0].size[0] > 100
    assert len(rows) == built[1].composed.total


# --- totals -----------------------------------------------------------------------------------------------------

QUOTAS = recipe(
    items={
        "camera_parameters": {"judgment": 4, "multi-choice": 2, "open-ended": 1},
        "relative_depth": {"multi-choice": 4},
        "homography_to_matrix": {"multi-choice": 4},
    },
    sources={"ca1m": 9, "wildrgbd": 6},
    limits=Limits(forms_per_fact=1),
)


def parquet_counts(out: Path, *columns: str) -> Counter[tuple[str, ...]]:
    """Rows per combination of columns, from the files themselves."""
    rows = pq.read_table(sorted((out / "items").glob("*.parquet")), columns=list(columns)).to_pylist()
    return Counter(tuple(row[name] for name in columns) for row in rows)


def test_a_recipe_with_totals_is_met_to_the_item(built: tuple[Path, BuildReport], tmp_path: Path) -> None:
    out = Path(shutil.copytree(built[0], tmp_path / "copy"))
    report = recompose(QUOTAS, out)
    assert report.composed.short == []
    assert parquet_counts(out, "task", "question_type") == {
        (task, form): n for task, forms in QUOTAS.items.items() for form, n in forms.items()
    }
    assert parquet_counts(out, "source") == {(source,): n for source, n in QUOTAS.sources.items()}
    for key, n in parquet_counts(out, "question_type", "source").items():
        assert key[0] != "judgment" or n % 2 == 0
    groups = parquet_counts(out, "group_id", "question_type")
    assert len({name for name, _ in groups}) == len(groups)
    assert verify_set(load(out)) == []
    again = recompose(QUOTAS, out, workers=2)
    assert again.composed.fingerprint == report.composed.fingerprint


def test_totals_that_cannot_be_met_leave_everything_as_it_was(
    built: tuple[Path, BuildReport], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = Path(shutil.copytree(built[0], tmp_path / "copy"))
    greedy = QUOTAS.model_copy(
        update={
            "items": QUOTAS.items | {"relative_depth": {"multi-choice": 50}},
            "sources": {"ca1m": 40, "wildrgbd": 21},
        }
    )
    with pytest.raises(QuotasNotMet, match="the facts fill") as caught:
        recompose(greedy, out)
    (depth, *sources) = caught.value.shortfalls
    assert depth.what == "relative_depth/multi-choice"
    assert caught.value.missing == depth.wanted - depth.got == sum(s.wanted - s.got for s in sources) > 0
    assert any(
        line.startswith(f"relative_depth: multi-choice {depth.got} of 50. 2 scenes gave")
        for line in caught.value.advice
    )
    assert "facts_per_scene = 2: raise it" in str(caught.value)
    assert json.loads((out / "manifest.json").read_text())["fingerprint"] == built[1].composed.fingerprint
    assert len(load(out)) == built[1].composed.total
    # Told that short is fine, it writes all there is and says what is missing.
    report = recompose(greedy, out, allow_short=True)
    assert parquet_counts(out, "task")["relative_depth",] == depth.got
    assert report.composed.total == 61 - caught.value.missing
    short = json.loads((out / "manifest.json").read_text())["short"]
    assert short["relative_depth/multi-choice"] == {"wanted": 50, "got": depth.got}
    # The program tells it line by line; exit status 1, not 2.
    settings = tmp_path / "greedy.toml"
    settings.write_text("seed = 5\nfacts_per_scene = 2\n[items]\nrelative_depth = { multi-choice = 50 }\n")
    assert main(["build", str(settings), "--facts", str(out), "--workers", "1"]) == 1
    told = capsys.readouterr()
    assert told.out == ""
    assert [line[:9] for line in told.err.splitlines()] == ["vgbench: ", "  relativ", "vgbench: "]
    assert main(["build", str(settings), "--facts", str(out), "--workers", "1", "--allow-short"]) == 0
    assert "short   relative_depth: multi-choice" in capsys.readouterr().out


def test_choices_have_as_many_options_as_the_recipe_says(built: tuple[Path, BuildReport], tmp_path: Path) -> None:
    out = Path(shutil.copytree(built[0], tmp_path / "copy"))
    wanted = recipe(options=3, options_of={"homography_to_image": 6, "point_tracking": 2})
    letters = recompose(wanted, out).composed.letters
    redrawn = redraw(out, RedrawSettings({"default": 1.0}, 9), tmp_path / "other", workers=1).counts["letters"]
    for folder, counts in ((out, letters), (tmp_path / "other", redrawn)):
        items = [item for item in load(folder) if item.question_type == "multi-choice"]
        assert {item.task for item in items} > set(wanted.options_of)
        for item in items:
            count = wanted.count_options(item.task)
            assert (len(item.options), len(item.distractors)) == (count, count - 1)
            assert make_entry(item).chance == pytest.approx(1 / count)
            assert len(item.images) == count + 1 or item.task not in ("homography_to_image", "view_after_motion")
        for cell, found in counts.items():
            assert len(found) == wanted.count_options(cell.partition("/")[0])
            assert max(found) - min(found) <= 1
        dataset = load(folder)
        assert verify_set(dataset) == []
        for item in dataset:
            images = [dataset.image_bytes(item, k) for k in range(len(item.images))]
            assert verify_item(item, images, wanted.gates) == []
    image = next(item for item in load(out) if item.task == "homography_to_image")
    assert re.search(r"images 2 to 7|images 2, 3, 4, 5, 6 and 7", image.question + image.context)
    with pytest.raises(ConfigError, match=r"options: found 5 for camera_parameters; expected at most 4"):
        recompose(recipe(options=5), out)


def test_what_is_short_names_the_gates_and_the_scans_that_would_help() -> None:
    wanted = recipe(items={"relative_pose": {"multi-choice": 100}})
    formats = {"relative_pose": tasks["relative_pose"].formats}
    plan = Plan([], [], read_targets(wanted, formats, [("scannet", "a")], {}))
    rejects = {"relative_pose/one_plane": 33, "relative_pose/overlap_low": 120, "relative_pose/repeated_key": 7}
    report = SceneReport("scannet", "a", rejects=rejects | {"metric_depth/noise": 999})
    (line,) = give_advice([Shortfall("task", "relative_pose", "multi-choice", 100, 0)], plan, [], [report], wanted)
    helps = "scans that look at one place from several sides, with more frames would help"
    assert f"dropped most by overlap_low (120 of 160, gates.pair.overlap_min = 0.3; {helps})" in line
    assert line.endswith(", then by one_plane (33 of 160, gates.pair.plane_share_max = 0.8).")


def test_scenes_can_be_added_to_a_build(quick: tuple[Path, BuildReport], raw_room: Path, tmp_path: Path) -> None:
    raw = tmp_path / "raw"
    shutil.copytree(raw_room / "wildrgbd", raw / "wildrgbd")
    build(QUICK, raw, tmp_path / "b")
    shutil.copytree(raw_room / "ca1m", raw / "ca1m")
    more = build(QUICK, raw, tmp_path / "b")
    assert [(scene.dataset, scene.reused) for scene in more.scenes] == [("ca1m", False), ("wildrgbd", True)]
    assert more.composed.fingerprint == quick[1].composed.fingerprint
    assert parquet_counts(tmp_path / "b", "source").keys() == {("ca1m",), ("wildrgbd",)}


def test_a_bad_scene_costs_only_itself_and_is_reported(
    quick: tuple[Path, BuildReport], raw_room: Path, tmp_path: Path
) -> None:
    raw = tmp_path / "raw"
    shutil.copytree(raw_room, raw)
    (raw / "ca1m" / "ca1m-val-90000002.tar").write_bytes(b"this is no tar archive" * 100)
    report = build(QUICK, raw, tmp_path / "b")
    bad = next(scene for scene in report.scenes if scene.scene_id == "90000002")
    assert "90000002" in bad.error
    assert bad.rejects == {"scene/unreadable": 1}
    assert report.composed.fingerprint == quick[1].composed.fingerprint
    again = recompose(QUICK, tmp_path / "b")
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
    settings = recipe(tasks=("metric_depth", "relative_depth"), facts_of={"metric_depth": 1})
    report = build(settings, raw, tmp_path / "b")
    (scene,) = report.scenes
    assert scene.facts == {"metric_depth": 1, "relative_depth": 2}
    assert scene.issues == {"unusable_file": 1}
    (again,) = recompose(settings, tmp_path / "b").scenes
    assert (again.issues, again.total_frames) == (scene.issues, scene.total_frames)


def test_a_task_is_not_measured_where_the_recipe_takes_none_of_it(raw_room: Path, tmp_path: Path) -> None:
    settings = recipe(tasks=("metric_depth", "relative_depth"), only_from={"metric_depth": ("ca1m",)})
    (scene,) = measure(settings, raw_room / "wildrgbd", tmp_path / "b")
    assert set(scene.facts) == {"relative_depth"}
    assert not any(name.startswith("metric_depth") for name in scene.rejects)


def test_an_empty_folder_is_the_users_to_mend(tmp_path: Path) -> None:
    with pytest.raises(
        ConfigError,
        match=r"no scan of CA-1M, Own recordings, ScanNet, ScanNet\+\+ or WildRGB-D below .*; found no file",
    ):
        build(recipe(), tmp_path, tmp_path / "b")
    with pytest.raises(ConfigError, match="found no such folder"):
        build(recipe(), tmp_path / "nowhere", tmp_path / "b")


def test_the_table_says_why_measured_facts_were_not_asked() -> None:
    composed = ComposeReport(
        items={"metric_depth/open-ended/ca1m": 53},
        unasked={
            "metric_depth/judgment/ca1m/cell_full": 90,
            "metric_depth/judgment/ca1m/source_not_in_recipe": 8,
            "metric_depth/multi-choice/ca1m/noise": 1,
            "metric_depth/multi-choice/ca1m/option_set_taken": 3,
            "metric_depth/multi-choice/ca1m/too_few_options": 42,
            "metric_depth/multi-choice/scannet/noise": 7,
            "metric_depth/open-ended/ca1m/lint: question: a/b": 2,
        },
    )
    scene = SceneReport("ca1m", "one", facts={"metric_depth": 98}, rejects={"metric_depth/floor_share": 11})
    head, line = cell_lines(BuildReport([scene], composed), ("metric_depth",), 240)
    assert head.split()[:7] == ["task", "source", "facts", "rejects", "judgment", "multi-choice", "open-ended"]
    assert line.split(maxsplit=7)[7] == (
        "floor_share 11; not asked as multi-choice: too_few_options 42, option_set_taken 3; "
        "not asked as open-ended: lint: question: a/b 2"
    )


def test_a_task_that_lost_nearly_all_its_drafts_in_a_scene_is_named() -> None:
    def scene(name: str, kept: int, gone: int) -> SceneReport:
        rejects = {
            "camera_parameters/few_lines": gone - 2,
            "camera_parameters/pixels_undecided": 2,
            "frame/blurred": 40,
        }
        rejects["object_distance/objects_too_few"] = 30  # in a source without boxes
        return SceneReport("ca1m", name, facts={"camera_parameters": kept}, rejects=rejects)

    def told(*scenes: SceneReport) -> list[str]:
        return loss_lines(BuildReport(list(scenes), ComposeReport()))

    assert told(scene("one", 4, 100), scene("two", 0, 30), scene("fine", 10, 94)) == [
        "note    camera_parameters, ca1m two: 30 of 30 drafts lost (the worst of 2 scenes), mostly because of "
        "few_lines 28, pixels_undecided 2; what these mean: docs/howto/reasons.md"
    ]
    assert told(scene("few", 0, 19), scene("enough", 5, 100), scene("half", 4, 30)) == []


def test_every_reason_that_a_build_gives_is_explained(built: tuple[Path, BuildReport]) -> None:
    _, report = built
    told = {name.split("/")[1] for scene in report.scenes for name in [*scene.rejects, *scene.issues] if "/" in name}
    told |= {name.rpartition("/")[2] for name in report.composed.unasked}
    explained = set(re.findall(r"`([a-z_]+)`", (Path(__file__).parents[2] / "docs/howto/reasons.md").read_text()))
    assert len(told) > 10
    assert told <= explained
