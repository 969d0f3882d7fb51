"""Samples for ROVER's judge: a task with its images, and a model's reply (`docs/protocols.md#rover`)."""

from __future__ import annotations

import io
import math
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vgbench_gen.core.errors import ConfigError
from vgbench_gen.core.paths import inside, open_file
from vgbench_gen.core.rng import digest_bytes, format_canonical_json, hash_stably
from vgbench_gen.core.text_files import read_text
from vgbench_gen.evaluation.answers.vocabulary import match_any_of, read_words
from vgbench_gen.importers._files import list_names, read_json_rows
from vgbench_gen.store.files import dataset_error

if TYPE_CHECKING:
    from PIL.Image import Image

    Picture = str | Path | bytes | Image
else:
    Picture = Any

DIMENSIONS = ("science", "culture", "common_sense", "logic")
REASONING_TYPES = (
    "temporal", "spatial", "causal", "quantitative", "imaginative", "logical", "mathematical", "abstract",
)  # fmt: skip
MAX_IMAGE_BYTES = 64 << 20
MAX_OUTPUT_CHARS = 64 << 20
_TASK_ID = re.compile(r"(?P<dimension>common_sense|[a-z]+)_(?P<reasoning>[a-z]+)_(?P<n>[0-9A-Za-z-]+)")
_NAMES = {"humanity": "culture", "math": "mathematical", "commonsense": "common_sense"}
_PNG = b"\x89PNG\r\n\x1a\n"
_TAGS = re.compile(
    rf"<\s*/?\s*{match_any_of(read_words('reasoning_tags'))}\b[^<>]{{0,200}}>|◁/?think▷|\[/?THINK\]", re.IGNORECASE
)
_WORD = re.compile(r"[^\W_]+")
_MAX_PLACEHOLDER_CHARS = 200
_NOUN = r"(?:think|thinking|thinkoutput|reasoning|thoughts?|output|text|explanation|process|trace|content)"
_GIVEN = r"(?:available|provided|applicable|given|generated|produced|returned|found|output)"
# Texts without reasoning, as words separated by single spaces.
_PLACEHOLDERS = re.compile(
    rf"(?:{_NOUN} )*(?:none|null|nan|n a|na|nothing|todo|tbd|empty|placeholder)|"
    rf"no {_NOUN}(?: {_NOUN})*(?: (?:was|is|were|has been))?(?: {_GIVEN})?|"
    rf"(?:{_NOUN} )*(?:(?:was|is|were) )?not {_GIVEN}|"
    rf"{_NOUN}(?: {_NOUN})*(?: here)?",
    re.IGNORECASE,
)


@dataclass
class EvaluationSample:
    """A model's answer to a task.

    Text fields accept None and other values, which become text; lists are joined by commas.

    Raises:
        ConfigError: sample_id is None.
    """

    sample_id: str
    """Id of the task, `{dimension}_{reasoning_type}_{n}` in the benchmark."""
    original_image: Picture
    """The image of the task: a path, encoded bytes or a PIL image."""
    generated_image: Picture
    """The model's image, in the same forms."""
    target_image: Picture | None = None
    """A correct image, if the task has one."""
    prompt: str = ""
    """The instruction to the model."""
    dimension: str = ""
    """"science", "culture" (also written "humanity"), "common_sense" or "logic"; "" to take it from the id."""
    reasoning_type: str = ""
    """The type of reasoning; "" to take it from the id."""
    keywords: str = ""
    """Required content of the image."""
    target_description: str = ""
    """Description of the correct image."""
    think_output: str = ""
    """The model's written reasoning."""

    def __post_init__(self) -> None:
        if self.sample_id is None:
            raise ConfigError("sample_id: found None; expected a text.")
        for name in _TEXTS:
            setattr(self, name, _read_text(getattr(self, name)))

    @property
    def place(self) -> tuple[str, str]:
        """(dimension, reasoning type) in one spelling, from the fields or the id; "" if unknown."""
        match = _TASK_ID.fullmatch(self.sample_id.strip().casefold())
        named = (match["dimension"], match["reasoning"]) if match else ("", "")
        return _normalize_name(self.dimension) or _normalize_name(named[0]), _normalize_name(
            self.reasoning_type
        ) or _normalize_name(named[1])


def _normalize_name(name: str) -> str:
    name = re.sub(r"[\s-]+", "_", name.strip().casefold())
    return _NAMES.get(name, name)


def _read_text(value: object) -> str:
    if value is None or (isinstance(value, float) and math.isnan(value)):  # a missing value in a table is NaN
        return ""
    if isinstance(value, Iterable) and not isinstance(value, str | bytes | Mapping):
        return ", ".join(map(str, value))
    return str(value)


def sample_of(value: object) -> EvaluationSample:
    """Convert a mapping of fields (or `id`) to a sample, ignoring other keys; a sample is returned unchanged.

    Raises:
        ConfigError: another type, or no id or images.
    """
    if isinstance(value, EvaluationSample):
        return value
    if not isinstance(value, Mapping):
        raise ConfigError(f"samples: found a {type(value).__name__}; expected EvaluationSample or its fields by name.")
    row = {"sample_id": value.get("id"), **value}
    missing = [name for name in ("sample_id", *_IMAGES[:2]) if name not in row]
    if missing:
        raise ConfigError(f"samples: found no {', '.join(missing)}; expected the fields of EvaluationSample.")
    return EvaluationSample(**{name: row[name] for name in (*_TEXTS, *_IMAGES) if name in row})


