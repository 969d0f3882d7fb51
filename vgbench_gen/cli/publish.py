"""`vgbench publish`: a dataset to the Hugging Face Hub."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from vgbench_gen.cli._options import DatasetFolder
from vgbench_gen.cli._screen import print_json, progress_bar
from vgbench_gen.cli._verbs import verb
from vgbench_gen.core.config import Flag
from vgbench_gen.core.errors import ConfigError

if TYPE_CHECKING:
    from vgbench_gen.publish.package import Package
    from vgbench_gen.publish.release import Options


@verb("publish", "Share", "vgbench publish build/vgbench --repo lab/vgbench --dry-run")
def publish(
    dataset: DatasetFolder,
    repo: Annotated[str, Flag("Repository on the Hub, created if needed; optional with --dry-run.", "OWNER/NAME")] = "",
    dry_run: Annotated[bool, Flag("Write and test-load the files, but upload nothing.")] = False,
    out: Annotated[Path | None, Flag("Folder for the files; default: DATASET/publish.", "FOLDER")] = None,
    hard: Annotated[Path | None, Flag("Hard subset: a dataset, or ids (JSON or one per line).", "PATH")] = None,
    train: Annotated[Path | None, Flag("Build with training data from other scenes.", "FOLDER")] = None,
    candidates: Annotated[bool, Flag("Upload hard questions even if reviewers have not accepted all.")] = False,
    with_pixels: Annotated[
        list[str] | None, Flag("Publish withheld images of source NAME under this license.", "NAME=LICENSE")
    ] = None,
    scores: Annotated[list[str] | None, Flag("Script or baseline whose scores the card shows, too.", "MODEL")] = None,
    title: Annotated[str, Flag("Title of the dataset card; default: the repository's name.", "TITLE")] = "",
    version: Annotated[str, Flag("Version of the data.", "X.Y.Z")] = "1.0.0",
    date: Annotated[str, Flag("Date of publication, for the metadata.", "YYYY-MM-DD")] = "",
    revision: Annotated[str, Flag("Branch, created if needed.", "BRANCH")] = "main",
    pull_request: Annotated[bool, Flag("Open a pull request instead of committing.")] = False,
    public: Annotated[bool, Flag("Make the repository public; default: private.")] = False,
    message: Annotated[str, Flag("Message of the commit.", "TEXT")] = "Publish with vgbench-gen",
    check: Annotated[bool, Flag("Test-load the files with `datasets`.", names="--check/--no-check")] = True,
    as_json: bool = False,
) -> None:
    """Publish a dataset on the Hugging Face Hub.

    Writes parquet files with images, a dataset card with example images, Croissant metadata, the audit, the recipe and
    the manifest, test-loads them with `datasets`, and uploads them as one commit. Images whose license forbids it are
    left out; `vgbench pull --scenes` re-creates them from the user's own scans. The token comes from HF_TOKEN or `hf
    auth login`. A second run resumes and repeats no finished step.
    """
    from vgbench_gen.publish.baselines import find_unpublished
    from vgbench_gen.publish.hub import Target, push
    from vgbench_gen.publish.release import Options, name_repository, read_vote, require_reviewed

    if not repo and not dry_run:
        raise ConfigError("--repo: found none; expected OWNER/NAME on the Hub, or --dry-run.")
    options = Options(
        repo or name_repository(dataset), hard, train, tuple(with_pixels or ()), title, version, date,
        tuple(scores or ()),
    )  # fmt: skip
    if not dry_run:
        require_reviewed(read_vote(dataset, hard), candidates)
    folder = out or dataset / "publish"
    left_out = find_unpublished(dataset, options.scores)
    written = _write_package(dataset, folder, options, check, as_json) | {"scores_left_out": left_out}
    if not as_json:
        for reason, specs in left_out.items():
            print(f"not on the card, {reason}: scores of {', '.join(specs)}")
    if dry_run and not as_json:
        print(f"next: read {folder}/README.md; without --dry-run and with --repo OWNER/NAME it is uploaded")
    if not dry_run:
        target = Target(options.repo, revision, pull_request, public, message)
        pushed = push(folder, target, lambda text: print(f"vgbench: {text}", file=sys.stderr))
        written |= {"commit": pushed.commit, "url": pushed.url, "changed": pushed.changed}
        if not as_json:
            print(f"published: {pushed.url}" if pushed.changed else f"nothing has changed since {pushed.url}")
    if as_json:
        print_json(written)


def _write_package(dataset: Path, folder: Path, options: Options, check: bool, as_json: bool) -> dict[str, Any]:
    """Write the files, open them as a user would, and print the result; returns it, JSON-ready."""
    from vgbench_gen.publish.package import write_package
    from vgbench_gen.publish.smoke_test import open_with_datasets

    with progress_bar("writing", "row") as progress:
        made = write_package(dataset, folder, options, progress)
    for warning in (*made.warnings, *_name_doubtful_terms(made)):
        print(f"vgbench: warning: {warning}", file=sys.stderr)
    written: dict[str, Any] = {
        "folder": str(folder),
        "repo": options.repo,
        "rows": dict(made.rows),
        "files": len(made.files) + 1,
        "bytes": made.size_bytes,
        "without_images": sum(each.rows for each in made.decisions if not each.pixels),
        "opened": open_with_datasets(folder, made.rows) if check else None,
    }
    if not as_json:
        _print_package(made, written)
    return written


def _name_doubtful_terms(made: Package) -> list[str]:
    """Whose images go out because of where their scans lie: nothing in a scan says whose it is."""
    return [
        f"{each.policy.name}: images go out under its terms ({each.policy.terms}), as the scans lie in its folders. "
        "Where they are other people's, or your own, other terms hold: publish a set that was built without them."
        for each in made.decisions
        if each.pixels and each.policy.kind == "scans" and not each.by_flag
    ]


def _print_package(made: Package, written: dict[str, Any]) -> None:
    rows = ", ".join(f"{name} {count:,}" for name, count in made.rows.items())
    print(f"{rows} questions: {written['files']} files, {written['bytes'] / 1e6:.1f} MB in {written['folder']}")
    for decision in made.decisions:
        images = "with images" if decision.pixels else "without images"
        why = f"by --with-pixels, {decision.policy.licence}" if decision.by_flag else decision.policy.terms
        print(f"  {decision.policy.name}: {decision.rows:,} questions {images} ({why})")
    if written["opened"] is not None:
        opened = written["opened"]
        streamed, decoded = opened["streamed"], opened["images_decoded"]
        counts = f"{streamed:,} questions streamed, {decoded} images decoded"
        print(f"opened with datasets: {len(opened['configurations'])} configurations, {counts}")
