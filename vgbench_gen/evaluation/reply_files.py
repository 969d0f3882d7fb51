"""Which files of replies a dataset has: its own, and of a hard set those to the dataset that it was chosen from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from vgbench_gen.core.errors import DatasetError
from vgbench_gen.evaluation.replies import FOLDER as REPLIES
from vgbench_gen.evaluation.replies import has_header, read_header
from vgbench_gen.pipeline.subset import HARD
from vgbench_gen.store.files import dataset_error
from vgbench_gen.store.provenance import MANIFEST, read_manifest


def find_source_replies(folder: Path) -> tuple[Path, str] | None:
    """The replies to the dataset that a hard set beside it was chosen from, and that dataset's fingerprint.

    Args:
        folder: of the hard set. None for any other dataset, which has no such source, and where it has no replies.
    """
    try:
        record = read_manifest(folder).get(HARD)
        wanted = record.get("from") if isinstance(record, Mapping) else None
        for other in sorted(folder.resolve().parent.iterdir()) if wanted else ():
            replies = other / REPLIES
            if replies.is_dir() and (other / MANIFEST).is_file() and read_manifest(other)["fingerprint"] == wanted:
                return replies, str(wanted)
    except (DatasetError, KeyError, OSError):
        pass  # what cannot be read is no source; the dataset's own replies are read without it
    return None


def reply_files(
    folder: Path,
    names: Sequence[str] = (),
    replies: Path | None = None,
    notes: list[str] | None = None,
    more: Path | None = None,
) -> list[Path]:
    """Files of replies of a dataset, sorted; `names` are specs, models or file names without suffix, all where empty.

    Args:
        folder: of the dataset.
        names: whose replies.
        replies: folder of the files, or one of them; `replies` in the dataset's folder where None.
        notes: takes a line on each file that holds nothing or cannot be read, which is then left out; without it such a
            file is an error where it is read.
        more: a second folder, whose files count where the first has none of their name.

    Raises:
        DatasetError: there are none, or none of that name.
    """
    where = replies or folder / REPLIES
    found = [where] if where.is_file() else _list_files(where)
    own = {one.name for one in found}
    found += [one for one in (_list_files(more) if more else ()) if one.name not in own]
    if notes is not None:
        found = [path for path in found if _check_beginning(path, notes)]
    if not found:
        remedy = "Ask a model with `vgbench eval` or import replies first."
        raise dataset_error(
            where, f"no replies ({' '.join(notes)})" if notes else "no replies", "files of replies", remedy
        )
    if not names:
        return found
    known = {path: {path.stem, *(lambda header: (header.spec, header.model))(read_header(path))} for path in found}
    for name in names:
        if not any(name in aliases for aliases in known.values()):
            listed = ", ".join(path.stem for path in found)
            raise dataset_error(where, f"no replies of {name}", f"one of {listed}", "Name one of them.")
    return [path for path in found if known[path] & set(names)]


def _list_files(folder: Path) -> list[Path]:
    return sorted(one for one in folder.glob("*.jsonl") if not one.name.startswith("."))


def has_replies(path: Path) -> bool:
    """Whether a path is a file of replies as `vgbench eval` writes it, or a folder that holds one."""
    for one in sorted(path.glob("*.jsonl")) if path.is_dir() else [path]:
        try:
            read_header(one)
        except DatasetError:
            continue
        return True
    return False


def _check_beginning(path: Path, notes: list[str]) -> bool:
    try:
        if has_header(path):
            read_header(path)
            return True
        notes.append(f"{path}: left out, for it holds no replies. Remove it, or run its `vgbench eval` again.")
    except DatasetError as error:
        notes.append(f"Left out: {error}")
    return False
