"""The only place where a question comes to be: a fact in one form gets what it shows, its words and its checks.

Whoever asks a fact calls `make_question`: asking, which checks it; writing and the audit's pool, which make its rows
(`rows.question_rows`). No picture is drawn here, and no raw scene is opened.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from vgbench_gen.core.errors import ConfigError, TooFewOptionsError, VGBenchError
from vgbench_gen.core.rng import format_canonical_json, hash_stably, rng_for
from vgbench_gen.core.types import ALPHABET, Fact, FloatArray, Notation, QuestionType
from vgbench_gen.distractors.base import DEFAULT, OptionSet, set_problem, strategies
from vgbench_gen.pipeline.question_plan import QuestionPlan
from vgbench_gen.pipeline.recipe import Recipe, WordSettings
from vgbench_gen.quality.noise import measure_noise
from vgbench_gen.store.pictures import Picture
from vgbench_gen.tasks.base import Task
from vgbench_gen.tasks.presentation import Claim
from vgbench_gen.tasks.row_evidence import NoiseRecord
from vgbench_gen.text import lint
from vgbench_gen.text.render import Phrasing, fill_word, load_phrasings, render


class QuestionRejectedError(VGBenchError):
    """A question may not be asked, for a short machine-readable reason that reports count."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True, slots=True, eq=False)
class AnswerableText:
    """One text that is put to a reader, with its right answer: a question, or one of the two claims of a judgment."""

    question: str
    """The question, with all its slots filled."""
    context: str
    template_id: str
    paraphrase: str = ""
    """The model that worded it, or "" for our own words."""
    states: tuple[str, ...] = ()
    """Conventions that the words must state, by the names that `text.lint` knows."""
    answer: str = ""
    """The letter, "Yes" or "No", or the number with its unit."""
    options: tuple[str, ...] = ()
    """The options of a multi-choice question as texts without letters."""
    claim: Claim | None = None
    tolerance: float | None = None
    """What "true" means for a claim, in the task's unit or as a ratio."""


@dataclass(frozen=True, slots=True, eq=False)
class MadeQuestion:
    """A question whose words are filled and whose pictures are described, but not drawn."""

    plan: QuestionPlan
    fact: Fact
    """The fact as it reads from the side that is asked."""
    task: Task
    """The task, under the gates of the build."""
    options: OptionSet | None
    """The options of a multi-choice question, in the order of the letters."""
    pictures: tuple[Picture, ...]
    """What is shown, in this order."""
    texts: tuple[AnswerableText, ...]
    """One text, or the true and then the false claim of a judgment."""
    noise: NoiseRecord | None = None
    """What the noise test gave; None where it was not tested yet."""

    def measure_noise(self) -> NoiseRecord:
        """What the noise test gives; see `quality.noise.measure_noise`."""
        if self.noise is not None:
            return self.noise
        members, truth = ((), 0) if self.options is None else (self.options.options, self.options.truth)
        claims = None
        if self.plan.question_type == "judgment":
            true, false = (text.claim for text in self.texts)
            claims = (true.value, false.value) if true is not None and false is not None else None
        plan = self.plan
        return measure_noise(self.fact, plan.group_id, plan.question_type, self.task, members, truth, claims)


def make_question(
    fact: Fact,
    options: OptionSet | None,
    plan: QuestionPlan,
    task: Task,
    recipe: Recipe,
    *,
    check: bool = True,
) -> MadeQuestion:
    """Make the question that asks a fact in the form of its plan.

    Args:
        fact: as it reads from the side that the plan asks from; see `ask_as_planned`.
        options: of a multi-choice question, in the order of the letters; else None.
        check: whether texts and noise are tested. A question that was checked before needs no second test.

    Raises:
        QuestionRejectedError: the question may not be asked.
    """
    form = plan.question_type
    fill_words = _choose_words(plan, task, recipe)
    # What shows a set of options is the same for every set; claims are drawn together with what shows them.
    rng = presentation_rng(recipe.seed, plan.group_id, form, plan.draw if form == "judgment" else 0)
    texts: tuple[AnswerableText, ...]
    if form == "judgment":
        twins = task.claim_pair(fact, rng)
        if twins is None or twins.false.separation < 1:
            raise QuestionRejectedError("no_false_claim")
        pictures = twins.pictures
        texts = tuple(
            replace(
                fill_words({**twins.slots, **claim.slots}),
                answer=fill_word(answer),
                claim=claim,
                tolerance=twins.tolerance,
            )
            for answer, claim in (("answer.yes", twins.true), ("answer.no", twins.false))
        )
    elif form == "multi-choice":
        if options is None:
            raise ValueError(f"{plan.group_id}: a multi-choice question without options")
        shown = task.choice(fact, options, rng)
        pictures = shown.pictures
        text = fill_words(shown.slots)
        texts = (replace(text, answer=ALPHABET[options.truth], options=shown.options),)
    else:
        shown = task.open_ended(fact)
        pictures = shown.pictures
        texts = (replace(fill_words(shown.slots), answer=shown.answer),)
    known = dict(enumerate(plan.noise)).get(1 if plan.side else 0)  # of the side that is asked from
    made = MadeQuestion(plan, fact, task, options, pictures, texts, known)
    return _check_question(made, recipe) if check else made


