"""Some questions of a dataset as a dataset of their own: the same rows, images embedded, a manifest that says why."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from threading import Lock
from typing import Any

from vgbench_gen.core.types import Item
from vgbench_gen.pipeline.rows import count_rows
from vgbench_gen.store.dataset import Dataset
from vgbench_gen.store.files import check_name, dataset_error
from vgbench_gen.store.media import MediaStore
from vgbench_gen.store.provenance import MANIFEST, dataset_fingerprint, read_manifest, write_manifest
from vgbench_gen.store.schema import make_item_row
from vgbench_gen.store.shards import iterate_rows, write_items

HARD = "hard"  # the record of a vote: what `write_subset` is called with by `vgbench vote`
_PARTNERS = ("twin_id", "pair_id")
_OUTDATED = ("difficulty", "pairs")  # what a manifest says of the whole set


class _Embedded(MediaStore):
    """The images inside a dataset's own files, by name; nothing can be put."""

    def __init__(self, items: Dataset, kept: Iterable[Item]) -> None:
        super().__init__(Path())
        self._items = items
        self._places = {name: (item.id, k) for item in kept for k, name in enumerate(item.images)}
        self._one_reader = Lock()  # the writer asks for images in threads, and the dataset keeps one row group

    def get(self, name: str) -> bytes:
        """The bytes as embedded. Raises DatasetError where they are not."""
        item_id, k = self._places[name]
        with self._one_reader:
            return self._items.image_bytes(item_id, k)


def require_new(out: Path) -> None:
    """Refuse a folder that holds something.

    Raises:
        DatasetError: it does, or it is a file, or as `check_name`.
    """
    check_name(out)
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise dataset_error(out, "something there already", "no folder, or an empty one", "Give another --out.")


def is_choice(manifest: Mapping[str, Any]) -> bool:
    """Whether a manifest is of questions that were chosen one by one, so that partners may be absent."""
    pulled = manifest.get("pulled")
    return HARD in manifest or (isinstance(pulled, Mapping) and pulled.get("part") == HARD)


def find_absent_partners(items: Dataset, kept_ids: Collection[str]) -> dict[str, dict[str, Any]]:
    """Item id -> columns to be emptied, of kept questions whose twin or pair is not kept whole."""
    whole: dict[tuple[str, str], int] = defaultdict(int)
    rows = list(iterate_rows(items.paths, ["id", *_PARTNERS], 4096))
    for row in rows:
        for column in _PARTNERS:
            whole[column, row[column]] += row["id"] not in kept_ids
    found: dict[str, dict[str, Any]] = {}
    for row in rows:
        empty = {column: "" for column in _PARTNERS if row[column] and whole[column, row[column]]}
        if empty and row["id"] in kept_ids:
            found[row["id"]] = empty
    return found


def write_subset(
    items: Dataset, source: Path, out: Path, kept_ids: Collection[str], name: str, record: Mapping[str, Any]
) -> None:
    """Write questions of a dataset, in its order, as a dataset in `out`.

    Their ids stay; `twin_id` and `pair_id` are emptied where the partner is not among them, and the record says of how
    many questions, as `without_partner`.

    Args:
        items: the dataset.
        source: where it stands; its manifest is taken over as far as it still holds.
        out: a new folder.
        kept_ids: of the questions.
        name: key of the manifest under which `record` stands, with the fingerprint that it came "from".
        record: why these questions; JSON-ready.
    """
    chosen = set(kept_ids)
    places = [place for place, name in enumerate(items.ids()) if name in chosen]
    apart = find_absent_partners(items, chosen)
    kept = [replace(item, index=index, **apart.get(item.id, {})) for index, item in enumerate(items.take(places))]
    write_items(out / "items", kept, _Embedded(items, kept))
    folder = next((f for f in (source, source.parent) if (f / MANIFEST).is_file()), None)
    manifest: dict[str, Any] = dict(read_manifest(folder)) if folder else {}
    came_from = manifest.get("fingerprint") or dataset_fingerprint(items)
    for outdated in _OUTDATED:
        manifest.pop(outdated, None)
    manifest[name] = {"from": came_from, **({"without_partner": len(apart)} if apart else {}), **record}
    manifest |= count_rows(list(map(make_item_row, kept)))
    manifest["counts"] = {**manifest.get("counts", {}), "items": len(kept)}
    write_manifest(out, manifest)
