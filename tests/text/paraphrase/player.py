"""A model that knows the good rewordings and makes up the rest, and a judge; both answer from the prompt alone."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.text.paraphrase.good_rewordings import GOOD
from vgbench_gen.backends._call import Call
from vgbench_gen.backends.scripted import Scripted, ScriptLine
from vgbench_gen.backends.spec import BackendOptions
from vgbench_gen.text.bank import load_shipped
from vgbench_gen.text.paraphrase import rules

IDS = {(p.question, p.context): name for name, p in load_shipped().items()}


def between_fences(prompt: str) -> dict[str, Any]:
    """The text that a prompt is about."""
    fence = rules.load_prompts().fence
    return dict(json.loads(prompt.split(fence)[1]))


def answer(prompt: str) -> str:
    """What a good model says; to the judge's question it always says yes."""
    about = between_fences(prompt)
    if "rewording" in about:
        return 'Surely.\n{"same": true, "reason": "Both ask for the same."}'
    name = IDS.get((about["question"], about["context"]), "")
    texts = [{"question": t.question, "context": t.context} for t in GOOD.get(name, [])]
    # A model wraps its answer and mixes bad ones in.
    texts.insert(0, {"question": about["question"], "context": about["context"]})
    return f"```json\n{json.dumps({'rewordings': texts})}\n```"


def nonsense(prompt: str) -> str:
    """What a model of random weights says."""
    return "the the {{ image camera ] , x x 12 the"


@dataclass
class Played:
    """A scripted backend that keeps the prompts it was sent."""

    say: Callable[[str], str] = answer
    options: BackendOptions = field(default_factory=BackendOptions)
    prompts: list[str] = field(default_factory=list)
    usage: tuple[int, int] = (300, 100)

    @property
    def backend(self) -> Scripted:
        return Scripted("scripted:played", "played", self._play, self.options)

    def _play(self, call: Call) -> ScriptLine:
        self.prompts.append(call.text)
        return ScriptLine(reply=self.say(call.text), usage=self.usage)