def is_empty(think_output: str | None) -> bool:
    """Whether a text contains no reasoning: empty, blanks, empty tags, or a placeholder such as "none"."""
    text = _TAGS.sub(" ", think_output or "")
    if _WORD.search(text) is None:
        return True
    return len(text) < _MAX_PLACEHOLDER_CHARS and _PLACEHOLDERS.fullmatch(" ".join(_WORD.findall(text))) is not None


def encode_picture(picture: Picture, name: str = "an image given as bytes") -> bytes:
    """JPEG or PNG bytes of an image; others are written as PNG.

    Args:
        picture: path, encoded bytes or a PIL image.
        name: for errors, if the image is no path.

    Raises:
        DatasetError: no such file, a file that is too large, or no image.
    """
    from PIL import Image

    if isinstance(picture, Image.Image):
        return _encode_png(picture)
    if not isinstance(picture, str | os.PathLike | bytes | bytearray):
        found = "None" if picture is None else f"a {type(picture).__name__}"
        raise dataset_error(name, found, "a path, encoded bytes or a PIL image", "Give the image.")
    where = name if isinstance(picture, bytes | bytearray) else str(picture)
    try:
        if isinstance(picture, bytes | bytearray):
            data = bytes(picture)
        else:
            with open_file(Path(picture)) as file:
                data = file.read(MAX_IMAGE_BYTES + 1)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise dataset_error(where, f"no readable file ({why})", "an image", "Check its path.") from None
    if len(data) > MAX_IMAGE_BYTES:
        raise dataset_error(where, f"more than {MAX_IMAGE_BYTES} bytes", "less", "Make the image smaller.")
    return data if data.startswith((b"\xff\xd8\xff", _PNG)) else convert_to_png(data, where)


def convert_to_png(data: bytes, name: str) -> bytes:
    """An encoded image as PNG; a PNG is unchanged. Raises DatasetError if the bytes are no image."""
    from PIL import Image, UnidentifiedImageError

    if data.startswith(_PNG):
        return data
    try:
        with Image.open(io.BytesIO(data)) as image:
            return _encode_png(image)
    except (UnidentifiedImageError, OSError, ValueError, Image.DecompressionBombError) as error:
        # For an unknown format the library's message is only an address in memory.
        why = "" if isinstance(error, UnidentifiedImageError) else f" ({' '.join(str(error).split())[:80]})"
        raise dataset_error(name, f"no image{why}", "JPEG or PNG", "Check the file.") from None


def _encode_png(image: Image) -> bytes:
    out = io.BytesIO()
    (image if image.mode in ("RGB", "L") else image.convert("RGB")).save(out, "PNG")
    return out.getvalue()


def digest(sample: EvaluationSample, images: Mapping[str, bytes]) -> str:
    """Digest of all texts and images for the judge."""
    texts = [sample.prompt, *sample.place, sample.keywords, sample.target_description, sample.think_output]
    return hash_stably(
        format_canonical_json([texts, {name: digest_bytes(data) for name, data in sorted(images.items())}])
    )


_TEXTS = tuple(one.name for one in fields(EvaluationSample) if "image" not in one.name)
_IMAGES = ("original_image", "generated_image", "target_image")
_REMEDY = f"Give one object per line with {', '.join((*_TEXTS, *_IMAGES))}."


def read_samples(path: Path) -> Iterator[EvaluationSample]:
    """Read samples from a JSON list or JSON lines; image paths are relative to the file's folder.

    Raises:
        DatasetError: no such file, no JSON, or a row without an id or images.
    """
    seen: set[str] = set()
    for number, row in enumerate(read_json_rows(path), start=1):
        row = _check_row(row, f"{path}, sample {number}", seen)
        texts = {name: row.get(name) or "" for name in _TEXTS}
        images: dict[str, Any] = {name: _find_image(path.parent, row[name]) for name in _IMAGES if row.get(name)}
        yield EvaluationSample(**texts, **images)


def _find_image(folder: Path, name: str) -> Path:
    paths = [inside(folder, each, dataset_error) for each in list_names(folder, name)]
    return next((path for path in paths if path.is_file()), paths[0])


def _check_row(row: Any, where: str, seen: set[str]) -> dict[str, Any]:
    """The row with its `sample_id`, which is added to `seen`.

    Raises:
        DatasetError: the row is no sample, or its id was seen before.
    """
    if not isinstance(row, dict):
        raise dataset_error(where, f"a {type(row).__name__}", "an object", _REMEDY)
    found: dict[str, Any] = row | {"sample_id": row.get("sample_id", row.get("id"))}
    for name in ("sample_id", "original_image", "generated_image"):
        if not isinstance(found.get(name), str) or not found[name]:
            raise dataset_error(where, f"{name} = {str(found.get(name))[:40]!r}", "a text", _REMEDY)
    if not isinstance(found.get("target_image"), str | None):
        raise dataset_error(where, f"target_image = {str(found['target_image'])[:40]!r}", "a text", _REMEDY)
    if found["sample_id"] in seen:
        raise dataset_error(where, f"{found['sample_id']!r} a second time", "ids that are different", _REMEDY)
    seen.add(found["sample_id"])
    return found


def read_think_output(folder: Path, task_id: str) -> str:
    """The reasoning in `gen_{id}.txt`; "" without such a file. Raises DatasetError if the file is no text."""
    path = folder / f"gen_{task_id}.txt"
    if not path.is_file():
        return ""
    return read_text(path, "text", dataset_error, MAX_OUTPUT_CHARS).strip()
