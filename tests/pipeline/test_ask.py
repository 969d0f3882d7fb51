"""Built rows asked of models and baselines: what is sent, what is kept, and what is asked again."""

from __future__ import annotations

import base64
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import vgbench_gen
from tests.backends.server import Play, Seen, refusal, reply, serving, serving_apart
from vgbench_gen.backends.spec import BackendOptions
from vgbench_gen.cli.main import main
from vgbench_gen.core.errors import ConfigError, UnknownNameError
from vgbench_gen.core.rng import digest_bytes
from vgbench_gen.core.types import Item
from vgbench_gen.evaluation.base import benchmarks
from vgbench_gen.evaluation.baselines import DECLINED
from vgbench_gen.evaluation.options import AskOptions
from vgbench_gen.evaluation.prompting import digest_question, rotate_options
from vgbench_gen.evaluation.questions import Questions
from vgbench_gen.evaluation.records import ReplyLine
from vgbench_gen.evaluation.replies import read_replies
from vgbench_gen.evaluation.runner import Run, evaluate, evaluate_all
from vgbench_gen.evaluation.scoring import make_case, score

Capture = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def built(reference: tuple[Path, dict[str, str]]) -> Path:
    return reference[0]


@pytest.fixture(scope="module")
def items(built: Path) -> dict[str, Item]:
    return {item.id: item for item in vgbench_gen.load(built)}


def lines(run: Run) -> list[ReplyLine]:
    return list(read_replies(run.path)[1].values())


def scores(run: Run, items: dict[str, Item]) -> list[float]:
    return [
        score(make_case(rotate_options(items[line.key.id], line.key.rotation)), line.response).score
        for line in lines(run)
    ]


def spec(url: str, model: str = "played") -> str:
    return f"vllm:{url}#{model}"


def ask(built: Path, model: str, tmp_path: Path, retries: int = 0, **options: Any) -> Run:
    backend = BackendOptions(retries=retries, concurrency=4)
    return evaluate(built, model, replies=tmp_path, backend=backend, **options)


def sent_images(seen: Seen) -> list[str]:
    """Names of the images of a request, in order: digests of what came over the wire."""
    parts = [
        part for message in seen.json["messages"] if isinstance(message["content"], list) for part in message["content"]
    ]
    urls = [part["image_url"]["url"] for part in parts if part["type"] == "image_url"]
    return [digest_bytes(base64.b64decode(url.partition(",")[2])) for url in urls]


def test_the_truth_scores_100_percent_under_every_rotation(built: Path, items: dict[str, Item], tmp_path: Path) -> None:
    run = vgbench_gen.evaluate(built, "baseline:truth", replies=tmp_path, circular=True)
    said = lines(run)
    expected = sum(max(1, len(item.options)) for item in items.values())
    assert (run.total, run.asked, run.complete, len(said)) == (expected, expected, True, expected)
    for line in said:
        found = score(make_case(rotate_options(items[line.key.id], line.key.rotation)), line.response)
        assert (found.outcome, found.score, found.official.score) == ("right", 1.0, 1.0)
        assert line.request_digest.startswith(digest_question(rotate_options(items[line.key.id], line.key.rotation)))


def test_a_rotation_moves_options_answer_and_images_together(items: dict[str, Item]) -> None:
    moved = 0
    for item in items.values():
        if item.question_type != "multi-choice":
            continue
        n, place = len(item.options), "ABCD".index(item.answer)
        shown = item.task in ("homography_to_image", "view_after_motion")
        answers, orders = set(), set()
        for rotation in range(n):
            turned = rotate_options(item, rotation)
            at = "ABCD".index(turned.answer)
            answers.add(at)
            if shown:
                assert turned.options == item.options
                assert (turned.images[0], turned.images[at + 1]) == (item.images[0], item.images[place + 1])
                orders.add(turned.images)
            else:
                assert turned.images == item.images
                assert turned.options[at] == item.options[place]
                orders.add(turned.options)
            assert sorted(turned.images) == sorted(item.images)
            assert sorted(turned.options) == sorted(item.options)
        assert answers == set(range(n))
        assert len(orders) == n
        moved += shown
        with pytest.raises(ConfigError, match="rotation"):
            rotate_options(item, n)
    assert moved > 2


