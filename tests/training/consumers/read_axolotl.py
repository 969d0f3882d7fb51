"""What axolotl does with each row of exports: `python read_axolotl.py FOLDER... [SETTING=JSON...]`, in its environment.

Configuration and rows are loaded and every row is collated by axolotl's own code, on the CPU; settings replace those of
`axolotl.yaml`. Prints one JSON object a folder: `kept` (ids), `altered` (those of them of which not all is trained),
`dropped` and `raised` (id -> reason), `grids` (id -> patches of each image: 1, rows, columns).
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any


def judge(folder: Path, model: Path, work: Path, given: dict[str, Any]) -> dict[str, Any]:
    """The fate of every row of a folder."""
    from axolotl.cli.config import load_cfg
    from axolotl.common.datasets import load_datasets

    os.chdir(folder)  # relative paths of images are looked up here
    cfg = load_cfg("axolotl.yaml", **{"base_model": str(model), "dataset_prepared_path": str(work)} | given)
    rows = [json.loads(line) for line in Path(cfg.datasets[0].path).read_text("utf-8").splitlines()]
    found: dict[str, Any] = {"kept": [], "altered": {}, "dropped": {}, "raised": {}, "grids": {}}
    try:
        loaded = load_datasets(cfg=cfg).train_dataset
        collator = make_collator(cfg)
    except Exception as error:
        return found | {"raised": {row["id"]: explain(error) for row in rows}}
    places = {name: k for k, name in enumerate(loaded["id"])} if "id" in loaded.column_names else {}
    for row in rows:
        name = row["id"]
        if places and name not in places:
            found["dropped"][name] = "while loading"
            continue
        try:
            batch = collator([loaded[places.get(name, 0)]])
        except Exception as error:
            found["raised"][name] = explain(error)
            continue
        found["kept"].append(name)
        found["grids"][name] = batch["image_grid_thw"].tolist() if "image_grid_thw" in batch else []
        if said := compare(batch, row, found["grids"][name], collator.tokenizer):
            found["altered"][name] = said
    return found


def make_collator(cfg: Any) -> Any:
    """The collator that axolotl makes for a configuration."""
    from axolotl.core.builders.causal import HFCausalTrainerBuilder
    from axolotl.loaders import load_processor, load_tokenizer
    from axolotl.utils.chat_templates import get_chat_template_from_config

    tokenizer = load_tokenizer(cfg)
    builder = HFCausalTrainerBuilder(cfg, None, tokenizer, load_processor(cfg, tokenizer))
    template = get_chat_template_from_config(cfg, tokenizer=tokenizer) if cfg.chat_template else None
    # Those of its training arguments that `build_collator` reads; the others need a GPU.
    wanted = {"sample_packing": cfg.sample_packing, "chat_template": template, "image_size": cfg.image_size}
    return builder.build_collator(
        SimpleNamespace(pretraining=False, eval_sample_packing=False, image_resize_algorithm=None, **wanted)
    )


def compare(batch: Any, row: dict[str, Any], grids: list[list[int]], tokenizer: Any) -> str:
    """What of a row is not in its batch; "" if all is."""
    contents = [message["content"] for message in row["messages"] if isinstance(message["content"], list)]
    images = sum(part["type"] in ("image", "image_url") for content in contents for part in content)
    images = max(images, len(row.get("images") or ()))
    if len(grids) != images:
        return f"{len(grids)} images are read of {images}"
    if grids:
        assert len(batch["pixel_values"]) == sum(t * h * w for t, h, w in grids)
    labels = batch["labels"][0]
    learned = tokenizer.decode(labels[labels != -100], skip_special_tokens=True).strip()
    answer = row["messages"][-1]["content"]
    answer = answer[0]["text"] if isinstance(answer, list) else answer
    return "" if learned and learned == answer else f"what is learned is {learned!r}"


def explain(error: Exception) -> str:
    """Type and words of an error in one line."""
    return f"{type(error).__name__}: {' '.join(str(error).split())}"[:600]


def read_with_pillow() -> None:
    """Let torchvision read images although its own reader needs a torch with CUDA."""
    import torchvision
    from PIL import Image
    from torchvision.transforms.functional import pil_to_tensor

    def decode(path: str, mode: Any) -> Any:
        with Image.open(path) as image:
            return pil_to_tensor(image.convert(mode.name))

    torchvision.io.decode_image = decode


def main() -> None:
    """Judge the folders that are named."""
    folders = [Path(word).resolve() for word in sys.argv[1:] if "=" not in word]
    given = {name: json.loads(value) for name, value in (word.split("=", 1) for word in sys.argv[1:] if "=" in word)}
    with tempfile.TemporaryDirectory() as place, contextlib.redirect_stdout(sys.stderr):
        work = Path(place)
        os.environ |= {"AXOLOTL_DO_NOT_TRACK": "1", "HF_HUB_OFFLINE": "1", "HF_HOME": str(work / "hf")}
        from tiny_processor import write_processor

        model = write_processor("qwen2.5-vl", work / "model")
        read_with_pillow()
        found = [judge(folder, model, work / f"prepared{k}", given) for k, folder in enumerate(folders)]
    for one in found:
        print(json.dumps(one))


if __name__ == "__main__":
    main()
