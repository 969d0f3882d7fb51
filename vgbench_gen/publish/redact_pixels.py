"""Rows in their published form: checksums and recipes of their images, with or without the pixels.

A row without pixels names the frame and size from which each image is made and the operations on it (crop, homography,
marks). `hydrate` makes the images from the user's own copy of the scans.
"""

from __future__ import annotations

import json
from typing import Any, Protocol

from vgbench_gen.core.rng import digest_bytes, format_canonical_json
from vgbench_gen.core.types import ColorArray
from vgbench_gen.quality.uniqueness import hash_picture
from vgbench_gen.store.files import dataset_error
from vgbench_gen.store.pictures import decode
from vgbench_gen.store.schema import Row
from vgbench_gen.tasks.row_evidence import ShownEvidence

_REMEDY = "The row was not written by this program, or it is damaged: build it again."


class Images(Protocol):
    """Encoded images by media name; `store.media.MediaStore` is one."""

    def get(self, name: str) -> bytes:
        """The bytes. Raises DatasetError if there are none."""

    def has(self, name: str) -> bool:
        """Whether the bytes exist."""


class RowImages:
    """The embedded images of one row, for sets without a media folder."""

    def __init__(self, row: Row) -> None:
        self._where = f"item {row['id']}"
        self._data: dict[str, bytes | None] = {image["path"]: image["bytes"] for image in row["images"]}

    def get(self, name: str) -> bytes:
        """The bytes of an image. Raises DatasetError if they are not embedded."""
        data = self._data.get(name)
        if data is None:
            remedy = "Give the build's own folder."
            raise dataset_error(self._where, f"no image {name[:80]!r}", "one that the row shows", remedy)
        return data

    def has(self, name: str) -> bool:
        """Whether the bytes of an image are embedded."""
        return self._data.get(name) is not None


class FileFacts:
    """Size and checksums of encoded images; each image is decoded once and takes a few hundred bytes here."""

    def __init__(self) -> None:
        self._shown: dict[str, dict[str, Any]] = {}
        self._bases: dict[str, str] = {}

    def of(self, name: str, media: Images) -> dict[str, Any]:
        """A dict with name, size_bytes, width, height, pixels (digest) and look (perceptual hash) of an image.

        Raises:
            DatasetError: the image is missing or damaged.
        """
        if name not in self._shown:
            data = media.get(name)
            image = decode(data, name)
            self._shown[name] = {
                "name": name,
                "size_bytes": len(data),
                "width": image.shape[1],
                "height": image.shape[0],
                "pixels": compute_pixels_digest(image),
                "look": look(data),
            }
            # A frame that is shown unchanged is its own base image.
            self._bases[name] = self._shown[name]["pixels"]
        return self._shown[name]

    def base_pixels(self, name: str, media: Images) -> str:
        """Digest of a base image's pixels; "" if the image is missing."""
        if name not in self._bases:
            self._bases[name] = compute_pixels_digest(decode(media.get(name), name)) if media.has(name) else ""
        return self._bases[name]


def compute_pixels_digest(image: ColorArray) -> str:
    """BLAKE2b (128 bits, hexadecimal) of (H, W, 3) uint8 RGB pixels, row by row."""
    return digest_bytes(image.tobytes())


def look(data: bytes) -> str:
    """Perceptual hash of an encoded image, 16 hexadecimal digits; "" if it cannot be read."""
    found = hash_picture(data)
    return "" if found is None else f"{found:016x}"


def make_published_row(row: Row, media: Images, travels: bool, memory: FileFacts) -> Row:
    """The published form of a row: `image_files` filled, pixels embedded or left out.

    Args:
        row: of `store.schema.ITEMS` or `PUBLISHED`; not changed. Its `image_files` are kept if they describe the images
            in the row or if the row has none; images that another codec made again get a new description.
        media: the images of the row, and base images if their checksums are wanted.
        travels: whether the pixels may be published (`licences.Gate.travels`).
        memory: shared by all rows, so that no image is decoded twice.

    Raises:
        DatasetError: an image is missing or damaged, or the row's evidence is.
    """
    files, shown = list(row.get("image_files") or ()), [image["path"] for image in row["images"]]
    if shown and [file["name"] for file in files] != shown:
        files = list_image_files(row, media, memory)
    embedded = travels and all(media.has(file["name"]) for file in files)
    images = [{"bytes": media.get(file["name"]), "path": file["name"]} for file in files] if embedded else []
    return {**row, "images": images, "image_files": files}


def list_image_files(row: Row, media: Images | None, memory: FileFacts) -> list[dict[str, Any]]:
    """The `image_files` of a row: checksums of its images and the recipe of each; no checksums without `media`.

    Raises:
        DatasetError: an image is missing or damaged, or the row's evidence is.
    """
    names = [image["path"] for image in row["images"]]
    files = []
    for name, recipe in zip(names, _list_recipes(row, len(names)), strict=True):
        facts = {"name": name, "size_bytes": 0, "width": 0, "height": 0, "pixels": "", "look": ""}
        if media is not None:
            facts = memory.of(name, media)
        base = recipe["base"]
        files.append({**facts, **recipe, "base_pixels": memory.base_pixels(base, media) if media and base else ""})
    return files


def _list_recipes(row: Row, count: int) -> list[dict[str, Any]]:
    """frame_id, base, base_width, base_height, ops per image; empty if the images are not made from scans."""
    evidence = row["evidence"]
    evidence = json.loads(evidence) if isinstance(evidence, str) else evidence
    if not ShownEvidence.is_in(evidence):
        return [{"frame_id": "", "base": "", "base_width": 0, "base_height": 0, "ops": "[]"} for _ in range(count)]
    recipes, where = [], f"item {row['id']}"
    try:
        shown = ShownEvidence.read(evidence, where)
        for picture in shown.shown():
            width, height = shown.base_size(picture.base)
            size = {"base_width": width, "base_height": height}
            ops = format_canonical_json([dict(op) for op in picture.ops])
            recipes.append({"frame_id": shown.frame_of(picture.base), "base": picture.base, **size, "ops": ops})
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise dataset_error(where, f"damaged evidence ({error!r})", "pictures with bases", _REMEDY) from error
    if len(recipes) != count:
        raise dataset_error(where, f"{len(recipes)} pictures", f"one per image ({count})", _REMEDY)
    return recipes
