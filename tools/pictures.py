"""Take the pictures of the documentation from a dataset built from sample scenes, in Chromium.

    vgbench browse build/demo --scenes build/demo-scenes
    vgbench scenes build/demo-scenes --pictures look
    python tools/pictures.py build/demo look docs/assets

The dataset needs a gallery, an audit and scores (`make demo`, `vgbench browse`, `vgbench eval`, `vgbench compare`).
"""

from __future__ import annotations

import io
import shutil
import sys
from pathlib import Path

from PIL import Image
from playwright.sync_api import Page, sync_playwright

from vgbench_gen.store.dataset import load

MAX_BYTES = 150_000
WIDTH_PX = 1100


def save(picture: Image.Image, path: Path) -> None:
    """Write a picture as a JPEG as good as its size in bytes allows."""
    picture.thumbnail((WIDTH_PX, 4 * WIDTH_PX), Image.Resampling.LANCZOS)
    for quality in range(88, 30, -4):
        data = io.BytesIO()
        picture.convert("RGB").save(data, "JPEG", quality=quality, optimize=True, progressive=True)
        if data.tell() <= MAX_BYTES:
            path.write_bytes(data.getvalue())
            print(f"{path}: {picture.width} x {picture.height}, {data.tell()} bytes, quality {quality}")
            return
    raise SystemExit(f"{path}: larger than {MAX_BYTES} bytes at every quality")


def take(page: Page, address: str, height_px: int, press: str = "") -> Image.Image:
    """A picture of the top of a page; press: a key to press first."""
    page.set_viewport_size({"width": WIDTH_PX, "height": height_px})
    page.goto(address)
    page.wait_for_timeout(1500)
    if press:
        page.keyboard.press(press)
        page.wait_for_timeout(2500)
    return Image.open(io.BytesIO(page.screenshot()))


def main() -> None:
    """Take all pictures but `ten-questions.jpg`, which `tools/hero.py` draws."""
    folder, look, out = (Path(name).resolve() for name in sys.argv[1:])
    item = min((item for item in load(folder) if item.task == "relative_pose" and item.options), key=lambda one: one.id)
    browser = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))))
    with sync_playwright() as playwright:
        page = playwright.chromium.launch(executable_path=browser, args=["--no-sandbox"]).new_page()
        gallery = f"file://{folder}/gallery"
        save(take(page, f"{gallery}/index.html", 900), out / "gallery.jpg")
        page.goto("about:blank")
        save(take(page, f"{gallery}/index.html#item={item.id}", 1250, "a"), out / "item.jpg")
        scene = min((folder / "gallery" / "scene").iterdir())
        save(take(page, f"file://{scene}", 900), out / "scene.jpg")
        save(take(page, f"file://{folder}/audit/index.html", 620), out / "audit.jpg")
        save(take(page, f"file://{folder}/scores/report/index.html", 900), out / "scores.jpg")
    drawn = sorted(look.rglob("*.png"))[0]
    save(Image.open(drawn), out / "depth-edges.jpg")


if __name__ == "__main__":
    main()
