"""Scores of saved replies, saved beside them: `scores/<model>.jsonl`, made again when anything they rest on changed.

The first line says what they rest on: the scorer's version, the dataset's fingerprint and the digest of the replies.
The second is the list of their questions with what tables need to know of each, so that no question is opened again.
Every other line is one scored reply, both as we read it and as the published script does.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter
from pydantic_core import to_json

from vgbench_gen.core.errors import ConfigError, DatasetError
from vgbench_gen.core.json_text import parse_json
from vgbench_gen.core.lines import set_on_one_line
from vgbench_gen.core.rng import digest_bytes
from vgbench_gen.core.types import Item
from vgbench_gen.evaluation.answers.outcomes import convert_to_json_value
from vgbench_gen.evaluation.base import Source, read_questions
from vgbench_gen.evaluation.board import Entry, ScoreRow, make_entry
from vgbench_gen.evaluation.options import BLIND, SHOTS, VISUAL_COT, WRONG_IMAGES
from vgbench_gen.evaluation.prompting import VISUAL_COT_IMAGE, digest_question, rotate_options
from vgbench_gen.evaluation.records import Header, ReplyKey, ReplyLine
from vgbench_gen.evaluation.replies import FOLDER as REPLIES
from vgbench_gen.evaluation.replies import read_replies
from vgbench_gen.evaluation.reply_files import find_source_replies, reply_files
from vgbench_gen.evaluation.scoring import SCORER_VERSION, CaseError, Scored, make_case, score
from vgbench_gen.store.files import dataset_error, open_data, replace_file

SCHEMA = 3
FOLDER = "scores"
# Why a saved reply is not scored.
IGNORED = ("unknown_id", "other_request", "other_stage", "bad_rotation", "bad_question", "other_settings")
_STAGES = ("", BLIND, WRONG_IMAGES)
_SHOTS = re.compile(rf"[1-9][0-9]?{SHOTS}")


@dataclass(frozen=True, slots=True)
class ScoreHeader:
    """What saved scores rest on: the first line of a file of scores."""

    scorer_version: int
    """The version of the scorer (`SCORER_VERSION`)."""
    dataset: str
    replies: str
    """The digest of the log of replies."""
    spec: str
    """Who was asked, as in the header of the log."""
    model: str
    """The model's name, as in the header of the log."""
    ignored: Mapping[str, int] = field(default_factory=dict)
    """How many replies are not scored, by reason (`IGNORED`)."""

    def __post_init__(self) -> None:
        set_on_one_line(self, "spec", "model")


@dataclass(frozen=True, slots=True)
class SavedScores:
    """One file of scores."""

    path: Path
    header: ScoreHeader
    rows: tuple[ScoreRow, ...]
    """The scored replies, in the order of the log."""
    questions: Mapping[str, Entry] = field(default_factory=dict)
    """Their questions by id."""
    fresh: bool = False
    """Whether they were scored now rather than found."""
    replies: Path = field(kw_only=True)
    """The log that they are of."""


def score_source(
    source: Source,
    names: Sequence[str] = (),
    *,
    again: bool = False,
    progress: Callable[[str, int, int], None] = lambda name, done, total: None,
    replies: Path | None = None,
    notes: list[str] | None = None,
) -> list[SavedScores]:
    """Score all saved replies of a dataset and save the scores; nothing is asked and nothing fetched.

    Replies to the dataset that a hard set was chosen from are replies to its questions too, where words, options and
    images are the same; they are taken of models that were not asked the hard set itself.

    Args:
        source: the questions.
        names: of models; all where empty.
        again: even where saved scores rest on the same replies, dataset and scorer.
        progress: called with (file, replies scored, replies in all).
        replies, notes: as of `reply_files`.

    Raises:
        DatasetError: no replies, or a file that cannot be read and there are no notes to say so, or no other file.
    """
    taken_from = find_source_replies(source.folder) if replies is None else None
    more = taken_from[0] if taken_from else None
    paths = reply_files(source.folder, names, replies, notes, more)
    taken = sorted(path.stem for path in paths if path.parent == more)
    if taken and notes is not None:
        notes.append(
            f"Replies of {', '.join(taken)} are those to the same questions in {more}: nobody was asked again."
        )
    found = list(score_files(source, paths, again=again, progress=progress, notes=notes, taken_from=taken_from))
    if not found:
        raise DatasetError(" ".join(notes or ()))
    return found


