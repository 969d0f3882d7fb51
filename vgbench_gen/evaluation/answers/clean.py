"""What `docs/protocols.md#cleaning-a-reply` asks for: characters, reasoning blocks, Markdown and LaTeX taken off a
reply."""

# ruff: noqa: RUF001 (characters of replies that look like others)

from __future__ import annotations

import html
import re
import unicodedata
from dataclasses import dataclass

from vgbench_gen.evaluation.answers.vocabulary import match_any_of, read_words

# Of a longer answer only the first line and the end are read; answers stand there, and reading stays quick whatever was
# sent. 10,000 characters are more than the 2,048 tokens that models are given.
MAX_HEAD_CHARS, MAX_TAIL_CHARS = 200, 10_000
_RUN = re.compile(r"(.)\1{80,}", re.DOTALL)

_TAG_NAMES = match_any_of(read_words("reasoning_tags"))
_REASONING = re.compile(rf"<(/?)\s*{_TAG_NAMES}\b[^<>]{{0,200}}>|◁(/?)think▷|\[(/?)THINK\]", re.IGNORECASE)
_FINAL_CHANNEL = re.compile(r"<\|channel\|>final<\|message\|>")
_SPECIAL = re.compile(r"<\|(?!(?:begin|end)_of_box)[a-z_]{1,40}\|>|</?s>|\[/?INST\]")
_ROLE = re.compile(r"\b(?:ASSISTANT|Assistant)\s*:")
_HTML = re.compile(r"</?(?:b|i|em|strong|p|br|span|u|code|div|li|ul|ol|sub|sup|h[1-6])\b[^<>]{0,200}>", re.IGNORECASE)

_VULGAR = re.compile("(?P<digit>[0-9])?(?P<sign>[¼-¾⅐-⅞])")
_SUPERSCRIPT = re.compile("[⁰¹²³⁴-⁹⁺⁻]+")
_THIN_SPACE = re.compile("(?<=[0-9])[\u00a0\u2009\u202f\u2007](?=[0-9]{3}(?![0-9]))")
_CHARACTERS = str.maketrans(
    dict.fromkeys("\u200b\u200c\u200d\u200e\u200f\u2060\ufeff\u00ad")
    | dict.fromkeys("\u2018\u2019\u02bc\u2032\u00b4", "'")
    | dict.fromkeys("\u201c\u201d\u2033\u300c\u300d", '"')
    | dict.fromkeys("\u2010\u2011\u2012\u2013\u2212\ufe63", "-")
    | {"\u0130": "I", "，": ", ", "～": "~", "\u2028": "\n", "\u2029": "\n", "\r": "\n"}
)

_FENCE = re.compile(r"```+(?:[a-zA-Z]{0,20}[ \t]*\n)?")  # a word on the same line is no language
_STRUCK = re.compile(r"~~[^~\n]{1,400}~~")
_STAR = re.compile(r"(?<![\w*])\*(?=[^\s*])([^*\n]{1,400})(?<=\S)\*(?![\w*])")
_UNDERSCORE = re.compile(r"(?<![A-Za-z0-9_\\])_{1,2}(?=[^\s_])([^_\n]{1,400})(?<=\S)_{1,2}(?![A-Za-z0-9_])")
_LINE_START = re.compile(r"^[ \t]*(?:#{1,6}[ \t]+|>[ \t]?|[-*•][ \t]+)+", re.MULTILINE)

_WRAPPER = re.compile(
    r"\\(?:text(?:bf|it|rm|sf|tt|normal)?|math(?:rm|bf|it|sf|tt|bb|cal)|operatorname|mbox|emph|bm|boldsymbol|underline)\*?"
    r"\s*\{([^{}]{0,2000})\}"
)
_FRACTION = re.compile(
    r"([0-9]?)\s*\\[dtc]?frac\s*(?:\{\s*([^{}]{1,60}?)\s*\}\s*\{\s*([^{}]{1,60}?)\s*\}|([0-9])([0-9]))"
)
_LATEX_WORDS = {
    "times": "×", "cdot": "×", "approx": "≈", "sim": "~", "pm": "±", "rightarrow": "→", "to": "→", "implies": "→",
    "Rightarrow": "→", "therefore": " ", "left": "", "right": "", "quad": " ", "qquad": " ", "degree": "°", "circ": "°",
    "div": "÷", "displaystyle": "", "large": "", "Large": "", "bf": "", "rm": "", "checkmark": " ", "leq": "<",
    "geq": ">",
}  # fmt: skip
_LATEX_WORD = re.compile(rf"\\({'|'.join(sorted(_LATEX_WORDS, key=len, reverse=True))})(?![a-zA-Z])")
_LATEX_SPACE = re.compile(r"(?<!\\)\\(?:[,;:! ]|(?=[()\[\]]))")
_THOUSANDS_SPACE = re.compile(r"(?<=[0-9])(?:\\[,!;]|\{,\})(?=[0-9]{3}(?![0-9]))")


