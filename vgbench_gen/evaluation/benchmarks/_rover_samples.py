"""What ROVER's judge is given: a task, its images, and what a model made of it (`eval-protocols.md` 7)."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vgbench_gen.core.errors import DatasetError
from vgbench_gen.core.rng import bytes_digest, canonical_json, stable_hash
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
MAX_SAMPLES_BYTES = 1 << 30
_TASK_ID = re.compile(r"(?P<dimension>common_sense|[a-z]+)_(?P<reasoning>[a-z]+)_(?P<n>[0-9A-Za-z-]+)")
_NAMES = {"humanity": "culture", "math": "mathematical", "commonsense": "common_sense"}
_PLACEHOLDERS = re.compile(
    r"\W*(?:none|null|nan|n/?a|no (?:reasoning|think(?:ing)?|output)(?: (?:available|provided|output))?|"
    r"(?:think[ _]?output|reasoning)(?: (?:here|text))?|todo|tbd|empty|placeholder|-+|\.*)\W*",
    re.IGNORECASE,
)


@dataclass
class EvaluationSample:
    """One answer to a task.

    sample_id: `{dimension}_{reasoning_type}_{n}` in the benchmark. original_image, generated_image, target_image: path,
    encoded bytes or a PIL image. dimension: science, culture (also written humanity), common_sense or logic; "" to take
    it from the id, and so is reasoning_type. think_output: the model's written reasoning.
    """

    sample_id: str
    original_image: Picture
    generated_image: Picture
    target_image: Picture | None = None
    prompt: str = ""
    dimension: str = ""
    reasoning_type: str = ""
    keywords: str = ""
    target_description: str = ""
    think_output: str = ""

    @property
    def place(self) -> tuple[str, str]:
        """(dimension, reasoning type) by one name each, "" where neither fields nor id say."""
        match = _TASK_ID.fullmatch(self.sample_id.strip().casefold())
        named = (match["dimension"], match["reasoning"]) if match else ("", "")
        return _plain(self.dimension) or _plain(named[0]), _plain(self.reasoning_type) or _plain(named[1])


def _plain(name: str) -> str:
    name = re.sub(r"[\s-]+", "_", name.strip().casefold())
    return _NAMES.get(name, name)


def is_empty(think_output: str | None) -> bool:
    """Whether there is no reasoning: nothing, blanks, or words that stand for nothing."""
    return not think_output or _PLACEHOLDERS.fullmatch(think_output.strip()) is not None


def encoded(picture: Picture) -> bytes:
    """JPEG or PNG bytes of an image; others are written as PNG.

    Raises:
        DatasetError: there is no such file, it is too large, or it is no image.
    """
    from PIL import Image, UnidentifiedImageError

    if isinstance(picture, Image.Image):
        return _png(picture)
    where = str(picture) if isinstance(picture, str | Path) else "an image given as bytes"
    try:
        data = picture if isinstance(picture, bytes) else Path(picture).read_bytes()
    except OSError as error:
        raise dataset_error(where, f"no readable file ({error.strerror})", "an image", "Check its path.") from None
    if len(data) > MAX_IMAGE_BYTES:
        raise dataset_error(where, f"{len(data)} bytes", f"at most {MAX_IMAGE_BYTES}", "Make the image smaller.")
    if data.startswith((b"\xff\xd8\xff", b"\x89PNG\r\n\x1a\n")):
        return data
    try:
        with Image.open(io.BytesIO(data)) as image:
            return _png(image)
    except (UnidentifiedImageError, OSError, Image.DecompressionBombError) as error:
        raise dataset_error(where, f"no image ({str(error)[:80]})", "JPEG or PNG", "Check the file.") from None


def _png(image: Image) -> bytes:
    out = io.BytesIO()
    (image if image.mode in ("RGB", "L") else image.convert("RGB")).save(out, "PNG")
    return out.getvalue()


def digest(sample: EvaluationSample, images: Mapping[str, bytes]) -> str:
    """Of everything the judge is given."""
    texts = [sample.prompt, *sample.place, sample.keywords, sample.target_description, sample.think_output]
    return stable_hash(canonical_json([texts, {name: bytes_digest(data) for name, data in sorted(images.items())}]))


_TEXTS = tuple(one.name for one in fields(EvaluationSample) if "image" not in one.name)
_IMAGES = ("original_image", "generated_image", "target_image")


def read_samples(path: Path) -> Iterator[EvaluationSample]:
    """Samples of a JSON list or of JSON lines; image paths count from the file's folder.

    Raises:
        DatasetError: no such file, no JSON, or a row without an id or images.
    """
    remedy = f"Give one object per line with {', '.join((*_TEXTS, *_IMAGES))}."
    try:
        if path.stat().st_size > MAX_SAMPLES_BYTES:
            raise dataset_error(path, f"{path.stat().st_size} bytes", f"at most {MAX_SAMPLES_BYTES}", "Split the file.")
        text = path.read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise dataset_error(path, f"no readable text ({error})", "samples", remedy) from None
    try:
        listed = text.lstrip().startswith("[")
        rows = json.loads(text) if listed else [json.loads(line) for line in text.splitlines() if line.strip()]
    except (ValueError, RecursionError) as error:
        raise dataset_error(path, f"no JSON ({str(error)[:100]})", "samples", remedy) from None
    seen: set[str] = set()
    for number, row in enumerate(rows, start=1):
        where = f"{path}, sample {number}"
        if not isinstance(row, dict):
            raise dataset_error(where, f"a {type(row).__name__}", "an object", remedy)
        row = row | {"sample_id": row.get("sample_id", row.get("id"))}
        for name in ("sample_id", "original_image", "generated_image"):
            if not isinstance(row.get(name), str) or not row[name]:
                raise dataset_error(where, f"{name} = {str(row.get(name))[:40]!r}", "a text", remedy)
        if row["sample_id"] in seen:
            raise dataset_error(where, f"{row['sample_id']!r} a second time", "ids that are different", remedy)
        seen.add(row["sample_id"])
        texts = {name: str(row.get(name) or "") for name in _TEXTS}
        images = {name: path.parent / row[name] for name in _IMAGES if row.get(name)}
        yield EvaluationSample(**texts, **images)


def think_output_of(folder: Path, task_id: str) -> str:
    """The reasoning in `gen_{id}.txt`, "" where there is none.

    Raises:
        DatasetError: it is no text.
    """
    path = folder / f"gen_{task_id}.txt"
    if not path.is_file():
        return ""
    try:
        return path.read_text("utf-8").strip()
    except UnicodeDecodeError as error:
        raise DatasetError(f"{path}: found no UTF-8 ({error}); expected text. Write it again.") from None
