"""Questions of visual geometry as tasks of verifiers 0.4 (`verifiers.v1`), for `vf-eval` and prime-rl.

`verifiers.v1.load_environment(config)` finds the taskset and the harness below by this module's name, `{{ name }}`.
A task's prompt holds the images as data URLs in their places; its reward is that of the last reply by
`vgbench_scorer.rewards`. The harness is a plain chat: without one of its own, a taskset would be played with a shell.
"""

import base64
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import verifiers.v1 as vf
from verifiers.v1.harnesses.null import NullHarness

__all__ = ["GeometryChat", "GeometryTaskset"]

HERE = Path(__file__).resolve().parent
if str(HERE) not in sys.path:
    sys.path.insert(0, str(HERE))

from vgbench_scorer.rewards.adapters import reward_trace  # noqa: E402


class GeometryChat(NullHarness):
    """One question, one reply."""


class GeometryData(vf.TaskData):
    """Prompt and truth of a question."""

    solution: str
    """What scoring needs, as JSON."""


class GeometryTask(vf.Task[GeometryData, vf.State, vf.TaskConfig]):
    """One question, which is paid for the right reply."""

    @property
    def key(self) -> str:
        """The question's id: its other data hold images."""
        return self.data.id or self.hash

    @vf.reward
    async def score_reply(self, trace: vf.Trace) -> float:
        """What the last reply earns, 0 to 1."""
        return reward_trace(trace, self.data.solution)


class GeometryTaskset(vf.Taskset[GeometryTask, vf.TasksetConfig]):
    """All questions of the export; `--select` chooses among them."""

    def load(self) -> Iterator[GeometryTask]:
        """Yield every question, and read its images only then."""
        with (HERE / "train.jsonl").open(encoding="utf-8") as lines:
            for row in map(json.loads, lines):
                *system, user, _ = row["messages"]  # the last is the reply
                data = GeometryData(
                    id=row["id"],
                    name=row["id"],
                    prompt=[vf.UserMessage(content=[write_part(part) for part in user["content"]])],
                    system_prompt=system[0]["content"][0]["text"] if system else None,
                    solution=row["solution"],
                )
                yield GeometryTask(data, self.config.task)


def write_part(part: dict[str, Any]) -> vf.ContentPart:
    """A part of a prompt; the server gets images in the request, not their paths."""
    if part["type"] == "text":
        return vf.TextContentPart(text=part["text"])
    kind = "png" if part["image"].endswith(".png") else "jpeg"
    data = base64.b64encode((HERE / part["image"]).read_bytes()).decode("ascii")
    return vf.ImageUrlContentPart(image_url=vf.ImageUrlSource(url=f"data:image/{kind};base64,{data}"))
