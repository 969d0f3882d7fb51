"""MMSI-Bench: spatial questions about several images (`docs/protocols.md#mmsi-bench`).

`RunsenXu/MMSI-Bench` on the Hub, split `test`, 1,000 questions: `id`, `images` (encoded), `question_type` (11 of them,
with an en dash in newer copies and a hyphen in older ones), `question` (its options inside: "Options: A: …, B: …"),
`answer` (A to D), `thought` (the authors' reasoning, never shown to a model). Parquet; where it lies in the repository
has changed, so any parquet file below the folder that has these columns is read.

The functions with `msr_` in their names are those that task files of lmms-eval name; the shipped task files do.
"""

from __future__ import annotations

import io
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from vgbench_gen.core.types import Item
from vgbench_gen.evaluation.answers.official_others import mmsi_bench
from vgbench_gen.evaluation.base import Benchmark, benchmarks
from vgbench_gen.evaluation.benchmarks import _foreign
from vgbench_gen.evaluation.benchmarks._foreign import Foreign, Where, foreign_item
from vgbench_gen.evaluation.visual_cot import combined
from vgbench_gen.importers._files import RowError, column
from vgbench_gen.importers._files import text as text_of
from vgbench_gen.importers._words import find_options
from vgbench_gen.importers.base import ASKED
from vgbench_gen.store.files import dataset_error

if TYPE_CHECKING:
    from PIL.Image import Image

REPOSITORY = "RunsenXu/MMSI-Bench"
NAME = "MMSI-Bench"
ROWS = 1000
LETTERS = "ABCDEFGHIJ"
# Task -> question type, as newer copies write it.
TYPES = {
    "positional_cam_cam": "Positional Relationship (Cam.–Cam.)",  # noqa: RUF001
    "positional_obj_obj": "Positional Relationship (Obj.–Obj.)",  # noqa: RUF001
    "positional_reg_reg": "Positional Relationship (Reg.–Reg.)",  # noqa: RUF001
    "positional_cam_obj": "Positional Relationship (Cam.–Obj.)",  # noqa: RUF001
    "positional_obj_reg": "Positional Relationship (Obj.–Reg.)",  # noqa: RUF001
    "positional_cam_reg": "Positional Relationship (Cam.–Reg.)",  # noqa: RUF001
    "attribute_meas": "Attribute (Meas.)",
    "attribute_appr": "Attribute (Appr.)",
    "motion_cam": "Motion (Cam.)",
    "motion_obj": "Motion (Obj.)",
    "msr": "MSR",
}
_HEAD = re.compile(r"options\s*[:：]", re.IGNORECASE)  # noqa: RUF001
# A letter that begins an option: at the start or after a separator, and, where too few do, after any space.
_MARK = r"[(（]?([A-J])[)）]?\s*(?:[.)）．、]\s+|[:：]\s*)"  # noqa: RUF001
_AFTER_SEPARATOR = re.compile(rf"(?:(?<=[,;\n:，；：])|(?<=[,;\n:] )){_MARK}")  # noqa: RUF001
_AFTER_SPACE = re.compile(rf"(?<=[\s,;:，；：]){_MARK}")  # noqa: RUF001


def category(question_type: str) -> str:
    """A question type as newer copies write it, whatever dash it came with."""
    plain = _plain(question_type)
    return next((known for known in TYPES.values() if _plain(known) == plain), question_type.strip())


def _plain(name: str) -> str:
    return re.sub(r"[^a-z]", "", name.casefold())


def task_of(question_type: str) -> str:
    """The task of a question type; a name made of it where it is none of the eleven."""
    known = category(question_type)
    named = re.sub(r"[^a-z0-9]+", "_", known.casefold()).strip("_")
    return next((task for task, name in TYPES.items() if name == known), named)


@benchmarks.register("mmsi")
class MMSI(Benchmark):
    """MMSI-Bench from its parquet files."""

    prompt_set = "mmsi_official"
    max_tokens = 2048
    short_prompts: ClassVar[Mapping[str, str]] = {
        "seed": "mmsi_seed",
        "official": "mmsi_official",
        "lmms_unig2u": "mmsi_lmms_unig2u",
    }
    short_tasks: ClassVar[Mapping[str, str]] = {f"mmsi_{task}": task for task in TYPES}

    def open(self, path: Path, images: Path | None = None) -> Foreign:
        """As `Benchmark.open`."""
        place = _foreign.place_of(path, REPOSITORY, ["*.parquet", "**/*.parquet"])
        files = [path] if path.is_file() else place.find("*.parquet", "data/*.parquet", "**/*.parquet")
        items: list[Item] = []
        pictures: dict[str, Where] = {}
        notes = _foreign.Notes()
        unparsed = 0
        for file in files:
            for number, fields in _foreign.read_rows(file, ["images", "question_type", "question", "answer"]):
                try:
                    item = _item(file, number, len(items), fields, pictures)
                except RowError as problem:
                    notes.add(file, number, problem)
                    continue
                items.append(item)
                unparsed += not item.options
        if not items:
            raise dataset_error(path, "no question", f"{ROWS} of them", f"Download {REPOSITORY} and name its folder.")
        told = [f"{len(items)} questions, {ROWS} published"] if len(items) != ROWS else []
        if unparsed:
            told.append(f"{unparsed} questions whose options cannot be told apart are asked in one order only")
        return Foreign(NAME, place.folder, items, pictures, (*told, *notes.bad))


