"""Prompts are the published ones, each source gets its own, and a question's words stay as they are."""

from __future__ import annotations

import pytest

from vgbench_gen.core.errors import UnknownNameError
from vgbench_gen.evaluation.prompting import AskOptions, _fill, prompt_set, rotations

LETTER = """\
****Please select the most appropriate answer from options (A), (B), (C), (D), (E), or (F).****
****Respond ONLY with the letter and its parentheses, for example: (A)****
Question: {{ question }}"""
SHORT = """\
****Answer concisely with a single word, number, or option (e.g., yes, no, 5, 2.2, A).****
Question: {{ question }}"""


@pytest.mark.parametrize(
    ("sources", "question_type", "start"),
    [
        (("CV-Bench", "MMIU", "BLINK", "3DSRBench", "MMVP", "cvbench", "SpatialScore/MMVP"), "multi-choice", LETTER),
        (("SpatialBench", "VSR", "SpatialSense", "RealWorldQA", "VSI-Bench_8"), "open-ended", SHORT),
        (("VGBench",), "judgment", SHORT),
        (("VGBench",), "multi-choice", SHORT),
        (("QSpatialBench", "VGBench"), "open-ended", "You will be provided with a question and a 2D image."),
    ],
)
def test_each_source_has_its_prompt(sources: tuple[str, ...], question_type: str, start: str) -> None:
    for source in sources:
        paper = prompt_set("paper").prompt(source, question_type)
        assert paper == start if "{{" in start else paper.startswith(start)
        assert prompt_set("released").prompt(source, question_type) == paper.replace("****", "**")


@pytest.mark.parametrize("name", ["paper", "released", "final_line"])
def test_every_prompt_holds_the_question_once(name: str) -> None:
    found = prompt_set(name)
    assert all(text.count("{{ question }}") == 1 and text.count("{{") == 1 for text in found.prompts.values())
    assert {used for types in found.sources.values() for used in types.values()} == set(found.prompts)
    with pytest.raises(UnknownNameError, match="final_line"):
        prompt_set("check")


def test_a_question_cannot_fill_slots() -> None:
    assert _fill("{{ question }}|{{ letter }}", question="{{ letter }}", letter="A") == "{{ letter }}|A"


@pytest.mark.parametrize(
    ("model", "tokens"),
    [("gpt-4o", 512), ("demo3", 512), ("o3", 2048), ("openai/o4-mini", 2048), ("Qwen3-VL-8B-Thinking", 2048),
     ("kimi-vl-a3b-thinking-2506", 2048), ("deepseek-r1", 2048), ("gpt-5-mini", 2048), ("llava-v1.6-vicuna", 512)],
)  # fmt: skip
def test_room_to_think(model: str, tokens: int) -> None:
    assert AskOptions().settings(model).max_tokens == tokens
    assert AskOptions(reasoning=False).settings(model).max_tokens == 512
    assert AskOptions(reasoning_effort="low").settings(model).max_tokens == 2048
    assert AskOptions(max_tokens=77).settings(model).max_tokens == 77


def test_only_choices_turn() -> None:
    assert list(rotations("multi-choice", 4, circular=True)) == [0, 1, 2, 3]
    assert list(rotations("multi-choice", 4, circular=False)) == list(rotations("judgment", 2, circular=True)) == [0]
