"""Measured scenes again under other names, where a run needs more scenes than there are."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from vgbench_gen.pipeline.measure import shard_path
from vgbench_gen.store.schema import FACTS, REJECTS
from vgbench_gen.store.shards import read_metadata, read_shard, write_shard


def copy_scenes(source: Path, out: Path, name: str) -> None:
    """Facts and rejects of every scene below `source` into `out`, as scene `<id>-<name>`; images stay."""
    for path in sorted((source / "rejects").glob("*/*.parquet")):
        dataset, notes = path.parent.name, read_metadata(path)
        scene_id = f"{notes['scene_id']}-{name}"
        notes |= {"scene_id": scene_id}
        facts = read_shard(shard_path(source, "facts", dataset, scene_id.removesuffix(f"-{name}")), FACTS)
        rejects = read_shard(path, REJECTS)
        write_shard(
            shard_path(out, "rejects", dataset, scene_id),
            [replace(r, scene_id=scene_id) for r in rejects],
            REJECTS,
            notes,
        )
        write_shard(
            shard_path(out, "facts", dataset, scene_id), [replace(f, scene_id=scene_id) for f in facts], FACTS, notes
        )
