"""From a planned question to rows: pictures rendered, words filled, evidence gathered. No raw scene is opened."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from vgbench_gen.core.rng import rng_for, stable_hash
from vgbench_gen.core.types import LETTERS, Candidate, Distractor, Fact, Item, QuestionType
from vgbench_gen.distractors.base import Margins, OptionSet
from vgbench_gen.pipeline.plan import Planned
from vgbench_gen.pipeline.recipe import Recipe, Words
from vgbench_gen.quality.noise import kept_share
from vgbench_gen.store.picture_cache import PictureCache
from vgbench_gen.store.pictures import Picture
from vgbench_gen.store.schema import SCHEMA_VERSION
from vgbench_gen.tasks.base import Claim, Presentation, Task, Twins
from vgbench_gen.text import lint
from vgbench_gen.text.render import Phrasing, phrasings, render, word

BENCHMARK = "VGBench"


@dataclass(frozen=True, slots=True)
class Wording:
    """Settings that words and ids depend on. words: a bank that is drawn from beside the shipped phrasings."""

    seed: int
    strategy: str
    distractor_seed: int
    words: Words = field(default_factory=Words)

    @classmethod
    def of(cls, recipe: Recipe) -> Wording:
        """Those of a recipe."""
        return cls(recipe.seed, recipe.strategy, recipe.distractor_seed, recipe.wording)

    def drawn_from(self, task: str, form: QuestionType) -> Sequence[Phrasing]:
        """What a question of this kind is worded by: the bank's wordings first, as many as are allowed."""
        extra = [p for p in self.words.phrasings if p.task == task and p.question_type == form]
        if not extra:
            return phrasings(task, form)
        more = phrasings(task, form) if self.words.language == "en" else ()
        return [*extra, *more][: self.words.most]


@dataclass(frozen=True, slots=True)
class Refused:
    """A planned question that could not be written, and why."""

    task: str
    question_type: str
    source: str
    group_id: str
    reason: str


def refusal(entry: Planned, task: Task, wording: Wording, margins: Margins = "enforced") -> str:
    """Why this question may not be asked, or "" where it may. Draws no picture.

    margins: "recorded" leaves out the noise test, whose bar such questions need not meet.
    """
    fact, form = entry.fact, entry.question_type
    twins = None
    rng, phrasing = _drawn(entry, wording)
    texts: list[tuple[Mapping[str, str], tuple[str, ...]]]
    if form == "judgment":
        twins = task.twins(fact, rng)
        if twins is None or twins.false.separation < 1:
            return "no_false_claim"
        texts = [({**twins.slots, **claim.slots}, ()) for claim in (twins.true, twins.false)]
    elif form == "multi-choice":
        if entry.options is None:
            raise ValueError(f"{entry.group_id}: a multi-choice question without options")
        shown = task.choice(fact, entry.options, rng)
        texts = [(shown.slots, shown.options)]
    else:
        texts = [(task.open_ended(fact).slots, ())]
    for slots, options in texts:
        for problem in lint.lint(*render(phrasing, slots), options, phrasing.states):
            return f"lint: {problem}"
    if margins == "enforced" and _kept(entry, task, twins) < task.gates.noise.kept_min:
        return "noise"
    return ""


def _kept(entry: Planned, task: Task, twins: Twins | None) -> float:
    """Share of perturbations that leave the question its answer."""
    options, claims = entry.options, None
    if twins is not None:
        claims = twins.true.value, twins.false.value
    members, truth = ((), 0) if options is None else (options.options, options.truth)
    return kept_share(entry.fact, entry.group_id, entry.question_type, task, members, truth, claims)


def _drawn(entry: Planned, wording: Wording) -> tuple[np.random.Generator, Phrasing]:
    """Generator of what is shown, and the phrasing.

    Drawn from the group, so that the wording knows nothing of the answer and twins share it.
    """
    form = entry.question_type
    bank = wording.drawn_from(entry.fact.task, form)
    phrasing = bank[int(rng_for(wording.seed, "phrasing", entry.group_id, form).integers(len(bank)))]
    return presentation_rng(wording.seed, entry.group_id, form), phrasing


