"""The same question asked twice, within a set or in two sets, as far as text and names of pictures tell.

Pictures that look alike and poses that lie close are compared in `uniqueness`, which needs more than text.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import replace

from vgbench_gen.quality import _values
from vgbench_gen.quality.findings import MAX_ITEMS, Finding
from vgbench_gen.quality.questions import Question

_ENOUGH_NUMBERS = 4  # from here on the numbers of a text (a region, a camera) tell questions on one picture apart
_ALIKE = 0.8  # share of common words from which texts without numbers ask the same


def audit_duplicates(questions: Sequence[Question], others: Sequence[Question] = ()) -> list[Finding]:
    """Four lines on the set itself, two more against `others`; each asks for 0 and counts questions too many.

    identical: same pictures (in any order), question and context. reworded: same pictures in the same order, task,
    form, quantity and numbers, in other words. option sets: the same options, numbers among them, under another truth.
    ids: one id twice. Partners (twins, consistency pairs) and questions that share a group are no duplicates, except
    word for word.
    """
    lines = [
        _line("identical", questions, _too_many(questions, _identity)),
        _line("reworded", questions, _reworded(questions)),
        _line("option sets", questions, _reused(questions)),
        _line("ids", questions, _too_many(questions, lambda q: q.id)),
    ]
    if others:
        pictured = {_identity(q) for q in others if q.images}
        texts = {key for q in others if (key := _full_text(q)) is not None}
        lines.append(
            _line("in another set", questions, [q for q in questions if q.images and _identity(q) in pictured])
        )
        lines.append(_line("text in another set", questions, [q for q in questions if _full_text(q) in texts]))
    return lines


def _line(name: str, questions: Sequence[Question], found: Iterable[Question]) -> Finding:
    ids = tuple(dict.fromkeys(q.id for q in found))
    line = Finding(audit="duplicates", name=name, n=len(questions), value=float(len(ids)), unit="count", bar="0")
    return replace(line, items=ids[:MAX_ITEMS]).judged(not ids, conclusive=1)


def _buckets(questions: Iterable[Question], key: Callable[[Question], Hashable | None]) -> list[list[Question]]:
    """Questions with the same key, where there are several; None is no key."""
    found: dict[Hashable, list[Question]] = defaultdict(list)
    for question in questions:
        name = key(question)
        if name is not None:
            found[name].append(question)
    return [members for members in found.values() if len(members) > 1]


def _too_many(questions: Sequence[Question], key: Callable[[Question], Hashable | None]) -> list[Question]:
    # A pair of pictures and the same pair turned round, declared as partners, ask two things in the same words.
    return [
        later
        for members in _buckets(questions, key)
        for later in members[1:]
        if not (later.pair and later.pair == members[0].pair and later.images != members[0].images)
    ]


def _identity(question: Question) -> Hashable:
    return frozenset(question.images), _squeezed(question.question), _squeezed(question.context), _choice(question)


def _choice(question: Question) -> Hashable:
    # Without pictures the options are all that may tell two questions apart.
    return () if question.images else tuple(sorted(question.options))


def _full_text(question: Question) -> Hashable | None:
    """Text with its options, where it holds numbers enough to be no mere template."""
    text = f"{question.question} {question.context}"
    numbers = _values.tokens(" ".join([text, *question.options]))
    return (_squeezed(text), tuple(sorted(question.options))) if len(set(numbers)) > 2 * _ENOUGH_NUMBERS else None


def _reworded(questions: Sequence[Question]) -> list[Question]:
    found = []
    for members in _buckets(questions, _subject):
        for place, later in enumerate(members[1:], start=1):
            if any(_same_question(earlier, later) for earlier in members[:place]):
                found.append(later)
    return found


def _subject(question: Question) -> Hashable | None:
    if not question.images:
        return None
    numbers = tuple(sorted(_values.tokens(f"{question.question} {question.context}")))
    return question.images, question.task, question.form, question.ask, numbers


def _same_question(a: Question, b: Question) -> bool:
    if _identity(a) == _identity(b) or _partners(a, b):
        return False
    if a.ask or len(_values.tokens(f"{a.question} {a.context}")) >= _ENOUGH_NUMBERS:
        return True
    words = [set(_values.WORD.findall(f"{q.question} {q.context}".lower())) for q in (a, b)]
    return len(words[0] & words[1]) >= _ALIKE * len(words[0] | words[1])


def _reused(questions: Sequence[Question]) -> list[Question]:
    found = []
    for members in _buckets(questions, _numbers_offered):
        for place, later in enumerate(members[1:], start=1):
            if not any(_partners(earlier, later) for earlier in members[:place]):
                found.append(later)
    return found


def _numbers_offered(question: Question) -> Hashable | None:
    if question.form != "multi-choice" or _values.option_values(question)[0] != "numbers":
        return None
    return question.task, question.ask, tuple(sorted(question.options))


def _partners(a: Question, b: Question) -> bool:
    return any(mine and mine == its for mine, its in ((a.group, b.group), (a.twin, b.twin), (a.pair, b.pair)))


def _squeezed(text: str) -> str:
    return " ".join(text.lower().split())
