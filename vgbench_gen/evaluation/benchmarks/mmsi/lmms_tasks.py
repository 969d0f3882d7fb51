"""Functions of MMSI-Bench that task files of lmms-eval call."""

from __future__ import annotations

import io
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from vgbench_gen.evaluation.answers.official_others import score_mmsi_bench
from vgbench_gen.evaluation.benchmarks.mmsi.questions import normalize_category
from vgbench_gen.evaluation.visual_cot import combine_stages

if TYPE_CHECKING:
    from PIL.Image import Image


def msr_doc_to_text(doc: Mapping[str, Any], lmms_eval_specific_kwargs: Mapping[str, Any] | None = None) -> str:
    """The question between `pre_prompt` and `post_prompt`."""
    prompts = lmms_eval_specific_kwargs or {}
    return f"{prompts.get('pre_prompt') or ''}{str(doc['question']).strip()}{prompts.get('post_prompt') or ''}"


def msr_doc_to_text_with_gen_prompt(
    doc: Mapping[str, Any], lmms_eval_specific_kwargs: Mapping[str, Any] | None = None
) -> str:
    """Both stages in one text if there is a `generation_prompt`, else the question as `msr_doc_to_text`.

    `visual_cot.split_combined` separates them again.
    """
    question, prompts = msr_doc_to_text(doc, lmms_eval_specific_kwargs), lmms_eval_specific_kwargs or {}
    return combine_stages(prompts["generation_prompt"], question) if "generation_prompt" in prompts else question


def msr_doc_to_visual(doc: Mapping[str, Any]) -> list[Image]:
    """The images of a row as RGB."""
    from PIL import Image

    found = []
    for cell in doc["images"]:
        data = cell.get("bytes") if isinstance(cell, Mapping) else cell
        image: Any = Image.open(io.BytesIO(data)) if isinstance(data, bytes | bytearray) else data
        found.append(image.convert("RGB"))
    return found


def msr_process_results(doc: Mapping[str, Any], results: Sequence[Any]) -> dict[str, dict[str, Any]]:
    """The score of a reply by the published rules, under its category and under `average`.

    A category with another dash in the row is present in both spellings, because a task file may name either.
    """
    row_category = str(doc["question_type"])
    category = normalize_category(row_category)
    scored = score_mmsi_bench(None if results[0] is None else str(results[0]), str(doc["answer"]))
    result: dict[str, Any] = {"question_id": doc.get("id"), "l2_category": category, "score": scored.score}
    if scored.extracted is None:
        result["note"] = "can not find anwser"  # the published spelling, so that logs can be compared
    return {name: dict(result) for name in (category, row_category, "average")}


def msr_aggregate_results(results: Sequence[Mapping[str, Any]]) -> float:
    """The mean over questions, 0 for none."""
    by_category: dict[str, list[float]] = defaultdict(list)
    for result in results:
        by_category[str(result["l2_category"])].append(float(result["score"]))
    scores = [score for members in by_category.values() for score in members]
    return sum(scores) / len(scores) if scores else 0.0