def _check_question(made: MadeQuestion, recipe: Recipe) -> MadeQuestion:
    """The question with the result of its noise test.

    Raises:
        QuestionRejectedError: its texts break a rule of `text.lint`, its answer does not bear noise, or `verify`
            would refuse a claim.
    """
    for text in made.texts:
        problems = lint.lint(text.question, text.context, text.options, text.states)
        if problems:
            raise QuestionRejectedError(f"lint: {problems[0]}")
    if recipe.margins == "enforced":
        made = replace(made, noise=made.measure_noise())
        if made.noise is not None and made.noise.kept < made.task.gates.noise.kept_min:
            raise QuestionRejectedError("noise")
    for text, holds in zip(made.texts, (True, False), strict=False):  # one text, or the true and the false claim
        claim = text.claim
        if claim is not None and made.task.find_claim_problem(claim.get_candidate(made.fact), holds, made.fact):
            raise QuestionRejectedError("unclear_claim")
    return made


def _choose_words(plan: QuestionPlan, task: Task, recipe: Recipe) -> Callable[[Mapping[str, str]], AnswerableText]:
    """Fills a phrasing drawn from the group, so that the words know nothing of the answer and twins share them."""
    form = plan.question_type
    bank = list_phrasings(plan.task, form, recipe.wording, task.notation)
    drawn = bank[int(rng_for(recipe.seed, "phrasing", plan.group_id, form).integers(len(bank)))]

    def fill(slots: Mapping[str, str]) -> AnswerableText:
        return AnswerableText(*render(drawn, slots), drawn.id, drawn.paraphrase, drawn.states)

    return fill


def list_phrasings(task: str, form: QuestionType, words: WordSettings, notation: Notation) -> Sequence[Phrasing]:
    """What a question of this kind is worded by: the bank's wordings first, as many as are allowed.

    Raises:
        ConfigError: the task has no wordings in this notation.
    """
    wanted = (task, form, notation)
    shipped = load_phrasings(*wanted)
    if not shipped:
        raise ConfigError(
            f"task {task!r}: found no wordings of {form} for values in {notation}; expected a table [{notation}] in "
            "its template file. Write it, or set `notation` in the gates of the task."
        )
    extra = [p for p in words.phrasings if (p.task, p.question_type, p.notation) == wanted]
    if not extra:
        return shipped
    more = shipped if words.language == "en" else ()
    return [*extra, *more][: words.most]


def presentation_rng(seed: int, group_id: str, form: QuestionType, draw: int = 0) -> np.random.Generator:
    """Generator of what a question shows, such as the colours of its marks; the same whatever its options are.

    draw: number of the draw of a judgment's claims, 0 for other forms.
    """
    return rng_for(seed, "present", group_id, form, *_name_draw(draw))


# --- options and sides ----------------------------------------------------------------------------------------------


def draw_options(fact: Fact, group_id: str, task: Task, recipe: Recipe, draw: int = 0) -> OptionSet:
    """Draw the options of the fact of this group by the strategy and the seeds of the recipe; every number `draw` gives
    others that are as good. Raises QuestionRejectedError where there is no set that could be asked."""
    fallback = ""
    *preferred, last = list_strategies(recipe.strategy, task)
    for name in preferred:
        try:
            return draw_by(name, fact, group_id, task, recipe, draw)
        except QuestionRejectedError as error:
            fallback = error.reason
    return replace(draw_by(last, fact, group_id, task, recipe, draw), fallback=fallback)


