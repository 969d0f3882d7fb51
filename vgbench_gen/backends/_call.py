"""What passes between the engine and the one call that differs from backend to backend."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from vgbench_gen.backends._images import SentImage
from vgbench_gen.backends.base import Role, Settings


@dataclass(frozen=True, slots=True)
class Turn:
    """A message as it is sent."""

    role: Role
    parts: tuple[str | SentImage, ...]
    """Words and prepared images in their order."""


@dataclass(frozen=True, slots=True)
class Call:
    """A request that is ready to be sent."""

    turns: tuple[Turn, ...]
    """The messages, the system prompt of the settings first where there is one."""
    settings: Settings
    digest: str
    edit: bool = False
    """Whether its images are to be changed, by an endpoint that does nothing else."""

    @property
    def images(self) -> tuple[SentImage, ...]:
        """All images in the order in which the model reads them."""
        return tuple(part for turn in self.turns for part in turn.parts if isinstance(part, SentImage))

    @property
    def text(self) -> str:
        """All words, one part a line."""
        return "\n".join(part for turn in self.turns for part in turn.parts if isinstance(part, str))


class Failed(Exception):
    """One attempt failed.

    Args:
        kind: as in `BackendError`.
        message: where, what was found, what to do.
        again: never; later (the fault may pass); slower (too many requests).
        wait_s: what the provider asks to wait, if it does.
        charged: it may have been paid for all the same.
        for_all: every other request will fail likewise, so none is sent any more.

    Attributes:
        started_s: when the attempt was sent, by the engine's clock.
    """

    started_s = 0.0

    def __init__(
        self,
        kind: str,
        message: str,
        again: Literal["never", "later", "slower"] = "never",
        wait_s: float | None = None,
        charged: bool = False,
        for_all: bool = False,
    ) -> None:
        super().__init__(kind, message)
        self.kind, self.message, self.again, self.wait_s = kind, message, again, wait_s
        self.charged, self.for_all = charged, for_all
