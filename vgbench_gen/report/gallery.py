"""`vgbench browse`: a dataset as a static site that opens from disk and from any web server.

`index.html` reads `data/index.js` (one light column per property) and shows a page of cards; the record of an item
comes from `data/items-<k>.js`, a hundred items each, when it is looked at. Scene pages and plots are plain HTML with
inline SVG.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from vgbench_gen.core.types import Item
from vgbench_gen.quality.review.lines import digest_item
from vgbench_gen.report import gallery_plots
from vgbench_gen.report.charts import spread
from vgbench_gen.report.gallery_images import GalleryImages
from vgbench_gen.report.gallery_openers import choose_striking, find_sharpness, rate_opener
from vgbench_gen.report.gallery_plots import DIFFICULTIES
from vgbench_gen.report.gallery_rows import make_detail, shorten_question
from vgbench_gen.report.gallery_scenes import SceneNotes, draw_from_above, make_natural_key
from vgbench_gen.report.gallery_space import CloudPlan, Clouds, describe_space, write_clouds
from vgbench_gen.report.gallery_verdicts import read_audit, read_reviews
from vgbench_gen.report.header import GALLERY, PageHeader, find_home, refresh_headers
from vgbench_gen.report.site import Site
from vgbench_gen.store.dataset import Dataset, load

CHUNK = 100  # items per file of details


@dataclass(frozen=True, slots=True)
class GalleryReport:
    """What was made, and how large it is."""

    index: Path
    """The page to open."""
    items: int
    scenes: int
    images_referenced: int
    """The number of images that stand in the dataset's media/ alone."""
    images_own: int
    """The number of images that stand in the gallery."""
    images_missing: int
    """The number of images that are neither stored nor embedded."""
    image_bytes: int
    """The size in bytes of the images in the gallery."""
    bytes: int
    """The size in bytes of pages and data."""
    written: int
    """The number of files that were changed."""
    kept: int
    """The number of files that were left alone, because they already held the same bytes."""

    def to_json(self) -> dict[str, Any]:
        """The report as values that JSON can hold."""
        return {**asdict(self), "index": str(self.index)}


