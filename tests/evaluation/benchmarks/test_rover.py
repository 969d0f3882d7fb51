"""ROVER: images made by a model, graded by a judge over HTTP; the rules that hold whatever the judge says."""

from __future__ import annotations

import base64
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from datasets import ClassLabel, Features, Image, Value
from PIL import Image as PILImage

from tests.backends.server import Play, Seen, refusal, reply, serving
from vgbench_gen.cli.main import main
from vgbench_gen.core.errors import ConfigError, DatasetError
from vgbench_gen.evaluation.base import benchmarks
from vgbench_gen.evaluation.benchmarks import rover
from vgbench_gen.evaluation.benchmarks.rover import EvaluationSample, ROVEREvaluator, Tasks, judge_replies
from vgbench_gen.evaluation.benchmarks.rover.judge import cap_alignment
from vgbench_gen.evaluation.benchmarks.rover.judge_replies import read
from vgbench_gen.evaluation.benchmarks.rover.samples import is_empty
from vgbench_gen.evaluation.benchmarks.rover.tables import measure_agreement

Capture = pytest.CaptureFixture[str]
KEY = "reasoning_visual_score"


def png(seed: int) -> bytes:
    rng = np.random.default_rng(seed)
    return bytes(cv2.imencode(".png", rng.integers(0, 255, (16, 24, 3)).astype(np.uint8))[1])


def sample(k: int, **more: Any) -> EvaluationSample:
    given: dict[str, Any] = {
        "prompt": "Show the plant after three months.",
        "think_output": "It grows, so it is taller.",
        "keywords": "growth",
        "target_description": "a taller plant",
    }
    return EvaluationSample(f"science_temporal_{k}", png(1), png(10 + k), **given | more)


def metric_of(seen: Seen) -> str:
    return next(name for name in (*rover.METRICS, *rover.EXTRAS) if f'"{name}_score"' in seen.text)


def grading(**scores: Any) -> Callable[[Seen], Play]:
    def behave(seen: Seen) -> Play:
        metric = metric_of(seen)
        return reply(json.dumps({f"{metric}_score": scores[metric], "reasoning": f"about {metric}"}))

    return behave


GOOD = {"reasoning_process": 4, "reasoning_visual": 2, "reasoning_alignment": 5}


def pictures(seen: Seen) -> list[bytes]:
    parts = seen.json["messages"][-1 if len(seen.json["messages"]) < 3 else 1]["content"]
    urls = [part["image_url"]["url"] for part in parts if part["type"] == "image_url"]
    return [base64.b64decode(url.partition(",")[2]) for url in urls]


# --- replies of judges

