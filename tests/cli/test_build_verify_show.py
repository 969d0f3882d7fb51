"""The verbs that make, check and draw a dataset, run as a user runs them."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from vgbench_gen.cli.build import _open_bars
from vgbench_gen.cli.main import main
from vgbench_gen.pipeline.measure import SceneReport
from vgbench_gen.pipeline.recipe import Recipe, load_recipe
from vgbench_gen.pipeline.redraw import RedrawReport
from vgbench_gen.pipeline.subset import HARD
from vgbench_gen.quality.explain import draw_row, encode_png
from vgbench_gen.store.dataset import load
from vgbench_gen.store.provenance import LOCK, BuildLock, read_manifest

Row = dict[str, Any]
Capture = pytest.CaptureFixture[str]

RECIPE = """\
seed = 5
facts_per_scene = 4
tasks = ["metric_depth", "homography_to_matrix"]

[limits]
forms_per_fact = 3
"""


def run(*arguments: object) -> int:
    return main([str(argument) for argument in arguments])


def one_line(capsys: Capture) -> str:
    """The message of a run that failed; nothing else may have been printed."""
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("vgbench: error: ")
    assert captured.err.count("\n") == 1
    return captured.err


@pytest.fixture(scope="session")
def recipe(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("recipe") / "quick.toml"
    path.write_text(RECIPE)
    return path


@pytest.fixture(scope="session")
def dataset(raw_room: Path, recipe: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A build by the program; copy it before changing it."""
    out = tmp_path_factory.mktemp("dataset")
    assert run("build", recipe, "--scenes", raw_room, "--out", out, "--workers", 1) == 0
    return out


@pytest.fixture
def copied(dataset: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(dataset, tmp_path / "copy"))


def tamper(folder: Path, fits: Callable[[Row], bool], change: Callable[[Row], None]) -> str:
    """Change the first row that fits, in the parquet file itself; returns its id."""
    (path,) = (folder / "items").glob("*.parquet")
    table = pq.read_table(path)
    rows: list[Row] = table.to_pylist()
    row = next(row for row in rows if fits(row))
    change(row)
    pq.write_table(pa.Table.from_pylist(rows, schema=table.schema), path)
    return str(row["id"])


def of(task: str, form: str) -> Callable[[Row], bool]:
    # A pair falls with either of its rows.
    return lambda row: (row["task"], row["question_type"], row["pair_id"]) == (task, form, "")


# --- build, measure, compose ------------------------------------------------------------------------------------


def test_build_prints_totals_per_task_and_keeps_the_rest(
    dataset: Path, raw_room: Path, recipe: Path, capsys: Capture
) -> None:
    assert run("build", recipe, "--scenes", raw_room, "--out", dataset, "--workers", 1) == 0
    captured = capsys.readouterr()
    head, *cells, pairs, log, last, _ = captured.out.splitlines()
    assert head.split()[:5] == ["task", "facts", "judgment", "multi-choice", "open-ended"]
    items, forms = load(dataset), ("judgment", "multi-choice", "open-ended")
    for line, task in zip(cells, ("metric_depth", "homography_to_matrix", "all"), strict=True):
        words = line.split()
        assert words[0] == task
        for word, form in zip(words[2:5], forms, strict=True):
            rows = [i for i in items if task in (i.task, "all") and i.question_type == form]
            assert (int(word) if word != "-" else 0) == len(rows)
    paired = sum(bool(item.pair_id) for item in items)
    assert pairs.startswith(f"pairs   {paired} of {len(items)} items (")
    assert log == f"the yield of each source: {dataset / 'build.log'}"
    fingerprint = read_manifest(dataset)["fingerprint"]
    assert last == f"{len(items)} questions in {dataset}/items, fingerprint {fingerprint}"
    assert not set(captured.err) & set("\r\x1b")  # no bars where nobody watches
    kept = [line.split() for line in (dataset / "build.log").read_text().splitlines() if line]
    for task in ("metric_depth", "homography_to_matrix"):
        for source in ("ca1m", "wildrgbd"):
            (words,) = (words for words in kept if words[:2] == [task, source])
            for word, form in zip(words[4:7], forms, strict=True):
                rows = [i for i in items if (i.task, i.source, i.question_type) == (task, source, form)]
                assert (int(word) if word != "-" else 0) == len(rows)


