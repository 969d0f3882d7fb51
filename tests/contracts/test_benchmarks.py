"""Every registered benchmark opens, prompts, reads its own truth as right and has tables; no other room names one."""

from __future__ import annotations

import ast
import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

import vgbench_gen
from tests.evaluation.benchmarks import mmsi_files, test_rover, test_salbench
from tests.evaluation.test_saved import built
from vgbench_gen.core.types import Item
from vgbench_gen.evaluation.base import DEFAULT_BENCHMARK, Benchmark, Keeps, Source, benchmarks, find_benchmark
from vgbench_gen.evaluation.board import Board, ScoreRow, make_entry
from vgbench_gen.evaluation.layouts import find_paper_layouts
from vgbench_gen.evaluation.options import AskOptions
from vgbench_gen.evaluation.questions import Questions
from vgbench_gen.evaluation.scoring import find_rules, make_case, score
from vgbench_gen.evaluation.tables import TableMaker, compare_models

ROOT = Path(vgbench_gen.__file__).parent


def mmsi(folder: Path) -> Path:
    return mmsi_files.write(folder, [mmsi_files.row(k) for k in range(4)])


def spatialscore(folder: Path) -> Path:
    row = {
        "id": 1,
        "category": "Counting",
        "subcategory": "Counting",
        "input_modality": "image",
        "question_type": "multi-choice",
        "source": "BLINK",
        "question": "How many chairs?\n(A) one\n(B) two",
        "answer": "B",
        "img_paths": ["a.png"],
    }
    file = folder / "rows.json"
    folder.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps([row]))
    return file


def vgbench(folder: Path) -> Path:
    return built(folder).folder


# A tiny set in the form in which each is published. A benchmark that is added here needs one, too.
TINY: dict[str, Callable[[Path], Path]] = {
    "mmsi": mmsi,
    "rover": test_rover.write_tasks,
    "salbench": test_salbench.write,
    "spatialscore": spatialscore,
    "vgbench": vgbench,
}


@pytest.fixture(params=benchmarks.names())
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def source(name: str, tmp_path: Path) -> Source:
    assert name in TINY, f"benchmark {name}: expected a tiny set of it in {__file__}"
    return benchmarks[name].open(TINY[name](tmp_path / name))


def items_of(source: Source) -> list[Item]:
    return [source.item(row.row) for row in source.rows()]


def right(item: Item) -> ScoreRow:
    """The row of a reply that is the key."""
    scored = score(make_case(item), item.answer)
    return ScoreRow(
        item.id, 0, 0, "", "paper", scored.outcome, scored.reading.status, scored.score, scored.official.score,
        scored.strict, scored.followed, scored.reading.value,
    )  # fmt: skip


def test_questions_are_its_own_and_can_be_asked(name: str, source: Source) -> None:
    items = items_of(source)
    assert items
    owners = {find_benchmark(item.benchmark) for item in items}
    assert owners == {benchmarks[name]}, f"benchmark {name}: expected its scoring rules to own its questions' names"
    options = AskOptions(prompt_set=benchmarks[name].prompt_set)
    asked = [one for _, one in Questions(source, options).walk(options.settings("m"))]
    assert len(asked) == len(items)
    for item, one in zip(items, asked, strict=True):
        assert one.text.strip()
        assert not one.problem
        assert item.images
        assert source.again().item(0).id == items[0].id


def test_its_own_truth_is_right_and_nothing_is_not(name: str, source: Source) -> None:
    if isinstance(source, Keeps):
        assert benchmarks[name].judge is not None, f"benchmark {name}: replies that are images need a judge"
        assert benchmarks[name].next_step(Path("data"), Path("made"))
        return
    for item in items_of(source):
        scored = score(make_case(item), item.answer)
        assert (scored.outcome, scored.score, scored.strict) == ("right", 1.0, 1.0), item.answer
        assert score(make_case(item), "").outcome == "unreadable"
        key = find_rules(item.benchmark).answer_key(make_case(item))
        assert 0 <= key.chance(len(item.options)) < 1


