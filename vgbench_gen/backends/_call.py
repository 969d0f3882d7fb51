"""The request that `Served` passes to a backend's `_send`, and the failure of one attempt."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from vgbench_gen.backends._images import SentImage
from vgbench_gen.backends.base import Role, Settings


@dataclass(frozen=True, slots=True)
class Turn:
    """A message with prepared images."""

    role: Role
    parts: tuple[str | SentImage, ...]


@dataclass(frozen=True, slots=True)
class Call:
    """A request that is ready to be sent."""

    turns: tuple[Turn, ...]
    """The messages; the first one is the system prompt of the settings, if any."""
    settings: Settings
    digest: str
    edit: bool = False
    """Whether the endpoint for image editing is used."""

    @property
    def images(self) -> tuple[SentImage, ...]:
        """All images in the order in which the model reads them."""
        return tuple(part for turn in self.turns for part in turn.parts if isinstance(part, SentImage))

    @property
    def text(self) -> str:
        """All texts, joined by line breaks."""
        return "\n".join(part for turn in self.turns for part in turn.parts if isinstance(part, str))


class Failed(Exception):
    """One attempt failed.

    Args:
        kind: as in `BackendError`.
        message: where, what was found, what to do.
        again: whether to retry: never; later (the fault may pass); slower (too many requests).
        wait_s: the wait that the provider asks for, if any.
        charged: whether the attempt may have cost money.
        for_all: whether every other request would fail too, so that no more are sent.

    Attributes:
        started_s: time of sending on the clock of `Served`.
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