REPLIES: list[tuple[str, int | None]] = [
    ('{"reasoning_visual_score": 4, "reasoning": "ok"}', 4),
    ('```json\n{"reasoning_visual_score": 4, "reasoning": "ok"}\n```', 4),
    ('{{"reasoning_visual_score": 4, "reasoning": "ok"}}', 4),
    ("{'reasoning_visual_score': 4, 'reasoning': 'ok'}", 4),
    ('{"reasoning_visual_score": 4, "reasoning": "ok",}', 4),
    ('{"reasoning_visual_score": 4, "reasoning": "he said "no" to it"}', 4),
    ('{"reasoning_visual_score": 4, "reason', 4),
    ('{"reasoning_visual_score": 4', 4),
    ('[{"reasoning_visual_score": 2}]', 2),
    ('{"result": {"reasoning_visual_score": 2}}', 2),
    ('{"reasoning_visual_score": 3} no, {"reasoning_visual_score": 2}', 2),
    ('{"score": 3, "reasoning": "x"}', 3),
    ('{"score": 3} {"score": 4}', None),
    ("reasoning_visual_score: 3", 3),
    ("**Reasoning Visual Score:** 3", 3),
    ("reasoning visual score is 3", 3),
    ("Reasoning Visual Score = 5", 5),
    ("- reasoning_visual_score: **4**", 4),
    ("|reasoning_visual_score|4|", 4),
    ("4/5", 4),
    ("I give it 4 out of 5.", 4),
    ("The image deserves 4/5 because of its light.", 4),
    ("3.5/5", None),
    ("45/100", None),
    ("8/10", None),
    ("4/5 and 3/5", None),
    ('{"reasoning_visual_score": true}', None),
    ('{"reasoning_visual_score": "four"}', None),
    ('{"reasoning_visual_score": 4.5}', None),
    ('{"reasoning_visual_score": 4.0}', 4),
    ('{"reasoning_visual_score": "4"}', 4),
    ('{"reasoning_visual_score": "4.0"}', 4),
    ('{"reasoning_visual_score": "4/5"}', 4),
    ('{"reasoning_visual_score": "4/10"}', None),
    ('{"reasoning_visual_score": 0}', None),
    ('{"reasoning_visual_score": 6}', None),
    ('{"reasoning_visual_score": -1}', None),
    ('{"reasoning_visual_score": 10}', None),
    ('{"reasoning_visual_score": <1-5>, "reasoning": "..."}', None),
    ('{"reasoning_visual_score": 1-5}', None),
    ('{"reasoning_visual_score": [4]}', None),
    ('{"reasoning_visual_score": null}', None),
    ('{"reasoning_visual_score": {"value": 3}}', None),
    ('{"reasoning_visual_score": NaN}', None),
    ('{"reasoning_visual_score": 50%}', None),
    ('{"reasoning_visual_score": 4 out of 5}', 4),
    ('{"reasoning": "a {nested} brace", "reasoning_visual_score": 3}', 3),
    ('{\n  "reasoning_visual_score" : 2 ,\n "reasoning": "two\nlines"\n}', 2),
    ("", None),
    ("I cannot judge this.", None),
    ("Great image!", None),
    ("5", None),
    ("five out of five", None),
    ("4 stars", None),
    ("4 points", None),
    ("rating: 4", None),
    ("Score: 4", None),
    ('<think>{"reasoning_visual_score": 2}</think>{"reasoning_visual_score": 4}', 4),
    ('<think>{"reasoning_visual_score": 2}', None),
    ('{"reasoning_process_score": 2}', None),
    ("reasoning_visual_score: 3-4", None),
    ("reasoning_visual_score: 3.5", None),
    ("reasoning_visual_score: 3 out of 10", None),
    ("reasoning_visual_score: 7/10", None),
]


@pytest.mark.parametrize(("text", "wanted"), REPLIES)
def test_scores_of_replies(text: str, wanted: int | None) -> None:
    assert read(text, KEY).score == wanted


def test_words_of_a_judge_come_with_its_score() -> None:
    assert read('{"reasoning_visual_score": 4, "reasoning": "ok"}', KEY).reasoning == "ok"
    assert read("{'reasoning_visual_score': 4, 'reasoning': 'so so'}", KEY).reasoning == "so so"
    assert read("reasoning_visual_score: 4\nReasoning: it fits", KEY).reasoning == "it fits"


def test_the_published_parser_is_followed_with_its_faults() -> None:
    def said(text: str) -> Any:
        return judge_replies.read_as_released(text, KEY).extracted

    assert said('{"reasoning_visual_score": 4.9}') == 4
    assert said('{"reasoning_visual_score": true}') == 1
    assert said('x {"reasoning_visual_score": 10}') == 10
    assert said('{"reasoning_visual_score": "four"}') == "four"
    assert said("3.5/5") == 5
    assert said("45/100") is None
    assert said("4 stars") == 4
    assert said("{'reasoning_visual_score': 4}") is None
    assert said("") is None


# --- rules


@pytest.mark.parametrize("visual", range(1, 6))
@pytest.mark.parametrize("alignment", range(1, 6))
def test_alignment_is_at_most_one_above_visual(alignment: int, visual: int) -> None:
    value, lowered = cap_alignment(alignment, visual)
    assert value == min(alignment, visual + 1, 5)
    assert lowered == (value != alignment)
    assert cap_alignment(alignment, None) == (alignment, None)
    assert cap_alignment(None, visual) == (None, None)


@pytest.mark.parametrize(
    "text", ["", "  \n", "None", "N/A", "...", "no reasoning provided", "[think output]", "-", "TODO"]
)
def test_nothing_and_its_names_are_no_reasoning(text: str) -> None:
    assert is_empty(text)
    assert not is_empty("None of the leaves fall, so the tree stays green.")