def test_what_a_server_is_sent(built: Path, items: dict[str, Item], tmp_path: Path) -> None:
    with serving() as server:
        run = ask(built, spec(server.url), tmp_path)
        assert run.complete
    assert len(server.seen) == len(items) == run.asked
    for line in lines(run):
        item = items[line.key.id]
        [seen] = [one for one in server.seen if _is_of(one, item)]
        assert (seen.json["temperature"], seen.json["max_tokens"]) == (0, 512)
        assert [message["role"] for message in seen.json["messages"]] == ["user"]
        assert [f"{name}.jpg" for name in sent_images(seen)] == list(item.images) == [i["name"] for i in line.images]
        assert all(len(image["size_px"]) == 2 for image in line.images)
        start = "You will be provided" if item.question_type == "open-ended" else "****Answer concisely with a single"
        assert seen.text.startswith(start)
        for letter, option in zip("ABCD", item.options, strict=False):
            assert f"\n{letter}: {option}" in seen.text
        assert (line.response, line.usage["prompt_tokens"], line.finish_reason) == ("B", 100, "stop")
    assert r"****\scalar{scalar} \distance_unit{distance unit}****" in "".join(seen.text for seen in server.seen)


def _is_of(seen: Seen, item: Item) -> bool:
    told = all(text in seen.text for text in (item.question, item.context, *item.options))
    return told and [f"{name}.jpg" for name in sent_images(seen)] == list(item.images)


def test_the_final_line_set_numbers_the_images(built: Path, tmp_path: Path) -> None:
    with serving() as server:
        ask(built, spec(server.url, "some-reasoner"), tmp_path, prompt_set="final_line", tasks=("relative_pose",))
        seen = server.seen[0]
    assert seen.json["max_tokens"] == 2048
    system, user = seen.json["messages"]
    assert system["role"] == "system"
    kinds = [part.get("text", "image") for part in user["content"]]
    assert kinds[:4] == ["Image 1:", "image", "Image 2:", "image"]
    assert "Answer: " in kinds[4]


def test_only_what_is_missing_is_asked(built: Path, items: dict[str, Item], tmp_path: Path) -> None:
    broken = {item.id for item in items.values() if item.task in ("metric_depth", "relative_depth")}
    hard = [items[name].question for name in broken]

    def behave(seen: Seen) -> Play:
        return refusal(400) if any(text in seen.text for text in hard) else reply("A")

    with serving(behave) as server:
        first = ask(built, spec(server.url), tmp_path, limit=30)
        some = server.requests
        assert (first.total, first.asked, some) == (30, 30, 30)
        failed = {line.key.id for line in lines(first) if line.failed}
        assert 0 < len(failed) == first.failed["wrong_request"]
        assert failed <= broken
        server.behave = lambda seen: reply("B")
        second = ask(built, spec(server.url), tmp_path, limit=30)
        assert (second.kept, second.asked, server.requests - some) == (30 - len(failed), len(failed), len(failed))
        assert {line.key.id for line in lines(second) if line.response == "B"} == failed
        third = ask(built, spec(server.url), tmp_path)
        assert (third.kept, third.asked) == (30, len(items) - 30)  # a larger limit drops nothing
        done = server.requests
        assert ask(built, spec(server.url), tmp_path).complete
        assert server.requests == done
        # Another request is another reply; the control lives beside the question itself.
        other = ask(built, spec(server.url), tmp_path, limit=10, max_tokens=99)
        assert (other.kept, other.asked) == (0, 10)
        assert len(lines(other)) == 10  # at these settings; the others are not mixed in
        assert ask(built, spec(server.url), tmp_path, limit=10, blind=True).asked == 10
        assert not sent_images(server.seen[-1])
        done = server.requests
        assert ask(built, spec(server.url), tmp_path).kept == len(items)  # nothing is paid for twice
        assert server.requests == done
    assert len({line.key for line in lines(other)}) == len(items) + 10
    assert Counter(line.key.stage for line in lines(other)) == {"": len(items), "blind": 10}


