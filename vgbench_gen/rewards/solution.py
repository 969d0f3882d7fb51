"""What a reward needs of a row besides the reply: one JSON text, which training files carry as a column."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields
from functools import lru_cache
from typing import Any

import numpy as np

from vgbench_gen.core.types import FloatArray, Item
from vgbench_gen.evaluation.answers.outcomes import NOTHING, ParsedAnswer
from vgbench_gen.evaluation.scoring import AnswerKey, Case, CaseError, find_rules, make_case

VALUE = "value"  # the question type of a solution whose reply is the numbers of `value`, without options
_KEPT = 4096  # solutions; the replies to one question come together
_KEPT_CONTENTS = 256  # of one solution: short answers, which replies of a group repeat


@dataclass(frozen=True, slots=True)
class Solution:
    """The right answer of one question, ready to be held against replies."""

    case: Case
    key: AnswerKey | None
    """How replies are read; None for the question type "value"."""
    value: FloatArray | None
    """The numbers of the answer in their shape, where it has several."""
    diagonal_px: float
    """Of the image in which points are asked; 0 if unknown."""
    read_segment: Callable[[str], ParsedAnswer]
    """That of the key's reader, which remembers what it read."""


def write_solution(item: Item) -> str:
    """The solution of a row: the fields of `Case` and, where the answer has several numbers, these."""
    known: dict[str, Any] = asdict(make_case(item))
    if len(item.answer_value) > 1:
        known |= {"value": list(item.answer_value), "shape": list(item.answer_shape)}
    if "value" in known and item.unit == "px":
        cameras = dict(item.evidence.get("cameras") or {}).values()
        known["diagonal_px"] = max((float(np.hypot(one["width"], one["height"])) for one in cameras), default=0.0)
    return json.dumps(known, ensure_ascii=False)


def read_solution(solution: str | Mapping[str, Any]) -> Solution:
    """Read what `write_solution` wrote, or the mapping that a table made of it.

    Raises:
        CaseError: it is something else.
    """
    return _read(solution if isinstance(solution, str) else json.dumps(dict(solution), ensure_ascii=False))


@lru_cache(maxsize=_KEPT)
def _read(text: str) -> Solution:
    try:
        known: Any = json.loads(text)
        # A table gives every row the letters of all rows.
        options = {letter: said for letter, said in (known.get("options") or {}).items() if said is not None}
        given = {one.name: known[one.name] for one in fields(Case) if known.get(one.name) is not None}
        case = Case(**given | {"options": options})
        value = np.array(known["value"], dtype=np.float64).reshape(known["shape"]) if known.get("value") else None
        diagonal_px = float(known.get("diagonal_px") or 0.0)
    except (ValueError, TypeError, AttributeError, KeyError, RecursionError) as error:
        found = f"solution: found {text[:60]!r} ({error}); expected what `write_solution` writes. "
        raise CaseError(f"{found}Pass the column `solution` of the export unchanged.") from None
    key = None if case.question_type == VALUE else find_rules(case.benchmark).answer_key(case)
    read = lru_cache(maxsize=_KEPT_CONTENTS)(key.reader.read_segment) if key else lambda text: NOTHING
    return Solution(case, key, value, diagonal_px, read)
