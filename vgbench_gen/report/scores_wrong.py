"""Wrong answers of every model as pages: the question, what was true, what was read, and how the reply begins.

Questions and replies are hostile text: they are escaped by the template, and characters that would reorder or hide what
stands around them are replaced.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from vgbench_gen.core.rng import hash_stably
from vgbench_gen.core.types import ALPHABET, Item
from vgbench_gen.evaluation.answers.outcomes import OUTCOMES
from vgbench_gen.evaluation.base import read_questions
from vgbench_gen.evaluation.board import BoardRun
from vgbench_gen.evaluation.cells import get_part
from vgbench_gen.evaluation.compare import group_by_model
from vgbench_gen.evaluation.records import ReplyKey
from vgbench_gen.evaluation.replies import ReplyExcerpt, read_excerpts
from vgbench_gen.report.gallery_images import OWN, make_relative_address
from vgbench_gen.report.header import SCORES, PageHeader
from vgbench_gen.report.matrices import split_matrices
from vgbench_gen.report.scores_traces import FOLDER as TRACES
from vgbench_gen.report.scores_traces import WrongAnswer, format_answer, write_traces
from vgbench_gen.report.site import clean, make_environment, make_inline_style
from vgbench_gen.report.trace_page import OURS as TRACE_PAGE
from vgbench_gen.store.files import sync_all_to_disk, write_bytes
from vgbench_gen.store.media import NAME

if TYPE_CHECKING:
    from vgbench_gen.report.scores_page import ComparedModels

PER_PAGE = 50  # replies on one page: each comes with its question and images
CHARS = 600  # of each reply
_SHORT = 200  # characters of everything else
_QUESTION, _OPTION = 2000, 600  # characters of a question, its context, and of an option
_THUMBNAILS = 8  # of one question
_OURS = "vgbench compare: wrong answers"  # by which pages of an earlier run are known


def write_wrong(report: ComparedModels, runs: Sequence[BoardRun]) -> dict[str, tuple[str, int]]:
    """Write the wrong answers of these runs, `PER_PAGE` to a file, pages of traces behind those of agents, and remove
    pages of earlier runs.

    Returns:
        By name of the run, the address of its first page, relative to the page of scores, and how many replies there
        are; runs without a wrong answer have none.

    Replies to the options in another order are left out, as in the tables. Memory holds the beginnings of one run's
    wrong replies at a time.

    Args:
        report: whose questions, scores and folders count.
        runs: of its board.

    Raises:
        DatasetError: a file of replies cannot be read.
    """
    folder = report.folder
    missed = {run.name: _join_misses(run, report) for run in runs}
    wanted = {miss.row.id for misses in missed.values() for miss in misses}
    items = {
        (dataset, item.id): item
        for dataset, source in report.sources.items()
        for item in (read_questions(source) if wanted else ())
        if item.id in wanted
    }
    links = {dataset: _Links(folder, home) for dataset, home in report.homes.items()}
    found: dict[str, tuple[str, int]] = {}
    written: list[Path] = []
    for name, misses in missed.items():
        if misses:
            paths = _write(report, name, misses, links, items)
            found[name] = quote(paths[-1].name), len(misses)
            written += paths
    sync_all_to_disk(written)
    names = {path.name for path in written}
    _remove_stale(folder.glob("wrong-*.html"), names, _OURS)
    _remove_stale((folder / TRACES).glob("*.html"), names, TRACE_PAGE)
    for path in (folder / TRACES / OWN).glob("*"):
        if path.name not in names and NAME.fullmatch(path.name):
            path.unlink()
    return found


def _join_misses(run: BoardRun, report: ComparedModels) -> list[WrongAnswer]:
    """The scored replies of a run that are not right, joined with their questions, in the order of the pages."""
    entries = {(entry.dataset, entry.id): (k, entry) for k, entry in enumerate(report.board.questions)}
    wrong = OUTCOMES.index("wrong")  # with what is right in part
    found = []
    for dataset, one in group_by_model(report.board.saved).get(run.model, ()):
        for row in one.rows:
            place, entry = entries.get((dataset, row.id), (0, None))
            missed = row.outcome != "failed" and row.score < 1 and not row.rotation
            if missed and entry is not None and (row.stage, row.prompt_set) == (run.stage, run.prompt_set):
                order = max(wrong, OUTCOMES.index(row.outcome)), dataset, get_part(entry), place, row.epoch
                found.append(WrongAnswer(order, entry, row, one.replies, report.homes[dataset]))
    return sorted(found, key=lambda miss: miss.order)


def _write(
    report: ComparedModels,
    name: str,
    misses: Sequence[WrongAnswer],
    links: Mapping[str, _Links],
    items: Mapping[tuple[str, str], Item],
) -> list[Path]:
    """Write the pages of one run; returns the files, the first page last."""
    folder = report.folder
    count = -(-len(misses) // PER_PAGE)
    files = [f"{_name_file(name)}{f'-page-{k + 1}' if k else ''}.html" for k in range(count)]
    pages = {miss: quote(files[k // PER_PAGE]) for k, miss in enumerate(misses)}
    sizes = Counter(miss.group for miss in misses)
    anchors: dict[tuple[str, str], str] = {}  # of the first reply of each group
    keys: dict[Path, set[ReplyKey]] = defaultdict(set)
    for miss, page in pages.items():
        anchors.setdefault(miss.group, f"{page}#t{len(anchors)}")
        keys[miss.replies].add(miss.key)
    excerpts = {path: read_excerpts(path, wanted, CHARS) for path, wanted in keys.items()}
    written, traces = write_traces(folder, name, pages, excerpts, report.sources)
    several = len({dataset for dataset, _ in sizes}) > 1
    titles = {group: clean(": ".join(group) if several else group[1], _SHORT) for group in sizes}
    style, csp = make_inline_style("img-src 'self'; ")
    for k, file in enumerate(files):
        shown = misses[k * PER_PAGE : (k + 1) * PER_PAGE]
        sections = [
            {
                "name": titles[group],
                "anchor": anchors[group].partition("#")[2],
                "replies": [
                    _describe_miss(miss, excerpts[miss.replies].get(miss.key), links[miss.entry.dataset])
                    | _describe_question(items.get((miss.entry.dataset, miss.entry.id)), miss)
                    | {"trace": traces.get((miss.replies, miss.key), "")}
                    for miss in members
                ],
            }
            for group, members in groupby(shown, key=lambda miss: miss.group)
        ]
        html = (
            make_environment()
            .get_template("scores_wrong.html.j2")
            .render(
                csp=csp,
                style=style,
                header=PageHeader(SCORES, folder, report.homes).render(file),
                ours=_OURS,
                most=CHARS,
                title=clean(report.title, _SHORT),
                name=clean(name, _SHORT),
                outcomes=Counter(miss.row.outcome for miss in misses).most_common(),
                total=len(misses),
                first=k * PER_PAGE + 1,
                last=k * PER_PAGE + len(shown),
                before=quote(files[k - 1]) if k else "",
                after=quote(files[k + 1]) if k + 1 < count else "",
                place=f"page {k + 1} of {count}",
                parts=[{"name": titles[group], "n": n, "href": anchors[group]} for group, n in sizes.items()],
                sections=sections,
                traces=len(traces),
            )
        )
        written.append(folder / file)
        write_bytes(written[-1], html.encode("utf-8"), durable=False)
    return [*written, folder / files[0]]


def _describe_miss(miss: WrongAnswer, excerpt: ReplyExcerpt | None, links: _Links) -> dict[str, Any]:
    return {
        "miss": miss,
        "task": get_part(miss.entry).replace("_", " "),
        "href": links.link_question(miss.entry.id),
        "official_read": format_answer(miss.row.official_extracted),
        "reply": None if excerpt is None else clean(excerpt.text, CHARS),
        "chars": 0 if excerpt is None else excerpt.chars,
        "images": [] if excerpt is None else links.link_thumbnails(excerpt.images),
    }


def _describe_question(item: Item | None, miss: WrongAnswer) -> dict[str, Any]:
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


class _Links:
    """Addresses, for pages in a folder, of the gallery of a data set and of its images."""

    def __init__(self, folder: Path, home: Path) -> None:
        self._gallery = ""
        if (home / "gallery" / "index.html").is_file():
            self._gallery = f"{make_relative_address(folder, home / 'gallery')}/index.html"
        stores = (home / "gallery" / OWN, home / "media")
        self._stores = [(store, make_relative_address(folder, store)) for store in stores if store.is_dir()]

    def link_question(self, item_id: str) -> str:
        """Address of a question; "" without a gallery."""
        return f"{self._gallery}#item={quote(clean(item_id, _SHORT), safe='')}" if self._gallery else ""

    def link_thumbnails(self, names: Sequence[str]) -> list[str]:
        """Addresses of images that are there, the first ones; a name is used as a path only when it is one of ours."""
        found = []
        for name in [name for name in names if NAME.fullmatch(name)][:_THUMBNAILS]:
            part = f"{name[:2]}/{name}"
            found += [f"{address}/{part}" for store, address in self._stores if (store / part).is_file()][:1]
        return found


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
