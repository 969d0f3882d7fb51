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

    def find_boxes(self, images: Sequence[ColorArray], names: Sequence[Sequence[str]]) -> list[list[FoundBox]]:
        """The best box of each name in each image, however low its score.

        Args:
            images: (H, W, 3) uint8 RGB.
            names: of what is looked for in each image, at least one.
        """
        import torch

        sizes = [image.shape[:2] for image in images]
        inputs = self._images(images=[*images], return_tensors="pt")
        pixels = {key: inputs[key].to(self._model.device) for key in ("pixel_values", "pixel_mask") if key in inputs}
        pixels["pixel_values"] = pixels["pixel_values"].to(self._model.dtype)
        with torch.inference_mode():
            if self.kind == "owlv2":
                most = max(map(len, names))
                asked = [name for one in names for name in [*one, *["object"] * (most - len(one))]]
                text = self._tokenizer(
                    asked, padding="max_length", max_length=_QUERY_TOKENS, truncation=True, return_tensors="pt"
                )
                told = {key: text[key].to(self._model.device) for key in ("input_ids", "attention_mask")}
                out = self._model(pixel_values=pixels["pixel_values"], **told)
                return [
                    choose_boxes(*square, len(own), (max(size), max(size)), size)
                    for square, own, size in zip(_to_arrays(out.logits, out.pred_boxes), names, sizes, strict=True)
                ]
            joined = [join_names(own) for own in names]
            text = self._tokenizer([one for one, _ in joined], padding=True, truncation=True, return_tensors="pt")
            spans = [
                find_tokens(text.token_to_chars, row, int(text["attention_mask"][row].sum()), places)
                for row, (_, places) in enumerate(joined)
            ]
            told = {key: value.to(self._model.device) for key, value in text.items()}
            out = self._model(**pixels, **told)
            made = []
            for (logits, boxes), tokens, size in zip(_to_arrays(out.logits, out.pred_boxes), spans, sizes, strict=True):
                # A name's score is the mean over its tokens, as in the model's own evaluation.
                chance = 1 / (1 + np.exp(-logits))
                by_name = np.stack([chance[:, own].mean(axis=1) if own else np.zeros(len(chance)) for own in tokens], 1)
                made.append(_pick(by_name, boxes, size, size))
            return made


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


def _to_arrays(logits: Any, boxes: Any) -> list[tuple[FloatArray, FloatArray]]:
    return [
        (one.float().cpu().numpy().astype(np.float64), box.float().cpu().numpy().astype(np.float64))
        for one, box in zip(logits, boxes, strict=True)
    ]
