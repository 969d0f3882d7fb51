"""Questions of visual geometry for inspect_ai: `inspect eval {{ name }}.py --model PROVIDER/MODEL`.

Prompts, order of images and settings are those of `vgbench eval`; replies are read and scored by the copy of its scorer
in `vgbench_scorer`. A log of a run goes back with `vgbench compare DATASET --replies LOG.eval`.
"""

import json
import sys
from pathlib import Path
from typing import Any

from inspect_ai import Task, task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import ChatMessage, ChatMessageSystem, ChatMessageUser, ContentImage, ContentText, GenerateConfig
from inspect_ai.scorer import Score, Scorer, Target, mean, scorer, stderr
from inspect_ai.solver import TaskState, generate

HERE = Path(__file__).resolve().parent
if str(HERE) not in sys.path:
    sys.path.insert(0, str(HERE))

from vgbench_scorer import grade  # noqa: E402

MADE = json.loads((HERE / "export.json").read_text("utf-8"))
SETTINGS = MADE["settings"]
# An interval over questions would be too narrow: those of one scene share their truth.
METRICS = [mean(), stderr(cluster="scene")]


def sample(row: dict[str, Any]) -> Sample:
    """One question; `metadata` holds what scoring and the way back need."""
    content = [
        ContentText(text=part["text"]) if part["type"] == "text" else ContentImage(image=str(HERE / part["path"]))
        for part in row["parts"]
    ]
    messages: list[ChatMessage] = [ChatMessageUser(content=content)]
    if SETTINGS["system"]:
        messages.insert(0, ChatMessageSystem(content=SETTINGS["system"]))
    return Sample(
        input=messages,
        target=row["answer"],
        id=row["id"],
        metadata={name: value for name, value in row.items() if name not in ("parts", "id")},
    )


@scorer(metrics={"score": METRICS, "official": METRICS, "strict": METRICS})
def vgbench() -> Scorer:
    """score: as we read a reply. official: as the published script does. strict: of the last line alone."""

    async def score(state: TaskState, target: Target) -> Score:
        found = grade(state.metadata["case"], state.output.completion)
        read = found["extracted"]
        return Score(
            value={name: found[name] for name in ("score", "official", "strict")},
            answer=None if read is None else str(read),
            explanation=found["outcome"] + (f" ({found['status']})" if found["outcome"] == "unreadable" else ""),
            metadata=found,
        )

    return score


@task(name="{{ name }}")
def questions() -> Task:
    """All questions of the export; `--limit` and `--sample-id` of inspect choose among them."""
    with (HERE / "samples.jsonl").open(encoding="utf-8") as lines:
        samples = [sample(json.loads(line)) for line in lines]
    return Task(
        dataset=MemoryDataset(samples, name="{{ name }}", location=str(HERE / "samples.jsonl")),
        solver=generate(),
        scorer=vgbench(),
        config=GenerateConfig(
            temperature=SETTINGS["temperature"],
            max_tokens=SETTINGS["max_tokens"],
            reasoning_effort=SETTINGS["reasoning_effort"] or None,
        ),
        metadata={"dataset": MADE["dataset"], "benchmark": MADE["benchmark"], "prompt_set": MADE["prompt_set"]},
    )
