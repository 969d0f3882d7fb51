"""`WarpImage`: an image as a 3x3 matrix moves it, and how like another image that is."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

from pydantic import Field

from vgbench_gen.agent.tool import ImageName, Matrix3, Tier, Tool, ToolInput, ToolOutput, tools
from vgbench_gen.agent.tools._warping import compare, read_matrix, warp
from vgbench_gen.core.config import Config
from vgbench_gen.store.pictures import encode_jpeg


class _Arguments(Config):
    image: Annotated[
        tuple[ImageName, ...],
        Field(min_length=1, max_length=2, description="the image to warp, and where wanted one to compare it with"),
    ]
    matrix: Matrix3 = Field(
        description="3x3, takes (u, v, 1) of the given image to the new one; (0, 0) is the centre of the top-left pixel"
    )


@tools.register("WarpImage")
class WarpImage(Tool[_Arguments]):
    name = "WarpImage"
    tier: ClassVar[Tier] = "classical"
    does = "Warps an image by a homography into a new image of its size, black where nothing is known."
    argument_aliases: ClassVar = {"images": "image", "homography_matrix": "matrix"}
    returns: ClassVar = {
        "image": "name of the new image",
        "covered": "share of the new image that shows something, 0 to 1",
        "correlation": "of the warped image with the second one where both show something, -1 to 1; 1: the same",
        "mean_difference": "of their grey levels there, 0 to 255",
        "cannot_tell": "why they cannot be compared",
    }
    example: ClassVar = {"image": ["image-0", "image-1"], "matrix": [[1, 0, 20], [0, 1, 0], [0, 0, 1]]}

    def run(self, given: ToolInput[_Arguments]) -> ToolOutput:
        arguments = given.arguments
        H = read_matrix(arguments.matrix)
        source, target = given.images[0], given.images[-1]
        made, covered = warp(source.read_whole(), H, target.size)
        told: dict[str, Any] = {"covered": round(float(covered.mean()), 3)}
        if len(given.images) == 2:
            correlation, difference, _ = compare(source, target, H)
            if correlation is None or difference is None:
                told["cannot_tell"] = "too little of the warped image is shown, or it has no texture"
            else:
                told |= {"correlation": round(correlation, 3), "mean_difference": round(difference, 2)}
        return ToolOutput(told, (encode_jpeg(made),))
