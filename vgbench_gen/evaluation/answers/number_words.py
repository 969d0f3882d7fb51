"""Number words of English and Chinese written as digits, so that one pattern reads all numbers."""

from __future__ import annotations

import re

_ONES = {
    "zero": 0, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9,
    "ten": 10, "eleven": 11, "twelve": 12, "thirteen": 13, "fourteen": 14, "fifteen": 15, "sixteen": 16,
    "seventeen": 17, "eighteen": 18, "nineteen": 19,
}  # fmt: skip
_TENS = {
    "twenty": 20, "thirty": 30, "forty": 40, "fifty": 50, "sixty": 60, "seventy": 70, "eighty": 80, "ninety": 90,
}  # fmt: skip
_ALL_WORDS = sorted({**_ONES, **_TENS, "hundred": 100, "thousand": 1000}, key=len, reverse=True)
_WORD = "|".join(_ALL_WORDS)
_ENGLISH = re.compile(
    rf"\b(?P<words>(?:{_WORD})\b(?:(?:(?<=hundred)\s+and\s+|(?<=thousand)\s+and\s+|[\s-]+)(?:{_WORD})\b)*)"
    rf"(?P<point>[\s-]+point(?:[\s-]+(?:{'|'.join(_ONES)}))+\b)?"
)
_PHRASES = {
    "half a dozen": "6", "two dozen": "24", "a dozen": "12", "a couple of": "2", "a pair of": "2", "a single": "1",
}  # fmt: skip
_PHRASE = re.compile(rf"\b(?:{'|'.join(_PHRASES)})\b")
_PARTS = {"half": 2, "third": 3, "quarter": 4}
_UNIT = r"(?:(?:centi|kilo)?met(?:er|re)|foot|feet|yard|mile|inche?)s?\b"
# "three quarters of a meter", "2 and a half": a part before a unit or behind "and" becomes "3/4", "1/2".
_PART = re.compile(
    rf"(?:(?P<and>(?<=[0-9a-z])[\s-]*(?:\band\b|-)[\s-]*)|\b)(?:(?P<count>an?|one|two|three|[1-9])[\s-]+)?"
    rf"(?P<part>{'|'.join(_PARTS)})s?\b(?P<unit>[\s-]+(?:of\s+)?(?:an?\s+)?(?={_UNIT}))?"
)
_UNIT_AND_PART = re.compile(
    rf"\b(?P<one>an?|one|[0-9]{{1,6}})[\s-]+(?P<unit>{_UNIT})\s+and\s+(?=[0-9]/)(?P<part>[0-9]/[0-9]{{1,2}})\b"
)
_ONE_UNIT = re.compile(rf"\ban?\s+(?={_UNIT})")
_CHINESE_DIGITS = {c: n for n, c in enumerate("零一二三四五六七八九")} | {"两": 2}
_CHINESE_SCALES = {"十": 10, "百": 100, "千": 1000}
_CHINESE_NUMERAL = "[零一二两三四五六七八九十百][零一二两三四五六七八九十百千点]{0,11}"
_MEASURE = "个把张只条辆台人本扇块盏件幅间层面排位名棵根支朵盆瓶杯匹头架座栋双对"
_CHINESE = re.compile(
    rf"(?<![第其统唯万同])(?P<numeral>{_CHINESE_NUMERAL})(?P<half>个半|半)?"
    rf"(?=\s*(?:[{_MEASURE}]|[毫厘公分千]?米|左右|公[分尺里]|英[尺寸里]|平方|[到至][一二两三四五六七八九十]|$|[。.,、;!?\n]))"
)
_UNIT_HALF = re.compile("([一二两三四五六七八九十百千])(公?[米尺]|英[尺寸])半")


def replace_number_words(text: str) -> str:
    """A lower-case text with its number words as digits: "twenty-one" to "21", "two and a half" to "2.5", "三" to "3".

    Words that count nothing stay: "the left one", "second", "一共".
    """
    if re.search("[零一二两三四五六七八九十百半]", text):
        text = _UNIT_HALF.sub(r"\1个半\2", text.replace("半米", "0.5米"))
        text = _CHINESE.sub(lambda match: _write_chinese(match["numeral"]) + (".5" if match["half"] else ""), text)
    if not re.search(r"[a-z]", text):
        return text
    text = _PHRASE.sub(lambda match: _PHRASES[match.group()], text)
    if any(part in text for part in _PARTS):
        text = _PART.sub(_write_part, text)
        text = _UNIT_AND_PART.sub(lambda m: f"{m['one'] if m['one'].isdigit() else 1} {m['part']} {m['unit']}", text)
    text = _ONE_UNIT.sub("1 ", text)
    if any(word in text for word in _ALL_WORDS):
        text = _ENGLISH.sub(_write_english, text)
    return text


def _write_part(match: re.Match[str]) -> str:
    if not match["unit"] and not match["and"]:
        return match.group()
    count = match["count"] or "1"
    joint = "" if match["and"] is None else " and "
    top = count if count.isdigit() else _ONES.get(count, 1)
    return f"{joint}{top}/{_PARTS[match['part']]}{' ' if match['unit'] else ''}"


def _write_english(match: re.Match[str]) -> str:
    total, current, last = 0, 0, 10_000
    for word in re.findall(r"[a-z]+", match["words"]):
        if word == "and":
            continue
        if word == "hundred":
            current, last = max(current, 1) * 100, 100
            continue
        if word == "thousand":
            total, current, last = max(current, 1) * 1000, 0, 1000
            continue
        value, size = (_TENS[word], 10) if word in _TENS else (_ONES[word], 1)
        if size >= last or (last == 10 and value > 9):
            return match.group()  # "one two three" is a list, not a number
        current, last = current + value, size
    digits = "".join(str(_ONES[word]) for word in re.findall("[a-z]+", match["point"])[1:]) if match["point"] else ""
    return f"{total + current}.{digits}" if digits else str(total + current)


def _write_chinese(numeral: str) -> str:
    whole, _, fraction = numeral.partition("点")
    digits = "".join(str(_CHINESE_DIGITS.get(c, 0)) for c in fraction)
    if not any(c in _CHINESE_SCALES for c in whole):
        value = "".join(str(_CHINESE_DIGITS.get(c, 0)) for c in whole)
        return f"{value}.{digits}" if digits else value
    total, current = 0, 0
    for c in whole:
        if c in _CHINESE_SCALES:
            total += (current or 1) * _CHINESE_SCALES[c]
            current = 0
        else:
            current = _CHINESE_DIGITS.get(c, 0)
    return f"{total + current}.{digits}" if digits else str(total + current)
