"""Boards of every kind, and every figure of their tables as `golden_tables.json` holds them.

`python -m tests.evaluation.golden_boards` writes that file anew; do so only where a figure is meant to change.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import vgbench_gen
from tests.agent.cores import without_processes
from tests.evaluation import score_rows, test_agent_tables, test_hard, test_saved
from tests.evaluation.benchmarks import mmsi_files, test_salbench
from tests.golden.machine import here
from tests.store.examples import make_item, textured
from vgbench_gen.backends.spec import BackendOptions
from vgbench_gen.core.rng import hash_stably, rng_for
from vgbench_gen.core.types import Item
from vgbench_gen.evaluation import hard
from vgbench_gen.evaluation.base import Source, benchmarks
from vgbench_gen.evaluation.benchmarks.rover.tables import average_scores, measure_agreement
from vgbench_gen.evaluation.prompting import digest_question, rotate_options
from vgbench_gen.evaluation.records import Header, ReplyKey, ReplyLine
from vgbench_gen.evaluation.replies import ReplyWriter, name_replies_file
from vgbench_gen.evaluation.runner import evaluate
from vgbench_gen.evaluation.tables import Comparison, compare_models
from vgbench_gen.report import scores_files
from vgbench_gen.report.scores_page import ComparedModels
from vgbench_gen.store.media import MediaStore
from vgbench_gen.store.pictures import encode_jpeg
from vgbench_gen.store.shards import write_items

FILE = Path(__file__).with_name("golden_tables.json")


def list_figures(found: Comparison) -> dict[str, Any]:
    """Every figure of the tables, as `tables.json` has them but shorter, and digests of the texts made of them."""
    told = scores_files.as_json(found)
    texts = {
        "json": scores_files.format_json(told),
        "csv": scores_files.format_csv(found),
        "markdown": scores_files.format_markdown(found, "x"),
        "latex": scores_files.format_latex(found),
        "text": "\n".join(line for table in found.tables for line in scores_files.format_text_lines(table)),
    }
    tables = {
        table["key"]: {
            "title": table["title"],
            "columns": [[head["name"], head["unit"], head["total"]] for head in table["columns"]],
            "lines": [
                [line["name"], line["kind"], line["note"], line["group"], [_shorten(c) for c in line["cells"].values()]]
                for line in table["lines"]
            ],
        }
        for table in told["tables"]
    }
    pairs = [list(pair.values()) for pair in told["pairs"]]
    return {"tables": tables, "pairs": pairs, "digests": {name: digest(text) for name, text in texts.items()}}


def _shorten(cell: Mapping[str, Any]) -> list[Any]:
    values = [cell[name] for name in ("value", "low", "high", "n", "asked", "value_all", "mark")]
    while len(values) > 1 and not values[-1]:
        values.pop()
    return values


def digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:16]


def list_compared(compared: ComparedModels, folder: Path) -> dict[str, Any]:
    """The figures of a comparison, what the terminal says, and further files of its benchmarks."""
    said = "\n".join(compared.lines()).replace(str(folder), "FOLDER")
    known = {"index.html", "tables.csv", "tables.json", "tables.md", "tables.tex"}
    page = compared.page.parent
    files = {path.name: path.read_text() for path in sorted(page.iterdir()) if path.is_file()}
    more = {name: text for name, text in files.items() if name not in known and path_is_table(name)}
    found = list_figures(compared.comparison)
    found["digests"]["lines"] = digest(said)
    return found | {"files": more}


def path_is_table(name: str) -> bool:
    return name.endswith((".csv", ".tex", ".md"))


# --- boards of entries and rows


def make_hand_board() -> Comparison:
    """Questions of every source and metric with twins, pairs, copies and parts of errors, and ten runs in two data
    sets: groups of size, failures, repeats, orders, controls, shots, drawings, prompt sets, baselines, an oracle."""
    entries = list(_list_entries())
    board = score_rows.board(entries)
    for k, name in enumerate(("Qwen2.5-VL-3B", "InternVL3-8B", "InternVL3-78B", "gpt-4o")):
        board.add(name, _list_rows(entries, name, (0.3, 0.35, 0.8, 0.99)[k]))
    staged: dict[str, tuple[dict[str, Any], ...]] = {
        "Qwen2.5-VL-3B": ({"stage": "blind"}, {"prompt_set": "final_line"}, {"stage": "wrong-images"}),
        "InternVL3-8B": ({"stage": "visual-cot"}, {"stage": "3-shot"}, {"stage": "blind", "prompt_set": "cot"}),
    }
    for name, several in staged.items():
        rows = _list_rows(entries, name, 0.4)
        for more in several:
            for dataset, one in _list_rows(entries, f"{name}{more}", 0.45, **more).items():
                rows[dataset] += one
        board.add(name, rows)
    board.add("baseline:random", _list_rows(entries, "random", 0.25))
    board.add("baseline:solvers", _list_rows(entries, "solvers", 0.8, declines=True))
    board.add("agent (oracle)", _list_rows(entries, "oracle", 0.97))
    board.add("dead", {"set": [score_rows.failed(entry.id) for entry in entries if entry.dataset == "set"]})
    few = _list_rows(entries, "few", 0.2)
    board.add("few", {name: rows[:25] for name, rows in few.items()})
    return compare_models(board, seed=3)


_ORIGINS = {
    "cvbench": ("count", "relation", "depth", "distance"),
    "MMIU": ("point_tracking", "threed_pose", "homography", "multi_view"),
    "BLINK": ("counting", "relative_depth", "multi-view"),
    "VSI-Bench_8": ("object_counting", "object_rel_direction_easy", "object_rel_direction_hard", "route_planning"),
    "RealWorldQA": ("",),
    "MMSI-Bench": ("",),
}


def _list_entries() -> Iterator[Any]:
    columns = list(score_rows.ORIGINS.items())
    for k in range(64):
        yield score_rows.entry(
            f"q{k}", origin=columns[k % 8][1], task=f"task_{columns[k % 8][0]}", truth="ABCD"[k * 7 % 4],
            difficulty=("easy", "medium", "hard")[k % 3], scans=("scannet", "ca1m")[k % 2], scene=f"scannet/{k // 3}",
            twin=f"t{k // 2}" if k < 12 else "", pair=f"p{k // 2}" if 20 <= k < 30 else "",
            content=f"c{k // 3}" if k > 50 else f"own{k}", origin_id=str(k),
            error_parts=("", "depth", "yaw", "depth+yaw") if k % 8 == 1 else (),
        )  # fmt: skip
    for k in range(24):
        yield score_rows.depth(
            f"d{k}", 0.5 + 0.37 * k, scene=f"scannet/{k // 2}", difficulty="hard", pair=f"dp{k // 2}"
        )
    yes = {"question_type": "judgment", "kind": "yes_no", "chance": 0.5, "options": 0, "task": "object_from_camera"}
    for k in range(16):
        yield score_rows.entry(f"y{k}", truth=("Yes", "No")[k % 2], twin=f"y{k // 2}", dataset="more", **yes)
    for source, origins in _ORIGINS.items():
        for k in range(12):
            fields: dict[str, Any] = {"source": source, "origin": origins[k % len(origins)], "dataset": "more"}
            fields |= {"task": "positional_cam_obj" if source.startswith("MMSI") else "", "category": "Counting"}
            if source == "VSI-Bench_8" and not k % 4:
                fields |= {
                    "kind": "count",
                    "truth": float(k + 1),
                    "rule": "delta_inclusive",
                    "options": 0,
                    "chance": 0.0,
                }
            yield (
                score_rows.entry(f"{source}{k}", scene=f"{source}/{k // 2}", truth="ABCD"[k % 4], **fields)
                if ("truth" not in fields)
                else score_rows.entry(f"{source}{k}", scene=f"{source}/{k // 2}", **fields)
            )
    for k in range(8):
        yield score_rows.entry(
            f"mmvp{k}", source="MMVP", origin_id=str(k + 1), category="Others", dataset="more", task=""
        )
        name = f"{k // 2}{'-flip' * (k % 2)}"
        yield score_rows.entry(f"3d{k}", source="3DSRBench", origin="height_higher", origin_id=name, dataset="more")
    for k in range(9):
        graded = {"source": "VSI-Bench", "kind": "length", "rule": "mra", "truth": 1.0 + k, "options": 0, "chance": 0.0}
        yield score_rows.entry(f"vsi{k}", origin="object_abs_distance", scene=f"v/{k}", dataset="more", **graded)


def _list_rows(
    entries: Sequence[Any], name: str, share: float, declines: bool = False, **more: Any
) -> dict[str, list[Any]]:
    rng = rng_for(0, "golden", name)
    found: dict[str, list[Any]] = {"set": [], "more": []}
    for k, entry in enumerate(entries):
        rows = found[entry.dataset]
        common = more | {"cost_usd": round(float(rng.random()) / 100, 6), "latency_s": k / 7, "tokens": float(k)}
        if declines and k % 3:
            rows.append(score_rows.row(entry.id, 0.0, outcome="refused", status="refusal", extracted=None, **common))
            continue
        for epoch in range(1 + (k % 5 == 0)):
            rows.append(_make_row(entry, rng, share, epoch, k, common))
        if k % 4 == 0 and entry.options:
            for turn in range(1, entry.options if k % 8 else entry.options - 1):
                good = float(rng.random() < 0.9)
                rows.append(score_rows.row(entry.id, good, rotation=turn, **common))
    return found


def _make_row(entry: Any, rng: Any, share: float, epoch: int, k: int, more: Mapping[str, Any]) -> Any:
    draw, good = rng.random(), float(rng.random() < share)
    more = {"epoch": epoch, **more}
    if more.get("stage") == "visual-cot":
        more["made"] = bool(rng.random() < 0.7)
    if draw < 0.04:
        return score_rows.failed(entry.id, **more)
    if draw < 0.08:
        outcome = ("unreadable", "no_answer") if draw < 0.06 else ("refused", "refusal")
        if isinstance(entry.truth, float):
            more |= {"delta_2": 0.0, "delta_125": 0.0, "mra": 0.0, "relative_error": math.inf}
        return score_rows.row(entry.id, 0.0, outcome=outcome[0], status=outcome[1], extracted=None, **more)
    if isinstance(entry.truth, float):
        error = float(rng.random()) * (2 - share)
        said: dict[str, Any] = {
            "extracted": entry.truth * (1 + error),
            "delta_2": float(error < 1),
            "delta_125": float(error < 0.25),
        }
        said |= {"mra": round(max(0.0, 1 - 2 * error), 1), "relative_error": error}
        score = said["mra"] if entry.rule == "mra" else said["delta_2"]
        return score_rows.row(entry.id, score, official=float(draw < 0.5), strict=float(draw < 0.3), **said, **more)
    words = {"Yes": "No", "No": "Yes"}.get(entry.truth) or "ABCD"["ABCD".index(entry.truth) - 1 - k % 3]
    read = entry.truth if good else words
    strict, followed = good * (draw < 0.8), bool(draw < 0.9)
    return score_rows.row(
        entry.id, good, extracted=read, official=float(draw < 0.6), strict=strict, followed=followed, **more
    )


# --- data sets with replies


def write_built(folder: Path) -> Source:
    """Forty rows of a built data set: choices, some of them copies, twins and pairs of judgments, lengths."""
    media = MediaStore(folder / "media")
    images = [media.put(encode_jpeg(textured(64, 48, seed)), "jpg") for seed in (1, 2)]
    items = []
    for k in range(40):
        place: dict[str, Any] = {"scene_id": f"scene{k // 3:04d}_00", "difficulty": ("easy", "hard")[k % 2]}
        place |= {"category_origin": "metric_depth_vqa", "category": "Depth and Distance", "group_id": f"g{k}"}
        if k % 4 < 2:
            parts = ("depth", "", "yaw", "depth+yaw") if k % 8 == 1 else ()
            asked = f"How deep is region {3 * (k // 3) if k > 30 else k}?"
            items.append(make_item(k, images[:1], question=asked, error_parts=parts, **place))
        elif k % 4 == 2:
            truth = ("Yes", "No")[k // 4 % 2]
            names = {"twin_id": f"t{k // 8}", "pair_id": f"p{k // 8}"}
            items.append(make_item(k, images, question_type="judgment", options=(), answer=truth, **names, **place))
        else:
            truth = f"{0.8 + k / 10:.2f} meters"
            asked = f"What is the depth in meters of region {k}?"
            more: dict[str, Any] = {"question_type": "open-ended", "options": (), "answer": truth, "question": asked}
            items.append(make_item(k, images[1:], **more, **place))
    write_items(folder / "items", items, media)
    return benchmarks["vgbench"].open(folder)


def write_spatialscore(folder: Path) -> Source:
    """Rows of several sources in SpatialScore's file."""
    kinds = (
        ("BLINK", "multi-choice", "How many chairs?\n(A) one\n(B) two", "B"),
        ("MMVP", "multi-choice", "Is the door open?\n(A) yes\n(B) no", "A"),
        ("VSI-Bench_8", "open-ended", "What is the distance in meters?", "1.5 meters"),
        ("VSR-ZeroShot", "judgment", "Is the cat on the mat?", "Yes"),
        ("3DSRBench", "multi-choice", "Which is higher?\n(A) cup\n(B) pot", "A"),
    )
    rows = [
        {
            "id": k, "category": ("Counting", "Others")[k % 2], "subcategory": "x", "input_modality": "image",
            "question_type": kind, "source": source, "question": f"{question} {k}", "answer": answer,
            "img_paths": [f"{k % 4}.png"],
        }
        for k in range(20)
        for source, kind, question, answer in [kinds[k % 5]]
    ]  # fmt: skip
    folder.mkdir(parents=True)
    (folder / "rows.json").write_text(json.dumps(rows))
    return benchmarks["spatialscore"].open(folder / "rows.json")


