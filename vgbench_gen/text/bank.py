"""Bank file: rewordings of shipped phrasings that a model proposed, for a person to compare, edit and accept.

TOML, sorted, one entry per wording. A bank adds to the shipped phrasings and never changes them. An entry belongs to
one version of one template: when the template changes, its digest no longer fits and the entry is left out, with a
notice.
"""

from __future__ import annotations

import itertools
import json
import re
import tomllib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from vgbench_gen.core.config import Config, load_toml
from vgbench_gen.core.errors import ConfigError
from vgbench_gen.core.rng import hash_stably
from vgbench_gen.core.types import NOTATIONS, Notation, QuestionType
from vgbench_gen.store.files import write_bytes
from vgbench_gen.text.paraphrase.checks import Original, Text, find_lint_problems
from vgbench_gen.text.paraphrase.rules import find_language
from vgbench_gen.text.render import (
    MAX_TEMPLATE_CHARS,
    Phrasing,
    find_slot_names,
    list_question_types,
    list_task_names,
    load_phrasings,
    phrasing_error,
)

MAX_PER_CELL = 8  # wordings of one task, type, notation and language (docs/validity.md#conventions-in-every-question)

Status = Literal["proposed", "reviewed"]
_Line = Annotated[str, StringConstraints(min_length=1, max_length=MAX_TEMPLATE_CHARS)]
_Short = Annotated[str, StringConstraints(min_length=1, max_length=200, pattern=r"^[^\x00-\x1f]*$")]

_HEADER = """\
# Rewordings of the phrasings in templates/tasks, made by `vgbench paraphrase` and checked. Read each beside its
# template, edit where need be, and set status = "reviewed" (or run `vgbench paraphrase --bank FILE --accept ID`);
# remove those that you do not want. Sorted; the program writes this file anew and keeps no other comments.
"""


class BankEntry(Config):
    """One wording of a bank file."""

    id: Annotated[
        str, StringConstraints(pattern=r"^[a-z_]{1,40}\.[a-z-]{1,20}\.[0-9]{1,4}\.[a-z]{2,3}[1-9][0-9]{0,3}$")
    ]
    """The id of the template, the language and a number, such as `<template>.de2`."""
    template: str
    task: str
    type: QuestionType
    language: str
    model: _Short
    """The model that worded it, or another note on its origin."""
    status: Status
    """Whether a person has accepted it ("reviewed") or not yet ("proposed")."""
    digest: str
    """The digest of the shipped phrasing when this was made; see `digest_template`."""
    question: _Line
    context: _Line

    @property
    def text(self) -> Text:
        """The question and context, with unfilled slots."""
        return Text(self.question, self.context)

    @property
    def template_id(self) -> str:
        """The name that rows are marked with; an edited wording gets another one."""
        return f"{self.id}.{hash_stably(self.question, self.context, size=4)}"


class _BankFile(Config):
    """A bank file as it stands on disk."""

    phrasings: tuple[BankEntry, ...] = Field(default=())


@dataclass(frozen=True, slots=True)
class Bank:
    """A bank file that was read and checked."""

    path: Path
    entries: tuple[BankEntry, ...] = ()
    """The entries that fit their templates, in order of their ids."""
    stale: tuple[BankEntry, ...] = ()
    """The entries whose template changed or is gone, which `entries` leaves out."""

    @property
    def digest(self) -> str:
        """Digest of all that may be drawn from it."""
        parts = [part for e in self.entries for part in (e.template_id, e.status, e.model)]
        return hash_stably("bank", *parts, size=16)

    def list_entries(
        self, task: str, question_type: QuestionType, notation: Notation, language: str
    ) -> list[BankEntry]:
        """The entries of one task, question type, notation and language."""
        wanted, known = (task, question_type, notation, language), load_shipped()
        return [e for e in self.entries if (e.task, e.type, known[e.template].notation, e.language) == wanted]


def digest_template(phrasing: Phrasing) -> str:
    """Digest of a shipped phrasing's words and of what they must state."""
    return hash_stably("template", phrasing.question, phrasing.context, *phrasing.states)


def load_shipped() -> dict[str, Phrasing]:
    """All shipped phrasings by id."""
    return {
        phrasing.id: phrasing
        for task in list_task_names()
        for form in list_question_types(task)
        for notation in NOTATIONS
        for phrasing in load_phrasings(task, form, notation)
    }


ITEM_MARK = ".item-"  # in the `template_id` of a row that was reworded by itself, before the language


def find_origin(template_id: str) -> tuple[str, str]:
    """(id of the shipped phrasing, language) behind the `template_id` of a row, reworded or not."""
    parts = template_id.split(".")
    found = [match[1] for part in parts[3:] if (match := re.fullmatch(r"(?:item-)?([a-z]{2,3})[0-9]*", part))]
    return ".".join(parts[:3]), found[-1] if found else "en"


