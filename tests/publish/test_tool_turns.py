"""Tool turns: what perfect tools measure of each question, then the steps and the answer, as trainers read it."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from tests.agent.planner import WITHOUT_TOOL, plan_with_oracle, sort_rects
from tests.quality.conftest import Rows, all_rows, room
from vgbench_gen.cli.main import main
from vgbench_gen.publish.exports import tool_turns
from vgbench_gen.store.shards import write_items
from vgbench_gen.training.lint import estimate_tokens
from vgbench_gen.training.rationales import make_rationale

__all__ = ["all_rows", "room"]


@pytest.fixture(scope="module")
def dataset(all_rows: Rows, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("turns") / "set"
    write_items(folder / "items", all_rows.items, all_rows.media)
    return folder


def read(out: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (out / "vgbench_set.jsonl").read_text("utf-8").splitlines()]


def test_calls_and_results_precede_the_rationale_and_the_answer(all_rows: Rows, dataset: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert main(["export", str(dataset), "--to", "tool-turns", "--rationale", "short", "--out", str(out)]) == 0
    rows, items = read(out), {item.id: item for item in all_rows.items}
    assert {row["id"] for row in rows} == {item.id for item in items.values() if item.task not in WITHOUT_TOOL}
    for row in rows:
        item, (_, user, *turns, last) = items[row["id"]], row["messages"]
        assert [one["role"] for one in turns] == ["function_call", "observation"] * (len(turns) // 2)
        assert [one["role"] for one in (row["messages"][0], user, last)] == ["system", "user", "assistant"]
        assert item.question in user["content"]
        assert [user["content"].count(sign) for sign in ("<image>", "image-")] == [len(row["images"])] * 2
        for k, path in enumerate(row["images"]):
            width, height = Image.open(out / path).size
            assert f"image-{k} ({width} x {height} pixels): <image>" in user["content"]
        calls = [json.loads(one["content"]) for one in turns[::2]]
        assert [(call["name"], call["arguments"]) for call in calls] == sort_rects(plan_with_oracle(item))
        results = [json.loads(one["content"]) for one in turns[1::2]]
        assert not any({"error", "cannot_tell"} & set(result) for result in results)
        assert last["content"] == f"{make_rationale(item, 'short')[0]}\n\nAnswer: {item.answer}"
        assert {call["name"] for call in calls} <= {one["function"]["name"] for one in json.loads(row["tools"])}
    depths = next(row["messages"] for row in rows if row["task"] == "relative_depth")
    known = json.loads(depths[3]["content"])["depths"]
    assert all(f"{depth:.2f} m" in depths[-1]["content"] for depth in known)
    made = json.loads((out / "export.json").read_text())
    assert made["questions"] == len(rows)
    assert made["left_out"] == {"no tool measures what they are about": len(items) - len(rows)}
    laid = {path.relative_to(out).as_posix() for path in (out / "images").rglob("*.*")}
    assert laid == {path for row in rows for path in row["images"]}  # none of a question that is left out
    info = json.loads((out / "dataset_info.json").read_text())["vgbench_set"]
    assert set(info["columns"].values()) <= set(rows[0])
    assert {info["tags"][name] for name in ("function_tag", "observation_tag")} == {"function_call", "observation"}
    first = {path.name: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    main(["export", str(dataset), "--to", "tool-turns", "--rationale", "short", "--out", str(out)])
    assert {path.name: path.read_bytes() for path in out.rglob("*") if path.is_file()} == first


def test_readers_open_the_rows_and_the_lint_finds_nothing_but_their_split(
    dataset: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    datasets = pytest.importorskip("datasets")
    out = tmp_path / "out"
    main(["export", str(dataset), "--to", "tool-turns", "--out", str(out)])
    files, cache = str(out / "vgbench_set.jsonl"), str(tmp_path / "cache")
    table = datasets.load_dataset("json", data_files=files, split="train", cache_dir=cache)
    assert Counter(table["task"]) == Counter(row["task"] for row in read(out))
    capsys.readouterr()
    assert main(["lint", str(out), "--json"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert told["longest_row_tokens"] > 2 * estimate_tokens(read(out)[0]["tools"]) > 3000  # longer than the tools alone
    assert (told["fates"], told["defects"]) == ({"kept": len(table)}, {"test_room": table["split"].count("val")})


def test_what_cannot_be_written_is_said(
    all_rows: Rows, dataset: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["export", str(dataset), "--to", "tool-turns", "--out", str(tmp_path / "out")]
    assert main([*command, "--family", "qwen3-vl"]) == 2
    assert "--family: found it with --to tool-turns; expected one of" in capsys.readouterr().err
    assert main([*command, "--tasks", "rotated_arrangement"]) == 2
    assert "no question that a tool helps with" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_damaged_evidence_costs_its_row_and_a_result_has_no_mark(
    all_rows: Rows, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    item, other = [one for one in all_rows.items if (one.task, one.question_type) == ("metric_depth", "multi-choice")][
        :2
    ]
    bare = [{**option, "evidence": {}} for option in item.evidence["options"]]
    damaged = replace(item, evidence={**item.evidence, "options": bare})
    write_items(tmp_path / "set" / "items", [damaged, other], all_rows.media)
    monkeypatch.setattr(tool_turns, "write_observation", lambda observation: "<image>")
    out = tmp_path / "out"
    assert main(["export", str(tmp_path / "set"), "--to", "tool-turns", "--out", str(out)]) == 0
    (row,) = read(out)
    assert row["id"] == other.id
    assert "".join(message["content"] for message in row["messages"]).count("<image>") == len(row["images"])
    (reason,) = json.loads((out / "export.json").read_text())["left_out"]
    assert "the evidence does not give what tools measure" in reason
