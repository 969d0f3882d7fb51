"""From a made question to rows: pictures get their names, evidence is gathered. No raw scene is opened."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Protocol

import numpy as np

from vgbench_gen.core.rng import hash_stably, rng_for
from vgbench_gen.core.types import ALPHABET, Distractor, Item
from vgbench_gen.distractors.factorial import list_wrong_parts
from vgbench_gen.pipeline.plan import count_letters
from vgbench_gen.pipeline.question import AnswerableText, MadeQuestion
from vgbench_gen.pipeline.recipe import Recipe
from vgbench_gen.store.pictures import Picture
from vgbench_gen.store.provenance import rows_fingerprint
from vgbench_gen.store.schema import SCHEMA_VERSION, Row
from vgbench_gen.tasks.row_evidence import CandidateRecord, ClaimRecord, NoiseRecord, RowEvidence
from vgbench_gen.text.bank import ITEM_MARK

BENCHMARK = "VGBench"


def count_rows(rows: Iterable[Row]) -> dict[str, Any]:
    """What a manifest says of the rows of a dataset: the "fingerprint", how many "items" there are per
    "task/form/source", and how often each of the "letters" is the answer per "task/source"."""
    cells, lettered = Counter[str](), list[tuple[str, int, int]]()

    def note() -> Iterator[Row]:
        for row in rows:
            cells[f"{row['task']}/{row['question_type']}/{row['source']}"] += 1
            if row["question_type"] == "multi-choice" and row["answer"] in tuple(ALPHABET):
                place = ALPHABET.index(row["answer"])
                lettered.append((f"{row['task']}/{row['source']}", len(row["options"]), place))
            yield row

    fingerprint = rows_fingerprint(note())
    return {"fingerprint": fingerprint, "items": dict(sorted(cells.items())), "letters": count_letters(lettered)}


class PictureNamer(Protocol):
    """Gives names to pictures, such as `store.picture_cache.PictureCache`, which draws them."""

    def name(self, picture: Picture) -> str:
        """The name of the picture's file in the media store."""


def question_rows(made: MadeQuestion, recipe: Recipe, pictures: PictureNamer, *, with_noise: bool = True) -> list[Item]:
    """The rows of a question: one, or two twins for a judgment; with the result of its noise test where wanted."""
    texts = list(made.texts)
    # Neither half always comes first: a reader of rows in order would learn the rule.
    if len(texts) > 1 and rng_for(recipe.seed, "twin_order", made.plan.group_id).random() < 0.5:
        texts.reverse()
    noise = made.measure_noise() if with_noise else None
    return [_row(made, text, recipe, pictures, noise) for text in texts]


def _row(
    made: MadeQuestion,
    text: AnswerableText,
    recipe: Recipe,
    pictures: PictureNamer,
    noise: NoiseRecord | None,
) -> Item:
    plan, fact, task = made.plan, made.fact, made.task
    form, truth = plan.question_type, fact.truth_candidate
    strategy, seed = (made.options.strategy, recipe.distractor_seed) if made.options is not None else ("", 0)
    identity = _identity(made, text, strategy, seed)
    polarity = "" if text.claim is None else "true" if text is made.texts[0] else "false"
    images = tuple(pictures.name(picture) for picture in made.pictures)
    frame_of = {name: frame_id for frame_id, name in fact.pictures.items()}
    frame_ids = tuple(dict.fromkeys(frame_of[picture.base] for picture in made.pictures))  # in the order of first use
    return Item(
        id=hash_stably("item", *identity, polarity, size=12),
        index=-1,
        group_id=plan.group_id,
        twin_id=hash_stably("twin", *identity, size=12) if polarity else "",
        pair_id=hash_stably("pair", plan.group_id, form, size=12) if plan.paired else "",
        benchmark=BENCHMARK,
        task=fact.task,
        ask=fact.ask,
        question_type=form,
        category=task.category,
        subcategory=task.subcategory,
        category_origin=task.category_origin[form],
        index_origin=-1,
        input_modality="single-image" if len(images) == 1 else "multi-images",
        source=fact.dataset,
        scene_id=fact.scene_id,
        frame_ids=frame_ids,
        split=fact.split,
        question=text.question,
        context=text.context,
        options=text.options,
        answer=text.answer,
        answer_value=tuple(truth.value.ravel().tolist()),
        answer_shape=truth.value.shape,
        unit=task.unit_for(fact),
        tolerance=task.tolerance(form) if text.tolerance is None else text.tolerance,
        images=images,
        convention=task.convention,
        distractors=_list_distractors(made),
        evidence=_make_evidence(made, text, frame_ids).with_fields(noise=noise).write(),
        template_id=text.template_id,
        paraphrase=text.paraphrase,
        strategy=strategy,
        distractor_seed=seed,
        error_parts=() if made.options is None else list_wrong_parts(made.options),
        difficulty=plan.difficulty,
        licence=fact.licence,
        schema_version=SCHEMA_VERSION,
    )


