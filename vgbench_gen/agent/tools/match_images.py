"""`MatchImages`: points that two images share, by SuperPoint and LightGlue."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from vgbench_gen.agent.tool import ImagePair, ToolError, ToolInput, ToolOutput, tools
from vgbench_gen.agent.weights import MatcherOptions, WeightsTool, load_part
from vgbench_gen.core.config import Config

SHOWN = 30  # matches that are told


class _Arguments(Config):
    image: ImagePair


@tools.register("MatchImagesWeights")
class MatchImages(WeightsTool[_Arguments]):
    name = "MatchImages"
    does = (
        "Finds points that two images share, by learned features; sees more in views that differ much than SIFT does."
    )
    Options = MatcherOptions
    argument_aliases: ClassVar = {"images": "image"}
    returns: ClassVar = {
        "matches": f"[[u, v] in the first image, [u, v] in the second], pixels; the best {SHOWN} at most",
        "scores": "of each of these matches from 0 to 1, the model's own",
        "num_matches": "how many there are in all",
    }
    example: ClassVar = {"image": ["image-0", "image-1"]}

    def run_batch(self, given: Sequence[ToolInput[_Arguments]]) -> list[ToolOutput | ToolError]:
        matcher = load_part(given[0].options, "matcher")
        made: list[ToolOutput | ToolError] = []
        pairs = [(one.images[0].color, one.images[1].color) for one in given]
        for one, found in zip(given, matcher.match_pairs(pairs), strict=True):
            uv1, uv2 = one.images[0].to_delivered(found.uv1), one.images[1].to_delivered(found.uv2)
            shown = np.stack([uv1, uv2], axis=1)[:SHOWN].round(1).tolist()
            scores = found.scores[:SHOWN].round(3).tolist()
            made.append(ToolOutput({"matches": shown, "scores": scores, "num_matches": len(found.uv1)}))
        return made
