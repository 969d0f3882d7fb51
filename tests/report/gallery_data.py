"""A small dataset to look at: finished rows of the small room, plain rows for paging, and rows with hostile texts."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path

from tests.quality.conftest import compose_rows
from tests.store.examples import make_item, textured
from vgbench_gen.core.types import Item
from vgbench_gen.quality.review.lines import ReviewLine, digest_item
from vgbench_gen.store.media import MediaStore
from vgbench_gen.store.pictures import encode_jpeg
from vgbench_gen.store.shards import write_items
from vgbench_gen.tasks.row_evidence import RowEvidence
from vgbench_gen.text.numbers import format_matrix, format_significant

PLAIN = 130
HOSTILE = (
    "</script><script>document.title='owned'</script><!-- <img src=x onerror=\"alert(1)\"> {{ 7 * 7 }} "
    "\u2028 ' \" ` & javascript:alert(1) __proto__"
)


@dataclass(frozen=True)
class Looked:
    """folder: of the dataset. items: its rows. real: how many of them, from the first, have true evidence."""

    folder: Path
    items: list[Item]
    real: int

    def first(self, task: str, form: str) -> Item:
        return next(i for i in self.items[: self.real] if (i.task, i.question_type) == (task, form))


def hostile_item(index: int, image: str) -> Item:
    return make_item(
        index,
        [image],
        id=f"x{index} {HOSTILE}",
        question=HOSTILE,
        context=HOSTILE,
        options=(HOSTILE, "b", "c", "d"),
        answer="A",
        task="metric_depth",
        scene_id=HOSTILE,
        source=f"s {HOSTILE}",
        licence=HOSTILE,
        difficulty=HOSTILE,
        template_id=HOSTILE,
        group_id=f"g{HOSTILE}",
        evidence={"__proto__": {"polluted": HOSTILE}, "constructor": HOSTILE, "cameras": {HOSTILE: {"K": HOSTILE}}},
    )


def write_looked(folder: Path) -> Looked:
    rows = compose_rows(folder)
    jpeg = rows.media.put(encode_jpeg(textured(64, 48, 1)), "jpg")
    items = list(rows.items)
    # And one with the matrices that the recipe `vgbench` prints.
    warped = rows.one("homography_to_matrix", "multi-choice")
    matrices = (format_matrix(option.value, format_significant) for option in RowEvidence.of(warped).options)
    items.append(replace(warped, index=len(items), id=warped.id[::-1], options=tuple(matrices)))
    plain = [
        make_item(len(items) + k, [jpeg], task="plain_task", scene_id=f"scene{k % 3}", group_id=f"p{k}", evidence={})
        for k in range(PLAIN)
    ]
    items += plain
    items.append(hostile_item(len(items), jpeg))
    write_items(folder / "items", items, MediaStore(folder / "media"))
    return Looked(folder, items, len(rows.items))


def finding(kind: str, name: str, verdict: str, items: list[str], **cell: str) -> dict[str, object]:
    numbers = {
        "n": 900,
        "needed": 800,
        "value": 41.25,
        "low": 38.0,
        "high": float("nan"),
        "chance": 25.0,
        "limit": 28.0,
    }
    words = {"unit": "%", "detail": "", "task": "", "form": ""}
    return {"kind": kind, "name": name, "verdict": verdict, "items": items, **numbers, **words, **cell}


def write_verdicts(folder: Path, looked: Looked) -> None:
    """An audit with statistics that failed and others, and two reviewers, beside the dataset in `folder`."""
    ids = [item.id for item in looked.items]
    lines = [
        finding("rule", "medoid/odd name", "failed", [*ids[:3], "not here"], task="metric_depth", form="multi-choice"),
        finding("text", HOSTILE, "passed", [ids[2], ids[5], ids[-1]]),
        finding("rule", "longest", "reported", [ids[7]], task="metric_depth", form="multi-choice"),
        finding("answers", "none named", "failed", []),
    ]
    (folder / "audit").mkdir(exist_ok=True)
    (folder / "audit" / "audit.json").write_text(json.dumps({"findings": lines}))
    (folder / "audit" / "index.html").write_text("the audit's page")
    (folder / "review").mkdir(exist_ok=True)
    (folder / "review" / "ann.jsonl").write_bytes(
        b"".join(line.to_bytes() for line in verdict_lines("ann", looked.items)) + b'{"torn'
    )


def verdict_lines(reviewer: str, items: list[Item]) -> list[ReviewLine]:
    """Item 0: first unsure, then invalid with a flag; 1: valid; 2: planted only; 3: on other words; 4: blind only."""
    base = ReviewLine(
        stage="verdict", reviewer=reviewer, item=items[0].id, digest=digest_item(items[0]), batch="1", time="2026-01-01"
    )
    by = [base.model_copy(update={"item": i.id, "digest": digest_item(i)}) for i in items[:5]]
    return [
        by[0].model_copy(update={"verdict": "unsure"}),
        by[0].model_copy(update={"verdict": "invalid", "flags": ("occluded",), "note": HOSTILE}),
        by[1].model_copy(update={"verdict": "valid"}),
        by[2].model_copy(update={"verdict": "invalid", "planted": "flipped"}),
        by[3].model_copy(update={"verdict": "invalid", "digest": digest_item(replace(items[3], question="older"))}),
        by[4].model_copy(update={"stage": "answer", "answer": "A", "confidence": "sure"}),
    ]
