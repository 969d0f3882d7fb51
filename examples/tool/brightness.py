"""`MeasureBrightness`: how bright a rectangle of an image is."""

from pydantic import Field

from vgbench_gen.agent.tool import ImageName, Tool, ToolError, ToolOutput, tools
from vgbench_gen.core.config import Config


class Arguments(Config):
    image: ImageName = Field(description="name of the image")
    bbox: tuple[int, int, int, int] = Field(description="[left, top, right, bottom], pixels, ends included")


@tools.register("MeasureBrightness")
class MeasureBrightness(Tool[Arguments]):
    name, tier = "MeasureBrightness", "classical"
    does = "Measures how bright a rectangle of an image is."
    returns = {"mean": "mean grey value, 0 black to 255 white", "spread": "standard deviation of the grey values"}
    example = {"image": "image-0", "bbox": [10, 10, 50, 40]}

    def run(self, given):
        left, top, right, bottom = given.arguments.bbox
        part = given.images[0].read_whole()[max(0, top) : bottom + 1, max(0, left) : right + 1].mean(axis=2)
        if not part.size:
            raise ToolError(f"bbox {[left, top, right, bottom]}: lies outside the image")
        return ToolOutput({"mean": round(float(part.mean()), 1), "spread": round(float(part.std()), 1)})
