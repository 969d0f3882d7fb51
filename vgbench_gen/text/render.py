"""Strict templates: every English sentence a model reads stands in `templates/`, never in Python.

A template is plain text with slots `{{ name }}`; statements, filters, attributes and expressions are refused when
a file is read, so a template file can neither compute nor reach into Python. Files are TOML:
`tasks/<task>.toml` holds lines of questions per question type and their context, where `{name}` is a clause of
`clauses.toml`; `words.toml` holds small phrases by table and key.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated

from pydantic import Field, StringConstraints

from vgbench_gen.core.config import Config, load_toml, parse_config, read_toml
from vgbench_gen.core.errors import ConfigError
from vgbench_gen.core.stand_ins import config_error
from vgbench_gen.core.types import NOTATIONS, QUESTION_TYPES, Notation, QuestionType
from vgbench_gen.text.lint import STATES

MAX_TEMPLATE_CHARS = 4000
MAX_SLOT_CHARS = 4000
MIN_PHRASINGS = 6

_BROUGHT: dict[str, Path] = {}  # task -> its template file, where a package from outside brings it
_SLOT = re.compile(r"\{\{ ([a-z][a-z0-9_]{0,31}) \}\}")
_CLAUSE = re.compile(r"(?<!\{)\{([a-z_]{1,32})\}(?!\})")
_CAMERA_SLOTS = frozenset(("width", "height", "fx", "fy", "cx", "cy", "second_camera"))

_Name = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]{0,31}$")]
_Text = Annotated[str, StringConstraints(min_length=1, max_length=MAX_TEMPLATE_CHARS)]


def phrasing_error(where: object, found: str, expected: str, remedy: str = "Mend that text.") -> ConfigError:
    """The error of a template file, or of values for its slots, that break the rules above."""
    return config_error(where, found, expected, remedy)


_Lines = Annotated[tuple[_Text, ...], Field(min_length=MIN_PHRASINGS)]


class _Wordings(Config):
    """How one task is asked in one notation."""

    context: _Text
    """Shared by all phrasings; each has the wording of its own number of every clause."""
    judgment_context: str = ""
    """What the context of judgments says besides."""
    judgment: _Lines | None = None
    multi_choice: Annotated[_Lines | None, Field(alias="multi-choice")] = None
    open_ended: Annotated[_Text | None, Field(alias="open-ended")] = None
    """What the lines of multi-choice questions are followed by where they are open-ended."""

    def list_lines(self) -> dict[QuestionType, list[str]]:
        choice = list(self.multi_choice or ())
        asked = [f"{line} {self.open_ended}" for line in choice] if self.open_ended else []
        return {
            form: lines
            for form, lines in zip(QUESTION_TYPES, (list(self.judgment or ()), choice, asked), strict=True)
            if lines
        }


class _TaskFile(_Wordings):
    """The template file of one task."""

    task: _Name
    states: tuple[_Name, ...] = ()
    """The conventions that are stated beside those of the clauses."""
    slots: tuple[_Name, ...] = ()
    """Slots that only some wordings use."""
    labels: dict[_Name, _Text] = Field(default_factory=dict)
    """The words of the labels of a `LabelTask`."""
    words: _Wordings | None = None
    """How it is asked where values are printed in words; everything else is in "matrix"."""


class _Clause(Config):
    """Sentences that contexts of many tasks share, in several wordings."""

    states: tuple[_Name, ...] = ()
    texts: _Lines


class _WordsFile(Config):
    tables: dict[_Name, dict[_Name, _Text]]


@dataclass(frozen=True, slots=True)
class Phrasing:
    """One reviewed wording of a question and its context, with unfilled slots."""

    id: str
    """Its name, which every item records as `template_id`."""
    task: str
    question_type: QuestionType
    question: str
    context: str
    slots: frozenset[str]
    """All names that `render` accepts for this phrasing."""
    states: tuple[str, ...]
    source: str
    paraphrase: str = ""
    """The model that reworded it, "" for shipped ones."""
    notation: Notation = "matrix"
    """How the values are printed with which it goes."""


@cache
def find_templates_root() -> Path:
    """Folder of the templates: inside the installed package, else beside it in a source checkout.

    Raises:
        ConfigError: neither place holds `words.toml`.
    """
    package = Path(__file__).resolve().parent.parent
    for folder in (package / "templates", package.parent / "templates"):
        if (folder / "words.toml").is_file():
            return folder
    raise phrasing_error(
        package, "no templates folder in the package or beside it", "an installation with its templates"
    )


@cache
def load_phrasings(task: str, question_type: QuestionType, notation: Notation = "matrix") -> tuple[Phrasing, ...]:
    """Reviewed phrasings of one task, question type and notation, in file order; read once per process. None where the
    task is not asked in that notation.

    Raises:
        ConfigError: the file is missing or breaks the rules, or the task is not asked in this way.
    """
    path = _find_task_path(task)
    bank = load_task_file(path)
    if question_type not in bank:
        raise phrasing_error(path, f"no section [{question_type}]", f"one of {sorted(bank)}")
    return tuple(phrasing for phrasing in bank[question_type] if phrasing.notation == notation)


def list_question_types(task: str) -> tuple[QuestionType, ...]:
    """Question types that a task has phrasings for, in the order judgment, multi-choice, open-ended."""
    return tuple(load_task_file(_find_task_path(task)))


def list_task_names() -> tuple[str, ...]:
    """Names of all tasks that have a template file, sorted."""
    shipped = (path.stem for path in (find_templates_root() / "tasks").glob("*.toml"))
    return tuple(sorted({*shipped, *_BROUGHT}))


def bring_task_file(path: Path) -> None:
    """Let a package from outside bring the template file of a task, whose name is that of the file.

    Raises:
        ConfigError: the task has another file already.
    """
    shipped = find_templates_root() / "tasks" / path.name
    other = shipped if shipped.is_file() else _BROUGHT.get(path.stem, path)
    if other != path:
        raise phrasing_error(path, f"a second file for the task {path.stem!r}", f"{other} alone")
    _BROUGHT[path.stem] = path


def load_task_file(path: Path) -> dict[QuestionType, tuple[Phrasing, ...]]:
    """Read and check one `tasks/<task>.toml`.

    Raises:
        ConfigError: not readable, not the expected shape, a template holds more than slots, or a line uses other slots
            than the first one of its type (those of `slots` apart).
    """
    parsed = load_toml(path, _TaskFile)
    if parsed.task != path.stem:
        raise phrasing_error(path, f"task = {parsed.task!r}", f"{path.stem!r}, the name of the file")
    if unknown := set(parsed.states) - STATES:
        raise phrasing_error(path, f"{sorted(unknown)} in states", f"of {sorted(STATES)}")
    bank: dict[QuestionType, tuple[Phrasing, ...]] = {}
    told = [parsed] if parsed.words is None else [parsed, parsed.words]
    for notation, wordings in zip(NOTATIONS, told, strict=False):
        for form, lines in wordings.list_lines().items():
            before = bank.get(form, ())
            bank[form] = (*before, *_make_phrasings(parsed, wordings, form, lines, path, notation, len(before)))
    return bank


def _make_phrasings(
    parsed: _TaskFile,
    wordings: _Wordings,
    form: QuestionType,
    lines: Sequence[str],
    path: Path,
    notation: Notation,
    before: int,
) -> Iterator[Phrasing]:
    """before: how many phrasings of other notations have the lower numbers."""
    some = set(parsed.slots)
    shared = find_slot_names(_CLAUSE.sub("", lines[0]), path) - some
    whole = f"{wordings.context} {wordings.judgment_context}".strip() if form == "judgment" else wordings.context
    for number, line in enumerate(lines):
        name = f"{parsed.task}.{form}.{before + number + 1}"
        where = f"{path}, {name}"
        question, asked = _fill_clauses(line, number, where)
        context, told = _fill_clauses(whole, number, where)
        _check_slots(f"{where}, question", find_slot_names(question, where), set(shared) | some, set(shared))
        slots = shared | some | find_slot_names(context, where) | _CAMERA_SLOTS
        states = tuple(dict.fromkeys((*parsed.states, *asked, *told)))
        source = str(path)
        yield Phrasing(name, parsed.task, form, question, context, slots, states, source, notation=notation)


def _fill_clauses(text: str, number: int, where: str) -> tuple[str, list[str]]:
    """The text with its clauses, in the wording of that number, and the conventions that they state."""
    clauses, names = _load_clauses(), _CLAUSE.findall(text)
    if unknown := set(names) - clauses.keys():
        raise phrasing_error(where, f"unknown clauses {sorted(unknown)}", f"only {sorted(clauses)}")
    filled = _CLAUSE.sub(lambda name: clauses[name[1]].texts[number % len(clauses[name[1]].texts)], text)
    return filled, [state for name in names for state in clauses[name].states]


@cache
def _load_clauses() -> Mapping[str, _Clause]:
    path = find_templates_root() / "clauses.toml"
    return {name: parse_config(clause, _Clause, f"{path}, {name}") for name, clause in read_toml(path).items()}


@cache
def load_labels(task: str) -> Mapping[str, str]:
    """The words of a task's labels by their keys."""
    return load_toml(_find_task_path(task), _TaskFile).labels


