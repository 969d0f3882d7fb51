"""Replies that another program asked for: read from its log, checked against the questions, and kept beside our own.

A reply is taken only where the log shows that it is to a question of this dataset as it stands: by the digest that
exported tasks carry into the log, and by the words that were sent where it holds those.
"""

from __future__ import annotations

import abc
import bisect
import re
import time
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, ClassVar

from vgbench_gen import __version__
from vgbench_gen.core.errors import ConfigError, UnknownNameError
from vgbench_gen.core.lines import make_one_line
from vgbench_gen.core.registry import Registry
from vgbench_gen.evaluation.base import Source
from vgbench_gen.evaluation.options import AskOptions
from vgbench_gen.evaluation.prompting import Asked, digest_question, make_asked, rotate_options
from vgbench_gen.evaluation.records import Header, ReplyLine
from vgbench_gen.evaluation.replies import (
    FOLDER,
    ReplyWriter,
    has_header,
    name_replies_file,
    read_replies,
)
from vgbench_gen.evaluation.reply_files import has_replies
from vgbench_gen.store.files import dataset_error

# What readers come upon where a log holds a text or nothing in the place of an object.
_FOREIGN = (ValueError, TypeError, KeyError, AttributeError, IndexError, RecursionError, NotImplementedError,
            SyntaxError, zipfile.BadZipFile, zlib.error)  # fmt: skip
# Why a logged reply is not taken.
IGNORED = ("unknown_id", "other_request", "not_identified")
_WHOLE = re.compile(r"(\d{1,12})(?:\.0*)?")  # pandas writes whole numbers so where one is missing
_SHORTEST_BEGINNING = 4


@dataclass(frozen=True, slots=True)
class LoggedReply:
    """One reply of a log of another program."""

    line: ReplyLine
    """The reply as it will be kept, without the names of benchmark and model. Its `request_digest` is that of the
    exported row, "" where the log has none."""
    text: str | None = None
    """The words that were sent; None where the log does not say."""


