"""The functions of MMSI-Bench that task files of lmms-eval name; the shipped task files do."""

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
    given = lmms_eval_specific_kwargs or {}
    return f"{given.get('pre_prompt') or ''}{str(doc['question']).strip()}{given.get('post_prompt') or ''}"


def msr_doc_to_text_with_gen_prompt(
    doc: Mapping[str, Any], lmms_eval_specific_kwargs: Mapping[str, Any] | None = None
) -> str:
    """Both stages in one text where there is a `generation_prompt`, else the question as `msr_doc_to_text`.

    `visual_cot.split_combined` takes it apart.
    """
    question, given = msr_doc_to_text(doc, lmms_eval_specific_kwargs), lmms_eval_specific_kwargs or {}
    return combine_stages(given["generation_prompt"], question) if "generation_prompt" in given else question


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
    kind = normalize_category(given)
    said = score_mmsi_bench(None if results[0] is None else str(results[0]), str(doc["answer"]))
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
