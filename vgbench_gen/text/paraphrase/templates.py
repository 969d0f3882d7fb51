"""The shipped phrasings reworded into a bank, cell by cell: a cell is one task, question type and notation."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from vgbench_gen.backends.base import Request, Settings
from vgbench_gen.core.errors import ConfigError
from vgbench_gen.core.types import NOTATIONS, Notation, QuestionType
from vgbench_gen.text.bank import MAX_PER_CELL, Bank, add_wordings, save_bank
from vgbench_gen.text.paraphrase import rules
from vgbench_gen.text.paraphrase.checks import Original, Text
from vgbench_gen.text.paraphrase.prompts import MAX_TOKENS, make_judge_request, make_reword_request
from vgbench_gen.text.paraphrase.rounds import Asker, RewordCounts, Stopped, reword
from vgbench_gen.text.render import Phrasing, list_question_types, list_task_names, load_phrasings

Cell = tuple[str, QuestionType, Notation]
_CHARS_PER_TOKEN = 4  # of English text, for estimates


@dataclass(slots=True)
class BankReport:
    """What came of rewording the templates."""

    language: str = "en"
    cells: dict[str, RewordCounts] = field(default_factory=dict)
    """What happened to the templates of each cell, by "task/type", or "task/type/words"."""
    full: list[str] = field(default_factory=list)
    """The cells that had no place left."""
    stopped: str = ""
    """Why the work ended early; empty where it did not."""

    @property
    def total(self) -> RewordCounts:
        """The sum of all cells."""
        return RewordCounts.sum_over(self.cells.values())

    def as_json(self) -> dict[str, Any]:
        """The report as values that JSON can hold."""
        return {
            "language": self.language,
            "stopped": self.stopped,
            "full": self.full,
            "total": self.total.as_json(),
            "cells": {name: counts.as_json() for name, counts in sorted(self.cells.items())},
        }


def choose_cells(tasks: Sequence[str] = (), types: Sequence[str] = ()) -> list[Cell]:
    """Cells of these tasks and question types, all where none is named.

    Raises:
        ConfigError: a task or type that has no templates.
    """
    known = {(task, form) for task in list_task_names() for form in list_question_types(task)}
    for name in tasks:
        if name not in {task for task, _ in known}:
            raise ConfigError(f"--task {name}: found no templates; expected one of {', '.join(list_task_names())}.")
    for name in types:
        if name not in {form for _, form in known}:
            raise ConfigError(f"--type {name}: found no templates; expected judgment, multi-choice or open-ended.")
    found: list[Cell] = [
        (task, form, notation)
        for task, form in sorted(known)
        for notation in NOTATIONS
        if task in (tasks or [task]) and form in (types or [form]) and load_phrasings(task, form, notation)
    ]
    if not found:
        raise ConfigError(f"--task {', '.join(tasks)} --type {', '.join(types)}: found no templates of both.")
    return found


def paraphrase(
    asker: Asker,
    bank: Bank,
    chosen: Sequence[Cell],
    language: str = "en",
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> tuple[Bank, BankReport]:
    """Fill the bank's places of these cells and write its file after every template that gave a wording.

    Templates of a cell go one after the other, each for its even share of the places that are left; cells go side by
    side. What comes out does not depend on their pace, and a run that was killed goes on from its bank and the cache.

    Raises:
        ConfigError: no such language.
        Stopped: never; a spent budget or a refused key ends the work, and the report says so.
    """
    rules.find_language(language)
    report = BankReport(language)
    holder = _Holder(bank)
    total = sum(len(load_phrasings(*cell)) for cell in chosen)
    done = 0

    def step() -> None:
        nonlocal done
        done += 1
        progress(done, total)

    async def run() -> None:
        backends = {id(b): b for b in (asker.backend, asker.judge) if b is not None}
        tasks = [asyncio.create_task(_paraphrase_cell(cell, asker, holder, language, report, step)) for cell in chosen]
        try:
            await asyncio.gather(*tasks)
        except Stopped as stop:
            report.stopped = str(stop)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            for backend in backends.values():
                await backend.rest()

    asyncio.run(run())
    report.full.sort()
    return holder.bank, report


def make_requests(chosen: Sequence[Cell], asker_n: int, bank: Bank, language: str, judged: bool) -> Iterator[Request]:
    """The first request about each template that has places left, and one to the judge per place; for estimates."""
    for cell in chosen:
        for template, share in _list_places(cell, bank, language):
            if share <= 0:
                continue
            original = _make_original(template, language)
            yield make_reword_request(original, asker_n, (), 0, Settings(max_tokens=MAX_TOKENS))
            if judged:
                yield from (make_judge_request(original, original.text, Settings()) for _ in range(share))


def estimate_tokens(request: Request) -> int:
    """About how many tokens a request sends: four characters each."""
    words = sum(len(getattr(part, "text", "")) for message in request.messages for part in message.parts)
    return (words + len(request.settings.system)) // _CHARS_PER_TOKEN


@dataclass(slots=True)
class _Holder:
    """The bank while wordings are added to it."""

    bank: Bank

    def add(self, template: Phrasing, texts: Sequence[Text], model: str, language: str) -> None:
        self.bank = add_wordings(self.bank, template, texts, model, language)
        save_bank(self.bank)


async def _paraphrase_cell(
    cell: Cell, asker: Asker, holder: _Holder, language: str, report: BankReport, step: Callable[[], None]
) -> None:
    counts = report.cells.setdefault(_name_cell(cell), RewordCounts())
    templates = load_phrasings(*cell)
    # English wordings are drawn together with the shipped ones, others are not.
    drawn_with = [Text(p.question, p.context) for p in templates] if language == "en" else []
    if len(holder.bank.list_entries(*cell, language)) >= MAX_PER_CELL:
        report.full.append(_name_cell(cell))
    earlier: list[Text] = []
    for k, template in enumerate(templates):
        entries = holder.bank.list_entries(*cell, language)
        own = [e.text for e in entries if e.template == template.id]
        free = MAX_PER_CELL - len(entries)
        share = _share(len(earlier), len(own), free, len(templates) - k)
        if share > len(own):
            # Its own earlier ones come again from the cache, and those of later templates were not there then.
            texts = await reword(_make_original(template, language), share, asker, counts, [*drawn_with, *earlier], own)
            new = [text for text in texts if text not in own][: share - len(own)]
            if new:
                holder.add(template, new, asker.backend.model, language)
                own += new
        earlier += own
        step()


def _name_cell(cell: Cell) -> str:
    return "/".join(cell).removesuffix("/matrix")


def _share(filled: int, own: int, free: int, templates: int) -> int:
    """Wordings that one template may have in all, of the places that earlier templates of the cell have left."""
    return min(-(-(MAX_PER_CELL - filled) // templates), own + free)


def _list_places(cell: Cell, bank: Bank, language: str) -> Iterator[tuple[Phrasing, int]]:
    """New wordings that each template would get if all goes well."""
    templates, entries = load_phrasings(*cell), bank.list_entries(*cell, language)
    filled, free = 0, MAX_PER_CELL - len(entries)
    for k, template in enumerate(templates):
        own = sum(e.template == template.id for e in entries)
        new = max(0, _share(filled, own, free, len(templates) - k) - own)
        filled, free = filled + own + new, free - new
        yield template, new


def _make_original(template: Phrasing, language: str) -> Original:
    return Original(Text(template.question, template.context), template.states, language)
