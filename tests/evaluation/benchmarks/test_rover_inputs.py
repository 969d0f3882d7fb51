"""ROVER: what judges, users and files give that is not quite what was expected, and results that must not be lost."""

from __future__ import annotations

import asyncio
import io
import json
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest
from PIL import Image as PILImage

from tests.backends.server import Play, Seen, refusal, serving
from tests.evaluation.benchmarks.test_rover import GOOD, KEY, grading, png, sample, write_tasks
from vgbench_gen.backends.base import BackendError, Reply
from vgbench_gen.cli.main import main
from vgbench_gen.core.errors import ConfigError, DatasetError
from vgbench_gen.evaluation.base import benchmarks
from vgbench_gen.evaluation.benchmarks import rover
from vgbench_gen.evaluation.benchmarks.rover import EvaluationSample, ROVEREvaluator, Tasks
from vgbench_gen.evaluation.benchmarks.rover import judge as rover_judge
from vgbench_gen.evaluation.benchmarks.rover.judge_replies import read, read_as_released
from vgbench_gen.evaluation.benchmarks.rover.samples import is_empty, read_samples

Capture = pytest.CaptureFixture[str]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ('{"reasoning_visual_score": 3, "reasoning":"x"}{"reasoning_visual_score": 4', 4),
        ('{"reasoning_visual_score": 4, "reasoning": "x"} Wait, correction: {\'reasoning_visual_score\': 2}', 2),
        ("{'reasoning_visual_score': 2} then {\"reasoning_visual_score\": 4}", 4),
        ('{"reasoning_visual_score": 3, "reasoning": "not {\'reasoning_visual_score\': 5}"}', 3),
        ("{\"score\": 3} {'score': 4}", None),
        ("reasoning_visual_score: 4 - good", 4),
        ("reasoning_visual_score: 4 – strong match", 4),  # noqa: RUF001
        ("reasoning_visual_score: 4 — strong match", 4),
        ("reasoning_visual_score: 3 - 4", None),
        ("reasoning_visual_score: 3 – 4", None),  # noqa: RUF001
        ("reasoning_visual_score: 4.0 - 5.0", None),
        ("reasoning_visual_score (1-5): 4", 4),
        ("**Reasoning Visual Score (1 to 5):** 4", 4),
        ("reasoning_visual_score (out of 5): 4", 4),
        ("reasoning_visual_score (out of 10): 4", None),
        ("reasoning_visual_score (1-10): 4", None),
        ("reasoning_visual_score (1-5): 3-4", None),
        ("reasoning_visual_score (1-5)", None),
        ("reasoning_visual_score (4)", 4),
        ("reasoning_visual_score (1 - poor, 5 - perfect): 4", None),
        ("reasoning_visual_score (1 = poor, 5 = perfect): 4", None),
        ("reasoning_visual_score: - 3", None),
        ("reasoning_visual_score = – 3", None),  # noqa: RUF001
        ("reasoning_visual_score: -3", None),
        ("reasoning_visual_score - 3", 3),
        ("3-4/5", None),
    ],
)
def test_scores_of_replies_that_are_corrected_or_commented(text: str, wanted: int | None) -> None:
    assert read(text, KEY).score == wanted


def test_words_come_from_the_object_with_the_score() -> None:
    both = "{\"reasoning_visual_score\": 3, \"reasoning\": \"old\"} {'reasoning_visual_score': 2, 'reasoning': 'new'}"
    assert read(both, KEY).reasoning == "new"
    assert read("{'reasoning': 'a {x} b', 'reasoning_visual_score': 2}", KEY).score == 2


@pytest.mark.parametrize(
    "text",
    ["<think></think>", "<think>\n</think>\n", "<reasoning>N/A</reasoning>", "Thinking...", "◁think▷◁/think▷",
     "No reasoning output was provided.", "Reasoning: none", "not provided", "think_output: ", "…"],
)  # fmt: skip
def test_more_names_of_nothing(text: str) -> None:
    assert is_empty(text)


@pytest.mark.parametrize(
    "text",
    ["<think>The ice melts.</think>", "No reasoning error here: it falls.", "Thinking of gravity, it falls.",
     "2 + 2 = 4", "植物が育つ", "." * 50_000 + "x", "Output 5"],
)  # fmt: skip
def test_reasoning_is_no_placeholder(text: str) -> None:
    assert not is_empty(text)