def test_build_as_json(dataset: Path, raw_room: Path, recipe: Path, capsys: Capture) -> None:
    assert run("build", recipe, "--scenes", raw_room, "--out", dataset, "--workers", 1, "--json") == 0
    told = json.loads(capsys.readouterr().out)
    manifest = read_manifest(dataset)
    assert told["total"] == len(load(dataset)) > 0
    assert all(told[key] == manifest[key] for key in ("fingerprint", "items", "unasked", "letters", "pairs"))


def test_facts_then_questions_is_build(
    dataset: Path, raw_room: Path, recipe: Path, tmp_path: Path, capsys: Capture
) -> None:
    out = tmp_path / "steps"
    assert run("build", recipe, "--stop-after", "facts", "--scenes", raw_room, "--out", out, "--workers", 1) == 0
    whole = read_manifest(dataset)
    said = f"{whole['counts']['facts']} facts from 2 scenes in {out}/facts\nnext: vgbench build --facts {out}\n"
    assert capsys.readouterr().out == said
    assert not (out / "items").exists()
    assert run("build", recipe, "--facts", out, "--workers", 1) == 0
    steps = read_manifest(out)
    assert steps["fingerprint"] == whole["fingerprint"]
    assert steps["counts"] == whole["counts"]
    timeless = ("dataset", "scene_id", "facts", "rejects", "issues", "frames", "total_frames", "objects", "error")
    assert [[scene[key] for key in timeless] for scene in steps["scenes"]] == [
        [scene[key] for key in timeless] for scene in whole["scenes"]
    ]


def test_a_distractor_seed_changes_wrong_options_only(copied: Path, recipe: Path, capsys: Capture) -> None:
    before = list(load(copied))
    truths = {(i.group_id, i.question_type): i.answer_value for i in before if not i.evidence["side"]}
    assert run("build", recipe, "--facts", copied, "--workers", 1, "--distractor-seed", 7) == 0
    after = list(load(copied))
    again = {(i.group_id, i.question_type): i.answer_value for i in after if not i.evidence["side"]}
    kept = truths.keys() & again.keys()
    assert len(kept) >= len(truths) - 1  # other options may be asked from the other side of another truth
    assert all(again[key] == truths[key] for key in kept)
    earlier = {i.group_id: i for i in before if i.question_type == "multi-choice" and not i.evidence["side"]}
    choices = [i for i in after if i.question_type == "multi-choice" and i.group_id in earlier]
    assert {i.options["ABCD".index(i.answer)] for i in choices if i.task == "metric_depth"} == {
        i.options["ABCD".index(i.answer)] for i in earlier.values() if i.task == "metric_depth"
    }
    assert any(set(i.options) != set(earlier[i.group_id].options) for i in choices)
    assert {i.id for i in after if i.question_type != "multi-choice"} == {
        i.id for i in before if i.question_type != "multi-choice"
    }
    assert run("verify", copied) == 0
    capsys.readouterr()


def test_facts_keep_the_recipe_of_the_build(copied: Path, recipe: Path, capsys: Capture) -> None:
    before = read_manifest(copied)
    assert before["recipe"] == load_recipe(recipe).model_dump(mode="json") != Recipe().model_dump(mode="json")
    assert run("build", "--facts", copied, "--workers", 1) == 0
    assert read_manifest(copied)["recipe"] == before["recipe"]
    assert read_manifest(copied)["fingerprint"] == before["fingerprint"]
    assert run("build", "--facts", copied, "--workers", 1, "--strategy", "sampled", "--seed", 3) == 0
    assert read_manifest(copied)["recipe"] == before["recipe"] | {"strategy": "sampled", "seed": 3}
    capsys.readouterr()


def test_a_folder_without_facts(tmp_path: Path, capsys: Capture) -> None:
    assert run("build", "--facts", tmp_path / "nothing") == 2
    assert "nothing: found no facts; expected facts/<dataset>/<scene>.parquet. Run `vgbench build` first." in (
        one_line(capsys)
    )
    assert not (tmp_path / "nothing").exists()


def test_a_folder_takes_one_builder_at_a_time(copied: Path, raw_room: Path, recipe: Path, capsys: Capture) -> None:
    with BuildLock(copied):
        measured = ["build", recipe, "--scenes", raw_room, "--out", copied]
        for verb in (measured, [*measured, "--stop-after", "facts"], ["build", "--facts", copied]):
            assert run(*verb) == 2
            assert str(copied / LOCK) in one_line(capsys)
    assert not (copied / LOCK).exists()
    assert run("verify", copied) == 0


