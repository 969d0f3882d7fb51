"""`vgbench review`: people check questions in a browser; their verdicts are counted and exported."""

from __future__ import annotations

import secrets
import socket
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from pydantic import Field

from vgbench_gen.cli._flags import split_names
from vgbench_gen.cli._options import DatasetFolder
from vgbench_gen.cli._screen import find_width, print_json
from vgbench_gen.cli._verbs import verb
from vgbench_gen.core.config import Flag
from vgbench_gen.core.errors import ConfigError
from vgbench_gen.core.local_server import LOOPBACK, listen, serve
from vgbench_gen.core.stand_ins import config_error
from vgbench_gen.core.text_files import read_names

if TYPE_CHECKING:
    from vgbench_gen.quality.review.queue import ReviewItem
    from vgbench_gen.quality.review.status import ReviewRecord
    from vgbench_gen.store.dataset import Dataset

_EXTRA = "pip install 'vgbench-gen[review]'"


@verb("review", "Look", "vgbench review build/vgbench --task metric_depth --sample 99")
def review(
    dataset: DatasetFolder,
    reviewer: Annotated[str, Flag("Reviewer's name, prefilled on the start page.", "NAME")] = "",
    task: Annotated[list[str] | None, Flag("Review only these tasks.", "A,B")] = None,
    form: Annotated[list[str] | None, Flag("Review only these question types.", "A,B", names="--type")] = None,
    source: Annotated[list[str] | None, Flag("Review only questions from these scan datasets.", "A,B")] = None,
    ids: Annotated[Path | None, Flag("Review only the ids in this file, one per line.", "FILE")] = None,
    sample: Annotated[int | None, Flag("Maximum number of questions per task and source.", "N"), Field(ge=1)] = None,
    batch: Annotated[int, Flag("Questions per batch.", "N"), Field(ge=1, le=1000)] = 50,
    host: Annotated[str, Flag("Address to listen on; a public one needs the printed token.", "HOST")] = "127.0.0.1",
    port: Annotated[int, Flag("Port; 0 = any free one.", "PORT"), Field(ge=0, le=65535)] = 8377,
    report: Annotated[bool, Flag("Print agreement and counts; start no server.")] = False,
    as_json: bool = False,
    export: Annotated[Path | None, Flag("Write the accepted ids; start no server.", "FILE")] = None,
    purpose: Annotated[
        Literal["release", "hard"], Flag("What --export is for: release or hard.", "WHAT", names="--for")
    ] = "release",
) -> None:
    """Have people review questions in a browser.

    A reviewer first answers without seeing the correct answer, then sees it and gives a verdict. Verdicts are kept in
    DATASET/review/NAME.jsonl: stop with Ctrl-C, continue later. --report prints its limits; it exits 1 if agreement is
    too low, an answer is confirmed wrong, or too many questions are ambiguous. A question is accepted if two
    reviewers call it valid; for hard, also nobody may have objected, and someone must have answered it correctly.
    """
    from vgbench_gen.quality.review.log import FOLDER, read_logs
    from vgbench_gen.quality.review.queue import ReviewFilter, list_items, select_items
    from vgbench_gen.quality.review.status import count_verdicts
    from vgbench_gen.report.header import find_home
    from vgbench_gen.store.dataset import load

    if as_json and not report:
        raise ConfigError("--json: found it without --report; expected both. Add --report.")
    items = load(dataset)
    entries = list_items(items)
    only = tuple(read_names(ids, "ids, one per line", config_error)) if ids else None
    wanted = ReviewFilter(split_names(task), split_names(form), split_names(source), only, sample)
    selected = select_items(entries, wanted)
    root = find_home(dataset)
    if report or export:
        record = count_verdicts(read_logs(root / FOLDER), entries)
        if export:
            _write_export(selected, record, export, purpose)
        if report:
            _print_report(selected, record, as_json)
        return
    _serve(items, entries, selected, root, batch, host, port, reviewer)


def _print_report(selected: list[ReviewItem], record: ReviewRecord, as_json: bool) -> None:
    from vgbench_gen.quality.review.report import format_report, make_report

    found = make_report(selected, record)
    if as_json:
        print_json(found.to_json())
    else:
        print(format_report(found, find_width()))
    if found.failed:
        raise typer.Exit(1)


def _write_export(
    selected: list[ReviewItem], record: ReviewRecord, path: Path, purpose: Literal["release", "hard"]
) -> None:
    from vgbench_gen.quality.review.export import sort_judged, write_export

    found = sort_judged(selected, record, purpose)
    beside = write_export(found, path)
    typer.echo(
        f"{path}: {len(found.accepted)} accepted; {beside}: {len(found.refused)} judged and not accepted", err=True
    )


def _serve(
    items: Dataset,
    entries: list[ReviewItem],
    selected: list[ReviewItem],
    root: Path,
    batch: int,
    host: str,
    port: int,
    reviewer: str,
) -> None:
    from vgbench_gen.quality.review.log import FOLDER
    from vgbench_gen.quality.review.session import ReviewQueue
    from vgbench_gen.store.media import MediaStore

    try:
        import uvicorn  # noqa: F401

        from vgbench_gen.report.review_app import make_app, make_url
    except ModuleNotFoundError as error:
        raise ConfigError(f"the review needs the package {error.name}: {_EXTRA}") from error
    media = MediaStore(root / "media") if (root / "media").is_dir() else None
    token = "" if host in LOOPBACK else secrets.token_urlsafe(32)
    names = (host, socket.gethostname()) if token else ()
    (root / FOLDER).mkdir(exist_ok=True)  # better now than when the first answer is to be saved
    server = listen(host, port)
    queue = ReviewQueue(items, entries, selected, root / FOLDER, media, batch)
    try:
        app = make_app(queue, root.resolve().name, names, token, reviewer)
        print(f"{len(selected)} items, verdicts in {queue.folder}. Open {make_url(server, host, token)}", flush=True)
        print("Stop with Ctrl-C; what is saved stays.", flush=True)
        serve(app, server)
    finally:
        queue.close()
        server.close()
