"""Other people's benchmarks and sources as small local files, and replies that a model might give."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from itertools import cycle, islice
from pathlib import Path
from typing import Any

from tests.evaluation import test_spatialscore as spatialscore_files
from tests.evaluation.benchmarks import mmsi_files
from tests.evaluation.benchmarks import test_rover as rover_files
from tests.evaluation.benchmarks import test_salbench as salbench_files
from tests.importers import hub, source_files
from tests.importers import test_blink as blink_files
from tests.importers import test_mmiu as mmiu_files
from tests.importers import test_threedsrbench as threedsrbench_files
from tests.importers import test_vsibench as vsibench_files
from tests.importers import test_vsr as vsr_files

# Letters, claims, numbers, labels and what is none of them, in the manners of models; a cycle of odd length meets every
# kind of question with every manner.
REPLIES = (
    "The answer is (B).", "**Answer: C**", "\\boxed{A}", '{"answer": "D"}', "Yes, it is.", "No.", "2.4 meters",
    "About 150 cm, so 1.5 m.", "I cannot determine that from the image.", "Option A, because B is too far away.",
    "<think>It may be A or B.</think>\nFinal answer: B", "``C``", "A", "", "Either A or B",
    "\\scalar{1.6} \\distance_unit{meters}", "12.5 degrees", "答案是B", "The claim is false.", "true",
    "### Reasoning\nThe first camera is left of the second.\n\n**Final Answer**: D", "between 2 and 3 metres",
    "Color, Size", "The special object differs in Orientation.", "[[1, 0, 3], [0, 1, 2], [0, 0, 1]]", "(0.31, 0.52)",
    "Let me look at each option. Option A shows a steeper angle. So the answer is", "six feet", "1,024 px", "the sofa",
    "I'm sorry, but I can't help with that.",
)  # fmt: skip


def scripted(folder: Path, name: str, replies: Iterable[str]) -> str:
    """Write replies into `folder/name`, used once each and in order, for a `--model` that is asked in that folder."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps({"reply": reply}) + "\n" for reply in replies))
    return f"scripted:{name}"


def manners(count: int) -> Iterator[str]:
    """So many replies."""
    return islice(cycle(REPLIES), count)


def mmsi(folder: Path) -> Path:
    """33 questions of all eleven kinds."""
    return mmsi_files.write(folder, [mmsi_files.row(k) for k in range(33)])


def salbench(folder: Path) -> Path:
    """23 questions of four configurations."""
    return salbench_files.write(folder)


def spatialscore(folder: Path) -> tuple[Path, Path]:
    """The published file, some rows of it broken, and the folder of its images."""
    spatialscore_files.with_images(folder / "images")
    return spatialscore_files.file_of(folder / "repository", spatialscore_files.rows()), folder / "images"


def rover(folder: Path) -> Path:
    """Images that were made, for a judge to grade: a list of samples."""
    folder.mkdir(parents=True)
    rows = []
    for k, kind in enumerate(("science_temporal", "culture_spatial", "logic_math", "common_sense_causal")):
        (folder / f"{k}.png").write_bytes(rover_files.png(k))
        rows.append({"sample_id": f"{kind}_{k}", "original_image": "0.png", "generated_image": f"{k}.png",
                     "prompt": f"Show it after {k} months.", "think_output": "It grows." if k else "N/A",
                     "keywords": "growth", "target_description": "a taller plant"})  # fmt: skip
    path = folder / "samples.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def judge(folder: Path, name: str) -> str:
    """A judge, as `scripted`, that gives each metric a score of its own, in other words each."""
    said = {"reasoning_process": '{"reasoning_process_score": 4, "reasoning": "ok"}',
            "reasoning_visual": "```json\n{'reasoning_visual_score': 2}\n```", "reasoning_alignment": "5/5",
            "visual_consistency": "**Visual Consistency Score:** 3", "image_quality": "It is quite good."}  # fmt: skip
    (folder / name).write_text(
        "".join(json.dumps({"match": f'"{metric}_score"', "reply": said[metric]}) + "\n" for metric in said)
    )
    return f"scripted:{name}"


def sources(folder: Path) -> dict[str, Path]:
    """Importer -> folder in the form in which its source is distributed."""
    hub.write_photo(folder / "vsr/data/trainval2017/000000550019.jpg", 1)
    lines: list[Any] = [vsr_files.line(550019, "The car is behind the meter.", 1), "no object",
                        vsr_files.line(7, "The cat is in it.", 1)]  # fmt: skip
    for split in ("zeroshot", "random"):
        vsr_files.written(folder / f"vsr/data/splits/{split}/test.jsonl", lines)
    threedsrbench_files.written(folder / "3dsrbench/3dsrbench_v1_vlmevalkit.tsv", [
        threedsrbench_files.row("2B3POEXX"), threedsrbench_files.row("2B3POEXX-flip", 2, answer="A"),
        threedsrbench_files.row("NF7XUVPP", 4, "height_higher"), threedsrbench_files.row("AAAAAAAA", 6, "mood"),
    ])  # fmt: skip
    blink_files.written(folder / "blink")
    hub.write_parquet(folder / "mmiu/all.parquet", [mmiu_files.row(task, 3) for task in mmiu_files.DOMAINS])
    for task, domain in mmiu_files.DOMAINS.items():
        for k in range(2):
            hub.write_photo(folder / "mmiu" / domain / task / f"{task}_3_{k}.jpg", k)
    turns = ["A. Turn Left", "B. Turn Right", "C. Turn Back"]
    hub.write_parquet(folder / "vsi-bench/test-00000-of-00001.parquet", [
        vsibench_files.row(0, "object_counting", "4"), vsibench_files.row(701, "object_abs_distance", "0.4"),
        vsibench_files.row(971, "object_rel_direction_hard", "A", turns),
        vsibench_files.row(6, "object_counting", "2", scene_name="gone"),
    ])  # fmt: skip
    (folder / "vsi-bench/scannet").mkdir()
    (folder / "vsi-bench/scannet/scene0011_00.mp4").write_bytes(hub.video(50))
    own = {
        "mmvp": source_files.mmvp_original(folder / "MMVP"),
        "realworldqa": source_files.realworldqa(folder / "realworldqa"),
        "spatialsense": source_files.spatialsense(folder / "spatialsense"),
        "spatialbench": source_files.spatialbench(folder / "spatialbench"),
        "qspatialbench": source_files.qspatialbench(folder / "Q-Spatial-Bench"),
        "cvbench": source_files.cvbench(folder / "CV-Bench"),
    }
    more = {name: folder / name for name in ("vsr", "3dsrbench", "blink", "mmiu", "vsi-bench")}
    return own | more | {"vsr-random": folder / "vsr"}
