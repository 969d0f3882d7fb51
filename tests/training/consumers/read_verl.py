"""What verl does with each row: `python read_verl.py FOLDER... [KEY=VALUE...]`, in its environment.

Rows are chosen by verl's dataset and made to prompts by its agent loop, whose server stops it there. Keys are those of
verl's settings `data`, and `family`. Those not given have the defaults of the dataset class: 1,024 tokens, longer
prompts left out. verl's configuration itself has others: 512, and longer prompts raise.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from fates import explain, start_fates
from parquet_rows import Fates, Judge, Settings, compare_images, name_rows, run
from tiny_processor import import_torchvision

PATIENCE_S = 60  # the agent loop waits for ever where a processor raises StopIteration in its thread


class PromptMade(Exception):
    """The agent loop has made the prompt and asks its server to go on."""


async def stop(**_: Any) -> None:
    raise PromptMade


def load(folder: Path, settings: Settings, processor: Any) -> Any:
    """verl's dataset of a folder."""
    from omegaconf import OmegaConf
    from verl.utils.dataset.rl_dataset import RLHFDataset

    files = [str(path) for path in sorted(folder.rglob("*.parquet"))]
    config = OmegaConf.create({"filter_overlong_prompts_workers": None, **settings})  # in this process
    return RLHFDataset(files, processor.tokenizer, config, processor)


def make_loop(processor: Any, length: int) -> Any:
    """verl's agent loop of one turn."""
    from omegaconf import OmegaConf
    from verl.experimental.agent_loop.single_turn_agent_loop import SingleTurnAgentLoop
    from verl.utils.dataset.rl_dataset import RLHFDataset

    asyncio.set_event_loop(asyncio.new_event_loop())
    rollout = {"prompt_length": length, "response_length": 64}
    return SingleTurnAgentLoop(
        SimpleNamespace(config=OmegaConf.create({"actor_rollout_ref": {"rollout": rollout}})),
        SimpleNamespace(generate=stop),
        processor.tokenizer,
        processor,
        RLHFDataset,
        SimpleNamespace(config=OmegaConf.create({})),
        hf_model_type="qwen2_5_vl" if "2_5" in type(processor).__name__ else "qwen3_vl",
    )


def try_rows(dataset: Any, loop: Any) -> Fates:
    """The fates of rows that verl has chosen."""
    from verl.utils.dataset.rl_dataset import collate_fn

    found = start_fates()
    for place, name in enumerate(name_rows(dataset.dataframe)):
        try:
            row = dataset.dataframe[place]
            batch = collate_fn([dataset[place]])
            prompt = loop.run({}, raw_prompt=batch["raw_prompt"][0])
            loop.loop.run_until_complete(asyncio.wait_for(prompt, PATIENCE_S))
        except PromptMade:
            found["kept"].append(name)
            why = find_difference(row, batch["raw_prompt"][0])
            found["altered"] |= {name: why} if why else {}
        except Exception as error:
            found["raised"][name] = explain(error)
    return found


def find_difference(row: dict[str, Any], messages: Any) -> str:
    contents = [message["content"] for message in messages]
    parts = [part for content in contents if not isinstance(content, str) for part in content]
    text = "".join([*(part.get("text", "") for part in parts), *(one for one in contents if isinstance(one, str))])
    return compare_images(len(row.get("images") or ()), sum(part["type"] == "image" for part in parts), text)


def make_judge(model: Path) -> Judge:
    import_torchvision()  # before verl's image helper imports it
    from verl.utils import hf_processor

    processor = hf_processor(str(model))

    def judge(folder: Path, settings: Settings) -> Fates:
        loop = make_loop(processor, settings.get("max_prompt_length", 1024))
        chosen = load(folder, settings, processor)
        found = try_rows(chosen, loop)
        whole = load(folder, {**settings, "filter_overlong_prompts": False}, processor)
        if len(whole) > len(chosen):
            there, why = {*found["kept"], *found["raised"]}, try_rows(whole, loop)["raised"]
            names = [name for name in name_rows(whole.dataframe) if name not in there]
            found["dropped"] = {name: why.get(name, "?") for name in names}
        return found

    return judge


if __name__ == "__main__":
    run(sys.argv[1:], make_judge)
