"""The dataset card: YAML front matter for the Hub and Markdown for people."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from typing import Any

from vgbench_gen.core.types import ALPHABET, QUESTION_TYPES
from vgbench_gen.publish.baselines import format_scores
from vgbench_gen.publish.data_files import CANARY, DataPart, Example
from vgbench_gen.publish.licences import Decision, RowsWithoutImages
from vgbench_gen.publish.release import ALL, HARD, TRAIN, Counts, Release, Vote
from vgbench_gen.publish.words import fill_page, format_table, info_of, load_word, name_of, share, title_of
from vgbench_gen.quality.findings import Finding
from vgbench_gen.report.audit_table import describe, make_table, name_cell, sort_findings, summarise_figures
from vgbench_gen.scenes.base import DatasetInfo
from vgbench_gen.store.schema import PUBLISHED
from vgbench_gen.tasks.base import tasks as registered
from vgbench_gen.text.render import find_templates_root

_SIZES = ((1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"), (1_000_000, "100K<n<1M"))
_CC0 = "cc0-1.0"
_HUB_LICENCES = {_CC0: "cc0-1.0", "mit": "mit"}  # `Item.licence` -> license id of the Hub


def write_card(
    release: Release,
    parts: Sequence[DataPart],
    decisions: Sequence[Decision],
    missing: RowsWithoutImages,
    examples: Sequence[Example],
) -> str:
    """`README.md` of the published set.

    Args:
        decisions: of the license gate on the benchmark and the training data.
        missing: questions of the benchmark that are published without images.

    Raises:
        ConfigError: a template has a slot too few or too many.
    """
    counts, options = release.counts, release.options
    folder = options.repo.partition("/")[2]
    slots = {
        "front": format_front_matter(release, parts),
        "title": options.name,
        "repo": options.repo,
        "folder": folder,
        "summary": _format_summary(release),
        "contents": _format_contents(release, missing),
        "canary": release.canary,
        "first_task": release.main.configurations[counts.tasks[0]],
        "configurations": _format_configurations(release, parts),
        "hydrate": f"vgbench pull build/{folder} --scenes /data/scans\n" if missing.scans else "",
        "examples": _format_examples(examples),
        "tasks": _format_tasks(counts),
        "origins": _format_origins(release),
        "hard": _format_vote(release.vote, release.options.hard is None),
        "columns": _format_columns(),
        "made": _format_provenance(release),
        "rebuild": load_word("made.rebuild") if isinstance(release.manifest.get("recipe"), dict) else "",
        "audit": _format_audit(release.audit),
        "baselines": format_scores(release),
        "licences": _format_licences(decisions, missing, options.repo, folder),
        "limits": _format_limits(release),
        "citation": _format_citation(release),
    }
    return fill_page("card.md", slots)


def format_front_matter(release: Release, parts: Sequence[DataPart]) -> str:
    """The YAML block at the top: license, tags, size, and the data files of each configuration."""
    from huggingface_hub import DatasetCardData

    configs = [_format_config(ALL, [part for part in parts if part.config == ALL]) | {"default": True}]
    configs += [_format_config(part.config, [part]) for part in parts if part.config in (HARD, TRAIN)]
    configs += [_format_config(part.name, [part]) for part in parts if part.task]
    total = sum(map(len, release.sets))
    block: dict[str, Any] = {
        "pretty_name": release.options.name,
        "language": ["en"],
        **_format_licence_lines(release),
        "task_categories": ["visual-question-answering", "image-text-to-text"],
        "annotations_creators": ["machine-generated"],
        "size_categories": [next((name for limit, name in _SIZES if total < limit), "n>1M")],
        "tags": ["benchmark", "spatial-reasoning", "visual-geometry", "3d", "rgb-d", "vgbench-gen", "croissant"],
        "configs": configs,
    }
    return f"---\n{DatasetCardData(**block).to_yaml(original_order=[*block])}\n---"


def _format_config(name: str, parts: Sequence[DataPart]) -> dict[str, Any]:
    paths = [part.pattern for part in parts]
    files = {"split": parts[0].split, "path": paths[0] if len(paths) == 1 else paths}
    return {"config_name": name, "data_files": [files]}


def _format_licence_lines(release: Release) -> dict[str, str]:
    ids = {licence for _, licence, _ in release.counts.origins}
    if len(ids) == 1 and (known := _HUB_LICENCES.get(next(iter(ids)))):
        return {"license": known}
    return {"license": "other", "license_name": "per-source", "license_link": "#licences-and-images"}


def _format_summary(release: Release) -> str:
    counts = release.counts
    version = str(release.manifest.get("code", {}).get("version", ""))
    numbers = {
        "items": f"{counts.total:,}",
        "images": f"{counts.images:,}",
        "tasks": str(len(counts.tasks)),
        "version": version or "of unknown version",
    }
    ours = any(info_of(source) for source, _ in counts.scenes)
    text = (
        load_word("summary.of_scans", **numbers, scenes=f"{sum(counts.scenes.values()):,}")
        if ours
        else load_word("summary.of_others", **numbers)
    )
    if {licence for _, licence in counts.scenes} == {_CC0}:
        layouts = ", ".join(title_of(source) for source, _ in counts.scenes)
        text += "\n\n" + load_word("summary.samples", sources=layouts)
    return text


def _format_contents(release: Release, missing: RowsWithoutImages) -> str:
    lines = [
        "[Load it](#load-it)", "[examples](#examples)", "[contents](#what-is-in-it)", "[making](#how-it-was-made)",
        "[conventions](#conventions)", "[audit](#audit)", "[licences and images](#licences-and-images)",
        "[limits](#limits)", "[citation](#citation)",
    ]  # fmt: skip
    line = " · ".join(lines)
    if missing.total:
        ways = [load_word("licences.scans", count=f"{missing.scans:,}")] if missing.scans else []
        ways += _list_imports(missing, "licences.import", "licences.from_authors")
        numbers = {"count": f"{missing.total:,}", "share": share(missing.total, release.counts.total)}
        line += "\n\n" + load_word("licences.short", **numbers, how="; ".join(ways))
    return line


def _format_configurations(release: Release, parts: Sequence[DataPart]) -> str:
    whole = [part for part in parts if part.config == ALL]
    total = sum(part.rows for part in whole)
    rows: list[tuple[object, ...]] = [
        (f"`{ALL}` (default)", f"`{whole[0].split}`", total, load_word("configurations.all"))
    ]
    for part in parts:
        if part.config != ALL:
            vote = release.vote if part.config == HARD else None
            key = part.config if vote is None else f"hard_{vote.status}"
            rows.append((f"`{part.config}`", f"`{part.split}`", part.rows, load_word(f"configurations.{key}")))
    names = ", ".join(f"`{part.name}`" + (f" ({part.title})" if part.title else "") for part in whole)
    rows.append((names, f"`{whole[0].split}`", "see below", load_word("configurations.task")))
    return format_table(("configuration", "split", "questions", "what"), rows, right=[2])


def _format_tasks(counts: Counts) -> str:
    cells, tasks = counts.cells, counts.tasks
    rows = [
        (f"`{task}`", name_of("tasks", task, _name_task(task)), *(cells[task, form] or "" for form in QUESTION_TYPES),
         sum(cells[task, form] for form in QUESTION_TYPES))
        for task in tasks
    ]  # fmt: skip
    sums = [sum(cells[task, form] for task in tasks) or "" for form in QUESTION_TYPES]
    total = ("**all**", "", *sums, counts.total)
    return format_table(("task", "asked", *QUESTION_TYPES, "all"), [*rows, total], right=[2, 3, 4, 5])


def _name_task(task: str) -> str:
    return (registered[task].asked if task in registered.names() else "") or " "


def _format_origins(release: Release) -> str:
    counts = release.counts
    by_source: dict[tuple[str, str], dict[str, int]] = {}
    for (source, licence, split), number in counts.origins.items():
        by_source.setdefault((source, licence), {})[split] = number
    rows = [
        (
            title_of(source) + (" (sample scenes)" if licence == _CC0 else ""),
            counts.scenes[source, licence],
            sum(splits.values()),
            share(sum(splits.values()), counts.total),
            ", ".join(f"{split} {number:,}" for split, number in sorted(splits.items())),
        )
        for (source, licence), splits in sorted(by_source.items())
    ]
    heads = ("scans", "scenes", "questions", "share", "questions by official split of the scene")
    return format_table(heads, rows, right=[1, 2, 3])


def _format_audit(found: Sequence[Finding] | None) -> str:
    """The section on the audit; found: its figures, None if there is no audit."""
    if found is None:
        return load_word("audit.none")
    heads, rows = make_table(found)
    blocks = [load_word("audit.intro", cells=f"{len(rows):,}", figures=summarise_figures(found))]
    blocks += [format_table(heads, rows), load_word("audit.legend")] if rows else []
    failed = [f"{name_cell(finding)}: {describe(finding)}" for finding in sort_findings(found) if finding.failed]
    if failed:
        blocks += [load_word("audit.failed"), "\n".join(f"- {_escape_markdown(text)}" for text in failed)]
    return "\n\n".join(blocks)


def _format_vote(vote: Vote | None, whole: bool) -> str:
    """The card's section on the vote; "" without a vote. whole: whether the vote chose the whole set."""
    if vote is None:
        return ""
    blocks = ["### The hard questions"]
    if whole:
        blocks.append(load_word("hard.whole"))
    if vote.rule:
        slots = {"wrong": str(vote.rule["wrong"]), "models": str(vote.rule["models"])}
        if vote.rule["large"]:
            billions = f"{float(vote.rule['large_from_billions']):g}"
            sentences = [load_word("hard.rule", **slots, large=str(vote.rule["large"]), billions=billions)]
        else:
            sentences = [load_word("hard.rule_any", **slots)]
        policy = str(vote.rule["policy"])
        sentences += [load_word(f"hard.policy_{policy}"), load_word("hard.panel", panel=str(vote.panel))]
        sentences += [load_word("hard.programs", programs=str(vote.programs))] if vote.programs else []
        blocks.append(" ".join(sentences))
    counts = {"chosen": f"{vote.chosen:,}", "accepted": f"{vote.accepted:,}"} if vote.status == "candidate" else {}
    blocks.append(load_word(f"hard.{vote.status}", **counts))
    return "\n\n".join(blocks)


