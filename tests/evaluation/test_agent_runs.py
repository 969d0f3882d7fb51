"""Agents in the harness: asked, kept, resumed and told apart like any model, with a trace beside every reply."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any

import pytest

from tests.evaluation.test_saved import built
from tests.evaluation.test_spatialscore import file_of
from tests.evaluation.test_spatialscore import row as published
from tests.importers.source_files import photo
from vgbench_gen.agent.backend import AgentBackend
from vgbench_gen.agent.replay import replay
from vgbench_gen.agent.tool import tools
from vgbench_gen.backends.base import Backend, BackendError, Background, Message, Reply, Settings
from vgbench_gen.backends.scripted import Scripted
from vgbench_gen.backends.spec import BackendOptions
from vgbench_gen.core.errors import ConfigError, DatasetError
from vgbench_gen.core.rng import digest_bytes
from vgbench_gen.evaluation.compare import load_board
from vgbench_gen.evaluation.records import ReplyKey
from vgbench_gen.evaluation.replies import read_replies
from vgbench_gen.evaluation.runner import evaluate
from vgbench_gen.evaluation.saved import score_source
from vgbench_gen.evaluation.trace_log import TraceLog
from vgbench_gen.executors.local import WorkerPool
from vgbench_gen.pipeline.subset import HARD
from vgbench_gen.store.provenance import write_manifest

CROP = '{"thought": "look", "actions": [{"name": "Crop", "arguments": {"image": "image-0", "bbox": [0, 0, 0.5, 0.5]}}]}'
END = '{"thought": "done", "actions": [{"name": "Terminate", "arguments": {"answer": "<answer>(A)</answer>"}}]}'


@pytest.fixture(autouse=True)
def _without_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process of tools takes seconds to start, and every run starts its own."""
    monkeypatch.setattr(type(tools["Crop"]), "runs", "here")


def write_script(path: Path) -> Path:
    lines = [{"match": 'rect_px": [', "reply": END}, {"match": "", "reply": CROP, "times": 0}]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


@pytest.fixture
def core(tmp_path: Path) -> str:
    return f"scripted:{write_script(tmp_path / 'core.jsonl')}"


def ask(folder: Path, core: str, more: str = "?tools=none", cache: Path | None = None, **options: Any) -> Any:
    return evaluate(folder, f"agent:react+{core}{more}", backend=BackendOptions(cache=cache), **options)


def test_an_agent_is_asked_and_scored_like_any_model_and_leaves_traces(tmp_path: Path, core: str) -> None:
    source = built(tmp_path / "d")
    run = ask(tmp_path / "d", core, limit=1, circular=True)
    assert run.complete
    assert run.asked == 4
    stored = read_replies(run.path)
    assert stored.header.settings["setup"]["kind"] == "react"
    assert stored.header.settings["setup"]["tools"] == ["none"]
    log = TraceLog(run.path)
    for key, line in stored.lines.items():
        trace = log.read(key, line.request_digest)
        assert trace is not None
        assert [step["step"] for step in trace["steps"]] == ["core", "tool", "core"]
        made = trace["images"][-1]
        assert made["made_by"] == "Crop"
        path = log.find_image(made["digest"])
        assert path is not None
        assert digest_bytes(path.read_bytes()) == made["digest"]
    assert len(list(log.walk())) == 4
    assert trace is not None
    question, first, tool, last = replay(trace)
    assert [image.name for image in question.images] == ["image-0"]
    assert [image.name for image in tool.images] == ["image-1"]
    assert first.calls == (tool.call,)
    assert first.thought == "look"
    assert tool.values["rect_px"] == [0, 0, 31, 23]
    assert last.calls[0].name == "Terminate"
    assert sum(1 for _ in (run.path.with_suffix("") / "traces").iterdir()) == 1  # one crop, however often it was made
    (saved,) = score_source(source)
    assert {row.outcome for row in saved.rows} == {"right", "wrong"}


def test_other_tools_make_other_requests(tmp_path: Path, core: str, monkeypatch: pytest.MonkeyPatch) -> None:
    built(tmp_path / "d")
    assert ask(tmp_path / "d", core, limit=1).asked == 1
    assert ask(tmp_path / "d", core, limit=1).kept == 1
    monkeypatch.setattr(type(tools["Crop"]), "version", 99)
    run = ask(tmp_path / "d", core, limit=1)
    assert (run.kept, run.asked) == (0, 1)
    monkeypatch.undo()
    assert ask(tmp_path / "d", core, limit=1).kept == 1  # the first reply still stands
    assert ask(tmp_path / "d", core, "?tools=none&turns=3", limit=1).path != run.path