def find_slot_names(template: str, where: object) -> frozenset[str]:
    """Names of the slots in a template.

    Raises:
        ConfigError: a brace stands anywhere but in a plain slot `{{ name }}`, or the template is too long.
    """
    if len(template) > MAX_TEMPLATE_CHARS:
        raise phrasing_error(where, f"{len(template)} characters", f"at most {MAX_TEMPLATE_CHARS}")
    rest = _SLOT.sub("", template)
    if brace := re.search(r"[{}]", rest):
        around = rest[max(0, brace.start() - 10) : brace.start() + 30]
        raise phrasing_error(where, f"{around!r}", "plain slots {{ name }} and no other braces")
    return frozenset(_SLOT.findall(template))


def render(phrasing: Phrasing, slots: Mapping[str, str]) -> tuple[str, str]:
    """Fill one phrasing; returns (question, context).

    `slots` may hold any slot of the task and question type, also one that this phrasing does not use.

    Raises:
        ConfigError: a slot is unknown, missing, not a string or too long.
    """
    where = f"{phrasing.source}, {phrasing.id}"
    unknown = set(slots) - phrasing.slots
    if unknown:
        raise phrasing_error(where, f"unknown slots {sorted(unknown)}", f"only {sorted(phrasing.slots)}")
    return fill_slots(phrasing.question, slots, where), fill_slots(phrasing.context, slots, where)


