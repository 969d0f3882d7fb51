"""A core model that plans well, and ones that plan badly in each known way, from the question to the tables."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.agent.planner import WITHOUT_TOOL, Planner, ask_of
from tests.quality.conftest import Rows
from vgbench_gen.agent.tool import Tool, ToolInput, ToolOutput, tools
from vgbench_gen.agent.workers import Workers
from vgbench_gen.backends.scripted import Scripted
from vgbench_gen.backends.spec import BackendOptions, Needs, Provider, providers
from vgbench_gen.cli.main import main
from vgbench_gen.core.types import ALPHABET, Item
from vgbench_gen.evaluation.agent_tables import make_agent_tables
from vgbench_gen.evaluation.agent_traces import BELIEVED, FAILURES, IGNORED, NO_TOOL, NOT_JUDGED, count_use
from vgbench_gen.evaluation.base import Source, benchmarks
from vgbench_gen.evaluation.board import ORACLE
from vgbench_gen.evaluation.compare import load_board
from vgbench_gen.evaluation.runner import evaluate
from vgbench_gen.evaluation.saved import score_source
from vgbench_gen.evaluation.trace_log import TraceLog
from vgbench_gen.store.shards import write_items
from vgbench_gen.tasks.base import tasks

Say = Callable[[Planner, str], str]


@pytest.fixture(scope="module")
def items(all_rows: Rows) -> list[Item]:
    """Multi-choice questions of every task but those that no tool of ours answers; no two in the same
    words."""
    asked = [item for item in all_rows.items if item.question_type == "multi-choice" and item.task not in WITHOUT_TOOL]
    found = {ask_of(item): item for item in asked}
    assert len(found) >= 50
    return list(found.values())


@pytest.fixture
def source(items: list[Item], all_rows: Rows, tmp_path: Path) -> Source:
    write_items(tmp_path / "set" / "items", items, all_rows.media)
    (tmp_path / "set" / "media").symlink_to(all_rows.media.root)
    return benchmarks["vgbench"].open(tmp_path / "set")


@pytest.fixture
def plan(items: list[Item], monkeypatch: pytest.MonkeyPatch) -> Callable[[Say], None]:
    """Makes `planner:NAME` a model; given a function, it says what that makes of the prompt."""
    said: list[Say] = [Planner.say]

    class PlannerProvider(Provider):
        def needs(self, name: str) -> Needs:
            return Needs("planner:x", needs_key=False)

        def open(self, name: str, model: str, options: BackendOptions) -> Any:
            class Played(Planner):
                def say(self, text: str) -> str:
                    return said[0](self, text)

            planner = Played(items, True, options)
            planner.spec, planner.model = f"{name}:{model}", model
            return planner

    providers.names()
    monkeypatch.setitem(providers._entries, "planner", PlannerProvider())
    return lambda say: said.__setitem__(0, say)


@pytest.mark.parametrize("kind", ["react", "plan-execute"])
@pytest.mark.parametrize("mode", ["sane", "official"])
def test_a_good_plan_with_oracle_tools_answers_every_task(kind: str, mode: str, source: Source, plan: object) -> None:
    run = evaluate(source.folder, f"agent:{kind}+planner:good?tools=oracle&mode={mode}")
    assert run.complete
    (saved,) = score_source(source)
    right = {row.id: row.outcome == "right" for row in saved.rows}
    by_task: dict[str, list[bool]] = {}
    for row in source.rows():
        by_task.setdefault(row.task, []).append(right[row.id])
    assert set(by_task) == set(tasks.names()) - WITHOUT_TOOL
    for task, found in by_task.items():
        assert sum(found) >= 0.95 * len(found), (task, found)


def _ignore(planner: Planner, text: str) -> str:
    """Does all the right calls and gives another letter than they say."""
    said = Planner.say(planner, text)
    for k, letter in enumerate(ALPHABET[:6]):
        if f"<answer>{letter}</answer>" in said:
            return said.replace(f"<answer>{letter}</answer>", f"<answer>{ALPHABET[(k + 1) % 4]}</answer>")
    return said


def _mistake(planner: Planner, text: str) -> str:
    """Calls a tool that there is not, or with arguments that do not fit, by the question."""
    said = Planner.say(planner, text)
    if '"name": "Terminate"' in said or '"actions"' not in said:
        return said
    step = json.loads(said)
    if len(text) % 2:
        step["actions"][0]["name"] = "Fly"
    else:
        step["actions"][0]["arguments"]["image"] = "/etc/passwd"
    return json.dumps(step)


def _babble(planner: Planner, text: str) -> str:
    return "Let me think about it." if "OBSERVATION" not in text else Planner.say(planner, text)


def _hurry(planner: Planner, text: str) -> str:
    """Two actions at once."""
    said = Planner.say(planner, text)
    if '"name": "Terminate"' in said or '"actions"' not in said:
        return said
    step = json.loads(said)
    return json.dumps(step | {"actions": step["actions"] * 2})


def _never_end(planner: Planner, text: str) -> str:
    said = Planner.say(planner, text)
    if '"name": "Terminate"' in said:
        return json.dumps({"thought": "", "actions": [{"name": "EstimateCameraParameters", "arguments": {}}]})
    return said


def count(source: Source, items: list[Item]) -> dict[str, int]:
    """Kind -> in how many answers, of the only agent."""
    (saved,) = score_source(source)
    by_id = {item.id: item for item in items}
    answers = count_use([(saved, by_id.get)], ("", saved.rows[0].prompt_set)).answers
    assert len(answers) == len(items), "no row is lost"
    wrong = answers[~answers["right"]]
    judged = wrong[[IGNORED, BELIEVED, NO_TOOL, NOT_JUDGED]].to_numpy()
    assert (judged.sum(axis=1) == 1).all(), "every wrong answer is explained"
    return {kind: int((answers[kind] > 0).sum()) for kind in FAILURES} | {"wrong": len(wrong)}


def test_what_right_tools_said_and_nobody_heeded_is_counted_for_every_task(
    source: Source, items: list[Item], plan: Callable[[Say], None]
) -> None:
    plan(_ignore)
    assert evaluate(source.folder, "agent:react+planner:deaf?tools=oracle").complete
    found = count(source, items)
    assert found["wrong"] == len(items)
    assert found[IGNORED] == found["wrong"]
    assert found[BELIEVED] == 0


def test_wrong_tools_that_were_believed_are_counted(
    source: Source, items: list[Item], plan: Callable[[Say], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    tool = tools["OracleRegionDepth"]
    before = tool.run

    def turn_round(given: ToolInput) -> ToolOutput:
        values = dict(before(given).values)
        return ToolOutput(values | {"depths": [4.0 / depth for depth in values["depths"]]})

    monkeypatch.setattr(tool, "run", turn_round)
    evaluate(source.folder, "agent:react+planner:misled?tools=oracle", tasks=("metric_depth", "relative_depth"))
    (saved,) = score_source(source)
    by_id = {item.id: item for item in items}
    answers = count_use([(saved, by_id.get)], ("", saved.rows[0].prompt_set)).answers
    wrong = answers[~answers["right"]]
    assert len(wrong) > 0
    assert (wrong[BELIEVED] == 1).all()


@pytest.mark.parametrize(
    ("say", "kinds"),
    [
        (_mistake, {"unknown_tool", "wrong_arguments"}),
        (_babble, {"step_unreadable", "turns_spent"}),
        (_hurry, {"too_many_actions"}),
        (_never_end, {"wrong_arguments", "turns_spent"}),
    ],
)
def test_every_way_of_planning_badly_is_counted_and_no_row_is_lost(
    say: Say, kinds: set[str], source: Source, items: list[Item], plan: Callable[[Say], None]
) -> None:
    plan(say)
    assert evaluate(source.folder, "agent:react+planner:bad?tools=oracle&turns=4").complete
    found = count(source, items)
    assert all(found[kind] > 0 for kind in kinds), found


def test_plans_that_cannot_be_read_or_carried_out_are_counted(
    source: Source, items: list[Item], plan: Callable[[Say], None]
) -> None:
    plan(lambda planner, text: "I would call some tools." if "Plan which" in text else Planner.say(planner, text))
    assert evaluate(source.folder, "agent:plan-execute+planner:bad?tools=oracle").complete
    found = count(source, items)
    assert found["plan_unreadable"] == found["attempts_spent"] == len(items)
    assert found[NO_TOOL] == found["wrong"]


def test_tools_are_worth_what_they_add_from_questions_to_tables_pages_and_training_rows(
    source: Source, items: list[Item], plan: object, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for more in ("planner:core", "agent:react+planner:core?tools=none", "agent:react+planner:core?tools=oracle"):
        assert evaluate(source.folder, more).complete
    evaluate(source.folder, "planner:core", blind=True)
    board = load_board({"set": source})
    worth, failures, *_ = make_agent_tables(board, {"set": source})
    by_note = {line.note: line for line in worth.rows}
    alone, bare = by_note["no tools"], by_note["react, sane, no tools, same limits"]
    (oracle,) = (line for line in worth.rows if line.name.endswith(ORACLE))
    heads = [head.name for head in worth.columns]
    share = sum(row.outcome == "right" for one in board.saved["set"] for row in one.rows if not row.stage) / len(items)
    assert oracle.cells[0].value >= 0.95
    # Without tools it guesses: at chance, well within three standard deviations.
    chance = next(line for line in worth.rows if line.name == "uniform guess").cells[0].value
    spread = (chance * (1 - chance) / len(items)) ** 0.5
    assert abs(alone.cells[0].value - chance) < 3 * spread
    assert alone.cells[0].value == bare.cells[0].value == pytest.approx((share - oracle.cells[0].value) / 2)
    gain = oracle.cells[heads.index("Above no tools, same limits")].value
    assert gain == pytest.approx(oracle.cells[0].value - bare.cells[0].value)
    assert [line.name for line in failures.rows] == [bare.name, oracle.name]
    report = tmp_path / "report"
    main(["compare", str(source.folder), "--out", str(report)])
    wrong = round((1 - bare.cells[0].value) * len(items))
    assert len(list((report / "traces").glob("*.html"))) == wrong
    capsys.readouterr()
    main(["export", str(source.folder), "--to", "trajectories", "--oracle", "--json", "--out", str(tmp_path / "rows")])
    told = json.loads(capsys.readouterr().out)
    right = round((oracle.cells[0].value + bare.cells[0].value) * len(items))
    assert told["questions"] == right


class _Dies(Exception):
    pass


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "mode"), [("react", "sane"), ("plan-execute", "official")])
def test_killed_at_random_moments_nothing_is_asked_or_called_twice(
    kind: str, mode: str, source: Source, plan: object, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    answered: list[str] = []
    called: list[str] = []
    left = [0]
    before_send, before_run = Scripted._send, Workers.call

    async def send(self: Scripted, call: Any) -> Any:
        left[0] -= 1
        if left[0] == 0:
            raise _Dies
        answer = await before_send(self, call)
        answered.append(call.digest)
        return answer

    async def run(self: Workers, tool: Tool, *given: Any) -> Any:
        called.append(tool.name)
        return await before_run(self, tool, *given)

    monkeypatch.setattr(Scripted, "_send", send)
    monkeypatch.setattr(Workers, "call", run)
    spec = f"agent:{kind}+planner:core?tools=oracle&mode={mode}"
    whole = evaluate(source.folder, spec, backend=BackendOptions(cache=tmp_path / "a"), replies=tmp_path / "whole")
    assert whole.complete
    at_once = Counter(answered), Counter(called)
    answered.clear()
    called.clear()
    moments = np.random.default_rng(7).integers(2, 30, 200).tolist()
    kept = BackendOptions(cache=tmp_path / "b")
    deaths = 0
    for moment in moments:
        left[0] = moment
        try:
            found = evaluate(source.folder, spec, backend=kept, replies=tmp_path / "killed")
        except _Dies:
            deaths += 1
            continue
        break
    assert found.complete
    assert deaths > 3
    assert (Counter(answered), Counter(called)) == at_once
    assert max(Counter(answered).values()) == 1
    lines = [sorted(TraceLog(one.path).path.read_bytes().splitlines()) for one in (whole, found)]
    assert lines[0] == lines[1]
