"""Both loops keep their limits, tell failures back, and give the same trace after every stop."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from tests.agent.cores import END, IMAGE, Core, ask, make_agent, plan, step
from vgbench_gen.agent.backend import read_agent_spec, read_trace
from vgbench_gen.agent.run import find_answer
from vgbench_gen.agent.tool import Tool, tools
from vgbench_gen.agent.words import load_words
from vgbench_gen.backends.base import BackendError, ImagePart, Message, Settings, TextPart
from vgbench_gen.backends.spec import open_backend
from vgbench_gen.core.errors import ConfigError
from vgbench_gen.core.rng import digest_bytes, format_canonical_json

pytestmark = pytest.mark.usefixtures("without_processes")
CROP: dict[str, Any] = {"image": "image-0", "bbox": [0, 0, 0.5, 0.5]}


def trace_of(reply: Any) -> Any:
    trace = read_trace(reply)
    assert trace is not None
    return trace


def test_react_shows_what_tools_make_and_ends_with_its_answer() -> None:
    core = Core([step("Crop", **CROP), step("SelfThinking", image="image-1", query="What is it?"), "A lamp.", END])
    reply = ask(make_agent("react", core))
    assert reply.text == "(B)"
    trace = trace_of(reply)
    assert [image["name"] for image in trace["images"]] == ["image-0", "image-1"]
    assert [each["step"] for each in trace["steps"]] == ["core", "tool", "core", "core", "tool", "core"]
    assert trace["failures"] == {}
    assert "A lamp." in core.prompts[-1]


def test_react_takes_the_first_action_and_says_how_many_it_left() -> None:
    calls = [{"name": "Calculate", "arguments": {"expression": "6*7"}}, {"name": "Crop", "arguments": CROP}]
    core = Core([json.dumps({"thought": "", "actions": calls}), END])
    trace = trace_of(ask(make_agent("react", core)))
    assert [each["name"] for each in trace["steps"] if each["step"] == "tool"] == ["Calculate"]
    assert trace["failures"] == {"too_many_actions": 1}
    assert "1 more were not" in core.prompts[-1]


@pytest.mark.parametrize(
    ("said", "failure"),
    [
        ("I would look closer.", "step_unreadable"),
        (step("Fly", to="the moon"), "unknown_tool"),
        (step("Crop", image="image-0"), "wrong_arguments"),
        (step("Crop", image="/etc/passwd", bbox=[0, 0, 1, 1]), "wrong_arguments"),
        (step("Crop", image="image-7", bbox=[0, 0, 1, 1]), "wrong_arguments"),
        (step("Terminate"), "wrong_arguments"),
        (step("Crop", image="image-0", bbox=[0.5, 0, 0.5, 1]), "tool_error"),
        (step("Calculate", expression="9**9**9"), "tool_error"),
    ],
)
def test_a_failure_costs_one_turn_and_is_told_back(said: str, failure: str) -> None:
    core = Core([said, END])
    reply = ask(make_agent("react", core))
    assert trace_of(reply)["failures"] == {failure: 1}
    assert reply.text == "(B)"
    told = core.prompts[-1].rpartition(said)[2]
    assert "expected" in told or "cannot compute" in told or "strict JSON" in told


def test_ten_turns_and_no_more() -> None:
    looping = Core(
        lambda text: "<answer>C</answer>" if "No calls are left" in text else step("Calculate", expression="1")
    )
    reply = ask(make_agent("react", looping))
    assert (len(looping.prompts), reply.text) == (11, "C")
    official = Core(lambda text: "<answer>D</answer>" if "CoT Steps" in text else step("Calculate", expression="1"))
    reply = ask(make_agent("react", official, mode="official"))
    assert (len(official.prompts), reply.text) == (11, "D")
    for found in (looping, official):
        assert sum('"result": 1' in prompt for prompt in found.prompts) == 10  # all but the first


def test_the_published_summariser_reads_all_turns_of_react() -> None:
    core = Core([step("Calculate", expression="6*7"), END, "<thinking>x</thinking><answer>42</answer>"])
    reply = ask(make_agent("react", core, mode="official"))
    assert reply.text == "42"
    assert trace_of(reply)["steps"][-1]["role"] == "summariser"
    assert all(part in core.prompts[-1] for part in ("I call Calculate", '{"result": 42}', "(B)", "Question: Which?"))
    assert len(core.prompts) == 3


@pytest.mark.parametrize("mode", ["sane", "official"])
def test_a_plan_is_carried_out_explained_and_summed_up(mode: str) -> None:
    core = Core([plan(("Calculate", {"expression": "6*7"}), ("Crop", CROP)), "It says 42.", "<answer>A</answer>"])
    reply = ask(make_agent("plan-execute", core, mode=mode))
    assert reply.text == "A"
    roles = [each.get("role") or each["name"] for each in trace_of(reply)["steps"]]
    assert roles == ["planner", "Calculate", "Crop", "executor", "summariser"]
    assert '{"result": 42}' in core.prompts[1]
    assert "It says 42." in core.prompts[2]


@pytest.mark.parametrize(
    "bad",
    ["no plan", plan(("Fly", {})), plan(("Crop", {"image": "image-0"})), plan(("Calculate", {"expression": "x"}))],
)
def test_three_attempts_and_then_the_direct_answer(bad: str) -> None:
    core = Core([bad, bad, bad, "<answer>D</answer>"])
    reply = ask(make_agent("plan-execute", core, mode="official"))
    assert reply.text == "D"
    assert "without external" in core.prompts[-1]
    assert trace_of(reply)["failures"]["attempts_spent"] == 1
    assert "This plan cannot be carried out" in core.prompts[1]


def test_one_failed_call_costs_the_whole_plan_only_as_published() -> None:
    half = plan(("Calculate", {"expression": "6*7"}), ("Crop", {"image": "image-0"}))
    sane = Core([half, "steps", "<answer>A</answer>"])
    assert ask(make_agent("plan-execute", sane)).text == "A"
    official = Core([half, half, half, "<answer>D</answer>"])
    assert ask(make_agent("plan-execute", official, mode="official")).text == "D"


def test_an_empty_plan_is_a_plan() -> None:
    core = Core(["```json\n[]\n```", "<answer>A</answer>"])
    assert ask(make_agent("plan-execute", core)).text == "A"


@pytest.mark.parametrize("tokens", [16, 1024, 9000, None])
def test_settings_are_the_published_ones_exactly(tokens: int | None) -> None:
    given = Settings(max_tokens=tokens, temperature=0.7)
    core = Core([END, "<answer>B</answer>"])
    ask(make_agent("react", core, mode="official"), settings=given)
    assert {(each.max_tokens, each.temperature) for each in core.settings} == {(2048, 0.0)}
    core = Core([END])
    ask(make_agent("react", core), settings=given)
    assert core.settings[0].max_tokens == (None if tokens is None else max(2048, tokens))
    assert core.settings[0].temperature == 0.7


def test_the_published_prompts_are_word_for_word() -> None:
    # Compared with section D.4 once; whoever changes one must do so again.
    words = load_words("official")
    found = {
        name: digest_bytes(getattr(words, name).encode())[:12]
        for name in ("planner", "executor", "summariser", "fallback", "react")
    }
    assert found == DIGESTS


DIGESTS = {
    "planner": "69c9af3c8cbd",
    "executor": "2f30b92def07",
    "summariser": "ad62ebc86634",
    "fallback": "91b41f5fa9dc",
    "react": "106e491509ea",
}


@pytest.mark.parametrize(
    ("source", "told"),
    [
        ("SpatialScore/cvbench", "Select the most appropriate answer"),
        ("SpatialScore/BLINK", "Select the most appropriate answer"),
        ("MMVP", "Select the most appropriate answer"),
        ("3DSRBench", "Select the most appropriate answer"),
        ("SpatialScore/VSI-Bench_8", "Answer with an exact number"),
        ("SpatialScore/VSR-ZeroShot", "Answer with an exact number"),
        ("VGBench", "Answer with an exact number"),
        ("", "Answer with an exact number"),
        ("SpatialScore/QSpatialBench-ScanNet", "STANDARD measurement units"),
        ("QSpatialBench-Plus", "STANDARD measurement units"),
    ],
)
def test_prompts_depend_on_the_source_as_published(source: str, told: str) -> None:
    words = load_words("official")
    for prompt in (words.summariser, words.fallback):
        filled = words.fill(prompt, source, steps="none")
        assert told in filled
        assert "{{ " not in filled


def test_what_fills_a_slot_holds_none() -> None:
    words = load_words("official")
    filled = words.fill(words.executor, plan="{{ results }}", results="{{ plan }} {{ toolbox }}", toolbox="SECRET")
    assert "Tool Plan: {{ results }}" in filled
    assert "{{ plan }} {{ toolbox }}" in filled
    assert "SECRET" not in filled
    assert '`{{"name": "LocalizeObjects", "arguments": {{{"image": "image-0"' in filled


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("<answer> (A) </answer>", "(A)"),
        ("<answer>A</answer> or rather <ANSWER>B</ANSWER>.", "B"),
        ("<thinking>x</thinking><answer>B", "B"),
        ("</answer> C", "</answer> C"),
        (" D ", "D"),
        ("<answer></answer>", ""),
    ],
)
def test_the_last_answer_between_tags_counts(text: str, answer: str) -> None:
    assert find_answer(text) == answer


def test_a_tool_that_makes_no_picture_costs_its_observation(monkeypatch: pytest.MonkeyPatch) -> None:
    core = Core(lambda text: step("Crop", **CROP) if text.count("OBSERVATION") < 70 else END)
    trace = trace_of(ask(make_agent("react", core, turns=100)))
    assert len(trace["images"]) == 64
    assert trace["failures"] == {"tool_error": 7}


def test_images_of_files_are_read_when_needed_and_one_that_goes_costs_its_question(tmp_path: Path) -> None:
    path = tmp_path / "a.jpg"

    def say(text: str) -> str:
        if "OBSERVATION" in text:
            path.unlink(missing_ok=True)
        return step("Crop", **CROP)

    for gone in (False, True):
        path.write_bytes(IMAGE)
        agent = make_agent("react", Core(say) if gone else Core([step("Crop", **CROP), END]))
        message = Message("user", (ImagePart(path), TextPart("Which?")))
        if gone:
            with pytest.raises(BackendError, match=r"a\.jpg"):
                asyncio.run(agent.ask([message], Settings()))
        else:
            assert asyncio.run(agent.ask([message], Settings())).text == "(B)"


@pytest.mark.parametrize("kind", ["react", "plan-execute"])
def test_stopped_anywhere_and_started_again_nothing_is_asked_twice(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[str] = []
    cut = Tool.run

    def run(self: Tool, given: Any) -> Any:
        stop_at(len(said) + len(made))
        made.append(str(given.arguments))
        return cut(self, given)

    monkeypatch.setattr(type(tools["Crop"]), "run", run)
    said: list[str] = []
    stops: list[int] = []

    def stop_at(done: int) -> None:
        if stops and stops[0] == done:
            stops.pop(0)
            raise KilledError

    other = {**CROP, "bbox": [0, 0, 1, 0.5]}
    lines = {
        "react": [
            step("Crop", **CROP),
            "what?",
            step("Crop", **other),
            step("SelfThinking", image="image-1", query="?"),
        ]
        + ["a cat", END],
        "plan-execute": ["what?", plan(("Crop", CROP), ("Crop", other)), "It shows.", "<answer>(B)</answer>"],
    }[kind]

    def say(text: str) -> str:
        stop_at(len(said) + len(made))
        said.append(text)
        return lines[len(said) - 1]

    def run_once(cache: Path) -> str:
        reply = ask(make_agent(kind, Core(say, cache), cache))
        return format_canonical_json(trace_of(reply))

    whole = run_once(tmp_path / "whole")
    calls = [*said], [*made]
    total = len(calls[0]) + len(calls[1])
    for first in range(total):
        said.clear()
        made.clear()
        stops[:] = [each for each in (first, first + 1)[: 1 + first % 2] if each < total]
        cache, found = tmp_path / f"stopped-{first}", ""
        while not found:
            try:
                found = run_once(cache)
            except (KilledError, BackendError):
                continue
        assert not stops
        assert found == whole
        assert ([*said], [*made]) == calls


class KilledError(BaseException):
    """As a signal that nobody handles."""


def test_a_misspelt_option_is_refused_and_that_of_an_address_is_left_alone() -> None:
    with pytest.raises(ConfigError, match="tool"):
        open_backend("agent:react+scripted:core.jsonl?tool=classical")
    told = read_agent_spec("agent:react+vllm:http://localhost/v1?key=1#model?turns=3")
    assert told is not None
    assert (told.core, told.turns) == ("vllm:http://localhost/v1?key=1#model", 3)
    plain = read_agent_spec("agent:react+vllm:http://localhost/v1?key=1#model")
    assert plain is not None
    assert (plain.core, plain.turns) == ("vllm:http://localhost/v1?key=1#model", 10)
