"""SalBench from files in its true format, asked over HTTP, read in both modes and put into its tables."""

from __future__ import annotations

import base64
import csv
import io
import json
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sklearn.metrics import f1_score, precision_recall_fscore_support

from tests.backends.server import Play, Seen, refusal, reply, serving
from vgbench_gen.cli.main import main
from vgbench_gen.core.errors import ConfigError, DatasetError
from vgbench_gen.evaluation.answers.places import extract_answer
from vgbench_gen.evaluation.base import benchmarks
from vgbench_gen.evaluation.baselines import open_baseline
from vgbench_gen.evaluation.benchmarks._parquet import ParquetSource
from vgbench_gen.evaluation.benchmarks.salbench import labels
from vgbench_gen.evaluation.benchmarks.salbench import tables as label_tables
from vgbench_gen.evaluation.benchmarks.salbench.labels import EMPTY, O3, P3, LabelReader
from vgbench_gen.evaluation.benchmarks.salbench.scoring import SalBenchRules
from vgbench_gen.evaluation.compare import load_board
from vgbench_gen.evaluation.layouts import make_breakdowns
from vgbench_gen.evaluation.options import AskOptions
from vgbench_gen.evaluation.prompting import Asked
from vgbench_gen.evaluation.records import ReplyKey
from vgbench_gen.evaluation.runner import evaluate_all
from vgbench_gen.evaluation.scoring import Case, score
from vgbench_gen.evaluation.tables import compare_models

Capture = pytest.CaptureFixture[str]
TRUTHS = {
    "P3": ["Color", "Size", "Orientation", "Color", "Orientation, Size", "Size"],
    "O3": ["Focus", "Pattern, Color", "Shape", "Location", "Color"],
}


def png(seed: int, size: tuple[int, int] = (40, 60)) -> bytes:
    rng = np.random.default_rng(seed)
    image = np.repeat(np.repeat(rng.integers(0, 255, (5, 5, 3)), size[0] // 5, 0), size[1] // 5, 1)
    return bytes(cv2.imencode(".png", image.astype(np.uint8))[1])


def question(config: str) -> str:
    names = ", ".join(label.capitalize() for label in (P3 if config.startswith("P3") else O3))
    return f"Context: {config}. Given these features: {names}. Which differ? Write out all, separated by comma."


def write(folder: Path, configs: tuple[str, ...] = ("P3", "P3_box", "P3_box_img", "O3")) -> Path:
    """The Hub's layout; the same picture stands in the three configurations of a split."""
    for config in configs:
        truths = TRUTHS[config[:2]]
        rows = [
            {
                "image": {"bytes": png(k + 100 * (config[0] == "O")), "path": f"{k}.png"},
                "question": question(config),
                "answer": truth,
                "image_id": f"{config[:2]}_{k:04d}",
            }
            for k, truth in enumerate(truths)
        ]
        (folder / config).mkdir(parents=True)
        pq.write_table(pa.Table.from_pylist(rows), folder / config / "test-00000-of-00001.parquet", row_group_size=2)
    return folder


def opened(path: Path) -> ParquetSource:
    source = benchmarks["salbench"].open(path)
    assert isinstance(source, ParquetSource)
    return source


def answered(seen: Seen) -> Play:
    """Says the same of everything, and refuses one picture."""
    if base64.b64encode(png(2)).decode() in seen.body.decode():
        return refusal(400, "no")
    return reply("The special object differs in Color and Size.")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("salbench"))


def test_rows_come_as_they_are_published(folder: Path) -> None:
    source = opened(folder)
    rows = list(source.rows())
    assert len(rows) == 6 * 3 + 5
    item = source.item(next(row.row for row in rows if row.source == "natural"))
    assert (item.benchmark, item.question_type, item.answer) == ("SalBench-O3", "multi-label", "Focus")
    assert item.question == question("O3")
    assert source.image(item, 0) == png(100)
    # One picture in three configurations is one cluster.
    assert len({row.scene for row in rows}) == 6 + 5
    assert source.again().image(item, 0) == source.image(item, 0)
    assert any("P3: 6 rows, 2589 published" in note for note in source.notes)


def test_raw_rows_get_their_question_and_box(tmp_path: Path) -> None:
    raw: dict[str, Any] = {
        "label": ["Color"],
        "num_distractors": 7,
        "object_category": "icons",
        "bbox": [0.25, 0.2, 0.5, 0.6],
        "difficulty": "hard",
    }
    for config in ("O3", "O3_box", "O3_box_img"):
        rows = [raw | {"image": {"bytes": png(1), "path": None}}]
        pq.write_table(pa.Table.from_pylist(rows), tmp_path / f"{config}.parquet")
    source = opened(tmp_path)
    detection, referring, drawn = (source.item(k) for k in range(3))
    assert "Orientation, Color, Focus, Shape, Size, Location, Pattern" in detection.question
    assert "icons" not in detection.question
    assert "7 icons" in referring.question
    assert "(xmin=0.25, ymin=0.20, xmax=0.50, ymax=0.60)" in referring.question
    assert "red box" in drawn.question
    assert "xmin" not in drawn.question
    assert source.image(referring, 0) == png(1)
    data = source.image(drawn, 0)
    assert isinstance(data, bytes)
    image = np.asarray(cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_COLOR))
    assert (image[8, 15:30] == (0, 0, 255)).all()
    assert (image[8:24, 15] == (0, 0, 255)).all()
    assert not (image[16, 18:27] == (0, 0, 255)).all(axis=-1).any()
    assert drawn.difficulty == "hard"


