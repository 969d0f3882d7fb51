"""A small build of all ten tasks on two rendered scenes, and the same without pixels."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tests.pipeline.same_bytes import small_recipe
from tests.room_writer import write_ca1m, write_wildrgbd
from tests.scene_factory import room_scene
from vgbench_gen.pipeline.build import build
from vgbench_gen.publish.redact_pixels import FileFacts, make_published_row
from vgbench_gen.samples import encode
from vgbench_gen.store.dataset import load
from vgbench_gen.store.media import MediaStore
from vgbench_gen.store.pictures import decode
from vgbench_gen.store.schema import PUBLISHED, Row
from vgbench_gen.store.shards import iterate_rows, write_embedded_rows


def write_scans(root: Path) -> None:
    """One CA-1M tar (PNG colour, shrunk by `build_small`) and one WildRGB-D scene whose JPEG frames pass through."""
    write_ca1m(root, room_scene(seed=1, frames=7, width=240, height=180))
    scene = write_wildrgbd(root, room_scene(seed=3, frames=5, width=200, height=150, dataset="wildrgbd"))
    for path in sorted((scene / "rgb").glob("*.png")):
        path.with_suffix(".jpg").write_bytes(encode.encode_jpeg(decode(path.read_bytes())))
        path.unlink()


def build_small(scans: Path, out: Path) -> None:
    recipe = small_recipe()
    frame = recipe.gates.frame.model_copy(update={"long_side_px": 200})
    recipe = recipe.model_copy(update={"gates": recipe.gates.model_copy(update={"frame": frame})})
    assert build(recipe, scans, out).composed.total > 50


def strip(source: Path, out: Path, travels: Callable[[Row], bool] = lambda row: False) -> Path:
    """The dataset as `vgbench publish` writes it, with the manifest beside it."""
    media, memory = MediaStore(source / "media"), FileFacts()
    rows = (make_published_row(row, media, travels(row), memory) for row in iterate_rows(load(source).paths))
    write_embedded_rows(out / "items", rows, PUBLISHED, "test")
    (out / "manifest.json").write_bytes((source / "manifest.json").read_bytes())
    return out
