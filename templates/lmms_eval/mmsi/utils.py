"""What the task files beside it name; needs vgbench_gen in the environment of lmms-eval."""

from vgbench_gen.evaluation.benchmarks.mmsi import (
    msr_aggregate_results,
    msr_doc_to_text,
    msr_doc_to_text_with_gen_prompt,
    msr_doc_to_visual,
    msr_process_results,
    task_of,
)

__all__ = [
    "attribute_appr",
    "attribute_meas",
    "motion_cam",
    "motion_obj",
    "msr",
    "msr_aggregate_results",
    "msr_doc_to_text",
    "msr_doc_to_text_with_gen_prompt",
    "msr_doc_to_visual",
    "msr_process_results",
]


def _only(dataset, task):
    # One column is read for it: the images of the others stay where they are.
    kinds = dataset["question_type"]
    return dataset.select([k for k, kind in enumerate(kinds) if task_of(kind) == task])


def attribute_appr(dataset):
    """Rows about appearance."""
    return _only(dataset, "attribute_appr")


def attribute_meas(dataset):
    """Rows about measures."""
    return _only(dataset, "attribute_meas")


def motion_obj(dataset):
    """Rows about things that move."""
    return _only(dataset, "motion_obj")


def motion_cam(dataset):
    """Rows about the camera's motion."""
    return _only(dataset, "motion_cam")


def msr(dataset):
    """Rows that take several steps."""
    return _only(dataset, "msr")