def _item(file: Path, number: int, index: int, fields: Mapping[str, Any], pictures: dict[str, Where]) -> Item:
    question = text_of(fields, "question").strip()
    answer = text_of(fields, "answer").strip().upper()
    cell = column(fields, "images")
    names = _foreign.names_of(cell)
    if not names:
        raise RowError("images", "none", "image_missing")
    options, at = options_of(question)
    if options and answer in tuple("ABCD"[len(options) :]):
        options, at = (), ()  # there are more than were found
    letters = LETTERS[: len(options)] if options else "ABCD"
    if answer not in tuple(letters):
        raise RowError("answer", f"{answer[:20]!r}; expected one of {letters}")
    kind = category(text_of(fields, "question_type"))
    row_id = fields.get("id")
    name = f"mmsi-{index if row_id is None else row_id}"
    for k, one in enumerate(names):
        pictures[one] = Where(file, number, "images", k)
    return foreign_item(
        name,
        benchmark=NAME,
        task=task_of(kind),
        question_type="multi-choice",
        question=question,
        answer=answer,
        images=names,
        source=NAME,
        scene_id=name,
        options=options,
        category=kind,
        index=index,
        evidence={ASKED: {"text": question, "options_at": [list(span) for span in at]}},
    )


def options_of(question: str) -> tuple[tuple[str, ...], tuple[tuple[int, int], ...]]:
    """(texts, [start, end) in the question) of its options; none where they cannot be told apart.

    The published ones stand behind "Options:", on one line or several, with commas between.
    """
    heads = list(_HEAD.finditer(question))
    if not heads:
        words = find_options(question)
        return words.options, words.options_at
    start = heads[-1].end()
    found = (_in_order(pattern.finditer(question, start)) for pattern in (_AFTER_SEPARATOR, _AFTER_SPACE))
    ordered = max(found, key=len)  # the first of equals
    if len(ordered) < 2:
        return (), ()
    spans = []
    for mark, after in zip(ordered, [*ordered[1:], None], strict=True):
        end = len(question) if after is None else after.start()
        text = question[mark.end() : end]
        left = len(text) - len(text.lstrip())
        kept = text.strip().rstrip(",;，；").rstrip()  # noqa: RUF001
        spans.append((mark.end() + left, mark.end() + left + len(kept)))
    if any(first >= last for first, last in spans):
        return (), ()
    return tuple(question[first:last] for first, last in spans), tuple(spans)


def _in_order(marks: Iterable[re.Match[str]]) -> list[re.Match[str]]:
    """The marks that run A, B, C, …; a letter that comes out of its turn belongs to an option's text."""
    found: list[re.Match[str]] = []
    for mark in marks:
        if mark.group(1) == LETTERS[len(found) : len(found) + 1]:
            found.append(mark)
    return found


# --- names that task files of lmms-eval use


def msr_doc_to_text(doc: Mapping[str, Any], lmms_eval_specific_kwargs: Mapping[str, Any] | None = None) -> str:
    """The question between `pre_prompt` and `post_prompt`."""
    given = lmms_eval_specific_kwargs or {}
    return f"{given.get('pre_prompt') or ''}{str(doc['question']).strip()}{given.get('post_prompt') or ''}"


def msr_doc_to_text_with_gen_prompt(
    doc: Mapping[str, Any], lmms_eval_specific_kwargs: Mapping[str, Any] | None = None
) -> str:
    """Both stages in one text where there is a `generation_prompt`, else the question as `msr_doc_to_text`.

    `visual_cot.split_combined` takes it apart.
    """
    question, given = msr_doc_to_text(doc, lmms_eval_specific_kwargs), lmms_eval_specific_kwargs or {}
    return combined(given["generation_prompt"], question) if "generation_prompt" in given else question


def msr_doc_to_visual(doc: Mapping[str, Any]) -> list[Image]:
    """The images of a row as RGB."""
    from PIL import Image

    found = []
    for one in doc["images"]:
        data = one.get("bytes") if isinstance(one, Mapping) else one
        image: Any = Image.open(io.BytesIO(data)) if isinstance(data, bytes | bytearray) else data
        found.append(image.convert("RGB"))
    return found


def msr_process_results(doc: Mapping[str, Any], results: Sequence[Any]) -> dict[str, dict[str, Any]]:
    """The score of one reply under its category and under `average`, by the published reader.

    A category that the row spells with another dash stands there under both spellings: a task file that names either
    gets its figure.
    """
    given = str(doc["question_type"])
    kind = category(given)
    said = mmsi_bench(None if results[0] is None else str(results[0]), str(doc["answer"]))
    told: dict[str, Any] = {"question_id": doc.get("id"), "l2_category": kind, "score": said.score}
    if said.extracted is None:
        told["note"] = "can not find anwser"  # as published, so that logs compare
    return {name: dict(told) for name in (kind, given, "average")}


def msr_aggregate_results(results: Sequence[Mapping[str, Any]]) -> float:
    """The mean over questions, 0 for none."""
    by_category: dict[str, list[float]] = defaultdict(list)
    for result in results:
        by_category[str(result["l2_category"])].append(float(result["score"]))
    scores = [score for members in by_category.values() for score in members]
    return sum(scores) / len(scores) if scores else 0.0
