"""An item as the gallery needs it: a few light columns for the list, and a record with everything for its own view."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from vgbench_gen.core.rng import format_canonical_json
from vgbench_gen.core.types import ALPHABET, Item
from vgbench_gen.quality.explain import find_overlay, find_words
from vgbench_gen.report.site import replace_non_finite
from vgbench_gen.store.pictures import find_size
from vgbench_gen.tasks.base import tasks
from vgbench_gen.tasks.evidence import Evidence
from vgbench_gen.tasks.presentation import Mark
from vgbench_gen.tasks.row_evidence import UNREADABLE, RowEvidence, rebuild_fact
from vgbench_gen.text.numbers import format_value

EXCERPT = 300  # characters of the question in the list, which are searched and of which a card shows the first lines


def shorten_question(item: Item) -> str:
    """The beginning of the question in one line."""
    text = " ".join(item.question.split())
    return text if len(text) <= EXCERPT else f"{text[: EXCERPT - 1].rstrip()}…"


def make_detail(item: Item, addresses: Sequence[str]) -> dict[str, Any]:
    """Everything that the view of one item shows; JSON-ready.

    addresses: of its images, as `GalleryImages.find_address` gives them.
    """
    marks, problem = make_overlay(item)
    return {
        "id": item.id,
        "question": item.question,
        "context": item.context,
        "options": list(item.options),
        "answer": item.answer,
        "images": [
            {"address": address, "size": measure, "marks": drawn}
            for address, measure, drawn in zip(addresses, read_sizes(item), marks, strict=True)
        ],
        "overlay_problem": problem,
        "told": tell_evidence(item),
        "numbers": [[label, text] for label, text in list_numbers(item) if text],
        "provenance": [[label, text] for label, text in list_provenance(item) if text],
        "margins": list_margins(item),
        "decoys": list_decoys(item),
        "evidence": item.evidence,
    }


def read_sizes(item: Item) -> list[list[int] | None]:
    """[width, height] of every image in pixels as far as the evidence tells."""
    found: list[list[int] | None] = [None] * len(item.images)
    try:
        row = RowEvidence.of(item)
        for k, picture in enumerate(row.shown()[: len(found)]):
            width, height = find_size(picture, row.base_size(picture.base))
            if 0 < width < 32768 and 0 < height < 32768:
                found[k] = [width, height]
    except UNREADABLE:
        pass
    return found


def make_overlay(item: Item) -> tuple[list[list[dict[str, Any]]], str]:
    """(marks of every image, why there are none or ""), as `vgbench show` draws them."""
    drawn, problem = find_overlay(item)
    try:
        found = [[_mark(mark) for mark in marks if _is_drawable(mark)] for marks in drawn]
    except UNREADABLE as error:
        return [[] for _ in item.images], f"The evidence does not give an overlay ({type(error).__name__})."
    return found, problem or ("" if any(found) else "This item has nothing to draw.")


def _mark(mark: Mark) -> dict[str, Any]:
    points = [[round(float(u), 2), round(float(v), 2)] for u, v in mark.points_px]
    return {"kind": mark.kind, "points": points, "label": mark.label, "right": mark.right}


def _is_drawable(mark: Mark) -> bool:
    return bool(mark.points_px) and all(math.isfinite(c) and abs(c) < 1e6 for point in mark.points_px for c in point)


def list_numbers(item: Item) -> list[tuple[str, str]]:
    """(name, value) of the numbers behind the answer; a value that there is not is ""."""
    row = RowEvidence.found(item)
    unit = f" {item.unit}" if item.unit else ""
    words = find_words(item, np.array(item.answer_value))
    again = "" if row is None else find_words(item, row.second_value) or format_value(row.second_value.tolist()) + unit
    found = [
        ("Answer value", words or format_value(_reshape_answer(item)) + unit),
        ("Second route", again),
        ("Tolerance", f"{item.tolerance:g}" if item.tolerance else ""),
        ("Smallest margin", "" if row is None else f"{row.margin:g}"),
    ]
    if row is None:
        return found
    if row.claim is not None:
        claimed = find_words(item, row.claim.value) or format_value(row.claim.value.tolist()) + unit
        found.append(("Claimed value", claimed))
        found.append(("Claim holds", "yes" if row.claim.holds else "no"))
        found.append(("Claim's separation over margin", f"{row.claim.separation:.6g}"))
    if row.noise is not None:
        found.append(("Noise test", row.noise.described))
    return found


def list_provenance(item: Item) -> list[tuple[str, str]]:
    """(name, value) of what the question was made from and how; a value that there is not is ""."""
    return [
        ("Source", item.source),
        ("Scene", item.scene_id),
        ("Frames", ", ".join(item.frame_ids)),
        ("Split", item.split),
        ("License", item.licence),
        ("Kind", item.ask),
        ("Difficulty", item.difficulty),
        ("Category", " / ".join(part for part in (item.category, item.subcategory) if part)),
        ("Template", item.template_id),
        ("Paraphrased by", item.paraphrase),
        ("Strategy", f"{item.strategy}, seed {item.distractor_seed}" if item.strategy else ""),
        ("Convention", format_canonical_json(replace_non_finite(item.convention))),
        ("Index", str(item.index)),
        ("Group", item.group_id),
        ("Twins", item.twin_id),
        ("Pair", item.pair_id),
    ]


def list_margins(item: Item) -> list[list[Any]]:
    """[name, ratio of the measured to the required margin] of every check."""
    row = RowEvidence.found(item)
    return [] if row is None else [[name, value] for name, value in sorted(row.margins.items())]


def list_decoys(item: Item) -> list[list[Any]]:
    """[letter, strategy, separation over the required one, candidate] of every wrong option."""
    letters = [letter for letter, _ in zip(ALPHABET, item.options, strict=False) if letter != item.answer]
    return [
        [letters[k] if k < len(letters) else "", decoy.strategy, round(decoy.separation, 3), decoy.key]
        for k, decoy in enumerate(item.distractors)
    ]


def _reshape_answer(item: Item) -> Any:
    try:
        return np.array(item.answer_value, dtype=np.float64).reshape(item.answer_shape)
    except ValueError:
        return list(item.answer_value)


_UNLIMITED = 100.0  # a margin from here on is one that cannot be missed


def tell_evidence(item: Item) -> list[str]:
    """Sentences about the truth, how it was checked, and how far it is from wrong; [] where the row tells nothing."""
    try:
        row, fact, task = RowEvidence.of(item), rebuild_fact(item), tasks[item.task]
        truth, *wrong = (task.candidate_evidence.given(one) for one in (fact.truth_candidate, *fact.candidates))
        records = [record for record in (truth, task.fact_evidence.of(fact), *wrong) if record is not None]
        return [*_tell_truth(item, row, records), *_tell_views(records), *_tell_margins(item, row)]
    except UNREADABLE:
        return []


def _tell_truth(item: Item, row: RowEvidence, records: Sequence[Evidence]) -> Iterator[str]:
    unit = f" {item.unit}" if item.unit else ""
    if words := find_words(item, row.second_value):
        yield f"Measured again by another route: {words}."
        return
    if len(item.answer_value) == 1:
        yield f"Measured: {_format(item.answer_value[0])}{unit}."
    second = row.second_value.ravel()
    again = ""
    if second.size <= 4:
        again = (_format(second[0]) if second.size == 1 else format_value(row.second_value.tolist())) + unit
    elif second.size == row.truth.value.size:
        again = f"no entry differs by more than {_format(abs(second - row.truth.value.ravel()).max())}"
    if again:
        yield f"Measured again by another route: {again}."
    visible = getattr(records[0], "visible", None)  # only of boxes
    if isinstance(visible, float):
        yield f"{visible:.0%} of the object can be seen."


def _tell_views(records: Sequence[Evidence]) -> Iterator[str]:
    pair = next((pair for record in records if (pair := record.two_views()) is not None), None)
    if pair is None:
        return
    yield (
        f"The cameras stand {_format(pair.baseline_m)} m apart and are turned by {_format(pair.rotation_deg)}° "
        f"against each other; at least {pair.overlap:.0%} of what one sees the other sees as well, about "
        f"{_format(pair.depth_m)} m away."
    )


def _tell_margins(item: Item, row: RowEvidence) -> Iterator[str]:
    if row.claim is not None:
        verdict = "holds" if row.claim.holds else "does not hold"
        away = "" if row.claim.holds else f": it is {_format(row.claim.separation)} times the required distance away"
        yield f"The claim {verdict}{away}."
    letters = [letter for letter, _ in zip(ALPHABET, item.options, strict=False) if letter != item.answer]
    gaps = sorted((decoy.separation, letter) for letter, decoy in zip(letters, item.distractors, strict=False))
    if gaps:
        separation, letter = gaps[0]
        yield f"The nearest wrong option, {letter}, is {_format(separation)} times as far from the truth as required."
    names = [name for name, value in row.margins.items() if value == row.margin]
    if 0 < row.margin < _UNLIMITED:
        named = f"{_name_check(names[0])}, " if names else ""
        yield f"Tightest check: {named}{_format(row.margin)}x the required margin."
    if row.noise is not None:
        yield f"The answer was {row.noise.described}."


def _name_check(margin: str) -> str:
    """A margin's name in words: "a_rect" is the rectangle of object A."""
    object_name, _, rest = margin.partition("_")
    of_object = f" of object {object_name.upper()}" if object_name in ("a", "b") else ""
    words = (rest if of_object else margin).replace("_", " ")
    return words.replace("rect", "rectangle") + of_object


def _format(value: float) -> str:
    return f"{float(value):.3g}"
