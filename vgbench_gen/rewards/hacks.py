"""Replies that would earn something without giving one answer; a reward gives them nothing.

The scorer takes one of several answers ("A, but maybe B" is A), because it has to say what a reply most likely means.
Who is trained on that learns to hedge.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from vgbench_gen.evaluation.answers.places import find_containers, find_segment_at
from vgbench_gen.evaluation.answers.quantities import find_quantities, prepare_text
from vgbench_gen.rewards.solution import Solution

LONG, REPEATED, INJECTED, SEVERAL = "long", "repeated", "injected", "several"
MAX_REPLY_CHARS = 65_536  # some 16,000 tokens
_MOST_STATEMENTS, _SAME = 3, 4
_EQUAL_WITHIN = 1.05  # numbers nearer than this are one answer ("2.3 m, 7.5 ft")
_INJECTED = re.compile(r"[\"'](?:scores?|rewards?|grades?|accuracy)[\"']\s*:", re.IGNORECASE)
_STATED = re.compile(r"answer[ \t\"']{0,3}(?::|=|is\b)\s*|\\scalar(?=\s*\{)")
_CONDITION = re.compile(r"n't\b|\b(?:not|if|whether|unless|would)\b")
# Words beside answers that hedge or list; a text of nothing else, and without ticks, is a list of answers.
_HEDGES = re.compile(
    r"\b(?:or|and|then|maybe|but|perhaps|possibly|probably|either|both|all|also|alternatively|edit|else|it|could|might|"
    r"be|is|are|the|an?|final|answers?|options?|choices?|correct|right|about|of|these|so|no|wait|actually)\b"
)
_MORE = re.compile(r"\w|[✓✔✅☑√✗✘❌✖✕×☐]")  # noqa: RUF001
_YES_NO = re.compile(r"\b(?:(yes|true)|(no|false))\b")
_ECHO = re.compile(r"\b(?:yes|no)\s*(?:or|/)\s*(?:yes|no)\b(?=\W+\w)")  # of the prompt's last line


def find_hack(known: Solution, text: str, containers: Iterable[str] | None = None) -> str:
    """Name of what is wrong with a reply, "" if nothing is.

    Args:
        known: the solution of its question.
        text: the reply without reasoning blocks and Markdown.
        containers: `find_containers` of the text, where these are known to be tags and boxes.
    """
    if containers is None and _INJECTED.search(text):
        return INJECTED
    low, starts = text.lower(), list(find_statements(text))
    contents = [find_segment_at(text, start) for start in starts]
    contents += find_containers(text) if containers is None else containers
    ends = (low.rsplit("\n", _SAME)[-_SAME:], low.rsplit(None, _SAME)[-_SAME:])
    if len(contents) > _MOST_STATEMENTS or any(len(end) == _SAME and len(set(end)) == 1 for end in ends):
        return REPEATED
    read = [known.read_segment(content) for content in contents]
    if len(read) > 1 and any(one.status == "ambiguous" for one in read):
        return SEVERAL
    part = text[starts[-1] :] if starts else next(reversed(contents), text)
    return SEVERAL if _differ([one.value for one in read if one.value is not None]) or _is_list(known, part) else ""


def find_statements(text: str) -> Iterator[int]:
    """Where the contents of "Answer: ..." and "the answer is ..." begin, conditions and denials apart."""
    low = text.lower()
    for match in _STATED.finditer(low) if len(low) == len(text) else ():
        before = re.split(r"[.!?\n]", low[max(0, match.start() - 60) : match.start()])[-1]
        if not _CONDITION.search(before):
            yield match.end()


def _differ(values: Sequence[str | float]) -> bool:
    numbers = [value for value in values if not isinstance(value, str)]
    if len(set(values)) < 2 or len(numbers) < len(values):
        return len(set(values)) > 1
    return not 0 < max(numbers) <= _EQUAL_WITHIN * min(numbers)


def _is_list(known: Solution, part: str) -> bool:
    """Whether a text names several answers and says nothing else."""
    low, key = part.casefold(), known.key
    if len(part) > 2000 or (key.kind not in ("letter", "yes_no") and isinstance(key.truth, str)):
        return False
    if key.kind not in ("letter", "yes_no"):
        ready = prepare_text(part)
        numbers = find_quantities(ready)
        ends = [0, *(one.end for one in numbers)]
        rest = " ".join(
            ready[end:start] for end, start in zip(ends, [*(one.start for one in numbers), None], strict=True)
        )
        several = any(one.kind == "either" for one in numbers) or _differ([one.base for one in numbers])
        return several and "=" not in rest and not _says_more(rest)
    for letter, said in sorted(known.case.options.items(), key=lambda option: -len(option[1])):
        low = low.replace(said.casefold(), f" {letter} ") if said else low
    low = low if key.kind == "letter" else _ECHO.sub(" ", low)
    named = re.compile(rf"(?<![a-z0-9])[{key.letters}](?![a-z0-9])", re.IGNORECASE) if key.kind == "letter" else _YES_NO
    found = {(match[0].upper() if key.kind == "letter" else bool(match[1])) for match in named.finditer(low)}
    return len(found) > 1 and not _says_more(named.sub(" ", low))


def _says_more(text: str) -> bool:
    return _MORE.search(_HEDGES.sub(" ", text)) is not None
