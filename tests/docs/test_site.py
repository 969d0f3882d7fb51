"""The documentation site: pages of the program are made from it, names on the pages of the interface exist."""

from __future__ import annotations

import importlib
import importlib.util
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import typer
import yaml

import vgbench_gen
from vgbench_gen.cli.main import make_app

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
TOCTREE = re.compile(r"```\{toctree\}\n(.*?)```", re.DOTALL)


def extension(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, DOCS / "_ext" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_verb_and_option_has_its_line() -> None:
    pages = extension("cli_reference").pages()
    program: Any = typer.main.get_command(make_app())
    listed = {name: command for name, command in program.commands.items() if not command.hidden}
    assert set(pages) == {"index", *listed}
    for name, command in listed.items():
        assert f"<{name}>`" in pages["index"]
        assert pages[name].startswith(f"# vgbench {name}\n")
        for parameter in command.params:
            for flag in [*parameter.opts, *parameter.secondary_opts] if parameter.param_type_name == "option" else []:
                assert re.search(rf"`[^`]*{re.escape(flag)}\b[^`]*`", pages[name]), (name, flag)


def test_help_cannot_be_read_as_markup() -> None:
    module = extension("cli_reference")
    assert module._help("needs [items], a_b*, `x_[y]`") == r"needs \[items\], a\_b\*, `x_[y]`"
    assert module._cell("a | b\nc") == r"a \| b c"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("of `a_b`, as *args", r"of ``a_b``, as \*args"),
        (":param x: `y` | z", r":param x: ``y`` \| z"),
        ("see `docs/validity.md#noise-test`.", "see `validity: noise test <../validity.html#noise-test>`__."),
        ("``kept`` and :class:`kept`", "``kept`` and :class:`kept`"),
        ("shape (n_, 3)", r"shape (n\_, 3)"),
    ],
)
def test_docstrings_become_restructured_text(text: str, expected: str) -> None:
    assert extension("plain_docstrings").adapted([text]) == [expected]


def test_named_interfaces_exist() -> None:
    named = re.findall(r"^\.\. auto(module|function|class):: ([\w.]+)$",
                       "\n".join(path.read_text(encoding="utf-8") for path in sorted((DOCS / "api").glob("*.md"))),
                       re.MULTILINE)  # fmt: skip
    assert {f"vgbench_gen.{name}" for name in vgbench_gen.__all__ if name != "__version__"} <= {n for _, n in named}
    for kind, name in named:
        if kind == "module":
            importlib.import_module(name)
        else:
            module, _, attribute = name.rpartition(".")
            assert hasattr(importlib.import_module(module), attribute), name


def test_every_page_is_listed_once() -> None:
    pages = [path for path in sorted(DOCS.rglob("*.md")) if path.parent.name != "cli"]  # those are made at each build
    listed = [
        (path.parent / line).relative_to(DOCS).as_posix()
        for path in pages
        for body in TOCTREE.findall(path.read_text(encoding="utf-8"))
        for line in body.splitlines()
        if line and not line.startswith(":")
    ]
    there = [path.relative_to(DOCS).with_suffix("").as_posix() for path in [*pages, *DOCS.rglob("*.ipynb")]]
    assert sorted(listed) == sorted({*there, "cli/index"} - {"index"})


def test_pictures_are_few_small_and_shown() -> None:
    pages = [ROOT / "README.md", *DOCS.rglob("*.md")]
    shown = {
        (page.parent / name).resolve()
        for page in pages
        for name in re.findall(r"!\[[^\]]+\]\(([^)]+)\)", page.read_text("utf-8"))
    }
    there = set((DOCS / "assets").iterdir())
    assert shown == there
    assert len(there) <= 8
    assert max(path.stat().st_size for path in there) <= 150_000


def test_the_citation_file_is_whole() -> None:
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert cited["cff-version"] == "1.2.0"
    assert {"message", "title", "authors"} <= set(cited)
    assert cited["version"] == vgbench_gen.__version__
    assert cited["license"] == "Apache-2.0"


@pytest.mark.slow
def test_the_site_is_built_without_a_warning(tmp_path: Path) -> None:
    pytest.importorskip("furo", reason="`make docs` installs what the site is built with")
    done = subprocess.run(
        [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-n", "-q", "-b", "html", str(DOCS), str(tmp_path)],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "cli" / "build.html").is_file()


def test_the_readme_is_read_in_minutes() -> None:
    words = [word for word in (ROOT / "README.md").read_text(encoding="utf-8").split() if re.search(r"\w", word)]
    assert len(words) <= 800
