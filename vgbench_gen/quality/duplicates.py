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

    identical: same pictures (in any order), question, context and named objects. reworded: same pictures in the same
    order, task, form, quantity, numbers and named objects, in other words. option sets: the same options, numbers among
    them, under another truth. ids: one id twice. in another set, text in another set: of `others`. Partners (twins,
    consistency pairs) and questions that share a group are no repeats, except word for word.
    """
    pictured = {_make_identity_key(q) for q in others if q.images}
    texts = {key for q in others if (key := _make_text_key(q)) is not None}
    found = {
        "identical": _find_later(questions, _make_identity_key, _is_not_turned),
        "reworded": _find_later(
            questions, _make_subject_key, lambda later, before: any(_is_same_question(one, later) for one in before)
        ),
        "same options": _find_later(
            questions, _make_options_key, lambda later, before: not any(_are_partners(one, later) for one in before)
        ),
        "same id": _find_later(questions, lambda q: q.id, _is_not_turned),
        "in another set": [q for q in questions if q.images and _make_identity_key(q) in pictured],
        "text in another set": [q for q in questions if _make_text_key(q) in texts],
    }
    return {name: list(dict.fromkeys(q.id for q in members)) for name, members in found.items()}


def _find_later(
    questions: Iterable[Question],
    key: Callable[[Question], Hashable | None],
    repeats: Callable[[Question, Sequence[Question]], bool],
) -> list[Question]:
    """Questions that repeat those before them with the same key, of which None is none."""
    groups: dict[Hashable, list[Question]] = defaultdict(list)
    for question in questions:
        if (name := key(question)) is not None:
            groups[name].append(question)
    return [
        later
        for members in groups.values()
        for place, later in enumerate(members)
        if place and repeats(later, members[:place])
    ]


def _is_not_turned(later: Question, before: Sequence[Question]) -> bool:
    # A pair of pictures and the same pair turned round, declared as partners, ask two things in the same words.
    return not (later.pair and later.pair == before[0].pair and later.images != before[0].images)


def _make_identity_key(question: Question) -> Hashable:
    # Without pictures the options are all that may tell two questions apart.
    options = () if question.images else tuple(sorted(question.options))
    text = _squeeze(question.question), _squeeze(question.context)
    return frozenset(question.images), *text, options, frozenset(question.names)


def _make_text_key(question: Question) -> Hashable | None:
    """Text with its options, where it holds numbers enough to be no mere template."""
    text = f"{question.question} {question.context}"
    numbers = reading.find_number_tokens(" ".join([text, *question.options]))
    return (_squeeze(text), tuple(sorted(question.options))) if len(set(numbers)) > 2 * _ENOUGH_NUMBERS else None


def _make_subject_key(question: Question) -> Hashable | None:
    if not question.images:
        return None
    numbers = tuple(sorted(reading.find_number_tokens(f"{question.question} {question.context}")))
    return question.images, question.task, question.form, question.ask, numbers, question.names


def _is_same_question(a: Question, b: Question) -> bool:
    if _make_identity_key(a) == _make_identity_key(b) or _are_partners(a, b):
        return False
    if a.ask or any(a.names) or len(reading.find_number_tokens(f"{a.question} {a.context}")) >= _ENOUGH_NUMBERS:
        return True
    words = [set(reading.find_words(f"{q.question} {q.context}")) for q in (a, b)]
    return len(words[0] & words[1]) >= _ALIKE * len(words[0] | words[1])


def _make_options_key(question: Question) -> Hashable | None:
    if question.form != "multi-choice" or not reading.are_quantities(question):
        return None
    return question.task, question.ask, tuple(sorted(question.options))


def _are_partners(a: Question, b: Question) -> bool:
    return any(mine and mine == its for mine, its in ((a.group, b.group), (a.twin, b.twin), (a.pair, b.pair)))


def _squeeze(text: str) -> str:
    return " ".join(text.lower().split())
