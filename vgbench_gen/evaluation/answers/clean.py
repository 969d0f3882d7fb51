"""Cleans replies: removes reasoning blocks, Markdown, LaTeX and unusual characters.

Rules: `docs/protocols.md#cleaning-a-reply`.
"""

# ruff: noqa: RUF001 (characters of replies that look like others)

from __future__ import annotations

import html
import re
import unicodedata
from dataclasses import dataclass

from vgbench_gen.evaluation.answers.vocabulary import match_any_of, read_words

# Only the beginning and the end of a longer reply are read: answers are found there, and the time to read a reply stays
# bounded. 10,000 characters are more than the 2,048 tokens that a model may write.
MAX_HEAD_CHARS, MAX_TAIL_CHARS = 200, 10_000
_RUN = re.compile(r"(.)\1{80,}", re.DOTALL)

_TAG_NAMES = match_any_of(read_words("reasoning_tags"))
_REASONING = re.compile(
    rf"<(/?)\s*{_TAG_NAMES}\b[^<>]{{0,200}}>|◁(/?)think▷|\[(/?)THINK\]|<\|(?:START|(END))_THINKING\|>", re.IGNORECASE
)
_FINAL_CHANNEL = re.compile(r"<\|channel\|>final<\|message\|>|<\|START_RESPONSE\|>")
# The header of a turn is a token of a chat template, or the label of a transcript at the start of a line.
_TOKEN_HEAD = (
    r"<[|｜]?(?:(?:im_start|start_header_id)[|｜]>|(?:start_of_turn|turn)>|start_of_turn_token[|｜]><[|｜])?\s*"
)
_TOKEN_TAIL = r"(?:(?:_token)?[|｜]?>|[|｜]?<[|｜]end_header_id[|｜]>|\s*\n)"


def _match_label(*labels: str) -> str:
    """A pattern for a label at the start of a line that is followed by a colon or is a heading."""
    some = f"(?:{'|'.join(labels)})"
    number = r"[ \t]*[#(]?[0-9]{1,3}"
    before_colon = rf"^[#>*\[( \t]*{some}(?:{number})?[\])*]*[ \t]*[:：]"
    return rf"{before_colon}|^[ \t]*(?:#+[ \t]*{some}(?:{number})?|{some}{number})[ \t]*$"


_TURN = re.compile(
    rf"(?P<user>{_TOKEN_HEAD}(?:user|human|system){_TOKEN_TAIL}|\[INST\]|(?-i:(?<![A-Z])(?:USER\b[^:\n]{{0,20}}|Human\s*):|\bQuestion\s*:)"
    # A new question with options, which a model may write after its answer.
    rf"|^[^\n]{{10,300}}\?[ \t]*\n[ \t]*\(?A[.):]|\{{\s*[\"']question[\"']\s*:"
    rf"|{_match_label(*read_words('user_labels'))})"
    rf"|(?P<model>{_TOKEN_HEAD}(?:assistant|model|chatbot){_TOKEN_TAIL}|\[/INST\]|\b(?-i:ASSISTANT|Assistant)\s*:"
    rf"|{_match_label('assistant', 'gpt', '助手')})"
    rf"|(?P<answer>{_match_label('(?:final )?answer', 'a', '答案?')})"
    r"|(?P<end><[|｜](?:im_end|eot_id|end|eos|endoftext|end_of_text|end▁of▁sentence|end_of_turn_token|return|eom_id)[|｜]>"
    r"|</s>|<end_of_turn>|<eos>)",
    re.IGNORECASE | re.MULTILINE,
)
_HTML = re.compile(r"</?(?:b|i|em|strong|p|br|span|u|code|div|li|ul|ol|sub|sup|h[1-6])\b[^<>]{0,200}>", re.IGNORECASE)

_VULGAR = re.compile("(?P<digit>[0-9])?(?P<sign>[¼-¾⅐-⅞])")
_SUPERSCRIPT = re.compile("[⁰¹²³⁴-⁹⁺⁻]+")
_CHARACTERS = str.maketrans(
    dict.fromkeys("\u200b\u200c\u200d\u200e\u200f\u2060\ufeff\u00ad")
    | dict.fromkeys("\u2018\u2019\u02bc\u2032\u00b4", "'")
    | dict.fromkeys("\u201c\u201d\u2033\u300c\u300d", '"')
    | dict.fromkeys("\u2010\u2011\u2012\u2013\u2212\ufe63", "-")
    | {
        "\u0130": "I",
        "🅰": "A",
        "🅱": "B",
        "\ufe0f": "",
        "，": ", ",
        "～": "~",
        "\u2028": "\n",
        "\u2029": "\n",
        "\r": "\n",
    }
    | dict(
        zip(
            "對錯確無為這說選項應該個兩約釐離遠間圖張從會認實準論題問開關後過還與於時見視難幾總數條燈門處點樣來將們並據結單僅達標記識證體寬長邊顯斷測計屬陳話給讓變當沒徑積綜終線碼誤請麼訴聲語圓區塊頭帶號夠輛臺盞層隻種緣猜則雖這須贊裡錄觀較約結論評價鏡",
            "对错确无为这说选项应该个两约厘离远间图张从会认实准论题问开关后过还与于时见视难几总数条灯门处点样来将们并据结单仅达标记识证体宽长边显断测计属陈话给让变当没径积综终线码误请么诉声语圆区块头带号够辆台盏层只种缘猜则虽这须赞里录观较约结论评价镜",
            strict=True,
        )
    )
)