def score_files(
    source: Source,
    paths: Sequence[Path],
    *,
    again: bool = False,
    progress: Callable[[str, int, int], None] = lambda name, done, total: None,
    notes: list[str] | None = None,
    taken_from: tuple[Path, str] | None = None,
) -> Iterator[SavedScores]:
    """As `score_source`, of these files of replies, one after the other: many models need not be in memory at once.

    taken_from: as `reply_files.find_source_replies` gives it, where files from there are among them.
    """
    items: dict[str, Item] = {}
    questions: dict[str, Entry] = {}
    read: dict[str, Mapping[str, Entry]] = {}
    others, of_others = taken_from or (None, "")
    for path in paths:
        with open_data(path, "replies", "Run `vgbench eval`.") as file:
            digest = digest_bytes(file.read())
        taken = of_others if path.parent == others else ""
        ours = bool(taken) or path.resolve().parent == (source.folder / REPLIES).resolve()
        target = (source.folder if ours else path.parent) / FOLDER / path.name
        known = None if again else _find_current(target, source.fingerprint, path, digest, read)
        if known is None:
            if not items:
                items = {item.id: item for item in read_questions(source)}
            try:
                known = _score_file(path, digest, target, source.fingerprint, items, questions, progress, taken)
            except DatasetError as error:
                if notes is None:
                    raise
                notes.append(f"Left out: {error}")
                continue
        yield known


def _find_current(
    path: Path, fingerprint: str, replies: Path, digest: str, known: dict[str, Mapping[str, Entry]]
) -> SavedScores | None:
    """Saved scores that still hold, of a log of replies with this digest."""
    if not path.is_file():
        return None
    try:
        found = read_scores(path, replies, known)
    except DatasetError:
        return None  # torn or of another schema: they are made from the replies
    header = found.header
    same = (header.scorer_version, header.dataset, header.replies) == (SCORER_VERSION, fingerprint, digest)
    return found if same else None


def _score_file(
    path: Path,
    digest: str,
    target: Path,
    fingerprint: str,
    items: Mapping[str, Item],
    questions: dict[str, Entry],
    progress: Callable[[str, int, int], None],
    taken: str = "",
) -> SavedScores:
    """taken: the fingerprint of the larger dataset that the log is of; what it says of other questions is then nothing
    to tell."""
    stored = read_replies(path)
    header, lines = stored.header, stored.lines
    rows, ignored = score_lines(
        header, lines, items, taken or fingerprint, lambda done: progress(path.stem, done, len(lines)), questions
    )
    if stored.others:
        ignored["other_settings"] = stored.others
    if taken:
        ignored.pop("unknown_id", None)
    saved = SavedScores(
        target,
        ScoreHeader(SCORER_VERSION, fingerprint, digest, header.spec, header.model, dict(sorted(ignored.items()))),
        tuple(rows),
        {row.id: questions[row.id] for row in rows},
        fresh=True,
        replies=path,
    )
    write_scores(saved)
    return saved


def score_lines(
    header: Header,
    lines: Mapping[ReplyKey, ReplyLine],
    items: Mapping[str, Item],
    fingerprint: str,
    progress: Callable[[int], None] = lambda done: None,
    questions: dict[str, Entry] | None = None,
) -> tuple[list[ScoreRow], Counter[str]]:
    """(scored replies, how many were not and why) of one file.

    A reply is scored only where its question is in the dataset, with the words, options and images it was given to.
    questions: what is known of them already, by id; others are added.
    """
    questions = {} if questions is None else questions
    rows: list[ScoreRow] = []
    ignored: Counter[str] = Counter()
    for done, line in enumerate(lines.values(), start=1):
        if line.key.stage == VISUAL_COT_IMAGE:
            continue  # no answer, but what was made for one
        item = items.get(line.key.id)
        reason = "unknown_id" if item is None else find_mismatch(item, line, header.dataset == fingerprint)
        if item is not None and not reason:
            try:
                if item.id not in questions:
                    questions[item.id] = make_entry(item)
                row = make_row(line, score_reply(item, line))
                # What a drawing cost, which all orders of the options share, counts for the first order.
                drawing = lines.get(line.key._replace(stage=VISUAL_COT_IMAGE, settings=""))
                rows.append(
                    row if drawing is None or row.stage != VISUAL_COT else _add_drawing(row, make_row(drawing, None))
                )
            except CaseError:
                reason = "bad_question"
        if reason:
            ignored[reason] += 1
        if done % 500 == 0 or done == len(lines):
            progress(done)
    return rows, ignored


def _add_drawing(row: ScoreRow, drawing: ScoreRow) -> ScoreRow:
    """The row with what its drawing cost."""
    return replace(
        row,
        cost_usd=row.cost_usd + drawing.cost_usd,
        latency_s=row.latency_s + drawing.latency_s,
        tokens=row.tokens + drawing.tokens,
    )


