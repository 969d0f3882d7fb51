"""Answers in words, such as RealWorldQA's: nothing is looked for, the reply is compared."""

from __future__ import annotations

import re

from vgbench_gen.evaluation.answers.option_texts import bare
from vgbench_gen.evaluation.answers.outcomes import NOTHING, Reading, ok

_LONGEST = 200
_LEAD = re.compile(r"\A\W*(?:(?:it|this|that|they|there)(?:'s| is| are) )?(?:(?:in|on|at|to) )?", re.IGNORECASE)


class TextReader:
    """Reads a short text, without articles and punctuation, in lower case."""

    def marked(self, text: str) -> Reading:
        """Nothing: words have no notation of their own."""
        return NOTHING

    def segment(self, text: str) -> Reading:
        """The text after a phrase or in a container."""
        return self.leading(text)

    def leading(self, text: str) -> Reading:
        """The first line."""
        line = bare(_LEAD.sub("", text.strip().partition("\n")[0][:_LONGEST]))
        return ok(line) if line else NOTHING

    def free(self, text: str) -> Reading:
        """Nothing beyond the first line."""
        return NOTHING
