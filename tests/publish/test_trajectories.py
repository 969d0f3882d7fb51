"""Traces as training rows: what led to right answers, call by call, as other programs read it."""

from __future__ import annotations

import json
import os
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.agent.cores import plan, step, without_processes
from tests.evaluation.test_saved import built
from vgbench_gen.backends.spec import BackendOptions
from vgbench_gen.cli.main import main
from vgbench_gen.core.errors import ConfigError, DatasetError
from vgbench_gen.evaluation.options import AskOptions
from vgbench_gen.evaluation.runner import evaluate
from vgbench_gen.publish.export import export
from vgbench_gen.training.families import find_family
from vgbench_gen.training.lint import lint
from vgbench_gen.training.trainers import find_trainer

__all__ = ["without_processes"]

HALF = {"image": "image-0", "bbox": [0, 0, 0.5, 0.5]}


def write_core(path: Path) -> str:
    """In ReAct: says nothing useful, calls a tool that there is not, then two at once, then answers B, which is right
    for the first two questions. Plans: one that cannot be carried out, one of two calls."""
    both = json.dumps(
        {"thought": "Look closer.", "actions": [{"name": "Crop", "arguments": HALF}, {"name": "Calculate"}]}
    )
    end = step("Terminate", answer="<answer>B</answer>")
    calls = (("Crop", HALF), ("Calculate", {"expression": "6*7"}))
    lines: list[dict[str, Any]] = [
        {"match": "Reply with <thinking>", "reply": "<thinking>42, so B</thinking><answer>B</answer>"},
        {"match": "Say step by step", "reply": "The number is 42."},
        {"match": "This plan cannot be carried out", "reply": plan(*calls)},
        {"match": "Plan which tools", "reply": "I would rather not."},
        {"match": "Only the first action", "reply": end},
        {"match": "there is no tool", "reply": both},
        {"match": "strict JSON", "reply": step("Fly", far=True)},
        {"match": "TOOLS", "reply": "Hm."},
        {"match": "", "reply": "B", "times": 0},
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return f"scripted:{path}"


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("trajectories") / "set"
    built(folder)
    core = write_core(folder.parent / "core.jsonl")
    with pytest.MonkeyPatch.context() as patch:
        without_processes.__wrapped__(patch)  # type: ignore[attr-defined]
        evaluate(folder, core)
        for more in ("react+{}?tools=none", "plan-execute+{}?tools=none", "react+{}?tools=oracle"):
            evaluate(folder, f"agent:{more.format(core)}", backend=BackendOptions())
    return folder


def read(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "vgbench_set.jsonl").read_text("utf-8").splitlines()]


def write(asked: Path, out: Path, **options: Any) -> Path:
    return export(built(asked), "trajectories", out, AskOptions(), **options).path


def test_right_answers_become_conversations_with_calls_of_their_own(asked: Path, tmp_path: Path) -> None:
    folder = write(asked, tmp_path / "out")
    rows = read(folder)
    # B is right for two of six questions; the model alone has no trace, oracle tools are not asked for.
    assert sorted((row["kind"], row["id"]) for row in rows) == [
        (kind, f"item000{k}") for kind in ("plan-execute", "react") for k in (0, 1)
    ]
    row = next(row for row in rows if row["kind"] == "react")
    user, fly, refused, crop, seen, last = row["messages"]
    roles = [message["role"] for message in row["messages"]]
    assert roles == ["user", "assistant", "tool", "assistant", "tool", "assistant"]
    assert "Ünïcode" in user["content"]
    assert user["content"].startswith("image-0 (64 x 48 pixels): <image>\n")
    (call,) = fly["tool_calls"]
    assert call["function"] == {"name": "Fly", "arguments": '{"far": true}'}
    assert (refused["tool_call_id"], refused["name"]) == (call["id"], "Fly")
    assert "there is no tool" in json.loads(refused["content"])["error"]
    assert crop["content"] == "Look closer."
    (call,) = crop["tool_calls"]  # the second action was not carried out
    assert json.loads(call["function"]["arguments"])["bbox"] == [0, 0, 0.5, 0.5]
    assert seen["tool_call_id"] == call["id"]
    values, shown = seen["content"].split("\n")
    assert json.loads(values)["rect_px"] == [0, 0, 31, 23]
    assert shown == "image-1 (32 x 24 pixels): <image>"
    assert "".join(message["content"] for message in row["messages"]).count("<image>") == len(row["images"]) == 2
    assert last["tool_calls"] == []
    assert last["content"].endswith("<answer>B</answer>")
    assert row["failures"] == 3
    assert row["answer"] == "B"
    for path in row["images"]:
        assert (folder / path).is_file()
    assert "Hm." not in json.dumps(row)
    report = lint(folder, find_trainer("ms-swift"), find_family("qwen2.5-vl"))
    assert not report.defects.keys() & {"marks_over", "marks_under", "stray_mark", "roles", "layout"}, report.defects
    assert report.fates == {"kept": len(rows)}