def _make_evidence(made: MadeQuestion, text: AnswerableText, frame_ids: Sequence[str]) -> RowEvidence:
    """What a reader needs to reach the answer again, from the row alone."""
    fact, truth = made.fact, CandidateRecord.make(made.fact.truth_candidate)
    evidence = RowEvidence(
        ask=fact.ask,
        side=made.plan.side,
        key=fact.key,
        frame_ids=list(fact.frame_ids),
        fact=dict(fact.evidence),
        truth=truth,
        second_value=np.asarray(fact.second_value),
        margin=fact.margin,
        options=[truth] if made.options is None else list(map(CandidateRecord.make, made.options.options)),
        pictures=[picture.to_json() for picture in made.pictures],
        cameras={frame_id: fact.cameras[frame_id] for frame_id in frame_ids},
        bases={frame_id: fact.pictures[frame_id] for frame_id in frame_ids},
    )
    if text.claim is None:
        return evidence
    holds = text is made.texts[0]
    claim = ClaimRecord.make(text.claim.get_candidate(fact), holds=holds, separation=text.claim.separation)
    # The noise test weighs both claims, and each row must be able to repeat it.
    (twin,) = (other.claim for other in made.texts if other is not text and other.claim is not None)
    return evidence.with_fields(claim=claim, twin_value=twin.value)


def row_with_words(item: Item, question: str, context: str, model: str, language: str) -> Item:
    """A finished row in the words of a model. It is another question then, so its ids are others; its group stays."""
    return replace(
        item,
        id=hash_stably("reworded", item.id, model, language, question, context, size=12),
        # Twins differ in numbers alone, which their words must not tell apart here.
        twin_id=item.twin_id and hash_stably("reworded", item.twin_id, model, language, size=12),
        question=question,
        context=context,
        template_id=f"{item.template_id.partition(ITEM_MARK)[0]}{ITEM_MARK}{language}",
        paraphrase=model,
    )


def _identity(made: MadeQuestion, text: AnswerableText, strategy: str, seed: int) -> tuple[str, ...]:
    """What makes a question another one, as names to hash: truth, form, words, wrong options, side."""
    plan = made.plan
    worded_by = text.template_id
    if ITEM_MARK in worded_by:  # two rewordings of a row are two questions
        worded_by = hash_stably("reworded", worded_by, text.question, text.context)
    identity = (plan.group_id, plan.question_type, worded_by, strategy, str(seed), *text.options)
    return (*identity, plan.side) if plan.side else identity


def _list_distractors(made: MadeQuestion) -> tuple[Distractor, ...]:
    """How each wrong option was made, in the order of the letters; empty for other question types."""
    options = made.options
    if options is None:
        return ()
    apart = made.task.pair_margins(options.options, made.fact)[0][options.truth].tolist()
    return tuple(
        Distractor(options.strategy, option.key, separation)
        for place, (option, separation) in enumerate(zip(options.options, apart, strict=True))
        if place != options.truth
    )
