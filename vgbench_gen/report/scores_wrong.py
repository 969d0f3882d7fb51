"""Wrong answers of every model as pages: the question, what was true, what was read, and how the reply begins.

Questions and replies are hostile text: they are escaped by the template, and characters that would reorder or hide what
stands around them are replaced.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from vgbench_gen.core.rng import hash_stably
from vgbench_gen.core.types import ALPHABET, Item
from vgbench_gen.evaluation.answers.outcomes import OUTCOMES
from vgbench_gen.evaluation.base import read_questions
from vgbench_gen.evaluation.board import BoardRun, Entry, ScoreRow
from vgbench_gen.evaluation.compare import group_by_model
from vgbench_gen.evaluation.records import ReplyKey
from vgbench_gen.evaluation.replies import FOLDER as REPLIES
from vgbench_gen.evaluation.replies import ReplyExcerpt, read_excerpts
from vgbench_gen.evaluation.saved import SavedScores
from vgbench_gen.report.gallery_images import OWN, make_relative_address
from vgbench_gen.report.header import SCORES, PageHeader
from vgbench_gen.report.matrices import split_matrices
from vgbench_gen.report.scores_files import ScoresReport
from vgbench_gen.report.scores_traces import FOLDER as TRACES
from vgbench_gen.report.scores_traces import TracedAnswer, write_traces
from vgbench_gen.report.site import clean, make_environment, make_inline_style
from vgbench_gen.report.trace_page import OURS as TRACE_PAGE
from vgbench_gen.store.files import sync_all_to_disk, write_bytes
from vgbench_gen.store.media import NAME

PER_PAGE = 50  # replies on one page: each comes with its question and images
CHARS = 600  # of each reply
_SHORT = 200  # characters of everything else
_QUESTION, _OPTION = 2000, 600  # characters of a question, its context, and of an option
_NEAR = 2  # pages to both sides that a page leads to, besides the first and the last one
_BRIEF = 60  # of what the published script read, which may be the whole reply
_THUMBNAILS = 8  # of one question
_OURS = "vgbench compare: wrong answers"  # by which pages of an earlier run are known
_UNITS = {"length": " m", "angle": "°"}


@dataclass(frozen=True, slots=True)
class WrongAnswerPages:
    """The pages of wrong answers of one run."""

    address: str
    """The address of the first page, relative to the page of scores."""
    replies: int
    tasks: Mapping[tuple[str, str], str]
    """The address of the first wrong answer by data set and task."""


class _Miss(NamedTuple):
    """One reply that was not right."""

    place: int
    """The place of its question on the board."""
    entry: Entry
    row: ScoreRow
    path: Path

    @property
    def key(self) -> ReplyKey:
        """Of the reply."""
        row = self.row
        return row.key

    @property
    def part(self) -> tuple[str, str]:
        """The data set and the task of its question."""
        return self.entry.dataset, self.entry.task or self.entry.source

    @property
    def group(self) -> tuple[int, tuple[str, str]]:
        """By what replies stand together: answers before what could not be read, and that before refusals."""
        first = OUTCOMES.index("wrong")  # with what is right in part
        return max(first, OUTCOMES.index(self.row.outcome)), self.part

    @property
    def anchor(self) -> str:
        """Name of the reply on its page."""
        return f"a{hash_stably(self.entry.dataset, *map(str, self.key), size=4)}"


def write_wrong(report: ScoresReport, runs: Sequence[BoardRun], folder: Path) -> dict[str, WrongAnswerPages]:
    """Write the wrong answers of these runs, `PER_PAGE` to a file, pages of traces behind those of agents, and remove
    pages of earlier runs.

    Replies to the options in another order are left out, as in the tables. Memory holds the beginnings of one run's
    wrong replies at a time. Where a data set is not among the sources, replies stand without their questions.

    Args:
        report: whose questions, scores and folders count.
        runs: of its board.
        folder: where the page of scores stands.

    Raises:
        DatasetError: a file of replies cannot be read.
    """
    files = group_by_model(report.saved)
    missed = {run.name: _find_misses(run, files.get(run.model, ()), report) for run in runs}
    wanted = {miss.row.id for misses in missed.values() for miss in misses}
    items = {
        (dataset, item.id): item
        for dataset, source in report.sources.items()
        for item in (read_questions(source) if wanted else ())
        if item.id in wanted
    }
    views = {dataset: _View(folder, home) for dataset, home in report.homes.items()}
    found: dict[str, WrongAnswerPages] = {}
    written: list[Path] = []
    for run in runs:
        if misses := sorted(missed[run.name], key=lambda miss: (miss.group, miss.place, miss.row.epoch)):
            paths, found[run.name] = _write(report, run, misses, views, items, folder)
            written += paths
    sync_all_to_disk(written)
    names = {path.name for path in written}
    _remove_stale(folder.glob("wrong-*.html"), names, _OURS)
    _remove_stale((folder / TRACES).glob("*.html"), names, TRACE_PAGE)
    for path in (folder / TRACES / OWN).glob("*"):
        if path.name not in names and NAME.fullmatch(path.name):
            path.unlink()
    return found


def _find_misses(run: BoardRun, files: Sequence[tuple[str, SavedScores]], report: ScoresReport) -> list[_Miss]:
    questions = report.board.questions
    places = {(entry.dataset, entry.id): k for k, entry in enumerate(questions)}
    found = []
    for dataset, one in files:
        if dataset in report.homes:
            path = one.replies or report.homes[dataset] / REPLIES / one.path.name
            for row in one.rows:
                place = places.get((dataset, row.id))
                wrong = row.outcome != "failed" and row.score < 1 and not row.rotation
                if wrong and place is not None and (row.stage, row.prompt_set) == (run.stage, run.prompt_set):
                    found.append(_Miss(place, questions[place], row, path))
    return found


def _write(
    report: ScoresReport,
    run: BoardRun,
    misses: Sequence[_Miss],
    views: Mapping[str, _View],
    items: Mapping[tuple[str, str], Item],
    folder: Path,
) -> tuple[list[Path], WrongAnswerPages]:
    name = _name_file(run.name)
    pages = [misses[k : k + PER_PAGE] for k in range(0, len(misses), PER_PAGE)]
    names = [f"{name}.html" if not k else f"{name}-page-{k + 1}.html" for k in range(len(pages))]
    addresses = [quote(one) for one in names]
    sizes = Counter(miss.group for miss in misses)
    groups: dict[tuple[int, tuple[str, str]], str] = {}
    tasks: dict[tuple[str, str], str] = {}
    keys: dict[Path, set[ReplyKey]] = defaultdict(set)
    for k, miss in enumerate(misses):
        groups.setdefault(miss.group, f"{addresses[k // PER_PAGE]}#t{len(groups)}")
        tasks.setdefault(miss.part, groups[miss.group])
        keys[miss.path].add(miss.key)
    excerpts = {path: read_excerpts(path, wanted, CHARS) for path, wanted in keys.items()}
    answers = [
        TracedAnswer(
            miss.key, miss.path, miss.entry.dataset, report.homes[miss.entry.dataset],
            f"{clean(miss.entry.id, _SHORT)}: true {_format_value(miss.entry.truth, miss.entry.kind, _BRIEF)}, "
            f"read {_format_value(miss.row.extracted, miss.entry.kind, _BRIEF)}",
            f"../{addresses[k // PER_PAGE]}#{miss.anchor}",
        )
        for k, miss in enumerate(misses)
    ]  # fmt: skip
    written, traces = write_traces(folder, run.name, answers, excerpts, report.sources)
    several = len({dataset for _, (dataset, _) in sizes}) > 1
    outcomes = Counter(miss.row.outcome for miss in misses)
    style, csp = make_inline_style("img-src 'self'; ")
    for k, page in enumerate(pages):
        sections: dict[tuple[int, tuple[str, str]], list[dict[str, Any]]] = defaultdict(list)
        for miss in page:
            told = _describe_miss(miss, excerpts[miss.path].get(miss.key), views[miss.entry.dataset])
            told |= _describe_question(items.get((miss.entry.dataset, miss.entry.id)), miss)
            told |= {"trace": traces.get((miss.path, miss.key), ""), "anchor": miss.anchor}
            sections[miss.group].append(told)
        html = (
            make_environment()
            .get_template("scores_wrong.html.j2")
            .render(
                csp=csp,
                style=style,
                header=PageHeader(SCORES, folder, report.homes).render(names[k]),
                ours=_OURS,
                most=CHARS,
                title=clean(report.title, _SHORT),
                name=clean(run.name, _SHORT),
                outcomes=[(outcome, outcomes[outcome]) for outcome in sorted(outcomes, key=lambda o: -outcomes[o])],
                total=len(misses),
                first=k * PER_PAGE + 1,
                last=k * PER_PAGE + len(page),
                pages=list_turns(addresses, k),
                count=len(names),
                here=k,
                parts=[{"name": _name_group(one, several), "n": n, "href": groups[one]} for one, n in sizes.items()],
                sections=[
                    {"name": _name_group(one, several), "anchor": groups[one].partition("#")[2], "replies": replies}
                    for one, replies in sections.items()
                ],
                traces=len(traces),
            )
        )
        written.append(folder / names[k])
        write_bytes(written[-1], html.encode("utf-8"), durable=False)
    return written, WrongAnswerPages(addresses[0], len(misses), tasks)


def _describe_miss(miss: _Miss, excerpt: ReplyExcerpt | None, view: _View) -> dict[str, Any]:
    entry, row = miss.entry, miss.row
    return {
        "id": clean(entry.id, _SHORT),
        "href": view.link_question(entry.id),
        "repeat": row.epoch,
        "form": clean(entry.form, _SHORT),
        "task": clean(entry.task or entry.source, _SHORT).replace("_", " "),
        "truth": _format_value(entry.truth, entry.kind),
        "read": _format_value(row.extracted, entry.kind),
        "outcome": row.outcome if row.status == "ok" else f"{row.outcome} ({row.status.replace('_', ' ')})",
        "score": f"{row.score:.3g}",
        "official": f"{row.official:.3g}",
        "official_read": _format_value(row.official_extracted, "", _BRIEF),
        "reply": None if excerpt is None else clean(excerpt.text, CHARS),
        "chars": 0 if excerpt is None else excerpt.chars,
        "images": [] if excerpt is None else view.link_thumbnails(excerpt.images),
    }


def _describe_question(item: Item | None, miss: _Miss) -> dict[str, Any]:
    """What was asked, and which option was right and which was chosen; nothing where the question cannot be read."""
    if item is None:
        return {"question": [], "context": "", "options": []}
    is_letter = miss.entry.kind == "letter"
    options = [
        {
            "letter": letter,
            "text": split_matrices(clean(text, _OPTION)),
            "right": is_letter and letter == miss.entry.truth,
            "chosen": is_letter and letter == miss.row.extracted,
        }
        for letter, text in zip(ALPHABET, item.options, strict=False)
    ]
    question = split_matrices(clean(item.question, _QUESTION))
    return {"question": question, "context": clean(item.context, _QUESTION), "options": options}


def list_turns(pages: Sequence[str], here: int) -> list[tuple[int, str]]:
    """(number from 1, address) of the pages that a page leads to; number 0 where some are left out."""
    shown = [k for k in range(len(pages)) if k in (0, len(pages) - 1) or abs(k - here) <= _NEAR]
    found: list[tuple[int, str]] = []
    for before, k in zip([-1, *shown], shown, strict=False):
        found += [(0, "")] if k > before + 1 else []
        found.append((k + 1, pages[k]))
    return found


class _View:
    """Where the gallery of a data set shows questions, and where its images are, for pages in a folder."""

    def __init__(self, folder: Path, home: Path) -> None:
        self._gallery = ""
        self._stores: list[tuple[Path, str]] = []
        self._known: dict[str, str] = {}
        if (home / "gallery" / "index.html").is_file():
            self._gallery = f"{make_relative_address(folder, home / 'gallery')}/index.html"
        stores = (home / "gallery" / OWN, home / "media")
        self._stores = [(store, make_relative_address(folder, store)) for store in stores if store.is_dir()]

    def link_question(self, item_id: str) -> str:
        """Address of a question; "" without a gallery."""
        return f"{self._gallery}#item={quote(clean(item_id, _SHORT), safe='')}" if self._gallery else ""

    def link_thumbnails(self, names: Sequence[str]) -> list[str]:
        """Addresses of images that are there, the first ones; a name is used as a path only when it is one of ours."""
        ours = [name for name in names if NAME.fullmatch(name)][:_THUMBNAILS]
        return [address for name in ours if (address := self._link_image(name))]

    def _link_image(self, name: str) -> str:
        if name not in self._known:
            part = f"{name[:2]}/{name}"
            there = (f"{address}/{part}" for store, address in self._stores if (store / part).is_file())
            self._known[name] = next(there, "")
        return self._known[name]


def _format_value(value: str | float | None, kind: str, most: int = _SHORT) -> str:
    if value is None:
        return "nothing"
    return clean(value, most) if isinstance(value, str) else f"{value:.4g}{_UNITS.get(kind, '')}"


def _name_group(group: tuple[int, tuple[str, str]], several: bool) -> str:
    dataset, task = (clean(text, _SHORT) for text in group[1])
    name = f"{task.replace('_', ' ')}, {OUTCOMES[group[0]]}"
    return f"{dataset}: {name}" if several else name


def _name_file(run: str) -> str:
    """Without suffix; of its own for every run, also on disks that take upper and lower case for the same."""
    plain = re.sub(r"[^a-z0-9.-]+", "_", run.casefold())[:60].strip("._-")
    return f"wrong-{plain}" if plain == run else f"wrong-{plain}-{hash_stably(run, size=4)}"


def _remove_stale(paths: Iterable[Path], written: set[str], mark: str) -> None:
    """Remove pages that an earlier run left; files of others stay."""
    for path in sorted(paths):
        if path.name not in written and path.is_file():
            with path.open("rb") as file:
                if f'content="{mark}"'.encode() in file.read(1000):
                    path.unlink()
