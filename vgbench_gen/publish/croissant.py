"""Croissant metadata with responsible-AI fields, made and checked by MLCommons' own library."""

from __future__ import annotations

import json
import logging
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
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
# A git repository has no digest; the library and the Hub write this address instead.
_NO_DIGEST = "https://github.com/mlcommons/croissant/issues/80"
_CONFORMS = "http://mlcommons.org/croissant/1.1"
_REPO = "repo"


class CroissantError(VGBenchError):
    """The validator refuses the metadata."""


def make_croissant(
    release: Release, parts: Sequence[DataPart], decisions: Sequence[Decision]
) -> tuple[bytes, list[str]]:
    """(bytes of the file, warnings of the validator).

    Raises:
        ConfigError: the library is not installed.
        CroissantError: the validator refuses the metadata.
    """
    mlc = import_library()
    make = _Maker(mlc, mlc.Context(conforms_to=_CONFORMS))
    texts = tomllib.loads((find_templates_root() / "cards" / "croissant.toml").read_text("utf-8"))
    real = any(licence != "cc0-1.0" for _, licence in release.counts.scenes)
    personal = texts.pop("personal")["scans" if real else "samples"]
    repo = f"{_HUB}/{release.options.repo}"
    date = datetime.fromisoformat(release.date) if release.date else None
    metadata = mlc.Metadata(
        ctx=make.ctx,
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
                ctx=make.ctx,
                id=_REPO,
                name=_REPO,
                description="the repository on the Hub",
                content_url=repo,
                encoding_formats=["git+https"],
                sha256=_NO_DIGEST,
            ),
            *(make.file_set(name, members) for name, members in _list_configurations(parts)),
        ],
        record_sets=[make.record_set(name, members) for name, members in _list_configurations(parts)],
        personal_sensitive_information=personal,
        **texts,
    )
    return check(json.dumps(metadata.to_json(), indent=2, ensure_ascii=False, default=str).encode() + b"\n")


def check(data: bytes) -> tuple[bytes, list[str]]:
    """Validate the bytes of a file; returns them with the warnings. Raises CroissantError if they are refused."""
    mlc = import_library()
    logger = logging.getLogger("absl")
    level = logger.level
    logger.setLevel(logging.ERROR)  # otherwise the warnings, which are returned, are also printed
    try:
        issues = mlc.Dataset(jsonld=json.loads(data)).metadata.ctx.issues
    except mlc.ValidationError as error:
        raise CroissantError(f"{FILE}: found metadata that the validator refuses: {error}") from error
    finally:
        logger.setLevel(level)
    if issues.errors:
        raise CroissantError(f"{FILE}: found metadata that the validator refuses: {'; '.join(sorted(issues.errors))}")
    # The date is optional: today's date would make every upload a new commit.
    return data, [warning for warning in sorted(issues.warnings) if "datePublished" not in warning]


def import_library() -> Any:
    """The package mlcroissant. Raises ConfigError if it is not installed."""
    handlers = list(logging.root.handlers)
    try:
        import mlcroissant
    except ImportError as error:
        raise ConfigError(
            "found no package mlcroissant, which writes Croissant metadata; expected the extra `publish`. "
            "Install it in the repository: make extras, or pip install '.[publish]'."
        ) from error
    logging.root.handlers = handlers  # the library adds a handler that prints all warnings a second time
    return mlcroissant


def _format_description(release: Release) -> str:
    counts = release.counts
    slots = {"items": f"{counts.total:,}", "tasks": ", ".join(counts.tasks), "canary": release.canary}
    if not any(info_of(source) for source, _ in counts.scenes):
        return load_word("croissant.of_others", **slots)
    sources = ", ".join(sorted({title_of(source) for source, _ in counts.scenes}))
    return load_word("croissant.description", **slots, sources=sources)


def _list_configurations(parts: Sequence[DataPart]) -> Iterator[tuple[str, list[DataPart]]]:
    """(name, parts) of the whole benchmark, of hard and training questions, and of single tasks."""
    for name in (ALL, HARD, TRAIN):
        if members := [part for part in parts if part.config == name]:
            yield name, members
    for part in parts:
        if part.task:
            yield part.name, [part]


@dataclass(frozen=True, slots=True)
class _Maker:
    """Makes objects of mlcroissant."""

    mlc: Any
    ctx: Any

    def file_set(self, name: str, members: Sequence[DataPart]) -> Any:
        return self.mlc.FileSet(
            ctx=self.ctx,
            id=f"parquet-files-{name}",
            name=f"parquet-files-{name}",
            description=f"the parquet files of the configuration {name}{_format_title(members)}",
            contained_in=[_REPO],
            encoding_formats=["application/x-parquet"],
            includes=[part.pattern for part in members],
        )

    def record_set(self, name: str, members: Sequence[DataPart]) -> Any:
        rows = sum(part.rows for part in members)
        return self.mlc.RecordSet(
            ctx=self.ctx,
            id=name,
            name=name,
            description=f"{rows} questions, split {members[0].split}{_format_title(members)}",
            fields=[self._field(name, column) for column in (*PUBLISHED.columns, CANARY)],
        )

    def _field(self, name: str, column: Column, of: str = "") -> Any:
        """The field of a column, or of a member of the struct column named `of`."""
        images, many = column.type == "images", column.type in ("strings", "int64s", "float64s")
        own: dict[str, Any] = {"id": "/".join(filter(None, (name, of, column.name))), "name": column.name}
        own["description"] = column.meaning + (f" ({column.unit})" if column.unit and not of else "")
        if column.type == "structs":
            inner = [self._field(name, member, column.name) for member in column.fields]
            return self.mlc.Field(ctx=self.ctx, **own, repeated=True, sub_fields=inner)
        # The JSON path of a sub-field selects the member in every struct of the list.
        member = column.name if of else "bytes" if images else ""
        source = self.mlc.Source(
            ctx=self.ctx,
            file_set=f"parquet-files-{name}",
            extract=self.mlc.Extract(ctx=self.ctx, column=of or column.name),
            transforms=[self.mlc.Transform(ctx=self.ctx, json_path=member)] if member else [],
        )
        # The library decodes each image of a list only if the field is marked as repeated.
        forms = {"repeated": images or None, "is_array": many or None, "array_shape": "-1" if many else None}
        types = self.mlc.DataType
        kinds = {"int64": types.INTEGER, "float64": types.FLOAT, "images": types.IMAGE_OBJECT}
        kind = kinds.get(column.type if images else column.type.removesuffix("s"), types.TEXT)
        return self.mlc.Field(ctx=self.ctx, **own, data_types=[kind], source=source, **({} if of else forms))


def _format_title(members: Sequence[DataPart]) -> str:
    title = members[0].title if len(members) == 1 else ""
    return f", task {title}" if title else ""
