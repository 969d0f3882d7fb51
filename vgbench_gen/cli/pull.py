"""`vgbench pull`: a published dataset from the Hugging Face Hub."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from vgbench_gen.cli._options import Workers
from vgbench_gen.cli._screen import print_json
from vgbench_gen.cli._verbs import add_verb
from vgbench_gen.core.lines import format_command


def register(app: typer.Typer) -> None:
    """Add the verb."""
    add_verb(
        app, "pull", pull, "Share", "vgbench pull lab/vgbench --out build/pulled && vgbench eval build/pulled --model …"
    )


def pull(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="OWNER/NAME on the Hub, or a folder that `vgbench publish` wrote.")
    ],
    out: Annotated[Path, typer.Option("--out", metavar="FOLDER", help="New or empty, or the same set already.")],
    revision: Annotated[str, typer.Option("--revision", metavar="REF", help="Branch, tag or commit.")] = "main",
    part: Annotated[str, typer.Option("--part", metavar="NAME", help="vgbench, hard or train.")] = "vgbench",
    scenes: Annotated[
        list[Path] | None,
        typer.Option(
            "--scenes",
            metavar="FOLDER",
            help="Your own scans: make the images that were kept back, as `vgbench hydrate`.",
        ),
    ] = None,
    workers: Workers = 0,
    as_json: bool = False,
) -> None:
    """Bring a published dataset back as a build folder, which every other command reads.

    Every file is checked against its digest, every image against its name, and the questions against the fingerprint
    and the schema. Run it again after a cut: what was fetched is not fetched again. With --scenes it exits 1 while a
    row is without its images.
    """
    from vgbench_gen.cli.hydrate import make_images, print_hydrated
    from vgbench_gen.publish.pull import pull as fetch

    done = fetch(name, out, revision, part)
    made = make_images(done.folder, scenes, None, workers) if scenes else None
    if as_json:
        hydrated = {"hydrated": made.to_json()} if made else {}
        print_json({**asdict(done), "folder": str(done.folder), **hydrated})
        raise typer.Exit(int(bool(made and made.short)))
    there = "" if done.fresh else ", there already"
    print(f"{done.rows:,} questions in {done.folder}, fingerprint {done.fingerprint}{there}")
    if made:
        print_hydrated(made)
        raise typer.Exit(int(bool(made.short)))
    if scans := done.bare - sum(done.imports.values()):
        hydrate = format_command("vgbench", "hydrate", done.folder, "--scenes", "YOUR_SCANS")
        print(f"{scans:,} come without images: {hydrate}")
    for again, rows in done.imports.items():
        how = f"import it again: vgbench import {again} --out FOLDER" if again else "their authors alone have them"
        print(f"{rows:,} come without images, which no scan gives: {how}")