def write_replies(source: Source, spec: str, share: float, stage: str = "", **more: Any) -> None:
    """Replies of one model to all questions: right ones, wrong ones, talk, refusals, failures, orders, repeats."""
    rng = rng_for(0, "golden", spec, stage)
    path = name_replies_file(source.folder / "replies", spec)
    items = [source.item(row.row) for row in source.rows()]
    with ReplyWriter(path, _make_header(source, spec, spec.partition(":")[2])) as writer:
        for k, item in enumerate(items):
            turns = range(len(item.options) if k % 4 == 0 and not stage else 1)
            for turn, epoch in [*((turn, 0) for turn in turns), *([(0, 1)] if k % 6 == 0 else [])]:
                response, error = _say(rotate_options(item, turn), rng, share)
                told = {"error": error, "cost_usd": None if k % 3 else 0.001 * k, "latency_s": k / 3, **more}
                made = stage == "visual-cot" and k % 4 > 0
                key = ReplyKey(item.id, turn, epoch, stage, told.pop("prompt_set", "paper"))
                asked = digest_question(rotate_options(item, turn)) + "0123456789abcdef"
                told |= {"request_digest": asked, "usage": {"prompt_tokens": 9 + k} if k % 2 else {}}
                images = ({"name": "x", "made": True},) if made else ()
                line = ReplyLine(key=key, benchmark=item.benchmark, model="m", response=response, **told)
                if made:
                    drawing = {"key": key._replace(stage="visual-cot-image"), "response": "here", "cost_usd": 0.5}
                    writer.append(line.model_copy(update=drawing | {"error": ""}))
                writer.append(line.model_copy(update={"images": images}))
        writer.append(line.model_copy(update={"key": key._replace(id="gone"), "request_digest": ""}))