def test_rows_that_cannot_be_asked_are_left_out_and_named(tmp_path: Path) -> None:
    good = {"image": {"bytes": png(1), "path": None}, "question": "Q", "answer": "Color", "image_id": "1"}
    rows = [
        good,
        good | {"answer": "Banana"},
        good | {"image": {"bytes": b"junk", "path": None}},
        good | {"image": None},
    ]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "P3.parquet")
    source = opened(tmp_path)
    assert len(list(source.rows())) == 1
    assert [note.split(":")[0] for note in source.notes[1:]] == [f"P3.parquet, row {k}" for k in (1, 2, 3)]
    pq.write_table(pa.Table.from_pylist([{"image": None, "question": "Q"}]), tmp_path / "P3.parquet")
    with pytest.raises(DatasetError, match="answer or label"):
        opened(tmp_path)
    (tmp_path / "empty").mkdir()
    with pytest.raises(DatasetError, match="P3_box_img"):
        opened(tmp_path / "empty")


def test_asked_scored_and_compared_over_http(tmp_path: Path, capsys: Capture) -> None:
    folder = write(tmp_path / "sal")
    with serving(answered) as server:
        spec = f"vllm:{server.url}#m"
        command = ["eval", str(folder), "--benchmark", "salbench", "--model", spec, "--retries", "0"]
        assert main(command) == 1  # three requests are refused
        sent = [seen for seen in server.seen if "P3_box_img" in seen.text]
        assert len(sent) == 6
        assert sent[0].json["messages"][-1]["content"][-1]["text"] == question("P3_box_img")
        asked = server.requests
        assert main([*command, "--shots", "3", "--splits", "synthetic", "--tasks", "D,VR"]) == 1
        for seen in server.seen[asked:]:
            messages = seen.json["messages"]
            assert [message["role"] for message in messages] == ["user", "assistant"] * 3 + ["user"]
            assert {message["content"] for message in messages[1::2]} <= set(TRUTHS["P3"])
            pictures = [p["image_url"]["url"] for m in messages[::2] for p in m["content"] if p["type"] == "image_url"]
            assert len(set(pictures)) == 4  # the question's own picture is in no example
    capsys.readouterr()
    assert main(["compare", str(folder), "--benchmark", "salbench", "--json"]) == 1
    tables = json.loads(capsys.readouterr().out)
    assert tables["notes"]
    report = list(csv.DictReader(io.StringIO((folder / "scores/report/salbench.csv").read_text())))
    assert [row["Shot"] for row in report] == ["0", "3"]
    assert list(report[0])[:8] == [
        "Model", "Shot", "Detection_NAT", "Detection_SYN", "Referring_NAT", "Referring_SYN", "VisualRef_NAT",
        "VisualRef_SYN",
    ]  # fmt: skip
    # By scikit-learn: what failed named nothing.
    true = np.array([[label in labels.convert_to_set(labels.parse_truth(t, P3)) for label in P3] for t in TRUTHS["P3"]])
    said = np.array([[False] * 3 if k == 2 else [label in ("color", "size") for label in P3] for k in range(6)])
    macro = f1_score(true, said, average="macro", zero_division=0)
    assert report[0]["Detection_SYN"] == f"{100 * macro:.1f}"
    assert (
        report[0]["Detection_SYN_sampleF1"] == f"{100 * f1_score(true, said, average='samples', zero_division=0):.1f}"
    )
    assert report[0]["Referring_NAT"] == ""
    assert report[1]["Referring_SYN"] == ""
    board = load_board({"sal": opened(folder)})
    run = next(run for run in board.runs.values() if not run.stage)
    assert {entry.scans: entry.chance for entry in board.questions} == {"synthetic": 1 / 7, "natural": 1 / 127}
    answers = board.answers_of(run.name)[label_tables.mask_task(board, "synthetic", "detection")]
    figures = {
        head: label_tables.measure("synthetic", figure)(answers, "", 0).value
        for head, figure in label_tables.list_columns("synthetic")
    }
    assert figures["micro F1"] == pytest.approx(f1_score(true, said, average="micro"))
    per_class = precision_recall_fscore_support(true, said, zero_division=0)[2]
    assert [figures[label.capitalize()] for label in P3] == pytest.approx(list(per_class))
    assert figures["EM"] == pytest.approx((true == said).all(axis=1).mean())


