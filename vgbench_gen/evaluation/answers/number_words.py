"""Replaces English and Chinese number words by digits, so that one pattern reads all numbers."""

# ruff: noqa: RUF001 (characters of replies that look like others)

from __future__ import annotations

import re

_ONES = {
    "zero": 0, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9,
    "ten": 10, "eleven": 11, "twelve": 12, "thirteen": 13, "fourteen": 14, "fifteen": 15, "sixteen": 16,
    "seventeen": 17, "eighteen": 18, "nineteen": 19,
}  # fmt: skip
_TENS = {
    "twenty": 20, "thirty": 30, "forty": 40, "fourty": 40, "fifty": 50, "sixty": 60, "seventy": 70, "eighty": 80,
    "ninety": 90,
}  # fmt: skip
_SCALES = {"hundred": 100, "thousand": 1000}
_ALL_WORDS = sorted({**_ONES, **_TENS, **_SCALES}, key=len, reverse=True)
_WORD = "|".join(_ALL_WORDS)
_ENGLISH = re.compile(
    rf"\b(?P<words>(?:a\s+(?=hundred|thousand))?(?:{_WORD})\b"
    rf"(?:(?:(?<=hundred)\s+and\s+|(?<=thousand)\s+and\s+|[\s-]+)(?:{_WORD})\b)*)(?P<point>[\s-]+point(?:[\s-]+(?:{'|'.join(_ONES)}))+\b)?"
)
_PARTS = {"half": 2, "halves": 2, "third": 3, "quarter": 4, "fourth": 4, "fifth": 5, "eighth": 8, "tenth": 10}
_UNIT = r"(?:(?:kilo|deci|centi|milli)?met(?:er|re)|foot|feet|yard|mile|inche?)s?\b"
# A fraction before a unit or after "and" becomes digits: "three quarters of a meter", "2 and a half".
_PART = re.compile(
    rf"(?:(?P<and>(?<=[0-9]|[a-z])[\s-]*(?:\band\b|&|-)[\s-]*)|\b)(?:(?P<count>an?|one|two|three|four|five|seven|[1-9])[\s-]+)?"
    rf"(?P<part>{'|'.join(_PARTS)})s?\b(?P<unit>[\s-]+(?:of\s+)?(?:an?\s+|one\s+)?(?={_UNIT}))?"
)
_UNIT_AND_PART = re.compile(
    rf"\b(?P<one>an?|one|[0-9]{{1,6}})[\s-]+(?P<unit>{_UNIT})\s+and\s+(?=[0-9]/)(?P<part>[0-9]/[0-9]{{1,2}})\b"
)
_DOZEN = re.compile(
    r"\b(?:(?P<half>(?:half\s+a|1/2)|half\s+a)|(?P<two>two|2)|(?P<three>three|3)|an?|one|1)[\s-]+dozen\b"
)
_PAIR = re.compile(r"\ba\s+(?:pair|couple)\s+of\s+")
_SINGLE = re.compile(r"\b(?:a\s+single|only\s+a\s+single|just\s+a\s+single)\b")
_ONE_UNIT = re.compile(r"\ban?\s+(?=(?:met(?:er|re)|foot|yard|mile|inch|kilomet(?:er|re)|centimet(?:er|re))\b)")
_CHINESE_DIGITS = {c: n for n, c in enumerate("零一二三四五六七八九")} | {"两": 2, "〇": 0, "壹": 1, "贰": 2, "叁": 3}
_CHINESE_SCALES = {"十": 10, "百": 100, "千": 1000}
_CHINESE_NUMERAL = "[零〇一二两三四五六七八九十百壹贰叁][零〇一二两三四五六七八九十百千点]{0,11}"
_MEASURE = "个個把张張只隻条條辆輛台臺人本扇块塊盏盞件幅间間层層面排位名棵根支朵盆瓶杯匹头架座栋双对"
_CHINESE = re.compile(
    rf"(?<!第)(?<![其统唯万同])(?P<numeral>{_CHINESE_NUMERAL}|[0-9]+(?=个半))(?P<half>个半|半)?"
    rf"(?=\s*(?:[{_MEASURE}]|[毫厘公分千]?米|左右|上下|公分|公尺|公里|英[尺寸里]|平方|平米|[到至][零〇一二两三四五六七八九十百0-9]|$|[。.,、;!?\n]))"
)
_UNIT_HALF = re.compile("([零〇一二两三四五六七八九十百千0-9])(公?[米尺]|英[尺寸])半")


def replace_number_words(text: str) -> str:
    """Replace the number words of a lower-case text: "twenty-one" by "21", "two and a half" by "2.5", "三" by "3".

    Words that do not count stay: "the left one", "second", "一共".
    """
    if re.search("[零〇一二两三四五六七八九十百半壹贰叁]", text):
        text = _UNIT_HALF.sub(r"\1个半\2", text.replace("半米", "0.5米"))
        text = _CHINESE.sub(lambda match: _write_chinese(match["numeral"]) + (".5" if match["half"] else ""), text)
    if not re.search(r"[a-z]", text):
        return text
    if "dozen" in text:
        text = _DOZEN.sub(_write_dozens, text)
    text = _PAIR.sub("2 ", text)
    if any(part in text for part in _PARTS):
        text = _PART.sub(_write_part, text)
        text = _UNIT_AND_PART.sub(lambda m: f"{m['one'] if m['one'].isdigit() else 1} {m['part']} {m['unit']}", text)
    if "single" in text:
        text = _SINGLE.sub("1", text)
    text = _ONE_UNIT.sub("1 ", text)
    if any(word in text for word in _ALL_WORDS):
        text = _ENGLISH.sub(_write_english, text)
    return text


def _write_dozens(match: re.Match[str]) -> str:
    return "6" if match["half"] else "24" if match["two"] else "36" if match["three"] else "12"


def _write_part(match: re.Match[str]) -> str:
    if not match["unit"] and not match["and"]:
        return match.group()
    count = match["count"] or "1"
    joint = "" if match["and"] is None else " and "
    top = count if count.isdigit() else _ONES.get(count, 1)
    return f"{joint}{top}/{_PARTS[match['part']]}{' ' if match['unit'] else ''}"


def _write_english(match: re.Match[str]) -> str:
    total = current = 0
    last = 1000
    for word in re.findall(r"[a-z]+", match["words"]):
        if word in ("and", "a"):
            continue
        if word in _SCALES:
            scale = _SCALES[word]
            current = max(current, 1) * scale
            if scale == 1000:
                total, current = total + current, 0
            last = scale
            continue
        value = _ONES.get(word, _TENS.get(word, 0))
        size = 10 if word in _TENS else 1
        if size >= last or (last == 10 and not 1 <= value <= 9) or (last == 1):
            return match.group()  # a list such as "one two three" is no number
        current, last = current + value, size if size == 10 else 1
    digits = "".join(str(_ONES[word]) for word in re.findall("[a-z]+", match["point"])[1:]) if match["point"] else ""
    return f"{total + current}.{digits}" if digits else str(total + current)


def _write_chinese(numeral: str) -> str:
    if numeral.isascii():
        return numeral
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
