"""Replies that other programs asked for, taken from their logs: only what is to a question of this dataset."""

from __future__ import annotations

import csv
import json
import pickle
import zipfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.publish.exported import items_of, written
from vgbench_gen.cli.main import main
from vgbench_gen.core.errors import DatasetError, UnknownNameError
from vgbench_gen.core.types import Item
from vgbench_gen.evaluation.base import Source
from vgbench_gen.evaluation.compare import group_by_model
from vgbench_gen.evaluation.imported import ImportedLog, _Check, import_log, logs
from vgbench_gen.evaluation.options import AskOptions
from vgbench_gen.evaluation.prompting import digest_question, make_asked
from vgbench_gen.evaluation.replies import read_replies
from vgbench_gen.evaluation.saved import score_source

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def source(tmp_path: Path) -> Source:
    return written(tmp_path / "set")


def sample(item: Item, reply: Any, **changes: Any) -> dict[str, Any]:
    """A line as lmms-eval 0.7.3 writes it; what its scoring says is not read."""
    options = AskOptions()
    told = {"id": item.id, "request_digest": digest_question(item), "prompt_set": "paper", "score": 0.0}
    return {
        "doc_id": item.index,
        "target": item.answer,
        "filtered_resps": reply,
        "token_counts": [{"input_tokens": 100, "output_tokens": 10, "reasoning_tokens": 0}],
        "sane": told,
        "input": make_asked(item, options.settings(""), options).text,
    } | changes


