"""Gates under which every task asks about rooms whose walls are noise and show no straight line."""

from __future__ import annotations

from vgbench_gen.core.gates import Gates
from vgbench_gen.tasks.gates import CameraGates


def without_lines(gates: Gates) -> Gates:
    """The same gates, but cameras are asked about whatever the lines of an image say."""
    return gates.with_section(CameraGates(undecided_max=1e9))
