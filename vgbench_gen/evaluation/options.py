"""What is asked of each question, and how, as the API and the program take it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated

from pydantic import Field, field_validator

from vgbench_gen.backends.base import Settings
from vgbench_gen.core.config import Config, Flag
from vgbench_gen.core.errors import ConfigError

if TYPE_CHECKING:
    from vgbench_gen.evaluation.base import Benchmark

BLIND, WRONG_IMAGES = "blind", "wrong-images"  # stages of a reply: the controls
VISUAL_COT = "visual-cot"  # stage of an answer before which an image was made
VISUAL_COT_TASK = "_visual_cot"  # how names of tasks end that are asked in two stages
SHOTS, MAX_SHOTS = "-shot", 16  # "3-shot" is the stage of a reply to a question after three examples
MAX_TOKENS, MAX_TOKENS_REASONING = 512, 2048  # docs/protocols.md#vgbench-prompts, the paper's settings
VIDEO_FRAMES = 8  # as above
# Names by which models that think before they answer go; only the room for their answer depends on it.
_REASONING = re.compile(
    r"(?:^|[/:_.-])(?:o[1-9]|gpt-5|r1|qwq|qvq|reasoner|thinking|reasoning)(?:$|[/:_.-])", re.IGNORECASE
)


class AskOptions(Config):
    """What is asked of each question, and how. All but the choice of questions is part of the request's digest."""

    prompt_set: Annotated[
        str, Flag("Prompt set: paper, released, final_line, … (default: the benchmark's).", "NAME", ("--prompts",))
    ] = "paper"
    """The name of a file of `templates/prompts/`."""

    temperature: Annotated[float | None, Flag("Below 0: send none, which some models demand.", "T")] = 0.0
    """None sends none, and so does a number below 0."""

    max_tokens: Annotated[
        int,
        Flag("Of a reply; 0 for the benchmark's rule, 512 or 2048 for models that reason where it has none.", "N"),
    ] = Field(default=0, ge=0)
    """Of a reply; 0 for 512, or 2,048 for models that reason."""

    reasoning: Annotated[
        bool | None, Flag("Whether the models reason; else by their names.", "", ("--reasoning/--no-reasoning",))
    ] = None
    """Whether the models reason; None to tell by their names."""

    reasoning_effort: Annotated[str, Flag("Sent to models that take one: low, high, …", "WORD")] = ""
    """Sent to models that take one; empty for none."""

    epochs: Annotated[int, Flag("Repeat every question N times.", "N")] = Field(default=1, ge=1, le=1000)
    """How often every question is asked."""

    circular: Annotated[bool, Flag("Ask in every order of the options by rotation.")] = False
    """Every order of the options by rotation is asked."""

    blind: Annotated[bool, Flag("Leave the images out.")] = False
    """No image is sent."""

    wrong_images: Annotated[bool, Flag("Show those of another question.")] = False
    """The images of another question are sent."""

    first_image: Annotated[bool, Flag("Send the first image alone, to models that take one.")] = False
    """Only the first image is sent."""

    video_frames: Annotated[int, Flag("So many of a video, evenly spread; 0 for all.", "N")] = Field(
        default=VIDEO_FRAMES, ge=0
    )
    """How many frames of a video are sent, evenly spread; 0 for all."""

    max_images: Annotated[int, Flag("A question with more fails; 0 for no limit.", "N")] = Field(default=0, ge=0)
    """A question with more images fails; 0 for no limit."""

    long_side_px: Annotated[int, Flag("Make larger images smaller; 0 for never.", "PX", ("--long-side",))] = Field(
        default=0, ge=0
    )
    """Larger images are made smaller; 0 for never."""

    visual_cot: str = ""
    """The prompts by which an image is made first (`visual_cot`); empty where none is."""

    shots: Annotated[int, Flag("Send so many other questions with answers before each.", "N")] = Field(
        default=0, ge=0, le=MAX_SHOTS
    )
    """How many other questions are sent before each, with their answers."""

    seed: Annotated[int, Flag("Of draws and of learners.", "N")] = Field(default=0, ge=0, lt=1 << 63)
    """Of draws and of learners."""

    tasks: Annotated[tuple[str, ...], Flag("Only these tasks.", "A,B", is_list=True)] = ()
    """Only questions of these tasks; all where empty."""

    types: Annotated[tuple[str, ...], Flag("Only judgment, multi-choice or open-ended.", "A,B", is_list=True)] = ()
    """Only questions of these types; all where empty."""

    sources: Annotated[
        tuple[str, ...],
        Flag("Only these sources: scannet, …; synthetic, natural of SalBench.", "A,B", ("--splits",), is_list=True),
    ] = ()
    """Only questions of these sources; all where empty."""

    limit: Annotated[int, Flag("So many questions, drawn evenly; 0 for all.", "N", ("--limit", "--num-samples"))] = (
        Field(default=0, ge=0)
    )
    """How many questions are asked, drawn evenly; 0 for all (see `base.choose_rows`)."""

    @field_validator("temperature")
    @classmethod
    def _drop_negative(cls, value: float | None) -> float | None:
        return None if value is not None and value < 0 else value

    @property
    def stage(self) -> str:
        """The stage of the replies; empty for plain questions."""
        if self.visual_cot:
            return VISUAL_COT
        if self.shots:
            return f"{self.shots}{SHOTS}"
        return BLIND if self.blind else WRONG_IMAGES if self.wrong_images else ""

    def settings(self, model: str) -> Settings:
        """How the model answers, without the epoch."""
        from vgbench_gen.evaluation.prompting import find_prompt_set

        reasons = self.reasoning
        if reasons is None:
            reasons = bool(self.reasoning_effort) or _REASONING.search(model) is not None
        return Settings(
            temperature=self.temperature,
            max_tokens=self.max_tokens or (MAX_TOKENS_REASONING if reasons else MAX_TOKENS),
            reasoning_effort=self.reasoning_effort,
            system=find_prompt_set(self.prompt_set).system,
            stage=self.stage,
        )


def complete_options(
    options: AskOptions, benchmark: Benchmark, visual_cot: bool = False, generation_prompts: str = "seed"
) -> AskOptions:
    """The options with what the benchmark says where the user says nothing, and with its names in full.

    Args:
        options: what the user says; an empty prompt set stands for the benchmark's own.
        benchmark: what is asked.
        visual_cot: whether an image is made first; names of tasks that end in `_visual_cot` ask for it too.
        generation_prompts: the prompts by which that image is made.

    Raises:
        ConfigError: some of the tasks are to be asked in two stages and others are not.
    """
    two_stages = sum(name.endswith(VISUAL_COT_TASK) for name in options.tasks)
    if 0 < two_stages < len(options.tasks):
        raise ConfigError(
            f"--tasks: found {two_stages} of {len(options.tasks)} with {VISUAL_COT_TASK}; expected all "
            "or none; ask them apart."
        )
    plain = (name.removesuffix(VISUAL_COT_TASK) for name in options.tasks)
    return options.model_copy(
        update={
            "prompt_set": benchmark.short_prompts.get(options.prompt_set, options.prompt_set) or benchmark.prompt_set,
            "max_tokens": options.max_tokens or benchmark.max_tokens,
            "tasks": tuple(benchmark.short_tasks.get(name, name) for name in plain),
            "visual_cot": generation_prompts if visual_cot or two_stages else "",
        }
    )