def _make_header(source: Source, spec: str, model: str) -> Header:
    return Header(dataset=source.fingerprint, benchmark=source.benchmark, spec=spec, model=model)


def _say(item: Item, rng: Any, share: float) -> tuple[str | None, str]:
    draw, good = rng.random(), rng.random() < share
    if draw < 0.05:
        return None, "timeout: no answer"
    if draw < 0.1:
        return ("I cannot determine that.", "") if draw < 0.07 else ("Either A or B", "")
    if good:
        return (item.answer, "") if draw < 0.6 else (f"Let me see.\nThe answer is {item.answer}.", "")
    if item.question_type == "open-ended":
        return f"About {0.3 + 4 * rng.random():.2f} m", ""
    others = {"Yes": "No", "No": "Yes"}
    letters = "ABCD"[: len(item.options) or 2]
    return others.get(item.answer) or letters[(letters.find(item.answer) + 1) % len(letters)], ""


def compare_sets(folder: Path) -> dict[str, Any]:
    """Three benchmarks on one board."""
    sets: dict[str, Source] = {
        "vgbench": write_built(folder / "built"),
        "spatialscore": write_spatialscore(folder / "s"),
    }
    sets["mmsi"] = benchmarks["mmsi"].open(mmsi_files.write(folder / "mmsi", [mmsi_files.row(k) for k in range(22)]))
    for source in sets.values():
        for k, name in enumerate(("openai:model-3b", "openai:model-70b", "scripted:baseline:solvers")):
            write_replies(source, name, 0.4 + 0.2 * k)
        write_replies(source, "openai:model-3b", 0.3, "blind")
        write_replies(source, "openai:model-70b", 0.6, "visual-cot")
    paths = [folder / "built", folder / "s" / "rows.json", folder / "mmsi"]
    compared = vgbench_gen.compare(paths, benchmark=list(sets), out=folder / "out")
    found = list_compared(compared, folder)
    alone = vgbench_gen.compare(folder / "built", seed=1)
    scores = vgbench_gen.score(folder / "built")
    figures = scores.to_pandas().drop(columns=["path", "fresh", "scorer_version"])
    frame = scores[0].to_pandas()
    columns = ["id", "task", "question_type", "scene", "rotation", "epoch", "stage", "outcome", "score", "official",
               "strict", "extracted", "delta_2", "mra", "relative_error", "cost_usd", "tokens", "made"]  # fmt: skip
    told = {"figures": figures.to_csv(index=False), "rows": digest(frame[columns].to_csv(index=False))}
    return {"pooled": found, "alone": list_compared(alone, folder), "scores": told}


