"""Small copies of sources in the form in which they are distributed: the same files and columns, made-up questions."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image

from vgbench_gen.core.rng import rng_for


def photo(name: str, size: tuple[int, int] = (96, 64), form: str = "JPEG", quality: int = 90) -> bytes:
    """An encoded picture of coarse random patches, the same for the same name; other names look different."""
    patches = rng_for(7, "photo", name).integers(0, 256, (6, 9, 3), dtype=np.uint8)
    stream = io.BytesIO()
    Image.fromarray(patches).resize(size, Image.Resampling.BICUBIC).save(stream, form, quality=quality)
    return stream.getvalue()


def hub_cell(data: bytes, path: str = "") -> dict[str, Any]:
    """An image as the Hub's parquet files hold it."""
    return {"bytes": data, "path": path or None}


def parquet(path: Path, rows: Sequence[Mapping[str, Any]]) -> Path:
    """Write rows as a parquet file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist([dict(row) for row in rows]), path)
    return path


def mmvp_original(top: Path) -> Path:
    """Four questions of `MMVP/MMVP`: a CSV file and photos; 99 and 100 with the keys that are swapped there."""
    photos = top / "MMVP Images"
    photos.mkdir(parents=True)
    rows = [
        (1, "Are the butterfly's wings closer to being open or closed?", "(a) Open (b) Closed", "(a)"),
        (2, "Are the butterfly's wings closer to being open or closed?", "(a) Open (b) Closed", "(b)"),
        (99, "Does the elephant have long or short tusks?", "(a) Long (b) Short", "(a)"),
        (100, "Does the elephant have long or short tusks?", "(a) Long (b) Short", "(b)"),
    ]
    with (top / "Questions.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["Index", "Question", "Options", "Correct Answer"])
        writer.writerows(rows)
    for index, *_ in rows:
        (photos / f"{index}.jpg").write_bytes(photo(f"mmvp {index}"))
    return top


def mmvp_corrected(top: Path) -> Path:
    """Two questions of `lmms-lab-eval/MMVP`, the corrected copy."""
    parquet(
        top / "data" / "train-00000-of-00001.parquet",
        [
            {
                "Index": index,
                "Question": "Does the elephant have long or short tusks?",
                "Options": "(a) Long (b) Short",
                "Correct Answer": key,
                "image": hub_cell(photo(f"mmvp {index}")),
            }
            for index, key in ((99, "(b)"), (100, "(a)"))
        ],
    )
    return top


def realworldqa(top: Path) -> Path:
    """Five rows of every kind, one of them broken: no photo."""
    ask = "Please answer directly with"
    rows = [
        (f"Where is it?\n\nA. Left\nB. Ahead\nC. Right\n{ask} only the letter of the correct option and nothing else.",
         "B"),
        (f"Is there a stop sign\n{ask} a single word or number.", "No"),
        (f"How many cars are white?\n{ask} a single word or number.", "2"),
        (f"In which direction does the road slope?\n{ask} a single word or number.", "Downhill"),
        (f"How many lanes?\n{ask} a single word or number.", "4"),
    ]  # fmt: skip
    parquet(
        top / "data" / "test-00000-of-00001.parquet",
        [
            {"image": hub_cell(photo(f"car {k}") if k < 4 else b""), "question": question, "answer": answer}
            for k, (question, answer) in enumerate(rows)
        ],
    )
    return top


def spatialsense(top: Path) -> Path:
    """Two photos of the test split (one of them gone), one of the training split."""

    def relation(name: str, subject: str, predicate: str, thing: str, label: bool) -> dict[str, Any]:
        def side(what: str) -> dict[str, Any]:
            return {"name": what, "x": 1, "y": 2, "bbox": [0, 10, 0, 10]}

        return {"_id": name, "predicate": predicate, "object": side(thing), "subject": side(subject), "label": label}

    photos: list[dict[str, Any]] = [
        {
            "url": "https://farm4.staticflickr.com/3543/570_8b.jpg",
            "nsid": "1@N03",
            "height": 64,
            "width": 96,
            "split": "test",
            "annotations": [
                relation("59fb01", "cat", "on", "ground", True),
                relation("59fb02", "cat", "to the left of", "mirror", False),
            ],
        },
        {"url": "nyu/nyu_bedroom_1.png", "height": 64, "width": 96, "split": "test",
         "annotations": [relation("59fb03", "lamp", "above", "bed", True)]},
        {"url": "https://farm4.staticflickr.com/1/gone.jpg", "height": 64, "width": 96, "split": "test",
         "annotations": [relation("59fb04", "dog", "in", "boat", True)]},
        {"url": "https://farm4.staticflickr.com/1/train.jpg", "height": 64, "width": 96, "split": "train",
         "annotations": [relation("59fb05", "dog", "in", "boat", True)]},
    ]  # fmt: skip
    for folder, name in (("flickr", "570_8b.jpg"), ("nyu", "nyu_bedroom_1.png")):
        path = top / "images" / folder / name
        path.parent.mkdir(parents=True)
        path.write_bytes(photo(name, form="PNG" if name.endswith("png") else "JPEG"))
    (top / "annotations.json").write_text(json.dumps(photos))
    return top


def spatialbench(top: Path) -> Path:
    """The authors' files: a row of each kind; `grounding.json` and depth images lie beside them."""
    rows: dict[str, list[dict[str, Any]]] = {
        "positional": [{"question": "Which is higher?\nA. the cup\nB. the bed\nAnswer with a letter.", "answer": "A"}],
        "existence": [{"question": "Is there a door? Answer with Yes or No.", "answer": "Yes", "id": "existence_0"}],
        "counting": [{"question": "How many chairs are there? Answer with a number.", "answer": "3"}],
        "reach": [{"question": "Has the robot touched the cup? Answer with Yes or No.", "answer": "No"}],
        "size": [{"question": "Is the cup bigger? Answer with Yes or No.", "answer": "No"}],
        "grounding": [{"objects": [{"cup": [0, 0, 1, 1]}], "id": "grounding_0"}],
    }
    for name, questions in rows.items():
        for folder in (name, f"{name}_d"):
            (top / folder).mkdir(parents=True)
            (top / folder / "1.jpg").write_bytes(photo(f"spatialbench {folder}"))
        found = [{"image": f"{name}/1.jpg", **question} for question in questions]
        (top / f"{name}.json").write_text(json.dumps(found))
    return top


