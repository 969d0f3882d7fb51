from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.importers.hub import imported, video, write_parquet, write_photo, write_zip
from vgbench_gen.core.errors import DatasetError
from vgbench_gen.evaluation.options import AskOptions
from vgbench_gen.evaluation.prompting import find_prompt_set, make_asked, make_full_text, rotate_options
from vgbench_gen.evaluation.scoring import make_case, score
from vgbench_gen.importers._files import Place, RowError
from vgbench_gen.importers._video import read_uniform_frames
from vgbench_gen.importers.base import ASKED, importers

ORDER = "What will be the first-time appearance order of the following categories in the video: toilet, bed?"
SIZES = {
    "obj_appearance_order": 618, "object_abs_distance": 834, "object_counting": 565, "object_rel_direction": 968,
    "object_rel_distance": 710, "object_size_estimation": 953, "room_size_estimation": 288, "route_planning": 194,
}  # fmt: skip


def row(number: int, kind: str, truth: str, options: list[str] | None = None, **changes: Any) -> dict[str, Any]:
    fields = {
        "id": number, "dataset": "scannet", "scene_name": "scene0011_00", "question_type": kind,
        "question": "How many table(s) are in this room?", "ground_truth": truth, "options": options,
    }  # fmt: skip
    return fields | changes


def test_numbers_and_choices_about_one_video(tmp_path: Path) -> None:
    turns = ["A. Turn Left, Turn Left", "B. Turn Left, Turn Right", "C. Turn Back, Turn Right"]
    rows = [
        row(0, "object_counting", "4"), row(701, "object_abs_distance", "0.4"),
        row(2716, "obj_appearance_order", "B", ["A. toilet, bed", "B. bed, toilet"], question=ORDER),
        row(971, "object_rel_direction_hard", "A", turns), row(1185, "object_rel_direction_medium", "C", turns),
        row(4964, "route_planning", "C", turns), row(5, "object_rel_distance", "A", ["left", "B. right"]),
        row(6, "object_counting", "2", scene_name="gone"), row(7, "new_task", "1"), row(8, "object_counting", "many"),
    ]  # fmt: skip
    write_parquet(tmp_path / "test-00000-of-00001.parquet", rows)
    (tmp_path / "scannet").mkdir()
    (tmp_path / "scannet/scene0011_00.mp4").write_bytes(video(50))
    found = imported("vsi-bench", tmp_path, tmp_path / "media", published=True)
    count, distance, order, hard, medium, route = found.items
    assert {item.benchmark for item in found.items} == {"SpatialScore/VSI-Bench_8"}
    assert {item.input_modality for item in found.items} == {"video"}
    assert [item.index_origin for item in found.items] == [0, 701, 2716, 971, 1185, 4964]
    assert (count.question_type, count.answer, distance.answer_value) == ("open-ended", "4", (0.4,))
    assert order.evidence[ASKED]["text"] == f"{ORDER} Options: A. toilet, bed, B. bed, toilet"
    assert (order.options, order.answer) == (("toilet, bed", "bed, toilet"), "B")
    assert make_full_text(rotate_options(order, 1), find_prompt_set("paper")).endswith(
        "Options: A. bed, toilet, B. toilet, bed"
    )
    assert [item.subcategory for item in found.items] == [
        "Object Counting", "Absolute", "Miscellaneous", "Orientation", "Orientation", "Miscellaneous"
    ]  # fmt: skip
    assert (route.source, route.scene_id, hard.images) == ("scannet", "scene0011_00", medium.images)
    assert found.bad == {"ground_truth": 1, "options": 1, "video_missing": 1}
    assert found.report.left_out == 1
    assert "new_task: 1 rows of a part that is not known" in found.report.differences
    assert "object_rel_direction: 2 rows where 968 are known" in found.report.differences
    # Frames 0, 7, 14, … 49 of 50, each of its own grey.
    greys = [float(found.pixels(count, k)[:, 24:, 1].mean()) for k in range(8)]
    np.testing.assert_allclose(greys, [40 + 4 * k for k in (0, 7, 14, 21, 28, 35, 42, 49)], atol=1.5)
    request = make_asked(count, AskOptions().settings("m"), AskOptions())
    assert [image.name for image in request.images] == list(count.images)


