"""Croissant metadata with responsible-AI fields, made and checked by MLCommons' own library."""

from __future__ import annotations

import json
import logging
import tomllib
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

from vgbench_gen.core.errors import ConfigError, VGBenchError
from vgbench_gen.publish.card import load_citations
from vgbench_gen.publish.data_files import CANARY, DataPart
from vgbench_gen.publish.licences import Decision
from vgbench_gen.publish.release import ALL, HARD, TRAIN, Release
from vgbench_gen.publish.words import info_of, load_word, title_of
from vgbench_gen.store.columns import Column
from vgbench_gen.store.schema import PUBLISHED
from vgbench_gen.text.render import find_templates_root

FILE = "croissant.json"
_HUB = "https://huggingface.co/datasets"
# A git repository has no digest of its own; the library takes this address in its place, and so does the Hub.
_NO_DIGEST = "https://github.com/mlcommons/croissant/issues/80"
_CONFORMS = "http://mlcommons.org/croissant/1.1"
_REPO = "repo"


class CroissantError(VGBenchError):
    """The validator refuses what was made."""


def make_croissant(
    release: Release, parts: Sequence[DataPart], decisions: Sequence[Decision]
) -> tuple[bytes, list[str]]:
    """The file's bytes, and what the validator warns of.

    Raises:
        ConfigError: the library is not installed.
        CroissantError: the validator refuses it.
    """
    mlc = _import_library()
    ctx = mlc.Context(conforms_to=_CONFORMS)
    texts = tomllib.loads((find_templates_root() / "cards" / "croissant.toml").read_text("utf-8"))
    real = any(licence != "cc0-1.0" for _, licence in release.counts.scenes)
    personal = texts.pop("personal")["scans" if real else "samples"]
    repo = f"{_HUB}/{release.options.repo}"
    date = datetime.fromisoformat(release.date) if release.date else None
    metadata = mlc.Metadata(
        ctx=ctx,
        id=repo,
        name=release.options.name,
        description=_format_description(release),
        url=repo,
        version=release.options.version,
        date_published=date,
        license=sorted({decision.policy.url or decision.policy.terms for decision in decisions}),
        cite_as=load_citations()["benchmark"].strip(),
        keywords=["benchmark", "spatial reasoning", "visual geometry", "RGB-D"],
        in_language=["en"],
        distribution=[
            mlc.FileObject(
                ctx=ctx,
                id=_REPO,
                name=_REPO,
                description="the repository on the Hub",
                content_url=repo,
                encoding_formats=["git+https"],
                sha256=_NO_DIGEST,
            ),
            *(_make_file_sets(mlc, ctx, name, members) for name, members in _list_configurations(parts)),
        ],
        record_sets=[_make_record_set(mlc, ctx, name, members) for name, members in _list_configurations(parts)],
        personal_sensitive_information=personal,
        **texts,
    )
    return check(json.dumps(metadata.to_json(), indent=2, ensure_ascii=False, default=str).encode() + b"\n")


def check(data: bytes) -> tuple[bytes, list[str]]:
    """Have the validator read a file; returns it with the warnings. Raises CroissantError where it refuses it."""
    mlc = _import_library()
    told = logging.getLogger("absl")
    level = told.level
    told.setLevel(logging.ERROR)  # it prints the warnings that are returned
    try:
        issues = mlc.Dataset(jsonld=json.loads(data)).metadata.ctx.issues
    except mlc.ValidationError as error:
        raise CroissantError(f"{FILE}: found metadata that the validator refuses: {error}") from error
    finally:
        told.setLevel(level)
    if issues.errors:
        raise CroissantError(f"{FILE}: found metadata that the validator refuses: {'; '.join(sorted(issues.errors))}")
    # A set without a day says nothing false, and one of today would make every upload another commit.
    return data, [each for each in sorted(issues.warnings) if "datePublished" not in each]


def _import_library() -> Any:
    handlers = list(logging.root.handlers)
    try:
        import mlcroissant
    except ImportError as error:
        raise ConfigError(
            "found no package mlcroissant, which writes Croissant metadata; expected the extra `publish`. "
            "Install it from the repository: pip install '.[publish]'."
        ) from error
    logging.root.handlers = handlers  # one that it adds would print every other library's warnings twice
    return mlcroissant


