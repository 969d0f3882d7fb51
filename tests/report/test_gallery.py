from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.report.gallery_data import HOSTILE, PLAIN, Looked, finding, write_verdicts
from vgbench_gen.cli.main import main
from vgbench_gen.core.errors import DatasetError
from vgbench_gen.core.types import FloatArray
from vgbench_gen.report import gallery_plots, site
from vgbench_gen.report.charts import FEWEST
from vgbench_gen.report.gallery import CHUNK, make_gallery
from vgbench_gen.report.gallery_rows import EXCERPT
from vgbench_gen.report.gallery_scenes import SceneNotes, draw_from_above, find_up_direction, make_natural_key
from vgbench_gen.tasks.presentation import WorldBox

_ENTRY = re.compile(r"\(self\.VGBENCH_GALLERY=self\.VGBENCH_GALLERY\|\|\[\]\)\.push\((\[.*\])\);\n")


def read_data(path: Path) -> tuple[str, Any]:
    """(name, value) of a data file, read as the page reads it."""
    match = _ENTRY.fullmatch(path.read_text("ascii"))
    assert match is not None
    name, text = json.loads(match[1])
    return name, json.loads(text)


def tree(folder: Path) -> dict[str, bytes]:
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def test_data_files_are_inert(tmp_path: Path) -> None:
    value = {HOSTILE: [HOSTILE, float("nan"), 1.5, None], "__proto__": {"a": 1}, "</script>\u2028-->": ["<!--"]}
    data = site.make_data_script(HOSTILE, value)
    assert not re.search(rb"[<>&]|[^\x0a\x20-\x7e]", data)
    (tmp_path / "d.js").write_bytes(data)
    name, back = read_data(tmp_path / "d.js")
    assert name == HOSTILE
    assert back == {HOSTILE: [HOSTILE, None, 1.5, None], "__proto__": {"a": 1}, "</script>\u2028-->": ["<!--"]}


def test_pages_escape_and_load_nothing_foreign(site: Path) -> None:
    pages = sorted((site / "gallery").rglob("*.html"))
    assert {p.name for p in pages} >= {"index.html", "scenes.html", "plots.html", "0000.html"}
    for page in pages:
        text = page.read_text("utf-8")
        assert "default-src 'none'" in text.split("</head>")[0].replace("&#39;", "'")
        assert "<script>" not in text
        assert 'onerror="' not in text
        assert "<img src=x" not in text
        assert not re.search(r'(?:src|href)="(?:https?:|//|javascript:|data:)', text)
        assert ' style="' not in text  # the policy forbids it
    scripts = "\n".join((site / "gallery" / n).read_text("utf-8") for n in ("gallery.js", "base.css", "gallery.css"))
    assert not re.search(
        r"innerHTML|outerHTML|insertAdjacent|document\.write|eval\(|fetch\(|XMLHttp|import\s|@import", scripts
    )
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", scripts)