def _format_columns() -> str:
    rows = [(f"`{c.name}`", c.type, c.meaning + (f" ({c.unit})" if c.unit else "")) for c in PUBLISHED.columns]
    return format_table(("column", "type", "meaning"), [*rows, (f"`{CANARY.name}`", CANARY.type, CANARY.meaning)])


def _format_provenance(release: Release) -> str:
    manifest = release.manifest
    counts, code = manifest.get("counts", {}), manifest.get("code", {})
    facts, rejects = int(counts.get("facts", 0)), int(counts.get("rejects", 0))
    lines = [load_word("made.text", rejects=f"{rejects:,}", drafts=f"{facts + rejects:,}")] if facts else []
    program = {key: str(code.get(key, "unknown")) for key in ("version", "source")}
    return "\n\n".join([*lines, load_word("made.fingerprint", fingerprint=release.main.fingerprint, **program)])


def _format_examples(examples: Sequence[Example]) -> str:
    if not examples:
        return load_word("examples.none")
    blocks = [load_word("examples.text")]
    for example in examples:
        item = example.item
        place = load_word("examples.sample") if item.licence == _CC0 else title_of(item.source)
        question = f"**`{item.task}`** ({place}) — {_escape_markdown(item.question)}"
        options = zip(ALPHABET, item.options, strict=False)
        lines = [f"- ({letter}) {_escape_markdown(text)}" for letter, text in options]
        lines += ["", f"Answer: **{_escape_markdown(item.answer)}**"]
        blocks += [question, f"![{item.task}]({example.picture})", "\n".join(lines)]
    return "\n\n".join(blocks)