def test_a_plan_is_one_turn_with_all_its_calls(asked: Path, tmp_path: Path) -> None:
    row = next(row for row in read(write(asked, tmp_path / "out")) if row["kind"] == "plan-execute")
    assert [message["role"] for message in row["messages"]] == ["user", "assistant", "tool", "tool", "assistant"]
    plan, crop, number, last = row["messages"][1:]
    assert [call["function"]["name"] for call in plan["tool_calls"]] == ["Crop", "Calculate"]
    assert [message["tool_call_id"] for message in (crop, number)] == [call["id"] for call in plan["tool_calls"]]
    assert json.loads(number["content"])["result"] == 42
    assert last["content"].startswith("The number is 42.")
    assert last["content"].count("<answer>") == 1
    tools = {one["function"]["name"]: one["function"] for one in json.loads(row["tools"])}
    assert "Terminate" not in tools
    assert set(tools["Crop"]["parameters"]["required"]) == {"image", "bbox"}
    assert all(one["description"] for one in tools.values())


def test_datasets_reads_the_rows(asked: Path, tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets")
    folder = write(asked, tmp_path / "out")
    table = datasets.load_dataset(
        "json", data_files=str(folder / "vgbench_set.jsonl"), split="train", cache_dir=str(tmp_path / "cache")
    )
    rows = read(folder)
    assert len(table) == len(rows) == 4
    for loaded, row in zip(table, rows, strict=True):
        assert loaded == row


def test_oracle_traces_are_left_out_unless_asked_for(asked: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    main(["export", str(asked), "--to", "trajectories", "--out", str(out)])
    assert all("oracle" not in row["tiers"] for row in read(out))
    assert "left out" in (out / "README.md").read_text()
    assert json.loads((out / "export.json").read_text())["questions"] == 4
    first = {path.name: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    main(["export", str(asked), "--to", "trajectories", "--out", str(out)])
    assert {path.name: path.read_bytes() for path in out.rglob("*") if path.is_file()} == first
    main(["export", str(asked), "--to", "trajectories", "--out", str(out), "--oracle"])
    assert sum("oracle" in row["tiers"] for row in read(out)) == 2
    for path in out.rglob("*"):  # meant to be carried elsewhere
        assert path.suffix == ".jpg" or not path.is_file() or str(asked.parent) not in path.read_text("utf-8"), path
    with pytest.raises(ConfigError, match=r"--oracle: found it with --to chat-jsonl; expected one of trajectories"):
        export(built(asked), "chat-jsonl", tmp_path / "x", AskOptions(), oracle=True)


SECRET = "not an image and not for others"


@pytest.mark.parametrize(
    "harm",
    [
        "image links out",
        "folder links out",
        "image is a pipe",
        "null",
        '"x"',
        '{"a": 1}',
        "[1]",
        '[{"name": "image-0"}]',
    ]
    + ['[{"name": "image-0", "digest": ["a"], "size_px": [1, 2]}]', '[{"name": "image-0", "size_px": [1e400, 2]}]'],
)
def test_a_damaged_trace_costs_its_row_and_is_counted(asked: Path, tmp_path: Path, harm: str) -> None:
    data = tmp_path / "set"
    shutil.copytree(asked, data)
    secret = tmp_path / "secret"
    secret.mkdir()
    specs = {
        path: json.loads(path.read_text().partition("\n")[0])["spec"] for path in (data / "replies").glob("*.jsonl")
    }
    (replies,) = (path for path, spec in specs.items() if "react" in spec and "tools=none" in spec)
    folder = replies.with_suffix("")
    made = folder / "traces"
    if harm == "folder links out":
        made.rename(secret / "traces")
        made.symlink_to(secret / "traces")
    for image in made.iterdir():
        (secret / image.name).write_text(SECRET)
        if "image" in harm.split():
            image.unlink()
            image.symlink_to(secret / image.name) if "links" in harm else os.mkfifo(image)
    if " " not in harm or harm[0] in "{[":
        log = folder / "traces.jsonl"
        log.write_text(
            re.sub(r'"images":\[{"name":"image-0".*?\],"steps"', f'"images":{harm},"steps"', log.read_text())
        )
        assert f'"images":{harm},"steps"' in log.read_text()
    done = export(built(data), "trajectories", tmp_path / "out", AskOptions())
    rows = read(done.path)
    assert {row["kind"] for row in rows} == {"plan-execute"}
    assert "2 right answers have no complete trace and are left out" in done.run
    assert not any(SECRET in path.read_bytes().decode("latin-1") for path in done.path.rglob("*") if path.is_file())


def test_a_set_without_right_traces_has_no_rows(asked: Path, tmp_path: Path) -> None:
    source = built(tmp_path / "d")
    script = tmp_path / "c.jsonl"
    script.write_text(json.dumps({"match": "", "times": 0, "reply": step("Terminate", answer="C")}) + "\n")
    evaluate(tmp_path / "d", f"agent:react+scripted:{script}?tools=none", limit=2)
    with pytest.raises(DatasetError, match="no trace that ends at the truth"):
        export(source, "trajectories", tmp_path / "out", AskOptions())
    assert not (tmp_path / "out").exists()
