"""MMSI-Bench from files in its true format, asked over HTTP in every order of the options, and in two stages."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from tests.backends.server import Play, Seen, refusal, reply, serving
from tests.evaluation.benchmarks import mmsi_files
from tests.evaluation.benchmarks.mmsi_files import KINDS, OPTIONS, Studio, drawing, png, question, row, write
from vgbench_gen.cli.main import main
from vgbench_gen.core.errors import ConfigError, DatasetError
from vgbench_gen.evaluation.answers.official_others import score_mmsi_bench
from vgbench_gen.evaluation.base import benchmarks
from vgbench_gen.evaluation.benchmarks import mmsi
from vgbench_gen.evaluation.benchmarks._parquet import ParquetSource
from vgbench_gen.evaluation.benchmarks.mmsi.questions import TYPES, split_options_off
from vgbench_gen.evaluation.options import AskOptions
from vgbench_gen.evaluation.prompting import add_images, find_prompt_set, make_asked
from vgbench_gen.evaluation.replies import read_replies
from vgbench_gen.evaluation.runner import evaluate
from vgbench_gen.evaluation.saved import score_source
from vgbench_gen.evaluation.scoring import make_case, score
from vgbench_gen.evaluation.visual_cot import combine_stages, find_leak, make_drawing_prompt, split_combined

Capture = pytest.CaptureFixture[str]
LAST = "answer with the option's letter from the given choices directly. Enclose the option's letter within ``."


def opened(path: Path) -> ParquetSource:
    source = benchmarks["mmsi"].open(path)
    assert isinstance(source, ParquetSource)
    return source


# --- rows


def test_rows_come_as_they_are_published(tmp_path: Path) -> None:
    source = opened(write(tmp_path, [row(k) for k in range(11)]))
    items = [source.item(one.row) for one in source.rows()]
    assert [item.task for item in items] == list(TYPES)
    assert [item.category for item in items] == KINDS
    assert (items[3].benchmark, items[3].question_type, items[3].answer) == ("MMSI-Bench", "multi-choice", "D")
    assert items[3].options == OPTIONS
    assert [source.image(items[9], n) for n in range(3)] == row(9)["images"]
    assert [source.again().image(items[0], n) for n in range(2)] == row(0)["images"]
    assert "never shown" not in json.dumps([item.evidence for item in items])
    assert source.notes == ("11 questions, 1000 published",)


def test_older_copies_spell_categories_with_a_hyphen(tmp_path: Path) -> None:
    rows = [row(k, question_type=row(k)["question_type"].replace("–", "-")) for k in range(11)]  # noqa: RUF001
    assert rows[0]["question_type"] == "Positional Relationship (Cam.-Cam.)"
    source = opened(write(tmp_path, rows))
    items = [source.item(one.row) for one in source.rows()]
    assert [item.task for item in items] == list(TYPES)
    assert [item.category for item in items] == KINDS


def test_rows_that_cannot_be_asked_are_left_out_and_named(tmp_path: Path) -> None:
    bad: list[dict[str, Any]] = [
        {"images": []}, {"images": None}, {"images": [b"junk"]}, {"answer": "E"}, {"answer": None}, {"question": " "},
        {"question_type": None},
    ]  # fmt: skip
    rows = [row(0), *(row(k, **one) for k, one in enumerate(bad, 1)), row(20, question="How so?", answer="c")]
    source = opened(write(tmp_path, rows))
    items = [source.item(one.row) for one in source.rows()]
    assert [(item.id, item.options, item.answer) for item in items] == [
        ("mmsi-0", OPTIONS, "A"),
        ("mmsi-20", (), "C"),  # asked, though in one order only
    ]
    assert [note.split(":")[0] for note in source.notes[2:]] == [
        f"MMSI_Bench.parquet, row {k}" for k in range(1, len(bad) + 1)
    ]
    assert "1 questions whose options cannot be told apart" in source.notes[1]
    write(tmp_path, [{"images": [png(1)], "question": "Q", "answer": "A"}])
    with pytest.raises(DatasetError, match="question_type"):
        opened(tmp_path)
    (tmp_path / "empty").mkdir()
    with pytest.raises(DatasetError, match="parquet"):
        opened(tmp_path / "empty")


def test_images_may_be_cells_of_the_hub(tmp_path: Path) -> None:
    rows = [row(1, images=[{"bytes": data, "path": None} for data in row(1)["images"]])]
    (tmp_path / "data").mkdir()
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "data/test-00000-of-00001.parquet")
    source = opened(tmp_path)
    assert source.image(source.item(0), 2) == row(1)["images"][2]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("Q?\nOptions: A: left, B: right, C: up, D: down", "left|right|up|down"),
        ("Q?\nOptions: A: left\nB: right\nC: up\nD: down\n", "left|right|up|down"),
        ("Q? options:A:left,B:right,C:up,D:down", "left|right|up|down"),
        ("Q? Options: A. x, B. 3.5 m, C. 2, 4 and 6, D. none", "x|3.5 m|2, 4 and 6|none"),
        ("Q? Options: (A) x (B) y (C) z (D) w", "x|y|z|w"),
        ("Q? Options: A: between A and B: 1 m, B: 2 m, C: 3 m, D: 4 m", "between A and B: 1 m|2 m|3 m|4 m"),
        ("Q? Options: A: left B: right, C: up", "left|right|up"),
        ("Q? Options: A: D: x, B: y", "D: x|y"),
        ("Is A: or B: the options: A: p; B: q", "p|q"),
        ("Q? Options: A: turn left, then right, B: go, on,C: no, D: yes", "turn left, then right|go, on|no|yes"),
        ("Q? Options\uff1aA\uff1a左\uff0cB\uff1a右", "左|右"),
        ("Q? A: 1, B: 2, C: 3", "1|2|3"),
        ("Q? Options: A: 30°, B: 45°, C: 60°, D: 90°.", "30°|45°|60°|90°."),
        ("Q? Options: A: , B: x", ""),
        ("Q? Options: A, B, C or D", ""),
        ("Q? Options: left, right", ""),
        ("Q? Options: B: x, C: y", ""),
        ("Q?", ""),
    ],
)  # fmt: skip
def test_options_are_found_in_the_question(text: str, wanted: str) -> None:
    options, at = split_options_off(text)
    assert "|".join(options) == wanted
    assert tuple(text[start:end] for start, end in at) == options


def test_an_answer_beyond_the_options_found_means_that_more_are_there(tmp_path: Path) -> None:
    source = opened(write(tmp_path, [row(3, question="Q? Options: A: x, B: y. C or D are the rest.")]))
    assert (source.item(0).options, source.item(0).answer) == ((), "D")


# --- words


def words(source: ParquetSource, k: int, name: str, drawn: bool = False) -> str:
    item = source.item(k)
    options = AskOptions(prompt_set=name, visual_cot="seed" if drawn else "")
    one = make_asked(item, options.settings("m"), options)
    return add_images(one, "visual-cot", [Path("x.png")]).text if drawn else one.text


def test_prompt_sets_say_what_was_published(tmp_path: Path) -> None:
    source = opened(write(tmp_path, [row(k) for k in range(11)]))
    place = {task: k for k, task in enumerate(TYPES)}
    k = place["attribute_appr"]
    asked_for = question(k)
    assert words(source, k, "mmsi_official") == f"{asked_for}\nAnswer{LAST.removeprefix('answer')}"
    assert words(source, k, "mmsi_seed") == (
        "Based on the visual content, please answer the following question about appearance attributes.\n\n"
        f"{asked_for}\n\nBased on your visual observation, {LAST}"
    )
    assert words(source, k, "mmsi_seed", drawn=True).startswith(
        "You are given the original image(s) and a visualization highlighting attributes.\nUse both to analyze "
    )
    assert words(source, k, "mmsi_lmms_unig2u", drawn=True) == (
        "You are given the original image(s) and a visualization highlighting appearance attributes. Use both to "
        f"analyze color, shape, texture, orientation, and object counts.\n\n{asked_for}\n\n"
        f"Based on your visual observation, {LAST}"
    )
    for name in ("mmsi_seed", "mmsi_official", "mmsi_lmms_unig2u"):
        for k in range(11):
            for drawn in (False, True):
                said = words(source, k, name, drawn)
                assert said.count(question(k)) == 1
                assert said.endswith((LAST, LAST.replace("answer", "Answer", 1)))
                assert drawn == ("visualization" in said)
    five = ("attribute_appr", "attribute_meas", "motion_obj", "motion_cam", "msr")
    assert len({words(source, place[task], "mmsi_seed").replace(str(place[task]), "") for task in five}) == 5


def test_drawing_is_asked_for_by_category(tmp_path: Path) -> None:
    source = opened(write(tmp_path, [row(k) for k in range(11)]))
    place = {task: k for k, task in enumerate(TYPES)}
    prompts = {task: make_drawing_prompt("seed", source.item(k), "m") for task, k in place.items()}
    assert prompts["attribute_appr"] == (
        "Create a visualization that highlights and labels the visual appearance attributes (color, shape, texture, "
        "orientation, count) in the scene. Use annotations, bounding boxes, and labels to make object features and "
        "counts clearly visible."
    )
    assert prompts["motion_cam"].endswith("camera movement type (pan, tilt, zoom, dolly), direction, and magnitude.")
    assert len(set(prompts.values())) == 6  # five, and one for the positions
    own = tmp_path / "own.toml"
    own.write_text('[sets.mine]\n"*" = "Draw."\nmsr = " "\n[models."openai:x"]\nmotion_obj = "Draw arrows."\n')
    item = source.item(place["motion_obj"])
    assert [make_drawing_prompt(str(own), item, model) for model in ("m", "openai:x")] == ["Draw.", "Draw arrows."]
    with pytest.raises(ConfigError, match="seed"):
        make_drawing_prompt("nothing", item, "m")


def test_both_stages_in_one_text() -> None:
    text = combine_stages("Draw\nlines.", "Which?\n[QUESTION] is a tag")
    assert text == "[GEN_PROMPT]Draw\nlines.[/GEN_PROMPT][QUESTION]Which?\n[QUESTION] is a tag[/QUESTION]"
    assert split_combined(text) == ("Draw\nlines.", "Which?\n[QUESTION] is a tag")
    assert split_combined("Which? Options: A: x") == (None, "Which? Options: A: x")
    assert split_combined("[GEN_PROMPT]x[/GEN_PROMPT] Which?")[0] is None
    assert split_combined(f"system\n{text}\n{text}")[0] == "Draw\nlines."


@pytest.mark.parametrize(
    ("prompt", "options", "leak"),
    [
        ("Highlight the lamp.", OPTIONS, "the lamp"),
        ("Highlight THE  LAMP!", OPTIONS, "the lamp"),
        ("Highlight the lamps.", OPTIONS, ""),
        ("Show what moves left.", ("Left", "Right"), "Left"),
        ("Mark (B).", OPTIONS, "B"),
        ("The answer is C", OPTIONS, "C"),
        ("Draw option A in red.", OPTIONS, "A"),
        ("Draw Option A in red.", OPTIONS, "A"),
        ("Mark A: and others", OPTIONS, "A"),
        ("A visualization of a 3D scene in D-Day colours. Artist's A view", OPTIONS, ""),
        ("Mark D", ("x", "y", "z"), ""),  # there is no D
        ("Mark D", (), "D"),  # options that could not be told apart
        ("Draw 2, 3 lines", ("3", "4"), "3"),
        ("画出左边", ("左", "右"), "左"),
    ],
)
def test_a_prompt_that_names_an_answer_is_seen(
    prompt: str, options: tuple[str, ...], leak: str, tmp_path: Path
) -> None:
    text = question(1, options) if options else "Which?"
    item = opened(write(tmp_path, [row(1, question=text, answer="A")])).item(0)
    assert item.options == options
    assert find_leak(prompt, item) == leak


# --- direct


def compared(folder: Path, capsys: Capture) -> dict[str, dict[str, float | None]]:
    """Table -> column -> figure of the only model."""
    capsys.readouterr()
    assert main(["compare", str(folder), "--benchmark", "mmsi", "--json"]) == 0
    tables = json.loads(capsys.readouterr().out)["tables"]
    return {
        table["key"]: {head: cell["value"] for head, cell in table["lines"][0]["cells"].items()} for table in tables
    }


def test_asked_in_every_order_scored_and_compared_over_http(tmp_path: Path, capsys: Capture) -> None:
    rows = [row(k) for k in range(11)] + [row(11, question="Which? Options: A, B, C, D.", answer="B")]
    folder = write(tmp_path / "mmsi", rows)

    def behave(seen: Seen) -> Play:
        # Knows all but the lamp, which it takes for the sofa where that stands before it.
        said = seen.text.partition("place ")[2].partition("?")[0]
        if not said:
            return reply("I cannot tell.")
        right = OPTIONS["ABCD".index(row(int(said))["answer"])]
        options = split_options_off(seen.text.partition("\nAnswer with")[0])[0]
        if right == "the lamp" and options.index("the sofa") < options.index("the lamp"):
            right = "the sofa"
        return reply(f"It is {right}: `{'ABCD'[options.index(right)]}`")

    with serving(behave) as server:
        command = ["eval", str(folder), "--benchmark", "mmsi", "--model", f"vllm:{server.url}#m", "--circular"]
        assert main(command) == 0
        assert server.requests == 11 * 4 + 1
        assert main(command) == 0
        assert server.requests == 11 * 4 + 1
        texts = {seen.text for seen in server.seen}
        for turn in ("ABCD", "BCDA", "CDAB", "DABC"):
            turned = [OPTIONS["ABCD".index(letter)] for letter in turn]
            assert f"{question(4, turned)}\nAnswer with" in "".join(texts)
        assert {seen.json["max_tokens"] for seen in server.seen} == {2048}
        assert {seen.json["temperature"] for seen in server.seen} == {0}
        appr = next(seen for seen in server.seen if f"{question(7)}\n" in seen.text)
        assert mmsi_files.pictures(appr) == row(7)["images"]
    assert main(["compare", str(folder), "--benchmark", "mmsi"]) == 0
    tables = compared(folder, capsys)
    cells = tables["mmsi"]
    assert list(cells) == [
        "Overall", "Cam.-Cam.", "Obj.-Obj.", "Reg.-Reg.", "Cam.-Obj.", "Obj.-Reg.", "Cam.-Reg.", "Meas.", "Appr.",
        "Motion Cam.", "Motion Obj.", "MSR", "Unreadable",
    ]  # fmt: skip
    assert list(cells.values()) == pytest.approx([11 / 12, 0.5] + [1.0] * 10 + [0.0])
    assert tables["summary"]["Circular"] == pytest.approx(8 / 11)  # three are about the lamp


def test_task_names_choose_category_and_stages(tmp_path: Path, capsys: Capture) -> None:
    folder = write(tmp_path / "mmsi", [row(k) for k in range(22)])
    studio = Studio(drawing)
    with serving(studio) as server:
        command = ["eval", str(folder), "--benchmark", "mmsi", "--model", f"vllm:{server.url}#m"]
        for task, kind in (("appr", "attribute_appr"), ("meas", "attribute_meas")):
            before = len(studio.asked)
            assert main([*command, "--tasks", f"mmsi_attribute_{task}"]) == 0
            k = list(TYPES).index(kind)
            assert {shown[0] for shown, _ in studio.asked[before:]} == {png(10 * k), png(10 * (k + 11))}
        assert not studio.drawn
        assert main([*command, "--tasks", "mmsi_msr_visual_cot", "--prompts", "seed"]) == 0
        assert len(studio.drawn) == 2
        assert main([*command, "--tasks", "mmsi_msr,mmsi_motion_cam_visual_cot"]) == 2
        assert "ask them apart" in capsys.readouterr().err


def test_truth_scores_full_and_any_other_letter_none(tmp_path: Path) -> None:
    source = opened(write(tmp_path, [row(k) for k in range(11)] + [row(11, question="Q?")]))
    for item in (source.item(one.row) for one in source.rows()):
        for letter in "ABCD":
            scored = score(make_case(item), f"``{letter}``")
            assert scored.score == scored.official.score == (letter == item.answer)
        assert score(make_case(item), "I cannot determine it.").outcome == "refused"


# --- two stages


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write(tmp_path / "mmsi", [row(k) for k in range(6, 11)])


def lines_of(folder: Path) -> list[Any]:
    (path,) = (folder / "replies").glob("*.jsonl")
    return list(read_replies(path)[1].values())


def intermediates(folder: Path) -> dict[str, dict[str, Any]]:
    return {path.stem: json.loads(path.read_text()) for path in (folder / "replies").glob("*/intermediate/*.json")}


def ask(url: str, folder: Path, *more: str) -> int:
    command = ["eval", str(folder), "--benchmark", "mmsi", "--model", f"vllm:{url}#m", "--retries", "0"]
    return main([*command, "--prompts", "seed", "--visual-cot", *more])


@pytest.mark.parametrize("way", ["endpoint", "chat"])
def test_two_stages_over_http(way: str, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    studio = Studio(drawing, lambda words: "It is ``C``")
    with serving(studio) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        monkeypatch.setenv("OPENAI_API_KEY", "sk-nothing")
        more = ["--image-model", "openai:gpt-image-1"] if way == "endpoint" else []
        assert ask(server.url, folder, *more) == 0
        assert {seen.path for seen in server.seen} == {"/v1/chat/completions"} | (
            {"/v1/images/edits"} if way == "endpoint" else set()
        )
        assert len(studio.drawn) == len(studio.asked) == 5
        source = opened(folder)
        items = {source.image_named(item.images[0]): item for item in source.items}
        for shown, words in studio.drawn:
            item = items[shown[0]]
            assert shown == [source.image_named(name) for name in item.images]  # all of them
            assert words == make_drawing_prompt("seed", item, "m")
        for shown, words in studio.asked:
            item = items[shown[0]]
            assert shown == [*(source.image_named(name) for name in item.images), drawing(shown[0])]
            assert words.startswith("You are given the original image(s) and a visualization highlighting")
            assert item.question in words
        assert ask(server.url, folder, *more) == 0
        assert server.requests == 10
    assert [saved.header.ignored for saved in score_source(opened(folder))] == [{}]
    stages = [line.key.stage for line in lines_of(folder)]
    assert sorted(stages) == ["visual-cot"] * 5 + ["visual-cot-image"] * 5
    assert {line.model for line in lines_of(folder) if line.key.stage == "visual-cot-image"} == {
        "gpt-image-1" if way == "endpoint" else "played"
    }
    kept = intermediates(folder)
    assert len(kept) == 5
    one = kept["mmsi-7"]
    assert (one["doc_id"], one["task"]) == ("mmsi-7", "mmsi_attribute_appr_visual_cot")
    assert one["generation_prompt"].startswith(
        "Create a visualization that highlights and labels the visual appearance"
    )
    assert one["question"].startswith("You are given")
    assert (one["stage1_text"], one["stage2_answer"]) == (None if way == "endpoint" else "Here it is.", "It is ``C``")
    place = next((folder / "replies").glob("*/intermediate/mmsi-7.json")).parent / one["generated_images"][0]
    assert place.read_bytes() == drawing(png(70))
    tables = compared(folder, capsys)
    assert tables["visual-cot"] == {"all": 0.4, "with the drawing": 0.4, "without": None, "drawn": 1.0}


def test_a_drawing_serves_all_orders_of_the_options(folder: Path) -> None:
    studio = Studio(drawing)
    with serving(studio) as server:
        assert ask(server.url, folder, "--circular") == 0
        assert len(studio.drawn) == 5
        assert len(studio.asked) == 20
        assert len({words for _, words in studio.asked}) == 20
        assert all(shown[-1] == drawing(shown[0]) for shown, _ in studio.asked)
        assert ask(server.url, folder, "--circular") == 0
        assert server.requests == 25
    assert len(intermediates(folder)) == 20
    (log,) = (folder / "replies").glob("*.jsonl")
    assert len(log.read_text().splitlines()) == 1 + 25  # the header; each drawing once, whoever waits for it


def test_what_cannot_be_drawn_is_asked_without_and_told_both_ways(folder: Path, capsys: Capture) -> None:
    failures = {
        png(60): refusal(400, "no people"),
        png(70): reply("I cannot draw that."),
        png(80): reply("", finish_reason="content_filter"),
    }
    failing = dict(failures)
    studio = Studio(lambda first: failing.get(first) or drawing(first), lambda words: "``C``")
    with serving(studio) as server:
        assert ask(server.url, folder) == 0
        assert "drawn first: 3" in capsys.readouterr().out
        bare = [(shown, words) for shown, words in studio.asked if shown[0] in failures]
        assert len(bare) == 3
        for shown, words in bare:
            assert shown == row([60, 70, 80].index(int(words.partition("place ")[2][0]) * 10) + 6)["images"]
            assert words.startswith("Based on the visual content")  # as without the first stage
        tables = compared(folder, capsys)
        # C is right for 6 and 10; 9 and 10 were drawn.
        both = {"all": 0.4, "with the drawing": 0.5, "without": 1 / 3, "drawn": 0.4}
        assert tables["visual-cot"] == pytest.approx(both)
        problems = {name: one["stage1_problem"] for name, one in intermediates(folder).items()}
        assert problems["mmsi-6"].startswith("wrong_request")
        assert problems["mmsi-7"].startswith("no_image")
        assert problems["mmsi-10"] is None
        # Drawings that failed are asked for again, and only where there is one now the question too.
        before = server.requests
        assert ask(server.url, folder) == 0
        assert server.requests - before == 3
        failing.clear()
        before = server.requests
        assert ask(server.url, folder) == 0
        assert server.requests - before == 6
        capsys.readouterr()
        assert {shown[-1] for shown, _ in studio.asked[-3:]} == {drawing(png(k)) for k in (60, 70, 80)}
        assert ask(server.url, folder) == 0
        assert server.requests - before == 6
    assert "drawn first" not in capsys.readouterr().out


def test_an_answer_that_fails_is_asked_again_without_a_new_drawing(folder: Path) -> None:
    said: list[str | Play] = [refusal(400), "``A``", "``B``", refusal(500), "``C``"]
    studio = Studio(drawing, lambda words: said.pop(0) if said else "``D``")
    with serving(studio) as server:
        assert ask(server.url, folder, "--concurrency", "1") == 1
        assert (len(studio.drawn), len(studio.asked)) == (5, 5)
        assert ask(server.url, folder) == 0
        assert (len(studio.drawn), len(studio.asked)) == (5, 7)
        # A drawing that is lost is made again.
        next((folder / "replies").glob("*/made/*.png")).unlink()
        assert ask(server.url, folder) == 0
        assert (len(studio.drawn), len(studio.asked)) == (6, 7)


def test_a_chat_that_brings_words_alone_is_asked_again(tmp_path: Path) -> None:
    folder = write(tmp_path / "one", [row(7)])
    made: list[bytes | Play] = [reply("Sure!"), drawing(png(70))]
    studio = Studio(lambda first: made.pop(0) if len(made) > 1 else made[0])
    with serving(studio) as server:
        assert ask(server.url, folder, "--retries", "1", "--cache", str(tmp_path / "cache.sqlite")) == 0
        assert [len(studio.drawn), len(studio.asked)] == [2, 1]
        assert studio.asked[0][0][-1] == drawing(png(70))
        made[:] = [reply("", finish_reason="content_filter")]
        other = write(tmp_path / "other", [row(8)])
        assert ask(server.url, other, "--retries", "5") == 0
        assert [len(studio.drawn), len(studio.asked)] == [3, 2]  # a refusal is not asked again
        made[:] = [reply("Sure!")]
        assert ask(server.url, write(tmp_path / "third", [row(9)]), "--retries", "5") == 0
        assert [len(studio.drawn), len(studio.asked)] == [6, 3]


def test_a_prompt_that_names_an_answer_is_not_sent(folder: Path, tmp_path: Path, capsys: Capture) -> None:
    own = tmp_path / "own.toml"
    own.write_text(
        '[sets.mine]\n"*" = "Create a visualization."\nmsr = "Create a visualization of the sofa."\n'
        'motion_obj = "Create a visualization; mark (B)."\n'
    )
    studio = Studio(drawing)
    with serving(studio) as server:
        assert ask(server.url, folder, "--generation-prompts", str(own)) == 0
        assert {words for _, words in studio.drawn} == {"Create a visualization."}
        assert (len(studio.drawn), len(studio.asked)) == (3, 5)
        assert "drawn first: 2" in capsys.readouterr().out
        assert ask(server.url, folder, "--generation-prompts", str(own)) == 0
        assert server.requests == 8
    assert intermediates(folder)["mmsi-10"]["stage1_problem"] == "leak: the generation prompt names 'the sofa'"


def test_what_two_stages_would_ask_is_shown(folder: Path, capsys: Capture) -> None:
    with serving(Studio(drawing)) as server:
        assert ask(server.url, folder, "--show", "mmsi-7", "--json") == 0
        (shown,) = json.loads(capsys.readouterr().out)
        prompt, text = split_combined(shown["text"])
        assert prompt is not None
        assert prompt.startswith("Create a visualization that highlights and labels the visual appearance")
        assert text.startswith("You are given the original image(s)")
        for asked_now, counts in ((False, (20, 0, 5)), (True, (0, 20, 0))):
            if asked_now:
                assert ask(server.url, folder, "--circular") == 0
            capsys.readouterr()
            assert ask(server.url, folder, "--circular", "--estimate", "--json") == 0
            (told,) = json.loads(capsys.readouterr().out)
            assert (told["requests"], told["kept"], told["drawings"]) == counts
        assert server.requests == 25


def test_a_drawing_counts_among_costs(folder: Path, tmp_path: Path, capsys: Capture) -> None:
    with serving(Studio(drawing)) as server:
        prices = tmp_path / "prices.toml"
        prices.write_text(
            '[[price]]\nprovider = "vllm"\nmodel = "m"\nprompt = 1.0\ncompletion = 10.0\nas_of = "2026"\nsource = "x"\n'
        )
        assert ask(server.url, folder, "--circular", "--prices", str(prices)) == 0
    cost = compared(folder, capsys)["replies"]["Cost, USD"]
    assert cost == pytest.approx((20 + 5) * (100 * 1.0 + 10 * 10.0) / 1e6)


KILLED = """
import sys
from vgbench_gen.cli.main import main
folder, model = sys.argv[1:]
sys.exit(main(["eval", folder, "--benchmark", "mmsi", "--model", model, "--visual-cot", "--concurrency", "3"]))
"""


def test_a_killed_run_goes_on_and_asks_nothing_stored_again(tmp_path: Path) -> None:
    folder = write(tmp_path / "mmsi", [row(k) for k in range(40)])
    studio = Studio(drawing, delay_s=0.02)
    with serving(studio) as server:
        command = [sys.executable, "-c", KILLED, str(folder), f"vllm:{server.url}#m"]
        process = subprocess.Popen(
            command, env=os.environ | {"OMP_NUM_THREADS": "1"}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        while server.requests < 35 and process.poll() is None:
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL
        stored = {(line.key.stage, line.key.id) for line in lines_of(folder)}
        assert {stage for stage, _ in stored} == {"visual-cot", "visual-cot-image"}
        assert 10 < len(stored) < 79
        drawn, answered = len(studio.drawn), len(studio.asked)
        spec = command[-1]
        assert main(["eval", str(folder), "--benchmark", "mmsi", "--model", spec, "--visual-cot"]) == 0
        name = {png(10 * k): f"mmsi-{k}" for k in range(40)}
        again = {("visual-cot-image", name[shown[0]]) for shown, _ in studio.drawn[drawn:]}
        again |= {("visual-cot", name[shown[0]]) for shown, _ in studio.asked[answered:]}
        assert not again & stored
        assert len(again) == 80 - len(stored)
    assert len(lines_of(folder)) == 80
    assert len(intermediates(folder)) == 40


def test_other_questions_can_be_drawn_for_too(tmp_path: Path, folder: Path) -> None:
    with pytest.raises(ConfigError, match="visual_cot"):
        evaluate(folder, "scripted:x", benchmark="mmsi", visual_cot="seed", blind=True)
    with pytest.raises(ConfigError, match="draws nothing"):
        evaluate(folder, "baseline:constant", benchmark="mmsi", visual_cot="seed")
    run = evaluate(folder, "baseline:truth", benchmark="mmsi", prompt_set="mmsi_seed")
    assert run.complete
    assert run.total == 5


# --- names of lmms-eval

DOC: dict[str, Any] = {"id": 5, "question": "  Which? Options: A: x, B: y ", "answer": "B", "question_type": "MSR"}


def test_functions_of_task_files() -> None:
    given = {"pre_prompt": "Look.\n\n", "post_prompt": "\n\nSay it."}
    asked_for = "Look.\n\nWhich? Options: A: x, B: y\n\nSay it."
    assert mmsi.msr_doc_to_text(DOC, given) == asked_for
    assert mmsi.msr_doc_to_text(DOC) == mmsi.msr_doc_to_text(DOC, {"pre_prompt": ""}) == DOC["question"].strip()
    assert mmsi.msr_doc_to_text_with_gen_prompt(DOC, given) == asked_for
    both = mmsi.msr_doc_to_text_with_gen_prompt(DOC, given | {"generation_prompt": "Draw."})
    assert both == f"[GEN_PROMPT]Draw.[/GEN_PROMPT][QUESTION]{asked_for}[/QUESTION]"
    assert split_combined(both) == ("Draw.", asked_for)
    image = Image.open(io.BytesIO(png(1))).convert("RGBA")
    shown = mmsi.msr_doc_to_visual({"images": [png(1), {"bytes": png(1), "path": None}, image]})
    assert {(one.mode, one.size) for one in shown} == {("RGB", (8, 6))}
    right, wrong, none = (mmsi.msr_process_results(DOC, [reply]) for reply in ("``B``", "A", "so"))
    assert right == {name: {"question_id": 5, "l2_category": "MSR", "score": 1.0} for name in ("MSR", "average")}
    assert wrong["average"]["score"] == none["average"]["score"] == 0
    assert "note" in none["average"]
    assert "note" not in wrong["average"]
    assert mmsi.msr_aggregate_results([right["MSR"], wrong["MSR"], none["MSR"]]) == pytest.approx(1 / 3)
    assert mmsi.msr_aggregate_results([]) == 0
    old = mmsi.msr_process_results(DOC | {"question_type": "Positional Relationship (Cam.-Obj.)"}, ["B"])
    assert set(old) == {KINDS[3], "Positional Relationship (Cam.-Obj.)", "average"}
    assert mmsi.msr_process_results(DOC, [None])["average"]["score"] == 0


# reply, as we read it, by the published reader; the right answer is B
REPLIES: list[tuple[str | None, str | None, str | None]] = [
    ("``B``", "B", "B"),
    ("`B`", "B", "B"),
    ("``  B ``", "B", "B"),
    ("B", "B", "B"),
    ("B.", "B", "B"),
    ("B)", "B", "B"),
    ("(B)", "B", "B"),
    ("[B]", "B", "B"),
    ("“B”", "B", "B"),
    ("**B**", "B", "B"),
    ("```\nB\n```", "B", "B"),
    ("```B```", "B", "B"),
    ("``B`` ``B``", "B", "B"),
    ("{B}", "B", "B"),
    (r"\boxed{B}", "B", "B"),
    ("<answer>B</answer>", "B", "B"),
    ('{"answer": "B"}', "B", "B"),
    ("The answer is ``B``.", "B", "B"),
    ("Final answer: `B`.", "B", "B"),
    ("Answer: B", "B", "B"),
    ("Answer - B", "B", "B"),
    ("Option B", "B", "B"),
    ("I choose B", "B", "B"),
    ("The correct option is B.", "B", "B"),
    ("The answer is option (B), the lamp.", "B", "B"),
    ("I think it's B!", "B", "B"),
    ("The camera moved. B", "B", "B"),
    ("`B: the lamp`", "B", "B"),
    ("B: the lamp", "B", "B"),
    ("`B` since the lamp stands there", "B", "B"),
    ("C is wrong, so `B`", "B", "B"),
    ("A lamp is there; the answer is B", "B", "B"),
    ("In view A the lamp is left. Answer B", "B", "B"),
    # Small letters, letters before a word, and those beside signs without a word's end.
    ("b", "B", None),
    ("`b`", "B", None),
    ("(b)", "B", None),
    ("\uff22", "B", None),
    ("B the lamp", "B", None),
    ("B because the lamp is there", "B", None),
    ("B\nThe lamp stands there.", "B", None),
    ("答案是B", "B", None),
    ("选B。", "B", None),
    # The first span or braces are not the answer.
    (r"The angle is $90^{\circ}$, so B.", "B", None),
    ("The `lamp` is red, so `B`", "B", None),
    ("`kettle` is behind, answer: B", "B", None),
    ("`A` is wrong. `B`", "B", "A"),
    ("Not A, but B.", "B", "A"),
    ("<think>`A` maybe</think>`B`", "B", "A"),
    ("Options: A: the kettle, B: the lamp. I pick B.", "B", "A"),
    # Words of an option.
    ("the lamp", "B", None),
    ("It is the lamp.", "B", None),
    ("A visualization shows the lamp.", "B", None),
    # No choice.
    ("A or B", None, "B"),
    ("`A` or `B`", None, "A"),
    ("``A, B``", None, "A"),
    ("A, B, C, D", None, "A"),
    ("Both A and B", None, "B"),
    ("Answer is B or maybe C", None, "C"),
    ("First ``A``, no: ``B``", None, "A"),
    ("the lamp or the sofa", None, None),
    ("<think>`A` maybe", None, "A"),
    # Nothing, refusals and what is no letter of these.
    ("I cannot determine the answer.", None, None),
    ("As an AI I can't help with that.", None, None),
    ("Neither", None, None),
    ("", None, None),
    ("   ", None, None),
    (None, None, None),
    ("nan", None, None),
    ("E", None, None),
    ("`E`", None, None),
    ("2", None, None),
    ("B_", None, None),
]


@pytest.mark.parametrize(("said", "sane", "official"), REPLIES)
def test_replies_in_both_modes(said: str | None, sane: str | None, official: str | None, tmp_path: Path) -> None:
    item = opened(write(tmp_path, [row(1)])).item(0)
    scored = score(make_case(item), said)
    assert (scored.reading.value, scored.official.extracted) == (sane, official)
    assert score_mmsi_bench(said, "B").score == (official == "B")


def test_prompt_sets_are_whole() -> None:
    for name in ("mmsi_seed", "mmsi_official", "mmsi_lmms_unig2u"):
        found = find_prompt_set(name)
        assert {used for kinds in found.sources.values() for used in kinds.values()} == set(found.prompts)
