"""What tools are worth: agents beside their core model, with calls, tokens and failures that add up."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from tests.agent.cores import without_processes
from tests.browser import OpenPage, open_page
from tests.evaluation.test_saved import built
from vgbench_gen.backends.spec import BackendOptions
from vgbench_gen.cli.main import main
from vgbench_gen.evaluation.agent_tables import make_agent_tables, read_published
from vgbench_gen.evaluation.agent_traces import NO_TOOL, NO_TRACE, NOT_JUDGED, count_use
from vgbench_gen.evaluation.cells import Cell
from vgbench_gen.evaluation.compare import load_board
from vgbench_gen.evaluation.runner import evaluate
from vgbench_gen.evaluation.tables import Table, compare_models
from vgbench_gen.report.scores_files import as_json, format_csv, format_markdown

__all__ = ["open_page", "without_processes"]

pytestmark = pytest.mark.usefixtures("without_processes")
CROP = '{"thought": "look", "actions": [{"name": "Crop", "arguments": {"image": "image-0", "bbox": [0, 0, 0.5, 0.5]}}]}'
FLY = '{"thought": "go", "actions": [{"name": "Fly", "arguments": {}}]}'
END = '{"thought": "done", "actions": [{"name": "Terminate", "arguments": {"answer": "%s"}}]}'


def write_core(path: Path) -> str:
    """A core model that alone says Yes and No in vain; with tools it crops, answers judgments with Yes and else B; of
    the fifth question it calls a tool that there is not, and ends."""
    lines = [
        {"match": "there is no tool", "reply": END % "2.4 meters", "usage": [30, 3]},
        {"match": "region 5", "reply": FLY, "usage": [20, 2]},
        {"match": 'rect_px": [', "reply": END % "Yes, B", "usage": [200, 20]},
        {"match": "TOOLS", "reply": CROP, "usage": [100, 10]},
        {"match": "", "reply": "No.", "times": 0, "usage": [10, 1]},
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return f"scripted:{path}"


def cell(table: Table, name: str, head: str) -> Cell:
    (line,) = [line for line in table.rows if name in line.name]
    return line.cells[[one.name for one in table.columns].index(head)]


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("agents") / "set"
    built(folder)
    core = write_core(folder.parent / "core.jsonl")
    with pytest.MonkeyPatch.context() as patch:
        without_processes.__wrapped__(patch)  # type: ignore[attr-defined]
        for spec in (core, f"agent:react+{core}?tools=none", f"agent:react+{core}?tools=none&turns=4"):
            assert evaluate(folder, spec, backend=BackendOptions()).complete
        evaluate(folder, core, blind=True)
        evaluate(folder, f"agent:react+{core}?tools=oracle,classical", limit=2)
    return folder


def test_agents_stand_beside_their_core_on_the_same_questions(asked: Path) -> None:
    source = built(asked)
    board = load_board({"set": source})
    worth, failures, tools, published = make_agent_tables(board, {"set": source})
    assert {line.group for line in worth.rows} == {board.saved["set"][0].header.spec.rpartition("+")[2].split("?")[0]}
    told = [line.note.split(", ")[0] for line in worth.rows]
    assert told == ["no tools", "no tools", "react", "react", "react", "", ""]
    alone, blind, *agents = worth.rows[:5]
    assert blind.kind == "floor"
    assert agents[-1].kind == "floor", "an upper bound is no rival"
    assert "upper bound" in agents[-1].note
    # Two questions were put to all of them; everybody is compared on these alone.
    assert {line.cells[0].n for line in worth.rows} == {2}
    heads = [head.name for head in worth.columns]
    gain = agents[0].cells[heads.index("Above the model alone")]
    assert gain.value == pytest.approx(agents[0].cells[0].value - alone.cells[0].value)
    assert gain.value != 0
    # Only the one with as many turns compares with oracle tools at the same limits; tools=none has none above itself.
    assert [line.cells[heads.index("Above no tools, same limits")].n for line in agents] == [0, 0, 2]
    tokens = heads.index("Tokens")
    assert alone.cells[tokens].value == pytest.approx((5 * 11 + 22) / 6)
    assert agents[0].cells[tokens].value == pytest.approx((5 * 330 + 55) / 6)
    assert agents[0].cells[heads.index("Calls")].value == 1
    # Failures: one answer with an unknown tool; the wrong ones are all explained.
    name = agents[0].name
    assert cell(failures, name, "Unknown tool").value == pytest.approx(1 / 6)
    shares = {head.name: one.value for head, one in zip(failures.columns, failures.rows[0].cells, strict=True)}
    explained = shares[NOT_JUDGED.capitalize()] + shares[NO_TOOL.capitalize()]
    agent_rows = next(one.rows for one in board.saved["set"] if one.header.model == name)
    assert explained == pytest.approx(sum(row.outcome != "right" for row in agent_rows) / 6)
    assert explained > 0
    assert "Timeout" not in shares, "what never happened has no column"
    # Tools.
    mine = {line.name: line.cells for line in tools.rows if line.group == name}
    assert list(mine) == ["Crop", "Fly"]
    assert (mine["Crop"][0].value, mine["Crop"][1].value, mine["Fly"][1].value) == (5, 0, 1)
    assert mine["Crop"][5].value == 330
    assert cell(published, "InternVL3-8B, Plan-Execute", "Score").value == 0.4608
    assert read_published().constant == 0.3979


def test_an_answer_whose_trace_is_gone_is_counted_as_such(asked: Path) -> None:
    saved = next(one for one in load_board({"set": built(asked)}).saved["set"] if "tools=none" in one.header.spec)
    lost = replace(saved.rows[0], epoch=7)
    use = count_use([(replace(saved, rows=(*saved.rows, lost)), lambda name: None)], ("", lost.prompt_set))
    assert use.answers[NO_TRACE].tolist() == [0] * len(saved.rows) + [1]
    assert set(use.calls["answer"]) == set(range(len(saved.rows)))


def test_the_agent_tables_are_in_every_file_and_on_the_terminal(
    asked: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = built(asked)
    board = load_board({"set": source})
    found = compare_models(board)
    whole = replace(found, agents=make_agent_tables(board, {"set": source}))
    assert not found.agents
    keys = [table["key"] for table in as_json(whole)["tables"]]
    assert keys[:5] == ["summary", "agents", "agent-failures", "agent-tools", "agents-published"]
    assert "agent-tools,Fly,model,Failed,%,1," in format_csv(whole)
    assert "+100.0 [+100.0, +100.0]" in format_markdown(whole, "x")
    main(["compare", str(asked), "--out", str(tmp_path / "page")])
    assert "Agents: what tools are worth" in capsys.readouterr().out
    assert 'id="agent-failures"' in (tmp_path / "page" / "index.html").read_text()


def test_each_wrong_answer_of_an_agent_leads_to_its_trace(
    asked: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, open_page: OpenPage
) -> None:
    folder = tmp_path / "page"
    main(["compare", str(asked), "--out", str(folder)])
    pages = {path: path.read_text() for path in folder.glob("wrong-*.html")}
    links = {path: re.findall(r'href="(traces/[0-9a-f]+\.html)"', text) for path, text in pages.items()}
    agents = [path for path in pages if path.name.startswith("wrong-react")]
    assert len(agents) == 2
    # Of each agent two answers are wrong; the core alone has no traces.
    assert sorted(len(found) for found in links.values()) == [0, 2, 2]
    every = {link for found in links.values() for link in found}
    assert {f"traces/{path.name}" for path in (folder / "traces").iterdir()} == every
    seen = open_page((folder / sorted(every)[0]).as_uri(), 390)
    assert (seen.errors, seen.foreign) == ([], [])
    shown = seen.page.locator("svg.store image").evaluate_all("all => all.map(one => one.href.baseVal)")
    assert len(shown) == 2, "the question's image and the crop"
    for address in shown:
        assert (folder / "traces" / address).resolve().is_file()
    back = str(seen.page.locator("p.note a").get_attribute("href"))
    name, _, anchor = back.removeprefix("../").partition("#")
    assert f'<h3 id="{anchor}">' in (folder / name).read_text()
    # At most so many; pages that are not written again go, files of others stay.
    (folder / "traces" / "mine.html").write_text("somebody's own")
    monkeypatch.setattr("vgbench_gen.report.scores_traces.MOST", 1)
    main(["compare", str(asked), "--out", str(folder)])
    assert len(list((folder / "traces").iterdir())) == 3
    assert "1 of them, from the whole list, lead" in agents[0].read_text()