def make_gallery(
    dataset: Path,
    out: Path | None = None,
    *,
    standalone: bool = False,
    max_items: int = 0,
    scenes: Sequence[Path] = (),
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> GalleryReport:
    """Write the gallery of a dataset.

    Args:
        dataset: as `store.dataset.load` takes it.
        out: folder to write; `<dataset>/gallery` by default.
        standalone: put every image into the gallery, so that it can be moved.
        max_items: at most so many, spread evenly over the dataset; 0 for all.
        scenes: folders with the raw scans, from which views in space get points (see `gallery_space`); none without.
        progress: called with (items done, items in all).

    Raises:
        SceneError: a folder of scans does not exist.
        DatasetError: the dataset cannot be read, or the folder holds something else than a gallery.
    """
    items = load(dataset)
    items.ids()  # an id that stands twice could not be linked to
    home = find_home(dataset)
    folder = out if out is not None else home / "gallery"
    site = Site(folder)
    images = GalleryImages(folder, home / "media" if (home / "media").is_dir() else None, standalone)
    rows = spread(range(len(items)), max_items or len(items))
    columns = _Columns()
    with images.store.batch():
        for done, row in enumerate(rows):
            columns.add(items[row], images, items, site)
            progress(done + 1, len(rows))
    columns.clouds = write_clouds(columns.plan, scenes, site) if scenes else Clouds()
    columns.finish(site, images, home, dataset.resolve().name, lambda row: find_sharpness(items, items[rows[row]], 0))
    site.copy_static(("base.css", "gallery.css", "gallery.js", "space.js", "icon.svg"))
    site.close(("data", "scene"))
    images.close()
    refresh_headers(home)
    return GalleryReport(
        index=folder / "index.html",
        items=len(rows),
        scenes=len(columns.scenes),
        images_referenced=images.referenced,
        images_own=images.own,
        images_missing=images.missing,
        image_bytes=images.bytes,
        bytes=site.bytes,
        written=site.written,
        kept=site.kept,
    )


class _Columns:
    """The light columns of the list and what is gathered over all items."""

    def __init__(self) -> None:
        self.items: list[dict[str, Any]] = []
        self.scenes: dict[tuple[str, str], SceneNotes] = {}
        self.tallies = gallery_plots.Tallies()
        self.digests: dict[str, str] = {}
        self.plan = CloudPlan()
        self.clouds = Clouds()
        self._details: list[dict[str, Any]] = []
        self._chunks = 0

    def add(self, item: Item, images: GalleryImages, dataset: Dataset, site: Site) -> None:
        addresses = [images.find_address(dataset, item, k) for k in range(len(item.images))]
        row = len(self.items)
        scene = self.scenes.setdefault((item.source, item.scene_id), SceneNotes(item.source, item.scene_id))
        scene.add(row, item, addresses, images.find_base)
        self.tallies.add(item)
        self.digests[item.id] = digest_item(item)
        self.items.append(
            {
                "id": item.id,
                "task": item.task,
                "type": item.question_type,
                "source": item.source,
                "scene": f"{item.source}/{item.scene_id}",
                "difficulty": item.difficulty,
                "twin": item.twin_id,
                "pair": item.pair_id,
                "group": item.group_id,
                "text": shorten_question(item),
                "image": addresses[0] if addresses else "",
                "images": len(addresses),
                "rated": rate_opener(item),
            }
        )
        space = describe_space(item)
        self.plan.add(item, space)
        self._details.append(make_detail(item, addresses) | {"space": space})
        if len(self._details) == CHUNK:
            self._flush_details(site)

    def finish(
        self, site: Site, images: GalleryImages, home: Path, name: str, sharpness: Callable[[int], float]
    ) -> None:
        self._flush_details(site)
        rows = {item["id"]: row for row, item in enumerate(self.items)}
        verdicts = {"audit": read_audit(home, rows), "reviews": read_reviews(home, rows, self.digests)}
        site.write_data("verdicts", verdicts)
        scenes = sorted(self.scenes.values(), key=lambda s: (s.source, make_natural_key(s.scene_id)))
        pages = {f"{s.source}/{s.scene_id}": f"scene/{k:04d}.html" for k, s in enumerate(scenes)}
        site.write_data("index", self._index(images, pages, name, choose_striking(self.items, sharpness)))
        header = PageHeader(GALLERY, site.folder, {name: home}, images.standalone)

        def write_page(page: str, template: str, **more: Any) -> None:
            shared = {"dataset": name, "total": len(self.items), "prefix": images.prefix}
            site.write_page(page, template, header=header.render(page), **shared, **more)

        write_page("index.html", "gallery.html.j2")
        listed = [(f"{s.source}/{s.scene_id}", len(s.items), pages[f"{s.source}/{s.scene_id}"]) for s in scenes]
        for k, scene in enumerate(scenes):
            near = {"before": listed[k - 1] if k else None, "after": listed[k + 1] if k + 1 < len(listed) else None}
            points_m = self.clouds.points_m.get(listed[k][0])
            plan = draw_from_above(scene, np.concatenate(points_m) if points_m else None)
            write_page(listed[k][2], "scene.html.j2", scene=scene, plan=plan, **near)
        write_page("scenes.html", "scenes.html.j2", scenes=scenes, listed=listed)
        write_page("plots.html", "plots.html.j2", groups=gallery_plots.plot_charts(self.tallies, listed))

    def _index(
        self, images: GalleryImages, pages: dict[str, str], name: str, striking: Sequence[int]
    ) -> dict[str, Any]:
        index: dict[str, Any] = {
            "name": name,
            "chunk": CHUNK,
            "media": images.prefix,
            "pages": [[scene, page] for scene, page in pages.items()],
            "clouds": self.clouds.names,
            "striking": list(striking),
            "columns": {key: [i[key] for i in self.items] for key in ("id", "text", "image", "images")},
            "coded": {},
            "groups": {key: self._group(key) for key in ("twin", "pair", "group")},
        }
        for key in ("task", "type", "source", "scene", "difficulty"):
            names = sorted({item[key] for item in self.items}, key=make_natural_key)
            if key == "difficulty":
                names.sort(key=lambda one: DIFFICULTIES.index(one) if one in DIFFICULTIES else len(DIFFICULTIES))
            codes = {value: code for code, value in enumerate(names)}
            index["coded"][key] = {"names": names, "codes": [codes[item[key]] for item in self.items]}
        return index

    def _group(self, key: str) -> list[list[int]]:
        """Rows that share a name under this key, where there are several."""
        found: dict[str, list[int]] = defaultdict(list)
        for row, item in enumerate(self.items):
            if item[key]:
                found[item[key]].append(row)
        return [rows for rows in found.values() if len(rows) > 1]

    def _flush_details(self, site: Site) -> None:
        if self._details:
            site.write_data(f"items-{self._chunks:05d}", self._details)
            self._chunks += 1
            self._details = []


__all__ = ["GalleryReport", "make_gallery"]
