"""Pages of the command line, made from the program itself: one for each verb, under `docs/cli/`, never committed."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from vgbench_gen.cli._verbs import find_first_sentence, list_help

OTHER = "Other"


def pages() -> dict[str, str]:
    """Name of each page -> its Markdown; "index" lists the verbs by group."""
    import typer

    from vgbench_gen.cli.main import make_app

    program: Any = typer.main.get_command(make_app())
    top = program.make_context("vgbench", [], resilient_parsing=True)
    groups: dict[str, list[str]] = {}
    found = {}
    for name in sorted(program.list_commands(top)):
        command = program.get_command(top, name)
        groups.setdefault(str(getattr(command, "rich_help_panel", None) or OTHER), []).append(name)
        found[name] = _page(command, type(top)(command, info_name=name, parent=top))
    found["index"] = _index(program, groups)
    return found


def _index(program: Any, groups: dict[str, list[str]]) -> str:
    parts = ["# Command line", program.help.strip(), "Every verb has `--help`. Exit status: 0 done, 1 the work fell "
             "short, 2 something you can mend."]  # fmt: skip
    order = ["Build", "Look", "Vary", "Score", "Share"]
    for group in sorted(groups, key=lambda name: (order.index(name) if name in order else len(order), name)):
        rows = "\n".join(f"| {{doc}}`vgbench {name} <{name}>` | {_first(program, name)} |" for name in groups[group])
        parts.append(f"## {group}\n\n| verb | does |\n|---|---|\n{rows}")
    names = "\n".join(name for group in groups.values() for name in group)
    parts.append(f"```{{toctree}}\n:hidden:\n\n{names}\n```")
    return "\n\n".join(parts) + "\n"


def _first(program: Any, name: str) -> str:
    """First sentence of a verb's help, in one line of a table."""
    return _cell(find_first_sentence(program.commands[name].help or ""))


def _page(command: Any, context: Any) -> str:
    usage = " ".join(command.get_usage(context).removeprefix("Usage: ").split())
    parts = [f"# vgbench {command.name}", f"```text\n{usage}\n```", _help(command.help or "")]
    for title, records in list_help(command, context).items():
        rows = "\n".join(f"| `{_cell(name)}` | {_cell(_help(text))} |" for name, text in records)
        parts.append(f"## {title}\n\n| name | meaning |\n|---|---|\n{rows}")
    if command.epilog:
        parts.append(f"## Example\n\n```sh\n{command.epilog.removeprefix('Example: ').strip()}\n```")
    return "\n\n".join(parts) + "\n"


def _help(text: str) -> str:
    """Help as Markdown: words in backticks stay code, everything else that Markdown would read as a mark does not."""
    return "".join(
        part if part.startswith("`") else re.sub(r"([\\*_<>\[\]#$])", r"\\\1", part)
        for part in re.split(r"(`[^`\n]*`)", text.strip())
    )


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", r"\|")


def _write(app: Any) -> None:
    folder = Path(app.srcdir) / "cli"
    folder.mkdir(exist_ok=True)
    made = pages()
    for path in folder.glob("*.md"):
        if path.stem not in made:
            path.unlink()
    for name, text in made.items():
        path = folder / f"{name}.md"
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


def setup(app: Any) -> dict[str, bool]:
    """Write the pages before Sphinx looks for its sources."""
    app.connect("builder-inited", _write)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
