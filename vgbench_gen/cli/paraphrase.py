"""`vgbench paraphrase`: more wordings by a language model, checked, for a person to accept."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from pydantic import Field

from vgbench_gen.backends.spec import BackendOptions
from vgbench_gen.cli._flags import split_names
from vgbench_gen.cli._options import DEFAULT_MODEL, MAX_SEED, ModelSpec
from vgbench_gen.cli._screen import find_width, print_json, progress_bar
from vgbench_gen.cli._verbs import verb
from vgbench_gen.core.columns import format_columns
from vgbench_gen.core.config import Flag

if TYPE_CHECKING:
    from vgbench_gen.backends.base import Request
    from vgbench_gen.pipeline.reword import ItemRewordReport
    from vgbench_gen.text.paraphrase.rounds import Asker
    from vgbench_gen.text.paraphrase.templates import BankReport, Cell

_BANK = Path("bank.toml")
_SHOWN_REQUESTS = 2


@verb("paraphrase", "Vary", "vgbench paraphrase --model deepseek:deepseek-flash --bank bank.toml")
def paraphrase(
    model: ModelSpec = DEFAULT_MODEL,
    n: Annotated[int, Flag("Rewordings per request.", "N"), Field(ge=1, le=32)] = 8,
    bank: Annotated[Path, Flag("File that collects the wordings, proposed and reviewed.", "FILE")] = _BANK,
    task: Annotated[list[str] | None, Flag("Reword only these tasks.", "A,B")] = None,
    kind: Annotated[list[str] | None, Flag("Reword only these question types.", "A,B", names="--type")] = None,
    language: Annotated[str, Flag("Language of the rewordings.", "CODE")] = "en",
    judge_model: Annotated[str, Flag("Model that checks the meaning; default: --model.", "SPEC")] = "",
    no_judge: Annotated[bool, Flag("Do not have a model check the meaning.")] = False,
    temperature: Annotated[float, Flag("Temperature; below 0 = send none.", "T")] = 0.8,
    seed: Annotated[int | None, Flag("Seed to send with requests.", "N"), Field(le=MAX_SEED)] = None,
    accept: Annotated[list[str] | None, Flag("Mark this entry as reviewed; sends no request.", "ID")] = None,
    accept_all: Annotated[bool, Flag("Mark every entry of the bank as reviewed.")] = False,
    per_item: Annotated[Path | None, Flag("Reword each question of this dataset, not templates.", "DATASET")] = None,
    out: Annotated[Path | None, Flag("New dataset of --per-item; default: DATASET-reworded.", "FOLDER")] = None,
    dry_run: Annotated[bool, Flag("Print the first requests and estimated tokens, and exit.")] = False,
    *,
    sent: BackendOptions,
    as_json: bool = False,
) -> None:
    """Reword question templates, or a whole dataset, with a model.

    Every wording is checked by rules (same placeholders, numbers, units, axes and polarity), then a model judges
    whether the meaning is the same. Rejected wordings are requested again, up to three times. A bank holds at most 8
    wordings per task and question type, with status "proposed". Read and edit them, then set status = "reviewed" in the
    file or use --accept ID or --accept-all. `vgbench build RECIPE --bank FILE` draws from reviewed and shipped ones.

    A second run resumes: replies are cached in FILE.replies.sqlite unless --cache names another file. Exits 1 if
    nothing could be reworded, requests failed, or the budget was spent.
    """
    from vgbench_gen.tasks.base import tasks

    tasks.names()  # kinds from outside bring their templates
    if accept or accept_all:
        _accept_entries(bank, None if accept_all else accept or [])
        return
    from vgbench_gen.core.errors import ConfigError
    from vgbench_gen.text.paraphrase.rules import find_language
    from vgbench_gen.text.paraphrase.templates import choose_cells

    if out is not None and per_item is None:
        raise ConfigError(f"--out {out}: found no --per-item; expected the dataset to reword, or --bank for templates.")
    find_language(language)
    chosen = [*split_names(task)], [*split_names(kind)], language
    cells = choose_cells(*chosen[:2])
    target = bank
    if per_item is not None:
        target = out or per_item.resolve().with_name(f"{per_item.resolve().name}-reworded")
        n = min(n, 2)  # one wording is wanted of each text; the others would be thrown away
    judge = "" if no_judge else judge_model or model
    if dry_run:
        from vgbench_gen.pipeline import reword
        from vgbench_gen.store.dataset import load
        from vgbench_gen.text.bank import load_bank
        from vgbench_gen.text.paraphrase.templates import make_requests

        if per_item is None:
            _print_estimate(make_requests(cells, n, load_bank(bank, missing_ok=True), language, bool(judge)))
        else:
            _print_estimate(reword.make_requests(reword.group_rows(load(per_item), *chosen), n, bool(judge)))
        return
    sent = sent.model_copy(update={"cache": sent.cache or target.with_name(f"{target.name}.replies.sqlite")})
    with _open_asker(model, judge, n, None if temperature < 0 else temperature, seed, sent) as asker:
        if per_item is None:
            _reword_templates(asker, bank, cells, language, as_json)
        else:
            _reword_items(asker, per_item, target, chosen, as_json)


def _reword_templates(asker: Asker, path: Path, cells: Sequence[Cell], language: str, as_json: bool) -> None:
    from vgbench_gen.text.bank import load_bank
    from vgbench_gen.text.paraphrase.templates import paraphrase

    bank = load_bank(path, missing_ok=True)
    for entry in bank.stale:
        print(f"{path}, {entry.id}: its template changed; it is kept in the file and not used", file=sys.stderr)
    with progress_bar("rewording", "template") as progress:
        bank, report = paraphrase(asker, bank, cells, language, progress)
    if as_json:
        print_json(report.as_json() | {"bank": str(path), "entries": len(bank.entries)})
    else:
        print("\n".join(_list_counts(report, "templates")))
        if report.full:
            print(f"no place left in {len(report.full)} of {len(cells)} cells; remove entries to make room")
        print(f"{len(bank.entries)} wordings in {path}; read them and accept with --accept ID or --accept-all")
    _exit_if_short(report, nothing=not bank.entries)


def _reword_items(
    asker: Asker, dataset: Path, out: Path, chosen: tuple[list[str], list[str], str], as_json: bool
) -> None:
    from vgbench_gen.pipeline.reword import reword_items

    with progress_bar("rewording", "text") as progress:
        report = reword_items(dataset, asker, out, *chosen, progress)
    if as_json:
        print_json(report.as_json())
    else:
        print("\n".join(_list_counts(report, "texts")))
        if not report.stopped:
            print(f"{report.new} of {report.rows} rows reworded in {out}/items, fingerprint {report.fingerprint}")
    _exit_if_short(report, nothing=not report.new)


def _accept_entries(path: Path, ids: list[str] | None) -> None:
    from vgbench_gen.text.bank import accept_entries, load_bank, save_bank

    bank, changed = accept_entries(load_bank(path), ids)
    if changed:
        save_bank(bank)
    print(f"{len(changed)} entries of {path} are now reviewed")


@contextmanager
def _open_asker(
    model: str, judge: str, n: int, temperature: float | None, seed: int | None, sent: BackendOptions
) -> Iterator[Asker]:
    import asyncio

    from vgbench_gen.backends.base import Settings
    from vgbench_gen.backends.spec import open_backend
    from vgbench_gen.core.config import parse_config
    from vgbench_gen.text.paraphrase.prompts import MAX_TOKENS
    from vgbench_gen.text.paraphrase.rounds import Asker

    given = {"temperature": temperature, "seed": seed, "max_tokens": MAX_TOKENS}
    settings = parse_config(given, Settings, "options")
    backends = {spec: open_backend(spec, sent) for spec in dict.fromkeys([model, judge]) if spec}
    try:
        yield Asker(backends[model], backends.get(judge), n, settings)
    finally:
        for backend in backends.values():
            asyncio.run(backend.close())


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


def _list_counts(report: ItemRewordReport | BankReport, what: str) -> Iterator[str]:
    cells, total = report.cells, report.total
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
    if report.language != "en":
        yield (
            f"language {report.language}: units, axes, polarity and the like are compared in English alone and were "
            "left to the judge; read every wording"
        )


def _exit_if_short(report: ItemRewordReport | BankReport, nothing: bool) -> None:
    if report.stopped:
        print(f"vgbench: stopped: {report.stopped}", file=sys.stderr)
    if report.stopped or report.total.failed or nothing:
        raise typer.Exit(1)
