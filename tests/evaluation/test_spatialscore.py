"""The published JSON as a benchmark: read word for word, broken and repeated rows told, images looked for first."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.importers.source_files import photo
from vgbench_gen.cli.main import main
from vgbench_gen.core.errors import DatasetError
from vgbench_gen.evaluation.base import NamesImages, benchmarks
from vgbench_gen.evaluation.benchmarks.spatialscore.questions import Published
from vgbench_gen.evaluation.board import make_entry
from vgbench_gen.evaluation.prompting import find_prompt_set, make_full_text
from vgbench_gen.evaluation.scoring import make_case, score

BOX = "Which is closer?\n(A) door\n(B) lamp\nThe coordinates of bounding boxes are: red: [1, 2]"


def row(index: int, source: str, answer: str = "Yes", form: str = "judgment", **changes: Any) -> dict[str, Any]:
    return {
        "index": index,
        "category": "Others",
        "subcategory": "Miscellaneous",
        "question_type": form,
        "input_modality": "single-image",
        "question": "Is it so? Answer with Yes or No.",
        "answer": answer,
        "img_paths": [f"./dataset/photos/{index}.jpg"],
        "source": source,
        "index_origin": index,
        "category_origin": "unknown",
        **changes,
    }


def rows() -> list[dict[str, Any]]:
    frames = [f"./dataset/VSI-Bench/8_frames/scannet/scene0011_00/frame_0{k}.jpg" for k in range(8)]
    video: dict[str, Any] = {"input_modality": "video", "img_paths": frames}
    twin: dict[str, Any] = {"question": "Which?\n(A) x\n(B) y", "img_paths": ["./dataset/photos/shared.jpg"],
                            "category_origin": "height_higher"}  # fmt: skip
    return [
        row(0, "cvbench", "(B)", "multi-choice", question=BOX, category_origin="Depth"),
        row(1, "VSI-Bench_8", "3.4", "open-ended", question="How many metres?", category_origin="object_abs_distance")
        | video,
        row(2, "3DSRBench", "B", "multi-choice", index_origin="NF7XUVPP") | twin,
        row(3, "3DSRBench", "B", "multi-choice", index_origin="NF7XUVPP-flip") | twin,
        row(4, "3DSRBench", "A", "multi-choice", index_origin="2Q0M0IF1") | twin,
        row(5, "VGBench", "1.51 meters", "open-ended", question="How deep is it?", category_origin="metric_depth_vqa"),
        row(6, "RealWorldQA", "Downhill", "open-ended", question="Which way?"),
        row(7, "VSR-ZeroShot", "maybe"),
        row(8, "cvbench", "(C)", "multi-choice", question=BOX),
        row(9, "MMVP", "Yes", img_paths=["../../secret.jpg"]),
    ]


def file_of(folder: Path, found: object) -> Path:
    (folder / "dataset").mkdir(parents=True)
    path = folder / "dataset" / "SpatialScore.json"
    path.write_text(json.dumps(found))
    return path


def with_images(folder: Path) -> None:
    for one in rows()[:7]:
        for name in one["img_paths"]:
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(photo(name))


def test_rows_become_questions_and_what_is_wrong_is_told(tmp_path: Path) -> None:
    source = benchmarks["spatialscore"].open(file_of(tmp_path, rows()))
    items = [source.item(one.row) for one in source.rows()]
    assert [item.id for item in items] == [f"SpatialScore-{k}" for k in range(7)]
    assert isinstance(source, Published)
    notes = "\n".join(source.notes)
    assert "10 rows, 7 of them questions" in notes
    assert "3 rows cannot be asked (answer 2, img_paths 1)" in notes
    assert "1 questions repeat an earlier one" in notes
    assert "SpatialScore-2 = SpatialScore-3" in notes
    assert "1 questions have contradicting answers: SpatialScore-2 and SpatialScore-3 and SpatialScore-4" in notes
    # Copies are one truth, so a limit draws them together and scores can count them once.
    assert items[2].group_id == items[3].group_id
    assert (items[1].source, items[1].scene_id) == ("scannet", "scene0011_00")
    assert make_entry(items[3]).origin_id == "NF7XUVPP-flip"


def test_questions_are_asked_word_for_word_and_every_truth_scores(tmp_path: Path) -> None:
    source = benchmarks["spatialscore"].open(file_of(tmp_path, rows()))
    words = find_prompt_set("paper")
    for one, published in zip(source.rows(), rows(), strict=False):
        item = source.item(one.row)
        assert make_full_text(item, words) == published["question"]
        scored = score(make_case(item), published["answer"])
        assert (scored.score, scored.official.score) == (1, 1)
    # Its own rule for numbers of VSI-Bench: from half to twice, inclusive; official is the script's MRA.
    number = score(make_case(source.item(1)), "6.8")
    assert (number.score, number.official.score) == (1, 0)


def test_missing_images_are_listed_before_anything_is_asked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = file_of(tmp_path, rows())
    script = tmp_path / "script.jsonl"
    script.write_text('{"match": "i", "reply": "Yes"}\n')
    asked = ["eval", "--benchmark", "spatialscore", "--data", str(path), "--model", f"scripted:{script}"]
    with_images(tmp_path)
    (tmp_path / "dataset/photos/shared.jpg").unlink()
    assert main(asked) == 2
    error = capsys.readouterr().err
    assert "1 images missing (dataset/photos/shared.jpg)" in error
    assert "7 of them questions" in error
    listed = path.with_name("SpatialScore.vgbench") / "missing_images.txt"
    assert listed.read_text() == "dataset/photos/shared.jpg\n"
    assert not (path.with_name("SpatialScore.vgbench") / "replies").exists()
    source = benchmarks["spatialscore"].open(path)
    assert isinstance(source, NamesImages)
    broken = next(row.id for row in source.rows() if source.missing_images([row]))
    for looking in (["--estimate"], ["--show", broken]):  # these say it as well, of what they look at
        assert main([*asked, *looking]) == 2
        assert "images missing" in capsys.readouterr().err
    # What is there can be asked, and so can text alone; baselines look at no image.
    assert main([*asked, "--types", "open-ended"]) == 0
    assert main([*asked, "--blind"]) == 0
    assert main([*asked[:-1], "baseline:truth"]) == 0


def test_ask_score_and_compare_on_the_published_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = file_of(tmp_path / "repository", rows())
    with_images(tmp_path / "images")
    script = tmp_path / "script.jsonl"
    script.write_text('{"match": "Answer concisely", "reply": "3.4"}\n{"match": "Please select", "reply": "(B)"}\n'
                      '{"match": "scalar", "reply": "\\\\scalar{1.6} \\\\distance_unit{meters}"}\n')  # fmt: skip
    for images in (tmp_path / "images", tmp_path / "images" / "dataset"):
        asked = ["eval", "--data", str(path), "--images", str(images), "--model", f"scripted:{script}", "--model",
                 "baseline:constant", "--benchmark", "spatialscore", "--json"]  # fmt: skip
        assert main(asked) == 0
        assert {run["total"] for run in json.loads(capsys.readouterr().out)} == {7}
    assert main(["compare", str(path), "--benchmark", "spatialscore", "--json"]) == 0
    text = capsys.readouterr().out
    scored = {one["spec"]: one for one in json.loads(text)["models"]}
    # Right: the lamp, 3.4 m, two of the three that contradict each other, 1.6 m for 1.51 m.
    assert scored[f"scripted:{script}"]["sane"] == pytest.approx(5 / 7)
    for title in ("VGBench (layout of Table 1)", "SpatialScore categories", "3DSRBench", "VSI-Bench", "CV-Bench"):
        assert title in text


@pytest.mark.parametrize(
    ("content", "message"),
    [("{}", "a JSON dict"), ("[", "no JSON"), ("[]", "no row"), ('[{"question": 5}]', "no question that can be asked")],
)
def test_a_file_without_questions_is_refused(content: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "rows.json"
    path.write_text(content)
    with pytest.raises(DatasetError, match=message):
        benchmarks["spatialscore"].open(path)
