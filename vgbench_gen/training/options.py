"""How the rows of a training file differ from those of the dataset."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from vgbench_gen.core.config import Config, Flag

RationaleLength = Literal["none", "short", "long"]


class TrainOptions(Config):
    """How the rows of a training file differ from those of the dataset."""

    family: Annotated[
        str,
        Flag(
            "Write points and image sizes as these models expect: qwen2.5-vl, qwen3-vl, internvl, pixels, 0-1, 0-1000.",
            "NAME",
            "Training",
        ),
    ] = ""
    """A name of `training.families`; "" leaves pixels of the images as they are."""

    max_pixels: Annotated[
        int, Flag("Limit of an image's area that your trainer sets; 0 = the family's own.", "N", "Training")
    ] = Field(default=0, ge=0)

    rationale: Annotated[
        RationaleLength, Flag("Reasoning before the answer: none, short or long.", "LENGTH", "Training")
    ] = "none"
    """Steps from the row's evidence to its answer, before the answer."""


AS_BUILT = TrainOptions()
