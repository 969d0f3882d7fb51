"""`docs/howto/import.md`, generated from the importers: `python docs/_ext/importers.py > docs/howto/import.md`."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Iterator

from vgbench_gen.importers.base import importers
from vgbench_gen.publish.licences import LICENCES

HEAD = """# Source benchmarks and their files

Generated from `vgbench_gen/importers/` by `python docs/_ext/importers.py > docs/howto/import.md`; do not edit by hand.

`vgbench import NAME --out FOLDER` fetches a source from the Hugging Face Hub; with `--from DOWNLOAD` it reads a local
copy: a snapshot of the repository, a folder of the Hub's cache, or the authors' files unpacked. `vgbench import
spatialscore --from DOWNLOADS` takes one folder per source, called by its name or its repository.

Tables may be in subfolders. If several of the listed patterns match, the first is used; for BLINK, QSpatialBench and
SpatialBench's JSON files, all are. Embedded images are used directly; images that a row only names are searched in the
top folder and in those of the last column, also under `--images`. The archives of MMIU and VSI-Bench and
`coco_images.zip` of 3DSRBench need not be unpacked. Invalid rows are skipped and reported with file and row number.
A number of questions that differs from the published one is also reported.

| name | questions | from | tables | columns | folders of images |
|---|---|---|---|---|---|
"""
_SHOWN = 4  # folders


def render_markdown() -> str:
    """The whole page."""
    return HEAD + "".join(f"| {' | '.join(row)} |\n" for row in _list_rows())


def _list_rows() -> Iterator[tuple[str, ...]]:
    homes = {one["name"]: one["url"] for one in tomllib.loads(LICENCES.read_text("utf-8"))["policy"]}
    for name in importers.names():
        source = importers[name]
        repository = source.repository
        columns = (" or ".join(f"`{one}`" for one in group) for group in source.columns.list_columns())
        total = source.published or sum(part.expected or 0 for part in source.parts.values())
        yield (
            f"`{name}`: {source.title}",
            f"{total:,}",
            f"[{repository}](https://huggingface.co/datasets/{repository})"
            if repository
            else f"[its authors]({homes[source.title]})",
            _quote(one.removeprefix("**/") for one in source.files),
            ", ".join(columns),
            _quote([one.rstrip("/") for one in source.photos if one][:_SHOWN])
            + (", …" if len(source.photos) > _SHOWN else ""),
        )


def _quote(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


if __name__ == "__main__":
    print(render_markdown(), end="")