def compare_salbench(folder: Path) -> dict[str, Any]:
    """Sets of labels, with examples and without, and rows that name difficulties."""
    place = test_salbench.write(folder / "sal")
    rows = [
        {"image": {"bytes": test_salbench.png(k), "path": None}, "question": "Q", "answer": ("Color", "Size")[k % 2],
         "image_id": str(k), "difficulty": ("hard", "easy", "odd")[k % 3]}
        for k in range(9)
    ]  # fmt: skip
    hard_place = folder / "hard"
    hard_place.mkdir()
    pq.write_table(pa.Table.from_pylist(rows), hard_place / "P3.parquet")
    found = {}
    for path in (place, hard_place):
        source = benchmarks["salbench"].open(path)
        for k, name in enumerate(("openai:model-3b", "openai:model-70b")):
            _write_labels(source, name, 0.4 + 0.2 * k, "")
        _write_labels(source, "openai:model-3b", 0.5, "3-shot")
        compared = vgbench_gen.compare(path, benchmark="salbench", out=path / "out")
        found[path.name] = list_compared(compared, folder)
    return found


def _write_labels(source: Source, spec: str, share: float, stage: str) -> None:
    rng = rng_for(0, "golden", "labels", spec, stage)
    path = name_replies_file(source.folder / "replies", spec)
    with ReplyWriter(path, _make_header(source, spec, spec)) as writer:
        for row in source.rows():
            item, draw = source.item(row.row), rng.random()
            said = (
                item.answer
                if rng.random() < share
                else ("Color", "Color, Size", "Shape", "Location, Size")[row.row % 4]
            )
            given: dict[str, Any] = {"response": said} if draw > 0.1 else {"response": None, "error": "timeout: x"}
            key = ReplyKey(item.id, stage=stage)
            writer.append(ReplyLine(key=key, benchmark=item.benchmark, model="m", request_digest="", **given))


