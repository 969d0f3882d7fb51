"""`--json`: declared once, understood by every verb that tells something."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
import typer

from vgbench_gen.cli._screen import print_json
from vgbench_gen.cli.main import main, make_app

Capture = pytest.CaptureFixture[str]
RECIPE = """\
seed = 5
facts_per_scene = 4
tasks = ["metric_depth", "homography_to_matrix"]
"""
RUN = (
    "build {recipe} --scenes {raw} --out {set} --workers 1 --dry-run",
    "build {recipe} --scenes {raw} --out {set} --workers 1 --stop-after facts",
    "build {recipe} --facts {set} --workers 1",
    "build {recipe} --scenes {raw} --out {set} --workers 1",
    "show {set}",
    "show {set} --ids",
    "show {id} {set}",
    "verify {set} --workers 1",
    "scenes {raw}",
    "audit {set} --only answers --workers 1 --out {out}/audit",
    "distractors {set} --prune 0.1 --dry-run --workers 1 --rounds 1",
    "distractors {set} --out {out}/other --seed 3 --workers 1",
    "browse {set} --out {out}/pages",
    "export {set} --to chat-jsonl --out {out}/export",
    "lint {out}/export",
    "mix {mix} --out {out}/mix --allow-short",
    "eval {set} --model baseline:constant --model baseline:random",
    "eval {set} --model baseline:constant --estimate",
    "compare {set} --out {out}/scores",
    "difficulty {set} --model baseline:constant --model baseline:random",
    "vote {set} --model baseline:constant --model baseline:random --wrong 1 --large 0 --dry-run",
    "review {set} --report",
    "models",
    "agent tools",
    "agent call Calculate --arguments {sum}",
)
"""In an order in which each finds what it needs; `--json` is added to all of them."""
ELSEWHERE = {"samples", "import", "paraphrase", "publish", "pull", "agent ask"}
"""Need scripts, scans or a Hub; the JSON of each is read by the verb's own tests."""
WITHOUT = {"agent serve"}
"""Tells nothing but its address until it is stopped."""


def list_verbs() -> dict[str, set[str]]:
    """Verb -> the names of its options, for the whole program."""
    app: Any = typer.main.get_command(make_app())
    found: dict[str, set[str]] = {}
    for name, command in app.commands.items():
        below = getattr(command, "commands", None)
        named = {f"{name} {each}": one for each, one in below.items()} if below else {name: command}
        found |= {verb: {flag for p in one.params for flag in p.opts} for verb, one in named.items()}
    return found


def test_every_verb_that_tells_something_understands_json(raw_room: Path, tmp_path: Path, capfd: Capture) -> None:
    verbs = list_verbs()
    assert {verb for verb, options in verbs.items() if "--json" not in options} == WITHOUT
    run = {next(verb for verb in sorted(verbs, reverse=True) if f"{line} ".startswith(f"{verb} ")) for line in RUN}
    assert run | ELSEWHERE | WITHOUT == set(verbs)
    recipe = tmp_path / "quick.toml"
    recipe.write_text(RECIPE)
    mix = tmp_path / "mix.toml"
    mix.write_text('rows = 4\nsources = [{ dataset = "set" }]\n')
    places = {"recipe": recipe, "mix": mix, "raw": raw_room, "set": tmp_path / "set", "out": tmp_path / "out"}
    item_id = ""
    for line in RUN:
        arguments = [part.format(**places, id=item_id, sum='{"expression":"6*7"}') for part in line.split()]
        status = main([*arguments, "--json"])
        said = capfd.readouterr()
        assert status in (0, 1), f"{line}: {said.err}"
        told = json.loads(said.out)  # one document and not a word besides
        assert told, line
        if line.startswith("show {set}"):
            item_id = told[0]["id"]
            assert set(told[0]) == {"id", "task", "question_type", "source", "scene", "answer"}
            assert main([*arguments, "--json", "--quiet"]) == 0
            assert json.loads(capfd.readouterr().out) == told
    assert main(["show", str(places["set"]), "--task", "chess", "--json"]) == 1
    said = capfd.readouterr()
    assert json.loads(said.out) == []
    assert "Tasks in this dataset: homography_to_matrix, metric_depth" in said.err


def test_a_verb_that_tells_nothing_refuses_it(capsys: Capture) -> None:
    assert main(["agent", "serve", "--json"]) == 2
    assert "No such option: --json" in capsys.readouterr().err


def test_numbers_that_json_has_no_word_for_are_null(capsys: Capture) -> None:
    print_json({"a": [math.nan, math.inf, 0.1], "é": "\u2028"})
    assert json.loads(capsys.readouterr().out, parse_constant=pytest.fail) == {"a": [None, None, 0.1], "é": "\u2028"}
