"""Open-vocabulary detection: OWLv2 (Minderer et al. 2023) or Grounding DINO (Liu et al. 2023)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from vgbench_gen.agent.models.loading import load_image_processor, load_model, load_processor
from vgbench_gen.core.errors import ConfigError
from vgbench_gen.core.types import ColorArray, FloatArray

_QUERY_TOKENS = 16  # of OWLv2's text encoder


@dataclass(frozen=True, slots=True)
class FoundBox:
    """The best box of a name."""

    box: tuple[float, float, float, float]
    """[left, top, right, bottom] of its edges in pixels; those of the image are -0.5 and W - 0.5."""
    score: float
    """0 to 1, the model's own; no probability."""


class OpenDetector:
    """Finds what it is told the names of.

    Args:
        folder: of the model.
        device: see `loading.choose_device`.
        dtype: of the weights.

    Raises:
        ConfigError: the folder holds no such model.
    """

    def __init__(self, folder: Path, device: str, dtype: str) -> None:
        self._model = load_model("AutoModelForZeroShotObjectDetection", folder, device, dtype)
        self.kind = self._model.config.model_type
        if self.kind not in ("owlv2", "grounding-dino"):
            raise ConfigError(f"{folder}: found a {self.kind}; expected a detector of type owlv2 or grounding-dino.")
        self._images = load_image_processor(folder)
        self._tokenizer = load_processor("AutoTokenizer", folder)

    def find_boxes(self, image: ColorArray, names: Sequence[str]) -> list[FoundBox]:
        """The best box of each name, however low its score.

        Args:
            image: (H, W, 3) uint8 RGB.
            names: of what is looked for, at least one.
        """
        import torch

        size = image.shape[0], image.shape[1]
        inputs = self._images(images=[image], return_tensors="pt")
        pixels = {key: inputs[key].to(self._model.device) for key in ("pixel_values", "pixel_mask") if key in inputs}
        pixels["pixel_values"] = pixels["pixel_values"].to(self._model.dtype)
        if self.kind == "owlv2":
            pixels.pop("pixel_mask", None)
            text = self._tokenizer(
                [*names], padding="max_length", max_length=_QUERY_TOKENS, truncation=True, return_tensors="pt"
            )
        else:
            joined, places = join_names(names)
            text = self._tokenizer([joined], truncation=True, return_tensors="pt")
        told = {key: text[key].to(self._model.device) for key in ("input_ids", "attention_mask")}
        with torch.inference_mode():
            out = self._model(**pixels, **told)
        logits, boxes = (one[0].float().cpu().numpy().astype(np.float64) for one in (out.logits, out.pred_boxes))
        if self.kind == "owlv2":
            return choose_boxes(logits, boxes, len(names), (max(size), max(size)), size)
        # A name's score is the mean over its tokens, as in the model's own evaluation.
        chance = 1 / (1 + np.exp(-logits))
        tokens = find_tokens(text.token_to_chars, 0, len(text["input_ids"][0]), places)
        by_name = np.stack([chance[:, own].mean(axis=1) if own else np.zeros(len(chance)) for own in tokens], 1)
        return _pick(by_name, boxes, size, size)


def choose_boxes(
    logits: FloatArray, boxes: FloatArray, count: int, padded: tuple[int, int], size: tuple[int, int]
) -> list[FoundBox]:
    """The best box of each of the first names.

    Args:
        logits: (N, Q) of each box and name.
        boxes: (N, 4) centre and size as shares of the padded image, x before y.
        count: how many of the Q names are asked for.
        padded: (height, width) of the image with what was padded at its right and lower side.
        size: (height, width) of the image.
    """
    return _pick(1 / (1 + np.exp(-logits[:, :count])), boxes, padded, size)


def _pick(scores: FloatArray, boxes: FloatArray, padded: tuple[int, int], size: tuple[int, int]) -> list[FoundBox]:
    found = []
    for column in scores.T:
        best = int(column.argmax())
        found.append(FoundBox(to_pixels(boxes[best], padded, size), float(column[best])))
    return found


def to_pixels(box: FloatArray, padded: tuple[int, int], size: tuple[int, int]) -> tuple[float, float, float, float]:
    """[left, top, right, bottom] in pixels, within the image, of (centre x, centre y, width, height) as shares."""
    x, y, width, height = box
    sides = [
        (x - width / 2) * padded[1], (y - height / 2) * padded[0], (x + width / 2) * padded[1],
        (y + height / 2) * padded[0],
    ]  # fmt: skip
    left, top, right, bottom = (
        float(np.clip(side, 0, limit) - 0.5) for side, limit in zip(sides, [size[1], size[0]] * 2, strict=True)
    )
    return left, top, right, bottom


def join_names(names: Sequence[str]) -> tuple[str, list[tuple[int, int]]]:
    """(one sentence a name, as Grounding DINO wants them; where each name's characters are)."""
    text, places = "", []
    for name in names:
        clean = name.lower().replace(".", " ").strip() or "object"
        places.append((len(text), len(text) + len(clean)))
        text += f"{clean}. "
    return text.strip(), places


def find_tokens(chars_of: Any, row: int, count: int, places: Sequence[tuple[int, int]]) -> list[list[int]]:
    """The tokens of each name: those whose characters lie in its place."""
    found: list[list[int]] = [[] for _ in places]
    for token in range(count):
        span = chars_of(row, token)
        for k, (start, end) in enumerate(places):
            if span is not None and span.end > span.start and start <= span.start and span.end <= end:
                found[k].append(token)
    return found
