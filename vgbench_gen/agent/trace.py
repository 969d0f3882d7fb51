"""What an agent did for one question, as data: what its core model said, what tools gave, what failed.

A trace holds no time and no price, so that the same replies and results give the same bytes.
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
    """One question's way to its answer."""

    kind: str
    """react or plan-execute."""
    mode: str
    """sane or official."""
    core: str
    """The core model, by its spec."""
    tiers: tuple[str, ...]
    """Of the tools that it had."""
    question: str = ""
    """The words that were asked."""
    steps: list[dict[str, Any]] = field(default_factory=list)
    """In order: {"step": "core", "role", "text", ...} or {"step": "tool", "name", "arguments", "values", ...}."""
    failures: Counter[str] = field(default_factory=Counter)
    """How often what failed: plan_unreadable, step_unreadable, unknown_tool, wrong_arguments, tool_error, timeout,
    crash, too_many_actions, turns_spent, attempts_spent."""
    answer: str = ""
    """What is handed on as the reply."""
    watch: Watch | None = None
    """Called with each step as it is added."""

    def add_reply(self, role: str, reply: Reply) -> None:
        """The core model said something."""
        self._add(
            {
                "step": "core",
                "role": role,
                "text": reply.text,
                "finish_reason": reply.finish_reason,
                "request_digest": reply.request_digest,
            }
        )

    def add_observation(self, seen: Observation, made: tuple[str, ...] = ()) -> None:
        """A tool was called; `made` names the images that it made."""
        step: dict[str, Any] = {"step": "tool", "name": seen.name, "arguments": dict(seen.arguments)}
        if seen.failure:
            self.failures[seen.failure] += 1
            step |= {"failure": seen.failure, "message": seen.message}
        else:
            step |= {"values": dict(seen.values)}
        self._add(step | ({"images": list(made)} if made else {}))

    def _add(self, step: dict[str, Any]) -> None:
        self.steps.append(step)
        if self.watch is not None:
            self.watch(step)

    def to_json(self, book: ImageBook) -> dict[str, Any]:
        """All of it, with the images by name, digest, size and who made them."""
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

    def count_calls(self) -> Mapping[str, int]:
        """Calls by tool."""
        return Counter(step["name"] for step in self.steps if step["step"] == "tool")
