"""Gates under which every task asks about rooms whose walls are noise and show no straight line."""

from __future__ import annotations

from vgbench_gen.core.gates import Gates, TaskGates


def without_lines(gates: Gates) -> Gates:
    """The same gates, but cameras are asked about in all kinds, whatever the lines of an image say."""
    own = {"undecided_max": 1e9, "centres_of_frame": 1}
    return Gates.model_validate(gates.model_dump() | {"camera_parameters": own})


def replace_section(gates: Gates, own: TaskGates) -> Gates:
    """The same gates with those of one task replaced."""
    return gates.model_copy(update={own.section: own})
