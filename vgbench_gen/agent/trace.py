"""The record of an agent's work on one question: replies of the core model, observations, failures.

A trace has no times and no prices, so that the same replies and results give the same bytes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from vgbench_gen.agent.images import ImageBook
from vgbench_gen.agent.workers import Observation
from vgbench_gen.backends.base import Reply

VERSION = 1
Watch = Callable[[Mapping[str, Any]], None]


@dataclass(slots=True)
class Trace:
    """The trace of one question."""

    kind: str
    """react or plan-execute."""
    mode: str
    """sane or official."""
    core: str
    """The spec of the core model."""
    tiers: tuple[str, ...]
    """The tiers of the agent's tools."""
    question: str = ""
    """The text of the question."""
    steps: list[dict[str, Any]] = field(default_factory=list)
    """In order: {"step": "core", "role", "text", ...} or {"step": "tool", "name", "arguments", "values", ...}."""
    failures: Counter[str] = field(default_factory=Counter)
    """Number of failures of each kind: plan_unreadable, step_unreadable, unknown_tool, wrong_arguments, tool_error,
    timeout, crash, too_many_actions, turns_spent, attempts_spent."""
    answer: str = ""
    """The text of the agent's reply."""
    watch: Watch | None = None
    """Called with each new step."""

    def add_reply(self, role: str, reply: Reply) -> None:
        """Add a reply of the core model to the prompt of a role, such as "planner"."""
        self._add(
            {
                "step": "core",
                "role": role,
                "text": reply.text,
                "finish_reason": reply.finish_reason,
                "request_digest": reply.request_digest,
            }
        )

    def add_observation(self, observation: Observation, images: tuple[str, ...] = ()) -> None:
        """Add a call of a tool, with the names of the images that it made."""
        step: dict[str, Any] = {"step": "tool", "name": observation.name, "arguments": dict(observation.arguments)}
        if observation.failure:
            self.failures[observation.failure] += 1
            step |= {"failure": observation.failure, "message": observation.message}
        else:
            step |= {"values": dict(observation.values)}
        self._add(step | ({"images": list(images)} if images else {}))

    def _add(self, step: dict[str, Any]) -> None:
        self.steps.append(step)
        if self.watch is not None:
            self.watch(step)

    def to_json(self, book: ImageBook) -> dict[str, Any]:
        """The trace as JSON, with name, digest, size and maker of each image."""
        images = [
            {"name": image.name, "digest": image.digest, "size_px": list(image.size_px)}
            | ({"made_by": image.made_by} if image.made_by else {})
            for image in book
        ]
        return {
            "version": VERSION,
            "kind": self.kind,
            "mode": self.mode,
            "core": self.core,
            "tiers": list(self.tiers),
            "question": self.question,
            "images": images,
            "steps": self.steps,
            "failures": dict(sorted(self.failures.items())),
            "answer": self.answer,
        }
