"""Open-vocabulary detection: OWLv2 (Minderer et al. 2023) or Grounding DINO (Liu et al. 2023)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from vgbench_gen.agent.models.loading import FolderModel, load_image_processor, load_processor
from vgbench_gen.core.types import ColorArray, FloatArray

_QUERY_TOKENS = 16  # the context length of OWLv2's text encoder


@dataclass(frozen=True, slots=True)
class FoundBox:
    """The best box of a name."""

    box: tuple[float, float, float, float]
    """[left, top, right, bottom] edges in pixels; the edges of the image are -0.5 and W - 0.5."""
    score: float
    """The model's score from 0 to 1; no probability."""


class OpenDetector(FolderModel):
    """Finds objects by name."""

    types: ClassVar = ("owlv2", "grounding-dino")

    def _load(self, folder: Path) -> None:
        self._model = self._load_transformer("AutoModelForZeroShotObjectDetection", folder)
        self._images = load_image_processor(folder)
        self._tokenizer = load_processor("AutoTokenizer", folder)

    def find_boxes(self, image: ColorArray, names: Sequence[str]) -> list[FoundBox]:
        """The best box of each of one or more names in an image (H, W, 3), uint8 RGB, however low its score."""
        import torch

        size = image.shape[0], image.shape[1]
        inputs = self._images(images=[image], return_tensors="pt")
        pixels = {key: inputs[key].to(self._device) for key in ("pixel_values", "pixel_mask") if key in inputs}
        pixels["pixel_values"] = pixels["pixel_values"].to(self._dtype)
        if self.type == "owlv2":
            pixels.pop("pixel_mask", None)
            text = self._tokenizer(
                [*names], padding="max_length", max_length=_QUERY_TOKENS, truncation=True, return_tensors="pt"
            )
        else:
            joined, spans = join_names(names)
            text = self._tokenizer([joined], truncation=True, return_tensors="pt")
        tokens = {key: text[key].to(self._device) for key in ("input_ids", "attention_mask")}
        with torch.inference_mode():
            out = self._model(**pixels, **tokens)
        logits, boxes = (each[0].float().cpu().numpy().astype(np.float64) for each in (out.logits, out.pred_boxes))
        if self.type == "owlv2":
            return choose_boxes(logits, boxes, len(names), (max(size), max(size)), size)
        # A name's score is the mean over its tokens, as in the model's own evaluation.
        scores = 1 / (1 + np.exp(-logits))
        by_name = find_tokens(text.token_to_chars, 0, len(text["input_ids"][0]), spans)
        means = [scores[:, own].mean(axis=1) if own else np.zeros(len(scores)) for own in by_name]
        return _choose_best(np.stack(means, 1), boxes, size, size)


def choose_boxes(
    logits: FloatArray, boxes: FloatArray, count: int, padded: tuple[int, int], size: tuple[int, int]
) -> list[FoundBox]:
    """The best box of each of the first names.

    Args:
        logits: (N, Q) of each box and name.
        boxes: (N, 4) centre and size as shares of the padded image, x before y.
        count: the number of names; the rest of the Q columns is padding.
        padded: (height, width) of the image after padding at its right and lower side.
        size: (height, width) of the image.
    """
    return _choose_best(1 / (1 + np.exp(-logits[:, :count])), boxes, padded, size)


def _choose_best(
    scores: FloatArray, boxes: FloatArray, padded: tuple[int, int], size: tuple[int, int]
) -> list[FoundBox]:
    """The box with the highest score of each column."""
    best = scores.argmax(axis=0)
    return [FoundBox(to_pixels(boxes[k], padded, size), float(scores[k, column])) for column, k in enumerate(best)]


def to_pixels(box: FloatArray, padded: tuple[int, int], size: tuple[int, int]) -> tuple[float, float, float, float]:
    """[left, top, right, bottom] in pixels, clipped to the image, of (centre x, centre y, width, height) as shares."""
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
    """(text with one sentence per name, as Grounding DINO expects; [start, end) of each name's characters in it)."""
    text, spans = "", []
    for name in names:
        clean = name.lower().replace(".", " ").strip() or "object"
        spans.append((len(text), len(text) + len(clean)))
        text += f"{clean}. "
    return text.strip(), spans


def find_tokens(chars_of: Any, row: int, count: int, spans: Sequence[tuple[int, int]]) -> list[list[int]]:
    """The tokens of each name, whose characters lie in the name's span."""
    tokens: list[list[int]] = [[] for _ in spans]
    for token in range(count):
        chars = chars_of(row, token)
        for k, (start, end) in enumerate(spans):
            if chars is not None and chars.end > chars.start and start <= chars.start and chars.end <= end:
                tokens[k].append(token)
    return tokens