# --- names and paths that do not exist -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ('tasks = ["metric_dept"]', "no task is called 'metric_dept'. Did you mean metric_depth?"),
        ('strategy = "set_frist"', "no strategy is called 'set_frist'. Did you mean set_first?"),
        ("seeed = 3", "seeed: found an unknown key 'seeed'. Did you mean seed?"),
    ],
)
def test_a_name_in_the_recipe_that_is_not_known(
    raw_room: Path, tmp_path: Path, capsys: Capture, text: str, meant: str
) -> None:
    recipe = tmp_path / "r.toml"
    recipe.write_text(text)
    for more in ((), ("--stop-after", "facts")):
        assert run("build", recipe, "--scenes", raw_room, "--out", tmp_path / "b", "--workers", 1, *more) == 2
        assert meant in one_line(capsys)
    assert not list(tmp_path.rglob("*.parquet")), "found out only after measuring"


def test_other_names_that_are_not_known(dataset: Path, raw_room: Path, tmp_path: Path, capsys: Capture) -> None:
    assert run("build", "defualt", "--scenes", raw_room, "--out", tmp_path / "b") == 2
    assert "no recipe is called 'defualt'. Did you mean default?" in one_line(capsys)
    assert run("build", "--facts", dataset, "--strategy", "sampeld") == 2
    assert "no strategy is called 'sampeld'. Did you mean sampled?" in one_line(capsys)
    assert run("build", "--scenes", tmp_path / "absent", "--out", tmp_path / "b") == 2
    assert "absent: found no such folder; expected raw scans." in one_line(capsys)
    assert run("verify", tmp_path / "absent") == 2
    assert "absent: found nothing; expected a built dataset." in one_line(capsys)


def test_a_place_that_cannot_be_written(dataset: Path, raw_room: Path, tmp_path: Path, capsys: Capture) -> None:
    file = tmp_path / "file"
    file.touch()
    assert run("build", "--scenes", raw_room, "--out", file / "below") == 2
    assert f"{file / 'below'}: Not a directory." in one_line(capsys)
    item = load(dataset)[0]
    pipe = tmp_path / "pipe"  # stands for a device such as /dev/null, which a rename would replace
    os.mkfifo(pipe)
    for place in (tmp_path, pipe):
        assert run("show", item.id, dataset, "--out", place) == 2
        assert f"{place}: found a folder or device; expected a file to write." in one_line(capsys)
    assert pipe.is_fifo()


# --- verify -----------------------------------------------------------------------------------------------------


def test_verify_agrees_with_what_was_built(dataset: Path, raw_room: Path, capsys: Capture) -> None:
    count = len(load(dataset))
    assert run("verify", dataset) == 0
    assert capsys.readouterr().out == f"{count} of {count} items verified (100%), from the stored evidence\n"
    assert run("verify", dataset, "--scenes", raw_room, "--workers", 1, "--json") == 0
    captured = capsys.readouterr()
    assert json.loads(captured.out) == {"items": count, "from_scenes": count, "problems": []}
    assert not set(captured.err) & set("\r\x1b")


def another_letter(row: Row) -> None:
    row["answer"] = "ABCD"[("ABCD".index(row["answer"]) + 1) % 4]


def another_text(row: Row) -> None:
    wrong = next(k for k in range(4) if k != "ABCD".index(row["answer"]))
    row["options"][wrong] = re.sub(r"\d(?=\D*$)", lambda digit: str((int(digit[0]) + 1) % 10), row["options"][wrong])