def list_strategies(strategy: str, task: Task) -> tuple[str, ...]:
    """The strategies by which a task's options are drawn where `strategy`, or `DEFAULT`, is wanted; each where the one
    before has no set."""
    return tuple(dict.fromkeys((task.strategy, "set_first"))) if strategy == DEFAULT else (strategy,)


def draw_by(
    strategy: str, fact: Fact, group_id: str, task: Task, recipe: Recipe, draw: int = 0, side: str = ""
) -> OptionSet:
    """As `draw_options`, by one strategy; `side` names the one that is asked from, where it is another one."""
    names = (group_id, strategy, str(recipe.distractor_seed), *((side,) if side else ()), *_name_draw(draw))
    rng = rng_for(recipe.seed, "options", *names)
    try:
        count = recipe.count_options(task.name)
        return strategies[strategy].options(fact, task, rng, count, recipe.margins)
    except TooFewOptionsError as error:
        raise QuestionRejectedError(error.reason) from error


def _name_draw(draw: int) -> tuple[str, ...]:
    """What tells a draw from the first one, which has no name."""
    return (f"draw {draw}",) if draw else ()


def digest_values(values: Sequence[FloatArray], task: Task) -> str:
    """Digest of values as printed, in any order."""
    return hash_stably(task.name, *sorted(format_canonical_json(task.rounded(value).tolist()) for value in values))


def ask_as_planned(fact: Fact, plan: QuestionPlan, task: Task, recipe: Recipe) -> tuple[Fact, OptionSet | None]:
    """The fact and its options as they read from the side of the plan, with the truth at the letter of the plan.

    Raises:
        QuestionRejectedError: the fact cannot be asked so.
    """
    options = plan.options
    if options is None and plan.question_type == "multi-choice":
        options = draw_options(fact, plan.group_id, task, recipe, plan.draw)
    if plan.side:
        fact, options = require_other_side(fact, options, plan, task, recipe)
        if options is not None:
            # Who reads both halves of a pair must not see in what changed its place which option is right.
            rng = rng_for(0, "options", plan.group_id, plan.question_type, plan.side)
            options = _reorder(options, rng.permutation(len(options.options)).tolist())
    if plan.letter is not None and options is not None:
        options = put_truth_at(options, plan.letter)
    return fact, options


def turn_to_other_side(fact: Fact, options: OptionSet | None, task: Task) -> tuple[Fact, OptionSet | None] | None:
    """The fact and its options as they read from the other side; None where there is no such side."""
    asked = fact if options is None else replace(fact, candidates=options.options, truth=options.truth)
    other = task.counterpart(asked)
    if other is None or options is None:
        return None if other is None else (other, None)
    return other, replace(options, options=other.candidates)


def require_other_side(
    fact: Fact, options: OptionSet | None, plan: QuestionPlan, task: Task, recipe: Recipe
) -> tuple[Fact, OptionSet | None]:
    """As `turn_to_other_side`, under the rules that hold for the first side; options are drawn there where the first
    ones would be no set of their strategy (`Task.partner_draws`).

    Raises:
        QuestionRejectedError: there is no such side, or its values may not be asked.
    """
    draws = options is not None and options.strategy in task.partner_draws
    other = turn_to_other_side(fact, None if draws else options, task)
    if other is None:
        raise QuestionRejectedError("no_partner")
    there, turned = other
    if draws and options is not None:
        turned = draw_by(options.strategy, there, plan.group_id, task, recipe, side=task.counterpart_kind)
    if turned is not None:
        problem = set_problem(turned.options, recipe.count_options(task.name), there, task, recipe.margins)
        if problem:
            raise QuestionRejectedError(problem)
    if not task.valid(there.truth_candidate, there):
        raise QuestionRejectedError("invalid_truth")
    if not task.agreement(there.second_value, there) <= 1:
        raise QuestionRejectedError("second_route_disagrees")
    return there, turned


def put_truth_at(options: OptionSet, letter: int) -> OptionSet:
    """The same set with the truth moved to that place by one exchange; the others keep their random order."""
    order = list(range(len(options.options)))
    order[options.truth], order[letter] = order[letter], order[options.truth]
    return _reorder(options, order)


def _reorder(options: OptionSet, order: Sequence[int]) -> OptionSet:
    return replace(options, options=tuple(options.options[k] for k in order), truth=order.index(options.truth))
