"""Questions in space: what the viewer is given falls, projected, on the marks of the images; clouds are the scan."""

from __future__ import annotations

import base64
import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import expect

from tests.browser import OpenPage
from tests.quality.conftest import write_rows
from tests.small_room import small_room, small_view, stored
from vgbench_gen.core.types import FloatArray, Item
from vgbench_gen.pipeline.measure import measure_task, store_pictures
from vgbench_gen.pipeline.recipe import Limits, Recipe
from vgbench_gen.report import gallery, gallery_space
from vgbench_gen.report.gallery_rows import make_overlay
from vgbench_gen.report.gallery_scenes import CELL_M, MOST_CELLS, SceneNotes, draw_from_above
from vgbench_gen.report.gallery_space import (
    FRAMES,
    CloudPlan,
    Clouds,
    describe_space,
    make_cloud,
    read_cloud_points,
    write_clouds,
)
from vgbench_gen.report.site import Site
from vgbench_gen.store.media import MediaStore
from vgbench_gen.store.shards import write_items
from vgbench_gen.tasks.base import tasks
from vgbench_gen.tasks.row_evidence import RowEvidence

NAMES = ("relative_pose", "view_after_motion", "object_distance", "object_location", "point_tracking")


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Item]]:
    """(folder of a dataset with its images, its rows), of the tasks that can be seen in space."""
    folder = tmp_path_factory.mktemp("space") / "set"
    recipe, view, media = (
        Recipe(tasks=NAMES, facts_per_scene=3, limits=Limits(forms_per_fact=3)),
        small_view(),
        MediaStore(folder / "media"),
    )
    chosen = [tasks[name].with_gates(recipe.gates) for name in NAMES]
    facts = [fact for task in chosen for fact in measure_task(task, view, recipe.seed, recipe.facts_per_scene)[0]]
    items = write_rows(folder, store_pictures(facts, view, media), media, recipe).items
    write_items(folder / "items", items, media)
    return folder, items