def test_its_questions_stand_in_a_table_of_its_own(name: str, source: Source) -> None:
    if isinstance(source, Keeps):
        assert benchmarks[name].judge is not None
        return
    items = items_of(source)
    board = Board([replace(make_entry(item), dataset="set") for item in items])
    board.add("m", {"set": [right(item) for item in items]})
    mine = {layout.key for layout in benchmarks[name].layouts if layout in find_paper_layouts(board)}
    mine |= {table.key for table in benchmarks[name].tables(TableMaker(board, 0))}
    assert mine, f"benchmark {name}: expected a layout or a table for its questions"
    shown = {table.key: table for table in compare_models(board).papers}
    assert mine <= set(shown)
    (first,) = (cells.cells[0] for cells in shown[min(mine)].rows if cells.name == "m")
    assert first.value == 1.0


def test_a_benchmark_without_tables_or_rules_is_found_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Bare(Benchmark):
        def open(self, path: Path, images: Path | None = None) -> Source:
            return built(path)

    monkeypatch.setitem(benchmarks._entries, "bare", Bare())
    source = benchmarks["bare"].open(tmp_path / "bare")
    with pytest.raises(AssertionError, match="expected a layout or a table"):
        test_its_questions_stand_in_a_table_of_its_own("bare", source)
    with pytest.raises(AssertionError, match="own its questions' names"):
        test_questions_are_its_own_and_can_be_asked("bare", source)


# --- nobody else knows which benchmarks there are


def names_of_benchmarks() -> set[str]:
    """Registered names but the default, which commands name, and the names in `Item.benchmark`; "labels" and so on."""
    kinds = {one for each in benchmarks.values() for one in each.scoring.question_types}
    general = set(Benchmark.scoring.question_types)
    own = {one.casefold() for each in benchmarks.values() for one in each.scoring.names}
    return (set(benchmarks.names()) | own | (kinds - general)) - {DEFAULT_BENCHMARK}


def switches(tree: ast.AST, names: set[str]) -> Iterator[tuple[int, str]]:
    """Comparisons with, tests for membership in, and mappings by a name of a benchmark."""
    for node in ast.walk(tree):
        parts: list[ast.expr | None] = []
        if isinstance(node, ast.Compare):
            parts = [node.left, *node.comparators]
        elif isinstance(node, ast.Dict):
            parts = list(node.keys)
        elif isinstance(node, ast.MatchValue):
            parts = [node.value]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "startswith":
            parts = list(node.args)
        elif isinstance(node, ast.Subscript):
            parts = [node.slice]
        for part in parts:
            inside = part.elts if isinstance(part, ast.Tuple | ast.List | ast.Set) else [part]
            for one in inside:
                if isinstance(one, ast.Constant) and isinstance(one.value, str) and one.value.casefold() in names:
                    yield one.lineno, one.value


def test_no_other_room_switches_on_a_benchmark() -> None:
    names = names_of_benchmarks()
    found = [
        f"{path.relative_to(ROOT)}, line {line}: {value!r}"
        for room in ("evaluation", "cli", "report", "publish")
        for path in sorted((ROOT / room).rglob("*.py"))
        if "benchmarks" not in path.parts and path.name != "official.py"  # SpatialScore's script as it was published
        for line, value in switches(ast.parse(path.read_text("utf-8")), names)
    ]
    assert not found


def test_no_other_room_imports_a_benchmark() -> None:
    allowed = {"vgbench", "list_scoring_rules"}  # the hard subset and votes are of built datasets alone
    found = []
    for path in sorted(ROOT.rglob("*.py")):
        text = path.read_text("utf-8")
        if "benchmarks" in path.parts or "evaluation.benchmarks" not in text:
            continue
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("vgbench_gen.evaluation.benchmarks"):
                inside = (node.module or "").removeprefix("vgbench_gen.evaluation.benchmarks").strip(".").split(".")
                if inside[0] not in allowed:
                    found.append(f"{path.relative_to(ROOT)}, line {node.lineno}: {node.module}")
    assert not found


def test_a_switch_is_seen() -> None:
    text = 'if benchmark == "rover": pass\nx = {"salbench": 1}\ny = name in ("MMSI-Bench", "a")\nz = x["multi-label"]\n'
    assert [line for line, _ in switches(ast.parse(text), names_of_benchmarks())] == [1, 2, 3, 4]
