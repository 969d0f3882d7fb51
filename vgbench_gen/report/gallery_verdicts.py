"""What audits and people said about items, as far as it stands beside the dataset."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from vgbench_gen.core.json_text import read_json
from vgbench_gen.quality.review.lines import keep_last
from vgbench_gen.quality.review.log import FOLDER, read_logs
from vgbench_gen.report.audit_table import describe, read_record
from vgbench_gen.store.files import dataset_error

_MAX_BYTES = 256 * 2**20


def read_audit(folder: Path, rows: Mapping[str, int]) -> list[dict[str, Any]]:
    """Figures of `audit/audit.json` that failed, {words, items}, with their items as rows; [] where no audit was made.

    rows: item id -> row. Items that the gallery does not hold are left out.

    Raises:
        DatasetError: the file is not what an audit writes.
    """
    path = folder / "audit" / "audit.json"
    if not path.is_file():
        return []
    try:
        findings = [read_record(record) for record in read_json(path, "keep", _MAX_BYTES)["findings"]]
    except (KeyError, TypeError, ValueError) as error:
        remedy = "Run `vgbench audit` again, or remove the file."
        raise dataset_error(path, f"no audit ({type(error).__name__})", "what `vgbench audit` writes", remedy) from None
    kept = [
        (describe(found), [rows[name] for name in found.items if name in rows]) for found in findings if found.failed
    ]
    return [{"words": words, "items": items} for words, items in kept if items]


def read_reviews(folder: Path, rows: Mapping[str, int], digests: Mapping[str, str]) -> list[dict[str, Any]]:
    """The last verdict of every reviewer on every item: {row, reviewer, verdict, flags, note}.

    digests: item id -> `lines.digest_item`. Verdicts on planted defects, and on other words than the item has
    now, are not about the item and are left out.

    Raises:
        DatasetError: a file in `review/` is not what `vgbench review` writes.
    """
    last: dict[tuple[int, str], dict[str, Any]] = {}
    for reviewer, lines in read_logs(folder / FOLDER).items():
        for line in keep_last(lines):
            if line.stage != "verdict" or line.planted or line.item not in rows or line.digest != digests[line.item]:
                continue
            row = rows[line.item]
            last[row, reviewer] = {
                "row": row,
                "reviewer": reviewer,
                "verdict": line.verdict,
                "flags": list(line.flags),
                "note": line.note,
            }
    return [last[key] for key in sorted(last)]