def qspatialbench(top: Path, with_scannet: bool = True) -> Path:
    """Two rows of each split; frames of ScanNet lie where the authors' script puts them, or nowhere."""
    plus = [
        {"question": "What is the width of the desk?", "answer_value": 1.51, "answer_unit": "m",
         "question_type": "object width", "image_path": "", "image": hub_cell(photo("desk"))},
        {"question": "How far is the cup from the lamp?", "answer_value": 35.0, "answer_unit": "cm",
         "question_type": "horizontal distance", "image_path": "", "image": hub_cell(photo("cup"))},
    ]  # fmt: skip
    name = "images/scene0015_00/color/0.jpg"
    scannet = [
        {"question": f"How far is chair {k} from the table?", "answer_value": 0.8 + k, "answer_unit": "m",
         "question_type": "direct distance", "image_path": name, "image": None}
        for k in range(2)
    ]  # fmt: skip
    image = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    schema = pa.schema([("question", pa.string()), ("answer_value", pa.float32()), ("answer_unit", pa.string()),
                        ("question_type", pa.string()), ("image_path", pa.string()), ("image", image)])  # fmt: skip
    (top / "data").mkdir(parents=True)
    for split, rows in (("QSpatial_plus", plus), ("QSpatial_scannet", scannet)):
        path = top / "data" / f"{split}-00000-of-00001.parquet"
        pq.write_table(pa.Table.from_pylist(rows, schema=schema), path)
    if with_scannet:
        path = top / "QSpatial_scannet" / name
        path.parent.mkdir(parents=True)
        path.write_bytes(photo("scannet frame"))
    return top


def cvbench(top: Path) -> Path:
    """A count with six options (2D), a relation, and a depth question whose prompt ends in coordinates (3D)."""

    def row(idx: int, task: str, question: str, choices: list[str], answer: str, tail: str = "") -> dict[str, Any]:
        lettered = "\n".join(f"({letter}) {choice}" for letter, choice in zip("ABCDEF", choices, strict=False))
        return {
            "idx": idx,
            "type": "2D" if task in ("Count", "Relation") else "3D",
            "task": task,
            "image": hub_cell(photo(f"cvbench {idx}", form="PNG")),
            "question": question,
            "choices": choices,
            "answer": answer,
            "prompt": f"{question} Select from the following choices.\n{lettered}{tail}",
            "filename": f"img/2D/{task.lower()}/ade20k_{idx}.png",
            "source": "ADE20K",
            "source_dataset": "ADE20K Test Dataset",
            "source_filename": f"ADE_test_{idx}.jpg",
            "target_class": None,
            "target_size": None,
            "bbox": None,
        }

    parquet(top / "test_2d.parquet", [
        row(0, "Count", "How many walls are in the image?", ["1", "3", "0", "2", "5", "4"], "(F)"),
        row(1, "Relation", "Where is the blind located with respect to the table?", ["left", "right"], "(B)"),
        row(2, "Sorting", "Which comes first?", ["this", "that"], "(A)"),
    ])  # fmt: skip
    parquet(top / "test_3d.parquet", [
        row(1438, "Depth", "Which object is closer?", ["door", "lamp"], "(B)", "\nThe coordinates are: red: [1, 2]"),
    ])  # fmt: skip
    return top