# --- results are kept


def lines_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_replies_of_each_judge_repeat_and_words_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "o.jsonl"
    with serving(grading(**GOOD)) as server:
        samples = [sample(1), sample(2)]
        first, second = (f"vllm:{server.url}#{name}" for name in ("first", "second"))
        passes = ((first, 0), (second, 0), (first, 1))
        for judge, repeat in passes:
            ROVEREvaluator(judge=judge, repeat=repeat).evaluate_batch(samples, output_path=out)
        words = rover_judge.read_words()
        monkeypatch.setattr(rover_judge, "read_words", lambda: words.model_copy(update={"version": 99}))
        asked = server.requests
        ROVEREvaluator(judge=first).evaluate_batch(samples, output_path=out)
        assert server.requests > asked
        monkeypatch.undo()
        asked = server.requests
        for judge, repeat in passes:
            found = ROVEREvaluator(judge=judge, repeat=repeat).evaluate_batch(samples, output_path=out)
            assert lines_of(out) == found
        assert server.requests == asked
    assert len(list((tmp_path / "o.jsonl.replies").glob("*.jsonl"))) == 2


def test_judging_a_few_keeps_what_was_said_of_the_others(tmp_path: Path) -> None:
    out = tmp_path / "o.jsonl"
    stop = False

    def behave(seen: Seen) -> Play:
        if stop:
            return refusal(401)
        return grading(**GOOD)(seen)

    with serving(behave) as server:
        judge = ROVEREvaluator(judge=f"vllm:{server.url}#judge")
        samples = [sample(k, dimension="humanity", reasoning_type="causal") for k in range(3)]
        judge.evaluate_batch(samples[:2], output_path=out)
        stop = True
        with pytest.raises(BackendError):
            judge.evaluate_batch([sample(0, prompt="Another.")], output_path=out)
        assert [row["sample_id"] for row in lines_of(out)] == [one.sample_id for one in samples[:2]]
        stop = False
        asked = server.requests
        judge.evaluate_batch(samples, output_path=out)
        assert server.requests - asked == 3  # of the third sample alone
        assert [(row["dimension"], row["reasoning_type"]) for row in lines_of(out)] == [("culture", "causal")] * 3


