"""Commands and snippets in README and docs are those of the program."""

from __future__ import annotations

import ast
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import typer

from vgbench_gen.cli.main import make_app

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
FENCE = re.compile(r"```(\w+)\n(.*?)```", re.DOTALL)


def list_blocks(language: str) -> list[tuple[str, str]]:
    """(page, text) of every block of a language."""
    return [
        (str(page.relative_to(ROOT)), match[2])
        for page in PAGES
        for match in FENCE.finditer(page.read_text("utf-8"))
        if match[1] == language
    ]


def list_commands(program: str) -> list[tuple[str, list[str]]]:
    """(page, words) of every command line of a program; comments and what follows a pipe are left out."""
    found = []
    for page, text in list_blocks("sh"):
        for line in text.replace("\\\n", " ").splitlines():
            words = shlex.split(line, comments=True)
            if words and words[0] == program:
                found.append((page, words[1:]))
    return found


def find_problem(words: list[str]) -> str:
    """Why the program would refuse these words before it does anything; "" where it would not."""
    app: Any = typer.main.get_command(make_app())
    if not words or words[0].startswith("-"):
        return ""
    command = app.commands.get(words[0])
    if command is None:
        return f"no verb {words[0]!r}"
    while getattr(command, "commands", None) and len(words) > 1 and words[1] in command.commands:
        command, words = command.commands[words[1]], words[1:]
    known = {flag for parameter in command.params for flag in (*parameter.opts, *parameter.secondary_opts)} | {"--help"}
    unknown = [word for word in words[1:] if re.match(r"--[a-z]", word) and word.partition("=")[0] not in known]
    return f"no option {', '.join(unknown)}" if unknown else ""


def test_a_wrong_command_is_found() -> None:
    assert find_problem(["bild"]) == "no verb 'bild'"
    assert find_problem(["build", "--scene", "x"]) == "no option --scene"
    assert find_problem(["build", "vgbench", "--scenes", "x", "--seed=3"]) == ""


def test_every_command_is_one_of_the_program() -> None:
    commands = list_commands("vgbench")
    assert len(commands) > 60
    problems = [f"{page}: vgbench {shlex.join(words)}: {find_problem(words)}" for page, words in commands]
    assert not [line for line in problems if not line.endswith(": ")]


def test_every_target_is_one_of_the_makefile() -> None:
    makefile = (ROOT / "Makefile").read_text("utf-8")
    targets = set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE))
    variables = set(re.findall(r"\$\((?:or )?([A-Z_]+)", makefile)) | {"RULE", "HARD", "TRAIN"}
    commands = list_commands("make")
    assert len(commands) > 10
    for page, words in commands:
        for word in words:
            name, equals, _ = word.partition("=")
            assert name in (variables if equals else targets), f"{page}: make {shlex.join(words)}"


@pytest.mark.parametrize(("page", "text"), list_blocks("python"))
def test_every_python_snippet_names_what_there_is(page: str, text: str) -> None:
    import vgbench_gen

    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "vgbench_gen":
            assert hasattr(vgbench_gen, node.attr), f"{page}: vgbench_gen.{node.attr}"
