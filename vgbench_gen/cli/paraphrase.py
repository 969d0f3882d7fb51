"""`vgbench paraphrase`: more wordings from a language model, checked, for a person to accept."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vgbench_gen.backends.spec import BackendOptions
from vgbench_gen.cli._options import DEFAULT_MODEL, MAX_SEED, ModelSpec
from vgbench_gen.cli._screen import find_width, print_json, progress_bar
from vgbench_gen.cli._verbs import add_verb
from vgbench_gen.core.columns import format_columns

if TYPE_CHECKING:
    from collections.abc import Iterable

    from vgbench_gen.backends.base import Request
    from vgbench_gen.text.paraphrase.rounds import Asker, RewordCounts

_BANK = Path("bank.toml")
_SHOWN_REQUESTS = 2


def register(app: typer.Typer) -> None:
    """Add the verb."""
    add_verb(
        app, "paraphrase", paraphrase, "Vary", "vgbench paraphrase --model deepseek:deepseek-flash --bank bank.toml"
    )


def paraphrase(
    model: ModelSpec = DEFAULT_MODEL,
    n: Annotated[
        int, typer.Option("--n", metavar="N", min=1, max=32, help="Rewordings that one request asks for.")
    ] = 8,
    bank: Annotated[
        Path, typer.Option("--bank", metavar="FILE", help="Where accepted wordings are collected.")
    ] = _BANK,
    task: Annotated[list[str] | None, typer.Option("--task", metavar="TASK", help="May be repeated.")] = None,
    kind: Annotated[list[str] | None, typer.Option("--type", metavar="TYPE", help="May be repeated.")] = None,
    language: Annotated[str, typer.Option("--language", metavar="CODE", help="Of the rewordings.")] = "en",
    judge_model: Annotated[
        str, typer.Option("--judge-model", metavar="SPEC", help="Who says whether the meaning is the same; --model.")
    ] = "",
    no_judge: Annotated[bool, typer.Option("--no-judge", help="Ask nobody whether the meaning is the same.")] = False,
    temperature: Annotated[
        float, typer.Option("--temperature", metavar="T", help="Of the rewordings; below 0 sends none.")
    ] = 0.8,
    seed: Annotated[int | None, typer.Option("--seed", metavar="N", max=MAX_SEED, help="Sent with requests.")] = None,
    accept: Annotated[
        list[str] | None, typer.Option("--accept", metavar="ID", help="Mark this entry as reviewed; asks no model.")
    ] = None,
    accept_all: Annotated[bool, typer.Option("--accept-all", help="The same for every entry of the bank.")] = False,
    per_item: Annotated[
        Path | None,
        typer.Option("--per-item", metavar="DATASET", help="Reword every row of a dataset instead of templates."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FOLDER", help="New dataset of --per-item; DATASET-reworded.")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show first requests and an estimate of tokens; ask nothing.")
    ] = False,
    *,
    sent: BackendOptions,
    as_json: bool = False,
) -> None:
    """Add reworded phrasings to a bank file, or reword every row of a dataset.

    Every wording is checked: same placeholders, numbers, units, axes, polarity; then a model judges whether it means
    the same. What fails is asked again up to three times. A bank holds at most 8 wordings of a task and question type,
    as proposals. Read them, edit the file, and set status = "reviewed" there or with --accept ID or --accept-all.
    `vgbench build RECIPE --bank FILE` then draws from the reviewed ones beside the shipped phrasings.

    Running again goes on where it stopped: replies are kept in FILE.replies.sqlite unless --cache names another file.
    Exits 1 if nothing could be reworded, requests failed, or the budget was spent.
    """
    if accept or accept_all:
        _accept_entries(bank, None if accept_all else accept or [])
        return
    target = _find_target(per_item, out)
    beside = bank if target is None else target
    sent = sent.model_copy(update={"cache": sent.cache or beside.with_name(f"{beside.name}.replies.sqlite")})
    judge = "" if no_judge else judge_model or model
    drawn = None if temperature < 0 else temperature
    job = _Job(model, judge, n, drawn, seed, sent, task or [], kind or [], language, dry_run, as_json)
    if target is None or per_item is None:
        _reword_templates(job, bank)
    else:
        _reword_items(job, per_item, target)


def _find_target(per_item: Path | None, out: Path | None) -> Path | None:
    """The new dataset of --per-item; None where templates are reworded.

    Raises:
        ConfigError: there is a place for a new dataset and nothing to reword.
    """
    from vgbench_gen.core.errors import ConfigError

    if per_item is None:
        if out is not None:
            raise ConfigError(
                f"--out {out}: found no --per-item; expected the dataset to reword, or --bank for templates."
            )
        return None
    return out or per_item.resolve().with_name(f"{per_item.resolve().name}-reworded")


@dataclass(frozen=True, slots=True)
class _Job:
    """What the options say about asking."""

    model: str
    """The spec of who rewords."""

    judge: str
    """The spec of who says whether the meaning is the same; nobody where empty."""

    n: int
    """How many rewordings one request asks for."""

    temperature: float | None
    """Of the rewordings; None sends none."""

    seed: int | None
    """The seed that is sent with requests; None sends none."""
    sent: BackendOptions
    """How requests are sent."""
    tasks: list[str]
    """The tasks to reword; all where empty."""
    types: list[str]
    """The question types to reword; all where empty."""
    language: str
    """The code of the language of the rewordings."""
    dry_run: bool
    """Whether to show an estimate and ask nothing."""
    as_json: bool
    """Whether to print the report as JSON."""


def _reword_templates(job: _Job, path: Path) -> None:
    from vgbench_gen.text.bank import load_bank
    from vgbench_gen.text.paraphrase.rules import find_language
    from vgbench_gen.text.paraphrase.templates import choose_cells, make_requests, paraphrase

    find_language(job.language)
    wanted, bank = choose_cells(job.tasks, job.types), load_bank(path, missing_ok=True)
    for entry in bank.stale:
        print(f"{path}, {entry.id}: its template changed; it is kept in the file and not used", file=sys.stderr)
    if job.dry_run:
        _print_estimate(make_requests(wanted, job.n, bank, job.language, bool(job.judge)))
        return
    with _open_asker(job) as asker, progress_bar("rewording", "template") as progress:
        bank, report = paraphrase(asker, bank, wanted, job.language, progress)
    if job.as_json:
        print_json(report.as_json() | {"bank": str(path), "entries": len(bank.entries)})
    else:
        print("\n".join(_list_counts(report.cells, report.total, report.language, report.vocabulary, "templates")))
        if report.full:
            print(f"no place left in {len(report.full)} of {len(wanted)} cells; remove entries to make room")
        print(f"{len(bank.entries)} wordings in {path}; read them and accept with --accept ID or --accept-all")
    _exit_if_short(report.stopped, report.total, nothing=not bank.entries)


def _reword_items(job: _Job, dataset: Path, out: Path) -> None:
    from vgbench_gen.pipeline import reword
    from vgbench_gen.store.dataset import load
    from vgbench_gen.text.paraphrase.templates import choose_cells

    choose_cells(job.tasks, job.types)
    # One wording is wanted of each text; the others would be thrown away.
    job = replace(job, n=min(job.n, 2))
    if job.dry_run:
        groups = reword.group_rows(load(dataset), job.tasks, job.types, job.language)
        _print_estimate(reword.make_requests(groups, job.n, bool(job.judge)))
        return
    with _open_asker(job) as asker, progress_bar("rewording", "text") as progress:
        report = reword.reword_items(dataset, asker, out, job.tasks, job.types, job.language, progress)
    if job.as_json:
        print_json(report.as_json())
    else:
        print("\n".join(_list_counts(report.cells, report.total, report.language, report.vocabulary, "texts")))
        if not report.stopped:
            print(f"{report.new} of {report.rows} rows reworded in {out}/items, fingerprint {report.fingerprint}")
    _exit_if_short(report.stopped, report.total, nothing=not report.new)


def _accept_entries(path: Path, ids: list[str] | None) -> None:
    from vgbench_gen.text.bank import accept_entries, load_bank, save_bank

    bank, changed = accept_entries(load_bank(path), ids)
    if changed:
        save_bank(bank)
    print(f"{len(changed)} entries of {path} are now reviewed")


@contextmanager
def _open_asker(job: _Job) -> Iterator[Asker]:
    import asyncio

    from vgbench_gen.backends.base import Settings
    from vgbench_gen.backends.spec import open_backend
    from vgbench_gen.core.config import parse_config
    from vgbench_gen.text.paraphrase.prompts import MAX_TOKENS
    from vgbench_gen.text.paraphrase.rounds import Asker

    backends = {spec: open_backend(spec, job.sent) for spec in dict.fromkeys([job.model, job.judge]) if spec}
    try:
        judge = backends.get(job.judge)
        given = {"temperature": job.temperature, "seed": job.seed, "max_tokens": MAX_TOKENS}
        settings = parse_config(given, Settings, "options")
        yield Asker(backends[job.model], judge, job.n, settings)
    finally:

        async def close() -> None:
            for backend in backends.values():
                await backend.close()

        asyncio.run(close())


def _print_estimate(requests: Iterable[Request]) -> None:
    from vgbench_gen.text.paraphrase.templates import estimate_tokens

    asked = list(requests)
    for request in asked[:_SHOWN_REQUESTS]:
        print(f"--- system\n{request.settings.system}")
        for message in request.messages:
            print(f"--- {message.role}")
            print("".join(getattr(part, "text", "") for part in message.parts))
    sent = sum(estimate_tokens(request) for request in asked)
    most = sum(request.settings.max_tokens or 0 for request in asked)
    print(
        f"--- {len(asked)} requests if all goes well, the first {min(len(asked), _SHOWN_REQUESTS)} shown; about {sent} "
        f"tokens sent and at most {most} received"
    )


def _list_counts(
    cells: dict[str, RewordCounts], total: RewordCounts, language: str, vocabulary: bool, what: str
) -> Iterator[str]:
    heads, rows = ("task/type", what, "reworded", "proposed", "accepted", "mostly refused for"), []
    for name, counts in [*sorted(cells.items()), ("all", total)]:
        why = ", ".join(f"{reason} {count}" for reason, count in counts.refused.most_common(3))
        rows.append((name, counts.texts, counts.reworded, counts.proposed, counts.accepted, why))
    yield from format_columns(rows, heads=heads, right=heads[1:-1], width=find_width())
    rate = f"{total.accepted / total.proposed:.0%} of the proposals accepted" if total.proposed else "no proposals"
    cost = "unknown" if total.uncosted else f"{total.usd:.4f} USD"
    yield (
        f"{rate}; {total.prompt_tokens} tokens sent, {total.completion_tokens} received, cost {cost}; "
        f"{total.cached} replies from the cache"
    )
    if total.failed:
        yield "requests without a reply: " + ", ".join(f"{kind} {count}" for kind, count in total.failed.items())
    if not vocabulary:
        yield (
            f"no vocabulary for the language {language}: units, axes, polarity and the like were left to the judge; "
            "read every wording"
        )


def _exit_if_short(stopped: str, total: RewordCounts, nothing: bool) -> None:
    if stopped:
        print(f"vgbench: stopped: {stopped}", file=sys.stderr)
    if stopped or total.failed or nothing:
        raise typer.Exit(1)