def compare_agents(folder: Path) -> dict[str, Any]:
    """A core model with nothing, without tools, with tools, and with oracle tools."""
    (folder / "x").mkdir()
    source = test_saved.built(folder / "x" / "set")
    core = test_agent_tables.write_core(folder / "x" / "core.jsonl")
    with pytest.MonkeyPatch.context() as patch:
        without_processes.__wrapped__(patch)  # type: ignore[attr-defined]
        patch.chdir(folder / "x")
        core = "scripted:core.jsonl"
        for spec in (core, f"agent:react+{core}?tools=none", f"agent:react+{core}?tools=none&turns=4"):
            evaluate(source.folder, spec, backend=BackendOptions())
        evaluate(source.folder, core, blind=True)
        evaluate(source.folder, f"agent:react+{core}?tools=oracle,classical", limit=2)
    for path in (source.folder / "replies").glob("*.jsonl"):
        records = [json.loads(line) for line in path.read_text().splitlines()]
        for record in records:
            if "latency_s" in record:  # replies come in any order
                record["latency_s"] = int(hash_stably(record["key"]["id"], size=1), 16) / 8
        path.write_text("".join(json.dumps(record, separators=(",", ":")) + "\n" for record in records))
    return list_compared(vgbench_gen.compare(source.folder), folder)