def _escape_markdown(text: str) -> str:
    """The text of a row on one line, with Markdown's special characters escaped."""
    for mark in "\\`*_[]<>|":
        text = text.replace(mark, f"\\{mark}")
    return " ".join(text.split())


def _format_licences(decisions: Sequence[Decision], missing: RowsWithoutImages, repo: str, folder: str) -> str:
    rows = []
    for decision in decisions:
        policy = decision.policy
        reason = load_word("licences.by_flag", licence=policy.licence) if decision.by_flag else policy.reason
        stay = "licences.stay" if policy.kind == "scans" else "licences.stay_with_authors"
        images = load_word("licences.travel") if decision.pixels else load_word(stay)
        linked = f"[{policy.terms}]({policy.url})" if policy.url else policy.terms
        rows.append((title_of(policy.name), linked, decision.rows, images, reason))
    ours = all(decision.policy.kind in ("scans", "made") for decision in decisions)
    intro = load_word("licences.intro" if ours else "licences.intro_of_others")
    blocks = [intro, format_table(("images from", "terms", "questions", "images", "why"), rows, right=[2])]
    if missing.scans:
        blocks.append(load_word("licences.hydrate", count=f"{missing.scans:,}", repo=repo, folder=folder))
    blocks += _list_imports(missing, "licences.again", "licences.nowhere")
    notices = [decision.policy.notice for decision in decisions if decision.pixels and decision.policy.notice]
    if notices:
        blocks.append("\n".join([load_word("licences.notices"), "", *(f"- {notice}" for notice in notices)]))
    return "\n\n".join(blocks)


def _list_imports(missing: RowsWithoutImages, by_import: str, by_none: str) -> list[str]:
    """A phrase for each import that brings missing images; the two keys are those of the phrases."""
    return [
        load_word(by_import, count=f"{rows:,}", name=name) if name else load_word(by_none, count=f"{rows:,}")
        for name, rows in missing.imports.items()
    ]


def _format_limits(release: Release) -> str:
    lines = [load_word(f"limits.{key}") for key in ("scans", "instrument", "indoor")]
    infos = _list_scan_datasets(release)
    lines += [info.caution for info in infos if info is not None and info.caution]
    lines += [load_word("limits.people")] if infos else []
    return "\n".join(f"- {line}" for line in lines)


def _format_citation(release: Release) -> str:
    infos = _list_scan_datasets(release)
    entries = [load_citations()["benchmark"], *(info.citation for info in infos if info is not None and info.citation)]
    return "```bibtex\n" + "\n\n".join(entry.strip() for entry in entries) + "\n```"


def _list_scan_datasets(release: Release) -> list[DatasetInfo | None]:
    """The sources with real scans by name; None for one that has no loader."""
    return list(map(info_of, sorted({source for source, licence in release.counts.scenes if licence != _CC0})))


def load_citations() -> dict[str, Any]:
    """BibTeX entries from `templates/cards/citations.toml`."""
    return tomllib.loads((find_templates_root() / "cards" / "citations.toml").read_text("utf-8"))