def other_bytes(row: Row) -> None:
    data = bytearray(row["images"][0]["bytes"])
    data[len(data) // 2] ^= 1
    row["images"][0]["bytes"] = bytes(data)


def another_claim(row: Row) -> None:
    evidence = json.loads(row["evidence"])
    evidence["claim"]["value"] = (np.array(evidence["claim"]["value"]) * 1.5).tolist()
    row["evidence"] = json.dumps(evidence)


@pytest.mark.parametrize(
    ("task", "form", "change", "check"),
    [
        ("metric_depth", "multi-choice", another_letter, "answer_value"),
        ("homography_to_matrix", "multi-choice", another_letter, "answer_value"),
        ("metric_depth", "multi-choice", another_text, "option_text"),
        ("homography_to_matrix", "multi-choice", other_bytes, "images"),
        ("metric_depth", "judgment", another_claim, "claim"),
        ("metric_depth", "open-ended", lambda row: row.update(answer="9.99"), "answer"),
    ],
)
def test_verify_lists_a_row_that_was_changed(
    copied: Path, capsys: Capture, task: str, form: str, change: Callable[[Row], None], check: str
) -> None:
    item_id = tamper(copied, of(task, form), change)
    assert run("verify", copied) == 1
    *listed, last = capsys.readouterr().out.splitlines()
    assert any(line.startswith(f"{item_id} ({task}): {check}: ") for line in listed), listed
    assert {line.partition(" ")[0] for line in listed} == {item_id}
    count = len(load(copied))
    assert last.startswith(f"{count - 1} of {count} items verified")
    assert run("verify", copied, "--json") == 1
    assert {problem["item_id"] for problem in json.loads(capsys.readouterr().out)["problems"]} == {item_id}


def test_verify_with_the_scenes_of_something_else(dataset: Path, raw_room: Path, capsys: Capture) -> None:
    assert run("verify", dataset, "--scenes", raw_room / "wildrgbd", "--workers", 1, "--json") == 1
    told = json.loads(capsys.readouterr().out)
    missing = {item.id for item in load(dataset) if item.source == "ca1m"}
    assert {(problem["item_id"], problem["check"]) for problem in told["problems"]} == {
        (item_id, "scene_missing") for item_id in missing
    }
    assert told["from_scenes"] == told["items"] - len(missing) > 0


# --- show -------------------------------------------------------------------------------------------------------


def test_show_draws_the_row_that_was_asked_for(dataset: Path, tmp_path: Path, capsys: Capture) -> None:
    items = load(dataset)
    ids = items.ids()
    for item in (items[1], items[len(items) - 1]):
        beginning = next(item.id[:n] for n in range(1, 25) if sum(known.startswith(item.id[:n]) for known in ids) == 1)
        out = tmp_path / f"{beginning}.png"
        assert run("show", beginning, dataset, "--out", out) == 0
        assert capsys.readouterr().out == f"{out}: {item.task}, {item.question_type}, answer {item.answer}\n"
        assert out.read_bytes() == encode_png(
            draw_row(item, [items.image_bytes(item, k) for k in range(len(item.images))])
        )


def test_show_of_an_id_that_fits_no_row_or_several(dataset: Path, tmp_path: Path, capsys: Capture) -> None:
    items = load(dataset)
    out = tmp_path / "why.png"
    wanted = items[2].id
    swapped = wanted[:10] + ("0" if wanted[10] != "0" else "1") + wanted[11:]
    assert run("show", swapped, dataset, "--out", out) == 2
    assert f"found no item {swapped!r}; expected one of its {len(items)} ids. Did you mean {wanted}?" in one_line(
        capsys
    )
    first = next(c for c in "0123456789abcdef" if sum(known.startswith(c) for known in items.ids()) > 1)
    many = sum(known.startswith(first) for known in items.ids())
    assert run("show", first, dataset, "--out", out) == 2
    told = one_line(capsys)
    assert f"found {many} ids that begin with {first!r} (" in told
    assert all(known in told for known in [x for x in items.ids() if x.startswith(first)][:5])
    assert not out.exists()


@pytest.mark.parametrize(("terminal", "listed", "times"), [(True, True, 0), (True, False, 1), (False, True, 1)])
def test_a_terminal_shows_a_dropped_scene_once(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], terminal: bool, listed: bool, times: int
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: terminal)
    with _open_bars(listed_later=listed) as (on_scene, _):
        on_scene(SceneReport("ca1m", "90000001", error="no poses"), 1, 1)
    assert capsys.readouterr().err.count("dropped ca1m 90000001: no poses") == times


# --- the list, and the dataset that was built last --------------------------------------------------------------


