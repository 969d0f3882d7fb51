"""Tool turns: what perfect tools measure of each question, then the steps and the answer, as trainers read it."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from tests.agent.planner import WITHOUT_TOOL
from tests.quality.conftest import Rows, all_rows, room
from vgbench_gen.cli.main import main
from vgbench_gen.store.shards import write_items
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
        item, (_, user, calling, *results, last) = items[row["id"]], row["messages"]
        roles = ["system", "user", "assistant", *["tool"] * len(results), "assistant"]
        assert [one["role"] for one in row["messages"]] == roles
        assert item.question in user["content"]
        assert [user["content"].count(sign) for sign in ("<image>", "image-")] == [len(row["images"])] * 2
        for k, path in enumerate(row["images"]):
            width, height = Image.open(out / path).size
            assert f"image-{k} ({width} x {height} pixels): <image>" in user["content"]
        assert [one["tool_call_id"] for one in results] == [one["id"] for one in calling["tool_calls"]]
        said = "".join(one["content"] for one in results)
        assert "error" not in said
        assert "cannot_tell" not in said
        assert last["content"] == f"{make_rationale(item, 'short')[0]}\n\nAnswer: {item.answer}"
        offered = {one["function"]["name"] for one in json.loads(row["tools"])}
        assert offered >= {one["function"]["name"] for one in calling["tool_calls"]}
    depths = next(row["messages"] for row in rows if row["task"] == "relative_depth")
    known = json.loads(depths[3]["content"])["depths"]
    assert all(f"{depth:.2f} m" in depths[-1]["content"] for depth in known)
    made = json.loads((out / "export.json").read_text())
    assert made["questions"] == len(rows)
    assert made["left_out"] == {"no tool measures what they are about": len(items) - len(rows)}
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
