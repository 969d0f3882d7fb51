"""What somebody answers who has learnt the questions of other scenes and sees no image: the blind baseline."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from vgbench_gen.core.types import ALPHABET, IntArray
from vgbench_gen.quality._learners import (
    make_rows,
    predict_numbers,
    predict_out_of_fold,
    score_credit,
    split_folds,
    state_of,
)
from vgbench_gen.quality.questions import Question, group_by_cell, group_by_scene
from vgbench_gen.quality.text_only import FEWEST


def guess_blind_answers(questions: Sequence[Question], seed: int) -> dict[str, str]:
    """Question id -> letter, Yes or No, or a number as text; nothing for cells that are too small to learn from.

    Each task and type has its own learners, the forest and the linear one of `quality.text_only`; the one that is right
    more often answers. Every answer comes from learners that were fitted without the question's scene.
    """
    found: dict[str, str] = {}
    for cell, members in group_by_cell(questions).items():
        groups = group_by_scene(members)
        if len(members) < FEWEST or len(np.unique(groups)) < 2:
            continue
        if cell[1] == "open-ended":
            guess = predict_numbers(members, groups, state_of(seed, *cell, "regression"))
            found |= {q.id: repr(float(g)) for q, g in zip(members, guess, strict=True)} if guess is not None else {}
        else:
            found |= _guess_choices(members, groups, seed)
    return found


def _guess_choices(questions: Sequence[Question], groups: IntArray, seed: int) -> dict[str, str]:
    task, form = questions[0].cell
    rows = make_rows(questions)
    fold = split_folds(questions, groups, state_of(seed, task, form, "split_folds", "0"))
    beliefs = [predict_out_of_fold(name, rows, fold, state_of(seed, task, form, name)) for name in ("forest", "linear")]
    belief = max(beliefs, key=lambda one: float(score_credit(one, rows).mean()))
    if form == "judgment":
        return {q.id: q.options[0 if b > 0.5 else 1] for q, b in zip(questions, belief, strict=True)}
    ends = np.cumsum(np.bincount(rows.question))[:-1]
    return {q.id: ALPHABET[int(part.argmax())] for q, part in zip(questions, np.split(belief, ends), strict=True)}
