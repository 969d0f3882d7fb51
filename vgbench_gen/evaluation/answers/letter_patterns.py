"""Regular expressions for the option letters of a question, used by `letters.LetterReader`."""

# ruff: noqa: RUF001 (characters of replies that look like others)

from __future__ import annotations

import re
from functools import lru_cache

from vgbench_gen.evaluation.answers.vocabulary import match_any_of, read_words

_REJECT_BEFORE = match_any_of(read_words("reject_before", "letters"))
_REJECT_AFTER = match_any_of(read_words("reject_after", "letters"))
_REJECT_AFTER_CHINESE = match_any_of(read_words("reject_after_chinese", "letters"))
ACCEPT = match_any_of(read_words("accept_after", "letters"))
_ACCEPT_CHINESE = match_any_of(read_words("accept_after_chinese", "letters"))
_AFTER_LETTER = match_any_of(read_words("after_letter", "letters"))
_NAME = r"(?:(?:the\s+)?(?:options?|choices?|answers?|letters?|选项?)\s*)?"
_LETTER_NAME = rf"(?i:{_NAME})"
_OPEN, _CLOSE = r"[(\[{<\"']{0,3}", r"[)\]}>\"']{0,3}"
_JOIN = (
    r"\s*(?:,\s*(?:and|or)\b|,|/|&|\band\b|\bor\b|\bnor\b|和|或者?|与|及|、|还是)\s*"
    r"(?:maybe\s+|perhaps\s+|possibly\s+)?"
)
TICKS, CROSSES = "✓✔✅☑√", "✗✘❌✖✕×"
MARKS = rf"(?:[{TICKS}{CROSSES}☐]|\[[ xX✓]?\])"
IS = r"(?:is|are|was|were|seems?|looks?|appears?|must be|can be|would be|being|to be|was found to be)"
HOW = rf"(?:{match_any_of(read_words('adverbs', 'letters'))}\s+)*"


