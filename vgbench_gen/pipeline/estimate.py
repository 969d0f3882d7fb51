"""What a build will need: time, memory and disk, from a few scenes and measured rates."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from vgbench_gen.core.errors import VGBenchError
from vgbench_gen.pipeline.measure import list_tasks
from vgbench_gen.pipeline.recipe import Recipe
from vgbench_gen.scenes._keyframes import choose_keyframes
from vgbench_gen.scenes.base import SceneRef
from vgbench_gen.scenes.opening import lay_to_scene, open_scene

# Measured on real captures with 2 to 57 keyframes of 640 to 1920 columns, rounded up; docs/cluster.md says how.
_SCENE_S, _KEYFRAME_S, _PAIR_S = 3.0, 0.2, 0.0002
_WORKER_BYTES, _KEYFRAME_BYTES = 520 * 10**6, 4 * 10**6
_FRAME_ON_DISK, _PICTURE_ON_DISK = 10**6, 40 * 10**4
# A question's picture lies in media/, in items/, and in the new items/ before it takes the old one's place.
_COPIES = 3
_SAMPLE = 12


@dataclass(frozen=True, slots=True)
class BuildEstimate:
    """What a build needs."""

    scenes: int
    keyframes: int
    items: int
    """Rows, at most."""
    cpu_s: float
    """Core seconds of measuring."""
    disk_bytes: int
    spool_bytes: int
    """Bytes of one worker in the folder for temporary files."""
    worker_bytes: int
    """Peak memory of a worker in bytes."""


def estimate(refs: Sequence[SceneRef], recipe: Recipe) -> BuildEstimate:
    """Open up to twelve scenes per dataset, from the largest to the smallest, and count for all of them.

    Scenes that cannot be opened count nothing; the build will drop them.
    """
    keyframes, most = 0.0, 0
    seconds = 0.0
    for dataset, count in sorted(Counter(ref.dataset for ref in refs).items()):
        seen = []
        for ref in _spread([ref for ref in refs if ref.dataset == dataset]):
            try:
                with lay_to_scene(ref), open_scene(ref) as scene:
                    seen.append(len(choose_keyframes(scene.frames, recipe.gates.frame)))
            except VGBenchError:
                continue
        if seen:
            keyframes += sum(seen) * count / len(seen)
            seconds += sum(map(scene_seconds, seen)) * count / len(seen)
            most = max(most, *seen)
    formats = {task.name: len(task.formats) for task in list_tasks(recipe)}
    facts = sum(count * recipe.find_most_facts(name) for name, count in formats.items())
    items = recipe.total or min(recipe.items_per_cell * sum(formats.values()), facts * len(refs))
    return BuildEstimate(
        scenes=len(refs),
        keyframes=round(keyframes),
        items=items,
        cpu_s=seconds,
        disk_bytes=round(keyframes) * _FRAME_ON_DISK + items * _PICTURE_ON_DISK * _COPIES,
        spool_bytes=most * _FRAME_ON_DISK,
        worker_bytes=_WORKER_BYTES + most * _KEYFRAME_BYTES,
    )


def scene_seconds(keyframes: int) -> float:
    """Core seconds of measuring one scene."""
    return _SCENE_S + _KEYFRAME_S * keyframes + _PAIR_S * keyframes * (keyframes - 1)


def _spread(refs: Sequence[SceneRef]) -> list[SceneRef]:
    ordered = sorted(refs, key=lambda ref: (-ref.size_bytes, ref.scene_id))
    step = max(1, -(-len(ordered) // _SAMPLE))
    return ordered[::step]