def compare_hard(folder: Path) -> dict[str, Any]:
    """A hard set with the replies to the data set that it was chosen from."""
    made = test_hard.made.__wrapped__(_Folders(folder))  # type: ignore[attr-defined]
    result = hard.count_votes(benchmarks["vgbench"].open(made), test_hard.RULE)
    choice = hard.choose_hard(result, 0)
    hard.write_hard(made, made.parent / "hard", result, choice, 0)
    report = json.dumps(hard.make_report(result, choice, 0), sort_keys=True)
    return list_compared(vgbench_gen.compare(made.parent / "hard"), folder) | {"vote": digest(report)}


class _Folders:
    """As `tmp_path_factory`, in a given folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def mktemp(self, name: str) -> Path:
        (self.folder / name).mkdir()
        return self.folder / name


def average_judgments() -> dict[str, Any]:
    """ROVER's averages and how far two judges agree."""
    rng = rng_for(0, "golden", "rover")
    runs = {}
    for name in ("first", "second"):
        runs[name] = [
            {
                "sample_id": str(k), "dimension": ("science", "logic", None)[k % 3], "reasoning_type": "causal",
                "reasoning_process_score": int(rng.integers(1, 6)),
                "reasoning_visual_score": None if k % 7 == 0 else int(rng.integers(2, 5)),
            }
            for k in range(30)
        ]  # fmt: skip
    found = {name: average_scores(rows, ("reasoning_process", "reasoning_visual")) for name, rows in runs.items()}
    return {"averages": found, "agreement": measure_agreement(runs)}


FILED: dict[str, Callable[[Path], dict[str, Any]]] = {
    "sets": compare_sets,
    "salbench": compare_salbench,
    "agents": compare_agents,
    "hard": compare_hard,
}


def list_golden(name: str, folder: Path) -> dict[str, Any]:
    """The figures of one board, as they come back from JSON."""
    if name in FILED:
        found = FILED[name](folder)
    else:
        found = list_figures(make_hand_board()) if name == "hand" else average_judgments()
    plain: dict[str, Any] = json.loads(json.dumps(found))
    return plain


NAMES = ("hand", "rover", *FILED)


def main() -> None:
    """Write the file anew."""
    golden: dict[str, Any] = {"machine": here()}
    for name in NAMES:
        with tempfile.TemporaryDirectory() as folder:
            golden[name] = list_golden(name, Path(os.path.realpath(folder)))
    FILE.write_text(json.dumps(golden, separators=(",", ":"), ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