def test_a_dataset_of_parquet_files_alone(built: Path, tmp_path: Path) -> None:
    alone = shutil.copytree(built / "items", tmp_path / "set")
    with serving() as server:
        whole = ask(built, spec(server.url), tmp_path / "a", limit=8)
        bare = evaluate(alone, spec(server.url), limit=8)
        bodies = [seen.body for seen in server.seen]
    assert sorted(bodies[:8]) == sorted(bodies[8:])
    assert bare.path.parent == alone / "replies"
    headers = [read_replies(run.path)[0] for run in (whole, bare)]
    assert headers[0] == headers[1]


def test_repeats_are_asked_apart(built: Path, tmp_path: Path) -> None:
    with serving() as server:
        run = ask(built, spec(server.url), tmp_path, limit=5, epochs=3)
    assert (run.asked, server.requests, len(server.asked)) == (15, 15, 5)
    assert Counter(line.key.epoch for line in lines(run)) == {0: 5, 1: 5, 2: 5}


def test_kill_and_resume(built: Path, items: dict[str, Item], tmp_path: Path, capsys: Capture) -> None:
    at_once = 4
    with serving_apart(delay_s=0.02) as server:
        command = [
            sys.executable, "-m", "vgbench_gen.cli", "eval", str(built), "--model", spec(server.url),
            "--replies", str(tmp_path), f"--concurrency={at_once}",
        ]  # fmt: skip
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
            end = time.monotonic() + 300
            while _stored(tmp_path) < 10 and time.monotonic() < end:
                time.sleep(0.005)
            os.kill(process.pid, signal.SIGKILL)
        kept = _stored(tmp_path)
        assert 10 <= kept < len(items)
        assert main(command[3:]) == 0
        told = capsys.readouterr().out
        counts = server.counts()
        assert ask(built, spec(server.url), tmp_path).complete
        assert server.counts() == counts  # all is there: nothing is asked
    assert f"{kept} answered before, {len(items) - kept} now" in told
    assert counts["different"] == len(items)
    # Only what was under way at the kill is asked twice; what was stored never is.
    assert counts["requests"] - len(items) <= at_once
    [path] = tmp_path.glob("*.jsonl")
    stored = [json.loads(line) for line in path.read_bytes().splitlines()]
    assert Counter(Counter(record["key"]["id"] for record in stored if "key" in record).values()) == {1: len(items)}


def _stored(folder: Path) -> int:
    """Whole lines after the header."""
    return max(0, sum(path.read_bytes().count(b"\n") for path in folder.glob("*.jsonl")) - 1)


def test_a_spent_budget_stops_and_a_larger_one_goes_on(built: Path, items: dict[str, Item], tmp_path: Path) -> None:
    with serving() as server:
        few = BackendOptions(budget_tokens=3_000, concurrency=2, retries=0)
        stopped = evaluate(built, spec(server.url), replies=tmp_path, backend=few)
        assert "budget" in stopped.stopped
        assert 0 < stopped.asked < len(items)
        assert not stopped.failed
        rest = ask(built, spec(server.url), tmp_path)
    assert (rest.kept, rest.complete, server.requests) == (stopped.asked, True, len(items))


