"""Commands and snippets in README and docs are those of the program, and run as they are printed."""

from __future__ import annotations

import ast
import re
import shlex
import shutil
import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import typer

from tests.pipeline.same_bytes import small_recipe
from vgbench_gen.cli._options import find_current_dataset
from vgbench_gen.cli.main import _USAGE_ERROR, _format_usage_message, main, make_app
from vgbench_gen.pipeline.build import build
from vgbench_gen.store.dataset import load

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *(page for page in sorted((ROOT / "docs").rglob("*.md")) if page.parent.name != "cli")]
"""Pages of `docs/cli` are made anew by each `make docs`, from the program itself."""
NEEDS = {
    "a key",
    "the network",
    "a cluster",
    "a person",
    "other files",
    "another program",
    "torch",
    "the code around it",
}
"""What a block may say that it needs, in a comment before it; it is then read and not run."""
FENCE = re.compile(r"(?:^ *<!-- needs: ([a-z ]+) -->\n)?^( *)```(\w+)\n(.*?)^ *```", re.DOTALL | re.MULTILINE)
FALLS_SHORT = ("audit", "vote", "verify", "build", "distractors")
"""Verbs whose status 1 says what the small rooms of a test cannot give."""


@dataclass(frozen=True)
class Block:
    page: str
    language: str
    text: str
    needs: str

    @property
    def commands(self) -> list[list[str]]:
        """The words of every command line; comments, and what follows a pipe, are left out."""
        lines = self.text.replace("\\\n", " ").splitlines()
        return [words for words in (shlex.split(line, comments=True) for line in lines) if words]


def list_blocks(*languages: str) -> list[Block]:
    return [
        Block(str(page.relative_to(ROOT)), match[3], match[4], match[1] or "")
        for page in PAGES
        for match in FENCE.finditer(page.read_text("utf-8"))
        if match[3] in languages
    ]


def list_commands(program: str) -> list[tuple[str, list[str]]]:
    """(page, words) of every command line of a program."""
    return [(b.page, words[1:]) for b in list_blocks("sh") for words in b.commands if words[0] == program]


@cache
def get_program() -> Any:
    return typer.main.get_command(make_app())


def read_words(words: list[str]) -> None:
    """Parse a command line as the program does, types and required arguments too, and do nothing.

    Raises:
        typer.BadParameter: or another usage error, where the program would refuse it.
    """
    command = get_program()
    with command.make_context("vgbench", list(words)) as context:
        while getattr(command, "commands", None):
            name, command, left = command.resolve_command(context, [*context._protected_args, *context.args])
            context = command.make_context(name, left, parent=context)


def find_problem(words: list[str]) -> str:
    """Why the program would refuse these words before it does anything; "" where it would not."""
    try:
        read_words(words)
    except typer.Exit:
        return ""  # --help, --version
    except _USAGE_ERROR as error:
        return _format_usage_message(error)
    return ""