def test_truth_scores_full_and_any_other_set_none(folder: Path) -> None:
    source = opened(folder)
    for item in (source.item(row.row) for row in source.rows()):
        case = Case(item.benchmark, item.question_type, item.answer)
        assert score(case, item.answer).score == score(case, item.answer).official.score == 1
        assert score(case, "Size, Color, Orientation").score == 0


@pytest.mark.parametrize("name", ["truth", "random", "constant", "blind", "noisy", "solvers"])
def test_baselines_answer_with_labels(folder: Path, name: str) -> None:
    source = opened(folder)
    who = open_baseline(f"baseline:{name}", source, 0)
    points = []
    for item in (source.item(row.row) for row in source.rows()):
        said = who.answer(item, Asked(ReplyKey(item.id), item, (), "", "", AskOptions().settings("m")))
        scored = score(Case(item.benchmark, item.question_type, item.answer), said)
        assert bool(labels.convert_to_set(scored.reading.value)) == (name != "solvers")
        points.append(scored.score)
    assert name != "truth" or min(points) == 1
    assert name not in ("random", "noisy") or 0 <= min(points) < 1


def test_no_baseline_draws_images(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = opened(folder)
    monkeypatch.setattr(source, "keep", lambda item, reply, folder: "", raising=False)  # its replies are images
    monkeypatch.setattr(source, "again", lambda: source)
    with pytest.raises(ConfigError, match="ask for an image"):
        evaluate_all(source, ["baseline:random"], folder=tmp_path)
    assert not list(tmp_path.iterdir())


def test_drawn_sets_are_not_empty_and_not_the_key(folder: Path) -> None:
    source = opened(folder)
    item = next(item for row in source.rows() if (item := source.item(row.row)).benchmark == "SalBench-P3")
    rng = np.random.default_rng(0)
    assert len({SalBenchRules().draw_answer(item, rng) for _ in range(200)}) == 7
    assert len({SalBenchRules().draw_answer(item, rng, other_than="Color") for _ in range(200)} - {"Color"}) == 6


def test_difficulty_counts_what_failed_as_missed(tmp_path: Path, capsys: Capture) -> None:
    rows = [
        {"image": {"bytes": png(k), "path": None}, "question": "Q", "answer": "Color", "image_id": str(k),
         "difficulty": ("hard", "easy")[k % 2]}
        for k in range(4)
    ]  # fmt: skip
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "P3.parquet")
    with serving(lambda seen: refusal(400, "no") if base64.b64encode(png(0)).decode() in seen.body.decode()
                 else reply("Color")) as server:  # fmt: skip
        spec = f"vllm:{server.url}#m"
        assert main(["eval", str(tmp_path), "--benchmark", "salbench", "--model", spec, "--retries", "0"]) == 1
    capsys.readouterr()
    board = load_board({"sal": opened(tmp_path)})
    assert not any(layout.key == "difficulty" for layout in make_breakdowns(board))
    found = {table.key: table for table in compare_models(board).papers}["salbench-synthetic-difficulty"]
    assert [head.name for head in found.columns] == ["EM easy", "EM hard", "macro F1 easy", "macro F1 hard"]
    assert [round(cell.value, 3) for cell in found.rows[0].cells[:2]] == [1.0, 0.5]
    assert found.rows[0].cells[1].n == 2


# --- replies