def test_scored_alone_by_mra_and_inside_spatialscore_by_a_factor_of_two(tmp_path: Path) -> None:
    write_parquet(tmp_path / "test-00000-of-00001.parquet", [row(0, "object_abs_distance", "2.0")])
    for k in range(8):
        write_photo(tmp_path / f"8_frames/scannet/scene0011_00/frame_{k:02}.jpg", k)
    scores = []
    for published in (False, True):
        [item] = imported("vsi-bench", tmp_path, tmp_path / "media", published).items
        assert len(set(item.images)) == 8
        scored = score(make_case(item), "1.4")
        scores.append((item.benchmark, scored.score, scored.official.score))
    # 30 % off: half of the ten tolerances; both scripts grade by them, the paper inside SpatialScore does not.
    assert scores == [("VSI-Bench", 0.5, 0.5), ("SpatialScore/VSI-Bench_8", 1.0, 0.5)]


def test_json_lines_without_ids_and_videos_in_archives(tmp_path: Path) -> None:
    rows = [row(9, "object_counting", "4"), row(9, "object_counting", "2", dataset="arkitscenes", scene_name="7")]
    for one in rows:
        del one["id"]
    (tmp_path / "test.jsonl").write_text("".join(json.dumps(one) + "\n" for one in rows))
    write_parquet(tmp_path / "test-debiased.parquet", [row(1, "object_counting", "3")])  # another edition
    write_zip(tmp_path / "scannet.zip", {"scannet/scene0011_00.mp4": video(9)})
    write_zip(tmp_path / "arkitscenes.zip", {"7.mp4": b"\x00\x01 no video"})
    found = imported("vsi-bench", tmp_path, tmp_path / "media")
    [item] = found.items
    assert (item.index_origin, len(item.images)) == (0, 8)
    assert found.bad == {"video_broken": 1}
    (tmp_path / "test.jsonl").write_text(json.dumps({"question": "?"}) + "\n")
    with pytest.raises(DatasetError, match="expected among them dataset, scene_name"):
        imported("vsi-bench", tmp_path, tmp_path / "media")


def test_frames_of_short_damaged_and_empty_videos(tmp_path: Path) -> None:
    path = tmp_path / "short.mp4"
    path.write_bytes(video(3))
    assert len(read_uniform_frames(path, 8)) == 3
    whole = video(48)
    cut = tmp_path / "cut.mp4"
    # The index at the end is moved to the front, and the last third of the pictures is lost.
    cut.write_bytes(damaged(whole))
    frames = read_uniform_frames(cut, 8)
    assert len(frames) == 8
    for name, data in (("empty.mp4", b""), ("text.mp4", b"hello" * 100)):
        (tmp_path / name).write_bytes(data)
        with pytest.raises(RowError, match=name):
            read_uniform_frames(tmp_path / name, 8)
    with pytest.raises(RowError, match="absent"):
        read_uniform_frames(tmp_path / "absent.mp4", 8)


def damaged(data: bytes) -> bytes:
    """A video of which the pictures of the last third are zeros."""
    start = data.index(b"mdat") + 4
    end = data.index(b"moov") - 4
    cut = start + 2 * (end - start) // 3
    return data[:cut] + bytes(end - cut) + data[end:]


def test_sizes() -> None:
    importer = importers["vsi-bench"]
    assert {name: part.expected for name, part in importer.parts.items()} == SIZES
    assert sum(SIZES.values()) == importer.published == 5130


@pytest.mark.parametrize("suffix", [".mp4", ".mkv", ".avi", ".m3u8"])
def test_a_playlist_in_the_clothes_of_a_video_is_refused(tmp_path: Path, suffix: str) -> None:
    secret = tmp_path / "private.mp4"
    secret.write_bytes(video(5))
    (tmp_path / "set").mkdir()
    for number, text in enumerate((
        f"ffconcat version 1.0\nfile '{secret}'\n",
        f"#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXTINF:1,\nfile://{secret}\n#EXT-X-ENDLIST\n",
    )):  # fmt: skip
        path = tmp_path / "set" / f"{number}{suffix}"
        path.write_text(text)
        with pytest.raises(RowError, match="no Matroska"):
            read_uniform_frames(path, 2)


def test_images_behind_links_out_of_the_folder_are_refused(tmp_path: Path) -> None:
    (tmp_path / "set").mkdir()
    (tmp_path / "secret.png").write_bytes(b"\x89PNG")
    (tmp_path / "set/link.png").symlink_to(tmp_path / "secret.png")
    for name in ("link.png", "../secret.png", "/../secret.png", "a/../../secret.png"):
        with pytest.raises(RowError, match="leaves the folder"):
            Place(tmp_path / "set").picture(name)
    with pytest.raises(DatasetError, match="a place below"):
        Place(tmp_path / "set").find("*.png")
