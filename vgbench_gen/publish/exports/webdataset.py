"""`webdataset`: tar shards for Megatron energon, with its settings, a blend to extend and a cooker of samples.

An image is in the first sample that shows it. Later ones name it there, and energon reads it by its place in the shard.
"""

from __future__ import annotations

import io
import json
import shutil
import tarfile
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from vgbench_gen.publish.export import IMAGES, Export, Job, exports
from vgbench_gen.publish.training_rows import format_settings, make_typed_record

DATA = "data"
SHARD_BYTES = 256 << 20


@exports.register("webdataset")
class Webdataset(Export):
    """Writes `data/` with shards and their settings, a blend of datasets, and a module that makes conversations."""

    trains = True

    def write(self, job: Job) -> str:
        (job.folder / DATA / ".nv-meta").mkdir(parents=True)
        counts = _write_shards(job)
        shutil.rmtree(job.folder / IMAGES, ignore_errors=True)
        info = {"shard_counts": counts}
        job.text(f"{DATA}/.nv-meta/.info.json", json.dumps(info, indent=2) + "\n")
        # Without it, `energon prepare` asks for shares: of a single shard, it puts everything into the test part.
        parts = {"train": list(counts), "val": [], "test": []}
        job.text(f"{DATA}/.nv-meta/split.yaml", format_settings({"split_parts": parts}))
        kind = {"__module__": "megatron.energon", "__class__": "CrudeWebdataset"}
        job.text(f"{DATA}/.nv-meta/dataset.yaml", format_settings(kind | {"subflavors": {"vgbench": True}}))
        blend = {"train": {"blend_epochized": [{"path": DATA, "repetitions": 1}]}}
        kind["__class__"] = "MetadatasetV2"
        job.text("metadataset.yaml", format_settings(kind | {"splits": blend}))
        job.template("webdataset/cooker.py", "cooker.py")
        job.template("webdataset/README.md", "README.md")
        return f"energon prepare --tar-index-only {DATA}, then train on metadataset.yaml"


def _write_shards(job: Job) -> dict[str, int]:
    """Write all samples; returns the samples of each shard by its name."""
    counts: dict[str, int] = {}
    samples = _make_samples(job)
    sample = next(samples, None)
    while sample is not None:
        name = f"{len(counts):06}.tar"
        counts[name] = 0
        with tarfile.open(job.folder / DATA / name, "w", format=tarfile.USTAR_FORMAT) as shard:
            while sample is not None and (not counts[name] or shard.offset + _count_bytes(sample) <= SHARD_BYTES):
                for path, data in sample.items():
                    member = tarfile.TarInfo(path)  # dated 1970
                    member.size = len(data)
                    shard.addfile(member, io.BytesIO(data))
                counts[name] += 1
                sample = next(samples, None)
    return counts


def _count_bytes(sample: Mapping[str, bytes]) -> int:
    """Bytes of a sample in a shard, at most."""
    return sum(len(data) + 2 * tarfile.BLOCKSIZE for data in sample.values())


def _make_samples(job: Job) -> Iterator[dict[str, bytes]]:
    """Yield name -> bytes of the files of each sample, sorted: its new images, then the rest as JSON."""
    places: dict[str, str] = {}
    for number, row in enumerate(job.rows()):
        files: dict[str, bytes] = {}
        for k, path in enumerate(row.images):
            if path not in places:
                places[path] = f"{number:08}.{k:03}{Path(path).suffix}"
                files[places[path]] = (job.folder / path).read_bytes()
        stored = replace(row, images=tuple(places[path] for path in row.images))
        files[f"{number:08}.json"] = json.dumps(make_typed_record(stored, job), ensure_ascii=False).encode()
        yield files
