"""Some questions of a dataset as a dataset of their own: the same rows, images embedded, a manifest that says why."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from threading import Lock
from typing import Any

from vgbench_gen.core.types import LETTERS, Item
from vgbench_gen.store.dataset import Dataset
from vgbench_gen.store.files import dataset_error
from vgbench_gen.store.media import MediaStore
from vgbench_gen.store.provenance import MANIFEST, dataset_fingerprint, read_manifest, write_manifest
from vgbench_gen.store.shards import write_items

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
        DatasetError: it does, or it is a file.
    """
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise dataset_error(out, "something there already", "no folder, or an empty one", "Give another --out.")


def write_subset(
    items: Dataset, source: Path, out: Path, kept_ids: Collection[str], name: str, record: Mapping[str, Any]
) -> None:
    """Write questions of a dataset, in its order, as a dataset in `out`.

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
    kept = [replace(item, index=index) for index, item in enumerate(items.at(places))]
    write_items(out / "items", kept, _Embedded(items, kept))
    folder = next((f for f in (source, source.parent) if (f / MANIFEST).is_file()), None)
    manifest: dict[str, Any] = dict(read_manifest(folder)) if folder else {}
    letters: dict[str, list[int]] = defaultdict(lambda: [0] * len(LETTERS))
    for item in kept:
        if item.question_type == "multi-choice" and item.answer in tuple(LETTERS):
            letters[f"{item.task}/{item.source}"][LETTERS.index(item.answer)] += 1
    came_from = manifest.get("fingerprint") or dataset_fingerprint(items)
    for outdated in _OUTDATED:
        manifest.pop(outdated, None)
    manifest[name] = {"from": came_from, **record}
    manifest["fingerprint"] = dataset_fingerprint(kept)
    manifest["counts"] = {**manifest.get("counts", {}), "items": len(kept)}
    manifest["items"] = dict(sorted(Counter(f"{i.task}/{i.question_type}/{i.source}" for i in kept).items()))
    manifest["letters"] = dict(sorted(letters.items()))
    write_manifest(out, manifest)
