"""Raw RGB-D scenes on disk: one loader per dataset, found by name, and everything below a folder at once."""

from __future__ import annotations

from vgbench_gen.scenes._discovery import OnError, discover, open_scenes
from vgbench_gen.scenes._leftovers import describe_unplaced

__all__ = ["OnError", "describe_unplaced", "discover", "open_scenes"]