def test_a_judge_sees_what_each_metric_needs() -> None:
    with serving(grading(**GOOD, visual_consistency=3, image_quality=5)) as server:
        judge = ROVEREvaluator([*rover.METRICS, *rover.EXTRAS], judge=f"vllm:{server.url}#judge")
        found = judge.evaluate_batch([sample(1, target_image=png(99))])[0]
        seen = {metric_of(one): one for one in server.seen}
    assert {name: found[f"{name}_score"] for name in GOOD} == GOOD | {"reasoning_alignment": 3}
    assert (found["raw_alignment"], found["cap_applied"]) == (5, True)
    assert found["reasoning_visual_reasoning"] == "about reasoning_visual"
    assert (found["dimension"], found["reasoning_type"]) == ("science", "temporal")
    assert found["reasoning_visual_judge"] == "played"
    assert pictures(seen["reasoning_process"]) == [png(1)]
    assert pictures(seen["reasoning_visual"]) == [png(1), png(11), png(99)]
    assert pictures(seen["reasoning_alignment"]) == [png(1), png(11)]
    assert pictures(seen["image_quality"]) == [png(11)]
    assert "It grows" in seen["reasoning_process"].text
    assert "It grows" not in seen["reasoning_visual"].text  # the image is graded by itself
    assert "a taller plant" in seen["reasoning_visual"].text
    assert "a taller plant" not in seen["reasoning_alignment"].text  # whether it is right does not matter there
    assert "{{" not in "".join(one.text for one in server.seen)
    assert server.seen[0].json["temperature"] == 0


def test_without_reasoning_the_process_scores_one_and_nobody_is_asked() -> None:
    with serving(grading(**GOOD | {"reasoning_visual": 5})) as server:
        found = ROVEREvaluator(judge=f"vllm:{server.url}#judge").evaluate(
            sample_id="logic_math_3", original_image=png(1), generated_image=png(2), prompt="Solve.", think_output="N/A"
        )
        assert [metric_of(seen) for seen in server.seen] == ["reasoning_visual", "reasoning_alignment"]
    assert (found["reasoning_process_score"], found["reasoning_process_status"]) == (1, "no_reasoning_text")
    assert (found["dimension"], found["reasoning_type"]) == ("logic", "mathematical")
    assert (found["reasoning_alignment_score"], found["cap_applied"]) == (5, False)


def test_a_judge_that_talks_prose_is_asked_again_and_then_the_score_is_missing() -> None:
    said = {"reasoning_visual": iter(["Nice!", '{"reasoning_visual_score": 3}'])}

    def behave(seen: Seen) -> Play:
        metric = metric_of(seen)
        return reply(next(said[metric]) if metric in said else "It is quite good.")

    with serving(behave) as server:
        judge = ROVEREvaluator(["reasoning_process", "reasoning_visual"], judge=f"vllm:{server.url}#judge")
        results = judge.evaluate_batch([sample(1)])
        assert server.requests == 3 + 2
        assert [message["role"] for message in server.seen[1].json["messages"]][-2:] == ["assistant", "user"]
    found = results[0]
    assert (found["reasoning_process_score"], found["reasoning_process_status"]) == (None, "judge_failed")
    assert found["reasoning_visual_score"] == 3
    average = judge.compute_average_scores(results)
    assert (average["avg_reasoning_process"], average["count_reasoning_process"]) == (None, 0)
    assert average["missing_reasoning_process"] == 1
    assert (average["avg_reasoning_visual"], average["average_100"]) == (3, 50)