@dataclass(frozen=True, slots=True)
class CleanedReply:
    """What is left of a reply for the readers."""

    text: str
    """The part that can hold the answer, in plain characters."""
    cut: bool
    """Whether a reasoning block was opened and never closed."""


def clean_reply(reply: str) -> CleanedReply:
    """The part of a reply that can hold the answer, in plain characters.

    A block of reasoning goes, whatever its length; of what is left the beginning and the end stay.
    """
    text, cut = _remove_reasoning(reply)
    text = text.strip()
    if len(text) > MAX_HEAD_CHARS + MAX_TAIL_CHARS:
        text = f"{text[:MAX_HEAD_CHARS]}\n{text[-MAX_TAIL_CHARS:]}"
    return CleanedReply(simplify_text(_RUN.sub(lambda match: match.group(1) * 80, text)), cut)


def simplify_text(text: str) -> str:
    """Characters, Markdown and LaTeX wrappers made plain; also used on option texts, so that both sides look alike."""
    if not text.isascii():
        text = _THIN_SPACE.sub("", text)
        text = _VULGAR.sub(_write_vulgar_fraction, text)
        text = _SUPERSCRIPT.sub(lambda match: "^" + unicodedata.normalize("NFKC", match.group()), text)
        text = unicodedata.normalize("NFKC", text.translate(_CHARACTERS)).translate(_CHARACTERS)
    elif "\r" in text:
        text = text.replace("\r", "\n")
    if "<" in text or "[" in text:
        text = _HTML.sub(" ", _SPECIAL.sub(" ", text))
    if "&" in text:
        text = html.unescape(text)
    if "\\" in text or "$" in text:
        text = _remove_latex(text)
    return _remove_markdown(text).strip()


def _remove_reasoning(reply: str) -> tuple[str, bool]:
    """The text outside reasoning blocks, and whether the last one stayed open."""
    channels = list(_FINAL_CHANNEL.finditer(reply))
    if channels:
        reply = reply[channels[-1].end() :]
    kept: list[str] = []
    depth, start = 0, 0
    for tag in _REASONING.finditer(reply):
        closes = any(tag.groups())
        if not closes:
            if depth == 0:
                kept.append(reply[start : tag.start()])
            depth += 1
        elif depth == 0:  # the opening tag was part of the prompt
            kept = []
        else:
            depth -= 1
        start = tag.end()
    if depth == 0:
        kept.append(reply[start:])
    text = "\n".join(kept)
    roles = list(_ROLE.finditer(text))
    return text[roles[-1].end() :] if roles else text, depth > 0


def _remove_latex(text: str) -> str:
    text = _THOUSANDS_SPACE.sub("", text).replace("{~", "{")
    text = re.sub(r"\\([_%#&${}])", r"\1", text).replace("$", "")
    for _ in range(4):  # wrappers inside wrappers
        changed = _FRACTION.sub(_write_fraction, _WRAPPER.sub(r"\1", text))
        if changed == text:
            break
        text = changed
    text = _LATEX_WORD.sub(lambda match: _LATEX_WORDS[match.group(1)], text).replace("^°", "°").replace("^{°}", "°")
    return _LATEX_SPACE.sub(" ", text)


def _write_fraction(match: re.Match[str]) -> str:
    before, top, bottom = match.group(1), match.group(2) or match.group(4), match.group(3) or match.group(5)
    return f"{before} {top}/{bottom}" if before else f"{top}/{bottom}"


def _write_vulgar_fraction(match: re.Match[str]) -> str:
    text = unicodedata.normalize("NFKC", match.group("sign")).replace("\u2044", "/")
    return f"{match.group('digit')} {text}" if match.group("digit") else text


def _remove_markdown(text: str) -> str:
    text = _FENCE.sub("\n", text).replace("`", "")
    if "~~" in text:
        text = _STRUCK.sub(" ", text)
    if "**" in text:
        text = text.replace("**", "")
    if "*" in text:
        text = _STAR.sub(r"\1", text)
    if "_" in text:
        text = _UNDERSCORE.sub(r"\1", text)
    return _LINE_START.sub("", text)