class LetterPatterns:
    """Compiled patterns for a set of letters.

    Args:
        letters: the valid letters, upper case.
    """

    def __init__(self, letters: str) -> None:
        self.letters = letters
        some, lower = f"[{letters}]", f"[{letters.lower()}]"
        # A capital "A" before a lower-case word is the article, unless that word only occurs after letters.
        article = rf"(?!(?<=[Aa])\s+(?!{_AFTER_LETTER}\b)[a-z])"
        self._compile_places(some, lower, article)
        self._compile_choices(some)
        self._compile_rejections(some, article)
        self._compile_lists(some)

    def _compile_places(self, some: str, lower: str, article: str) -> None:
        """Compile patterns for a letter that stands alone, opens a text, or marks an option."""
        any_case = f"{some[:-1]}{lower[1:]}"
        free = rf"(?<![A-Za-z0-9_'°])(?<![A-Za-z0-9]-)({some})(?![A-Za-z0-9_']|-[A-Za-z0-9]|\.[0-9])"
        # Group 1 is a capital that stands alone, group 2 a lower-case letter in delimiters. `first_letter` excludes
        # articles.
        self.standalone = re.compile(rf"{free}|(?:\(|^\s*)({lower})[)](?![A-Za-z0-9])", re.MULTILINE)
        self.first_letter = re.compile(
            rf"(?<![A-Za-z0-9_'°])(?:A|\(a\))(?![A-Za-z0-9_'])(?:(?!\s+[a-z])|(?=\s+{_AFTER_LETTER}\b))"
        )
        self.bare = re.compile(rf"\s*{_LETTER_NAME}\W*({any_case})\W*(?:\s*(?i:is correct|is the answer|正确))?\W*")
        self.opening = re.compile(
            rf"\s*{_LETTER_NAME}[\s(\[{{<\"':]*(?:(?<![A-Za-z])({some})(?![A-Za-z0-9_'])(?!-[A-Za-z0-9]){article}"
            rf"|({lower})(?=[)\].:]))"
        )
        self.joined = re.compile(
            rf"\s*{_LETTER_NAME}{_OPEN}{any_case}{_CLOSE}\.?{_JOIN}{_LETTER_NAME}{_OPEN}{some}{_CLOSE}(?![A-Za-z0-9_'])(?!(?<=A)\s+[a-z])"
        )
        self.listed = re.compile(rf"(?<![A-Za-z0-9_'(]){_OPEN}({some})(?:\)|[.:、](?=\s)|\.(?=\S))")
        self.option = re.compile(rf"\s*{_LETTER_NAME}{_OPEN}({some}){_CLOSE}(?![A-Za-z0-9_'])[\s).:、,=(→—-]*")

    def _compile_choices(self, some: str) -> None:
        """Compile patterns for the letter that a reply chooses or calls right."""
        several_more = rf"{_JOIN}{_LETTER_NAME}{_OPEN}{some}{_CLOSE}(?![A-Za-z])"
        self.accepted = re.compile(
            rf"(?<![A-Za-z0-9_'°]){_OPEN}({some}){_CLOSE}(?:\s*(?i:{IS})\s+{HOW}(?i:{ACCEPT})|(?:选?项)?\s*(?:是|最)?{_ACCEPT_CHINESE})"
        )
        self.both_accepted = re.compile(
            rf"(?<![A-Za-z0-9_'°]){_OPEN}{some}{_CLOSE}{several_more}\s*(?i:are|were|seem|look|appear)\s+{HOW}(?i:{ACCEPT})"
        )
        # The only letter that is not rejected: "All but C can be ruled out", "None other than C fits".
        words = match_any_of(read_words("all_but", "letters"))
        but = rf"[^.;\n]{{0,40}}?\b(?i:{words})\s+{_LETTER_NAME}{_OPEN}({some}){_CLOSE}(?![A-Za-z])"
        every = r"\b(?i:all|every\w*|any\w*|each)\b"
        self.all_but = re.compile(
            rf"{every}{but}[^.;\n]{{0,40}}?(?i:{_REJECT_AFTER})"
            rf"|\b(?i:rul\w+ out|eliminat\w+|exclud\w+|discard\w*|reject\w*)\s+{every}{but}"
            rf"|\b(?i:none|no|nothing)\b{but}"
        )
        # The first letter of a ranking: "B > A > D", "B, then D, then A".
        order = rf"\s*(?:>|≻|,?\s*then)\s*{_OPEN}{some}{_CLOSE}(?![A-Za-z0-9_'])"
        self.ranked = re.compile(rf"(?<![A-Za-z0-9_'°>])(?<!> ){_OPEN}({some}){_CLOSE}{order}(?:{order})+")
        # An option after a mark or before a possible verdict: "☑ B", "B? Yes.", "| B | correct |".
        self.item = re.compile(
            rf"(?:(?P<mark>{MARKS})[ \t]*)?(?<![A-Za-z0-9_'°]){_LETTER_NAME}{_OPEN}(?P<letter>{some}){_CLOSE}"
            r"(?![A-Za-z0-9_'])"
            rf"\s*(?P<link>[?:=|→().–—-]+|(?=[{TICKS}{CROSSES}])|(?i:{IS})\b|(?=\s|\Z))"
        )

    def compile_superlatives(self, question: str) -> tuple[re.Pattern[str], re.Pattern[str]]:
        """Compile patterns for a letter called by a superlative of the question ("C is the farthest"), and for the
        superlative alone."""
        words = sorted(set(re.findall(r"\b(?:most \w+|\w{2,}(?<!inter)est)\b", question.lower()))) or ["(?!)"]
        asked = rf"(?i:{'|'.join(words)})\b"
        said = rf"[)\"']?\s+(?i:is|was|looks|appears|seems)\s+{HOW}(?i:the\s+)?{asked}"
        return re.compile(rf"(?<![A-Za-z0-9_'°])[(\"']?([{self.letters}]){said}"), re.compile(rf"\b{asked}")

    def _compile_rejections(self, some: str, article: str) -> None:
        """Compile patterns for letters that a reply calls wrong."""
        several = rf"{_OPEN}{some}{_CLOSE}(?:{_JOIN}{_NAME}{_OPEN}{some}{_CLOSE}){{0,25}}(?![A-Za-z])"
        self.rejected_after = re.compile(
            rf"\s*{_LETTER_NAME}{several}(?:选?项)?(?:\s*(?:[-:—]|(?i:{IS}))?\s*(?i:{HOW}{_REJECT_AFTER})|\s*{_REJECT_AFTER_CHINESE})"
        )
        self.rejected = (
            re.compile(
                rf"(?<![A-Za-z])(?i:{_REJECT_BEFORE})\s*(?i:(?:be|it's|is|the|either|correct|answer)\s+)*{_LETTER_NAME}{several}"
                rf"{article}(?!\s*(?i:only|just)\b)"
            ),
            re.compile(
                rf"(?<![A-Za-z0-9_']){_LETTER_NAME}{several}(?:选?项)?\s*"
                rf"(?:(?:[-:—]|(?i:{IS}))?\s*(?i:{HOW}{_REJECT_AFTER})|{_REJECT_AFTER_CHINESE}"
                rf"|(?i:isn't|aren't|wasn't|doesn't|don't|does not|do not|cannot|can't|can not|won't|will not|has no)"
                rf"\b)"
            ),
            # A line that discusses and rejects one option of a list: "A. 3 m - incorrect".
            re.compile(
                rf"^\s*{_OPEN}{some}[).:][^\n]*?(?:(?<=[).:])|[-—:(→]|\b(?i:is|this is|but|so))\s*"
                rf"(?i:{HOW}{_REJECT_AFTER})[^\n]*$",
                re.MULTILINE,
            ),
        )

    def _compile_lists(self, some: str) -> None:
        """Compile patterns for letters that are only listed: rows of a table, "among A, B and C"."""
        self.row = re.compile(rf"^[ \t]*\|\s*{_OPEN}({some}){_CLOSE}\s*\|([^\n|]{{1,200}})\|[ \t]*$", re.MULTILINE)
        self.enumerated = re.compile(
            rf"(?i:\b(?:among|amongst|between|from|of|options|choices|considering|consider|compare|comparing|given|选项)\b|选项)"
            rf"[\s:]*(?i:(?:the|options|choices|answers)\s+)*{_OPEN}{some}{_CLOSE}(?:{_JOIN}{_LETTER_NAME}{_OPEN}{some}{_CLOSE}){{1,25}}"
            rf"(?![A-Za-z0-9_'])(?!(?<=A)\s+[a-z])(?!\s+(?i:{IS})\b)"
        )


# A verdict on an option in a list: at the start of the text about the option, or after a separator.
VERDICT = re.compile(
    rf"(?:\A|(?=[{TICKS}{CROSSES}])|[—–\-(→;:|.]|\b(?:is|was|so|but|looks|seems|it's|that|it|this)\b)[\s\"'|]*{HOW}"
    rf"(?:(?P<reject>{_REJECT_AFTER}|{_REJECT_AFTER_CHINESE}|[{CROSSES}])"
    rf"|(?P<accept>{ACCEPT}|{match_any_of(read_words('fits', 'letters'))}|{_ACCEPT_CHINESE}|[{TICKS}])"
    r"(?!\s+(?:of|side|above|below|behind|next|in\s+front)\b))",
    re.IGNORECASE,
)


@lru_cache(maxsize=64)
def compile_letter_patterns(letters: str) -> LetterPatterns:
    """The patterns for a set of letters, which are compiled once."""
    return LetterPatterns(letters)
