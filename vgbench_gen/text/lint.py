"""Checks on a finished text, before anybody reads it: see `docs/validity.md#conventions-in-every-question` and
`docs/validity.md#text`.

The checks look at words and digits alone and know no task; what a text must state comes as names (`states`)
from its template file. `lint` is run on every item, on reworded texts above all.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from vgbench_gen.core.errors import ConfigError
from vgbench_gen.text.numbers import OPPOSITES, count_decimals, keep_digits, number_tokens

MAX_DECIMALS = 4
SIGNIFICANT_DIGITS = 4
MAX_LENGTH_DIFFERENCE = 2

_BRACES = re.compile(r"[{}]|<[A-Z_]{2,}>|\b(?:nan|None|null|TODO)\b")
_EXPONENT = re.compile(r"(?<!\w)[+-]?[0-9]+(?:\.[0-9]*)?[eE][+-]?[0-9]+")
_SPACING = re.compile(r"[ \t]{2,}|[ \t]+\n|\n{2,}|\t|\r|[ \t]+[,.;?!]|^\s|\s$")
_REPEATED = re.compile(r"\b([a-z]+)\s+\1\b", re.IGNORECASE)
_LETTERS = re.compile(
    r"\b[Oo]ptions?\s*:|\b(?:[Oo]ption|[Cc]hoice|[Aa]nswer)\s+[A-F]\b|(?:^|\n)\s*\(?[A-F][.:)]\s|\([A-F]\)"
)
_NUMBER = re.compile(r"[+-]?[0-9]+(?:\.[0-9]+)?")
_SIGN = re.compile(rf"\b(?:{'|'.join(OPPOSITES)})\b")
_WORDS = re.compile(r"[a-z]+(?:,? [a-z]+){0,15}")  # names of marks, labels, and lists of them
# What readers of replies could take for an option's letter or place. Images bear the numbers in which they are shown.
_LETTERED = re.compile(r"(?:[a-z]+ ){0,3}(?<!image )(?:[A-Za-z]|[0-9]{1,2})", re.IGNORECASE)

_RIGHT_DOWN = (r"\bx\b[^.;]{0,40}\bright\b|\bright\b \(x\)", r"\by\b[^.;]{0,40}\bdown\b|\bdown\b \(y\)")
_METERS = r"\bmet(?:re|er)s\b"

# Name of a convention -> patterns that must all occur in question or context. Size and centre carry numbers or
# punctuation that a rewording has no reason to touch.
_STATED: dict[str, tuple[str, ...]] = {
    "size": (r"\b[0-9]+ (?:x|by) [0-9]+ pixels\b|\b[0-9]+ pixels wide and [0-9]+ pixels high\b",),
    "pixel_centre": (r"\(0, 0\)", r"\bcent(?:re|er)\b[^.;]{0,20}\btop-left pixel\b"),
    "pixel_axes": _RIGHT_DOWN,
    "camera_axes": (*_RIGHT_DOWN, r"\bz\b[^.;]{0,40}\bforward\b|\bforward\b[^.;]{0,40}\(z\)", r"\bcamera\b"),
    "pinhole": (r"\bpinhole\b", r"\bdistortion\b"),
    "intrinsics": (
        r"\bfx = [0-9]",
        r"\bfy = [0-9]",
        r"\bcx = [0-9]",
        r"\bcy = [0-9]",
    ),
    "meters": (_METERS,),
    "depth": (r"\bdepth\b", r"\boptical axis\b"),
    "mean_depth": (r"\bmean depth\b", r"\b(?:all|every)\b[^.;]{0,20}\bpixels?\b|\bwhole region\b"),
    "median_depth": (r"\bmedian\b",),
    "distance": (r"\bdistance\b", r"\bEuclidean\b", r"\bcent(?:re|er)s?\b", r"\b3D bounding box(?:es)?\b"),
    "homography": (r"\bH x1\b|\bH \(x1, y1, 1\)|\bmultiply it by H\b", r"\bpixels?\b"),
    "corner_moves": (r"\bcorners?\b", r"\bstraight\b", r"\bhomography\b", r"\bpixels\b"),
    "surroundings": (r"\bsurroundings\b", r"\bphotograph\b"),
    "direction": (r"\bX2 = R X1 \+ t\b",),
    "turns": (
        r"\bvertical axis\b",
        r"\bhorizontal axis\b",
        r"\bviewing axis\b",
        r"\bclockwise\b[^.;]{0,20}\bfrom behind\b",
    ),
    "corner_order": (r"\blower face\b", r"\bnearest\b", r"\bopposite face\b", r"\bsame order\b", r"\bcuboid\b"),
    "upright_box": (r"\bupright\b", r"\bcentre\b", r"\blevel\b", r"\bvertical\b", r"\babove\b"),
    "shown": (r"\bgood part\b",),
    "floor_plan": (r"\bfloor plan\b",),
    "walk": (r"\blevel\b", r"\bstraight\b", r"\bturn\b"),
    "box_gaps": (r"\b3D bounding box(?:es)?\b",),
    "numbering": (r"\bimage 1\b", r"\bimages 2 to [3-7]\b|\bimages 2(?:, [3-6])* and [3-7]\b"),
}
# As above, but the question itself must say it.
_ASKED: dict[str, tuple[str, ...]] = {
    "unit": (r"\b(?:pixels|degrees|met(?:re|er)s)\b",),
    "degrees": (r"\bdegrees\b",),
    "meters_asked": (_METERS,),
    "two_decimals": (_METERS, r"\btwo decimals\b"),
    "measurement_error": (r"\bsmall measurement error\b",),
}
STATES = frozenset(_STATED) | frozenset(_ASKED)
_COMPILED = {
    state: [re.compile(pattern, re.DOTALL | re.IGNORECASE) for pattern in patterns]
    for state, patterns in (_STATED | _ASKED).items()
}


def lint(question: str, context: str, options: Sequence[str] = (), states: Sequence[str] = ()) -> list[str]:
    """Problems of one finished text, each as a short line; empty where there is none.

    question, context, options: as delivered, options without letters. states: conventions that must be said.

    Looks for unfilled slots, float debris (more than 4 decimals, unless the number has at most 4 significant
    digits), negative zero, exponents, bad spacing, repeated words, options or letters inside question or context,
    conventions not stated, and options that differ in form: wording around the numbers ("left" is "right"
    with a sign), how many numbers, their decimals, and for scalars a length that differs by more than 2
    characters. Labels and names of marks are words alone ("the blue square"): a letter or a number could be taken for
    another option (`docs/validity.md#marks`). Poses and boxes print each number with fixed decimals, so there no number
    may be longer than its counterparts by more than that; the whole texts still differ by one character per minus sign.
    Homographies print significant digits, whose lengths follow from the size of the entries: nothing is asked of them
    here. Whether length tells the answer is for the audit's rule "longest".

    Raises:
        ConfigError: a name in `states` is not known.
    """
    unknown = set(states) - STATES
    if unknown:
        raise ConfigError(f"unknown names in states: {sorted(unknown)}; known: {sorted(STATES)}")
    problems: list[str] = []
    parts = [("question", question), ("context", context)]
    for name, text in parts:
        problems += [f"{name}: {problem}" for problem in _find_text_problems(text)]
    for name, text in parts:
        letters = _LETTERS.search(text)
        if letters is not None:
            problems.append(f"{name}: options or option letters inside the text ({letters.group().strip()!r})")
    both = f"{question}\n{context}"
    for state in states:
        text = both if state in _STATED else question
        if not all(pattern.search(text) for pattern in _COMPILED[state]):
            problems.append(f"{'text' if text is both else 'question'}: does not state {state!r}")
    return problems + lint_options(options)


def lint_options(options: Sequence[str]) -> list[str]:
    """The part of `lint` that looks at options alone, for texts around them that were looked at before."""
    each = [f"option {i + 1}: {problem}" for i, option in enumerate(options) for problem in _find_text_problems(option)]
    return each + find_option_problems(options)


def find_option_problems(options: Sequence[str]) -> list[str]:
    """Differences in form between options; see `lint`."""
    if not options:
        return []
    problems: list[str] = []
    if len(set(options)) != len(options):
        problems.append("options: two are equal")
    if any(_LETTERED.fullmatch(option) for option in options):
        return [*problems, "options: a letter or a number in a name could be taken for another option"]
    if all(_WORDS.fullmatch(option) for option in options):
        return problems
    if len({_NUMBER.sub("#", _SIGN.sub(lambda found: OPPOSITES[found[0]], option)) for option in options}) != 1:
        problems.append("options: the text around the numbers differs")
        return problems
    tokens = [number_tokens(option) for option in options]
    by_place = list(zip(*tokens, strict=False))
    same_decimals = all(len({count_decimals(token) for token in place}) == 1 for place in by_place)
    if not same_decimals and not all(_is_significant(token) for row in tokens for token in row):
        problems.append("options: numbers with different decimals")
    # A lone number is as long as its text allows; its unit is part of the text.
    alike = [tuple(options)] if len(by_place) == 1 else by_place if same_decimals else []
    for texts in alike:
        low, high = min(map(len, texts)), max(map(len, texts))
        if high - low > MAX_LENGTH_DIFFERENCE:
            return [*problems, f"options: lengths {low} to {high} differ by more than {MAX_LENGTH_DIFFERENCE}"]
    return problems


def _find_text_problems(text: str) -> list[str]:
    problems: list[str] = []
    if not text:
        return ["empty"]
    for pattern, what in (
        (_BRACES, "unfilled slot or placeholder"),
        (_EXPONENT, "number with an exponent"),
        (_SPACING, "bad spacing"),
        (_REPEATED, "repeated word"),
    ):
        match = pattern.search(text)
        if match is not None:
            problems.append(f"{what} ({text[max(0, match.start() - 10) : match.end() + 10]!r})")
    for token in number_tokens(text):
        if token.startswith("-") and not token.strip("-0."):
            problems.append(f"negative zero ({token})")
        elif count_decimals(token) > MAX_DECIMALS and len(keep_digits(token)) > SIGNIFICANT_DIGITS:
            problems.append(f"float debris ({token})")
    return problems


def _is_significant(token: str) -> bool:
    """Whether the number is printed with exactly `SIGNIFICANT_DIGITS` significant digits."""
    digits = keep_digits(token)
    if not digits:
        return count_decimals(token) == SIGNIFICANT_DIGITS - 1
    if "." not in token:  # 12350: digits beyond the fourth only hold the place
        return len(digits) >= SIGNIFICANT_DIGITS and not digits[SIGNIFICANT_DIGITS:].strip("0")
    return len(digits) == SIGNIFICANT_DIGITS