def samples(folder: Path, *rows: dict[str, Any], results: dict[str, Any] | None = None) -> Path:
    path = folder / "org__model" / "20261122_083138_samples_vgbench_set.jsonl"
    path.parent.mkdir(exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    if results is not None:
        path.with_name("20261122_083138_results.json").write_text(json.dumps(results))
    return path


def scores(source: Source, made: ImportedLog) -> dict[str, tuple[str, float]]:
    (saved,) = score_source(source, [made.spec])
    return {row.id: (row.outcome, row.score) for row in saved.rows}


def test_lmms_eval_samples(source: Source, tmp_path: Path) -> None:
    item = items_of(source)
    key = "sk-1234567890abcdef"
    path = samples(
        tmp_path,
        sample(item[0], "B"),
        sample(item[1], "No"),
        sample(item[3], "2.5 m", resps=["<think>2.3</think> 2.5 m"]),
        sample(item[4], "[LMMS_EVAL_REQUEST_FAILED after 5 retries] Connection error."),
        results={"model_name": "org/model", "config": {"model_args": f"api_key={key}", "gen_kwargs": "top_p=0.9"}},
    )
    made = import_log(source, path)
    assert (made.spec, made.taken, made.failed, made.known, made.ignored) == ("lmms-eval:org/model", 4, 1, 0, {})
    header, lines, _ = read_replies(made.path)
    assert (header.dataset, header.model, header.settings["gen_kwargs"]) == (
        source.fingerprint,
        "org/model",
        "top_p=0.9",
    )
    assert [line.response for line in lines.values()] == ["B", "No", "<think>2.3</think> 2.5 m", None]
    assert lines[next(iter(lines))].usage == {"prompt_tokens": 100, "completion_tokens": 10}
    assert key not in made.path.read_text("utf-8")
    assert scores(source, made) == {
        "item0000": ("right", 1.0),
        "item0001": ("wrong", 0.0),
        "item0003": ("right", 1.0),
        "item0004": ("failed", 0.0),
    }
    again = import_log(source, path)
    assert (again.taken, again.known) == (4, 4)
    assert read_replies(again.path)[1] == lines


def test_repeats_become_epochs(source: Source, tmp_path: Path) -> None:
    item = items_of(source)[0]
    made = import_log(source, samples(tmp_path, sample(item, ["B", "C"], resps=["B", "C"])), spec="mine:two")
    assert made.path.stem == "mine_two"
    # Tables call the model by the name that was given, not by the one in the log.
    [(name, _)] = group_by_model({"set": score_source(source)}).items()
    assert name == "mine:two"
    assert [(key.epoch, line.response) for key, line in read_replies(made.path)[1].items()] == [(0, "B"), (1, "C")]


def test_only_replies_to_these_very_questions(source: Source, tmp_path: Path) -> None:
    item = items_of(source)
    digest = digest_question(item[0])
    other = sample(item[0], "B")["sane"] | {"request_digest": "0" * 16}
    bare = {"id": item[0].id}
    path = samples(
        tmp_path,
        sample(item[2], "No", sane=sample(item[2], "")["sane"] | {"id": "elsewhere"}),
        sample(item[0], "B", sane=other),
        sample(item[0], "B", input="Some examples first.\n\n" + sample(item[0], "")["input"]),
        sample(item[0], "B", sane=sample(item[0], "")["sane"] | {"prompt_set": "unknown"}),
        sample(item[0], "B", sane=bare, input=None),
        sample(item[1], "Yes", sane={"id": item[1].id}),  # the words say which question it is
    )
    made = import_log(source, path)
    assert made.ignored == {"not_identified": 1, "other_request": 3, "unknown_id": 1}
    assert [key.id for key in read_replies(made.path)[1]] == ["item0001"]
    assert digest != "0" * 16

    alone = samples(tmp_path, sample(item[0], "B", sane=other))
    with pytest.raises(
        DatasetError, match=r"no reply to this dataset \(1 other request, such as 'item0000'\); expected"
    ):
        import_log(source, alone, spec="x:y")
    with pytest.raises(DatasetError, match=r"line 1: found no sane\.id"):
        import_log(source, samples(tmp_path, {"doc_id": 0, "filtered_resps": "A", "acc": 1}))
    run = samples(
        tmp_path, sample(item[0], "B"), results={"config": {"resolved_cli_args": {"system_instruction": "Go"}}}
    )
    with pytest.raises(DatasetError, match="--system_instruction, which changes every question"):
        import_log(source, run)


def predictions(source: Source, replies: dict[str, Any]) -> list[dict[str, Any]]:
    """Rows as VLMEvalKit writes them after a run of the exported dataset."""
    rows = []
    for item in items_of(source):
        if item.id in replies:
            record = {"id": item.id, "request_digest": digest_question(item), "prompt_set": "paper"}
            told = json.dumps({"name": "vgbench_set", "record": record})
            rows.append({"index": item.id, "question": "…", "vgbench": told, "prediction": replies[item.id]})
    return rows


def table(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.parent.mkdir(exist_ok=True)
    if path.suffix == ".json":
        path.write_text(json.dumps(rows))
    elif path.suffix == ".xlsx":
        openpyxl = pytest.importorskip("openpyxl")
        book = openpyxl.Workbook()
        for line in (list(rows[0]), *(list(row.values()) for row in rows)):
            book.active.append(line)
            for cell in book.active[book.active.max_row]:
                cell.data_type = "s" if isinstance(cell.value, str) else cell.data_type  # as VLMEvalKit: no formulas
        book.save(path)
    else:
        with path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, list(rows[0]), delimiter="\t", quoting=csv.QUOTE_ALL)
            writer.writeheader()
            writer.writerows(rows)
    return path


@pytest.mark.parametrize("suffix", [".xlsx", ".tsv", ".json"])
def test_vlmevalkit_predictions(source: Source, tmp_path: Path, suffix: str) -> None:
    said = {
        "item0000": "line one\nB\t" + "x" * 140_000 if suffix != ".xlsx" else "line one\nB",
        "item0001": "=1+1",
        "item0002": "",
        "item0003": 2.4,
        "item0004": "Failed to obtain answer via API.",
    }
    path = table(tmp_path / "MY-MODEL" / f"MY-MODEL_vgbench_set{suffix}", predictions(source, said))
    made = import_log(source, path)
    assert (made.spec, made.taken, made.failed) == ("vlmevalkit:MY-MODEL", 5, 1)
    replies = [line.response for line in read_replies(made.path)[1].values()]
    assert replies == [*(str(said[f"item000{k}"]) for k in range(4)), None]
    assert scores(source, made)["item0003"] == ("right", 1.0)
    assert scores(source, made)["item0004"] == ("failed", 0.0)


OWN: dict[str, Any] = {
    "own.csv": "\ufeffID,Response\r\nitem0000,B\r\nitem0001,No\r\nitem9,A\r\n",
    "semicolons.csv": 'index;prediction;question\n0;B;"Which; one"\n1.0;No;\n9;A;\n',
    "own.tsv": "question_id\ttext\nitem0000\tB\nitem0001\tNo\nitem9\tA\n",
    "own.jsonl": '{"id": "item0000", "answer": "B"}\r\n{"id": 1, "answer": "No"}\r\n{"id": "item9", "answer": "A"}\r\n',
    "own.json": '{\n "item0000": "B",\n "item0001": "No",\n "item9": "A"\n}',
    "list.json": '[{"id": "item0000", "output": "B"}, {"id": "item0001", "output": "No"}, {"id": null, "output": "A"}]',
    "own.xlsx": [{"index": 0, "reply": "B"}, {"index": 1, "reply": "No"}, {"index": 9, "reply": "A"}],
}


@pytest.mark.parametrize("name", OWN)
def test_a_table_of_ones_own(source: Source, tmp_path: Path, name: str, capsys: Capture) -> None:
    path = tmp_path / name
    if name.endswith(".xlsx"):
        table(path, OWN[name])
    else:
        path.write_text(OWN[name], encoding="utf-16" if name == "own.tsv" else "utf-8", newline="")
    assert main(["compare", str(source.folder), "--replies", str(path), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    imported, (model,) = told["imported"], told["models"]
    assert (imported["spec"], imported["taken"], imported["failed"], imported["known"]) == (
        f"table:{path.stem}", 2, 0, 0
    )  # fmt: skip
    assert imported["ignored"] == {"unknown_id": 1}
    assert (model["averaged"], model["sane"]) == (2, 0.5)


@pytest.mark.parametrize(
    ("tree", "program"),
    [
        ({"version": 2, "status": "success", "eval": {"task": "t"}, "samples": [{"id": "a"}]}, "inspect"),
        ({"a": "B", "b": None, "c": ["A", "B"]}, "table"),
    ],
)
def test_a_json_file_is_of_one_program(tmp_path: Path, tree: dict[str, Any], program: str) -> None:
    path = tmp_path / "log.json"
    path.write_text(json.dumps(tree, indent=2))
    assert [name for name in logs if logs[name].fits(path)] == [program]


def test_a_table_names_questions_by_beginnings_and_repeats_them(source: Source, tmp_path: Path) -> None:
    rows = [
        {"id": "item0000", "response": ["B", "C"], "model": "m"},
        {"id": " 0 ", "response": None, "model": "m"},
        {"id": "item000", "response": "A", "model": "m"},  # begins the ids of nine others
        {"response": "A", "model": "m"},
        [],
    ]
    path = tmp_path / "own.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    made = import_log(source, path)
    assert (made.spec, made.taken, made.failed) == ("table:m", 3, 1)
    assert (made.ignored, made.first) == ({"unknown_id": 3}, {"unknown_id": "item000"})
    lines = read_replies(made.path)[1]
    assert [(key.id, key.epoch, line.response) for key, line in lines.items()] == [
        ("item0000", 0, "B"), ("item0000", 1, "C"), ("item0000", 2, None),
    ]  # fmt: skip
    assert _Check(source, {"abcd1": 0, "abce1": 1}).find_id("abcd") == "abcd1"


@pytest.mark.parametrize("name", ["m\udcff", "\ud800", "a\nb"])
def test_names_that_cannot_be_printed_are_written_as_they_can(source: Source, tmp_path: Path, name: str) -> None:
    path = tmp_path / "own.csv"
    path.write_text("id,response\nitem0000,B\n")
    made = import_log(source, path, spec=name)
    assert made.spec.isprintable()
    assert [saved.header.spec for saved in score_source(source, [made.spec])] == [made.spec]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_an_excel_file_with_entities_is_refused(source: Source, tmp_path: Path, encoding: str) -> None:
    pytest.importorskip("openpyxl")
    path = table(tmp_path / "own.xlsx", OWN["own.xlsx"])
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    entities = "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * 10 if n else "x" * 10}">' for n in range(10))
    bomb = f'<?xml version="1.0" encoding="{encoding}"?><!DOCTYPE sst [{entities}]><sst><si><t>&e9;</t></si></sst>'
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in (members | {"xl/sharedStrings.xml": bomb.encode(encoding)}).items():
            archive.writestr(name, data)
    with pytest.raises(DatasetError, match="a document type, which no workbook has"):
        import_log(source, path, "table")


def test_what_is_no_log_is_named(source: Source, tmp_path: Path) -> None:
    assert {"lmms-eval", "vlmevalkit"} <= set(logs)
    text = tmp_path / "notes.txt"
    text.write_text("hello")
    with pytest.raises(DatasetError, match=r"found no log that is known.*Say which with --from"):
        import_log(source, text)
    own = tmp_path / "own.csv"
    for data, says in (
        (b"id,response\na,\xe9\n", "byte 0xE9 in line 2"),
        (b"a,b\n1,2\n", "the columns a, b; expected ids"),
    ):
        own.write_bytes(data)
        with pytest.raises(DatasetError, match=says):
            import_log(source, own)
    with pytest.raises(UnknownNameError, match="no log is called 'lmms'"):
        import_log(source, text, "lmms")
    with pytest.raises(DatasetError, match="found nothing"):
        import_log(source, tmp_path / "absent.tsv")
    trap = tmp_path / "MODEL_vgbench_set.pkl"
    trap.write_bytes(pickle.dumps([1]))
    with pytest.raises(DatasetError, match="never opened"):
        import_log(source, trap, "vlmevalkit")
    with pytest.raises(DatasetError, match="found the columns a, b; expected ids and replies"):
        import_log(source, table(tmp_path / "m_x.tsv", [{"a": 1, "b": 2}]), "vlmevalkit")


def test_the_verb_takes_and_scores(source: Source, tmp_path: Path, capsys: Capture) -> None:
    item = items_of(source)
    path = samples(tmp_path, sample(item[0], "B"), sample(item[1], "No"), sample(item[2], "No", sane={"id": "x"}))
    assert main(["compare", str(source.folder), "--replies", str(path.parent), "--from", "lmms-eval"]) == 0
    out = capsys.readouterr().out
    assert "2 replies of lmms-eval:org__model imported (0 failed, 0 known)" in out
    assert "not imported: 1 (unknown id, such as x)" in out
    assert main(["compare", str(source.folder), "--replies", str(path), "--as", "me:again", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    # All models of the dataset are compared, the imported ones with the others.
    assert told["imported"]["spec"] == "me:again"
    assert {one["spec"]: (one["averaged"], one["sane"]) for one in told["models"]} == {
        "lmms-eval:org__model": (2, 0.5), "me:again": (2, 0.5)
    }  # fmt: skip
    assert main(["compare", str(source.folder), "--from", "lmms-eval"]) == 2
    assert main(["compare", "--cases", str(path), "--replies", str(path)]) == 2


@pytest.mark.parametrize("record", ["text", 3, None, ["a"], {"id": 4}])
def test_a_log_with_something_else_in_the_place_of_an_object(source: Source, tmp_path: Path, record: Any) -> None:
    predictions = tmp_path / "model_set.json"
    told = json.dumps({"name": "set", "record": record})
    predictions.write_text(json.dumps([{"index": 0, "prediction": {"a": 1}, "vgbench": told}]))
    with pytest.raises(DatasetError, match=str(predictions)):
        import_log(source, predictions, "vlmevalkit")
    item = items_of(source)[0]
    for changes in ({"sane": record}, {"sane": sample(item, "B")["sane"] | {"id": record}}, {"token_counts": record}):
        path = samples(tmp_path, sample(item, record, **changes))
        with suppress(DatasetError):
            import_log(source, path, "lmms-eval")


def test_a_damaged_workbook_is_one_error(source: Source, tmp_path: Path) -> None:
    pytest.importorskip("openpyxl")
    path = tmp_path / "model_set.xlsx"
    path.write_bytes(b"PK\x03\x04 and then nothing")
    with pytest.raises(DatasetError, match="a log of vlmevalkit"):
        import_log(source, path, "vlmevalkit")
