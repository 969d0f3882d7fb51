"""The data dictionary, generated: `python -m vgbench_gen.store.dictionary > docs/data-dictionary.md`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from vgbench_gen.store.columns import (
    FACT_COLUMNS,
    IMAGE_FILES,
    ITEM_COLUMNS,
    QUESTION_COLUMNS,
    REJECT_COLUMNS,
    SCHEMA_VERSION,
    Column,
)

_HEAD = f"""# Data dictionary

Schema version {SCHEMA_VERSION}. Generated from `vgbench_gen/store/columns.py` by
`python -m vgbench_gen.store.dictionary > docs/data-dictionary.md`; do not edit by hand.

Lengths are meters and angles degrees unless a unit says otherwise. Pixel (0, 0) is the centre of the top-left pixel;
camera axes are x right, y down, z forward. `JSON text` is canonical: sorted keys, no spaces, no NaN. No column is ever
null. Origin says which stage fills a column: `measure` reads raw scenes, `compose` writes questions.

`tolerance` of a judgment is what makes its claim true: a share of the value, pixels for principal points, meters of
translation for poses, the least overlap (IoU) for boxes, 0 for tracked points. Of an open-ended question it is a share
that is recorded only: replies are scored by the factors 2 and 1.25. Of choices it is 0.
"""

_SECTIONS: tuple[tuple[str, str, Sequence[Column]], ...] = (
    ("Items", "`items/items-00000-of-0000N.parquet`: one row per question, images embedded.", ITEM_COLUMNS),
    (
        "Published items",
        "What `vgbench publish` adds to the columns of items, and `vgbench hydrate` reads. Published files begin with "
        "`images`, `question`, `options`, `answer` and `task`.",
        (IMAGE_FILES,),
    ),
    ("Questions", "`questions.parquet`: one row per fact and question type, asked or not.", QUESTION_COLUMNS),
    ("Facts", "`facts/<dataset>/<scene>.parquet`: one row per geometric truth, without words.", FACT_COLUMNS),
    ("Rejects", "`rejects/<dataset>/<scene>.parquet`: one row per draft that was not good enough.", REJECT_COLUMNS),
)
_TYPES = {
    "string": "text",
    "json": "JSON text",
    "strings": "list of text",
    "int64s": "list of int64",
    "float64s": "list of float64",
    "images": "list of images",
    "structs": "list of structs",
}


def render_markdown() -> str:
    """The whole document."""
    parts = [_HEAD]
    for title, intro, columns in _SECTIONS:
        lines = [
            "| column | type | unit | meaning | origin |",
            "| --- | --- | --- | --- | --- |",
            *_render_lines(columns),
        ]
        parts.append(f"## {title}\n\n{intro}\n\n" + "\n".join(lines) + "\n")
    return "\n".join(parts)


def _render_lines(columns: Sequence[Column], prefix: str = "") -> Iterator[str]:
    for c in columns:
        kind = _TYPES.get(c.type, c.type)
        yield f"| `{prefix}{c.name}` | {kind} | {c.unit or '-'} | {c.meaning} | {c.origin} |"
        yield from _render_lines(c.fields, f"{prefix}{c.name}[].")


if __name__ == "__main__":
    print(render_markdown(), end="")