@pytest.fixture(scope="session")
def place(raw_room: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder as readers of the pages have it: scans, and datasets of the names that are printed."""
    folder = tmp_path_factory.mktemp("place")
    (folder / "raw_scenes").symlink_to(raw_room)
    recipe = small_recipe().model_copy(update={"tasks": ("relative_pose", "metric_depth", "homography_to_matrix")})
    assert build(recipe, raw_room, folder / "build" / "vgbench").composed.total > 15
    for name in ("mine", "demo"):
        shutil.copytree(folder / "build" / "vgbench", folder / "build" / name)
    return folder


def run_block(block: Block, leave: tuple[str, ...] = ()) -> list[str]:
    """Run what can be run of a block in `place`; the lines that failed, with their status.

    leave: verbs that are read alone, for the time that they take.
    """
    failed = []
    scans = str(Path("raw_scenes").resolve())
    for words in block.commands:
        if words[0] == "vgbench":
            given = [scans if word == "/data/scans" else word for word in words[1:]]
            if given[0] in leave:
                continue
            if "ID" in given:
                given[given.index("ID")] = load(find_current_dataset()).ids()[0]
            status = main(given)
            if status and not (status == 1 and given[0] in FALLS_SHORT):
                failed.append(f"{block.page}: {shlex.join(words)}: status {status}")
        elif words[0] == "make":
            done = subprocess.run(
                ["make", "-n", "-C", str(ROOT), *words[1:]], capture_output=True, text=True, check=False
            )
            if done.returncode:
                failed.append(f"{block.page}: {shlex.join(words)}: {done.stderr}")
        elif words[0] != "source":
            failed.append(f"{block.page}: {shlex.join(words)}: nobody runs this; say what the block needs")
    return failed


def test_a_wrong_command_is_found() -> None:
    assert find_problem(["bild"]).startswith("No such command 'bild'")
    assert find_problem(["build", "--scene", "x"]).startswith("No such option: --scene")
    assert find_problem(["export", "build/mine"]).startswith("Missing option '--to'.")
    assert "a valid integer" in find_problem(["build", "--workers", "many"])
    assert find_problem(["agent", "ask", "What?"]).startswith("Missing option '--model'.")
    assert find_problem(["build", "vgbench", "--scenes", "x", "--seed=3"]) == ""


def test_every_command_is_one_of_the_program(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(place)  # some take the dataset that was built last
    commands = list_commands("vgbench")
    assert len(commands) > 60
    problems = [(f"{page}: vgbench {shlex.join(words)}", find_problem(words)) for page, words in commands]
    assert not [(line, problem) for line, problem in problems if problem]


def test_what_a_block_needs_is_known() -> None:
    blocks = list_blocks("sh", "python")
    assert {block.needs for block in blocks} == {"", *NEEDS}
    runnable = [block for block in blocks if block.language == "sh" and not block.needs]
    programs = {words[0] for block in runnable for words in block.commands}
    assert programs <= {"vgbench", "make", "source"}


FIRST = ("README.md", "docs/quickstart.md")
QUICK, REST = (
    [block for block in list_blocks("sh", "python") if not block.needs and (block.page in FIRST) == first]
    for first in (True, False)
)


def name_block(block: Block) -> str:
    return f"{block.page}:{block.text.split(maxsplit=3)[:3]}"


@pytest.mark.parametrize("block", [block for block in QUICK if block.language == "sh"], ids=name_block)
def test_commands_of_the_first_pages_run(block: Block, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(place)
    assert run_block(block, ("build",)) == []


@pytest.mark.slow
@pytest.mark.parametrize("block", [block for block in QUICK + REST if block.language == "sh"], ids=name_block)
def test_commands_of_every_page_run(block: Block, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(place)
    assert run_block(block) == []


@pytest.mark.slow
@pytest.mark.parametrize("block", [b for b in QUICK + REST if b.language == "python"], ids=name_block)
def test_snippets_run(
    block: Block, place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from PIL import Image

    monkeypatch.chdir(place)
    monkeypatch.setattr(Image.Image, "show", lambda image: None)  # no screen
    text = block.text.replace("/data/scans", str(Path("raw_scenes").resolve()))
    exec(compile(text, block.page, "exec"), {"__name__": "__main__"})
    assert len(capsys.readouterr().out) < 300_000


def test_every_target_is_one_of_the_makefile() -> None:
    makefile = (ROOT / "Makefile").read_text("utf-8")
    targets = set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE))
    variables = set(re.findall(r"\$\((?:or )?([A-Z_]+)", makefile)) | {"RULE", "HARD", "TRAIN"}
    commands = list_commands("make")
    assert len(commands) > 5
    for page, words in commands:
        for word in words:
            name, equals, _ = word.partition("=")
            assert name in (variables if equals else targets), f"{page}: make {shlex.join(words)}"


@pytest.mark.parametrize("block", list_blocks("python"), ids=name_block)
def test_every_python_snippet_names_what_there_is(block: Block) -> None:
    import vgbench_gen

    for node in ast.walk(ast.parse(block.text)):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "vgbench_gen":
            assert hasattr(vgbench_gen, node.attr), f"{block.page}: vgbench_gen.{node.attr}"
