"""A dataset with everything an export can stumble over, and replies of every kind to it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.store.examples import make_item, textured
from vgbench_gen.core.rng import hash_stably
from vgbench_gen.core.types import Item
from vgbench_gen.evaluation.base import Source, benchmarks
from vgbench_gen.store.media import MediaStore
from vgbench_gen.store.pictures import encode_jpeg
from vgbench_gen.store.shards import write_items

POSES = ("R =\n[[1.0, 0.0],\n [0.0, 1.0]]\nt = [0.1, 0.2]", "R =\n[[0.0, 1.0],\n [-1.0, 0.0]]\nt = [0.1, 0.2]")
REPLIES = (
    "The answer is (B).",
    "A",
    "<think>C looks right</think>\nB",
    "<think>never closed, so A",
    "Yes.",
    "No, it is not.",
    "I cannot determine that.",
    r"about \scalar{2.1} \distance_unit{meters}",
    "4.79 m",
    "1.7 feet",
    "Either A or B",
    "=1+1",
    "答案:B",
)


def written(folder: Path) -> Source:
    """Choices, judgments, lengths; one to five images, one twice; tabs, quotes, several lines, words like "None"."""
    media = MediaStore(folder / "media")
    pictures = [media.put(encode_jpeg(textured(128 + 8 * k, 112, k)), "jpg") for k in range(6)]
    origin: dict[str, Any] = {"category": "Depth and Distance", "subcategory": "Absolute"}
    claim: dict[str, Any] = {"question_type": "judgment", "options": ()} | origin
    length: dict[str, Any] = {"question_type": "open-ended", "options": (), "answer": "2.40 meters"} | origin
    items = [
        make_item(0, pictures[:1], category_origin="metric_depth_vqa", **origin),
        make_item(1, pictures[:1], question='Is it "deep"?\tSay so.\nOn two lines; a, b', answer="Yes", **claim),
        make_item(2, pictures[1:2], question="Is it NaN?", context="", answer="No", **claim),
        make_item(3, pictures[:2], question="How deep, in meters, is this?", **length),
        make_item(4, pictures[2:3], question="How far off, in metres, is that?", **length | {"answer": "0.85 meters"}),
        make_item(5, pictures[:2], task="relative_pose", question="Which pose?", options=POSES, answer="A"),
        make_item(
            6,
            pictures[:5],
            task="homography_to_image",
            question="Which image is the warped one?",
            options=("image 2", "image 3", "image 4", "image 5"),
            answer="D",
        ),
        make_item(7, [pictures[5], pictures[5]], options=("None", "NA", "null", "nan"), answer="C", index_origin=3),
    ]
    write_items(folder / "items", items, media)
    return benchmarks["vgbench"].open(folder)


def items_of(source: Source) -> list[Item]:
    return [source.item(row.row) for row in source.rows()]


def scripted(text: str, images: int) -> str:
    """What the played model says to a prompt: fixed by its words and the number of its images."""
    return REPLIES[int(hash_stably("scripted", text.strip(), str(images)), 16) % len(REPLIES)]
