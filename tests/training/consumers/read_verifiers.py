"""What verifiers does with each row of exports: `python read_verifiers.py FOLDER...`, in its environment.

The environment is loaded by `verifiers.v1.load_environment`, every task is made and written as a request, and its own
reply is scored as at the end of a rollout. Prints one JSON object a folder: `kept` (ids), `altered` (those of them
whose request or reward is not that of the row), `dropped` and `raised` (id -> reason).
"""

from __future__ import annotations

import asyncio
import base64
import io
import json
import os
import sys
from pathlib import Path
from typing import Any

from fates import explain, print_fates


def judge(folder: Path) -> dict[str, Any]:
    """The fate of every row of a folder."""
    import verifiers.v1 as vf

    os.chdir(folder)
    rows = [json.loads(line) for line in Path("train.jsonl").read_text("utf-8").splitlines()]
    found: dict[str, Any] = {"kept": [], "altered": {}, "dropped": {}, "raised": {}}
    (module,) = (path.stem for path in folder.glob("vgbench*.py"))
    for name in [name for name in sys.modules if name.partition(".")[0] in (module, "vgbench_scorer")]:
        del sys.modules[name]  # of the folder before
    sys.path.insert(0, str(folder))
    try:
        environment = vf.load_environment(vf.resolve_env_config({"taskset": {"id": module}}))
        tasks = {task.data.id: task for task in environment.taskset}
    except Exception as error:
        return found | {"raised": {row["id"]: explain(error) for row in rows}}
    for row in rows:
        name = row["id"]
        if name not in tasks:
            found["dropped"][name] = "no such task"
            continue
        try:
            said = compare(environment, tasks[name], row)
        except Exception as error:
            found["raised"][name] = explain(error)
            continue
        found["kept"].append(name)
        if said:
            found["altered"][name] = said
    return found


def compare(environment: Any, task: Any, row: dict[str, Any]) -> str:
    """How the request or the reward of a task differ from the row; "" where they do not."""
    from PIL import Image
    from verifiers.v1.dialects.chat import message_to_wire

    (harness,) = environment._harnesses.values()
    system, prompt = harness.resolve_prompt(task.data)
    *start, user, reply = ([write_part(part) for part in message["content"]] for message in row["messages"])
    if [{"type": "text", "text": system}] * (system is not None) != [part for parts in start for part in parts]:
        return "another system prompt"
    (message,) = (message_to_wire(message) for message in prompt)
    if message["content"] != user:
        return "other parts"
    for part in message["content"]:
        if part["type"] == "image_url":  # servers open images, verifiers does not
            with Image.open(io.BytesIO(base64.b64decode(part["image_url"]["url"].partition(";base64,")[2]))) as image:
                image.load()
    replies = (reply[0]["text"], "", "none of these")
    rewards = [asyncio.run(find_reward(environment, task, words)) for words in replies]
    return "" if rewards == [1.0, 0.0, 0.0] else f"rewards of the reply, of nothing and of other words are {rewards}"


def write_part(part: dict[str, Any]) -> dict[str, Any]:
    """A part of a row's message as OpenAI's interface has it."""
    if part["type"] == "text":
        return part
    kind = "png" if part["image"].endswith("png") else "jpeg"
    data = base64.b64encode(Path(part["image"]).read_bytes()).decode()
    return {"type": "image_url", "image_url": {"url": f"data:image/{kind};base64,{data}"}}


async def find_reward(environment: Any, task: Any, reply: str) -> float:
    """What a rollout that ends with this reply is paid."""
    import verifiers.v1 as vf

    trace = vf.Trace(
        task=vf.TraceTask(type=type(task).__name__, data=task.data, key=task.key, hash=task.hash),
        agent=vf.AgentInfo(config=environment.config.agent),
        nodes=[vf.MessageNode(message=vf.AssistantMessage(content=reply), sampled=True)],
    )
    await task.score(trace)
    return float(trace.reward)


if __name__ == "__main__":
    print_fates(judge, sys.argv[1:])