def test_several_models_side_by_side(built: Path, items: dict[str, Item], tmp_path: Path) -> None:
    source = benchmarks["vgbench"].open(built)
    told: Counter[str] = Counter()
    with serving(lambda seen: Play(body=reply("C").body, delay_s=0.01)) as server:
        models = [spec(server.url, "one"), "baseline:constant", spec(server.url, "two")]
        runs = evaluate_all(
            source, models, AskOptions(limit=20), folder=tmp_path, progress=lambda r: told.update([r.spec])
        )
        assert server.most_under_way > 16  # of two models with 16 each
    assert [run.spec for run in runs] == models
    assert all(run.complete and len(lines(run)) == 20 for run in runs)
    assert min(told.values()) >= 20
    for wrong in ([], ["baseline:truth"] * 2):
        with pytest.raises(ConfigError, match="each once"):
            evaluate_all(source, wrong, folder=tmp_path)


def test_images_of_another_question(built: Path, items: dict[str, Item]) -> None:
    source = benchmarks["vgbench"].open(built)
    scenes = {name: item.scene_id for item in items.values() for name in item.images}

    def shown(**options: Any) -> dict[str, tuple[str, ...]]:
        questions = Questions(source, AskOptions(wrong_images=True, **options))
        settings = questions.options.settings("m")
        return {
            asked.key.id: tuple(i.name for i in asked.images)
            for _, asked in questions.walk(settings)
            if not asked.problem
        }

    first = shown()
    assert len(first) > len(items) / 2
    for name, pictures in first.items():
        assert {scenes[picture] for picture in pictures}.isdisjoint({items[name].scene_id})
        assert len(pictures) == len(items[name].images)
    assert shown(limit=9).items() <= first.items()  # whatever else is asked
    assert shown(seed=1) != first


def test_too_many_images_are_a_stated_failure(built: Path, items: dict[str, Item], tmp_path: Path) -> None:
    many = sum(len(item.images) > 2 for item in items.values())
    with serving() as server:
        run = ask(built, spec(server.url), tmp_path, max_images=2)
        assert (run.failed, server.requests) == ({"too_many_images": many}, len(items) - many)
        assert not run.complete
        again = ask(built, spec(server.url), tmp_path, first_image=True, max_images=2)
        assert again.complete
        assert len(lines(again)) == len(items)
        assert all(len(sent_images(seen)) == 1 for seen in server.seen[len(items) - many :])
    single = sum(len(item.images) == 1 for item in items.values())
    assert again.kept == single  # the others were asked with more


def test_baselines(built: Path, items: dict[str, Item], tmp_path: Path) -> None:
    def run(name: str, seed: int = 0, **options: Any) -> Run:
        return ask(built, f"baseline:{name}", tmp_path / f"{seed}", seed=seed, **options)

    drawn = run("random")
    mean = {
        name: sum(found) / len(found)
        for name in ("random", "constant", "blind")
        for found in [scores(run(name), items)]
    }
    assert 0.1 < mean["random"] < mean["constant"] < 1
    assert all(line.response for line in lines(run("blind")))
    assert [line.response for line in lines(drawn)] != [line.response for line in lines(run("random", seed=1))]
    constant: dict[tuple[str, str, str], set[str]] = {}
    for line in lines(run("constant", circular=True)):
        item = items[line.key.id]
        constant.setdefault((item.task, item.question_type, item.ask), set()).add(line.response or "")
    assert all(len(answers) == 1 for answers in constant.values())
    with pytest.raises(UnknownNameError, match="baseline:constant"):
        run("constants")


def test_solvers_see_and_follow_a_rotation(built: Path, items: dict[str, Item], tmp_path: Path) -> None:
    run = ask(built, "baseline:solvers", tmp_path, circular=True, tasks=["homography_to_matrix", "homography_to_image"])
    found = scores(run, items)
    assert len(found) == run.total > 10
    assert sum(found) / len(found) > 0.9
    nothing = ask(built, "baseline:solvers", tmp_path, tasks=["metric_depth"])
    declined = [line for line in lines(nothing) if items[line.key.id].task == "metric_depth"]
    assert {line.response for line in declined} == {DECLINED}
    # Not attempted is not unreadable.
    assert {score(make_case(items[line.key.id]), line.response or "").outcome for line in declined} == {"refused"}


