"""A lint of training files: each defect of a row with its remedy, and which rows a trainer will keep."""

from __future__ import annotations

import hashlib
import io
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import islice, repeat
from pathlib import Path

import numpy as np

from vgbench_gen.core.paths import open_file
from vgbench_gen.core.stand_ins import config_error
from vgbench_gen.training.families import Family, Size
from vgbench_gen.training.guards import TrainingGuard, read_guard
from vgbench_gen.training.looks import Look, count_copies, describe_grey
from vgbench_gen.training.trainers import Fate, Trainer
from vgbench_gen.training.training_files import Sample, TrainingPicture, list_files, note_types, read_samples

REMEDIES = {
    "unreadable": "Write it anew, or leave the row out (--fix).",
    "no_list": "Make it a list, also for one picture (--fix).",
    "marks_over": "Write one mark, in its place, for each picture, or leave the row out (--fix).",
    "marks_under": "Write one mark, in its place, for each picture (--fix puts those of a row without any in front).",
    "model_token": "Take the model's own token out of the text, or leave the row out (--fix).",
    "roles": "Call the turns system, user and assistant, in this order, or leave the row out (--fix).",
    "layout": "Export anew with --to NAME: this trainer does not read such rows.",
    "no_question": "Leave the row out (--fix).",
    "no_answer": "Export with answers, or leave the row out (--fix).",
    "empty_answer": "Write the answer, or leave the row out (--fix): nothing is learned from it.",
    "not_text": "Write every turn as text, or leave the row out (--fix).",
    "stray_mark": "Take the mark of a picture that is not there out of the text, or leave the row out (--fix).",
    "absolute_path": "Write paths relative to the file (--fix), or they hold on this machine alone.",
    "missing_picture": "Copy the picture there, or leave the row out (--fix).",
    "broken_picture": "Write the picture anew, or leave the row out (--fix).",
    "long_picture": "Leave the row out (--fix): processors refuse a picture over 200 times as long as wide.",
    "too_long": "Raise the setting that is named, or lower the pictures' size.",
    "test_room": "Leave the row out (--fix): its room is one of a validation or test set.",
    "test_picture": "Leave the row out (--fix): its picture is one of a validation or test set.",
    "repeated_id": "Give every row an id of its own.",
}
LAYOUTS = {
    "marks": "marks in the text",
    "parts": "pictures in the messages, under the key image",
    "url": "pictures in the messages under another key than image",
    "places": "places in the messages for the pictures of a column",
    "column": "pictures in a column alone",
    "both": "pictures in the messages and in a column",
}
FATAL = frozenset(name for name, remedy in REMEDIES.items() if "leave the row out (--fix)" in remedy.lower())
"""Defects for which `--fix` leaves a row out."""
_SPLITS = ("val", "validation", "test")
_ROOM = re.compile(r"(?:^|/)(scene\d{4}_\d\d)(?:[/_.]|$)")
_MOST_PIXELS, _MOST_BYTES, _ASPECT_MAX = 64_000_000, 64_000_000, 200
_FORMATS = ("JPEG", "PNG", "WEBP", "BMP", "GIF", "TIFF")
EXAMPLES = 3
"""Rows of each defect that are shown."""
_BATCH = 32  # rows whose pictures are in memory
_ADDRESS = re.compile(r" file <.*>")
_ROLES = ("user", "assistant", "tool")
_MODEL_TOKEN = re.compile(r"<\|(?:image_pad|vision_start|vision_end|video_pad)\|>|<IMG_CONTEXT>")
_TURN_TOKENS, _PICTURE_TOKENS = 5, 2  # that a chat template of the Qwen family adds


@dataclass(frozen=True, slots=True)
class SeenPicture:
    """What a picture is like."""

    defect: str = ""
    """Name of what is wrong with it; "" for nothing."""
    found: str = ""
    """What was found, in words."""
    size: Size = (0, 0)
    """(width, height), pixels."""
    look: Look | None = None
    """How it looks; None where it is too plain, or broken."""


@dataclass(frozen=True, slots=True)
class LintedRow:
    """What is known of one row."""

    place: str
    id: str
    defects: Mapping[str, str]
    """Name -> what was found."""
    fate: Fate
    tokens: int