@dataclass(frozen=True, slots=True)
class Log:
    """What a log of another program holds."""

    model: str
    """Who replied; "" where the log does not say."""
    replies: Iterable[LoggedReply]
    """The replies, in the order of the log."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """The settings of the run, as far as the log tells them."""
    by_id: bool = False
    """Whether it names its questions by id, the beginning of one or index and holds nothing to check them by."""


class LogReader(abc.ABC):
    """A plug-in: reads the logs of one program. One instance per registered name, without state."""

    suffixes: ClassVar[tuple[str, ...]] = ()
    """Of files that it says more about where no reader knows them by their looks."""

    @abc.abstractmethod
    def fits(self, path: Path) -> bool:
        """Whether a file or folder looks like such a log, from its name and its first bytes."""

    @abc.abstractmethod
    def read(self, path: Path) -> Log:
        """The replies of a log.

        Raises:
            DatasetError: it is missing, damaged or of another kind.
        """


logs: Registry[LogReader] = Registry("log", "vgbench_gen.evaluation.logs")


def find_only(path: Path, *patterns: str) -> Path:
    """A log itself, or the only one in a folder, of the first pattern that finds any.

    Raises:
        DatasetError: a folder with none or with several.
    """
    if not path.is_dir():
        return path
    found = next(filter(None, (sorted(path.glob(pattern)) for pattern in patterns)), [])
    if len(found) != 1:
        raise dataset_error(path, f"{len(found)} files like {' or '.join(patterns)}", "one", "Name the file.")
    return found[0]


@dataclass(frozen=True, slots=True)
class ImportedLog:
    """What became of a log."""

    path: Path
    """The log of ours in which its replies are kept."""
    spec: str
    """Under which name they are kept."""
    taken: int
    """How many replies were taken."""
    failed: int
    known: int
    """How many of those were there already, word for word."""
    ignored: Mapping[str, int]
    """How many were not taken, by reason (`IGNORED`)."""
    first: Mapping[str, str]
    """The question that the first of them names, by reason."""


def take_replies(source: Source, path: Path, program: str = "", spec: str = "") -> ImportedLog | None:
    """As `import_log`; None for a file or folder of `vgbench eval`, whose replies are scored where they are."""
    return None if not (program or spec) and has_replies(path) else import_log(source, path, program, spec)


def import_log(source: Source, path: Path, program: str = "", spec: str = "") -> ImportedLog:
    """Keep the replies of a log in the dataset's `replies`, where `vgbench compare` finds them.

    Args:
        source: the questions.
        path: of the log.
        program: name of the program that wrote it; "" to tell by its looks.
        spec: under which name the replies are kept and stand in tables; "" for "program:model".

    Raises:
        UnknownNameError: no such program.
        DatasetError: nothing that any reader takes for a log, or no reply in it belongs to the dataset.
    """
    program = program or _find_program(path)
    log = _read_log(program, path)
    model = "" if spec else log.model  # tables call a model by this, and by the spec where it is empty
    spec = spec or f"{program}:{log.model or path.stem}"
    items = {row.id: row.row for row in source.rows()}
    check = _Check(source, items)
    ignored: Counter[str] = Counter()
    first: dict[str, str] = {}
    said: Counter[str] = Counter()
    lines: list[ReplyLine] = []
    for reply in log.replies:
        if log.by_id:
            name = check.find_id(reply.line.key.id)
            key = reply.line.key._replace(id=name, epoch=said[name])
            reply = replace(reply, line=reply.line.model_copy(update={"key": key}))
            said[name] += 1
        if reason := check.find_mismatch(reply, log.by_id):
            ignored[reason] += 1
            first.setdefault(reason, make_one_line(reply.line.key.id, 80))
        else:
            lines.append(_complete_line(reply.line, check.digest(reply.line), source.benchmark, log.model or spec))
    if not lines:
        told = ", ".join(f"{count} {reason.replace('_', ' ')}" for reason, count in sorted(ignored.items()))
        told += "".join(f", such as {name!r}" for name in list(first.values())[:1])
        remedy = "Run the task that `vgbench export` writes for this dataset, or name questions by their `id`."
        raise dataset_error(path, f"no reply to this dataset ({told or 'none at all'})", "replies to it", remedy)
    target = name_replies_file(source.folder / FOLDER, spec)
    settings = dict(log.settings) | {"program": program}
    header = Header(
        dataset=source.fingerprint,
        benchmark=source.benchmark,
        spec=spec,
        model=model,
        settings=settings,
        code=__version__,
    )
    known = read_replies(target, header).lines if has_header(target) else {}
    new = [line for line in lines if not _is_known(line, known.get(line.key._replace(settings=header.digest)))]
    with ReplyWriter(target, header) as out:
        for line in new:
            out.append(line)
    failed = sum(line.failed for line in lines)
    return ImportedLog(
        target, header.spec, len(lines), failed, len(lines) - len(new), dict(sorted(ignored.items())), first
    )


def _read_log(program: str, path: Path) -> Log:
    try:
        log = logs[program].read(path)
        return replace(log, replies=list(log.replies))
    except OSError as error:
        found = f"no readable file ({error.strerror or error})"
        raise dataset_error(path, found, f"a log of {program}", "Check the path.") from error
    except _FOREIGN as error:
        found = f"{type(error).__name__}: {make_one_line(str(error), 100)}"
        raise dataset_error(path, found, f"a log of {program}", "Run its task again, or name another log.") from error


def _find_program(path: Path) -> str:
    if not path.exists():
        raise dataset_error(path, "nothing", "a log of another program", "Check the path.")
    fitting = [name for name in logs if logs[name].fits(path)]
    fitting = fitting or [name for name in logs if path.is_file() and path.suffix in logs[name].suffixes]
    if len(fitting) != 1:
        found = f"what {' and '.join(fitting)} may have written" if fitting else "no log that is known"
        remedy = "Say which with --from, or give a table (CSV, JSON lines) with the columns id and response."
        raise dataset_error(path, found, f"one of {', '.join(logs)}", remedy)
    return fitting[0]


class _Check:
    """Whether logged replies are to questions as they stand."""

    def __init__(self, source: Source, rows: Mapping[str, int]) -> None:
        self._source, self._rows = source, rows
        self._read_item = lru_cache(1)(lambda name: source.item(rows[name]))  # replies to one question stand together
        self._sorted = sorted(rows)

    def find_id(self, name: str) -> str:
        """The id of the question that a table names by it, by `index` or by a beginning that no other id has; the name
        itself where there is none."""
        if name in self._rows:
            return name
        if (whole := _WHOLE.fullmatch(name)) and (found := self._indices.get(int(whole[1]))):
            return found
        place = bisect.bisect_left(self._sorted, name)
        near = [one for one in self._sorted[place : place + 2] if one.startswith(name)]
        return near[0] if len(near) == 1 and len(name) >= _SHORTEST_BEGINNING else name

    @cached_property
    def _indices(self) -> Mapping[int, str]:
        return {item.index: item.id for item in map(self._source.item, self._rows.values())}

    def find_mismatch(self, reply: LoggedReply, by_id: bool) -> str:
        """One of `IGNORED`, or "" where the reply is to a question as it stands.

        by_id: that its log holds no more than the id is no reason.
        """
        line = reply.line
        if line.key.id not in self._rows:
            return "unknown_id"
        try:
            now = self.digest(line)
            words = self._make_words(line)
        except (ConfigError, UnknownNameError):
            return "other_request"
        if reply.text is None and not line.request_digest and not by_id:
            return "not_identified"
        same_digest = not line.request_digest or line.request_digest.startswith(now)
        same_words = reply.text is None or reply.text.strip() == words.strip()
        return "" if same_digest and same_words else "other_request"

    def digest(self, line: ReplyLine) -> str:
        """Of the question now; how another program asked it, beyond the words and images, is not known."""
        return digest_question(rotate_options(self._read_item(line.key.id), line.key.rotation))

    def _make_words(self, line: ReplyLine) -> str:
        options = AskOptions(prompt_set=line.key.prompt_set)
        made: Asked = make_asked(self._read_item(line.key.id), options.settings(""), options, line.key.rotation)
        parts = [made.settings.system, *(shown.tag for shown in made.images), made.text]
        return "\n".join(part for part in parts if part)


def _complete_line(line: ReplyLine, digest: str, benchmark: str, model: str) -> ReplyLine:
    return line.model_copy(
        update={
            "benchmark": benchmark,
            "model": model,
            "request_digest": line.request_digest if line.request_digest.startswith(digest) else digest,
            "response": None if line.error else line.response,
            "error": line.error or ("no_reply: the log holds none" if line.response is None else ""),
            "time": line.time or time.time(),
        }
    )


def _is_known(line: ReplyLine, old: ReplyLine | None) -> bool:
    """Whether a reply is there already; one that failed also where there is a better one."""
    if old is None:
        return False
    return (old.response, old.error) == (line.response, line.error) or (line.failed and old.response is not None)