def test_cases_with_numbers_that_json_cannot_hold(tmp_path: Path, capsys: Capture) -> None:
    odd = ["NaN", "Infinity", "-Infinity", "1e400", "1" + "0" * 400, '"\\ud800"', "[NaN]"]
    rows = [
        {"id": k, "benchmark": "ROVER", "question_type": "reasoning_visual", "response": f'{{"{KEY}": {value}}}'}
        for k, value in enumerate([*odd, "4"])
    ]
    (tmp_path / "cases.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert main(["compare", "--cases", str(tmp_path / "cases.jsonl"), "--json"]) == 0
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [row["sane"]["score"] for row in found] == [None] * 7 + [4]
    assert [row["official"] for row in found[:4]] == [{"extracted": None, "score": None}] * 4
    assert found[7]["official"] == {"extracted": 4, "score": 4}
    rows.append({"id": 9, "benchmark": "ROVER", "question_type": "reasoning_visual", "response": "3.5/5"})
    (tmp_path / "cases.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert main(["compare", "--cases", str(tmp_path / "cases.jsonl")]) == 0
    told = capsys.readouterr().out
    assert "9 cases scored" in told
    assert "mean score: sane 4.0000, official 4.5000" in told
    assert read_as_released('{"reasoning_visual_score": 1' + "0" * 400 + "}", KEY).score == 0


@pytest.mark.parametrize(
    ("raw", "wanted"),
    [
        ({"RP": 4, "RV": 2, "RA": 5}, (75, 25, 50)),
        ({"rp": "4", "rv_score": "2", "Reasoning_Alignment_Score": "5"}, (75, 25, 50)),
        ({"RA": 5}, (None, None, 100)),
        ({}, None),
        ({"process": 4, "visual": 2}, None),
        ({"RP": "four"}, None),
        ({"RP": "6"}, None),
        ({"RP": True}, None),
        ({"RP": 4.5}, None),
    ],
)
def test_raw_scores_under_their_short_names(
    tmp_path: Path, capsys: Capture, raw: dict[str, Any], wanted: tuple[int | None, ...] | None
) -> None:
    row = {"id": 1, "benchmark": "ROVER", "question_type": "alignment_cap", "response": json.dumps(raw),
           "think_output": "It melts."}  # fmt: skip
    (tmp_path / "cases.jsonl").write_text(json.dumps(row) + "\n")
    assert main(["compare", "--cases", str(tmp_path / "cases.jsonl"), "--json"]) == (wanted is None)
    out, err = capsys.readouterr()
    if wanted is None:
        assert "line 1: response: found" in err
    else:
        assert tuple(json.loads(out)["sane"]["score"].values()) == wanted


# --- what users give


@pytest.mark.parametrize("target", [5, ["a.png"], {"path": "a.png"}, False])
def test_a_target_image_that_is_no_text_is_named(tmp_path: Path, capsys: Capture, target: object) -> None:
    (tmp_path / "a.png").write_bytes(png(1))
    row = {"sample_id": "x", "original_image": "a.png", "generated_image": "a.png", "target_image": target}
    (tmp_path / "s.jsonl").write_text(json.dumps(row) + "\n")
    assert main(["eval", "--benchmark", "rover", "--samples", str(tmp_path / "s.jsonl")]) == 2
    err = capsys.readouterr().err
    assert "sample 1: found target_image" in err
    assert "Traceback" not in err


def test_lines_with_line_separators_inside_are_whole(tmp_path: Path) -> None:
    row = {
        "sample_id": "x",
        "original_image": "a",
        "generated_image": "b",
        "prompt": "one\u2028two",
        "target_image": "",
    }
    (tmp_path / "s.jsonl").write_text(json.dumps(row, ensure_ascii=False) + "\n", "utf-8")
    found = list(read_samples(tmp_path / "s.jsonl"))
    assert (found[0].prompt, found[0].target_image) == ("one\u2028two", None)


def test_fields_are_taken_as_users_have_them(tmp_path: Path) -> None:
    loose: Any = {"sample_id": 5, "keywords": ["growth", "light"], "target_description": None, "prompt": None,
                  "dimension": None, "reasoning_type": None, "think_output": None}  # fmt: skip
    one = EvaluationSample(original_image=png(1), generated_image=png(2), **loose)
    assert (one.sample_id, one.keywords, one.prompt, one.place) == ("5", "growth, light", "", ("", ""))
    nobody: Any = None
    table_cell: Any = float("nan")
    assert EvaluationSample("a", b"", b"", keywords=table_cell).keywords == ""
    with pytest.raises(ConfigError, match="sample_id"):
        EvaluationSample(nobody, b"", b"")
    with serving(grading(**GOOD)) as server:
        spec = f"vllm:{server.url}#judge"
        row: Any = loose | {"original_image": png(1), "generated_image": png(2), "note": "mine"}
        metrics: Any = "reasoning_visual, reasoning_alignment"
        found = rover.evaluate_batch([row], metrics, judge=spec)[0]
        assert (found["sample_id"], found["reasoning_visual_score"]) == ("5", 2)
        assert "reasoning_process_score" not in found
        with pytest.raises(ConfigError, match="generated_image"):
            rover.evaluate_batch([{"id": "x", "original_image": png(1)}], judge=spec)
        with pytest.raises(ConfigError, match="int"):
            rover.evaluate_batch([5], judge=spec)  # type: ignore[list-item]
        with pytest.raises(ConfigError, match="found two"):
            ROVEREvaluator("reasoning_visual,two", judge=spec)
        for folder in (tmp_path, tmp_path / "file" / "o.jsonl"):
            (tmp_path / "file").touch()
            with pytest.raises(DatasetError, match=str(folder)) as told:
                rover.evaluate_batch([one], judge=spec, output_path=folder)
            assert "\n" not in str(told.value)


def test_an_image_that_is_missing_costs_what_shows_it(tmp_path: Path) -> None:
    nothing: Any = None
    (tmp_path / "bad.png").write_bytes(b"no image")
    cases = [
        EvaluationSample("a", nothing, png(2), think_output="t"),
        EvaluationSample("b", png(1), nothing, prompt="one", think_output="t"),
        EvaluationSample("c", tmp_path / "bad.png", png(2), think_output="N/A"),
        EvaluationSample("d", png(1), png(2), target_image=tmp_path / "bad.png", think_output="t"),
        EvaluationSample("e", 5, png(2), target_image=nothing, think_output="t"),  # type: ignore[arg-type]
    ]
    out = tmp_path / "o.jsonl"
    with serving(grading(**GOOD)) as server:
        judge = ROVEREvaluator(judge=f"vllm:{server.url}#judge")
        found = judge.evaluate_batch(cases, output_path=out)
        asked = server.requests
        # b: the words; d: the words, and whether they agree with the image
        assert asked == 3
        assert judge.evaluate_batch(cases, output_path=out) == found
        assert server.requests == asked
    status = {row["sample_id"]: tuple(row[f"{name}_status"] for name in GOOD) for row in found}
    bad = "bad_sample"
    assert status == {
        "a": (bad, bad, bad),
        "b": ("ok", bad, bad),
        "c": ("no_reasoning_text", bad, bad),
        "d": ("ok", bad, "ok"),
        "e": (bad, bad, bad),
    }
    assert "original_image" in found[0]["reasoning_visual_reasoning"]
    assert "bad.png" in found[3]["reasoning_visual_reasoning"]
    assert found[2]["reasoning_process_score"] == 1


def test_judging_works_where_a_loop_runs() -> None:
    async def notebook(spec: str) -> list[dict[str, Any]]:
        return ROVEREvaluator(judge=spec).evaluate_batch([sample(1)])

    with serving(grading(**GOOD)) as server, warnings.catch_warnings():
        warnings.simplefilter("error")
        found = asyncio.run(notebook(f"vllm:{server.url}#judge"))
    assert found[0]["reasoning_visual_score"] == 2


# --- what models made


def test_words_are_kept_without_an_image_and_images_are_png(tmp_path: Path) -> None:
    source = benchmarks["rover"].open(write_tasks(tmp_path / "rover"))
    assert isinstance(source, Tasks)
    jpeg = io.BytesIO()
    PILImage.new("RGB", (8, 6), (9, 200, 9)).save(jpeg, "JPEG")
    made, item = tmp_path / "made", source.items[0]
    picture = made / "gen_common_sense_causal_0.png"

    def said(text: str, *images: bytes) -> Reply:
        return Reply(text, "stop", "m", "digest", images=images)

    assert source.keep(item, said("It falls.", jpeg.getvalue()), made) == ""
    assert picture.read_bytes().startswith(b"\x89PNG")
    with PILImage.open(picture) as image:
        assert image.size == (8, 6)
    assert source.keep(item, said("It falls.", png(3)), made) == ""
    assert picture.read_bytes() == png(3)
    assert source.keep(item, said("I'd rather not."), made).startswith("no_image")
    assert (made / "gen_common_sense_causal_0.txt").read_text() == "I'd rather not."
    assert not picture.exists()  # it answered something else
    assert source.keep(item, said("Here.", b"\xff\xd8\xffbroken"), made).startswith("no_image")
    assert not picture.exists()


def test_tasks_without_an_image_are_told(tmp_path: Path, capsys: Capture) -> None:
    folder, made = write_tasks(tmp_path / "rover"), tmp_path / "made"
    made.mkdir()
    (made / "gen_common_sense_causal_2.png").write_bytes(png(7))
    (made / "gen_common_sense_causal_2.txt").write_text("It falls.")
    with serving(grading(**GOOD)) as server:
        command = ["eval", str(folder), "--benchmark", "rover", "--generated", str(made), "--judge"]
        command += [f"vllm:{server.url}#judge", "--scores", str(tmp_path / "o.jsonl")]
        assert main(command) == 0
        assert "2 of 3 tasks have no image" in capsys.readouterr().out
        assert main([*command, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["tasks"], told["without_image"]) == (3, 2)


SIGN_IN = """
import logging
from vgbench_gen.backends.spec import open_backend
open_backend("trapi:d")
log = logging.getLogger("azure.identity._credentials.chained")
log.warning("ChainedTokenCredential failed to retrieve a token from the included credentials.\\nAttempted credentials:")
logging.basicConfig(format="asked for: %(message)s")
log.warning("this")
"""


def test_a_failed_sign_in_is_told_once() -> None:
    pytest.importorskip("azure.identity")
    done = subprocess.run([sys.executable, "-c", SIGN_IN], capture_output=True, text=True, check=True)
    assert done.stderr == "asked for: this\n"
