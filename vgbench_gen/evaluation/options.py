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
Names = tuple[str, ...]
# Names by which models that think before they answer go; only the room for their answer depends on it.
_REASONING = re.compile(
    r"(?:^|[/:_.-])(?:o[1-9]|gpt-5|r1|qwq|qvq|reasoner|thinking|reasoning)(?:$|[/:_.-])", re.IGNORECASE
)


class AskOptions(Config):
    """What is asked of each question, and how. All but the choice of questions is part of the request's digest."""

    prompt_set: Annotated[
        str,
        Flag("Prompt set: paper, released, final_line, …; default: the benchmark's.", "NAME", "Prompt", "--prompts"),
    ] = "paper"
    """The name of a file of `templates/prompts/`."""

    temperature: Annotated[
        float | None, Flag("Temperature; below 0 = send none, as some models require.", "T", "Sampling")
    ] = 0.0
    """None sends none, and so does a number below 0."""

    max_tokens: Annotated[
        int, Flag("Longest reply in tokens; 0 = the benchmark's rule, else 512 (2048 if reasoning).", "N", "Sampling")
    ] = Field(default=0, ge=0)

    reasoning: Annotated[
        bool | None,
        Flag("Room for reasoning (2048 tokens); default: by model name.", "", "Sampling", "--reasoning/--no-reasoning"),
    ] = None

    reasoning_effort: Annotated[str, Flag("Reasoning effort to request: low, high, …", "WORD", "Sampling")] = ""

    epochs: Annotated[int, Flag("Number of times each question is asked.", "N", "Sampling")] = Field(
        default=1, ge=1, le=1000
    )

    circular: Annotated[bool, Flag("Ask with every rotation of the options.", "", "Prompt")] = False

    blind: Annotated[bool, Flag("Send no images (control).", "", "Images")] = False

    wrong_images: Annotated[bool, Flag("Send the images of another question (control).", "", "Images")] = False

    first_image: Annotated[bool, Flag("Send only the first image (for single-image models).", "", "Images")] = False

    video_frames: Annotated[int, Flag("Number of frames sent per video, evenly spaced; 0 = all.", "N", "Images")] = (
        Field(default=VIDEO_FRAMES, ge=0)
    )

    max_images: Annotated[
        int, Flag("Skip questions with more images, and count them as failed; 0 = no limit.", "N", "Images")
    ] = Field(default=0, ge=0)

    long_side_px: Annotated[
        int, Flag("Downscale images to at most PX pixels on the longer side; 0 = never.", "PX", "Images", "--long-side")
    ] = Field(default=0, ge=0)

    visual_cot: str = ""
    """The prompts by which an image is made first (`visual_cot`); empty where none is."""

    shots: Annotated[int, Flag("Number of solved examples before each question.", "N", "Prompt")] = Field(
        default=0, ge=0, le=MAX_SHOTS
    )

    seed: Annotated[int, Flag("Seed of random choices.", "N", "Questions")] = Field(default=0, ge=0, lt=1 << 63)

    tasks: Annotated[Names, Flag("Only these tasks.", "A,B", "Questions", "--tasks --task", is_list=True)] = ()

    types: Annotated[
        Names, Flag("Only judgment, multi-choice or open-ended.", "A,B", "Questions", "--types --type", is_list=True)
    ] = ()

    sources: Annotated[
        Names,
        Flag(
            "Only these sources (scannet, …) or SalBench splits.", "A,B", "Questions", "--splits --source", is_list=True
        ),
    ] = ()

    limit: Annotated[
        int, Flag("Size of a random sample of the questions; 0 = all.", "N", "Questions", "--limit --num-samples")
    ] = Field(default=0, ge=0)

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
