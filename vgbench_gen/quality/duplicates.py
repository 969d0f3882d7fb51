"""The same question asked twice, within a set or in two sets, as far as text and names of pictures tell.

Pictures that look alike and poses that lie close are compared in `uniqueness`, which needs more than text.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence

from vgbench_gen.quality import reading
from vgbench_gen.quality.questions import Question

_ENOUGH_NUMBERS = 4  # from here on the numbers of a text (a region, a camera) tell questions on one picture apart
_ALIKE = 0.8  # share of common words from which texts without numbers ask the same


def find_repeats(questions: Sequence[Question], others: Sequence[Question] = ()) -> dict[str, list[str]]:
    """Ids of the questions that are too many, by kind of repeat.

    identical: same pictures (in any order), question and context. reworded: same pictures in the same order, task,
    form, quantity and numbers, in other words. option sets: the same options, numbers among them, under another truth.
    ids: one id twice. in another set, text in another set: of `others`. Partners (twins, consistency pairs) and
    questions that share a group are no repeats, except word for word.
    """
    pictured = {_make_identity_key(q) for q in others if q.images}
    texts = {key for q in others if (key := _make_text_key(q)) is not None}
    found = {
        "identical": _find_repeats(questions, _make_identity_key),
        "reworded": _find_reworded(questions),
        "same options": _find_reused(questions),
        "same id": _find_repeats(questions, lambda q: q.id),
        "in another set": [q for q in questions if q.images and _make_identity_key(q) in pictured],
        "text in another set": [q for q in questions if _make_text_key(q) in texts],
    }
    return {name: list(dict.fromkeys(q.id for q in members)) for name, members in found.items()}


def _group_by_key(questions: Iterable[Question], key: Callable[[Question], Hashable | None]) -> list[list[Question]]:
    """Questions with the same key, where there are several; None is no key."""
    found: dict[Hashable, list[Question]] = defaultdict(list)
    for question in questions:
        name = key(question)
        if name is not None:
            found[name].append(question)
    return [members for members in found.values() if len(members) > 1]


def _find_repeats(questions: Sequence[Question], key: Callable[[Question], Hashable | None]) -> list[Question]:
    # A pair of pictures and the same pair turned round, declared as partners, ask two things in the same words.
    return [
        later
        for members in _group_by_key(questions, key)
        for later in members[1:]
        if not (later.pair and later.pair == members[0].pair and later.images != members[0].images)
    ]


def _make_identity_key(question: Question) -> Hashable:
    return (
        frozenset(question.images),
        _squeeze(question.question),
        _squeeze(question.context),
        _make_choice_key(question),
    )


def _make_choice_key(question: Question) -> Hashable:
    # Without pictures the options are all that may tell two questions apart.
    return () if question.images else tuple(sorted(question.options))


def _make_text_key(question: Question) -> Hashable | None:
    """Text with its options, where it holds numbers enough to be no mere template."""
    text = f"{question.question} {question.context}"
    numbers = reading.find_number_tokens(" ".join([text, *question.options]))
    return (_squeeze(text), tuple(sorted(question.options))) if len(set(numbers)) > 2 * _ENOUGH_NUMBERS else None


def _find_reworded(questions: Sequence[Question]) -> list[Question]:
    found = []
    for members in _group_by_key(questions, _make_subject_key):
        for place, later in enumerate(members[1:], start=1):
            if any(_is_same_question(earlier, later) for earlier in members[:place]):
                found.append(later)
    return found


def _make_subject_key(question: Question) -> Hashable | None:
    if not question.images:
        return None
    numbers = tuple(sorted(reading.find_number_tokens(f"{question.question} {question.context}")))
    return question.images, question.task, question.form, question.ask, numbers


def _is_same_question(a: Question, b: Question) -> bool:
    if _make_identity_key(a) == _make_identity_key(b) or _are_partners(a, b):
        return False
    if a.ask or len(reading.find_number_tokens(f"{a.question} {a.context}")) >= _ENOUGH_NUMBERS:
        return True
    words = [set(reading.find_words(f"{q.question} {q.context}")) for q in (a, b)]
    return len(words[0] & words[1]) >= _ALIKE * len(words[0] | words[1])


def _find_reused(questions: Sequence[Question]) -> list[Question]:
    found = []
    for members in _group_by_key(questions, _make_options_key):
        for place, later in enumerate(members[1:], start=1):
            if not any(_are_partners(earlier, later) for earlier in members[:place]):
                found.append(later)
    return found


def _make_options_key(question: Question) -> Hashable | None:
    if question.form != "multi-choice" or not reading.are_quantities(question):
        return None
    return question.task, question.ask, tuple(sorted(question.options))


def _are_partners(a: Question, b: Question) -> bool:
    return any(mine and mine == its for mine, its in ((a.group, b.group), (a.twin, b.twin), (a.pair, b.pair)))


def _squeeze(text: str) -> str:
    return " ".join(text.lower().split())
