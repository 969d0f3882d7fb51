"""Composing a whole benchmark anew: facts measured, pictures drawn before; and drawing its pictures."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path

from bench.copies import copy_scenes
from bench.session import Session
from bench.table import Row, seconds
from vgbench_gen.executors import Engine
from vgbench_gen.pipeline.build import recompose
from vgbench_gen.store import pictures
from vgbench_gen.store.dataset import load
from vgbench_gen.store.media import MediaStore
from vgbench_gen.store.picture_cache import PictureCache
from vgbench_gen.store.pictures import Picture

ITEMS = 6_000
_FEW = 40  # base images whose pictures are drawn
_UNLIMITED = 10**6


def rows(session: Session) -> list[Row]:
    """One row, scaled to `ITEMS` where there are more or fewer."""
    built = session.built(2)
    recipe, out, have = session.recipe, built.out, len(load(built.out))
    copies = ""
    if have < ITEMS:
        out = session.scratch / "compose"
        number = -(-ITEMS // max(have, 1))
        copied(built.out, out, number)
        recipe = recipe.model_copy(update={"items_per_cell": _UNLIMITED}) if not recipe.items else recipe
        copies = f" from {number} copies of the measured scenes under other names"
    workers = min(2, len(os.sched_getaffinity(0)))

    if copies:  # pictures that only the larger set asks for
        recompose(recipe, out, Engine("local", workers), allow_short=True)
    began = time.perf_counter()
    recompose(recipe, out, Engine("local", workers), allow_short=True)
    spent = time.perf_counter() - began
    items = len(load(out))
    beside = f"{items} items{copies} in {spent:.1f} s with {workers} workers, {1e3 * spent / max(items, 1):.2f} ms each"
    return [
        Row(f"composing {ITEMS:,} items anew", spent * ITEMS / max(items, 1), "s", beside, at_most=10),
        _draw_pictures(built.out, session.scratch / "drawn"),
    ]


def _draw_pictures(built: Path, scratch: Path) -> Row:
    """Processor time of drawing all pictures of a build as they are written, over that of what cannot be saved:
    decoding each base image once and encoding each picture once."""
    media, decode = MediaStore(built / "media"), pictures.decode
    shown = {p.key(): p for item in load(built) for p in map(Picture.from_json, item.evidence["pictures"])}
    drawn = sorted((p for p in shown.values() if p.ops or not p.base.endswith(".jpg")), key=lambda p: p.base)
    bases = {picture.base for picture in drawn}
    images = {base: decode(media.get(base)) for base in sorted(bases)[:_FEW]}
    few = [picture for picture in drawn if picture.base in images]
    made = [pictures.apply(picture, images[picture.base]) for picture in few]
    least_s = seconds(lambda: [decode(media.get(base)) for base in images])
    least_s += seconds(lambda: [pictures.encode_jpeg(image) for image in made])
    store = MediaStore(scratch)
    for base in images:
        store.put(media.get(base), base.rpartition(".")[2])
    cache = PictureCache(None, store)
    with store.batch():
        drawn_s = seconds(lambda: [cache.name(picture) for picture in few])
    beside = f"{len(few)} pictures of {len(images)} images in {drawn_s:.2f} s, files included; {least_s:.2f} s"
    return Row("drawing pictures / decoding each image and encoding", drawn_s / least_s, "x", beside, at_most=1.7)


def copied(source: Path, out: Path, number: int) -> None:
    """The facts of a build so many times over, each time as other scenes; images are shared."""
    out.mkdir()
    (out / "media").symlink_to(source / "media")
    shutil.copy(source / "pictures.sqlite", out)
    for k in range(number):
        copy_scenes(source, out, str(k))