def presentation_rng(seed: int, group_id: str, form: QuestionType) -> np.random.Generator:
    """Generator of what a question shows, such as the numbers of its marks; the same whatever its options are."""
    return rng_for(seed, "present", group_id, form)


def identity_of(entry: Planned, template_id: str, strategy: str, seed: int, options: Sequence[str]) -> tuple[str, ...]:
    """What makes a question another one, as names to hash: truth, form, words, wrong options, side."""
    identity = (entry.group_id, entry.question_type, template_id, strategy, str(seed), *options)
    return (*identity, entry.side) if entry.side else identity


def item_id(identity: Sequence[str], polarity: str = "") -> str:
    """Id of the row with this identity; polarity: "true" or "false" for the halves of a judgment, else ""."""
    return stable_hash("item", *identity, polarity, size=12)


def write(entry: Planned, task: Task, cache: PictureCache, wording: Wording) -> list[Item] | Refused:
    """The rows of one planned question: one, or two twins for a judgment. Its words are those that `refusal` read."""
    fact, form = entry.fact, entry.question_type
    twins = None
    rng, phrasing = _drawn(entry, wording)
    if form == "judgment":
        twins = task.twins(fact, rng)
        if twins is None or twins.false.separation < 1:
            return Refused(fact.task, form, fact.dataset, entry.group_id, "no_false_claim")
        rows = _judgments(entry, task, twins, phrasing, cache, wording)
    elif form == "multi-choice":
        if entry.options is None:
            raise ValueError(f"{entry.group_id}: a multi-choice question without options")
        shown = task.choice(fact, entry.options, rng)
        rows = [_choice(entry, task, shown, phrasing, cache, wording)]
    else:
        rows = [_open_ended(entry, task, task.open_ended(fact), phrasing, cache, wording)]
    noise = {"kept": _kept(entry, task, twins), "draws": task.gates.noise.draws}
    return [replace(row, evidence={**row.evidence, "noise": noise}) for row in rows]


def _choice(
    entry: Planned, task: Task, shown: Presentation, phrasing: Phrasing, cache: PictureCache, wording: Wording
) -> Item:
    options = entry.options
    if options is None:
        raise ValueError(f"{entry.group_id}: a multi-choice question without options")
    return _row(
        entry,
        task,
        phrasing,
        cache,
        wording,
        pictures=shown.pictures,
        slots=shown.slots,
        options=shown.options,
        answer=LETTERS[options.truth],
        distractors=distractors_of(options),
        extra={"options": [candidate_record(option) for option in options.options]},
    )


def distractors_of(options: OptionSet) -> tuple[Distractor, ...]:
    """How each wrong option was made, in the order of the letters."""
    return tuple(
        Distractor(options.strategy, option.key, separation)
        for place, (option, separation) in enumerate(zip(options.options, options.separations, strict=True))
        if place != options.truth
    )


def _open_ended(
    entry: Planned, task: Task, shown: Presentation, phrasing: Phrasing, cache: PictureCache, wording: Wording
) -> Item:
    return _row(entry, task, phrasing, cache, wording, pictures=shown.pictures, slots=shown.slots, answer=shown.answer)


def _judgments(
    entry: Planned, task: Task, twins: Twins, phrasing: Phrasing, cache: PictureCache, wording: Wording
) -> list[Item]:
    rows = []
    claims = [(True, twins.true, twins.false), (False, twins.false, twins.true)]
    # Neither half always comes first: a reader of rows in order would learn the rule.
    if rng_for(wording.seed, "twin_order", entry.group_id).random() < 0.5:
        claims.reverse()
    for holds, claim, other in claims:
        rows.append(
            _row(
                entry,
                task,
                phrasing,
                cache,
                wording,
                pictures=twins.pictures,
                slots={**twins.slots, **claim.slots},
                answer=word("answer.yes" if holds else "answer.no"),
                polarity="true" if holds else "false",
                tolerance=twins.tolerance,
                # The noise test weighs both claims, and each row must be able to repeat it.
                extra={"claim": claim_record(claim, holds, entry.fact), "twin_value": other.value.tolist()},
            )
        )
    return rows


