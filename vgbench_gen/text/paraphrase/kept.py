"""What a rewording must keep part by part: placeholders, numbers, formulas, words, and what goes with what.

Texts come as (new, old), one part of a text each, and problems go out as (reason, detail).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping

from vgbench_gen.text.numbers import number_tokens
from vgbench_gen.text.paraphrase import rules
from vgbench_gen.text.paraphrase.rules import ATOM, SLOT, Vocabulary

_TERM = (
    r"(?:\{\{ \w+ \}\}|\([^()\n]{1,80}\)|\[[^\[\]\n]{1,80}\]|(?<![\w.])[+-]?[0-9]{1,12}(?:\.[0-9]{1,12})?(?!\w|\.[0-9])"
    r"|(?<![\w])[A-Za-z][A-Za-z]?[0-9]{0,2}(?!\w))"
)
_MORE = rf"(?:\s*[+*/-]\s*{_TERM}|\s+[A-Za-z][0-9](?!\w)|\s+\([a-z][0-9](?:, ?(?:[a-z][0-9]|[0-9]))*\))"
_FORMULA = re.compile(rf"(?:(?<=\s)[A-Z]\s+)?{_TERM}\s*[=~]\s*{_TERM}{_MORE}*")
_PAIR = re.compile(rf"({ATOM}) x ({ATOM})")
_SYMBOL = re.compile(r"(?<![\w'.-])(?:[B-HJ-Z][0-9]{0,2}|[b-z][0-9]?|[fc][xy]|[A-Za-z]*[0-9]\w*)(?!\w|\.\w)")
_INNER = r"[\[(][^\[\](){}A-Za-z\n]*[0-9][^\[\](){}A-Za-z\n]*[\])]"
_BLOCK = re.compile(rf"(?:\b[a-z]+ [0-9]+ )?(?:\[\s*{_INNER}(?:\s*,\s*{_INNER})*\s*\]|{_INNER}(?:\s*,\s*{_INNER})*)")


def find_slot_problems(new: str, old: str, filled: bool) -> list[tuple[str, str]]:
    """Placeholders added, lost, repeated or out of order."""
    found: list[tuple[str, str]] = []
    rest = SLOT.sub("", new)
    if re.search(r"[{}]", rest):
        found.append(("braces", "braces that are no placeholder"))
    have, want = Counter(SLOT.findall(new)), Counter(SLOT.findall(old))
    if added := sorted(set(have) - set(want)):
        found.append(("slot_added", f"placeholders {added}, which do not stand in this part of the original"))
    if lost := sorted(set(want) - set(have)):
        found.append(("slot_lost", f"no placeholders {lost}"))
    if often := sorted(name for name in have if name in want and have[name] > want[name]):
        found.append(("slot_count", f"placeholders {often} more often than in the original"))
    first_new, first_old = list(dict.fromkeys(SLOT.findall(new))), list(dict.fromkeys(SLOT.findall(old)))
    for family in [first_old] if filled else rules.list_slots().order:
        a, b = [n for n in first_new if n in family], [n for n in first_old if n in family]
        if set(a) == set(b) and a != b:
            found.append(("slot_order", f"{a} instead of {b}"))
    return found


def number_problems(new: str, old: str, filled: bool) -> list[tuple[str, str]]:
    """Numbers added or lost, and in filled texts out of order."""
    found: list[tuple[str, str]] = []
    have, want = Counter(number_tokens(new)), Counter(number_tokens(old))
    if have != want:
        added, lost = sorted((have - want).elements()), sorted((want - have).elements())
        found.append(("number", f"numbers added {added[:8]}, lost {lost[:8]}"))
    blocks_new, blocks_old = _find_blocks(new), _find_blocks(old)
    if sorted(blocks_new) != sorted(blocks_old):
        found.append(("number", "numbers in brackets are not as in the original"))
    elif filled and blocks_new != blocks_old:
        found.append(("number", "numbers in brackets come in another order"))
    elif filled and not found and _list_ordered_numbers(new) != _list_ordered_numbers(old):
        found.append(("number", "sizes, parameters or numbers with decimals come in another order"))
    return found


def _find_blocks(text: str) -> list[str]:
    blocks = (re.sub(r"\s+", " ", match.group()) for match in _BLOCK.finditer(text))
    return [block for block in blocks if block != "(0, 0)"]  # the origin may be told anywhere


def _list_ordered_numbers(text: str) -> tuple[list[str], list[tuple[str, str]], dict[str, list[str]]]:
    """Numbers whose order tells what they belong to: those with decimals, sizes, and values by name."""
    plain = _BLOCK.sub(" ", text)
    values: dict[str, list[str]] = {}
    for name, value in re.findall(r"(\w+) = ([+-]?[0-9.]+)", plain):
        values.setdefault(name, []).append(value.rstrip("."))
    return [token for token in number_tokens(plain) if "." in token], _PAIR.findall(plain), values


def find_formula_problems(new: str, old: str, sizes: bool) -> list[tuple[str, str]]:
    """Equations, sizes and names of symbols that are not those of the original.

    sizes: whether "wide and high" was written as "x by y" before, for which the language needs a vocabulary.
    """
    found: list[tuple[str, str]] = []
    have, want = _find_formulas(new, sizes), _find_formulas(old, sizes)
    if have != want:
        found.append(("formula", f"added {sorted(have - want)[:4]}, lost {sorted(want - have)[:4]}"))
    added, lost = _find_symbols(new) - _find_symbols(old), _find_symbols(old) - _find_symbols(new)
    if added or lost:
        found.append(("symbol", f"added {sorted(added)[:6]}, lost {sorted(lost)[:6]}"))
    return found


def _find_formulas(text: str, sizes: bool) -> set[str]:
    formulas = {re.sub(r"\s+", " ", match.group()).strip() for match in _FORMULA.finditer(text)}
    return formulas | {f"{a} x {b}" for a, b in _PAIR.findall(text) if sizes}


def _find_symbols(text: str) -> set[str]:
    plain = re.sub(rf"{ATOM} x (?={ATOM})", " ", text)  # the x of a size is no axis
    tokens = _SYMBOL.findall(SLOT.sub(" . ", plain))
    return {token for token in tokens if not token.isdigit() and token != "s"}


def find_word_problems(
    new: str, old: str, words: Vocabulary, source: Vocabulary, filled: bool
) -> list[tuple[str, str]]:
    """Words of the vocabulary added or lost."""
    found = []
    listed_old = {group.name: _list_keys(old, group) for group in source.classes}
    for group in words.classes:
        listed, wanted = _list_keys(new, group), listed_old.get(group.name, [])
        added, lost, other = _compare_words(group, Counter(listed), Counter(wanted))
        if added or lost or other:
            told = [f"{verb} {keys}" for verb, keys in (("added", added), ("lost", lost), ("recounted", other)) if keys]
            found.append((group.name, ", ".join(told)))
        elif group.ordered and filled and listed != wanted:
            found.append((group.name, f"{listed} instead of {wanted}"))
    return found


def _compare_words(
    group: rules.WordClass, have: Mapping[str, int], want: Mapping[str, int]
) -> tuple[list[str], list[str], list[str]]:
    """(words added, words lost, words that come another number of times), as far as the class minds."""
    added = sorted(key for key in have if key not in want)
    lost = sorted(key for key in want if key not in have)
    other = sorted(key for key in have if key in want and have[key] != want[key])
    return (
        [] if group.compare == "flip" and not want else added,
        [] if group.compare in ("new", "flip") else lost,
        other if group.compare == "count" else [],
    )


def _list_keys(text: str, group: rules.WordClass) -> list[str]:
    return [group.keys[match.lastindex - 1] for match in group.pattern.finditer(text) if match.lastindex]


def find_binding_problems(new: str, old: str, words: Vocabulary, source: Vocabulary) -> list[tuple[str, str]]:
    """Words and values that go with another partner than in the original."""
    found = []
    for rule_new, rule_old in zip(words.bindings, source.bindings, strict=False):
        have, want = _bound(new, rule_new), _bound(old, rule_old)
        clear = len({x for x, _ in want}) == len({y for _, y in want}) == len(want)
        for a, b in sorted(have - want) if clear else ():
            if any(x == a or y == b for x, y in want):
                found.append((rule_new.reason, f"{a!r} goes with {b!r}, which it does not in the original"))
                break
    order_new, order_old = _find_ordinals(new, words), _find_ordinals(old, source)
    if order_new and order_old and order_new != order_old:
        found.append(("direction", f"values are told for {order_new} instead of {order_old}"))
    have, want = _find_units(new, words), _find_units(old, source)
    for atom, unit in sorted(have - want):
        if any(x == atom for x, _ in want):
            found.append(("unit", f"{atom} has the unit {unit}"))
    return found


def _bound(text: str, rule: rules.Binding) -> set[tuple[str, str]]:
    """Pairs of words that go together, by clause; see the vocabulary file."""
    pairs: set[tuple[str, str]] = set()
    for clause in re.split(r"[.;:?\n](?:\s|$)", text):
        matches = list(rule.pattern.finditer(clause))
        last: re.Match[str] | None = None
        for k, match in enumerate(matches):
            if match["from"] is not None:
                last = match
                continue
            behind = matches[k + 1] if k + 1 < len(matches) else None
            if (
                rule.after
                and behind is not None
                and behind["from"] is not None
                and _is_bracketed(clause, match, behind)
            ):
                pairs.add((behind["from"], _stem(match["to"])))
            elif last is not None:
                pairs.add((last["from"], _stem(match["to"])))
    return pairs


def _find_ordinals(text: str, words: Vocabulary) -> list[str]:
    """The first and the second, in the order in which clauses with values are about one of them."""
    if words.ordinals is None:
        return []
    told: list[str] = []
    for clause in re.split(r"[.;?](?:\s|$)", text):
        named = {match.group().lower() for match in words.ordinals.finditer(clause)}
        if len(named) == 1 and re.search(ATOM, clause):
            told += named
    return list(dict.fromkeys(told))


def _is_bracketed(clause: str, word: re.Match[str], partner: re.Match[str]) -> bool:
    between = clause[word.end() : partner.start()]
    return between.endswith("(") and len(between) < 30 and clause[partner.end() : partner.end() + 1] == ")"


def _stem(word: str) -> str:
    return word.lower().removesuffix("s") if word.lower().endswith("wards") else word.lower()


def _find_units(text: str, words: Vocabulary) -> set[tuple[str, str]]:
    """(number or placeholder, unit that stands right behind it)."""
    group = next((g for g in words.classes if g.name == "unit"), None)
    if group is None:
        return set()
    pairs = set()
    for match in re.finditer(ATOM, text):
        unit = group.pattern.match(text, match.end() + 1)
        if unit is not None and unit.lastindex and text[match.end()] == " ":
            pairs.add((match.group(), group.keys[unit.lastindex - 1]))
    return pairs
