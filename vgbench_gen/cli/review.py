"""`vgbench review`: people check items in a browser; what they said is counted and exported."""

from __future__ import annotations

import secrets
import socket
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vgbench_gen.cli._options import DatasetFolder
from vgbench_gen.cli._screen import print_json
from vgbench_gen.cli._verbs import add_verb
from vgbench_gen.core.errors import ConfigError
from vgbench_gen.core.local_server import LOOPBACK, listen, serve
from vgbench_gen.core.stand_ins import config_error
from vgbench_gen.core.text_files import read_names

if TYPE_CHECKING:
    from vgbench_gen.quality.review.queue import ReviewItem
    from vgbench_gen.quality.review.status import ReviewRecord
    from vgbench_gen.store.dataset import Dataset

_EXTRA = "pip install 'vgbench-gen[review]'"


def register(app: typer.Typer) -> None:
    """Add the verb."""
    add_verb(app, "review", review, "Look", "vgbench review build/vgbench --task metric_depth --sample 99")


def review(
    dataset: DatasetFolder,
    reviewer: Annotated[str, typer.Option("--reviewer", metavar="NAME", help="Proposed on the start page.")] = "",
    task: Annotated[list[str] | None, typer.Option("--task", metavar="NAME", help="Only these; repeat.")] = None,
    form: Annotated[list[str] | None, typer.Option("--type", metavar="TYPE", help="Only these; repeat.")] = None,
    source: Annotated[list[str] | None, typer.Option("--source", metavar="NAME", help="Only these; repeat.")] = None,
    ids: Annotated[Path | None, typer.Option("--ids", metavar="FILE", help="Only these ids, one per line.")] = None,
    sample: Annotated[
        int | None, typer.Option("--sample", metavar="N", min=1, help="At most N items per task and source.")
    ] = None,
    batch: Annotated[int, typer.Option("--batch", metavar="N", min=1, max=1000, help="Items of a batch.")] = 50,
    host: Annotated[
        str,
        typer.Option(
            "--host", help="Address to listen on; others than this machine's own need a token, which is printed."
        ),
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="0 takes a free one.")] = 8377,
    report: Annotated[bool, typer.Option("--report", help="Print agreement and counts; start no server.")] = False,
    as_json: bool = False,
    export: Annotated[
        Path | None, typer.Option("--export", metavar="FILE", help="Write accepted ids; start no server.")
    ] = None,
    purpose: Annotated[str, typer.Option("--for", metavar="WHAT", help="Of --export: release or hard.")] = "release",
) -> None:
    """Let people check items in a browser: a blind answer first, then the truth and a verdict.

    Verdicts append to DATASET/review/<name>.jsonl; stop with Ctrl-C and go on later. With --report, exits 1 where a
    bar falls.
    """  # fmt: skip
    from vgbench_gen.quality.review.log import FOLDER, read_logs
    from vgbench_gen.quality.review.queue import ReviewFilter, list_items, select_items
    from vgbench_gen.quality.review.status import count_verdicts
    from vgbench_gen.store.dataset import load

    if as_json and not report:
        raise ConfigError("--json: found it without --report; expected both. Add --report.")
    if purpose not in ("release", "hard"):
        raise ConfigError(f"--for: found {purpose!r}; expected release or hard.")
    items = load(dataset)
    entries = list_items(items)
    only = tuple(read_names(ids, "ids, one per line", config_error)) if ids else None
    wanted = ReviewFilter(tuple(task or ()), tuple(form or ()), tuple(source or ()), only, sample)
    selected = select_items(entries, wanted)
    folder = _find_root(dataset) / FOLDER
    if report or export:
        record = count_verdicts(read_logs(folder), entries)
        if export:
            _write_export(selected, record, export, purpose)
        if report:
            _print_report(selected, record, as_json)
        return
    _serve(items, entries, selected, dataset, batch, host, port, reviewer)


def _find_root(dataset: Path) -> Path:
    """The folder that holds `items/`, `media/` and `review/`."""
    if dataset.is_file():
        dataset = dataset.parent
    return dataset.parent if dataset.name == "items" else dataset


def _print_report(selected: list[ReviewItem], record: ReviewRecord, as_json: bool) -> None:
    from vgbench_gen.cli._screen import find_width
    from vgbench_gen.quality.review.report import format_report
    from vgbench_gen.quality.review.report import make_report as count

    found = count(selected, record)
    if as_json:
        print_json(found.to_json())
    else:
        print(format_report(found, find_width()))
    if found.fell:
        raise typer.Exit(1)


def _write_export(selected: list[ReviewItem], record: ReviewRecord, path: Path, purpose: str) -> None:
    from vgbench_gen.quality.review.export import sort_judged, write_export

    found = sort_judged(selected, record, "hard" if purpose == "hard" else "release")
    beside = write_export(found, path)
    typer.echo(
        f"{path}: {len(found.accepted)} accepted; {beside}: {len(found.refused)} judged and not accepted", err=True
    )


def _serve(
    items: Dataset,
    entries: list[ReviewItem],
    selected: list[ReviewItem],
    dataset: Path,
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
    root = _find_root(dataset)
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