SANE: list[tuple[str, str | None]] = [
    ("Color", "color"),
    ("COLOR, size.", "color, size"),
    ("Color/Size", "color, size"),
    ("Colour and sizes", "color, size"),
    ("color|size", "color, size"),
    ("color;orientation", "color, orientation"),
    ("1. Color\n2. Size", "color, size"),
    ("- Color\n- Size", "color, size"),
    ("**Color**, *Size*", "color, size"),
    ('["color", "size"]', "color, size"),
    ('{"answer": "color, size"}', "color, size"),
    ("<answer>Color, Size</answer>", "color, size"),
    ("\\boxed{Color, Size}", "color, size"),
    ("Ｃｏｌｏｒ", "color"),  # noqa: RUF001
    ("Orientation, Color, Size", "color, orientation, size"),
    ("emphasize", ""),
    ("synthesized dislocation", ""),
    ("The cat.", ""),
    ("none", ""),
    ("The answer is: none of these", ""),
    ("", None),
    ("   \n", None),
    ("nan", None),
    ("I cannot determine the answer.", None),
    ("I'm sorry, I can't help with that.", None),
    ("<think>color or size", None),
    ("<think>color? size?</think>orientation", "orientation"),
    ("<think>color</think>", None),
    ("Features: orientation, color, size\nAnswer: size", "size"),
    ("Given orientation, color, size. The special object differs in color.", "color"),
    ("The answer is Color, Size.", "color, size"),
    ("Final answer: color and orientation", "color, orientation"),
    ("Answer:\n- Color\n- Size", "color, size"),
    ("Answer:\nColor\nSize\n\nThe orientation is the same.", "color, size"),
    ("The object differs in color, not size.", "color"),
    ("Not color but size", "size"),
    ("not only color but also size", "color, size"),
    ("neither color nor size; orientation", "orientation"),
    ("no difference in size, but color differs", "color"),
    ("The size is the same, but the color is different.", "color"),
    ("Color differs and size is the same.", "color"),
    ("Size and color are the same, orientation is different.", "orientation"),
    ("same color and size, different orientation", "orientation"),
    ("They share the same size; the color differs", "color"),
    ("The color is not the same as the others", "color"),
    ("The orientation doesn't match the rest", "orientation"),
    ("It doesn't differ in color; it differs in size", "size"),
    ("the feature is color (not size)", "color"),
    ("It has a different color than the rest, rather than a different size", "color"),
    ("Everything is the same except color", "color"),
    ("Orientation: no\nColor: yes\nSize: no", "color"),
    ("Orientation: No, Color: Yes, Size: No", "color"),
    ("orientation - no; size -> yes", "size"),
    ("color & size", "color, size"),
    ("color + size", "color, size"),
    ("Color-Size", "color, size"),
    ("The red one differs in its color.", "color"),
    ("Colors", "color"),
    ("size, size, size", "size"),
    ("Size, focus and pattern", "size"),  # labels of the other split
    ("While the color is uniform, the size differs.", "size"),
]


@pytest.mark.parametrize(("response", "wanted"), SANE)
def test_labels_of_replies(response: str, wanted: str | None) -> None:
    assert extract_answer(response, LabelReader(P3), True, EMPTY).value == wanted
    scored = score(Case("SalBench-P3", "multi-label", "Color"), response)
    assert scored.reading.value == wanted
    assert 0 <= scored.measures["f1"] <= 1