@dataclass
class LintReport:
    """What a lint found in a file or folder."""

    rows: int = 0
    fates: Counter[str] = field(default_factory=Counter)
    defects: Counter[str] = field(default_factory=Counter)
    damaged: list[LintedRow] = field(default_factory=list)
    """Rows with defects: all, or the first ones of each."""
    mixed: dict[str, list[str]] = field(default_factory=dict)
    """Column -> its types, of columns with several."""
    alike: int = 0
    """Pictures that look like another one of another name."""
    pictures: int = 0
    answers: set[str] = field(default_factory=set)
    """The first two that differ."""
    most_tokens: int = 0

    @property
    def clean(self) -> bool:
        """Whether nothing is wrong."""
        return not self.defects and not self.mixed

    @property
    def constant_answer(self) -> str:
        """The answer of all rows, where they have but one; "" where answers differ."""
        return next(iter(self.answers)) if self.rows > 1 and len(self.answers) == 1 else ""


def lint(
    path: Path,
    trainer: Trainer,
    family: Family,
    *,
    most_tokens: int = 0,
    count_text: Callable[[str], int] | None = None,
    guard: TrainingGuard | None = None,
    keep_all: bool = False,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> LintReport:
    """Look at every row of a training file or folder.

    Args:
        path: the file, or a folder with files.
        trainer: which rows it keeps is predicted.
        family: whose processor makes tokens of the pictures.
        most_tokens: the longest row; 0 for the trainer's default.
        count_text: tokens of a text; None estimates them.
        guard: what must not occur.
        keep_all: keep every row with defects, as mending needs them, and not the first ones of each alone.
        progress: called with (rows done, 0).

    Raises:
        DatasetError: a file cannot be read.
    """
    report, guard, limit = LintReport(), guard or read_guard(()), most_tokens or trainer.most_tokens
    types: dict[str, dict[str, None]] = {}
    cache: dict[str, SeenPicture] = {}
    ids: set[str] = set()
    with ThreadPoolExecutor(2) as pool:
        for file in list_files(path):
            samples = read_samples(file)
            while batch := list(islice(samples, _BATCH)):
                shown = {_name_picture(one, file.parent): one for sample in batch for one in sample.pictures}
                new = {name: one for name, one in shown.items() if name not in cache}
                cache.update(zip(new, pool.map(see_picture, new.values(), repeat(file.parent)), strict=True))
                for sample in batch:
                    seen = [cache[_name_picture(picture, file.parent)] for picture in sample.pictures]
                    defects = dict(sample.faults) | dict(_find_defects(sample, seen, trainer, guard))
                    if sample.id and sample.id in ids:
                        defects["repeated_id"] = f"the id {sample.id} again"
                    ids.add(sample.id)
                    tokens = _count_tokens(sample, seen, family, trainer, count_text or estimate_tokens)
                    if limit and tokens > limit:
                        defects["too_long"] = (
                            f"{tokens} tokens, of which {trainer.setting or 'the limit'} keeps {limit}"
                        )
                    row = LintedRow(sample.place, sample.id, defects, trainer.find_fate(defects), tokens)
                    note_types(sample.record, types)
                    report.rows += 1
                    report.fates[row.fate] += 1
                    report.most_tokens = max(report.most_tokens, tokens)
                    report.defects.update(list(defects))
                    if defects and (keep_all or min(report.defects[name] for name in defects) <= EXAMPLES):
                        report.damaged.append(row)
                    report.answers |= {sample.answer} if len(report.answers) < 2 else set()
                    progress(report.rows, 0)
    report.mixed = {column: sorted(kinds) for column, kinds in types.items() if len(kinds) > 1}
    if report.mixed and trainer.one_type:
        report.fates = Counter({"raised": report.rows})
    report.pictures, report.alike = len(cache), count_copies(one.look for one in cache.values() if one.look)
    return report


def _find_defects(
    sample: Sample, seen: Sequence[SeenPicture], trainer: Trainer, guard: TrainingGuard
) -> Iterator[tuple[str, str]]:
    """(name, what was found) of what is wrong with a row that can be read."""
    if not sample.record:
        return
    if sample.marks != len(sample.pictures):
        over = sample.marks > len(sample.pictures)
        yield "marks_over" if over else "marks_under", f"{sample.marks} marks for {len(sample.pictures)} pictures"
    if token := next((match for _, text in sample.turns if (match := _MODEL_TOKEN.search(text))), None):
        yield "model_token", token[0]
    roles = [role for role, _ in sample.turns if role != "system"]
    if wrong := [role for role in roles if role not in _ROLES] or [role for role in roles[:1] if role != "user"]:
        yield "roles", f"a turn of {wrong[0]!r}{' first' if wrong[0] in _ROLES else ''}"
    if not sample.prompt.strip():
        yield "no_question", "no words before the answer"
    if not sample.turns or sample.turns[-1][0] != "assistant":
        yield "no_answer", "no turn of the assistant at the end"
    elif not sample.answer.strip():
        yield "empty_answer", "no words"
    if sample.layout and trainer.layouts and sample.layout not in trainer.layouts:
        yield "layout", f"{LAYOUTS[sample.layout]}; expected {LAYOUTS[trainer.layouts[0]]}"
    for picture, one in zip(sample.pictures, seen, strict=True):
        if Path(picture.path).is_absolute():
            yield "absolute_path", picture.path
        if one.defect:
            yield one.defect, one.found
    (source, scene), split = find_scene(sample), str(sample.record.get("split", ""))
    if split in _SPLITS:
        yield "test_room", f"a row of the split {split}"
    elif scene and guard.has_room(source, scene):
        yield "test_room", scene
    if guard.looks and any(guard.has_picture(one.look) for one in seen if one.look):
        yield "test_picture", "a picture that looks like a guarded one"


def find_scene(sample: Sample) -> tuple[str, str]:
    """(data set, scene) of a row by its column `scene`, or a ScanNet scene in a path of a picture; else ("", "")."""
    named = sample.record.get("scene")
    if isinstance(named, str):
        source, _, scene = named.partition("/")
        return (source, scene) if scene else ("", source)
    found = next((match for picture in sample.pictures if (match := _ROOM.search(picture.path))), None)
    return ("scannet", found[1]) if found else ("", "")


def _name_picture(picture: TrainingPicture, folder: Path) -> str:
    """By which a picture is known again: its place, or a digest of its bytes."""
    if picture.data is None:
        return str(folder / picture.path)
    return hashlib.blake2b(picture.data, digest_size=16).hexdigest()


def see_picture(picture: TrainingPicture, folder: Path) -> SeenPicture:
    """What a picture is like; folder: from which its path is relative."""
    from PIL import Image

    data = picture.data
    try:
        if data is None:
            with open_file(folder / picture.path) as file:
                data = file.read(_MOST_BYTES + 1)
    except (OSError, ValueError) as error:
        said = getattr(error, "strerror", error)
        return SeenPicture("missing_picture", f"{picture.path[:200] or 'neither bytes nor a path'}: {said}")
    try:
        with Image.open(io.BytesIO(data), formats=_FORMATS) as image:
            size, found = image.size, f"{image.width} x {image.height} pixels"
            if len(data) > _MOST_BYTES or image.width * image.height > _MOST_PIXELS:
                return SeenPicture("broken_picture", f"{found}, {len(data)} bytes", size)
            image.draft("L", (size[0] // 4, size[1] // 4))
            look = describe_grey(np.asarray(image.convert("L")))
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
        return SeenPicture("broken_picture", f"{picture.path or 'bytes'}: {_ADDRESS.sub('', str(error))[:100]}")
    if max(size) > _ASPECT_MAX * min(size):
        return SeenPicture("long_picture", found, size, look)
    return SeenPicture(size=size, look=look)


def _count_tokens(
    sample: Sample, seen: Sequence[SeenPicture], family: Family, trainer: Trainer, count_text: Callable[[str], int]
) -> int:
    """Tokens of a row: its pictures by the family's processor, its text, and what a chat template adds."""
    pictures = sum(family.count_tokens(one.size) + _PICTURE_TOKENS for one in seen if not one.defect)
    turns = [text for role, text in sample.turns if role != "assistant" or not trainer.prompt_alone]
    return pictures + sum(count_text(text) + _TURN_TOKENS for text in turns)


def estimate_tokens(text: str) -> int:
    """About how many tokens a text has: Qwen's tokenizers make one of each digit and mark, and 1.2 of a word."""
    words, digits = len(_WORDS.findall(text)), len(_SIGNS.findall(text))
    return digits + round(1.2 * words)


_WORDS, _SIGNS = re.compile(r"[^\W\d_]+"), re.compile(r"[^\sA-Za-z]")


def load_tokenizer(path: Path) -> Callable[[str], int]:
    """Counts tokens by a `tokenizer.json` of a model.

    Raises:
        ConfigError: the package `tokenizers` is not installed, or the file is none of its own.
    """
    try:
        from tokenizers import Tokenizer
    except ImportError:
        remedy = "pip install tokenizers, or leave it out for an estimate."
        raise config_error("--tokenizer", "no package tokenizers", "it", remedy) from None
    try:
        tokenizer = Tokenizer.from_file(str(path))
    except Exception as error:  # the package raises this class itself
        raise config_error(path, str(error)[:100], "a tokenizer.json", "Give that of the model.") from error
    return lambda text: len(tokenizer.encode(text, add_special_tokens=False).ids)
