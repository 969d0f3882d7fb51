"""`webdataset`: tar shards for Megatron energon, with its settings, a blend to extend and a cooker of samples.

A sample is whole: its images are in its shard, so that training reads files from one end to the other.
"""

from __future__ import annotations

import io
import json
import shutil
import tarfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from vgbench_gen.publish.export import IMAGES, Export, ExportRow, Job, exports
from vgbench_gen.publish.training_rows import describe_row, format_settings, make_typed_messages

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
    samples = (list(_make_members(row, job, f"{number:08}")) for number, row in enumerate(job.rows()))
    sample = next(samples, None)
    while sample is not None:
        name = f"{len(counts):06}.tar"
        counts[name] = 0
        with tarfile.open(job.folder / DATA / name, "w", format=tarfile.USTAR_FORMAT) as shard:
            while sample is not None and (not counts[name] or shard.offset + _count_bytes(sample) <= SHARD_BYTES):
                for path, data in sample:
                    member = tarfile.TarInfo(path)  # dated 1970
                    member.size = len(data)
                    shard.addfile(member, io.BytesIO(data))
                counts[name] += 1
                sample = next(samples, None)
    return counts


def _count_bytes(sample: Sequence[tuple[str, bytes]]) -> int:
    """Bytes of a sample in a shard, at most."""
    return sum(len(data) + 2 * tarfile.BLOCKSIZE for _, data in sample)


def _make_members(row: ExportRow, job: Job, key: str) -> Iterator[tuple[str, bytes]]:
    """(name, bytes) of the files of a sample, sorted: images in the order shown, then the rest as JSON."""
    names = [f"{k:03}{Path(path).suffix}" for k, path in enumerate(row.images)]
    for path, name in zip(row.images, names, strict=True):
        yield f"{key}.{name}", (job.folder / path).read_bytes()
    messages = make_typed_messages(replace(row, images=tuple(names)), job.settings.system)
    record = {**describe_row(row), "messages": messages, "solution": row.solution}
    yield f"{key}.json", json.dumps(record, ensure_ascii=False).encode()