def project(camera: dict[str, Any], points: Any) -> FloatArray:
    """Pixels (N, 2) of world points, written out once more from the conventions."""
    pose = np.vstack([np.reshape(camera["pose"], (3, 4)), [0, 0, 0, 1]])
    x, y, z = (np.linalg.inv(pose) @ np.c_[np.reshape(points, (-1, 3)), np.ones(np.size(points) // 3)].T)[:3]
    fx, fy, cx, cy = camera["K"]
    return np.stack([fx * x / z + cx, fy * y / z + cy], axis=-1)


def test_points_and_boxes_fall_on_the_marks(rows: tuple[Path, list[Item]]) -> None:
    seen = set()
    for item in rows[1]:
        space = describe_space(item)
        if space is None:  # a crop or a warp
            continue
        marks, _ = make_overlay(item)
        for k, camera in enumerate(c for c in space["cameras"] if c["image"] >= 0):
            assert camera["image"] == k
            drawn = [(mark["label"], p) for mark in marks[k] for p in mark["points"] if mark["kind"] == "point"]
            if item.task in ("relative_pose", "view_after_motion") and drawn:
                points = {point["label"]: point["at"] for point in space["points"]}
                assert len(points) == len(drawn) > 1
                for label, uv in drawn:
                    np.testing.assert_allclose(project(camera, points[label])[0], uv, atol=1.5)
                    seen.add((item.task, k))
            if item.task == "point_tracking":
                (query,) = [point["at"] for point in space["points"] if point["right"]]
                assert min(np.linalg.norm(project(camera, query)[0] - uv) for _, uv in drawn) < 1.5
                seen.add((item.task, k))
            ends = np.array([p for mark in marks[k] for p in mark["points"] if mark["kind"] == "line"])
            for box in space["boxes"]:
                if box["right"]:
                    corners = project(camera, box["corners"])
                    gaps = np.linalg.norm(corners[:, None] - ends[None], axis=-1).min(axis=1)
                    # The options of object_location are printed in centimeters, and the marks draw what is printed.
                    assert gaps.max() < (12 if item.task == "object_location" else 1)
                    seen.add((item.task, k))
    assert {("relative_pose", 0), ("relative_pose", 1), ("view_after_motion", 0), ("point_tracking", 1)} <= seen
    assert {("object_distance", 0), ("object_location", 0)} <= seen


def test_what_a_wrong_option_means_is_its_own_camera_or_box(rows: tuple[Path, list[Item]]) -> None:
    seen = set()
    for item in rows[1]:
        space = describe_space(item)
        if item.question_type != "multi-choice" or space is None:
            continue
        wrong = "ABCD".replace(item.answer, "")
        values = dict(zip("ABCD", (option.value for option in RowEvidence.of(item).options), strict=True))
        if item.task == "relative_pose":
            first, _, *others = space["cameras"]
            assert [camera["name"] for camera in others] == list(wrong)
            pose_1, point = np.vstack([np.reshape(first["pose"], (3, 4)), [0, 0, 0, 1]]), np.array([0.2, -0.1, 2.0, 1])
            for camera in others:
                pose = np.vstack([np.reshape(camera["pose"], (3, 4)), [0, 0, 0, 1]])
                there = np.linalg.inv(pose) @ pose_1 @ point
                np.testing.assert_allclose(there[:3], values[camera["name"]] @ point, atol=5e-3)
        elif item.task == "object_location":
            assert [box["label"] for box in space["boxes"] if not box["right"]] == list(wrong)
            pose = np.reshape(space["cameras"][0]["pose"], (3, 4))
            for box in space["boxes"][1:]:
                expected = values[box["label"]] @ pose[:, :3].T + pose[:, 3]
                np.testing.assert_allclose(box["corners"], expected, atol=1e-3)
        elif item.task == "view_after_motion":
            assert [camera["right"] for camera in space["cameras"]] == [None, *(c == item.answer for c in "ABCD")]
        else:
            continue
        seen.add(item.task)
    assert seen == {"relative_pose", "object_location", "view_after_motion"}


def test_rows_that_cannot_be_read_have_no_space(rows: tuple[Path, list[Item]]) -> None:
    item = next(i for i in rows[1] if i.task == "relative_pose")
    assert describe_space(replace(item, task="no such task")) is None
    assert describe_space(replace(item, evidence={})) is None
    far = dict(item.evidence)
    far["options"] = [dict(option) for option in far["options"]]
    for option in far["options"]:
        poses = option["evidence"].get("world_from_camera", {})
        option["evidence"] = {**option["evidence"], "world_from_camera": {k: [1e9] * 16 for k in poses}}
    assert describe_space(replace(item, evidence=far)) is None


def decode(cloud: dict[str, Any]) -> tuple[FloatArray, Any]:
    data, n = base64.b64decode(cloud["data"]), cloud["n"]
    assert len(data) == 9 * n
    steps = np.frombuffer(data, "<u2", 3 * n).reshape(n, 3)
    return np.array(cloud["low"]) + np.array(cloud["step"]) * steps, np.frombuffer(data, np.uint8, -1, 6 * n)


def test_a_cloud_is_what_the_frame_sees() -> None:
    frame = stored(small_room())[2]
    cloud = make_cloud(frame, 900)
    assert 500 < cloud["n"] <= 900
    world_m, colors = decode(cloud)
    local = (world_m - frame.world_from_camera[:3, 3]) @ frame.world_from_camera[:3, :3]
    K = frame.camera
    uv = np.stack([K.fx * local[:, 0] / local[:, 2] + K.cx, K.fy * local[:, 1] / local[:, 2] + K.cy], axis=-1)
    # A pixel of the depth image may lie between those of the colour image: its colour is one of theirs.
    corners = [
        np.clip(f(uv - 1e-3 + 2e-3 * s).astype(int), 0, (K.width - 1, K.height - 1))
        for s in (0, 1)
        for f in (np.floor, np.ceil)
    ]
    near = [(frame.color()[b[:, 1], a[:, 0]] == colors.reshape(-1, 3)).all(axis=-1) for a in corners for b in corners]
    assert np.any(near, axis=0).all()
    assert len(np.unique(colors.reshape(-1, 3), axis=0)) > 50
    D = frame.depth_camera
    h, w = frame.depth_m().shape
    du = np.clip(np.round(D.fx * local[:, 0] / local[:, 2] + D.cx).astype(int), 0, w - 1)
    dv = np.clip(np.round(D.fy * local[:, 1] / local[:, 2] + D.cy).astype(int), 0, h - 1)
    np.testing.assert_allclose(frame.depth_m()[dv, du], local[:, 2], atol=2e-3)


def test_clouds_are_few_and_every_task_has_some() -> None:
    plan = CloudPlan()
    for n in range(500):
        for task in "ab":
            item = SimpleNamespace(task=task, source="s", scene_id=f"{task}{n}")
            plan.add(item, {"frames": ["1", "2"]})  # type: ignore[arg-type]
    chosen = plan.choose()
    assert len(chosen) == len(set(chosen)) == FRAMES
    assert {scene for _, scene, _ in chosen} == {f"{task}{n}" for task in "ab" for n in range(FRAMES // 4)}


def test_a_gallery_shows_points_of_the_scan(
    rows: tuple[Path, list[Item]], tmp_path: Path, open_page: OpenPage, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, items = rows
    item = next(i for i in items if i.task == "relative_pose")

    def write(plan: CloudPlan, roots: Any, site: Site) -> Clouds:
        # The analytic room is no scan on disk; what is written of its frames is the same.
        frames = {frame.id: frame for frame in stored(small_room())}
        clouds = Clouds()
        for k, (source, scene_id, frame) in enumerate(plan.choose()):
            cloud = make_cloud(frames[frame], 400)
            site.write_data(f"cloud-{k:05d}", cloud)
            clouds.add(f"{source}/{scene_id}", frame, f"cloud-{k:05d}", cloud)
        return clouds

    monkeypatch.setattr(gallery, "write_clouds", write)
    made = gallery.make_gallery(folder, tmp_path / "g", scenes=[tmp_path])
    page = open_page(f"{made.index.as_uri()}#item={item.id}").page
    page.locator("canvas.space").scroll_into_view_if_needed()
    expect(page.locator(".in-space figcaption")).to_contain_text("points of the frames. 2 cameras, 8 marked points."
        if item.question_type == "multi-choice" else "points of the frames.")  # fmt: skip
    frames = describe_space(item)["frames"]  # type: ignore[index]
    clouds = {frame.id: make_cloud(frame, 400) for frame in stored(small_room())}
    assert page.evaluate("document.querySelector('.space').viewer.count()") == sum(clouds[f]["n"] for f in frames)
    back = page.evaluate("cloud => Array.from(VGBENCH_SPACE.unpack(cloud).at)", clouds[frames[0]])
    np.testing.assert_allclose(np.reshape(back, (-1, 3)), decode(clouds[frames[0]])[0], atol=1e-5)
    box = page.locator("canvas.space").bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + 100, box["y"] + 100)
    page.mouse.down()
    page.mouse.move(box["x"] + 180, box["y"] + 120)
    page.mouse.up()
    page.keyboard.press("o")
    page.get_by_role("button", name="From above").click()
    page.get_by_role("button", name="image 2", exact=True).click()


def test_points_by_a_wrong_pose_are_drawn_where_it_puts_them(
    rows: tuple[Path, list[Item]], tmp_path: Path, open_page: OpenPage
) -> None:
    folder, items = rows
    item = next(i for i in items if (i.task, i.question_type) == ("relative_pose", "multi-choice"))
    space = describe_space(item)
    assert space is not None
    made = gallery.make_gallery(folder, tmp_path / "g")
    page = open_page(f"{made.index.as_uri()}#item={item.id}").page
    expect(page.locator("#meant")).not_to_be_visible()  # the letters would tell which one is right
    page.keyboard.press("o")
    for camera in space["cameras"][2:]:
        page.get_by_role("button", name=camera["name"], exact=True).click()
        width, height = camera["size"]
        uv = project(camera, [point["at"] for point in space["points"]])
        inside = uv[((uv > -0.5) & (uv < (width - 0.5, height - 0.5))).all(axis=1)]
        expect(page.locator(".picture").nth(1).locator(".dot.decoy")).to_have_count(len(inside))
        drawn = page.evaluate(
            "() => [...document.querySelectorAll('.dot.decoy')].map((d) => { const b = d.getBBox(); "
            "return [b.x + b.width / 2, b.y + b.height / 2]; })"
        )
        np.testing.assert_allclose(np.reshape(drawn, (-1, 2)), inside, atol=0.5)  # Chromium rounds boxes


def test_through_a_camera_points_lie_on_their_marks_and_the_whole_view_holds_everything(
    rows: tuple[Path, list[Item]], tmp_path: Path, open_page: OpenPage
) -> None:
    folder, items = rows
    chosen = [next(i for i in items if i.task == name and i.question_type != "judgment" and describe_space(i))
              for name in NAMES]  # fmt: skip
    index = gallery.make_gallery(folder, tmp_path / "g").index.as_uri()
    page = open_page(index, 390, 844).page
    drawn = "p => document.querySelector('.space').viewer.place(p)"
    seen = set()
    for item in chosen:
        space, (marks, _) = describe_space(item), make_overlay(item)
        assert space is not None
        page.goto(f"{index}#item={item.id}")
        expect(page.locator(".sub .mono")).to_have_text(item.id)
        page.keyboard.press("o")
        page.locator("canvas.space").scroll_into_view_if_needed()
        page.get_by_role("button", name="Whole").click()
        width, height = page.evaluate(
            "() => { const c = document.querySelector('.space'); return [c.clientWidth, c.clientHeight] }"
        )
        poses = [np.reshape(camera["pose"], (3, 4)) for camera in space["cameras"]]
        everything = [
            *(pose[:, 3].tolist() for pose in poses),
            *(corner for box in space["boxes"] for corner in box["corners"]),
            *(point["at"] for point in space["points"]),
        ]
        for at in everything:
            u, v = page.evaluate(drawn, at)
            assert 0 < u < width, item.task
            assert 0 < v < height, item.task
        for k, (camera, pose) in enumerate(zip(space["cameras"], poses, strict=True)):
            if camera["image"] < 0:
                continue
            page.get_by_role("button", name=camera["name"], exact=True).click()
            (fx, fy, cx, cy), (w, h) = camera["K"], camera["size"]

            def show(u: float, v: float, pose: Any = pose, k: Any = (fx, fy, cx, cy)) -> FloatArray:
                ray = np.array([(u - k[2]) / k[0], (v - k[3]) / k[1], 1.0])
                return np.array(page.evaluate(drawn, (pose[:, :3] @ ray + pose[:, 3]).tolist()))

            # The image is level, of its own shape, and whole: pixels of it become pixels of the canvas by one scale.
            first, last = show(-0.5, -0.5), show(w - 0.5, h - 0.5)
            scale = (last - first) / (w, h)
            assert scale[0] == pytest.approx(scale[1], rel=1e-2)
            assert scale[0] > 0
            assert (first > 0).all()
            assert (last < (width, height)).all()
            points = [mark["points"][0] for mark in marks[k] if mark["kind"] == "point"]
            for point in space["points"]:
                at = np.array(page.evaluate(drawn, point["at"]))
                uv = project(camera, point["at"])[0]
                np.testing.assert_allclose(at, first + (uv + 0.5) * scale, atol=0.1)
                if point["right"] and points:
                    gaps = [np.linalg.norm(first + (np.array(mark) + 0.5) * scale - at) for mark in points]
                    assert min(gaps) < 1.5
                    seen.add(item.task)
    assert "point_tracking" in seen


def test_a_plan_shows_walls_and_frames_without_marks(rows: tuple[Path, list[Item]]) -> None:
    notes = SceneNotes("ca1m", "room")
    items = rows[1]
    bases = {name for item in items for name in RowEvidence.of(item).bases.values()}
    for row, item in enumerate(items):
        notes.add(row, item, ["marked"] * len(item.images), lambda name: f"@{name}" if name in bases else "")
    # Frames are shown as they were taken, not as images of questions.
    assert {address[1:] for address, _, _ in notes.frames.values()} <= bases

    world_m = np.concatenate([read_cloud_points(make_cloud(frame)) for frame in stored(small_room())])
    plan = draw_from_above(notes, world_m)
    bare = draw_from_above(notes)
    assert plan is not None
    assert bare is not None
    assert bare["walls"] == ""
    at = {camera["frame"]: (camera["x"], camera["y"]) for camera in plan["cameras"]}
    # The pixels of the page are meters of the world, turned: the same map takes the cameras to their places.
    cells = np.array(re.findall(r"M([-\d.]+) ([-\d.]+)v", plan["walls"]), dtype=float)
    assert 50 < len(cells) <= MOST_CELLS
    centres = np.array([[*notes.poses[frame][:3, 3], 1.0] for frame in at])
    page_from_world, *_ = np.linalg.lstsq(centres, np.array(list(at.values())), rcond=None)
    side = CELL_M * plan["scale_px"]
    there = np.c_[world_m, np.ones(len(world_m))] @ page_from_world
    middles = cells + [side / 2, -side / 2]
    assert np.linalg.matrix_rank(centres, tol=1e-3) == 4
    gaps = np.abs(there[:, None] - middles[None, ::25]).max(axis=-1).min(axis=0)
    assert gaps.max() < side


def test_scans_that_are_not_there_cost_nothing(tmp_path: Path) -> None:
    plan = CloudPlan({"relative_pose": [[("scannet", "scene0000_00", "1")], [("nobody", "x", "2")]]})
    assert write_clouds(plan, [tmp_path], Site(tmp_path / "g")) == Clouds()
    assert gallery_space.FRAMES * gallery_space.POINTS * 12 < 5e6  # bytes of all clouds in base64
