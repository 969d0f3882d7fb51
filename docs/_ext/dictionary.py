"""`docs/data-dictionary.md`, generated: `python docs/_ext/dictionary.py > docs/data-dictionary.md`.

Names, types, units and meanings are those of the columns in `vgbench_gen/store/columns.py`.
"""

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

HEAD = f"""# Data dictionary

Schema version {SCHEMA_VERSION}. Generated from `vgbench_gen/store/columns.py` by
`python docs/_ext/dictionary.py > docs/data-dictionary.md`; do not edit by hand.

Lengths are meters and angles degrees unless brackets give a unit ([conventions](architecture.md#conventions)). `JSON`
is canonical: sorted keys, no spaces, no NaN. No column is null: if it does not apply, a text or list is empty and a
number is NaN.

`tolerance` is how far a true claim (judgment) may deviate: a share of the value, pixels for principal points, meters of
translation for poses, the minimum IoU for boxes, 0 for tracked points. For open-ended questions it is only recorded
(replies are scored by the factors 2 and 1.25); for multi-choice it is 0.
"""
SECTIONS: tuple[tuple[str, str, Sequence[Column]], ...] = (
    ("Items", "`items/*.parquet`: one row per question, images embedded.", ITEM_COLUMNS),
    ("Published items", "`vgbench publish` adds this column, and `vgbench pull --scenes` reads it.", (IMAGE_FILES,)),
    ("Questions", "`questions.parquet`: one row per fact and question type, whether used or not.", QUESTION_COLUMNS),
    ("Facts", "`facts/<dataset>/<scene>.parquet`: one row per geometric fact, without text.", FACT_COLUMNS),
    ("Rejects", "`rejects/<dataset>/<scene>.parquet`: one row per draft that failed a gate.", REJECT_COLUMNS),
)
TYPES = {
    "string": "text",
    "json": "JSON",
    "strings": "text[]",
    "int64s": "int64[]",
    "float64s": "float64[]",
    "images": "image[]",
    "structs": "struct[]",
}


def render_markdown() -> str:
    """The whole page; what a column of another table shares with items is not said again."""
    parts, items = [HEAD], {(column.name, column.meaning) for column in ITEM_COLUMNS}
    for title, intro, columns in SECTIONS:
        same = [column for column in columns if columns is not ITEM_COLUMNS and (column.name, column.meaning) in items]
        rows = render_rows([column for column in columns if column not in same])
        if same:
            intro += f" As in items: {', '.join(f'`{column.name}`' for column in same)}."
        parts.append(f"## {title}\n\n{intro}{list_measured(columns)}\n\n" + "\n".join(rows) + "\n")
    return "\n".join(parts)


def list_measured(columns: Sequence[Column]) -> str:
    """A sentence that names the columns that measuring fills, where other stages fill the rest."""
    names = [f"`{column.name}`" for column in columns if column.origin == "measure"]
    return f" From the fact: {', '.join(names)}." if 0 < len(names) < len(columns) else ""


def render_rows(columns: Sequence[Column], prefix: str = "") -> Iterator[str]:
    """One line per column, and below a list of structs one per field."""
    for column in columns:
        unit = f" [{column.unit}]" if column.unit else ""
        kind = TYPES.get(column.type, column.type)
        yield f"- `{prefix}{column.name}` {kind}: {column.meaning}{unit}"
        yield from render_rows(column.fields, f"{prefix}{column.name}[].")


if __name__ == "__main__":
    print(render_markdown(), end="")
