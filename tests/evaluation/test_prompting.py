"""Prompts are the published ones, each source gets its own, and a question's words stay as they are."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.store.examples import make_item
from vgbench_gen.core.errors import UnknownNameError
from vgbench_gen.core.spread import choose_evenly
from vgbench_gen.core.types import Item
from vgbench_gen.evaluation.base import QuestionRow
from vgbench_gen.evaluation.options import VISUAL_COT, AskOptions
from vgbench_gen.evaluation.prompting import _fill, add_images, find_prompt_set, list_rotations, make_asked
from vgbench_gen.evaluation.questions import Questions

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
        (
            ("QSpatialBench", "VGBench", "QSpatialBench-Plus", "SpatialScore/QSpatialBench-ScanNet"),
            "open-ended",
            "You will be provided with a question and a 2D image.",
        ),
    ],
)
def test_each_source_has_its_prompt(sources: tuple[str, ...], question_type: str, start: str) -> None:
    for source in sources:
        paper = find_prompt_set("paper").prompt(source, question_type)
        assert paper == start if "{{" in start else paper.startswith(start)
        assert find_prompt_set("released").prompt(source, question_type) == paper.replace("****", "**")


@pytest.mark.parametrize("name", ["paper", "released", "final_line"])
def test_every_prompt_holds_the_question_once(name: str) -> None:
    found = find_prompt_set(name)
    assert all(text.count("{{ question }}") == 1 and text.count("{{") == 1 for text in found.prompts.values())
    assert {used for types in found.sources.values() for used in types.values()} == set(found.prompts)
    with pytest.raises(UnknownNameError, match="final_line"):
        find_prompt_set("check")


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


@pytest.mark.parametrize(
    ("total", "wanted", "places"),
    [(8, 8, [*range(8)]), (15, 8, [0, 2, 4, 6, 8, 10, 12, 14]), (100, 8, [0, 14, 28, 42, 56, 70, 84, 99]),
     (9, 8, [0, 1, 2, 3, 4, 5, 6, 8]), (3, 8, [0, 1, 2]), (9, 1, [0]), (9, 0, [*range(9)]), (0, 8, [])],
)  # fmt: skip
def test_frames_of_a_video(total: int, wanted: int, places: list[int]) -> None:
    assert choose_evenly(total, wanted) == places
    video = make_item(images=tuple(f"{k}.jpg" for k in range(total)), input_modality="video")
    options = AskOptions(video_frames=wanted)
    found = make_asked(video, options.settings("m"), options)
    assert [image.k for image in found.images] == places
    assert not found.problem
    # Of what is no video all images are shown.
    still = make_asked(replace(video, input_modality="multi-images"), options.settings("m"), options)
    assert len(still.images) == total


def test_frames_count_before_the_limit_on_images_and_are_part_of_the_request() -> None:
    video = make_item(images=tuple(f"{k}.jpg" for k in range(40)), input_modality="video")
    told = [AskOptions(max_images=8), AskOptions(video_frames=16, max_images=8), AskOptions(video_frames=16)]
    found = [make_asked(video, options.settings("m"), options) for options in told]
    assert [one.problem.partition(":")[0] for one in found] == ["", "too_many_images", ""]
    assert found[0].digest != found[2].digest
    other = make_asked(
        make_item(), told[0].settings("m"), told[0].model_copy(update={"wrong_images": True}), other=video
    )
    assert [image.k for image in other.images] == choose_evenly(40, 8)


def test_only_choices_turn() -> None:
    assert list(list_rotations("multi-choice", 4, circular=True)) == [0, 1, 2, 3]
    assert (
        list(list_rotations("multi-choice", 4, circular=False))
        == list(list_rotations("judgment", 2, circular=True))
        == [0]
    )


def test_another_drawing_is_another_request() -> None:
    options = AskOptions()
    plain = make_asked(make_item(), options.settings("m"), options)
    first, second = (add_images(plain, VISUAL_COT, [Path(name)]) for name in ("a.png", "b.png"))
    assert first.question == second.question
    assert len({plain.digest, first.digest, second.digest}) == 3


class Rooms:
    """Six questions, two about each of three scenes."""

    benchmark, fingerprint, folder = "VGBench", "f", Path()

    def rows(self) -> Iterator[QuestionRow]:
        for k in range(6):
            yield QuestionRow(k, f"q{k}", "metric_depth", "open-ended", 0, f"scannet/room{k // 2}", f"truth{k}")

    def item(self, row: int) -> Item:
        return replace(make_item(), id=f"q{row}", scene_id=f"room{row // 2}", images=(f"{row:032x}.jpg",))

    def image(self, item: Item, k: int) -> bytes | Path:
        raise AssertionError("no image is looked at")

    def again(self) -> Rooms:
        return self


def test_examples_are_about_other_scenes_and_the_same_for_one_seed() -> None:
    def shown(seed: int) -> dict[str, list[str]]:
        questions = Questions(Rooms(), AskOptions(shots=3, seed=seed))
        sent = questions.walk(questions.options.settings("m"))
        return {item.scene_id + item.id: [e.images[0].item.scene_id for e in one.examples] for item, one in sent}

    drawn = shown(0)
    for question, scenes in drawn.items():
        assert len(scenes) == 3
        assert question[:5] not in scenes
    assert drawn == shown(0)
    assert any(drawn != shown(seed) for seed in range(1, 5))