def find_mismatch(item: Item, line: ReplyLine, same_dataset: bool) -> str:
    """Find out why a reply does not belong to a question as it stands now.

    Args:
        item: the question.
        line: the reply.
        same_dataset: whether the dataset has the fingerprint that it had when it was asked.

    Returns:
        One of `IGNORED`, or "" where the reply belongs.
    """
    if line.key.stage not in (*_STAGES, VISUAL_COT) and not _SHOTS.fullmatch(line.key.stage):
        return "other_stage"
    try:
        now = digest_question(rotate_options(item, line.key.rotation))
    except ConfigError:
        return "bad_rotation"
    if not line.request_digest:  # a reply of another program: the whole dataset must be the same
        return "" if same_dataset else "other_request"
    return "" if line.request_digest.startswith(now) else "other_request"


def score_reply(item: Item, line: ReplyLine) -> Scored | None:
    """The scores of one reply; None where the request failed."""
    if line.failed:
        return None
    return score(make_case(rotate_options(item, line.key.rotation)), line.response)


def make_row(line: ReplyLine, scored: Scored | None) -> ScoreRow:
    """One line of a file of scores."""
    key: dict[str, Any] = line.key._asdict()
    if line.key.stage == VISUAL_COT:
        key["made"] = any(image.get("made") for image in line.images)
    spent: dict[str, Any] = {
        "cost_usd": math.nan if line.cost_usd is None else float(line.cost_usd),
        "latency_s": float(line.latency_s),
        "tokens": float(sum(line.usage.get(name, 0) for name in ("prompt_tokens", "completion_tokens")))
        if line.usage
        else math.nan,
    }
    if scored is None:
        return ScoreRow(
            **key, outcome="failed", status="api_error", score=0.0, official=0.0, strict=0.0, followed=False, **spent
        )
    status, outcome = scored.reading.status, scored.outcome
    if status == "no_answer" and line.finish_reason == "length":
        status = "truncated"
    if status == "no_answer" and line.finish_reason == "content_filter":
        status, outcome = "refusal", "refused"
    measures = scored.measures
    return ScoreRow(
        **key,
        outcome=outcome,
        status=status,
        score=scored.score,
        official=scored.official.score,
        strict=scored.strict,
        followed=scored.followed,
        extracted=convert_to_json_value(scored.reading.value),
        official_extracted=convert_to_json_value(scored.official.extracted),
        delta_2=measures.get("delta_2", math.nan),
        delta_125=measures.get("delta_1.25", math.nan),
        mra=measures.get("mra", math.nan),
        relative_error=measures.get("relative_error", math.nan),
        **spent,
    )


# --- files

_ROW, _QUESTIONS = TypeAdapter(ScoreRow), TypeAdapter(tuple[Entry, ...])


def write_scores(saved: SavedScores) -> None:
    """Write a file of scores whole; what is not known of a reply or a question is left out."""
    with replace_file(saved.path) as temporary, temporary.open("wb") as file:
        file.write(to_json({"schema": SCHEMA, **asdict(saved.header)}) + b"\n")
        file.write(_QUESTIONS.dump_json(tuple(saved.questions.values()), exclude_defaults=True) + b"\n")
        names = [one.name for one in fields(ScoreRow)]
        for row in saved.rows:
            known = {name: value for name in names if (value := getattr(row, name)) == value}  # NaN is not
            file.write(to_json(known, inf_nan_mode="strings") + b"\n")


def read_scores(path: Path, replies: Path, known: dict[str, Mapping[str, Entry]] | None = None) -> SavedScores:
    """A file that `write_scores` made.

    Args:
        path: of the file.
        replies: the log that they are of.
        known: the questions of other files by the digest of their line, which are then in memory once; others are
            added.

    Raises:
        DatasetError: it is missing or holds something else.
    """
    remedy = "Delete it; `vgbench compare` makes it again from the replies."
    known = {} if known is None else known
    try:
        with open_data(path, "saved scores", remedy) as file:
            header, line = parse_json(file.readline()), file.readline()
            if header.pop("schema", None) != SCHEMA:
                raise ValueError(f"no schema {SCHEMA}")
            if (digest := digest_bytes(line)) not in known:
                known[digest] = {question.id: question for question in _QUESTIONS.validate_json(line)}
            rows, questions = tuple(map(_ROW.validate_json, file)), known[digest]
        if lost := next((row.id for row in rows if row.id not in questions), None):
            raise ValueError(f"nothing on the question {lost!r}")
        return SavedScores(path, ScoreHeader(**header), rows, questions, replies=replies)
    except (ValueError, TypeError, AttributeError) as error:
        raise dataset_error(path, f"no scores ({str(error)[:100]})", "saved scores", remedy) from error