def test_results_are_kept_metric_by_metric_and_asked_again_only_where_missing(tmp_path: Path) -> None:
    failing = True

    def behave(seen: Seen) -> Play:
        return refusal(400) if failing and metric_of(seen) == "reasoning_visual" else grading(**GOOD)(seen)

    out = tmp_path / "results.jsonl"
    with serving(behave) as server:
        judge = ROVEREvaluator(judge=f"vllm:{server.url}#judge")
        samples = [sample(k) for k in range(3)]
        first = judge.evaluate_batch(samples, output_path=out)
        assert [one["reasoning_visual_status"] for one in first] == ["api_error"] * 3
        assert [(one["reasoning_alignment_score"], one["cap_applied"]) for one in first] == [(5, None)] * 3
        asked, failing = server.requests, False
        second = judge.evaluate_batch(samples, output_path=out)
        assert server.requests - asked == 3  # the visual scores alone
        assert [(one["reasoning_alignment_score"], one["raw_alignment"]) for one in second] == [(3, 5)] * 3
        assert judge.evaluate_batch(samples, output_path=out) == second
        assert server.requests - asked == 3
        lines = [json.loads(line) for line in out.read_text().splitlines()]
        assert [line["sample_id"] for line in lines] == [one.sample_id for one in samples]
        # Another text is another sample, and so is another image.
        judge.evaluate_batch([sample(0, think_output="It shrinks."), *samples[1:]], output_path=out)
        assert server.requests - asked == 6
        (log,) = (tmp_path / "results.jsonl.replies").glob("*.jsonl")
        with log.open("ab") as file:
            file.write(b'{"torn')
        judge.evaluate_batch([sample(0, think_output="It shrinks."), *samples[1:]], output_path=out)
        assert server.requests - asked == 6
        with pytest.raises(ConfigError, match="twice"):
            judge.evaluate_batch([samples[0], samples[0]])
    out.write_text('{"what": 1}\n')
    with pytest.raises(DatasetError, match="sample_id"):
        judge.evaluate_batch(samples, output_path=out)


def test_a_sample_without_its_image_costs_that_sample(tmp_path: Path) -> None:
    with serving(grading(**GOOD)) as server:
        broken = EvaluationSample("science_causal_1", tmp_path / "none.png", png(2), prompt="x", think_output="y")
        judge = ROVEREvaluator(judge=f"vllm:{server.url}#judge")
        bad, good = judge.evaluate_batch([broken, sample(1)])
    assert {bad[f"{name}_status"] for name in GOOD} == {"bad_sample"}
    assert "none.png" in bad["reasoning_visual_reasoning"]
    assert good["reasoning_visual_score"] == 2


