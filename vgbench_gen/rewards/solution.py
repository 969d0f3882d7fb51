"""What a reward needs of a row besides the reply: one JSON text, which training files carry as a column."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import lru_cache

from vgbench_gen.core.types import Item
from vgbench_gen.evaluation.answers.outcomes import ParsedAnswer
from vgbench_gen.evaluation.scoring import AnswerKey, Case, CaseError, find_rules, make_case

_KEPT = 4096  # solutions; the replies to one question come together
_KEPT_CONTENTS = 256  # of one solution: short answers, which replies of a group repeat


@dataclass(frozen=True, slots=True)
class Solution:
    """The right answer of one question, ready to be held against replies."""

    case: Case
    key: AnswerKey
    """How replies are read."""
    read_segment: Callable[[str], ParsedAnswer]
    """That of the key's reader, which remembers what it read."""


def write_solution(item: Item) -> str:
    """The solution of a row: the fields of `Case`."""
    return json.dumps(asdict(make_case(item)), ensure_ascii=False)


@lru_cache(maxsize=_KEPT)
def read_solution(solution: str) -> Solution:
    """Read what `write_solution` wrote.

    Raises:
        CaseError: it is something else.
    """
    try:
        case = Case(**json.loads(solution))
    except (ValueError, TypeError, RecursionError) as error:
        found = f"solution: found {solution[:60]!r} ({error}); expected what `write_solution` writes. "
        raise CaseError(f"{found}Pass the column `solution` of the export unchanged.") from None
    key = find_rules(case.benchmark).answer_key(case)
    return Solution(case, key, lru_cache(maxsize=_KEPT_CONTENTS)(key.reader.read_segment))