_STRUCK = re.compile(r"~~[^~\n]{1,400}~~")
_STAR = re.compile(r"(?<![\w*])\*(?=[^\s*])([^*\n]{1,400})(?<=\S)\*(?![\w*])")
_UNDERSCORE = re.compile(r"(?<![A-Za-z0-9_\\])_{1,2}(?=[^\s_])([^_\n]{1,400})(?<=\S)_{1,2}(?![A-Za-z0-9_])")
_LINE_START = re.compile(r"^[ \t]*(?:#{1,6}[ \t]+|>[ \t]?|[-*•][ \t]+)+", re.MULTILINE)

_MATRIX = re.compile(r"\\begin\{[bpv]?matrix\}(.{1,2000}?)\\end\{[bpv]?matrix\}", re.DOTALL)
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
_TIE = re.compile(r"(?<=[0-9}{])~(?=[\\a-zA-Z])")


@dataclass(frozen=True, slots=True)
class CleanedReply:
    """A reply after cleaning."""

    texts: tuple[str, ...]
    """The parts that may contain the answer, in plain characters; a part is read if those before it have no answer."""
    cut: bool
    """Whether a reasoning block is not closed."""


def clean_reply(reply: str) -> CleanedReply:
    """Clean a reply.

    Reasoning blocks are removed; of a long rest the beginning and the end are kept. If the model also wrote a next turn
    of the user, the text before that turn is the first part.
    """
    text, cut = _remove_reasoning(reply)
    own, later = _split_turns(text)
    parts = [_RUN.sub(lambda match: match.group(1) * 80, _shorten(part)) for part in (own, later) if part]
    return CleanedReply(tuple(simplify_text(part) for part in parts), cut)


def _shorten(text: str) -> str:
    text = text.strip()
    if len(text) <= MAX_HEAD_CHARS + MAX_TAIL_CHARS:
        return text
    return f"{text[:MAX_HEAD_CHARS]}\n{text[-MAX_TAIL_CHARS:]}"


def simplify_text(text: str) -> str:
    """A text in plain characters, without Markdown and LaTeX commands. Option texts are simplified in this way too."""
    if not text.isascii():
        text = _VULGAR.sub(_write_vulgar_fraction, text)
        text = _SUPERSCRIPT.sub(lambda match: "^" + unicodedata.normalize("NFKC", match.group()), text)
        text = unicodedata.normalize("NFKC", text.translate(_CHARACTERS)).translate(_CHARACTERS)
    elif "\r" in text:
        text = text.replace("\r", "\n")
    if "<" in text:
        text = _HTML.sub(" ", text)
    if "&" in text:
        text = html.unescape(text)
    if "\\" in text or "$" in text:
        text = _remove_latex(text)
    return _remove_markdown(text).strip()


def _remove_reasoning(reply: str) -> tuple[str, bool]:
    """(text outside reasoning blocks, whether the last block is not closed)."""
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
        elif depth == 0:  # the prompt contained the opening tag
            kept = []
        else:
            depth -= 1
        start = tag.end()
    if depth == 0:
        kept.append(reply[start:])
    return "\n".join(kept), depth > 0


def _split_turns(text: str) -> tuple[str, str]:
    """(the model's first turn if another turn follows, else ""; the text after the model's last header).

    A question at the start of the reply is the user's turn; the text after its "Answer:" is the model's first turn.
    """
    turns = list(_TURN.finditer(text))
    last = max((turn.end() for turn in turns if turn["model"]), default=0)
    is_own, start, answered = True, 0, False
    for turn in turns:
        own_text = text[start : turn.start()].strip() if is_own else ""
        if own_text and (turn["user"] or turn["end"]):
            return own_text, text[last:]
        answered |= bool(turn["answer"]) and not is_own
        if turn["model"] or (turn["answer"] and not is_own) or (turn["end"] and is_own):
            is_own, start = True, turn.end()
        elif turn["user"]:
            is_own = False
    return text[start:].strip() if answered else "", text[last:]


def _remove_latex(text: str) -> str:
    text = _TIE.sub(" ", text)
    text = _MATRIX.sub(_write_matrix, text)
    text = re.sub(r"\\([_%#&${}])", r"\1", text).replace("$", "")
    for _ in range(4):  # commands may be nested
        changed = _FRACTION.sub(_write_fraction, _WRAPPER.sub(r"\1", text))
        if changed == text:
            break
        text = changed
    text = _LATEX_WORD.sub(lambda match: _LATEX_WORDS[match.group(1)], text).replace("^°", "°").replace("^{°}", "°")
    return _LATEX_SPACE.sub(" ", text)


def _write_matrix(match: re.Match[str]) -> str:
    rows = [row.replace("&", ", ") for row in match.group(1).split("\\\\") if row.strip()]
    return f"[[{'], ['.join(' '.join(row.split()) for row in rows)}]]"


def _write_fraction(match: re.Match[str]) -> str:
    before, top, bottom = match.group(1), match.group(2) or match.group(4), match.group(3) or match.group(5)
    return f"{before} {top}/{bottom}" if before else f"{top}/{bottom}"


def _write_vulgar_fraction(match: re.Match[str]) -> str:
    text = unicodedata.normalize("NFKC", match.group("sign")).replace("\u2044", "/")
    return f"{match.group('digit')} {text}" if match.group("digit") else text


def _remove_markdown(text: str) -> str:
    text = text.replace("`", "")
    if "~~" in text:
        text = _STRUCK.sub(" ", text)
    if "**" in text:
        text = text.replace("**", "")
    if "*" in text:
        text = _STAR.sub(r"\1", text)
    if "_" in text:
        text = _UNDERSCORE.sub(r"\1", text)
    return _LINE_START.sub("", text)
