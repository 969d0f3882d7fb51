"""A whole build, against nothing but the codecs of the frames it used and the pictures it wrote; and 2 workers."""

from __future__ import annotations

import time

from bench.session import Built, Session
from bench.table import Row
from vgbench_gen.core.errors import FrameError, SceneError
from vgbench_gen.scenes.base import loaders
from vgbench_gen.scenes.view import choose_keyframes
from vgbench_gen.store import pictures
from vgbench_gen.store.dataset import load
from vgbench_gen.store.media import MediaStore
from vgbench_gen.store.pictures import Picture


def rows(session: Session) -> list[Row]:
    """One worker against pure codec time."""
    built = session.built(1)
    decoded_s, frames = _decoding(session)
    coded_s, shown, size, items = _encoding(built)
    pure_s = decoded_s + coded_s
    beside = (
        f"{built.seconds:.1f} s ({built.cpu_s:.1f} s of processor time) for {items} items of recipe "
        f"{session.recipe_name}, with images {size / 1e3 / max(items, 1):.0f} kB each; codecs {pure_s:.1f} s: "
        f"{frames} keyframes in {decoded_s:.1f} s, {shown} pictures in {coded_s:.1f} s"
    )
    rate = f"{items} items of {len(session.recipe.task_names) or 'all'} tasks in {built.cpu_s:.1f} s"
    return [
        Row("build, 1 worker / pure codec time", built.seconds / pure_s, "x", beside, at_most=1.5),
        Row("items with images per second of processor time", items / built.cpu_s, "/s", rate),
    ]


def worker_rows(session: Session) -> list[Row]:
    """Two workers against one, both from nothing."""
    one, two = session.built(1), session.built(2)
    beside = f"{one.seconds:.1f} s and {two.seconds:.1f} s, start of the program and its workers included"
    return [Row("build, 2 workers against 1", one.seconds / two.seconds, "x", beside, at_least=1.8)]


def _decoding(session: Session) -> tuple[float, int]:
    """(seconds to decode colour and depth of every keyframe once by its loader, keyframes)."""
    spent, frames = 0.0, 0
    for ref in session.refs:
        try:
            with loaders[ref.dataset].open(ref) as scene:
                used = [scene.frames[i] for i in choose_keyframes(scene.frames, session.recipe.gates.frame)]
                began = time.perf_counter()
                for frame in used:
                    try:
                        frame.color(), frame.depth_m()
                    except FrameError:
                        continue  # a damaged frame is damaged for everybody
                spent += time.perf_counter() - began
                frames += len(used)
        except SceneError:
            continue
    return spent, frames


def _encoding(built: Built) -> tuple[float, int, int, int]:
    """(seconds to encode every delivered picture once, pictures, bytes of the items, items)."""
    items = load(built.out)
    media = MediaStore(built.out / "media")
    shown = {p.key(): p for item in items for p in map(Picture.from_json, item.evidence["pictures"])}
    spent = 0.0
    for picture in shown.values():
        if picture.ops or not picture.base.endswith(".jpg"):
            image = pictures.apply(picture, pictures.decode(media.get(picture.base)))
            began = time.perf_counter()
            pictures.encode_jpeg(image)
            spent += time.perf_counter() - began
    size = sum(path.stat().st_size for path in (built.out / "items").iterdir())
    return spent, len(shown), size, len(items)