def load_bank(path: Path, missing_ok: bool = False) -> Bank:
    """Read and check a bank file.

    Raises:
        ConfigError: no such file (an empty bank with `missing_ok`), no TOML, a key that is wrong; an entry is misnamed,
            repeated, one too many, has other placeholders than its template, or its text fails the lint.
    """
    if missing_ok and not path.exists():
        return Bank(path)
    entries = load_toml(path, _BankFile).phrasings
    known = load_shipped()
    cells: Counter[tuple[str, str, str, str]] = Counter()
    seen: set[str] = set()
    good, stale = [], []
    for entry in entries:
        where = f"{path}, {entry.id}"
        find_language(entry.language)
        if entry.id in seen:
            raise phrasing_error(where, "this id twice", "every id once")
        seen.add(entry.id)
        if not entry.template.startswith(f"{entry.task}.{entry.type}."):
            raise phrasing_error(where, f"template = {entry.template!r}", f"one of {entry.task}.{entry.type}")
        if not re.fullmatch(rf"{re.escape(entry.template)}\.{entry.language}[0-9]+", entry.id):
            raise phrasing_error(where, "an id that does not fit", f"{entry.template}.{entry.language}<n>")
        original = known.get(entry.template)
        if original is None or entry.digest != digest_template(original):
            stale.append(entry)
            continue
        _check_entry(entry, original, where)
        place = entry.task, entry.type, original.notation, entry.language
        cells[place] += 1
        if cells[place] > MAX_PER_CELL:
            cell = ", ".join(place)
            raise phrasing_error(where, f"more than {MAX_PER_CELL} wordings of {cell}", f"at most {MAX_PER_CELL}")
        good.append(entry)
    return Bank(path, tuple(sorted(good, key=_order)), tuple(sorted(stale, key=_order)))


def save_bank(bank: Bank) -> None:
    """Write a bank file whole, sorted, stale entries included: a person decides about those.

    Raises:
        ConfigError: an entry cannot be written so that it reads back the same.
    """
    entries = sorted([*bank.entries, *bank.stale], key=_order)
    text = _HEADER + "".join(_format_bank(entry) for entry in entries)
    again = tomllib.loads(text).get("phrasings", [])
    if again != [entry.model_dump() for entry in entries]:
        raise ConfigError(f"{bank.path}: found a wording that TOML cannot hold; expected plain text. Remove it.")
    write_bytes(bank.path, text.encode("utf-8"))


def add_wordings(bank: Bank, template: Phrasing, texts: Sequence[Text], model: str, language: str) -> Bank:
    """The bank with further wordings of one template, as proposals with the smallest free numbers."""
    taken = {e.id for e in (*bank.entries, *bank.stale)}
    names = (f"{template.id}.{language}{number}" for number in itertools.count(1))
    free = (name for name in names if name not in taken)
    entries = [
        BankEntry(
            id=next(free),
            template=template.id,
            task=template.task,
            type=template.question_type,
            language=language,
            model=model,
            status="proposed",
            digest=digest_template(template),
            question=text.question,
            context=text.context,
        )
        for text in texts
    ]
    return Bank(bank.path, tuple(sorted([*bank.entries, *entries], key=_order)), bank.stale)


def accept_entries(bank: Bank, ids: Sequence[str] | None) -> tuple[Bank, list[str]]:
    """(the bank with these entries reviewed, all of them where None; the ids that changed).

    Raises:
        ConfigError: no such entry.
    """
    names = {e.id for e in bank.entries}
    unknown = sorted(set(ids or ()) - names)
    if unknown:
        raise ConfigError(f"{bank.path}: found no entry {', '.join(unknown)}; expected ids of the file, not stale.")
    wanted = names if ids is None else set(ids)
    changed = [e.id for e in bank.entries if e.id in wanted and e.status != "reviewed"]
    entries = tuple(e.model_copy(update={"status": "reviewed"}) if e.id in changed else e for e in bank.entries)
    return Bank(bank.path, entries, bank.stale), changed


def select_phrasings(bank: Bank, use: Status, language: str) -> tuple[Phrasing, ...]:
    """Entries as phrasings to draw from. use: "reviewed" for those alone, "proposed" for all."""
    known = load_shipped()
    return tuple(
        Phrasing(
            id=entry.template_id,
            task=entry.task,
            question_type=entry.type,
            question=entry.question,
            context=entry.context,
            slots=known[entry.template].slots,
            # The lint knows how English states a convention.
            states=known[entry.template].states if language == "en" else (),
            source=str(bank.path),
            paraphrase=entry.model,
            notation=known[entry.template].notation,
        )
        for entry in bank.entries
        if entry.language == language and (use == "proposed" or entry.status == "reviewed")
    )


def _check_entry(entry: BankEntry, original: Phrasing, where: str) -> None:
    for part in ("question", "context"):
        names = find_slot_names(getattr(entry, part), f"{where}, {part}")
        wanted = find_slot_names(getattr(original, part), original.source)
        if names != wanted:
            raise phrasing_error(f"{where}, {part}", f"placeholders {sorted(names)}", f"exactly {sorted(wanted)}")
    old = Original(Text(original.question, original.context), original.states, entry.language)
    for problem in find_lint_problems(entry.text, old):
        raise phrasing_error(where, str(problem), "a text that the lint passes; edit or remove it")


def _order(entry: BankEntry) -> tuple[str, str, int, str, int]:
    number = int(entry.template.rpartition(".")[2]) if entry.template.rpartition(".")[2].isdigit() else 0
    return entry.task, entry.type, number, entry.language, int(re.sub(r".*[a-z]", "", entry.id))


def _format_bank(entry: BankEntry) -> str:
    lines = ["\n[[phrasings]]"]
    for name, value in entry.model_dump().items():
        # A JSON string is a TOML string; texts keep their line breaks.
        text = "\n".join(json.dumps(line, ensure_ascii=False)[1:-1] for line in value.split("\n"))
        lines.append(f'{name} = """\n{text}"""' if name in ("question", "context") else f'{name} = "{text}"')
    return "\n".join(lines) + "\n"