def _format_description(release: Release) -> str:
    counts = release.counts
    tasks = ", ".join(dict.fromkeys(task for task, _ in counts.cells))
    sources = ", ".join(sorted({title_of(source) for source, _ in counts.scenes}))
    if not any(info_of(source) for source, _ in counts.scenes):
        return load_word("croissant.of_others", items=f"{counts.total:,}", tasks=tasks, canary=release.canary)
    return load_word(
        "croissant.description", items=f"{counts.total:,}", tasks=tasks, sources=sources, canary=release.canary
    )


def _list_configurations(parts: Sequence[DataPart]) -> Iterator[tuple[str, list[DataPart]]]:
    """Configurations with their parts: the whole, what stands beside it, single tasks."""
    for name in (ALL, HARD, TRAIN):
        if members := [part for part in parts if part.config == name]:
            yield name, members
    for part in parts:
        if part.task:
            yield part.name, [part]


def _make_file_sets(mlc: Any, ctx: Any, name: str, members: Sequence[DataPart]) -> Any:
    return mlc.FileSet(
        ctx=ctx,
        id=f"parquet-files-{name}",
        name=f"parquet-files-{name}",
        description=f"the parquet files of the configuration {name}{_format_title(members)}",
        contained_in=[_REPO],
        encoding_formats=["application/x-parquet"],
        includes=[part.pattern for part in members],
    )


def _make_record_set(mlc: Any, ctx: Any, name: str, members: Sequence[DataPart]) -> Any:
    rows = sum(part.rows for part in members)
    fields = [_make_field(mlc, ctx, name, column) for column in (*PUBLISHED.columns, CANARY)]
    return mlc.RecordSet(
        ctx=ctx,
        id=name,
        name=name,
        description=f"{rows} questions, split {members[0].split}{_format_title(members)}",
        fields=fields,
    )


def _format_title(members: Sequence[DataPart]) -> str:
    title = members[0].title if len(members) == 1 else ""
    return f", task {title}" if title else ""


def _make_field(mlc: Any, ctx: Any, name: str, column: Column) -> Any:
    own = f"{name}/{column.name}"
    told = column.meaning + (f" ({column.unit})" if column.unit else "")
    if column.type == "structs":
        # A sub-field takes its member out of every struct of the list.
        inner = [
            mlc.Field(
                ctx=ctx,
                id=f"{own}/{member.name}",
                name=member.name,
                description=member.meaning,
                data_types=[_find_data_type(mlc, member)],
                source=_make_source(mlc, ctx, name, column.name, member.name),
            )
            for member in column.fields
        ]
        return mlc.Field(ctx=ctx, id=own, name=column.name, description=told, repeated=True, sub_fields=inner)
    images = column.type == "images"
    many = column.type in ("strings", "int64s", "float64s")
    return mlc.Field(
        ctx=ctx,
        id=own,
        name=column.name,
        description=told,
        data_types=[_find_data_type(mlc, column)],
        # The library casts pictures one by one only where a field is marked as repeated.
        repeated=True if images else None,
        is_array=True if many else None,
        array_shape="-1" if many else None,
        source=_make_source(mlc, ctx, name, column.name, "bytes" if images else ""),
    )


def _find_data_type(mlc: Any, column: Column) -> Any:
    kinds = {"int64": mlc.DataType.INTEGER, "float64": mlc.DataType.FLOAT, "images": mlc.DataType.IMAGE_OBJECT}
    return kinds.get(column.type if column.type == "images" else column.type.removesuffix("s"), mlc.DataType.TEXT)


def _make_source(mlc: Any, ctx: Any, name: str, column: str, member: str) -> Any:
    transforms = [mlc.Transform(ctx=ctx, json_path=member)] if member else []
    extract = mlc.Extract(ctx=ctx, column=column)
    return mlc.Source(ctx=ctx, file_set=f"parquet-files-{name}", extract=extract, transforms=transforms)