# Of the seven features: what is denied, by what, and where the denial ends; tables, positions that the question gave.
NATURAL: list[tuple[str, str | None]] = [
    ("Color differs. Size does not differ.", "color"),
    ("Size does not differ", ""),
    ("Color differs, size does not.", "color"),
    ("Color differs but size doesn't", "color"),
    ("The size does not appear to differ; the color does.", "color"),
    ("Its size matches the others; its color does not.", "color"),
    ("answer: color, then size is no factor", "color"),
    ("Size does not matter, color does", "color"),
    ("Size isn't different, color is", "color"),
    ("not size and not shape: color", "color"),
    ("without a change in size, the color changed", "color"),
    ("everything except color is the same", "color"),
    ("one is not in focus", "focus"),
    ("The special object is the only one without a pattern", "pattern"),
    ("Location: the object is not in the row", "location"),
    ("Based on the location given by the bounding box, the special object differs in color.", "color"),
    ("The object at the given location differs in color.", "color"),
    ('{"color": true, "size": false}', "color"),
    ('{"orientation": 0, "color": 1, "size": 0}', "color"),
    ("Orientation ❌, Color ✅", "color"),
    ("Answer: Color\nShape", "color, shape"),
    ("color, but I'm unable to determine others", "color"),
    ("The shape is not different. The color is different.", "color"),
    ("Color varies; size and shape do not.", "color"),
    ("Orientation does not vary, but pattern does.", "pattern"),
    ("Size and shape do not appear to change, whereas the color has changed.", "color"),
    ("The size doesn't seem to be any different, the color does.", "color"),
    ("Color is different, and the size is not.", "color"),
    ("The sizes match. The colors do not.", "color"),
    ("Neither size nor shape differs, color does", "color"),
    ("No difference in size or shape; only color differs.", "color"),
    ("There is no noticeable change in size, color, or shape. The pattern is different.", "pattern"),
    ("The size is not a factor. The color is.", "color"),
    ("It is the color that differs, not the size or the shape.", "color"),
    ("Size has no variation, color does", "color"),
    ("The orientation remains unchanged, the pattern does not.", "pattern"),
    ("Pattern differs. Orientation, size and shape are all identical.", "pattern"),
    ("The special object differs in color and its size is the same.", "color"),
    ("Color: differs. Size: does not differ. Shape: same.", "color"),
    ("Otherwise, size and shape are the same. Color differs.", "color"),
    ("I don't think size differs, but color does.", "color"),
    ("I see no size difference, but there is a color difference.", "color"),
    ("Color and size differ, but shape and orientation don't.", "color, size"),
    ("Size is not the same, color is.", "size"),
    ("Its color matches the rest; its shape doesn't.", "shape"),
    ("With no change in shape, the size changed.", "size"),
    ("Shape isn't different, orientation is", "orientation"),
    ("not color and not pattern: size", "size"),
    ("not the size, not the shape, but the color", "color"),
    ("Everything apart from size is identical", "size"),
    ("Nothing differs except the pattern.", "pattern"),
    ("No feature other than orientation differs.", "orientation"),
    ("The object has the same size and shape as the others, the color differs", "color"),
    ("Similar in shape and size; different in color", "color"),
    ("Instead of size, it is the shape", "shape"),
    ("same size, different color, same shape", "color"),
    ("The object is not facing the same orientation as others", "orientation"),
    ("One of them isn't in focus.", "focus"),
    ("The odd one is out of focus", "focus"),
    ("The special object has no pattern.", "pattern"),
    ("It does not have a pattern", "pattern"),
    ("One apple is without any pattern", "pattern"),
    ("Orientation: the object is not upright", "orientation"),
    ("Color: it is not red like the others", "color"),
    ("The difference is not in focus but in color", "color"),
    ("Shape: this one is not round", "shape"),
    ("The object in the specified location differs in shape and size.", "shape, size"),
    ("The special object at location (xmin=0.10, ymin=0.2, xmax=0.3, ymax=0.4) differs in orientation.", "orientation"),
    ("The cat at the location given by this bounding box is different in size.", "size"),
    ("At the given bounding box location, the object has a different pattern.", "pattern"),
    ("The object is at a different location", "location"),
    ("Its location is different from the rest", "location"),
    ("Location, color", "color, location"),
    ("The object differs in location.", "location"),
    ('{"shape": "yes", "size": "no", "color": "no"}', "shape"),
    ('{\n "orientation": false,\n "color": true,\n "size": true\n}', "color, size"),
    ('```json\n{"answer": {"color": true, "focus": false}}\n```', "color"),
    ("color=1, size=0, shape=0", "color"),
    ("✅ Color\n❌ Size\n❌ Shape", "color"),
    ("Size ✗ | Color ✓ | Shape ✗", "color"),
    ("[x] Color\n[ ] Size\n[ ] Shape", "color"),
    ("Color (yes), Size (no), Shape (no)", "color"),
    ("Color yes, size no", "color"),
    ("| Feature | Differs |\n|---|---|\n| Color | Yes |\n| Size | No |", "color"),
    ('{"color": "different", "size": "same"}', "color"),
    ("Final answer: Size\nLocation", "location, size"),
    ("The answer is: color\nsize", "color, size"),
    ("Answer: Color\nReason: the size is the same.", "color"),
    ("Answer: Color\n\nSize: same", "color"),
    ("**Answer:** Focus\nPattern\nShape", "focus, pattern, shape"),
    ("The features are: orientation, color, size\nAnswer: size", "size"),
    ("Color. I cannot determine the rest.", "color"),
    ("Shape and size, but I can't tell about the others.", "shape, size"),
    ("The object differs in color, though I am not sure about the size", "color"),
    ("The color differs; I'm unable to identify more.", "color"),
    ("I cannot determine whether size differs.", None),
    ("I'm unable to tell which color differs", None),
    ("I cannot be certain, but probably color", "color"),
    ("Without a doubt, color", "color"),
    ("The red one stands out because of its color", "color"),
    ("The color of the object is not the same as the color of the others", "color"),
    ("The special object is different in color and orientation from the rest.", "color, orientation"),
    ("While all objects share the same shape and size, one has a distinct color.", "color"),
    ("The distinguishing feature is color", "color"),
    ("It differs in pattern, as the others are not striped.", "pattern"),
    ("Unlike the others, its orientation is vertical", "orientation"),
    ("The bird's size and color are different, its shape is not.", "color, size"),
    ("Size does not, color does.", "color"),
    ("the color is different (not the shape or size)", "color"),
    ("Color, Size (shape and orientation do not differ)", "color, size"),
    ("They don't share the same color", "color"),
    ("Color changes. Shape doesn't change.", "color"),
    ("Orientation doesn't", ""),
    ("There isn't any size difference here. Pattern is what differs.", "pattern"),
    ("Shape, size and orientation are not different; focus is.", "focus"),
    ("The size wasn't changed, nor was the shape; the color was.", "color"),
    ("Color is relevant; size is not.", "color"),
    ("Only the color differs; neither its size nor its location does.", "color"),
    ("Size plays no role. Color differs.", "color"),
    ("size is not it, color is", "color"),
    ("It isn't the shape. It's the color.", "color"),
    ("Everything is identical apart from the orientation", "orientation"),
    ("The object doesn't differ in size or shape, it differs in focus.", "focus"),
    ("not shape, not size, not color - pattern", "pattern"),
    ("with the same size and shape, the pattern differs", "pattern"),
    ("The target lacks a pattern", "pattern"),
    ("It is the only one with no pattern", "pattern"),
    ("The flower is blurry and not in focus, unlike the rest", "focus"),
    ("One object is not in the same location as the row of others", "location"),
    ("The highlighted location contains an object with a different color", "color"),
    (
        "The object inside the bounding box at the specified location is different in pattern and shape",
        "pattern, shape",
    ),
    ("orientation: false, color: true, size: false", "color"),
    ('{"orientation": "No", "color": "Yes"}', "color"),
    ("Color: ✔️, Size: ✖️", "color"),
    ("{'color': True, 'size': False}", "color"),
    ("Answer: Orientation\nColor\n\nThe size is the same for all.", "color, orientation"),
    ("Pattern, but I cannot say more than that", "pattern"),
    ("Size differs. I can't determine whether the shape does.", "size"),
    ("color is the only feature that differs, the size and shape are consistent", "color"),
    ("The object's color is unique", "color"),
    ("All are the same shape and size. One is a different color.", "color"),
    ("There is a difference in color and size, with no difference in shape.", "color, size"),
    ("Both color and shape are different, while focus, size, and location are the same.", "color, shape"),
    ("The color, shape, and size are the same, so the difference is orientation", "orientation"),
    ("color; no change in shape or size", "color"),
    ("Differs in color (shape and size unchanged)", "color"),
    ("The special object does not differ in any way except for its size.", "size"),
    ("Neither the color nor the size differs, the orientation does.", "orientation"),
    ("The object differs in orientation; its color and size don't.", "orientation"),
    ("Color? No. Size? Yes.", "size"),
    ("Size is identical for all. Orientation isn't.", "orientation"),
    ("The shape has not changed. The color has.", "color"),
    ("The shape has changed, the pattern has not.", "shape"),
    ("There's no change in orientation or focus. The location is off.", "location"),
    ("All of them have the same shape; sizes vary.", "size"),
    ("None of the features except orientation differ.", "orientation"),
    ("All have the same color, but not the same size.", "size"),
    ("It's similar in size and shape, but its color is different.", "color"),
    ("Apart from its color, it is identical to the others.", "color"),
    ("The only difference is the orientation, everything else including size and color being equal.", "orientation"),
    ("The pattern is absent on one object", "pattern"),
    ("Without changing size, its orientation changed", "orientation"),
    ("A single item without focus", "focus"),
    ("orientation, not location", "orientation"),
    ("Color is what makes it different; shape is not.", "color"),
    ("Shape: not different\nSize: not different\nColor: different", "color"),
    ("Orientation: No difference\nColor: Red instead of blue\nSize: No difference", "color"),
    ('{"labels": {"color": 1, "pattern": 0, "shape": 1}}', "color, shape"),
    ("Color ✅ Size ❌ Shape ❌", "color"),
    ("- [ ] orientation\n- [x] focus", "focus"),
    ("Answer: pattern.\nColor", "color, pattern"),
    ("Answer - Color", "color"),
    ("Shape, however I cannot determine anything else", "shape"),
    ("I'm sorry, I can't determine the features.", None),
    ("At this location, the object differs in color", "color"),
    ("In the bounding box location, the item has a different size", "size"),
    ("The dog located at the given location differs in size and orientation", "orientation, size"),
    ("color differs significantly, size is roughly the same", "color"),
    ("The size and the shape aren't different, but the color is", "color"),
    ("The size and the shape aren't different. Color is the answer", "color"),
    ("It doesn't differ in size.", ""),
    ("No features differ.", ""),
    ("The color doesn't match", "color"),
    ("color mismatch", "color"),
    ("Size, since it is larger and its color is not different", "size"),
    ("Color, and not shape.", "color"),
    ("Its pattern isn't the same as others, its color is.", "pattern"),
]