def fill_word(key: str, **slots: str) -> str:
    """Phrase `<table>.<key>` of `words.toml`, with exactly its slots filled.

    Raises:
        ConfigError: no such phrase, or a slot is unknown, missing, not a string or too long.
    """
    return fill_phrase(_find_words_path(), key, slots)


def list_words(table: str) -> tuple[str, ...]:
    """The keys `<table>.<key>` of one table of `words.toml`, in its order."""
    return tuple(key for key in load_words(_find_words_path()) if key.startswith(f"{table}."))


def fill_phrase(path: Path, key: str, slots: Mapping[str, str]) -> str:
    """Phrase `<table>.<key>` of a words file, with exactly its slots filled. Raises as `fill_word` does."""
    words = load_words(path)
    where = f"{path}, {key}"
    if key not in words:
        table = key.partition(".")[0]
        near = sorted(k for k in words if k.startswith(f"{table}.")) or sorted({k.partition(".")[0] for k in words})
        raise phrasing_error(where, "no such phrase", f"one of {near}")
    known = find_slot_names(words[key], where)
    if unknown := set(slots) - known:
        raise phrasing_error(where, f"unknown slots {sorted(unknown)}", f"only {sorted(known)}")
    return fill_slots(words[key], slots, where)


@cache
def load_words(path: Path) -> Mapping[str, str]:
    """Read and check a words file: `<table>.<key>` to phrase. Raises ConfigError as `load_task_file` does."""
    tables = parse_config({"tables": read_toml(path)}, _WordsFile, str(path)).tables
    words = {f"{table}.{key}": text for table, entries in tables.items() for key, text in entries.items()}
    for key, text in words.items():
        find_slot_names(text, f"{path}, {key}")
    return words


@cache
def _find_words_path() -> Path:
    return find_templates_root() / "words.toml"


def _find_task_path(task: str) -> Path:
    known = list_task_names()
    if task not in known:  # also keeps a name such as "../x" from becoming a path
        raise phrasing_error(find_templates_root() / "tasks", f"no file for the task {task!r}", f"one of {list(known)}")
    return _BROUGHT.get(task, find_templates_root() / "tasks" / f"{task}.toml")


def _check_slots(where: str, used: frozenset[str], allowed: set[str], required: set[str]) -> None:
    if required - allowed:
        raise phrasing_error(
            where, f"required slots {sorted(required - allowed)}", f"only allowed ones {sorted(allowed)}"
        )
    if used - allowed:
        raise phrasing_error(where, f"slots {sorted(used - allowed)}", f"only {sorted(allowed)}")
    if required - used:
        raise phrasing_error(where, f"no slot {sorted(required - used)}", f"all of {sorted(required)}")


def fill_slots(template: str, slots: Mapping[str, str], where: object) -> str:
    """A template with its slots filled; `slots` may hold others as well.

    Raises:
        ConfigError: a slot is missing, not a string or too long.
    """
    for name in find_slot_names(template, where):
        if name not in slots:
            raise phrasing_error(where, f"no value for the slot {name!r}", f"a text for {name!r}")
        value: object = slots[name]
        if not isinstance(value, str) or not value or len(value) > MAX_SLOT_CHARS:
            kind = f"{len(value)} characters" if isinstance(value, str) else type(value).__name__
            raise phrasing_error(where, f"{kind} for the slot {name!r}", f"a text of 1 to {MAX_SLOT_CHARS} characters")
    return _SLOT.sub(lambda slot: slots[slot[1]], template)