def test_replies_to_the_source_of_a_hard_set_bring_their_traces(tmp_path: Path, core: str) -> None:
    fingerprint = built(tmp_path / "d").fingerprint
    shutil.copytree(tmp_path / "d", tmp_path / "hard")
    write_manifest(tmp_path / "d", {"fingerprint": fingerprint})
    write_manifest(tmp_path / "hard", {"fingerprint": fingerprint, HARD: {"from": fingerprint}})
    asked, taken = (ask(tmp_path / name, core, limit=2) for name in ("d", "hard"))
    assert (asked.asked, taken.asked, taken.taken) == (2, 0, 2)
    log = TraceLog(taken.path)
    first, second = ({line.key.id: line for line in found.walk()} for found in (log, TraceLog(asked.path)))
    assert first == second
    (trace,) = {line.trace["images"][-1]["digest"] for line in log.walk()}
    assert log.find_image(trace) is not None
    assert read_replies(taken.path).lines == read_replies(asked.path).lines


class _Dies(Exception):
    pass


def test_a_killed_run_goes_on_without_asking_or_calling_again(
    tmp_path: Path, core: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    built(tmp_path / "d")
    cache = tmp_path / "cache"
    whole = ask(tmp_path / "d", core, cache=tmp_path / "other", replies=tmp_path / "whole")
    before = Scripted._send
    sent: list[str] = []
    answered: list[str] = []

    async def die_at_eighth(self: Scripted, call: Any) -> Any:
        sent.append(call.digest)
        if len(sent) == 8:
            raise _Dies
        answer = await before(self, call)
        answered.append(call.digest)
        return answer

    monkeypatch.setattr(Scripted, "_send", die_at_eighth)
    with pytest.raises(_Dies):
        ask(tmp_path / "d", core, cache=cache, replies=tmp_path / "killed")
    log = tmp_path / "killed" / whole.path.stem / "traces.jsonl"
    with log.open("ab") as file:
        file.write(b'{"schema":2,"id":"cut')  # a last line whose writer died
    before_kill = len(answered)
    run = ask(tmp_path / "d", core, cache=cache, replies=tmp_path / "killed")
    assert run.complete
    assert run.kept
    assert before_kill
    assert len(set(answered)) == len(answered), "what was answered is not asked again"
    told = {line.key: line.trace for line in TraceLog(run.path).walk()}
    assert told == {line.key: line.trace for line in TraceLog(whole.path).walk()}
    assert len(told) == 6
    assert sorted(log.read_bytes().splitlines()) == sorted(
        (tmp_path / "whole" / whole.path.stem / "traces.jsonl").read_bytes().splitlines()
    )


def test_a_damaged_log_of_traces_gives_the_others(tmp_path: Path, core: str) -> None:
    built(tmp_path / "d")
    run = ask(tmp_path / "d", core)
    log = TraceLog(run.path)
    lines = log.path.read_bytes().splitlines(keepends=True)
    wrong = json.dumps(json.loads(lines[2]) | {"rotation": "x"}).encode() + b"\n"
    log.path.write_bytes(lines[0] + b"\xff{not json\n" + wrong + b"".join(lines[3:]) + lines[1][:40])
    assert len(list(TraceLog(run.path).walk())) == 4
    assert TraceLog(run.path).find_image("../../../etc/passwd") is None


def test_links_out_of_the_folder_of_replies_are_not_followed(tmp_path: Path, core: str) -> None:
    """Neither for reading nor for writing, be it an image, their folder or the log; links within are."""
    built(tmp_path / "d")
    run = ask(tmp_path / "d", core)
    whole = [line.trace for line in TraceLog(run.path).walk()]
    digest = next(image["digest"] for image in whole[0]["images"] if image.get("made_by"))
    folder, outside = run.path.with_suffix(""), tmp_path / "outside"
    log, image = folder / "traces.jsonl", folder / "traces" / f"{digest}.jpg"
    assert TraceLog(run.path).find_image(digest) == image
    for path in (image, image.parent, log):
        kept, target = path.with_name("kept"), outside / path.name
        path.rename(kept)
        for inner in (kept, None):
            outside.mkdir(exist_ok=True)
            shutil.copytree(kept, target) if kept.is_dir() else shutil.copy(kept, target)
            path.symlink_to(inner or target)
            found = TraceLog(run.path)
            assert len(list(found.walk())) == (0 if inner is None and path == log else len(whole))
            assert (found.find_image(digest) is None) == (inner is None and path != log)
            if inner is None:
                before = {one: one.read_bytes() for one in outside.rglob("*") if one.is_file()}
                data = b"\xff\xd8\xffother" if path == image.parent else image.read_bytes()
                with pytest.raises(DatasetError, match="a link or path to"):
                    found.append(ReplyKey("new"), "d", whole[0], [data])
                assert before == {one: one.read_bytes() for one in outside.rglob("*") if one.is_file()}
            path.unlink()
            shutil.rmtree(outside)
        kept.rename(path)
    log.unlink()
    os.mkfifo(log)
    assert list(TraceLog(run.path).walk()) == []


@pytest.mark.parametrize(
    "reply",
    ['{"name": "Crop", "arguments": {"image": {1, 2}}}', '{"name": "Cr\\ud800op", "arguments": {"image": 1e999}}']
    + ['[{"name": "\\udc80", "arguments": {"x": "\\udc80"}}]', '{"name": "Crop", "arguments": {(1, 2): 3}}'],
)
def test_what_json_cannot_say_costs_a_turn_and_never_the_run(tmp_path: Path, reply: str) -> None:
    built(tmp_path / "d")
    script = tmp_path / "core.jsonl"
    script.write_text(json.dumps({"reply": reply}) + "\n" + json.dumps({"reply": "<answer>A</answer>"}) + "\n")
    run = ask(tmp_path / "d", f"scripted:{script}", limit=1)
    assert run.complete
    assert len(list(TraceLog(run.path).walk())) == 1


def test_a_trace_of_anything_is_replayed_without_an_error() -> None:
    wrong: list[Any] = [
        None,
        3,
        {"step": "tool", "arguments": 3, "images": [{}, "image-9"]},
        {"step": "core", "text": 1},
    ]
    found = replay({"images": [{"name": "image-0", "size_px": "ab"}, 3], "steps": wrong, "question": {}})
    assert [step.speaker for step in found] == ["question", "tool", "core"]
    assert replay({"steps": "text", "images": "text"})[0].images == ()


def test_the_source_is_told_and_evidence_only_to_those_who_read_it(
    tmp_path: Path, core: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    built(tmp_path / "d")
    told: list[Background] = []

    async def ask_about(self: Backend, messages: Any, settings: Settings, background: Background) -> Reply:
        told.append(background)
        raise BackendError("wrong_request", "enough")

    monkeypatch.setattr("vgbench_gen.agent.backend.AgentBackend.ask_about", ask_about)
    ask(tmp_path / "d", core, limit=1)
    assert told == [Background("VGBench")]
    path = file_of(tmp_path / "published", [published(0, "MMVP"), published(1, "QSpatialBench-Plus")])
    (path.parent / "photos").mkdir()
    for k in range(2):
        (path.parent / f"photos/{k}.jpg").write_bytes(photo(str(k)))
    evaluate(path, f"agent:react+{core}?tools=none", benchmark="spatialscore")
    assert told[1:] == [Background("SpatialScore/MMVP"), Background("SpatialScore/QSpatialBench-Plus")]


def test_agents_with_oracle_tools_are_told_what_rows_reveal_and_say_so_in_tables(
    tmp_path: Path, core: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = built(tmp_path / "d")
    monkeypatch.setattr("vgbench_gen.evaluation.background.reveal_shown", lambda asked: {"regions": []})
    told: list[Background] = []
    before = AgentBackend.ask_about

    async def ask_about(self: AgentBackend, messages: Any, settings: Settings, background: Background) -> Reply:
        told.append(background)
        return await before(self, messages, settings, background)

    monkeypatch.setattr(AgentBackend, "ask_about", ask_about)
    ask(tmp_path / "d", core, "?tools=classical,oracle", limit=1)
    ask(tmp_path / "d", core, "?tools=classical", limit=1)
    assert [background.evidence for background in told] == [{"regions": []}, {}]
    names = list(load_board({"set": source}).runs)
    assert sum(name.endswith("(oracle)") for name in names) == 1
    assert len(names) == 2


def test_agents_draw_nothing(tmp_path: Path, core: str) -> None:
    built(tmp_path / "d")
    with pytest.raises(ConfigError, match="draws nothing"):
        ask(tmp_path / "d", core, visual_cot="seed")


def test_halting_ends_at_the_next_request_and_keeps_what_was_sent(tmp_path: Path, core: str) -> None:
    from vgbench_gen.backends.spec import open_backend

    async def run() -> int:
        backend = open_backend(f"agent:react+{core}?tools=none", BackendOptions())
        async with backend:
            task = asyncio.create_task(backend.ask([Message.of("user", "Which?")], Settings()))
            while not backend.is_sending(task):
                await asyncio.sleep(0)
            backend.halt()
            with pytest.raises(BackendError) as caught:
                await task
            assert caught.value.kind == "cancelled"
            return backend.tally.requests

    assert asyncio.run(run()) == 1


def test_processes_that_do_not_start_end_the_run_with_a_sentence(
    tmp_path: Path, core: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never_starts(self: WorkerPool, *args: Any, **more: Any) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_exception(BrokenProcessPool("All workers expired"))
        return future

    built(tmp_path / "d")
    monkeypatch.setattr(type(tools["Crop"]), "runs", "process")
    monkeypatch.setattr(WorkerPool, "submit", never_starts)
    with pytest.raises(ConfigError, match="__main__"):
        ask(tmp_path / "d", core, limit=1)
