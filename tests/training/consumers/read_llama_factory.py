"""What LLaMA-Factory does with rows of folders: `python read_llama_factory.py FOLDER ... --work NEW`.

Rows are loaded, encoded and collated as `llamafactory-cli train` does it, with default settings or, with `--own`,
with those of the folder's `train.yaml`. Prints one JSON object a folder (`fates.start_fates`).
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.machinery
import json
import os
import sys
import types
from pathlib import Path
from typing import Any

from fates import Record, check_features, explain, find_difference, read_lines, start_fates
from tiny_processor import import_torchvision, write_processor

TEMPLATES = {"qwen2.5-vl": "qwen2_vl", "qwen3-vl": "qwen3_vl_nothink"}


def stand_in_torchaudio() -> None:
    """An empty torchaudio: it is imported, but only rows with sound use it, and its wheel needs CUDA."""
    module = types.ModuleType("torchaudio")
    module.__spec__ = importlib.machinery.ModuleSpec("torchaudio", None)
    sys.modules["torchaudio"] = module


class Trainer:
    """Loader, template and collator of `llamafactory-cli train` for one folder."""

    def __init__(self, folder: Path, model: Path, family: str, own: bool) -> None:
        from llamafactory.data import MultiModalDataCollatorForSeq2Seq, get_template_and_fix_tokenizer
        from llamafactory.hparams import get_train_args
        from llamafactory.model import load_tokenizer

        (self.path,) = folder.glob("*.jsonl")
        os.chdir(folder)
        settings: dict[str, Any] = {"dataset": self.path.stem, "dataset_dir": ".", "stage": "sft", "do_train": True}
        if own:
            import yaml

            settings |= yaml.safe_load((folder / "train.yaml").read_text("utf-8"))
        settings |= {"model_name_or_path": str(model), "template": TEMPLATES[family], "bf16": False}
        settings |= {"output_dir": str(model / "out"), "overwrite_cache": True, "report_to": "none"}
        *self.arguments, _, _ = get_train_args(settings)  # of the model, of the data, of training
        self.module = load_tokenizer(self.arguments[0])
        self.tokenizer, self.processor = self.module["tokenizer"], self.module["processor"]
        self.template = get_template_and_fix_tokenizer(self.tokenizer, self.arguments[1])
        self.collate = MultiModalDataCollatorForSeq2Seq(
            template=self.template, processor=self.processor, tokenizer=self.tokenizer, label_pad_token_id=-100
        )

    def judge(self) -> dict[str, Any]:
        """The fate of every row."""
        from llamafactory.data.loader import _get_dataset_processor, _get_merged_dataset, get_dataset

        records, data = read_lines(self.path), self.arguments[1]
        found: dict[str, Any] = start_fates()
        try:
            aligned = _get_merged_dataset(data.dataset, *self.arguments, "sft")
        except Exception as error:
            return found | {"raised": {record["id"]: explain(error) for record in records}}
        processor = _get_dataset_processor(data, "sft", self.template, self.tokenizer, self.processor)
        for k, record in enumerate(records):
            self.encode(record, processor, aligned[k : k + 1], found)
        try:
            whole = get_dataset(self.template, *self.arguments, "sft", **self.module)["train_dataset"]
        except Exception:
            assert found["raised"]
        else:
            assert len(whole) == len(records) - len(found["dropped"])
        return found

    def encode(self, record: Record, processor: Any, batch: Any, found: dict[str, Any]) -> None:
        """Encode one row, then make the batch that holds it alone."""
        try:
            encoded = processor.preprocess_dataset(batch)
            if not encoded:
                found["dropped"][record["id"]] = "while encoding"
                return
            row = {column: values[0] for column, values in encoded.items()}
            collated = self.collate([dict(row)])
        except Exception as error:
            found["raised"][record["id"]] = explain(error)
            return
        # For a row without images, the collator adds a white one that nothing looks at.
        grids = collated["image_grid_thw"].tolist() if row["images"] else []
        tokens = row["input_ids"].count(self.processor.image_token_id)
        if refusal := check_features(tokens, grids, collated["pixel_values"] if row["images"] else ()):
            found["raised"][record["id"]] = refusal
            return
        found["kept"].append(record["id"])
        found["grids"][record["id"]] = grids
        if said := find_difference(record, row, grids, self.processor, marks_in=("user", "assistant")):
            found["altered"][record["id"]] = said


def main() -> None:
    """Judge the folders that are named."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--family", default="qwen2.5-vl")
    parser.add_argument("--own", action="store_true")
    parser.add_argument("--work", type=Path, required=True)
    given = parser.parse_args()
    folders, work = [folder.resolve() for folder in given.folders], given.work.resolve()
    os.environ |= {"HF_HOME": str(work / "hf"), "HF_HUB_OFFLINE": "1"}
    with contextlib.redirect_stdout(sys.stderr):
        import_torchvision()
        stand_in_torchaudio()
        model = write_processor(given.family, work / given.family)
        found = [Trainer(folder, model, given.family, given.own).judge() for folder in folders]
    for one in found:
        print(json.dumps(one))


if __name__ == "__main__":
    main()
