"""Questions as somebody without the images reads them: what text-only audits work on, ours and foreign alike."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from vgbench_gen.core.types import ALPHABET, IntArray, Item, QuestionType
from vgbench_gen.tasks.row_evidence import UNREADABLE, ShownEvidence, list_names
from vgbench_gen.text.render import fill_word


@dataclass(frozen=True, slots=True, eq=False)
class Question:
    """The text of one question with its key."""

    id: str
    group: str
    """A name that all questions about one truth share."""
    scene: str
    """The scene as "source/scene_id", which cross-validation never splits; "" where it is unknown, and then questions
    are grouped by image."""
    source: str
    """The scan dataset."""
    task: str
    ask: str
    """The kind of question within the task, "" where there is one kind only."""
    form: QuestionType
    question: str
    context: str
    options: tuple[str, ...]
    """The texts of the options in order, without letters: ("Yes", "No") for judgments, nothing for open-ended
    questions."""
    truth: int
    """The place of the right option, -1 for open-ended questions."""
    value: float = float("nan")
    """The answer of an open-ended question as a number in its unit, NaN otherwise."""
    images: tuple[str, ...] = ()
    """The names of the images in the order in which they are shown."""
    twin: str = ""
    """A name that the two halves of a judgment pair share, "" for none."""
    pair: str = ""
    """A name that two questions share which ask one truth from two sides, "" for none."""
    names: tuple[str, ...] = ()
    """What the objects that the question or its options name are called, in the order of the row's evidence."""
    marks: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    """Pixel or rectangle of each mark that has a name ("the blue region") and is drawn on an image."""

    @property
    def cell(self) -> tuple[str, QuestionType]:
        """Task and form, which audits are judged by."""
        return self.task, self.form

    @property
    def chance(self) -> float:
        """Share that guessing gets right; 0 for open-ended questions."""
        return 1 / len(self.options) if self.options else 0.0


def read_question(item: Item) -> Question:
    """The reader's view of one of our items."""
    yes_no = (fill_word("answer.yes"), fill_word("answer.no"))
    options, truth, value = item.options, -1, float("nan")
    if item.question_type == "multi-choice":
        truth = ALPHABET.index(item.answer)
    elif item.question_type == "judgment":
        options, truth = yes_no, yes_no.index(item.answer)
    else:
        value = item.answer_value[0] if item.answer_value else value  # other people's answers may be words
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
        images=item.images,
        twin=item.twin_id,
        pair=item.pair_id,
        names=list_names(item),
        marks=_locate_marks(item),
    )


def _locate_marks(item: Item) -> dict[str, tuple[float, ...]]:
    try:
        return ShownEvidence.read(item.evidence, item.id).locate_marks() if ShownEvidence.is_in(item.evidence) else {}
    except UNREADABLE:  # other people's rows
        return {}


def group_by_cell(questions: Sequence[Question]) -> dict[tuple[str, QuestionType], list[Question]]:
    """Questions by task and form, cells in order of name, questions in the order given."""
    cells: dict[tuple[str, QuestionType], list[Question]] = {}
    for question in questions:
        cells.setdefault(question.cell, []).append(question)
    return dict(sorted(cells.items()))


def group_by_scene(questions: Sequence[Question]) -> IntArray:
    """(n,) cluster of each question, numbered from 0: questions that must not be told apart as independent.

    Questions of one scene belong together; where the scene is unknown, those that share an image. Twins, and
    questions about one truth, always do.
    """
    return find_clusters(
        [
            *([("scene", one.scene)] if one.scene else [("image", name) for name in one.images]),
            ("group", one.group),
            ("twin", one.twin),
        ]
        for one in questions
    )


def find_clusters(keys: Iterable[Sequence[tuple[str, str]]]) -> IntArray:
    """(n,) cluster of each place, numbered from 0: those that share a (kind, name), or others that they share one with;
    an empty name is none."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    names: dict[tuple[str, str], int] = {}
    per_place = [[names.setdefault(key, len(names)) for key in members if key[1]] for members in keys]
    pairs = [(place, name) for place, members in enumerate(per_place) for name in members]
    size = len(per_place)
    rows, columns = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    links = coo_array((np.ones(len(pairs)), (rows, columns + size)), shape=(size + len(names),) * 2)
    labels = connected_components(links, directed=False)[1][:size]
    return np.unique(labels, return_inverse=True)[1].astype(np.int64)
