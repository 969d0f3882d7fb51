"""All datasets below some folders at once."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Set
from pathlib import Path

from vgbench_gen.core.errors import SceneError, VGBenchError
from vgbench_gen.scenes import base
from vgbench_gen.scenes._leftovers import describe_unplaced, find_leftovers
from vgbench_gen.scenes.base import Scene, SceneRef
from vgbench_gen.scenes.opening import lay_to_scene, open_scene
from vgbench_gen.scenes.walk import tell_once

OnError = Callable[[SceneRef, VGBenchError], None]

_MAX_LEFTOVERS = 20
_log = logging.getLogger("vgbench_gen.scenes")


def discover(
    *roots: Path | str, datasets: Iterable[str] | None = None, on_error: OnError | None = None
) -> list[SceneRef]:
    """Every scene below the roots once, sorted by dataset and id; nothing is opened.

    A root may be a dataset's own folder, a parent of several, or one scene. Links that leave their root are not
    followed. Of two different copies of a scene the first (by root, then path) counts; the other goes to `on_error`.
    What looks like a scan and is none of any dataset is named in the log.

    Args:
        roots: folders or archives. datasets: names of the loaders to ask; default: all.
        on_error: called with what cannot be listed; default: a warning in the log.

    Raises:
        SceneError: a root does not exist.
        UnknownNameError: a dataset is not registered.
    """
    asked = {name: base.loaders[name] for name in sorted(set(base.loaders.names() if datasets is None else datasets))}
    refs: list[SceneRef] = []
    for root in map(Path, roots):
        if not root.exists():
            raise SceneError(root, "nothing there", "a folder with raw scenes", "Check the path.")
        for name, loader in asked.items():
            whole = SceneRef(name, "", root)
            try:
                with lay_to_scene(whole):
                    refs += loader.discover(root)
            except VGBenchError as error:
                _tell(on_error, whole, error)
    taken = {ref.path.resolve() for ref in refs if not base.loaders[ref.dataset].is_general}
    refs = [ref for ref in refs if not _is_left_to_others(ref, taken)]
    found: dict[tuple[str, str], SceneRef] = {}
    for ref in refs:
        first = found.setdefault((ref.dataset, ref.scene_id), ref)
        if first.path.resolve() != ref.path.resolve():
            remedy = "Give each scene its own id, or one copy only."
            _tell(on_error, ref, SceneError(ref.path, "the scene again", f"it only at {first.path}", remedy))
    for root in map(Path, roots if found and datasets is None else ()):
        leftovers = list(find_leftovers(root, refs))
        for path, what in leftovers[:_MAX_LEFTOVERS]:
            tell_once(path, what)
        if len(leftovers) > _MAX_LEFTOVERS:
            tell_once(root, f"{len(leftovers) - _MAX_LEFTOVERS} more such places")
    return [found[key] for key in sorted(found)]


def open_scenes(
    *roots: Path | str, datasets: Iterable[str] | None = None, on_error: OnError | None = None
) -> Iterator[Scene]:
    """Open the scenes below the roots one after the other, sorted by dataset and id.

    A scene that cannot be opened goes to `on_error` and the next one follows. Scenes are opened when asked for;
    close each one (`with scene:`) or let go of it.

    Args and raises: as `discover`.
    """
    refs = discover(*roots, datasets=datasets, on_error=on_error)
    if not refs:
        _log.warning("%s", describe_unplaced(*map(Path, roots)))
    for ref in refs:
        try:
            scene = open_scene(ref)
        except VGBenchError as error:
            _tell(on_error, ref, error)
            continue
        yield scene


def _is_left_to_others(ref: SceneRef, taken: Set[Path]) -> bool:
    """Whether a general loader found the scene where, or below where, another loader takes one."""
    path = ref.path.resolve()
    return base.loaders[ref.dataset].is_general and not taken.isdisjoint((path, *path.parents))


def _tell(on_error: OnError | None, ref: SceneRef, error: VGBenchError) -> None:
    if on_error is None:
        _log.warning("%s %s left out: %s", ref.dataset, ref.scene_id, error)
    else:
        on_error(ref, error)
