"""Sets of questions that are fair, and the same with one defect planted: what an audit must tell apart."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from vgbench_gen.core.rng import rng_for
from vgbench_gen.core.types import Item
from vgbench_gen.pipeline.audit import AuditReport
from vgbench_gen.quality.questions import Question
from vgbench_gen.store.dataset import load
from vgbench_gen.store.media import MediaStore
from vgbench_gen.store.shards import write_items

SCENES = 40


def choices(count: int = 880) -> list[Question]:
    """Fair multi-choice questions: four values of one law, then which of them is true is drawn."""
    rng = rng_for(1, "planted", "choices")
    places = np.concatenate([rng.permutation(4) for _ in range(count // 4)])
    found = []
    for k in range(count):
        # The ladder of the default strategy: ratio and rank know nothing of the truth.
        values = rng.uniform(60, 140) * rng.uniform(1.26, 1.42) ** np.arange(4)
        found.append(_choice(k, [float(v) for v in rng.permutation(values)], int(places[k])))
    return found


def _choice(k: int, values: list[float], truth: int) -> Question:
    return Question(
        id=f"choice{k}",
        group=f"group{k}",
        scene=f"scannet/scene{k % SCENES:04d}",
        source="scannet",
        task="metric_depth",
        ask="",
        form="multi-choice",
        question=f"What is the mean depth, in meters, of region [{k}, 20, 90, 95]?",
        context="The image is 640 x 480 pixels.",
        options=tuple(f"{value:.2f} m" for value in values),
        truth=truth,
        images=(f"image{k}.jpg",),
    )


def claims(count: int = 440) -> list[Question]:
    """Fair twins: a true and a false claim about each truth, whose numbers follow one law."""
    rng = rng_for(1, "planted", "claims")
    found = []
    for k in range(count):
        pair = rng.permutation(np.array([1.0, rng.uniform(1.5, 2.0)]) * rng.uniform(0.8, 1.6))
        for half in (0, 1):
            found.append(
                Question(
                    id=f"claim{k}-{half}",
                    group=f"group{k}",
                    scene=f"scannet/scene{k % SCENES:04d}",
                    source="scannet",
                    task="metric_depth",
                    ask="",
                    form="judgment",
                    question=f"Is the depth of region [{k}, 20, 90, 95] within 10 percent of {pair[half]:.2f} meters?",
                    context="The image is 640 x 480 pixels.",
                    options=("Yes", "No"),
                    truth=half,
                    images=(f"image{k}.jpg",),
                    twin=f"twin{k}",
                )
            )
    return found


def perturbed(questions: list[Question]) -> list[Question]:
    """Wrong options are the truth times 1 +- 5 to 15 %, as the published camera questions are made."""
    rng = rng_for(1, "planted", "perturbed")
    found = []
    for question in questions:
        true = float(question.options[question.truth].split()[0])
        values = [true * (1 + float(rng.choice([-1, 1]) * rng.uniform(0.05, 0.15))) for _ in question.options]
        values[question.truth] = true
        found.append(replace(question, options=tuple(f"{value:.2f} m" for value in values)))
    return found


def letter_bias(questions: list[Question]) -> list[Question]:
    """Every tenth right answer is moved to the second place."""
    found = []
    for k, question in enumerate(questions):
        options = list(question.options)
        if k % 10 == 0:
            options[1], options[question.truth] = options[question.truth], options[1]
            question = replace(question, options=tuple(options), truth=1)
        found.append(question)
    return found


def decimals_leak(questions: list[Question]) -> list[Question]:
    """The truth is printed with one decimal more than the wrong options."""
    found = []
    for question in questions:
        options = list(question.options)
        options[question.truth] = options[question.truth].replace(" m", "3 m")
        found.append(replace(question, options=tuple(options)))
    return found


def broken_twins(questions: list[Question]) -> list[Question]:
    """Both halves of every 55th pair have one answer, yes as often as no."""
    return [
        replace(question, truth=(k // 110) % 2) if (k // 2) % 55 == 0 else question
        for k, question in enumerate(questions)
    ]


def unbalanced(questions: list[Question]) -> list[Question]:
    """A tenth of the false claims is left out."""
    return [question for k, question in enumerate(questions) if question.truth == 0 or k % 20 != 1]


def repeated(questions: list[Question]) -> list[Question]:
    """One question stands there twice under two ids."""
    return [*questions, replace(questions[3], id="again", group="another")]


def rewritten(build: Path, out: Path, change: dict[str, Item]) -> Path:
    """A copy of a built dataset in which some rows are replaced."""
    rows = [change.get(item.id, item) for item in load(build)]
    write_items(out / "items", rows, MediaStore(build / "media"))
    (out / "media").symlink_to(build / "media")
    (out / "manifest.json").write_bytes((build / "manifest.json").read_bytes())
    return out


def most_alike(questions: list[Question]) -> list[Question]:
    """In every third question the truth is the middle of its options."""
    return [
        replace(question, truth=sorted(range(4), key=lambda k: float(question.options[k].split()[0]))[1])
        if k % 3 == 0
        else question
        for k, question in enumerate(questions)
    ]


def ordered(questions: list[Question]) -> list[Question]:
    """The truth is the first option of a source, and the last one of another: letters are even over both."""
    found = []
    for k, question in enumerate(questions):
        options, place = list(question.options), 0 if k % 4 < 2 else 3
        options[place], options[question.truth] = options[question.truth], options[place]
        scene = f"{'scannet' if place == 0 else 'ca1m'}/scene{k % SCENES:04d}"
        context = f"The image is {640 + place} x 480 pixels."
        found.append(replace(question, options=tuple(options), truth=place, scene=scene, context=context))
    return found


def worded(questions: list[Question]) -> list[Question]:
    """A false claim asks for the mean depth, a true one for the depth."""
    return [
        replace(question, question=question.question.replace("the depth", "the mean depth"))
        if question.truth
        else question
        for question in questions
    ]


def usual_sizes(questions: list[Question]) -> list[Question]:
    """Each question names one of four things, whose true size hardly varies."""
    rng = rng_for(1, "planted", "sizes")
    found = []
    for k, question in enumerate(questions):
        thing, usual = (("a mug", 0.1), ("a chair", 0.9), ("a sofa", 2.0), ("a book", 0.25))[k % 4]
        step, rank = rng.uniform(1.3, 1.7), int(rng.integers(4))
        values = usual * rng.uniform(0.9, 1.1) * step ** (np.arange(4) - rank)
        order = rng.permutation(4)
        options = tuple(f"{values[i]:.2f} m" for i in order)
        text = f"How long is {thing} in region [{k}, 20, 90, 95], in meters?"
        found.append(replace(question, question=text, options=options, truth=int(np.flatnonzero(order == rank)[0])))
    return found


def fallen(report: AuditReport) -> set[str]:
    """Kinds of the statistics that failed."""
    return {finding.kind for finding in report.failed}
