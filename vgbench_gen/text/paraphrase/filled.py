"""Texts of rows, which have numbers where templates have placeholders; twins share one wording."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from vgbench_gen.text.marks import compile_mark_names
from vgbench_gen.text.numbers import SIGNED_LIST
from vgbench_gen.text.paraphrase.checks import Text
from vgbench_gen.text.paraphrase.rules import SLOT

# Numbers with words for signs; a number, or numbers in brackets over any number of lines, taken whole; or the name of a
# drawn mark.
_RUN = re.compile(
    rf"{SIGNED_LIST}|"
    + r"(?<![\w.])[\[(]*[+-]?[0-9](?:[0-9.,\s+-]|[\[(](?=[\[(]*[+-]?[0-9])|[\])])*(?!\w)"
    + rf"|{compile_mark_names()}"
)
_SIGNED_LIST = re.compile(SIGNED_LIST)
_PAIRS = {")": "(", "]": "["}


def merge_texts(texts: Sequence[Text]) -> tuple[Text, tuple[Mapping[str, str], ...]] | None:
    """(one text with a placeholder wherever the texts' numbers or marks differ, their values per text). Numbers with
    words for signs are one in any case, as a rewording could exchange them.

    None where they differ in more than these, so that they cannot share a wording.
    """
    values: list[dict[str, str]] = [{} for _ in texts]
    parts = []
    for part in range(2):
        cut = [_cut(text.list_parts()[part][1]) for text in texts]
        if len({tuple(between) for between, _ in cut}) != 1:
            return None
        between = cut[0][0]
        joined = between[0]
        for k, after in enumerate(between[1:]):
            runs = [run[k] for _, run in cut]
            if len(set(runs)) == 1 and not _SIGNED_LIST.fullmatch(runs[0]):
                joined += runs[0] + after
                continue
            name = f"v{len(values[0]) + 1}"
            for mine, run in zip(values, runs, strict=True):
                mine[name] = run
            joined += f"{{{{ {name} }}}}{after}"
        parts.append(joined)
    return Text(parts[0], parts[1]), tuple(values)


def fill_text(text: Text, values: Mapping[str, str]) -> Text:
    """The text with its placeholders replaced."""
    question, context = (SLOT.sub(lambda m: values[m[1]], part) for _, part in text.list_parts())
    return Text(question, context)


def _cut(text: str) -> tuple[list[str], list[str]]:
    """(what stands between numbers and names of marks, these)."""
    between, runs, at = [], [], 0
    for match in _RUN.finditer(text):
        start, run = match.start(), _trim_run(match.group())
        start += run[1]
        between.append(text[at:start])
        runs.append(run[0])
        at = start + len(run[0])
    return [*between, text[at:]], runs


def _trim_run(run: str) -> tuple[str, int]:
    """(the run without white space, punctuation and brackets that do not belong to it, characters cut in front)."""
    cut = 0
    while True:
        short = run.rstrip(" \n,.+-([")
        if short and short[-1] in _PAIRS and short.count(short[-1]) > short.count(_PAIRS[short[-1]]):
            short = short[:-1]
        elif short and short[0] in "([" and short.count(short[0]) > short.count(")" if short[0] == "(" else "]"):
            short, cut = short[1:], cut + 1
        if short == run:
            return run, cut
        run = short