def test_light_columns_first_details_in_chunks(looked: Looked, site: Path) -> None:
    data = site / "gallery" / "data"
    _, index = read_data(data / "index.js")
    ids = [item.id for item in looked.items]
    assert index["columns"]["id"] == ids
    chunks = sorted(data.glob("items-*.js"))
    assert len(chunks) == -(-len(ids) // CHUNK) >= 2
    records = []
    for k, path in enumerate(chunks):
        name, rows = read_data(path)
        assert name == f"items-{k:05d}"
        assert len(rows) == CHUNK or path == chunks[-1]
        records += rows
    assert [record["id"] for record in records] == ids
    for item, record, text in zip(looked.items, records, index["columns"]["text"], strict=True):
        assert (record["question"], record["context"], record["answer"]) == (item.question, item.context, item.answer)
        assert record["evidence"] == json.loads(json.dumps(item.evidence))
        assert len(record["images"]) == len(item.images)
        assert " ".join(item.question.split()).startswith(text.removesuffix("…"))
        assert len(text) <= EXCERPT
    twins = next(rows for rows in index["groups"]["twin"] if looked.items[rows[0]].task == "metric_depth")
    assert len({looked.items[row].twin_id for row in twins}) == 1
    assert all(len(rows) > 1 for groups in index["groups"].values() for rows in groups)
    task = index["coded"]["task"]
    assert [task["names"][c] for c in task["codes"]] == [item.task for item in looked.items]
    for item, record in zip(looked.items[: looked.real], records[: looked.real], strict=True):
        assert record["overlay_problem"] == ""
        assert any(image["marks"] for image in record["images"]), item.task
        for image, name in zip(record["images"], item.images, strict=True):
            assert image["address"] == f"@{name[:2]}/{name}"
            assert image["size"] is not None
            assert (data / ".." / index["media"] / image["address"][1:]).is_file()


def test_same_bytes_and_only_what_changed(looked: Looked, tmp_path: Path) -> None:
    folder = tmp_path / "set"
    shutil.copytree(looked.folder, folder)
    first = make_gallery(folder)
    make_gallery(folder, folder / "again")
    assert tree(folder / "gallery") == tree(folder / "again")
    assert make_gallery(folder).written == 0
    write_verdicts(folder, looked)
    (folder / "gallery" / "data" / "items-00099.js").write_text("stale")
    (folder / "gallery" / ".index.html.999999999-0123456789ab.tmp").write_text("torn")
    _, before = read_data(folder / "gallery" / "data" / "index.js")
    changed = make_gallery(folder)
    pages = len(list((folder / "gallery").rglob("*.html")))  # they link to the audit now
    assert (changed.written, changed.kept) == (pages + 1, first.written - pages - 1)  # and data/verdicts.js
    assert read_data(folder / "gallery" / "data" / "index.js")[1] == before
    assert set(tree(folder / "gallery")) == set(tree(folder / "again"))
    assert first.items == len(looked.items)
    assert first.images_missing == 0
    assert first.images_own == 0


def test_another_folder_is_not_touched(looked: Looked, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(DatasetError, match=r"no gallery\.json.*--out"):
        make_gallery(looked.folder, tmp_path)
    assert tree(tmp_path) == {"notes.txt": b"mine"}
    with pytest.raises(DatasetError, match="found a file"):
        make_gallery(looked.folder, tmp_path / "notes.txt")


def test_images_only_in_parquet(looked: Looked, tmp_path: Path) -> None:
    bare = tmp_path / "bare"
    shutil.copytree(looked.folder / "items", bare)
    made = make_gallery(bare, max_items=40)
    own = {p: b for p, b in tree(bare / "gallery").items() if p.startswith("images/")}
    assert made.items == 40
    assert made.images_own == len(own) > 1
    assert own == {f"images/{p[7:9]}/{p[10:]}": (looked.folder / "media" / p[7:]).read_bytes() for p in own}
    _, rows = read_data(bare / "gallery" / "data" / "items-00000.js")
    assert {image["address"] for row in rows for image in row["images"]} == set(own)
    assert make_gallery(bare, max_items=40).written == 0
    # Fewer items later: their images go, and nothing else.
    less = make_gallery(bare, max_items=3)
    assert less.images_own == len([p for p in tree(bare / "gallery") if p.startswith("images/")]) < len(own)


def test_a_standalone_gallery_can_be_moved(looked: Looked, tmp_path: Path) -> None:
    made = make_gallery(looked.folder, tmp_path / "g", standalone=True, max_items=30)
    _, index = read_data(tmp_path / "g" / "data" / "index.js")
    assert made.images_referenced == 0
    assert index["media"] == ""
    _, rows = read_data(tmp_path / "g" / "data" / "items-00000.js")
    for row in rows:
        for image in row["images"]:
            assert (tmp_path / "g" / image["address"]).is_file()
    pages = "".join(p.read_text("utf-8") for p in (tmp_path / "g").rglob("*.html"))
    assert "media/" not in pages


def test_image_names_are_not_paths(looked: Looked, tmp_path: Path) -> None:
    path = sorted((looked.folder / "items").glob("*.parquet"))[0]
    rows = pq.read_table(path).slice(0, 3).to_pylist()
    rows[0]["images"][0]["path"] = "../../../outside.jpg"
    rows[1]["images"] = [{"bytes": b"<svg onload='alert(1)'>", "path": "a.svg"}]
    rows[2]["images"] = [{"bytes": None, "path": "0" * 32 + ".jpg"}]
    folder = tmp_path / "a" / "b" / "set"
    (folder / "media").mkdir(parents=True)
    (tmp_path / "outside.jpg").write_bytes(b"where media/../../../../outside.jpg leads")
    pq.write_table(pa.Table.from_pylist(rows, pq.read_schema(path)), folder / "bare.parquet")
    made = make_gallery(folder)
    assert made.images_missing == 2
    assert sorted(p.name for p in folder.iterdir()) == ["bare.parquet", "gallery", "media"]
    _, records = read_data(folder / "gallery" / "data" / "items-00000.js")
    assert re.fullmatch(r"images/[0-9a-f]{2}/[0-9a-f]{32}\.jpg", records[0]["images"][0]["address"])
    assert [records[k]["images"][0]["address"] for k in (1, 2)] == ["", ""]


def test_verdicts(looked: Looked, site: Path, tmp_path: Path) -> None:
    _, verdicts = read_data(site / "gallery" / "data" / "verdicts.js")
    words = "accuracy of the best fixed rule (medoid/odd name) 41.2 %, chance 25, at most 28"
    assert verdicts["audit"] == [{"words": words, "items": [0, 1, 2]}]
    said = [(r["row"], r["reviewer"], r["verdict"], r["flags"], r["note"]) for r in verdicts["reviews"]]
    assert said == [(0, "ann", "invalid", ["occluded"], HOSTILE), (1, "ann", "valid", [], "")]
    (tmp_path / "audit").mkdir()
    (tmp_path / "audit" / "audit.json").write_text(json.dumps([finding("a", "b", "failed", [])]))
    shutil.copytree(looked.folder / "items", tmp_path / "items")
    with pytest.raises(DatasetError, match=r"audit\.json.*vgbench audit"):
        make_gallery(tmp_path)


def looking(yaw_deg: float, pitch_deg: float, centre: tuple[float, float, float]) -> FloatArray:
    """(4, 4) world_from_camera, z up: yaw from +x towards +y, pitched down, not rolled."""
    yaw, pitch = np.radians([yaw_deg, pitch_deg])
    forward = np.array([np.cos(yaw) * np.cos(pitch), np.sin(yaw) * np.cos(pitch), -np.sin(pitch)])
    right = np.array([np.sin(yaw), -np.cos(yaw), 0.0])
    pose = np.eye(4)
    pose[:3, :3] = np.stack([right, np.cross(forward, right), forward], axis=1)
    pose[:3, 3] = centre
    return pose


def test_up_is_found_from_level_cameras() -> None:
    turn = np.linalg.qr(np.array([[1.0, 2.0, 0.3], [0.2, 1.0, -1.0], [1.0, -0.5, 1.0]]))[0]
    turn *= np.sign(np.linalg.det(turn))
    # All look down by 50 degrees within a quarter turn: their mean up direction leans far from up.
    poses = [looking(yaw, 50, (yaw / 30, 0.1 * (yaw % 20), 1.5)) for yaw in range(0, 90, 10)]
    assert find_up_direction(poses).tolist() == [0, 0, 1]
    world = np.eye(4)
    world[:3, :3] = turn
    # Square with the cameras' x axes, where no world axis is near.
    np.testing.assert_allclose(find_up_direction([world @ pose for pose in poses]), turn[:, 2], atol=1e-9)
    still = [looking(5, 20, (0, 0, k / 10)) for k in range(4)]
    assert find_up_direction(still).tolist() == [0, 0, 1]
    leaning = find_up_direction([world @ pose for pose in still])  # as far as the cameras look down
    assert leaning @ turn[:, 2] == pytest.approx(np.cos(np.radians(20)), abs=1e-6)
    flipped = looking(0, 0, (0, 0, 0)) @ np.diag([-1.0, -1.0, 1.0, 1.0])
    path = [looking(0, 0, (x, y, 0)) for x, y in ((0, 1), (2, 0), (1, 3))]
    held = [*path, *(f @ np.diag([-1.0, -1.0, 1.0, 1.0]) for f in (*path, flipped))]
    assert abs(find_up_direction(held) @ [0, 0, 1]) == pytest.approx(1)


def test_the_plan_is_not_mirrored() -> None:
    notes = SceneNotes("s", "a")
    notes.poses = {"1": looking(0, 10, (0, 0, 1)), "2": looking(90, 10, (2, 0, 1)), "10": looking(180, 10, (2, 1, 1))}
    box = np.array([[x, y, z] for x in (3, 4) for y in (0, 1) for z in (0, 2)], dtype=np.float64)
    notes.objects = {"o": WorldBox("o", "chair", box)}
    plan = draw_from_above(notes)
    assert plan is not None
    assert [c["frame"] for c in plan["cameras"]] == ["1", "2", "10"]
    at = np.array([[c["x"], -c["y"]] for c in plan["cameras"]]) / plan["scale_px"]  # up on the page again
    step = np.diff(at, axis=0)
    np.testing.assert_allclose(np.hypot(*step.T), [2, 1], atol=0.01)
    assert step[0, 0] * step[1, 1] - step[0, 1] * step[1, 0] == pytest.approx(
        2, abs=0.02
    )  # to the left, as in the world
    ahead = np.array([[float(v) for v in p.split(",")] for p in plan["cameras"][0]["points"].split()])
    look = (ahead[1:].mean(axis=0) - ahead[0]) * [1, -1]
    assert look @ step[0] == pytest.approx(np.linalg.norm(look) * np.linalg.norm(step[0]), rel=1e-2)
    outline = np.array([[float(v) for v in p.split(",")] for p in plan["objects"][0]["points"].split()])
    assert len(outline) == 4
    np.testing.assert_allclose(np.ptp(outline, axis=0) / plan["scale_px"], [1, 1], atol=0.02)
    assert draw_from_above(SceneNotes("s", "b")) is None
    assert sorted(["f10", "f9", "a", "f9b"], key=make_natural_key) == ["a", "f9", "f9b", "f10"]


def test_distributions_count_every_item_once(looked: Looked) -> None:
    tallies = gallery_plots.Tallies()
    for item in looked.items:
        tallies.add(item)
    charts = {c["title"]: c for g in gallery_plots.plot_charts(tallies, []) for c in g["charts"]}
    for title in ("Items per task", "Items per type", "Items per source", "Difficulty per task"):
        assert sum(row["total"] for row in charts[title]["rows"]) == len(looked.items)
        for row in charts[title]["rows"]:
            assert sum(part["n"] for part in row["parts"]) == row["total"]
            assert max(part["left"] + part["share"] for part in row["parts"]) <= 1 + 1e-9
    letters = {row["label"]: row for row in charts["Right letter per task (multiple choice)"]["rows"]}
    assert [(p["name"], p["n"]) for p in letters["plain task"]["parts"]] == [("B", PLAIN)]
    depth = [i for i in looked.items[: looked.real] if (i.task, i.question_type) == ("metric_depth", "multi-choice")]
    ranks: dict[str, int] = {}
    for item in depth:
        printed = [float(option.split()[0]) for option in item.options]
        name = ("smallest", "second", "third", "largest")[sorted(printed).index(printed["ABCD".index(item.answer)])]
        ranks[name] = ranks.get(name, 0) + 1
    # Of so few nothing is drawn but how many there are.
    shown = {"Rank of the true value among the options", "Answers of metric_depth"}
    assert 0 < len(depth) < FEWEST
    assert not shown & set(charts)
    for item in looked.items[: looked.real] * FEWEST:
        tallies.add(item)
    charts = {c["title"]: c for g in gallery_plots.plot_charts(tallies, []) for c in g["charts"]}
    rows = {r["label"]: r for r in charts["Rank of the true value among the options"]["rows"]}
    assert {p["name"]: p["n"] for p in rows["metric depth"]["parts"]} == {k: n * (FEWEST + 1) for k, n in ranks.items()}
    assert "relative depth" not in rows
    values = charts["Answers of metric_depth"]
    assert values["unit"] == "m"
    assert sum(b["n"] for b in values["bins"]) == values["total"]


def contrast(first: str, second: str) -> float:
    """WCAG 2 contrast ratio of two #rrggbb colours."""

    def luminance(color: str) -> float:
        channels = [int(color[k : k + 2], 16) / 255 for k in (1, 3, 5)]
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
        return float(np.dot(linear, [0.2126, 0.7152, 0.0722]))

    high, low = sorted((luminance(first), luminance(second)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def test_colours_can_be_read() -> None:
    css = (site.PAGES / "base.css").read_text("utf-8")
    blocks = re.findall(r":root \{(.*?)\}", css, re.DOTALL)
    assert len(blocks) == 2
    for block in blocks:
        c = dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6});", block))
        for ground in ("bg", "raised"):
            assert min(contrast(c[ink], c[ground]) for ink in ("text", "dim", "link", "green", "red", "few")) >= 4.5
            assert contrast(c["line"], c["bg"]) >= 3
            assert contrast(c["accent"], c[ground]) >= 3
        for ink, ground in (("on-accent", "accent"), ("text", "green-bg"), ("text", "red-bg")):
            assert contrast(c[ink], c[ground]) >= 4.5
        assert min(contrast(c[f"s{k}"], c["bg"]) for k in range(5)) >= 2.5


def test_the_verb(looked: Looked, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["browse", str(looked.folder), "--out", str(tmp_path / "g"), "--max-items", "5", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["items"] == 5
    assert said["index"] == str(tmp_path / "g" / "index.html")
    assert Path(said["index"]).is_file()
    assert main(["browse", str(looked.folder), "--out", str(looked.folder)]) == 2
    assert "--out" in capsys.readouterr().err
