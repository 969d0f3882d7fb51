"""Scores for the card: what programs and models reach on the set, where these very questions were scored."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from vgbench_gen.core.errors import ConfigError
from vgbench_gen.core.json_text import parse_json, read_json
from vgbench_gen.publish.words import format_table, load_word

_LAYOUTS = ("vgbench", "summary")  # tables that say most, the first one that is there
_PER_TASK = "baseline:constant"
# Programs of somebody's own and ours: they are nobody's result, so they go out only where somebody names them.
_NO_MODELS = ("scripted:", "baseline:")


def find_unpublished(folder: Path, named: Sequence[str]) -> list[str]:
    """Whose scores stay off the card: programs that answer by a script or a rule, unless they are named.

    Args:
        folder: of the build.
        named: models or specs that go out whatever they are.

    Raises:
        ConfigError: one of the names has no scores.
    """
    found: dict[str, tuple[str, ...]] = {}
    for path in sorted((folder / "scores").glob("*.jsonl")):
        try:
            head = _read_header(path)
        except (OSError, ValueError, TypeError):
            continue  # it is made again from the replies
        spec = str(head.get("spec", ""))
        found[spec] = (spec, str(head.get("model", "")))
    known = {name for aliases in found.values() for name in aliases}
    for name in named:
        if name not in known:
            listed = ", ".join(sorted(found)) or "nobody"
            raise ConfigError(f"--scores {name}: found no scores of it below {folder}; expected one of {listed}.")
    return sorted(
        spec for spec, aliases in found.items() if spec.startswith(_NO_MODELS) and not set(aliases) & set(named)
    )


def format_baselines(folder: Path, fingerprint: str, named: Sequence[str] = ()) -> str:
    """A section of the card, "" where the build has no scores, or scores of other questions.

    Args:
        folder: of the build; `vgbench eval`, `score` and `compare` wrote below it.
        fingerprint: of its questions.
        named: programs whose scores go out although they are no models (`find_unpublished`).
    """
    left_out = set(find_unpublished(folder, named))
    try:
        found = read_json(folder / "scores" / "report" / "tables.json")
        tables = {each["key"]: each for each in found["tables"]}
        heads = [_read_header(path) for path in sorted((folder / "scores").glob("*.jsonl"))]
        if not heads or any(head.get("dataset") != fingerprint for head in heads):
            return ""
        chosen = next((tables[key] for key in _LAYOUTS if key in tables), None)
        left_out |= {str(head.get("model", "")) for head in heads if head.get("spec") in left_out}
        shown = None if chosen is None else _format_table(chosen, left_out)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return ""  # scores are made again from the replies; the card does without
    if shown is None:
        return ""
    per_task = [load_word("baselines.per_task")] if f"| {_PER_TASK} |" in shown else []
    return "\n\n".join(["## Scores", load_word("baselines.intro"), shown, *per_task])


def _read_header(path: Path) -> Mapping[str, Any]:
    with path.open(encoding="utf-8") as file:
        return dict(parse_json(file.readline()))


def _format_table(found: Mapping[str, Any], left_out: Collection[str]) -> str | None:
    heads = [column["name"] for column in found["columns"]]
    lines = [line for line in found["lines"] if line["name"] not in left_out]
    rows = []
    for line in lines:
        cells = [line["cells"][head] for head in heads]
        rows.append((line["name"], _format_interval(cells[0]), *map(_number, cells[1:])))
    return format_table(("", *heads), rows, right=range(1, len(heads) + 1)) if rows else None


def _number(cell: Mapping[str, Any]) -> str:
    if cell["value"] is None:
        return "failed" if cell.get("value_all") == 0 else ""  # every request did (`Cell.failed`)
    return f"{100 * float(cell['value']):.1f}"


def _format_interval(cell: Mapping[str, Any]) -> str:
    if cell["low"] is None or cell["high"] is None:
        return _number(cell)
    return f"{_number(cell)} [{100 * float(cell['low']):.1f}, {100 * float(cell['high']):.1f}]"
