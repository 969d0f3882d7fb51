"""Packages from outside: those of `examples/`, installed by entry point and run through the verbs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"

# One process for many verbs: what takes long is importing.
_DRIVER = """
import contextlib, io, json, sys
from vgbench_gen.cli.main import main
for line in sys.stdin:
    out, errors = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
        status = main(json.loads(line))
    print(json.dumps([status, out.getvalue(), errors.getvalue()]), flush=True)
"""


def install(example: str, site: Path) -> None:
    """Put a package of `examples/` into a folder that Python imports from, as pip would."""
    folder = EXAMPLES / example
    paths = [path for path in folder.rglob("*") if path.suffix in (".py", ".toml")]
    install_files({path.relative_to(folder).as_posix(): path.read_text("utf-8") for path in paths}, site)


def install_files(files: dict[str, str], site: Path) -> None:
    """The same with the files of any package, its `pyproject.toml` among them."""
    project = tomllib.loads(files.pop("pyproject.toml"))["project"]
    lines = []
    for group, entries in project["entry-points"].items():
        lines += [f"[{group}]", *(f"{name} = {module}" for name, module in entries.items())]
    about = f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
    files[f"{about}/METADATA"] = f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n"
    files[f"{about}/entry_points.txt"] = "\n".join(lines) + "\n"
    for path, text in files.items():
        (site / path).parent.mkdir(parents=True, exist_ok=True)
        (site / path).write_text(text, "utf-8")


@dataclass(frozen=True, slots=True)
class Told:
    """What one call of the program gave."""

    arguments: list[str]
    status: int
    out: str
    errors: str

    def json(self) -> Any:
        """Its standard output, read as JSON."""
        return json.loads(self.out)


Program = Callable[..., list[Told]]
"""Calls the program with these arguments, one call after the other."""


@contextmanager
def started(site: Path) -> Iterator[Program]:
    """The program in a process of its own that has the packages of `site`."""
    paths = {"PYTHONPATH": f"{ROOT}{os.pathsep}{site}"}
    with subprocess.Popen(
        [sys.executable, "-c", _DRIVER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, **paths},
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        stdin, stdout = process.stdin, process.stdout

        def vgbench(*calls: Sequence[str | Path]) -> list[Told]:
            told = []
            for call in calls:
                arguments = [str(argument) for argument in call]
                print(json.dumps(arguments), file=stdin, flush=True)
                line = stdout.readline()
                assert line, f"{arguments} ended the process"
                told.append(Told(arguments, *json.loads(line)))
            return told

        yield vgbench
