"""Reads a reply that ends in one clean line, such as "Answer: B", in a fraction of the time of the full reader.

It answers only where the full reader (`places.extract_answer`) must give the same: the last line is the last place
where an answer is announced, and nothing before it takes precedence. What would, in the order in which the full reader
looks: a failed request, an open reasoning block, a turn of somebody else, a denial that goes on into the line, a
container of an answer, and notations of numbers. Where one of these might be, the result is None.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from vgbench_gen.evaluation.answers.clean import simplify_text
from vgbench_gen.evaluation.answers.letters import LetterReader
from vgbench_gen.evaluation.answers.numerals import CountReader, MeasureReader
from vgbench_gen.evaluation.answers.outcomes import ParsedAnswer
from vgbench_gen.evaluation.answers.vocabulary import match_any_of, read_words
from vgbench_gen.evaluation.answers.yes_no import YesNoReader
from vgbench_gen.evaluation.scoring import AnswerKey
from vgbench_gen.rewards.solution import Solution

_MAX_CHARS = 10_000  # the full reader keeps a longer reply only in part
_NUMBER = re.compile(r"[0-9]{1,9}(?:\.[0-9]{1,9})?(?: ?[A-Za-z]{1,12})?\.?")
_CONTENTS: dict[type, re.Pattern[str]] = {
    LetterReader: re.compile(r"\(?[A-Za-z]\)?\.?"),
    YesNoReader: re.compile(r"(?:[Yy]es|[Nn]o|YES|NO)\.?"),
    CountReader: _NUMBER,
    MeasureReader: _NUMBER,
}
_LINE = re.compile(r"(?:\*\*)?(?:Final )?[Aa]nswer:(?:\*\*)? ?")
# Beside ASCII, characters of English text that mean nothing to the rules above; and how the full reader writes some.
_FOREIGN = re.compile("[^\x00-\x7f“”‘’–—−…°×≈→²³±≤≥•·√π≠]")  # noqa: RUF001
_WRITTEN = dict(zip("“”‘’–−…²³", ('"', '"', "'", "'", "-", "-", "...", "^2", "^3"), strict=True))  # noqa: RUF001
_FAILED = re.compile(
    r"\W{0,4}(?:error|api|request|server|internal|connection|rate|timeout|http|openai|anthropic|google|failed)"
)
_NAMED = re.compile(r"(?:USER|Human|ASSISTANT|Assistant|Question)(?:\s*|[^:\n]{0,20}):")
_ASKED = re.compile(r"\?[ \t]*\n[ \t]*\(?[Aa][.):]")
_LABELS = match_any_of(read_words("user_labels"), ["assistant", "gpt"])
_LABEL = re.compile(rf"[#>*\[( \t]*{_LABELS}(?:[ \t]*[#(]?[0-9]{{1,3}})?[\])*]*[ \t]*(?::|\Z)")
_NO = re.compile(r"\W*no\b")
_KEY_END = re.compile(r"[\"'“”‘’][^A-Za-z0-9\n]*:")  # noqa: RUF001


class QuickReading(NamedTuple):
    """What was read of a reply."""

    answer: ParsedAnswer
    text: str
    """The reply without its reasoning block."""
    more: bool
    """Whether the text before the last line speaks of an answer as well."""
    containers: tuple[str, ...] | None
    """`find_containers` of the text; None if they were not looked for."""

    def clean(self) -> str:
        """The text as `simplify_text` writes it, up to marks of lists and headings."""
        text = self.text.replace("**", "").replace("`", "")
        if self.containers is None or any(sign in text for sign in "*_~"):
            return simplify_text(self.text)
        for sign, written in () if text.isascii() else _WRITTEN.items():
            text = text.replace(sign, written)
        return text


def read_quickly(known: Solution, reply: str) -> QuickReading | None:
    """The answer of a reply that ends in a clean line; None where the full reader has to read."""
    key, text = known.key, reply.strip()
    content = _CONTENTS.get(type(key.reader)) if type(key).read is AnswerKey.read else None
    if content is None or len(text) > _MAX_CHARS or _FAILED.match(text[:30].lower()):
        return None
    found = _split(text)
    if found is None or not content.fullmatch(found[2]):
        return None
    start, before, said, tagged = found
    low = before.lower()
    plain = low.replace("*", "").replace("`", "").replace("_", "").replace("~", "")  # `translate` is much slower
    if low and not (_is_own(before, low, plain, key) and (tagged or _is_bare(before, low, key))):
        return None
    answer = known.read_segment(said if tagged else said.removesuffix("."))
    more = any(word in plain for word in ("answer", "box", "\\", "$")) or _KEY_END.search(plain) is not None
    containers = () if not tagged else (said,) if more and _is_bare(before, low, key) else None
    return None if answer.status == "no_answer" else QuickReading(answer, text[start:], more, containers)


def _split(text: str) -> tuple[int, str, str, bool] | None:
    """(start of the visible text, the text from there to the answer, the answer, whether it stands in a tag)."""
    tagged = text.endswith("</answer>")
    before, _, said = text[:-9].rpartition("<answer>") if tagged else text.rpartition("\n")
    label = None if tagged else _LINE.match(said)
    if label is None and not tagged:
        return None
    said = said[label.end() :].removesuffix("**") if label else said
    start = before.find("</think>") + 8 if "</think>" in before else 0
    hidden = before[:start].removeprefix("<think>").removesuffix("</think>")
    before = before[start:]
    if "<" in before or "<" in hidden or "◁" in hidden or ("]" in hidden and "nk]" in hidden.lower()):
        return None
    if before.rstrip(" \t\n*`_~$\\{}")[-1:].isalpha() or (
        tagged and before.strip() and before.rstrip(" \t")[-1] != "\n"
    ):
        return None  # a denial may go on into the answer
    return start, before, said.strip(), tagged


def _is_own(before: str, low: str, plain: str, key: AnswerKey) -> bool:
    """Whether a text is the model's own turn, no reasoning, and holds no scalar in braces or refusal to say yes."""
    if any(sign in low for sign in ("\r", "&", "nk]", "inst]")) or ("{" in low and "question" in low):
        return False
    if key.kind != "letter" and (any(sign in plain for sign in ("calar", "\\", "$")) or _NO.match(plain)):
        return False
    if not before.isascii() and _FOREIGN.search(before):
        return False
    return not (_NAMED.search(before) or _ASKED.search(low) or any(map(_LABEL.match, low.split("\n"))))


def _is_bare(before: str, low: str, key: AnswerKey) -> bool:
    """Whether a text holds no container of an answer, and none after its Markdown and LaTeX are removed."""
    if any(sign in before for sign in "\\${") or "~~" in before or _KEY_END.search(before):
        return False
    keys = key.reader.keys
    lines = low.split("\n") if keys and ":" in low else ()
    heads = (line.partition(":")[0].replace("*", "").replace("`", "") for line in lines if ":" in line)
    return not (keys and any(keys.fullmatch(head.strip("#>-_• \t")) for head in heads))
