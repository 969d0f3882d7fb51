"""The card's table of scores of models and programs, if they were scored on exactly these questions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from vgbench_gen.core.json_text import parse_json, read_json
from vgbench_gen.core.lines import format_command
from vgbench_gen.core.stand_ins import config_error
from vgbench_gen.publish.release import Release
from vgbench_gen.publish.words import format_table, load_word

_LAYOUTS = ("vgbench", "summary")  # keys of tables; the first one in the report is shown
_PER_TASK = "baseline:constant"
# Specs of programs that are not models: their scores are published only if --scores names them.
_NO_MODELS = ("scripted:", "baseline:")


def find_unpublished(folder: Path, named: Sequence[str]) -> dict[str, list[str]]:
    """Reason -> specs of models and programs whose scores are not put on the card.

    Args:
        folder: of the build.
        named: models or specs from --scores; programs need to be named here.

    Raises:
        ConfigError: one of the names has no scores, or is not in the last comparison.
    """
    heads = _read_headers(folder)
    known = {name for head in heads for name in _list_names(head)}
    for name in named:
        if name not in known:
            listed = ", ".join(sorted(str(head.get("spec", "")) for head in heads)) or "nobody"
            where = f"--scores {name}"
            raise config_error(where, f"no scores of it below {folder}", f"one of {listed}", "Score it first.")
    compare = format_command("vgbench", "compare", folder)
    table = _read_table(folder)
    found: dict[str, list[str]] = {}
    for head in heads:
        asked_for = _list_names(head) & set(named)
        lines = [line for line in (table or {}).get("lines", ()) if _is_of(line, head)]
        if str(head.get("spec", "")).startswith(_NO_MODELS) and not asked_for:
            reason = "no model (--scores NAME puts it there)"
        elif asked_for and not lines:
            where, found_it = f"--scores {asked_for.pop()}", "it scored, but not in the last comparison"
            raise config_error(where, found_it, "it there", f"Run `{compare}` first.")
        elif not lines:
            reason = f"not in the last comparison ({compare} puts it there)"
        elif all(map(_has_failed, lines)):
            reason = "all of its requests failed"
        else:
            continue
        found.setdefault(reason, []).append(str(head.get("spec", "")))
    return {reason: sorted(specs) for reason, specs in sorted(found.items())}


def format_scores(release: Release) -> str:
    """The card's section on scores; "" if the build has no scores, or scores of other questions."""
    folder, fingerprint = release.folder, str(release.manifest.get("fingerprint", ""))
    specs = {spec for group in find_unpublished(folder, release.options.scores).values() for spec in group}
    heads, table = _read_headers(folder), _read_table(folder)
    if table is None or not heads or any(head.get("dataset") != fingerprint for head in heads):
        return ""
    try:
        shown = _format_table(table, [head for head in heads if head.get("spec") in specs])
    except (ValueError, KeyError, TypeError, AttributeError):
        shown = None  # a damaged report is no error: `vgbench compare` makes it again from the replies
    if shown is None:
        return ""
    per_task = [load_word("baselines.per_task")] if f"| {_PER_TASK} |" in shown else []
    return "\n\n".join(["## Scores", load_word("baselines.intro"), shown, *per_task])


def _read_headers(folder: Path) -> list[dict[str, Any]]:
    """The headers of the score files; a damaged file is skipped, since scores can be made again from the replies."""
    found = []
    for path in sorted((folder / "scores").glob("*.jsonl")):
        with suppress(OSError, ValueError, TypeError), path.open(encoding="utf-8") as file:
            found.append(dict(parse_json(file.readline())))
    return found


def _read_table(folder: Path) -> dict[str, Any] | None:
    """The most detailed table of the last comparison; None if there is no comparison."""
    try:
        found = read_json(folder / "scores" / "report" / "tables.json")
        tables = {each["key"]: dict(each) for each in found["tables"]}
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return next((tables[key] for key in _LAYOUTS if key in tables), None)


def _list_names(head: Mapping[str, Any]) -> set[str]:
    return {str(head.get("spec", "")), str(head.get("model", ""))} - {""}


def _is_of(line: Mapping[str, Any], head: Mapping[str, Any]) -> bool:
    """Whether a table line is of a model: its name, or the name and a stage or prompt set, as in "gpt-4o (blind)"."""
    return any(f"{line['name']} ".startswith(f"{name} ") for name in _list_names(head))


def _has_failed(line: Mapping[str, Any]) -> bool:
    """Whether every request of a table line failed."""
    first = next(iter(line["cells"].values()))
    return first["value"] is None and first["value_all"] == 0


def _format_table(found: Mapping[str, Any], left_out: Sequence[Mapping[str, Any]]) -> str | None:
    heads = [column["name"] for column in found["columns"]]
    rows = []
    for line in found["lines"]:
        if not _has_failed(line) and not any(_is_of(line, head) for head in left_out):
            texts = [_format_percent(line["cells"][head]["value"]) for head in heads]
            first, total = line["cells"][heads[0]], found["columns"][0]["total"]
            if first["low"] is not None:
                texts[0] += f" [{_format_percent(first['low'])}, {_format_percent(first['high'])}]"
            texts[0] += f" ({first['n']:,} of {total:,})" if first["n"] < total else ""
            rows.append((line["name"], *texts))
    return format_table(("", *heads), rows, right=range(1, len(heads) + 1)) if rows else None


def _format_percent(value: float | None) -> str:
    return "" if value is None else f"{100 * value:.1f}"
