"""`MeasureBrightness`: how bright a rectangle of an image is."""

from typing import Annotated

from vgbench_gen.agent.tool import OneImage, ToolError, tool


@tool(
    "MeasureBrightness",
    tier="classical",
    returns={"mean": "mean grey value, 0 black to 255 white", "spread": "standard deviation of the grey values"},
    example={"image": "image-0", "bbox": [10, 10, 50, 40]},
)
def measure_brightness(
    image: OneImage, bbox: Annotated[tuple[int, int, int, int], "[left, top, right, bottom], pixels, ends included"]
) -> dict[str, float]:
    """Measures how bright a rectangle of an image is."""
    left, top, right, bottom = bbox
    part = image.read_whole()[max(0, top) : bottom + 1, max(0, left) : right + 1].mean(axis=2)
    if not part.size:
        raise ToolError(f"bbox {[left, top, right, bottom]}: lies outside the image")
    return {"mean": round(float(part.mean()), 1), "spread": round(float(part.std()), 1)}
