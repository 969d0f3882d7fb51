"""Observations on disk, under a digest of everything that they depend on."""

from __future__ import annotations

from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from vgbench_gen.agent.workers import Observation
from vgbench_gen.core.kept import KeptTexts

_OBSERVATION = TypeAdapter(Observation)
_OWNER = 0x56475453  # the SQLite application id of these files ("VGTS")


class ResultCache(KeptTexts):
    """A file with one row per call of a tool, created with its folder on first use. Errors are those of `KeptTexts`."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, _OWNER, "results of tools")

    def get(self, key: str) -> Observation | None:
        """The observation kept under a digest; None if there is none or the row is damaged."""
        try:
            return _OBSERVATION.validate_json(self.read(key) or b"")
        except ValidationError:
            return None

    def put(self, key: str, observation: Observation) -> None:
        """Keep an observation under a digest."""
        self.write(key, _OBSERVATION.dump_json(observation))
