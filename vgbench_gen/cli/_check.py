"""The end of a checked build: every answer again, what the audit found, and where to look."""

from __future__ import annotations

from pathlib import Path

from vgbench_gen.cli.audit import audit_into
from vgbench_gen.cli.verify import verify_dataset
from vgbench_gen.core.lines import format_command

_EXAMPLE = "example.png"


def check_dataset(dataset: Path, scenes: list[Path], workers: int) -> bool:
    """Verify a dataset that was just built, audit it, and tell in a few lines what was found.

    Args:
        dataset: its folder, to which the audit and a drawing of one question are added.
        scenes: folders with the raw scenes.
        workers: processes, 0 for all cores.

    Returns:
        whether every answer agrees and no figure of the audit fell.

    Raises:
        DatasetError: the dataset cannot be read.
    """
    from vgbench_gen.cli._screen import find_width
    from vgbench_gen.report.audit_table import format_lines

    verified = verify_dataset(dataset, scenes, workers)
    holds = not verified.problems
    print("\n".join(["", "built and verified" if holds else "built, but not verified", *verified.format_lines(), ""]))
    report = audit_into(dataset / "audit", dataset, verified=verified.problems, workers=workers)
    print("\n".join(format_lines(report, f"{dataset}/audit/index.html", find_width())))
    return holds and not report.fell


def draw_example(dataset: Path) -> str:
    """Draw the question that shows best what is asked, and say where, before the dataset is checked.

    Raises:
        DatasetError: the dataset cannot be read.
    """
    from vgbench_gen.quality.explain import draw_row, encode_png
    from vgbench_gen.report.gallery_openers import choose_example
    from vgbench_gen.store.dataset import load
    from vgbench_gen.store.files import write_bytes

    items = load(dataset)
    item = choose_example(items)
    images = [items.image_bytes(item, k) for k in range(len(item.images))]
    write_bytes(dataset / _EXAMPLE, encode_png(draw_row(item, images)))
    return f"a question, drawn: {dataset / _EXAMPLE}"


def list_places(dataset: Path) -> list[str]:
    """What to look at in a checked dataset, a line each."""
    places = {
        _EXAMPLE: "one question, drawn with the numbers behind its answer",
        "items/": 'the questions with their images: datasets.load_dataset("parquet", …)',
        "audit/index.html": "what the audit found, by task and question type",
        "manifest.json": "what was made from what",
    }
    width = max(map(len, places)) + len(f"{dataset}/")
    return [
        "Look at:",
        *(f"  {f'{dataset}/{place}'.ljust(width)}  {what}" for place, what in places.items()),
        f"All questions as a site: {format_command('vgbench', 'browse', dataset)}. "
        f"One, drawn: {format_command('vgbench', 'show', 'ID', dataset)}.",
    ]