def test_verbs_take_what_was_built_last(
    dataset: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run("show") == 2
    assert "none named, and none under build/" in one_line(capsys)
    for name, age_s in (("older", 2000), ("newer", 1000), ("never-composed", 0)):
        copy = Path(shutil.copytree(dataset, tmp_path / "build" / name))
        stamp_s = (dataset / "manifest.json").stat().st_mtime - age_s
        os.utime(copy / "manifest.json", (stamp_s, stamp_s))
    shutil.rmtree(tmp_path / "build" / "never-composed" / "items")
    voted = Path(shutil.copytree(dataset, tmp_path / "build" / "newer-hard")) / "manifest.json"
    voted.write_text(json.dumps(json.loads(voted.read_text()) | {HARD: {}}))
    item = load(dataset)[0]
    assert run("show", item.id) == 0
    captured = capsys.readouterr()
    assert captured.err == "dataset: build/newer (built last)\n"
    drawn = tmp_path / "build" / "newer" / "shown" / f"{item.id}.png"
    assert captured.out.startswith(f"build/newer/shown/{item.id}.png: ")
    assert drawn.read_bytes().startswith(b"\x89PNG")
    assert run("show", item.id, dataset, "--out", "here.png") == 0
    assert capsys.readouterr().err == ""
    assert (tmp_path / "here.png").read_bytes() == drawn.read_bytes()


def test_show_filters_and_says_what_there_is(dataset: Path, capsys: Capture) -> None:
    items = load(dataset)
    assert run("show", dataset, "--ids") == 0
    assert capsys.readouterr().out.split() == items.ids()
    wanted = [item for item in items if item.task == "metric_depth" and item.question_type == "judgment"]
    assert wanted
    assert run("show", dataset, "--task", "metric_depth", "--type", "judgment", "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert [one["id"] for one in told] == [item.id for item in wanted]
    assert [one["answer"] for one in told] == [item.answer for item in wanted]
    assert run("show", dataset, "--task", "metric_depth,homography_to_matrix", "--ids") == 0
    assert capsys.readouterr().out.split() == items.ids()
    assert run("show", dataset, "--limit", 2) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == ["id", *items.ids()[:2]]
    assert run("show", dataset, "--task", "metric_dept") == 1
    told = "No question matches. Tasks in this dataset: homography_to_matrix, metric_depth. Types in this dataset: "
    assert told in capsys.readouterr().out


def test_show_refuses_an_id_with_options_of_the_list(dataset: Path, capsys: Capture) -> None:
    assert run("show", load(dataset)[0].id, dataset, "--task", "metric_depth") == 2
    assert "found it with options of the list" in one_line(capsys)
    assert run("show", dataset, "--out", "x.png") == 2
    assert "--out x.png: found no ID" in one_line(capsys)


@pytest.mark.parametrize(
    ("first", "second"),
    [("--facts", "--out"), ("--dry-run", "--check"), ("--stop-after", "--facts"), ("--check", "--json")],
)
def test_build_refuses_options_that_exclude_each_other(
    tmp_path: Path, capsys: Capture, first: str, second: str
) -> None:
    values: dict[str, list[object]] = {"--facts": [tmp_path], "--out": [tmp_path / "o"], "--stop-after": ["facts"]}
    assert run("build", first, *values.get(first, []), second, *values.get(second, [])) == 2
    assert f"{first} and {second}: found both" in one_line(capsys)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("kept", "flags", "status"),
    [(4, (), 0), (6, (), 1), (6, ("--allow-unchanged",), 0), (6, ("--refused", "drop"), 0)],
)
def test_distractors_says_what_stayed_and_exits_1_where_most_did(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: Capture, kept: int, flags: tuple[str, ...], status: int
) -> None:
    new = {"metric_depth/perturbed": 3, "relative_pose/perturbed": 2}
    lost = {"metric_depth/perturbed/noise": 1, "metric_depth/perturbed/too_few_options": kept - 1}
    report = RedrawReport(tmp_path, {"seed": 3}, 20, 20 - 5 - kept, new, lost, {"fingerprint": "f" * 8})
    monkeypatch.setattr("vgbench_gen.pipeline.redraw.redraw", lambda *args, **settings: report)
    assert run("distractors", tmp_path, "--strategy", "perturbed", *flags) == status
    said = capsys.readouterr()
    out = said.out + said.err
    what = "left out" if "drop" in flags else "unchanged"
    assert f"metric_depth: {3 + kept} questions, new options for 3 by perturbed; {kept} {what}" in out
    assert f"(too_few_options {kept - 1})" in out
    assert "replaces the one with seed 3" in out
    assert "relative_pose: 2 questions, new options for 2 by perturbed" in out
    assert f"5 of {5 + kept} questions have new options, {kept} {what}" in out
    assert ("--allow-unchanged accepts that" in out) == bool(status)
    report.new, report.out = {}, None
    assert run("distractors", tmp_path, "--strategy", "perturbed", *flags) == 1
    assert "so nothing is written. Its options lie closer together than the margins allow: add --margins recorded." in (
        capsys.readouterr().err
    )