@pytest.mark.parametrize(("response", "wanted"), NATURAL)
def test_denials_tables_and_echoes(response: str, wanted: str | None) -> None:
    assert score(Case("SalBench-O3", "multi-label", "Color"), response).reading.value == wanted


def test_the_published_parser_is_followed_with_its_faults() -> None:
    def said(response: str | None, vocabulary: tuple[str, ...] = P3) -> str | float | None:
        return labels.score_as_released(response, "color", vocabulary).extracted

    assert said("Color/Size") == "color"  # one label per part
    assert said("emphasize") == "size"
    assert said("dislocation", O3) == "location"
    assert said("not color") == "color"
    assert said("colour") == ""
    assert said("color and size") == "color, size"
    assert said("sandy color") == "color"
    assert said(None) is None


def test_labels_of_the_other_split_are_counted() -> None:
    scored = score(Case("SalBench-P3", "multi-label", "Size"), "size, focus, pattern")
    assert (scored.score, scored.measures["n_out_of_vocabulary"]) == (1.0, 2.0)


def test_sets_are_measured_as_defined() -> None:
    a, b, none = frozenset({"color", "size"}), frozenset({"color"}), frozenset[str]()
    assert labels.measure_labels(a, b) == {
        "precision": 0.5,
        "recall": 1.0,
        "f1": pytest.approx(2 / 3),
        "exact_match": 0.0,
    }
    assert set(labels.measure_labels(none, none).values()) == {1.0}
    assert set(labels.measure_labels(none, b).values()) == set(labels.measure_labels(b, none).values()) == {0.0}


