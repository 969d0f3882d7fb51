"""`canary`: a small dataset of twins made from this dataset's pictures, which tests a training pipeline."""

from __future__ import annotations

import shutil
from dataclasses import replace
from itertools import islice

import cv2
import numpy as np

from vgbench_gen.core.rng import digest_bytes
from vgbench_gen.core.types import ColorArray
from vgbench_gen.evaluation.item_source import make_item
from vgbench_gen.publish.export import IMAGES, Export, Job, exports
from vgbench_gen.store.files import dataset_error
from vgbench_gen.store.media import MediaStore
from vgbench_gen.store.pictures import decode, encode_jpeg
from vgbench_gen.store.shards import write_items
from vgbench_gen.training.canary import LONG_SIDE_PX, make_cards

_PICTURES = 60
_SEED = 0


@exports.register("canary")
class Canary(Export):
    """Writes a dataset of the rows of `training.canary.make_cards`."""

    def write(self, job: Job) -> str:
        cards = make_cards(_read_pictures(job), _SEED)
        items = [
            replace(
                make_item(
                    f"{card.probe}-{card.twins:03d}-{card.half + 1}",
                    benchmark="VGBench",
                    task="canary",
                    question_type="multi-choice",
                    question=card.question,
                    answer=card.answer,
                    options=card.options,
                    images=[_lay(job, picture) for picture in card.pictures],
                    source="canary",
                    scene_id=str(card.twins),
                    category=card.probe,
                    index=index,
                ),
                split="train",
            )
            for index, card in enumerate(cards)
        ]
        write_items(job.folder / "items", items, MediaStore(job.folder / IMAGES))
        shutil.rmtree(job.folder / IMAGES)  # the rows hold them
        job.total = len(items)
        job.template("canary/README.md", "README.md")
        return "vgbench export . --to TRAINER, train on all rows until they are known, ask them: README.md"


def _lay(job: Job, picture: ColorArray) -> str:
    """Write a picture; returns its name."""
    data = encode_jpeg(picture)
    name = f"{digest_bytes(data)}.jpg"
    job.lay_file(name, data)
    return name


def _read_pictures(job: Job) -> list[ColorArray]:
    """Pictures of the dataset, each once, at most `_PICTURES`, spread over it."""
    walk = list(job.items().values())
    found: dict[str, ColorArray] = {}
    for item in islice(walk, 0, None, max(1, len(walk) // (2 * _PICTURES))):
        name = item.images[0]
        if name not in found and len(found) < _PICTURES:
            data = job.source.image(item, 0)
            image = decode(data if isinstance(data, bytes) else data.read_bytes(), name)
            shrink = min(1.0, LONG_SIDE_PX / max(image.shape[:2]))
            size = (round(image.shape[1] * shrink), round(image.shape[0] * shrink))
            found[name] = np.asarray(cv2.resize(image, size, interpolation=cv2.INTER_AREA), dtype=np.uint8)
    if len(found) < 3:
        where, remedy = job.source.folder, "Give a dataset with more pictures."
        raise dataset_error(where, f"{len(found)} pictures", "three at least", remedy)
    return list(found.values())
