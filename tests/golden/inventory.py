"""Names that users rely on: what was there in the baseline must still be there; more names are fine."""

from __future__ import annotations

import importlib
import importlib.metadata
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
KEPT = Path(__file__).parent / "baseline" / "inventory.json"
Names = dict[str, list[str]]  # what they name -> the names, sorted


def run(write: bool) -> int:
    """Print what is missing now, or write the names of now."""
    now = collect()
    if write:
        KEPT.write_text(json.dumps(now, indent=1, sort_keys=True) + "\n")
        print(f"wrote {sum(map(len, now.values()))} names of {len(now)} kinds")
        return 0
    lines = missing(json.loads(KEPT.read_text()), now)
    print("\n".join(lines) or f"all of {sum(map(len, now.values()))} names are there")
    return 1 if lines else 0


def in_new_process() -> Names:
    """`collect` in a process that has imported nothing yet, so that every group of entry points is asked for."""
    code = "import json; from tests.golden.inventory import collect; print(json.dumps(collect()))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    found: Names = json.loads(done.stdout)
    return found


def missing(before: Names, now: Names) -> list[str]:
    """A line for each name of before that is gone."""
    return [
        f"{kind}: {name} is gone"
        for kind in before
        for name in before[kind]
        if name not in now.get(kind, [])
    ]  # fmt: skip


def collect() -> Names:
    """All names of now."""
    groups: list[str] = []
    asked = importlib.metadata.entry_points

    def noted(**wanted: Any) -> Any:
        groups.append(wanted.get("group", ""))
        return asked(**wanted)

    importlib.metadata.entry_points = noted
    try:
        found = _plugins()
    finally:
        importlib.metadata.entry_points = asked
    found |= _program() | _columns() | _recipes()
    import vgbench_gen

    found["exported by vgbench_gen"] = [name for name in vgbench_gen.__all__ if hasattr(vgbench_gen, name)]
    found["entry-point groups"] = [group for group in groups if group.startswith("vgbench_gen.")]
    found["targets of make"] = re.findall(r"^([a-z-]+):.*## ", (ROOT / "Makefile").read_text(), re.M)
    return {kind: sorted({*names}) for kind, names in found.items()}


def _plugins() -> Names:
    """Names in every registry; a registry is a value at the top of a module, annotated or not."""
    import vgbench_gen
    from vgbench_gen.core.registry import Registry

    found: dict[str, list[str]] = {}
    for path in sorted(Path(vgbench_gen.__file__).parent.rglob("*.py")):
        if not re.search(r"^\w+.*=\s*Registry(\[.*\])?\(", path.read_text(), re.M):
            continue
        parts = ("vgbench_gen", *path.relative_to(Path(vgbench_gen.__file__).parent).with_suffix("").parts)
        module = importlib.import_module(".".join(part for part in parts if part != "__init__"))
        for value in list(vars(module).values()):
            if isinstance(value, Registry):
                found.setdefault(f"plug-ins: {value.kind}", []).extend(value.names())
    found["baselines"] = _baselines()
    return found


def _baselines() -> list[str]:
    from vgbench_gen.evaluation.baselines import list_baselines

    return list_baselines()


def _program() -> Names:
    """Verbs, and the arguments and options of each; hidden ones count, they are accepted."""
    import typer

    from vgbench_gen.cli.main import make_app

    command: Any = typer.main.get_command(make_app())
    found = {"verbs": sorted(command.commands)}
    for verb, one in command.commands.items():
        options = [name for option in one.params for name in (*option.opts, *option.secondary_opts)]
        found[f"vgbench {verb}"] = [name for name in options if name.startswith("-")]
    return found


def _columns() -> Names:
    from vgbench_gen.store import columns

    tables = (("items", columns.ITEM_COLUMNS), ("facts", columns.FACT_COLUMNS), ("rejects", columns.REJECT_COLUMNS))
    return {f"columns of {name}": [column.name for column in table] for name, table in tables}


def _recipes() -> Names:
    from vgbench_gen.pipeline.recipe import Recipe

    shipped = sorted((ROOT / "vgbench_gen" / "recipes").glob("*.toml"))
    return {"recipes": [path.stem for path in shipped], "keys of a recipe": [*Recipe.model_fields]}