def test_cases_take_lists_and_give_lists(tmp_path: Path, capsys: Capture) -> None:
    lines = [
        {"id": 1, "benchmark": "SalBench-P3", "question_type": "multi-label", "split": "synthetic",
         "response": "Size and Color", "ground_truth": ["Color"]},
        {"id": 2, "benchmark": "SalBench", "split": "natural", "question_type": "multi-label", "response": None,
         "ground_truth": "Focus"},
        {"id": 3, "benchmark": "SalBench-P3", "question_type": "multi-label", "response": "x", "ground_truth": "Focus"},
    ]  # fmt: skip
    (tmp_path / "cases.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert main(["compare", "--cases", str(tmp_path / "cases.jsonl"), "--json"]) == 1
    out = capsys.readouterr()
    first, second = map(json.loads, out.out.splitlines())
    measured = {"precision": 0.5, "recall": 1.0, "f1": 2 / 3, "exact_match": 0.0}
    assert first == {
        "id": 1,
        "sane": {"extracted": ["color", "size"], "outcome": "wrong", "score": measured},
        "official": {"extracted": ["color", "size"], "score": measured},
    }
    assert second["sane"]["extracted"] is None
    assert second["sane"]["outcome"] == "unreadable"
    assert set(second["official"]["score"].values()) == {0.0}
    assert "line 3" in out.err
    assert "orientation, color, size" in out.err
