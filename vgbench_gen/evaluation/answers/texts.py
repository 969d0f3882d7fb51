"""Reads answers in words, such as RealWorldQA's, for comparison as a whole."""

from __future__ import annotations

import re

from vgbench_gen.evaluation.answers.option_texts import normalize_text
from vgbench_gen.evaluation.answers.outcomes import NOTHING, AnswerReader, ParsedAnswer, make_answer

_LONGEST = 200
_LEAD = re.compile(r"\A\W*(?:(?:it|this|that|they|there)(?:'s| is| are) )?(?:(?:in|on|at|to) )?", re.IGNORECASE)


class TextReader(AnswerReader):
    """Reads the first line of a reply or a container, in lower case, without articles and punctuation."""

    def read_opening(self, text: str) -> ParsedAnswer:
        """The first line."""
        line = normalize_text(_LEAD.sub("", text.strip().partition("\n")[0][:_LONGEST]))
        return make_answer(line) if line else NOTHING