def test_the_command(built: Path, items: dict[str, Item], tmp_path: Path, capsys: Capture) -> None:
    script = tmp_path / "script.jsonl"
    script.write_text('{"match": "region", "failure": "400"}\n{"reply": "B", "times": 0}\n')
    common = ["eval", str(built), "--model", f"scripted:{script}", "--replies", str(tmp_path / "r"), "--retries=0"]

    def told(*more: str, status: int = 0) -> str:
        assert main([*common, *more]) == status
        return capsys.readouterr().out

    name = next(item.id for item in items.values() if item.task == "view_after_motion")
    shown = told("--show", name, "--circular")
    assert shown.count("--- user") == 4
    first = next(line for line in shown.splitlines() if line.endswith("bytes]"))
    assert first.startswith(f"[{items[name].images[0]}: ")
    [one] = json.loads(told("--show", name[:8], "--json"))
    assert one["text"].endswith("D: image 5")
    [cost] = json.loads(told("--estimate", "--json"))
    assert (cost["requests"], cost["images"]) == (len(items), sum(len(item.images) for item in items.values()))
    assert cost["prompt_tokens"] > 100 * cost["images"]
    assert cost["most_completion"] == 512 * len(items)
    assert not (tmp_path / "r").exists()  # neither asks or writes
    assert "wrong_request" in told(status=1)
    [run] = json.loads(told("--json", "--tasks", "camera_parameters,relative_pose", "--types", "judgment"))
    assert run["complete"]
    assert run["kept"] + run["asked"] == run["total"] > 0
    assert main([*common, "--tasks", "metric_dept"]) == 2
    assert "expected some of" in capsys.readouterr().err
    assert main([*common, "--blind", "--wrong-images"]) == 2


def test_a_server_that_answers_nobody_is_left_alone(built: Path, tmp_path: Path, capsys: Capture) -> None:
    with serving(lambda seen: refusal(404)) as server:
        command = ["eval", str(built), "--model", spec(server.url), "--replies", str(tmp_path), "--retries=0"]
        assert main([*command, "--concurrency=3"]) == 1
        assert 6 <= server.requests < 9  # two rounds, and what was under way
    told = capsys.readouterr().out
    assert "the first wrong_request: " in told
    assert "the first 6 requests all failed alike (wrong_request)" in told
    assert "nothing was answered" in told
    assert "next:" not in told


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_keeps_what_is_under_way(built: Path, tmp_path: Path, sent: signal.Signals) -> None:
    with serving_apart(delay_s=1.0) as server:
        command = [
            sys.executable, "-m", "vgbench_gen.cli", "eval", str(built), "--model", spec(server.url),
            "--replies", str(tmp_path), "--concurrency=4",
        ]  # fmt: skip
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            end = time.monotonic() + 300
            while server.counts()["requests"] < 4 and time.monotonic() < end:
                time.sleep(0.02)
            process.send_signal(sent)
            out, err = process.communicate(timeout=300)
        assert process.returncode == 128 + sent
        assert server.counts()["requests"] == _stored(tmp_path) == 4
    assert f"replies so far are in {tmp_path}; the same command resumes" in err
    assert "interrupted" in out


def test_what_needs_no_key_and_no_money(
    built: Path, items: dict[str, Item], tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    command = ["eval", str(built), "--model", "openai:gpt-4o", "--model", "baseline:truth", "--estimate"]
    assert main(command) == 0
    asked, free = capsys.readouterr().out.splitlines()
    assert "USD" in asked
    assert free.startswith(f"baseline:truth: {len(items)} answers that cost nothing")
    [shard] = sorted((built / "items").glob("*.parquet"))[:1]
    assert benchmarks["vgbench"].open(shard).folder == benchmarks["vgbench"].open(built / "items").folder