def test_pil_images_and_paths_are_sent(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(png(1))
    with serving(grading(**GOOD)) as server:
        image = PILImage.new("RGBA", (8, 6), (255, 0, 0, 255))
        one = EvaluationSample("x", str(tmp_path / "a.png"), image, prompt="p", think_output="t")
        found = rover.evaluate_single_sample(one, ["reasoning_visual"], judge=f"vllm:{server.url}#judge")
        sent = pictures(server.seen[0])
    assert found["reasoning_visual_score"] == 2
    assert sent[0] == png(1)
    assert cv2.imdecode(np.frombuffer(sent[1], np.uint8), cv2.IMREAD_COLOR).shape == (6, 8, 3)  # type: ignore[union-attr]


def test_a_killed_run_goes_on_and_asks_nothing_twice(tmp_path: Path) -> None:
    rows = []
    for k in range(40):
        (tmp_path / f"{k}.png").write_bytes(png(k))
        rows.append({"sample_id": f"culture_spatial_{k}", "original_image": "0.png", "generated_image": f"{k}.png",
                     "prompt": f"p{k}", "think_output": "t"})  # fmt: skip
    (tmp_path / "samples.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))

    def behave(seen: Seen) -> Play:
        return replace(reply(json.dumps({f"{metric_of(seen)}_score": 3})), delay_s=0.02)

    with serving(behave) as server:
        command = [
            "eval", "--benchmark", "rover", "--samples", str(tmp_path / "samples.jsonl"),
            "--judge", f"vllm:{server.url}#judge", "--scores", str(tmp_path / "out.jsonl"), "--concurrency", "4",
        ]  # fmt: skip
        environment = os.environ | {"OMP_NUM_THREADS": "1"}
        program = [sys.executable, "-m", "vgbench_gen.cli", *command]
        process = subprocess.Popen(program, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while server.requests < 30 and process.poll() is None:
            time.sleep(0.02)
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert main(command) == 0
        counts = server.counts()
    assert counts["different"] == 40 * 3
    assert counts["answered_again"] <= 4  # what was under way when it was killed
    assert len((tmp_path / "out.jsonl").read_text().splitlines()) == 40


def test_judges_are_compared(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "a.png").write_bytes(png(1))
    rows = [
        {"id": f"science_causal_{k}", "original_image": "a.png", "generated_image": "a.png", "prompt": str(k),
         "think_output": "t"}
        for k in range(4)
    ]  # fmt: skip
    (tmp_path / "s.json").write_text(json.dumps(rows))

    def behave(seen: Seen) -> Play:
        metric, second = metric_of(seen), seen.json["model"] == "second"
        number = next(k for k in range(4) if f"<<<{k}>>>" in seen.text)
        return reply(json.dumps({f"{metric}_score": number + 1 + (second and number == 0)}))

    with serving(behave) as server:
        command = [
            "eval",
            "--benchmark",
            "rover",
            "--samples",
            str(tmp_path / "s.json"),
            "--scores",
            str(tmp_path / "o.jsonl"),
            "--json",
        ]
        command += ["--metrics", "reasoning_visual", "--judge", f"vllm:{server.url}#first"]
        assert main([*command, "--judge", f"vllm:{server.url}#second"]) == 0
        told = json.loads(capsys.readouterr().out)
    agreed = told["agreement"]["reasoning_visual"]
    assert (agreed["n"], agreed["exact"], agreed["within_one"]) == (4, 0.75, 1.0)
    assert 0.8 < agreed["kappa"] < 1
    assert 0.8 < agreed["alpha"] < 1
    assert len(list(tmp_path.glob("o.vllm*.jsonl"))) == 2
    with pytest.raises(ConfigError, match="two"):
        measure_agreement({"one": []})


def test_averages_by_dimension_and_reasoning_type() -> None:
    rows = [
        {"sample_id": str(k), "dimension": "science" if k < 2 else "logic", "reasoning_type": "causal",
         "reasoning_process_score": k + 1, "reasoning_visual_score": None if k == 3 else 5}
        for k in range(4)
    ]  # fmt: skip
    found = ROVEREvaluator(["reasoning_process", "reasoning_visual"], judge="scripted:none").compute_average_scores(
        rows
    )
    assert (found["avg_reasoning_process"], found["avg_reasoning_process_100"]) == (2.5, 37.5)
    assert (found["count_reasoning_visual"], found["missing_reasoning_visual"]) == (3, 1)
    low, high = found["interval_reasoning_process"]
    assert 1 <= low < 2.5 < high <= 5
    assert found["by_dimension"]["science"]["reasoning_process"]["mean"] == 1.5
    assert found["average_100"] == pytest.approx(25 * ((1 + 2 + 3 + 4 + 5 * 3) / 7 - 1))  # all scores, not of means


# --- the benchmark's tasks


def write_tasks(folder: Path) -> Path:
    features = Features(
        {
            "id": Value("string"), "dimension": ClassLabel(names=["science", "culture", "common_sense", "logic"]),
            "reasoning_type": Value("string"), "prompt": Value("string"), "target_description": Value("string"),
            "keywords": Value("string"), "image": Image(), "target_image": Image(),
        }
    )  # fmt: skip
    rows = [
        {"id": f"common_sense_causal_{k}", "dimension": 2, "reasoning_type": "causal", "prompt": f"Tip it over, {k}.",
         "target_description": "it lies", "keywords": "gravity", "image": {"bytes": png(k), "path": None},
         "target_image": {"bytes": png(50 + k), "path": None} if k else None}
        for k in range(3)
    ]  # fmt: skip
    rows.append(rows[0] | {"id": "../../evil"})
    (folder / "ROVER-IG").mkdir(parents=True)
    table = pa.Table.from_pylist(rows, schema=features.arrow_schema)
    pq.write_table(table, folder / "ROVER-IG" / "train-00000-of-00001.parquet")
    return folder


def test_images_are_made_and_judged_end_to_end(tmp_path: Path, capsys: Capture) -> None:
    folder = write_tasks(tmp_path / "rover")
    source = benchmarks["rover"].open(folder)
    assert isinstance(source, Tasks)
    assert len(source.items) == 3
    assert "evil" in source.notes[0]
    changed = base64.b64encode(png(77)).decode()
    image = {"image_url": {"url": f"data:image/png;base64,{changed}"}}

    def behave(seen: Seen) -> Play:
        if seen.json["model"] == "judge":
            return grading(**GOOD)(seen)
        assert pictures(seen)[0] in (png(0), png(1), png(2))
        if "over, 1." in seen.text:
            return reply("I'd rather not.")
        message = {"role": "assistant", "content": "It falls, so it lies.", "images": [image]}
        return reply(choices=[{"message": message, "finish_reason": "stop"}])

    with serving(behave) as server:
        maker = f"vllm:{server.url}#maker"
        command = ["eval", str(folder), "--benchmark", "rover", "--model", maker, "--json"]
        assert main(command) == 1  # one reply holds no image
        run = json.loads(capsys.readouterr().out)[0]
        assert run["failed"] == {"no_image": 1}
        made = Path(run["path"]).with_suffix("")
        assert sorted(path.name for path in made.iterdir()) == [
            f"gen_common_sense_causal_{name}" for name in ("0.png", "0.txt", "1.txt", "2.png", "2.txt")
        ]
        assert (made / "gen_common_sense_causal_2.png").read_bytes() == png(77)
        asked = server.requests
        assert main(command) == 1
        assert server.requests == asked + 1  # the one without an image
        capsys.readouterr()
        # The command that asked, with a judge: it asks for the missing image once more and grades the others.
        assert main([*command[:-1], "--judge", f"vllm:{server.url}#judge"]) == 1
        told = capsys.readouterr().out
        visual = [
            seen for seen in server.seen if seen.json["model"] == "judge" and metric_of(seen) == "reasoning_visual"
        ]
        assert sorted(len(pictures(seen)) for seen in visual) == [2, 3]  # one task has a target image
    assert "reasoning_alignment: 3.00" in told
    assert "dimension common_sense" in told
    rows = [json.loads(line) for line in (made / "scores.jsonl").read_text().splitlines()]
    assert {row["reasoning_type"] for row in rows} == {"causal"}
    assert main(["eval", str(folder), "--model", maker, "--judge", "x:y"]) == 2  # no rubric
    assert main(["eval", str(folder), "--benchmark", "rover", "--judge", "x:y"]) == 2  # nothing to grade


def test_cases_of_a_judge(tmp_path: Path, capsys: Capture) -> None:
    scores = {f"{name}_score": value for name, value in GOOD.items()}
    lines = [
        {
            "id": 1,
            "benchmark": "ROVER",
            "question_type": "reasoning_visual",
            "response": '{"reasoning_visual_score": 3}',
        },
        {
            "id": 2,
            "benchmark": "ROVER",
            "question_type": "reasoning_process",
            "response": "3.5/5",
            "ground_truth": None,
        },
        {
            "id": 3,
            "benchmark": "ROVER",
            "question_type": "alignment_cap",
            "response": json.dumps(scores),
            "think_output": "t",
        },
        {
            "id": 4,
            "benchmark": "ROVER",
            "question_type": "alignment_cap",
            "response": json.dumps(GOOD),
            "think_output": " ",
        },
        {"id": 5, "benchmark": "ROVER", "question_type": "alignment_cap", "response": '{"reasoning_visual": 6}'},
        {"id": 6, "benchmark": "ROVER", "question_type": "other", "response": "5"},
    ]
    (tmp_path / "cases.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert main(["compare", "--cases", str(tmp_path / "cases.jsonl"), "--json"]) == 1
    out = capsys.readouterr()
    one, two, three, four = map(json.loads, out.out.splitlines())
    assert one["sane"] == {"extracted": 3, "outcome": "wrong", "score": 3}
    assert one["official"] == {"extracted": 3, "score": 3}
    assert two["sane"] == {"extracted": None, "outcome": "failed", "score": None}
    assert two["official"]["score"] == 5
    assert three["sane"]["score"] == {"reasoning_process": 75, "reasoning_visual": 25, "reasoning_alignment": 50}
    assert three["official"]["score"]["reasoning_alignment"] == 100
    assert four["sane"]["score"]["reasoning_process"] == 0
    assert "line 5" in out.err
    assert "line 6" in out.err
