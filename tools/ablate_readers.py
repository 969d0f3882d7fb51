"""Take one pattern of the answer readers out at a time and read the replies of tests/evaluation/answers again.

    python tools/ablate_readers.py        patterns whose loss changes at most 2 replies
    python tools/ablate_readers.py 0      those that change none

A pattern that changes nothing is no longer needed, unless common models write so and the corpus lacks it.
"""

from __future__ import annotations

import importlib
import json
import re
import sys
from typing import Any

from tests.evaluation.answers.test_corpus import BY_KIND, CORPUS, case_of
from vgbench_gen.evaluation.answer_keys import CaseError
from vgbench_gen.evaluation.answers import quantities
from vgbench_gen.evaluation.answers.letter_patterns import compile_letter_patterns
from vgbench_gen.evaluation.scoring import find_rules

ROOM = "vgbench_gen.evaluation"
MODULES = [f"{ROOM}.answers.{name}" for name in (
    "clean", "places", "letters", "letter_patterns", "option_texts", "yes_no", "numerals", "quantities",
    "number_words", "statements", "units",
)] + [f"{ROOM}.benchmarks.salbench.labels"]  # fmt: skip


def read_all(rows: list[dict[str, Any]]) -> list[object]:
    """The value or status of each reply."""
    quantities.prepare_text.cache_clear()
    quantities.find_quantities.cache_clear()
    found: list[object] = []
    for row in rows:
        case = case_of(row)
        try:
            reading = find_rules(case.benchmark).answer_key(case).read(row["reply"])
            found.append(reading.value if reading.found else reading.status)
        except CaseError:
            found.append("not a case")
    return found


def main(most: int) -> None:
    """Print each pattern that changes at most so many replies, with the first of them."""
    lines = CORPUS.read_text("utf-8").splitlines() + BY_KIND.read_text("utf-8").splitlines()
    rows = [row for row in map(json.loads, lines) if row["kind"] != "judge"]
    before = read_all(rows)
    modules = [importlib.import_module(name) for name in MODULES]
    patterns: list[tuple[list[Any], str]] = [([module], name) for module in modules for name in vars(module)]
    letters = [compile_letter_patterns("ABCDEF"[:count]) for count in range(1, 7)]
    for owners, name in [*patterns, *((letters, name) for name in vars(letters[0]))]:
        kept = [getattr(owner, name) for owner in owners]
        if not isinstance(kept[0], re.Pattern):
            continue
        for owner, pattern in zip(owners, kept, strict=True):  # the same groups, and no match
            setattr(owner, name, re.compile(rf"(?!)(?:{pattern.pattern})", pattern.flags))
        after = read_all(rows)
        changed = [
            (row["reply"], *pair)
            for row, pair in zip(rows, zip(before, after, strict=True), strict=True)
            if pair[0] != pair[1]
        ]
        for owner, pattern in zip(owners, kept, strict=True):
            setattr(owner, name, pattern)
        if len(changed) <= most:
            print(
                f"{getattr(owners[0], '__name__', 'LetterPatterns')}.{name}: {len(changed)}", *changed[:2], sep="\n    "
            )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 2)
