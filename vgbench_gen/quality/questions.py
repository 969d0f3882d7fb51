"""Questions as somebody without the images reads them: what text-only audits work on, ours and foreign alike."""

from __future__ import annotations

from dataclasses import dataclass

from vgbench_gen.core.types import LETTERS, Item, QuestionType
from vgbench_gen.text.render import word


@dataclass(frozen=True, slots=True, eq=False)
class Question:
    """The text of one question with its key.

    group: questions about one truth share it. twin, pair: partners ("" for none). scene: "source/scene_id", which
    cross-validation never splits ("" where unknown; foreign data are then grouped by image). options: texts without
    letters, in order; ("Yes", "No") for judgments; empty for open-ended. truth: place of the right option, -1 for
    open-ended. value: the answer of an open-ended question as a number in `unit`, NaN otherwise. images: names.
    """

    id: str
    group: str
    scene: str
    source: str
    task: str
    ask: str
    form: QuestionType
    question: str
    context: str
    options: tuple[str, ...]
    truth: int
    value: float = float("nan")
    unit: str = ""
    images: tuple[str, ...] = ()
    twin: str = ""
    pair: str = ""

    @property
    def cell(self) -> tuple[str, QuestionType]:
        """Task and form, which audits are judged by."""
        return self.task, self.form

    @property
    def chance(self) -> float:
        """Share that guessing gets right; 0 for open-ended questions."""
        return 1 / len(self.options) if self.options else 0.0


def question_of(item: Item) -> Question:
    """The reader's view of one of our items."""
    yes_no = (word("answer.yes"), word("answer.no"))
    options, truth, value = item.options, -1, float("nan")
    if item.question_type == "multi-choice":
        truth = LETTERS.index(item.answer)
    elif item.question_type == "judgment":
        options, truth = yes_no, yes_no.index(item.answer)
    else:
        value = item.answer_value[0]
    return Question(
        id=item.id,
        group=item.group_id,
        scene=f"{item.source}/{item.scene_id}",
        source=item.source,
        task=item.task,
        ask=item.ask,
        form=item.question_type,
        question=item.question,
        context=item.context,
        options=options,
        truth=truth,
        value=value,
        unit=item.unit,
        images=item.images,
        twin=item.twin_id,
        pair=item.pair_id,
    )
