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
from vgbench_gen.core.errors import DatasetError
from vgbench_gen.evaluation import label_tables
from vgbench_gen.evaluation.answers import labels
from vgbench_gen.evaluation.answers.labels import EMPTY, O3, P3, LabelReader
from vgbench_gen.evaluation.answers.places import read
from vgbench_gen.evaluation.base import benchmarks
from vgbench_gen.evaluation.benchmarks._foreign import Foreign
from vgbench_gen.evaluation.compare import load_board
from vgbench_gen.evaluation.scoring import Case, score

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


def opened(path: Path) -> Foreign:
    source = benchmarks["salbench"].open(path)
    assert isinstance(source, Foreign)
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
    true = np.array([[label in labels.as_set(labels.truth(t, P3)) for label in P3] for t in TRUTHS["P3"]])
    said = np.array([[False] * 3 if k == 2 else [label in ("color", "size") for label in P3] for k in range(6)])
    macro = f1_score(true, said, average="macro", zero_division=0)
    assert report[0]["Detection_SYN"] == f"{100 * macro:.1f}"
    assert (
        report[0]["Detection_SYN_sampleF1"] == f"{100 * f1_score(true, said, average='samples', zero_division=0):.1f}"
    )
    assert report[0]["Referring_NAT"] == ""
    assert report[1]["Referring_SYN"] == ""
    board = load_board({"sal": opened(folder)}).board
    run = next(run for run in board.runs.values() if not run.stage)
    mask = label_tables.task_mask(board, "synthetic", "detection")
    figures = {
        head: label_tables.cell(board, run, mask, "synthetic", figure).value
        for head, figure in label_tables.columns("synthetic")
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
    ("color without size", "color"),
    ("color (size is irrelevant)", "color"),
]


@pytest.mark.parametrize(("response", "wanted"), SANE)
def test_labels_of_replies(response: str, wanted: str | None) -> None:
    assert read(response, LabelReader(P3), True, EMPTY).value == wanted
    scored = score(Case("SalBench-P3", "multi-label", "Color"), response)
    assert scored.reading.value == wanted
    assert 0 <= scored.measures["f1"] <= 1


def test_the_published_parser_is_followed_with_its_faults() -> None:
    def said(response: str | None, vocabulary: tuple[str, ...] = P3) -> str | float | None:
        return labels.released(response, "color", vocabulary).extracted

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
    assert labels.measures(a, b) == {"precision": 0.5, "recall": 1.0, "f1": pytest.approx(2 / 3), "exact_match": 0.0}
    assert set(labels.measures(none, none).values()) == {1.0}
    assert set(labels.measures(none, b).values()) == set(labels.measures(b, none).values()) == {0.0}


def test_cases_take_lists_and_give_lists(tmp_path: Path, capsys: Capture) -> None:
    lines = [
        {"id": 1, "benchmark": "SalBench-P3", "question_type": "multi-label", "split": "synthetic",
         "response": "Size and Color", "ground_truth": ["Color"]},
        {"id": 2, "benchmark": "SalBench", "split": "natural", "question_type": "multi-label", "response": None,
         "ground_truth": "Focus"},
        {"id": 3, "benchmark": "SalBench-P3", "question_type": "multi-label", "response": "x", "ground_truth": "Focus"},
    ]  # fmt: skip
    (tmp_path / "cases.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert main(["score", "--cases", str(tmp_path / "cases.jsonl"), "--json"]) == 1
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
