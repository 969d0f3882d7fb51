"""What EasyR1 does with each row: `PYTHONPATH=SOURCES python read_easyr1.py FOLDER... [KEY=VALUE...]`.

EasyR1 is in no index; SOURCES is a copy of its repository. Keys are arguments of its dataset class, and `family`. Those
not given are as in EasyR1's own configuration, but for the length: the class's default, 1,024 tokens. A row that raises
while prompts are counted ends the start; the others are then judged as if it were not there.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from fates import explain, start_fates
from parquet_rows import Fates, Judge, Settings, compare_images, name_rows, run
from tiny_processor import import_torchvision

# examples/config.yaml, and trainer/data_loader.py for `truncation`
GIVEN = {"prompt_key": "problem", "truncation": "right", "min_pixels": 262144, "max_pixels": 4194304}


def load(folder: Path, settings: Settings, processor: Any, choose: bool) -> Any:
    """EasyR1's dataset of a folder, with all rows or with those that it chooses."""
    from verl.utils.dataset import RLHFDataset

    (file,) = folder.rglob("*.parquet")
    given = {**GIVEN, "filter_overlong_prompts_workers": None, **settings, "filter_overlong_prompts": choose}
    return RLHFDataset(str(file), processor.tokenizer, processor, **given)


def try_row(dataset: Any, place: int, choose: bool) -> tuple[str, str]:
    """(fate, why) of a row."""
    try:
        row = dataset.dataset[place]
        images = len(row.get("images") or ())
        if choose and not dataset._filter_overlong_prompts(row):
            return "dropped", f"longer than {dataset.max_prompt_length} tokens"
        made = dataset[place]
    except Exception as error:
        return "raised", explain(error)
    tokens = dataset.tokenizer.convert_ids_to_tokens(made["raw_prompt_ids"])
    text = dataset.tokenizer.decode(made["raw_prompt_ids"])
    why = compare_images(images, tokens.count("<|image_pad|>"), text)
    return ("altered", why) if why else ("kept", "")


def make_judge(model: Path) -> Judge:
    import_torchvision()
    from verl.utils.tokenizer import get_processor

    processor = get_processor(str(model), use_fast=True)  # as in trainer/main.py

    def judge(folder: Path, settings: Settings) -> Fates:
        choose = settings.get("filter_overlong_prompts", True)
        whole, found = load(folder, settings, processor, choose=False), start_fates()
        for place, name in enumerate(name_rows(whole.dataset)):
            fate, why = try_row(whole, place, choose)
            if fate in ("kept", "altered"):
                found["kept"].append(name)
            if fate != "kept":
                found[fate][name] = why
        if choose and not found["raised"]:
            chosen = load(folder, settings, processor, choose=True)
            assert name_rows(chosen.dataset) == found["kept"], "EasyR1 chose other rows"
        return found

    return judge


if __name__ == "__main__":
    run(sys.argv[1:], make_judge)
