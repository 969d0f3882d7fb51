"""What unsloth does with each row of exports: `python read_unsloth.py FOLDER... [SETTING=JSON...]`, in its environment.

Rows are collated by the collator of unsloth_zoo, on the CPU, with the settings of the folder's `train.py`; settings
replace those, and null takes one out. unsloth itself has no vision models without a GPU. Prints one JSON object a
folder: `kept` (ids), `altered` (those of them of which something else is trained), `dropped` and `raised` (id ->
reason), `grids` (id -> patches of each image: 1, rows, columns).
"""

from __future__ import annotations

import contextlib
import json
import os
import runpy
import sys
import tempfile
from pathlib import Path
from typing import Any


class Trainer:
    """A processor and a tiny model, and the collator that they are given to."""

    def __init__(self, family: str, work: Path) -> None:
        from tiny_processor import write_processor

        place = write_processor(family, work / "model")
        import transformers

        self.work = work
        self.processor = transformers.AutoProcessor.from_pretrained(place)
        config = transformers.AutoConfig.from_pretrained(place)
        self.model = transformers.AutoModelForImageTextToText.from_config(config)
        self.model.max_seq_length = 2048  # of FastVisionModel.from_pretrained

    def judge(self, folder: Path, given: dict[str, Any]) -> dict[str, Any]:
        """The fate of every row of a folder."""
        from datasets import load_dataset
        from unsloth_zoo.vision_utils import UnslothVisionDataCollator

        os.chdir(folder)  # relative paths of images are looked up here
        settings = runpy.run_path("train.py")["COLLATOR"] | given
        settings = {name: value for name, value in settings.items() if value is not None}
        rows = [json.loads(line) for line in Path("train.jsonl").read_text("utf-8").splitlines()]
        found: dict[str, Any] = {"kept": [], "altered": {}, "dropped": {}, "raised": {}, "grids": {}}
        try:
            loaded = load_dataset("json", data_files="train.jsonl", split="train", cache_dir=str(self.work / "cache"))
        except Exception as error:
            return found | {"raised": {row["id"]: explain(error) for row in rows}}
        for k, row in enumerate(rows):
            # A new one for each row: it raises on the first batch alone if nothing is learned.
            collator = UnslothVisionDataCollator(self.model, self.processor, **settings)
            try:
                batch = collator([loaded[k]])
                self.place_images(batch)
            except Exception as error:
                found["raised"][row["id"]] = explain(error)
                continue
            found["kept"].append(row["id"])
            found["grids"][row["id"]] = batch["image_grid_thw"].tolist() if "image_grid_thw" in batch else []
            if said := self.compare(batch, row):
                found["altered"][row["id"]] = said
        return found

    def place_images(self, batch: Any) -> None:
        """Put images into the text as the model does, which raises if they are more or fewer than their places."""
        places = int((batch["input_ids"] == self.model.config.image_token_id).sum())
        patches = sum(t * h * w for t, h, w in batch["image_grid_thw"].tolist()) if "image_grid_thw" in batch else 0
        if places != patches // 4 and "pixel_values" in batch:
            self.model(**{name: value for name, value in batch.items() if name != "labels"})

    def compare(self, batch: Any, row: dict[str, Any]) -> str:
        """How what is trained differs from the row; "" where it does not."""
        messages = row["messages"]
        paths = find_images(messages) if row.get("images") is None else row["images"]
        grids = batch["image_grid_thw"].tolist() if "image_grid_thw" in batch else []
        if len(grids) != len(paths):
            return f"{len(grids)} images are read of {len(paths)}"
        if grids:
            assert len(batch["pixel_values"]) == sum(t * h * w for t, h, w in grids)
            own = self.processor.image_processor(images=[open_image(path) for path in paths])["image_grid_thw"]
            if (own := own.tolist()) != grids:
                return f"images have {grids} patches, not the family's {own}"
        labels = batch["labels"][0]
        learned = self.processor.tokenizer.decode(labels[labels != -100], skip_special_tokens=True).strip()
        answer = messages[-1]["content"]
        answer = answer[0]["text"] if isinstance(answer, list) else answer
        return "" if learned and learned == answer else f"what is learned is {learned!r}"


def find_images(messages: list[dict[str, Any]]) -> list[str]:
    """Paths of the images among the parts of messages, in order."""
    parts = [part for message in messages if isinstance(message["content"], list) for part in message["content"]]
    shown = [part for part in parts if part["type"] in ("image", "image_url")]
    return [next(str(value) for key, value in part.items() if key != "type") for part in shown]


def open_image(path: str) -> Any:
    from PIL import Image

    with Image.open(path) as image:
        return image.convert("RGB")


def explain(error: Exception) -> str:
    """Type and words of an error in one line."""
    return f"{type(error).__name__}: {' '.join(str(error).split())}"[:600]


def main() -> None:
    """Judge the folders that are named."""
    folders = [Path(word).resolve() for word in sys.argv[1:] if "=" not in word]
    given = {name: json.loads(value) for name, value in (word.split("=", 1) for word in sys.argv[1:] if "=" in word)}
    with tempfile.TemporaryDirectory() as work, contextlib.redirect_stdout(sys.stderr):
        os.environ |= {"UNSLOTH_ZOO_DISABLE_GPU_INIT": "1", "HF_HUB_OFFLINE": "1", "HF_HOME": work}
        trainer = Trainer("qwen2.5-vl", Path(work))
        found = [trainer.judge(folder, given) for folder in folders]
    for one in found:
        print(json.dumps(one))


if __name__ == "__main__":
    main()
