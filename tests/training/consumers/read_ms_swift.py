"""What ms-swift does with rows of folders: `python read_ms_swift.py FOLDER ... --work NEW`, in its environment.

Rows are loaded, encoded and their images opened as `swift sft` does it, with default settings or, with `--own`, with
those of `sft.yaml` in the first folder. By default a row that cannot be encoded is replaced by another one, without
an error. Prints one JSON object a folder (`fates.start_fates`).
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import sys
from pathlib import Path
from typing import Any

from fates import Record, check_features, explain, find_difference, read_lines, start_fates
from tiny_processor import import_torchvision, write_processor

KINDS = {"qwen2.5-vl": "qwen2_5_vl", "qwen3-vl": "qwen3_vl"}


class Trainer:
    """Loader and template of `swift sft`."""

    def __init__(self, family: str, work: Path, settings: Path | None) -> None:
        from swift.arguments import SftArguments
        from swift.cli.main import parse_yaml_args
        from swift.utils import parse_args

        own = [str(settings)] if settings else ["--dataset", "given_later"]
        parse_yaml_args(own)  # reads the settings in place
        kind, model = KINDS[family], str(write_processor(family, work / family))
        fixed = {"model": model, "model_type": kind, "template": kind, "output_dir": str(work / "out")}
        fixed |= {"remove_unused_columns": "false", "report_to": "none", "bf16": "false"}  # `false`: ids are kept
        self.args, _ = parse_args(SftArguments, [*own, *(word for k, v in fixed.items() for word in (f"--{k}", v))])
        _, self.processor = self.args.get_model_processor(load_model=False)
        self.template = self.args.get_template(self.processor)
        self.template.set_mode("train")

    def judge(self, folder: Path) -> dict[str, Any]:
        """The fate of every row of a folder."""
        (path,) = folder.glob("*.jsonl")
        records = read_lines(path)
        found: dict[str, Any] = start_fates()
        os.chdir(folder)  # relative paths of images are looked up here
        self.args.dataset = [path.name]
        try:
            loaded, _ = self.args.load_dataset()
        except Exception as error:
            return found | {"raised": {record["id"]: explain(error) for record in records}}
        places = {name: k for k, name in enumerate(loaded["id"])}
        for record in records:
            if record["id"] in places:
                self.encode(record, loaded, places[record["id"]], found)
            else:
                found["dropped"][record["id"]] = "while loading"
        return found

    def encode(self, record: Record, loaded: Any, k: int, found: dict[str, Any]) -> None:
        """Encode one row as the training set does, which takes another row if this fails."""
        from swift.dataset.utils import LazyLLMDataset

        try:
            encoded = LazyLLMDataset(loaded, self.template.encode, strict=True)[k]
        except Exception as error:
            found["raised" if self.args.strict else "dropped"][record["id"]] = explain(error)
            return
        grids = encoded["image_grid_thw"].tolist() if "image_grid_thw" in encoded else []
        tokens = encoded["input_ids"].count(self.template.image_token_id)
        if refusal := check_features(tokens, grids, encoded.get("pixel_values", ())):
            found["raised"][record["id"]] = refusal
            return
        assert loaded[k].get("solution") == record.get("solution")  # as a reward gets it
        found["kept"].append(record["id"])
        found["grids"][record["id"]] = grids
        everywhere = ("system", "user", "assistant", "tool")
        if said := find_difference(record, encoded, grids, self.processor, marks_in=everywhere):
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
    os.environ |= {"MODELSCOPE_CACHE": str(work / "ms"), "HF_HOME": str(work / "hf"), "HF_HUB_OFFLINE": "1"}
    with contextlib.redirect_stdout(sys.stderr):
        import_torchvision()
        trainer = Trainer(given.family, work, folders[0] / "sft.yaml" if given.own else None)
        found = [trainer.judge(folder) for folder in folders]
    for one in found:
        print(json.dumps(one))


if __name__ == "__main__":
    main()