def _row(
    entry: Planned,
    task: Task,
    phrasing: Phrasing,
    cache: PictureCache,
    wording: Wording,
    *,
    pictures: tuple[Picture, ...],
    slots: Mapping[str, str],
    answer: str,
    options: tuple[str, ...] = (),
    distractors: tuple[Distractor, ...] = (),
    polarity: str = "",
    tolerance: float | None = None,
    extra: Mapping[str, Any] | None = None,
) -> Item:
    fact, form = entry.fact, entry.question_type
    strategy = wording.strategy if form == "multi-choice" else ""
    distractor_seed = wording.distractor_seed if form == "multi-choice" else 0
    question, context = render(phrasing, slots)
    images = tuple(cache.name(picture) for picture in pictures)
    truth = fact.truth_candidate
    identity = identity_of(entry, phrasing.id, strategy, distractor_seed, options)
    shown_frames = frames_shown(fact, pictures)
    return Item(
        id=item_id(identity, polarity),
        index=-1,
        group_id=entry.group_id,
        twin_id=stable_hash("twin", *identity, size=12) if polarity else "",
        pair_id=stable_hash("pair", entry.group_id, form, size=12) if entry.paired else "",
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
        frame_ids=shown_frames,
        split=fact.split,
        question=question,
        context=context,
        options=options,
        answer=answer,
        answer_value=tuple(truth.value.ravel().tolist()),
        answer_shape=truth.value.shape,
        unit=task.unit_for(fact),
        tolerance=task.tolerance(form) if tolerance is None else tolerance,
        images=images,
        convention=task.convention,
        distractors=distractors,
        evidence={
            "ask": fact.ask,
            "side": entry.side,
            "key": fact.key,
            "frame_ids": list(fact.frame_ids),
            "fact": fact.evidence,
            "truth": candidate_record(truth),
            "second_value": np.asarray(fact.second_value).tolist(),
            "margin": fact.margin,
            "options": [candidate_record(truth)],
            "cameras": {frame_id: fact.cameras[frame_id] for frame_id in shown_frames},
            "pictures": [picture.to_json() for picture in pictures],
            "bases": {frame_id: fact.pictures[frame_id] for frame_id in shown_frames},
            **(extra or {}),
        },
        template_id=phrasing.id,
        paraphrase=phrasing.paraphrase,
        strategy=strategy,
        distractor_seed=distractor_seed,
        difficulty=entry.difficulty,
        licence=fact.licence,
        schema_version=SCHEMA_VERSION,
    )


def frames_shown(fact: Fact, pictures: tuple[Picture, ...]) -> tuple[str, ...]:
    """Frames whose images the pictures are made from, in order of first use."""
    frame_of = {name: frame_id for frame_id, name in fact.pictures.items()}
    return tuple(dict.fromkeys(frame_of[picture.base] for picture in pictures))


def candidate_record(candidate: Candidate) -> dict[str, Any]:
    """A candidate as evidence; `candidate_from_record` in `quality.verify` is its inverse."""
    return {
        "key": candidate.key,
        "value": candidate.value.tolist(),
        "frame_ids": list(candidate.frame_ids),
        "show": dict(candidate.show),
        "evidence": dict(candidate.evidence),
    }


def claim_record(claim: Claim, holds: bool, fact: Fact) -> dict[str, Any]:
    """A claim as evidence: a candidate of the pool with the claimed value, where it is about one."""
    about = next((c for c in fact.candidates if c.key == claim.key), Candidate(claim.key, claim.value))
    record = candidate_record(replace(about, value=claim.value))
    return record | {"holds": holds, "separation": claim.separation}
